/* SPDX-License-Identifier: MIT
 * Every pack of the registry: packer against independent reader, pieces against the whole, the
 * worked examples of the descriptions; and the ternary fingerprint against an independent
 * implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "formats/block_pack.h"
#include "formats/fingerprint.h"
#include "quant/kernels.h"
#include "support/rng.h"
#include "support/spec_example.h"
#include "support/trits.h"

static struct bc_pack_shape shape_of(uint64_t cols, uint64_t rows, uint64_t slices)
{
    return (struct bc_pack_shape){
        .cols = cols, .rows = rows, .slices = slices, .n = cols * rows * slices};
}

/* One of three trit distributions: uniform, mostly zero, no zero. */
static int8_t *trits_new(uint64_t n, unsigned kind, uint64_t seed)
{
    int8_t *trits = malloc(n);
    assert_non_null(trits);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = rng_next(&seed);
        if (kind == 0) trits[i] = (int8_t)(r % 3) - 1;
        if (kind == 1) trits[i] = (int8_t)((r >> 32) % 10 == 0 ? 2 * (int)(r & 1) - 1 : 0);
        if (kind == 2) trits[i] = (int8_t)(2 * (int)(r & 1) - 1);
    }
    return trits;
}

/* The shape with what payload packs also want to know. */
static struct bc_pack_shape counted(const struct bc_pack_shape *shape, const int8_t *trits)
{
    struct bc_pack_shape with_count = *shape;
    with_count.n_nonzero = 0;
    for (uint64_t i = 0; i < shape->n; i++)
        with_count.n_nonzero += trits[i] != 0;
    return with_count;
}

static uint8_t *pack_whole(const struct bc_format *f, const struct bc_kernels *k,
                           const struct bc_pack_shape *shape, const int8_t *trits, float scale)
{
    uint8_t *packed = malloc(f->size(shape));
    assert_non_null(packed);
    memset(packed, 0xee, f->size(shape)); /* the pack owns every byte: none may keep this */
    f->pack(k, shape, trits, 0, shape->n, packed);
    f->put_scales(shape, &scale, 1, packed);
    return packed;
}

static void check_independent_reader(const struct bc_format *f, const struct bc_pack_shape *shape,
                                     const uint8_t *packed, const int8_t *trits)
{
    uint64_t i = 0;
    for (uint64_t s = 0; s < shape->slices; s++) {
        for (uint64_t r = 0; r < shape->rows; r++) {
            for (uint64_t c = 0; c < shape->cols; c++, i++) {
                if (f->trit_at(shape, packed, s, r, c) != trits[i])
                    fail_msg("%s: trit %llu is read as %d, packed as %d", f->name,
                             (unsigned long long)i, f->trit_at(shape, packed, s, r, c), trits[i]);
            }
        }
    }
}

/* Ranges of random numbers of granules, last one first, must give the bytes of one call. */
static void check_pieces(const struct bc_format *f, const struct bc_kernels *k,
                         const struct bc_pack_shape *shape, const uint8_t *packed,
                         const int8_t *trits, uint64_t seed)
{
    if (f->granule == 0) return;
    uint8_t *again = malloc(f->size(shape));
    int8_t *back = malloc(shape->n);
    assert_true(again != NULL && back != NULL);
    memset(again, 0x11, f->size(shape));
    const float scale = f->get_scale(shape, packed, 0);
    f->put_scales(shape, &scale, 1, again);
    uint64_t end = shape->n;
    while (end > 0) {
        uint64_t n = f->granule * (1 + rng_below(&seed, 5));
        if (end % f->granule != 0) n = n - f->granule + end % f->granule;
        if (n > end) n = end;
        f->pack(k, shape, trits + end - n, end - n, n, again);
        assert_true(f->unpack(k, shape, packed, end - n, n, back + end - n));
        end -= n;
    }
    assert_memory_equal(again, packed, f->size(shape));
    assert_memory_equal(back, trits, shape->n);
    free(again);
    free(back);
}

