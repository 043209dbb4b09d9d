/* SPDX-License-Identifier: MIT
 * BITCOS and T5 for x86-64 with AVX2 and BMI2. BITCOS: 64 weights at once, signs compacted by pext
 * and put in their places by pdep. T5 is packed six bytes at once; its table is as fast. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "quant/kernels_bitcos.h"

#define AVX2_BMI2 __attribute__((target("avx2,bmi2,popcnt")))

AVX2_BMI2 static inline __m256i load_32_trits(const int8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

AVX2_BMI2 static inline uint64_t join(int low, int high)
{
    return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

AVX2_BMI2 uint64_t bc_avx2_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                                       size_t n_words, uint64_t rank)
{
    const __m256i zero = _mm256_setzero_si256();
    struct bc_sign_sink sink = bc_sign_sink_open(signs, n_words, rank);
    for (; n >= 64; n -= 64, src += 64, bitmap += 8) {
        const __m256i low = load_32_trits(src), high = load_32_trits(src + 32);
        const uint64_t absent = join(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, zero)),
                                     _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, zero)));
        const uint64_t negative = join(_mm256_movemask_epi8(low), _mm256_movemask_epi8(high));
        const uint64_t presence = ~absent;
        bc_put_u64(bitmap, presence);
        bc_sign_sink_append(&sink, _pext_u64(negative, presence),
                            (unsigned)_mm_popcnt_u64(presence));
    }
    bc_sign_sink_flush(&sink);
    return bc_table_bitcos_pack(src, n, bitmap, signs, n_words, sink.rank);
}

/* -1 in byte i where bit i is set. */
AVX2_BMI2 static inline __m256i spread(uint32_t bits)
{
    const __m256i byte_of =
        _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, /* of the 128-bit half */
                         2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit_of = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte_of);
    return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of);
}

/* Negative weights are present ones: -1 | 1 is -1. */
AVX2_BMI2 static inline void store_32_trits(uint32_t presence, uint32_t negative, int8_t *dst)
{
    const __m256i ones = _mm256_and_si256(spread(presence), _mm256_set1_epi8(1));
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_or_si256(ones, spread(negative)));
}

AVX2_BMI2 uint64_t bc_avx2_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                         uint64_t n_signs, uint64_t rank, int8_t *dst)
{
    for (; n >= 64; n -= 64, bitmap += 8, dst += 64) {
        const uint64_t presence = bc_get_u64(bitmap);
        const uint64_t end = rank + (uint64_t)_mm_popcnt_u64(presence);
        if (end > n_signs) break;
        const uint64_t negative = _pdep_u64(bc_sign_window(signs, n_signs, rank), presence);
        store_32_trits((uint32_t)presence, (uint32_t)negative, dst);
        store_32_trits((uint32_t)(presence >> 32), (uint32_t)(negative >> 32), dst + 32);
        rank = end;
    }
    return bc_table_bitcos_unpack(bitmap, n, signs, n_signs, rank, dst);
}

/* Three bytes in the low halves' bytes 0 to 2 and the high half's 3 to 5, from three times five
 * trits in each half; the byte behind them is not looked at. */
AVX2_BMI2 static inline __m256i pack_30_trits(__m256i trits)
{
    const __m256i first_four =
        _mm256_setr_epi8(0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, -1, -1, -1, -1, /* -1: a zero */
                         0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, -1, -1, -1, -1);
    const __m256i fifth =
        _mm256_setr_epi8(4, -1, -1, -1, 9, -1, -1, -1, 14, -1, -1, -1, -1, -1, -1, -1, 4, -1, -1,
                         -1, 9, -1, -1, -1, 14, -1, -1, -1, -1, -1, -1, -1);
    const __m256i low_bytes =
        _mm256_setr_epi8(0, 4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0,
                         4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i weights = _mm256_set1_epi32(1 | 3 << 8 | 9 << 16 | 27 << 24);
    const __m256i pairs = _mm256_add_epi16(
        _mm256_maddubs_epi16(weights, _mm256_shuffle_epi8(trits, first_four)),
        _mm256_maddubs_epi16(_mm256_set1_epi32(81), _mm256_shuffle_epi8(trits, fifth)));
    const __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    /* Digits are trit + 1: five of them more make 1 + 3 + 9 + 27 + 81. */
    return _mm256_shuffle_epi8(_mm256_add_epi32(sums, _mm256_set1_epi32(121)), low_bytes);
}

AVX2_BMI2 void bc_avx2_t5_pack(const int8_t *src, size_t n, uint8_t *dst)
{
    /* 31 trits are read and 8 bytes written, of which 30 and 6 count. */
    for (; n >= 40; n -= 30, src += 30, dst += 6) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)src);
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(src + 15));
        const __m256i bytes = pack_30_trits(_mm256_set_m128i(high, low));
        const __m128i six =
            _mm_or_si128(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
        _mm_storel_epi64((__m128i *)(void *)dst, six);
    }
    bc_table_t5_pack(src, n, dst);
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_bitcos_avx2_is_for_x86_64;
#endif
