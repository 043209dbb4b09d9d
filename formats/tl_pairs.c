/* SPDX-License-Identifier: MIT
 * The trits of every byte of two pairs, as a table of 2 KB. */
#include "formats/tl_blocks.h"

/* Only constant expressions may initialise a constant table, so these are macros. TRIT: that of a
 * digit, modulo 256. PAIR: of the number n = 3a + b + 4, a in the lower byte, or twice the mark of
 * an illegal code. */
#define TRIT(digit) (((digit) + UINT64_C(255)) & 255)
#define PAIR(n)     ((n) > 8 ? UINT64_C(0x0202) : TRIT((n) / 3) | TRIT((n) % 3) << 8)
/* The first pair is the upper half of byte b. Bit 32: one of them is illegal. */
#define ILLEGAL(b)    (((b) / 16 > 8) | ((b) % 16 > 8))
#define ENTRY(b)      (PAIR((b) / 16) | PAIR((b) % 16) << 16 | (uint64_t)ILLEGAL(b) << 32)
#define ENTRIES_4(b)  ENTRY(b), ENTRY(b + 1), ENTRY(b + 2), ENTRY(b + 3)
#define ENTRIES_16(b) ENTRIES_4(b), ENTRIES_4(b + 4), ENTRIES_4(b + 8), ENTRIES_4(b + 12)
#define ENTRIES_64(b) ENTRIES_16(b), ENTRIES_16(b + 16), ENTRIES_16(b + 32), ENTRIES_16(b + 48)

const uint64_t bc_tl_trits_of_byte[256] = {ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128),
                                           ENTRIES_64(192)};
