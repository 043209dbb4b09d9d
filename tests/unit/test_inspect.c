/* SPDX-License-Identifier: MIT
 * What inspect finds in GGUFs, safetensors files and checkpoint folders. */
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
#include "bitconv/inspect.h"
#include "support/st_builder.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

enum { F32 = 0, F16 = 1, Q8_0 = 8, I32 = 26, F64 = 28, BF16 = 30, I2_S = 36 };

struct fixture {
    char *dir;
    struct bitconv_inspection *it;
    struct bitconv_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return 1;
    f->dir = temp_dir_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    bitconv_inspection_free(f->it);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static enum bitconv_status look(struct fixture *f, const char *path,
                                const struct bitconv_inspect_options *options)
{
    bitconv_inspection_free(f->it);
    memset(&f->err, 0, sizeof f->err);
    return bitconv_inspect(path, options, NULL, &f->it, &f->err);
}

/* The built file, which must be readable. */
static void look_at(struct fixture *f, struct gguf_builder *b,
                    const struct bitconv_inspect_options *options)
{
    char *path = gguf_builder_write(b, f->dir, "t.gguf");
    if (look(f, path, options) != BITCONV_OK) fail_msg("%s", f->err.text);
    free(path);
}

static const struct bitconv_inspected_key *key(const struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->it->n_keys; i++)
        if (strcmp(f->it->keys[i].name, name) == 0) return &f->it->keys[i];
    fail_msg("no key %s", name);
    return NULL;
}

static bool warns(const struct fixture *f, const char *text)
{
    for (size_t i = 0; i < f->it->n_warnings; i++)
        if (strstr(f->it->warnings[i], text) != NULL) return true;
    return false;
}

static void sample_gguf(void **state)
{
    struct fixture *f = *state;
    struct bc_buf bytes = {0};
    char *path = temp_dir_path(f->dir, "sample.gguf");
    gguf_builder_sample(&bytes);
    temp_dir_write(f->dir, "sample.gguf", bytes.data, bytes.size);
    assert_int_equal(look(f, path, NULL), BITCONV_OK);
    assert_string_equal(f->it->file, path);
    assert_int_equal(f->it->container, BITCONV_CONTAINER_GGUF);
    assert_int_equal(f->it->version, 3);
    assert_int_equal(f->it->alignment, 32);
    assert_int_equal(f->it->file_size, bytes.size);
    assert_string_equal(f->it->dialect, "bitnet");
    assert_true(strlen(f->it->dialect_evidence) > 0);
    assert_string_equal(f->it->model.architecture, "bitnet-b1.58");
    assert_int_equal(f->it->n_keys, 14);
    assert_string_equal(key(f, "test.u8")->type, "UINT8");
    assert_string_equal(key(f, "test.words")->type, "ARRAY[STRING]");
    assert_int_equal(key(f, "test.words")->value.count, 2);

    assert_int_equal(f->it->n_tensors, 3);
    const struct bitconv_inspected_tensor *t = &f->it->tensors[1];
    assert_string_equal(t->name, "blk.0.ffn_up.weight");
    assert_string_equal(t->type, "I2_S");
    assert_int_equal(t->type_id, 36);
    assert_string_equal(t->pack, "i2_s");
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->ne[0], 128);
    assert_int_equal(t->ne[1], 4);
    assert_int_equal(t->offset, 768);
    assert_int_equal(t->size, 160);
    assert_true(t->bits_per_weight == 2.5);
    assert_int_equal(t->stats.kind, BITCONV_STATS_NONE);
    assert_string_equal(t->xxh3, "");
    /* Its bytes are zeros: seen without statistics. */
    assert_true(warns(f, "every trit is -1"));
    assert_int_equal(f->it->n_types, 3);
    assert_string_equal(f->it->types[0].type, "F16");
    assert_int_equal(f->it->parameters, 128 * 3 + 128 * 4 + 5);
    free(path);
    bc_buf_release(&bytes);
}

