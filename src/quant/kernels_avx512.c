/* SPDX-License-Identifier: MIT
 * The row for x86-64 with AVX-512 F, BW and VL: conversions and planes here, BITCOS in a file of its
 * own; T5, TL2's rows and all products are the AVX2 row's functions. Whole vectors are done here,
 * remainders by the scalar kernels. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#include "quant/kernels_bitcos.h"
#include "quant/kernels_dot.h"
#include "quant/kernels_rows.h"
#include "quant/kernels_tl.h"

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2,f16c")))

AVX512 static inline __m256i load_16_halves(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

AVX512 static inline void store_16_halves(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

AVX512 static inline __m512 bf16_to_f32(__m256i halves)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

AVX512 static void widen_bf16(const uint8_t *src, size_t n, float *dst)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, bf16_to_f32(load_16_halves(src + 2 * i)));
    bc_scalar_widen_bf16(src + 2 * i, n - i, dst + i);
}

AVX512 static void widen_f16(const uint8_t *src, size_t n, float *dst)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(load_16_halves(src + 2 * i)));
    bc_scalar_widen_f16(src + 2 * i, n - i, dst + i);
}

AVX512 static inline __m256i f32_to_bf16(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, is_nan, quiet));
}

AVX512 static void narrow_bf16(const float *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        store_16_halves(dst + 2 * i, f32_to_bf16(_mm512_loadu_ps(src + i)));
    bc_scalar_narrow_bf16(src + i, n - i, dst + 2 * i);
}

AVX512 static void narrow_f16(const float *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        store_16_halves(dst + 2 * i,
                        _mm512_cvtps_ph(_mm512_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    bc_scalar_narrow_f16(src + i, n - i, dst + 2 * i);
}

AVX512 static void bf16_to_f16(const uint8_t *src, size_t n, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512 wide = bf16_to_f32(load_16_halves(src + 2 * i));
        store_16_halves(dst + 2 * i, _mm512_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT));
    }
    bc_scalar_bf16_to_f16(src + 2 * i, n - i, dst + 2 * i);
}

AVX512 static uint32_t max_abs_bits(const float *src, size_t n)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    __m512i max = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        max = _mm512_max_epu32(max, _mm512_and_si512(_mm512_loadu_si512(src + i), mask));
    const uint32_t vector_max = _mm512_reduce_max_epu32(max);
    const uint32_t rest_max = bc_scalar_max_abs_bits(src + i, n - i);
    return rest_max > vector_max ? rest_max : vector_max;
}

AVX512 static inline __m256 load_abs(const float *p)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_loadu_ps(p));
}

/* The order of the sum asks for eight lanes, so this is no wider than the AVX2 row's. */
AVX512 static float abs_sum_block(const float *src, size_t n)
{
    if (n < 8) return bc_scalar_abs_sum_block(src, n);
    __m256 r = load_abs(src);
    size_t i = 8;
    for (; i + 8 <= n; i += 8)
        r = _mm256_add_ps(r, load_abs(src + i));

    const __m256 pairs = _mm256_hadd_ps(r, r);
    const __m256 quads = _mm256_hadd_ps(pairs, pairs);
    const __m128 low = _mm256_castps256_ps128(quads);
    float sum = _mm_cvtss_f32(_mm_add_ss(low, _mm256_extractf128_ps(quads, 1)));
    for (; i < n; i++)
        sum += fabsf(src[i]);
    return sum;
}

/* 16 trits: by how much x lies outside [-limit, limit]. NaN compares false: 0. */
AVX512 static inline __m128i classify(__m512 x, __m512 limit)
{
    const __m512 minus_limit = _mm512_sub_ps(_mm512_setzero_ps(), limit);
    const __mmask16 above = _mm512_cmp_ps_mask(x, limit, _CMP_GT_OQ);
    const __mmask16 below = _mm512_cmp_ps_mask(x, minus_limit, _CMP_LT_OQ);
    const __m128i pluses = _mm_maskz_set1_epi8(above, 1);
    return _mm_mask_mov_epi8(pluses, below, _mm_set1_epi8(-1));
}

AVX512 static void ternarize(const float *src, size_t n, float inv, int8_t *dst)
{
    const __m512 factor = _mm512_set1_ps(inv), limit = _mm512_set1_ps(0.5f);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(src + i), factor);
        _mm_storeu_si128((__m128i *)(void *)(dst + i), classify(scaled, limit));
    }
    bc_scalar_ternarize(src + i, n - i, inv, dst + i);
}

