/* SPDX-License-Identifier: MIT
 * From stored values to absmean, magnitudes and trits: against a plain recursion, known results of
 * the reference, and hand-made runs; equal bits for every number of threads and every row of
 * kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/quantize.h"
#include "support/rng.h"

#define N_POOLS 5
struct fixture {
    struct bc_pool *pools[N_POOLS]; /* none, 1, 2, 3, 8 threads */
    const struct bc_kernels *best;
};

static struct fixture *fixture_of(void **state)
{
    return *state;
}

static int set_up(void **state)
{
    static const unsigned threads[N_POOLS] = {0, 1, 2, 3, 8};
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    for (size_t i = 1; i < N_POOLS; i++) {
        if (bc_pool_new(threads[i], &f->pools[i], NULL) != BITCONV_OK) return -1;
    }
    f->best = bc_kernels_best();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 1; i < N_POOLS; i++)
        bc_pool_free(f->pools[i]);
    free(f);
    return 0;
}

/* The definition of the pairwise sum as a recursion over plain floats. */
static float pairwise(const float *a, uint64_t n)
{
    if (n < 8) {
        float sum = -0.0f;
        for (uint64_t i = 0; i < n; i++)
            sum += fabsf(a[i]);
        return sum;
    }
    if (n > 128) {
        uint64_t half = n / 2;
        while (half % 8 != 0)
            half--;
        return pairwise(a, half) + pairwise(a + half, n - half);
    }
    float r[8] = {fabsf(a[0]), fabsf(a[1]), fabsf(a[2]), fabsf(a[3]),
                  fabsf(a[4]), fabsf(a[5]), fabsf(a[6]), fabsf(a[7])};
    uint64_t i = 8;
    for (; i < n - n % 8; i++)
        r[i % 8] += fabsf(a[i]);
    float sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++)
        sum += fabsf(a[i]);
    return sum;
}

static float naive_absmean(const float *a, uint64_t n)
{
    if (n == 0) return BC_ABSMEAN_MIN;
    const float mean = pairwise(a, n) / (float)n;
    return mean < BC_ABSMEAN_MIN ? BC_ABSMEAN_MIN : mean;
}

/* A run in a float type, at an address that is not aligned. */
struct run {
    uint8_t *memory;
    struct bc_values values;
};

static struct run run_of(const float *a, uint64_t n, enum bitconv_dtype dtype)
{
    const size_t size = bitconv_dtype_size(dtype);
    struct run run = {malloc(n * size + 1), {dtype, NULL, n}};
    assert_non_null(run.memory);
    uint8_t *data = run.memory + 1;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t *p = data + i * size;
        if (dtype == BITCONV_F32) bc_put_f32(p, a[i]);
        if (dtype == BITCONV_F64) bc_put_f64(p, (double)a[i]);
        if (dtype == BITCONV_F16) bc_put_u16(p, bc_f32_to_f16(a[i]));
        if (dtype == BITCONV_BF16) bc_put_u16(p, bc_f32_to_bf16(a[i]));
    }
    run.values.data = data;
    return run;
}

/* Normal-ish values with many magnitudes: sums of four uniforms, some scaled down, exact zeros. */
static float *weights_new(uint64_t n, uint64_t seed)
{
    float *a = malloc((n == 0 ? 1 : n) * sizeof *a);
    assert_non_null(a);
    for (uint64_t i = 0; i < n; i++) {
        double v = -2.0;
        for (int j = 0; j < 4; j++)
            v += (double)(rng_next(&seed) >> 11) / 0x1p53;
        const uint64_t r = rng_next(&seed) % 16;
        a[i] = (float)(r == 0 ? 0.0 : r < 3 ? v * 1e-4 : v * 0.04);
    }
    return a;
}

static float absmean_of(const struct bc_kernels *k, struct bc_pool *pool, const struct bc_values *v,
                        bool zero_nonfinite, uint64_t *nonfinite)
{
    struct bitconv_error err = {0};
    float mean = -1.0f;
    assert_int_equal(bc_absmean(k, pool, v, zero_nonfinite, &mean, nonfinite, &err), BITCONV_OK);
    assert_int_equal(err.status, BITCONV_OK);
    return mean;
}

