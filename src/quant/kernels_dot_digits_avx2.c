/* SPDX-License-Identifier: MIT
 * Dot products for x86-64 with AVX2: look-up tables of TL1 and TL2 in vector registers, where one
 * shuffle looks up 16 rows, and the digits of T5. */
#if defined(__x86_64__)

#include <string.h>

#include "quant/kernels_dot.h"
#include "quant/kernels_dot_avx2.h"

/* ---- T5 ---- */

/* What T5's bytes b are as fractions of 256, b / 243 rounded up or a little more: b + 1 + 13 b / 243
 * rounded down. 128 less, so that comparisons with a sign order them. 13 / 243 is 3506 / 65536. */
AVX2_DOT static inline __m256i fractions_of(__m256i bytes)
{
    const __m256i factor = _mm256_set1_epi16(3506);
    const __m256i even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff));
    const __m256i odd = _mm256_srli_epi16(bytes, 8);
    const __m256i more = _mm256_or_si256(_mm256_mulhi_epu16(even, factor),
                                         _mm256_slli_epi16(_mm256_mulhi_epu16(odd, factor), 8));
    return _mm256_add_epi8(_mm256_add_epi8(bytes, more), _mm256_set1_epi8(1 - 128));
}

/* The highest digit is how many thirds the fraction reaches. */
AVX2_DOT static inline __m256i first_digit(__m256i fractions)
{
    const __m256i one = _mm256_cmpgt_epi8(fractions, _mm256_set1_epi8(85 - 128));
    const __m256i two = _mm256_cmpgt_epi8(fractions, _mm256_set1_epi8(170 - 128));
    return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(one, two));
}

/* 32 bytes: their highest digits are the last plane's. */
AVX2_DOT static inline __m256i add_digits(__m256i pairs, __m256i bytes,
                                          const int8_t *const planes[5], size_t m)
{
    __m256i fractions = fractions_of(bytes);
    for (size_t t = 5; t-- > 0;) {
        pairs = bc_add_pairs(pairs, first_digit(fractions), planes[t] + m);
        fractions = _mm256_add_epi8(_mm256_add_epi8(fractions, fractions), fractions);
    }
    return pairs;
}

AVX2_DOT int32_t bc_avx2_t5_codes(const uint8_t *bytes, size_t n_bytes,
                                  const int8_t *const planes[5])
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i sum = zero;
    size_t m = 0;
    while (m + 32 <= n_bytes) {
        __m256i pairs = zero;
        for (size_t step = 0; step < BC_DOT_FLUSH / 5 && m + 32 <= n_bytes; step++, m += 32)
            pairs = add_digits(pairs, bc_load_32(bytes + m), planes, m);
        sum = bc_flush(sum, pairs);
    }
    if (m < n_bytes) {
        uint8_t rest[32] = {0}; /* digits 0 */
        memcpy(rest, bytes + m, n_bytes - m);
        sum = bc_flush(sum, add_digits(zero, bc_load_32(rest), planes, m));
    }
    return bc_sum_of_8(sum);
}

/* ---- tables ---- */

/* The low bytes of 16 entries each, and their high bytes: a in the low half, b in the high one. */
AVX2_DOT static inline __m256i low_bytes(__m256i a, __m256i b)
{
    const __m256i mask = _mm256_set1_epi16(0xff);
    const __m256i packed =
        _mm256_packus_epi16(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
    return _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0));
}

AVX2_DOT static inline __m256i high_bytes(__m256i a, __m256i b)
{
    return low_bytes(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
}

AVX2_DOT static inline __m256i times(__m256i trits, int8_t x)
{
    return _mm256_sign_epi16(_mm256_set1_epi16(x), trits);
}

AVX2_DOT static inline __m256i pair_table(const int8_t *x)
{
    const __m256i a = _mm256_setr_epi16(-1, -1, -1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0);
    const __m256i b = _mm256_setr_epi16(-1, 0, 1, -1, 0, 1, -1, 0, 1, 0, 0, 0, 0, 0, 0, 0);
    return _mm256_add_epi16(times(a, x[0]), times(b, x[1]));
}

AVX2_DOT void bc_avx2_pair_tables(const int8_t *x, size_t n_quads, uint8_t *tables)
{
    for (; n_quads > 0; n_quads--, x += 4, tables += BC_PAIR_TABLE) {
        const __m256i first = pair_table(x), second = pair_table(x + 2);
        bc_store_32(tables, low_bytes(first, second));
        bc_store_32(tables + 32, high_bytes(first, second));
    }
}

AVX2_DOT static inline __m256i triple_table(const int8_t *x)
{
    const __m256i a = _mm256_setr_epi16(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0);
    const __m256i b = _mm256_setr_epi16(0, 0, 1, 1, 1, -1, -1, -1, 0, 0, 0, 1, 1, 1, 0, 0);
    const __m256i c = _mm256_setr_epi16(0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, 0, 0);
    return _mm256_add_epi16(_mm256_add_epi16(times(a, x[0]), times(b, x[1])), times(c, x[2]));
}

AVX2_DOT void bc_avx2_triple_tables(const int8_t *x, size_t n_triples, uint8_t *tables)
{
    size_t i = 0;
    for (; i + 2 <= n_triples; i += 2, x += 6, tables += 2 * BC_TRIPLE_TABLE) {
        const __m256i first = triple_table(x), second = triple_table(x + 3);
        const __m256i low = low_bytes(first, second), high = high_bytes(first, second);
        bc_store_32(tables, _mm256_permute2x128_si256(low, high, 0x20));
        bc_store_32(tables + BC_TRIPLE_TABLE, _mm256_permute2x128_si256(low, high, 0x31));
    }
    bc_scalar_triple_tables(x, n_triples - i, tables);
}

/* ---- looking up ---- */

/* Rows 0 to 7 and 8 to 15 of a group in 16 bits; what has gathered in both halves of them counts. */
AVX2_DOT static inline void add_to_sums(__m256i rows, int32_t *sums)
{
    const __m256i wide = _mm256_add_epi32(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(rows)),
                                          _mm256_cvtepi16_epi32(_mm256_extracti128_si256(rows, 1)));
    bc_store_32(sums, _mm256_add_epi32(bc_load_32(sums), wide));
}

