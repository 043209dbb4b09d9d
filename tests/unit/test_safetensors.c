/* SPDX-License-Identifier: MIT
 * Tests of the safetensors reader on hand-made bytes: what it accepts, what it refuses and how it
 * says so, every prefix and every flipped bit of a small file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "io/dtype.h"
#include "io/safetensors_internal.h"
#include "support/st_builder.h"
#include "support/temp_dir.h"

/* The file's bytes in a block of exactly their size, so that a sanitizer sees a read behind them.
 */
static uint8_t *exact_copy(const struct bc_buf *buf)
{
    uint8_t *const copy = malloc(buf->size > 0 ? buf->size : 1);
    assert_non_null(copy);
    if (buf->size > 0) memcpy(copy, buf->data, buf->size);
    return copy;
}

/* A header and that many data bytes (0, 1, 2, ...). */
static void put_file(struct bc_buf *buf, const char *header, size_t data_size)
{
    bc_buf_u64(buf, strlen(header));
    bc_buf_puts(buf, header);
    for (size_t i = 0; i < data_size; i++)
        bc_buf_u8(buf, (uint8_t)i);
}

/* Parses bytes and reads all that the result promises. */
static enum bitconv_status parse_and_walk(const uint8_t *data, size_t size,
                                          struct bitconv_error *err)
{
    struct bitconv_safetensors *st;
    const enum bitconv_status status = bc_safetensors_parse(data, size, "t.safetensors", &st, err);
    if (status != BITCONV_OK) {
        assert_null(st);
        return status;
    }
    uint64_t total = 0;
    unsigned sum = 0;
    for (size_t i = 0; i < bitconv_safetensors_count(st); i++) {
        const struct bitconv_tensor *const t = bitconv_safetensors_at(st, i);
        uint64_t n = 1;
        for (uint32_t d = 0; d < t->n_dims; d++)
            n *= t->shape[d];
        assert_true(n == t->n_elements);
        assert_true(t->size == n * bitconv_dtype_size(t->dtype));
        assert_true(t->data == data + t->file_offset);
        for (uint64_t b = 0; b < t->size; b++)
            sum += t->data[b];
        total += t->size;
        assert_ptr_equal(bitconv_safetensors_find(st, t->name), t);
        if (i > 0) assert_true(strcmp(bitconv_safetensors_at(st, i - 1)->name, t->name) < 0);
    }
    assert_true(sum < UINT32_MAX);
    assert_true(8 + bitconv_safetensors_header_size(st) + total == size);
    assert_true(bitconv_safetensors_file_size(st) == size);
    assert_null(bitconv_safetensors_at(st, bitconv_safetensors_count(st)));
    bitconv_safetensors_close(st);
    return status;
}

/* The same for a buffer, which is released. */
static enum bitconv_status check_bytes(struct bc_buf *buf, struct bitconv_error *err)
{
    assert_false(buf->failed);
    uint8_t *const copy = exact_copy(buf);
    const enum bitconv_status status = parse_and_walk(copy, buf->size, err);
    free(copy);
    bc_buf_release(buf);
    return status;
}

static enum bitconv_status check_header(const char *header, size_t data_size,
                                        struct bitconv_error *err)
{
    struct bc_buf buf = {NULL, 0, 0, false};
    put_file(&buf, header, data_size);
    return check_bytes(&buf, err);
}

/* A failure of that status whose message starts with the file and holds `text`. */
static void assert_refused(enum bitconv_status found, enum bitconv_status wanted,
                           const struct bitconv_error *err, const char *text)
{
    if (found != wanted || err->status != wanted || strstr(err->text, text) == NULL ||
        strncmp(err->text, "t.safetensors: ", 15) != 0)
        fail_msg("status %s, wanted %s with '%s' in: %s", bitconv_status_name(found),
                 bitconv_status_name(wanted), text, err->text);
}

#define A "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

