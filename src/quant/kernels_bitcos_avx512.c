/* SPDX-License-Identifier: MIT
 * BITCOS for x86-64 with AVX-512 BW and BMI2: a word of the bitmap is a mask register as it
 * stands. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "quant/kernels_bitcos.h"

#define AVX512_BMI2 __attribute__((target("avx512f,avx512bw,bmi2,popcnt")))

AVX512_BMI2 uint64_t bc_avx512_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap,
                                           uint8_t *signs, size_t n_words, uint64_t rank)
{
    struct bc_sign_sink sink = bc_sign_sink_open(signs, n_words, rank);
    for (; n >= 64; n -= 64, src += 64, bitmap += 8) {
        const __m512i trits = _mm512_loadu_si512(src);
        const uint64_t presence = _mm512_test_epi8_mask(trits, trits);
        const uint64_t negative = _mm512_movepi8_mask(trits);
        bc_put_u64(bitmap, presence);
        bc_sign_sink_append(&sink, _pext_u64(negative, presence),
                            (unsigned)_mm_popcnt_u64(presence));
    }
    bc_sign_sink_flush(&sink);
    return bc_table_bitcos_pack(src, n, bitmap, signs, n_words, sink.rank);
}

AVX512_BMI2 uint64_t bc_avx512_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                             uint64_t n_signs, uint64_t rank, int8_t *dst)
{
    const __m512i minus_one = _mm512_set1_epi8(-1);
    for (; n >= 64; n -= 64, bitmap += 8, dst += 64) {
        const uint64_t presence = bc_get_u64(bitmap);
        const uint64_t end = rank + (uint64_t)_mm_popcnt_u64(presence);
        if (end > n_signs) break;
        const uint64_t negative = _pdep_u64(bc_sign_window(signs, n_signs, rank), presence);
        const __m512i pluses = _mm512_maskz_set1_epi8(presence, 1);
        _mm512_storeu_si512(dst, _mm512_mask_mov_epi8(pluses, negative, minus_one));
        rank = end;
    }
    return bc_table_bitcos_unpack(bitmap, n, signs, n_signs, rank, dst);
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_bitcos_avx512_is_for_x86_64;
#endif
