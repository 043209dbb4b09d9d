/* SPDX-License-Identifier: MIT
 * The independent reader of TL2: the index formulas of tl2.md, written down without a look at the
 * packer, so that a proof through them is a proof. */
#include "formats/tl2_ref.h"

#include "base/bytes.h"

enum { ILLEGAL_CODE = 99 };

/* Place of a row among the 32 of its block in sections A and C: the middle quarters change places.
 */
static uint64_t slot_of(uint64_t row)
{
    static const uint64_t quarters[4] = {0, 16, 8, 24};
    return quarters[row % 32 / 8] + row % 8;
}

/* Section C: the pair of columns that `col`, counted from the first one in pairs, belongs to. */
static int pair_at(const struct bc_pack_shape *shape, const uint8_t *pairs, uint64_t row,
                   uint64_t col)
{
    const uint64_t BM = shape->tile[0];
    const uint64_t tiles = shape->cols % shape->tile[1] / 32;
    uint64_t index = row / BM;
    index = index * tiles + col / 32;
    index = index * (BM / 32) + row % BM / 32;
    index = index * 8 + col % 32 / 4;
    index = index * 32 + slot_of(row);
    const int code = col % 4 < 2 ? pairs[index] >> 4 : pairs[index] & 15;
    return code > 8 ? ILLEGAL_CODE : code;
}

/* Sections A and B: the triple of columns that `col` belongs to, 9a + 3b + c. */
static int triple_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                     uint64_t col)
{
    const uint64_t BM = shape->tile[0], BK = shape->tile[1];
    const uint64_t tiles = shape->cols / BK;
    const uint64_t block = (row / BM * tiles + col / BK) * (BM / 32) + row % BM / 32;
    const uint64_t in_tile = col % BK;

    const uint8_t byte = packed[(block * (BK / 6) + in_tile / 6) * 32 + slot_of(row)];
    const int magnitude = in_tile % 6 < 3 ? byte >> 4 : byte & 15;

    const uint8_t *const signs = packed + tiles * BK * shape->rows / 6;
    const uint64_t word = (block * (BK / 24) + in_tile / 24) * 16 + row % 16;
    const uint64_t j = in_tile % 24 / 3;
    const uint64_t bit = (row % 32 < 16 ? 15 : 14) - 2 * j;
    const int negative = bc_get_u16(signs + 2 * word) >> bit & 1;

    if (magnitude > 13 || (magnitude == 0 && negative)) return ILLEGAL_CODE;
    return negative ? -magnitude : magnitude;
}

/* The code of the pair or triple at a place. */
static int code_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                   uint64_t col, uint64_t three_cols)
{
    const uint64_t triple_bytes = three_cols * shape->rows / 6 + three_cols * shape->rows / 24;
    if (col < three_cols) return triple_at(shape, packed, row, col);
    return pair_at(shape, packed + triple_bytes, row, col - three_cols);
}

/* A pair's trits are the two digits of 3a + b + 4 in base three less one each, a triple's the three
 * of 9a + 3b + c + 13. */
static int trit_of(int code, uint64_t col, uint64_t three_cols)
{
    static const int weights[3] = {9, 3, 1};
    if (code == ILLEGAL_CODE) return BC_TRIT_ILLEGAL;
    if (col < three_cols) return (code + 13) / weights[col % 3] % 3 - 1;
    return ((col - three_cols) % 2 == 0 ? code / 3 : code % 3) - 1;
}

/* BK is a multiple of 24, so triples begin at multiples of 3 of the whole row. */
static uint64_t triple_columns(const struct bc_pack_shape *shape)
{
    return shape->cols / shape->tile[1] * shape->tile[1];
}

int bc_tl2_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                   uint64_t row, uint64_t col)
{
    const uint64_t three_cols = triple_columns(shape);
    (void)slice; /* there is one */
    return trit_of(code_at(shape, packed, row, col, three_cols), col, three_cols);
}

void bc_tl2_trits_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t first,
                     uint64_t n, int8_t *trits)
{
    const uint64_t three_cols = triple_columns(shape);
    uint64_t row = first / shape->cols, col = first % shape->cols;
    int code = 0;
    for (uint64_t i = 0; i < n; i++) {
        const bool begins = col < three_cols ? col % 3 == 0 : (col - three_cols) % 2 == 0;
        if (i == 0 || begins) code = code_at(shape, packed, row, col, three_cols);
        trits[i] = (int8_t)trit_of(code, col, three_cols);
        if (++col < shape->cols) continue;
        col = 0;
        row++;
    }
}
