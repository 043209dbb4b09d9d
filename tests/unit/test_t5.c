/* SPDX-License-Identifier: MIT
 * T5: round trips, damaged payloads, sizes, and what only this pack can get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "formats/format.h"
#include "quant/kernels.h"
#include "support/payload_checks.h"

static const struct bc_format *t5(void)
{
    return bc_format_find("t5");
}

static void test_shapes(void **state)
{
    (void)state;
    payload_check_shapes(t5());
}

static void test_flips(void **state)
{
    (void)state;
    payload_check_flips(t5());
}

static void test_damage(void **state)
{
    (void)state;
    payload_check_damage(t5());
}

static void test_header_reasons(void **state)
{
    (void)state;
    payload_check_header_reasons(t5());
}

static void test_stack_example(void **state)
{
    (void)state;
    payload_check_stack_example(t5());
}

static void test_bits_per_weight(void **state)
{
    static const uint64_t dims[] = {1000, 1000};
    (void)state;
    for (unsigned zeros = 0; zeros <= 1000; zeros += 100) {
        struct payload p = payload_new(t5(), 2, dims, zeros, zeros);
        assert_int_equal(p.size, 64 + 200000);
        assert_int_equal(p.shape.n_nonzero, (1000 - zeros) * 1000);
        payload_free(&p);
    }
}

/* All 13 bytes that no five trits give, at every place: the five weights and only these are
 * illegal, on every row. */
static void test_illegal_bytes(void **state)
{
    static const uint64_t dims[] = {51, 2};
    (void)state;
    for (unsigned byte = 243; byte < 256; byte++) {
        for (uint64_t place = 0; place < 21; place++) {
            struct payload p = payload_new(t5(), 2, dims, 300, byte);
            int8_t back[102];
            char part[80];
            p.bytes[64 + place] = (uint8_t)byte;
            for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
                assert_false(p.f->unpack(bc_kernels_at(row), &p.shape, p.bytes, 0, 102, back));
                for (uint64_t i = 0; i < 102; i++) {
                    const int wanted = i / 5 == place ? BC_TRIT_ILLEGAL : p.trits[i];
                    assert_int_equal(back[i], wanted);
                    assert_int_equal(p.f->trit_at(&p.shape, p.bytes, 0, i / 51, i % 51), wanted);
                }
            }
            snprintf(part, sizeof part,
                     "byte %d is %u, above 242: no five trits give it (weight %d)",
                     (int)(64 + place), byte, (int)(5 * place));
            payload_expect_refusal(&p, part);
            payload_free(&p);
        }
    }
}

/* 3^5 bytes and all their digits. */
static void test_every_byte(void **state)
{
    static const uint64_t dims[] = {5, 243};
    struct payload p = payload_new(t5(), 2, dims, 333, 1);
    (void)state;
    for (unsigned byte = 0; byte < 243; byte++)
        p.bytes[64 + byte] = (uint8_t)byte;
    for (unsigned d[5] = {0}, byte = 0; byte < 243; byte++) {
        for (unsigned i = 0; i < 5; i++) {
            p.trits[5 * byte + i] = (int8_t)((int)d[i] - 1);
            assert_int_equal(p.f->trit_at(&p.shape, p.bytes, 0, byte, i), (int)d[i] - 1);
        }
        for (unsigned i = 0; i < 5 && ++d[i] == 3; i++)
            d[i] = 0; /* counting in base 3, the first digit the lowest */
    }
    for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
        uint8_t *again = payload_pack(&p, bc_kernels_at(row));
        assert_memory_equal(again + 64, p.bytes + 64, 243);
        free(again);
    }
    payload_free(&p);
}

static void test_missing_digits(void **state)
{
    static const uint64_t dims[] = {7, 1};
    struct payload p = payload_new(t5(), 2, dims, 1000, 1); /* two weights in the last byte */
    (void)state;
    assert_int_equal(p.bytes[65], 121);
    p.bytes[65] = 121 - 9;
    payload_expect_refusal(&p, "digit 2 of the last byte, behind the 7 weights, is 0, wanted 1");
    p.bytes[65] = 121 + 27;
    payload_expect_refusal(&p, "digit 3 of the last byte");
    p.bytes[65] = 121 + 81;
    payload_expect_refusal(&p, "digit 4 of the last byte, behind the 7 weights, is 2, wanted 1");
    p.bytes[65] = 121 + 3; /* a weight: the count is wrong then */
    payload_expect_refusal(&p, "the header counts 0 non-zero weights, there are 1");
    p.bytes[48] = 1;
    char why[200] = "";
    assert_true(p.f->check_payload(&p.shape, p.bytes, p.size, why, sizeof why));
    payload_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_flips),
        cmocka_unit_test(test_damage),         cmocka_unit_test(test_header_reasons),
        cmocka_unit_test(test_stack_example),  cmocka_unit_test(test_bits_per_weight),
        cmocka_unit_test(test_illegal_bytes),  cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_missing_digits),
    };
    return cmocka_run_group_tests_name("t5", tests, NULL, NULL);
}
