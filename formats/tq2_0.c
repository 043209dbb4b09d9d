/* SPDX-License-Identifier: MIT
 * TQ2_0: 256 two-bit codes in planes and a float16 scale. The spec is tq2_0.md. */
#include "base/bytes.h"
#include "formats/block_rows.h"
#include "formats/byte_lanes.h"
#include "formats/tq2_0_ref.h"

enum {
    BLOCK = 256,
    CODES = BLOCK / 4, /* bytes of codes; the scale follows */
    BLOCK_SIZE = CODES + 2,
    WIDTH = 32, /* bytes of a plane: two groups of them make a block */
    BATCH = 16, /* blocks that go through the kernel at once */
};
#define ALL_ZERO UINT64_C(0x5555555555555555) /* the codes of 32 zero trits */

/* The planes are I2_S's in reverse order: the same byte with its two-bit fields turned round. Eight
 * bytes at once. */
static uint64_t reverse_fields(uint64_t x)
{
    const uint64_t nibbles = UINT64_C(0x0f0f0f0f0f0f0f0f), pairs = UINT64_C(0x3333333333333333);
    x = (x >> 4 & nibbles) | (x & nibbles) << 4;
    return (x >> 2 & pairs) | (x & pairs) << 2;
}

/* Returns whether all codes are those of zero trits. */
static bool reverse_block(const uint8_t *src, uint8_t *dst)
{
    uint64_t difference = 0;
    for (size_t i = 0; i < CODES; i += 8) {
        const uint64_t word = bc_lanes_load(src + i, 8);
        difference |= word ^ ALL_ZERO;
        bc_lanes_store(dst + i, reverse_fields(word), 8);
    }
    return difference == 0;
}

static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    uint8_t *dst = packed + first / BLOCK * BLOCK_SIZE;
    uint64_t n_blocks = n / BLOCK;
    uint8_t codes[BATCH * CODES];
    (void)shape;
    while (n_blocks > 0) {
        const size_t batch = n_blocks < BATCH ? (size_t)n_blocks : BATCH;
        k->pack_planes(trits, 2 * batch, WIDTH, codes);
        for (size_t i = 0; i < batch; i++, dst += BLOCK_SIZE) {
            const bool zero = reverse_block(codes + i * CODES, dst);
            bc_put_u16(dst + CODES, zero ? 0 : BC_F16_ONE);
        }
        trits += batch * BLOCK;
        n_blocks -= batch;
    }
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const uint8_t *src = packed + first / BLOCK * BLOCK_SIZE;
    uint64_t n_blocks = n / BLOCK;
    uint8_t codes[BATCH * CODES];
    bool legal = true;
    (void)shape;
    while (n_blocks > 0) {
        const size_t batch = n_blocks < BATCH ? (size_t)n_blocks : BATCH;
        for (size_t i = 0; i < batch; i++, src += BLOCK_SIZE)
            (void)reverse_block(src, codes + i * CODES);
        if (!k->unpack_planes(codes, 2 * batch, WIDTH, trits)) legal = false;
        trits += batch * BLOCK;
        n_blocks -= batch;
    }
    return legal;
}

static bool is_zero(const uint8_t *block)
{
    for (size_t i = 0; i < CODES; i += 8) {
        if (bc_get_u64(block + i) != ALL_ZERO) return false;
    }
    return true;
}

static void block_codes(const struct bc_kernels *k, const uint8_t *blocks, uint64_t n_blocks,
                        const int8_t *x, int32_t *dots)
{
    k->tq2_0_codes(blocks, (size_t)n_blocks, x, dots);
}

const struct bc_block_pack bc_block_pack_tq2_0 = {
    .format = &bc_format_tq2_0,
    .block = BLOCK,
    .block_size = BLOCK_SIZE,
    .scale_offset = CODES,
    .holds_zeros = true,
    .is_zero = is_zero,
    .block_codes = block_codes,
};

BC_BLOCK_MEMBERS(bc_block_pack_tq2_0)

const struct bc_format bc_format_tq2_0 = {
    .name = "tq2_0",
    .title = "two bits a weight in blocks of 256 with a float16 scale, as llama.cpp reads it",
    .type_name = "TQ2_0",
    .type_id = 35,
    .file_type = 37,
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
    .trit_at = bc_tq2_0_trit_at,
    .dot_rows = dot_rows,
};
