/* SPDX-License-Identifier: MIT
 * Q2_0: a float16 scale and 64 two-bit codes in order. The spec is q2_0.md. */
#include "base/bytes.h"
#include "formats/block_rows.h"
#include "formats/byte_lanes.h"
#include "formats/q2_0_ref.h"

enum {
    BLOCK = 64,
    CODES = BLOCK / 4,
    BLOCK_SIZE = 2 + CODES, /* the scale comes first */
};

static bool is_zero(const uint8_t *block)
{
    const uint64_t zeros = UINT64_C(0x5555555555555555);
    return bc_get_u64(block + 2) == zeros && bc_get_u64(block + 10) == zeros;
}

static void pack_block(const int8_t *trits, uint8_t *dst)
{
    for (size_t i = 0; i < BLOCK; i += 8)
        bc_put_u16(dst + 2 + i / 4, bc_pack_8_codes(trits + i));
    bc_put_u16(dst, is_zero(dst) ? 0 : BC_F16_ONE);
}

static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    uint8_t *dst = packed + first / BLOCK * BLOCK_SIZE;
    (void)k;
    (void)shape;
    for (; n > 0; n -= BLOCK, trits += BLOCK, dst += BLOCK_SIZE)
        pack_block(trits, dst);
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const uint8_t *src = packed + first / BLOCK * BLOCK_SIZE;
    unsigned illegal = 0; /* bit 0 of a field: both bits of a code are set */
    (void)k;
    (void)shape;
    for (; n > 0; n -= BLOCK, trits += BLOCK, src += BLOCK_SIZE) {
        for (size_t i = 0; i < BLOCK; i += 8) {
            const uint16_t codes = bc_get_u16(src + 2 + i / 4);
            illegal |= codes & codes >> 1;
            bc_unpack_8_codes(codes, trits + i);
        }
    }
    return (illegal & 0x5555) == 0;
}

static void block_codes(const struct bc_kernels *k, const uint8_t *blocks, uint64_t n_blocks,
                        const int8_t *x, int32_t *dots)
{
    k->q2_0_codes(blocks, (size_t)n_blocks, x, dots);
}

const struct bc_block_pack bc_block_pack_q2_0 = {
    .format = &bc_format_q2_0,
    .block = BLOCK,
    .block_size = BLOCK_SIZE,
    .scale_offset = 0,
    .holds_zeros = true,
    .is_zero = is_zero,
    .block_codes = block_codes,
};

BC_BLOCK_MEMBERS(bc_block_pack_q2_0)

const struct bc_format bc_format_q2_0 = {
    .name = "q2_0",
    .title = "two bits a weight in blocks of 64 with a float16 scale, as llama.cpp reads it",
    .type_name = "Q2_0",
    .type_id = 42,
    .file_type = 41,
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
    .trit_at = bc_q2_0_trit_at,
    .dot_rows = dot_rows,
};
