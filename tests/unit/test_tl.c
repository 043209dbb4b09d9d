/* SPDX-License-Identifier: MIT
 * TL1 and TL2: packer against independent reader over random and awkward shapes, ranges, illegal
 * codes, what stands around the trits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/format.h"
#include "formats/tiling.h"
#include "quant/kernels.h"
#include "support/rng.h"
#include "support/trits.h"

static const struct bc_kernels *kernels; /* set once: asking the processor takes its time */

static const char *const generators[] = {"mod3", "zeros90", "nozeros"};

static struct bc_pack_shape shape_of(uint64_t rows, uint64_t cols, uint32_t bm_rows, uint32_t bk,
                                     uint32_t bm)
{
    return (struct bc_pack_shape){
        .cols = cols, .rows = rows, .slices = 1, .n = rows * cols, .tile = {bm_rows, bk, bm}};
}

struct packed {
    const struct bc_format *f;
    struct bc_pack_shape shape;
    int8_t *trits;
    uint8_t *bytes;
    int8_t *back; /* room for what is unpacked */
};

static struct packed packed_new(const char *name, const struct bc_pack_shape *shape,
                                const char *generator, uint64_t seed)
{
    struct packed p = {.f = bc_format_find(name), .shape = *shape};
    char why[400] = "";
    const float scale = 0.25f;
    assert_non_null(p.f);
    if (!p.f->check(shape, why, sizeof why)) fail_msg("%s", why);
    p.trits = trits_generate(generator, seed, shape->n);
    p.bytes = malloc(p.f->size(shape));
    p.back = malloc(shape->n);
    assert_true(p.trits != NULL && p.bytes != NULL && p.back != NULL);
    memset(p.bytes, 0xee, p.f->size(shape)); /* the pack owns every byte: none may keep this */
    p.f->pack(kernels, shape, p.trits, 0, shape->n, p.bytes);
    p.f->put_scales(shape, &scale, 1, p.bytes);
    return p;
}

static void packed_free(struct packed *p)
{
    free(p->trits);
    free(p->bytes);
    free(p->back);
}

static int read_at(const struct packed *p, uint64_t i)
{
    return p->f->trit_at(&p->shape, p->bytes, 0, i / p->shape.cols, i % p->shape.cols);
}

static void check_round_trip(const char *name, const struct bc_pack_shape *shape,
                             const char *generator, uint64_t seed)
{
    struct packed p = packed_new(name, shape, generator, seed);
    for (uint64_t i = 0; i < shape->n; i++) {
        if (read_at(&p, i) != p.trits[i])
            fail_msg("%s: trit %llu is read as %d, packed as %d", name, (unsigned long long)i,
                     read_at(&p, i), p.trits[i]);
    }
    p.f->trits_at(shape, p.bytes, 0, shape->n, p.back);
    assert_memory_equal(p.back, p.trits, shape->n);
    memset(p.back, 77, shape->n);
    assert_true(p.f->unpack(kernels, shape, p.bytes, 0, shape->n, p.back));
    assert_memory_equal(p.back, p.trits, shape->n);
    assert_true(p.f->get_scale(shape, p.bytes, 0) == 0.25f);

    const uint64_t size = p.f->size(shape);
    const float scale = 0.25f;
    uint8_t *again = malloc(size);
    assert_non_null(again);
    memset(again, 0x11, size);
    p.f->put_scales(shape, &scale, 1, again); /* in either order */
    p.f->pack(kernels, shape, p.back, 0, shape->n, again);
    assert_memory_equal(again, p.bytes, size);
    free(again);
    packed_free(&p);
}

static struct bc_pack_shape random_tl1(uint64_t *rng)
{
    const uint32_t bm = rng_below(rng, 2) == 0 ? 32 : 64;
    const uint32_t bm_rows = bm * (uint32_t)(1 + rng_below(rng, 3));
    const uint32_t bk = 256 / bm * (uint32_t)(1 + rng_below(rng, 12));
    return shape_of(bm_rows * (1 + rng_below(rng, 2)), bk * (1 + rng_below(rng, 4)), bm_rows, bk,
                    bm);
}

static struct bc_pack_shape random_tl2(uint64_t *rng)
{
    const uint32_t bm_rows = 32 * (uint32_t)(1 + rng_below(rng, 3));
    const uint32_t bk = 24 * (uint32_t)(1 + rng_below(rng, 12));
    const uint64_t tail = 32 * rng_below(rng, bk / 32 + 1);
    return shape_of(bm_rows * (1 + rng_below(rng, 2)), bk * rng_below(rng, 4) + tail, bm_rows, bk,
                    32);
}

static void test_random_shapes(void **state)
{
    (void)state;
    uint64_t rng = 7;
    for (unsigned pack = 0; pack < 2; pack++) {
        const char *const name = pack == 0 ? "tl1" : "tl2";
        for (unsigned i = 0; i < 100;) {
            const struct bc_pack_shape shape = pack == 0 ? random_tl1(&rng) : random_tl2(&rng);
            if (!bc_format_find(name)->check(&shape, NULL, 0)) continue;
            check_round_trip(name, &shape, generators[i % 3], rng);
            i++;
        }
    }
}

