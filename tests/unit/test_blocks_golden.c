/* SPDX-License-Identifier: MIT
 * Block types against golden/dequant (decoding) and golden/stock/packs (quantizing and decoding):
 * results of the Python package gguf and of mainline ggml. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "bitconv/inspect.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "formats/q8_0.h"
#include "io/gguf_types.h"
#include "support/json_fields.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

static char golden[1024];

static struct bc_json *json_of(const char *name)
{
    char path[2048];
    struct bc_json *json = NULL;
    struct bitconv_error err = {0};
    snprintf(path, sizeof path, "%s/%s", golden, name);
    if (bc_json_load(path, &json, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return json;
}

/* A file of the golden data, inflated where it is compressed. */
static struct bc_buf bytes_of(const char *folder, const char *name)
{
    char path[2048];
    struct bc_buf buf = {0};
    struct bitconv_error err = {0};
    snprintf(path, sizeof path, "%s/%s/%s", golden, folder, name);
    if (bc_path_kind(path) != BC_PATH_FILE)
        snprintf(path, sizeof path, "%s/%s/%s.gz", golden, folder, name);
    if (bc_text_load(path, &buf, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return buf;
}

static void check_decoder(const struct bc_json *entry, const struct bc_buf *blocks,
                          const struct bc_buf *expected)
{
    const char *name = bc_json_key(entry);
    const struct bc_dequant *d = bc_dequant_find(name);
    const uint64_t n_blocks = json_number_of(entry, "blocks"),
                   n = json_number_of(entry, "f32_count");
    const uint64_t at = json_number_of(entry, "data_offset"),
                   f32_at = json_number_of(entry, "f32_offset");
    if (d == NULL) fail_msg("no decoder for %s", name);
    assert_int_equal(d->block, json_number_of(entry, "block_size"));
    assert_int_equal(d->block_size, json_number_of(entry, "type_size"));
    assert_int_equal(n_blocks * d->block, n);
    assert_true(at + n_blocks * d->block_size <= blocks->size && f32_at + 4 * n <= expected->size);
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    d->rows(blocks->data + at, n_blocks, values);
    for (uint64_t i = 0; i < n; i++) {
        const float wanted = bc_get_f32(expected->data + f32_at + 4 * i);
        if (bc_f32_bits(values[i]) != bc_f32_bits(wanted) && !(isnan(values[i]) && isnan(wanted)))
            fail_msg("%s: value %llu is %.9g, expected %.9g", name, (unsigned long long)i,
                     (double)values[i], (double)wanted);
    }
    free(values);
}

static void test_decoders(void **state)
{
    (void)state;
    struct bc_json *index = json_of("dequant/index.json");
    struct bc_buf blocks = bytes_of("dequant", "blocks.bin");
    struct bc_buf expected = bytes_of("dequant", "expected.f32");
    const struct bc_json *types = bc_json_get(index, "types");
    unsigned n = 0;
    for (const struct bc_json *e = bc_json_first(types); e != NULL; e = bc_json_next(e), n++)
        check_decoder(e, &blocks, &expected);
    assert_true(n >= 27);
    bc_buf_release(&blocks);
    bc_buf_release(&expected);
    bc_json_free(index);
}

/* The same blocks as the tensor of a GGUF, through inspect. */
static void check_inspected(const char *dir, const struct bc_json *entry,
                            const struct bc_buf *blocks, const struct bc_buf *expected)
{
    const char *name = bc_json_key(entry);
    const struct bc_type *type = bc_type_by_name(name, BITCONV_DIALECT_UPSTREAM);
    const uint64_t n = json_number_of(entry, "f32_count");
    const uint64_t at = json_number_of(entry, "data_offset"),
                   f32_at = json_number_of(entry, "f32_offset");
    const struct bitconv_inspect_options options = {.tensor = "w", .dialect = "upstream"};
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    struct gguf_builder b = {0};
    assert_non_null(type);
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_data(&b, "w", type->id, 2,
                      (const uint64_t[]){type->block, json_number_of(entry, "blocks")},
                      blocks->data + at, json_number_of(entry, "blocks") * type->block_size);
    char *path = gguf_builder_write(&b, dir, "t.gguf");
    if (bitconv_inspect(path, &options, NULL, &it, &err) != BITCONV_OK) fail_msg("%s", err.text);
    assert_int_equal(it->values->n, n);
    for (uint64_t i = 0; i < n; i++) {
        const double wanted = (double)bc_get_f32(expected->data + f32_at + 4 * i);
        const double found = it->values->reals[i];
        if (found != wanted && !(isnan(found) && isnan(wanted)))
            fail_msg("%s: value %llu is %.9g, expected %.9g", name, (unsigned long long)i, found,
                     wanted);
    }
    bitconv_inspection_free(it);
    free(path);
}

static void test_inspected(void **state)
{
    (void)state;
    struct bc_json *index = json_of("dequant/index.json");
    struct bc_buf blocks = bytes_of("dequant", "blocks.bin");
    struct bc_buf expected = bytes_of("dequant", "expected.f32");
    const struct bc_json *types = bc_json_get(index, "types");
    char *dir = temp_dir_new();
    for (const struct bc_json *e = bc_json_first(types); e != NULL; e = bc_json_next(e))
        check_inspected(dir, e, &blocks, &expected);
    temp_dir_remove(dir);
    bc_buf_release(&blocks);
    bc_buf_release(&expected);
    bc_json_free(index);
}

/* ---- golden/stock/packs ---- */

static void quantize(const char *pack, const struct bc_kernels *k, const float *x,
                     uint64_t n_blocks, uint8_t *dst)
{
    if (strcmp(pack, "q8_0") == 0)
        bc_q8_0_from_floats(k, x, n_blocks, dst);
    else
        bc_block_from_floats(bc_block_pack_find(pack), k, x, n_blocks, dst);
}

static const char *type_of(const char *pack)
{
    return strcmp(pack, "q8_0") == 0 ? "Q8_0" : bc_block_pack_find(pack)->format->type_name;
}

static void check_sha256(const uint8_t *data, size_t size, const struct bc_json *entry,
                         const char *key, const char *what)
{
    char hex[65];
    bc_sha256_hex(data, size, hex);
    if (strcmp(hex, bc_json_string(bc_json_get(entry, key))) != 0)
        fail_msg("%s: %s is %s", what, key, hex);
}

static void check_decoded(const struct bc_dequant *d, const uint8_t *packed, uint64_t n_blocks,
                          const struct bc_json *entry, const char *what)
{
    const uint64_t n = n_blocks * d->block;
    float *values = malloc(n * sizeof *values);
    uint8_t *bytes = malloc(4 * n);
    assert_true(values != NULL && bytes != NULL);
    d->rows(packed, n_blocks, values);
    bool has_nan = false;
    for (uint64_t i = 0; i < n; i++) {
        has_nan = has_nan || isnan(values[i]);
        bc_put_f32(bytes + 4 * i, values[i]);
    }
    /* A digest over NaNs says nothing: which NaN comes out of 0 times infinity is not defined. */
    if (!has_nan) check_sha256(bytes, 4 * n, entry, "dequant_sha256", what);
    free(values);
    free(bytes);
}

static void check_pack(const char *name, const struct bc_json *entry, const float *x, uint64_t n)
{
    char what[256];
    const char *pack = bc_json_key(entry);
    const struct bc_dequant *d = bc_dequant_find(type_of(pack));
    snprintf(what, sizeof what, "%s.%s.bin", name, pack);
    struct bc_buf expected = bytes_of("stock/packs", what);
    const uint64_t n_blocks = n / d->block;
    assert_int_equal(expected.size, n_blocks * d->block_size);
    assert_int_equal(expected.size, json_number_of(entry, "nbytes"));
    check_sha256(expected.data, expected.size, entry, "sha256", what);
    uint8_t *packed = malloc(expected.size);
    assert_non_null(packed);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        memset(packed, 0xee, expected.size);
        quantize(pack, bc_kernels_at(i), x, n_blocks, packed);
        for (size_t b = 0; b < expected.size; b++) {
            if (packed[b] != expected.data[b])
                fail_msg("%s with %s: byte %zu is %02x, expected %02x", what,
                         bc_kernels_at(i)->name, b, packed[b], expected.data[b]);
        }
    }
    check_decoded(d, packed, n_blocks, entry, what);
    free(packed);
    bc_buf_release(&expected);
}

/* The golden blocks through the independent readers: unpacking gives the same trits, and packing
 * these, with the scales copied, the same bytes. */
static void check_trits(const char *name, const struct bc_block_pack *bp,
                        const struct bc_pack_shape *shape)
{
    char file[256];
    const struct bc_format *f = bp->format;
    snprintf(file, sizeof file, "%s.%s.bin", name, f->name);
    struct bc_buf packed = bytes_of("stock/packs", file);
    int8_t *trits = malloc(shape->n);
    uint8_t *again = malloc(packed.size);
    assert_true(trits != NULL && again != NULL);
    assert_true(f->unpack(bc_kernels_best(), shape, packed.data, 0, shape->n, trits));
    for (uint64_t i = 0; i < shape->n; i++)
        assert_int_equal(f->trit_at(shape, packed.data, 0, i / shape->cols, i % shape->cols),
                         trits[i]);
    f->pack(bc_kernels_best(), shape, trits, 0, shape->n, again);
    bc_block_copy_scales(bp, packed.data, shape->n / bp->block, again);
    assert_memory_equal(again, packed.data, packed.size);
    free(trits);
    free(again);
    bc_buf_release(&packed);
}

static void check_case(const struct bc_json *entry)
{
    const char *name = bc_json_key(entry);
    const struct bc_json *rows = bc_json_first(bc_json_get(entry, "shape_rows_cols"));
    uint64_t n_rows = 0, n_cols = 0;
    assert_true(bc_json_u64(rows, &n_rows) && bc_json_u64(bc_json_next(rows), &n_cols));
    const struct bc_pack_shape shape = {
        .cols = n_cols, .rows = n_rows, .slices = 1, .n = n_rows * n_cols};
    char file[256];
    snprintf(file, sizeof file, "%s.in.f32", name);
    struct bc_buf input = bytes_of("stock/packs", file);
    assert_int_equal(input.size, 4 * shape.n);
    float *x = malloc(shape.n * sizeof *x);
    assert_non_null(x);
    for (uint64_t i = 0; i < shape.n; i++)
        x[i] = bc_get_f32(input.data + 4 * i);
    unsigned n_packs = 0;
    const struct bc_json *packs = bc_json_get(entry, "packs");
    for (const struct bc_json *p = bc_json_first(packs); p != NULL; p = bc_json_next(p), n_packs++)
        check_pack(name, p, x, shape.n);
    assert_int_equal(n_packs, 5);
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++)
        check_trits(name, bc_block_pack_at(i), &shape);
    free(x);
    bc_buf_release(&input);
}

