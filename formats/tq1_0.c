/* SPDX-License-Identifier: MIT
 * TQ1_0: 256 trits, five (at the end four) to a byte, and a float16 scale. The spec is tq1_0.md. */
#include "base/bytes.h"
#include "formats/block_rows.h"
#include "formats/byte_lanes.h"
#include "formats/tq1_0_ref.h"

enum {
    BLOCK = 256,
    CODES = 52, /* bytes of codes; the scale follows */
    BLOCK_SIZE = CODES + 2,
    ZEROS_OF_5 = 0x80 /* the byte of five zero trits */
};

/* The byte of the number v < 243: v/243 as a fraction of 256, rounded up. */
static uint8_t byte_of(unsigned v)
{
    return (uint8_t)((v * 256 + 242) / 243);
}

/* The next digit of eight (or fewer) numbers. They stay below 243, so that the product does not
 * leave its byte. */
static uint64_t append_digit(uint64_t numbers, uint64_t trits)
{
    return 3 * numbers + bc_lanes_codes(trits);
}

/* Eight bytes: trit t of byte m is src[t * width + m]. */
static void pack_8(const int8_t *src, size_t width, uint8_t *dst)
{
    uint64_t numbers = 0;
    uint8_t bytes[8];
    for (size_t t = 0; t < 5; t++)
        numbers = append_digit(numbers, bc_lanes_load(src + t * width, 8));
    bc_lanes_store(bytes, numbers, 8);
    for (size_t m = 0; m < 8; m++)
        dst[m] = byte_of(bytes[m]);
}

/* The four bytes at the end, of four trits and a digit 0. */
static void pack_last_4(const int8_t *src, uint8_t *dst)
{
    uint64_t numbers = 0;
    uint8_t bytes[4];
    for (size_t t = 0; t < 4; t++)
        numbers = append_digit(numbers, bc_lanes_load(src + t * 4, 4));
    bc_lanes_store(bytes, numbers, 4);
    for (size_t m = 0; m < 4; m++)
        dst[m] = byte_of(3u * bytes[m]);
}

/* Eight fractions of 256, even and odd bytes apart: the products with three take ten bits. */
struct fractions {
    uint64_t even, odd;
};
#define LOW_BYTES UINT64_C(0x00ff00ff00ff00ff)

static struct fractions split(uint64_t bytes)
{
    return (struct fractions){bytes & LOW_BYTES, bytes >> 8 & LOW_BYTES};
}

/* Times three, the integer part is the code of the next trit; the rest goes on. */
static uint64_t next_trits(struct fractions *f)
{
    const uint64_t even = 3 * f->even, odd = 3 * f->odd;
    *f = (struct fractions){even & LOW_BYTES, odd & LOW_BYTES};
    return bc_lanes_trits((even >> 8 & LOW_BYTES) | (odd & ~LOW_BYTES));
}

static void unpack_8(const uint8_t *src, size_t width, int8_t *dst)
{
    struct fractions f = split(bc_lanes_load(src, 8));
    for (size_t t = 0; t < 5; t++)
        bc_lanes_store(dst + t * width, next_trits(&f), 8);
}

static void unpack_last_4(const uint8_t *src, int8_t *dst)
{
    struct fractions f = split(bc_lanes_load(src, 4));
    for (size_t t = 0; t < 4; t++)
        bc_lanes_store(dst + t * 4, next_trits(&f), 4);
}

static void unpack_block(const uint8_t *src, int8_t *trits)
{
    for (size_t m = 0; m < 32; m += 8)
        unpack_8(src + m, 32, trits + m);
    for (size_t m = 0; m < 16; m += 8)
        unpack_8(src + 32 + m, 16, trits + 160 + m);
    unpack_last_4(src + 48, trits + 240);
}

/* Also true for bytes that the packer never writes but that are read as zero trits: in a byte of
 * four trits, which leaves room for a fifth, 0x7f (its own), 0x80 and 0x81. */
static bool is_zero(const uint8_t *block)
{
    for (size_t i = 0; i < 48; i++) {
        if (block[i] != ZEROS_OF_5) return false;
    }
    for (size_t i = 48; i < CODES; i++) {
        if (block[i] < ZEROS_OF_5 - 1 || block[i] > ZEROS_OF_5 + 1) return false;
    }
    return true;
}

static void pack_block(const int8_t *trits, uint8_t *dst)
{
    for (size_t m = 0; m < 32; m += 8)
        pack_8(trits + m, 32, dst + m);
    for (size_t m = 0; m < 16; m += 8)
        pack_8(trits + 160 + m, 16, dst + 32 + m);
    pack_last_4(trits + 240, dst + 48);
    bc_put_u16(dst + CODES, is_zero(dst) ? 0 : BC_F16_ONE);
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

/* Every byte stands for some trits, so nothing here is illegal. */
static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const uint8_t *src = packed + first / BLOCK * BLOCK_SIZE;
    (void)k;
    (void)shape;
    for (; n > 0; n -= BLOCK, trits += BLOCK, src += BLOCK_SIZE)
        unpack_block(src, trits);
    return true;
}

static void block_codes(const struct bc_kernels *k, const uint8_t *blocks, uint64_t n_blocks,
                        const int8_t *x, int32_t *dots)
{
    k->tq1_0_codes(blocks, (size_t)n_blocks, x, dots);
}

const struct bc_block_pack bc_block_pack_tq1_0 = {
    .format = &bc_format_tq1_0,
    .block = BLOCK,
    .block_size = BLOCK_SIZE,
    .scale_offset = CODES,
    .holds_zeros = true,
    .is_zero = is_zero,
    .block_codes = block_codes,
};

BC_BLOCK_MEMBERS(bc_block_pack_tq1_0)

const struct bc_format bc_format_tq1_0 = {
    .name = "tq1_0",
    .title = "five trits a byte in blocks of 256 with a float16 scale, as llama.cpp reads it",
    .type_name = "TQ1_0",
    .type_id = 34,
    .file_type = 36,
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
    .trit_at = bc_tq1_0_trit_at,
    .dot_rows = dot_rows,
};
