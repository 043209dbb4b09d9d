/* SPDX-License-Identifier: MIT
 * The independent reader of T5: the index formula of t5.md, written down without a look at the
 * packer, so that a proof through it is a proof. */
#include "formats/t5_ref.h"

int bc_t5_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                  uint64_t row, uint64_t col)
{
    static const unsigned place[5] = {1, 3, 9, 27, 81};
    const uint64_t i = (slice * shape->rows + row) * shape->cols + col;
    const uint64_t scales = shape->slices == 1 ? 0 : (shape->slices + 1) / 2 * 8;
    const unsigned byte = packed[64 + scales + i / 5];
    if (byte > 242) return BC_TRIT_ILLEGAL;
    return (int)(byte / place[i % 5] % 3) - 1;
}
