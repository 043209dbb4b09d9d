/* SPDX-License-Identifier: MIT
 * The types whose codes point into tables (iq_grids.h): IQ1 to IQ4, MXFP4 and NVFP4. */
#include "base/bytes.h"
#include "formats/dequant_rows.h"
#include "formats/iq_grids.h"

enum { BLOCK = 256, EIGHTS = BLOCK / 8 };

static float get_f16(const uint8_t *p)
{
    return bc_f16_to_f32(bc_get_u16(p));
}

/* Number i of fields of `width` bits that fill bytes from the lowest bit up. */
static unsigned field(const uint8_t *bytes, int i, int width)
{
    const int per_byte = 8 / width;
    return (unsigned)bytes[i / per_byte] >> (i % per_byte * width) & ((1u << width) - 1);
}

static float signed_by(unsigned signs, int i)
{
    return (signs >> i & 1) != 0 ? -1.0f : 1.0f;
}

/* IQ2_XXS, IQ2_XS and IQ3_XXS store seven of eight signs; the eighth makes their number even. */
static unsigned eight_signs(unsigned seven)
{
    unsigned parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

/* ---- two bits: magnitudes 8, 25, 43 from a grid of eights ---- */

static void eight_of_iq2(float scale, unsigned entry, unsigned signs, float *dst)
{
    for (int i = 0; i < 8; i++)
        dst[i] = scale * (float)bc_iq2_values[entry >> 2 * i & 3] * signed_by(signs, i);
}

static float scale_of_iq2(float d, unsigned nibble)
{
    return d * (0.5f + (float)nibble) * 0.25f;
}

/* 64 bits for 32 values: four grid bytes, then four times seven signs and four bits of scale. */
void bc_dequant_iq2_xxs(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 66) {
        const float d = get_f16(blocks);
        for (int i = 0; i < EIGHTS; i++, dst += 8) {
            const uint8_t *group = blocks + 2 + i / 4 * 8;
            const uint32_t signs_and_scale = bc_get_u32(group + 4);
            eight_of_iq2(scale_of_iq2(d, signs_and_scale >> 28), bc_iq2_xxs_grid[group[i % 4]],
                         eight_signs(signs_and_scale >> 7 * (i % 4) & 127), dst);
        }
    }
}

/* 16 bits for eight values: nine of grid, seven signs; a nibble of scale for 16 values. */
void bc_dequant_iq2_xs(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 74) {
        const float d = get_f16(blocks);
        const uint8_t *scales = blocks + 66;
        for (int i = 0; i < EIGHTS; i++, dst += 8) {
            const unsigned code = bc_get_u16(blocks + 2 + 2 * i);
            eight_of_iq2(scale_of_iq2(d, field(scales, i / 2, 4)), bc_iq2_xs_grid[code & 511],
                         eight_signs(code >> 9), dst);
        }
    }
}

/* Ten bits of grid in two places, all eight signs; a nibble of scale for 16 values. */
void bc_dequant_iq2_s(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 82) {
        const float d = get_f16(blocks);
        const uint8_t *low = blocks + 2, *signs = blocks + 34, *high = blocks + 66,
                      *scales = blocks + 74;
        for (int i = 0; i < EIGHTS; i++, dst += 8) {
            const unsigned code = low[i] | field(high, i, 2) << 8;
            eight_of_iq2(scale_of_iq2(d, field(scales, i / 2, 4)), bc_iq2_s_grid[code], signs[i],
                         dst);
        }
    }
}

/* ---- three bits: eight magnitudes from a grid of fours ---- */

/* 64 grid bytes, then 32 bits for 32 values: four times seven signs and four bits of scale. */
void bc_dequant_iq3_xxs(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 98) {
        const float d = get_f16(blocks);
        const uint8_t *codes = blocks + 2;
        for (int i = 0; i < EIGHTS; i++, dst += 8) {
            const uint32_t signs_and_scale = bc_get_u32(blocks + 66 + i / 4 * 4);
            const unsigned signs = eight_signs(signs_and_scale >> 7 * (i % 4) & 127);
            const float scale = d * (0.5f + (float)(signs_and_scale >> 28)) * 0.5f;
            for (int j = 0; j < 8; j++) {
                const unsigned entry = bc_iq3_xxs_grid[codes[2 * i + j / 4]];
                dst[j] = scale * (float)bc_iq3_xxs_values[entry >> 4 * (j % 4) & 7] *
                         signed_by(signs, j);
            }
        }
    }
}

/* Nine bits of grid in two places, all signs; a nibble of scale for 32 values. */
void bc_dequant_iq3_s(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 110) {
        const float d = get_f16(blocks);
        const uint8_t *low = blocks + 2, *high = blocks + 66, *signs = blocks + 74,
                      *scales = blocks + 106;
        for (int i = 0; i < BLOCK / 4; i++, dst += 4) {
            const unsigned entry = bc_iq3_s_grid[low[i] | field(high, i, 1) << 8];
            const float scale = d * (float)(1 + 2 * field(scales, i / 8, 4));
            for (int j = 0; j < 4; j++)
                dst[j] = scale * (float)bc_iq3_s_values[entry >> 4 * j & 7] *
                         signed_by(signs[i / 2], i % 2 * 4 + j);
        }
    }
}

