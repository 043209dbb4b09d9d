/* SPDX-License-Identifier: MIT
 * Dot products with the rows of any pack, for the packs' own dot_rows. */
#ifndef BC_FORMATS_DOT_H
#define BC_FORMATS_DOT_H

#include "formats/format.h"

/* dot_rows by decoding: panels of rows are unpacked into the first-level cache and multiplied from
 * there. What a pack without a kernel for the case at hand falls back on, and the faster way when
 * there are many vectors, because then decoding costs little. */
void bc_dot_decoded(const struct bc_format *format, const struct bc_kernels *k,
                    const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                    uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                    int32_t *out);

#endif
