/* SPDX-License-Identifier: MIT
 * T5 in portable C: the definition, and a version with one multiplication per byte packed and a
 * table of 2 KB for unpacking. */
#include "quant/kernels_bitcos.h"

enum { TRITS = 5, HIGHEST = 242, ILLEGAL = 2 };

/* ---- the definition ---- */

void bc_scalar_t5_pack(const int8_t *src, size_t n, uint8_t *dst)
{
    for (size_t i = 0; i < n; i += TRITS) {
        unsigned byte = 0, place = 1;
        for (size_t j = i; j < i + TRITS; j++, place *= 3)
            byte += place * (unsigned)(j < n ? src[j] + 1 : 1);
        *dst++ = (uint8_t)byte;
    }
}

bool bc_scalar_t5_unpack(const uint8_t *src, size_t n, int8_t *dst)
{
    bool legal = true;
    for (size_t i = 0; i < n; i++) {
        static const unsigned place[TRITS] = {1, 3, 9, 27, 81};
        const unsigned byte = src[i / TRITS];
        if (byte > HIGHEST) legal = false;
        dst[i] = (int8_t)(byte > HIGHEST ? ILLEGAL : (int)(byte / place[i % TRITS] % 3) - 1);
    }
    return legal;
}

/* ---- packing by multiplication ---- */

/* Byte 4 of a product is the sum of the first factor's bytes 0 to 4, each times the second's byte 4
 * to 0, as with polynomials: so digit 0 meets 1, digit 1 meets 3, and so on. The sums in the bytes
 * below it stay under 256, and nothing is carried into it. */
static const uint64_t weights = UINT64_C(0x0103091b51);

void bc_table_t5_pack(const int8_t *src, size_t n, uint8_t *dst)
{
    const uint64_t ones = UINT64_C(0x0101010101), threes = UINT64_C(0x0303030303);
    for (; n >= 8; n -= TRITS, src += TRITS) {
        /* Eight bytes are read and five used. The low two bits of -1, 0, +1 are 3, 0, 1: one more,
         * modulo 4, is the digit. */
        const uint64_t trits = bc_get_u64((const uint8_t *)src);
        const uint64_t digits = ((trits & threes) + ones) & threes;
        *dst++ = (uint8_t)(digits * weights >> 32);
    }
    bc_scalar_t5_pack(src, n, dst);
}

/* ---- unpacking by table ---- */

/* Only constant expressions may initialise a constant table, so these are macros. Entry b, byte i:
 * trit i of a byte b, or the mark of an illegal code. Byte 0 is the lowest. */
#define TRIT(b, place, i)                                                                          \
    (((b) > HIGHEST ? UINT64_C(2) : ((b) / (place) % 3 + UINT64_C(255)) & 255) << 8 * (i))
#define ENTRY(b)      (TRIT(b, 1, 0) | TRIT(b, 3, 1) | TRIT(b, 9, 2) | TRIT(b, 27, 3) | TRIT(b, 81, 4))
#define ENTRIES_4(b)  ENTRY(b), ENTRY(b + 1), ENTRY(b + 2), ENTRY(b + 3)
#define ENTRIES_16(b) ENTRIES_4(b), ENTRIES_4(b + 4), ENTRIES_4(b + 8), ENTRIES_4(b + 12)
#define ENTRIES_64(b) ENTRIES_16(b), ENTRIES_16(b + 16), ENTRIES_16(b + 32), ENTRIES_16(b + 48)

static const uint64_t trits_of_byte[256] = {ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128),
                                            ENTRIES_64(192)};

bool bc_table_t5_unpack(const uint8_t *src, size_t n, int8_t *dst)
{
    unsigned highest = 0;
    /* Eight bytes are written and five kept: the next entry covers the upper three. */
    for (; n >= 8; n -= TRITS, dst += TRITS) {
        const unsigned byte = *src++;
        bc_put_u64((uint8_t *)dst, trits_of_byte[byte]);
        if (byte > highest) highest = byte;
    }
    const bool rest_legal = bc_scalar_t5_unpack(src, n, dst);
    return rest_legal && highest <= HIGHEST;
}
