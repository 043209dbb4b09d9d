/* SPDX-License-Identifier: MIT
 * Dot products with packed rows: every pack on every row of kernels against trit_at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "formats/rows.h"
#include "quant/kernels.h"
#include "support/kernel_compare_dot.h"
#include "support/rng.h"

/* The packs of the library, in the registry or not. */
static const struct bc_format *const packs[] = {
    &bc_format_i2_s, &bc_format_i2_s_64, &bc_format_tl1,   &bc_format_tl2,  &bc_format_bitcos,
    &bc_format_t5,   &bc_format_tq1_0,   &bc_format_tq2_0, &bc_format_q2_0, &bc_format_q1_0,
};
enum { N_PACKS = sizeof packs / sizeof packs[0], MAX_X = 9, CANARY = 0x5aa55aa5 };

/* A packed tensor, MAX_X vectors of activations. */
struct subject {
    const struct bc_format *format;
    struct bc_pack_shape shape;
    int8_t *trits;
    uint8_t *packed;
    int8_t *x;
    uint64_t x_stride;
};

static void *allocate(uint64_t size)
{
    void *p = malloc(size == 0 ? 1 : (size_t)size);
    assert_non_null(p);
    return p;
}

enum contents { MIXED, NO_ZEROS, ALL_PLUS, ALL_MINUS, N_CONTENTS };

static int8_t draw_trit(enum contents contents, uint64_t *rng)
{
    const uint64_t r = rng_next(rng) >> 32;
    if (contents == ALL_PLUS) return 1;
    if (contents == ALL_MINUS) return -1;
    return (int8_t)(contents == NO_ZEROS ? 2 * (int)(r & 1) - 1 : (int)(r % 3) - 1);
}

/* The extremes stand where sums could leave 16 bits. */
static int8_t draw_x(enum contents contents, uint64_t v, uint64_t *rng)
{
    const uint64_t r = rng_next(rng) >> 32;
    if (contents >= ALL_PLUS && v < 2) return v == 0 ? -128 : 127;
    return (int8_t)(r & 0xff);
}

/* False when the pack cannot hold the shape. */
static bool make_subject(const struct bc_format *format, uint64_t cols, uint64_t rows,
                         uint64_t slices, enum contents contents, struct subject *s)
{
    char why[256];
    const float scales[8] = {0.5f, 0.25f, 2.0f, 1.0f, 0.5f, 0.5f, 0.5f, 0.5f};
    uint64_t rng = cols * 31 + rows;
    *s =
        (struct subject){.format = format, .shape = {.cols = cols, .rows = rows, .slices = slices}};
    s->shape.n = cols * rows * slices;
    if (!bc_format_fit(format, NULL, &s->shape, why, sizeof why)) return false;
    if (format == &bc_format_q1_0 && contents == MIXED) contents = NO_ZEROS;
    s->trits = allocate(s->shape.n);
    for (uint64_t i = 0; i < s->shape.n; i++) {
        s->trits[i] = draw_trit(contents, &rng);
        s->shape.n_nonzero += s->trits[i] != 0;
    }
    s->packed = allocate(format->size(&s->shape)); /* to the byte: a sanitizer sees what is read */
    format->pack(bc_kernels_at(0), &s->shape, s->trits, 0, s->shape.n, s->packed);
    format->put_scales(&s->shape, scales, format->max_scales == 1 ? 1 : (uint32_t)slices,
                       s->packed);
    s->x_stride = cols + 3;
    s->x = allocate(s->x_stride * (MAX_X - 1) + cols);
    for (uint64_t v = 0; v < MAX_X; v++) {
        for (uint64_t i = 0; i < cols; i++)
            s->x[v * s->x_stride + i] = draw_x(contents, v, &rng);
    }
    return true;
}

static void free_subject(struct subject *s)
{
    free(s->trits);
    free(s->packed);
    free(s->x);
}

/* The definition, through the independent reader. */
static int32_t dot_at(const struct subject *s, uint64_t row, uint64_t v)
{
    int32_t sum = 0;
    for (uint64_t col = 0; col < s->shape.cols; col++) {
        const int trit =
            s->format->trit_at(&s->shape, s->packed, row / s->shape.rows, row % s->shape.rows, col);
        sum += trit * s->x[v * s->x_stride + col];
    }
    return sum;
}

