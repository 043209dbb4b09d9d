/* SPDX-License-Identifier: MIT
 * The independent reader of TQ2_0. */
#ifndef BC_FORMATS_TQ2_0_REF_H
#define BC_FORMATS_TQ2_0_REF_H

#include "formats/format.h"

/* Contract: struct bc_format's trit_at. */
int bc_tq2_0_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                     uint64_t row, uint64_t col);

#endif
