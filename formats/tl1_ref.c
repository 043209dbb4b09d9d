/* SPDX-License-Identifier: MIT
 * The independent reader of TL1: the index formula of tl1.md, written down without a look at the
 * packer, so that a proof through it is a proof. */
#include "formats/tl1_ref.h"

/* The byte of four columns of a row. */
static uint8_t byte_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                       uint64_t col)
{
    const uint64_t BM = shape->tile[0], BK = shape->tile[1], bm = shape->tile[2];
    const uint64_t by = 256 / bm;
    const uint64_t tm = row / BM, tk = col / BK;
    const uint64_t rb = row % BM / bm, cb = col % BK / by;
    const uint64_t g = row % bm / 16, q = col % by / 4, l = row % 16;
    uint64_t index = tm;
    index = index * (shape->cols / BK) + tk;
    index = index * (BM / bm) + rb;
    index = index * (BK / by) + cb;
    index = index * (bm / 16) + g;
    index = index * (by / 4) + q;
    index = index * 16 + l;
    return packed[index];
}

static int trit_of(uint8_t byte, uint64_t col)
{
    const int code = col % 4 < 2 ? byte >> 4 : byte & 15;
    if (code > 8) return BC_TRIT_ILLEGAL;
    return (col % 2 == 0 ? code / 3 : code % 3) - 1;
}

int bc_tl1_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                   uint64_t row, uint64_t col)
{
    (void)slice; /* there is one */
    return trit_of(byte_at(shape, packed, row, col), col);
}

void bc_tl1_trits_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t first,
                     uint64_t n, int8_t *trits)
{
    uint64_t row = first / shape->cols, col = first % shape->cols;
    uint8_t byte = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (i == 0 || col % 4 == 0) byte = byte_at(shape, packed, row, col);
        trits[i] = (int8_t)trit_of(byte, col);
        if (++col < shape->cols) continue;
        col = 0;
        row++;
    }
}
