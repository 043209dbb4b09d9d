/* SPDX-License-Identifier: MIT
 * A Hugging Face checkpoint folder: its JSON files and one list of all its tensors. */
#ifndef BC_MODEL_CHECKPOINT_H
#define BC_MODEL_CHECKPOINT_H

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "bitconv/safetensors.h"

/* Owned by bc_checkpoint_open's caller; close releases all. Tensor views borrow from the shards. */
struct bc_checkpoint {
    char *dir;                         /* as given */
    char *base_name;                   /* base name of the real path (never ".") */
    struct bc_json *config;            /* config.json, always present */
    const struct bc_json *text;        /* config's text_config where nested, else config */
    struct bc_json *generation_config; /* generation_config.json or NULL */
    struct bc_json *modules;           /* modules.json (sentence-transformers) or NULL */
    struct bc_json
        *pooling; /* config.json of the first module whose type ends in "Pooling", or NULL */

    bool has_weights; /* false: opened for the vocabulary alone */
    struct bitconv_safetensors **shards;
    char **shard_paths;
    size_t n_shards;
    /* All tensors: shard by shard (index or name order), names sorted bytewise within each: the
     * order in which the reference converters meet them. Names are unique. */
    const struct bitconv_tensor **tensors;
    size_t n_tensors;
    struct bc_map by_name; /* name -> index into tensors */
};

/* Opens a folder. Weights: model.safetensors.index.json decides when present (its shards, in the
 * order of their names), else model.safetensors, else the only *.safetensors file, else
 * model-?????-of-????? files (a gap in the numbering is refused). Every fault of the set is sent to
 * the sink as a FINDING (shards missing, tensors indexed but absent, present but not indexed, in
 * two shards, file names that leave the folder, impostor files), all of them, then the call fails.
 * Notes: unindexed *.safetensors files ignored, wrong total_size (warning). JSON files may be
 * FILE.gz or gzip data. A folder without config.json or weights, or holding only
 * pytorch_model*.bin, is refused saying so. need_weights = false (vocab-only): shards are not
 * opened, n_tensors is 0. */
enum bitconv_status bc_checkpoint_open(const char *dir, bool need_weights,
                                       const struct bitconv_sink *sink, struct bc_checkpoint **out,
                                       struct bitconv_error *err);
void bc_checkpoint_close(struct bc_checkpoint *ckpt); /* NULL is fine */
/* NULL when there is no tensor of that name. */
const struct bitconv_tensor *bc_checkpoint_find(const struct bc_checkpoint *ckpt, const char *name);
/* The map of the file that holds one of the checkpoint's tensors, for advice about its pages; NULL
 * for a tensor of another. */
const struct bc_file *bc_checkpoint_file_of(const struct bc_checkpoint *ckpt,
                                            const struct bitconv_tensor *tensor);
/* Loads DIR/NAME or DIR/NAME.gz as JSON. *out NULL and BITCONV_OK when neither exists. Free with
 * bc_json_free. */
enum bitconv_status bc_checkpoint_json(const char *dir, const char *name, struct bc_json **out,
                                       struct bitconv_error *err);
/* The same, refusing a JSON text that is not an object. */
enum bitconv_status bc_checkpoint_object(const char *dir, const char *name, struct bc_json **out,
                                         struct bitconv_error *err);

#endif
