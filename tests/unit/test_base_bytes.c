/* SPDX-License-Identifier: MIT
 * Tests of base/bytes.h, base/cursor.h and base/digest.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/digest.h"

static void test_loads_and_stores(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0xff, 0x01, 0x02, 0x03, 0x84, 0x05, 0x06, 0x07, 0x88};
    assert_int_equal(bc_get_u16(bytes + 1), 0x0201);
    assert_int_equal(bc_get_u32(bytes + 1), 0x84030201u);
    assert_true(bc_get_u64(bytes + 1) == UINT64_C(0x8807060584030201));

    uint8_t out[10] = {0};
    bc_put_u64(out + 1, UINT64_C(0x8807060584030201));
    assert_memory_equal(out + 1, bytes + 1, 8);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[9], 0);
    bc_put_f32(out + 1, -1.5f);
    static const uint8_t minus_one_and_a_half[] = {0, 0, 0xc0, 0xbf};
    assert_memory_equal(out + 1, minus_one_and_a_half, 4);
    assert_true(bc_get_f32(out + 1) == -1.5f);
    bc_put_f64(out + 1, 0.1);
    assert_true(bc_get_f64(out + 1) == 0.1);
    assert_int_equal(out[8], 0x3f);
}

/* The value of a finite half from the definition of the format. */
static double half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31;
    const int mantissa = h & 1023;
    const double magnitude =
        exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

enum { N_FINITE = 0x7c00 }; /* non-negative finite halves: 0 to 65504, in order */

/* Round to nearest, ties to even, by search among all values: shares nothing with the code. */
static uint16_t nearest_half(double v, const double *values)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const double magnitude = fabs(v);
    size_t low = 0, high = N_FINITE; /* `high` stands for 65536, where infinity begins */
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (values[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double above = high == N_FINITE ? 65536.0 : values[high];
    const double to_low = magnitude - values[low];
    const double to_high = above - magnitude;
    if (magnitude >= 65536.0) return (uint16_t)(sign | 0x7c00);
    const size_t nearest = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
    return (uint16_t)(sign | nearest);
}

static double *half_values(void)
{
    double *const values = malloc(N_FINITE * sizeof *values);
    assert_non_null(values);
    for (int h = 0; h < N_FINITE; h++)
        values[h] = half_value((uint16_t)h);
    return values;
}

static void test_half_to_float_is_exact(void **state)
{
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        const float f = bc_f16_to_f32((uint16_t)h);
        const uint32_t bits = bc_f32_bits(f);
        assert_int_equal(bits >> 31, h >> 15);
        if ((h & 0x7fff) < 0x7c00) {
            assert_true((double)f == half_value((uint16_t)h));
        } else if ((h & 0x7fff) == 0x7c00) {
            assert_true(isinf(f));
        } else {
            assert_true(isnan(f));
            assert_int_equal(bits & 0x7fffffu, 0x400000u | (h & 0x3ffu) << 13); /* quiet */
        }
    }
}

static void test_half_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        const bool is_nan = (h & 0x7fff) > 0x7c00;
        const uint32_t expected = is_nan ? h | 0x200u : h;
        assert_int_equal(bc_f32_to_f16(bc_f16_to_f32((uint16_t)h)), expected);
    }
}

/* Every tie between neighbouring halves, and the floats on both sides of it, of both signs. */
static void test_float_to_half_ties(void **state)
{
    (void)state;
    double *const values = half_values();
    for (int h = 0; h < N_FINITE; h++) {
        const double above = h + 1 < N_FINITE ? values[h + 1] : 65536.0;
        const float tie = (float)((values[h] + above) / 2);
        assert_true((double)tie == (values[h] + above) / 2); /* a float can hold it */
        const float around[] = {nextafterf(tie, 0.0f), tie, nextafterf(tie, INFINITY)};
        for (size_t i = 0; i < 3; i++) {
            const float v = around[i];
            assert_int_equal(bc_f32_to_f16(v), nearest_half((double)v, values));
            assert_int_equal(bc_f32_to_f16(-v), nearest_half(-(double)v, values));
        }
    }
    free(values);
}

/* A walk over all exponents with a step that reaches all kinds of mantissas. */
static void test_float_to_half_sample(void **state)
{
    (void)state;
    double *const values = half_values();
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 2053) {
        const float v = bc_f32_from_bits((uint32_t)bits);
        if (isnan(v))
            assert_true(isnan(bc_f16_to_f32(bc_f32_to_f16(v))));
        else
            assert_int_equal(bc_f32_to_f16(v), nearest_half((double)v, values));
    }
    free(values);
}

