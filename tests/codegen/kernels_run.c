/* SPDX-License-Identifier: MIT
 * Runs the kernels of a generated header, bitconv_tl_kernels.h in the include path, over the cases
 * of codegen_cases.c. Compiled by the tests for each target; uses no library.
 *
 * usage: kernels_run tl1|tl2 CASES
 *
 * Every integer and every float must be the expected one, by the looked-up path and by the plain
 * one; over bytes that no packer writes both must agree. Prints which path it was compiled for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitconv_tl_kernels.h"

/* The entry points of one pack. */
struct entry {
    const struct bitconv_tl_shape *(*find)(size_t m, size_t k);
    int (*gemv)(size_t m, size_t k, const uint8_t *packed, const float *x, int8_t *q, int32_t *sums,
                float *y);
    const char *path;
};

static const char *path_of(int tl1)
{
#ifdef BITCONV_TL_AVX2
    if (!tl1) return "avx2";
#endif
#ifdef BITCONV_TL_NEON
    if (tl1) return "neon";
#endif
    (void)tl1;
    return "plain";
}

/* A record of the file. */
struct record {
    size_t m, k, bytes;
    uint8_t *packed;
    int8_t *q, *room_q;
    int32_t *sums, *room_sums;
    float *x, *y, *room_y;
};

static void *read_array(FILE *in, size_t n, size_t size)
{
    void *p = malloc(n * size);
    if (p == NULL || fread(p, size, n, in) != n) {
        printf("the file of cases is cut off\n");
        exit(2);
    }
    return p;
}

static int read_record(FILE *in, struct record *r)
{
    uint64_t head[3];
    if (fread(head, sizeof *head, 3, in) != 3) return 0;
    r->m = (size_t)head[0];
    r->k = (size_t)head[1];
    r->bytes = (size_t)head[2];
    r->packed = (uint8_t *)read_array(in, r->bytes, 1);
    r->q = (int8_t *)read_array(in, r->k, 1);
    r->sums = (int32_t *)read_array(in, r->m, sizeof *r->sums);
    r->x = (float *)read_array(in, r->k, sizeof *r->x);
    r->y = (float *)read_array(in, r->m, sizeof *r->y);
    r->room_q = (int8_t *)malloc(r->k);
    r->room_sums = (int32_t *)malloc(r->m * sizeof *r->sums);
    r->room_y = (float *)malloc(r->m * sizeof *r->y);
    return r->room_q != NULL && r->room_sums != NULL && r->room_y != NULL;
}

static void release_record(struct record *r)
{
    free(r->packed);
    free(r->q);
    free(r->sums);
    free(r->x);
    free(r->y);
    free(r->room_q);
    free(r->room_sums);
    free(r->room_y);
}

static int same_sums(const struct record *r, const char *what)
{
    for (size_t i = 0; i < r->m; i++) {
        if (r->room_sums[i] == r->sums[i]) continue;
        printf("%zu x %zu, %s: row %zu is %ld, expected %ld\n", r->m, r->k, what, i,
               (long)r->room_sums[i], (long)r->sums[i]);
        return 0;
    }
    return 1;
}

static int check_record(const struct entry *e, struct record *r, uint32_t *seed)
{
    const struct bitconv_tl_shape *const shape = e->find(r->m, r->k);
    if (shape == NULL || shape->bytes != r->bytes || e->find(r->m + 1, r->k) != NULL) {
        printf("%zu x %zu: not found, or of another size\n", r->m, r->k);
        return 0;
    }
    shape->sums(r->packed, r->q, r->room_sums);
    if (!same_sums(r, "looked up")) return 0;
    shape->sums_plain(r->packed, r->q, r->room_sums);
    if (!same_sums(r, "plain")) return 0;
    if (e->gemv(r->m, r->k, r->packed, r->x, r->room_q, r->room_sums, r->room_y) != 0 ||
        memcmp(r->room_y, r->y, r->m * sizeof *r->y) != 0) {
        printf("%zu x %zu: y is not as expected, y[0] = %.9g, not %.9g\n", r->m, r->k,
               (double)r->room_y[0], (double)r->y[0]);
        return 0;
    }
    for (size_t i = 0; i < r->bytes; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        r->packed[i] = (uint8_t)(*seed >> 24);
    }
    shape->sums_plain(r->packed, r->q, r->sums);
    shape->sums(r->packed, r->q, r->room_sums);
    return same_sums(r, "illegal codes");
}

static int find_entry(const char *pack, struct entry *e)
{
    const int tl1 = strcmp(pack, "tl1") == 0;
    e->path = path_of(tl1);
#ifdef WITH_TL1
    e->find = bitconv_tl1_find;
    e->gemv = bitconv_tl1_gemv;
    return tl1;
#else
    e->find = bitconv_tl2_find;
    e->gemv = bitconv_tl2_gemv;
    return !tl1;
#endif
}

int main(int argc, char **argv)
{
    struct entry e;
    struct record r;
    uint32_t seed = 1;
    size_t n = 0;
    FILE *in = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (in == NULL || !find_entry(argv[1], &e)) {
        printf("usage: kernels_run tl1|tl2 CASES\n");
        return 2;
    }
    if (e.gemv(1, 1, NULL, NULL, NULL, NULL, NULL) != -1) {
        printf("a shape without kernels was taken\n");
        return 1;
    }
    for (; read_record(in, &r); n++) {
        const int same = check_record(&e, &r, &seed);
        release_record(&r);
        if (!same) return 1;
    }
    fclose(in);
    printf("%s %s: %zu cases equal\n", argv[1], e.path, n);
    return n == 0;
}
