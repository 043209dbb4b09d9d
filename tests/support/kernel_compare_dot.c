/* SPDX-License-Identifier: MIT
 * One loop over lengths for each family of dot products. */
#include "support/kernel_compare_dot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/kernels_rows.h"
#include "support/guard.h"
#include "support/rng.h"

enum {
    MAX_N = 6000, /* elements of a row or vector */
    MAX_ROWS = 9,
    MAX_X = 9,
    STRIDE = MAX_N + 3, /* odd: rows and vectors begin at any address */
    MAX_OUT = (MAX_ROWS + 1) * MAX_X,
    CANARY = 77
};

static const struct bc_kernels *const scalar = &bc_kernels_scalar;

/* Operands at the ends of guarded buffers, results before and after. */
struct buffers {
    struct guard w, x;
    int32_t expected[MAX_OUT], actual[MAX_OUT];
    float expected_f32[MAX_OUT], actual_f32[MAX_OUT];
};

static bool buffers_open(struct buffers *b)
{
    return guard_open(&b->w, sizeof(float) * MAX_ROWS * STRIDE) &&
           guard_open(&b->x, sizeof(float) * MAX_X * STRIDE);
}

static void buffers_close(struct buffers *b)
{
    guard_close(&b->w);
    guard_close(&b->x);
}

/* Lengths: every one up to several vectors, then some around where 16 bits would overflow. */
static size_t next_length(size_t n, size_t every, size_t last)
{
    const size_t next = n < every ? n + 1 : n + n / 3 + 29;
    return n < last && next > last ? last : next;
}

/* How many rows and vectors; the last ones for long rows as well. */
struct counts {
    size_t n_rows, n_x;
};
static const struct counts counts[] = {{0, 3}, {3, 0}, {2, 1}, {1, 2}, {2, 2},
                                       {3, 5}, {1, 4}, {1, 1}, {3, 9}, {9, 5}};
enum { N_COUNTS = sizeof counts / sizeof counts[0], FIRST_LONG = N_COUNTS - 3, SHORT = 70 };

/* ---- floats ---- */

enum floats { ORDINARY, MIXED_SIZES, SPECIAL, N_FLOATS };

static float draw_float(enum floats kind, uint64_t *rng)
{
    static const float special[] = {0.0f,   -0.0f,    INFINITY, -INFINITY, NAN,
                                    1e-45f, -3.4e38f, 3.4e38f,  1.0f,      -1.0f};
    const uint64_t r = rng_next(rng);
    if (kind == SPECIAL && r % 16 == 0) return special[(r >> 32) % 10];
    const float f = (float)(int32_t)(uint32_t)(r >> 32) * 4.656613e-10f;
    return kind == MIXED_SIZES ? ldexpf(f, (int)(r % 41) - 20) : f;
}

static void fill_floats(float *p, size_t n, enum floats kind, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = draw_float(kind, rng);
}

/* Which of several NaNs a sum hands on is not promised. */
static bool same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        if (bc_f32_bits(a[i]) != bc_f32_bits(b[i])) return false;
    }
    return true;
}

static bool compare_dots_f32(const struct bc_kernels *row, struct buffers *b, size_t n,
                             size_t n_rows, size_t n_x)
{
    const size_t w_size = n_rows == 0 ? 0 : (n_rows - 1) * STRIDE + n;
    const size_t x_size = n_x == 0 ? 0 : (n_x - 1) * STRIDE + n;
    struct bc_f32_dots d = {.w = (const float *)(const void *)guard_end(&b->w, 4 * w_size),
                            .w_stride = STRIDE,
                            .n_rows = n_rows,
                            .x = (const float *)(const void *)guard_end(&b->x, 4 * x_size),
                            .x_stride = STRIDE,
                            .n_x = n_x,
                            .n = n,
                            .out = b->expected_f32,
                            .out_stride = n_rows + 1};
    for (size_t i = 0; i < MAX_OUT; i++)
        b->expected_f32[i] = b->actual_f32[i] = CANARY;
    for (size_t v = 0; v < n_x; v++) {
        for (size_t r = 0; r < n_rows; r++)
            d.out[v * d.out_stride + r] = scalar->dot_f32(d.w + r * STRIDE, d.x + v * STRIDE, n);
    }
    d.out = b->actual_f32;
    row->dots_f32(&d);
    if (!same_floats(b->expected_f32, b->actual_f32, MAX_OUT)) return false;
    if (n_rows == 0 || n_x == 0) return true;
    const float one = row->dot_f32(d.w, d.x, n);
    return same_floats(&one, b->expected_f32, 1);
}

