/* SPDX-License-Identifier: MIT
 * The independent readers of I2_S's two layouts. */
#ifndef BC_FORMATS_I2_S_REF_H
#define BC_FORMATS_I2_S_REF_H

#include "formats/format.h"

/* Contract: struct bc_format's trit_at. */
int bc_i2_s_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                    uint64_t row, uint64_t col);
int bc_i2_s_64_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                       uint64_t row, uint64_t col);

#endif