static void ternary_statistics(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    struct bc_buf data = {0};
    const struct bitconv_inspect_options options = {.stats = true, .hash = true, .n_threads = 2};
    gguf_builder_string(&b, "general.architecture", "llama");
    /* 0x19 = 0, 1, 2, 1: a quarter -1, a half 0, a quarter +1; then one byte of +1. */
    i2_s_bytes(&data, 256, 0x19, 0.25f);
    data.data[5] = 0xaa;
    gguf_builder_data(&b, "blk.0.w", I2_S, 2, (const uint64_t[]){128, 2}, data.data, data.size);
    bc_buf_clear(&data);
    i2_s_bytes(&data, 128, 0x55, 1.0f);
    gguf_builder_data(&b, "blk.0.z", I2_S, 1, (const uint64_t[]){128}, data.data, data.size);
    bc_buf_release(&data);
    look_at(f, &b, &options);
    const struct bitconv_tensor_stats *s = &f->it->tensors[0].stats;
    assert_int_equal(s->kind, BITCONV_STATS_TERNARY);
    assert_int_equal(s->minus, 63);
    assert_int_equal(s->zero, 126);
    assert_int_equal(s->plus, 67);
    assert_true(s->zeros == 126.0 / 256);
    assert_true(fabs(s->entropy - 1.5076) < 1e-3);
    assert_true(s->scale == 0.25f);
    assert_false(s->one_code);
    assert_int_equal(strlen(f->it->tensors[0].fingerprint), 32);
    assert_int_equal(strlen(f->it->tensors[0].xxh3), 32);
    assert_int_equal(strlen(f->it->fingerprint), 32);
    assert_true(f->it->tensors[1].stats.one_code);
    assert_true(f->it->tensors[1].stats.entropy == 0);
    assert_true(warns(f, "blk.0.z: every trit is 0"));
}

static void number_statistics(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    enum { COUNT = 200000 };
    uint8_t *data = bc_alloc_array(COUNT, 4);
    const struct bitconv_inspect_options one = {.stats = true, .n_threads = 1};
    const struct bitconv_inspect_options three = {.stats = true, .n_threads = 3};
    assert_non_null(data);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const float v = (float)((int)(i * 7919 % 1001) - 500) / 8.0f;
        bc_put_f32(data + 4 * i, v);
        if (i == 7 || i == 8) continue; /* replaced below */
        sum += (double)v;
        squares += (double)v * (double)v;
    }
    bc_put_f32(data + 4 * 7, 1e6f);
    bc_put_f32(data + 4 * 8, NAN);
    sum += 1e6;
    squares += 1e12;
    const double mean = sum / (COUNT - 1);
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_data(&b, "v", F32, 1, (const uint64_t[]){COUNT}, data, 4 * COUNT);
    look_at(f, &b, &one);
    const struct bitconv_tensor_stats first = f->it->tensors[0].stats;
    assert_int_equal(first.kind, BITCONV_STATS_NUMBERS);
    assert_int_equal(first.nonfinite, 1);
    assert_true(first.min == -62.5 && first.max == 1e6);
    assert_true(fabs(first.mean - mean) < 1e-9);
    assert_true(fabs(first.stddev - sqrt(squares / (COUNT - 1) - mean * mean)) < 1e-6);
    assert_int_equal(first.outliers, 1);
    assert_in_range(first.zero, COUNT / 1001 - 1, COUNT / 1001 + 1);
    assert_true(warns(f, "v: 1 values are NaN"));
    char *path = temp_dir_path(f->dir, "t.gguf");
    assert_int_equal(look(f, path, &three), BITCONV_OK);
    assert_true(f->it->tensors[0].stats.mean == first.mean &&
                f->it->tensors[0].stats.stddev == first.stddev);
    free(path);
    bc_free(data);
}

