/* SPDX-License-Identifier: MIT
 * Fitting a predictor to what a model does with sample texts. */
#ifndef BC_SPARSE_CALIBRATE_H
#define BC_SPARSE_CALIBRATE_H

#include "bitconv/sparse.h"
#include "sparse/predictor.h"

/* "blk.3.ffn_in" with `what` "ffn_in" gives 3; false for other names. */
bool bc_sparse_layer_of(const char *name, const char *what, uint32_t *layer);

/* Fills U and V of every layer of `p`, and what p says about the fit; explained[layer] as in struct
 * bitconv_sparse_layer. `options` gives texts, ridge and memory. Runs the texts once for every group of
 * layers whose sums fit into memory; the engine's observer is replaced while it runs, and put back. */
enum bitconv_status bc_sparse_fit(struct bitconv_engine *engine,
                                  const struct bitconv_sparse_options *options,
                                  const struct bitconv_sink *sink, struct bc_predictor *p,
                                  double *explained, struct bitconv_error *err);

#endif
