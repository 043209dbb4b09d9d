/* SPDX-License-Identifier: MIT
 * Which files of a checkpoint folder hold the weights: internal to checkpoint*.c. */
#ifndef BC_MODEL_CHECKPOINT_FILES_H
#define BC_MODEL_CHECKPOINT_FILES_H

#include "base/json.h"
#include "io/safetensors_write.h" /* BC_SAFETENSORS_INDEX */
#include "model/checkpoint.h"
#include "model/findings.h"

/* The folder as it was when opened. */
struct bc_folder {
    const char *dir;
    char **entries; /* names, sorted bytewise; owned */
    size_t n_entries;
};

/* One weight file. */
struct bc_shard {
    const char *name; /* within the folder */
    size_t n_indexed; /* tensors that the index puts there; 0 without an index */
    struct bitconv_safetensors
        *file; /* borrowed; NULL until opened, or when a finding says why not */
};

/* The weight files in the order of their names. Zero-initialise, release with
 * bc_shard_list_release. */
struct bc_shard_list {
    struct bc_shard *shards;
    size_t n;
    struct bc_json *index;            /* model.safetensors.index.json, or NULL */
    const struct bc_json *weight_map; /* its tensor name -> file name, or NULL */
    struct bc_arena arena;            /* owns shards and names */
};

/* Decides which files hold the weights (the rule is at bc_checkpoint_open). Gaps in a numbered set
 * and entries of the index without a file name become findings; files passed over are noted. Fails
 * at once where there is nothing to go on with: no weights, several files and no index, an
 * unreadable index. */
enum bitconv_status bc_shard_list_find(const struct bc_folder *folder, struct bc_findings *findings,
                                       struct bc_shard_list *list, struct bitconv_error *err);
void bc_shard_list_release(struct bc_shard_list *list);

/* The shard of that name, or NULL. */
const struct bc_shard *bc_shard_list_get(const struct bc_shard_list *list, const char *name);

/* Opens the files of the list into ckpt->shards and merges their tensors into ckpt->tensors. Every
 * fault becomes a finding; fails itself only when out of memory. */
enum bitconv_status bc_checkpoint_open_shards(struct bc_checkpoint *ckpt,
                                              const struct bc_folder *folder,
                                              struct bc_shard_list *list,
                                              struct bc_findings *findings,
                                              struct bitconv_error *err);

/* True when the folder has an entry of that name, even a link that leads nowhere. */
bool bc_folder_has(const struct bc_folder *folder, const char *name);
/* True when "NAME.incomplete" is there, the mark of an unfinished download. */
bool bc_folder_has_incomplete(const struct bc_folder *folder, const char *name);

/* True for a relative path that stays inside its folder by its spelling: no component that is
 * empty, "." or "..". Symbolic links are not followed here: download caches consist of them. */
bool bc_stays_inside(const char *path);

#endif
