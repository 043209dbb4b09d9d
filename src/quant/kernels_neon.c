/* SPDX-License-Identifier: MIT
 * The row for AArch64 with Advanced SIMD (NEON), which every AArch64 processor has: conversions and
 * planes; BITCOS and the products have files of their own, T5, TL2's rows and some products are
 * portable C. Whole vectors are done here, remainders by the scalar kernels. Little-endian only: the
 * 16-bit loads take the machine's order. */
#if defined(__AARCH64EL__)

#include <arm_neon.h>
#include <math.h>

#include "quant/kernels_bitcos.h"
#include "quant/kernels_dot.h"
#include "quant/kernels_rows.h"
#include "quant/kernels_tl.h"

static inline uint16x8_t load_8_halves(const uint8_t *p)
{
    return vreinterpretq_u16_u8(vld1q_u8(p));
}

static inline void store_8_halves(uint8_t *p, uint16x8_t v)
{
    vst1q_u8(p, vreinterpretq_u8_u16(v));
}

static inline float32x4_t bf16_to_f32(uint16x4_t halves)
{
    return vreinterpretq_f32_u32(vshll_n_u16(halves, 16));
}

static void widen_bf16(const uint8_t *src, size_t n, float *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint16x8_t halves = load_8_halves(src + 2 * i);
        vst1q_f32(dst + i, bf16_to_f32(vget_low_u16(halves)));
        vst1q_f32(dst + i + 4, bf16_to_f32(vget_high_u16(halves)));
    }
    bc_scalar_widen_bf16(src + 2 * i, n - i, dst + i);
}

static void widen_f16(const uint8_t *src, size_t n, float *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float16x8_t halves = vreinterpretq_f16_u16(load_8_halves(src + 2 * i));
        vst1q_f32(dst + i, vcvt_f32_f16(vget_low_f16(halves)));
        vst1q_f32(dst + i + 4, vcvt_high_f32_f16(halves));
    }
    bc_scalar_widen_f16(src + 2 * i, n - i, dst + i);
}

static inline uint16x4_t f32_to_bf16(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t is_number = vceqq_f32(x, x);
    const uint32x4_t upper = vshrq_n_u32(bits, 16);
    const uint32x4_t bias = vaddq_u32(vandq_u32(upper, vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
    const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, bias), 16);
    const uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(is_number, rounded, quiet));
}

static void narrow_bf16(const float *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint16x4_t low = f32_to_bf16(vld1q_f32(src + i));
        const uint16x4_t high = f32_to_bf16(vld1q_f32(src + i + 4));
        store_8_halves(dst + 2 * i, vcombine_u16(low, high));
    }
    bc_scalar_narrow_bf16(src + i, n - i, dst + 2 * i);
}

static inline uint16x8_t f32_to_f16(float32x4_t low, float32x4_t high)
{
    return vreinterpretq_u16_f16(vcombine_f16(vcvt_f16_f32(low), vcvt_f16_f32(high)));
}

static void narrow_f16(const float *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        store_8_halves(dst + 2 * i, f32_to_f16(vld1q_f32(src + i), vld1q_f32(src + i + 4)));
    bc_scalar_narrow_f16(src + i, n - i, dst + 2 * i);
}

static void bf16_to_f16(const uint8_t *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint16x8_t halves = load_8_halves(src + 2 * i);
        const float32x4_t low = bf16_to_f32(vget_low_u16(halves));
        store_8_halves(dst + 2 * i, f32_to_f16(low, bf16_to_f32(vget_high_u16(halves))));
    }
    bc_scalar_bf16_to_f16(src + 2 * i, n - i, dst + 2 * i);
}

static inline uint32x4_t load_abs_bits(const float *p)
{
    return vandq_u32(vreinterpretq_u32_f32(vld1q_f32(p)), vdupq_n_u32(0x7fffffff));
}

uint32_t bc_neon_max_abs_bits(const float *src, size_t n)
{
    uint32x4_t a = vdupq_n_u32(0), b = a;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        a = vmaxq_u32(a, load_abs_bits(src + i));
        b = vmaxq_u32(b, load_abs_bits(src + i + 4));
    }
    const uint32_t vector_max = vmaxvq_u32(vmaxq_u32(a, b));
    const uint32_t rest_max = bc_scalar_max_abs_bits(src + i, n - i);
    return rest_max > vector_max ? rest_max : vector_max;
}

/* The accumulators r0..r7 are the lanes of two vectors. */
static float abs_sum_block(const float *src, size_t n)
{
    if (n < 8) return bc_scalar_abs_sum_block(src, n);
    float32x4_t low = vabsq_f32(vld1q_f32(src)), high = vabsq_f32(vld1q_f32(src + 4));
    size_t i = 8;
    for (; i + 8 <= n; i += 8) {
        low = vaddq_f32(low, vabsq_f32(vld1q_f32(src + i)));
        high = vaddq_f32(high, vabsq_f32(vld1q_f32(src + i + 4)));
    }
    const float32x4_t pairs = vpaddq_f32(low, high);    /* r0+r1, r2+r3, r4+r5, r6+r7 */
    const float32x4_t quads = vpaddq_f32(pairs, pairs); /* (r0+r1)+(r2+r3), (r4+r5)+(r6+r7), .. */
    float sum = vgetq_lane_f32(quads, 0) + vgetq_lane_f32(quads, 1);
    for (; i < n; i++)
        sum += fabsf(src[i]);
    return sum;
}

