/* SPDX-License-Identifier: MIT
 * The kernels: the scalar row against definitions written differently, every other row against it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/cpu.h"
#include "quant/kernels_rows.h"
#include "support/kernel_compare.h"
#include "support/rng.h"

static const struct bc_kernels *const scalar = &bc_kernels_scalar;

/* The value of a binary16 by IEEE 754's formula, in double precision, where it is exact. */
static double value_of_f16(uint32_t h)
{
    const double sign = (h & 0x8000u) != 0 ? -1.0 : 1.0;
    const int exponent = (int)(h >> 10 & 31u);
    const double mantissa = h & 1023u;
    if (exponent == 0) return sign * ldexp(mantissa, -24);
    return sign * ldexp(1024 + mantissa, exponent - 25);
}

static bool is_finite_f16(uint32_t h)
{
    return (h & 0x7c00u) != 0x7c00u;
}

static void test_f16_values(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint8_t bytes[2];
        float value;
        bc_put_u16(bytes, (uint16_t)h);
        scalar->widen_f16(bytes, 1, &value);
        if (is_finite_f16(h)) {
            assert_true((double)value == value_of_f16(h));
            assert_int_equal(signbit(value) != 0, h >> 15);
        } else if ((h & 1023u) == 0) {
            assert_true(isinf(value) && (value < 0) == (h >> 15 != 0));
        } else {
            assert_true(isnan(value));
        }
    }
}

/* Nearest, ties to even: no neighbour is closer, and an equally close one is odd. 65520 and more,
 * where the next step would be 65536, is infinity. */
static void check_rounded(float f, uint32_t h)
{
    if (isnan(f)) {
        assert_true(!is_finite_f16(h) && (h & 1023u) != 0);
        return;
    }
    assert_int_equal(h >> 15, signbit(f) != 0);
    if (fabsf(f) >= 65520.0f) {
        assert_int_equal(h & 0x7fffu, 0x7c00);
        return;
    }
    assert_true(is_finite_f16(h));
    const double magnitude = fabs((double)f);
    const uint32_t m = h & 0x7fffu;
    const double error = fabs(value_of_f16(m) - magnitude);
    const double error_up =
        fabs(value_of_f16(m + 1) - magnitude); /* past 65504: 65536 by formula */
    assert_true(error < error_up || (error == error_up && m % 2 == 0));
    if (m == 0) return;
    const double error_down = fabs(value_of_f16(m - 1) - magnitude);
    assert_true(error < error_down || (error == error_down && m % 2 == 0));
}

static void test_bf16_to_f16_rounds_to_nearest(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        uint8_t in[2], out[2], out_by_f32[2];
        float f;
        bc_put_u16(in, (uint16_t)b);
        scalar->widen_bf16(in, 1, &f);
        assert_int_equal(bc_f32_bits(f), b << 16);
        scalar->bf16_to_f16(in, 1, out);
        scalar->narrow_f16(&f, 1, out_by_f32);
        assert_memory_equal(out, out_by_f32, 2);
        check_rounded(f, bc_get_u16(out));
    }
}

static void test_f32_to_f16_rounds_to_nearest(void **state)
{
    (void)state;
    uint64_t rng = 7;
    for (int i = 0; i < 200000; i++) {
        /* Exponents around binary16's range, where rounding has something to do. */
        const uint64_t r = rng_next(&rng);
        const uint32_t exponent = 127 - 28 + (uint32_t)(r >> 32) % 48;
        const float f = bc_f32_from_bits(((uint32_t)r & 0x807fffffu) | exponent << 23);
        uint8_t out[2];
        scalar->narrow_f16(&f, 1, out);
        check_rounded(f, bc_get_u16(out));
    }
}

static void test_ternarize_ties(void **state)
{
    (void)state;
    const float w[] = {0.5f,        -0.5f,  1.5f,        -1.5f, 0.50000006f, -0.50000006f,
                       0.49999997f, -0.0f,  0.0f,        NAN,   INFINITY,    -INFINITY,
                       1e-45f,      -3e38f, 0.99999994f, 2.5f,  -2.5f};
    const int8_t expected[] = {0, 0, 1, -1, 1, -1, 0, 0, 0, 0, 1, -1, 0, -1, 1, 1, -1};
    int8_t trits[sizeof expected];
    scalar->ternarize(w, sizeof expected, 1.0f, trits);
    assert_memory_equal(trits, expected, sizeof expected);
    /* The product is rounded to float32 first: 0.2f * 2.5 is above 0.5 and rounds to it. */
    const float fifth = 0.2f;
    assert_true((double)fifth * 2.5 > 0.5);
    scalar->ternarize(&fifth, 1, 2.5f, trits);
    assert_int_equal(trits[0], 0);
}

