/* SPDX-License-Identifier: MIT
 * Compares a row's BITCOS and T5 kernels with the definitions. Plain C without a test library, so
 * that a cross-compiled program can run it under an emulator. */
#ifndef BC_TESTS_KERNEL_COMPARE_BITCOS_H
#define BC_TESTS_KERNEL_COMPARE_BITCOS_H

#include "quant/kernels.h"

/* The four kernels against bc_scalar_bitcos_* and bc_scalar_t5_*: all lengths up to several vectors
 * and some long ones, streams that begin within a word and end too early, trits, other values and
 * random bytes; source and destination end at unmapped pages. False at the first difference, which
 * `why` then describes. */
bool kernel_bitcos_equals_definition(const struct bc_kernels *row, char *why, size_t why_size);

#endif
