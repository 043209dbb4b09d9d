/* SPDX-License-Identifier: MIT
 * Dot products for AArch64: floats, activations, trits, the planes of I2_S and TQ2_0, the look-ups
 * of TL1. The other packs use the scalar kernels. */
#if defined(__AARCH64EL__)

#include <arm_neon.h>
#include <string.h>

#include "quant/kernels_dot.h"

/* ---- floats ---- */

/* The 16 partial sums in order. */
struct lanes {
    float32x4_t s0, s1, s2, s3;
};

static inline struct lanes no_lanes(void)
{
    const float32x4_t zero = vdupq_n_f32(0.0f);
    return (struct lanes){zero, zero, zero, zero};
}

static inline struct lanes add_products(struct lanes s, const float *a, const float *b)
{
    s.s0 = vaddq_f32(s.s0, vmulq_f32(vld1q_f32(a), vld1q_f32(b)));
    s.s1 = vaddq_f32(s.s1, vmulq_f32(vld1q_f32(a + 4), vld1q_f32(b + 4)));
    s.s2 = vaddq_f32(s.s2, vmulq_f32(vld1q_f32(a + 8), vld1q_f32(b + 8)));
    s.s3 = vaddq_f32(s.s3, vmulq_f32(vld1q_f32(a + 12), vld1q_f32(b + 12)));
    return s;
}

static inline float fold(struct lanes s)
{
    const float32x4_t four = vaddq_f32(vaddq_f32(s.s0, s.s2), vaddq_f32(s.s1, s.s3));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

float bc_neon_dot_f32(const float *a, const float *b, size_t n)
{
    struct lanes s = no_lanes();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        s = add_products(s, a + i, b + i);
    if (i < n) { /* missing values are +0: partial sums are never -0, their products change none */
        float a_rest[16] = {0}, b_rest[16] = {0};
        memcpy(a_rest, a + i, (n - i) * sizeof *a);
        memcpy(b_rest, b + i, (n - i) * sizeof *b);
        s = add_products(s, a_rest, b_rest);
    }
    return fold(s);
}

/* Sixteen float16 widened. */
static inline void widen_16(const uint8_t *src, float dst[16])
{
    for (size_t i = 0; i < 16; i += 4)
        vst1q_f32(dst + i, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(src + 2 * i))));
}

static float dot_f16(const uint8_t *w, const float *x, size_t n)
{
    struct lanes s = no_lanes();
    float wide[16];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        widen_16(w + 2 * i, wide);
        s = add_products(s, wide, x + i);
    }
    if (i < n) {
        uint8_t halves[32] = {0};
        float rest[16] = {0};
        memcpy(halves, w + 2 * i, 2 * (n - i));
        memcpy(rest, x + i, (n - i) * sizeof *x);
        widen_16(halves, wide);
        s = add_products(s, wide, rest);
    }
    return fold(s);
}

void bc_neon_dots_f32(const struct bc_f32_dots *d)
{
    for (size_t r = 0; r < d->n_rows; r++) {
        for (size_t v = 0; v < d->n_x; v++)
            d->out[v * d->out_stride + r] =
                bc_neon_dot_f32(d->w + r * d->w_stride, d->x + v * d->x_stride, d->n);
    }
}

void bc_neon_dots_f16(const uint8_t *w, const struct bc_f32_dots *d)
{
    for (size_t r = 0; r < d->n_rows; r++, w += 2 * d->w_stride) {
        for (size_t v = 0; v < d->n_x; v++)
            d->out[v * d->out_stride + r] = dot_f16(w, d->x + v * d->x_stride, d->n);
    }
}

void bc_neon_axpy(float factor, const float *x, size_t n, float *y)
{
    const float32x4_t f = vdupq_n_f32(factor);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vmulq_f32(f, vld1q_f32(x + i))));
    bc_scalar_axpy(factor, x + i, n - i, y + i);
}

/* 16 columns of one sum, in registers from beginning to end. */
static void sum_16(const float *f, const float *x, size_t x_stride, size_t n, float *out)
{
    float32x4_t a = vdupq_n_f32(0), b = a, c = a, d = a;
    for (size_t i = 0; i < n; i++, x += x_stride) {
        const float32x4_t factor = vdupq_n_f32(f[i]);
        a = vaddq_f32(a, vmulq_f32(factor, vld1q_f32(x)));
        b = vaddq_f32(b, vmulq_f32(factor, vld1q_f32(x + 4)));
        c = vaddq_f32(c, vmulq_f32(factor, vld1q_f32(x + 8)));
        d = vaddq_f32(d, vmulq_f32(factor, vld1q_f32(x + 12)));
    }
    vst1q_f32(out, a);
    vst1q_f32(out + 4, b);
    vst1q_f32(out + 8, c);
    vst1q_f32(out + 12, d);
}