static void test_float_to_half_specials(void **state)
{
    (void)state;
    assert_int_equal(bc_f32_to_f16(0.0f), 0x0000);
    assert_int_equal(bc_f32_to_f16(-0.0f), 0x8000);
    assert_int_equal(bc_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(bc_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(bc_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(bc_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(bc_f32_to_f16(3.4e38f), 0x7c00);
    assert_int_equal(bc_f32_to_f16(ldexpf(1.0f, -24)), 0x0001);
    assert_int_equal(bc_f32_to_f16(ldexpf(1.0f, -25)), 0x0000); /* a tie with the even zero */
    assert_int_equal(bc_f32_to_f16(ldexpf(1.5f, -25)), 0x0001);
    assert_int_equal(bc_f32_to_f16(-ldexpf(1.0f, -149)), 0x8000);
    /* NaN: quiet, sign and upper payload kept; a payload in the lower bits alone must not vanish.
     */
    assert_int_equal(bc_f32_to_f16(bc_f32_from_bits(0x7f800001u)), 0x7e00);
    assert_int_equal(bc_f32_to_f16(bc_f32_from_bits(0xffc02000u)), 0xfe01);
}

static void test_bf16(void **state)
{
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        const float f = bc_bf16_to_f32((uint16_t)h);
        assert_int_equal(bc_f32_bits(f), h << 16);
        const bool is_nan = (h & 0x7fff) > 0x7f80;
        assert_int_equal(bc_f32_to_bf16(f), is_nan ? h | 0x40u : h);
        if (is_nan || (h & 0x7fff) == 0x7f80) continue;
        /* Half way to the next one: to even; the float after it: up. */
        const uint32_t up = h + 1;
        assert_int_equal(bc_f32_to_bf16(bc_f32_from_bits(h << 16 | 0x7fffu)), h);
        assert_int_equal(bc_f32_to_bf16(bc_f32_from_bits(h << 16 | 0x8000u)), h % 2 == 0 ? h : up);
        assert_int_equal(bc_f32_to_bf16(bc_f32_from_bits(h << 16 | 0x8001u)), up);
    }
    assert_int_equal(bc_f32_to_bf16(bc_f32_from_bits(0x7f800001u)), 0x7fc0);
}

static void test_checked_arithmetic(void **state)
{
    (void)state;
    uint64_t v = 7;
    assert_true(bc_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &v));
    assert_true(v == UINT64_C(0xffffffff00000000));
    assert_false(bc_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &v));
    assert_true(v == UINT64_C(0xffffffff00000000));
    assert_true(bc_mul_u64(0, UINT64_MAX, &v) && v == 0);
    assert_true(bc_mul_u64(UINT64_MAX, 0, &v) && v == 0);
    assert_true(bc_add_u64(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
    assert_false(bc_add_u64(UINT64_MAX, 1, &v));
    assert_true(bc_round_up(0, 32) == 0);
    assert_true(bc_round_up(1, 32) == 32);
    assert_true(bc_round_up(32, 32) == 32);
    assert_true(bc_round_up(UINT64_C(0x100000001), 32) == UINT64_C(0x100000020));
}

static void test_cursor_reads(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    struct bc_cursor c = bc_cursor_make(bytes, sizeof bytes);
    assert_int_equal(bc_cursor_u8(&c), 1);
    assert_int_equal(bc_cursor_u32(&c), 0x05040302);
    assert_true(bc_cursor_u64(&c) == UINT64_C(0x0d0c0b0a09080706));
    assert_true(bc_cursor_left(&c) == 3);
    assert_non_null(bc_cursor_take(&c, 0));
    assert_ptr_equal(bc_cursor_take(&c, 3), bytes + 13);
    assert_non_null(bc_cursor_take(&c, 0)); /* also at the end */
    assert_false(c.overrun);
}

static void test_cursor_is_sticky(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3};
    struct bc_cursor c = bc_cursor_make(bytes, sizeof bytes);
    assert_int_equal(bc_cursor_u32(&c), 0);
    assert_true(c.overrun);
    assert_true(c.pos == 0);
    assert_int_equal(bc_cursor_u8(&c), 0); /* would fit, but the group of reads has failed */
    assert_null(bc_cursor_take(&c, 0));
    assert_true(bc_cursor_left(&c) == 0);

    c = bc_cursor_make(bytes, sizeof bytes);
    assert_int_equal(bc_cursor_u8(&c), 1);
    assert_null(bc_cursor_take(&c, UINT64_MAX)); /* pos + n would wrap around */
    assert_true(c.overrun);

    c = bc_cursor_make(NULL, 0);
    assert_non_null(bc_cursor_take(&c, 0));
    assert_int_equal(bc_cursor_u8(&c), 0);
    assert_true(c.overrun);
}

/* The digests of the empty input are part of the XXH3 specification; a stream must give the same
 * digest however it is cut. */
static void test_digests(void **state)
{
    (void)state;
    char hex[33];
    bc_hash128_hex(bc_hash128("", 0), hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    assert_true(bc_hash64(NULL, 0) == UINT64_C(0x2d06800538d394c2));

    uint8_t data[5000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + i / 251);
    const struct bc_hash128 whole = bc_hash128(data, sizeof data);
    static const size_t pieces[] = {1, 13, 64, 255, 256, 257, 1024, 4999, 5000};
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        struct bc_digest *const d = bc_digest_new();
        assert_non_null(d);
        for (size_t i = 0; i < sizeof data; i += pieces[p]) {
            const size_t left = sizeof data - i;
            bc_digest_update(d, data + i, left < pieces[p] ? left : pieces[p]);
            bc_digest_update(d, NULL, 0);
        }
        const struct bc_hash128 h = bc_digest_128(d);
        assert_true(h.high == whole.high && h.low == whole.low);
        bc_digest_free(d);
    }
    bc_digest_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores),
        cmocka_unit_test(test_half_to_float_is_exact),
        cmocka_unit_test(test_half_round_trip),
        cmocka_unit_test(test_float_to_half_ties),
        cmocka_unit_test(test_float_to_half_sample),
        cmocka_unit_test(test_float_to_half_specials),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_checked_arithmetic),
        cmocka_unit_test(test_cursor_reads),
        cmocka_unit_test(test_cursor_is_sticky),
        cmocka_unit_test(test_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