static void check_shape(const struct bc_format *f, const struct bc_pack_shape *plain, uint64_t seed)
{
    char why[256] = "";
    int8_t *trits = trits_new(plain->n, (unsigned)(seed % 3), seed);
    const struct bc_pack_shape with_count = counted(plain, trits), *shape = &with_count;
    assert_true(f->check(shape, why, sizeof why));
    assert_int_equal(why[0], '\0');
    int8_t *back = malloc(shape->n);
    assert_non_null(back);
    uint8_t *reference = pack_whole(f, bc_kernels_at(0), shape, trits, 0.1f);
    check_independent_reader(f, shape, reference, trits);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        const struct bc_kernels *k = bc_kernels_at(i);
        uint8_t *packed = pack_whole(f, k, shape, trits, 0.1f);
        assert_memory_equal(packed, reference, f->size(shape));
        assert_true(f->unpack(k, shape, packed, 0, shape->n, back));
        assert_memory_equal(back, trits, shape->n);
        for (uint64_t s = 0; s < shape->slices; s++)
            assert_true(f->get_scale(shape, packed, s) == 0.1f);
        check_pieces(f, k, shape, packed, trits, seed);
        free(packed);
    }
    free(reference);
    free(back);
    free(trits);
}

/* Awkward shapes (single rows, rows that are no whole blocks, stacks) and random ones. */
static void test_pack_and_read_back(void **state)
{
    static const uint64_t shapes[][3] = {{64, 1, 1},  {128, 1, 1}, {1, 128, 1},  {2, 64, 1},
                                         {96, 4, 1},  {50, 64, 1}, {64, 3, 1},   {3, 1280, 1},
                                         {8, 8, 10},  {7, 32, 4},  {640, 24, 1}, {32, 288, 1},
                                         {1, 1, 384}, {256, 5, 3}, {200, 48, 1}};
    uint64_t rng = 42;
    unsigned n_checked = 0;
    (void)state;
    for (size_t row = 0; bc_format_at(row) != NULL; row++) {
        const struct bc_format *f = bc_format_at(row);
        char why[256];
        if (bc_block_pack_of(f) != NULL)
            continue; /* test_block_packs.c: their scales are float16 */
        for (size_t i = 0; i < 115; i++) {
            struct bc_pack_shape shape;
            if (i < 15)
                shape = shape_of(shapes[i][0], shapes[i][1], shapes[i][2]);
            else
                shape = shape_of(1 + rng_below(&rng, 200), 16 * (1 + rng_below(&rng, 8)),
                                 1 + rng_below(&rng, 3));
            if (!f->check(&shape, why, sizeof why)) continue;
            check_shape(f, &shape, rng);
            n_checked++;
        }
    }
    assert_true(n_checked > 40);
}

static void test_registry(void **state)
{
    (void)state;
    for (size_t i = 0; bc_format_at(i) != NULL; i++) {
        const struct bc_format *f = bc_format_at(i);
        assert_ptr_equal(bc_format_find(f->name), f);
        assert_non_null(f->title);
        assert_non_null(f->type_name);
        const struct bc_format *of_type = bc_format_by_type(f->type_id);
        assert_int_equal(of_type == NULL, f->open_payload != NULL); /* I8 may be anything */
        if (of_type != NULL) assert_int_equal(of_type->type_id, f->type_id);
    }
    assert_string_equal(bc_format_by_type(36)->name, "i2_s"); /* the default of the two */
    assert_null(bc_format_find("I2_S"));
    assert_null(bc_format_find(""));
    assert_null(bc_format_by_type(0));
}

