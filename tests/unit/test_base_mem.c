/* SPDX-License-Identifier: MIT
 * Tests of base/mem.h, base/map.h and base/error.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"

static void test_arrays(void **state)
{
    (void)state;
    assert_null(bc_alloc_array(SIZE_MAX / 2, 3)); /* the product does not fit */
    assert_null(bc_alloc_array(SIZE_MAX, 1));     /* more than any object may have */
    assert_null(bc_realloc_array(NULL, SIZE_MAX / 4, 8));
    void *const empty = bc_alloc_array(0, 100);
    assert_non_null(empty);
    bc_free(empty);
    uint32_t *items = bc_alloc_array(100, sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(items[i], 0);
    items[99] = 42;
    items = bc_realloc_array(items, 1000, sizeof *items);
    assert_non_null(items);
    assert_int_equal(items[99], 42);
    bc_free(items);
    bc_free(NULL);
}

static void test_grow(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t cap = 0;
    size_t n_moves = 0;
    for (size_t n = 0; n < 10000; n++) {
        void *grown = items;
        const size_t before = cap;
        assert_true(bc_grow(&grown, &cap, n, sizeof *items));
        items = grown;
        assert_true(cap > n);
        n_moves += cap != before;
        items[n] = n;
    }
    for (size_t n = 0; n < 10000; n++)
        assert_true(items[n] == n);
    assert_true(n_moves < 20); /* amortised */
    void *kept = items;
    assert_false(bc_grow(&kept, &cap, SIZE_MAX / 2 + 1, 1));
    assert_false(bc_grow(&kept, &cap, SIZE_MAX / 4, sizeof *items));
    assert_ptr_equal(kept, items);
    bc_free(items);
}

static void test_arena(void **state)
{
    (void)state;
    struct bc_arena arena = {NULL};
    unsigned char *blocks[2000];
    for (size_t i = 0; i < 2000; i++) {
        const size_t size = i % 100 == 99 ? 100000 : i % 61;
        blocks[i] = bc_arena_alloc(&arena, size, 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < 2000; i++) {
        const size_t size = i % 100 == 99 ? 100000 : i % 61;
        for (size_t k = 0; k < size; k++)
            assert_int_equal(blocks[i][k], i % 255 + 1);
    }
    assert_string_equal(bc_arena_strdup(&arena, "name"), "name");
    assert_string_equal(bc_arena_strndup(&arena, "name", 2), "na");
    assert_string_equal(bc_arena_strndup(&arena, NULL, 0), "");
    assert_string_equal(bc_arena_printf(&arena, "blk.%d.%s", 7, "attn_q"), "blk.7.attn_q");
    assert_null(bc_arena_alloc(&arena, SIZE_MAX / 2, 4));
    assert_null(bc_arena_alloc(&arena, SIZE_MAX - 8, 1));
    assert_null(bc_arena_strndup(&arena, "", SIZE_MAX));
    bc_arena_release(&arena);
    assert_null(arena.head);
    bc_arena_release(&arena);
}

static void test_buffer(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    assert_string_equal(bc_buf_str(&buf), "");
    bc_buf_append(&buf, NULL, 0);
    bc_buf_puts(&buf, "ab");
    bc_buf_putc(&buf, 'c');
    bc_buf_printf(&buf, "%d-%s", 12, "x");
    assert_string_equal(bc_buf_str(&buf), "abc12-x");
    assert_int_equal(buf.size, 7);
    bc_buf_clear(&buf);
    assert_string_equal(bc_buf_str(&buf), "");
    bc_buf_u8(&buf, 0xfe);
    bc_buf_u32(&buf, 0x04030201);
    bc_buf_u64(&buf, UINT64_C(0x0c0b0a0908070605));
    bc_buf_f32(&buf, 1.0f);
    static const uint8_t expected[] = {0xfe, 1,  2,  3,  4, 5, 6,    7,   8,
                                       9,    10, 11, 12, 0, 0, 0x80, 0x3f};
    assert_int_equal(buf.size, sizeof expected);
    assert_memory_equal(buf.data, expected, sizeof expected);
    assert_int_equal(buf.data[buf.size], 0); /* terminated for those who want a string */
    bc_buf_release(&buf);
    assert_null(buf.data);
}

static void test_buffer_growth(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    size_t n_moves = 0;
    for (int i = 0; i < 100000; i++) {
        const size_t before = buf.cap;
        bc_buf_printf(&buf, "%d,", i);
        n_moves += buf.cap != before;
    }
    assert_false(buf.failed);
    assert_true(n_moves < 20);
    assert_memory_equal(buf.data, "0,1,2,3,", 8);
    assert_string_equal(bc_buf_str(&buf) + buf.size - 12, "99998,99999,");
    bc_buf_release(&buf);
}

static void test_buffer_failure_is_sticky(void **state)
{
    (void)state;
    struct bc_buf buf = {NULL, 0, 0, false};
    bc_buf_puts(&buf, "kept");
    bc_buf_append(&buf, "x", SIZE_MAX); /* cannot be had; nothing is read */
    assert_true(buf.failed);
    bc_buf_puts(&buf, "ignored");
    assert_string_equal(bc_buf_str(&buf), "kept");
    bc_buf_release(&buf);
    assert_false(buf.failed);
}

static void test_map(void **state)
{
    (void)state;
    enum { N = 50000, KEY = 24 };
    char(*const keys)[KEY] = malloc(N * sizeof *keys);
    assert_non_null(keys);
    struct bc_map map = {NULL, 0, 0};
    uint64_t value = 99;
    assert_false(bc_map_get(&map, "a", 1, &value));
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(keys[i], KEY, "token %zu", i);
        assert_int_equal(bc_map_put(&map, keys[i], strlen(keys[i]), i, NULL), BC_MAP_NEW);
        /* However full the table is, the search for what is not there ends. */
        assert_false(bc_map_get(&map, "absent", 6, NULL));
    }
    assert_int_equal(map.n_used, N);
    for (size_t i = 0; i < N; i++) {
        char key[KEY];
        (void)snprintf(key, KEY, "token %zu", i); /* another pointer, the same bytes */
        assert_true(bc_map_get(&map, key, strlen(key), &value));
        assert_true(value == i);
    }
    assert_false(bc_map_get(&map, "token", 5, &value));
    assert_false(bc_map_get(&map, "token 50000", 11, &value));
    assert_int_equal(bc_map_put(&map, "token 7", 7, 1234, &value), BC_MAP_EXISTS);
    assert_true(value == 7);
    assert_int_equal(bc_map_put(&map, "token 8", 7, 1234, NULL), BC_MAP_EXISTS);
    assert_true(bc_map_get(&map, "token 8", 7, &value) && value == 8);
    bc_map_release(&map);
    assert_false(bc_map_get(&map, "token 8", 7, &value));
    free(keys);
}

