/* SPDX-License-Identifier: MIT
 * Rows of TL2's triples in portable C, by multiplication and tables: the definition. */
#include "quant/kernels_tl.h"

#include "base/bytes.h"

enum { GROUP = 24, TRIPLES = 8, BLOCK_ROWS = 32 };

/* Sign (bit 4) and magnitude (bits 3-0) of v - 13, v = 0 to 26. */
static const uint8_t signed_codes[32] = {0x1d, 0x1c, 0x1b, 0x1a, 0x19, 0x18, 0x17, 0x16, 0x15,
                                         0x14, 0x13, 0x12, 0x11, 0x00, 0x01, 0x02, 0x03, 0x04,
                                         0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d};

/* Eight trits as codes trit + 1 in the bytes of a word, the first in the lowest. */
static uint64_t codes_of(const int8_t *trits)
{
    const uint64_t threes = UINT64_C(0x0303030303030303), ones = UINT64_C(0x0101010101010101);
    return ((bc_get_u64((const uint8_t *)trits) & threes) + ones) & threes; /* nothing carries */
}

/* Eight triples: the bytes of their magnitudes, and the signs, the first one in bit 15 and then
 * every other bit. */
static unsigned encode_group(const int8_t trits[GROUP], uint8_t *magnitudes)
{
    unsigned signs = 0;
    for (unsigned i = 0; i < TRIPLES / 2; i++) {
        /* Codes x0 to x5; the product has 9 x0 + 3 x1 + x2 in byte 2 and 9 x3 + 3 x4 + x5 in byte
         * 5. The last load would reach two bytes beyond the group. */
        const uint64_t codes = i < 3 ? codes_of(trits + 6 * i) : codes_of(trits + 16) >> 16;
        const uint64_t product = codes * 0x090301u;
        const unsigned first = signed_codes[product >> 16 & 31];
        const unsigned second = signed_codes[product >> 40 & 31];
        magnitudes[BLOCK_ROWS * i] = (uint8_t)(first << 4 | (second & 15));
        signs |= (first >> 4) << (15 - 4 * i) | (second >> 4) << (13 - 4 * i);
    }
    return signs;
}

void bc_scalar_tl2_pack_row(const int8_t *trits, size_t n_groups, unsigned half,
                            uint8_t *magnitudes, uint8_t *words)
{
    for (; n_groups > 0; n_groups--, trits += GROUP, magnitudes += 4 * BLOCK_ROWS) {
        const unsigned signs = encode_group(trits, magnitudes);
        bc_put_u16(words, (uint16_t)(half == 0 ? signs : bc_get_u16(words) | signs >> 1));
        words += BLOCK_ROWS;
    }
}

/* The trits of a magnitude, and those of the same with the sign set. 14, 15 and -0 have none, which
 * the fourth value says. */
static const int8_t triples[32][4] = {
    {0, 0, 0},    {0, 0, 1},    {0, 1, -1},   {0, 1, 0},    {0, 1, 1},  {1, -1, -1}, {1, -1, 0},
    {1, -1, 1},   {1, 0, -1},   {1, 0, 0},    {1, 0, 1},    {1, 1, -1}, {1, 1, 0},   {1, 1, 1},
    {2, 2, 2, 1}, {2, 2, 2, 1}, {2, 2, 2, 1}, {0, 0, -1},   {0, -1, 1}, {0, -1, 0},  {0, -1, -1},
    {-1, 1, 1},   {-1, 1, 0},   {-1, 1, -1},  {-1, 0, 1},   {-1, 0, 0}, {-1, 0, -1}, {-1, -1, 1},
    {-1, -1, 0},  {-1, -1, -1}, {2, 2, 2, 1}, {2, 2, 2, 1},
};

bool bc_scalar_tl2_unpack_row(const uint8_t *magnitudes, const uint8_t *words, unsigned half,
                              size_t n_groups, int8_t *trits)
{
    const unsigned shift = half == 0 ? 3 : 4; /* the first sign to bit 18 */
    uint32_t seen = 0;
    for (; n_groups > 0; n_groups--, words += BLOCK_ROWS) {
        const unsigned signs = (unsigned)bc_get_u16(words) << shift;
        for (unsigned i = 0; i < TRIPLES / 2; i++, magnitudes += BLOCK_ROWS, trits += 6) {
            const unsigned first_code = (signs >> (14 - 4 * i) & 16) | *magnitudes >> 4;
            const unsigned second_code = (signs >> (12 - 4 * i) & 16) | (*magnitudes & 15);
            const uint32_t a = bc_get_u32((const uint8_t *)triples[first_code]);
            const uint32_t b = bc_get_u32((const uint8_t *)triples[second_code]);
            seen |= a | b;
            bc_put_u32((uint8_t *)trits, (a & 0xffffff) | b << 24);
            bc_put_u16((uint8_t *)trits + 4, (uint16_t)(b >> 8));
        }
    }
    return seen >> 24 == 0;
}
