/* SPDX-License-Identifier: MIT
 * The independent reader of Q2_0: the index formula of q2_0.md, written down without a look at the
 * packer. */
#include "formats/q2_0_ref.h"

int bc_q2_0_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                    uint64_t row, uint64_t col)
{
    const uint64_t block = (slice * shape->rows + row) * (shape->cols / 64) + col / 64;
    const uint64_t byte = 18 * block + 2 + col % 64 / 4;
    const int code = packed[byte] >> (col % 4 * 2) & 3;
    return code == 3 ? BC_TRIT_ILLEGAL : code - 1;
}
