/* SPDX-License-Identifier: MIT
 * Blocks of trits or signs with a float16 scale: TQ1_0, TQ2_0, Q1_0, Q2_0, and the block lengths of
 * forks. The same bytes as trits: tq1_0.c, tq2_0.c, q1_0.c, q2_0.c. */
#include "base/bytes.h"
#include "formats/dequant_rows.h"

static float get_f16(const uint8_t *p)
{
    return bc_f16_to_f32(bc_get_u16(p));
}

/* n bytes hold n_trits planes of n trits. A byte is a fraction of 256: times three, its integer
 * part is the next trit's code, the rest goes on. */
static void base_three(const uint8_t *bytes, int n, int n_trits, float d, float *dst)
{
    for (int m = 0; m < n; m++) {
        unsigned fraction = bytes[m];
        for (int t = 0; t < n_trits; t++) {
            fraction *= 3;
            dst[t * n + m] = d * (float)((int)(fraction >> 8) - 1);
            fraction &= 255;
        }
    }
}

void bc_dequant_tq1_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 54, dst += 256) {
        const float d = get_f16(blocks + 52);
        base_three(blocks, 32, 5, d, dst);
        base_three(blocks + 32, 16, 5, d, dst + 160);
        base_three(blocks + 48, 4, 4, d, dst + 240);
    }
}

void bc_dequant_tq2_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 66) {
        const float d = get_f16(blocks + 64);
        for (int plane = 0; plane < 8; plane++, dst += 32) {
            const uint8_t *bytes = blocks + plane / 4 * 32;
            for (int m = 0; m < 32; m++)
                dst[m] = d * (float)((bytes[m] >> (plane % 4 * 2) & 3) - 1);
        }
    }
}

static void q1_0(const uint8_t *blocks, uint64_t n_blocks, unsigned block, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 2 + block / 8, dst += block) {
        const float d = get_f16(blocks);
        for (unsigned i = 0; i < block; i++)
            dst[i] = (blocks[2 + i / 8] >> (i % 8) & 1) != 0 ? d : -d;
    }
}

void bc_dequant_q1_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    q1_0(blocks, n_blocks, 128, dst);
}

void bc_dequant_q1_0_g32(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    q1_0(blocks, n_blocks, 32, dst);
}

static void q2_0(const uint8_t *blocks, uint64_t n_blocks, unsigned block, float *dst)
{
    for (; n_blocks > 0; n_blocks--, blocks += 2 + block / 4, dst += block) {
        const float d = get_f16(blocks);
        for (unsigned i = 0; i < block; i++)
            dst[i] = d * (float)((blocks[2 + i / 4] >> (i % 4 * 2) & 3) - 1);
    }
}

void bc_dequant_q2_0(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    q2_0(blocks, n_blocks, 64, dst);
}

void bc_dequant_q2_0_g128(const uint8_t *blocks, uint64_t n_blocks, float *dst)
{
    q2_0(blocks, n_blocks, 128, dst);
}
