/* SPDX-License-Identifier: MIT
 * Throughput of packs, as a share of memcpy of the unpacked trits measured in the same run. Copies
 * and packs take turns, so that a busy machine hurts them alike, and medians count. */
#include "bitconv/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "base/pool.h"
#include "formats/block_pack.h"
#include "formats/format.h"
#include "quant/kernels.h"

enum {
    DEFAULT_SIDE = 4096,
    DEFAULT_REPETITIONS = 5,
    MAX_REPETITIONS = 1000,
    MAX_COLS = 1 << 23 /* * 128 fits an int32 */
};
#define MAX_WEIGHTS (UINT64_C(1) << 36)

enum operation { PACK, UNPACK, GEMV, N_OPERATIONS };

/* One thread's matrix. */
struct matrix {
    int8_t *trits, *back, *x;
    int32_t *products;
    uint8_t *packed;
};

struct bench {
    const struct bitconv_sink *sink;
    const struct bc_kernels *k;
    struct bc_pool *pool; /* NULL: one thread */
    unsigned n_threads, repetitions;
    double zeros;
    struct bc_pack_shape shape; /* n_nonzero is the matrix's with zeros */
    uint64_t n_nonzero;
    struct matrix *matrices; /* one a thread */
    double *seconds;         /* repetitions of what is being measured */
    double *copies;          /* of memcpy, over all packs */
    size_t n_copies;
    /* What the threads are at. */
    const struct bc_format *format;
    enum operation operation;
};

/* ---- numbers ---- */

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The same trits for every thread; returns how many are not 0. */
static uint64_t draw_trits(int8_t *trits, uint64_t n, double zeros)
{
    const uint64_t below = (uint64_t)(zeros * 4294967296.0);
    uint64_t state = 1, n_nonzero = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = next_random(&state);
        trits[i] = (int8_t)(r >> 32 < below ? 0 : 2 * (int)(r & 1) - 1);
        n_nonzero += trits[i] != 0;
    }
    return n_nonzero;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Sorts its argument. */
static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- operations ---- */

static void copy_trits(void *ctx, size_t i, unsigned worker)
{
    const struct bench *b = ctx;
    const struct matrix *m = &b->matrices[i];
    (void)worker;
    memcpy(m->back, m->trits, (size_t)b->shape.n);
}

static void operate(void *ctx, size_t i, unsigned worker)
{
    const struct bench *b = ctx;
    const struct matrix *m = &b->matrices[i];
    const float scale = 1.0f;
    (void)worker;
    switch (b->operation) {
    case PACK:
        b->format->pack(b->k, &b->shape, m->trits, 0, b->shape.n, m->packed);
        b->format->put_scales(&b->shape, &scale, 1, m->packed);
        break;
    case UNPACK:
        (void)b->format->unpack(b->k, &b->shape, m->packed, 0, b->shape.n, m->back);
        break;
    default:
        b->format->dot_rows(b->k, &b->shape, m->packed, 0, b->shape.rows, m->x, b->shape.cols, 1,
                            m->products);
        break;
    }
}

static double timed(struct bench *b, void (*fn)(void *ctx, size_t i, unsigned worker))
{
    const double start = now();
    bc_pool_run(b->pool, b->n_threads, fn, b);
    const double seconds = now() - start;
    return seconds > 0 ? seconds : 1e-9; /* the clock's resolution */
}

/* Every matrix holds what was packed, and every product is the trits'. */
static enum bitconv_status check_results(const struct bench *b, struct bitconv_error *err)
{
    for (unsigned i = 0; i < b->n_threads; i++) {
        const struct matrix *m = &b->matrices[i];
        if (memcmp(m->back, m->trits, (size_t)b->shape.n) != 0)
            return bc_fail(err, BITCONV_E_BUG, "%s on %s: what was packed is not what is unpacked",
                           b->format->name, b->k->name);
        for (uint64_t row = 0; row < b->shape.rows; row++) {
            int32_t sum = 0;
            for (uint64_t col = 0; col < b->shape.cols; col++)
                sum += m->trits[row * b->shape.cols + col] * m->x[col];
            if (sum != m->products[row])
                return bc_fail(err, BITCONV_E_BUG,
                               "%s on %s: row %" PRIu64 " gives %" PRId32
                               ", its trits give %" PRId32,
                               b->format->name, b->k->name, row, m->products[row], sum);
        }
    }
    return BITCONV_OK;
}

/* ---- one pack ---- */

/* Packs without zeros get a matrix without. */
static void fill_for(struct bench *b, const struct bc_format *format)
{
    const struct bc_block_pack *blocks = bc_block_pack_of(format);
    const double zeros = blocks != NULL && !blocks->holds_zeros ? 0.0 : b->zeros;
    for (unsigned i = 0; i < b->n_threads; i++)
        b->n_nonzero = draw_trits(b->matrices[i].trits, b->shape.n, zeros);
}