static void check_range(const struct subject *s, const struct bc_kernels *k,
                        const int32_t *expected, uint64_t row, uint64_t n_rows, uint32_t n_x)
{
    const uint64_t all_rows = s->shape.rows * s->shape.slices;
    int32_t *out = allocate((n_rows * n_x + 1) * sizeof *out);
    for (uint64_t i = 0; i <= n_rows * n_x; i++)
        out[i] = CANARY;
    s->format->dot_rows(k, &s->shape, s->packed, row, n_rows, s->x, s->x_stride, n_x, out);
    for (uint64_t i = 0; i < n_rows * n_x; i++) {
        const int32_t wanted = expected[i / n_rows * all_rows + row + i % n_rows];
        if (out[i] != wanted)
            fail_msg("%s on %s, %u x %u: row %u, vector %u: %d, wanted %d", s->format->name,
                     k->name, (unsigned)s->shape.cols, (unsigned)s->shape.rows,
                     (unsigned)(row + i % n_rows), (unsigned)(i / n_rows), out[i], wanted);
    }
    assert_int_equal(out[n_rows * n_x], CANARY);
    free(out);
}

static void check_subject(const struct subject *s)
{
    const uint64_t all_rows = s->shape.rows * s->shape.slices;
    int32_t *expected = allocate(all_rows * MAX_X * sizeof *expected);
    for (uint64_t i = 0; i < all_rows * MAX_X; i++)
        expected[i] = dot_at(s, i % all_rows, i / all_rows);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        const struct bc_kernels *k = bc_kernels_at(i);
        for (uint32_t n_x = 1; n_x <= MAX_X; n_x++)
            check_range(s, k, expected, 0, all_rows, n_x);
        for (uint64_t row = 0; row < all_rows && row < 7; row++) {
            for (uint64_t n = 0; n <= 6 && row + n <= all_rows; n++)
                check_range(s, k, expected, row, n, 1 + (uint32_t)(row + n) % 5);
        }
        check_range(s, k, expected, all_rows / 2, all_rows - all_rows / 2, 1);
    }
    free(expected);
}

static void check_shape(uint64_t cols, uint64_t rows, uint64_t slices)
{
    size_t n_fit = 0;
    for (size_t i = 0; i < N_PACKS; i++) {
        for (int contents = 0; contents < N_CONTENTS; contents++) {
            struct subject s;
            if (!make_subject(packs[i], cols, rows, slices, (enum contents)contents, &s)) continue;
            check_subject(&s);
            free_subject(&s);
            n_fit++;
        }
    }
    assert_true(n_fit > 0);
}

static void test_whole_blocks(void **state)
{
    (void)state;
    check_shape(256, 9, 1);
    check_shape(512, 32, 1);
    check_shape(768, 64, 1);
    check_shape(1024, 5, 3);
    check_shape(3328, 6, 1);
}

static void test_tiles(void **state)
{
    (void)state;
    check_shape(256, 128, 1);
    check_shape(640, 256, 1);
    check_shape(1280, 96, 1);
}

static void test_blocks_across_rows(void **state)
{
    (void)state;
    check_shape(64, 8, 1);
    check_shape(96, 12, 1);
    check_shape(100, 32, 1);
    check_shape(257, 128, 1);
    check_shape(31, 7, 2);
    check_shape(1, 64, 1);
    check_shape(4099, 3, 1);
}

/* Longer than the panel of dot.c. */
static void test_long_rows(void **state)
{
    (void)state;
    check_shape(40960, 2, 1);
    check_shape(20011, 2, 1);
}

/* The sum over blocks in order, in float32. */
static float block_dot_at(const struct bc_block_pack *bp, const struct subject *s, uint64_t row,
                          uint64_t v)
{
    float sum = 0.0f;
    for (uint64_t col = 0; col < s->shape.cols; col += bp->block) {
        const uint64_t flat = row * s->shape.cols + col;
        int32_t dot = 0;
        for (uint64_t i = 0; i < bp->block; i++)
            dot += s->trits[flat + i] * s->x[v * s->x_stride + col + i];
        sum += (float)dot * bc_block_scale(bp, s->packed + flat / bp->block * bp->block_size);
    }
    return sum;
}

