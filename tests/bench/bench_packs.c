/* SPDX-License-Identifier: MIT
 * Throughput of packing and unpacking in every pack of the library, on every row of kernels, as a
 * share of memcpy of the unpacked trits (a byte each) measured in the same run; one thread. Not a
 * test.
 *
 * usage: bench_packs [PACK [ROWS_OF_4096]]
 *
 * A stack of rows of 4096 weights is packed as a whole, at three shares of zeros. Best of several
 * rounds, packs and memcpy in turn, so that a busy machine hurts both alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/rows.h"
#include "quant/kernels.h"
#include "support/rng.h"

#define ROUNDS 9
#define COLS   4096

static const struct bc_format *const packs[] = {
    &bc_format_i2_s, &bc_format_i2_s_64, &bc_format_tl1,   &bc_format_tl2,  &bc_format_bitcos,
    &bc_format_t5,   &bc_format_tq1_0,   &bc_format_tq2_0, &bc_format_q2_0, &bc_format_q1_0,
};

struct arena {
    struct bc_pack_shape shape;
    int8_t *trits, *back;
    uint8_t *packed;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(uint64_t size)
{
    void *p = malloc((size_t)size);
    if (p == NULL) exit(2);
    memset(p, 1, (size_t)size); /* touch every page before the clock runs */
    return p;
}

/* A share of `zeros` per mille, signs at random. */
static void fill(struct arena *a, unsigned zeros)
{
    uint64_t rng = 1;
    a->shape.n_nonzero = 0;
    for (uint64_t i = 0; i < a->shape.n; i++) {
        const uint64_t r = rng_next(&rng);
        a->trits[i] = (int8_t)((r >> 32) % 1000 < zeros ? 0 : 2 * (int)(r & 1) - 1);
        a->shape.n_nonzero += a->trits[i] != 0;
    }
}

static double faster(double best, double start)
{
    const double time = now() - start;
    return time < best ? time : best;
}

static void measure(const struct bc_format *f, const struct bc_kernels *k, struct arena *a,
                    unsigned zeros)
{
    const float scale = 1.0f;
    double pack = 1e9, unpack = 1e9, copy = 1e9;
    a->packed = allocate(f->size(&a->shape));
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        f->pack(k, &a->shape, a->trits, 0, a->shape.n, a->packed);
        f->put_scales(&a->shape, &scale, 1, a->packed);
        pack = faster(pack, start);
        start = now();
        memcpy(a->back, a->trits, (size_t)a->shape.n);
        copy = faster(copy, start);
        start = now();
        if (!f->unpack(k, &a->shape, a->packed, 0, a->shape.n, a->back)) exit(2);
        unpack = faster(unpack, start);
        if (memcmp(a->back, a->trits, (size_t)a->shape.n) != 0) exit(2);
    }
    const double n = (double)a->shape.n;
    printf("%-10s %-8s z %.2f %7.4f bits %7.2f GB/s pack %4.0f %% of memcpy %7.2f GB/s unpack "
           "%4.0f %% of memcpy\n",
           f->name, k->name, zeros / 1000.0, 8.0 * (double)f->size(&a->shape) / n, 1e-9 * n / pack,
           100 * copy / pack, 1e-9 * n / unpack, 100 * copy / unpack);
    free(a->packed);
}

static void measure_rows(const struct bc_format *f, struct arena *a)
{
    static const unsigned zeros[] = {0, 333, 515};
    const size_t n_shares = f == &bc_format_q1_0 ? 1 : sizeof zeros / sizeof zeros[0];
    char why[256];
    if (!bc_format_fit(f, NULL, &a->shape, why, sizeof why)) {
        printf("%-10s %s\n", f->name, why);
        return;
    }
    for (size_t z = 0; z < n_shares; z++) {
        fill(a, zeros[z]);
        for (size_t row = 0; bc_kernels_at(row) != NULL; row++)
            measure(f, bc_kernels_at(row), a, zeros[z]);
    }
}

int main(int argc, char **argv)
{
    const unsigned long rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 8192;
    if (rows < 1 || rows > 1u << 20) {
        fprintf(stderr, "usage: %s [PACK [ROWS_OF_4096]]\n", argv[0]);
        return 2;
    }
    struct arena a = {.shape = {.cols = COLS, .rows = rows, .slices = 1, .n = COLS * rows}};
    a.trits = allocate(a.shape.n);
    a.back = allocate(a.shape.n);
    for (size_t i = 0; i < sizeof packs / sizeof packs[0]; i++)
        if (argc < 2 || strcmp(argv[1], packs[i]->name) == 0) measure_rows(packs[i], &a);
    free(a.trits);
    free(a.back);
    return 0;
}
