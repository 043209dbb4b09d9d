/* SPDX-License-Identifier: MIT
 * The last step of planning a ternary tensor: when its trits and scales are known, which type holds
 * them. */
#ifndef BC_CONVERT_PLAN_PACK_H
#define BC_CONVERT_PLAN_PACK_H

#include "convert/plan.h"

/* For a tensor with a decision and the asked type: settles type (outtype auto), scales (block packs)
 * and size, or makes it a misfit, or adds to the findings why its type cannot hold it. Measures what
 * a float type rounds (scale_error). Counts non-zero trits where the size depends on them, unless
 * t->shape.n_nonzero is set already. */
enum bitconv_status bc_plan_pack(const struct bc_setup *setup, const struct bc_model *model,
                                 struct bc_pool *pool, struct bc_plan_tensor *t,
                                 struct bc_findings *findings, struct bitconv_error *err);

/* Magnitudes from here on become infinite in the type. */
float bc_type_limit(const struct bc_outtype *type);
/* What to do about a tensor whose values leave the range of its type. */
const char *bc_range_hint(const struct bc_weight *w, const struct bc_outtype *type);

#endif