static void test_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_size;
    } cases[] = {
        {"{}", 0},
        {"{\"a\":" A "}", 8},
        {"{\"a\":" A "}       \t\r\n", 8},
        {"{ \"a\" :\n" A "}", 8},
        {"{\"\":" A "}", 8},
        {"{\"../../x\":" A "}", 8},
        {"{\"\\u00e4\\ud83d\\ude00\":" A "}", 8},
        {"{\"a\":{\"dtype\":\"\\u0046\\u0033\\u0032\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2,1],\"data_offsets\":[0,8]}}", 8},
        {"{\"z\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[0,0]},\"a\":" A "}", 8},
        {"{\"z\":{\"dtype\":\"F32\",\"shape\":[4,0],\"data_offsets\":[8,8]},\"a\":" A "}", 8},
        {"{\"z\":{\"dtype\":\"U8\",\"shape\":[0,9007199254740991],\"data_offsets\":[0,0]}}", 0},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},\"a\":" A "}", 11},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":{\"y\":[1]}}}", 8},
        {"{\"__metadata__\":{},\"a\":" A "}", 8},
        {"{\"__metadata__\":null,\"a\":" A "}", 8},
        {"{\"__metadata__\":{\"v\":\"-1.5e3 \\\" -2\"},\"a\":" A "}", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
        if (check_header(cases[i].header, cases[i].data_size, &err) != BITCONV_OK)
            fail_msg("%s: %s", cases[i].header, err.text);
    }
}

struct refusal {
    const char *header;
    size_t data_size;
    enum bitconv_status status;
    const char *text; /* part of the message */
};

static void check_refusals(const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
        const enum bitconv_status status = check_header(cases[i].header, cases[i].data_size, &err);
        assert_refused(status, cases[i].status, &err, cases[i].text);
    }
}