/* Four 32-bit trits: by how much x lies outside [-limit, limit]. NaN compares false: 0. */
static inline int32x4_t classify(float32x4_t x, float32x4_t limit)
{
    const int32x4_t above = vreinterpretq_s32_u32(vcgtq_f32(x, limit));
    const int32x4_t below = vreinterpretq_s32_u32(vcltq_f32(x, vnegq_f32(limit)));
    return vsubq_s32(below, above);
}

static inline int8x16_t classify_16(const float *src, float32x4_t factor, float32x4_t limit)
{
    const int32x4_t t0 = classify(vmulq_f32(vld1q_f32(src), factor), limit);
    const int32x4_t t1 = classify(vmulq_f32(vld1q_f32(src + 4), factor), limit);
    const int32x4_t t2 = classify(vmulq_f32(vld1q_f32(src + 8), factor), limit);
    const int32x4_t t3 = classify(vmulq_f32(vld1q_f32(src + 12), factor), limit);
    const int16x8_t low = vcombine_s16(vmovn_s32(t0), vmovn_s32(t1));
    const int16x8_t high = vcombine_s16(vmovn_s32(t2), vmovn_s32(t3));
    return vcombine_s8(vmovn_s16(low), vmovn_s16(high));
}

static void ternarize(const float *src, size_t n, float inv, int8_t *dst)
{
    const float32x4_t factor = vdupq_n_f32(inv), limit = vdupq_n_f32(0.5f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vst1q_s8(dst + i, classify_16(src + i, factor, limit));
    bc_scalar_ternarize(src + i, n - i, inv, dst + i);
}

static void sign(const float *src, size_t n, int8_t *dst)
{
    const float32x4_t factor = vdupq_n_f32(1.0f), limit = vdupq_n_f32(0.0f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vst1q_s8(dst + i, classify_16(src + i, factor, limit));
    bc_scalar_sign(src + i, n - i, dst + i);
}

static inline float32x4_t scaled_trits(int16x4_t trits, float32x4_t scale)
{
    const int32x4_t wide = vmovl_s16(trits);
    const uint32x4_t non_zero = vtstq_s32(wide, wide);
    const float32x4_t product = vmulq_f32(vcvtq_f32_s32(wide), scale);
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(product), non_zero));
}

static void trits_to_f32(const int8_t *src, size_t n, float scale, float *dst)
{
    const float32x4_t factor = vdupq_n_f32(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const int16x8_t trits = vmovl_s8(vld1_s8(src + i));
        vst1q_f32(dst + i, scaled_trits(vget_low_s16(trits), factor));
        vst1q_f32(dst + i + 4, scaled_trits(vget_high_s16(trits), factor));
    }
    bc_scalar_trits_to_f32(src + i, n - i, scale, dst + i);
}

static bool hf_unpack(const uint8_t *src, size_t n, unsigned shift, int8_t *dst)
{
    const int8x16_t right = vdupq_n_s8((int8_t) - (int)shift);
    const uint8x16_t three = vdupq_n_u8(3), one = vdupq_n_u8(1);
    uint8x16_t illegal = vdupq_n_u8(0);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const uint8x16_t codes = vandq_u8(vshlq_u8(vld1q_u8(src + i), right), three);
        illegal = vorrq_u8(illegal, vceqq_u8(codes, three));
        vst1q_s8(dst + i, vreinterpretq_s8_u8(vsubq_u8(codes, one)));
    }
    const bool rest_legal = bc_scalar_hf_unpack(src + i, n - i, shift, dst + i);
    return rest_legal && vmaxvq_u8(illegal) == 0;
}

/* Counts 16 * n_vectors trits; n_vectors <= 255, as each byte lane counts for itself. */
static void count_vectors(const int8_t *src, size_t n_vectors, uint64_t counts[4])
{
    uint8x16_t minuses = vdupq_n_u8(0), zeros = minuses, pluses = minuses;
    for (size_t i = 0; i < n_vectors; i++) {
        const int8x16_t t = vld1q_s8(src + 16 * i);
        minuses = vsubq_u8(minuses, vceqq_s8(t, vdupq_n_s8(-1)));
        zeros = vsubq_u8(zeros, vceqq_s8(t, vdupq_n_s8(0)));
        pluses = vsubq_u8(pluses, vceqq_s8(t, vdupq_n_s8(1)));
    }
    const uint64_t n_minus = vaddlvq_u8(minuses), n_zero = vaddlvq_u8(zeros);
    const uint64_t n_plus = vaddlvq_u8(pluses);
    counts[0] += n_minus;
    counts[1] += n_zero;
    counts[2] += n_plus;
    counts[3] += 16 * n_vectors - n_minus - n_zero - n_plus;
}

