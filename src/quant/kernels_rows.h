/* SPDX-License-Identifier: MIT
 * What the files of kernels share among themselves: the scalar definitions, which also do the
 * remainders of the vector loops, and the rows. Everyone else includes kernels.h. */
#ifndef BC_QUANT_KERNELS_ROWS_H
#define BC_QUANT_KERNELS_ROWS_H

#include "quant/kernels.h"

extern const struct bc_kernels bc_kernels_scalar;
#if defined(__x86_64__)
extern const struct bc_kernels bc_kernels_avx2;
extern const struct bc_kernels bc_kernels_avx512;
#endif
#if defined(__AARCH64EL__)
extern const struct bc_kernels bc_kernels_neon;
#endif

/* Contracts: the members of struct bc_kernels with the same names. */
void bc_scalar_widen_bf16(const uint8_t *src, size_t n, float *dst);
void bc_scalar_widen_f16(const uint8_t *src, size_t n, float *dst);
void bc_scalar_narrow_bf16(const float *src, size_t n, uint8_t *dst);
void bc_scalar_narrow_f16(const float *src, size_t n, uint8_t *dst);
void bc_scalar_bf16_to_f16(const uint8_t *src, size_t n, uint8_t *dst);
uint32_t bc_scalar_max_abs_bits(const float *src, size_t n);
float bc_scalar_abs_sum_block(const float *src, size_t n);
void bc_scalar_ternarize(const float *src, size_t n, float inv, int8_t *dst);
void bc_scalar_sign(const float *src, size_t n, int8_t *dst);
void bc_scalar_trits_to_f32(const int8_t *src, size_t n, float scale, float *dst);
bool bc_scalar_hf_unpack(const uint8_t *src, size_t n, unsigned shift, int8_t *dst);
void bc_scalar_count_trits(const int8_t *src, size_t n, uint64_t counts[4]);
void bc_scalar_pack_planes(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst);
bool bc_scalar_unpack_planes(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst);

#endif