static void test_refused_json(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"[]", 0, BITCONV_E_CORRUPT, "does not start with '{'"},
        {" {}", 0, BITCONV_E_CORRUPT, "does not start with '{'"},
        {"\xef\xbb\xbf{}", 0, BITCONV_E_CORRUPT, "does not start with '{'"},
        {"{", 0, BITCONV_E_CORRUPT, "does not start with '{'"},
        {"{\"a\":" A, 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\":" A "}x", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\":" A ",}", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\":" A ",\"a\":" A "}", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\":" A ",\"\\u0061\":" A "}", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\xff\":" A "}", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\x01\":" A "}", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"\\ud800\":" A "}", 8, BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"\\u0000\":" A "}", 8, BITCONV_E_UNSUPPORTED, "header: JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[NaN],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "header: JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[Infinity],\"data_offsets\":[0,8]}}", 8,
         BITCONV_E_CORRUPT, "header: JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "header: JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "number at byte 30"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2e0],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "number at byte 30"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "number at byte 29"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-0],\"data_offsets\":[0,0]}}", 0, BITCONV_E_CORRUPT,
         "not a plain non-negative integer"},
        {"{\"__metadata__\":[],\"a\":" A "}", 8, BITCONV_E_CORRUPT,
         "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"format\":1},\"a\":" A "}", 8, BITCONV_E_CORRUPT,
         "__metadata__: the value of 'format' is not a string"},
        {"{\"__metadata__\":{\"format\":null},\"a\":" A "}", 8, BITCONV_E_CORRUPT,
         "is not a string"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void test_refused_entries(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"{\"a\":null}", 0, BITCONV_E_CORRUPT, "a: the entry is not an object"},
        {"{\"a\":[\"F32\",[2],[0,8]]}", 8, BITCONV_E_CORRUPT, "a: the entry is not an object"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "a: dtype is missing"},
        {"{\"a\":{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "a: dtype is missing or not a string"},
        {"{\"a\":{\"dtype\":\"Q9_Z\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "a: dtype 'Q9_Z' is not known"},
        {"{\"a\":{\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "a: dtype 'f32' is not known"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[16],\"data_offsets\":[0,8]}}", 8,
         BITCONV_E_UNSUPPORTED, "a: dtype F4 is not supported"},
        {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3,
         BITCONV_E_UNSUPPORTED, "dtype F6_E2M3 is not supported"},
        {"{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8,
         BITCONV_E_UNSUPPORTED, "dtype C64 is not supported"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "a: shape is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, BITCONV_E_CORRUPT,
         "a: shape is missing or not an array"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,\"2\"],\"data_offsets\":[0,8]}}", 8,
         BITCONV_E_CORRUPT, "a: element 1 of shape is not an integer"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0,9007199254740993],\"data_offsets\":[0,0]}}", 0,
         BITCONV_E_CORRUPT, "a: element 1 of shape is not an integer from 0 to 2^53 - 1"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         BITCONV_E_CORRUPT, "a: the number of elements overflows"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}}",
         0, BITCONV_E_CORRUPT, "a: the number of elements overflows"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,1073741824],\"data_offsets\":[0,0]}}", 0,
         BITCONV_E_CORRUPT, "a: the number of bytes overflows"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, BITCONV_E_CORRUPT,
         "a: data_offsets is not an array of two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, BITCONV_E_CORRUPT,
         "a: data_offsets is not an array of two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, BITCONV_E_CORRUPT,
         "a: data_offsets is not an array of two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{\"b\":0,\"e\":8}}}", 8,
         BITCONV_E_CORRUPT, "a: data_offsets is not an array of two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,18446744073709551615]}}", 8,
         BITCONV_E_CORRUPT, "a: data_offsets is not an array of two integers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, BITCONV_E_CORRUPT,
         "a: data_offsets are reversed (8, 0)"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1000,1000],\"data_offsets\":[0,8]}}", 8,
         BITCONV_E_CORRUPT, "a: 1000000 elements of F32 need 4000000 bytes, data_offsets give 8"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void test_refused_layout(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"{\"a\":" A "}", 7, BITCONV_E_CORRUPT, "short by 1 of 8 data bytes"},
        {"{\"a\":" A "}", 0, BITCONV_E_CORRUPT, "short by 8 of 8 data bytes"},
        {"{\"a\":" A "}", 12, BITCONV_E_CORRUPT, "4 bytes behind the 8 data bytes"},
        {"{}", 1, BITCONV_E_CORRUPT, "1 bytes behind the 0 data bytes"},
        {"{\"a\":" A ",\"b\":" A "}", 8, BITCONV_E_CORRUPT,
         "b: data starts at 0 and overlaps that of a, which ends at 8"},
        {"{\"a\":" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
         BITCONV_E_CORRUPT, "b: data starts at 4 and overlaps"},
        {"{\"a\":" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}", 8,
         BITCONV_E_CORRUPT, "b: data starts at 4 and overlaps"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, BITCONV_E_CORRUPT,
         "a: data starts at 4, 4 bytes in front of it belong to no tensor"},
        {"{\"a\":" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[9,9]}}", 9,
         BITCONV_E_CORRUPT, "b: data starts at 9, 1 bytes in front of it"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9007199254740991],"
         "\"data_offsets\":[0,9007199254740991]}}",
         8, BITCONV_E_CORRUPT, "short by 9007199254740983 of 9007199254740991"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

