/* SPDX-License-Identifier: MIT
 * GGUF -> checkpoint folder. */
#ifndef BITCONV_EXPORT_H
#define BITCONV_EXPORT_H

#include "bitconv/gguf.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_export_options {
    const char *dir; /* the folder to make (required) */
    /* How tensors that are no plain numbers are written. "packed": ternary packs as uint8 with a
     * float32 weight_scale, and all others, plain numbers too, as float32: transformers 5 computes
     * such checkpoints in the types that are stored, and those must not mix. "f32", "f16", "bf16":
     * decoded; tensors of plain numbers keep their type. NULL: packed when there are packs, else
     * plain numbers as they are, and blocks of other quantizations are refused. */
    const char *dtype;
    const char *pre;     /* how a byte-level vocabulary splits text, where the file's name for that
                          * is not known */
    const char *dialect; /* overrides the dialect decision ("bitnet", ...) */
    const char *kernel_config; /* tiles of TL1 and TL2 tensors that do not state theirs (INI) */
    const char *i2s_layout;    /* "128" or "64", for files that do not state it */
    uint64_t max_shard_size;   /* bytes of tensors in a file; 0: 5 GiB */
    bool force;                /* replace a folder that holds nothing but an earlier checkpoint */
    const char *cpu;           /* "scalar", "avx2", "avx512", "neon"; NULL: best */
};

/* One tensor of the checkpoint. */
struct bitconv_exported_tensor {
    const char *name, *source; /* HF name; GGUF name */
    const char *type;          /* of the source: its pack, else its GGUF type name */
    const char *dtype;         /* as safetensors names it */
    uint32_t n_dims;
    uint64_t shape[4]; /* as stored */
    uint64_t size;
    uint64_t n_inexact; /* values that the narrower dtype rounds */
};

struct bitconv_export {
    const char *output, *dtype, *class_name;
    struct bitconv_exported_tensor *tensors; /* in the order of the files */
    size_t n_tensors;
    uint32_t n_shards;
    uint64_t size;            /* of all tensors */
    const char *const *files; /* names of all files within the folder */
    size_t n_files;
    void *internal;
};

/* Writes the folder: model.safetensors (or shards with their index), config.json,
 * generation_config.json where the file has sampling settings, the tokenizer files, and
 * sentence-transformers' modules of an embedding model. It appears under its name when it is
 * complete; a failed or cancelled call leaves nothing behind.
 * Converting the folder again gives the same model: from a folder of the same name, with the same
 * options, the same file. What a GGUF of another writer leaves out takes the family's default, said
 * through the sink. Refused, by name: unknown architectures, tensors the family does not have or
 * that are missing, shapes that are not those of the metadata, codes and scales that are not legal,
 * values beyond a narrower dtype's range, tokenizers that no file could describe, keys that declare
 * transforms of the weights (prism.hadamard.*).
 * Memory: metadata and tokenizer files; of the tensors a few rows (tiled packs: one tensor's trits).
 * The caller releases *out with bitconv_export_free. */
BITCONV_API enum bitconv_status bitconv_export(const char *file,
                                               const struct bitconv_export_options *options,
                                               const struct bitconv_sink *sink,
                                               struct bitconv_export **out,
                                               struct bitconv_error *err);
BITCONV_API void bitconv_export_free(struct bitconv_export *result);

#ifdef __cplusplus
}
#endif
#endif
