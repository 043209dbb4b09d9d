/* SPDX-License-Identifier: MIT
 * Tests of split GGUF sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "io/gguf_impl.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

static const uint64_t eight[1] = {8};

static void put_u16(struct gguf_builder *b, const char *key, unsigned v)
{
    uint8_t bytes[2];
    bc_put_u16(bytes, (uint16_t)v);
    gguf_builder_key(b, key, BITCONV_GGUF_UINT16, bytes, 2);
}

static void write_file(const char *dir, const char *name, struct gguf_builder *b)
{
    struct bc_buf file = {0};
    gguf_builder_bytes(b, &file);
    temp_dir_write(dir, name, file.data, file.size);
    bc_buf_release(&file);
}

/* Part `no` (from 0) of `count`, with the names of its tensors, as gguf-split writes it. */
static void write_part(const char *dir, const char *name, unsigned no, unsigned count,
                       const char *tensor, const char *other)
{
    struct gguf_builder b = {0};
    if (no == 0) gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    put_u16(&b, "split.no", no);
    put_u16(&b, "split.count", count);
    gguf_builder_key(&b, "split.tensors.count", BITCONV_GGUF_INT32, "\x03\0\0", 4);
    if (tensor != NULL) gguf_builder_tensor(&b, tensor, 0, 1, eight, 32);
    if (other != NULL) gguf_builder_tensor(&b, other, 36, 2, (const uint64_t[]){128, 4}, 160);
    write_file(dir, name, &b);
}

static char *write_set(void)
{
    char *dir = temp_dir_new();
    write_part(dir, "m-00001-of-00003.gguf", 0, 3, NULL, NULL);
    write_part(dir, "m-00002-of-00003.gguf", 1, 3, "a", "b");
    write_part(dir, "m-00003-of-00003.gguf", 2, 3, NULL, "c");
    return dir;
}

static void test_any_part_opens_the_set(void **state)
{
    (void)state;
    char *dir = write_set();
    static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    for (size_t i = 0; i < 3; i++) {
        char *path = temp_dir_path(dir, names[i]);
        struct bitconv_gguf *g = NULL;
        struct bitconv_error err = {0};
        if (bitconv_gguf_open(path, &g, &err) != BITCONV_OK) fail_msg("%s", err.text);
        assert_int_equal(bitconv_gguf_n_shards(g), 3);
        assert_int_equal(bitconv_gguf_n_tensors(g), 3);
        assert_int_equal(bitconv_gguf_n_findings(g), 0);
        assert_non_null(bitconv_gguf_find_key(g, "general.architecture"));
        assert_int_equal(bitconv_gguf_dialect(g), BITCONV_DIALECT_BITNET);
        static const struct {
            const char *name;
            uint32_t shard;
            uint64_t size;
        } tensors[] = {{"a", 1, 32}, {"b", 1, 160}, {"c", 2, 160}};
        for (size_t k = 0; k < 3; k++) {
            const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(g, k);
            assert_string_equal(t->name, tensors[k].name);
            assert_int_equal(t->shard, tensors[k].shard);
            assert_int_equal(t->size, tensors[k].size);
            assert_int_equal(t->span, tensors[k].size);
            assert_ptr_equal(t, bitconv_gguf_find_tensor(g, tensors[k].name));
        }
        for (uint32_t k = 0; k < 3; k++) {
            char *part = temp_dir_path(dir, names[k]);
            assert_string_equal(bitconv_gguf_shard_path(g, k), part);
            free(part);
        }
        bitconv_gguf_close(g);
        free(path);
    }
    temp_dir_remove(dir);
}

/* Opens DIR/NAME, which must fail with a message that holds `text`; removes the folder. */
static void expect_refusal(char *dir, const char *name, enum bitconv_status wanted,
                           const char *text)
{
    char *path = temp_dir_path(dir, name);
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    const enum bitconv_status status = bitconv_gguf_open(path, &g, &err);
    if (status != wanted || strstr(err.text, text) == NULL)
        fail_msg("wanted '%s', got %s: %s", text, bitconv_status_name(status), err.text);
    assert_null(g);
    free(path);
    temp_dir_remove(dir);
}

