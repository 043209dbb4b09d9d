/* SPDX-License-Identifier: MIT
 * Tests of base/utf8.h, of the JSON writer, and of loading texts that may be compressed. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "support/temp_dir.h"

static void test_utf8_round_trip(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char bytes[4];
        const size_t n = bc_utf8_encode(cp, bytes);
        const bool is_scalar = cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff);
        const size_t expected = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        assert_int_equal(n, is_scalar ? expected : 0);
        if (n == 0) continue;
        uint32_t back = 0;
        assert_int_equal(bc_utf8_decode(bytes, n, &back), n);
        assert_int_equal(back, cp);
        assert_int_equal(bc_utf8_decode(bytes, n - 1, &back), 0); /* cut off */
    }
}

/* Every sequence of up to three bytes against the table of the Unicode Standard (3-7), written as
 * ranges: an independent statement of the same rule. */
static size_t well_formed(const uint8_t *p, size_t len)
{
    static const uint8_t rows[][8] = {
        /* ranges of the first to the fourth byte; {0, 0} ends a row */
        {0xc2, 0xdf, 0x80, 0xbf, 0, 0, 0, 0},
        {0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf, 0, 0},
        {0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf, 0, 0},
        {0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf, 0, 0},
        {0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf, 0, 0},
        {0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
    };
    if (len > 0 && p[0] < 0x80) return 1;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        size_t n = 0;
        while (n < 4 && rows[r][2 * n + 1] != 0 && n < len && p[n] >= rows[r][2 * n] &&
               p[n] <= rows[r][2 * n + 1])
            n++;
        if (n > 0 && (n == 4 || rows[r][2 * n + 1] == 0)) return n;
    }
    return 0;
}

