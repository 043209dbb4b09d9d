/* SPDX-License-Identifier: MIT
 * Tests of the GGUF writer: its bytes, what it refuses, and that the reader gets everything back.
 *
 * With `--emit FILE` the program writes the sample file instead, for
 * tests/oracle/gguf_roundtrip.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "io/gguf_impl.h"
#include "support/gguf_builder.h"
#include "support/rng.h"

/* A writer with the keys and tensors of gguf_builder_sample. */
static struct bitconv_gguf_writer *sample_writer(void)
{
    static const uint8_t ones[8] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t counts[] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
    static const uint8_t words[] = {2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 0, 0, 0, 0, 0, 0, 0, 0};
    uint8_t half[8];
    bc_put_f64(half, 0.5);
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    assert_non_null(w);
    bitconv_gguf_set_string(w, "general.architecture", "bitnet-b1.58");
    bitconv_gguf_set_u32(w, "general.file_type", 40);
    bitconv_gguf_set_scalar(w, "test.u8", BITCONV_GGUF_UINT8, ones);
    bitconv_gguf_set_scalar(w, "test.i8", BITCONV_GGUF_INT8, ones);
    bitconv_gguf_set_scalar(w, "test.u16", BITCONV_GGUF_UINT16, ones);
    bitconv_gguf_set_scalar(w, "test.i16", BITCONV_GGUF_INT16, ones);
    bitconv_gguf_set_scalar(w, "test.i32", BITCONV_GGUF_INT32, ones);
    bitconv_gguf_set_f32(w, "test.f32", 1.75f);
    bitconv_gguf_set_bool(w, "test.bool", true);
    bitconv_gguf_set_scalar(w, "test.u64", BITCONV_GGUF_UINT64, ones);
    bitconv_gguf_set_scalar(w, "test.i64", BITCONV_GGUF_INT64, ones);
    bitconv_gguf_set_scalar(w, "test.f64", BITCONV_GGUF_FLOAT64, half);
    bitconv_gguf_set_array(w, "test.counts", BITCONV_GGUF_INT32, 3, counts, sizeof counts);
    bitconv_gguf_set_array(w, "test.words", BITCONV_GGUF_STRING, 2, words, sizeof words);
    bitconv_gguf_add_tensor(w, "token_embd.weight", 1, 2, (const uint64_t[]){128, 3}, 768);
    bitconv_gguf_add_tensor(w, "blk.0.ffn_up.weight", 36, 2, (const uint64_t[]){128, 4}, 160);
    bitconv_gguf_add_tensor(w, "output_norm.weight", 0, 1, (const uint64_t[]){5}, 20);
    return w;
}

/* Header and zeros for the data. */
static void plan(struct bitconv_gguf_writer *w, struct bc_buf *out)
{
    const uint8_t *header;
    uint64_t header_size, file_size;
    struct bitconv_error err = {0};
    if (bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    bc_buf_append(out, header, header_size);
    while (out->size < file_size)
        bc_buf_u8(out, 0);
    assert_int_equal(out->size, file_size);
}

static void test_bytes(void **state)
{
    (void)state;
    struct bc_buf wanted = {0}, written = {0};
    gguf_builder_sample(&wanted);
    struct bitconv_gguf_writer *w = sample_writer();
    plan(w, &written);
    assert_int_equal(written.size, wanted.size);
    assert_memory_equal(written.data, wanted.data, wanted.size);
    assert_int_equal(bitconv_gguf_writer_tensor_offset(w, 0), 0);
    assert_int_equal(bitconv_gguf_writer_tensor_offset(w, 1), 768);
    assert_int_equal(bitconv_gguf_writer_tensor_offset(w, 2), 928);
    /* planning again gives the same */
    bc_buf_clear(&written);
    plan(w, &written);
    assert_memory_equal(written.data, wanted.data, wanted.size);
    bitconv_gguf_writer_free(w);
    bc_buf_release(&wanted);
    bc_buf_release(&written);
}

static void test_no_tensors(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct bitconv_gguf *g = NULL;
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    bitconv_gguf_set_string(w, "general.architecture", "llama");
    plan(w, &file);
    assert_int_equal(file.size % 32, 0);
    assert_int_equal(bc_gguf_parse(file.data, file.size, "t", &g, NULL), BITCONV_OK);
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    bitconv_gguf_close(g);
    bitconv_gguf_writer_free(w);
    bc_buf_release(&file);
}

static void test_keys_keep_their_place(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct bitconv_gguf *g = NULL;
    uint64_t v;
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    bitconv_gguf_set_string(w, "general.architecture", "llama");
    bitconv_gguf_set_string(w, "x", "a text that is replaced by a number");
    bitconv_gguf_set_u32(w, "y", 1);
    bitconv_gguf_set_u32(w, "z", 2);
    bitconv_gguf_set_u32(w, "x", 3);
    assert_true(bitconv_gguf_writer_has(w, "y"));
    bitconv_gguf_unset(w, "y");
    bitconv_gguf_unset(w, "never set");
    assert_false(bitconv_gguf_writer_has(w, "y"));
    plan(w, &file);
    assert_int_equal(bc_gguf_parse(file.data, file.size, "t", &g, NULL), BITCONV_OK);
    assert_int_equal(bitconv_gguf_n_keys(g), 3);
    assert_string_equal(bitconv_gguf_key_at(g, 1)->name, "x");
    assert_true(bitconv_gguf_value_u64(&bitconv_gguf_key_at(g, 1)->value, &v));
    assert_int_equal(v, 3);
    assert_string_equal(bitconv_gguf_key_at(g, 2)->name, "z");
    bitconv_gguf_close(g);
    bitconv_gguf_writer_free(w);
    bc_buf_release(&file);
}

static void expect_refusal(struct bitconv_gguf_writer *w, enum bitconv_status wanted,
                           const char *text)
{
    const uint8_t *header;
    uint64_t header_size, file_size;
    struct bitconv_error err = {0};
    const enum bitconv_status status =
        bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, &err);
    if (status != wanted || strstr(err.text, text) == NULL)
        fail_msg("wanted '%s', got %s: %s", text, bitconv_status_name(status), err.text);
    bitconv_gguf_writer_free(w);
}

