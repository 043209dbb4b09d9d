/* SPDX-License-Identifier: MIT
 * The independent reader of T5. */
#ifndef BC_FORMATS_T5_REF_H
#define BC_FORMATS_T5_REF_H

#include "formats/format.h"

/* Contract: struct bc_format's trit_at. */
int bc_t5_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                  uint64_t row, uint64_t col);

#endif
