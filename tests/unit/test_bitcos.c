/* SPDX-License-Identifier: MIT
 * BITCOS: round trips, damaged payloads, bits per weight against the published formula and against
 * five trits a byte, kernels against their definitions, and what only this pack can get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/format.h"
#include "quant/kernels_bitcos.h"
#include "support/kernel_compare_bitcos.h"
#include "support/payload_checks.h"

static const struct bc_format *bitcos(void)
{
    return bc_format_find("bitcos");
}

static void test_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        char why[256] = "";
        if (!kernel_bitcos_equals_definition(bc_kernels_at(i), why, sizeof why))
            fail_msg("%s", why);
    }
}

/* Every byte of a bitmap with every byte of signs: the table entry by its description. */
static void test_table(void **state)
{
    (void)state;
    for (unsigned p = 0; p < 256; p++) {
        unsigned rank = 0;
        for (unsigned i = 0; i < 8; i++) {
            const unsigned mask = (unsigned)(bc_bitcos_sign_masks[p] >> 8 * i & 0xff);
            assert_int_equal(mask, (p >> i & 1) != 0 ? 1u << rank : 0);
            rank += p >> i & 1;
        }
    }
    assert_int_equal(sizeof bc_bitcos_sign_masks, 2048);
}

static void test_shapes(void **state)
{
    (void)state;
    payload_check_shapes(bitcos());
}

static void test_flips(void **state)
{
    (void)state;
    payload_check_flips(bitcos());
}

static void test_damage(void **state)
{
    (void)state;
    payload_check_damage(bitcos());
}

static void test_header_reasons(void **state)
{
    (void)state;
    payload_check_header_reasons(bitcos());
}

static void test_stack_example(void **state)
{
    (void)state;
    payload_check_stack_example(bitcos());
}

/* ---- size ---- */

enum { COLS = 1024, ROWS = 512, N = COLS * ROWS };

/* Bytes of a packed 1024 x 512 matrix that has passed all checks. */
static uint64_t measured(const char *pack, unsigned zeros, struct bc_pack_shape *shape)
{
    static const uint64_t dims[] = {COLS, ROWS};
    char why[200] = "";
    struct payload p = payload_new(bc_format_find(pack), 2, dims, zeros, zeros + 1);
    if (!p.f->check_payload(&p.shape, p.bytes, p.size, why, sizeof why)) fail_msg("%s", why);
    const uint64_t size = p.size;
    *shape = p.shape;
    payload_free(&p);
    return size;
}

/* 2 - z, plus 32 bits for 4096 weights, the header, and a last word of signs that may not be full.
 */
static void test_bits_per_weight(void **state)
{
    (void)state;
    for (unsigned zeros = 0; zeros <= 1000; zeros += 25) {
        struct bc_pack_shape shape;
        const double bits = 8.0 * (double)measured("bitcos", zeros, &shape) / N;
        const double z = 1.0 - (double)shape.n_nonzero / N;
        const double stated = 2.0 - z + 32.0 / 4096 + 8.0 * 64 / N;
        assert_true(fabs(z - zeros / 1000.0) < 1e-5);
        if (bits < stated || bits - stated >= 64.0 / N)
            fail_msg("z %.3f: %.6f bits a weight, stated %.6f", z, bits, stated);
    }
}

/* Bytes of bitmap and signs alone: what header and rank table add is stated apart. */
static uint64_t net(uint64_t size)
{
    return size - 64 - 4 * (N / 4096);
}

/* Published: smaller than five trits a byte above z = 0.4, and than 128 weights in 26 bytes above
 * 0.375. With the rank table, and a header on both sides, it takes 0.008 more. Three per mille to
 * both sides. */
