/* SPDX-License-Identifier: MIT
 * The independent readers of BITCOS: the index formula of bitcos.md, written down without a look at
 * the packer, so that a proof through them is a proof. */
#include "formats/bitcos_ref.h"

#include "base/bytes.h"

struct regions {
    const uint8_t *bitmap, *ranks, *signs;
    uint64_t n_nonzero;
};

static struct regions regions_of(const struct bc_pack_shape *shape, const uint8_t *packed)
{
    const uint64_t words = shape->n / 64 + (shape->n % 64 != 0);
    const uint64_t superblocks = shape->n / 4096 + (shape->n % 4096 != 0);
    const uint64_t scales = shape->slices == 1 ? 0 : (shape->slices + 1) / 2 * 8;
    struct regions r;
    r.bitmap = packed + 64 + scales;
    r.ranks = r.bitmap + 8 * words;
    r.signs = r.ranks + (superblocks + 1) / 2 * 8;
    r.n_nonzero = bc_get_u64(packed + 48);
    return r;
}

static unsigned bit(const uint8_t *words, uint64_t index)
{
    return (unsigned)(bc_get_u64(words + index / 64 * 8) >> index % 64 & 1);
}

/* The trit of a non-zero weight before which there are `rank` others. */
static int sign_at(const struct regions *r, uint64_t rank)
{
    if (rank >= r->n_nonzero) return BC_TRIT_ILLEGAL; /* the ranks contradict the count */
    return 1 - 2 * (int)bit(r->signs, rank);
}

/* How many bits are 1: counts of pairs, of fours, of bytes, and their sum in the top byte. */
static uint64_t ones(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return word * UINT64_C(0x0101010101010101) >> 56;
}

/* Non-zero weights before weight i: the table's entry, and what stands between. */
static uint64_t rank_of(const struct regions *r, uint64_t i)
{
    uint64_t rank = bc_get_u32(r->ranks + i / 4096 * 4);
    for (uint64_t word = i / 4096 * 64; word < i / 64; word++)
        rank += ones(bc_get_u64(r->bitmap + 8 * word));
    const uint64_t below = (UINT64_C(1) << i % 64) - 1;
    return rank + ones(bc_get_u64(r->bitmap + i / 64 * 8) & below);
}

int bc_bitcos_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                      uint64_t row, uint64_t col)
{
    const struct regions r = regions_of(shape, packed);
    const uint64_t i = (slice * shape->rows + row) * shape->cols + col;
    return bit(r.bitmap, i) ? sign_at(&r, rank_of(&r, i)) : 0;
}

void bc_bitcos_trits_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t first,
                        uint64_t n, int8_t *trits)
{
    const struct regions r = regions_of(shape, packed);
    uint64_t rank = n == 0 ? 0 : rank_of(&r, first);
    for (uint64_t i = first; i < first + n; i++) {
        if (i % 4096 == 0) rank = bc_get_u32(r.ranks + i / 4096 * 4);
        /* A product, not a choice: half of the choices would be predicted wrong. */
        const int present = (int)bit(r.bitmap, i);
        *trits++ = (int8_t)(present * sign_at(&r, rank));
        rank += (unsigned)present;
    }
}