static void check_absmean(const struct fixture *f, uint64_t n, uint64_t seed,
                          enum bitconv_dtype dtype)
{
    float *a = weights_new(n, seed);
    struct run run = run_of(a, n, dtype);
    bc_widen(bc_kernels_at(0), &run.values, 0, n, a);
    const uint32_t expected = bc_f32_bits(naive_absmean(a, n));
    for (size_t p = 0; p < N_POOLS; p++) {
        uint64_t nonfinite = 0;
        const float mean = absmean_of(f->best, f->pools[p], &run.values, false, &nonfinite);
        assert_int_equal(bc_f32_bits(mean), expected);
        assert_true(nonfinite == BC_NO_INDEX);
    }
    free(run.memory);
    free(a);
}

static void test_absmean_is_pairwise(void **state)
{
    static const enum bitconv_dtype dtypes[] = {BITCONV_F32, BITCONV_BF16, BITCONV_F16,
                                                BITCONV_F64};
    const struct fixture *f = fixture_of(state);
    for (uint64_t n = 0; n <= 300; n++)
        check_absmean(f, n, n + 1, dtypes[n % 4]);
    uint64_t rng = 3;
    for (int i = 0; i < 40; i++)
        check_absmean(f, 300 + rng_below(&rng, 70000), rng, dtypes[i % 4]);
}

/* Around the size from which on the tree is cut into pieces for the threads. */
static void test_absmean_of_large_runs(void **state)
{
    static const uint64_t sizes[] = {131071, 131072, 131073,  131080,  262143,  262144,  262145,
                                     262160, 786433, 1000003, 1048576, 2097159, 3000000, 4194305};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_absmean(fixture_of(state), sizes[i], i + 100, i % 2 ? BITCONV_BF16 : BITCONV_F32);
}

static void test_absmean_of_every_row(void **state)
{
    for (uint64_t n = 1; n < 400000; n = n < 300 ? n + 1 : n * 3) {
        float *a = weights_new(n, n);
        struct run run = run_of(a, n, BITCONV_F32);
        const uint32_t expected = bc_f32_bits(naive_absmean(a, n));
        for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
            uint64_t nonfinite;
            const float mean = absmean_of(bc_kernels_at(i), fixture_of(state)->pools[2],
                                          &run.values, false, &nonfinite);
            assert_int_equal(bc_f32_bits(mean), expected);
        }
        free(run.memory);
        free(a);
    }
}

/* The order matters: had the sum been taken in another one, these would be other bits. */
static void test_pairwise_differs_from_sequential(void **state)
{
    (void)state;
    const uint64_t n = 1000003;
    float *a = weights_new(n, 5);
    float sequential = 0.0f;
    for (uint64_t i = 0; i < n; i++)
        sequential += fabsf(a[i]);
    assert_int_not_equal(bc_f32_bits(sequential), bc_f32_bits(pairwise(a, n)));
    free(a);
}

/* Half-even at the tie, as the model class of the transformers library rounds: 1, 0, 1, 1. */
static void test_tie_of_four(void **state)
{
    const float w[] = {1.5f, 0.5f, 1.0f, 1.0f};
    const int8_t expected[] = {1, 0, 1, 1};
    const struct bc_kernels *k = fixture_of(state)->best;
    struct run run = run_of(w, 4, BITCONV_BF16);
    uint64_t nonfinite;
    int8_t trits[4];
    const float mean = absmean_of(k, NULL, &run.values, false, &nonfinite);
    assert_true(mean == 1.0f);
    k->ternarize(w, 4, 1.0f / mean, trits);
    assert_memory_equal(trits, expected, 4);
    free(run.memory);
}

/* Ones but for four halves, in the shape of a real projection: a single float32 accumulator would
 * stop growing at 2^24 and give 0.948. The exact mean is 1 - 2/17694720. */