static void test_missing_part(void **state)
{
    (void)state;
    char *dir = write_set();
    char *path = temp_dir_path(dir, "m-00002-of-00003.gguf");
    assert_int_equal(unlink(path), 0);
    free(path);
    expect_refusal(dir, "m-00003-of-00003.gguf", BITCONV_E_IO,
                   "m-00002-of-00003.gguf: missing: part 2 of 3");
}

static void test_wrong_parts(void **state)
{
    (void)state;
    char *dir = write_set();
    write_part(dir, "m-00003-of-00003.gguf", 2, 3, "a", NULL);
    expect_refusal(dir, "m-00001-of-00003.gguf", BITCONV_E_CORRUPT,
                   "m-00003-of-00003.gguf: tensor a occurs in ");
    dir = write_set();
    write_part(dir, "m-00003-of-00003.gguf", 1, 3, NULL, "c");
    expect_refusal(dir, "m-00001-of-00003.gguf", BITCONV_E_CORRUPT,
                   "m-00003-of-00003.gguf: its keys split.no and split.count do not say part 3");
    dir = write_set();
    write_part(dir, "m-00003-of-00003.gguf", 2, 4, NULL, "c");
    expect_refusal(dir, "m-00001-of-00003.gguf", BITCONV_E_CORRUPT, "do not say part 3 of 3");
    dir = write_set();
    temp_dir_puts(dir, "m-00003-of-00003.gguf",
                  "version https://git-lfs.github.com/spec/v1\n"
                  "oid sha256:0\nsize 1\n");
    expect_refusal(dir, "m-00001-of-00003.gguf", BITCONV_E_CORRUPT,
                   "m-00003-of-00003.gguf: not a GGUF file, but a Git LFS pointer");
}

static void test_renamed_part(void **state)
{
    (void)state;
    char *dir = write_set();
    write_part(dir, "model.gguf", 1, 3, "a", "b");
    expect_refusal(dir, "model.gguf", BITCONV_E_CORRUPT,
                   "it must be called NAME-00002-of-00003.gguf");
    dir = write_set();
    write_part(dir, "m-00001-of-00003.gguf", 1, 3, "a", "b");
    expect_refusal(dir, "m-00001-of-00003.gguf", BITCONV_E_CORRUPT, "this is part 2 of 3");
    dir = write_set();
    write_part(dir, "x.gguf", 3, 3, "a", "b");
    expect_refusal(dir, "x.gguf", BITCONV_E_CORRUPT, "split.no must be from 0");
}

/* Opens DIR/NAME and wants one finding with `text`; removes the folder. */
static void expect_finding(char *dir, const char *name, bool is_error, const char *text)
{
    char *path = temp_dir_path(dir, name);
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    if (bitconv_gguf_open(path, &g, &err) != BITCONV_OK) fail_msg("%s", err.text);
    assert_int_equal(bitconv_gguf_n_findings(g), 1);
    assert_int_equal(bitconv_gguf_finding_at(g, 0)->is_error, is_error);
    assert_non_null(strstr(bitconv_gguf_finding_at(g, 0)->text, text));
    bitconv_gguf_close(g);
    free(path);
    temp_dir_remove(dir);
}

static void test_findings(void **state)
{
    (void)state;
    char *dir = write_set();
    write_part(dir, "m-00003-of-00003.gguf", 2, 3, "d", "c");
    expect_finding(dir, "m-00001-of-00003.gguf", true,
                   "the parts hold 4 tensors, split.tensors.count says 3");
    dir = temp_dir_new();
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", "llama");
    write_file(dir, "m-00002-of-00003.gguf", &b);
    expect_finding(dir, "m-00002-of-00003.gguf", false,
                   "named as part 2 of 3, but has no key split.count");
}

static void test_unreadable(void **state)
{
    (void)state;
    expect_refusal(temp_dir_new(), "absent.gguf", BITCONV_E_IO, "absent.gguf: cannot be opened");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_part_opens_the_set),
        cmocka_unit_test(test_missing_part),
        cmocka_unit_test(test_wrong_parts),
        cmocka_unit_test(test_renamed_part),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