/* Files whose first 16 bytes already say that they are something else. */
static void test_refused_container(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } cases[] = {
        {"", 0, "is empty"},
        {"\x02\0\0\0\0\0\0", 7, "7 bytes are too few"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
         "a header of 18446744073709551615 bytes does not fit the file's 10 bytes"},
        {"\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10, "does not fit"},
        {"\x03\0\0\0\0\0\0\0{}", 10, "a header of 3 bytes does not fit the file's 10 bytes"},
        {"\0\0\0\0\0\0\0\0{}", 10, "the header (0 bytes) does not start with '{'"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1178623988\n", 73,
         "is a Git LFS pointer (73 bytes; real size 1178623988): run `git lfs pull`"},
        {"<!DOCTYPE html><html></html>", 28, "is an HTML page"},
        {"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0", 16, "is a GGUF file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
        struct bc_buf buf = {NULL, 0, 0, false};
        bc_buf_append(&buf, cases[i].bytes, cases[i].size);
        const enum bitconv_status status = check_bytes(&buf, &err);
        assert_refused(status, BITCONV_E_CORRUPT, &err, cases[i].text);
    }
}

/* A header beyond the format's bound is refused for its length, whatever it holds. */
static void test_header_limit(void **state)
{
    (void)state;
    const size_t size = 8 + (size_t)BC_SAFETENSORS_MAX_HEADER + 1;
    uint8_t *const data = calloc(size, 1); /* pages never touched cost nothing */
    assert_non_null(data);
    bc_put_u64(data, BC_SAFETENSORS_MAX_HEADER + 1u);
    data[8] = '{';
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    const enum bitconv_status status = parse_and_walk(data, size, &err);
    free(data);
    assert_refused(status, BITCONV_E_LIMIT, &err,
                   "a header of 100000001 bytes, at most 100000000 are allowed");
}

static void test_deep_nesting(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    struct bc_buf header = {NULL, 0, 0, false};
    bc_buf_puts(&header, "{\"a\":");
    for (size_t i = 0; i < DEPTH; i++)
        bc_buf_putc(&header, '[');
    for (size_t i = 0; i < DEPTH; i++)
        bc_buf_putc(&header, ']');
    bc_buf_putc(&header, '}');
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    const enum bitconv_status status = check_header(bc_buf_str(&header), 0, &err);
    bc_buf_release(&header);
    assert_refused(status, BITCONV_E_LIMIT, &err, "header: JSON");
}

/* A name of a megabyte is legal; messages about it stay short. */
static void test_long_name(void **state)
{
    (void)state;
    struct bc_buf header = {NULL, 0, 0, false};
    bc_buf_puts(&header, "{\"");
    for (size_t i = 0; i < 1000000; i++)
        bc_buf_putc(&header, 'n');
    bc_buf_puts(&header, "\":" A "}");
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    assert_int_equal(check_header(bc_buf_str(&header), 8, &err), BITCONV_OK);
    header.data[header.size - 4] = '7'; /* data_offsets [0,7] */
    const enum bitconv_status status = check_header(bc_buf_str(&header), 7, &err);
    bc_buf_release(&header);
    assert_refused(status, BITCONV_E_CORRUPT, &err, "need 8 bytes, data_offsets give 7");
}

/* Names of all types, with their sizes: the format's list. */
static void test_dtypes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t size;
        bool is_float;
    } types[] = {
        {"BOOL", 1, false},   {"U8", 1, false},     {"I8", 1, false},  {"F8_E5M2", 1, true},
        {"F8_E4M3", 1, true}, {"F8_E8M0", 1, true}, {"I16", 2, false}, {"U16", 2, false},
        {"F16", 2, true},     {"BF16", 2, true},    {"I32", 4, false}, {"U32", 4, false},
        {"F32", 4, true},     {"F64", 8, true},     {"I64", 8, false}, {"U64", 8, false}};
    assert_int_equal(sizeof types / sizeof types[0], BITCONV_N_DTYPES);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        enum bitconv_dtype dtype = BITCONV_N_DTYPES;
        assert_true(bc_dtype_from_name(types[i].name, &dtype));
        assert_string_equal(bitconv_dtype_name(dtype), types[i].name);
        assert_int_equal(bitconv_dtype_size(dtype), types[i].size);
        assert_int_equal(bitconv_dtype_is_float(dtype), types[i].is_float);
        assert_false(bc_dtype_is_foreign(types[i].name));
        struct bc_buf header = {NULL, 0, 0, false};
        bc_buf_printf(&header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}",
                      types[i].name, 3 * types[i].size);
        assert_int_equal(check_header(bc_buf_str(&header), 3 * types[i].size, NULL), BITCONV_OK);
        bc_buf_release(&header);
    }
    assert_string_equal(bitconv_dtype_name(BITCONV_N_DTYPES), "?");
    assert_int_equal(bitconv_dtype_size(BITCONV_N_DTYPES), 0);
    assert_false(bitconv_dtype_is_float(BITCONV_N_DTYPES));
}

/* A file with a bit of everything. */
static void make_sample(struct bc_buf *out)
{
    struct st_builder b = {.data = {NULL, 0, 0, false}};
    const float values[] = {1.0f, -2.0f, 0.5f, 0.0f, 3.0f, -0.25f};
    const uint64_t matrix[] = {2, 3}, vector[] = {4}, empty[] = {0, 7};
    st_builder_metadata(&b, "format", "pt \xc3\xa4 \"quoted\"");
    st_builder_add_floats(&b, "model.b", BITCONV_BF16, 2, matrix, values);
    st_builder_add_floats(&b, "lm_head", BITCONV_F32, 2, matrix, values);
    st_builder_add(&b, "model.a.10", BITCONV_U8, 1, vector, "\x01\x02\x03\x04", 4);
    st_builder_add(&b, "model.a.2", BITCONV_I8, 2, empty, NULL, 0);
    st_builder_add_floats(&b, "scale", BITCONV_F16, 0, NULL, values + 2);
    st_builder_bytes(&b, out);
    st_builder_release(&b);
}

