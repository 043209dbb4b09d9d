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

/* The members check, size, put_scales, get_scale and dot_rows of the row of format.h that belongs to
 * `block_pack`. A macro, because they all do the same with it but are not told which it is. */
#define BC_BLOCK_MEMBERS(block_pack)                                                               \
    static bool check(const struct bc_pack_shape *shape, char *why, size_t why_size)               \
    {                                                                                              \
        return bc_block_check(&(block_pack), shape, why, why_size);                                \
    }                                                                                              \
    static uint64_t size(const struct bc_pack_shape *shape)                                        \
    {                                                                                              \
        return bc_block_bytes(&(block_pack), shape->n);                                            \
    }                                                                                              \
    static void put_scales(const struct bc_pack_shape *shape, const float *scales,                 \
                           uint32_t n_scales, uint8_t *packed)                                     \
    {                                                                                              \
        bc_block_put_scales(&(block_pack), shape, scales, n_scales, packed);                       \
    }                                                                                              \
    static float get_scale(const struct bc_pack_shape *shape, const uint8_t *packed,               \
                           uint64_t slice)                                                         \
    {                                                                                              \
        return bc_block_get_scale(&(block_pack), shape, packed, slice);                            \
    }                                                                                              \
    static void dot_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,            \
                         const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,    \
                         uint64_t x_stride, uint32_t n_x, int32_t *out)                            \
    {                                                                                              \
        bc_block_integer_rows(&(block_pack), k, shape, packed, row, n_rows, x, x_stride, n_x,      \
                              out);                                                                \
    }

/* 1.0 as float16: the scale that packing trits gives a block. */
enum { BC_F16_ONE = 0x3c00 };

#endif
