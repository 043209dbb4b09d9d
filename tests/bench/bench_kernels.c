/* SPDX-License-Identifier: MIT
 * Throughput of every kernel in every row, as a share of memcpy measured in the same run. Not a
 * test.
 *
 * usage: bench_kernels [MILLIONS_OF_VALUES]
 *
 * A kernel's rate counts the bytes of its larger side (unpacked trits, float32 values), and memcpy
 * is timed on as many bytes. Best of several rounds, kernels and memcpy in turn, so that a busy
 * machine hurts both alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/fingerprint.h"
#include "quant/kernels_rows.h"
#include "quant/quantize.h"
#include "support/rng.h"

#define ROUNDS 7

struct arena {
    size_t n; /* values */
    uint8_t *halves, *packed, *bytes;
    float *floats, *more_floats;
    int8_t *trits;
};

struct bench {
    const char *name;
    size_t larger_side; /* bytes per value */
    void (*run)(const struct bc_kernels *k, const struct arena *a);
};

static void run_widen_bf16(const struct bc_kernels *k, const struct arena *a)
{
    k->widen_bf16(a->halves, a->n, a->more_floats);
}

static void run_widen_f16(const struct bc_kernels *k, const struct arena *a)
{
    k->widen_f16(a->halves, a->n, a->more_floats);
}

static void run_narrow_bf16(const struct bc_kernels *k, const struct arena *a)
{
    k->narrow_bf16(a->floats, a->n, (uint8_t *)a->more_floats);
}

static void run_narrow_f16(const struct bc_kernels *k, const struct arena *a)
{
    k->narrow_f16(a->floats, a->n, (uint8_t *)a->more_floats);
}

static void run_bf16_to_f16(const struct bc_kernels *k, const struct arena *a)
{
    k->bf16_to_f16(a->halves, a->n, (uint8_t *)a->more_floats);
}

static void run_max_abs_bits(const struct bc_kernels *k, const struct arena *a)
{
    a->more_floats[0] = (float)k->max_abs_bits(a->floats, a->n);
}

static void run_ternarize(const struct bc_kernels *k, const struct arena *a)
{
    k->ternarize(a->floats, a->n, 1.7f, (int8_t *)a->bytes);
}

static void run_sign(const struct bc_kernels *k, const struct arena *a)
{
    k->sign(a->floats, a->n, (int8_t *)a->bytes);
}

static void run_trits_to_f32(const struct bc_kernels *k, const struct arena *a)
{
    k->trits_to_f32(a->trits, a->n, 0.03f, a->more_floats);
}

static void run_hf_unpack(const struct bc_kernels *k, const struct arena *a)
{
    for (unsigned shift = 0; shift < 8; shift += 2) {
        const size_t quarter = a->n / 4;
        k->hf_unpack(a->packed, quarter, shift, (int8_t *)a->bytes + shift / 2 * quarter);
    }
}

static void run_count_trits(const struct bc_kernels *k, const struct arena *a)
{
    uint64_t counts[4] = {0, 0, 0, 0};
    k->count_trits(a->trits, a->n, counts);
    a->more_floats[0] = (float)counts[1];
}

static void run_pack_128(const struct bc_kernels *k, const struct arena *a)
{
    k->pack_planes(a->trits, a->n / 128, 32, a->bytes);
}

static void run_unpack_128(const struct bc_kernels *k, const struct arena *a)
{
    k->unpack_planes(a->packed, a->n / 128, 32, (int8_t *)a->bytes);
}

static void run_pack_64(const struct bc_kernels *k, const struct arena *a)
{
    k->pack_planes(a->trits, a->n / 64, 16, a->bytes);
}

static void run_unpack_64(const struct bc_kernels *k, const struct arena *a)
{
    k->unpack_planes(a->packed, a->n / 64, 16, (int8_t *)a->bytes);
}

static void absmean(const struct bc_kernels *k, const struct arena *a, enum bitconv_dtype dtype,
                    const void *data)
{
    const struct bc_values v = {dtype, data, a->n};
    uint64_t nonfinite;
    if (bc_absmean(k, NULL, &v, false, a->more_floats, &nonfinite, NULL) != BITCONV_OK) exit(2);
}

static void run_absmean_bf16(const struct bc_kernels *k, const struct arena *a)
{
    absmean(k, a, BITCONV_BF16, a->halves);
}

static void run_absmean_f16(const struct bc_kernels *k, const struct arena *a)
{
    absmean(k, a, BITCONV_F16, a->halves);
}

