/* SPDX-License-Identifier: MIT
 * Eight trits at once as the bytes of a 64-bit word, in plain C. Operations on single bytes do not
 * depend on the machine's byte order; those that gather or spread bits go through bytes.h. */
#ifndef BC_FORMATS_BYTE_LANES_H
#define BC_FORMATS_BYTE_LANES_H

#include <string.h>

#include "base/bytes.h"

#define BC_LANES_ONES UINT64_C(0x0101010101010101)
#define BC_LANES_TOPS UINT64_C(0x8080808080808080)

/* n <= 8 bytes in memory order; the rest of the word is 0. */
static inline uint64_t bc_lanes_load(const void *p, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, p, n);
    return word;
}

/* The inverse: the first n <= 8 bytes of the word. */
static inline void bc_lanes_store(void *p, uint64_t word, size_t n)
{
    memcpy(p, &word, n);
}

/* Trits to codes, 1 more in each byte. No byte may carry into the next: the top bits stay out of
 * the sum and are put back by the exclusive or. */
static inline uint64_t bc_lanes_codes(uint64_t trits)
{
    return ((trits & ~BC_LANES_TOPS) + BC_LANES_ONES) ^ (trits & BC_LANES_TOPS);
}

/* Codes (0..3) to trits, 1 less in each byte, without a borrow. */
static inline uint64_t bc_lanes_trits(uint64_t codes)
{
    return ((codes | BC_LANES_TOPS) - BC_LANES_ONES) ^ BC_LANES_TOPS;
}

/* The codes of eight trits, two bits each, in 16 bits, first one lowest. */
static inline uint16_t bc_pack_8_codes(const int8_t *trits)
{
    uint8_t bytes[8];
    memcpy(bytes, trits, sizeof bytes);
    uint64_t codes = bc_lanes_codes(bc_get_u64(bytes)) & 3 * BC_LANES_ONES;
    codes = (codes | codes >> 6) & UINT64_C(0x000f000f000f000f);
    codes = (codes | codes >> 12) & UINT64_C(0x000000ff000000ff);
    return (uint16_t)(codes | codes >> 24);
}

/* The inverse. Code 3 becomes 2, which is BC_TRIT_ILLEGAL. */
static inline void bc_unpack_8_codes(uint16_t codes, int8_t *trits)
{
    uint64_t word = codes;
    word = (word | word << 24) & UINT64_C(0x000000ff000000ff);
    word = (word | word << 12) & UINT64_C(0x000f000f000f000f);
    word = (word | word << 6) & 3 * BC_LANES_ONES;
    uint8_t bytes[8];
    bc_put_u64(bytes, bc_lanes_trits(word));
    memcpy(trits, bytes, sizeof bytes);
}

/* Bit 0 of each byte is 1 for a trit that is not negative: gathered in eight bits, first one
 * lowest. The product moves each of them to the top byte. */
static inline uint8_t bc_pack_8_signs(const int8_t *trits)
{
    uint8_t bytes[8];
    memcpy(bytes, trits, sizeof bytes);
    const uint64_t plus = ~bc_get_u64(bytes) >> 7 & BC_LANES_ONES;
    return (uint8_t)(plus * UINT64_C(0x0102040810204080) >> 56);
}

/* The inverse, to -1 and +1: byte i keeps bit i, which adding 0x7f moves to the top, and then
 * 0xff, or 0xff ^ 0xfe, is -1, or +1. */
static inline void bc_unpack_8_signs(uint8_t signs, int8_t *trits)
{
    const uint64_t bits = signs * BC_LANES_ONES & UINT64_C(0x8040201008040201);
    const uint64_t plus = (bits + ~BC_LANES_TOPS) >> 7 & BC_LANES_ONES;
    uint8_t bytes[8];
    bc_put_u64(bytes, ~(plus * 0xfe));
    memcpy(trits, bytes, sizeof bytes);
}

#endif
