/* SPDX-License-Identifier: MIT
 * From stored weights to trits and a scale: absmean (BitNet b1.58, Ma et al. 2024) and the
 * classification of weights that are ternary already. Works on flat runs of one matrix. */
#ifndef BC_QUANT_QUANTIZE_H
#define BC_QUANT_QUANTIZE_H

#include "base/error.h"
#include "base/pool.h"
#include "bitconv/tensor.h"
#include "quant/kernels.h"

#define BC_ABSMEAN_MIN 1e-5f /* the clamp of the BitNet papers' reference code */
#define BC_NO_INDEX    UINT64_MAX

/* A run of stored values: one matrix (or one expert) as it lies in a checkpoint, row-major. */
struct bc_values {
    enum bitconv_dtype dtype; /* a float type, or an integer one (widened as numbers) */
    const uint8_t *data;
    uint64_t n;
};

/* Widens values [first, first + n) to float32: exact for F16, BF16, F8, small integers; F64 and
 * 64-bit integers are rounded to nearest. F8_E4M3 is the "FN" variant (no infinities). */
void bc_widen(const struct bc_kernels *k, const struct bc_values *v, uint64_t first, size_t n,
              float *dst);

/* NumPy's pairwise float32 mean of |x|: the sum tree of quantize.c (runs of up to 128 by
 * abs_sum_block, longer ones split at n/2 rounded down to a multiple of 8), one float32 division by
 * (float)n, at least BC_ABSMEAN_MIN. Subtrees run in parallel; the result does not depend on the
 * number of threads. n = 0 gives BC_ABSMEAN_MIN. Non-finite values make *out_nonfinite the index of
 * the first one (else BC_NO_INDEX), and the mean is then meaningless unless zero_nonfinite, which
 * counts them as 0. Fails with BITCONV_E_UNSUPPORTED when finite magnitudes add up to more than
 * float32 holds (a sign of damage; the text names no tensor, the caller knows which) and
 * BITCONV_E_NOMEM. */
enum bitconv_status bc_absmean(const struct bc_kernels *k, struct bc_pool *pool,
                               const struct bc_values *v, bool zero_nonfinite, float *out_mean,
                               uint64_t *out_nonfinite, struct bitconv_error *err);

/* What magnitudes a run holds. */
struct bc_magnitudes {
    uint64_t n_zero;     /* +-0 */
    uint64_t n_distinct; /* distinct non-zero |x|, exact up to BC_MAX_DISTINCT, then that number */
    float magnitude;     /* the only one when n_distinct is 1 */
    float max;           /* largest finite |x| */
    uint64_t nonfinite;  /* index of the first NaN or Inf, else BC_NO_INDEX */
};
#define BC_MAX_DISTINCT 65536u
/* In parallel; the result does not depend on the number of threads. */
enum bitconv_status bc_magnitudes(const struct bc_kernels *k, struct bc_pool *pool,
                                  const struct bc_values *v, struct bc_magnitudes *out,
                                  struct bitconv_error *err);

/* Index of the first NaN or Inf, BC_NO_INDEX when there is none; *out_max: largest |x| (finite). */
uint64_t bc_first_nonfinite(const struct bc_kernels *k, struct bc_pool *pool,
                            const struct bc_values *v, float *out_max);

#endif