static void run_absmean_f32(const struct bc_kernels *k, const struct arena *a)
{
    absmean(k, a, BITCONV_F32, a->floats);
}

static void run_magnitudes_bf16(const struct bc_kernels *k, const struct arena *a)
{
    const struct bc_values v = {BITCONV_BF16, a->halves, a->n};
    struct bc_magnitudes m;
    if (bc_magnitudes(k, NULL, &v, &m, NULL) != BITCONV_OK) exit(2);
    a->more_floats[0] = m.max;
}

static void run_fingerprint(const struct bc_kernels *k, const struct arena *a)
{
    const uint64_t ne[2] = {a->n, 1};
    const float scale = 1.0f;
    struct bc_fingerprint fp;
    (void)k;
    if (bc_fingerprint_begin(&fp, 2, ne, &scale, 1, false, NULL) != BITCONV_OK) exit(2);
    bc_fingerprint_trits(&fp, a->trits, a->n);
    a->more_floats[0] = (float)bc_fingerprint_end(&fp).low;
}

static const struct bench benches[] = {
    {"widen_bf16", 4, run_widen_bf16},
    {"widen_f16", 4, run_widen_f16},
    {"narrow_bf16", 4, run_narrow_bf16},
    {"narrow_f16", 4, run_narrow_f16},
    {"bf16_to_f16", 2, run_bf16_to_f16},
    {"max_abs_bits", 4, run_max_abs_bits},
    {"ternarize", 4, run_ternarize},
    {"sign", 4, run_sign},
    {"trits_to_f32", 4, run_trits_to_f32},
    {"hf_unpack", 1, run_hf_unpack},
    {"count_trits", 1, run_count_trits},
    {"pack i2_s", 1, run_pack_128},
    {"unpack i2_s", 1, run_unpack_128},
    {"pack i2_s_64", 1, run_pack_64},
    {"unpack i2_s_64", 1, run_unpack_64},
    {"absmean of bf16", 2, run_absmean_bf16},
    {"absmean of f16", 2, run_absmean_f16},
    {"absmean of f32", 4, run_absmean_f32},
    {"magnitudes of bf16", 2, run_magnitudes_bf16},
    {"fingerprint", 1, run_fingerprint},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(const struct bc_kernels *k, const struct bench *b, const struct arena *a)
{
    const size_t size = a->n * b->larger_side;
    double best = 1e9, best_copy = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        b->run(k, a);
        const double middle = now();
        memcpy(a->more_floats, a->floats, size);
        const double end = now();
        if (middle - start < best) best = middle - start;
        if (end - middle < best_copy) best_copy = end - middle;
    }
    printf("%-8s %-20s %8.2f GB/s %8.2f ns/1000 %7.0f %% of memcpy\n", k->name, b->name,
           1e-9 * (double)size / best, 1e12 * best / (double)a->n, 100.0 * best_copy / best);
}

static void *allocate(size_t n, size_t size)
{
    void *p = malloc(n * size);
    if (p == NULL) exit(2);
    memset(p, 0, n * size); /* touch every page before the clock runs */
    return p;
}

static void fill(struct arena *a)
{
    uint64_t rng = 1;
    for (size_t i = 0; i < a->n; i++) {
        const uint64_t r = rng_next(&rng);
        a->trits[i] = (int8_t)((int)(r % 3) - 1);
        a->floats[i] = (float)a->trits[i] * 0.5f + (float)(r >> 40) * 0x1p-25f;
        a->packed[i / 4] = (uint8_t)(r >> 8 & 0x55);
    }
    bc_kernels_scalar.narrow_bf16(a->floats, a->n, a->halves);
}

int main(int argc, char **argv)
{
    const double millions = argc > 1 ? strtod(argv[1], NULL) : 32.0;
    if (!(millions >= 0.001 && millions <= 4096.0)) {
        fprintf(stderr, "usage: %s [MILLIONS_OF_VALUES]\n", argv[0]);
        return 2;
    }
    struct arena a = {.n = (size_t)(millions * 1e6) / 128 * 128};
    a.halves = allocate(a.n, 2);
    a.packed = allocate(a.n / 4, 1);
    a.bytes = allocate(a.n, 1);
    a.floats = allocate(a.n, sizeof *a.floats);
    a.more_floats = allocate(a.n, sizeof *a.more_floats);
    a.trits = allocate(a.n, 1);
    fill(&a);
    for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
        for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
            measure(bc_kernels_at(row), &benches[i], &a);
    }
    free(a.halves);
    free(a.packed);
    free(a.bytes);
    free(a.floats);
    free(a.more_floats);
    free(a.trits);
    return 0;
}
