/* SPDX-License-Identifier: MIT
 * BITCOS in portable C: the definition, and a version that takes eight weights at once through a
 * table of 2 KB.
 *
 * The table turns compaction and expansion into logic on the eight bytes of a word. A byte p of the
 * bitmap selects an entry whose byte i is the one-bit mask of weight i's sign within the next
 * signs, or 0. And-ed with eight copies of those signs it says which weights are negative; and the
 * other way round, the masks of the negative weights, summed up, are their compacted signs. */
#include "quant/kernels_bitcos.h"

#define BYTES_01 UINT64_C(0x0101010101010101)
#define BYTES_7F UINT64_C(0x7f7f7f7f7f7f7f7f)

/* ---- the definition ---- */

uint64_t bc_scalar_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                               size_t n_words, uint64_t rank)
{
    memset(bitmap, 0, (n + 63) / 64 * 8);
    if (rank / 64 < n_words) { /* bits that an earlier call has not written yet are 0 */
        const uint64_t used = (UINT64_C(1) << rank % 64) - 1;
        uint8_t *word = signs + rank / 64 * 8;
        bc_put_u64(word, rank % 64 == 0 ? 0 : bc_get_u64(word) & used);
    }
    for (size_t i = 0; i < n; i++) {
        if (src[i] == 0) continue;
        bitmap[i / 8] |= (uint8_t)(1u << i % 8);
        if (src[i] < 0 && rank / 64 < n_words) signs[rank / 8] |= (uint8_t)(1u << rank % 8);
        rank++;
        if (rank % 64 == 0 && rank / 64 < n_words) bc_put_u64(signs + rank / 8, 0);
    }
    return rank;
}

uint64_t bc_scalar_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                 uint64_t n_signs, uint64_t rank, int8_t *dst)
{
    for (size_t i = 0; i < n; i++) {
        dst[i] = 0;
        if ((bitmap[i / 8] >> i % 8 & 1) == 0) continue;
        if (rank < n_signs)
            dst[i] = (signs[rank / 8] >> rank % 8 & 1) != 0 ? -1 : 1;
        else
            dst[i] = 2;
        rank++;
    }
    return rank;
}

/* ---- the table ---- */

/* Only constant expressions may initialise a constant table, so these are macros. RANK: the bits of
 * p below bit i. */
#define BIT(p, i) ((uint64_t)((p) >> (i)&1))
#define RANK(p, i)                                                                                 \
    (((i) > 0) * BIT(p, 0) + ((i) > 1) * BIT(p, 1) + ((i) > 2) * BIT(p, 2) +                       \
     ((i) > 3) * BIT(p, 3) + ((i) > 4) * BIT(p, 4) + ((i) > 5) * BIT(p, 5) +                       \
     ((i) > 6) * BIT(p, 6))
#define MASK(p, i) (BIT(p, i) << (8 * (i) + RANK(p, i)))
#define ENTRY(p)                                                                                   \
    (MASK(p, 0) | MASK(p, 1) | MASK(p, 2) | MASK(p, 3) | MASK(p, 4) | MASK(p, 5) | MASK(p, 6) |    \
     MASK(p, 7))
#define ENTRIES_4(p)  ENTRY(p), ENTRY(p + 1), ENTRY(p + 2), ENTRY(p + 3)
#define ENTRIES_16(p) ENTRIES_4(p), ENTRIES_4(p + 4), ENTRIES_4(p + 8), ENTRIES_4(p + 12)
#define ENTRIES_64(p) ENTRIES_16(p), ENTRIES_16(p + 16), ENTRIES_16(p + 32), ENTRIES_16(p + 48)

const uint64_t bc_bitcos_sign_masks[256] = {ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128),
                                            ENTRIES_64(192)};

/* ---- eight weights at once ---- */

/* 1 in each byte that is not 0. */
static inline uint64_t nonzero_bytes(uint64_t x)
{
    return (((x & BYTES_7F) + BYTES_7F) | x) >> 7 & BYTES_01;
}

/* The sum of eight bytes; it is below 256. */
static inline unsigned sum_of_bytes(uint64_t x)
{
    return (unsigned)(x * BYTES_01 >> 56);
}

/* Bit i from byte i, each of which is 0 or 1. */
static inline unsigned gather_bits(uint64_t bytes)
{
    return (unsigned)(bytes * UINT64_C(0x0102040810204080) >> 56);
}

static inline uint64_t pack_word(const int8_t *src, struct bc_sign_sink *sink)
{
    uint64_t presence = 0, signs = 0;
    unsigned n_signs = 0;
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t x = bc_get_u64((const uint8_t *)src + 8 * i);
        const uint64_t present = nonzero_bytes(x);
        const uint64_t negative = (x >> 7 & BYTES_01) * 0xff;
        const unsigned p = gather_bits(present);
        presence |= (uint64_t)p << 8 * i;
        signs |= (uint64_t)sum_of_bytes(bc_bitcos_sign_masks[p] & negative) << n_signs;
        n_signs += sum_of_bytes(present);
    }
    bc_sign_sink_append(sink, signs, n_signs);
    return presence;
}

uint64_t bc_table_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                              size_t n_words, uint64_t rank)
{
    struct bc_sign_sink sink = bc_sign_sink_open(signs, n_words, rank);
    for (; n >= 64; n -= 64, src += 64, bitmap += 8)
        bc_put_u64(bitmap, pack_word(src, &sink));
    bc_sign_sink_flush(&sink);
    return bc_scalar_bitcos_pack(src, n, bitmap, signs, n_words, sink.rank);
}

static inline void unpack_word(uint64_t presence, uint64_t signs, int8_t *dst)
{
    for (unsigned i = 0; i < 8; i++, presence >>= 8) {
        const uint64_t masks = bc_bitcos_sign_masks[presence & 0xff];
        const uint64_t present = nonzero_bytes(masks);
        const uint64_t negative = nonzero_bytes(masks & (signs & 0xff) * BYTES_01);
        bc_put_u64((uint8_t *)dst + 8 * i, present + negative * 0xfe); /* 1 + 254 is -1 */
        signs >>= sum_of_bytes(present);
    }
}

uint64_t bc_table_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                uint64_t n_signs, uint64_t rank, int8_t *dst)
{
    for (; n >= 64; n -= 64, bitmap += 8, dst += 64) {
        const uint64_t presence = bc_get_u64(bitmap);
        const unsigned count = bc_count_ones(presence);
        if (rank + count > n_signs) break;
        unpack_word(presence, bc_sign_window(signs, n_signs, rank), dst);
        rank += count;
    }
    return bc_scalar_bitcos_unpack(bitmap, n, signs, n_signs, rank, dst);
}
