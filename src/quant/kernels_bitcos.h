/* SPDX-License-Identifier: MIT
 * What the files of BITCOS and T5 kernels share: the scalar definitions, the table-driven versions,
 * each instruction set's own, and both ends of the stream of signs. */
#ifndef BC_QUANT_KERNELS_BITCOS_H
#define BC_QUANT_KERNELS_BITCOS_H

#include <string.h>

#include "base/bytes.h"
#include "quant/kernels.h"

/* Contracts: the members of struct bc_kernels with the same names. Scalar: trit by trit, the
 * definition. Table: eight or five trits at once in portable C through tables of 2 KB, which is
 * what a machine without a row of its own gets and what the vector rows do remainders with. */
uint64_t bc_scalar_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                               size_t n_words, uint64_t rank);
uint64_t bc_scalar_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                 uint64_t n_signs, uint64_t rank, int8_t *dst);
void bc_scalar_t5_pack(const int8_t *src, size_t n, uint8_t *dst);
bool bc_scalar_t5_unpack(const uint8_t *src, size_t n, int8_t *dst);

uint64_t bc_table_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                              size_t n_words, uint64_t rank);
uint64_t bc_table_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                uint64_t n_signs, uint64_t rank, int8_t *dst);
void bc_table_t5_pack(const int8_t *src, size_t n, uint8_t *dst);
bool bc_table_t5_unpack(const uint8_t *src, size_t n, int8_t *dst);

#if defined(__x86_64__)
uint64_t bc_avx2_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                             size_t n_words, uint64_t rank);
uint64_t bc_avx2_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                               uint64_t n_signs, uint64_t rank, int8_t *dst);
void bc_avx2_t5_pack(const int8_t *src, size_t n, uint8_t *dst);
uint64_t bc_avx512_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                               size_t n_words, uint64_t rank);
uint64_t bc_avx512_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                                 uint64_t n_signs, uint64_t rank, int8_t *dst);
#endif
#if defined(__AARCH64EL__)
uint64_t bc_neon_bitcos_pack(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                             size_t n_words, uint64_t rank);
uint64_t bc_neon_bitcos_unpack(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                               uint64_t n_signs, uint64_t rank, int8_t *dst);
#endif

/* Entry p, byte i: the place of weight i's sign among the signs of a byte p of the bitmap, as a
 * mask of one bit; 0 where bit i of p is 0. Byte 0 is the lowest. */
extern const uint64_t bc_bitcos_sign_masks[256];

/* ---- the stream of signs, for everyone but the definition ---- */

/* The word under construction while signs are appended. */
struct bc_sign_sink {
    uint8_t *words;
    size_t n_words;
    uint64_t rank;    /* signs so far */
    uint64_t pending; /* word rank / 64, unused bits 0 */
};

static inline void bc_sign_sink_flush(const struct bc_sign_sink *s)
{
    const uint64_t word = s->rank / 64;
    if (word < s->n_words) bc_put_u64(s->words + 8 * word, s->pending);
}

static inline struct bc_sign_sink bc_sign_sink_open(uint8_t *words, size_t n_words, uint64_t rank)
{
    struct bc_sign_sink s = {words, n_words, rank, 0};
    const uint64_t used = (UINT64_C(1) << rank % 64) - 1;
    if (rank % 64 != 0 && rank / 64 < n_words) s.pending = bc_get_u64(words + rank / 64 * 8) & used;
    return s;
}

/* Appends the low `count` <= 64 bits; those above are 0. */
static inline void bc_sign_sink_append(struct bc_sign_sink *s, uint64_t bits, unsigned count)
{
    const unsigned fill = (unsigned)(s->rank % 64);
    s->pending |= bits << fill;
    if (fill + count >= 64) {
        bc_sign_sink_flush(s);
        s->pending = bits >> 1 >> (63 - fill); /* what did not fit: nothing for fill 0 */
    }
    s->rank += count;
}

/* The 64 signs from number `rank` on; those at and behind n_signs are not defined. */
static inline uint64_t bc_sign_window(const uint8_t *signs, uint64_t n_signs, uint64_t rank)
{
    const unsigned shift = (unsigned)(rank % 8);
    uint8_t bytes[9] = {0};
    const uint8_t *p = bytes;
    if (n_signs > 64 && rank < n_signs - 64) {
        p = signs + rank / 8; /* sign rank + 64 exists, so nine bytes do */
    } else if (rank < n_signs) {
        const uint64_t left = (n_signs + 7) / 8 - rank / 8;
        memcpy(bytes, signs + rank / 8, left < sizeof bytes ? (size_t)left : sizeof bytes);
    }
    return bc_get_u64(p) >> shift | (uint64_t)p[8] << 1 << (63 - shift);
}

#endif
