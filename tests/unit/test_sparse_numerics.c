/* SPDX-License-Identifier: MIT
 * Cholesky, Jacobi and maps of low rank against results that are known beforehand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sparse/low_rank.h"
#include "sparse/predictor.h"

static void close_to(double a, double b, double tolerance)
{
    if (fabs(a - b) <= tolerance) return;
    print_error("%.17g and %.17g\n", a, b);
    fail();
}

/* Reproducible numbers in [-1, 1). */
static double number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

static double *numbers(size_t n, uint64_t seed)
{
    double *x = calloc(n, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = number(&seed);
    return x;
}

static void cholesky_of_a_known_matrix(void **state)
{
    /* of {{4, 12, -16}, {12, 37, -43}, {-16, -43, 98}}; the 7s are not read */
    double a[] = {4, 7, 7, 12, 37, 7, -16, -43, 98};
    double x[] = {2, 7, -1}, y[] = {1, 2, 3};
    const double l[] = {2, 7, 7, 6, 1, 7, -8, 5, 3};
    (void)state;
    assert_true(bc_cholesky(NULL, a, 3));
    for (size_t i = 0; i < 9; i++)
        close_to(a[i], l[i], 1e-12);
    bc_solve_lower(a, 3, x); /* 2a = 2; 6a + b = 7; -8a + 5b + 3c = -1 */
    close_to(x[0], 1, 1e-12);
    close_to(x[1], 1, 1e-12);
    close_to(x[2], 2.0 / 3, 1e-12);
    bc_solve_lower_transposed(a, 3, y); /* 3c = 3; b + 5c = 2; 2a + 6b - 8c = 1 */
    close_to(y[2], 1, 1e-12);
    close_to(y[1], -3, 1e-12);
    close_to(y[0], 13.5, 1e-12);
    double indefinite[] = {1, 0, 2, 1}, nan[] = {NAN};
    assert_false(bc_cholesky(NULL, indefinite, 2));
    assert_false(bc_cholesky(NULL, nan, 1));
}

/* L L^T gives the matrix back, over more than one panel, with and without threads. */
static void cholesky_over_panels(void **state)
{
    enum { N = 150 };
    double *x = numbers((size_t)N * N, 3), *a = calloc(N, N * sizeof *a);
    double *one = calloc(N, N * sizeof *one);
    struct bc_pool *pool = NULL;
    (void)state;
    assert_true(a != NULL && one != NULL);
    assert_int_equal(bc_pool_new(3, &pool, NULL), BITCONV_OK);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            a[i * N + j] = bc_dot_f64(x + i * N, x + j * N, N) + (i == j ? 1 : 0);
    memcpy(one, a, (size_t)N * N * sizeof *a);
    memcpy(x, a, (size_t)N * N * sizeof *a);
    assert_true(bc_cholesky(pool, a, N));
    assert_true(bc_cholesky(NULL, one, N));
    assert_memory_equal(a, one, (size_t)N * N * sizeof *a);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++)
            close_to(bc_dot_f64(a + i * N, a + j * N, j + 1), x[i * N + j], 1e-10);
    bc_pool_free(pool);
    free(x);
    free(a);
    free(one);
}

static void jacobi_of_a_known_matrix(void **state)
{
    /* {{3, 0}, {4, 5}} has the singular values 3 sqrt(5) and sqrt(5) */
    double z[] = {3, 0, 4, 5}, t[] = {1, 0, 0, 1}, norms[2];
    (void)state;
    assert_true(bc_jacobi_rows(z, 2, 2, t, 2, norms));
    close_to(norms[0], 3 * sqrt(5), 1e-12);
    close_to(norms[1], sqrt(5), 1e-12);
    close_to(bc_dot_f64(z, z + 2, 2), 0, 1e-12);
    close_to(bc_dot_f64(t, t + 2, 2), 0, 1e-12); /* t has become the rotation */
    close_to(fabs(t[0]), sqrt(0.1), 1e-12);      /* the left vector (1, 3) / sqrt(10) */
    double bad[] = {NAN, 1, 1, 1};
    assert_false(bc_jacobi_rows(bad, 2, 2, t, 2, norms));
}

/* With X^T X = 1 the fit is the truncated SVD: of s1 a1 b1^T + s2 a2 b2^T + ... the first terms. The
 * block of vectors is smaller than the matrix. */
static void truncated_svd(void **state)
{
    enum { D = 40, M = 50, RANK = 3 };
    double gram[D * D] = {0}, *cross = calloc(D, M * sizeof *cross);
    double ut[RANK * D], vt[RANK * M], captured;
    const double singular[] = {10, 5, 2, 0.01, 0.005};
    (void)state;
    assert_non_null(cross);
    for (size_t i = 0; i < D; i++)
        gram[i * D + i] = 1;
    /* singular vectors: rows of the sine transform, which are orthonormal */
    for (size_t k = 0; k < 5; k++)
        for (size_t i = 0; i < D; i++)
            for (size_t j = 0; j < M; j++)
                cross[i * M + j] += singular[k] * sqrt(2.0 / (D + 1)) *
                                    sin(acos(-1) * (double)((k + 1) * (i + 1)) / (D + 1)) *
                                    sqrt(2.0 / (M + 1)) *
                                    sin(acos(-1) * (double)((k + 1) * (j + 1)) / (M + 1));
    const struct bc_low_rank problem = {.gram = gram, .cross = cross, .d = D, .m = M, .rank = RANK};
    assert_int_equal(bc_low_rank_fit(&problem, NULL, ut, vt, &captured, NULL), BITCONV_OK);
    close_to(captured, 100 + 25 + 4, 1e-9);
    for (size_t r = 0; r < RANK; r++)
        close_to(
            sqrt(bc_dot_f64(ut + r * D, ut + r * D, D) * bc_dot_f64(vt + r * M, vt + r * M, M)),
            singular[r], 1e-9);
    double error = 0;
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < M; j++) {
            double sum = -cross[i * M + j];
            for (size_t r = 0; r < RANK; r++)
                sum += ut[r * D + i] * vt[r * M + j];
            error += sum * sum;
        }
    close_to(error, 0.01 * 0.01 + 0.005 * 0.005, 1e-9);
    free(cross);
}

