/* SPDX-License-Identifier: MIT
 * Dot products for x86-64 with AVX2: BITCOS and the blocks of stock llama.cpp's packs. */
#if defined(__x86_64__)

#include "base/bytes.h"
#include "quant/kernels_bitcos.h"
#include "quant/kernels_dot.h"
#include "quant/kernels_dot_avx2.h"

AVX2_DOT void bc_avx2_block_sums(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums)
{
    for (size_t b = 0; b < n_blocks; b++)
        sums[b] = bc_avx2_sum_i8(x + b * block, block);
}

/* ---- bits ---- */

/* `value` in byte i where bit i is set, of 32 bits that stand in every 32-bit lane. */
AVX2_DOT static inline __m256i spread(__m256i bits, __m256i value)
{
    const __m256i byte_of =
        _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, /* of the 128-bit half */
                         2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit_of = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i bytes = _mm256_shuffle_epi8(bits, byte_of);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of);
    return _mm256_and_si256(set, value);
}

/* -1 in byte i where bit i is set, of 64 bits that stand in every 64-bit lane: the lower 32. */
AVX2_DOT static inline __m256i spread_at(__m256i bits, __m256i byte_of)
{
    const __m256i bit_of = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i bytes = _mm256_shuffle_epi8(bits, byte_of);
    return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of);
}

AVX2_DOT static inline __m256i low_bytes(void)
{
    return _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, /* of 128 bits */
                            2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
}

AVX2_DOT static inline __m256i high_bytes(void)
{
    return _mm256_add_epi8(low_bytes(), _mm256_set1_epi8(4));
}

/* 32 trits, by their masks, times activations + 128, which are not negative: a pair is at most 510
 * in magnitude. */
AVX2_DOT static inline __m256i add_trits(__m256i pairs, __m256i present, __m256i negative,
                                         const int8_t *x)
{
    const __m256i raised = _mm256_xor_si256(bc_load_32(x), _mm256_set1_epi8(-128));
    const __m256i trits = _mm256_sub_epi8(_mm256_add_epi8(negative, negative), present);
    return _mm256_add_epi16(pairs, _mm256_maddubs_epi16(raised, trits));
}

/* Where a product of bits has got to. */
struct bits {
    const uint8_t *bitmap, *signs;
    uint64_t n_signs, rank, n_negative;
};

/* The 64 signs from rank on, of which all exist, and one more. */
AVX2_DOT static inline uint64_t signs_inside(const struct bits *b)
{
    const uint8_t *p = b->signs + b->rank / 8;
    const unsigned shift = (unsigned)(b->rank % 8);
    return bc_get_u64(p) >> shift | (uint64_t)p[8] << 1 << (63 - shift);
}

/* n_words <= BC_DOT_FLUSH / 2 times 64 weights. */
AVX2_DOT static inline __m256i bitcos_words(struct bits *at, size_t n_words, bool inside,
                                            const int8_t *x)
{
    const __m256i low = low_bytes(), high = high_bytes();
    __m256i pairs = _mm256_setzero_si256();
    struct bits b = *at;
    for (size_t i = 0; i < n_words; i++, x += 64) {
        const uint64_t presence = bc_get_u64(b.bitmap + 8 * i);
        const uint64_t window =
            inside ? signs_inside(&b) : bc_sign_window(b.signs, b.n_signs, b.rank);
        const uint64_t negative = _pdep_u64(window, presence);
        const __m256i present = _mm256_set1_epi64x((long long)presence);
        const __m256i minus = _mm256_set1_epi64x((long long)negative);
        pairs = add_trits(pairs, spread_at(present, low), spread_at(minus, low), x);
        pairs = add_trits(pairs, spread_at(present, high), spread_at(minus, high), x + 32);
        b.rank += (uint64_t)_mm_popcnt_u64(presence);
        b.n_negative += (uint64_t)_mm_popcnt_u64(negative);
    }
    b.bitmap += 8 * n_words;
    *at = b;
    return pairs;
}

/* The sum of the trits, times 128, is what raising the activations has added. */
AVX2_DOT uint64_t bc_avx2_bitcos_dot(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                     uint64_t n_signs, uint64_t rank, const int8_t *x, int32_t *dot)
{
    enum { WORDS = BC_DOT_FLUSH / 2 };
    struct bits b = {bitmap, signs, n_signs, rank, 0};
    __m256i sum = _mm256_setzero_si256();
    for (size_t left = n / 64, words; left > 0; left -= words, x += 64 * words) {
        words = left < WORDS ? left : WORDS;
        const bool inside = b.rank < n_signs && n_signs - b.rank > 64 * (words + 1);
        sum = bc_flush(sum, inside ? bitcos_words(&b, words, true, x)
                                   : bitcos_words(&b, words, false, x));
    }
    const int64_t trits = (int64_t)(b.rank - rank) - 2 * (int64_t)b.n_negative;
    *dot += bc_sum_of_8(sum) - 128 * (int32_t)trits;
    return bc_scalar_bitcos_dot(b.bitmap, n % 64, signs, n_signs, b.rank, x, dot);
}