static void test_utf8_malformed(void **state)
{
    (void)state;
    static const uint8_t tails[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90,
                                    0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    enum { N_TAILS = sizeof tails };
    for (int first = 0; first < 256; first++) {
        for (size_t k = 0; k < N_TAILS * N_TAILS * N_TAILS; k++) {
            const uint8_t bytes[4] = {(uint8_t)first, tails[k % N_TAILS],
                                      tails[k / N_TAILS % N_TAILS], tails[k / N_TAILS / N_TAILS]};
            for (size_t len = 0; len <= 4; len++) {
                uint32_t cp = 0;
                assert_int_equal(bc_utf8_decode((const char *)bytes, len, &cp),
                                 well_formed(bytes, len));
            }
        }
    }
}

static void test_utf8_valid_and_count(void **state)
{
    (void)state;
    assert_true(bc_utf8_valid("", 0));
    assert_true(bc_utf8_valid("a\0b", 3));
    assert_true(bc_utf8_valid("\xe2\x82\xac", 3));
    assert_false(bc_utf8_valid("\xe2\x82\xac", 2));
    assert_false(bc_utf8_valid("abc\x80", 4));
    assert_int_equal(bc_utf8_count("a\xe2\x82\xac\xf0\x9f\x98\x80", 8), 3);
    assert_int_equal(bc_utf8_count("\xff\xe2\x82", 3), 3);
}

static void check_mask(const char *in, size_t len, size_t max_len, const char *expected)
{
    struct bc_buf buf = {NULL, 0, 0, false};
    bc_utf8_mask(&buf, in, len, max_len);
    assert_string_equal(bc_buf_str(&buf), expected);
    bc_buf_release(&buf);
}

static void test_mask(void **state)
{
    (void)state;
    check_mask("", 0, 0, "");
    check_mask("plain \xe2\x82\xac", 9, 0, "plain \xe2\x82\xac");
    check_mask("\x1b[31mred\n\0\x7f", 11, 0, "\\x1b[31mred\\x0a\\x00\\x7f");
    check_mask("\xc2\x9b"
               "0m",
               4, 0, "\\u{009b}0m"); /* C1: an 8-bit CSI */
    check_mask("a\xe2\x80\xae"
               "b",
               5, 0, "a\\u{202e}b"); /* right-to-left override */
    check_mask("\xff\xe2\x82z", 4, 0, "\\xff\\xe2\\x82z");
    check_mask("abcdef", 6, 3, "abc...");
    check_mask("abcdef", 6, 6, "abcdef");
    check_mask("ab\xe2\x82\xac", 5, 3, "ab..."); /* not through a character */
    check_mask("ab\xe2\x82\xac"
               "c",
               6, 5, "ab\xe2\x82\xac...");
}

static void write_everything(struct bc_jw *w)
{
    bc_jw_begin_object(w);
    bc_jw_key(w, "empty");
    bc_jw_begin_array(w);
    bc_jw_end_array(w);
    bc_jw_key(w, "list");
    bc_jw_begin_array(w);
    bc_jw_u64(w, UINT64_MAX);
    bc_jw_i64(w, INT64_MIN);
    bc_jw_begin_object(w);
    bc_jw_end_object(w);
    bc_jw_null(w);
    bc_jw_end_array(w);
    bc_jw_key(w, "b\"");
    bc_jw_bool(w, true);
    bc_jw_key(w, "s");
    bc_jw_string(w, NULL);
    bc_jw_end_object(w);
}

static void test_writer_layout(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    struct bc_jw w = {.buf = &buf};
    write_everything(&w);
    assert_string_equal(bc_buf_str(&buf), "{\n"
                                          "  \"empty\": [],\n"
                                          "  \"list\": [\n"
                                          "    18446744073709551615,\n"
                                          "    -9223372036854775808,\n"
                                          "    {},\n"
                                          "    null\n"
                                          "  ],\n"
                                          "  \"b\\\"\": true,\n"
                                          "  \"s\": null\n"
                                          "}");
    bc_buf_release(&buf);
}

static void test_writer_members(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    struct bc_jw w = {.buf = &buf};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "s", "x");
    bc_jw_key_string(&w, "absent", NULL);
    bc_jw_key_u64(&w, "u", 0);
    bc_jw_key_count(&w, "none", 0);
    bc_jw_key_count(&w, "some", 7);
    bc_jw_key_f64(&w, "f", 0.5);
    bc_jw_key_bool(&w, "b", false);
    bc_jw_key_known_u64(&w, "ku", true, 0);
    bc_jw_key_known_f32(&w, "kf", true, 0.1f);
    bc_jw_key_known_f64(&w, "kd", true, 0.1);
    bc_jw_key_known_u64(&w, "u?", false, 1);
    bc_jw_key_known_f32(&w, "f?", false, 1);
    bc_jw_key_known_f64(&w, "d?", false, 1);
    bc_jw_end_object(&w);
    assert_string_equal(bc_buf_str(&buf), "{\n"
                                          "  \"s\": \"x\",\n"
                                          "  \"absent\": null,\n"
                                          "  \"u\": 0,\n"
                                          "  \"none\": null,\n"
                                          "  \"some\": 7,\n"
                                          "  \"f\": 0.5,\n"
                                          "  \"b\": false,\n"
                                          "  \"ku\": 0,\n"
                                          "  \"kf\": 0.1,\n"
                                          "  \"kd\": 0.1,\n"
                                          "  \"u?\": null,\n"
                                          "  \"f?\": null,\n"
                                          "  \"d?\": null\n"
                                          "}");
    bc_buf_release(&buf);
}

static void check_string(const char *in, size_t len, const char *expected)
{
    struct bc_buf buf = {NULL, 0, 0, false};
    struct bc_jw w = {.buf = &buf};
    bc_jw_string_n(&w, in, len);
    assert_string_equal(bc_buf_str(&buf), expected);
    bc_buf_release(&buf);
}

