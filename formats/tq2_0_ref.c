/* SPDX-License-Identifier: MIT
 * The independent reader of TQ2_0: the index formula of tq2_0.md, written down without a look at
 * the packer. */
#include "formats/tq2_0_ref.h"

int bc_tq2_0_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                     uint64_t row, uint64_t col)
{
    const uint64_t block = (slice * shape->rows + row) * (shape->cols / 256) + col / 256;
    const uint64_t i = col % 256;
    const uint64_t byte = 66 * block + i / 128 * 32 + i % 32;
    const int code = packed[byte] >> (i % 128 / 32 * 2) & 3;
    return code == 3 ? BC_TRIT_ILLEGAL : code - 1;
}
