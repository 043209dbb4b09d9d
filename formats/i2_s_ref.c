/* SPDX-License-Identifier: MIT
 * The independent readers of I2_S: the index formulas of i2_s.md and i2_s_64.md, written down
 * without a look at the packer, so that a proof through them is a proof. */
#include "formats/i2_s_ref.h"

static int trit_of(unsigned code)
{
    static const int trits[4] = {-1, 0, 1, BC_TRIT_ILLEGAL};
    return trits[code];
}

int bc_i2_s_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                    uint64_t row, uint64_t col)
{
    const uint64_t i = (slice * shape->rows + row) * shape->cols + col;
    const uint64_t byte = i / 128 * 32 + i % 32;
    const unsigned low_bit = 6 - 2 * (unsigned)(i % 128 / 32);
    return trit_of(packed[byte] >> low_bit & 3u);
}

int bc_i2_s_64_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                       uint64_t row, uint64_t col)
{
    const uint64_t i = (slice * shape->rows + row) * shape->cols + col;
    const uint64_t byte = i / 64 * 16 + i % 16;
    const unsigned low_bit = 6 - 2 * (unsigned)(i % 64 / 16);
    return trit_of(packed[byte] >> low_bit & 3u);
}
