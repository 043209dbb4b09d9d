/* SPDX-License-Identifier: MIT
 * Packs with a float16 scale per block: their table, their scales, quantizing by the largest
 * magnitude. */
#include "formats/block_pack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_rows.h"
#include "formats/dequant.h"
#include "formats/fingerprint.h"

static const struct bc_block_pack *const rows[] = {
    &bc_block_pack_tq1_0,
    &bc_block_pack_tq2_0,
    &bc_block_pack_q2_0,
    &bc_block_pack_q1_0,
};
#define N_ROWS (sizeof rows / sizeof rows[0])

const struct bc_block_pack *bc_block_pack_of(const struct bc_format *format)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i]->format == format) return rows[i];
    }
    return NULL;
}

const struct bc_block_pack *bc_block_pack_find(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i]->format->name, name) == 0) return rows[i];
    }
    return NULL;
}

const struct bc_block_pack *bc_block_pack_at(size_t i)
{
    return i < N_ROWS ? rows[i] : NULL;
}

/* ---- shapes ---- */

bool bc_block_check(const struct bc_block_pack *bp, const struct bc_pack_shape *shape, char *why,
                    size_t why_size)
{
    const char *name = bp->format->type_name;
    if (shape->n == 0) {
        snprintf(why, why_size, "%s: the tensor has no values", name);
        return false;
    }
    const uint64_t rest = shape->cols % bp->block;
    if (rest == 0) return true;
    snprintf(why, why_size,
             "%s packs each row in blocks of %" PRIu32 " values; a row of %" PRIu64
             " is no multiple of %" PRIu32 ", %" PRIu64 " are left over",
             name, bp->block, shape->cols, bp->block, rest);
    return false;
}

uint64_t bc_block_bytes(const struct bc_block_pack *bp, uint64_t n)
{
    return n / bp->block * bp->block_size;
}

/* ---- scales ---- */

static uint16_t scale_bits(const struct bc_block_pack *bp, const uint8_t *block)
{
    return bc_get_u16(block + bp->scale_offset);
}

float bc_block_scale(const struct bc_block_pack *bp, const uint8_t *block)
{
    return bc_f16_to_f32(scale_bits(bp, block));
}

void bc_block_put_scale(const struct bc_block_pack *bp, float scale, uint64_t n_blocks,
                        uint8_t *blocks)
{
    const uint16_t bits = bc_f32_to_f16(scale);
    for (; n_blocks > 0; n_blocks--, blocks += bp->block_size)
        bc_put_u16(blocks + bp->scale_offset, bp->is_zero(blocks) ? 0 : bits);
}

float bc_block_rounded_scale(float scale)
{
    return bc_f16_to_f32(bc_f32_to_f16(scale));
}

bool bc_block_scale_fits(float scale)
{
    const float rounded = bc_block_rounded_scale(scale);
    return isfinite(rounded) && rounded != 0.0f;
}

void bc_block_copy_scales(const struct bc_block_pack *bp, const uint8_t *from, uint64_t n_blocks,
                          uint8_t *to)
{
    for (; n_blocks > 0; n_blocks--, from += bp->block_size, to += bp->block_size)
        memcpy(to + bp->scale_offset, from + bp->scale_offset, 2);
}

enum bc_block_scales bc_block_common_scale(const struct bc_block_pack *bp, const uint8_t *blocks,
                                           uint64_t n_blocks, float *scale, uint64_t *other)
{
    uint16_t common = 0;
    bool found = false;
    *scale = 0.0f;
    *other = UINT64_MAX;
    for (uint64_t i = 0; i < n_blocks; i++, blocks += bp->block_size) {
        const uint16_t bits = scale_bits(bp, blocks);
        if ((found && bits == common) || bp->is_zero(blocks)) continue;
        if (found) {
            *other = i;
            return BC_BLOCKS_MANY_SCALES;
        }
        found = true;
        common = bits;
        *scale = bc_f16_to_f32(bits);
    }
    return found ? BC_BLOCKS_ONE_SCALE : BC_BLOCKS_ALL_ZERO;
}

