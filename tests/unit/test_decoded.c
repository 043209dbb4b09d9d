/* SPDX-License-Identifier: MIT
 * Values of every tensor type through inspect and the floats proof: known blocks in GGUF files of
 * their own, ranges against the whole, damaged scales. */
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
#include "base/json.h"
#include "bitconv/inspect.h"
#include "io/gguf_types.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"
#include "verify/decoded.h"

/* An entry of fixtures/dequant/blocks.txt. */
struct entry {
    char type[32];
    uint8_t bytes[1024];
    size_t n_bytes;
    char first[8 * 9 + 1];
};

static int set_up(void **state)
{
    *state = temp_dir_new();
    return 0;
}

static int tear_down(void **state)
{
    temp_dir_remove(*state);
    return 0;
}

/* A dialect in which the type exists, and its row there. */
static const struct bc_type *type_of(const char *name, enum bitconv_dialect *dialect)
{
    static const enum bitconv_dialect order[] = {BITCONV_DIALECT_UPSTREAM, BITCONV_DIALECT_PRISM};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        *dialect = order[i];
        const struct bc_type *type = bc_type_by_name(name, order[i]);
        if (type != NULL) return type;
    }
    fail_msg("no type %s", name);
    return NULL;
}

/* A file with one tensor "w" of one row. */
static char *file_of(const char *dir, const struct bc_type *type, const uint8_t *bytes, size_t size)
{
    struct gguf_builder b = {0};
    const uint64_t n = size / type->block_size * type->block;
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_data(&b, "w", type->id, 1, (const uint64_t[]){n}, bytes, size);
    return gguf_builder_write(&b, dir, "t.gguf");
}

static void check_values(const struct bitconv_inspected_values *v, const struct entry *e,
                         const char *sha256)
{
    uint8_t *bytes = malloc(4 * v->n);
    char first[sizeof e->first] = "", hex[65];
    assert_non_null(bytes);
    assert_false(v->is_ternary);
    assert_null(v->integers);
    for (uint64_t i = 0; i < v->n; i++)
        bc_put_f32(bytes + 4 * i, (float)v->reals[i]);
    for (size_t i = 0; i < 8; i++)
        sprintf(first + 9 * i, "%08x%s", (unsigned)bc_get_u32(bytes + 4 * i), i < 7 ? " " : "");
    if (strcmp(first, e->first) != 0) fail_msg("%s: %s, not %s", e->type, first, e->first);
    bc_sha256_hex(bytes, 4 * v->n, hex);
    if (strcmp(hex, sha256) != 0) fail_msg("%s: the values hash to %s", e->type, hex);
    free(bytes);
}

static void check_entry(const char *dir, const struct entry *e, const char *sha256)
{
    enum bitconv_dialect dialect;
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    const struct bc_type *type = type_of(e->type, &dialect);
    char *path = file_of(dir, type, e->bytes, e->n_bytes);
    struct bitconv_inspect_options options = {.tensor = "w", .stats = true, .n_threads = 1};
    options.dialect = bitconv_dialect_name(dialect);
    if (bitconv_inspect(path, &options, NULL, &it, &err) != BITCONV_OK)
        fail_msg("%s: %s", e->type, err.text);
    const struct bitconv_inspected_values *v = it->values;
    assert_int_equal(v->n, e->n_bytes / type->block_size * type->block);
    assert_int_equal(v->n_total, v->n);
    assert_int_equal(v->cols, v->n);
    check_values(v, e, sha256);
    double sum = 0, min = INFINITY, max = -INFINITY;
    for (uint64_t i = 0; i < v->n; i++) {
        sum += v->reals[i];
        min = fmin(min, v->reals[i]);
        max = fmax(max, v->reals[i]);
    }
    const struct bitconv_tensor_stats *s = &it->tensors[0].stats;
    if (s->kind == BITCONV_STATS_NUMBERS) {
        assert_true(s->nonfinite == 0 && s->min == min && s->max == max);
        assert_true(fabs(s->mean - sum / (double)v->n) <= 1e-12 * fmax(fabs(min), fabs(max)));
    } else {
        assert_non_null(it->tensors[0].pack);
    }
    bitconv_inspection_free(it);
    free(path);
}

