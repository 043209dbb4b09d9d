/* SPDX-License-Identifier: MIT
 * The block packs' rows, and what their files share. Everyone else includes block_pack.h. */
#ifndef BC_FORMATS_BLOCK_ROWS_H
#define BC_FORMATS_BLOCK_ROWS_H

#include "formats/block_pack.h"
#include "formats/rows.h"

extern const struct bc_block_pack bc_block_pack_tq1_0;
extern const struct bc_block_pack bc_block_pack_tq2_0;
extern const struct bc_block_pack bc_block_pack_q2_0;
extern const struct bc_block_pack bc_block_pack_q1_0;

/* The members of a row that follow from the block alone (contracts: struct bc_format). */
bool bc_block_check(const struct bc_block_pack *bp, const struct bc_pack_shape *shape, char *why,
                    size_t why_size);
uint64_t bc_block_bytes(const struct bc_block_pack *bp, uint64_t n);
void bc_block_put_scales(const struct bc_block_pack *bp, const struct bc_pack_shape *shape,
                         const float *scales, uint32_t n_scales, uint8_t *packed);
/* The slice's first scale that counts; 0 for a slice of zeros. */
float bc_block_get_scale(const struct bc_block_pack *bp, const struct bc_pack_shape *shape,
                         const uint8_t *packed, uint64_t slice);

/* dot_rows: the sums of block_codes. */
void bc_block_integer_rows(const struct bc_block_pack *bp, const struct bc_kernels *k,
                           const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                           uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                           int32_t *out);

/* Trits of n floats by their largest magnitude, which is returned: x / max is rounded to the
 * nearest integer, halves away from zero, as tq-types of ggml do (the reciprocal and the product
 * are rounded to float32). All zeros, and the result 0, when there is no other value. */
float bc_block_trits(const struct bc_kernels *k, const float *src, size_t n, int8_t *trits);

#endif
