/* SPDX-License-Identifier: MIT
 * The scalar kernels, which define every result, and the choice of a row.
 *
 * A vector row may reorder nothing: sums run in the 8 lanes of NumPy's unrolled loop and are folded
 * in its order, products are rounded before they are compared. The library is compiled with
 * -ffp-contract=off, so that no compiler fuses a product with a sum behind our back. */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/cpu.h"
#include "quant/kernels_bitcos.h"
#include "quant/kernels_dot.h"
#include "quant/kernels_rows.h"
#include "quant/kernels_tl.h"

void bc_scalar_widen_bf16(const uint8_t *src, size_t n, float *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = bc_bf16_to_f32(bc_get_u16(src + 2 * i));
}

void bc_scalar_widen_f16(const uint8_t *src, size_t n, float *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = bc_f16_to_f32(bc_get_u16(src + 2 * i));
}

void bc_scalar_narrow_bf16(const float *src, size_t n, uint8_t *dst)
{
    for (size_t i = 0; i < n; i++)
        bc_put_u16(dst + 2 * i, bc_f32_to_bf16(src[i]));
}

void bc_scalar_narrow_f16(const float *src, size_t n, uint8_t *dst)
{
    for (size_t i = 0; i < n; i++)
        bc_put_u16(dst + 2 * i, bc_f32_to_f16(src[i]));
}

void bc_scalar_bf16_to_f16(const uint8_t *src, size_t n, uint8_t *dst)
{
    for (size_t i = 0; i < n; i++)
        bc_put_u16(dst + 2 * i, bc_f32_to_f16(bc_bf16_to_f32(bc_get_u16(src + 2 * i))));
}

uint32_t bc_scalar_max_abs_bits(const float *src, size_t n)
{
    /* With the sign gone, floats order as their bits do, with infinity and then the NaNs on top. */
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = bc_f32_bits(src[i]) & 0x7fffffffu;
        if (bits > max) max = bits;
    }
    return max;
}

float bc_scalar_abs_sum_block(const float *src, size_t n)
{
    float sum = -0.0f;
    size_t i = 0;
    if (n >= 8) {
        float r[8];
        for (size_t j = 0; j < 8; j++)
            r[j] = fabsf(src[j]);
        for (i = 8; i + 8 <= n; i += 8) {
            for (size_t j = 0; j < 8; j++)
                r[j] += fabsf(src[i + j]);
        }
        sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    }
    for (; i < n; i++)
        sum += fabsf(src[i]);
    return sum;
}

void bc_scalar_ternarize(const float *src, size_t n, float inv, int8_t *dst)
{
    /* Half-even sends +-0.5 to 0, and everything beyond it to at least +-1, where clipping ends. */
    for (size_t i = 0; i < n; i++) {
        const float scaled = src[i] * inv;
        dst[i] = (int8_t)((scaled > 0.5f) - (scaled < -0.5f));
    }
}

void bc_scalar_sign(const float *src, size_t n, int8_t *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (int8_t)((src[i] > 0.0f) - (src[i] < 0.0f));
}

void bc_scalar_trits_to_f32(const int8_t *src, size_t n, float scale, float *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = src[i] == 0 ? 0.0f : (float)src[i] * scale;
}

bool bc_scalar_hf_unpack(const uint8_t *src, size_t n, unsigned shift, int8_t *dst)
{
    bool legal = true;
    for (size_t i = 0; i < n; i++) {
        const int code = src[i] >> shift & 3;
        dst[i] = (int8_t)(code - 1);
        if (code == 3) legal = false;
    }
    return legal;
}

void bc_scalar_count_trits(const int8_t *src, size_t n, uint64_t counts[4])
{
    for (size_t i = 0; i < n; i++) {
        const unsigned slot = (unsigned)(src[i] + 1);
        counts[slot < 3 ? slot : 3]++;
    }
}

/* The sum of the shifted codes trit + 1, modulo 256: written so, it is also defined (and the same
 * in every row) for values that are no trits. */
static uint8_t pack_byte(const int8_t *src, size_t width)
{
    const int sum = 64 * src[0] + 16 * src[width] + 4 * src[2 * width] + src[3 * width];
    return (uint8_t)(sum + 0x55);
}

void bc_scalar_pack_planes(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst)
{
    for (size_t b = 0; b < n_blocks; b++) {
        for (size_t j = 0; j < width; j++)
            dst[j] = pack_byte(src + j, width);
        src += 4 * width;
        dst += width;
    }
}

