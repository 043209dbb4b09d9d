/* SPDX-License-Identifier: MIT
 * Blocks of 32 values with one float16 scale (and offset): Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1. */
#include "base/bytes.h"
#include "formats/dequant_rows.h"

enum { BLOCK = 32, HALF = BLOCK / 2 };

static float get_f16(const uint8_t *p)
{
    return bc_f16_to_f32(bc_get_u16(p));
}

/* Nibbles: the low ones are values 0..15, the high ones 16..31. */
void bc_dequant_q4_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 18, dst += BLOCK) {
        const float d = get_f16(blocks);
        const uint8_t *q = blocks + 2;
        for (int i = 0; i < HALF; i++) {
            dst[i] = d * (float)((q[i] & 15) - 8);
            dst[HALF + i] = d * (float)((q[i] >> 4) - 8);
        }
    }
}

void bc_dequant_q4_1(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 20, dst += BLOCK) {
        const float d = get_f16(blocks), m = get_f16(blocks + 2);
        const uint8_t *q = blocks + 4;
        for (int i = 0; i < HALF; i++) {
            dst[i] = d * (float)(q[i] & 15) + m;
            dst[HALF + i] = d * (float)(q[i] >> 4) + m;
        }
    }
}

/* The 32 codes of five bits: nibbles as above, the fifth bit of value i is bit i of `high`. */
static void codes_of_5_bits(const uint8_t *high, const uint8_t *nibbles, int codes[BLOCK])
{
    const uint32_t bits = bc_get_u32(high);
    for (int i = 0; i < HALF; i++) {
        codes[i] = (nibbles[i] & 15) | (int)(bits >> i & 1) << 4;
        codes[HALF + i] = nibbles[i] >> 4 | (int)(bits >> (HALF + i) & 1) << 4;
    }
}

void bc_dequant_q5_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 22, dst += BLOCK) {
        const float d = get_f16(blocks);
        int codes[BLOCK];
        codes_of_5_bits(blocks + 2, blocks + 6, codes);
        for (int i = 0; i < BLOCK; i++)
            dst[i] = d * (float)(codes[i] - 16);
    }
}

void bc_dequant_q5_1(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 24, dst += BLOCK) {
        const float d = get_f16(blocks), m = get_f16(blocks + 2);
        int codes[BLOCK];
        codes_of_5_bits(blocks + 4, blocks + 8, codes);
        for (int i = 0; i < BLOCK; i++)
            dst[i] = d * (float)codes[i] + m;
    }
}

static void bytes_times(float d, const uint8_t *q, float *dst)
{
    for (int i = 0; i < BLOCK; i++)
        dst[i] = d * (float)(int8_t)q[i];
}

void bc_dequant_q8_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 34, dst += BLOCK)
        bytes_times(get_f16(blocks), blocks + 2, dst);
}

/* Bytes 2 and 3 hold d times the sum of the codes, for dot products: not needed here. */
void bc_dequant_q8_1(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 36, dst += BLOCK)
        bytes_times(get_f16(blocks), blocks + 4, dst);
}
