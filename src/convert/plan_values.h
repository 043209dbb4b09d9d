/* SPDX-License-Identifier: MIT
 * Values of a planned tensor, wherever they come from. */
#ifndef BC_CONVERT_PLAN_VALUES_H
#define BC_CONVERT_PLAN_VALUES_H

#include "convert/plan.h"

/* Values [first, first + n) of the flat order, from the tensor's origin or from the sources of its
 * weight (model/weights.h has the details; `model` may be NULL when there is an origin). No
 * allocation: any number of threads may read. `loss` may be NULL. */
enum bitconv_status bc_plan_trits_at(const struct bc_setup *setup, const struct bc_model *model,
                                     const struct bc_plan_tensor *t, uint64_t first, uint64_t n,
                                     int8_t *dst, struct bc_trit_loss *loss,
                                     struct bitconv_error *err);
enum bitconv_status bc_plan_f32_at(const struct bc_setup *setup, const struct bc_model *model,
                                   const struct bc_plan_tensor *t, uint64_t first, uint64_t n,
                                   float *dst, struct bitconv_error *err);

/* Counts the non-zero trits of a tensor on all threads: t->shape.n_nonzero. */
enum bitconv_status bc_plan_count_nonzero(const struct bc_setup *setup,
                                          const struct bc_model *model, struct bc_pool *pool,
                                          struct bc_plan_tensor *t, struct bitconv_error *err);

#endif