void bc_neon_sums_f32(const struct bc_f32_sums *s)
{
    size_t c = 0;
    for (; c + 16 <= s->width; c += 16) {
        for (size_t v = 0; v < s->n_sums; v++)
            sum_16(s->f + v * s->f_stride, s->x + c, s->x_stride, s->n,
                   s->out + v * s->out_stride + c);
    }
    struct bc_f32_sums rest = *s;
    rest.x += c;
    rest.width -= c;
    rest.out += c;
    if (rest.width > 0) bc_scalar_sums_f32(&rest);
}

/* ---- activations ---- */

/* Four codes; the conversion rounds half to even and makes NaN 0. */
static inline int16x4_t codes_4(const float *src, float32x4_t a)
{
    const float32x4_t product = vmulq_f32(vld1q_f32(src), a);
    const float32x4_t clipped =
        vmaxq_f32(vminq_f32(product, vdupq_n_f32(127.0f)), vdupq_n_f32(-128.0f));
    return vmovn_s32(vcvtnq_s32_f32(clipped));
}

float bc_neon_quantize_i8(const float *src, size_t n, int8_t *dst)
{
    const float a = bc_activation_factor(bc_neon_max_abs_bits(src, n));
    const float32x4_t factor = vdupq_n_f32(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const int16x8_t codes =
            vcombine_s16(codes_4(src + i, factor), codes_4(src + i + 4, factor));
        vst1_s8(dst + i, vmovn_s16(codes));
    }
    bc_scalar_activation_codes(src + i, n - i, a, dst + i);
    return a;
}

/* ---- trits ---- */

/* So many vectors of 16 products of at most 384 (2 * 128 for a trit, 3 * 128 for a code) may meet in
 * eight lanes of 16 bits: 2 * 32 * 384 < 32768. */
enum { FLUSH = 32 };

static inline int16x8_t add_16(int16x8_t sum, int8x16_t w, const int8_t *x)
{
    const int8x16_t values = vld1q_s8(x);
    sum = vmlal_s8(sum, vget_low_s8(w), vget_low_s8(values));
    return vmlal_s8(sum, vget_high_s8(w), vget_high_s8(values));
}

static int32_t trit_dot(const uint8_t *w, size_t n, const int8_t *x)
{
    int32x4_t sum = vdupq_n_s32(0);
    size_t i = 0;
    while (i + 16 <= n) {
        int16x8_t part = vdupq_n_s16(0);
        for (size_t step = 0; step < FLUSH && i + 16 <= n; step++, i += 16)
            part = add_16(part, vreinterpretq_s8_u8(vld1q_u8(w + i)), x + i);
        sum = vpadalq_s16(sum, part);
    }
    int32_t rest = vaddvq_s32(sum);
    for (; i < n; i++)
        rest += (int8_t)w[i] * x[i];
    return rest;
}

void bc_neon_trit_dots(const struct bc_i8_dots *d)
{
    for (size_t v = 0; v < d->n_x; v++) {
        for (size_t r = 0; r < d->n_rows; r++)
            d->out[v * d->out_stride + r] +=
                trit_dot(d->w + r * d->w_stride, d->n, d->x + v * d->x_stride);
    }
}

static inline int8x16_t code_of(uint8x16_t bytes)
{
    return vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(3)));
}

static inline int8x16_t trit_of(uint8x16_t bytes)
{
    return vsubq_s8(code_of(bytes), vdupq_n_s8(1));
}

/* 16 bytes of a block: one trit of each plane from every byte. */
static inline int16x8_t add_planes(int16x8_t sum, uint8x16_t bytes, const int8_t *x, size_t width)
{
    sum = add_16(sum, trit_of(vshrq_n_u8(bytes, 6)), x);
    sum = add_16(sum, trit_of(vshrq_n_u8(bytes, 4)), x + width);
    sum = add_16(sum, trit_of(vshrq_n_u8(bytes, 2)), x + 2 * width);
    return add_16(sum, trit_of(bytes), x + 3 * width);
}