/* An entry is at most 256 in magnitude: 127 of them fit 16 bits. */
enum { PAIR_FLUSH = 127 };

AVX2_DOT void bc_avx2_pair_sums(const uint8_t *bytes, size_t stride, size_t n_quads,
                                const uint8_t *tables, size_t table_stride, int32_t sums[16])
{
    const __m256i nibbles = _mm256_set1_epi8(15), shifts = _mm256_setr_epi64x(4, 4, 0, 0);
    while (n_quads > 0) {
        size_t batch = n_quads < PAIR_FLUSH ? n_quads : PAIR_FLUSH;
        __m256i rows_0 = _mm256_setzero_si256(), rows_8 = rows_0;
        n_quads -= batch;
        for (; batch > 0; batch--, bytes += stride, tables += table_stride) {
            /* The first pair's nibbles in the low half, the second's in the high one. */
            const __m256i twice = _mm256_broadcastsi128_si256(bc_load_16(bytes));
            const __m256i codes = _mm256_and_si256(_mm256_srlv_epi64(twice, shifts), nibbles);
            const __m256i low = _mm256_shuffle_epi8(bc_load_32(tables), codes);
            const __m256i high = _mm256_shuffle_epi8(bc_load_32(tables + 32), codes);
            rows_0 = _mm256_add_epi16(rows_0, _mm256_unpacklo_epi8(low, high));
            rows_8 = _mm256_add_epi16(rows_8, _mm256_unpackhi_epi8(low, high));
        }
        add_to_sums(rows_0, sums);
        add_to_sums(rows_8, sums + 8);
    }
}

/* Rows 0 to 15 and 16 to 31 of a block in 16 bits. */
struct rows_32 {
    __m256i first, second;
};

/* One triple of 32 rows: its sign is in bit 15 of a row's word after shifting by `shift`, that of a
 * row 16 further down in the bit below it. Bit 0 keeps the word from being 0, which would make the
 * value 0. */
AVX2_DOT static inline struct rows_32 add_triple(struct rows_32 rows, __m256i codes,
                                                 const uint8_t *table, __m256i words, int shift)
{
    const __m256i low = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bc_load_16(table)), codes);
    const __m256i high =
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bc_load_16(table + 16)), codes);
    const __m256i one = _mm256_set1_epi16(1);
    const __m256i first_signs = _mm256_or_si256(_mm256_slli_epi16(words, shift), one);
    const __m256i second_signs = _mm256_or_si256(_mm256_slli_epi16(words, shift + 1), one);
    /* A negative word negates: the sign of a row set is 1. */
    const __m256i first = _mm256_sign_epi16(_mm256_unpacklo_epi8(low, high), first_signs);
    const __m256i second = _mm256_sign_epi16(_mm256_unpackhi_epi8(low, high), second_signs);
    rows.first = _mm256_add_epi16(rows.first, first);
    rows.second = _mm256_add_epi16(rows.second, second);
    return rows;
}

/* A group of 24 columns. */
AVX2_DOT static inline struct rows_32 add_group(struct rows_32 rows, const uint8_t *magnitudes,
                                                const uint8_t *signs, const uint8_t *tables)
{
    const __m256i words = bc_load_32(signs), nibbles = _mm256_set1_epi8(15);
    for (int i = 0; i < 4; i++, tables += 2 * BC_TRIPLE_TABLE) {
        const __m256i bytes = bc_load_32(magnitudes + 32 * i);
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibbles);
        const __m256i lower = _mm256_and_si256(bytes, nibbles);
        rows = add_triple(rows, upper, tables, words, 4 * i);
        rows = add_triple(rows, lower, tables + BC_TRIPLE_TABLE, words, 4 * i + 2);
    }
    return rows;
}

AVX2_DOT static inline void add_rows_in_order(__m256i rows, int32_t *sums)
{
    const __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(rows));
    const __m256i high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(rows, 1));
    bc_store_32(sums, _mm256_add_epi32(bc_load_32(sums), low));
    bc_store_32(sums + 8, _mm256_add_epi32(bc_load_32(sums + 8), high));
}

/* An entry is at most 384 in magnitude: 85 of them fit 16 bits, and ten groups have 80. */
enum { GROUP_FLUSH = 10 };

AVX2_DOT void bc_avx2_triple_sums(const uint8_t *magnitudes, const uint8_t *signs, size_t n_groups,
                                  const uint8_t *tables, int32_t sums[32])
{
    while (n_groups > 0) {
        size_t batch = n_groups < GROUP_FLUSH ? n_groups : GROUP_FLUSH;
        struct rows_32 rows = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        n_groups -= batch;
        for (; batch > 0; batch--, magnitudes += 128, signs += 32, tables += 8 * BC_TRIPLE_TABLE)
            rows = add_group(rows, magnitudes, signs, tables);
        add_rows_in_order(rows.first, sums);
        add_rows_in_order(rows.second, sums + 16);
    }
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_dot_digits_avx2_is_for_x86_64;
#endif
