/* SPDX-License-Identifier: MIT
 * I2_S and absmean against golden/packs/expect.json: what the reference packer makes of generated
 * matrices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/format.h"
#include "quant/quantize.h"
#include "support/json_fields.h"
#include "support/rng.h"
#include "support/trits.h"

static struct bc_json *expectations;
static char folder[1024];

static struct bc_pack_shape shape_of(const struct bc_json *entry)
{
    struct bc_pack_shape shape = {.slices = 1};
    shape.cols = json_number_of(entry, "K");
    shape.rows = json_number_of(entry, "M");
    shape.n = shape.cols * shape.rows;
    return shape;
}

static int8_t *generate(const struct bc_json *entry, uint64_t n)
{
    int8_t *trits =
        trits_generate(json_string_of(entry, "generator"), json_number_of(entry, "seed"), n);
    assert_non_null(trits);
    return trits;
}

static void check_sha256(const struct bc_json *entry, const char *key, const uint8_t *data,
                         size_t size)
{
    char hex[65];
    bc_sha256_hex(data, size, hex);
    if (strcmp(hex, json_string_of(entry, key)) != 0)
        fail_msg("%" PRIu64 " x %" PRIu64 ": %s is %s, expected %s", json_number_of(entry, "M"),
                 json_number_of(entry, "K"), key, hex, json_string_of(entry, key));
}

static void check_entry(const struct bc_json *entry)
{
    const struct bc_format *format = bc_format_find("i2_s");
    const struct bc_pack_shape shape = shape_of(entry);
    double scale = 0.0;
    assert_true(bc_json_f64(bc_json_get(entry, "scale"), &scale));
    assert_int_equal(format->size(&shape), json_number_of(entry, "nbytes"));

    int8_t *trits = generate(entry, shape.n);
    uint8_t *packed = malloc(format->size(&shape));
    assert_non_null(packed);
    const float scale_f32 = (float)scale;
    format->pack(bc_kernels_best(), &shape, trits, 0, shape.n, packed);
    format->put_scales(&shape, &scale_f32, 1, packed);
    check_sha256(entry, "sha256", packed, format->size(&shape));
    free(trits);
    free(packed);
}

static void test_i2_s_entries(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_get(expectations, "i2_s");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e), n++)
        check_entry(e);
    assert_true(n >= 80);
}

/* All entries of its shape name one file, which holds the bytes of one of them: these are read with
 * the independent reader. */
static const struct bc_json *entry_of_file(const struct bc_file *file)
{
    char hex[65];
    bc_sha256_hex(file->data, (size_t)file->size, hex);
    const struct bc_json *e = bc_json_first(bc_json_get(expectations, "i2_s"));
    while (e != NULL && strcmp(json_string_of(e, "sha256"), hex) != 0)
        e = bc_json_next(e);
    return e;
}

static void test_i2_s_file(void **state)
{
    (void)state;
    char path[2048];
    struct bc_file file;
    struct bitconv_error err = {0};
    snprintf(path, sizeof path, "%s/small-i2_s-64x64.bin", folder);
    if (bc_file_open(path, &file, &err) != BITCONV_OK) fail_msg("%s", err.text);
    const struct bc_json *e = entry_of_file(&file);
    assert_non_null(e);

    const struct bc_format *format = bc_format_find("i2_s");
    const struct bc_pack_shape shape = shape_of(e);
    int8_t *trits = generate(e, shape.n);
    assert_int_equal(file.size, format->size(&shape));
    for (uint64_t i = 0; i < shape.n; i++)
        assert_int_equal(format->trit_at(&shape, file.data, 0, i / shape.cols, i % shape.cols),
                         trits[i]);
    assert_true(format->get_scale(&shape, file.data, 0) == 0.5f);
    free(trits);
    bc_file_close(&file);
}

/* What the reference cannot pack is a misfit here; what it can pack is none. */
static void test_odd_sizes(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_get(expectations, "i2_s_odd_sizes");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e), n++) {
        const struct bc_pack_shape shape = shape_of(e);
        char why[256];
        const bool fits = bc_format_find("i2_s")->check(&shape, why, sizeof why);
        assert_int_equal(fits, bc_json_get(e, "error") == NULL);
        if (fits)
            assert_int_equal(bc_format_find("i2_s")->size(&shape), json_number_of(e, "nbytes"));
    }
    assert_true(n > 0);
}

