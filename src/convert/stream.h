/* SPDX-License-Identifier: MIT
 * The pass over the values: reads, transforms and packs all tensors piece by piece, on all threads,
 * and writes them in order. */
#ifndef BC_CONVERT_STREAM_H
#define BC_CONVERT_STREAM_H

#include "base/file.h"
#include "convert/plan.h"

/* Where tensor `index` of the plan goes. */
struct bc_place {
    uint32_t file;   /* index into files */
    uint64_t offset; /* of its first byte in that file */
};

struct bc_stream_job {
    const struct bc_setup *setup;
    const struct bc_model *model;
    struct bc_plan *plan;
    struct bc_pool *pool;
    const struct bitconv_sink *sink;
    /* Outputs whose headers are written; NULL: nothing is written, only the results are computed.
     */
    struct bc_out **files;
    const struct bc_place *places; /* one per tensor, file by file in ascending order */
    const char *what;              /* for progress: "writing" */
};

/* Computes every tensor of the plan and writes it at its place (zeros up to there). Fills in the
 * results of the plan's tensors: counts, loss, fingerprint. They and the bytes do not depend on the
 * number of threads. Memory: bc_stream_memory bytes at most. CANCELED when the sink's
 * flag is raised between two batches. */
enum bitconv_status bc_stream_run(const struct bc_stream_job *job, struct bitconv_error *err);

/* Anonymous memory of a run that writes, in bytes: a fixed amount, and for packs that are put
 * together as a whole the largest tensor. */
uint64_t bc_stream_memory(const struct bc_plan *plan);

/* Writes zeros up to `offset`. */
enum bitconv_status bc_pad_to(struct bc_out *out, uint64_t offset, struct bitconv_error *err);

#endif
