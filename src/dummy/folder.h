/* SPDX-License-Identifier: MIT
 * Writes a synthetic checkpoint folder, as a stream: memory does not depend on its size. */
#ifndef BC_DUMMY_FOLDER_H
#define BC_DUMMY_FOLDER_H

#include "base/file.h"
#include "base/pool.h"
#include "dummy/tensors.h"
#include "dummy/texts.h"

/* Which tensors go to which file. */
struct bc_dummy_shards {
    const struct bc_dummy_stored **tensors; /* file by file: widest elements first, then by name */
    uint32_t *shard;                        /* of each of them */
    size_t n;
    uint32_t n_shards;
};

/* Deals the tensors, in the order of their names, to `options->shards` files of about equal size, or
 * to files of at most max_shard_size bytes (but every file has a tensor). The order in which a
 * converter meets them is the same however many files there are. Release in any case. */
enum bitconv_status bc_dummy_deal(const struct bitconv_dummy_options *options,
                                  const struct bc_dummy_tensors *tensors,
                                  struct bc_dummy_shards *out, struct bitconv_error *err);
void bc_dummy_shards_release(struct bc_dummy_shards *shards);

/* Anonymous memory of bc_dummy_folder, in bytes. */
uint64_t bc_dummy_folder_memory(void);

/* Writes the folder: small files, weights, and the index of a set. It appears under its name when it
 * is complete; with force it replaces one that holds nothing but files of such a folder. */
enum bitconv_status bc_dummy_folder(const char *dir, bool force, const struct bc_dummy_texts *texts,
                                    const struct bc_dummy_shards *shards,
                                    const struct bc_kernels *k, struct bc_pool *pool,
                                    const struct bitconv_sink *sink, struct bitconv_error *err);

/* Writes the small files into an open output folder. */
enum bitconv_status bc_dummy_write_texts(struct bc_out_folder *folder,
                                         const struct bc_dummy_texts *texts,
                                         struct bitconv_error *err);
/* Is it the name of a file that bc_dummy_folder writes (folders end in "/")? */
bool bc_dummy_is_ours(const char *name);

#endif