static void test_illegal_keys(void **state)
{
    (void)state;
    static const uint8_t bytes[16] = {1};
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    bitconv_gguf_set_u32(w, "", 1);
    expect_refusal(w, BITCONV_E_ARG, "a name of 1 to 65535 bytes of UTF-8 is wanted");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_u32(w, "\xff", 1);
    expect_refusal(w, BITCONV_E_ARG, "a name of 1 to 65535 bytes of UTF-8 is wanted");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_scalar(w, "x", BITCONV_GGUF_STRING, bytes);
    expect_refusal(w, BITCONV_E_ARG, "GGUF key x: STRING is not a scalar type");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_array(w, "x", BITCONV_GGUF_ARRAY, 1, bytes, 16);
    expect_refusal(w, BITCONV_E_ARG, "GGUF key x: 16 bytes are not an array of 1 ARRAY");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_array(w, "x", BITCONV_GGUF_UINT32, 3, bytes, 16);
    expect_refusal(w, BITCONV_E_ARG, "GGUF key x: 16 bytes are not an array of 3 UINT32");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_array(w, "x", BITCONV_GGUF_STRING, 1, bytes, 16);
    expect_refusal(w, BITCONV_E_ARG, "GGUF key x: 16 bytes are not an array of 1 STRING");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_u32(w, "general.alignment", 64);
    expect_refusal(w, BITCONV_E_ARG, "GGUF key general.alignment: only UINT32 32");
}

static void test_alignment_key_that_is_right(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    bitconv_gguf_set_u32(w, "general.alignment", 32);
    plan(w, &file);
    bitconv_gguf_writer_free(w);
    bc_buf_release(&file);
}

static void test_illegal_tensors(void **state)
{
    (void)state;
    static const uint64_t ne[5] = {8, 1, 1, 1, 1};
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    bitconv_gguf_add_tensor(w, name, 0, 1, ne, 32);
    expect_refusal(w, BITCONV_E_ARG, "a name of 1 to 63 bytes of UTF-8 is wanted, this one has 64");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_add_tensor(w, "", 0, 1, ne, 32);
    expect_refusal(w, BITCONV_E_ARG, "a name of 1 to 63 bytes");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_add_tensor(w, "a", 0, 5, ne, 32);
    expect_refusal(w, BITCONV_E_ARG, "GGUF tensor a: 5 dimensions, 1 to 4");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_add_tensor(w, "a", 0, 0, ne, 32);
    expect_refusal(w, BITCONV_E_ARG, "GGUF tensor a: 0 dimensions, 1 to 4");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_add_tensor(w, "a", 0, 1, ne, 32);
    bitconv_gguf_add_tensor(w, "b", 0, 1, ne, 32);
    bitconv_gguf_add_tensor(w, "a", 0, 1, ne, 32);
    expect_refusal(w, BITCONV_E_ARG, "GGUF tensor a: announced twice");
    w = bitconv_gguf_writer_new();
    bitconv_gguf_add_tensor(w, "a", 0, 1, ne, UINT64_C(1) << 61);
    bitconv_gguf_add_tensor(w, "b", 0, 1, ne, UINT64_MAX - 5);
    expect_refusal(w, BITCONV_E_LIMIT, "GGUF tensor b: the file would exceed 2^62 bytes");
    /* the first fault is the one that is told */
    w = bitconv_gguf_writer_new();
    bitconv_gguf_set_u32(w, "", 1);
    bitconv_gguf_add_tensor(w, "", 0, 1, ne, 32);
    expect_refusal(w, BITCONV_E_ARG, "GGUF key ");
}

