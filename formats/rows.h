/* SPDX-License-Identifier: MIT
 * The packs' rows, for registry.c and the files that define them. */
#ifndef BC_FORMATS_ROWS_H
#define BC_FORMATS_ROWS_H

#include "formats/format.h"

extern const struct bc_format bc_format_i2_s;
extern const struct bc_format bc_format_i2_s_64;
extern const struct bc_format bc_format_tl1;
extern const struct bc_format bc_format_tl2;
extern const struct bc_format bc_format_bitcos;
extern const struct bc_format bc_format_t5;
extern const struct bc_format bc_format_tq1_0;
extern const struct bc_format bc_format_tq2_0;
extern const struct bc_format bc_format_q2_0;
extern const struct bc_format bc_format_q1_0;

#endif