/* The rows' bytes as float16, whatever they say, against the products of what they widen to. */
static bool compare_dots_f16(const struct bc_kernels *row, struct buffers *b, size_t n,
                             size_t n_rows, size_t n_x)
{
    static float wide[MAX_N + 1];
    const size_t w_size = n_rows == 0 ? 0 : (n_rows - 1) * STRIDE + n;
    const size_t x_size = n_x == 0 ? 0 : (n_x - 1) * STRIDE + n;
    const uint8_t *w = guard_end(&b->w, 2 * w_size);
    struct bc_f32_dots d = {.w_stride = STRIDE,
                            .n_rows = n_rows,
                            .x = (const float *)(const void *)guard_end(&b->x, 4 * x_size),
                            .x_stride = STRIDE,
                            .n_x = n_x,
                            .n = n,
                            .out = b->actual_f32,
                            .out_stride = n_rows + 1};
    for (size_t i = 0; i < MAX_OUT; i++)
        b->expected_f32[i] = b->actual_f32[i] = CANARY;
    for (size_t r = 0; r < n_rows; r++) {
        scalar->widen_f16(w + 2 * r * STRIDE, n, wide);
        for (size_t v = 0; v < n_x; v++)
            b->expected_f32[v * d.out_stride + r] = scalar->dot_f32(wide, d.x + v * STRIDE, n);
    }
    row->dots_f16(w, &d);
    return same_floats(b->expected_f32, b->actual_f32, MAX_OUT);
}

static bool compare_axpy(const struct bc_kernels *row, struct buffers *b, size_t n)
{
    static float expected[MAX_N + 1], actual[MAX_N + 1];
    const float *x = (const float *)(const void *)guard_end(&b->x, 4 * n);
    const float *y = (const float *)(const void *)guard_end(&b->w, 4 * n);
    memcpy(expected, y, 4 * n);
    memcpy(actual, y, 4 * n);
    expected[n] = actual[n] = CANARY;
    scalar->axpy(0.7071068f, x, n, expected);
    row->axpy(0.7071068f, x, n, actual);
    return same_floats(expected, actual, n + 1);
}

/* Sums of n_x rows of width n, n_sums of them with factors of their own, against axpy. */
static bool compare_sums(const struct bc_kernels *row, struct buffers *b, size_t n, size_t n_x,
                         size_t n_sums)
{
    static float expected[4 * (MAX_N + 1)], actual[4 * (MAX_N + 1)];
    const size_t x_size = n_x == 0 ? 0 : (n_x - 1) * STRIDE + n;
    const struct bc_f32_sums s = {.f = (const float *)(const void *)guard_end(&b->w, 4 * 16),
                                  .f_stride = 2,
                                  .n_sums = n_sums,
                                  .x = (const float *)(const void *)guard_end(&b->x, 4 * x_size),
                                  .x_stride = STRIDE,
                                  .n = n_x,
                                  .width = n,
                                  .out = actual,
                                  .out_stride = n + 1};
    for (size_t i = 0; i < 4 * (n + 1); i++)
        expected[i] = actual[i] = CANARY;
    for (size_t v = 0; v < n_sums; v++) {
        float *const to = expected + v * s.out_stride;
        for (size_t c = 0; c < n; c++)
            to[c] = 0;
        for (size_t i = 0; i < n_x; i++)
            scalar->axpy(s.f[v * s.f_stride + i], s.x + i * STRIDE, n, to);
    }
    row->sums_f32(&s);
    return same_floats(expected, actual, 4 * (n + 1));
}

static bool compare_quantize(const struct bc_kernels *row, struct buffers *b, size_t n)
{
    static int8_t expected[MAX_N + 1], actual[MAX_N + 1];
    const float *x = (const float *)(const void *)guard_end(&b->x, 4 * n);
    expected[n] = actual[n] = CANARY;
    const float a = scalar->quantize_i8(x, n, expected);
    const float a_row = row->quantize_i8(x, n, actual);
    return same_floats(&a, &a_row, 1) && memcmp(expected, actual, n + 1) == 0;
}

