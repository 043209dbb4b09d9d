/* SPDX-License-Identifier: MIT
 * What the files of dot-product kernels share: the scalar definitions and each instruction set's
 * own. Contracts: the members of struct bc_kernels with the same names. */
#ifndef BC_QUANT_KERNELS_DOT_H
#define BC_QUANT_KERNELS_DOT_H

#include "quant/kernels.h"

float bc_scalar_dot_f32(const float *a, const float *b, size_t n);
void bc_scalar_dots_f32(const struct bc_f32_dots *d);
void bc_scalar_axpy(float factor, const float *x, size_t n, float *y);
float bc_scalar_quantize_i8(const float *src, size_t n, int8_t *dst);
void bc_scalar_trit_dots(const struct bc_i8_dots *d);

#endif
