/* SPDX-License-Identifier: MIT
 * What the packs of stock llama.cpp (TQ1_0, TQ2_0, Q2_0, Q1_0) have beyond their row in format.h:
 * rows are cut into blocks, and each block carries a float16 scale of its own.
 *
 * Two ways to fill blocks. From trits: the row's pack writes the codes and the block scales 1.0,
 * which is what a file wants whose scales stand in tensors of their own (--scale-tensor);
 * put_scales, called behind pack, then replaces them by the tensor's scale. From floats: each block
 * by a magnitude of its own. Either way a block of zero trits has the scale 0, as in mainline's
 * quantizer. */
#ifndef BC_FORMATS_BLOCK_PACK_H
#define BC_FORMATS_BLOCK_PACK_H

#include "formats/format.h"
#include "quant/kernels.h"

struct bc_block_pack {
    const struct bc_format *format;
    uint32_t block;        /* values of a block; a row is a whole number of blocks */
    uint32_t block_size;   /* bytes of a block */
    uint32_t scale_offset; /* of the float16 scale within a block */
    bool holds_zeros;      /* false: a tensor with a zero trit is a misfit (Q1_0) */
    /* Are all trits of the block 0? Its scale does not matter. */
    bool (*is_zero)(const uint8_t *block);
    /* bc_block_from_floats where it is not by the largest magnitude (Q1_0); NULL: it is. */
    void (*from_floats)(const float *src, uint64_t n_blocks, uint8_t *dst);
    /* One exact integer per block: the sum of (trit + 1) * x over its values. */
    void (*block_codes)(const struct bc_kernels *k, const uint8_t *blocks, uint64_t n_blocks,
                        const int8_t *x, int32_t *dots);
};

/* The block pack of a row of format.h; NULL for the other packs. */
const struct bc_block_pack *bc_block_pack_of(const struct bc_format *format);
/* By name ("tq2_0"); NULL: not a block pack. */
const struct bc_block_pack *bc_block_pack_find(const char *name);
/* The i-th, NULL behind the last. */
const struct bc_block_pack *bc_block_pack_at(size_t i);

/* Quantizes n_blocks * block floats as mainline's reference quantizer does, bit for bit: by the
 * largest magnitude of each block, Q1_0 by the mean. They should be finite: a block with a NaN or an
 * infinity gets a scale of that kind and codes of no meaning. */
void bc_block_from_floats(const struct bc_block_pack *bp, const struct bc_kernels *k,
                          const float *src, uint64_t n_blocks, uint8_t *dst);

/* The float32 value of a block's scale. */
float bc_block_scale(const struct bc_block_pack *bp, const uint8_t *block);
/* Makes float16(scale), rounded to nearest even, the scale of n_blocks packed blocks, and 0 that of
 * blocks of zero trits. (A caller that cares looks first whether the scale is one that float16
 * holds: above 65504 it becomes infinite, at 2^-25 and below 0.) */
void bc_block_put_scale(const struct bc_block_pack *bp, float scale, uint64_t n_blocks,
                        uint8_t *blocks);
/* Does float16 hold the scale of a tensor with non-zero trits at all: is it neither infinite nor 0
 * there? */
bool bc_block_scale_fits(float scale);
/* What float16 makes of a scale: a block pack without a scale tensor holds this one. */
float bc_block_rounded_scale(float scale);
/* Copies the scales of n_blocks blocks to others that hold the same trits: with them, packing the
 * trits of a foreign file again must give its bytes. */
void bc_block_copy_scales(const struct bc_block_pack *bp, const uint8_t *from, uint64_t n_blocks,
                          uint8_t *to);

/* What the scales of blocks with a non-zero trit are (those of zero blocks never count). */
enum bc_block_scales {
    BC_BLOCKS_ALL_ZERO,   /* there is no such block */
    BC_BLOCKS_ONE_SCALE,  /* all the same, bit for bit: the tensor has a fingerprint */
    BC_BLOCKS_MANY_SCALES /* it has none */
};
/* Over n_blocks blocks: a tensor's, or one slice's. *scale: that of the first block that counts (0
 * when none does). *other: index of the first block with another one (UINT64_MAX: none). */
enum bc_block_scales bc_block_common_scale(const struct bc_block_pack *bp, const uint8_t *blocks,
                                           uint64_t n_blocks, float *scale, uint64_t *other);

/* The same by slices of a whole tensor. scales: room for shape->slices values; a slice of zeros gets
 * 1e-5, the canonical scale of zeros (fingerprint.md). ONE_SCALE: each slice has one, and what
 * `scales` holds are those of the fingerprint; MANY_SCALES: some slice has several, *other is the
 * tensor's first block (counted over all slices) that differs from those before it in its slice. */
enum bc_block_scales bc_block_slice_scales(const struct bc_block_pack *bp,
                                           const struct bc_pack_shape *shape, const uint8_t *packed,
                                           float *scales, uint64_t *other);

/* Finishes packed trits of any pack: where `separate` (the scales stand in a tensor of their own)
 * block packs keep the block scales 1.0 that packing has given them, everything else gets the
 * scales (n_scales: 1 or one per slice) by put_scales. */
void bc_pack_finish(const struct bc_format *format, const struct bc_pack_shape *shape,
                    const float *scales, uint32_t n_scales, bool separate, uint8_t *packed);
/* format->dot_rows with the block scales: out[v * n_rows + r] is the sum, from +0 and over the
 * blocks of the row in order, of (float)integer * scale, each product and each sum rounded to
 * float32. For tensors whose blocks have scales of their own (BC_BLOCKS_MANY_SCALES). */
void bc_block_dot_rows(const struct bc_block_pack *bp, const struct bc_kernels *k,
                       const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                       uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                       float *out);

/* Index of the first of n trits that the pack cannot hold (a zero, in Q1_0); UINT64_MAX: none. */
uint64_t bc_block_first_misfit(const struct bc_block_pack *bp, const int8_t *trits, uint64_t n);

#endif
