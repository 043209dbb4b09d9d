/* SPDX-License-Identifier: MIT
 * The K types: blocks of 256 values in sub-blocks of 16 or 32 with quantized scales of their own.
 */
#include "base/bytes.h"
#include "formats/dequant_rows.h"

enum { BLOCK = 256 };

static float get_f16(const uint8_t *p)
{
    return bc_f16_to_f32(bc_get_u16(p));
}

void bc_dequant_q2_k(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 84) {
        const uint8_t *scales = blocks, *q = blocks + 16;
        const float d = get_f16(blocks + 80), d_min = get_f16(blocks + 82);
        for (int s = 0; s < BLOCK / 16; s++, dst += 16) {
            const float scale = d * (float)(scales[s] & 15), min = d_min * (float)(scales[s] >> 4);
            /* Eight sub-blocks share 32 bytes: the halves of them, two bits higher each pair. */
            const uint8_t *bytes = q + s / 8 * 32 + s % 2 * 16;
            const int shift = s % 8 / 2 * 2;
            for (int i = 0; i < 16; i++)
                dst[i] = scale * (float)(bytes[i] >> shift & 3) - min;
        }
    }
}

/* The 16 six-bit scales of Q3_K less 32: low nibbles in 8 bytes, upper two bits in the next 4. */
static int scale_of_q3_k(const uint8_t *scales, int s)
{
    const int low = scales[s % 8] >> (s / 8 * 4) & 15;
    const int high = scales[8 + s % 4] >> (s / 4 * 2) & 3;
    return (low | high << 4) - 32;
}

void bc_dequant_q3_k(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 110) {
        const uint8_t *mask = blocks, *q = blocks + 32, *scales = blocks + 96;
        const float d = get_f16(blocks + 108);
        for (int s = 0; s < BLOCK / 16; s++, dst += 16) {
            const float scale = d * (float)scale_of_q3_k(scales, s);
            const int half = s % 2 * 16;
            const uint8_t *bytes = q + s / 8 * 32 + half;
            const int shift = s % 8 / 2 * 2;
            for (int i = 0; i < 16; i++) {
                /* The third bit is stored inverted: it counts 4 less when it is 0. */
                const int high = mask[half + i] >> (s / 2) & 1;
                dst[i] = scale * (float)((bytes[i] >> shift & 3) - 4 * (1 - high));
            }
        }
    }
}

/* Six-bit scale and minimum of sub-block g of Q4_K and Q5_K, in 12 bytes. */
static void scale_and_min(const uint8_t *s, int g, float *scale, float *min)
{
    if (g < 4) {
        *scale = (float)(s[g] & 63);
        *min = (float)(s[g + 4] & 63);
    } else {
        *scale = (float)((s[g + 4] & 15) | s[g - 4] >> 6 << 4);
        *min = (float)(s[g + 4] >> 4 | s[g] >> 6 << 4);
    }
}

void bc_dequant_q4_k(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 144) {
        const float d = get_f16(blocks), d_min = get_f16(blocks + 2);
        for (int g = 0; g < BLOCK / 32; g++, dst += 32) {
            float scale, min;
            scale_and_min(blocks + 4, g, &scale, &min);
            scale = d * scale;
            min = d_min * min;
            const uint8_t *q = blocks + 16 + g / 2 * 32;
            const int shift = g % 2 * 4;
            for (int i = 0; i < 32; i++)
                dst[i] = scale * (float)(q[i] >> shift & 15) - min;
        }
    }
}

void bc_dequant_q5_k(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 176) {
        const float d = get_f16(blocks), d_min = get_f16(blocks + 2);
        const uint8_t *high = blocks + 16;
        for (int g = 0; g < BLOCK / 32; g++, dst += 32) {
            float scale, min;
            scale_and_min(blocks + 4, g, &scale, &min);
            scale = d * scale;
            min = d_min * min;
            const uint8_t *q = blocks + 48 + g / 2 * 32;
            const int shift = g % 2 * 4;
            for (int i = 0; i < 32; i++) {
                const int code = (q[i] >> shift & 15) | (high[i] >> g & 1) << 4;
                dst[i] = scale * (float)code - min;
            }
        }
    }
}

void bc_dequant_q6_k(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 210) {
        const uint8_t *scales = blocks + 192;
        const float d = get_f16(blocks + 208);
        for (int g = 0; g < BLOCK / 32; g++, dst += 32) {
            /* Four groups of 32 share 64 bytes of nibbles and 32 bytes of two-bit tops. */
            const uint8_t *low = blocks + g / 4 * 64 + g % 2 * 32,
                          *high = blocks + 128 + g / 4 * 32;
            const int low_shift = g % 4 / 2 * 4, high_shift = g % 4 * 2;
            const float scale[2] = {d * (float)(int8_t)scales[2 * g],
                                    d * (float)(int8_t)scales[2 * g + 1]};
            for (int i = 0; i < 32; i++) {
                const int code = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
                dst[i] = scale[i / 16] * (float)(code - 32);
            }
        }
    }
}

/* A float32 scale; the 32 bytes at the end are sums for dot products. */
void bc_dequant_q8_k(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 292, dst += BLOCK) {
        const float d = bc_get_f32(blocks);
        for (int i = 0; i < BLOCK; i++)
            dst[i] = d * (float)(int8_t)blocks[4 + i];
    }
}