AVX512 static void sign(const float *src, size_t n, int8_t *dst)
{
    const __m512 limit = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm_storeu_si128((__m128i *)(void *)(dst + i), classify(_mm512_loadu_ps(src + i), limit));
    bc_scalar_sign(src + i, n - i, dst + i);
}

AVX512 static void trits_to_f32(const int8_t *src, size_t n, float scale, float *dst)
{
    const __m512 factor = _mm512_set1_ps(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(src + i));
        const __mmask16 non_zero = _mm_test_epi8_mask(bytes, bytes);
        const __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
        _mm512_storeu_ps(dst + i, _mm512_maskz_mul_ps(non_zero, x, factor));
    }
    bc_scalar_trits_to_f32(src + i, n - i, scale, dst + i);
}

/* Shifts of 16-bit lanes drag bits over byte borders; the mask of the two wanted bits removes them.
 */
AVX512 static bool hf_unpack(const uint8_t *src, size_t n, unsigned shift, int8_t *dst)
{
    const __m128i count = _mm_cvtsi32_si128((int)shift);
    const __m512i three = _mm512_set1_epi8(3), one = _mm512_set1_epi8(1);
    __mmask64 illegal = 0;
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        const __m512i shifted = _mm512_srl_epi16(_mm512_loadu_si512(src + i), count);
        const __m512i codes = _mm512_and_si512(shifted, three);
        illegal |= _mm512_cmpeq_epi8_mask(codes, three);
        _mm512_storeu_si512(dst + i, _mm512_sub_epi8(codes, one));
    }
    const bool rest_legal = bc_scalar_hf_unpack(src + i, n - i, shift, dst + i);
    return rest_legal && illegal == 0;
}

AVX512 static uint64_t sum_bytes(__m512i v)
{
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_sad_epu8(v, _mm512_setzero_si512()));
}

/* Counts 64 * n_vectors trits; n_vectors <= 255, as each byte lane counts for itself. */
AVX512 static void count_vectors(const int8_t *src, size_t n_vectors, uint64_t counts[4])
{
    const __m512i one = _mm512_set1_epi8(1), minus_one = _mm512_set1_epi8(-1);
    const __m512i zero = _mm512_setzero_si512();
    __m512i minuses = zero, zeros = zero, pluses = zero;
    for (size_t i = 0; i < n_vectors; i++) {
        const __m512i t = _mm512_loadu_si512(src + 64 * i);
        const __mmask64 is_minus = _mm512_cmpeq_epi8_mask(t, minus_one);
        const __mmask64 is_zero = _mm512_cmpeq_epi8_mask(t, zero);
        const __mmask64 is_plus = _mm512_cmpeq_epi8_mask(t, one);
        minuses = _mm512_mask_add_epi8(minuses, is_minus, minuses, one);
        zeros = _mm512_mask_add_epi8(zeros, is_zero, zeros, one);
        pluses = _mm512_mask_add_epi8(pluses, is_plus, pluses, one);
    }
    const uint64_t n_minus = sum_bytes(minuses), n_zero = sum_bytes(zeros),
                   n_plus = sum_bytes(pluses);
    counts[0] += n_minus;
    counts[1] += n_zero;
    counts[2] += n_plus;
    counts[3] += 64 * n_vectors - n_minus - n_zero - n_plus;
}

AVX512 static void count_trits(const int8_t *src, size_t n, uint64_t counts[4])
{
    while (n >= 64) {
        const size_t n_vectors = n / 64 < 255 ? n / 64 : 255;
        count_vectors(src, n_vectors, counts);
        src += 64 * n_vectors;
        n -= 64 * n_vectors;
    }
    bc_scalar_count_trits(src, n, counts);
}

/* 4 * x + y in every byte, modulo 256 like the definition. */
AVX512 static inline __m512i append(__m512i x, __m512i y)
{
    const __m512i twice = _mm512_add_epi8(x, x);
    return _mm512_add_epi8(_mm512_add_epi8(twice, twice), y);
}

/* 64 bytes of dst from the 256 trits of 64 / width blocks: plane p of all of them side by side. */
AVX512 static inline __m512i gather_plane(const int8_t *src, size_t width, size_t plane)
{
    const int8_t *p = src + plane * width;
    if (width == 32) {
        const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)p);
        const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(p + 128));
        return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    }
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)(p + 64)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)(p + 128)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)(p + 192)), 3);
}