static void test_misfits_name_the_numbers(void **state)
{
    (void)state;
    char why[256];
    const struct bc_format *f = bc_format_find("i2_s"), *f64 = bc_format_find("i2_s_64");
    struct bc_pack_shape shape = shape_of(50, 3, 1);
    assert_false(f->check(&shape, why, sizeof why));
    assert_string_equal(why, "I2_S packs blocks of 128 values; 50 x 3 = 150 values are no multiple "
                             "of 128, 22 are left over");
    shape = shape_of(5, 64, 3);
    assert_false(f->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "5 x 64 x 3 = 960"));
    assert_true(f64->check(&shape, why, sizeof why));
    shape = shape_of(5, 5, 1);
    assert_false(f64->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "64 layout"));
    assert_non_null(strstr(why, "no multiple of 64, 25 are left over"));
    shape = shape_of(0, 5, 1);
    assert_false(f->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "no values"));
    assert_false(f->check(&shape, why, 5)); /* a short buffer is filled, not overrun */
    assert_string_equal(why, "I2_S");
    shape = shape_of(UINT64_C(1) << 31, UINT64_C(1) << 31, 1);
    assert_true(f->check(&shape, why, sizeof why));
    assert_true(f->size(&shape) == (UINT64_C(1) << 60) + 32);
}

/* Code 3 at any place is reported and stored as such, and the neighbours are still read. */
static void test_illegal_codes(void **state)
{
    (void)state;
    static const char *const names[] = {"i2_s", "i2_s_64"};
    for (size_t f = 0; f < 2; f++) {
        const struct bc_format *format = bc_format_find(names[f]);
        const struct bc_pack_shape shape = shape_of(128, 4, 1);
        int8_t *trits = trits_new(shape.n, 0, 3), back[512];
        for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
            const struct bc_kernels *k = bc_kernels_at(row);
            for (size_t bit = 0; bit < 8 * 128; bit += 2) {
                uint8_t *packed = pack_whole(format, k, &shape, trits, 1.0f);
                packed[bit / 8] |= (uint8_t)(3u << bit % 8);
                assert_false(format->unpack(k, &shape, packed, 0, shape.n, back));
                size_t n_illegal = 0;
                for (uint64_t i = 0; i < shape.n; i++) {
                    const int read = format->trit_at(&shape, packed, 0, i / 128, i % 128);
                    assert_int_equal(read, back[i]);
                    if (read == BC_TRIT_ILLEGAL)
                        n_illegal++;
                    else
                        assert_int_equal(read, trits[i]);
                }
                assert_int_equal(n_illegal, 1);
                free(packed);
            }
        }
        free(trits);
    }
}

static void test_tail(void **state)
{
    (void)state;
    static const char *const names[] = {"i2_s", "i2_s_64"};
    for (size_t f = 0; f < 2; f++) {
        const struct bc_format *format = bc_format_find(names[f]);
        const struct bc_pack_shape shape = shape_of(64, 6, 1);
        static const uint8_t zeros[28] = {0};
        int8_t trits[384] = {0};
        uint8_t *packed = pack_whole(format, bc_kernels_best(), &shape, trits, 0.5f);
        assert_int_equal(format->trit_bytes(&shape), 96);
        assert_int_equal(format->size(&shape), 128);
        assert_int_equal(packed[0], 0x55);
        assert_int_equal(bc_get_u32(packed + 96), 0x3f000000);
        assert_memory_equal(packed + 100, zeros, 28);
        free(packed);
    }
}

static void test_examples_of_the_descriptions(void **state)
{
    (void)state;
    for (size_t i = 0; bc_format_at(i) != NULL; i++) {
        const struct bc_format *f = bc_format_at(i);
        struct spec_example e;
        spec_example_read(f->name, &e);
        e.shape = counted(&e.shape, e.trits);
        assert_int_equal(e.n_bytes, f->size(&e.shape));
        uint8_t *packed = pack_whole(f, bc_kernels_best(), &e.shape, e.trits, e.scale);
        assert_memory_equal(packed, e.bytes, e.n_bytes);
        check_independent_reader(f, &e.shape, e.bytes, e.trits);
        assert_true(f->get_scale(&e.shape, e.bytes, 0) == e.scale);
        free(packed);
    }
}

