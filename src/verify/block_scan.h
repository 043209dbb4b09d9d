/* SPDX-License-Identifier: MIT
 * The scales of a packed tensor with a float16 scale per block: what they come to per slice, and
 * which of them cannot be scales. */
#ifndef BC_VERIFY_BLOCK_SCAN_H
#define BC_VERIFY_BLOCK_SCAN_H

#include "verify/pack_scan.h"

/* Scans the blocks of `p`, whose format is a block pack, into *out, and sets scales (room for
 * p->shape.slices values) to those of the fingerprint: per slice the common scale of its blocks
 * times that of the tensor beside it, if any (float32). Blocks of zeros count for nothing; a slice
 * of nothing else has the scale 1e-5, or the one beside it. */
void bc_block_scan(const struct bc_packed *p, float *scales, struct bc_block_scan *out);

/* The scale of slice `slice` that stands beside the tensor; 1 where none does. */
float bc_packed_scale_beside(const struct bc_packed *p, uint64_t slice);

#endif
