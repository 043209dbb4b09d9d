/* SPDX-License-Identifier: MIT
 * The row for x86-64 with AVX2 and F16C: conversions and planes; BITCOS, T5, TL2 and the products have
 * files of their own. Whole vectors are done here, remainders by the scalar kernels. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#include "quant/kernels_bitcos.h"
#include "quant/kernels_dot.h"
#include "quant/kernels_rows.h"
#include "quant/kernels_tl.h"

/* By attribute, so that the file needs no flags of its own and builds into any x86-64 program. */
#define AVX2 __attribute__((target("avx2,f16c")))

AVX2 static inline __m256i load_32_bytes(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 static inline void store_32_bytes(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

AVX2 static inline __m128i load_16_bytes(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

AVX2 static inline void store_16_bytes(void *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)p, v);
}

AVX2 static inline __m256 bf16_to_f32(__m128i halves)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

AVX2 static void widen_bf16(const uint8_t *src, size_t n, float *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, bf16_to_f32(load_16_bytes(src + 2 * i)));
    bc_scalar_widen_bf16(src + 2 * i, n - i, dst + i);
}

AVX2 static void widen_f16(const uint8_t *src, size_t n, float *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(load_16_bytes(src + 2 * i)));
    bc_scalar_widen_f16(src + 2 * i, n - i, dst + i);
}

/* Eight bfloat16, each in the low half of 32 bits. */
AVX2 static inline __m256i f32_to_bf16(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

AVX2 static void narrow_bf16(const float *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i low = f32_to_bf16(_mm256_loadu_ps(src + i));
        const __m256i high = f32_to_bf16(_mm256_loadu_ps(src + i + 8));
        /* The pack works on 128-bit halves: the middle quarters come out swapped. */
        const __m256i packed = _mm256_packus_epi32(low, high);
        store_32_bytes(dst + 2 * i, _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
    }
    bc_scalar_narrow_bf16(src + i, n - i, dst + 2 * i);
}

AVX2 static void narrow_f16(const float *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        store_16_bytes(dst + 2 * i,
                       _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    bc_scalar_narrow_f16(src + i, n - i, dst + 2 * i);
}

AVX2 static void bf16_to_f16(const uint8_t *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 wide = bf16_to_f32(load_16_bytes(src + 2 * i));
        store_16_bytes(dst + 2 * i, _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT));
    }
    bc_scalar_bf16_to_f16(src + 2 * i, n - i, dst + 2 * i);
}

AVX2 uint32_t bc_avx2_max_abs_bits(const float *src, size_t n)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i a = _mm256_setzero_si256(), b = a;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        a = _mm256_max_epu32(a, _mm256_and_si256(load_32_bytes(src + i), mask));
        b = _mm256_max_epu32(b, _mm256_and_si256(load_32_bytes(src + i + 8), mask));
    }
    uint32_t lanes[8];
    store_32_bytes(lanes, _mm256_max_epu32(a, b));
    uint32_t max = bc_scalar_max_abs_bits(src + i, n - i);
    for (size_t j = 0; j < 8; j++) {
        if (lanes[j] > max) max = lanes[j];
    }
    return max;
}

AVX2 static inline __m256 load_abs(const float *p)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_loadu_ps(p));
}

/* The accumulators r0..r7 are the lanes of one vector. */
AVX2 static float abs_sum_block(const float *src, size_t n)
{
    if (n < 8) return bc_scalar_abs_sum_block(src, n);
    __m256 r = load_abs(src);
    size_t i = 8;
    for (; i + 8 <= n; i += 8)
        r = _mm256_add_ps(r, load_abs(src + i));

    const __m256 pairs = _mm256_hadd_ps(r, r);         /* r0+r1, r2+r3, .. | r4+r5, r6+r7, .. */
    const __m256 quads = _mm256_hadd_ps(pairs, pairs); /* sums of four, in both halves */
    const __m128 low = _mm256_castps256_ps128(quads);
    float sum = _mm_cvtss_f32(_mm_add_ss(low, _mm256_extractf128_ps(quads, 1)));
    for (; i < n; i++)
        sum += fabsf(src[i]);
    return sum;
}