static void test_mean_of_many_ones(void **state)
{
    const uint64_t n = UINT64_C(2560) * 6912;
    uint8_t *data = malloc(2 * n);
    assert_non_null(data);
    for (uint64_t i = 0; i < n; i++)
        bc_put_u16(data + 2 * i, 0x3f80);
    for (uint64_t i = 0; i < 4; i++)
        bc_put_u16(data + 2 * (i * 4000003), 0x3f00);
    const struct bc_values values = {BITCONV_BF16, data, n};
    for (size_t p = 0; p < N_POOLS; p++) {
        uint64_t nonfinite;
        const float mean = absmean_of(fixture_of(state)->best, fixture_of(state)->pools[p], &values,
                                      false, &nonfinite);
        assert_int_equal(bc_f32_bits(mean), 0x3f7ffffe);
    }
    free(data);
}

static void test_smallest_absmean(void **state)
{
    const struct bc_kernels *k = fixture_of(state)->best;
    const float zeros[9] = {0.0f, -0.0f}, tiny[9] = {1e-6f, -1e-6f, 1e-6f};
    uint64_t nonfinite;
    struct run run = run_of(zeros, 9, BITCONV_F32);
    assert_true(absmean_of(k, NULL, &run.values, false, &nonfinite) == 1e-5f);
    free(run.memory);
    run = run_of(tiny, 9, BITCONV_F32);
    assert_true(absmean_of(k, NULL, &run.values, false, &nonfinite) == 1e-5f);
    free(run.memory);
    run = run_of(zeros, 0, BITCONV_F32);
    assert_true(absmean_of(k, NULL, &run.values, false, &nonfinite) == 1e-5f);
    assert_true(nonfinite == BC_NO_INDEX);
    free(run.memory);
}

static void test_nonfinite_weights(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const uint64_t where[] = {0, 1, 127, 128, 65535, 200000, 300007, 399999};
    const struct fixture *f = fixture_of(state);
    const uint64_t n = 400000;
    float *a = weights_new(n, 9);
    for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
        float *b = malloc(n * sizeof *b);
        assert_non_null(b);
        memcpy(b, a, n * sizeof *b);
        b[where[i]] = bad[i % 3];
        b[n - 1] = INFINITY; /* a later one must not win */
        struct run run = run_of(b, n, i % 2 ? BITCONV_F32 : BITCONV_BF16);
        bc_widen(f->best, &run.values, 0, n, b);
        for (uint64_t j = 0; j < n; j++) {
            if (!isfinite(b[j])) b[j] = 0.0f;
        }
        for (size_t p = 0; p < N_POOLS; p++) {
            uint64_t nonfinite = 0;
            float max = 0.0f;
            absmean_of(f->best, f->pools[p], &run.values, false, &nonfinite);
            assert_int_equal(nonfinite, where[i]);
            const float mean = absmean_of(f->best, f->pools[p], &run.values, true, &nonfinite);
            assert_int_equal(nonfinite, where[i]);
            assert_int_equal(bc_f32_bits(mean), bc_f32_bits(naive_absmean(b, n)));
            assert_int_equal(bc_first_nonfinite(f->best, f->pools[p], &run.values, &max), where[i]);
            assert_true(isfinite(max) && max > 0.07f && max < 0.081f);
        }
        free(run.memory);
        free(b);
    }
    free(a);
}

/* Finite weights can add up to infinity: no scale, and no wrong index. */
static void test_overflowing_sum(void **state)
{
    float w[40];
    for (size_t i = 0; i < 40; i++)
        w[i] = FLT_MAX / 2;
    for (int with_nan = 0; with_nan < 2; with_nan++) {
        struct bitconv_error err = {0};
        float mean = 0.0f;
        uint64_t nonfinite = 0;
        if (with_nan) w[33] = NAN;
        struct run run = run_of(w, 40, BITCONV_F32);
        assert_int_equal(
            bc_absmean(fixture_of(state)->best, NULL, &run.values, true, &mean, &nonfinite, &err),
            BITCONV_E_UNSUPPORTED);
        assert_true(with_nan ? nonfinite == 33 : nonfinite == BC_NO_INDEX);
        assert_non_null(strstr(err.text, "40 weights"));
        free(run.memory);
    }
}