/* The generators of "float_inputs": v in [-1, 1) from the upper bits of z. */
static float float_of(const char *how, uint64_t z, uint64_t i)
{
    static const double ties[8] = {.5, 1.5, 1, 1, .5, 1.5, 0, 2};
    const double v = ((double)(z >> 40) - 0x1p23) / 0x1p23;
    const bool odd = (z & 1) != 0;
    if (strcmp(how, "uniform") == 0) return (float)v;
    if (strcmp(how, "bf16grid") == 0) return (float)(rint(v * 256) / 256 * 0.0625);
    if (strcmp(how, "ties") == 0) return (float)(ties[i % 8] / 32 * (odd ? 1 : -1));
    if (strcmp(how, "negzero") == 0) return odd ? -0.0f : 0.0f;
    if (strcmp(how, "tiny") == 0) return (float)(v * 1e-6);
    if (strcmp(how, "hfscaled") == 0) return (float)((int)(z % 3) - 1) * 0.0371234f;
    if (strcmp(how, "zero") != 0) fail_msg("unknown generator %s", how);
    return 0.0f;
}

static uint8_t *floats_new(const struct bc_json *entry, uint64_t n)
{
    uint8_t *data = malloc(4 * n);
    uint64_t rng = json_number_of(entry, "seed");
    assert_non_null(data);
    for (uint64_t i = 0; i < n; i++)
        bc_put_f32(data + 4 * i, float_of(json_string_of(entry, "how"), rng_next(&rng), i));
    return data;
}

static void check_float_entry(const struct bc_json *entry)
{
    const struct bc_kernels *k = bc_kernels_best();
    const struct bc_format *format = bc_format_find("i2_s");
    const struct bc_json *expected = bc_json_get(entry, "embedding");
    const struct bc_pack_shape shape = shape_of(entry);
    uint8_t *data = floats_new(entry, shape.n);
    check_sha256(entry, "f32_sha256", data, 4 * shape.n);

    const struct bc_values values = {BITCONV_F32, data, shape.n};
    float mean = 0.0f;
    uint64_t nonfinite;
    assert_int_equal(bc_absmean(k, NULL, &values, false, &mean, &nonfinite, NULL), BITCONV_OK);
    assert_int_equal(bc_f32_bits(mean), strtoul(json_string_of(expected, "scale_bits"), NULL, 16));

    float *w = malloc(shape.n * sizeof *w);
    int8_t *trits = malloc(shape.n);
    uint8_t *packed = malloc(format->size(&shape));
    assert_true(w != NULL && trits != NULL && packed != NULL);
    bc_widen(k, &values, 0, shape.n, w);
    k->ternarize(w, shape.n, 1.0f / mean, trits);
    format->pack(k, &shape, trits, 0, shape.n, packed);
    format->put_scales(&shape, &mean, 1, packed);
    char hex[65];
    bc_sha256_hex(packed, format->size(&shape), hex);
    assert_string_equal(hex, json_string_of(expected, "sha256"));
    free(data);
    free(w);
    free(trits);
    free(packed);
}

static void test_float_inputs(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct bc_json *list = bc_json_path(expectations, "float_inputs.entries");
    for (const struct bc_json *e = bc_json_first(list); e != NULL; e = bc_json_next(e), n++)
        check_float_entry(e);
    assert_true(n >= 20);
}

static void test_sha256_itself(void **state)
{
    (void)state;
    char hex[65];
    bc_sha256_hex((const uint8_t *)"abc", 3, hex); /* FIPS 180-4's own example */
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
    const char *shared = getenv("BITCONV_SHARED");
    snprintf(folder, sizeof folder, "%s/golden/packs",
             shared != NULL && *shared != '\0' ? shared : BITCONV_SOURCE_DIR "/../shared");
    char path[2048];
    snprintf(path, sizeof path, "%s/expect.json", folder);
    if (bc_path_kind(path) != BC_PATH_FILE) {
        printf("skipped: no golden data at %s\n", path);
        return 77;
    }
    struct bitconv_error err = {0};
    if (bc_json_load(path, &expectations, &err) != BITCONV_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_itself), cmocka_unit_test(test_i2_s_entries),
        cmocka_unit_test(test_i2_s_file),     cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_float_inputs),
    };
    const int failed = cmocka_run_group_tests_name("packs_golden", tests, NULL, NULL);
    bc_json_free(expectations);
    return failed;
}