enum bc_block_scales bc_block_slice_scales(const struct bc_block_pack *bp,
                                           const struct bc_pack_shape *shape, const uint8_t *packed,
                                           float *scales, uint64_t *other)
{
    const uint64_t n_blocks = shape->n / shape->slices / bp->block;
    enum bc_block_scales result = BC_BLOCKS_ALL_ZERO;
    *other = UINT64_MAX;
    for (uint64_t i = 0; i < shape->slices; i++, packed += n_blocks * bp->block_size) {
        uint64_t at;
        const enum bc_block_scales one =
            bc_block_common_scale(bp, packed, n_blocks, &scales[i], &at);
        if (one == BC_BLOCKS_ALL_ZERO) scales[i] = BC_ZERO_SCALE;
        if (one == BC_BLOCKS_MANY_SCALES && *other == UINT64_MAX) *other = i * n_blocks + at;
        if (one > result) result = one;
    }
    return result;
}

void bc_pack_finish(const struct bc_format *format, const struct bc_pack_shape *shape,
                    const float *scales, uint32_t n_scales, bool separate, uint8_t *packed)
{
    if (separate && bc_block_pack_of(format) != NULL) return;
    format->put_scales(shape, scales, n_scales, packed);
}

void bc_block_put_scales(const struct bc_block_pack *bp, const struct bc_pack_shape *shape,
                         const float *scales, uint32_t n_scales, uint8_t *packed)
{
    const uint64_t n_blocks = shape->n / n_scales / bp->block;
    for (uint32_t i = 0; i < n_scales; i++)
        bc_block_put_scale(bp, scales[i], n_blocks, packed + i * n_blocks * bp->block_size);
}

float bc_block_get_scale(const struct bc_block_pack *bp, const struct bc_pack_shape *shape,
                         const uint8_t *packed, uint64_t slice)
{
    const uint64_t n_blocks = shape->n / shape->slices / bp->block;
    const uint8_t *block = packed + slice * n_blocks * bp->block_size;
    for (uint64_t i = 0; i < n_blocks; i++, block += bp->block_size) {
        if (!bp->is_zero(block)) return bc_block_scale(bp, block);
    }
    return 0.0f;
}

/* ---- values ---- */

uint64_t bc_block_first_misfit(const struct bc_block_pack *bp, const int8_t *trits, uint64_t n)
{
    if (bp->holds_zeros || n == 0) return UINT64_MAX;
    const int8_t *zero = memchr(trits, 0, (size_t)n);
    return zero == NULL ? UINT64_MAX : (uint64_t)(zero - trits);
}

/* Trits of n floats by their largest magnitude, which is returned: x / max is rounded to the
 * nearest integer, halves away from zero, as tq-types of ggml do (the reciprocal and the product
 * are rounded to float32). All zeros, and the result 0, when there is no other value. */
static float trits_of(const struct bc_kernels *k, const float *src, size_t n, int8_t *trits)
{
    const float max = bc_f32_from_bits(k->max_abs_bits(src, n));
    const float inverse = max > 0.0f ? 1.0f / max : 0.0f;
    for (size_t i = 0; i < n; i++) {
        const float ratio = src[i] * inverse;
        trits[i] = (int8_t)((ratio >= 0.5f) - (ratio <= -0.5f));
    }
    return max;
}

void bc_block_from_floats(const struct bc_block_pack *bp, const struct bc_kernels *k,
                          const float *src, uint64_t n_blocks, uint8_t *dst)
{
    const struct bc_pack_shape shape = {.cols = bp->block, .rows = 1, .slices = 1, .n = bp->block};
    int8_t trits[BC_DEQUANT_MAX_BLOCK];
    if (bp->from_floats != NULL) {
        bp->from_floats(src, n_blocks, dst);
        return;
    }
    for (; n_blocks > 0; n_blocks--, src += bp->block, dst += bp->block_size) {
        const float d = trits_of(k, src, bp->block, trits);
        bp->format->pack(k, &shape, trits, 0, bp->block, dst);
        bc_put_u16(dst + bp->scale_offset, bc_f32_to_f16(d));
    }
}
