/* SPDX-License-Identifier: MIT
 * Comparing one tensor's content with the checkpoint. */
#ifndef BC_VERIFY_SOURCE_VALUES_H
#define BC_VERIFY_SOURCE_VALUES_H

#include "verify/source_state.h"

/* Tensor `index` of the file against weight `w` (shapes are equal). Differences become problems of
 * the proof; the first one is described. Memory: a fixed amount per thread. */
enum bitconv_status bc_compare_values(struct bc_verifier *v, struct bitconv_proof *proof,
                                      const struct bc_weight *w, size_t index,
                                      struct bitconv_error *err);

#endif