/* Eight 32-bit trits: by how much x lies outside [-limit, limit]. NaN compares false: 0. */
AVX2 static inline __m256i classify(__m256 x, __m256 limit)
{
    const __m256 above = _mm256_cmp_ps(x, limit, _CMP_GT_OQ);
    const __m256 below = _mm256_cmp_ps(x, _mm256_sub_ps(_mm256_setzero_ps(), limit), _CMP_LT_OQ);
    return _mm256_sub_epi32(_mm256_castps_si256(below), _mm256_castps_si256(above));
}

/* 32 trits from 32 floats: x * factor against +-limit. */
AVX2 static inline __m256i classify_32(const float *src, __m256 factor, __m256 limit)
{
    const __m256i t0 = classify(_mm256_mul_ps(_mm256_loadu_ps(src), factor), limit);
    const __m256i t1 = classify(_mm256_mul_ps(_mm256_loadu_ps(src + 8), factor), limit);
    const __m256i t2 = classify(_mm256_mul_ps(_mm256_loadu_ps(src + 16), factor), limit);
    const __m256i t3 = classify(_mm256_mul_ps(_mm256_loadu_ps(src + 24), factor), limit);
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(t0, t1), _mm256_packs_epi32(t2, t3));
    /* Two packs within 128-bit halves leave groups of four in the order 0 2 4 6 1 3 5 7. */
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2 static void ternarize(const float *src, size_t n, float inv, int8_t *dst)
{
    const __m256 factor = _mm256_set1_ps(inv), limit = _mm256_set1_ps(0.5f);
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        store_32_bytes(dst + i, classify_32(src + i, factor, limit));
    bc_scalar_ternarize(src + i, n - i, inv, dst + i);
}

AVX2 static void sign(const float *src, size_t n, int8_t *dst)
{
    const __m256 factor = _mm256_set1_ps(1.0f), limit = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        store_32_bytes(dst + i, classify_32(src + i, factor, limit));
    bc_scalar_sign(src + i, n - i, dst + i);
}

AVX2 static void trits_to_f32(const int8_t *src, size_t n, float scale, float *dst)
{
    const __m256 factor = _mm256_set1_ps(scale), zero = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(src + i));
        const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
        const __m256 non_zero = _mm256_cmp_ps(x, zero, _CMP_NEQ_OQ);
        _mm256_storeu_ps(dst + i, _mm256_and_ps(_mm256_mul_ps(x, factor), non_zero));
    }
    bc_scalar_trits_to_f32(src + i, n - i, scale, dst + i);
}

/* Shifts of 16-bit lanes drag bits over byte borders; the mask of the two wanted bits removes them.
 */
AVX2 static bool hf_unpack(const uint8_t *src, size_t n, unsigned shift, int8_t *dst)
{
    const __m128i count = _mm_cvtsi32_si128((int)shift);
    const __m256i three = _mm256_set1_epi8(3), one = _mm256_set1_epi8(1);
    __m256i illegal = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i codes =
            _mm256_and_si256(_mm256_srl_epi16(load_32_bytes(src + i), count), three);
        illegal = _mm256_or_si256(illegal, _mm256_cmpeq_epi8(codes, three));
        store_32_bytes(dst + i, _mm256_sub_epi8(codes, one));
    }
    const bool rest_legal = bc_scalar_hf_unpack(src + i, n - i, shift, dst + i);
    return rest_legal && _mm256_testz_si256(illegal, illegal);
}