static enum bitconv_status allocate_packed(struct bench *b, uint64_t size,
                                           struct bitconv_error *err)
{
    for (unsigned i = 0; i < b->n_threads; i++) {
        bc_free(b->matrices[i].packed);
        b->matrices[i].packed = bc_alloc_array((size_t)size, 1);
        if (b->matrices[i].packed == NULL) return bc_fail_nomem(err, "a packed matrix");
    }
    return BITCONV_OK;
}

static enum bitconv_status run_repetitions(struct bench *b, struct bitconv_error *err)
{
    for (unsigned r = 0; r < b->repetitions; r++) {
        if (bc_canceled(b->sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        bc_progress(b->sink, b->format->name, r, b->repetitions);
        b->copies[b->n_copies++] = timed(b, copy_trits);
        for (int operation = 0; operation < N_OPERATIONS; operation++) {
            b->operation = (enum operation)operation;
            b->seconds[(size_t)operation * b->repetitions + r] = timed(b, operate);
        }
        if (r == 0) BC_TRY(check_results(b, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status measure_pack(struct bench *b, const struct bc_format *format,
                                        struct bitconv_pack_rate *rate, struct bitconv_error *err)
{
    const double n = (double)b->shape.n * b->n_threads;
    rate->name = format->name;
    if (format->dot_rows == NULL ||
        !bc_format_fit(format, NULL, &b->shape, rate->misfit, sizeof rate->misfit))
        return BITCONV_OK;
    fill_for(b, format);
    b->format = format;
    b->shape.n_nonzero = b->n_nonzero;
    const uint64_t size = format->size(&b->shape);
    BC_TRY(allocate_packed(b, size, err));
    BC_TRY(run_repetitions(b, err));
    rate->bits_per_weight = 8.0 * (double)size / (double)b->shape.n;
    rate->pack = n / median(b->seconds, b->repetitions);
    rate->unpack = n / median(b->seconds + b->repetitions, b->repetitions);
    rate->gemv = n / median(b->seconds + 2 * b->repetitions, b->repetitions);
    return BITCONV_OK;
}

/* ---- set-up ---- */

static enum bitconv_status read_options(struct bench *b,
                                        const struct bitconv_bench_packs_options *o,
                                        struct bitconv_error *err)
{
    bool known = false;
    const uint64_t rows = o->rows == 0 ? DEFAULT_SIDE : o->rows;
    const uint64_t cols = o->cols == 0 ? DEFAULT_SIDE : o->cols;
    b->repetitions = o->repetitions == 0 ? DEFAULT_REPETITIONS : o->repetitions;
    b->zeros = o->has_zeros ? o->zeros : 1.0 / 3;
    b->k = o->cpu == NULL ? bc_kernels_best() : bc_kernels_named(o->cpu, &known);
    if (b->k == NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       known ? "this processor does not have the instruction set '%s'"
                             : "unknown instruction set '%s': wanted scalar, avx2, avx512 or neon",
                       o->cpu);
    if (!(b->zeros >= 0.0 && b->zeros <= 1.0))
        return bc_fail(err, BITCONV_E_ARG, "a share of zeros of %g was asked for, it is 0 to 1",
                       b->zeros);
    if (b->repetitions > MAX_REPETITIONS)
        return bc_fail(err, BITCONV_E_ARG, "%u repetitions were asked for, at most %d are made",
                       b->repetitions, MAX_REPETITIONS);
    if (cols > MAX_COLS || rows > MAX_WEIGHTS / cols)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "a matrix of %" PRIu64 " x %" PRIu64 " was asked for, columns go up to %d "
                       "and weights up to %" PRIu64,
                       cols, rows, MAX_COLS, MAX_WEIGHTS);
    b->shape = (struct bc_pack_shape){.cols = cols, .rows = rows, .slices = 1, .n = cols * rows};
    return BITCONV_OK;
}

static enum bitconv_status allocate_matrices(struct bench *b, struct bitconv_error *err)
{
    b->matrices = bc_alloc_array(b->n_threads, sizeof *b->matrices);
    b->seconds = bc_alloc_array((size_t)N_OPERATIONS * b->repetitions, sizeof *b->seconds);
    if (b->matrices == NULL || b->seconds == NULL) return bc_fail_nomem(err, "the benchmark");
    for (unsigned i = 0; i < b->n_threads; i++) {
        struct matrix *m = &b->matrices[i];
        uint64_t state = 2;
        m->trits = bc_alloc_array((size_t)b->shape.n, 1);
        m->back = bc_alloc_array((size_t)b->shape.n, 1);
        m->x = bc_alloc_array((size_t)b->shape.cols, 1);
        m->products = bc_alloc_array((size_t)b->shape.rows, sizeof *m->products);
        if (m->trits == NULL || m->back == NULL || m->x == NULL || m->products == NULL)
            return bc_fail_nomem(err,
                                 "matrices of the benchmark; fewer --rows or --cols need less");
        for (uint64_t col = 0; col < b->shape.cols; col++)
            m->x[col] = (int8_t)(next_random(&state) >> 56);
        memset(m->back, 1, (size_t)b->shape.n); /* every page is there before the clock runs */
    }
    return BITCONV_OK;
}

static void release(struct bench *b)
{
    for (unsigned i = 0; b->matrices != NULL && i < b->n_threads; i++) {
        bc_free(b->matrices[i].trits);
        bc_free(b->matrices[i].back);
        bc_free(b->matrices[i].x);
        bc_free(b->matrices[i].products);
        bc_free(b->matrices[i].packed);
    }
    bc_free(b->matrices);
    bc_free(b->seconds);
    bc_free(b->copies);
    bc_pool_free(b->pool);
}

/* The i-th pack that is wanted; NULL behind the last. */
static const struct bc_format *wanted_pack(const struct bitconv_bench_packs_options *o, size_t i)
{
    if (o->n_packs == 0) return bc_format_at(i);
    return i < o->n_packs ? bc_format_find(o->packs[i]) : NULL;
}

static enum bitconv_status count_packs(const struct bitconv_bench_packs_options *o, size_t *n,
                                       struct bitconv_error *err)
{
    *n = 0;
    while (wanted_pack(o, *n) != NULL)
        ++*n;
    if (o->n_packs == 0 || *n == o->n_packs) return BITCONV_OK;
    struct bc_nearest nearest = {.word = o->packs[*n]};
    char hint[BC_NEAREST_HINT_SIZE];
    for (size_t i = 0; bc_format_at(i) != NULL; i++)
        bc_nearest_offer(&nearest, bc_format_at(i)->name);
    return bc_fail(err, BITCONV_E_ARG,
                   "'%s' is no ternary pack, `bitconv formats --packs` lists them%s", o->packs[*n],
                   bc_nearest_hint(&nearest, "", hint, sizeof hint));
}

static enum bitconv_status measure(struct bench *b, const struct bitconv_bench_packs_options *o,
                                   struct bitconv_pack_bench *out, struct bitconv_error *err)
{
    BC_TRY(read_options(b, o, err));
    BC_TRY(count_packs(o, &out->n_rates, err));
    if (o->n_threads > 1) BC_TRY(bc_pool_new(o->n_threads, &b->pool, err));
    b->n_threads = bc_pool_threads(b->pool);
    BC_TRY(allocate_matrices(b, err));
    out->rates = bc_alloc_array(out->n_rates, sizeof *out->rates);
    b->copies = bc_alloc_array(out->n_rates * b->repetitions, sizeof *b->copies);
    if (out->rates == NULL || b->copies == NULL) return bc_fail_nomem(err, "the benchmark");
    for (size_t i = 0; i < out->n_rates; i++)
        BC_TRY(measure_pack(b, wanted_pack(o, i), &out->rates[i], err));
    out->cpu = b->k->name;
    out->n_threads = b->n_threads;
    out->repetitions = b->repetitions;
    out->rows = b->shape.rows;
    out->cols = b->shape.cols;
    out->zeros = b->zeros;
    if (b->n_copies > 0)
        out->memcpy_rate = (double)b->shape.n * b->n_threads / median(b->copies, b->n_copies);
    return BITCONV_OK;
}

enum bitconv_status bitconv_bench_packs(const struct bitconv_bench_packs_options *options,
                                        const struct bitconv_sink *sink,
                                        struct bitconv_pack_bench **out, struct bitconv_error *err)
{
    static const struct bitconv_bench_packs_options defaults = {0};
    struct bench b = {.sink = sink};
    struct bitconv_pack_bench *bench = bc_alloc_array(1, sizeof *bench);
    if (bench == NULL) return bc_fail_nomem(err, "the benchmark");
    const enum bitconv_status status =
        measure(&b, options == NULL ? &defaults : options, bench, err);
    release(&b);
    if (status != BITCONV_OK) {
        bitconv_pack_bench_free(bench);
        return status;
    }
    *out = bench;
    return BITCONV_OK;
}

void bitconv_pack_bench_free(struct bitconv_pack_bench *bench)
{
    if (bench == NULL) return;
    bc_free(bench->rates);
    bc_free(bench);
}