static void test_signs_and_scaled_trits(void **state)
{
    (void)state;
    const float w[] = {1e-45f, -1e-45f, 0.0f, -0.0f, NAN, -INFINITY, 3.0f};
    const int8_t signs[] = {1, -1, 0, 0, 0, -1, 1};
    int8_t trits[7];
    scalar->sign(w, 7, trits);
    assert_memory_equal(trits, signs, 7);

    const int8_t three[] = {-1, 0, 1};
    float values[3];
    scalar->trits_to_f32(three, 3, -0.1f, values);
    assert_true(values[0] == 0.1f && values[2] == -0.1f);
    assert_int_equal(bc_f32_bits(values[1]), 0); /* +0, not the -0 of 0 * -0.1 */
}

static void test_max_abs_bits(void **state)
{
    (void)state;
    const float numbers[] = {1.0f, -7.0f, 2.0f}, inf[] = {1.0f, -INFINITY}, nan[] = {INFINITY, NAN};
    assert_int_equal(scalar->max_abs_bits(numbers, 0), 0);
    assert_int_equal(scalar->max_abs_bits(numbers, 3), bc_f32_bits(7.0f));
    assert_int_equal(scalar->max_abs_bits(inf, 2), 0x7f800000);
    assert_true(scalar->max_abs_bits(nan, 2) > 0x7f800000u);
}

/* The issue that made the packing of checkpoints a test: rows 0..7 of one column, -1 0 1 -1 0 1 -1
 * 0. */
static void test_hf_unpack(void **state)
{
    (void)state;
    const uint8_t packed[2] = {0x18, 0x61};
    const int8_t expected[8] = {-1, 0, 1, -1, 0, 1, -1, 0};
    int8_t trits[8];
    for (unsigned i = 0; i < 4; i++)
        assert_true(scalar->hf_unpack(packed, 2, 2 * i, trits + 2 * i));
    assert_memory_equal(trits, expected, 8);
    const uint8_t illegal = 0x30;
    assert_true(scalar->hf_unpack(&illegal, 1, 2, trits));
    assert_false(scalar->hf_unpack(&illegal, 1, 4, trits));
    assert_int_equal(trits[0], 2);
}

/* A single +1 at place 32 among zeros: byte 0 is 0x65, the others 0x55 (field reports of wrong
 * layouts). */
static void test_planes_of_one(void **state)
{
    (void)state;
    int8_t trits[128] = {0}, back[128];
    uint8_t packed[32];
    trits[32] = 1;
    scalar->pack_planes(trits, 1, 32, packed);
    assert_int_equal(packed[0], 0x65);
    for (int j = 1; j < 32; j++)
        assert_int_equal(packed[j], 0x55);
    assert_true(scalar->unpack_planes(packed, 1, 32, back));
    assert_memory_equal(back, trits, 128);
    packed[31] = 0x57; /* the lowest code of the last byte becomes 3 */
    assert_false(scalar->unpack_planes(packed, 1, 32, back));
    assert_int_equal(back[127], 2);
}

static void test_rows_equal_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        char why[256] = "";
        print_message("row %s\n", bc_kernels_at(i)->name);
        if (!kernel_row_equals_scalar(bc_kernels_at(i), why, sizeof why) ||
            !kernel_halves_equal_scalar(bc_kernels_at(i), why, sizeof why))
            fail_msg("%s", why);
    }
}

static void test_lookup(void **state)
{
    (void)state;
    static const char *const names[] = {"scalar", "neon", "avx2", "avx512"};
    size_t n_supported = 0;
    bool known;
    for (size_t i = 0; i < 4; i++) {
        const struct bc_kernels *row = bc_kernels_named(names[i], &known);
        assert_true(known);
        if (row == NULL) continue;
        assert_string_equal(row->name, names[i]);
        assert_ptr_equal(bc_kernels_at(n_supported), row);
        n_supported++;
    }
    assert_null(bc_kernels_at(n_supported));
    assert_ptr_equal(bc_kernels_best(), bc_kernels_at(n_supported - 1));
    assert_null(bc_kernels_named("mmx", &known));
    assert_false(known);
    assert_null(bc_kernels_named("", &known));
    assert_false(known);

    const struct bc_cpu cpu = bc_cpu_detect();
    assert_int_equal(bc_kernels_named("avx2", &known) != NULL, cpu.avx2);
    assert_int_equal(bc_kernels_named("avx512", &known) != NULL, cpu.avx512);
    assert_int_equal(bc_kernels_named("neon", &known) != NULL, cpu.neon);
    assert_true(cpu.avx2 || !cpu.avx512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_values),
        cmocka_unit_test(test_bf16_to_f16_rounds_to_nearest),
        cmocka_unit_test(test_f32_to_f16_rounds_to_nearest),
        cmocka_unit_test(test_ternarize_ties),
        cmocka_unit_test(test_signs_and_scaled_trits),
        cmocka_unit_test(test_max_abs_bits),
        cmocka_unit_test(test_hf_unpack),
        cmocka_unit_test(test_planes_of_one),
        cmocka_unit_test(test_rows_equal_scalar),
        cmocka_unit_test(test_lookup),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
