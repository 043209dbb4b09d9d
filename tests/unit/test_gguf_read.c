/* SPDX-License-Identifier: MIT
 * Tests of the GGUF reader: values, tensors, what it refuses and what it reports, split sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "io/gguf_impl.h"
#include "support/gguf_builder.h"

static struct bitconv_gguf *parse(const struct bc_buf *file)
{
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    assert_false(file->failed);
    if (bc_gguf_parse(file->data, file->size, "t.gguf", &g, &err) != BITCONV_OK)
        fail_msg("refused: %s", err.text);
    assert_string_equal(err.text, "");
    return g;
}

static struct bitconv_gguf *build(struct gguf_builder *b, struct bc_buf *file)
{
    gguf_builder_bytes(b, file);
    return parse(file);
}

static void expect_refusal(struct gguf_builder *b, enum bitconv_status wanted, const char *text)
{
    struct bc_buf file = {0};
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    gguf_builder_bytes(b, &file);
    const enum bitconv_status status = bc_gguf_parse(file.data, file.size, "t.gguf", &g, &err);
    if (status != wanted || strstr(err.text, text) == NULL)
        fail_msg("wanted '%s', got %s: %s", text, bitconv_status_name(status), err.text);
    assert_null(g);
    assert_int_equal(strncmp(err.text, "t.gguf: ", 8), 0);
    bc_buf_release(&file);
}

static bool has_finding(const struct bitconv_gguf *g, bool is_error, const char *text)
{
    for (size_t i = 0; i < bitconv_gguf_n_findings(g); i++) {
        const struct bitconv_gguf_finding *f = bitconv_gguf_finding_at(g, i);
        if (f->is_error == is_error && strstr(f->text, text) != NULL) return true;
    }
    return false;
}

/* The file opens, and has exactly this one finding. */
static void expect_finding(struct gguf_builder *b, bool is_error, const char *text)
{
    struct bc_buf file = {0};
    struct bitconv_gguf *g = build(b, &file);
    if (bitconv_gguf_n_findings(g) != 1 || !has_finding(g, is_error, text)) {
        const size_t n = bitconv_gguf_n_findings(g);
        fail_msg("wanted '%s', got %zu: %s", text, n,
                 n > 0 ? bitconv_gguf_finding_at(g, 0)->text : "none");
    }
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

/* A builder with the one key that every file needs. */
static struct gguf_builder start(void)
{
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", "llama");
    return b;
}

static const uint64_t eight[1] = {8};

static void test_integers(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    gguf_builder_sample(&file);
    struct bitconv_gguf *g = parse(&file);
    static const struct {
        const char *key;
        int64_t value;
        bool negative;
    } cases[] = {{"test.u8", 254, false},         {"test.i8", -2, true},
                 {"test.u16", 65534, false},      {"test.i16", -2, true},
                 {"test.i32", -2, true},          {"test.i64", -2, true},
                 {"general.file_type", 40, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bitconv_gguf_value *v = bitconv_gguf_find_key(g, cases[i].key);
        int64_t s = 0;
        uint64_t u = 0;
        assert_true(bitconv_gguf_value_i64(v, &s));
        assert_true(s == cases[i].value);
        assert_int_equal(bitconv_gguf_value_u64(v, &u), !cases[i].negative);
        if (!cases[i].negative) assert_true(u == (uint64_t)cases[i].value);
    }
    const struct bitconv_gguf_value *big = bitconv_gguf_find_key(g, "test.u64");
    uint64_t u;
    int64_t s;
    assert_true(bitconv_gguf_value_u64(big, &u));
    assert_true(u == UINT64_MAX - 1);
    assert_false(bitconv_gguf_value_i64(big, &s));
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

static void test_other_values(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    gguf_builder_sample(&file);
    struct bitconv_gguf *g = parse(&file);
    double d;
    bool yes = false;
    const char *text;
    size_t len;
    uint64_t u, pos = 0;
    struct bitconv_gguf_value element;
    assert_true(bitconv_gguf_value_f64(bitconv_gguf_find_key(g, "test.f64"), &d));
    assert_true(d == 0.5);
    assert_true(bitconv_gguf_value_f64(bitconv_gguf_find_key(g, "test.f32"), &d));
    assert_true(d == 1.75);
    assert_true(bitconv_gguf_value_bool(bitconv_gguf_find_key(g, "test.bool"), &yes));
    assert_true(yes);
    const struct bitconv_gguf_value *arch = bitconv_gguf_find_key(g, "general.architecture");
    assert_true(bitconv_gguf_value_string(arch, &text, &len));
    assert_int_equal(len, 12);
    assert_memory_equal(text, "bitnet-b1.58", 12);

    const struct bitconv_gguf_value *words = bitconv_gguf_find_key(g, "test.words");
    assert_int_equal(words->count, 2);
    assert_true(bitconv_gguf_array_next_string(words, &pos, &text, &len));
    assert_int_equal(len, 2);
    assert_memory_equal(text, "ab", 2);
    assert_true(bitconv_gguf_array_next_string(words, &pos, &text, &len));
    assert_int_equal(len, 0);
    assert_false(bitconv_gguf_array_next_string(words, &pos, &text, &len));
    assert_false(bitconv_gguf_array_at(words, 0, &element));

    const struct bitconv_gguf_value *counts = bitconv_gguf_find_key(g, "test.counts");
    assert_true(bitconv_gguf_array_at(counts, 2, &element));
    assert_true(bitconv_gguf_value_u64(&element, &u));
    assert_int_equal(u, 3);
    assert_false(bitconv_gguf_array_at(counts, 3, &element));

    /* each accessor refuses other kinds, and NULL */
    assert_false(bitconv_gguf_value_u64(arch, &u));
    assert_false(bitconv_gguf_value_f64(arch, &d));
    assert_false(bitconv_gguf_value_bool(arch, &yes));
    assert_false(bitconv_gguf_value_string(counts, &text, &len));
    assert_false(bitconv_gguf_value_u64(NULL, &u));
    assert_false(bitconv_gguf_array_at(NULL, 0, &element));
    assert_null(bitconv_gguf_find_key(g, "general.architectur"));
    assert_null(bitconv_gguf_find_key(g, "general.architecture2"));
    assert_string_equal(bitconv_gguf_type_name(BITCONV_GGUF_FLOAT64), "FLOAT64");
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

static void test_tensors(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    gguf_builder_sample(&file);
    struct bitconv_gguf *g = parse(&file);
    assert_int_equal(bitconv_gguf_version(g), 3);
    assert_int_equal(bitconv_gguf_alignment(g), 32);
    assert_int_equal(bitconv_gguf_n_keys(g), 14);
    assert_string_equal(bitconv_gguf_key_at(g, 0)->name, "general.architecture");
    assert_null(bitconv_gguf_key_at(g, 14));
    assert_int_equal(bitconv_gguf_n_tensors(g), 3);
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    assert_null(bitconv_gguf_finding_at(g, 0));
    assert_int_equal(bitconv_gguf_file_size(g), file.size);
    assert_int_equal(bitconv_gguf_n_shards(g), 1);
    assert_string_equal(bitconv_gguf_shard_path(g, 0), "t.gguf");
    assert_null(bitconv_gguf_shard_path(g, 1));

    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(g, "blk.0.ffn_up.weight");
    assert_ptr_equal(t, bitconv_gguf_tensor_at(g, 1));
    assert_null(bitconv_gguf_tensor_at(g, 3));
    assert_null(bitconv_gguf_find_tensor(g, "blk.0.ffn_up"));
    assert_int_equal(t->type, 36);
    assert_string_equal(t->type_name, "I2_S");
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->ne[0], 128);
    assert_int_equal(t->ne[1], 4);
    assert_int_equal(t->ne[2], 1);
    assert_int_equal(t->n_elements, 512);
    assert_int_equal(t->offset, 768);
    assert_int_equal(t->file_offset, bitconv_gguf_data_offset(g) + 768);
    assert_ptr_equal(t->data, file.data + t->file_offset);
    assert_int_equal(t->span, 160);
    assert_int_equal(t->size, 160);
    const struct bitconv_gguf_tensor *norm = bitconv_gguf_find_tensor(g, "output_norm.weight");
    assert_int_equal(norm->size, 20);
    assert_int_equal(norm->span, 32);
    assert_int_equal(bitconv_gguf_dialect(g), BITCONV_DIALECT_BITNET);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

static void test_versions(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct gguf_builder b = start();
    b.version = 2;
    struct bitconv_gguf *g = build(&b, &file);
    assert_int_equal(bitconv_gguf_version(g), 2);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
    static const struct {
        uint32_t version;
        const char *text;
    } cases[] = {{1, "GGUF version 1, only"},
                 {4, "GGUF version 4, only"},
                 {99, "GGUF version 99, only"},
                 {0x03000000u, "big-endian GGUF (version 3)"},
                 {0x02000000u, "big-endian GGUF (version 2)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        b = start();
        b.version = cases[i].version;
        expect_refusal(&b, BITCONV_E_UNSUPPORTED, cases[i].text);
    }
}

static void expect_magic(const char *bytes, const char *text)
{
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    assert_int_equal(bc_gguf_parse((const uint8_t *)bytes, strlen(bytes), "t.gguf", &g, &err),
                     BITCONV_E_CORRUPT);
    if (strstr(err.text, text) == NULL) fail_msg("wanted '%s', got '%s'", text, err.text);
}

static void test_impostors(void **state)
{
    (void)state;
    expect_magic("", "not a GGUF file, but empty");
    expect_magic("GGUF", "cut off inside the header: 4 bytes");
    expect_magic("ggml and more", "does not start with the bytes \"GGUF\"");
    expect_magic("version https://git-lfs.github.com/spec/v1\noid sha256:"
                 "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
                 "a Git LFS pointer");
    expect_magic("<!DOCTYPE html><html>", "an HTML page");
}

static void test_counts_beyond_the_file(void **state)
{
    (void)state;
    struct gguf_builder b = start();
    b.n_keys = UINT64_C(1) << 63;
    expect_refusal(&b, BITCONV_E_CORRUPT, "promises 9223372036854775808 keys, at most 5 fit");
    b = start();
    b.n_tensors = UINT64_C(1) << 63;
    expect_refusal(&b, BITCONV_E_CORRUPT, "promises 9223372036854775808 tensors, at most 2 fit");
    /* there is room for it in the whole file, but not behind the key */
    b = start();
    gguf_builder_string(&b, "general.name",
                        "a long string that takes up the room of a tensor info");
    b.n_tensors = 3;
    expect_refusal(&b, BITCONV_E_CORRUPT, "promises 3 tensors, at most 0 fit behind the keys");

    uint8_t value[24] = {0};
    bc_put_u64(value, UINT64_C(1) << 62);
    b = start();
    gguf_builder_key(&b, "x", 8, value, 16);
    expect_refusal(&b, BITCONV_E_CORRUPT, "the value of key x has a length of 4611686018427387904");
    static const uint64_t counts[] = {UINT64_C(1) << 61, UINT64_C(1) << 63, UINT64_MAX, 24};
    for (uint32_t elem = 0; elem <= 12; elem++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            if (elem == BITCONV_GGUF_ARRAY) continue;
            bc_put_u32(value, elem);
            bc_put_u64(value + 4, counts[i]);
            b = start();
            gguf_builder_key(&b, "x", 9, value, 12);
            expect_refusal(&b, BITCONV_E_CORRUPT, "key x: array of ");
        }
    }
    bc_put_u32(value, BITCONV_GGUF_STRING);
    bc_put_u64(value + 4, 1);
    bc_put_u64(value + 12, 1000);
    b = start();
    gguf_builder_key(&b, "x", 9, value, 20);
    expect_refusal(&b, BITCONV_E_CORRUPT, "a string in key x has a length of 1000 bytes");
}

static void test_illegal_values(void **state)
{
    (void)state;
    uint8_t value[12] = {0};
    struct gguf_builder b = start();
    gguf_builder_key(&b, "x", 13, value, 8);
    expect_refusal(&b, BITCONV_E_CORRUPT, "key x: unknown value type 13");
    b = start();
    bc_put_u32(value, 77);
    gguf_builder_key(&b, "x", 9, value, 12);
    expect_refusal(&b, BITCONV_E_CORRUPT, "key x: array of unknown value type 77");
    b = start();
    bc_put_u32(value, 9);
    gguf_builder_key(&b, "x", 9, value, 12);
    expect_refusal(&b, BITCONV_E_UNSUPPORTED, "key x: an array of arrays");
    b = start();
    gguf_builder_u32(&b, "x", 1);
    gguf_builder_u32(&b, "y", 1);
    gguf_builder_u32(&b, "x", 2);
    expect_refusal(&b, BITCONV_E_CORRUPT, "key x occurs twice");
}

static void test_alignment(void **state)
{
    (void)state;
    static const uint32_t illegal[] = {0, 1, 2, 4, 7, 24, 33, 1u << 21, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof illegal / sizeof illegal[0]; i++) {
        struct gguf_builder b = start();
        gguf_builder_u32(&b, "general.alignment", illegal[i]);
        expect_refusal(&b, BITCONV_E_CORRUPT, "not a power of two from 8 to 1048576");
    }
    struct gguf_builder b = start();
    gguf_builder_string(&b, "general.alignment", "32");
    expect_refusal(&b, BITCONV_E_CORRUPT, "general.alignment is of type STRING, not UINT32");
    static const uint32_t legal[] = {8, 16, 64, 4096};
    for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++) {
        struct bc_buf file = {0};
        b = start();
        b.alignment = legal[i];
        gguf_builder_u32(&b, "general.alignment", legal[i]);
        gguf_builder_tensor(&b, "a", 0, 1, eight, 32);
        gguf_builder_tensor(&b, "b", 0, 1, eight, 32);
        struct bitconv_gguf *g = build(&b, &file);
        assert_int_equal(bitconv_gguf_alignment(g), legal[i]);
        assert_int_equal(bitconv_gguf_data_offset(g) % legal[i], 0);
        assert_int_equal(bitconv_gguf_n_findings(g), 0);
        bitconv_gguf_close(g);
        bc_buf_release(&file);
    }
}

static void test_illegal_tensors(void **state)
{
    (void)state;
    static const uint64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct gguf_builder b = start();
    gguf_builder_tensor(&b, "a", 0, 9, ones, 4);
    expect_refusal(&b, BITCONV_E_CORRUPT, "tensor a: 9 dimensions, at most 8");
    static const struct {
        uint64_t ne[3];
        const char *text;
    } shapes[] = {
        {{UINT64_C(1) << 32, UINT64_C(1) << 32, 1}, "tensor a: dimension 1 of 4294967296"},
        {{4, (UINT64_C(1) << 62) + 1, 1}, "tensor a: dimension 1 of 4611686018427387905"},
        {{UINT64_MAX, 1, 1}, "tensor a: dimension 0 of 18446744073709551615"},
        {{0, UINT64_C(1) << 32, UINT64_C(1) << 32}, "tensor a: dimension 2 of 4294967296"},
        {{UINT64_C(1) << 62, 1, 1}, "tensor a: 4611686018427387904 elements of type F32"},
        {{UINT64_C(1) << 60, 1, 1}, "tensor a: data cut off, short by 4611686018427387872"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        b = start();
        gguf_builder_tensor(&b, "a", 0, 3, shapes[i].ne, 32);
        expect_refusal(&b, BITCONV_E_CORRUPT, shapes[i].text);
    }
    b = start();
    gguf_builder_tensor(&b, "a", 0, 1, eight, 32);
    gguf_builder_tensor(&b, "b", 0, 1, eight, 32);
    gguf_builder_tensor(&b, "a", 0, 1, eight, 32);
    expect_refusal(&b, BITCONV_E_CORRUPT, "tensor a occurs twice");
    /* known, disputed and unknown types alike */
    static const uint32_t types[] = {0, 36, 200};
    static const uint64_t offsets[] = {64, 32, UINT64_MAX - 31, UINT64_C(1) << 63};
    for (size_t i = 0; i < 12; i++) {
        b = start();
        gguf_builder_info(&b, "a", types[i % 3], 1, eight, offsets[i / 3]);
        gguf_builder_zeros(&b, 32);
        expect_refusal(&b, BITCONV_E_CORRUPT, "tensor a: its data begin at offset ");
    }
    b = start();
    gguf_builder_info(&b, "a", 0, 1, eight, 0);
    gguf_builder_zeros(&b, 31);
    expect_refusal(&b, BITCONV_E_CORRUPT, "tensor a: data cut off, short by 1 of 32 bytes");
}

static void test_name_findings(void **state)
{
    (void)state;
    char name[70];
    memset(name, 'n', sizeof name);
    struct gguf_builder b = start();
    gguf_builder_info_n(&b, name, 63, 0, 1, eight, 0);
    gguf_builder_zeros(&b, 32);
    struct bc_buf file = {0};
    struct bitconv_gguf *g = build(&b, &file);
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
    b = start();
    gguf_builder_info_n(&b, name, 64, 0, 1, eight, 0);
    gguf_builder_zeros(&b, 32);
    expect_finding(&b, false, "its name has 64 bytes, ggml readers stop at 63");
    b = start();
    gguf_builder_info_n(&b, name, 65, 0, 1, eight, 0);
    gguf_builder_zeros(&b, 32);
    expect_finding(&b, true, "its name has 65 bytes, the format allows 64");
    b = start();
    gguf_builder_tensor(&b, "\xff\xfe", 0, 1, eight, 32);
    expect_finding(&b, true, "its name is not UTF-8");
    b = start();
    gguf_builder_tensor(&b, "", 0, 1, eight, 32);
    expect_finding(&b, true, "a tensor has an empty name");
    b = start();
    gguf_builder_info_n(&b, "a\0b", 3, 0, 1, eight, 0);
    gguf_builder_zeros(&b, 32);
    expect_finding(&b, true, "tensor a: its name contains a NUL byte");
    b = start();
    gguf_builder_key_n(&b, "general.architecture\0x", 22, 7, "", 1);
    expect_finding(&b, true, "key general.architecture: its name contains a NUL byte");
    b = start();
    gguf_builder_key(&b, "", 0, "", 1);
    expect_finding(&b, true, "a key has an empty name");
    char *const long_key = malloc(65537);
    assert_non_null(long_key);
    memset(long_key, 'k', 65536);
    b = start();
    gguf_builder_key_n(&b, long_key, 65536, 0, "", 1);
    expect_finding(&b, true, "its name has 65536 bytes, 65535 are allowed");
    free(long_key);
}

static void test_layout_findings(void **state)
{
    (void)state;
    static const uint64_t ones[5] = {8, 1, 1, 1, 1};
    struct gguf_builder b = start();
    gguf_builder_tensor(&b, "a", 0, 5, ones, 32);
    expect_finding(&b, true, "tensor a: 5 dimensions, the format has at most 4");
    b = start();
    gguf_builder_tensor(&b, "a", 0, 2, (const uint64_t[]){8, 0}, 0);
    expect_finding(&b, false, "tensor a: a dimension is zero");
    b = start();
    gguf_builder_info(&b, "a", 0, 1, eight, 4);
    gguf_builder_zeros(&b, 36);
    expect_finding(&b, true, "offset 4 is not a multiple of the alignment 32");
    b = start();
    gguf_builder_info(&b, "a", 0, 1, eight, 0);
    gguf_builder_info(&b, "b", 0, 1, eight, 0);
    gguf_builder_zeros(&b, 32);
    expect_finding(&b, true, "tensor b: overlaps tensor a, which needs 32 bytes from offset 0");
    b = start();
    gguf_builder_info(&b, "b", 0, 1, eight, 32);
    gguf_builder_info(&b, "a", 0, 1, (const uint64_t[]){9}, 0);
    gguf_builder_zeros(&b, 64);
    expect_finding(&b, true, "tensor b: overlaps tensor a, which needs 36 bytes from offset 0");
    b = start();
    gguf_builder_info(&b, "a", 0, 1, eight, 0);
    gguf_builder_info(&b, "b", 0, 1, eight, 64);
    gguf_builder_zeros(&b, 96);
    expect_finding(&b, false, "32 unused bytes in front of tensor b");
    b = start();
    gguf_builder_tensor(&b, "a", 0, 1, eight, 32);
    gguf_builder_zeros(&b, 40);
    expect_finding(&b, false, "40 unused bytes at the end");
    b = start();
    gguf_builder_tensor(&b, "a", 8, 2, (const uint64_t[]){16, 2}, 34);
    expect_finding(&b, true, "tensor a: rows of 16 are not a multiple of 32, the block of Q8_0");
    b = start();
    gguf_builder_tensor(&b, "a", 4, 1, (const uint64_t[]){32}, 20);
    expect_finding(&b, true, "tensor a: type Q4_2 was removed from ggml");
    b = start();
    gguf_builder_tensor(&b, "a", UINT32_MAX, 1, eight, 64);
    expect_finding(&b, true, "tensor a: type 4294967295 is not known, its 64 bytes are only");
}

static void test_order_is_free(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct gguf_builder b = start();
    gguf_builder_info(&b, "a", 0, 1, eight, 64);
    gguf_builder_info(&b, "b", 0, 1, eight, 0);
    gguf_builder_info(&b, "c", 0, 1, eight, 32);
    gguf_builder_zeros(&b, 96);
    struct bitconv_gguf *g = build(&b, &file);
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    assert_string_equal(bitconv_gguf_tensor_at(g, 0)->name, "a");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(bitconv_gguf_tensor_at(g, i)->span, 32);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

static void test_metadata_findings(void **state)
{
    (void)state;
    static const uint8_t two = 2, minus_one[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t bools[] = {7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 9};
    static const uint8_t heads[] = {5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    struct gguf_builder b = {0};
    gguf_builder_u32(&b, "general.file_type", 1);
    expect_finding(&b, true, "key general.architecture is missing");
    gguf_builder_u32(&b, "general.architecture", 1);
    expect_finding(&b, true, "key general.architecture: UINT32, wanted STRING");
    gguf_builder_string(&b, "general.architecture", "");
    expect_finding(&b, true, "key general.architecture: a text of 0 bytes is not a name");
    b = start();
    gguf_builder_key(&b, "x", 7, &two, 1);
    expect_finding(&b, true, "key x: a BOOL of value 2");
    b = start();
    gguf_builder_key(&b, "x", 9, bools, sizeof bools);
    expect_finding(&b, true, "key x: a BOOL of value 9");
    b = start();
    gguf_builder_key(&b, "llama.block_count", 5, minus_one, 4);
    expect_finding(&b, true, "key llama.block_count: INT32 -1, wanted an integer that is not neg");
    b = start();
    gguf_builder_key(&b, "llama.attention.head_count_kv", 9, heads, sizeof heads);
    expect_finding(&b, true, "key llama.attention.head_count_kv: ARRAY of 1 INT32, wanted");
    b = start();
    gguf_builder_u32(&b, "llama.rope.freq_base", 10000);
    expect_finding(&b, true, "key llama.rope.freq_base: UINT32, wanted FLOAT32");
    b = start();
    gguf_builder_string(&b, "tokenizer.ggml.tokens", "a");
    expect_finding(&b, true, "key tokenizer.ggml.tokens: STRING, wanted an array of STRING");
    b = start();
    gguf_builder_string(&b, "general.name", "\xff");
    expect_finding(&b, false, "key general.name: its text is not UTF-8");
    b = start();
    gguf_builder_u32(&b, "prism.hadamard.size", 128);
    expect_finding(&b, false, "key prism.hadamard.size: declares a transform");
    /* of another architecture: not well known here */
    struct bc_buf file = {0};
    b = start();
    gguf_builder_string(&b, "qwen3.block_count", "a");
    struct bitconv_gguf *g = build(&b, &file);
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

static void test_many_findings(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct gguf_builder b = start();
    for (unsigned i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        gguf_builder_tensor(&b, name, 200, 1, eight, 32);
    }
    struct bitconv_gguf *g = build(&b, &file);
    const size_t n = bitconv_gguf_n_findings(g);
    assert_int_equal(n, BC_GGUF_MAX_FINDINGS + 1);
    assert_true(bitconv_gguf_finding_at(g, n - 1)->is_error);
    assert_non_null(strstr(bitconv_gguf_finding_at(g, n - 1)->text, "more findings"));
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

/* A file of about 1 MB with as many tensors as fit, each of a type that needs an answer of its own.
 */
static void test_crowded_file(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct gguf_builder b = start();
    static const uint64_t none[1] = {0};
    for (unsigned i = 0; i < 30000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%x", i);
        gguf_builder_info(&b, name, 36 + i % 7, 1, none, 0);
    }
    gguf_builder_zeros(&b, 32);
    gguf_builder_bytes(&b, &file);
    const clock_t before = clock();
    struct bitconv_gguf *g = parse(&file);
    assert_int_equal(bitconv_gguf_n_tensors(g), 30000);
    assert_non_null(bitconv_gguf_find_tensor(g, "752f"));
    bitconv_gguf_close(g);
    assert_true(clock() - before < CLOCKS_PER_SEC);
    bc_buf_release(&file);
}

/* Opens every prefix. Only the padding behind the last tensor may be missing. */
static void test_truncation(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    gguf_builder_sample(&file);
    for (size_t size = 0; size <= file.size; size++) {
        struct bitconv_gguf *g = NULL;
        struct bitconv_error err = {0};
        uint8_t *const copy = malloc(size > 0 ? size : 1);
        assert_non_null(copy);
        memcpy(copy, file.data, size);
        const enum bitconv_status status = bc_gguf_parse(copy, size, "t.gguf", &g, &err);
        assert_int_equal(status == BITCONV_OK, size + 12 >= file.size);
        assert_int_equal(status == BITCONV_OK, err.text[0] == '\0');
        bitconv_gguf_close(g);
        free(copy);
    }
    bc_buf_release(&file);
}

/* Reads everything that the reader hands out, so that a sanitizer sees pointers that lead outside.
 */
static unsigned touch(const struct bitconv_gguf *g)
{
    unsigned sum = 0;
    for (size_t i = 0; i < bitconv_gguf_n_keys(g); i++) {
        const struct bitconv_gguf_value *v = &bitconv_gguf_key_at(g, i)->value;
        for (uint64_t k = 0; k < v->size; k++)
            sum += v->data[k];
    }
    for (size_t i = 0; i < bitconv_gguf_n_tensors(g); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(g, i);
        const uint64_t n = t->size > t->span ? t->size : t->span;
        for (uint64_t k = 0; k < n; k++)
            sum += t->data[k];
        sum += (unsigned)strlen(t->type_name);
    }
    return sum;
}

/* Every byte of header, keys and infos takes every value; the answer is a file or a message. */
static void test_damage(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    gguf_builder_sample(&file);
    struct bitconv_gguf *whole = parse(&file);
    const uint64_t end = bitconv_gguf_data_offset(whole);
    bitconv_gguf_close(whole);
    size_t opened = 0, refused = 0;
    unsigned sum = 0;
    for (size_t at = 0; at < end; at++) {
        const uint8_t before = file.data[at];
        for (unsigned v = 0; v < 256; v++) {
            struct bitconv_gguf *g = NULL;
            struct bitconv_error err = {0};
            file.data[at] = (uint8_t)v;
            if (bc_gguf_parse(file.data, file.size, "t.gguf", &g, &err) == BITCONV_OK) {
                sum += touch(g);
                opened++;
            } else {
                assert_int_not_equal(err.text[0], '\0');
                assert_int_not_equal(err.status, BITCONV_E_BUG);
                refused++;
            }
            bitconv_gguf_close(g);
        }
        file.data[at] = before;
    }
    assert_true(opened > 0 && refused > 0 && sum > 0);
    bc_buf_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_other_values),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_impostors),
        cmocka_unit_test(test_counts_beyond_the_file),
        cmocka_unit_test(test_illegal_values),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_illegal_tensors),
        cmocka_unit_test(test_name_findings),
        cmocka_unit_test(test_layout_findings),
        cmocka_unit_test(test_order_is_free),
        cmocka_unit_test(test_metadata_findings),
        cmocka_unit_test(test_many_findings),
        cmocka_unit_test(test_crowded_file),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