/* Halves of steps: max 127, so that a is 1, and ties. */
static void fill_ties(float *p, size_t n, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = i == n / 2 ? 127.0f : (float)((int)(rng_next(rng) % 509) - 254) * 0.5f;
}

static bool compare_floats(const struct bc_kernels *row, struct buffers *b, char *why,
                           size_t why_size)
{
    float *const w = (float *)(void *)b->w.start, *const x = (float *)(void *)b->x.start;
    uint64_t rng = 11;
    for (int kind = 0; kind < N_FLOATS; kind++) {
        fill_floats(w, b->w.room / 4, (enum floats)kind, &rng);
        fill_floats(x, b->x.room / 4, (enum floats)kind, &rng);
        for (size_t n = 0; n <= 2 * MAX_N / 3; n = next_length(n, SHORT, MAX_N)) {
            bool equal = compare_axpy(row, b, n) && compare_quantize(row, b, n);
            for (size_t i = n <= SHORT ? 0 : FIRST_LONG; i < N_COUNTS && equal; i++)
                equal = compare_dots_f32(row, b, n, counts[i].n_rows, counts[i].n_x) &&
                        compare_sums(row, b, n, counts[i].n_rows, counts[i].n_x % 5) &&
                        compare_dots_f16(row, b, n, counts[i].n_rows, counts[i].n_x);
            if (equal) continue;
            snprintf(why, why_size, "float products of row %s differ from scalar, n %zu, kind %d",
                     row->name, n, kind);
            return false;
        }
    }
    for (size_t n = 0; n <= MAX_N; n = next_length(n, 100, MAX_N)) {
        fill_ties((float *)(void *)guard_end(&b->x, 4 * n), n, &rng);
        if (compare_quantize(row, b, n)) continue;
        snprintf(why, why_size, "ties of quantize_i8 of row %s differ, n %zu", row->name, n);
        return false;
    }
    return true;
}

/* ---- integers ---- */

/* Activations that drive sums of 16 bits to their ends, and random ones; codes likewise. */
enum extremes { RANDOM, ALL_LOW, ALL_HIGH, N_EXTREMES };

static void fill_bytes(uint8_t *p, size_t n, enum extremes kind, uint8_t low, uint8_t high,
                       uint64_t *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = kind == RANDOM ? (uint8_t)(rng_next(rng) >> 40) : kind == ALL_LOW ? low : high;
}

static void fill_trits(uint8_t *p, size_t n, enum extremes kind, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(kind == RANDOM ? (int)(rng_next(rng) % 4) - 1 : kind == ALL_LOW ? -1 : 2);
}

/* A kernel with rows and vectors; width 0: trits. */
static void run_i8(const struct bc_kernels *k, const struct bc_i8_dots *d, size_t width)
{
    if (width == 0)
        k->trit_dots(d);
    else
        k->plane_dots(d, width);
}

static bool compare_i8(const struct bc_kernels *row, struct buffers *b, size_t n, size_t width,
                       size_t n_rows, size_t n_x)
{
    const size_t row_bytes = width == 0 ? n : n / 4;
    const size_t w_stride = row_bytes + 3;
    const size_t w_size = n_rows == 0 ? 0 : (n_rows - 1) * w_stride + row_bytes;
    const size_t x_size = n_x == 0 ? 0 : (n_x - 1) * STRIDE + n;
    struct bc_i8_dots d = {.w = guard_end(&b->w, w_size),
                           .w_stride = w_stride,
                           .n_rows = n_rows,
                           .x = (const int8_t *)guard_end(&b->x, x_size),
                           .x_stride = STRIDE,
                           .n_x = n_x,
                           .n = n,
                           .out = b->expected,
                           .out_stride = n_rows + 1};
    for (size_t i = 0; i < MAX_OUT; i++)
        b->expected[i] = b->actual[i] = CANARY; /* products are added to it */
    run_i8(scalar, &d, width);
    d.out = b->actual;
    run_i8(row, &d, width);
    return memcmp(b->expected, b->actual, sizeof b->expected) == 0;
}