static void fingerprint_hex(uint32_t n_dims, const uint64_t *ne, const float *scales,
                            uint32_t n_scales, const int8_t *trits, uint64_t n, uint64_t seed,
                            char hex[33])
{
    struct bc_fingerprint fp;
    struct bitconv_error err = {0};
    bool all_zero = true;
    for (uint64_t i = 0; i < n; i++)
        all_zero = all_zero && trits[i] == 0;
    assert_int_equal(bc_fingerprint_begin(&fp, n_dims, ne, scales, n_scales, all_zero, &err),
                     BITCONV_OK);
    for (uint64_t i = 0; i < n;) { /* seed 0: in one piece */
        uint64_t piece = seed == 0 ? n : rng_below(&seed, seed % 2 ? 12 : 20000);
        if (piece > n - i) piece = n - i;
        bc_fingerprint_trits(&fp, trits + i, piece);
        i += piece;
    }
    bc_hash128_hex(bc_fingerprint_end(&fp), hex);
}

/* The expected digests were computed with Python (struct, and xxhash 3.x's xxh3_128_hexdigest) from
 * the table in fingerprint.md. */
static void test_fingerprints_of_known_tensors(void **state)
{
    static const float scales[] = {0.25f, 0.5f, 1.0f, 2.0f, 4.0f};
    static const struct {
        uint32_t n_dims, n_scales;
        uint64_t ne[3];
        float scale;
        uint64_t seed;
        const char *hex;
    } known[] = {
        {2, 1, {96, 50, 1}, 0.0371234f, 1, "85d41aedb381ccf050d44495178738e4"},
        {3, 1, {7, 3, 5}, 0.25f, 2, "f9f824af1fc742dae5db74861ebee083"},
        {3, 5, {7, 3, 5}, 0.0f, 2, "8f88650a5dbce25f1d5b8d7ea018aa95"},
        {1, 1, {9, 1, 1}, 1.5f, 3, "896ff44243c7b44f68f5786bf23b7a68"},
        {2, 1, {300001, 1, 1}, 1.0f, 4, "11b23d13be93d93eb821f728d3b76d59"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const uint64_t n = known[i].ne[0] * known[i].ne[1] * known[i].ne[2];
        int8_t *trits = trits_generate("mod3", known[i].seed, n);
        assert_non_null(trits);
        char hex[33];
        for (uint64_t seed = 0; seed < 6; seed++) {
            fingerprint_hex(known[i].n_dims, known[i].ne,
                            known[i].n_scales == 1 ? &known[i].scale : scales, known[i].n_scales,
                            trits, n, seed, hex);
            assert_string_equal(hex, known[i].hex);
        }
        trits[n - 1] = (int8_t)(trits[n - 1] == 1 ? 0 : trits[n - 1] + 1);
        fingerprint_hex(known[i].n_dims, known[i].ne,
                        known[i].n_scales == 1 ? &known[i].scale : scales, known[i].n_scales, trits,
                        n, 0, hex);
        assert_string_not_equal(hex, known[i].hex);
        free(trits);
    }
}

static void test_fingerprint_of_zeros(void **state)
{
    static const uint64_t ne[] = {10, 10};
    static const int8_t zeros[100] = {0};
    const float scale = 3.0f; /* does not count */
    char hex[33];
    (void)state;
    fingerprint_hex(2, ne, &scale, 1, zeros, 100, 0, hex);
    assert_string_equal(hex, "a92e071cb0f60771f4e9fe5d55e2072b");
}

/* The example of fingerprint.md: the stream in hex hashes to the value given, and so does the
 * tensor. */
static void test_fingerprint_example(void **state)
{
    static const uint64_t ne[] = {5, 1};
    static const int8_t trits[] = {1, 0, -1, 0, 1};
    const float scale = 0.5f;
    uint8_t stream[256];
    char hex[33], hex_of_stream[33];
    (void)state;
    char *text = spec_text("fingerprint");
    const size_t size = spec_hex_read("fingerprint", stream, sizeof stream);
    bc_hash128_hex(bc_hash128(stream, size), hex_of_stream);
    fingerprint_hex(2, ne, &scale, 1, trits, 5, 0, hex);
    assert_string_equal(hex, hex_of_stream);
    assert_memory_equal(spec_after(text, "```fingerprint\n"), hex, 32);
    bc_free(text);
}

static void test_fingerprint_of_a_model(void **state)
{
    /* blk.1 and blk.10 tell sorting by bytes of the line from sorting by number. */
    struct bc_named_hash tensors[] = {
        {"blk.10.w", {UINT64_C(0x96ad5c4782d1ed39), UINT64_C(0xcfef000be33c15a1)}},
        {"blk.1.w", {UINT64_C(0x896ff44243c7b44f), UINT64_C(0x68f5786bf23b7a68)}},
        {"a", {UINT64_C(0xa92e071cb0f60771), UINT64_C(0xf4e9fe5d55e2072b)}},
    };
    struct bc_hash128 hash;
    char hex[33];
    (void)state;
    assert_int_equal(bc_fingerprint_model(tensors, 3, &hash, NULL), BITCONV_OK);
    bc_hash128_hex(hash, hex);
    assert_string_equal(hex, "98be975b959e25095fceb82cd0bf4e14");
    const struct bc_named_hash first = tensors[0];
    tensors[0] = tensors[2];
    tensors[2] = first;
    struct bc_hash128 again;
    assert_int_equal(bc_fingerprint_model(tensors, 3, &again, NULL), BITCONV_OK);
    assert_true(again.high == hash.high && again.low == hash.low);
    assert_int_equal(bc_fingerprint_model(tensors, 0, &hash, NULL), BITCONV_OK);
    bc_hash128_hex(hash, hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f"); /* of no bytes */
}

static void test_fingerprint_refusals(void **state)
{
    static const uint64_t stack[] = {4, 4, 3}, empty[] = {4, 0}, huge[] = {1, 1, UINT64_MAX, 2};
    static const uint64_t many[] = {1, 1, UINT64_C(1) << 33};
    const float scales[3] = {1.0f, 2.0f, 3.0f};
    struct bc_fingerprint fp;
    struct bitconv_error err = {0};
    (void)state;
    assert_int_equal(bc_fingerprint_begin(&fp, 3, stack, scales, 2, false, &err), BITCONV_E_ARG);
    assert_non_null(strstr(err.text, "2 scales for a tensor of 3 slices"));
    assert_int_equal(bc_fingerprint_begin(&fp, 3, stack, scales, 0, false, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_fingerprint_begin(&fp, 2, stack, scales, 3, false, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_fingerprint_begin(&fp, 2, empty, scales, 1, false, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_fingerprint_begin(&fp, 4, huge, scales, 1, false, NULL), BITCONV_E_LIMIT);
    assert_int_equal(bc_fingerprint_begin(&fp, 3, many, scales, 1, false, NULL), BITCONV_E_LIMIT);
    bc_fingerprint_cancel(&fp); /* after a failed begin: nothing to do */
    assert_int_equal(bc_fingerprint_begin(&fp, 3, stack, scales, 3, false, NULL), BITCONV_OK);
    bc_fingerprint_cancel(&fp);
    bc_fingerprint_cancel(&fp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_and_read_back),
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_misfits_name_the_numbers),
        cmocka_unit_test(test_illegal_codes),
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_examples_of_the_descriptions),
        cmocka_unit_test(test_fingerprints_of_known_tensors),
        cmocka_unit_test(test_fingerprint_of_zeros),
        cmocka_unit_test(test_fingerprint_example),
        cmocka_unit_test(test_fingerprint_of_a_model),
        cmocka_unit_test(test_fingerprint_refusals),
    };
    return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