static void test_crossovers(void **state)
{
    (void)state;
    const double overhead = 32.0 / 4096;
    const uint64_t blocks_of_128 = N / 128 * 26;
    const struct {
        uint64_t other;
        double z;
        bool is_net;
    } crossovers[] = {{N / 5 + (N % 5 != 0), 0.4, true},
                      {blocks_of_128, 0.375, true},
                      {0, 0.4 + overhead, false}, /* 0: T5 as it is packed */
                      {64 + blocks_of_128, 0.375 + overhead, false}};
    for (size_t i = 0; i < sizeof crossovers / sizeof crossovers[0]; i++) {
        unsigned n_smaller = 0, n_larger = 0;
        const unsigned centre = (unsigned)lround(1000 * crossovers[i].z);
        for (unsigned zeros = centre - 3; zeros <= centre + 3; zeros++) {
            struct bc_pack_shape shape;
            const uint64_t size = measured("bitcos", zeros, &shape);
            const uint64_t compared = crossovers[i].is_net ? net(size) : size;
            uint64_t other = crossovers[i].other;
            if (other == 0) other = measured("t5", zeros, &shape);
            const double z = 1.0 - (double)shape.n_nonzero / N;
            if (fabs(z - crossovers[i].z) < 0.0003) continue; /* within a word of signs */
            assert_int_equal(compared<other, z> crossovers[i].z);
            n_smaller += compared < other;
            n_larger += compared > other;
        }
        assert_true(n_smaller >= 3 && n_larger >= 3);
    }
}

/* ---- reasons ---- */

/* A matrix of three superblocks and a bit: 4 ranks, 3 bytes of the last bitmap word. */
static struct payload three_superblocks(void)
{
    static const uint64_t dims[] = {4096 + 8, 3};
    return payload_new(bitcos(), 2, dims, 500, 9);
}

enum { BITMAP = 64, RANKS = BITMAP + 8 * 193, RANKS_END = RANKS + 16, SIGNS = RANKS_END };

static void test_ranks(void **state)
{
    struct payload p = three_superblocks();
    char part[200];
    (void)state;
    assert_int_equal(bc_get_u32(p.bytes + RANKS), 0);
    for (unsigned entry = 0; entry < 4; entry++) {
        const uint32_t rank = bc_get_u32(p.bytes + RANKS + 4 * entry);
        uint32_t counted = 0;
        for (unsigned i = 0; i < 4096 * entry; i++)
            counted += p.trits[i] != 0;
        assert_int_equal(rank, counted);
        bc_put_u32(p.bytes + RANKS + 4 * entry, rank + 1);
        snprintf(part, sizeof part,
                 "rank %u is %u, but the bitmap has %u non-zero weights before weight %u", entry,
                 rank + 1, rank, 4096 * entry);
        payload_expect_refusal(&p, part);
        bc_put_u32(p.bytes + RANKS + 4 * entry, rank);
    }
    payload_free(&p);
}

static void test_spare_bits(void **state)
{
    struct payload p = three_superblocks();
    (void)state;
    p.bytes[RANKS - 1] = 0x80; /* bit 63 of a word of which 24 bits are used */
    payload_expect_refusal(&p, "spare bits behind the 12312 presence bits are 0x8000000000");
    p.bytes[RANKS - 1] = 0;
    p.bytes[p.size - 1] = 0x40;
    assert_true(p.shape.n_nonzero % 64 != 0);
    payload_expect_refusal(&p, "spare bits behind the 6156 signs are 0x");
    p.bytes[p.size - 1] = 0;
    p.bytes[48]--; /* one sign fewer in the same word */
    payload_expect_refusal(&p, "the header counts 6155 non-zero weights, the bitmap 6156");
    p.bytes[48]++;
    payload_free(&p);

    static const uint64_t dims[] = {64, 65}; /* two superblocks: an even number of ranks */
    p = payload_new(bitcos(), 2, dims, 500, 9);
    assert_int_equal(p.size, 64 + 8 * 65 + 8 + 8 * ((p.shape.n_nonzero + 63) / 64));
    payload_free(&p);
    static const uint64_t small[] = {64, 2};
    p = payload_new(bitcos(), 2, small, 500, 9);
    p.bytes[64 + 16 + 7] = 3;
    payload_expect_refusal(&p, "byte 87, padding behind the ranks, is 0x03, wanted 0");
    payload_free(&p);
}

/* A rank that points behind the signs: weights without a sign are illegal, the others are read, and
 * every reader agrees. */
