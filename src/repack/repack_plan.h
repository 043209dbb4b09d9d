/* SPDX-License-Identifier: MIT
 * The plan of a repacking: every tensor read once, judged, and given its type and size. */
#ifndef BC_REPACK_REPACK_PLAN_H
#define BC_REPACK_REPACK_PLAN_H

#include "convert/plan.h"
#include "repack/repack_input.h"

/* Reads all ternary tensors of the input through their independent readers and decides types, trits,
 * scales and sizes. Everything that speaks against it is a FINDING to the sink, and then the call
 * fails; nothing has been written then. `in` is borrowed and must outlive the plan; release *out
 * with bc_plan_release in any case. */
enum bitconv_status bc_repack_plan(const struct bc_setup *setup, struct bc_repack_input *in,
                                   struct bc_pool *pool, const struct bitconv_sink *sink,
                                   struct bc_plan *out, struct bitconv_error *err);

/* Behind the pass over the values: that what was written has the fingerprints of what was read. */
enum bitconv_status bc_repack_compare(const struct bc_repack_input *in, const struct bc_plan *plan,
                                      struct bitconv_error *err);

#endif
