/* SPDX-License-Identifier: MIT
 * From the dtype names in safetensors headers to element types. */
#ifndef BC_IO_DTYPE_H
#define BC_IO_DTYPE_H

#include "bitconv/tensor.h"

/* The element type that the format calls `name` (case matters); false when bitconv reads none of
 * that name, *out is untouched then. */
bool bc_dtype_from_name(const char *name, enum bitconv_dtype *out);

/* True for names that the format has but bitconv does not read: elements smaller than a byte, the
 * FNUZ forms of float8 (other bias, no infinities, one NaN), complex numbers. */
bool bc_dtype_is_foreign(const char *name);

#endif
