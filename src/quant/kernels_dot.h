/* SPDX-License-Identifier: MIT
 * What the files of dot-product kernels share: the scalar definitions and each instruction set's
 * own. Contracts: the members of struct bc_kernels with the same names. */
#ifndef BC_QUANT_KERNELS_DOT_H
#define BC_QUANT_KERNELS_DOT_H

#include "quant/kernels.h"

float bc_scalar_dot_f32(const float *a, const float *b, size_t n);
void bc_scalar_dots_f32(const struct bc_f32_dots *d);
void bc_scalar_dots_f16(const uint8_t *w, const struct bc_f32_dots *d);
void bc_scalar_axpy(float factor, const float *x, size_t n, float *y);
void bc_scalar_sums_f32(const struct bc_f32_sums *s);
float bc_scalar_quantize_i8(const float *src, size_t n, int8_t *dst);
void bc_scalar_trit_dots(const struct bc_i8_dots *d);
void bc_scalar_plane_dots(const struct bc_i8_dots *d, size_t width);
uint64_t bc_scalar_bitcos_dot(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                              uint64_t n_signs, uint64_t rank, const int8_t *x, int32_t *dot);
void bc_scalar_tq1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_scalar_tq2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_scalar_q2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_scalar_q1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_scalar_block_sums(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums);
int32_t bc_scalar_t5_codes(const uint8_t *bytes, size_t n_bytes, const int8_t *const planes[5]);
void bc_scalar_pair_tables(const int8_t *x, size_t n_quads, uint8_t *tables);
void bc_scalar_pair_sums(const uint8_t *bytes, size_t stride, size_t n_quads, const uint8_t *tables,
                         size_t table_stride, int32_t sums[16]);
void bc_scalar_triple_tables(const int8_t *x, size_t n_triples, uint8_t *tables);
void bc_scalar_triple_sums(const uint8_t *magnitudes, const uint8_t *signs, size_t n_groups,
                           const uint8_t *tables, int32_t sums[32]);

/* The parts of quantize_i8: the factor, and n codes by it. */
float bc_activation_factor(uint32_t max_abs_bits);
void bc_scalar_activation_codes(const float *src, size_t n, float a, int8_t *dst);

#if defined(__x86_64__)
uint32_t bc_avx2_max_abs_bits(const float *src, size_t n);
int32_t bc_avx2_sum_i8(const int8_t *x, size_t n);
float bc_avx2_dot_f32(const float *a, const float *b, size_t n);
void bc_avx2_dots_f32(const struct bc_f32_dots *d);
void bc_avx2_dots_f16(const uint8_t *w, const struct bc_f32_dots *d);
void bc_avx2_axpy(float factor, const float *x, size_t n, float *y);
void bc_avx2_sums_f32(const struct bc_f32_sums *s);
float bc_avx2_quantize_i8(const float *src, size_t n, int8_t *dst);
void bc_avx2_trit_dots(const struct bc_i8_dots *d);
void bc_avx2_plane_dots(const struct bc_i8_dots *d, size_t width);
uint64_t bc_avx2_bitcos_dot(const uint8_t *bitmap, size_t n, const uint8_t *signs, uint64_t n_signs,
                            uint64_t rank, const int8_t *x, int32_t *dot);
void bc_avx2_tq1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_avx2_tq2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_avx2_q2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_avx2_q1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_avx2_block_sums(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums);
int32_t bc_avx2_t5_codes(const uint8_t *bytes, size_t n_bytes, const int8_t *const planes[5]);
void bc_avx2_pair_tables(const int8_t *x, size_t n_quads, uint8_t *tables);
void bc_avx2_pair_sums(const uint8_t *bytes, size_t stride, size_t n_quads, const uint8_t *tables,
                       size_t table_stride, int32_t sums[16]);
void bc_avx2_triple_tables(const int8_t *x, size_t n_triples, uint8_t *tables);
void bc_avx2_triple_sums(const uint8_t *magnitudes, const uint8_t *signs, size_t n_groups,
                         const uint8_t *tables, int32_t sums[32]);
#endif
#if defined(__AARCH64EL__)
uint32_t bc_neon_max_abs_bits(const float *src, size_t n);
float bc_neon_dot_f32(const float *a, const float *b, size_t n);
void bc_neon_dots_f32(const struct bc_f32_dots *d);
void bc_neon_dots_f16(const uint8_t *w, const struct bc_f32_dots *d);
void bc_neon_axpy(float factor, const float *x, size_t n, float *y);
void bc_neon_sums_f32(const struct bc_f32_sums *s);
float bc_neon_quantize_i8(const float *src, size_t n, int8_t *dst);
void bc_neon_trit_dots(const struct bc_i8_dots *d);
void bc_neon_plane_dots(const struct bc_i8_dots *d, size_t width);
void bc_neon_tq2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
void bc_neon_block_sums(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums);
void bc_neon_pair_sums(const uint8_t *bytes, size_t stride, size_t n_quads, const uint8_t *tables,
                       size_t table_stride, int32_t sums[16]);
#endif

#endif