static void test_first_nonfinite_in_finite_runs(void **state)
{
    const struct fixture *f = fixture_of(state);
    for (uint64_t n = 0; n < 5000; n += 7) {
        float *a = weights_new(n, n), expected = 0.0f, max = -1.0f;
        for (uint64_t i = 0; i < n; i++)
            expected = fmaxf(expected, fabsf(a[i]));
        struct run run = run_of(a, n, BITCONV_F32);
        assert_true(bc_first_nonfinite(f->best, f->pools[n % N_POOLS], &run.values, &max) ==
                    BC_NO_INDEX);
        assert_true(max == expected);
        free(run.memory);
        free(a);
    }
}

static void check_magnitudes(const struct fixture *f, const float *a, uint64_t n,
                             const struct bc_magnitudes *expected)
{
    struct run run = run_of(a, n, BITCONV_F32);
    for (size_t p = 0; p < N_POOLS; p++) {
        struct bc_magnitudes m = {0};
        struct bitconv_error err = {0};
        assert_int_equal(bc_magnitudes(f->best, f->pools[p], &run.values, &m, &err), BITCONV_OK);
        assert_int_equal(m.n_zero, expected->n_zero);
        assert_int_equal(m.n_distinct, expected->n_distinct);
        assert_true(m.magnitude == expected->magnitude);
        assert_true(m.max == expected->max);
        assert_true(m.nonfinite == expected->nonfinite);
    }
    free(run.memory);
}

static void test_magnitudes_of_small_runs(void **state)
{
    const struct fixture *f = fixture_of(state);
    const float ternary[] = {0.5f, -0.5f, 0.0f, -0.0f, 0.5f};
    const float two[] = {0.5f, -0.25f, 0.0f};
    const float bad[] = {2.0f, 0.0f, INFINITY, -2.0f, NAN};
    const float only_bad[] = {NAN, NAN};
    const float subnormal[] = {0.0f, 1e-45f, -1e-45f};
    const float zeros[] = {0.0f, -0.0f};
    check_magnitudes(f, ternary, 0, &(struct bc_magnitudes){.nonfinite = BC_NO_INDEX});
    check_magnitudes(f, ternary, 5, &(struct bc_magnitudes){2, 1, 0.5f, 0.5f, BC_NO_INDEX});
    check_magnitudes(f, two, 3, &(struct bc_magnitudes){1, 2, 0.0f, 0.5f, BC_NO_INDEX});
    check_magnitudes(f, bad, 5, &(struct bc_magnitudes){1, 1, 2.0f, 2.0f, 2});
    check_magnitudes(f, only_bad, 2, &(struct bc_magnitudes){0, 0, 0.0f, 0.0f, 0});
    check_magnitudes(f, subnormal, 3, &(struct bc_magnitudes){1, 1, 1e-45f, 1e-45f, BC_NO_INDEX});
    check_magnitudes(f, zeros, 2, &(struct bc_magnitudes){2, 0, 0.0f, 0.0f, BC_NO_INDEX});
}

static void test_one_magnitude_in_a_long_run(void **state)
{
    const uint64_t n = 500001;
    float *a = malloc(n * sizeof *a);
    uint64_t rng = 1, n_zero = 0;
    assert_non_null(a);
    for (uint64_t i = 0; i < n; i++) {
        const int t = (int)rng_below(&rng, 3) - 1;
        n_zero += t == 0;
        a[i] = (float)t * 0.0371234f;
    }
    const struct bc_magnitudes one = {n_zero, 1, 0.0371234f, 0.0371234f, BC_NO_INDEX};
    check_magnitudes(fixture_of(state), a, n, &one);

    a[n - 1] = nextafterf(0.0371234f, 1.0f); /* a single weight off by one bit */
    a[n - 2] = 0.0371234f;
    n_zero = 0;
    for (uint64_t i = 0; i < n; i++)
        n_zero += a[i] == 0.0f;
    const struct bc_magnitudes two = {n_zero, 2, 0.0f, a[n - 1], BC_NO_INDEX};
    check_magnitudes(fixture_of(state), a, n, &two);
    free(a);
}