/* ---- one and a half bits: -1, 0, +1 from a grid of eights, moved by an eighth ---- */

static void eight_of_iq1(float scale, unsigned entry, bool down, float *dst)
{
    const float delta = down ? -0.125f : 0.125f;
    for (int i = 0; i < 8; i++)
        dst[i] = scale * ((float)bc_iq1_values[entry >> 2 * i & 3] + delta);
}

/* 16 bits for 32 values: three upper bits of four grid codes, three of scale, the direction. */
void bc_dequant_iq1_s(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 50) {
        const float d = get_f16(blocks);
        const uint8_t *low = blocks + 2;
        for (int i = 0; i < EIGHTS; i++, dst += 8) {
            const unsigned word = bc_get_u16(blocks + 34 + i / 4 * 2);
            const unsigned code = low[i] | (word >> 3 * (i % 4) & 7) << 8;
            const float scale = d * (float)(2 * (word >> 12 & 7) + 1);
            eight_of_iq1(scale, bc_iq1_grid[code], (word & 0x8000) != 0, dst);
        }
    }
}

/* The float16 scale is spread over the upper nibbles of four words; the 12 bits below each are four
 * scales of 16 values. A nibble for eight values: three upper bits of the grid code and the
 * direction. */
void bc_dequant_iq1_m(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 56) {
        const uint8_t *low = blocks, *high = blocks + 32;
        unsigned words[4], d_bits = 0;
        for (int w = 0; w < 4; w++) {
            words[w] = bc_get_u16(blocks + 48 + 2 * w);
            d_bits |= words[w] >> 12 << 4 * w;
        }
        const float d = bc_f16_to_f32((uint16_t)d_bits);
        for (int i = 0; i < EIGHTS; i++, dst += 8) {
            const unsigned nibble = field(high, i, 4);
            const unsigned code = low[i] | (nibble & 7) << 8;
            const float scale = d * (float)(2 * (words[i / 8] >> 3 * (i / 2 % 4) & 7) + 1);
            eight_of_iq1(scale, bc_iq1_grid[code], (nibble & 8) != 0, dst);
        }
    }
}

/* ---- four bits: sixteen values ---- */

/* n bytes of nibbles: the low ones are the first n values, the high ones the next n. */
static void nibbles_of(const int8_t values[16], float scale, const uint8_t *q, int n, float *dst)
{
    for (int i = 0; i < n; i++) {
        dst[i] = scale * (float)values[q[i] & 15];
        dst[n + i] = scale * (float)values[q[i] >> 4];
    }
}

void bc_dequant_iq4_nl(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 18, dst += 32)
        nibbles_of(bc_iq4_values, get_f16(blocks), blocks + 2, 16, dst);
}

/* Six bits of scale for 32 values: low nibbles in four bytes, upper two bits in 16 bits. */
void bc_dequant_iq4_xs(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 136) {
        const float d = get_f16(blocks);
        const unsigned high = bc_get_u16(blocks + 2);
        const uint8_t *low = blocks + 4;
        for (int g = 0; g < BLOCK / 32; g++, dst += 32) {
            const unsigned code = field(low, g, 4) | (high >> 2 * g & 3) << 4;
            nibbles_of(bc_iq4_values, d * (float)((int)code - 32), blocks + 8 + 16 * g, 16, dst);
        }
    }
}

/* Half of 2^(e - 127), because the table holds the FP4 values doubled. */
static float half_of_e8m0(unsigned e)
{
    return bc_f32_from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

void bc_dequant_mxfp4(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 17, dst += 32)
        nibbles_of(bc_fp4_values, half_of_e8m0(blocks[0]), blocks + 1, 16, dst);
}

/* Half of an unsigned E4M3 (bias 7). The top bit does not count; 0x7f, the NaN of E4M3, is 0. */
static float half_of_ue4m3(unsigned byte)
{
    if (byte == 0x7f) return 0.0f;
    const unsigned exponent = byte >> 3 & 15, mantissa = byte & 7;
    if (exponent == 0) return (float)mantissa * 0x1p-10f;
    /* 2^(exponent - 8), put together from its bits. */
    const float power = bc_f32_from_bits((exponent - 8 + 127) << 23);
    return (1.0f + (float)mantissa * 0.125f) * power;
}

/* Four scales, then four times eight bytes for 16 values. */
void bc_dequant_nvfp4(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 36) {
        for (int g = 0; g < 4; g++, dst += 16)
            nibbles_of(bc_fp4_values, half_of_ue4m3(blocks[g]), blocks + 4 + 8 * g, 8, dst);
    }
}
