/* SPDX-License-Identifier: MIT
 * Numerics of the predictor, in double precision: Cholesky factors, singular vectors, and the map of
 * low rank that fits best. Every sum runs in a fixed order, so nothing depends on the number of
 * threads. Matrices are row-major. */
#ifndef BC_SPARSE_LOW_RANK_H
#define BC_SPARSE_LOW_RANK_H

#include "base/pool.h"

/* Sum of a[i] * b[i], in 8 partial sums (i % 8) that are added pairwise. */
double bc_dot_f64(const double *a, const double *b, size_t n);

/* Replaces the lower triangle of the symmetric positive definite a [n, n] by its Cholesky factor L,
 * a = L L^T; the upper one is neither read nor written. False when a is not positive definite, or not
 * finite. */
bool bc_cholesky(struct bc_pool *pool, double *a, size_t n);
/* x = L^-1 x and x = L^-T x. */
void bc_solve_lower(const double *l, size_t n, double *x);
void bc_solve_lower_transposed(const double *l, size_t n, double *x);

/* One-sided Jacobi (Hestenes 1958; Golub and Van Loan, section 8.6): rotates the n rows of z [n, m]
 * until they are orthogonal to each other, the rows of t [n, k] alongside, and sorts both by the norm
 * of z's rows, descending. Then the norms are the singular values of z, and its rows divided by them
 * right singular vectors. norms: n values. False when it does not converge, as with NaN. */
bool bc_jacobi_rows(double *z, size_t n, size_t m, double *t, size_t k, double *norms);

/* What bc_low_rank_fit works on. */
struct bc_low_rank {
    const double *gram;  /* X^T X [d, d], lower triangle */
    const double *cross; /* X^T M [d, m] */
    size_t d, m, rank;   /* 0 < rank <= min(d, m) */
    double ridge;        /* > 0 unless X has full rank */
};

/* Reduced-rank ridge regression (Izenman 1975): the U [d, rank], V [rank, m] that minimise
 * |M - X U V|^2 + ridge |U V|^2 over all pairs, squares summed. With L L^T = X^T X + ridge, the sum is
 * |M|^2 - |B|^2 + |B - L^T U V|^2 with B = L^-1 X^T M; so L^T U V is the truncated SVD of B: U = L^-T
 * P, V = P^T B = U^T X^T M, P the left singular vectors of B. (With X^T X = 1 and no ridge: the
 * truncated SVD of X^T M itself.) B is not formed: a block of 3/2 rank + 8 vectors is iterated (Halko,
 * Martinsson and Tropp 2011) from fixed pseudo-random ones until what it captures of |B|^2 grows by
 * less than 1e-3 of itself (8 times at most), then rotated by Jacobi; where the block is as wide as B
 * the result is exact to rounding.
 * ut: rank rows of d (the columns of U); vt: rank rows of m (the rows of V); both scaled so that their
 * largest magnitudes agree, component by component; components that B does not have are 0.
 * *captured: |P^T B|^2, what the fit explains of |M|^2. Memory: 8 bytes times d^2 + 4 * (d + m) *
 * block. ARG when X^T X + ridge is not positive definite or not finite. */
enum bitconv_status bc_low_rank_fit(const struct bc_low_rank *problem, struct bc_pool *pool,
                                    double *ut, double *vt, double *captured,
                                    struct bitconv_error *err);
/* Bytes that a fit allocates; UINT64_MAX when beyond that. */
uint64_t bc_low_rank_memory(uint64_t d, uint64_t m, uint64_t rank);

#endif
