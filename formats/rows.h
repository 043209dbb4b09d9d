/* SPDX-License-Identifier: MIT
 * The packs' rows, for registry.c and the files that define them. */
#ifndef BC_FORMATS_ROWS_H
#define BC_FORMATS_ROWS_H

#include "formats/format.h"

extern const struct bc_format bc_format_i2_s;
extern const struct bc_format bc_format_i2_s_64;

#endif
