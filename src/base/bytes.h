/* SPDX-License-Identifier: MIT
 * Little-endian loads and stores, float16/bfloat16 conversions, overflow-checked sizes.
 * Unaligned and host-endian independent: everything goes through bytes, never a casted pointer. */
#ifndef BC_BASE_BYTES_H
#define BC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t bc_get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t bc_get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t bc_get_u64(const uint8_t *p)
{
    return (uint64_t)bc_get_u32(p) | (uint64_t)bc_get_u32(p + 4) << 32;
}

static inline void bc_put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void bc_put_u32(uint8_t *p, uint32_t v)
{
    bc_put_u16(p, (uint16_t)v);
    bc_put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void bc_put_u64(uint8_t *p, uint64_t v)
{
    bc_put_u32(p, (uint32_t)v);
    bc_put_u32(p + 4, (uint32_t)(v >> 32));
}

static inline uint32_t bc_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float bc_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float bc_get_f32(const uint8_t *p)
{
    return bc_f32_from_bits(bc_get_u32(p));
}

static inline void bc_put_f32(uint8_t *p, float v)
{
    bc_put_u32(p, bc_f32_bits(v));
}

static inline double bc_get_f64(const uint8_t *p)
{
    const uint64_t u = bc_get_u64(p);
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

static inline void bc_put_f64(uint8_t *p, double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    bc_put_u64(p, u);
}

/* bfloat16 is the upper half of a float32: widening is exact. */
static inline float bc_bf16_to_f32(uint16_t h)
{
    return bc_f32_from_bits((uint32_t)h << 16);
}

/* Round to nearest, ties to even; NaN stays NaN (quiet). */
static inline uint16_t bc_f32_to_bf16(float f)
{
    const uint32_t u = bc_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* IEEE 754 binary16 to binary32, exact for every value including subnormals. */
float bc_f16_to_f32(uint16_t h);

/* Round to nearest, ties to even, subnormals kept, overflow to infinity, NaN stays NaN. */
uint16_t bc_f32_to_f16(float f);

/* Checked arithmetic: false when the result does not fit, *out untouched then. */
static inline bool bc_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

static inline bool bc_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}

/* How many bits are 1. */
static inline unsigned bc_count_ones(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* v rounded up to a multiple of the power of two `align`; the caller knows that it fits. */
static inline uint64_t bc_round_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) & ~(align - 1);
}

#endif
