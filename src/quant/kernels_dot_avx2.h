/* SPDX-License-Identifier: MIT
 * What the files of AVX2 dot products share: loads, sums in 16 bits, and their folding. */
#ifndef BC_QUANT_KERNELS_DOT_AVX2_H
#define BC_QUANT_KERNELS_DOT_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* By attribute, so that the files need no flags of their own. */
#define AVX2_DOT __attribute__((target("avx2,bmi2,popcnt,f16c")))

/* So many sums of two products may meet in 16 bits: 40 * 3 * 128 * 2 < 32768. */
enum { BC_DOT_FLUSH = 40 };

AVX2_DOT static inline __m256i bc_load_32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2_DOT static inline void bc_store_32(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

AVX2_DOT static inline __m128i bc_load_16(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

AVX2_DOT static inline void bc_store_16(void *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)p, v);
}

/* 32 products of codes (0 to 3) and activations, added in twos to 16 lanes of 16 bits. */
AVX2_DOT static inline __m256i bc_add_pairs(__m256i pairs, __m256i codes, const int8_t *x)
{
    return _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes, bc_load_32(x)));
}

/* 16 lanes of 16 bits, in twos, to eight of 32. */
AVX2_DOT static inline __m256i bc_flush(__m256i sum, __m256i pairs)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

AVX2_DOT static inline int32_t bc_sum_of_8(__m256i v)
{
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
    const __m128i one = _mm_add_epi32(two, _mm_shuffle_epi32(two, _MM_SHUFFLE(2, 3, 0, 1)));
    return _mm_cvtsi128_si32(one);
}

/* The sums of each of four. */
AVX2_DOT static inline __m128i bc_sums_of_4(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

#endif
