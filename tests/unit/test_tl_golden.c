/* SPDX-License-Identifier: MIT
 * TL1 and TL2 against golden/packs/expect.json: what the reference packers make of generated
 * matrices, for every published kernel configuration; and the configuration files of the golden
 * checkpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/format.h"
#include "formats/tiling.h"
#include "quant/kernels.h"
#include "support/json_fields.h"
#include "support/trits.h"

static struct bc_json *expectations;
static char golden[1024];
static const struct bc_kernels *kernels;

static struct bc_pack_shape shape_of(const struct bc_json *entry)
{
    struct bc_pack_shape shape = {.slices = 1};
    shape.cols = json_number_of(entry, "K");
    shape.rows = json_number_of(entry, "M");
    shape.n = shape.cols * shape.rows;
    shape.tile[0] = (uint32_t)json_number_of(entry, "BM");
    shape.tile[1] = (uint32_t)json_number_of(entry, "BK");
    shape.tile[2] = (uint32_t)json_number_of(entry, "bm");
    return shape;
}

static enum bc_tiled_pack pack_of(const struct bc_json *entry)
{
    return strcmp(json_string_of(entry, "pack"), "tl1") == 0 ? BC_TILED_TL1 : BC_TILED_TL2;
}

static void check_reader(const struct bc_format *f, const struct bc_pack_shape *shape,
                         const uint8_t *packed, const int8_t *trits)
{
    const uint64_t step = shape->n < 4000000 ? 1 : 7; /* the large ones would take minutes */
    int8_t *row = malloc(shape->cols);
    assert_non_null(row);
    for (uint64_t r = 0; r < shape->rows; r += step) {
        f->trits_at(shape, packed, r * shape->cols, shape->cols, row);
        if (memcmp(row, trits + r * shape->cols, shape->cols) != 0)
            fail_msg("%s %" PRIu64 " x %" PRIu64 ": row %" PRIu64, f->name, shape->rows,
                     shape->cols, r);
    }
    free(row);
}

static void check_entry(const struct bc_json *entry)
{
    const struct bc_format *f = bc_format_find(json_string_of(entry, "pack"));
    const struct bc_pack_shape shape = shape_of(entry);
    const float scale = 0.5f;
    char why[400] = "", hex[65];
    assert_non_null(f);
    if (!f->check(&shape, why, sizeof why)) fail_msg("%s", why);
    assert_int_equal(f->size(&shape), json_number_of(entry, "runtime_nbytes"));
    if (bc_json_get(entry, "used_nbytes") != NULL)
        assert_int_equal(f->trit_bytes(&shape), json_number_of(entry, "used_nbytes"));

    int8_t *trits =
        trits_generate(json_string_of(entry, "generator"), json_number_of(entry, "seed"), shape.n);
    int8_t *back = malloc(shape.n);
    uint8_t *packed = malloc(f->size(&shape));
    assert_true(trits != NULL && back != NULL && packed != NULL);
    f->pack(kernels, &shape, trits, 0, shape.n, packed);
    f->put_scales(&shape, &scale, 1, packed);
    bc_sha256_hex(packed, json_number_of(entry, "packed_nbytes"), hex);
    if (strcmp(hex, json_string_of(entry, "packed_sha256")) != 0)
        fail_msg("%s %" PRIu64 " x %" PRIu64 ": packed bytes differ", f->name, shape.rows,
                 shape.cols);
    assert_true(f->unpack(kernels, &shape, packed, 0, shape.n, back));
    assert_memory_equal(back, trits, shape.n);
    check_reader(f, &shape, packed, trits);
    assert_true(f->get_scale(&shape, packed, 0) == scale);
    free(trits);
    free(back);
    free(packed);
}

static void test_entries(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_get(expectations, "entries");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e)) {
        if (bc_json_get(e, "error") != NULL) continue;
        check_entry(e);
        n++;
    }
    assert_true(n >= 120);
}

/* What the reference packer fails at is refused, with the number that is wrong. */
static void test_errors(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_get(expectations, "entries");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e)) {
        if (bc_json_get(e, "error") == NULL) continue;
        const struct bc_pack_shape shape = shape_of(e);
        char why[400] = "";
        assert_false(bc_format_find(json_string_of(e, "pack"))->check(&shape, why, sizeof why));
        assert_string_equal(why, "TL2: bm = 64, it must be 32");
        n++;
    }
    assert_int_equal(n, 1);
}