AVX512 static inline void pack_all(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst)
{
    const size_t blocks_at_once = 64 / width;
    for (; n_blocks >= blocks_at_once; n_blocks -= blocks_at_once, src += 256, dst += 64) {
        __m512i x = append(gather_plane(src, width, 0), gather_plane(src, width, 1));
        x = append(x, gather_plane(src, width, 2));
        x = append(x, gather_plane(src, width, 3));
        _mm512_storeu_si512(dst, _mm512_add_epi8(x, _mm512_set1_epi8(0x55)));
    }
    bc_scalar_pack_planes(src, n_blocks, width, dst);
}

AVX512 static void pack_planes(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst)
{
    /* Constant widths, so that the compiler makes two loops without a choice inside. */
    if (width == 32)
        pack_all(src, n_blocks, 32, dst);
    else
        pack_all(src, n_blocks, 16, dst);
}

AVX512 static inline void scatter_plane(__m512i v, int8_t *dst, size_t width, size_t plane)
{
    int8_t *p = dst + plane * width;
    if (width == 32) {
        _mm256_storeu_si256((__m256i *)(void *)p, _mm512_castsi512_si256(v));
        _mm256_storeu_si256((__m256i *)(void *)(p + 128), _mm512_extracti64x4_epi64(v, 1));
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_castsi512_si128(v));
    _mm_storeu_si128((__m128i *)(void *)(p + 64), _mm512_extracti32x4_epi32(v, 1));
    _mm_storeu_si128((__m128i *)(void *)(p + 128), _mm512_extracti32x4_epi32(v, 2));
    _mm_storeu_si128((__m128i *)(void *)(p + 192), _mm512_extracti32x4_epi32(v, 3));
}

AVX512 static inline __m512i trits_of_codes(__m512i shifted)
{
    const __m512i codes = _mm512_and_si512(shifted, _mm512_set1_epi8(3));
    return _mm512_sub_epi8(codes, _mm512_set1_epi8(1));
}

AVX512 static inline bool unpack_all(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst)
{
    const size_t blocks_at_once = 64 / width;
    __m512i illegal = _mm512_setzero_si512();
    for (; n_blocks >= blocks_at_once; n_blocks -= blocks_at_once, src += 64, dst += 256) {
        const __m512i x = _mm512_loadu_si512(src);
        /* Code 3 has both bits set: each bit against its upper neighbour, kept at the lower one. */
        illegal = _mm512_or_si512(illegal, _mm512_and_si512(x, _mm512_srli_epi16(x, 1)));
        scatter_plane(trits_of_codes(_mm512_srli_epi16(x, 6)), dst, width, 0);
        scatter_plane(trits_of_codes(_mm512_srli_epi16(x, 4)), dst, width, 1);
        scatter_plane(trits_of_codes(_mm512_srli_epi16(x, 2)), dst, width, 2);
        scatter_plane(trits_of_codes(x), dst, width, 3);
    }
    const bool rest_legal = bc_scalar_unpack_planes(src, n_blocks, width, dst);
    return rest_legal && _mm512_test_epi8_mask(illegal, _mm512_set1_epi8(0x55)) == 0;
}

AVX512 static bool unpack_planes(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst)
{
    return width == 32 ? unpack_all(src, n_blocks, 32, dst) : unpack_all(src, n_blocks, 16, dst);
}

const struct bc_kernels bc_kernels_avx512 = {
    .name = "avx512",
    .widen_bf16 = widen_bf16,
    .widen_f16 = widen_f16,
    .narrow_bf16 = narrow_bf16,
    .narrow_f16 = narrow_f16,
    .bf16_to_f16 = bf16_to_f16,
    .max_abs_bits = max_abs_bits,
    .abs_sum_block = abs_sum_block,
    .ternarize = ternarize,
    .sign = sign,
    .trits_to_f32 = trits_to_f32,
    .hf_unpack = hf_unpack,
    .count_trits = count_trits,
    .pack_planes = pack_planes,
    .unpack_planes = unpack_planes,
    .bitcos_pack = bc_avx512_bitcos_pack,
    .bitcos_unpack = bc_avx512_bitcos_unpack,
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
typedef int bc_kernels_avx512_is_for_x86_64;
#endif
