/* SPDX-License-Identifier: MIT
 * The architecture's numbers against the tensors: which are there, and of which shape. */
#ifndef BC_VERIFY_METADATA_SHAPES_H
#define BC_VERIFY_METADATA_SHAPES_H

#include "verify/metadata_rules.h"

/* For an architecture that the rules know (`arch` is its name, the prefix of its keys): head counts
 * and sizes that make sense, and rows and columns of the projections, norms and experts that follow
 * from them (ARCH.attention.head_count * ARCH.attention.key_length rows of attn_q, ...). Sizes that
 * the file does not state are not judged. */
void bc_check_model_shapes(const struct bitconv_gguf *file, const char *arch,
                           const struct bc_rule_report *report);

/* Every block must have what one block has, and a model its embedding, last norm and projections.
 * `n_blocks`: ARCH.block_count, which the caller has found to agree with the names. */
void bc_check_model_tensors(const struct bitconv_gguf *file, const char *arch, uint64_t n_blocks,
                            const struct bc_rule_report *report);

#endif