static void test_signs_that_are_not_there(void **state)
{
    struct payload p = three_superblocks();
    const uint64_t n = p.shape.n;
    int8_t *back = malloc(n), *by_ref = malloc(n);
    (void)state;
    assert_true(back != NULL && by_ref != NULL);
    const uint32_t last_rank = bc_get_u32(p.bytes + RANKS + 12);
    const uint32_t ranks[] = {last_rank + 1, (uint32_t)p.shape.n_nonzero, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        bc_put_u32(p.bytes + RANKS + 12, ranks[i]);
        for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
            uint64_t n_illegal = 0;
            assert_false(p.f->unpack(bc_kernels_at(row), &p.shape, p.bytes, 0, n, back));
            p.f->trits_at(&p.shape, p.bytes, 0, n, by_ref);
            assert_memory_equal(back, by_ref, n);
            assert_memory_equal(back, p.trits, 3 * 4096);
            for (uint64_t w = 3 * 4096; w < n; w++) {
                n_illegal += back[w] == BC_TRIT_ILLEGAL;
                assert_int_equal(back[w], p.f->trit_at(&p.shape, p.bytes, 0, w / 4104, w % 4104));
            }
            const uint64_t beyond = ranks[i] - last_rank, present = p.shape.n_nonzero - last_rank;
            assert_int_equal(n_illegal, beyond < present ? beyond : present);
        }
    }
    free(back);
    free(by_ref);
    payload_free(&p);
}

/* 2^32 non-zero weights have no rank. Sizes beyond memory are computed, not allocated. */
static void test_limits(void **state)
{
    (void)state;
    char why[200] = "";
    struct bc_pack_shape shape = {
        .cols = UINT64_C(1) << 32, .rows = 4, .slices = 1, .n = UINT64_C(1) << 34};
    shape.n_nonzero = UINT32_MAX;
    assert_true(bitcos()->check(&shape, why, sizeof why));
    assert_true(bitcos()->size(&shape) ==
                64 + (UINT64_C(1) << 31) + (UINT64_C(1) << 24) + (UINT64_C(1) << 29));
    shape.n_nonzero++;
    assert_false(bitcos()->check(&shape, why, sizeof why));
    assert_string_equal(
        why, "BITCOS: 4294967296 non-zero weights, the rank table counts up to 4294967295");
    const struct bc_format *t5 = bc_format_find("t5");
    assert_true(t5->check(&shape, why, sizeof why));
    assert_true(t5->size(&shape) == 64 + (UINT64_C(1) << 34) / 5 + 1);

    static const uint64_t dims[] = {8, 8};
    struct payload p = payload_new(bitcos(), 2, dims, 0, 1);
    bc_put_u64(p.bytes + 16, UINT64_C(1) << 40);
    bc_put_u64(p.bytes + 48, UINT64_C(1) << 32);
    payload_expect_refusal(&p, "4294967296 non-zero weights, the rank table");
    bc_put_u64(p.bytes + 48, 5);
    payload_expect_refusal(&p, "88 bytes, but 8796093022208 weights, 5 of them not zero, make ");
    payload_free(&p);
}

/* A caller that announces fewer non-zero weights than it packs gets a payload that does not pass,
 * and no write outside of it. One that announces more, zeros. */
static void test_wrong_count_given(void **state)
{
    struct payload p = three_superblocks();
    const uint64_t n_nonzero = p.shape.n_nonzero;
    (void)state;
    for (uint64_t given = 0; given < 9000; given += 300) {
        struct payload wrong = p;
        char why[200];
        wrong.shape.n_nonzero = given;
        wrong.size = p.f->size(&wrong.shape);
        for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
            wrong.bytes = payload_pack(&wrong, bc_kernels_at(row));
            assert_int_equal(p.f->check_payload(&p.shape, wrong.bytes, wrong.size, why, sizeof why),
                             given == n_nonzero);
            for (uint64_t i = SIGNS + (n_nonzero + 63) / 64 * 8; i < wrong.size; i++)
                assert_int_equal(wrong.bytes[i], 0);
            free(wrong.bytes);
        }
    }
    payload_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),       cmocka_unit_test(test_table),
        cmocka_unit_test(test_shapes),        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_damage),        cmocka_unit_test(test_header_reasons),
        cmocka_unit_test(test_stack_example), cmocka_unit_test(test_bits_per_weight),
        cmocka_unit_test(test_crossovers),    cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_spare_bits),    cmocka_unit_test(test_signs_that_are_not_there),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_wrong_count_given),
    };
    return cmocka_run_group_tests_name("bitcos", tests, NULL, NULL);
}