static void test_stock_packs(void **state)
{
    (void)state;
    struct bc_json *packs = json_of("stock/packs/packs.json");
    const struct bc_json *cases = bc_json_get(packs, "cases");
    unsigned n = 0;
    for (const struct bc_json *e = bc_json_first(cases); e != NULL; e = bc_json_next(e), n++)
        check_case(e);
    assert_int_equal(n, 13);
    bc_json_free(packs);
}

/* The tables of packs.json: the byte of each number, the five trits of each byte. */
static void test_tq1_0_tables(void **state)
{
    (void)state;
    struct bc_json *packs = json_of("stock/packs/packs.json");
    const struct bc_format *f = bc_block_pack_find("tq1_0")->format;
    const struct bc_pack_shape shape = {.cols = 256, .rows = 1, .slices = 1, .n = 256};
    unsigned v = 0, byte = 0;
    uint64_t wanted = 0;
    const struct bc_json *list = bc_json_get(packs, "tq1_0_byte_of_code");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e), v++) {
        int8_t trits[256] = {0};
        uint8_t block[54];
        unsigned rest = v;
        for (unsigned place = 5; place-- > 0; rest /= 3)
            trits[32 * place + 7] = (int8_t)((int)(rest % 3) - 1);
        f->pack(bc_kernels_best(), &shape, trits, 0, 256, block);
        assert_true(bc_json_u64(e, &wanted));
        assert_int_equal(block[7], wanted);
    }
    assert_int_equal(v, 243);
    list = bc_json_get(packs, "tq1_0_trits_of_byte");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e), byte++) {
        uint8_t block[54] = {0};
        block[7] = (uint8_t)byte;
        uint64_t place = 0;
        int64_t trit = 0;
        for (const struct bc_json *t = bc_json_first(e); t != NULL; t = bc_json_next(t), place++) {
            assert_true(bc_json_i64(t, &trit));
            assert_int_equal(f->trit_at(&shape, block, 0, 0, 32 * place + 7), trit);
        }
        assert_int_equal(place, 5);
    }
    assert_int_equal(byte, 256);
    bc_json_free(packs);
}

int main(void)
{
    const char *shared = getenv("BITCONV_SHARED");
    snprintf(golden, sizeof golden, "%s/golden",
             shared != NULL && *shared != '\0' ? shared : BITCONV_SOURCE_DIR "/../shared");
    char path[2048];
    snprintf(path, sizeof path, "%s/dequant/index.json", golden);
    if (bc_path_kind(path) != BC_PATH_FILE) {
        printf("skipped: no golden data at %s\n", path);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoders),
        cmocka_unit_test(test_inspected),
        cmocka_unit_test(test_stock_packs),
        cmocka_unit_test(test_tq1_0_tables),
    };
    return cmocka_run_group_tests_name("blocks_golden", tests, NULL, NULL);
}
