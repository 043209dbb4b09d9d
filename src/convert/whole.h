/* SPDX-License-Identifier: MIT
 * Tensors whose pack cannot be written piece by piece: tiled packs, where a row of weights is
 * spread over the tensor, and payloads, whose parts grow side by side. Their bytes are put together
 * in memory, one tensor at a time. */
#ifndef BC_CONVERT_WHOLE_H
#define BC_CONVERT_WHOLE_H

#include "convert/plan.h"

/* Zero-initialise; release in any case. */
struct bc_whole {
    uint8_t *packed; /* room for the largest tensor of the plan */
    int8_t *trits;   /* likewise, where the pack wants all of them at once */
};

/* Bytes that bc_whole_begin allocates; 0 when the plan has no such tensor. */
uint64_t bc_whole_memory(const struct bc_plan *plan);
enum bitconv_status bc_whole_begin(struct bc_whole *w, const struct bc_plan *plan,
                                   struct bitconv_error *err);
/* Takes trits [first, first + n) of the tensor: pieces in ascending order, none left out, of a
 * multiple of BC_PIECE_VALUES but for the last. */
void bc_whole_add(struct bc_whole *w, const struct bc_kernels *k, const struct bc_plan_tensor *t,
                  uint64_t first, const int8_t *trits, size_t n);
/* Behind the last trit: the tensor's t->size bytes, valid until the next bc_whole_add. */
const uint8_t *bc_whole_end(struct bc_whole *w, const struct bc_kernels *k,
                            const struct bc_plan_tensor *t);
void bc_whole_release(struct bc_whole *w);

#endif