/* Values of every type that is decoded, the first three of five. */
static void values_of_types(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name;
        uint32_t type;
        size_t size;
        uint8_t bytes[40];
        double wanted[3];
        bool integers;
    } cases[] = {
        {"f32", F32, 20, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, {1, -2, 0}, false},
        {"f16", F16, 10, {0x00, 0x3c, 0x01, 0x00}, {1, 0x1p-24, 0}, false},
        {"bf16", BF16, 10, {0x80, 0x3f, 0x80, 0xbf}, {1, -1, 0}, false},
        {"f64", F64, 40, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {1, 0, 0}, false},
        {"i8", 24, 5, {0xff, 5}, {-1, 5, 0}, true},
        {"i16", 25, 10, {0xfe, 0xff, 5}, {-2, 5, 0}, true},
        {"i32", I32, 20, {0xfd, 0xff, 0xff, 0xff, 5}, {-3, 5, 0}, true},
        {"i64", 27, 40, {0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {-4, 0, 0}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf_builder b = {0};
        const struct bitconv_inspect_options options = {.tensor = cases[i].name, .head = 3};
        gguf_builder_string(&b, "general.architecture", "llama");
        gguf_builder_data(&b, "other", F32, 1, (const uint64_t[]){1}, "\0\0\0", 4);
        gguf_builder_data(&b, cases[i].name, cases[i].type, 1, (const uint64_t[]){5},
                          cases[i].bytes, cases[i].size);
        look_at(f, &b, &options);
        const struct bitconv_inspected_values *v = f->it->values;
        assert_non_null(v);
        assert_int_equal(v->tensor, 1);
        assert_int_equal(v->n, 3);
        assert_true((v->integers != NULL) == cases[i].integers);
        for (size_t j = 0; j < 3; j++) {
            assert_true(v->reals[j] == cases[i].wanted[j]);
            if (v->integers != NULL) assert_int_equal(v->integers[j], (int64_t)cases[i].wanted[j]);
        }
    }
}

static void values_of_a_pack(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    struct bc_buf data = {0};
    const struct bitconv_inspect_options options = {.tensor = "w"};
    gguf_builder_string(&b, "general.architecture", "llama");
    i2_s_bytes(&data, 128, 0x55, 0.75f);
    data.data[1] = 0x95; /* value 1 is +1 */
    data.data[2] = 0x51; /* value 96 + 2 is... bits 1-0 = 1: 0; 64 + 2: bits 3-2 = 0: -1 */
    data.data[3] = 0xd5; /* value 3 has code 3 */
    gguf_builder_data(&b, "w", I2_S, 1, (const uint64_t[]){128}, data.data, data.size);
    bc_buf_release(&data);
    look_at(f, &b, &options);
    const struct bitconv_inspected_values *v = f->it->values;
    assert_int_equal(v->n, 128);
    assert_true(v->scale == 0.75f);
    for (size_t i = 0; i < 128; i++) {
        if (i == 3)
            assert_true(isnan(v->reals[i]));
        else
            assert_true(v->reals[i] == (i == 1 ? 0.75 : i == 66 ? -0.75 : 0.0));
    }
}

static void what_cannot_be_shown(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    const struct bitconv_inspect_options quantized = {.tensor = "q", .head = 40};
    const struct bitconv_inspect_options unknown = {.tensor = "odd"};
    const struct bitconv_inspect_options absent = {.tensor = "nothing"};
    const struct bitconv_inspect_options dialect = {.dialect = "klingon"};
    const struct bitconv_inspect_options cpu = {.cpu = "abacus"};
    char *path = temp_dir_path(f->dir, "t.gguf");
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_tensor(&b, "q", Q8_0, 1, (const uint64_t[]){32}, 34);
    gguf_builder_tensor(&b, "odd", 199, 1, (const uint64_t[]){32}, 64);
    look_at(f, &b, NULL); /* both are listed */
    assert_int_equal(f->it->n_tensors, 2);
    assert_string_equal(f->it->tensors[0].type, "Q8_0");
    assert_true(strstr(f->it->tensors[1].type, "199") != NULL);
    assert_int_equal(f->it->tensors[1].size, 64);
    assert_true(warns(f, "odd"));

    assert_int_equal(look(f, path, &quantized), BITCONV_OK);
    assert_int_equal(f->it->values->n, 32);
    assert_int_equal(look(f, path, &unknown), BITCONV_E_UNSUPPORTED);
    assert_non_null(strstr(f->err.text, "cannot decode type 199: the type is not known"));
    assert_int_equal(look(f, path, &absent), BITCONV_E_ARG);
    assert_int_equal(look(f, path, &dialect), BITCONV_E_ARG);
    assert_int_equal(look(f, path, &cpu), BITCONV_E_ARG);
    free(path);
}

static void dialect_override(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    const struct bitconv_inspect_options upstream = {.dialect = "upstream"};
    char *path = temp_dir_path(f->dir, "t.gguf");
    /* 128 x 4 in 288 bytes fits IQ4_NL_4_4 exactly, and I2_S (160) with room to spare. */
    gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    gguf_builder_tensor(&b, "w", I2_S, 2, (const uint64_t[]){128, 4}, 160);
    gguf_builder_tensor(&b, "x", F32, 1, (const uint64_t[]){64}, 256);
    look_at(f, &b, NULL);
    assert_string_equal(f->it->tensors[0].type, "I2_S");
    assert_int_equal(look(f, path, &upstream), BITCONV_OK);
    assert_string_equal(f->it->dialect, "upstream");
    assert_string_equal(f->it->tensors[0].type, "IQ4_NL_4_4");
    assert_null(f->it->tensors[0].pack);
    free(path);
}

static void contradictions_are_warnings(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    gguf_builder_u32(&b, "general.file_type", 40);
    gguf_builder_u32(&b, "bitnet-b1.58.block_count", 1);
    gguf_builder_u32(&b, "prism.hadamard.block", 1);
    gguf_builder_tensor(&b, "blk.0.a", F16, 2, (const uint64_t[]){4, 4}, 32);
    look_at(f, &b, NULL);
    assert_true(warns(f, "says I2_S"));
    assert_true(warns(f, "0 tensors are I2_S"));
    assert_true(warns(f, "hidden_activation"));
    assert_true(warns(f, "prism.hadamard"));
}

static void safetensors(void **state)
{
    struct fixture *f = *state;
    struct st_builder b = {0};
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const struct bitconv_inspect_options options = {.stats = true, .tensor = "b"};
    char *path = temp_dir_path(f->dir, "t.safetensors");
    st_builder_add_floats(&b, "a", BITCONV_F16, 1, (const uint64_t[]){6}, values);
    st_builder_add_floats(&b, "b", BITCONV_BF16, 2, (const uint64_t[]){2, 3}, values);
    st_builder_metadata(&b, "format", "pt");
    assert_true(st_builder_write(&b, path));
    st_builder_release(&b);
    if (look(f, path, &options) != BITCONV_OK) fail_msg("%s", f->err.text);
    assert_int_equal(f->it->container, BITCONV_CONTAINER_SAFETENSORS);
    assert_null(f->it->dialect);
    assert_string_equal(key(f, "format")->type, "STRING");
    const struct bitconv_inspected_tensor *t = &f->it->tensors[1];
    assert_string_equal(t->type, "BF16");
    assert_int_equal(t->type_id, -1);
    assert_int_equal(t->ne[0], 3); /* ggml order: columns first */
    assert_int_equal(t->ne[1], 2);
    assert_int_equal(t->offset, 12);
    assert_true(t->stats.mean == 3.5);
    assert_int_equal(f->it->values->n, 6);
    assert_true(f->it->values->reals[5] == 6);
    free(path);
}

static void checkpoint(void **state)
{
    struct fixture *f = *state;
    const struct bitconv_inspect_options options = {.stats = true};
    char path[512];
    snprintf(path, sizeof path, "%s/fixtures/models/bitnet", BITCONV_SOURCE_DIR);
    if (look(f, path, &options) != BITCONV_OK) fail_msg("%s", f->err.text);
    assert_int_equal(f->it->container, BITCONV_CONTAINER_CHECKPOINT);
    assert_string_equal(f->it->model.hidden_act, "relu2");
    assert_int_equal(f->it->model.layers, 2);
    assert_int_equal(f->it->model.hidden_size, 128);
    assert_int_equal(f->it->model.heads, 4);
    assert_int_equal(f->it->model.kv_heads, 2);
    assert_int_equal(f->it->model.vocab_size, 320);
    assert_true(f->it->model.rope_theta == 500000);
    uint64_t n = 0;
    assert_true(bitconv_gguf_value_u64(&key(f, "hidden_size")->value, &n) && n == 128);
    assert_string_equal(key(f, "quantization_config.linear_class")->type, "STRING");
    assert_string_equal(key(f, "architectures")->type, "ARRAY[STRING]");
    /* Packed weights of the checkpoint are read as trits. */
    size_t ternary = 0;
    for (size_t i = 0; i < f->it->n_tensors; i++) {
        const struct bitconv_tensor_stats *s = &f->it->tensors[i].stats;
        if (s->kind != BITCONV_STATS_TERNARY) continue;
        assert_int_equal(s->minus + s->zero + s->plus, 4 * f->it->tensors[i].size);
        assert_true(s->scale > 0 && s->entropy > 1.5);
        ternary++;
    }
    assert_int_equal(ternary, 14);
    assert_int_not_equal(look(f, f->dir, NULL), BITCONV_OK);
}

/* A checkpoint of an unknown architecture is shown, with the reason why it cannot be converted. */
static void foreign_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct st_builder b = {0};
    char *path = temp_dir_path(f->dir, "model.safetensors");
    const float one = 1;
    st_builder_add_floats(&b, "a", BITCONV_F32, 1, (const uint64_t[]){1}, &one);
    assert_true(st_builder_write(&b, path));
    st_builder_release(&b);
    temp_dir_puts(
        f->dir, "config.json",
        "{\"architectures\": [\"FooModel\"], \"x\": [1, \"a\", {\"y\": 0.5}], \"z\": null}");
    if (look(f, f->dir, NULL) != BITCONV_OK) fail_msg("%s", f->err.text);
    assert_true(warns(f, "FooModel"));
    assert_int_equal(f->it->n_tensors, 1);
    assert_string_equal(key(f, "x.0")->type, "INT64");
    assert_string_equal(key(f, "x.1")->type, "STRING");
    assert_string_equal(key(f, "x.2.y")->type, "FLOAT64");
    assert_int_equal(key(f, "z")->value.size, 0);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sample_gguf),        TEST(ternary_statistics),
        TEST(number_statistics),  TEST(values_of_types),
        TEST(values_of_a_pack),   TEST(what_cannot_be_shown),
        TEST(dialect_override),   TEST(contradictions_are_warnings),
        TEST(safetensors),        TEST(checkpoint),
        TEST(foreign_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
