/* SPDX-License-Identifier: MIT
 * The independent reader of TQ1_0: the index formula of tq1_0.md, written down without a look at
 * the packer. */
#include "formats/tq1_0_ref.h"

int bc_tq1_0_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                     uint64_t row, uint64_t col)
{
    static const unsigned powers_of_3[5] = {1, 3, 9, 27, 81};
    const uint64_t block = (slice * shape->rows + row) * (shape->cols / 256) + col / 256;
    const uint64_t i = col % 256;
    uint64_t byte, place;
    if (i < 160) {
        byte = i % 32;
        place = i / 32;
    } else if (i < 240) {
        byte = 32 + (i - 160) % 16;
        place = (i - 160) / 16;
    } else {
        byte = 48 + (i - 240) % 4;
        place = (i - 240) / 4;
    }
    const unsigned fraction = packed[54 * block + byte] * powers_of_3[place] % 256;
    return (int)(fraction * 3 / 256) - 1;
}