static void test_map_keys_are_bytes(void **state)
{
    (void)state;
    struct bc_map map = {NULL, 0, 0};
    uint64_t value = 0;
    assert_int_equal(bc_map_put(&map, "a\0b", 3, 1, NULL), BC_MAP_NEW);
    assert_int_equal(bc_map_put(&map, "a\0c", 3, 2, NULL), BC_MAP_NEW);
    assert_int_equal(bc_map_put(&map, "a", 1, 3, NULL), BC_MAP_NEW);
    assert_int_equal(bc_map_put(&map, NULL, 0, 4, NULL), BC_MAP_NEW);
    assert_int_equal(bc_map_put(&map, "", 0, 5, &value), BC_MAP_EXISTS);
    assert_true(value == 4);
    assert_true(bc_map_get(&map, "a\0c", 3, &value) && value == 2);
    assert_true(bc_map_get(&map, "a", 1, &value) && value == 3);
    bc_map_release(&map);
}

static void test_error_record(void **state)
{
    (void)state;
    struct bitconv_error err = {0};
    assert_int_equal(bc_fail(&err, BITCONV_E_CORRUPT, "%s: bad %d", "f", 3), BITCONV_E_CORRUPT);
    assert_int_equal(err.status, BITCONV_E_CORRUPT);
    assert_string_equal(err.text, "f: bad 3");
    /* The first failure stays, the status of the second is still returned. */
    assert_int_equal(bc_fail(&err, BITCONV_E_BUG, "later"), BITCONV_E_BUG);
    assert_string_equal(err.text, "f: bad 3");
    assert_int_equal(bc_fail(NULL, BITCONV_E_ARG, "nobody listens"), BITCONV_E_ARG);

    memset(&err, 0, sizeof err);
    assert_int_equal(bc_fail_at(&err, BITCONV_E_LIMIT, 77, "far"), BITCONV_E_LIMIT);
    assert_true(err.offset == 77);
    memset(&err, 0, sizeof err);
    errno = ENOENT;
    assert_int_equal(bc_fail_errno(&err, "%s", "x"), BITCONV_E_IO);
    assert_string_equal(err.text, "x: No such file or directory");
    assert_int_equal(err.sys_errno, ENOENT);
    errno = ENOMEM;
    assert_int_equal(bc_fail_errno(NULL, "x"), BITCONV_E_NOMEM);
    memset(&err, 0, sizeof err);
    assert_int_equal(bc_fail_nomem(&err, "plan"), BITCONV_E_NOMEM);
    assert_string_equal(err.text, "out of memory (plan)");
}