static void check_sample(const struct bitconv_safetensors *st)
{
    static const char *const names[] = {"lm_head", "model.a.10", "model.a.2", "model.b", "scale"};
    assert_int_equal(bitconv_safetensors_count(st), 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(bitconv_safetensors_at(st, i)->name, names[i]);
    assert_null(bitconv_safetensors_find(st, "model"));
    assert_null(bitconv_safetensors_find(st, ""));
    const struct bitconv_tensor *const b = bitconv_safetensors_find(st, "model.b");
    assert_int_equal(b->dtype, BITCONV_BF16);
    assert_int_equal(b->n_dims, 2);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->n_elements, 6);
    assert_int_equal(b->size, 12);
    assert_true(bc_bf16_to_f32(bc_get_u16(b->data + 2)) == -2.0f);
    assert_true(bc_bf16_to_f32(bc_get_u16(b->data + 10)) == -0.25f);
    const struct bitconv_tensor *const scale = bitconv_safetensors_find(st, "scale");
    assert_int_equal(scale->n_dims, 0);
    assert_int_equal(scale->n_elements, 1);
    assert_true(bc_f16_to_f32(bc_get_u16(scale->data)) == 0.5f);
    assert_int_equal(bitconv_safetensors_find(st, "model.a.2")->n_elements, 0);
    const char *key, *value;
    assert_int_equal(bitconv_safetensors_metadata_count(st), 1);
    assert_true(bitconv_safetensors_metadata_at(st, 0, &key, &value));
    assert_string_equal(key, "format");
    assert_string_equal(value, "pt \xc3\xa4 \"quoted\"");
    assert_false(bitconv_safetensors_metadata_at(st, 1, &key, &value));
}

/* From disk and from memory, the same. */
static void test_contents(void **state)
{
    (void)state;
    struct bc_buf bytes = {NULL, 0, 0, false};
    make_sample(&bytes);
    char *const dir = temp_dir_new();
    temp_dir_write(dir, "s.safetensors", bytes.data, bytes.size);
    char *const path = temp_dir_path(dir, "s.safetensors");
    struct bitconv_safetensors *st;
    assert_int_equal(bitconv_safetensors_open(path, &st, NULL), BITCONV_OK);
    check_sample(st);
    assert_string_equal(bitconv_safetensors_at(st, 0)->file, path);
    assert_int_equal(bc_safetensors_file(st)->size, bytes.size);
    bitconv_safetensors_close(st);
    assert_int_equal(bc_safetensors_parse(bytes.data, bytes.size, "memory", &st, NULL), BITCONV_OK);
    check_sample(st);
    assert_null(bc_safetensors_file(st)->data);
    bitconv_safetensors_close(st);
    bitconv_safetensors_close(NULL);
    free(path);
    temp_dir_remove(dir);
    bc_buf_release(&bytes);
}

static void test_metadata_order(void **state)
{
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"z\":\"1\",\"a\":\"2\",\"m\":\"\"}}";
    struct bc_buf buf = {NULL, 0, 0, false};
    put_file(&buf, header, 0);
    struct bitconv_safetensors *st;
    assert_int_equal(bc_safetensors_parse(buf.data, buf.size, "m", &st, NULL), BITCONV_OK);
    static const char *const pairs[][2] = {{"z", "1"}, {"a", "2"}, {"m", ""}};
    assert_int_equal(bitconv_safetensors_metadata_count(st), 3);
    for (size_t i = 0; i < 3; i++) {
        const char *key, *value;
        assert_true(bitconv_safetensors_metadata_at(st, i, &key, &value));
        assert_string_equal(key, pairs[i][0]);
        assert_string_equal(value, pairs[i][1]);
    }
    bitconv_safetensors_close(st);
    bc_buf_release(&buf);
}

