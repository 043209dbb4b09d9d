/* SPDX-License-Identifier: MIT
 * What the parts of inspect share while they fill in a bitconv_inspection. */
#ifndef BC_VERIFY_INSPECTOR_H
#define BC_VERIFY_INSPECTOR_H

#include "bitconv/inspect.h"
#include "model/model.h"
#include "model/stated.h"
#include "verify/container.h"
#include "verify/tensor_stats.h"

/* bitconv_inspection.internal: what the result borrows from. */
struct bc_inspection_data {
    struct bc_container container;
    struct bc_arena arena;
};

struct bc_inspector {
    const char *path;
    const struct bitconv_inspect_options *options;
    const struct bitconv_sink *sink; /* progress, cancel */
    const struct bc_kernels *kernels;
    struct bc_pool *pool;
    struct bc_stated stated;
    struct bitconv_inspection *out;
    struct bc_inspection_data *data; /* out->internal */
    char **warnings;                 /* arena strings; the array is moved into out */
    size_t n_warnings, cap_warnings;
    bool failed; /* a warning was lost: out of memory */
};

/* Adds a warning to the result; in->failed when memory runs out. */
void bc_inspect_warn(struct bc_inspector *in, const char *fmt, ...) BC_PRINTF(2, 3);

/* inspect_keys.c: out->keys from whatever metadata the container has. */
enum bitconv_status bc_inspect_keys(struct bc_inspector *in, struct bitconv_error *err);
/* inspect_tensors.c: out->tensors, types, parameters; statistics and digests where asked for. */
enum bitconv_status bc_inspect_tensors(struct bc_inspector *in, struct bitconv_error *err);
/* inspect_values.c: out->values of options->tensor. */
enum bitconv_status bc_inspect_values(struct bc_inspector *in, struct bitconv_error *err);

#endif
