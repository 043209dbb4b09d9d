/* SPDX-License-Identifier: MIT
 * Compares a row's dot products with the scalar definitions. Plain C without a test library, so
 * that a cross-compiled program can run it under an emulator. */
#ifndef BC_TESTS_KERNEL_COMPARE_DOT_H
#define BC_TESTS_KERNEL_COMPARE_DOT_H

#include "quant/kernels.h"

/* The products of floats, quantize_i8 and every integer product: all lengths up to several vectors
 * and some long ones, 0 to 9 vectors, odd strides, extreme activations, random bytes as codes,
 * buffers that end at unmapped pages. False at the first difference, which `why` then describes. */
bool kernel_dots_equal_scalar(const struct bc_kernels *row, char *why, size_t why_size);

#endif
