/* SPDX-License-Identifier: MIT
 * Plain numbers to float32: exact where float32 holds the value, else rounded to nearest. */
#include "base/bytes.h"
#include "formats/dequant_rows.h"

void bc_dequant_f32(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = bc_get_f32(blocks + 4 * i);
}

void bc_dequant_f16(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = bc_f16_to_f32(bc_get_u16(blocks + 2 * i));
}

void bc_dequant_bf16(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = bc_bf16_to_f32(bc_get_u16(blocks + 2 * i));
}

/* Magnitudes beyond float32 become infinite: written out, because ISO C leaves that conversion
 * undefined and the undefined-behaviour sanitizer can be told to trap it. */
static float f64_to_f32(double v)
{
    const double limit = 0x1.ffffffp127; /* halfway between the largest float32 and 2^128 */
    if (v >= limit) return bc_f32_from_bits(0x7f800000u);
    if (v <= -limit) return bc_f32_from_bits(0xff800000u);
    return (float)v;
}

void bc_dequant_f64(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = f64_to_f32(bc_get_f64(blocks + 8 * i));
}

void bc_dequant_i8(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = (float)(int8_t)blocks[i];
}

void bc_dequant_i16(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = (float)(int16_t)bc_get_u16(blocks + 2 * i);
}

void bc_dequant_i32(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = (float)(int32_t)bc_get_u32(blocks + 4 * i);
}

void bc_dequant_i64(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (uint64_t i = 0; i < n_blocks; i++)
        dst[i] = (float)(int64_t)bc_get_u64(blocks + 8 * i);
}