/* One block, one tile, no triples, no pairs, the longest run of pairs, K below 256. */
static void test_awkward_shapes(void **state)
{
    static const struct {
        const char *name;
        uint64_t rows, cols;
        uint32_t tile[3];
    } shapes[] = {
        {"tl1", 32, 8, {32, 8, 32}},     {"tl1", 64, 4, {64, 4, 64}},
        {"tl1", 96, 40, {96, 40, 32}},   {"tl1", 192, 44, {192, 44, 64}},
        {"tl1", 64, 8, {32, 8, 32}},     {"tl2", 32, 264, {32, 24, 32}},
        {"tl2", 32, 264, {32, 264, 32}}, {"tl2", 32, 256, {32, 264, 32}},
        {"tl2", 64, 520, {64, 264, 32}}, {"tl2", 96, 1000, {96, 72, 32}},
        {"tl2", 32, 80, {32, 48, 32}},   {"tl2", 128, 128, {64, 96, 32}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct bc_pack_shape shape =
            shape_of(shapes[i].rows, shapes[i].cols, shapes[i].tile[0], shapes[i].tile[1],
                     shapes[i].tile[2]);
        for (unsigned g = 0; g < 3; g++)
            check_round_trip(shapes[i].name, &shape, generators[g], i + 1);
    }
}

/* Any range, whatever borders it crosses; nothing around it is written. */
static void check_ranges(const char *name, const struct bc_pack_shape *shape, uint64_t seed)
{
    struct packed p = packed_new(name, shape, "mod3", seed);
    for (unsigned i = 0; i < 400; i++) {
        const uint64_t first = rng_below(&seed, shape->n);
        const uint64_t most = i % 2 == 0 ? 70 : shape->n;
        uint64_t n = rng_below(&seed, most + 1);
        if (n > shape->n - first) n = shape->n - first;
        int8_t *part = malloc((size_t)n + 2);
        assert_non_null(part);
        part[0] = part[n + 1] = 77;
        assert_true(p.f->unpack(kernels, shape, p.bytes, first, n, part + 1));
        assert_memory_equal(part + 1, p.trits + first, n);
        memset(part + 1, 77, n);
        p.f->trits_at(shape, p.bytes, first, n, part + 1);
        assert_memory_equal(part + 1, p.trits + first, n);
        assert_int_equal(part[0], 77);
        assert_int_equal(part[n + 1], 77);
        free(part);
    }
    for (uint64_t r = 0; r < shape->rows; r++) { /* whole rows */
        assert_true(p.f->unpack(kernels, shape, p.bytes, r * shape->cols, shape->cols, p.back));
        assert_memory_equal(p.back, p.trits + r * shape->cols, shape->cols);
    }
    packed_free(&p);
}

static void test_ranges(void **state)
{
    (void)state;
    const struct bc_pack_shape shapes[] = {
        shape_of(128, 60, 64, 20, 64), shape_of(64, 48, 32, 24, 32), shape_of(64, 352, 64, 96, 32),
        shape_of(96, 520, 32, 264, 32), shape_of(32, 288, 32, 96, 32)};
    for (size_t i = 0; i < 5; i++)
        check_ranges(i < 2 ? "tl1" : "tl2", &shapes[i], i + 1);
}

/* unpack and the independent reader agree on which trits are illegal, and all others are kept. */
static uint64_t count_illegal(const struct packed *p)
{
    uint64_t n = 0;
    const bool legal = p->f->unpack(kernels, &p->shape, p->bytes, 0, p->shape.n, p->back);
    for (uint64_t i = 0; i < p->shape.n; i++) {
        assert_int_equal(read_at(p, i), p->back[i]);
        if (p->back[i] == BC_TRIT_ILLEGAL) {
            assert_false(p->f->unpack(kernels, &p->shape, p->bytes, i, 1, p->back + i));
            n++;
        } else {
            assert_true(p->f->unpack(kernels, &p->shape, p->bytes, i, 1, p->back + i));
            assert_int_equal(p->back[i], p->trits[i]);
        }
    }
    assert_int_equal(legal, n == 0);
    return n;
}

/* Every value of every nibble from `from` on, in bytes [begin, end): `worth` trits are illegal. */
static void check_nibbles(struct packed *p, uint64_t begin, uint64_t end, unsigned from,
                          unsigned worth)
{
    for (uint64_t byte = begin; byte < end; byte++) {
        const uint8_t before = p->bytes[byte];
        const unsigned code = from + (unsigned)(byte % (16 - from));
        p->bytes[byte] = (uint8_t)((before & 0x0f) | code << 4);
        assert_int_equal(count_illegal(p), worth);
        p->bytes[byte] = (uint8_t)((before & 0xf0) | code);
        assert_int_equal(count_illegal(p), worth);
        p->bytes[byte] = before;
    }
    assert_int_equal(count_illegal(p), 0);
}

static void test_illegal_pairs(void **state)
{
    (void)state;
    const struct bc_pack_shape shape = shape_of(64, 16, 32, 8, 32);
    const struct bc_pack_shape wide = shape_of(64, 8, 64, 4, 64);
    struct packed p = packed_new("tl1", &shape, "mod3", 1);
    check_nibbles(&p, 0, shape.n / 4, 9, 2);
    packed_free(&p);
    p = packed_new("tl1", &wide, "mod3", 2);
    check_nibbles(&p, 0, wide.n / 4, 9, 2);
    packed_free(&p);
}

static void test_illegal_triples(void **state)
{
    (void)state;
    const struct bc_pack_shape shape = shape_of(32, 80, 32, 48, 32);
    const uint64_t magnitudes = 48 * 32 / 6, signs = 48 * 32 / 24;
    struct packed p = packed_new("tl2", &shape, "mod3", 3);
    check_nibbles(&p, 0, magnitudes, 14, 3);
    check_nibbles(&p, magnitudes + signs, p.f->trit_bytes(&shape), 9, 2);
    packed_free(&p);

    /* A sign at a triple of zeros; at any other it makes a legal, other triple. */
    p = packed_new("tl2", &shape, "allzero", 0);
    for (uint64_t bit = 0; bit < 8 * signs; bit++) {
        p.bytes[magnitudes + bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(count_illegal(&p), 3);
        p.bytes[magnitudes + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    packed_free(&p);
}

/* Any bytes at all: unpack and the independent reader say the same, and stay within the tensor. */
static void test_garbage(void **state)
{
    static const struct {
        const char *name;
        uint32_t rows, cols, tile[3];
    } shapes[] = {{"tl1", 64, 48, {32, 24, 32}},
                  {"tl1", 128, 36, {64, 12, 64}},
                  {"tl2", 64, 352, {64, 96, 32}},
                  {"tl2", 64, 272, {32, 240, 32}}};
    uint64_t rng = 5;
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        const unsigned s = i % 4;
        const struct bc_pack_shape shape =
            shape_of(shapes[s].rows, shapes[s].cols, shapes[s].tile[0], shapes[s].tile[1],
                     shapes[s].tile[2]);
        struct packed p = packed_new(shapes[s].name, &shape, "mod3", i);
        for (uint64_t j = p.f->size(&shape); j-- > 0;)
            p.bytes[j] = (uint8_t)rng_next(&rng);
        assert_false(p.f->unpack(kernels, &shape, p.bytes, 0, shape.n, p.back));
        p.f->trits_at(&shape, p.bytes, 0, shape.n, p.trits);
        assert_memory_equal(p.back, p.trits, shape.n);
        packed_free(&p);
    }
}

static void test_around_the_trits(void **state)
{
    static const uint8_t zeros[4096] = {0};
    (void)state;
    struct bc_pack_shape shape = shape_of(32, 8, 32, 8, 32);
    struct packed p = packed_new("tl1", &shape, "mod3", 1);
    assert_int_equal(p.f->trit_bytes(&shape), 64);
    assert_int_equal(p.f->size(&shape), 96);
    assert_int_equal(bc_get_u32(p.bytes + 64), 0x3e800000);
    assert_memory_equal(p.bytes + 68, zeros, 28);
    packed_free(&p);

    shape = shape_of(64, 352, 64, 96, 32); /* F = 5376, of which 4864 bytes are used */
    p = packed_new("tl2", &shape, "nozeros", 1);
    assert_int_equal(p.f->trit_bytes(&shape), 4864);
    assert_int_equal(p.f->size(&shape), 5376 + 32);
    assert_memory_equal(p.bytes + 4864, zeros, 5376 - 4864);
    assert_int_equal(bc_get_u32(p.bytes + 5376), 0x3e800000);
    assert_memory_equal(p.bytes + 5380, zeros, 28);
    packed_free(&p);
}

static void test_what_is_no_matrix_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"tl1", "tl2"};
    for (size_t i = 0; i < 2; i++) {
        const struct bc_format *f = bc_format_find(names[i]);
        struct bc_pack_shape shape = shape_of(64, 288, 32, 96, 32);
        char why[400] = "";
        assert_true(f->check(&shape, why, sizeof why));
        shape.slices = 2;
        shape.n *= 2;
        assert_false(f->check(&shape, why, sizeof why));
        assert_non_null(strstr(why, "matrices only"));
        shape = shape_of(64, 288, 0, 0, 0);
        assert_false(f->check(&shape, why, sizeof why));
        assert_non_null(strstr(why, "(BM, BK, bm) of this tensor of 64 x 288 is not known"));
        assert_int_equal(f->type_id, i == 0 ? 38 : 39);
        assert_int_equal(f->type_id_rebased, i == 0 ? 0 : 42);
        assert_true(f->choose_tile(NULL, &shape, shape.tile, why, sizeof why));
        assert_true(f->check(&shape, why, sizeof why));
    }
}

int main(void)
{
    kernels = bc_kernels_best();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_awkward_shapes),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_illegal_pairs),
        cmocka_unit_test(test_illegal_triples),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_around_the_trits),
        cmocka_unit_test(test_what_is_no_matrix_is_refused),
    };
    return cmocka_run_group_tests_name("tl", tests, NULL, NULL);
}