/* The small matrices' packed bytes are there as files, which only the independent reader reads. */
static void test_files(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_get(expectations, "entries");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e)) {
        if (bc_json_get(e, "file") == NULL) continue;
        char path[2048], hex[65];
        struct bc_file file;
        struct bitconv_error err = {0};
        snprintf(path, sizeof path, "%s/packs/%s", golden, json_string_of(e, "file"));
        if (bc_file_open(path, &file, &err) != BITCONV_OK) fail_msg("%s", err.text);
        bc_sha256_hex(file.data, (size_t)file.size, hex);
        if (strcmp(hex, json_string_of(e, "packed_sha256")) == 0) {
            const struct bc_pack_shape shape = shape_of(e);
            int8_t *trits =
                trits_generate(json_string_of(e, "generator"), json_number_of(e, "seed"), shape.n);
            assert_non_null(trits);
            check_reader(bc_format_find(json_string_of(e, "pack")), &shape, file.data, trits);
            free(trits);
            n++;
        }
        bc_file_close(&file);
    }
    assert_int_equal(n, 6);
}

/* Every shape of the published models is packed by default as the reference does; of two
 * configurations of a shape the generator's is the default. */
static void test_defaults(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_get(expectations, "entries");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e)) {
        const struct bc_pack_shape shape = shape_of(e);
        enum bc_tiling_source source;
        uint32_t tile[3];
        char why[400] = "";
        if (strncmp(json_string_of(e, "preset"), "small", 5) == 0) continue;
        assert_true(bc_tiling_choose(NULL, pack_of(e), shape.rows, shape.cols, tile, &source, why,
                                     sizeof why));
        assert_int_equal(source, BC_TILING_PUBLISHED);
        if (shape.rows == 4096 && pack_of(e) == BC_TILED_TL1 && shape.cols == 4096)
            assert_int_equal(tile[2], 64);
        else if (bc_json_get(e, "error") != NULL)
            assert_int_equal(tile[2], 32);
        else
            assert_memory_equal(tile, shape.tile, sizeof tile);
        n++;
    }
    assert_true(n >= 60);
}

static void check_config(const char *name, enum bc_tiled_pack pack)
{
    char path[2048];
    struct bc_tilings config;
    struct bitconv_error err = {0};
    snprintf(path, sizeof path, "%s/%s", golden, name);
    if (bc_tilings_load(path, &config, &err) != BITCONV_OK) fail_msg("%s", err.text);
    assert_int_equal(config.n, 4);
    for (size_t i = 0; i < config.n; i++) {
        const struct bc_tiling *t = &config.items[i];
        enum bc_tiling_source source;
        uint32_t tile[3];
        char why[400] = "";
        if (!bc_tiling_choose(&config, pack, t->rows, t->cols, tile, &source, why, sizeof why))
            fail_msg("%s: %s", name, why);
        assert_int_equal(source, BC_TILING_FILE);
        assert_memory_equal(tile, t->tile, sizeof tile);
        assert_int_equal(t->line, 1 + 7 * i);
    }
    bc_tilings_release(&config);
}

static void test_configurations(void **state)
{
    (void)state;
    check_config("bitnet-2b4t/kernel_config-tl1.ini", BC_TILED_TL1);
    check_config("bitnet-2b4t/kernel_config-tl2.ini", BC_TILED_TL2);
    check_config("bitnet-2b4t-bf16/kernel_config-tl1.ini", BC_TILED_TL1);
    check_config("llama-158/kernel_config-tl1.ini", BC_TILED_TL1);
    check_config("llama-158/kernel_config-tl2.ini", BC_TILED_TL2); /* K = 128 */
    check_config("llama-158-spm/kernel_config-tl1.ini", BC_TILED_TL1);
}

int main(void)
{
    const char *shared = getenv("BITCONV_SHARED");
    snprintf(golden, sizeof golden, "%s/golden",
             shared != NULL && *shared != '\0' ? shared : BITCONV_SOURCE_DIR "/../shared");
    char path[2048];
    snprintf(path, sizeof path, "%s/packs/expect.json", golden);
    if (bc_path_kind(path) != BC_PATH_FILE) {
        printf("skipped: no golden data at %s\n", path);
        return 77;
    }
    struct bitconv_error err = {0};
    if (bc_json_load(path, &expectations, &err) != BITCONV_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    kernels = bc_kernels_best();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_files),          cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_configurations),
    };
    const int failed = cmocka_run_group_tests_name("tl_golden", tests, NULL, NULL);
    bc_json_free(expectations);
    return failed;
}
