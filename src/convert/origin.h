/* SPDX-License-Identifier: MIT
 * Where the values of a planned tensor come from when it is no weight of a checkpoint: a tensor of
 * another GGUF, decoded or copied, or numbers made up. */
#ifndef BC_CONVERT_ORIGIN_H
#define BC_CONVERT_ORIGIN_H

#include "base/error.h"
#include "quant/kernels.h"

/* A tensor that exists already: with `bytes` one that is copied, else one of values. Read by any
 * number of threads at once. */
struct bc_origin {
    const char *how; /* how its trits were obtained, for people: the name of a pack; a constant */
    /* Trits [first, first + n) of the flat order. The caller has made sure beforehand that the
     * tensor is legal: a code that is no trit is a BUG. */
    enum bitconv_status (*trits)(const void *ctx, const struct bc_kernels *k, uint64_t first,
                                 uint64_t n, int8_t *dst, struct bitconv_error *err);
    /* The same values as floats: the stored ones, or trit * scale. */
    enum bitconv_status (*floats)(const void *ctx, const struct bc_kernels *k, uint64_t first,
                                  uint64_t n, float *dst, struct bitconv_error *err);
    const uint8_t *bytes; /* as many as the planned tensor's size, copied as they are */
    /* Tells the kernel that the tensor will not be read again soon. */
    void (*done)(const void *ctx);
    const void *ctx; /* of the functions */
};

#endif
