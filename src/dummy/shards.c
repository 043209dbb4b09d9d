/* SPDX-License-Identifier: MIT
 * Which tensors of a synthetic checkpoint go to which file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dummy/folder.h"

enum { MAX_SHARDS = 99999 /* what the names have digits for */ };
static const uint64_t default_shard_size = UINT64_C(5) << 30;

/* A tensor on its way to its file. */
struct dealt {
    const struct bc_dummy_stored *tensor;
    uint32_t shard;
};

/* In a file the widest elements come first, so that all are aligned. */
static int by_place(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    const size_t wx = bitconv_dtype_size(x->tensor->view.dtype);
    const size_t wy = bitconv_dtype_size(y->tensor->view.dtype);
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    if (wx != wy) return wx > wy ? -1 : 1;
    return strcmp(x->tensor->view.name, y->tensor->view.name);
}

/* Files of about equal size; `before` bytes are in front of tensor i. */
static bool starts_equal(const struct bc_dummy_tensors *tensors, uint32_t n_shards, uint32_t shard,
                         size_t i, uint64_t before)
{
    const uint64_t share = tensors->size / n_shards;
    return shard + 1 < n_shards &&
           (before >= share * (shard + 1) || tensors->n - i <= n_shards - shard - 1);
}

static enum bitconv_status deal(const struct bitconv_dummy_options *o,
                                const struct bc_dummy_tensors *tensors, struct dealt *dealt,
                                uint32_t *out_n, struct bitconv_error *err)
{
    const uint64_t limit = o->max_shard_size != 0 ? o->max_shard_size : default_shard_size;
    uint64_t before = 0, filled = 0;
    uint32_t shard = 0;
    for (size_t i = 0; i < tensors->n; i++) {
        const uint64_t size = tensors->items[i].view.size;
        const bool starts = o->shards != 0 ? starts_equal(tensors, o->shards, shard, i, before)
                                           : size > limit || filled > limit - size;
        if (starts && filled > 0) {
            shard++;
            filled = 0;
        }
        before += size;
        filled += size;
        dealt[i] = (struct dealt){&tensors->items[i], shard};
    }
    *out_n = shard + 1;
    if (o->shards > tensors->n)
        return bc_fail(err, BITCONV_E_ARG, "--shards: %" PRIu32 " files for %zu tensors", o->shards,
                       tensors->n);
    if (*out_n > MAX_SHARDS)
        return bc_fail(err, BITCONV_E_ARG,
                       "--max-shard-size: %" PRIu32 " files would be needed, at most %d", *out_n,
                       MAX_SHARDS);
    return BITCONV_OK;
}

enum bitconv_status bc_dummy_deal(const struct bitconv_dummy_options *options,
                                  const struct bc_dummy_tensors *tensors,
                                  struct bc_dummy_shards *out, struct bitconv_error *err)
{
    struct dealt *dealt = bc_alloc_array(tensors->n, sizeof *dealt);
    out->tensors = bc_alloc_array(tensors->n, sizeof(const struct bc_dummy_stored *));
    out->shard = bc_alloc_array(tensors->n, sizeof *out->shard);
    out->n = tensors->n;
    enum bitconv_status status = BITCONV_OK;
    if (dealt == NULL || out->tensors == NULL || out->shard == NULL)
        status = bc_fail_nomem(err, "list of tensors");
    if (status == BITCONV_OK) status = deal(options, tensors, dealt, &out->n_shards, err);
    if (status == BITCONV_OK) {
        qsort(dealt, out->n, sizeof *dealt, by_place);
        for (size_t i = 0; i < out->n; i++) {
            out->tensors[i] = dealt[i].tensor;
            out->shard[i] = dealt[i].shard;
        }
    }
    bc_free(dealt);
    return status;
}

void bc_dummy_shards_release(struct bc_dummy_shards *shards)
{
    bc_free((void *)shards->tensors);
    bc_free(shards->shard);
    *shards = (struct bc_dummy_shards){.n = 0};
}