/* ---- blocks ---- */

enum { TQ1_0_BYTES = 54, TQ2_0_BYTES = 66, Q2_0_BYTES = 18, Q1_0_BYTES = 18 };

/* Eight partial sums of a block's codes, of a pack with blocks of 128 or 256 values. */
typedef __m256i (*block_kernel)(const uint8_t *block, const int8_t *x);

/* Four blocks at once, since folding four vectors costs little more than folding one. */
AVX2_DOT static inline void each_block(block_kernel kernel, const uint8_t *blocks, size_t n_blocks,
                                       size_t block_bytes, const int8_t *x, size_t block,
                                       int32_t *dots)
{
    for (; n_blocks >= 4; n_blocks -= 4, blocks += 4 * block_bytes, x += 4 * block, dots += 4) {
        const __m256i a = kernel(blocks, x), b = kernel(blocks + block_bytes, x + block);
        const __m256i c = kernel(blocks + 2 * block_bytes, x + 2 * block);
        const __m256i d = kernel(blocks + 3 * block_bytes, x + 3 * block);
        bc_store_16(dots, bc_sums_of_4(a, b, c, d));
    }
    for (; n_blocks > 0; n_blocks--, blocks += block_bytes, x += block)
        *dots++ = bc_sum_of_8(kernel(blocks, x));
}

AVX2_DOT static inline __m256i plane(__m256i bytes, int shift)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, shift), _mm256_set1_epi8(3));
}

AVX2_DOT static inline __m256i tq2_0_half(__m256i pairs, const uint8_t *bytes, const int8_t *x)
{
    const __m256i codes = bc_load_32(bytes);
    pairs = bc_add_pairs(pairs, plane(codes, 0), x);
    pairs = bc_add_pairs(pairs, plane(codes, 2), x + 32);
    pairs = bc_add_pairs(pairs, plane(codes, 4), x + 64);
    return bc_add_pairs(pairs, plane(codes, 6), x + 96);
}

AVX2_DOT static inline __m256i tq2_0_block(const uint8_t *block, const int8_t *x)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = tq2_0_half(zero, block, x), high = tq2_0_half(zero, block + 32, x + 128);
    return bc_flush(zero, _mm256_add_epi16(low, high));
}

AVX2_DOT void bc_avx2_tq2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x,
                                  int32_t *dots)
{
    each_block(tq2_0_block, blocks, n_blocks, TQ2_0_BYTES, x, 256, dots);
}

AVX2_DOT static inline __m256i q1_0_block(const uint8_t *block, const int8_t *x)
{
    const __m256i two = _mm256_set1_epi8(2);
    __m256i pairs = _mm256_setzero_si256();
    for (size_t i = 0; i < 4; i++) {
        const __m256i bits = _mm256_set1_epi32((int)bc_get_u32(block + 2 + 4 * i));
        pairs = bc_add_pairs(pairs, spread(bits, two), x + 32 * i);
    }
    return bc_flush(_mm256_setzero_si256(), pairs);
}

AVX2_DOT void bc_avx2_q1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x,
                                 int32_t *dots)
{
    each_block(q1_0_block, blocks, n_blocks, Q1_0_BYTES, x, 128, dots);
}

/* 32 codes in order from eight bytes that stand in both halves. Four copies of each byte; those
 * for the upper two codes come from the byte's upper half. What is kept of them is code, 4 * code,
 * and a look-up divides again. */
AVX2_DOT static inline __m256i codes_in_order(__m256i bytes_twice)
{
    const __m256i copies = _mm256_setr_epi8(0, 0, 8, 8, 1, 1, 9, 9, 2, 2, 10, 10, 3, 3, 11, 11, 4,
                                            4, 12, 12, 5, 5, 13, 13, 6, 6, 14, 14, 7, 7, 15, 15);
    const __m256i fields = _mm256_set1_epi16(0x0c03);
    const __m256i divided = _mm256_setr_epi8(0, 1, 2, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 1,
                                             2, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0);
    const __m256i kept = _mm256_and_si256(_mm256_shuffle_epi8(bytes_twice, copies), fields);
    return _mm256_shuffle_epi8(divided, kept);
}