static void check_block_pack(const struct bc_block_pack *bp, uint64_t cols)
{
    struct subject s;
    float out[6 * 2];
    uint64_t rng = 5;
    assert_true(make_subject(bp->format, cols, 7, 1, MIXED, &s));
    for (uint64_t i = 0; i < s.shape.n / bp->block; i++)
        bc_put_u16(s.packed + i * bp->block_size + bp->scale_offset,
                   (uint16_t)(0x2c00 + rng_next(&rng) % 0x1000));
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        bc_block_dot_rows(bp, bc_kernels_at(i), &s.shape, s.packed, 1, 6, s.x, s.x_stride, 2, out);
        for (uint64_t j = 0; j < 12; j++)
            assert_int_equal(bc_f32_bits(out[j]),
                             bc_f32_bits(block_dot_at(bp, &s, 1 + j % 6, j / 6)));
    }
    free_subject(&s);
}

static void test_block_scales(void **state)
{
    (void)state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        check_block_pack(bc_block_pack_at(i), 256);
        check_block_pack(bc_block_pack_at(i), 1280);
        check_block_pack(bc_block_pack_at(i), 256 * 70);
    }
}

/* NumPy's definition in another way: nearbyint of the float32 product. */
static void test_activations(void **state)
{
    (void)state;
    const float x[] = {-2.0f, 0.5f, 1.0f, 1.0f / 127, 3.0f / 254, -3.0f / 254, 2.0f, 0.0f};
    const int8_t expected[] = {-127, 32, 64, 0, 1, -1, 127, 0};
    const float tiny[] = {1e-7f, -1e-6f}, bad[] = {1.0f, NAN, -1.0f}, large[] = {1.0f, INFINITY};
    int8_t q[8];
    assert_true(bc_kernels_at(0)->quantize_i8(x, 8, q) == 63.5f);
    assert_memory_equal(q, expected, 8);
    const float a = bc_kernels_at(0)->quantize_i8(tiny, 2, q);
    assert_true(a == 127.0f / 1e-5f);
    assert_true(q[0] == 1 && q[1] == -13);
    assert_true(isnan(bc_kernels_at(0)->quantize_i8(bad, 3, q)));
    assert_true(q[0] == 0 && q[1] == 0 && q[2] == 0);
    assert_true(bc_kernels_at(0)->quantize_i8(large, 2, q) == 0.0f);
    assert_true(q[0] == 0 && q[1] == 0);
}

static void test_float_order(void **state)
{
    (void)state;
    float a[40], b[40], s[16] = {0};
    uint64_t rng = 9;
    for (size_t i = 0; i < 40; i++) {
        a[i] = (float)(int)(rng_next(&rng) % 2001) - 1000.0f / 3;
        b[i] = (float)(int)(rng_next(&rng) % 2001) / 7;
    }
    for (size_t j = 0; j < 16; j++) {
        s[j] = a[j] * b[j];
        s[j] += a[16 + j] * b[16 + j];
        if (j < 8) s[j] += a[32 + j] * b[32 + j];
    }
    const float low = ((s[0] + s[8]) + (s[4] + s[12])) + ((s[2] + s[10]) + (s[6] + s[14]));
    const float high = ((s[1] + s[9]) + (s[5] + s[13])) + ((s[3] + s[11]) + (s[7] + s[15]));
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++)
        assert_true(bc_kernels_at(i)->dot_f32(a, b, 40) == low + high);
}

static void test_rows_equal_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        char why[256] = "";
        if (!kernel_dots_equal_scalar(bc_kernels_at(i), why, sizeof why)) fail_msg("%s", why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_blocks),       cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_blocks_across_rows), cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_block_scales),       cmocka_unit_test(test_activations),
        cmocka_unit_test(test_float_order),        cmocka_unit_test(test_rows_equal_scalar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