static void count_trits(const int8_t *src, size_t n, uint64_t counts[4])
{
    while (n >= 16) {
        const size_t n_vectors = n / 16 < 255 ? n / 16 : 255;
        count_vectors(src, n_vectors, counts);
        src += 16 * n_vectors;
        n -= 16 * n_vectors;
    }
    bc_scalar_count_trits(src, n, counts);
}

/* 4 * x + y in every byte, modulo 256 like the definition. */
static inline uint8x16_t append(uint8x16_t x, const int8_t *y)
{
    return vaddq_u8(vshlq_n_u8(x, 2), vreinterpretq_u8_s8(vld1q_s8(y)));
}

static void pack_planes(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst)
{
    for (size_t b = 0; b < n_blocks; b++, src += 4 * width, dst += width) {
        for (size_t j = 0; j < width; j += 16) {
            uint8x16_t x = vreinterpretq_u8_s8(vld1q_s8(src + j));
            x = append(x, src + width + j);
            x = append(x, src + 2 * width + j);
            x = append(x, src + 3 * width + j);
            vst1q_u8(dst + j, vaddq_u8(x, vdupq_n_u8(0x55)));
        }
    }
}

static inline int8x16_t trits_of_codes(uint8x16_t codes)
{
    return vreinterpretq_s8_u8(vsubq_u8(codes, vdupq_n_u8(1)));
}

static bool unpack_planes(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst)
{
    const uint8x16_t three = vdupq_n_u8(3);
    uint8x16_t illegal = vdupq_n_u8(0);
    for (size_t b = 0; b < n_blocks; b++, src += width, dst += 4 * width) {
        for (size_t j = 0; j < width; j += 16) {
            const uint8x16_t x = vld1q_u8(src + j);
            /* Code 3 has both bits set: each bit against its upper neighbour, kept at the lower
             * one. */
            illegal = vorrq_u8(illegal, vandq_u8(x, vshrq_n_u8(x, 1)));
            vst1q_s8(dst + j, trits_of_codes(vshrq_n_u8(x, 6)));
            vst1q_s8(dst + width + j, trits_of_codes(vandq_u8(vshrq_n_u8(x, 4), three)));
            vst1q_s8(dst + 2 * width + j, trits_of_codes(vandq_u8(vshrq_n_u8(x, 2), three)));
            vst1q_s8(dst + 3 * width + j, trits_of_codes(vandq_u8(x, three)));
        }
    }
    return vmaxvq_u8(vandq_u8(illegal, vdupq_n_u8(0x55))) == 0;
}

const struct bc_kernels bc_kernels_neon = {
    .name = "neon",
    .widen_bf16 = widen_bf16,
    .widen_f16 = widen_f16,
    .narrow_bf16 = narrow_bf16,
    .narrow_f16 = narrow_f16,
    .bf16_to_f16 = bf16_to_f16,
    .max_abs_bits = bc_neon_max_abs_bits,
    .abs_sum_block = abs_sum_block,
    .ternarize = ternarize,
    .sign = sign,
    .trits_to_f32 = trits_to_f32,
    .hf_unpack = hf_unpack,
    .count_trits = count_trits,
    .pack_planes = pack_planes,
    .unpack_planes = unpack_planes,
    .bitcos_pack = bc_neon_bitcos_pack,
    .bitcos_unpack = bc_neon_bitcos_unpack,
    .t5_pack = bc_table_t5_pack,
    .t5_unpack = bc_table_t5_unpack,
    .tl2_pack_row = bc_scalar_tl2_pack_row,
    .tl2_unpack_row = bc_scalar_tl2_unpack_row,
    .dot_f32 = bc_neon_dot_f32,
    .dots_f32 = bc_neon_dots_f32,
    .dots_f16 = bc_neon_dots_f16,
    .axpy = bc_neon_axpy,
    .sums_f32 = bc_neon_sums_f32,
    .quantize_i8 = bc_neon_quantize_i8,
    .trit_dots = bc_neon_trit_dots,
    .plane_dots = bc_neon_plane_dots,
    .bitcos_dot = bc_scalar_bitcos_dot,
    .tq1_0_codes = bc_scalar_tq1_0_codes,
    .tq2_0_codes = bc_neon_tq2_0_codes,
    .q2_0_codes = bc_scalar_q2_0_codes,
    .q1_0_codes = bc_scalar_q1_0_codes,
    .block_sums = bc_neon_block_sums,
    .t5_codes = bc_scalar_t5_codes,
    .pair_tables = bc_scalar_pair_tables,
    .pair_sums = bc_neon_pair_sums,
    .triple_tables = bc_scalar_triple_tables,
    .triple_sums = bc_scalar_triple_sums,
};

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_neon_is_for_aarch64;
#endif