static void add_hex(struct entry *e, const char *hex)
{
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        assert_true(e->n_bytes < sizeof e->bytes);
        e->bytes[e->n_bytes++] = (uint8_t)byte;
    }
}

static unsigned for_each_entry(void (*check)(const char *dir, const struct entry *e,
                                             const char *sha256),
                               const char *dir)
{
    struct bc_buf text = {0};
    struct bitconv_error err = {0};
    struct entry e = {.n_bytes = 0};
    unsigned n = 0;
    char *rest = NULL;
    if (bc_text_load(BITCONV_SOURCE_DIR "/fixtures/dequant/blocks.txt", &text, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    for (char *line = strtok_r((char *)text.data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "type %31s", e.type) == 1) e.n_bytes = 0;
        if (strncmp(line, "hex ", 4) == 0) add_hex(&e, line + 4);
        if (strncmp(line, "values ", 7) == 0) snprintf(e.first, sizeof e.first, "%.71s", line + 7);
        if (strncmp(line, "sha256 ", 7) != 0) continue;
        check(dir, &e, line + 7);
        n++;
    }
    bc_buf_release(&text);
    return n;
}

static void values_of_every_block_type(void **state)
{
    assert_int_equal(for_each_entry(check_entry, *state), 29);
}

/* ---- ranges ---- */

static void check_ranges(const struct bc_container *c, size_t index)
{
    struct bc_decoded d;
    char why[256] = "";
    double whole[1024], part[1024];
    uint64_t seed = 7 + index;
    if (bc_decoded_open(c, index, NULL, &d, why, sizeof why) != BITCONV_OK) fail_msg("%s", why);
    assert_true(d.n <= 1024 && d.n > 0);
    bc_decoded_read(bc_kernels_best(), &d, 0, (size_t)d.n, whole);
    for (unsigned trial = 0; trial < 200; trial++) {
        const uint64_t first = rng_below(&seed, d.n), n = rng_below(&seed, d.n - first + 1);
        bc_decoded_read(bc_kernels_best(), &d, first, (size_t)n, part);
        for (uint64_t i = 0; i < n; i++)
            assert_true(part[i] == whole[first + i]);
    }
}

/* Numbers, blocks and trits: any range gives what reading everything gives. */
static void ranges(void **state)
{
    struct gguf_builder b = {0};
    struct bc_buf i2_s = {0};
    struct bc_container c = {0};
    struct bitconv_error err = {0};
    uint8_t bytes[4 * 144] = {0};
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(rng_next(&seed) >> 40 & 0x3f); /* finite in every type */
    gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    gguf_builder_data(&b, "f32", 0, 1, (const uint64_t[]){100}, bytes, 400);
    gguf_builder_data(&b, "f64", 28, 1, (const uint64_t[]){50}, bytes, 400);
    gguf_builder_data(&b, "q4_k", 12, 2, (const uint64_t[]){512, 2}, bytes, 4 * 144);
    gguf_builder_data(&b, "q8_0", 8, 2, (const uint64_t[]){32, 5}, bytes, 5 * 34);
    i2_s_bytes(&i2_s, 512, 0x19, 0.25f);
    gguf_builder_data(&b, "i2_s", 36, 2, (const uint64_t[]){128, 4}, i2_s.data, i2_s.size);
    bc_buf_release(&i2_s);
    char *path = gguf_builder_write(&b, *state, "t.gguf");
    if (bc_container_open(path, NULL, NULL, &c, &err) != BITCONV_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < 5; i++)
        check_ranges(&c, i);
    bc_container_close(&c);
    free(path);
}

/* ---- what cannot be decoded ---- */

static void check_refusal(const char *dir, uint32_t id, const char *dialect, uint64_t n,
                          size_t size, enum bitconv_status wanted, const char *text)
{
    struct gguf_builder b = {0};
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    const struct bitconv_inspect_options options = {.tensor = "w", .dialect = dialect};
    const struct bitconv_inspect_options list = {.dialect = dialect, .stats = true};
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_tensor(&b, "w", id, 1, (const uint64_t[]){n}, size);
    char *path = gguf_builder_write(&b, dir, "t.gguf");
    assert_int_equal(bitconv_inspect(path, &list, NULL, &it, &err), BITCONV_OK);
    assert_int_equal(it->tensors[0].stats.kind, BITCONV_STATS_NONE);
    bitconv_inspection_free(it);
    assert_int_equal(bitconv_inspect(path, &options, NULL, &it, &err), wanted);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' lacks '%s'", err.text, text);
    assert_non_null(strstr(err.text, ": w: "));
    free(path);
}

static void refusals(void **state)
{
    check_refusal(*state, 142, "prism", 128, 34, BITCONV_E_UNSUPPORTED, "PQ2_0: its values are");
    check_refusal(*state, 143, "prism", 128, 28, BITCONV_E_UNSUPPORTED, "Hadamard");
    check_refusal(*state, 31, "upstream", 32, 18, BITCONV_E_UNSUPPORTED, "ggml removed the type");
    check_refusal(*state, 4, "upstream", 32, 18, BITCONV_E_UNSUPPORTED, "Q4_2");
    check_refusal(*state, 199, "upstream", 32, 64, BITCONV_E_UNSUPPORTED, "not known");
    check_refusal(*state, 12, "upstream", 200, 144, BITCONV_E_CORRUPT,
                  "blocks of 256 of type Q4_K");
}

/* ---- the floats proof ---- */

/* The first of several damaged scales is named, whatever the number of threads; sound blocks pass. */
static void damaged_scales(void **state)
{
    enum { N_BLOCKS = 3000 }; /* several pieces of work */
    static const struct {
        uint32_t type, block, size, scale_at;
    } cases[] = {{8, 32, 34, 0}, {12, 256, 144, 0}, {14, 256, 210, 208}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (unsigned damage = 0; damage < 2; damage++) {
            struct verify_run run = {0};
            struct gguf_builder b = {0};
            const struct bitconv_verify_options options = {.n_threads = 3, .dialect = "upstream"};
            char wanted[64];
            const size_t size = (size_t)N_BLOCKS * cases[i].size;
            uint8_t *data = bc_alloc_array(size, 1);
            assert_non_null(data);
            memset(data, 0x11, size);
            if (damage) {
                bc_put_u16(data + (size_t)2900 * cases[i].size + cases[i].scale_at, 0x7e00);
                bc_put_u16(data + (size_t)2000 * cases[i].size + cases[i].scale_at, 0x7c00);
            }
            gguf_builder_string(&b, "general.architecture", "llama");
            gguf_builder_data(&b, "w", cases[i].type, 2,
                              (const uint64_t[]){cases[i].block, N_BLOCKS}, data, size);
            bc_free(data);
            char *path = gguf_builder_write(&b, *state, "t.gguf");
            verify_run(&run, path, &options);
            const struct bitconv_proof *proof = verify_run_proof(&run, "floats");
            snprintf(wanted, sizeof wanted, "w: value %u is ", 2000 * cases[i].block);
            if (damage) {
                assert_int_equal(proof->verdict, BITCONV_FAILED);
                if (strstr(proof->detail, wanted) == NULL) fail_msg("%s", proof->detail);
                assert_non_null(strstr(proof->detail, "(block 2000 of type "));
            } else {
                assert_int_equal(proof->verdict, BITCONV_PASSED);
                assert_int_equal(proof->checked, 1);
            }
            verify_run_release(&run);
            free(path);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_of_every_block_type),
        TEST(ranges),
        TEST(refusals),
        TEST(damaged_scales),
    };
    return cmocka_run_group_tests_name("decoded", tests, NULL, NULL);
}