AVX2 static uint64_t sum_bytes(__m256i v)
{
    uint64_t lanes[4];
    store_32_bytes(lanes, _mm256_sad_epu8(v, _mm256_setzero_si256()));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

/* Counts 32 * n_vectors trits; n_vectors <= 255, as each byte lane counts for itself. */
AVX2 static void count_vectors(const int8_t *src, size_t n_vectors, uint64_t counts[4])
{
    const __m256i one = _mm256_set1_epi8(1), minus_one = _mm256_set1_epi8(-1);
    const __m256i zero = _mm256_setzero_si256();
    __m256i minuses = zero, zeros = zero, pluses = zero;
    for (size_t i = 0; i < n_vectors; i++) {
        const __m256i t = load_32_bytes(src + 32 * i);
        minuses = _mm256_sub_epi8(minuses, _mm256_cmpeq_epi8(t, minus_one));
        zeros = _mm256_sub_epi8(zeros, _mm256_cmpeq_epi8(t, zero));
        pluses = _mm256_sub_epi8(pluses, _mm256_cmpeq_epi8(t, one));
    }
    const uint64_t n_minus = sum_bytes(minuses), n_zero = sum_bytes(zeros),
                   n_plus = sum_bytes(pluses);
    counts[0] += n_minus;
    counts[1] += n_zero;
    counts[2] += n_plus;
    counts[3] += 32 * n_vectors - n_minus - n_zero - n_plus;
}

AVX2 static void count_trits(const int8_t *src, size_t n, uint64_t counts[4])
{
    while (n >= 32) {
        const size_t n_vectors = n / 32 < 255 ? n / 32 : 255;
        count_vectors(src, n_vectors, counts);
        src += 32 * n_vectors;
        n -= 32 * n_vectors;
    }
    bc_scalar_count_trits(src, n, counts);
}

/* 4 * x + y in every byte. Bytes have no shift; two doublings do it, modulo 256 like the
 * definition. */
AVX2 static inline __m256i append_32(__m256i x, __m256i y)
{
    const __m256i twice = _mm256_add_epi8(x, x);
    return _mm256_add_epi8(_mm256_add_epi8(twice, twice), y);
}

AVX2 static inline __m128i append_16(__m128i x, __m128i y)
{
    const __m128i twice = _mm_add_epi8(x, x);
    return _mm_add_epi8(_mm_add_epi8(twice, twice), y);
}

AVX2 static void pack_planes(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst)
{
    if (width == 32) {
        for (size_t b = 0; b < n_blocks; b++, src += 128, dst += 32) {
            __m256i x = append_32(load_32_bytes(src), load_32_bytes(src + 32));
            x = append_32(x, load_32_bytes(src + 64));
            x = append_32(x, load_32_bytes(src + 96));
            store_32_bytes(dst, _mm256_add_epi8(x, _mm256_set1_epi8(0x55)));
        }
    } else {
        for (size_t b = 0; b < n_blocks; b++, src += 64, dst += 16) {
            __m128i x = append_16(load_16_bytes(src), load_16_bytes(src + 16));
            x = append_16(x, load_16_bytes(src + 32));
            x = append_16(x, load_16_bytes(src + 48));
            store_16_bytes(dst, _mm_add_epi8(x, _mm_set1_epi8(0x55)));
        }
    }
}

AVX2 static bool unpack_planes_32(const uint8_t *src, size_t n_blocks, int8_t *dst)
{
    const __m256i three = _mm256_set1_epi8(3), one = _mm256_set1_epi8(1);
    __m256i illegal = _mm256_setzero_si256();
    for (size_t b = 0; b < n_blocks; b++, src += 32, dst += 128) {
        const __m256i x = load_32_bytes(src);
        const __m256i c0 = _mm256_and_si256(_mm256_srli_epi16(x, 6), three);
        const __m256i c1 = _mm256_and_si256(_mm256_srli_epi16(x, 4), three);
        const __m256i c2 = _mm256_and_si256(_mm256_srli_epi16(x, 2), three);
        const __m256i c3 = _mm256_and_si256(x, three);
        /* Code 3 has both bits set: each bit against its upper neighbour, kept at the lower one. */
        illegal = _mm256_or_si256(illegal, _mm256_and_si256(x, _mm256_srli_epi16(x, 1)));
        store_32_bytes(dst, _mm256_sub_epi8(c0, one));
        store_32_bytes(dst + 32, _mm256_sub_epi8(c1, one));
        store_32_bytes(dst + 64, _mm256_sub_epi8(c2, one));
        store_32_bytes(dst + 96, _mm256_sub_epi8(c3, one));
    }
    return _mm256_testz_si256(illegal, _mm256_set1_epi8(0x55));
}

AVX2 static bool unpack_planes_16(const uint8_t *src, size_t n_blocks, int8_t *dst)
{
    const __m128i three = _mm_set1_epi8(3), one = _mm_set1_epi8(1);
    __m128i illegal = _mm_setzero_si128();
    for (size_t b = 0; b < n_blocks; b++, src += 16, dst += 64) {
        const __m128i x = load_16_bytes(src);
        const __m128i c0 = _mm_and_si128(_mm_srli_epi16(x, 6), three);
        const __m128i c1 = _mm_and_si128(_mm_srli_epi16(x, 4), three);
        const __m128i c2 = _mm_and_si128(_mm_srli_epi16(x, 2), three);
        const __m128i c3 = _mm_and_si128(x, three);
        illegal = _mm_or_si128(illegal, _mm_and_si128(x, _mm_srli_epi16(x, 1)));
        store_16_bytes(dst, _mm_sub_epi8(c0, one));
        store_16_bytes(dst + 16, _mm_sub_epi8(c1, one));
        store_16_bytes(dst + 32, _mm_sub_epi8(c2, one));
        store_16_bytes(dst + 48, _mm_sub_epi8(c3, one));
    }
    return _mm_testz_si128(illegal, _mm_set1_epi8(0x55));
}

static bool unpack_planes(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst)
{
    return width == 32 ? unpack_planes_32(src, n_blocks, dst)
                       : unpack_planes_16(src, n_blocks, dst);
}

const struct bc_kernels bc_kernels_avx2 = {
    .name = "avx2",
    .widen_bf16 = widen_bf16,
    .widen_f16 = widen_f16,
    .narrow_bf16 = narrow_bf16,
    .narrow_f16 = narrow_f16,
    .bf16_to_f16 = bf16_to_f16,
    .max_abs_bits = bc_avx2_max_abs_bits,
    .abs_sum_block = abs_sum_block,
    .ternarize = ternarize,
    .sign = sign,
    .trits_to_f32 = trits_to_f32,
    .hf_unpack = hf_unpack,
    .count_trits = count_trits,
    .pack_planes = pack_planes,
    .unpack_planes = unpack_planes,
    .bitcos_pack = bc_avx2_bitcos_pack,
    .bitcos_unpack = bc_avx2_bitcos_unpack,
    .t5_pack = bc_avx2_t5_pack,
    .t5_unpack = bc_table_t5_unpack,
    .tl2_pack_row = bc_avx2_tl2_pack_row,
    .tl2_unpack_row = bc_avx2_tl2_unpack_row,
    .dot_f32 = bc_avx2_dot_f32,
    .dots_f32 = bc_avx2_dots_f32,
    .dots_f16 = bc_avx2_dots_f16,
    .axpy = bc_avx2_axpy,
    .sums_f32 = bc_avx2_sums_f32,
    .quantize_i8 = bc_avx2_quantize_i8,
    .trit_dots = bc_avx2_trit_dots,
    .plane_dots = bc_avx2_plane_dots,
    .bitcos_dot = bc_avx2_bitcos_dot,
    .tq1_0_codes = bc_avx2_tq1_0_codes,
    .tq2_0_codes = bc_avx2_tq2_0_codes,
    .q2_0_codes = bc_avx2_q2_0_codes,
    .q1_0_codes = bc_avx2_q1_0_codes,
    .block_sums = bc_avx2_block_sums,
    .t5_codes = bc_avx2_t5_codes,
    .pair_tables = bc_avx2_pair_tables,
    .pair_sums = bc_avx2_pair_sums,
    .triple_tables = bc_avx2_triple_tables,
    .triple_sums = bc_avx2_triple_sums,
};

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_avx2_is_for_x86_64;
#endif
