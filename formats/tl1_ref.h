/* SPDX-License-Identifier: MIT
 * The independent reader of TL1. */
#ifndef BC_FORMATS_TL1_REF_H
#define BC_FORMATS_TL1_REF_H

#include "formats/format.h"

/* Contracts: struct bc_format's trit_at and trits_at. */
int bc_tl1_trit_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                   uint64_t row, uint64_t col);
void bc_tl1_trits_at(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t first,
                     uint64_t n, int8_t *trits);

#endif