bool bc_scalar_unpack_planes(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst)
{
    bool legal = true;
    for (size_t b = 0; b < n_blocks; b++) {
        for (unsigned plane = 0; plane < 4; plane++) {
            if (!bc_scalar_hf_unpack(src, width, 6 - 2 * plane, dst)) legal = false;
            dst += width;
        }
        src += width;
    }
    return legal;
}

const struct bc_kernels bc_kernels_scalar = {
    .name = "scalar",
    .widen_bf16 = bc_scalar_widen_bf16,
    .widen_f16 = bc_scalar_widen_f16,
    .narrow_bf16 = bc_scalar_narrow_bf16,
    .narrow_f16 = bc_scalar_narrow_f16,
    .bf16_to_f16 = bc_scalar_bf16_to_f16,
    .max_abs_bits = bc_scalar_max_abs_bits,
    .abs_sum_block = bc_scalar_abs_sum_block,
    .ternarize = bc_scalar_ternarize,
    .sign = bc_scalar_sign,
    .trits_to_f32 = bc_scalar_trits_to_f32,
    .hf_unpack = bc_scalar_hf_unpack,
    .count_trits = bc_scalar_count_trits,
    .pack_planes = bc_scalar_pack_planes,
    .unpack_planes = bc_scalar_unpack_planes,
    /* By table: the same results as the definitions bc_scalar_bitcos_* and bc_scalar_t5_*, faster.
     */
    .bitcos_pack = bc_table_bitcos_pack,
    .bitcos_unpack = bc_table_bitcos_unpack,
    .t5_pack = bc_table_t5_pack,
    .t5_unpack = bc_table_t5_unpack,
    .tl2_pack_row = bc_scalar_tl2_pack_row,
    .tl2_unpack_row = bc_scalar_tl2_unpack_row,
    .dot_f32 = bc_scalar_dot_f32,
    .dots_f32 = bc_scalar_dots_f32,
    .dots_f16 = bc_scalar_dots_f16,
    .axpy = bc_scalar_axpy,
    .sums_f32 = bc_scalar_sums_f32,
    .quantize_i8 = bc_scalar_quantize_i8,
    .trit_dots = bc_scalar_trit_dots,
    .plane_dots = bc_scalar_plane_dots,
    .bitcos_dot = bc_scalar_bitcos_dot,
    .tq1_0_codes = bc_scalar_tq1_0_codes,
    .tq2_0_codes = bc_scalar_tq2_0_codes,
    .q2_0_codes = bc_scalar_q2_0_codes,
    .q1_0_codes = bc_scalar_q1_0_codes,
    .block_sums = bc_scalar_block_sums,
    .t5_codes = bc_scalar_t5_codes,
    .pair_tables = bc_scalar_pair_tables,
    .pair_sums = bc_scalar_pair_sums,
    .triple_tables = bc_scalar_triple_tables,
    .triple_sums = bc_scalar_triple_sums,
};

/* Every row of every machine, slowest first; kernels is NULL where this build cannot have it. */
#define N_ROWS 4
struct row {
    const char *name;
    const struct bc_kernels *kernels;
    bool supported;
};

static void list_rows(struct row rows[N_ROWS])
{
    const struct bc_cpu cpu = bc_cpu_detect();
    rows[0] = (struct row){"scalar", &bc_kernels_scalar, true};
    rows[1] = (struct row){"neon", NULL, cpu.neon};
    rows[2] = (struct row){"avx2", NULL, cpu.avx2};
    rows[3] = (struct row){"avx512", NULL, cpu.avx512};
#if defined(__AARCH64EL__)
    rows[1].kernels = &bc_kernels_neon;
#elif defined(__x86_64__)
    rows[2].kernels = &bc_kernels_avx2;
    rows[3].kernels = &bc_kernels_avx512;
#endif
}

const struct bc_kernels *bc_kernels_best(void)
{
    struct row rows[N_ROWS];
    list_rows(rows);
    for (size_t i = N_ROWS; i-- > 0;) {
        if (rows[i].supported) return rows[i].kernels;
    }
    return &bc_kernels_scalar;
}

const struct bc_kernels *bc_kernels_named(const char *name, bool *known)
{
    struct row rows[N_ROWS];
    list_rows(rows);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *known = true;
        return rows[i].supported ? rows[i].kernels : NULL;
    }
    *known = false;
    return NULL;
}

const struct bc_kernels *bc_kernels_at(size_t index)
{
    struct row rows[N_ROWS];
    list_rows(rows);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].supported && index-- == 0) return rows[i].kernels;
    }
    return NULL;
}