/* Exact up to the bound, the bound itself beyond it. */
static void test_many_magnitudes(void **state)
{
    static const uint64_t counts[] = {1000, 65535, 65536, 65537, 100000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const uint64_t n = 2 * counts[c] + 1;
        float *a = malloc(n * sizeof *a);
        assert_non_null(a);
        a[0] = 0.0f;
        for (uint64_t i = 1; i < n; i++) /* each magnitude twice, far apart, with both signs */
            a[i] = (i <= counts[c] ? 1.0f : -1.0f) * (1.0f + (float)(i % counts[c]) * 0x1p-23f);
        const float max = 1.0f + (float)(counts[c] - 1) * 0x1p-23f;
        const uint64_t distinct = counts[c] < BC_MAX_DISTINCT ? counts[c] : BC_MAX_DISTINCT;
        const struct bc_magnitudes m = {1, distinct, 0.0f, max, BC_NO_INDEX};
        check_magnitudes(fixture_of(state), a, n, &m);
        free(a);
    }
}

/* All 65536 values of the 16-bit types, each three times: 31743 and 32639 finite magnitudes above
 * 0. */
static void test_magnitudes_of_halves(void **state)
{
    const struct fixture *f = fixture_of(state);
    uint8_t *data = malloc(3 * 2 * 65536);
    assert_non_null(data);
    for (uint32_t i = 0; i < 3 * 65536; i++)
        bc_put_u16(data + 2 * i, (uint16_t)(i * 40503u));
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const struct bc_values v = {bf16 ? BITCONV_BF16 : BITCONV_F16, data, 3 * 65536};
        struct bc_magnitudes m;
        assert_int_equal(bc_magnitudes(f->best, f->pools[3], &v, &m, NULL), BITCONV_OK);
        assert_int_equal(m.n_zero, 6);
        assert_int_equal(m.n_distinct, bf16 ? 32639 : 31743);
        assert_true(m.max == (bf16 ? bc_bf16_to_f32(0x7f7f) : 65504.0f));
        uint64_t first = 0;
        while ((bc_get_u16(data + 2 * first) & 0x7fffu) < (bf16 ? 0x7f80u : 0x7c00u))
            first++;
        assert_int_equal(m.nonfinite, first);
    }
    free(data);
}

static float widen_one(enum bitconv_dtype dtype, const uint8_t *data)
{
    const struct bc_values v = {dtype, data, 1};
    float f = -1.0f;
    bc_widen(bc_kernels_at(0), &v, 0, 1, &f);
    return f;
}

/* Sign, exponent and mantissa by the formula of the OCP and Micikevicius et al. papers. */
static void test_widen_f8(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 256; b++) {
        const uint8_t byte = (uint8_t)b;
        const float e4m3 = widen_one(BITCONV_F8_E4M3, &byte);
        const float e5m2 = widen_one(BITCONV_F8_E5M2, &byte);
        const float e8m0 = widen_one(BITCONV_F8_E8M0, &byte);
        const int sign = b & 128 ? -1 : 1, e4 = b >> 3 & 15, m3 = b & 7, e5 = b >> 2 & 31,
                  m2 = b & 3;

        if (e4 == 15 && m3 == 7)
            assert_true(isnan(e4m3));
        else
            assert_true((double)e4m3 == sign * (e4 == 0 ? ldexp(m3, -9) : ldexp(8 + m3, e4 - 10)));
        if (e5 == 31)
            assert_true(m2 == 0 ? isinf(e5m2) && (e5m2 < 0) == (sign < 0) : isnan(e5m2));
        else
            assert_true((double)e5m2 == sign * (e5 == 0 ? ldexp(m2, -16) : ldexp(4 + m2, e5 - 17)));
        if (b == 255)
            assert_true(isnan(e8m0));
        else
            assert_true((double)e8m0 == ldexp(1, (int)b - 127));
        assert_int_equal(signbit(e5m2) != 0, b >> 7);
        assert_int_equal(signbit(e4m3) != 0 || isnan(e4m3), b >> 7 || isnan(e4m3));
    }
}

