/* SPDX-License-Identifier: MIT
 * Throughput of the dot products: every pack's rows times one vector and times many, on every row
 * of kernels, from a matrix in the cache and from one that is not; and float32 rows. Not a test.
 *
 * usage: bench_dots [PACK [ROWS_OF_2560]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/rows.h"
#include "quant/kernels.h"
#include "support/rng.h"

enum { ROUNDS = 7, COLS = 2560, MANY = 256 };

static const struct bc_format *const packs[] = {
    &bc_format_i2_s, &bc_format_i2_s_64, &bc_format_tl1,   &bc_format_tl2,  &bc_format_bitcos,
    &bc_format_t5,   &bc_format_tq1_0,   &bc_format_tq2_0, &bc_format_q2_0, &bc_format_q1_0,
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may share the processor */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(uint64_t size)
{
    void *p = malloc((size_t)size);
    if (p == NULL) exit(2);
    memset(p, 1, (size_t)size);
    return p;
}

static int8_t x[MANY * COLS];

/* Seconds for `times` products of all rows with n_x vectors. */
static double measure(const struct bc_format *f, const struct bc_kernels *k,
                      const struct bc_pack_shape *shape, const uint8_t *packed, uint32_t n_x,
                      unsigned times, int rounds, int32_t *out)
{
    double best = 1e9;
    for (int round = 0; round < rounds; round++) {
        const double start = now();
        for (unsigned i = 0; i < times; i++) {
            for (uint64_t row = 0; row < shape->rows; row += 128) {
                const uint64_t n = shape->rows - row < 128 ? shape->rows - row : 128;
                f->dot_rows(k, shape, packed, row, n, x, COLS, n_x, out);
            }
        }
        const double time = now() - start;
        if (time < best) best = time;
    }
    return best / times;
}

static void measure_pack(const struct bc_format *f, uint64_t rows)
{
    struct bc_pack_shape shape = {.cols = COLS, .rows = rows, .slices = 1, .n = COLS * rows};
    const float scale = 1.0f;
    char why[256];
    uint64_t rng = 1;
    if (!bc_format_fit(f, NULL, &shape, why, sizeof why)) {
        printf("%-8s %s\n", f->name, why);
        return;
    }
    int8_t *trits = allocate(shape.n);
    for (uint64_t i = 0; i < shape.n; i++) {
        const uint64_t r = rng_next(&rng) >> 32;
        trits[i] = (int8_t)(f == &bc_format_q1_0 ? 2 * (int)(r & 1) - 1 : (int)(r % 3) - 1);
        shape.n_nonzero += trits[i] != 0;
    }
    uint8_t *packed = allocate(f->size(&shape));
    int32_t *out = allocate(128 * MANY * sizeof *out);
    f->pack(bc_kernels_best(), &shape, trits, 0, shape.n, packed);
    f->put_scales(&shape, &scale, 1, packed);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        const struct bc_kernels *k = bc_kernels_at(i);
        const unsigned times = i == 0 ? 1 : (unsigned)(1 + 8192 / rows);
        const double one = measure(f, k, &shape, packed, 1, times, ROUNDS, out);
        const double many = measure(f, k, &shape, packed, MANY, 1, i == 0 ? 1 : ROUNDS, out);
        printf("%-8s %-8s rows %6u: one vector %7.2f Gweights/s %6.2f GB/s; %d vectors %7.2f "
               "Gweights/s a vector\n",
               f->name, k->name, (unsigned)rows, 1e-9 * (double)shape.n / one,
               1e-9 * (double)f->size(&shape) / one, MANY, 1e-9 * (double)shape.n * MANY / many);
    }
    free(trits);
    free(packed);
    free(out);
}

static void measure_floats(uint64_t rows)
{
    float *w = allocate(COLS * rows * sizeof *w), *v = allocate(MANY * COLS * sizeof *v);
    float *out = allocate(rows * MANY * sizeof *out);
    memset(w, 0, COLS * rows * sizeof *w);
    memset(v, 0, MANY * COLS * sizeof *v);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        for (size_t n_x = 1; n_x <= 16; n_x += 15) {
            const struct bc_f32_dots d = {w, COLS, rows, v, COLS, n_x, COLS, out, rows};
            double best = 1e9;
            for (int round = 0; round < ROUNDS; round++) {
                const double start = now();
                bc_kernels_at(i)->dots_f32(&d);
                if (now() - start < best) best = now() - start;
            }
            printf("float32  %-8s rows %6u: %2u vectors %7.2f Gweights/s a vector\n",
                   bc_kernels_at(i)->name, (unsigned)rows, (unsigned)n_x,
                   1e-9 * (double)(COLS * rows * n_x) / best);
        }
    }
    free(w);
    free(v);
    free(out);
}

int main(int argc, char **argv)
{
    const unsigned long rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 2560;
    if (rows < 1 || rows > 1u << 20) {
        fprintf(stderr, "usage: %s [PACK [ROWS_OF_2560]]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (int8_t)(i * 37 % 255);
    for (size_t i = 0; i < sizeof packs / sizeof packs[0]; i++)
        if (argc < 2 || strcmp(argv[1], packs[i]->name) == 0) measure_pack(packs[i], rows);
    if (argc < 2 || strcmp(argv[1], "f32") == 0) measure_floats(rows);
    return 0;
}
