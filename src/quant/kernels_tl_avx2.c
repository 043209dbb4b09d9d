/* SPDX-License-Identifier: MIT
 * Rows of TL2's triples for x86-64 with AVX2 and BMI2, a group of eight at once. */
#if defined(__x86_64__)

#include "base/bytes.h"
#include "quant/kernels_dot_avx2.h"
#include "quant/kernels_tl.h"

enum { GROUP = 24, BLOCK_ROWS = 32 };

/* Every other bit of a word of signs: the first triple's is bit 15. */
enum { SIGN_BITS = 0xaaaa };

/* Returns the signs, the last triple's in bit 0. Lane i of the vectors is triple 7 - i. */
AVX2_DOT static inline unsigned encode_group(const int8_t *trits, uint8_t *magnitudes)
{
    const __m256i in_fours = _mm256_setr_epi8(
        13, 14, 15, -1, 10, 11, 12, -1, 7, 8, 9, -1, 4, 5, 6, -1, /* of trits 8 to 23 */
        9, 10, 11, -1, 6, 7, 8, -1, 3, 4, 5, -1, 0, 1, 2, -1);    /* of trits 0 to 15 */
    const __m256i both = _mm256_set_m128i(bc_load_16(trits), bc_load_16(trits + 8));
    const __m256i places = _mm256_set1_epi32(9 | 3 << 8 | 1 << 16);
    const __m256i pairs = _mm256_maddubs_epi16(places, _mm256_shuffle_epi8(both, in_fours));
    const __m256i values = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    const __m256i sizes = _mm256_abs_epi32(values);
    /* Triples 7 - 2i (low) and 6 - 2i of a 64-bit lane share a byte; the earlier one is high. */
    const __m256i bytes = _mm256_or_si256(sizes, _mm256_srli_epi64(sizes, 28));
    const __m128i late = _mm256_castsi256_si128(bytes), early = _mm256_extracti128_si256(bytes, 1);
    magnitudes[0] = (uint8_t)_mm_extract_epi8(early, 8);
    magnitudes[BLOCK_ROWS] = (uint8_t)_mm_extract_epi8(early, 0);
    magnitudes[2 * BLOCK_ROWS] = (uint8_t)_mm_extract_epi8(late, 8);
    magnitudes[3 * BLOCK_ROWS] = (uint8_t)_mm_extract_epi8(late, 0);
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(values));
}

AVX2_DOT void bc_avx2_tl2_pack_row(const int8_t *trits, size_t n_groups, unsigned half,
                                   uint8_t *magnitudes, uint8_t *words)
{
    for (; n_groups > 0; n_groups--, trits += GROUP, magnitudes += 4 * BLOCK_ROWS) {
        const unsigned signs = _pdep_u32(encode_group(trits, magnitudes), SIGN_BITS);
        bc_put_u16(words, (uint16_t)(half == 0 ? signs : bc_get_u16(words) | signs >> 1));
        words += BLOCK_ROWS;
    }
}

/* The eight magnitudes of a group in the bytes of a word; those of a pair have changed places. */
AVX2_DOT static inline uint64_t magnitudes_of(const uint8_t *p)
{
    const uint32_t bytes = p[0] | (uint32_t)p[BLOCK_ROWS] << 8 | (uint32_t)p[2 * BLOCK_ROWS] << 16 |
                           (uint32_t)p[3 * BLOCK_ROWS] << 24;
    return _pdep_u64(bytes, UINT64_C(0x0f0f0f0f0f0f0f0f));
}

/* False when a code has no meaning; then nothing is stored. Byte j of the vectors is trit j. */
AVX2_DOT static inline bool decode_group(uint64_t magnitudes, uint64_t negative, int8_t *trits)
{
    const __m256i magnitude_of =
        _mm256_setr_epi8(1, 1, 1, 0, 0, 0, 3, 3, 3, 2, 2, 2, 5, 5, 5, 4, 4, 4, 7, 7, 7, 6, 6, 6, -1,
                         -1, -1, -1, -1, -1, -1, -1);
    const __m256i sign_of = _mm256_setr_epi8(7, 7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 3, 2, 2, 2,
                                             1, 1, 1, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i first =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0));
    const __m256i second = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 1, 1, 1, -1, -1, -1, 0, 0, 0, 1, 1, 1, 0, 0));
    const __m256i third = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, 0, 0));
    const __m256i is_second = _mm256_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0,
                                               -1, 0, 0, -1, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i is_third = _mm256_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0,
                                              0, -1, 0, 0, -1, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i zero = _mm256_setzero_si256();
    const __m256i codes =
        _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)magnitudes), magnitude_of);
    const __m256i bits = _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)negative), sign_of);
    const __m256i minus = _mm256_sub_epi8(zero, bits);
    const __m256i illegal =
        _mm256_or_si256(_mm256_cmpgt_epi8(codes, _mm256_set1_epi8(13)),
                        _mm256_and_si256(_mm256_cmpeq_epi8(codes, zero), minus));
    if (!_mm256_testz_si256(illegal, illegal)) return false;
    __m256i values = _mm256_shuffle_epi8(first, codes);
    values = _mm256_blendv_epi8(values, _mm256_shuffle_epi8(second, codes), is_second);
    values = _mm256_blendv_epi8(values, _mm256_shuffle_epi8(third, codes), is_third);
    values = _mm256_sub_epi8(_mm256_xor_si256(values, minus), minus);
    bc_store_16(trits, _mm256_castsi256_si128(values));
    _mm_storel_epi64((__m128i *)(void *)(trits + 16), _mm256_extracti128_si256(values, 1));
    return true;
}

AVX2_DOT bool bc_avx2_tl2_unpack_row(const uint8_t *magnitudes, const uint8_t *words, unsigned half,
                                     size_t n_groups, int8_t *trits)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    bool legal = true;
    for (; n_groups > 0; n_groups--, magnitudes += 4 * BLOCK_ROWS, trits += GROUP) {
        const unsigned signs = _pext_u32((unsigned)bc_get_u16(words) << half, SIGN_BITS);
        if (!decode_group(magnitudes_of(magnitudes), _pdep_u64(signs, ones), trits))
            legal = bc_scalar_tl2_unpack_row(magnitudes, words, half, 1, trits) && legal;
        words += BLOCK_ROWS;
    }
    return legal;
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_tl_avx2_is_for_x86_64;
#endif
