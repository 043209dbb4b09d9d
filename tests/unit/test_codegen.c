/* SPDX-License-Identifier: MIT
 * bitconv_codegen as a library call: what it reports, which status a refusal has, that its texts
 * depend on the arguments alone. What the texts say is tested by compiling and running them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "bitconv/bitconv.h"
#include "formats/tiling.h"
#include "support/temp_dir.h"

static const struct bitconv_codegen_shape shapes[] = {{3200, 8640}, {64, 512}, {3200, 8640}};

static void count_message(void *user, enum bitconv_severity severity, const char *text)
{
    size_t *counts = user;
    assert_true(strlen(text) > 0);
    counts[severity]++;
}

/* The status of a call that must fail, and write nothing. */
static enum bitconv_status refused(struct bitconv_codegen_options options, const char *dir,
                                   size_t counts[3])
{
    const struct bitconv_sink sink = {.message = count_message, .user = counts};
    struct bitconv_codegen_result *result = NULL;
    struct bitconv_error err = {0};
    char **names;
    size_t n;
    options.dir = dir;
    const enum bitconv_status status = bitconv_codegen(&options, &sink, &result, &err);
    assert_int_not_equal(status, BITCONV_OK);
    assert_int_equal(status, err.status);
    assert_null(result);
    assert_int_equal(bitconv_codegen(&options, NULL, &result, NULL), status); /* no one listens */
    assert_int_equal(bc_dir_list(dir, &names, &n, NULL), BITCONV_OK);
    assert_int_equal(n, 0);
    bc_free((void *)names);
    return status;
}

static void test_refusals(void **state)
{
    static const uint32_t two_tiles[3][3] = {{160, 96, 32}, {64, 96, 32}, {320, 96, 32}};
    static const uint32_t zero[3][3] = {{160, 96, 32}, {0, 96, 32}, {160, 96, 32}};
    static const struct bitconv_codegen_shape odd[] = {{33, 512}, {64, 512}, {64, 100}, {0, 64}};
    size_t counts[3] = {0};
    char *dir = temp_dir_new();
    (void)state;
    struct bitconv_codegen_options o = {0};
    assert_int_equal(refused(o, dir, counts), BITCONV_E_ARG); /* nothing to do */
    o.shapes = shapes;
    o.n_shapes = 3;
    o.pack = "TL1";
    assert_int_equal(refused(o, dir, counts), BITCONV_E_ARG);
    o.pack = "tl2";
    o.tiles = two_tiles;
    o.n_tiles = 2;
    assert_int_equal(refused(o, dir, counts), BITCONV_E_ARG); /* one is missing */
    o.n_tiles = 3;
    assert_int_equal(refused(o, dir, counts), BITCONV_E_ARG); /* two for one shape */
    o.tiles = zero;
    assert_int_equal(refused(o, dir, counts), BITCONV_E_ARG);
    assert_int_equal(counts[BITCONV_FINDING], 0);
    o = (struct bitconv_codegen_options){.shapes = odd, .n_shapes = 4};
    assert_int_equal(refused(o, dir, counts), BITCONV_E_UNSUPPORTED);
    assert_int_equal(counts[BITCONV_FINDING], 5); /* M = 33 and 0 in both packs, K = 100 in TL2 */
    o = (struct bitconv_codegen_options){.model = "/nowhere/at/all"};
    assert_int_equal(refused(o, dir, counts), BITCONV_E_IO);
    temp_dir_remove(dir);
}

static void test_no_more_shapes_than_models_have(void **state)
{
    struct bitconv_codegen_shape *many = calloc(1001, sizeof *many);
    size_t counts[3] = {0};
    char *dir = temp_dir_new();
    (void)state;
    assert_non_null(many);
    for (size_t i = 0; i < 1001; i++)
        many[i] = (struct bitconv_codegen_shape){32 * (i + 1), 256};
    const struct bitconv_codegen_options o = {.shapes = many, .n_shapes = 1001};
    assert_int_equal(refused(o, dir, counts), BITCONV_E_LIMIT);
    free(many);
    temp_dir_remove(dir);
}

static void check_kernel(const struct bitconv_codegen_kernel *k, const char *pack, uint64_t rows,
                         uint32_t bm_rows, uint32_t bk, uint32_t bm, const char *source)
{
    assert_string_equal(k->pack, pack);
    assert_int_equal(k->rows, rows);
    assert_int_equal(k->tile[0], bm_rows);
    assert_int_equal(k->tile[1], bk);
    assert_int_equal(k->tile[2], bm);
    assert_string_equal(k->source, source);
    assert_null(k->example);
}

/* Runs into a folder of its own and returns that. */
static char *run(struct bitconv_codegen_options options)
{
    struct bitconv_codegen_result *result = NULL;
    struct bitconv_error err = {0};
    char *dir = temp_dir_new();
    options.dir = dir;
    if (bitconv_codegen(&options, NULL, &result, &err) != BITCONV_OK) fail_msg("%s", err.text);
    assert_int_equal(result->n_kernels, 4);
    check_kernel(&result->kernels[0], "tl1", 3200, 160, 64, 32, "published");
    check_kernel(&result->kernels[1], "tl1", 64, 64, 256, 64, "largest");
    check_kernel(&result->kernels[2], "tl2", 3200, 160, 96, 32, "published");
    assert_int_equal(result->kernels[1].size, 64 * 512 / 4 + 32);
    assert_int_equal(result->n_files, 3);
    bitconv_codegen_free(result);
    bitconv_codegen_free(NULL);
    return dir;
}

static void same_file(const char *a, const char *b, const char *name)
{
    struct bc_file x, y;
    char *path_a = temp_dir_path(a, name), *path_b = temp_dir_path(b, name);
    assert_int_equal(bc_file_open(path_a, &x, NULL), BITCONV_OK);
    assert_int_equal(bc_file_open(path_b, &y, NULL), BITCONV_OK);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    bc_file_close(&x);
    bc_file_close(&y);
    free(path_a);
    free(path_b);
}

static void test_same_arguments_same_bytes(void **state)
{
    struct bc_tilings config;
    struct bitconv_error err = {0};
    (void)state;
    char *a = run((struct bitconv_codegen_options){.shapes = shapes, .n_shapes = 3});
    char *b = run((struct bitconv_codegen_options){.shapes = shapes, .n_shapes = 2});
    char *ini = temp_dir_path(a, "kernel_config-tl2.ini");
    same_file(a, b, "kernel_config-tl1.ini"); /* a shape that comes twice counts once */
    same_file(a, b, "kernel_config-tl2.ini");
    same_file(a, b, "bitconv_tl_kernels.h");
    if (bc_tilings_load(ini, &config, &err) != BITCONV_OK) fail_msg("%s", err.text);
    assert_int_equal(config.n, 2);
    assert_int_equal(config.items[1].cols, 512);
    bc_tilings_release(&config);
    free(ini);
    temp_dir_remove(a);
    temp_dir_remove(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_more_shapes_than_models_have),
        cmocka_unit_test(test_same_arguments_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
