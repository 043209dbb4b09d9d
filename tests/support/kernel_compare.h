/* SPDX-License-Identifier: MIT
 * Compares a row of kernels with the scalar one. Plain C without a test library, so that a
 * cross-compiled program can run it under an emulator. */
#ifndef BC_TESTS_KERNEL_COMPARE_H
#define BC_TESTS_KERNEL_COMPARE_H

#include "quant/kernels.h"

/* Every member of `row` against the scalar row: all lengths from 0 to 257 and some long ones, on
 * buffers that end and begin at unmapped pages and at odd addresses, with random bits, special
 * values and ordinary ones. False at the first difference, which `why` then describes. */
bool kernel_row_equals_scalar(const struct bc_kernels *row, char *why, size_t why_size);

/* All 65536 inputs of the 16-bit conversions, and the float32 neighbourhood of each binary16 and
 * bfloat16 value and of the midpoints between them, where rounding decides. */
bool kernel_halves_equal_scalar(const struct bc_kernels *row, char *why, size_t why_size);

#endif
