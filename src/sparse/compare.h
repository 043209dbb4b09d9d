/* SPDX-License-Identifier: MIT
 * What a predictor costs and gains: sparse blocks against dense ones in the same process. */
#ifndef BC_SPARSE_COMPARE_H
#define BC_SPARSE_COMPARE_H

#include "bitconv/sparse.h"
#include "sparse/predictor.h"

/* Runs every text dense and sparse, in chunks, and fills *q (q->layers has room for every layer;
 * `explained` is left alone). Recall, mass and sparsity are those of the dense run's inputs, errors
 * those of the sparse run's outputs. The engine's observer and selection are replaced while it runs,
 * and put back. */
enum bitconv_status bc_sparse_compare(struct bitconv_engine *engine, struct bc_predictor *p,
                                      const struct bitconv_sparse_text *texts, size_t n_texts,
                                      const struct bitconv_sink *sink,
                                      struct bitconv_sparse_quality *q, struct bitconv_error *err);

/* Times tokens one by one, at most max_tokens of all texts, dense and sparse in turn text by text.
 * Runs without observation. */
enum bitconv_status bc_sparse_time(struct bitconv_engine *engine, struct bc_predictor *p,
                                   const struct bitconv_sparse_text *texts, size_t n_texts,
                                   uint64_t max_tokens, const struct bitconv_sink *sink,
                                   struct bitconv_sparse_speed *out, struct bitconv_error *err);

/* Embeds a text (pooled as the model says, L2-normalised) or runs tokens, with p's neurons; p NULL:
 * with all. */
enum bitconv_status bc_sparse_embed(struct bitconv_session *session, struct bc_predictor *p,
                                    const struct bitconv_sparse_text *text, float *out,
                                    struct bitconv_error *err);
enum bitconv_status bc_sparse_step(struct bitconv_session *session, struct bc_predictor *p,
                                   const int32_t *tokens, size_t n, struct bitconv_run *run,
                                   struct bitconv_error *err);

#endif
