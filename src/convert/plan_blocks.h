/* SPDX-License-Identifier: MIT
 * Packs with a float16 scale per block, before anything is written: which scales the file will hold,
 * what rounding them loses, which tensors do not fit for their values, and the tensors that hold
 * the exact scales. */
#ifndef BC_CONVERT_PLAN_BLOCKS_H
#define BC_CONVERT_PLAN_BLOCKS_H

#include "convert/plan.h"

/* For a tensor of a block pack whose trits and scales are decided (or that is quantized by block):
 * sets block_scales, n_block_scales and scale_error. A scale that float16 does not hold (without
 * --scale-tensor) and a zero trit where the pack has none (Q1_0) make it a misfit. Reads the values
 * only where that is needed: stacks of experts, Q1_0, quantizing by block. */
enum bitconv_status bc_plan_block_scales(const struct bc_setup *setup, const struct bc_model *model,
                                         struct bc_pool *pool, struct bc_plan_tensor *t,
                                         struct bc_findings *findings, struct bitconv_error *err);

/* With --scale-tensor: puts behind each tensor of a block pack an F32 vector of its exact scales,
 * NAME.scale for NAME.weight, one per slice. Once, behind the last bc_plan_block_scales. */
enum bitconv_status bc_plan_add_scale_tensors(const struct bc_setup *setup, struct bc_plan *plan,
                                              struct bitconv_error *err);

/* One warning about everything that was rounded. */
void bc_plan_warn_rounding(const struct bc_plan *plan, const struct bitconv_sink *sink);

#endif
