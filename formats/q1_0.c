/* SPDX-License-Identifier: MIT
 * Q1_0: a float16 scale and 128 signs; no zeros. The spec is q1_0.md. */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_rows.h"
#include "formats/byte_lanes.h"
#include "formats/q1_0_ref.h"

enum {
    BLOCK = 128,
    CODES = BLOCK / 8,
    BLOCK_SIZE = 2 + CODES, /* the scale comes first */
};

/* A trit is never 0 here. */
static bool is_zero(const uint8_t *block)
{
    (void)block;
    return false;
}

static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    uint8_t *dst = packed + first / BLOCK * BLOCK_SIZE;
    (void)k;
    (void)shape;
    for (; n > 0; n -= BLOCK, trits += BLOCK, dst += BLOCK_SIZE) {
        bc_put_u16(dst, BC_F16_ONE);
        for (size_t i = 0; i < CODES; i++)
            dst[2 + i] = bc_pack_8_signs(trits + 8 * i);
    }
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const uint8_t *src = packed + first / BLOCK * BLOCK_SIZE;
    (void)k;
    (void)shape;
    for (; n > 0; n -= BLOCK, trits += BLOCK, src += BLOCK_SIZE) {
        for (size_t i = 0; i < CODES; i++)
            bc_unpack_8_signs(src[2 + i], trits + 8 * i);
    }
    return true;
}

/* The scale is the mean magnitude: float32 sums in the order of the values, whatever the
 * processor's vectors could do. */
static void from_floats(const float *src, uint64_t n_blocks, uint8_t *dst)
{
    for (; n_blocks > 0; n_blocks--, src += BLOCK, dst += BLOCK_SIZE) {
        float sum = 0.0f;
        memset(dst + 2, 0, CODES);
        for (size_t i = 0; i < BLOCK; i++) {
            sum += fabsf(src[i]);
            if (src[i] >= 0.0f) dst[2 + i / 8] |= (uint8_t)(1u << i % 8);
        }
        bc_put_u16(dst, bc_f32_to_f16(sum / (float)BLOCK));
    }
}

static void block_codes(const struct bc_kernels *k, const uint8_t *blocks, uint64_t n_blocks,
                        const int8_t *x, int32_t *dots)
{
    k->q1_0_codes(blocks, (size_t)n_blocks, x, dots);
}

const struct bc_block_pack bc_block_pack_q1_0 = {
    .format = &bc_format_q1_0,
    .block = BLOCK,
    .block_size = BLOCK_SIZE,
    .scale_offset = 0,
    .holds_zeros = false,
    .is_zero = is_zero,
    .from_floats = from_floats,
    .block_codes = block_codes,
};

BC_BLOCK_MEMBERS(bc_block_pack_q1_0)

const struct bc_format bc_format_q1_0 = {
    .name = "q1_0",
    .title = "one bit a weight in blocks of 128 with a float16 scale, for tensors without zeros",
    .type_name = "Q1_0",
    .type_id = 41,
    .file_type = 40,
    .granule = BLOCK,
    .row_major = true,
    .max_scales = UINT32_MAX,
    .check = check,
    .size = size,
    .pack = pack,
    .unpack = unpack,
    .put_scales = put_scales,
    .get_scale = get_scale,
    .trit_bytes = size,
    .trit_at = bc_q1_0_trit_at,
    .dot_rows = dot_rows,
};
