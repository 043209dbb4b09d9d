/* SPDX-License-Identifier: MIT
 * Outtype auto: each ternary tensor gets the smallest of several packs, by the sizes that they really
 * have for its shape and its share of zeros. */
#ifndef BC_CONVERT_AUTO_PACK_H
#define BC_CONVERT_AUTO_PACK_H

#include "convert/plan.h"

/* Before anything is known but the shape: gives t the first of setup->autos that can hold it. False
 * with the reason in `why` when none can. */
bool bc_auto_first(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                   size_t why_size);

/* Behind the statistics pass, with t->decision and t->shape.n_nonzero known: gives t the smallest of
 * setup->autos that can hold it (the earlier one of equal sizes) and its size. False with the reason
 * in `why` when none can. */
bool bc_auto_choose(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                    size_t why_size);

#endif
