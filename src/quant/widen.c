/* SPDX-License-Identifier: MIT
 * Stored element types to float32. F16 and BF16 go through the kernels; the others are rare in
 * checkpoints and are converted one by one. */
#include <string.h>

#include "base/bytes.h"
#include "quant/quantize.h"

/* F8_E5M2 is the upper byte of a binary16. */
static float from_e5m2(const uint8_t *p)
{
    return bc_f16_to_f32((uint16_t)(*p << 8));
}

/* F8_E4M3FN (Micikevicius et al. 2022, "FP8 formats for deep learning"): bias 7, subnormals, no
 * infinities; all exponent and mantissa bits set is NaN, and only that. */
static float from_e4m3fn(const uint8_t *p)
{
    const uint32_t sign = (uint32_t)(*p & 0x80) << 24;
    const uint32_t exponent = *p >> 3 & 15u;
    const uint32_t mantissa = *p & 7u;
    if (exponent == 15 && mantissa == 7) return bc_f32_from_bits(sign | 0x7fc00000u);
    if (exponent != 0) return bc_f32_from_bits(sign | (exponent + 120) << 23 | mantissa << 20);
    const float magnitude = (float)mantissa * 0x1p-9f;
    return sign != 0 ? -magnitude : magnitude;
}

/* F8_E8M0 (OCP Microscaling Formats 1.0): 2^(byte - 127), 255 is NaN. Byte 0 is a float32
 * subnormal. */
static float from_e8m0(const uint8_t *p)
{
    if (*p == 0xff) return bc_f32_from_bits(0x7fc00000u);
    return bc_f32_from_bits(*p == 0 ? 0x00400000u : (uint32_t)*p << 23);
}

static float from_u8(const uint8_t *p)
{
    return (float)*p;
}

static float from_i8(const uint8_t *p)
{
    return (float)(int8_t)*p;
}

static float from_u16(const uint8_t *p)
{
    return (float)bc_get_u16(p);
}

static float from_i16(const uint8_t *p)
{
    return (float)(int16_t)bc_get_u16(p);
}

static float from_u32(const uint8_t *p)
{
    return (float)bc_get_u32(p);
}

static float from_i32(const uint8_t *p)
{
    return (float)(int32_t)bc_get_u32(p);
}

static float from_u64(const uint8_t *p)
{
    return (float)bc_get_u64(p);
}

static float from_i64(const uint8_t *p)
{
    return (float)(int64_t)bc_get_u64(p);
}

static float from_f64(const uint8_t *p)
{
    return (float)bc_get_f64(p);
}

static bool is_little_endian_host(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* On a little-endian host the bytes are the floats, only perhaps not aligned. */
static void widen_f32(const uint8_t *src, size_t n, float *dst)
{
    if (is_little_endian_host()) {
        memcpy(dst, src, n * sizeof *dst);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dst[i] = bc_get_f32(src + 4 * i);
}

/* One value at a time; indexed by enum bitconv_dtype. F8_E4M3 is the FN variant in safetensors. */
static float (*const convert_one[BITCONV_N_DTYPES])(const uint8_t *) = {
    [BITCONV_BOOL] = from_u8,      [BITCONV_U8] = from_u8,          [BITCONV_I8] = from_i8,
    [BITCONV_F8_E5M2] = from_e5m2, [BITCONV_F8_E4M3] = from_e4m3fn, [BITCONV_F8_E8M0] = from_e8m0,
    [BITCONV_I16] = from_i16,      [BITCONV_U16] = from_u16,        [BITCONV_I32] = from_i32,
    [BITCONV_U32] = from_u32,      [BITCONV_F64] = from_f64,        [BITCONV_I64] = from_i64,
    [BITCONV_U64] = from_u64,
};

void bc_widen(const struct bc_kernels *k, const struct bc_values *v, uint64_t first, size_t n,
              float *dst)
{
    const size_t size = bitconv_dtype_size(v->dtype);
    const uint8_t *src = v->data + first * size;

    if (v->dtype == BITCONV_BF16) {
        k->widen_bf16(src, n, dst);
    } else if (v->dtype == BITCONV_F16) {
        k->widen_f16(src, n, dst);
    } else if (v->dtype == BITCONV_F32) {
        widen_f32(src, n, dst);
    } else {
        float (*const convert)(const uint8_t *) = convert_one[v->dtype];
        for (size_t i = 0; i < n; i++)
            dst[i] = convert(src + i * size);
    }
}