static void test_writer_strings(void **state)
{
    (void)state;
    check_string("", 0, "\"\"");
    check_string("a\0b", 3, "\"a\\u0000b\"");
    check_string("\"\\\b\f\n\r\t/", 8, "\"\\\"\\\\\\b\\f\\n\\r\\t/\"");
    check_string("\x1b\x7f\x01", 3, "\"\\u001b\\u007f\\u0001\"");
    check_string("\xc2\x85\xe2\x80\xae", 5, "\"\\u0085\\u202e\"");
    check_string("\xe2\x82\xac\xf0\x9f\x98\x80", 7, "\"\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_string("\xff\xe2\x82", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Whatever bytes go in, the reader accepts what the writer writes, and gets them back when they
 * were UTF-8 without NUL. */
static void test_writer_round_trip(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 3000; round++) {
        char bytes[40];
        const size_t len = (size_t)round % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            random = random * 1664525u + 1013904223u;
            bytes[i] = (char)(random >> 24);
            if (bytes[i] == '\0') bytes[i] = 'n';
            if (round % 2 == 0) bytes[i] = (char)(bytes[i] & 0x7f);
            if (bytes[i] == '\0') bytes[i] = '"';
        }
        struct bc_buf buf = {NULL, 0, 0, false};
        struct bc_jw w = {.buf = &buf};
        bc_jw_string_n(&w, bytes, len);
        struct bc_json *root;
        assert_int_equal(bc_json_parse(bc_buf_str(&buf), buf.size, "f", &root, NULL), BITCONV_OK);
        if (bc_utf8_valid(bytes, len)) {
            assert_int_equal(strlen(bc_json_string(root)), len);
            assert_memory_equal(bc_json_string(root), bytes, len);
        } else {
            assert_non_null(strstr(bc_json_string(root), "\xef\xbf\xbd"));
        }
        bc_json_free(root);
        bc_buf_release(&buf);
    }
}

static void write_f32(struct bc_buf *buf, float v)
{
    struct bc_jw w = {.buf = buf};
    bc_buf_clear(buf);
    bc_jw_f32(&w, v);
}

static void write_f64(struct bc_buf *buf, double v)
{
    struct bc_jw w = {.buf = buf};
    bc_buf_clear(buf);
    bc_jw_f64(&w, v);
}

static void test_writer_numbers(void **state)
{
    (void)state;
    static const struct {
        float v;
        const char *text;
    } floats[] = {
        {0.0f, "0"},
        {-0.0f, "-0"},
        {1.0f, "1"},
        {-500000.0f, "-500000"},
        {0.1f, "0.1"},
        {1e-5f, "1e-05"},
        {16777216.0f, "16777216"},
        {1e10f, "10000000000"},
        {3.4028235e38f, "3.4028235e+38"},
        {1.40129846e-45f, "1e-45"},
        {0.333333343f, "0.33333334"},
        {NAN, "\"NaN\""},
        {INFINITY, "\"Infinity\""},
        {-INFINITY, "\"-Infinity\""},
    };
    struct bc_buf buf = {NULL, 0, 0, false};
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        write_f32(&buf, floats[i].v);
        assert_string_equal(bc_buf_str(&buf), floats[i].text);
    }
    write_f64(&buf, 0.1);
    assert_string_equal(bc_buf_str(&buf), "0.1");
    write_f64(&buf, 1e15);
    assert_string_equal(bc_buf_str(&buf), "1e+15");
    write_f64(&buf, 999999999999999.0);
    assert_string_equal(bc_buf_str(&buf), "999999999999999");
    write_f64(&buf, 0.1 + 0.2);
    assert_string_equal(bc_buf_str(&buf), "0.30000000000000004");
    bc_buf_release(&buf);
}

static void test_writer_numbers_read_back(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 199999) {
        const float v = bc_f32_from_bits((uint32_t)bits);
        if (!isfinite(v)) continue;
        write_f32(&buf, v);
        assert_int_equal(bc_f32_bits(strtof(bc_buf_str(&buf), NULL)), bits);
        struct bc_json *root;
        assert_int_equal(bc_json_parse(bc_buf_str(&buf), buf.size, "f", &root, NULL), BITCONV_OK);
        bc_json_free(root);
    }
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint8_t bytes[8];
        bc_put_u64(bytes, random);
        const double v = bc_get_f64(bytes);
        if (!isfinite(v)) continue;
        write_f64(&buf, v);
        assert_true(strtod(bc_buf_str(&buf), NULL) == v);
    }
    bc_buf_release(&buf);
}