static void test_long_errors_are_cut(void **state)
{
    (void)state;
    /* Characters of three bytes: one of the three lengths puts the cut inside of each byte of one.
     */
    for (size_t shift = 0; shift < 3; shift++) {
        char text[4000] = "";
        for (size_t i = 0; i < shift; i++)
            text[i] = 'x';
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xe2\x82\xac", 4);
        struct bitconv_error err = {0};
        (void)bc_fail(&err, BITCONV_E_CORRUPT, "%s", text);
        size_t len = strlen(err.text);
        assert_true(len > sizeof err.text - 8 && len < sizeof err.text);
        assert_string_equal(err.text + len - 3, "...");
        assert_true(bc_utf8_valid(err.text, len));

        memset(&err, 0, sizeof err);
        errno = EACCES;
        (void)bc_fail_errno(&err, "%s", text);
        len = strlen(err.text);
        assert_true(len < sizeof err.text);
        assert_non_null(strstr(err.text, "...: Permission denied")); /* the reason survives */
        assert_true(bc_utf8_valid(err.text, len));
    }
    /* What just fits is left alone. */
    struct bitconv_error err = {0};
    char exact[sizeof err.text];
    memset(exact, 'y', sizeof exact - 1);
    exact[sizeof exact - 1] = '\0';
    (void)bc_fail(&err, BITCONV_E_CORRUPT, "%s", exact);
    assert_string_equal(err.text, exact);
}

static void test_status_names(void **state)
{
    (void)state;
    for (int s = BITCONV_OK; s <= BITCONV_E_BUG; s++) {
        const char *const name = bitconv_status_name((enum bitconv_status)s);
        assert_string_not_equal(name, "unknown");
        for (int t = BITCONV_OK; t < s; t++)
            assert_string_not_equal(name, bitconv_status_name((enum bitconv_status)t));
    }
}

struct heard {
    char text[100];
    enum bitconv_severity severity;
    uint64_t done, total;
};

static void hear(void *user, enum bitconv_severity severity, const char *text)
{
    struct heard *const heard = user;
    heard->severity = severity;
    (void)snprintf(heard->text, sizeof heard->text, "%s", text);
}

static void see(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct heard *const heard = user;
    (void)snprintf(heard->text, sizeof heard->text, "%s", what);
    heard->done = done;
    heard->total = total;
}

static void test_sink(void **state)
{
    (void)state;
    struct heard heard = {"", BITCONV_NOTE, 0, 0};
    volatile sig_atomic_t cancel = 0;
    struct bitconv_sink sink = {hear, see, &heard, &cancel};
    bc_say(&sink, BITCONV_WARNING, "%d rows", 3);
    assert_string_equal(heard.text, "3 rows");
    assert_int_equal(heard.severity, BITCONV_WARNING);
    bc_progress(&sink, "writing", 5, 9);
    assert_string_equal(heard.text, "writing");
    assert_true(heard.done == 5 && heard.total == 9);
    assert_false(bc_canceled(&sink));
    cancel = 1;
    assert_true(bc_canceled(&sink));
    const struct bitconv_sink silent = {NULL, NULL, NULL, NULL};
    bc_say(&silent, BITCONV_NOTE, "x");
    bc_say(NULL, BITCONV_NOTE, "x");
    bc_progress(&silent, "x", 0, 0);
    bc_progress(NULL, "x", 0, 0);
    assert_false(bc_canceled(&silent));
    assert_false(bc_canceled(NULL));
    assert_string_equal(heard.text, "writing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_arena),         cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_buffer_growth), cmocka_unit_test(test_buffer_failure_is_sticky),
        cmocka_unit_test(test_map),           cmocka_unit_test(test_map_keys_are_bytes),
        cmocka_unit_test(test_error_record),  cmocka_unit_test(test_long_errors_are_cut),
        cmocka_unit_test(test_status_names),  cmocka_unit_test(test_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
