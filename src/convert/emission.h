/* SPDX-License-Identifier: MIT
 * From a settled plan and its metadata to files, and the account of what is in them: what all
 * commands that write a model share. */
#ifndef BC_CONVERT_EMISSION_H
#define BC_CONVERT_EMISSION_H

#include "convert/outputs.h"
#include "convert/plan.h"

/* What is to be written. Everything is borrowed; the outputs are laid out (bc_outputs_layout). */
struct bc_emission {
    const struct bc_setup *setup;
    const struct bc_model *model; /* NULL when every tensor of the plan has an origin */
    struct bc_pool *pool;
    const struct bitconv_sink *sink;
    struct bc_plan *plan;
    struct bc_outputs *outputs;
    const char *path;   /* of the output, as asked for */
    const char *source; /* bitconv.source */
    bool has_keys;      /* the metadata has bitconv.* keys that depend on the values */
    /* Looks at the finished plan before the outputs get their names, or NULL. */
    enum bitconv_status (*check)(void *ctx, struct bitconv_error *err);
    void *check_ctx;
};

/* Sets the bitconv.* keys and e->has_keys, unless the options say plain. `w` is the writer that
 * bc_outputs_layout will be given. */
enum bitconv_status bc_emit_keys(struct bc_emission *e, struct bitconv_gguf_writer *w,
                                 struct bitconv_error *err);
/* Writes all files: headers, values, headers again with what the values turned out to be. An output
 * that cannot be written twice (a pipe) is computed twice. Or, when the options ask for a dry run,
 * does everything but the writing. */
enum bitconv_status bc_emit(const struct bc_emission *e, struct bitconv_error *err);
/* Warnings about what only the values show: holes, all zeros, values too small for F16. */
void bc_emit_warn(const struct bc_emission *e);

/* The account of a finished emission. `target` is a constant or NULL, `architecture` is copied. The
 * caller hands *out on, or releases it with bitconv_conversion_free. */
enum bitconv_status bc_emit_describe(const struct bc_emission *e, const char *target,
                                     const char *architecture, struct bitconv_conversion **out,
                                     struct bitconv_error *err);

#endif