/* ---- compressed texts ---- */

struct temp {
    char *dir;
    char *path;
};

static int setup_temp(void **state)
{
    static struct temp temp;
    temp.dir = temp_dir_new();
    temp.path = temp_dir_path(temp.dir, "text.gz");
    *state = &temp;
    return 0;
}

static int teardown_temp(void **state)
{
    const struct temp *const temp = *state;
    temp_dir_remove(temp->dir);
    free(temp->path);
    return 0;
}

/* Appends one gzip member. */
static void compress_into(struct bc_buf *out, const void *data, size_t size)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t bound = deflateBound(&z, size);
    uint8_t *const packed = malloc(bound);
    uint8_t *const input = malloc(size > 0 ? size : 1);
    assert_non_null(packed);
    assert_non_null(input);
    memcpy(input, data, size);
    z.next_in = input;
    z.avail_in = (uInt)size;
    z.next_out = packed;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    bc_buf_append(out, packed, bound - z.avail_out);
    assert_int_equal(deflateEnd(&z), Z_OK);
    free(packed);
    free(input);
}

static enum bitconv_status load(const struct temp *temp, const struct bc_buf *content,
                                struct bc_buf *text, struct bitconv_error *err)
{
    memset(err, 0, sizeof *err);
    bc_buf_clear(text);
    assert_int_equal(bc_file_write(temp->path, content->data, content->size, true, err),
                     BITCONV_OK);
    return bc_text_load(temp->path, text, err);
}

static void test_plain_and_gzip(void **state)
{
    const struct temp *const temp = *state;
    struct bc_buf content = {NULL, 0, 0, false}, text = {NULL, 0, 0, false};
    struct bitconv_error err;
    bc_buf_puts(&content, "plain text");
    assert_int_equal(load(temp, &content, &text, &err), BITCONV_OK);
    assert_string_equal(bc_buf_str(&text), "plain text");
    /* Appended to, not replaced. */
    assert_int_equal(bc_text_load(temp->path, &text, &err), BITCONV_OK);
    assert_string_equal(bc_buf_str(&text), "plain textplain text");

    bc_buf_clear(&content);
    compress_into(&content, "first ", 6);
    compress_into(&content, "", 0);
    compress_into(&content, "second", 6);
    assert_int_equal(load(temp, &content, &text, &err), BITCONV_OK);
    assert_string_equal(bc_buf_str(&text), "first second");
    bc_buf_release(&content);
    bc_buf_release(&text);
}

static void test_gzip_large(void **state)
{
    const struct temp *const temp = *state;
    struct bc_buf content = {NULL, 0, 0, false}, text = {NULL, 0, 0, false};
    struct bc_buf long_text = {NULL, 0, 0, false};
    struct bitconv_error err;
    for (int i = 0; i < 100000; i++)
        bc_buf_printf(&long_text, "line %d\n", i);
    compress_into(&content, long_text.data, long_text.size);
    assert_int_equal(load(temp, &content, &text, &err), BITCONV_OK);
    assert_int_equal(text.size, long_text.size);
    assert_memory_equal(text.data, long_text.data, text.size);
    /* Nothing but zeros: the ratio of a bomb, which is still what the bytes say. */
    static const uint8_t zeros[1 << 20];
    bc_buf_clear(&content);
    compress_into(&content, zeros, sizeof zeros);
    assert_true(content.size < sizeof zeros / 900);
    assert_int_equal(load(temp, &content, &text, &err), BITCONV_OK);
    assert_int_equal(text.size, sizeof zeros);
    bc_buf_release(&long_text);
    bc_buf_release(&content);
    bc_buf_release(&text);
}