static void test_widen_integers_and_f64(void **state)
{
    (void)state;
    uint8_t b[8];
    memset(b, 0xff, sizeof b);
    assert_true(widen_one(BITCONV_U8, b) == 255.0f);
    assert_true(widen_one(BITCONV_BOOL, (const uint8_t[]){1}) == 1.0f);
    assert_true(widen_one(BITCONV_I8, b) == -1.0f);
    assert_true(widen_one(BITCONV_U16, b) == 65535.0f);
    assert_true(widen_one(BITCONV_I16, b) == -1.0f);
    assert_true(widen_one(BITCONV_U32, b) == 4294967296.0f);
    assert_true(widen_one(BITCONV_I32, b) == -1.0f);
    assert_true(widen_one(BITCONV_U64, b) == 18446744073709551616.0f);
    assert_true(widen_one(BITCONV_I64, b) == -1.0f);
    bc_put_u64(b, UINT64_C(0x8000000000000000));
    assert_true(widen_one(BITCONV_I64, b) == -9223372036854775808.0f);
    bc_put_u32(b, 16777217); /* 2^24 + 1: ties to even */
    assert_true(widen_one(BITCONV_I32, b) == 16777216.0f);
    bc_put_f64(b, 0.1);
    assert_true(widen_one(BITCONV_F64, b) == 0.1f);
    bc_put_f64(b, -1e300);
    assert_true(widen_one(BITCONV_F64, b) == -INFINITY);
    bc_put_f64(b, NAN);
    assert_true(isnan(widen_one(BITCONV_F64, b)));
}

/* Any piece of a run, in every type, equals the same piece of the whole. */
static void test_widen_pieces(void **state)
{
    uint8_t data[8 * 200];
    uint64_t rng = 77;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)rng_next(&rng);
    for (unsigned d = 0; d < BITCONV_N_DTYPES; d++) {
        const enum bitconv_dtype dtype = (enum bitconv_dtype)d;
        const struct bc_values v = {dtype, data + 1, 190};
        float whole[190], piece[190];
        bc_widen(fixture_of(state)->best, &v, 0, 190, whole);
        for (uint64_t first = 0; first < 190; first += 13) {
            const size_t n = (size_t)rng_below(&rng, 190 - first + 1);
            bc_widen(fixture_of(state)->best, &v, first, n, piece);
            assert_memory_equal(piece, whole + first, n * sizeof *piece);
            for (size_t i = 0; i < n; i += 50)
                assert_true(isnan(piece[i]) ||
                            piece[i] ==
                                widen_one(dtype, v.data + (first + i) * bitconv_dtype_size(dtype)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absmean_is_pairwise),
        cmocka_unit_test(test_absmean_of_large_runs),
        cmocka_unit_test(test_absmean_of_every_row),
        cmocka_unit_test(test_pairwise_differs_from_sequential),
        cmocka_unit_test(test_tie_of_four),
        cmocka_unit_test(test_mean_of_many_ones),
        cmocka_unit_test(test_smallest_absmean),
        cmocka_unit_test(test_nonfinite_weights),
        cmocka_unit_test(test_overflowing_sum),
        cmocka_unit_test(test_first_nonfinite_in_finite_runs),
        cmocka_unit_test(test_magnitudes_of_small_runs),
        cmocka_unit_test(test_one_magnitude_in_a_long_run),
        cmocka_unit_test(test_many_magnitudes),
        cmocka_unit_test(test_magnitudes_of_halves),
        cmocka_unit_test(test_widen_f8),
        cmocka_unit_test(test_widen_integers_and_f64),
        cmocka_unit_test(test_widen_pieces),
    };
    return cmocka_run_group_tests_name("quantize", tests, set_up, tear_down);
}
