/* SPDX-License-Identifier: MIT
 * Tests of the JSON reader in base/json.h: the strict checker, the tree, loading of files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "support/temp_dir.h"

#define EURO "\xe2\x82\xac"

static enum bitconv_status parse_n(const char *text, size_t size, struct bitconv_error *err)
{
    /* A copy of exactly that size, so that the sanitizer sees a read behind its end. */
    char *const copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    struct bc_json *root = NULL;
    memset(err, 0, sizeof *err);
    const enum bitconv_status status = bc_json_parse(copy, size, "f.json", &root, err);
    free(copy);
    assert_int_equal(status == BITCONV_OK, root != NULL);
    assert_int_equal(err->status, status);
    bc_json_free(root);
    return status;
}

static struct bc_json *parse_ok(const char *text)
{
    struct bitconv_error err = {0};
    struct bc_json *root;
    if (bc_json_parse(text, strlen(text), "f.json", &root, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    return root;
}

static void test_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        " \t\r\n{ } \n",
        "null",
        "true",
        "\"\"",
        "0",
        "-0",
        "-0.0e-0",
        "10.25E+3",
        "123456789012345678901234567890123456789012345678901234567890123", /* 63 characters */
        "[1,2 , 3]",
        "{\"a\":{\"a\":{\"a\":[]}},\"A\":1,\"\":2}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u20ac\\uD83D\\uDE00\\u0001\"",
        "\"" EURO "\xf0\x9f\x98\x80\x7f\"",
        "[{\"a\":1},{\"a\":2}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bitconv_error err;
        if (parse_n(texts[i], strlen(texts[i]), &err) != BITCONV_OK)
            fail_msg("%s: %s", texts[i], err.text);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
        const char *reason;
    } cases[] = {
        {"", 0, "the text ends where a value was expected"},
        {" ", 1, "the text ends where a value was expected"},
        {"{", 1, "the text ends where a key in quotes was expected"},
        {"[", 1, "the text ends where a value was expected"},
        {"[1", 2, "the text ends where ',' or ']' was expected"},
        {"[1,]", 3, "found ']' where a value was expected"},
        {"[,1]", 1, "found ',' where a value was expected"},
        {"[1 2]", 3, "found '2' where ',' or ']' was expected"},
        {"{\"a\":1,}", 7, "found '}' where a key in quotes was expected"},
        {"{\"a\" 1}", 5, "found '1' where ':' was expected"},
        {"{\"a\":1 \"b\":2}", 7, "found '\"' where ',' or '}' was expected"},
        {"{a:1}", 1, "found 'a' where a key in quotes was expected"},
        {"{'a':1}", 1, "found ''' where a key in quotes was expected"},
        {"{\"a\":1}}", 7, "found '}' where the end of the text was expected"},
        {"{} x", 3, "found 'x' where the end of the text was expected"},
        {"[1}", 2, "found '}' where ',' or ']' was expected"},
        {"01", 0, "a number starts with a needless 0"},
        {"-01", 0, "a number starts with a needless 0"},
        {"+1", 0, "found '+' where a value was expected"},
        {".5", 0, "found '.' where a value was expected"},
        {"1.", 2, "the text ends where a digit of a fraction was expected"},
        {"1.e5", 2, "found 'e' where a digit of a fraction was expected"},
        {"1e", 2, "the text ends where a digit of an exponent was expected"},
        {"1e+", 3, "the text ends where a digit of an exponent was expected"},
        {"-", 1, "the text ends where a digit was expected"},
        {"-a", 1, "found 'a' where a digit was expected"},
        {"0x10", 1, "found 'x' where the end of the text was expected"},
        {"NaN", 0, "found 'N' where a value was expected"},
        {"Infinity", 0, "found 'I' where a value was expected"},
        {"-Infinity", 1, "found 'I' where a digit was expected"},
        {"nul", 0, "found 'n' where a value was expected"},
        {"nulls", 4, "found 's' where the end of the text was expected"},
        {"True", 0, "found 'T' where a value was expected"},
        {"\"abc", 0, "a string without a closing quote"},
        {"\"abc\\\"", 0, "a string without a closing quote"},
        {"\"a\nb\"", 2, "a bare control character 0x0a in a string"},
        {"\"\\x41\"", 1, "a backslash without a known escape behind it"},
        {"\"\\", 1, "a backslash without a known escape behind it"},
        {"\"\\u12g4\"", 1, "a \\u escape without four hex digits, or half of a surrogate pair"},
        {"\"\\u123\"", 1, "a \\u escape without four hex digits, or half of a surrogate pair"},
        {"\"\\ud800\"", 1, "a \\u escape without four hex digits, or half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", 1,
         "a \\u escape without four hex digits, or half of a surrogate pair"},
        {"\"\\udc00\"", 1, "a \\u escape without four hex digits, or half of a surrogate pair"},
        {"\"\\udc00\\ud800\"", 1,
         "a \\u escape without four hex digits, or half of a surrogate pair"},
        {"\"a\xff\"", 2, "byte 0xff is not valid UTF-8"},
        {"\"\xc0\xaf\"", 1, "byte 0xc0 is not valid UTF-8"},
        {"\"\xed\xa0\x80\"", 1, "byte 0xed is not valid UTF-8"},
        {"\"\xe2\x82", 1, "byte 0xe2 is not valid UTF-8"},
        {"[\x01]", 1, "found byte 0x01 where a value was expected"},
        {"/* */{}", 0, "found '/' where a value was expected"},
        {"\xef\xbb\xbf{}", 0, "a byte order mark in front: save the file as UTF-8 without one"},
        {"{\"a\":1,\"a\":1}", 7, "the key \"a\" appears twice in one object"},
        {"{\"a\":1,\"\\u0061\":2}", 7, "the key \"a\" appears twice in one object"},
        {"{\"" EURO "\":1,\"b\":0,\"\\u20AC\":2}", 15,
         "the key \"" EURO "\" appears twice in one object"},
        {"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", 18,
         "the key \"\xf0\x9f\x98\x80\" appears twice in one object"},
        {"{\"\\n\\/\":1,\"\\u000a/\":2}", 10, "the key \"\n/\" appears twice in one object"},
        /* Of several, the first in the text is reported. */
        {"{\"a\":1,\"a\":1,\"b\":1,\"b\":1}", 7, "the key \"a\" appears twice in one object"},
        {"{\"b\":1,\"b\":1,\"a\":1,\"a\":1}", 7, "the key \"b\" appears twice in one object"},
        {"{\"\":1,\"\":2}", 6, "the key \"\" appears twice in one object"},
        {"[{\"a\":[{\"b\":1,\"c\":2,\"b\":3}]}]", 20, "the key \"b\" appears twice in one object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bitconv_error err;
        assert_int_equal(parse_n(cases[i].text, strlen(cases[i].text), &err), BITCONV_E_CORRUPT);
        char expected[256];
        (void)snprintf(expected, sizeof expected, "f.json: JSON line 1, byte %zu: %s",
                       cases[i].offset, cases[i].reason);
        assert_string_equal(err.text, expected);
        assert_true(err.offset == cases[i].offset);
    }
}

static void test_line_numbers(void **state)
{
    (void)state;
    static const char text[] = "{\n  \"a\": 1,\n  \"b\": 0x2\n}\n";
    struct bitconv_error err;
    assert_int_equal(parse_n(text, strlen(text), &err), BITCONV_E_CORRUPT);
    assert_string_equal(err.text,
                        "f.json: JSON line 3, byte 20: found 'x' where ',' or '}' was expected");
}

static void test_what_cjson_cannot_hold(void **state)
{
    (void)state;
    struct bitconv_error err;
    char number[65];
    memset(number, '1', 64);
    number[64] = '\0';
    assert_int_equal(parse_n(number, 64, &err), BITCONV_E_UNSUPPORTED);
    assert_int_equal(parse_n("\"a\\u0000b\"", 10, &err), BITCONV_E_UNSUPPORTED);
    assert_int_equal(parse_n("{\"\\u0000\":1}", 12, &err), BITCONV_E_UNSUPPORTED);
    assert_int_equal(parse_n("\"a\0b\"", 5, &err), BITCONV_E_CORRUPT);
    assert_int_equal(parse_n("{}\0", 3, &err), BITCONV_E_CORRUPT);
    assert_int_equal(parse_n("\0{}", 3, &err), BITCONV_E_CORRUPT);
}

static double seconds(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* n opening brackets, of objects with one key each or of arrays, then the closing ones. */
static void nest(struct bc_buf *buf, size_t n, bool objects)
{
    bc_buf_clear(buf);
    for (size_t i = 0; i < n; i++)
        bc_buf_puts(buf, objects ? "{\"a\":" : "[");
    bc_buf_puts(buf, "1");
    for (size_t i = 0; i < n; i++)
        bc_buf_puts(buf, objects ? "}" : "]");
    assert_false(buf->failed);
}

static void test_nesting(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    struct bitconv_error err;
    for (int objects = 0; objects < 2; objects++) {
        nest(&buf, BC_JSON_MAX_DEPTH, objects != 0);
        assert_int_equal(parse_n(bc_buf_str(&buf), buf.size, &err), BITCONV_OK);
        nest(&buf, BC_JSON_MAX_DEPTH + 1, objects != 0);
        assert_int_equal(parse_n(bc_buf_str(&buf), buf.size, &err), BITCONV_E_LIMIT);
        assert_non_null(strstr(err.text, "nested deeper than 128 levels"));
        const double start = seconds();
        nest(&buf, 200000, objects != 0);
        assert_int_equal(parse_n(bc_buf_str(&buf), buf.size, &err), BITCONV_E_LIMIT);
        assert_true(seconds() - start < 1.0);
    }
    bc_buf_release(&buf);
}

/* An object with as many keys as a large vocabulary. `again`: the key that the last one repeats. */
static void big_object(struct bc_buf *buf, size_t n, size_t again)
{
    bc_buf_clear(buf);
    bc_buf_puts(buf, "{");
    for (size_t i = 0; i + 1 < n; i++)
        bc_buf_printf(buf, i % 2 == 0 ? "\"t%zu\":%zu,\n" : "\"\\u0074%zu\":%zu,\n", i, i);
    bc_buf_printf(buf, "\"t%zu\":0}", again);
    assert_false(buf->failed);
}

static void test_many_keys(void **state)
{
    (void)state;
    enum { N = 262144 };
    struct bc_buf buf = {NULL, 0, 0, false};
    struct bitconv_error err;
    const double start = seconds();
    big_object(&buf, N, N - 1);
    assert_int_equal(parse_n(bc_buf_str(&buf), buf.size, &err), BITCONV_OK);
    big_object(&buf, N, 131073);
    assert_int_equal(parse_n(bc_buf_str(&buf), buf.size, &err), BITCONV_E_CORRUPT);
    assert_string_equal(strstr(err.text, "JSON line"),
                        strstr(err.text, "JSON line 262144")); /* where the second one is */
    assert_non_null(strstr(err.text, "the key \"t131073\" appears twice"));
    assert_true(seconds() - start < 20.0); /* quadratic would take hours under a sanitizer */
    bc_buf_release(&buf);
}

static void test_too_many_values(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    bc_buf_putc(&buf, '[');
    for (size_t i = 0; i < BC_JSON_MAX_VALUES; i++)
        bc_buf_append(&buf, "0,", 2);
    bc_buf_puts(&buf, "0]");
    assert_false(buf.failed);
    struct bitconv_error err = {0};
    struct bc_json *root;
    assert_int_equal(bc_json_parse(bc_buf_str(&buf), buf.size, "f.json", &root, &err),
                     BITCONV_E_LIMIT);
    assert_null(root);
    bc_buf_release(&buf);
}

static const char sample[] =
    "{\"model_type\": \"llama\", \"n\\u0061me\": \"a\\\"b\\n" EURO "\\ud83d\\ude00\", \"x\": [1, "
    "-2.5e3, true, null, []], \"rope\": {\"theta\": 500000.0, \"deep\": {\"er\": false}}}";

/* What the checker accepts, cJSON must parse: NOMEM would tell that it did not. */
static void test_cut_and_changed_texts(void **state)
{
    (void)state;
    struct bitconv_error err;
    const size_t size = sizeof sample - 1;
    for (size_t n = 0; n < size; n++)
        assert_int_equal(parse_n(sample, n, &err), BITCONV_E_CORRUPT);
    char text[sizeof sample];
    size_t n_accepted = 0;
    for (size_t i = 0; i < size; i++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(text, sample, sizeof text);
            text[i] = (char)byte;
            const enum bitconv_status status = parse_n(text, size, &err);
            assert_int_not_equal(status, BITCONV_E_NOMEM);
            n_accepted += status == BITCONV_OK;
        }
    }
    assert_true(n_accepted > size); /* changes inside of strings and numbers are legal */
}

static void test_tree(void **state)
{
    (void)state;
    struct bc_json *const root = parse_ok(sample);
    assert_int_equal(bc_json_type(root), BC_JSON_OBJECT);
    assert_int_equal(bc_json_size(root), 4);
    assert_null(bc_json_key(root));
    assert_string_equal(bc_json_string(bc_json_get(root, "model_type")), "llama");
    assert_string_equal(bc_json_string(bc_json_get(root, "name")),
                        "a\"b\n" EURO "\xf0\x9f\x98\x80");
    assert_null(bc_json_get(root, "Model_Type")); /* keys keep their case */
    assert_null(bc_json_get(root, "model"));

    static const enum bc_json_type types[] = {BC_JSON_NUMBER, BC_JSON_NUMBER, BC_JSON_BOOL,
                                              BC_JSON_NULL, BC_JSON_ARRAY};
    const struct bc_json *const array = bc_json_get(root, "x");
    const struct bc_json *node = bc_json_first(array);
    for (size_t i = 0; i < 5; i++, node = bc_json_next(node)) {
        assert_true(bc_json_is(node, types[i]));
        assert_null(bc_json_key(node));
    }
    assert_null(node);
    assert_null(bc_json_get(array, "a"));
    assert_int_equal(bc_json_size(bc_json_first(array)), 0);

    double f = 0;
    bool b = true;
    assert_true(bc_json_f64(bc_json_path(root, "rope.theta"), &f) && f == 500000.0);
    assert_true(bc_json_bool(bc_json_path(root, "rope.deep.er"), &b) && !b);
    assert_null(bc_json_path(root, "rope.deep.er.x"));
    assert_null(bc_json_path(root, "rope.dee"));
    assert_null(bc_json_path(root, "rope.deep.err"));
    assert_null(bc_json_path(root, "rope..deep"));
    assert_null(bc_json_path(root, ""));
    assert_string_equal(bc_json_key(bc_json_path(root, "rope.deep")), "deep");
    bc_json_free(root);
}

static void test_null_nodes(void **state)
{
    (void)state;
    int64_t i;
    uint64_t u;
    double f;
    bool b;
    assert_int_equal(bc_json_type(NULL), BC_JSON_NULL);
    assert_false(bc_json_is(NULL, BC_JSON_NULL));
    assert_null(bc_json_get(NULL, "a"));
    assert_null(bc_json_path(NULL, "a.b"));
    assert_null(bc_json_first(NULL));
    assert_null(bc_json_next(NULL));
    assert_null(bc_json_key(NULL));
    assert_null(bc_json_string(NULL));
    assert_int_equal(bc_json_size(NULL), 0);
    assert_false(bc_json_i64(NULL, &i) || bc_json_u64(NULL, &u) || bc_json_f64(NULL, &f) ||
                 bc_json_bool(NULL, &b));
    bc_json_free(NULL);
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_i64;
        bool is_u64;
        int64_t value;
    } cases[] = {
        {"0", true, true, 0},
        {"-0", true, true, 0},
        {"32000", true, true, 32000},
        {"1e3", true, true, 1000},
        {"128.0", true, true, 128},
        {"-7", true, false, -7},
        {"4294967296", true, true, INT64_C(4294967296)},
        {"9007199254740991", true, true, INT64_C(9007199254740991)},
        {"-9007199254740991", true, false, -INT64_C(9007199254740991)},
        {"9007199254740992", false, false, 0},
        {"9007199254740993", false, false, 0},
        {"1000000000000000019884624838656", false, false, 0},
        {"0.5", false, false, 0},
        {"1e400", false, false, 0},
        {"-1e400", false, false, 0},
        {"true", false, false, 0},
        {"\"1\"", false, false, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct bc_json *const root = parse_ok(cases[k].text);
        int64_t i = 0;
        uint64_t u = 0;
        assert_int_equal(bc_json_i64(root, &i), cases[k].is_i64);
        assert_int_equal(bc_json_u64(root, &u), cases[k].is_u64);
        assert_true(i == cases[k].value);
        if (cases[k].is_u64) assert_true(u == (uint64_t)cases[k].value);
        bc_json_free(root);
    }
}

static void test_doubles(void **state)
{
    (void)state;
    double f = 7;
    struct bc_json *root = parse_ok("[1e400, 1000000000000000019884624838656, 1e-6, 1]");
    const struct bc_json *node = bc_json_first(root);
    assert_false(bc_json_f64(node, &f));
    node = bc_json_next(node);
    assert_true(bc_json_f64(node, &f) && f == 1e30);
    node = bc_json_next(node);
    assert_true(bc_json_f64(node, &f) && f == 1e-6);
    bool b;
    assert_false(bc_json_bool(bc_json_next(node), &b));
    bc_json_free(root);
}

static void test_load(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *reason; /* NULL: it loads */
    } cases[] = {
        {"{\"a\": 1}\n", NULL},
        {"", "JSON was expected, but the file is empty"},
        {"\n\n", "JSON was expected, but the file is nothing but blanks"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 33384568\n",
         "JSON was expected, but the file is a Git LFS pointer (72 bytes; real size 33384568): run "
         "`git lfs pull`"},
        {"<!DOCTYPE html><html>", "JSON was expected, but the file is an HTML page (a web page was "
                                  "saved in place of the file)"},
        {"GGUF\3", "JSON was expected, but the file is a GGUF file"},
        {"\xef\xbb\xbf{}", "JSON line 1, byte 0: a byte order mark in front: save the file as "
                           "UTF-8 without one"},
        {"hello", "JSON line 1, byte 0: found 'h' where a value was expected"},
        {"{\"a\":}", "JSON line 1, byte 5: found '}' where a value was expected"},
    };
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "config.json");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bitconv_error err = {0};
        temp_dir_puts(dir, "config.json", cases[i].content);
        struct bc_json *root;
        const enum bitconv_status status = bc_json_load(path, &root, &err);
        if (cases[i].reason == NULL) {
            assert_int_equal(status, BITCONV_OK);
            assert_int_equal(bc_json_size(root), 1);
        } else {
            char expected[512];
            (void)snprintf(expected, sizeof expected, "%s: %s", path, cases[i].reason);
            assert_int_equal(status, BITCONV_E_CORRUPT);
            assert_string_equal(err.text, expected);
            assert_null(root);
        }
        bc_json_free(root);
    }
    temp_dir_remove(dir);
    struct bitconv_error err = {0};
    struct bc_json *root;
    assert_int_equal(bc_json_load(path, &root, &err), BITCONV_E_IO);
    assert_null(root);
    free(path);
}

/* Real vocabularies, of up to 262144 entries. */
static void test_shared_tokenizers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n_tokens;
    } models[] = {{"gemma3", 262144}, {"qwen3", 151643}, {"llama3", 128000}, {"llama2", 32000}};
    const char *const shared = getenv("BITCONV_SHARED");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/tokenizers/%s/tokenizer.json.gz",
                       shared != NULL ? shared : BITCONV_SOURCE_DIR "/../shared", models[i].name);
        if (bc_path_kind(path) != BC_PATH_FILE) {
            print_message("skipped: no %s\n", path);
            skip();
        }
        struct bitconv_error err = {0};
        struct bc_json *root;
        if (bc_json_load(path, &root, &err) != BITCONV_OK) fail_msg("%s", err.text);
        assert_int_equal(bc_json_size(bc_json_path(root, "model.vocab")), models[i].n_tokens);
        bc_json_free(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_line_numbers),
        cmocka_unit_test(test_what_cjson_cannot_hold),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_too_many_values),
        cmocka_unit_test(test_cut_and_changed_texts),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_null_nodes),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_shared_tokenizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
