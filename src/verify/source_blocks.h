/* SPDX-License-Identifier: MIT
 * The source proof of packs with a scale per block: which values they hold, and their scales. */
#ifndef BC_VERIFY_SOURCE_BLOCKS_H
#define BC_VERIFY_SOURCE_BLOCKS_H

#include "verify/source_state.h"

/* Whether the blocks of a packed linear weight hold what quantizing each by its own largest
 * magnitude makes of the stored values (--quant block), instead of one decision for the tensor.
 * False for other packs. */
bool bc_source_is_by_block(const struct bc_verifier *v, const struct bc_weight *w,
                           const struct bc_packed *packed);
/* The same for a weight that is refused as one tensor of trits, but is ternary block by block. */
bool bc_source_is_ternary_by_block(const struct bc_verifier *v, const struct bc_weight *w,
                                   const struct bc_packed *packed);

/* Whether the file was converted with --quant block, when nobody says so: it states empty
 * fingerprints for packed tensors, or states nothing and the blocks of most of them have several
 * scales. (A damaged scale alone makes no such file.) */
bool bc_source_looks_by_block(const struct bc_verifier *v);

/* The scales of all blocks, and of the tensor beside them, against those of the decision: the first
 * difference becomes a problem of the proof. In the blocks they are rounded to float16; beside a
 * tensor of scales they are 1, and that tensor's values the exact ones. */
void bc_compare_block_scales(struct bc_verifier *v, struct bitconv_proof *proof,
                             const struct bc_weight *w, size_t index,
                             const struct bc_ternary *decision);

/* Whether a linear weight fits no tensor of the pack for its values: a zero where Q1_0 has none, a
 * scale that float16 does not hold. False for other packs. */
bool bc_source_is_block_misfit(struct bc_verifier *v, const struct bc_weight *w,
                               const struct bc_format *format);

#endif