/* Reads the bytes of the ```hex block of the spec: "OFFSET: up to 16 bytes  text" a line. */
static void read_spec_example(struct bc_buf *out)
{
    FILE *const f = fopen(BITCONV_SOURCE_DIR "/formats/safetensors.md", "r");
    assert_non_null(f);
    char line[256];
    bool inside = false;
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "```", 3) == 0) {
            inside = strcmp(line, "```hex\n") == 0;
            continue;
        }
        if (!inside) continue;
        assert_int_equal(strtoul(line, NULL, 16), out->size);
        const char *s = strchr(line, ':') + 1;
        for (int i = 0; i < 16 && s[0] == ' ' && s[1] != ' '; i++, s += 3)
            bc_buf_u8(out, (uint8_t)strtoul(s, NULL, 16));
    }
    (void)fclose(f);
}

/* The worked example says what the reader finds. */
static void test_spec_example(void **state)
{
    (void)state;
    struct bc_buf bytes = {NULL, 0, 0, false};
    read_spec_example(&bytes);
    assert_int_equal(bytes.size, 8 + 0x90 + 12);
    struct bitconv_safetensors *st;
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    if (bc_safetensors_parse(bytes.data, bytes.size, "example", &st, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    static const float values[] = {1.0f, -1.0f, 0.0f, 0.5f};
    const struct bitconv_tensor *const w = bitconv_safetensors_find(st, "w");
    assert_int_equal(w->n_elements, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(bc_bf16_to_f32(bc_get_u16(w->data + 2 * i)) == values[i]);
    const struct bitconv_tensor *const s = bitconv_safetensors_find(st, "s");
    assert_int_equal(s->n_dims, 0);
    assert_true(bc_get_f32(s->data) == 0.5f);
    assert_int_equal(bitconv_safetensors_metadata_count(st), 1);
    bitconv_safetensors_close(st);
    bc_buf_release(&bytes);
}

static void test_system_failures(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "absent.safetensors");
    struct bitconv_safetensors *st;
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    assert_int_equal(bitconv_safetensors_open(path, &st, &err), BITCONV_E_IO);
    assert_null(st);
    assert_non_null(strstr(err.text, "absent.safetensors: "));
    assert_int_not_equal(err.sys_errno, 0);
    assert_int_equal(bitconv_safetensors_open(dir, &st, NULL), BITCONV_E_ARG);
    free(path);
    temp_dir_remove(dir);
}

/* No proper prefix of a file is a file. */
static void test_every_prefix(void **state)
{
    (void)state;
    struct bc_buf bytes = {NULL, 0, 0, false};
    make_sample(&bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        const struct bc_buf prefix = {bytes.data, size, 0, false};
        uint8_t *const copy = exact_copy(&prefix);
        struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
        assert_int_not_equal(parse_and_walk(copy, size, &err), BITCONV_OK);
        assert_int_not_equal(err.text[0], '\0');
        free(copy);
    }
    bc_buf_release(&bytes);
}

/* A flipped bit in front of the data is refused or leaves a consistent file (parse_and_walk
 * checks). */
static void test_every_flip(void **state)
{
    (void)state;
    struct bc_buf bytes = {NULL, 0, 0, false};
    make_sample(&bytes);
    uint8_t *const copy = exact_copy(&bytes);
    const size_t header_end = 8 + (size_t)bc_get_u64(copy);
    size_t n_refused = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            copy[i] ^= (uint8_t)(1u << bit);
            const enum bitconv_status status = parse_and_walk(copy, bytes.size, NULL);
            if (i < 8 || i >= header_end) assert_int_equal(status == BITCONV_OK, i >= 8);
            n_refused += status != BITCONV_OK;
            copy[i] ^= (uint8_t)(1u << bit);
        }
    }
    assert_true(n_refused > 4 * header_end);
    free(copy);
    bc_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused_json),
        cmocka_unit_test(test_refused_entries),
        cmocka_unit_test(test_refused_layout),
        cmocka_unit_test(test_refused_container),
        cmocka_unit_test(test_header_limit),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_metadata_order),
        cmocka_unit_test(test_spec_example),
        cmocka_unit_test(test_system_failures),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_every_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