static int32_t plane_dot(const uint8_t *w, size_t n_blocks, size_t width, const int8_t *x)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (; n_blocks > 0; n_blocks--, w += width, x += 4 * width) {
        int16x8_t part = vdupq_n_s16(0);
        for (size_t j = 0; j < width; j += 16)
            part = add_planes(part, vld1q_u8(w + j), x + j, width);
        sum = vpadalq_s16(sum, part);
    }
    return vaddvq_s32(sum);
}

void bc_neon_plane_dots(const struct bc_i8_dots *d, size_t width)
{
    for (size_t v = 0; v < d->n_x; v++) {
        for (size_t r = 0; r < d->n_rows; r++)
            d->out[v * d->out_stride + r] += plane_dot(d->w + r * d->w_stride, d->n / (4 * width),
                                                       width, d->x + v * d->x_stride);
    }
}

/* ---- packs ---- */

static int32_t tq2_0_block(const uint8_t *block, const int8_t *x)
{
    int16x8_t part = vdupq_n_s16(0);
    for (size_t j = 0; j < 64; j += 16) {
        const uint8x16_t bytes = vld1q_u8(block + j);
        const int8_t *at = x + j / 32 * 128 + j % 32;
        part = add_16(part, code_of(bytes), at);
        part = add_16(part, code_of(vshrq_n_u8(bytes, 2)), at + 32);
        part = add_16(part, code_of(vshrq_n_u8(bytes, 4)), at + 64);
        part = add_16(part, code_of(vshrq_n_u8(bytes, 6)), at + 96);
    }
    return vaddlvq_s16(part);
}

void bc_neon_tq2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots)
{
    const size_t block_bytes = 66;
    for (size_t b = 0; b < n_blocks; b++)
        dots[b] = tq2_0_block(blocks + b * block_bytes, x + 256 * b);
}

void bc_neon_block_sums(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums)
{
    for (size_t b = 0; b < n_blocks; b++) {
        int32x4_t sum = vdupq_n_s32(0);
        for (size_t i = 0; i < block; i += 16, x += 16)
            sum = vpadalq_s16(sum, vpaddlq_s8(vld1q_s8(x)));
        sums[b] = vaddvq_s32(sum);
    }
}

/* Rows 0 to 7 and 8 to 15. */
struct rows_16 {
    int16x8_t first, second;
};

static inline struct rows_16 look_up(struct rows_16 rows, uint8x16_t codes, const uint8_t *table)
{
    const uint8x16_t low = vqtbl1q_u8(vld1q_u8(table), codes);
    const uint8x16_t high = vqtbl1q_u8(vld1q_u8(table + 32), codes);
    rows.first = vaddq_s16(rows.first, vreinterpretq_s16_u8(vzip1q_u8(low, high)));
    rows.second = vaddq_s16(rows.second, vreinterpretq_s16_u8(vzip2q_u8(low, high)));
    return rows;
}

static inline void add_to_sums(int16x8_t rows, int32_t *sums)
{
    vst1q_s32(sums, vaddw_s16(vld1q_s32(sums), vget_low_s16(rows)));
    vst1q_s32(sums + 4, vaddw_s16(vld1q_s32(sums + 4), vget_high_s16(rows)));
}

/* Two entries of at most 256 in magnitude each: 63 times two of them fit 16 bits. */
enum { PAIR_FLUSH = 63 };

void bc_neon_pair_sums(const uint8_t *bytes, size_t stride, size_t n_quads, const uint8_t *tables,
                       size_t table_stride, int32_t sums[16])
{
    while (n_quads > 0) {
        size_t batch = n_quads < PAIR_FLUSH ? n_quads : PAIR_FLUSH;
        struct rows_16 rows = {vdupq_n_s16(0), vdupq_n_s16(0)};
        n_quads -= batch;
        for (; batch > 0; batch--, bytes += stride, tables += table_stride) {
            const uint8x16_t codes = vld1q_u8(bytes);
            rows = look_up(rows, vshrq_n_u8(codes, 4), tables);
            rows = look_up(rows, vandq_u8(codes, vdupq_n_u8(15)), tables + 16);
        }
        add_to_sums(rows.first, sums);
        add_to_sums(rows.second, sums + 8);
    }
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_dot_neon_is_for_aarch64;
#endif