static bool compare_widths(const struct bc_kernels *row, struct buffers *b, int kind, char *why,
                           size_t why_size)
{
    static const size_t widths[3] = {0, 16, 32};
    uint64_t rng = 23;
    for (size_t i = 0; i < 3; i++) {
        const size_t step = widths[i] == 0 ? 1 : 4 * widths[i];
        if (widths[i] == 0)
            fill_trits(b->w.start, b->w.room, (enum extremes)(kind / 3), &rng);
        else
            fill_bytes(b->w.start, b->w.room, (enum extremes)(kind / 3), 0, 0xff, &rng);
        for (size_t n = 0; n <= MAX_N / step;
             n = next_length(n, widths[i] == 0 ? SHORT : 17, MAX_N / step)) {
            for (size_t c = n * step <= SHORT * 2 ? 0 : FIRST_LONG; c < N_COUNTS; c++) {
                if (compare_i8(row, b, n * step, widths[i], counts[c].n_rows, counts[c].n_x))
                    continue;
                snprintf(why, why_size, "products of row %s differ: width %zu, n %zu, kind %d",
                         row->name, widths[i], n * step, kind);
                return false;
            }
        }
    }
    return true;
}

/* A kernel with one number a block. */
typedef void (*block_codes)(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);

static bool compare_blocks(block_codes expected, block_codes actual, struct buffers *b,
                           size_t bytes, size_t block)
{
    for (size_t n = 0; n <= 19; n++) {
        const uint8_t *w = guard_end(&b->w, n * bytes);
        const int8_t *x = (const int8_t *)guard_end(&b->x, n * block);
        for (size_t i = 0; i < MAX_OUT; i++)
            b->expected[i] = b->actual[i] = CANARY;
        expected(w, n, x, b->expected);
        actual(w, n, x, b->actual);
        if (memcmp(b->expected, b->actual, sizeof b->expected) != 0) return false;
    }
    return true;
}

static bool compare_block_sums(const struct bc_kernels *row, struct buffers *b)
{
    static const size_t blocks[] = {32, 64, 128, 256, 4096};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        const size_t n = i == 4 ? 1 : 5;
        const int8_t *x = (const int8_t *)guard_end(&b->x, n * blocks[i]);
        for (size_t j = 0; j < MAX_OUT; j++)
            b->expected[j] = b->actual[j] = CANARY;
        scalar->block_sums(x, n, blocks[i], b->expected);
        row->block_sums(x, n, blocks[i], b->actual);
        if (memcmp(b->expected, b->actual, sizeof b->expected) != 0) return false;
    }
    return true;
}

static bool compare_packs(const struct bc_kernels *row, struct buffers *b, int kind, char *why,
                          size_t why_size)
{
    uint64_t rng = 31;
    fill_bytes(b->w.start, b->w.room, (enum extremes)(kind / 3), 0, 0xff, &rng);
    const char *name = NULL;
    if (!compare_blocks(scalar->tq1_0_codes, row->tq1_0_codes, b, 54, 256)) name = "tq1_0_codes";
    if (!compare_blocks(scalar->tq2_0_codes, row->tq2_0_codes, b, 66, 256)) name = "tq2_0_codes";
    if (!compare_blocks(scalar->q2_0_codes, row->q2_0_codes, b, 18, 64)) name = "q2_0_codes";
    if (!compare_blocks(scalar->q1_0_codes, row->q1_0_codes, b, 18, 128)) name = "q1_0_codes";
    if (!compare_block_sums(row, b)) name = "block_sums";
    if (name == NULL) return true;
    snprintf(why, why_size, "%s of row %s differs from scalar, kind %d", name, row->name, kind);
    return false;
}

/* ---- BITCOS ---- */

static uint64_t count_bits(const uint8_t *bits, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += bits[i / 8] >> i % 8 & 1;
    return count;
}

