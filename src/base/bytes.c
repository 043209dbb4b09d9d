/* SPDX-License-Identifier: MIT
 * Conversions between IEEE 754 binary16 and binary32, by integer arithmetic alone: the results
 * depend neither on the machine nor on its rounding mode. A NaN keeps the upper bits of its payload
 * and becomes quiet, as the conversion instructions of x86 (F16C) and AArch64 do it. */
#include "base/bytes.h"

float bc_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = h >> 10 & 0x1fu;
    uint32_t mantissa = h & 0x3ffu;

    if (exponent == 0x1f) {
        const uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
        return bc_f32_from_bits(sign | 0x7f800000u | quiet | mantissa << 13);
    }
    if (exponent != 0) return bc_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    if (mantissa == 0) return bc_f32_from_bits(sign);

    /* Subnormal: mantissa * 2^-24. Shift its leading bit to bit 10, the implicit one. */
    uint32_t shift = 0;
    while ((mantissa & 0x400u) == 0) {
        mantissa <<= 1;
        shift++;
    }
    return bc_f32_from_bits(sign | (113 - shift) << 23 | (mantissa & 0x3ffu) << 13);
}

/* v / 2^shift rounded to the nearest integer, ties to even; 1 <= shift <= 31. */
static uint32_t shift_right_rounded(uint32_t v, uint32_t shift)
{
    const uint32_t kept = v >> shift;
    const uint32_t rest = v & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1u) != 0));
}

uint16_t bc_f32_to_f16(float f)
{
    const uint32_t bits = bc_f32_bits(f);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t exponent = magnitude >> 23;

    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    /* 65520 is half way between the largest half, 65504, and 65536: it and all above overflow. */
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    /* Normal results: rebias by 112. A carry out of the mantissa moves into the exponent. */
    if (exponent >= 113)
        return (uint16_t)(sign | shift_right_rounded(magnitude - (112u << 23), 13));
    /* Below 2^-25 everything rounds to zero; 2^-25 itself is a tie with the even zero. */
    if (exponent < 102) return (uint16_t)sign;
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | shift_right_rounded(mantissa, 126 - exponent));
}