/* M = X U V of rank 2 is found again, whatever the number of threads; more rank than there is, is 0. */
static void least_squares_recovers_an_exact_map(void **state)
{
    enum { N = 90, D = 24, M = 70, RANK = 4 };
    double *x = numbers(N * D, 1), *u = numbers(2 * D, 5), *v = numbers(2 * M, 9);
    double gram[D * D] = {0}, *cross = calloc(D, M * sizeof *cross);
    double ut[2][RANK * D], vt[2][RANK * M], captured[2];
    struct bc_pool *pools[2] = {NULL, NULL};
    (void)state;
    assert_non_null(cross);
    assert_int_equal(bc_pool_new(3, &pools[1], NULL), BITCONV_OK);
    double size = 0;
    for (size_t t = 0; t < N; t++)
        for (size_t j = 0; j < M; j++) {
            const double m =
                bc_dot_f64(x + t * D, u, D) * v[j] + bc_dot_f64(x + t * D, u + D, D) * v[M + j];
            size += m * m;
            for (size_t i = 0; i < D; i++)
                cross[i * M + j] += x[t * D + i] * m;
        }
    for (size_t t = 0; t < N; t++)
        for (size_t i = 0; i < D; i++)
            for (size_t j = 0; j < D; j++)
                gram[i * D + j] += x[t * D + i] * x[t * D + j];
    const struct bc_low_rank problem = {.gram = gram, .cross = cross, .d = D, .m = M, .rank = RANK};
    for (size_t p = 0; p < 2; p++)
        assert_int_equal(bc_low_rank_fit(&problem, pools[p], ut[p], vt[p], &captured[p], NULL),
                         BITCONV_OK);
    assert_memory_equal(ut[0], ut[1], sizeof ut[0]);
    assert_memory_equal(vt[0], vt[1], sizeof vt[0]);
    close_to(captured[0] / size, 1, 1e-10);
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < M; j++) {
            double sum = 0;
            for (size_t r = 0; r < RANK; r++)
                sum += ut[0][r * D + i] * vt[0][r * M + j];
            close_to(sum, u[i] * v[j] + u[D + i] * v[M + j], 1e-8);
        }
    for (size_t i = 2 * D; i < RANK * D; i++)
        assert_true(ut[0][i] == 0);
    bc_pool_free(pools[1]);
    free(x);
    free(u);
    free(v);
    free(cross);
}

/* d = m = rank = 1: (x.m) / (x.x + ridge). */
static void ridge_shrinks(void **state)
{
    const double gram[] = {4}, cross[] = {6};
    const struct bc_low_rank problem = {gram, cross, 1, 1, 1, 2};
    double u, v, captured;
    struct bitconv_error err = {0};
    (void)state;
    assert_int_equal(bc_low_rank_fit(&problem, NULL, &u, &v, &captured, &err), BITCONV_OK);
    close_to(u * v, 1, 1e-12);
    close_to(captured, 6, 1e-12);
    close_to(fabs(u), fabs(v), 1e-12);
    const struct bc_low_rank none = {(const double[]){0}, cross, 1, 1, 1, 0};
    assert_int_equal(bc_low_rank_fit(&none, NULL, &u, &v, &captured, &err), BITCONV_E_ARG);
    assert_non_null(strstr(err.text, "--ridge"));
}

static void rules_pick_neurons(void **state)
{
    float scores[] = {1, -0.0f, 3, 0, NAN, 3, -5, 0};
    uint32_t n[8];
    struct bc_sparse_rule rule = {.top_k = 2};
    (void)state;
    assert_int_equal(bc_sparse_pick(&rule, scores, 8, n), 2); /* NaN, and the first of two 3s */
    assert_true(n[0] == 2 && n[1] == 4);
    rule.top_k = 6; /* zeros of both signs are equal: the first two of three */
    assert_int_equal(bc_sparse_pick(&rule, scores, 8, n), 6);
    assert_true(n[0] == 0 && n[1] == 1 && n[2] == 2 && n[3] == 3 && n[4] == 4 && n[5] == 5);
    rule.top_k = 8;
    assert_int_equal(bc_sparse_pick(&rule, scores, 8, n), 8);
    rule = (struct bc_sparse_rule){.by_threshold = true, .threshold = 3};
    assert_int_equal(bc_sparse_pick(&rule, scores, 8, n), 3);
    assert_true(n[0] == 2 && n[1] == 4 && n[2] == 5);
    rule.threshold = INFINITY;
    assert_int_equal(bc_sparse_check_rule(&rule, 8, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_sparse_share(0.3, 10), 3);
    assert_int_equal(bc_sparse_share(1e-9, 10), 1);
    assert_int_equal(bc_sparse_share(1, 10), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cholesky_of_a_known_matrix),
        cmocka_unit_test(cholesky_over_panels),
        cmocka_unit_test(jacobi_of_a_known_matrix),
        cmocka_unit_test(truncated_svd),
        cmocka_unit_test(least_squares_recovers_an_exact_map),
        cmocka_unit_test(ridge_shrinks),
        cmocka_unit_test(rules_pick_neurons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