/* The bitmap in whole words, the stream of signs in whole words from bit `rank` on. */
static bool compare_bitcos(const struct bc_kernels *row, struct buffers *b, size_t n, uint64_t rank,
                           const uint8_t *signs)
{
    const uint8_t *bitmap = guard_end(&b->w, (n + 63) / 64 * 8);
    const int8_t *x = (const int8_t *)guard_end(&b->x, n);
    const uint64_t n_signs = rank + count_bits(bitmap, n);
    int32_t expected = CANARY, actual = CANARY;
    const uint64_t end = scalar->bitcos_dot(bitmap, n, signs, n_signs, rank, x, &expected);
    const uint64_t end_row = row->bitcos_dot(bitmap, n, signs, n_signs, rank, x, &actual);
    return end == n_signs && end_row == end && expected == actual;
}

static bool compare_bitcos_lengths(const struct bc_kernels *row, struct buffers *b, int kind,
                                   char *why, size_t why_size)
{
    struct guard signs;
    uint64_t rng = 41;
    bool equal = true;
    if (!guard_open(&signs, MAX_N)) return false;
    fill_bytes(signs.start, signs.room, (enum extremes)(kind % 2), 0xff, 0xff, &rng);
    for (size_t n = 0; n <= MAX_N && equal; n = next_length(n, 300, MAX_N)) {
        const uint64_t rank = n * 7 % 131;
        const uint8_t *bitmap = guard_end(&b->w, (n + 63) / 64 * 8);
        const uint64_t n_words = (rank + count_bits(bitmap, n) + 63) / 64;
        equal = compare_bitcos(row, b, n, rank, guard_end(&signs, (size_t)n_words * 8));
        if (!equal)
            snprintf(why, why_size, "bitcos_dot of row %s differs, n %zu, rank %u, kind %d",
                     row->name, n, (unsigned)rank, kind);
    }
    guard_close(&signs);
    return equal;
}

/* ---- T5, TL1, TL2 ---- */

enum { PLANE = 420, PLANE_READ = 448 /* the next multiple of 32 */ };

static bool compare_t5(const struct bc_kernels *row, struct buffers *b, int kind)
{
    for (size_t n = 0; n <= PLANE; n++) {
        const size_t read = (n + 31) / 32 * 32;
        uint8_t *bytes = guard_end(&b->w, n);
        const int8_t *planes[5];
        for (size_t t = 0; t < 5; t++)
            planes[t] = t == 0 ? (const int8_t *)guard_end(&b->x, read)
                               : (const int8_t *)b->x.start + t * PLANE_READ + t;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(kind < 3 ? (i * 7 + n) % 243 : kind < 6 ? 0 : 242);
        if (scalar->t5_codes(bytes, n, planes) != row->t5_codes(bytes, n, planes)) return false;
    }
    return true;
}

static bool compare_tables(const struct bc_kernels *row, struct buffers *b, size_t n)
{
    static uint8_t expected[300 * BC_PAIR_TABLE + 1], actual[sizeof expected];
    const int8_t *quads = (const int8_t *)guard_end(&b->x, 4 * n);
    memset(expected, CANARY, sizeof expected);
    memset(actual, CANARY, sizeof actual);
    scalar->pair_tables(quads, n, expected);
    row->pair_tables(quads, n, actual);
    if (memcmp(expected, actual, sizeof expected) != 0) return false;
    const int8_t *triples = (const int8_t *)guard_end(&b->x, 3 * n);
    scalar->triple_tables(triples, n, expected);
    row->triple_tables(triples, n, actual);
    return memcmp(expected, actual, sizeof expected) == 0;
}

/* Bytes with all nibbles, so that entries without a meaning are looked up as well. */
static bool compare_look_ups(const struct bc_kernels *row, struct buffers *b, size_t n)
{
    static uint8_t tables[300 * BC_PAIR_TABLE];
    const size_t n_groups = n / 8;
    for (size_t i = 0; i < MAX_OUT; i++)
        b->expected[i] = b->actual[i] = CANARY; /* added to */
    scalar->pair_tables((const int8_t *)b->x.start, n, tables);
    const uint8_t *quads = guard_end(&b->w, n == 0 ? 0 : 48 * (n - 1) + 16);
    scalar->pair_sums(quads, 48, n, tables, BC_PAIR_TABLE, b->expected);
    row->pair_sums(quads, 48, n, tables, BC_PAIR_TABLE, b->actual);
    scalar->pair_sums(quads, 96, n / 2, tables, 2 * BC_PAIR_TABLE, b->expected);
    row->pair_sums(quads, 96, n / 2, tables, 2 * BC_PAIR_TABLE, b->actual);
    if (memcmp(b->expected, b->actual, sizeof b->expected) != 0) return false;
    scalar->triple_tables((const int8_t *)b->x.start, n, tables);
    const uint8_t *signs = guard_end(&b->w, 32 * n_groups), *magnitudes = b->w.start + 1;
    scalar->triple_sums(magnitudes, signs, n_groups, tables, b->expected);
    row->triple_sums(magnitudes, signs, n_groups, tables, b->actual);
    return memcmp(b->expected, b->actual, sizeof b->expected) == 0;
}

