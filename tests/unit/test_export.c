/* SPDX-License-Identifier: MIT
 * Pieces of the export that the round trips of tests/cli/export.sh cannot show one by one: taking 1
 * off a norm, splittings written back, folders that appear whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/file.h"
#include "export/export_values.h"
#include "export/export_vocab.h"
#include "model/tokenizer_pre.h"
#include "support/rng.h"
#include "support/temp_dir.h"

/* ---- norms ---- */

static void assert_undone(float w)
{
    const float y = w + 1.0f;
    bool exact = false;
    const float back = bc_export_minus_one(y, &exact);
    const float sum = back + 1.0f;
    assert_true(exact);
    assert_int_equal(bc_f32_bits(sum), bc_f32_bits(y));
}

/* Whatever float32 the checkpoint held: the sum comes back bit for bit. */
static void test_minus_one_random(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 2000000; i++) {
        const float w = bc_f32_from_bits((uint32_t)rng_next(&seed));
        if (isfinite(w) && isfinite(w + 1.0f)) assert_undone(w);
    }
}

/* All float16 and bfloat16 weights, and the places where exactness is at stake. */
static void test_minus_one_narrow(void **state)
{
    (void)state;
    static const float corners[] = {-1.0f,       -1.0f + 0x1p-24f, -1.0f - 0x1p-23f, -0.5f,
                                    -2.0f,       0x1p-24f,         0x1p-25f,         16777216.0f,
                                    16777218.0f, 33554432.0f,      -16777216.0f,     -16777218.0f};
    for (uint32_t h = 0; h < 65536; h++) {
        const float f16 = bc_f16_to_f32((uint16_t)h), bf16 = bc_bf16_to_f32((uint16_t)h);
        if (isfinite(f16)) assert_undone(f16);
        if (isfinite(bf16) && isfinite(bf16 + 1.0f)) assert_undone(bf16);
    }
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        assert_undone(corners[i]);
}

/* A sum that no float32 gives is said to be none, and the nearest is returned. */
static void test_minus_one_unreachable(void **state)
{
    (void)state;
    bool exact = true;
    const float y = 0x1.000002p-10f; /* finer than the last place of 1/2 */
    const float w = bc_export_minus_one(y, &exact);
    assert_false(exact);
    assert_true(fabsf((w + 1.0f) - y) <= 0x1p-24f);
}

/* ---- splittings ---- */

static void test_every_splitting_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < bc_pre_n_rows; i++) {
        struct bc_buf text = {0}, signature = {0};
        struct bc_jw w = {.buf = &text};
        struct bc_json *json = NULL;
        bool ignore_merges = false;
        bc_jw_begin_object(&w);
        assert_true(bc_export_pre(&w, bc_pre_rows[i].name, &ignore_merges));
        bc_jw_end_object(&w);
        assert_int_equal(bc_json_parse(bc_buf_str(&text), text.size, "test", &json, NULL),
                         BITCONV_OK);
        bc_pre_signature(json, &signature);
        /* the first row of a name is written */
        size_t first = 0;
        while (strcmp(bc_pre_rows[first].name, bc_pre_rows[i].name) != 0)
            first++;
        assert_string_equal(bc_buf_str(&signature), bc_pre_rows[first].signature);
        assert_int_equal(ignore_merges, bc_pre_rows[first].ignore_merges == 1);
        bc_json_free(json);
        bc_buf_release(&text);
        bc_buf_release(&signature);
    }
}

static void test_unknown_splitting(void **state)
{
    (void)state;
    struct bc_buf text = {0};
    struct bc_jw w = {.buf = &text};
    bool ignore_merges;
    assert_false(bc_export_pre(&w, "no-such-name", &ignore_merges));
    assert_false(bc_export_pre(&w, NULL, &ignore_merges));
    bc_buf_release(&text);
}

/* ---- merges from scores ---- */

static void add_token(struct bc_export_vocab *v, const char *text, float score)
{
    const struct bc_export_token t = {
        .text = text, .len = (uint32_t)strlen(text), .score = score, .type = BC_TOKEN_NORMAL};
    v->tokens[v->n] = t;
    assert_int_equal(bc_map_put(&v->by_text, text, t.len, v->n, NULL), BC_MAP_NEW);
    v->n++;
}

static struct bc_export_vocab small_vocab(void)
{
    static const char *const singles[] = {"a", "b", "c"};
    struct bc_export_vocab v = {.tokens = bc_alloc_array(16, sizeof *v.tokens)};
    assert_non_null(v.tokens);
    for (size_t i = 0; i < 3; i++)
        add_token(&v, singles[i], 0);
    return v;
}

static void assert_merge(const struct bc_export_vocab *v, size_t i, const char *left,
                         const char *right)
{
    assert_true(i < v->n_merges);
    assert_string_equal(v->tokens[v->merges[i].left].text, left);
    assert_string_equal(v->tokens[v->merges[i].right].text, right);
}

/* One merge a token: of two ways to cut "abc" the one that the merges before lead to. */
static void test_merges_of_a_trained_list(void **state)
{
    (void)state;
    struct bc_export_vocab v = small_vocab();
    bool ok = false;
    add_token(&v, "bc", 0);   /* rank 0 */
    add_token(&v, "ab", -1);  /* rank 1 */
    add_token(&v, "abc", -2); /* a + bc: "bc" is joined first */
    assert_int_equal(bc_export_derive_merges(&v, true, &ok, NULL), BITCONV_OK);
    assert_true(ok);
    assert_int_equal(v.n_merges, 3);
    assert_merge(&v, 0, "b", "c");
    assert_merge(&v, 1, "a", "b");
    assert_merge(&v, 2, "a", "bc");
    bc_export_vocab_release(&v);
}

