/* SPDX-License-Identifier: MIT
 * Cases for kernels that codegen generates: matrices packed by the library in the tiles of a kernel
 * configuration, activations, and the results by definition.
 *
 * usage: codegen_cases tl1|tl2 CONFIG.ini OUT
 *
 * For every section of the configuration, OUT gets one record per pattern below: m, k, bytes (64
 * bits each), the packed tensor, k activations of eight bits, m sums (int32) of trit * activation,
 * k float activations x, m results y for them (float). All little-endian. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "formats/format.h"
#include "formats/tiling.h"
#include "quant/kernels.h"
#include "support/rng.h"
#include "support/trits.h"

/* Trits by the name of their generator ("allpos": allneg negated) and activations of one kind. */
struct pattern {
    const char *trits;
    int low, high; /* activations: one of the two, or all between when `any` */
    bool any;
    float magnitude; /* of x; 0: all are 0 */
};

/* The sums of the middle ones are the largest that there are: 128 * k, in every partial sum. */
static const struct pattern patterns[] = {
    {"mod3", -128, 127, true, 1.0f},         {"nozeros", -128, 127, false, 3e33f},
    {"allpos", 127, 127, false, 1e-3f},      {"allpos", -128, -128, false, 1e-38f},
    {"allneg", -128, -128, false, 0.0f},     {"zeros90", -128, 127, true, 40.0f},
    {"allneg", -128, 127, false, 0.000011f}, {"nozeros", -128, 127, true, 4e-6f},
};

static void *allocate(uint64_t n, size_t size)
{
    void *p = bc_alloc_array((size_t)n, size);
    if (p == NULL) exit(2);
    return p;
}

static int8_t *make_trits(const char *name, uint64_t seed, uint64_t n)
{
    const bool negate = strcmp(name, "allpos") == 0;
    int8_t *trits = trits_generate(negate ? "allneg" : name, seed, n);
    if (trits == NULL) exit(2);
    for (uint64_t i = 0; negate && i < n; i++)
        trits[i] = (int8_t)-trits[i];
    return trits;
}

static void make_activations(const struct pattern *p, uint64_t *rng, uint64_t n, int8_t *q)
{
    for (uint64_t i = 0; i < n; i++) {
        const int span = p->high - p->low + 1;
        const int picked = p->low + (int)rng_below(rng, (uint64_t)span);
        q[i] = (int8_t)(p->any ? picked : rng_below(rng, 2) == 0 ? p->low : p->high);
    }
}

/* Multiples of 1/254 of the largest: every other one is a tie between two codes. */
static void make_floats(const struct pattern *p, uint64_t *rng, uint64_t n, float *x)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = p->magnitude * ((float)rng_below(rng, 509) - 254.0f) / 254.0f;
}

static void sum_up(const struct bc_pack_shape *shape, const int8_t *trits, const int8_t *q,
                   int32_t *sums)
{
    for (uint64_t row = 0; row < shape->rows; row++) {
        int32_t sum = 0;
        for (uint64_t col = 0; col < shape->cols; col++)
            sum += trits[row * shape->cols + col] * q[col];
        sums[row] = sum;
    }
}

/* y by the rule for activations: a = 127 / max(max |x|, 1e-5), q = round half to even of x * a. */
static void multiply(const struct bc_pack_shape *shape, const int8_t *trits, float scale,
                     const float *x, int8_t *q, int32_t *sums, float *y)
{
    float max = 1e-5f;
    for (uint64_t i = 0; i < shape->cols; i++)
        max = fmaxf(max, fabsf(x[i]));
    const float a = 127.0f / max;
    for (uint64_t i = 0; i < shape->cols; i++)
        q[i] = (int8_t)fminf(fmaxf(rintf(x[i] * a), -128.0f), 127.0f);
    sum_up(shape, trits, q, sums);
    for (uint64_t row = 0; row < shape->rows; row++)
        y[row] = (float)sums[row] * (scale / a);
}

static void put(FILE *out, const void *data, uint64_t n, size_t size)
{
    if (fwrite(data, size, (size_t)n, out) != n) exit(2);
}

static void put_case(FILE *out, const struct bc_format *f, const struct bc_pack_shape *shape,
                     const struct pattern *p, uint64_t seed)
{
    const uint64_t head[3] = {shape->rows, shape->cols, f->size(shape)};
    const float scale = 0.0173f;
    uint64_t rng = seed;
    int8_t *trits = make_trits(p->trits, seed, shape->n);
    uint8_t *packed = allocate(head[2], 1);
    int8_t *q = allocate(shape->cols, 1);
    float *x = allocate(shape->cols, sizeof *x);
    int32_t *sums = allocate(shape->rows, sizeof *sums);
    float *y = allocate(shape->rows, sizeof *y);
    f->pack(bc_kernels_best(), shape, trits, 0, shape->n, packed);
    f->put_scales(shape, &scale, 1, packed);
    make_activations(p, &rng, shape->cols, q);
    sum_up(shape, trits, q, sums);
    put(out, head, 3, sizeof *head);
    put(out, packed, head[2], 1);
    put(out, q, shape->cols, 1);
    put(out, sums, shape->rows, sizeof *sums);
    make_floats(p, &rng, shape->cols, x);
    multiply(shape, trits, scale, x, q, sums, y);
    put(out, x, shape->cols, sizeof *x);
    put(out, y, shape->rows, sizeof *y);
    free(trits);
    bc_free(packed);
    bc_free(q);
    bc_free(x);
    bc_free(sums);
    bc_free(y);
}

int main(int argc, char **argv)
{
    struct bc_tilings config;
    struct bitconv_error err = {0};
    const struct bc_format *f = argc == 4 ? bc_format_find(argv[1]) : NULL;
    if (f == NULL || f->choose_tile == NULL) {
        fprintf(stderr, "usage: %s tl1|tl2 CONFIG.ini OUT\n", argv[0]);
        return 2;
    }
    FILE *out = fopen(argv[3], "wb");
    if (out == NULL || bc_tilings_load(argv[2], &config, &err) != BITCONV_OK) {
        fprintf(stderr, "%s %s\n", argv[3], err.text);
        return 2;
    }
    for (size_t i = 0; i < config.n; i++) {
        struct bc_pack_shape shape = {.rows = config.items[i].rows,
                                      .cols = config.items[i].cols,
                                      .slices = 1,
                                      .n = config.items[i].rows * config.items[i].cols};
        char why[400] = "";
        if (!bc_format_fit(f, &config, &shape, why, sizeof why)) {
            fprintf(stderr, "%s\n", why);
            return 2;
        }
        for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
            put_case(out, f, &shape, &patterns[p], 100 * i + p);
    }
    bc_tilings_release(&config);
    return fclose(out) == 0 ? 0 : 2;
}