/* Rows of TL2: what trits give, and what any bytes, legal or not, are read as. */
static bool compare_tl2_rows(const struct bc_kernels *row, struct buffers *b, size_t n_groups)
{
    static uint8_t expected[8192], actual[8192];
    uint64_t rng = 71;
    int8_t *trits = (int8_t *)guard_end(&b->w, 24 * n_groups);
    for (size_t i = 0; i < 24 * n_groups; i++)
        trits[i] = (int8_t)((int)(rng_next(&rng) % 3) - 1);
    memset(expected, CANARY, sizeof expected);
    memset(actual, CANARY, sizeof actual);
    for (unsigned half = 0; half < 2; half++) {
        scalar->tl2_pack_row(trits + half, n_groups - half, half, expected + half, expected + 6000);
        row->tl2_pack_row(trits + half, n_groups - half, half, actual + half, actual + 6000);
    }
    if (memcmp(expected, actual, sizeof expected) != 0) return false;
    for (unsigned i = 0; i < 4; i++) {
        /* First what was packed, then random magnitudes. */
        const uint8_t *magnitudes = i < 2 ? actual + i % 2 : b->x.start;
        int8_t back[2][24 * 45];
        memset(back, CANARY, sizeof back);
        const bool legal =
            scalar->tl2_unpack_row(magnitudes, actual + 6000, i % 2, n_groups - i % 2, back[0]);
        if (row->tl2_unpack_row(magnitudes, actual + 6000, i % 2, n_groups - i % 2, back[1]) !=
                legal ||
            memcmp(back[0], back[1], sizeof back[0]) != 0)
            return false;
    }
    return true;
}

/* Fills the codes itself. */
static bool compare_numbers(const struct bc_kernels *row, struct buffers *b, int kind, char *why,
                            size_t why_size)
{
    uint64_t rng = 53;
    fill_bytes(b->w.start, b->w.room, (enum extremes)(kind / 3), 0, 0xdd, &rng);
    for (size_t n = 0; n <= 300; n = next_length(n, 40, 300)) {
        if (compare_tables(row, b, n) && compare_look_ups(row, b, n)) continue;
        snprintf(why, why_size, "TL tables or sums of row %s differ, n %zu, kind %d", row->name, n,
                 kind);
        return false;
    }
    for (size_t n = 1; n <= 45; n++) {
        if (compare_tl2_rows(row, b, n)) continue;
        snprintf(why, why_size, "TL2 rows of row %s differ, %zu groups", row->name, n);
        return false;
    }
    if (compare_t5(row, b, kind)) return true;
    snprintf(why, why_size, "t5_codes of row %s differs, kind %d", row->name, kind);
    return false;
}

bool kernel_dots_equal_scalar(const struct bc_kernels *row, char *why, size_t why_size)
{
    struct buffers b;
    uint64_t rng = 3;
    if (!buffers_open(&b)) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    bool equal = compare_floats(row, &b, why, why_size);
    for (int kind = 0; kind < N_EXTREMES * N_EXTREMES && equal; kind++) {
        fill_bytes(b.x.start, b.x.room, (enum extremes)(kind % 3), 0x80, 0x7f, &rng);
        equal = compare_widths(row, &b, kind, why, why_size) &&
                compare_packs(row, &b, kind, why, why_size) &&
                compare_bitcos_lengths(row, &b, kind, why, why_size) &&
                compare_numbers(row, &b, kind, why, why_size);
    }
    buffers_close(&b);
    return equal;
}
