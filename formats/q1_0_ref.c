/* SPDX-License-Identifier: MIT
 * The independent reader of Q1_0: the index formula of q1_0.md, written down without a look at the
 * packer. */
#include "formats/q1_0_ref.h"

int bc_q1_0_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                    uint64_t row, uint64_t col)
{
    const uint64_t block = (slice * shape->rows + row) * (shape->cols / 128) + col / 128;
    const uint64_t byte = 18 * block + 2 + col % 128 / 8;
    return (packed[byte] >> (col % 8) & 1) == 1 ? 1 : -1;
}
