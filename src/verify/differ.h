/* SPDX-License-Identifier: MIT
 * What the parts of diff share while they fill in a bitconv_diff. */
#ifndef BC_VERIFY_DIFFER_H
#define BC_VERIFY_DIFFER_H

#include "base/map.h"
#include "base/mem.h"
#include "base/pool.h"
#include "bitconv/diff.h"
#include "bitconv/inspect.h"
#include "model/stated.h"
#include "quant/kernels.h"
#include "verify/container.h"

/* One of the two. */
struct bc_diff_side {
    const char *path;
    struct bitconv_inspection *it;
    const struct bc_container *container; /* of `it` */
    struct bc_stated stated;
    struct bc_map tensors; /* name -> index into it->tensors */
};

/* bitconv_diff.internal: what the result borrows from. */
struct bc_diff_data {
    struct bc_arena arena;
    struct bitconv_inspection *it[2];
};

struct bc_differ {
    const struct bitconv_diff_options *options;
    const struct bitconv_sink *sink;
    const struct bc_kernels *kernels;
    struct bc_pool *pool;
    struct bc_diff_side side[2];
    struct bitconv_diff *out;
    struct bc_diff_data *data; /* out->internal */
};

/* diff_keys.c: out->keys, n_same_keys, n_different_keys. */
enum bitconv_status bc_diff_keys(struct bc_differ *d, struct bitconv_error *err);
/* diff_tensors.c: out->tensors, n_different_tensors. */
enum bitconv_status bc_diff_tensors(struct bc_differ *d, struct bitconv_error *err);

#endif