/* Two hundred kilobytes that would become more than any text of a checkpoint is. */
static void test_gzip_bomb(void **state)
{
    const struct temp *const temp = *state;
    struct bc_buf member = {NULL, 0, 0, false}, content = {NULL, 0, 0, false};
    struct bc_buf text = {NULL, 0, 0, false};
    struct bitconv_error err;
    static const uint8_t zeros[1 << 20];
    compress_into(&member, zeros, sizeof zeros);
    for (int i = 0; i < 257; i++)
        bc_buf_append(&content, member.data, member.size);
    assert_true(content.size < 300000);
    assert_int_equal(load(temp, &content, &text, &err), BITCONV_E_LIMIT);
    assert_non_null(strstr(err.text, "inflates to more than the 268435456 bytes"));
    bc_buf_release(&member);
    bc_buf_release(&content);
    bc_buf_release(&text);
}

static void test_gzip_damaged(void **state)
{
    const struct temp *const temp = *state;
    struct bc_buf whole = {NULL, 0, 0, false}, text = {NULL, 0, 0, false};
    struct bitconv_error err;
    compress_into(&whole, "{\"some\": \"text\", \"and\": \"some more\"}", 37);
    for (size_t n = 2; n < whole.size; n++) {
        const struct bc_buf cut = {whole.data, n, whole.cap, false};
        assert_int_equal(load(temp, &cut, &text, &err), BITCONV_E_CORRUPT);
        assert_non_null(strstr(err.text, "the file is cut off"));
    }
    /* The trailer: CRC-32 and length of the text. */
    for (size_t i = whole.size - 8; i < whole.size; i++) {
        whole.data[i] ^= 0x10;
        assert_int_equal(load(temp, &whole, &text, &err), BITCONV_E_CORRUPT);
        assert_non_null(strstr(err.text, "damaged gzip data"));
        whole.data[i] ^= 0x10;
    }
    const size_t size = whole.size;
    bc_buf_puts(&whole, "tail");
    assert_int_equal(load(temp, &whole, &text, &err), BITCONV_E_CORRUPT);
    assert_non_null(strstr(err.text, "4 bytes behind the gzip data"));
    assert_true(err.offset == size);
    bc_buf_release(&whole);
    bc_buf_release(&text);
}

static void test_gzip_json(void **state)
{
    const struct temp *const temp = *state;
    struct bc_buf content = {NULL, 0, 0, false};
    struct bitconv_error err = {0};
    struct bc_json *root;
    compress_into(&content, "{\"a\": 5}", 8);
    assert_int_equal(bc_file_write(temp->path, content.data, content.size, true, &err), BITCONV_OK);
    assert_int_equal(bc_json_load(temp->path, &root, &err), BITCONV_OK);
    uint64_t v = 0;
    assert_true(bc_json_u64(bc_json_get(root, "a"), &v) && v == 5);
    bc_json_free(root);

    bc_buf_clear(&content);
    compress_into(&content, "<html>", 6);
    assert_int_equal(bc_file_write(temp->path, content.data, content.size, true, &err), BITCONV_OK);
    assert_int_equal(bc_json_load(temp->path, &root, &err), BITCONV_E_CORRUPT);
    assert_non_null(strstr(err.text, "the file is an HTML page"));
    bc_buf_release(&content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_round_trip),
        cmocka_unit_test(test_utf8_malformed),
        cmocka_unit_test(test_utf8_valid_and_count),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_writer_layout),
        cmocka_unit_test(test_writer_members),
        cmocka_unit_test(test_writer_strings),
        cmocka_unit_test(test_writer_round_trip),
        cmocka_unit_test(test_writer_numbers),
        cmocka_unit_test(test_writer_numbers_read_back),
        cmocka_unit_test(test_plain_and_gzip),
        cmocka_unit_test(test_gzip_large),
        cmocka_unit_test(test_gzip_bomb),
        cmocka_unit_test(test_gzip_damaged),
        cmocka_unit_test(test_gzip_json),
    };
    return cmocka_run_group_tests(tests, setup_temp, teardown_temp);
}
