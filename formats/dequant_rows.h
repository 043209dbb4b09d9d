/* SPDX-License-Identifier: MIT
 * The decoders of dequant_*.c, for the table in dequant.c. Contract: the member `rows` of struct
 * bc_dequant. */
#ifndef BC_FORMATS_DEQUANT_ROWS_H
#define BC_FORMATS_DEQUANT_ROWS_H

#include <stdint.h>

/* dequant_plain.c: numbers, a value a block. */
void bc_dequant_f32(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_f16(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_bf16(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_f64(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_i8(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_i16(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_i32(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_i64(const uint8_t *blocks, uint64_t n_blocks, float *dst);

/* dequant_q.c: blocks of 32 with one scale. */
void bc_dequant_q4_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q4_1(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q5_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q5_1(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q8_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q8_1(const uint8_t *blocks, uint64_t n_blocks, float *dst);

/* dequant_k.c: blocks of 256 with scales of sub-blocks. */
void bc_dequant_q2_k(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q3_k(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q4_k(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q5_k(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q6_k(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q8_k(const uint8_t *blocks, uint64_t n_blocks, float *dst);

/* dequant_iq.c: codes into grids. */
void bc_dequant_iq1_s(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq1_m(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq2_xxs(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq2_xs(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq2_s(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq3_xxs(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq3_s(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq4_nl(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_iq4_xs(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_mxfp4(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_nvfp4(const uint8_t *blocks, uint64_t n_blocks, float *dst);

/* dequant_ternary.c: one scale and one or two bits a value. */
void bc_dequant_tq1_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_tq2_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q1_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q1_0_g32(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q2_0(const uint8_t *blocks, uint64_t n_blocks, float *dst);
void bc_dequant_q2_0_g128(const uint8_t *blocks, uint64_t n_blocks, float *dst);

#endif