/* The eight bytes, and behind them their upper halves, in both halves of the vector. */
AVX2_DOT static inline __m256i bytes_and_halves(uint64_t bytes)
{
    const uint64_t halves = bytes >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return _mm256_broadcastsi128_si256(_mm_set_epi64x((long long)halves, (long long)bytes));
}

AVX2_DOT static inline __m256i q2_0_block(const uint8_t *block, const int8_t *x)
{
    const __m256i low = codes_in_order(bytes_and_halves(bc_get_u64(block + 2)));
    const __m256i high = codes_in_order(bytes_and_halves(bc_get_u64(block + 10)));
    const __m256i pairs = bc_add_pairs(_mm256_setzero_si256(), low, x);
    return bc_flush(_mm256_setzero_si256(), bc_add_pairs(pairs, high, x + 32));
}

AVX2_DOT void bc_avx2_q2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x,
                                 int32_t *dots)
{
    each_block(q2_0_block, blocks, n_blocks, Q2_0_BYTES, x, 64, dots);
}

/* Bytes are fractions of 256 here, 128 less so that comparisons with a sign order them: the next
 * digit is how many thirds they reach, and three times the byte, modulo 256, goes on (128 * 3 is
 * 128 again). */
AVX2_DOT static inline __m256i first_digit(__m256i fractions)
{
    const __m256i one = _mm256_cmpgt_epi8(fractions, _mm256_set1_epi8(85 - 128));
    const __m256i two = _mm256_cmpgt_epi8(fractions, _mm256_set1_epi8(170 - 128));
    return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(one, two));
}

AVX2_DOT static inline __m256i three_times(__m256i v)
{
    return _mm256_add_epi8(_mm256_add_epi8(v, v), v);
}

/* 16 bytes of five digits: the first digits in the low half of the first vector, the second ones in
 * its high half, and so on; a half is left for the four bytes at the end, which give 16 digits. */
AVX2_DOT static inline __m256i tq1_0_rest(const uint8_t *bytes, const int8_t *x)
{
    const __m256i top = _mm256_set1_epi8(-128);
    const __m128i places = _mm_setr_epi16(1, 1, 1, 1, 3, 3, 3, 3), nine = _mm_set1_epi16(9);
    const __m128i f0 = bc_load_16(bytes), f1 = _mm_add_epi8(_mm_add_epi8(f0, f0), f0);
    const __m128i f2 = _mm_add_epi8(_mm_add_epi8(f1, f1), f1);
    const __m128i f3 = _mm_add_epi8(_mm_add_epi8(f2, f2), f2);
    const __m128i f4 = _mm_add_epi8(_mm_add_epi8(f3, f3), f3);
    const __m128i wide = _mm_cvtepu8_epi16(_mm_set1_epi32((int)bc_get_u32(bytes + 16)));
    const __m128i low_bytes = _mm_set1_epi16(0xff);
    const __m128i last_01 = _mm_and_si128(_mm_mullo_epi16(wide, places), low_bytes);
    const __m128i last_23 = _mm_and_si128(_mm_mullo_epi16(last_01, nine), low_bytes);
    const __m128i last = _mm_packus_epi16(last_01, last_23);
    __m256i pairs = _mm256_setzero_si256();
    pairs = bc_add_pairs(pairs, first_digit(_mm256_xor_si256(_mm256_set_m128i(f1, f0), top)), x);
    pairs =
        bc_add_pairs(pairs, first_digit(_mm256_xor_si256(_mm256_set_m128i(f3, f2), top)), x + 32);
    return bc_add_pairs(pairs, first_digit(_mm256_xor_si256(_mm256_set_m128i(last, f4), top)),
                        x + 64);
}

AVX2_DOT static inline __m256i tq1_0_block(const uint8_t *block, const int8_t *x)
{
    __m256i fractions = _mm256_xor_si256(bc_load_32(block), _mm256_set1_epi8(-128));
    __m256i pairs = tq1_0_rest(block + 32, x + 160);
    for (size_t t = 0; t < 5; t++, fractions = three_times(fractions))
        pairs = bc_add_pairs(pairs, first_digit(fractions), x + 32 * t);
    return bc_flush(_mm256_setzero_si256(), pairs);
}

AVX2_DOT void bc_avx2_tq1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x,
                                  int32_t *dots)
{
    each_block(tq1_0_block, blocks, n_blocks, TQ1_0_BYTES, x, 256, dots);
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_dot_packs_avx2_is_for_x86_64;
#endif