/* Random models: what goes in comes out, without a finding. */
static void test_round_trips(void **state)
{
    (void)state;
    uint64_t seed = 20;
    for (int round = 0; round < 50; round++) {
        struct bc_buf file = {0};
        struct bitconv_gguf *g = NULL;
        struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
        const uint64_t n = rng_below(&seed, 40);
        uint64_t cols[40], rows[40];
        bitconv_gguf_set_string(w, "general.architecture", "llama");
        for (uint64_t i = 0; i < n; i++) {
            char name[32];
            cols[i] = 1 + rng_below(&seed, 70);
            rows[i] = 1 + rng_below(&seed, 5);
            snprintf(name, sizeof name, "t%u", (unsigned)i);
            bitconv_gguf_add_tensor(w, name, i % 2 == 0 ? 0 : 1, 2,
                                    (const uint64_t[]){cols[i], rows[i]},
                                    cols[i] * rows[i] * (i % 2 == 0 ? 4 : 2));
        }
        plan(w, &file);
        assert_int_equal(bc_gguf_parse(file.data, file.size, "t", &g, NULL), BITCONV_OK);
        assert_int_equal(bitconv_gguf_n_findings(g), 0);
        assert_int_equal(bitconv_gguf_n_tensors(g), n);
        for (uint64_t i = 0; i < n; i++) {
            const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(g, i);
            assert_int_equal(t->ne[0], cols[i]);
            assert_int_equal(t->ne[1], rows[i]);
            assert_int_equal(t->offset, bitconv_gguf_writer_tensor_offset(w, i));
            assert_int_equal(t->offset % 32, 0);
            assert_true(t->span - t->size < 32);
        }
        bitconv_gguf_close(g);
        bitconv_gguf_writer_free(w);
        bc_buf_release(&file);
    }
}

/* The sample without its I2_S tensor, which the PyPI package cannot read, and with data. */
static int emit(const char *path)
{
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    static const uint8_t words[] = {2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 0, 0, 0, 0, 0, 0, 0, 0};
    const uint8_t *header;
    uint64_t header_size, file_size;
    uint8_t bytes[8];
    if (w == NULL) return 1;
    bitconv_gguf_set_string(w, "general.architecture", "llama");
    bitconv_gguf_set_u32(w, "test.u32", 4000000000u);
    bitconv_gguf_set_f32(w, "test.f32", 1.75f);
    bitconv_gguf_set_bool(w, "test.bool", true);
    bc_put_u64(bytes, (uint64_t)-5);
    for (int type = BITCONV_GGUF_UINT8; type <= BITCONV_GGUF_INT64; type++) {
        char key[32];
        if (type > BITCONV_GGUF_INT32 && type < BITCONV_GGUF_UINT64) continue;
        snprintf(key, sizeof key, "test.%s", bitconv_gguf_type_name((enum bitconv_gguf_type)type));
        bitconv_gguf_set_scalar(w, key, (enum bitconv_gguf_type)type, bytes);
    }
    bc_put_f64(bytes, 0.1);
    bitconv_gguf_set_scalar(w, "test.f64", BITCONV_GGUF_FLOAT64, bytes);
    bitconv_gguf_set_array(w, "test.words", BITCONV_GGUF_STRING, 2, words, sizeof words);
    bitconv_gguf_set_array(w, "test.bytes", BITCONV_GGUF_UINT8, sizeof words, words, sizeof words);
    bitconv_gguf_add_tensor(w, "matrix", 0, 2, (const uint64_t[]){3, 5}, 60);
    bitconv_gguf_add_tensor(w, "vector", 1, 1, (const uint64_t[]){7}, 14);
    if (bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, NULL) != BITCONV_OK)
        return 1;
    struct bc_buf file = {0};
    bc_buf_append(&file, header, header_size);
    for (int i = 0; i < 15; i++)
        bc_buf_f32(&file, (float)i / 4);
    bc_buf_u32(&file, 0); /* padding from 60 to 64 */
    for (unsigned i = 0; i < 7; i++) {
        bc_buf_u8(&file, 0);
        bc_buf_u8(&file, (uint8_t)(0x3c + i)); /* 1, 1.25, 1.5, 1.75, 2, 2.5, 3 */
    }
    while (file.size < file_size)
        bc_buf_u8(&file, 0);
    FILE *out = fopen(path, "wb");
    bool ok = out != NULL && !file.failed && file.size == file_size;
    ok = ok && fwrite(file.data, 1, file.size, out) == file.size;
    if (out != NULL) ok = fclose(out) == 0 && ok;
    bc_buf_release(&file);
    bitconv_gguf_writer_free(w);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_no_tensors),
        cmocka_unit_test(test_keys_keep_their_place),
        cmocka_unit_test(test_illegal_keys),
        cmocka_unit_test(test_alignment_key_that_is_right),
        cmocka_unit_test(test_illegal_tensors),
        cmocka_unit_test(test_round_trips),
    };
    if (argc == 3 && strcmp(argv[1], "--emit") == 0) return emit(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
