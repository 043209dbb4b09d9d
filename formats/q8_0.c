/* SPDX-License-Identifier: MIT
 * Q8_0: floats to eight-bit codes by the largest magnitude of a block. The spec is q8_0.md. */
#include "formats/q8_0.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"

bool bc_q8_0_check(uint64_t cols, char *why, size_t why_size)
{
    const uint64_t rest = cols % BC_Q8_0_BLOCK;
    if (cols > 0 && rest == 0) return true;
    snprintf(why, why_size,
             "Q8_0 stores each row in blocks of %d values; a row of %" PRIu64
             " is no multiple of %d, %" PRIu64 " are left over",
             BC_Q8_0_BLOCK, cols, BC_Q8_0_BLOCK, rest);
    return false;
}

/* To the nearest integer, halves away from zero, within +-127; NaN gives 0. The remainder of the
 * truncation is exact, unlike a sum with one half. */
static int8_t round_code(float x)
{
    if (!(x > -127.0f)) return x <= -127.0f ? -127 : 0;
    if (x >= 127.0f) return 127;
    const int whole = (int)x;
    const float rest = x - (float)whole;
    return (int8_t)(whole + (rest >= 0.5f) - (rest <= -0.5f));
}

void bc_q8_0_from_floats(const struct bc_kernels *k, const float *src, uint64_t n_blocks,
                         uint8_t *dst)
{
    for (; n_blocks > 0; n_blocks--, src += BC_Q8_0_BLOCK, dst += BC_Q8_0_BLOCK_SIZE) {
        const float max = bc_f32_from_bits(k->max_abs_bits(src, BC_Q8_0_BLOCK));
        const float d = max / 127.0f;
        const float inverse = d > 0.0f ? 1.0f / d : 0.0f;
        bc_put_u16(dst, bc_f32_to_f16(d));
        for (size_t i = 0; i < BC_Q8_0_BLOCK; i++)
            dst[2 + i] = (uint8_t)round_code(src[i] * inverse);
    }
}
