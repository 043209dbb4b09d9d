/* SPDX-License-Identifier: MIT
 * Speed of the kernels of a generated header, bitconv_tl_kernels.h in the include path: against the
 * plain path and against memcpy of the packed bytes in the same run; one thread. Not a test, and
 * compiled by tests/bench/codegen_gemv.sh.
 *
 * usage: kernels_bench M K */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bitconv_tl_kernels.h"

#define ROUNDS 9

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double faster(double best, double start)
{
    const double time = now() - start;
    return time < best ? time : best;
}

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL) exit(2);
    return p;
}

/* Best of several rounds, all three in turn, so that a busy machine hurts them alike. */
static void measure(const char *pack, const struct bitconv_tl_shape *shape)
{
    uint8_t *packed = (uint8_t *)allocate(shape->bytes, 1);
    uint8_t *copy = (uint8_t *)allocate(shape->bytes, 1);
    int8_t *q = (int8_t *)allocate(shape->k, 1);
    int32_t *sums = (int32_t *)allocate(shape->m, sizeof *sums);
    double looked_up = 1e9, plain = 1e9, copied = 1e9;
    for (size_t i = 0; i < shape->bytes; i++)
        packed[i] = (uint8_t)(i * 7 % 9 * 16 + i * 5 % 9);
    for (size_t i = 0; i < shape->k; i++)
        q[i] = (int8_t)((int)(i * 37 % 255) - 127);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        shape->sums(packed, q, sums);
        looked_up = faster(looked_up, start);
        start = now();
        shape->sums_plain(packed, q, sums);
        plain = faster(plain, start);
        start = now();
        memcpy(copy, packed, shape->bytes);
        copied = faster(copied, start);
        packed[round] = copy[shape->bytes - 1]; /* both are needed */
    }
    printf(
        "%s %6zu x %-6zu looked up: %5.1f times plain C, %4.0f %% of memcpy of the packed bytes, "
        "%6.2f G weights/s\n",
        pack, shape->m, shape->k, plain / looked_up, 100 * copied / looked_up,
        1e-9 * (double)shape->m * (double)shape->k / looked_up);
    free(packed);
    free(copy);
    free(q);
    free(sums);
}

int main(int argc, char **argv)
{
    const size_t m = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    const size_t k = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (bitconv_tl1_find(m, k) == NULL || bitconv_tl2_find(m, k) == NULL) {
        fprintf(stderr, "usage: %s M K, of a shape with kernels\n", argv[0]);
        return 2;
    }
#if !defined(BITCONV_TL_NEON) && !defined(BITCONV_TL_AVX2)
    printf("no vector kernels for this target: plain C against itself\n");
#endif
#ifdef BITCONV_TL_NEON
    measure("TL1", bitconv_tl1_find(m, k));
#else
    measure("TL2", bitconv_tl2_find(m, k));
#endif
    return 0;
}