/* A gap behind a token holds its other merges; one that nothing can fill is no rank. */
static void test_merges_fill_gaps(void **state)
{
    (void)state;
    struct bc_export_vocab v = small_vocab();
    bool ok = false;
    add_token(&v, "bc", 0);
    add_token(&v, "ab", -1);
    add_token(&v, "abc", -2);
    add_token(&v, "abca", -4); /* abc has two merges, 2 and 3 */
    assert_int_equal(bc_export_derive_merges(&v, true, &ok, NULL), BITCONV_OK);
    assert_true(ok);
    assert_int_equal(v.n_merges, 5);
    assert_merge(&v, 2, "a", "bc");
    assert_merge(&v, 3, "ab", "c");
    assert_merge(&v, 4, "abc", "a");
    v.tokens[v.n - 1].score = -9;
    assert_int_equal(bc_export_derive_merges(&v, true, &ok, NULL), BITCONV_OK);
    assert_false(ok);
    bc_export_vocab_release(&v);
}

/* ---- folders ---- */

static bool any_name(const char *name)
{
    return strcmp(name, "foreign") != 0;
}

static struct bc_out_folder *open_folder(const char *path, bool force, enum bitconv_status wanted)
{
    const struct bc_out_folder_options options = {.force = force, .replaceable = any_name};
    struct bc_out_folder *folder = NULL;
    struct bitconv_error err = {0};
    assert_int_equal(bc_out_folder_open(path, &options, &folder, &err), wanted);
    assert_true((folder != NULL) == (wanted == BITCONV_OK));
    return folder;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char *path = bc_path_join(dir, name);
    assert_int_equal(bc_file_write(path, text, strlen(text), true, NULL), BITCONV_OK);
    bc_free(path);
}

static size_t count_entries(const char *dir)
{
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(bc_dir_list(dir, &names, &n, NULL), BITCONV_OK);
    for (size_t i = 0; i < n; i++)
        bc_free(names[i]);
    bc_free(names);
    return n;
}

static void test_folder_appears_whole(void **state)
{
    const char *dir = *state;
    char *path = bc_path_join(dir, "new");
    struct bc_out_folder *folder = open_folder(path, false, BITCONV_OK);
    put_file(bc_out_folder_path(folder), "a", "1");
    assert_int_equal(bc_out_folder_mkdir(folder, "inner", NULL), BITCONV_OK);
    put_file(bc_out_folder_path(folder), "inner/b", "2");
    assert_int_equal(bc_path_kind(path), BC_PATH_NONE);
    assert_int_equal(bc_out_folder_commit(folder, NULL), BITCONV_OK);
    assert_int_equal(count_entries(path), 2);
    assert_int_equal(count_entries(dir), 1);
    /* not again without force; with it the old content goes */
    (void)open_folder(path, false, BITCONV_E_ARG);
    folder = open_folder(path, true, BITCONV_OK);
    put_file(bc_out_folder_path(folder), "c", "3");
    assert_int_equal(bc_out_folder_commit(folder, NULL), BITCONV_OK);
    assert_int_equal(count_entries(path), 1);
    assert_int_equal(count_entries(dir), 1);
    /* what is not part of it stays, and so does the folder */
    put_file(path, "foreign", "4");
    (void)open_folder(path, true, BITCONV_E_ARG);
    assert_int_equal(count_entries(path), 2);
    bc_free(path);
}

static void test_folder_abort_leaves_nothing(void **state)
{
    const char *dir = *state;
    char *path = bc_path_join(dir, "dropped");
    const size_t before = count_entries(dir);
    struct bc_out_folder *folder = open_folder(path, false, BITCONV_OK);
    put_file(bc_out_folder_path(folder), "a", "1");
    assert_int_equal(bc_out_folder_mkdir(folder, "inner", NULL), BITCONV_OK);
    put_file(bc_out_folder_path(folder), "inner/b", "2");
    assert_int_equal(count_entries(dir), before + 1);
    bc_out_folder_abort(folder);
    bc_out_folder_abort(NULL);
    assert_int_equal(count_entries(dir), before);
    bc_free(path);
}

static void test_folder_names(void **state)
{
    const char *dir = *state;
    (void)open_folder("", false, BITCONV_E_ARG);
    (void)open_folder(".", false, BITCONV_E_ARG);
    (void)open_folder("/", false, BITCONV_E_ARG);
    char *path = bc_path_join(dir, "absent/new");
    (void)open_folder(path, false, BITCONV_E_IO);
    bc_free(path);
}

static int make_dir(void **state)
{
    *state = temp_dir_new();
    return 0;
}

static int remove_dir(void **state)
{
    temp_dir_remove(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minus_one_random),
        cmocka_unit_test(test_minus_one_narrow),
        cmocka_unit_test(test_minus_one_unreachable),
        cmocka_unit_test(test_every_splitting_comes_back),
        cmocka_unit_test(test_unknown_splitting),
        cmocka_unit_test(test_merges_of_a_trained_list),
        cmocka_unit_test(test_merges_fill_gaps),
        cmocka_unit_test_setup_teardown(test_folder_appears_whole, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_folder_abort_leaves_nothing, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_folder_names, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
