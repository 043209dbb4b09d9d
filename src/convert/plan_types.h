/* SPDX-License-Identifier: MIT
 * Which type each tensor of an output gets: the types that the converters of either target write, as
 * a table by family, kind of file and role. */
#ifndef BC_CONVERT_PLAN_TYPES_H
#define BC_CONVERT_PLAN_TYPES_H

#include "convert/setup.h"

/* The type that the table gives a tensor, and whether a linear tensor's values are trit * scale
 * (*ternary) or the stored ones. */
void bc_plan_type(const struct bc_setup *setup, const struct bc_model *model,
                  const struct bc_weight *w, struct bc_outtype *type, bool *ternary);

/* Whether a reference converter (BitNet's scripts, for target bitnet) would write something else
 * than bitconv for a tensor whose type and decision are fixed, and the minus zeros it would keep
 * (struct bc_trit_loss) are known. */
bool bc_reference_differs(const struct bc_setup *setup, const struct bc_model *model,
                          const struct bc_weight *w, const struct bc_outtype *type,
                          const struct bc_ternary *decision, uint64_t n_minus_zero);

#endif
