/* SPDX-License-Identifier: MIT
 * Comparing GGUFs and checkpoints: which keys count, tensors by bytes, fingerprint and value, what
 * is missing, results that do not depend on threads. */
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
#include "bitconv/convert.h"
#include "bitconv/diff.h"
#include "support/st_builder.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

enum { F32 = 0, F16 = 1, Q8_0 = 8, TQ2_0 = 35, I2_S = 36 };

struct fixture {
    char *dir;
    struct bitconv_diff *it;
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
    bitconv_diff_free(f->it);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static enum bitconv_status diff(struct fixture *f, const char *a, const char *b,
                                const struct bitconv_diff_options *options)
{
    bitconv_diff_free(f->it);
    memset(&f->err, 0, sizeof f->err);
    return bitconv_diff(a, b, options, NULL, &f->it, &f->err);
}

/* Writes both builders and compares them. */
static void compare(struct fixture *f, struct gguf_builder *a, struct gguf_builder *b,
                    const struct bitconv_diff_options *options)
{
    char *path_a = gguf_builder_write(a, f->dir, "a.gguf");
    char *path_b = gguf_builder_write(b, f->dir, "b.gguf");
    if (diff(f, path_a, path_b, options) != BITCONV_OK) fail_msg("%s", f->err.text);
    free(path_a);
    free(path_b);
}

static const struct bitconv_diff_key *key(const struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->it->n_keys; i++)
        if (strcmp(f->it->keys[i].name, name) == 0) return &f->it->keys[i];
    fail_msg("no key %s", name);
    return NULL;
}

static const struct bitconv_diff_tensor *tensor(const struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->it->n_tensors; i++)
        if (strcmp(f->it->tensors[i].name, name) == 0) return &f->it->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void floats(struct gguf_builder *b, const char *name, size_t n, const float *values)
{
    uint8_t *data = bc_alloc_array(n, 4);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        bc_put_f32(data + 4 * i, values[i]);
    gguf_builder_data(b, name, F32, 1, (const uint64_t[]){n}, data, 4 * n);
    bc_free(data);
}

/* ---- metadata ---- */

static void keys(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder a = {0}, b = {0};
    gguf_builder_string(&a, "general.architecture", "llama");
    gguf_builder_string(&a, "general.name", "one");
    gguf_builder_u32(&a, "llama.block_count", 2);
    gguf_builder_u32(&a, "llama.gone", 7);
    gguf_builder_strings(&a, "tokens", (const char *const[]){"a", "b", "c"}, 3);
    gguf_builder_strings(&a, "merges", (const char *const[]){"a", "b"}, 2);
    gguf_builder_numbers(&a, "types", 5, (const uint32_t[]){1, 2, 3, 4}, 4);
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_numbers(&b, "types", 5, (const uint32_t[]){1, 2, 9, 4}, 4);
    gguf_builder_string(&b, "general.name", "two");
    gguf_builder_string(&b, "bitconv.version", "9");
    gguf_builder_strings(&b, "tokens", (const char *const[]){"a", "B", "c"}, 3);
    gguf_builder_strings(&b, "merges", (const char *const[]){"a", "b", "d"}, 3);
    gguf_builder_string(&b, "llama.block_count", "2");
    gguf_builder_u32(&b, "llama.new", 8);
    compare(f, &a, &b, NULL);
    assert_false(f->it->equal);
    assert_int_equal(f->it->n_same_keys, 1);
    assert_int_equal(f->it->n_keys, 8);
    assert_int_equal(f->it->n_different_keys, 6);
    assert_int_equal(f->it->n_different_tensors, 0);
    assert_false(key(f, "general.name")->counts);
    assert_string_equal(key(f, "general.name")->a, "\"one\"");
    assert_string_equal(key(f, "general.name")->b, "\"two\"");
    assert_false(key(f, "bitconv.version")->counts);
    assert_int_equal(key(f, "bitconv.version")->verdict, BITCONV_DIFF_ONLY_B);
    assert_null(key(f, "bitconv.version")->a);
    assert_int_equal(key(f, "llama.gone")->verdict, BITCONV_DIFF_ONLY_A);
    assert_string_equal(key(f, "llama.gone")->a, "7");
    assert_null(key(f, "llama.gone")->type_b);
    assert_int_equal(key(f, "llama.new")->verdict, BITCONV_DIFF_ONLY_B);
    assert_string_equal(key(f, "llama.block_count")->type_a, "UINT32");
    assert_string_equal(key(f, "llama.block_count")->type_b, "STRING");
    assert_string_equal(key(f, "tokens")->a, "[1] of 3: \"b\"");
    assert_string_equal(key(f, "tokens")->b, "[1] of 3: \"B\"");
    assert_string_equal(key(f, "merges")->a, "2 elements");
    assert_string_equal(key(f, "merges")->b, "[2] of 3: \"d\"");
    assert_string_equal(key(f, "types")->a, "[2] of 4: 3");
    assert_string_equal(key(f, "types")->b, "[2] of 4: 9");
}

/* What describes the file counts only when asked for. */
static void strict(void **state)
{
    struct fixture *f = *state;
    const struct bitconv_diff_options options = {.strict = true};
    for (int pass = 0; pass < 2; pass++) {
        struct gguf_builder a = {0}, b = {0};
        const float values[2] = {1, -2};
        const uint8_t halves[4] = {0x00, 0x3c, 0x00, 0xc0};
        gguf_builder_string(&a, "general.architecture", "llama");
        gguf_builder_string(&a, "general.name", "one");
        floats(&a, "w", 2, values);
        gguf_builder_string(&b, "general.architecture", "llama");
        gguf_builder_string(&b, "general.name", "two");
        gguf_builder_data(&b, "w", F16, 1, (const uint64_t[]){2}, halves, 4);
        compare(f, &a, &b, pass == 0 ? NULL : &options);
        assert_true(f->it->equal == (pass == 0));
        assert_int_equal(f->it->n_different_keys, pass);
        assert_int_equal(f->it->n_different_tensors, pass);
        assert_int_equal(tensor(f, "w")->verdict, BITCONV_DIFF_SAME);
        assert_int_equal(tensor(f, "w")->basis, BITCONV_DIFF_BY_VALUE);
    }
}

/* ---- tensors ---- */

static void values(void **state)
{
    struct fixture *f = *state;
    enum { N = 100000 }; /* several pieces */
    float *x = malloc(N * sizeof *x);
    double max[2] = {0, 0};
    assert_non_null(x);
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct gguf_builder a = {0}, b = {0};
        const struct bitconv_diff_options options = {.n_threads = threads};
        for (size_t i = 0; i < N; i++)
            x[i] = (float)((int)(i * 7919 % 1001) - 500) / 8.0f;
        gguf_builder_string(&a, "general.architecture", "llama");
        gguf_builder_string(&b, "general.architecture", "llama");
        floats(&a, "w", N, x);
        x[99999] += 3.0f;
        x[70000] = nextafterf(x[70000], 1e9f);
        x[33333] -= 0.5f;
        floats(&b, "w", N, x);
        compare(f, &a, &b, &options);
        const struct bitconv_diff_tensor *t = tensor(f, "w");
        assert_int_equal(t->verdict, BITCONV_DIFF_CHANGED);
        assert_int_equal(t->basis, BITCONV_DIFF_BY_VALUE);
        assert_int_equal(t->n_values, N);
        assert_int_equal(t->n_different, 3);
        assert_int_equal(t->first_different, 33333);
        assert_true(t->largest == 62.5);
        max[threads / 2] = t->max_difference;
        assert_int_equal(f->it->n_different_tensors, 1);
    }
    assert_true(max[0] == 3.0 && max[1] == 3.0);
    free(x);
}

/* Zeros of both signs and NaNs are equal to themselves; a NaN against a number is an infinity away. */
static void special_values(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder a = {0}, b = {0};
    const float one[4] = {0.0f, NAN, INFINITY, 1}, same[4] = {-0.0f, -NAN, INFINITY, 1};
    const float other[4] = {0.0f, 2, INFINITY, 1}, sign[4] = {0.0f, NAN, -INFINITY, 1};
    gguf_builder_string(&a, "general.architecture", "llama");
    gguf_builder_string(&b, "general.architecture", "llama");
    floats(&a, "same", 4, one);
    floats(&a, "nan", 4, one);
    floats(&a, "inf", 4, one);
    floats(&b, "same", 4, same);
    floats(&b, "nan", 4, other);
    floats(&b, "inf", 4, sign);
    compare(f, &a, &b, NULL);
    assert_int_equal(tensor(f, "same")->verdict, BITCONV_DIFF_SAME);
    assert_int_equal(tensor(f, "same")->basis, BITCONV_DIFF_BY_VALUE);
    assert_int_equal(tensor(f, "nan")->first_different, 1);
    assert_true(isinf(tensor(f, "nan")->max_difference) && tensor(f, "nan")->largest == 1);
    assert_int_equal(tensor(f, "inf")->n_different, 1);
    assert_int_equal(tensor(f, "inf")->first_different, 2);
    assert_true(isinf(tensor(f, "inf")->max_difference));
}

static void missing_and_misshapen(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder a = {0}, b = {0};
    const float x[6] = {1, 2, 3, 4, 5, 6};
    gguf_builder_string(&a, "general.architecture", "llama");
    gguf_builder_string(&b, "general.architecture", "llama");
    floats(&a, "gone", 6, x);
    floats(&a, "both", 6, x);
    gguf_builder_tensor(&a, "turned", F32, 2, (const uint64_t[]){2, 3}, 24);
    gguf_builder_tensor(&a, "column", F32, 1, (const uint64_t[]){3}, 12);
    gguf_builder_tensor(&b, "turned", F32, 2, (const uint64_t[]){3, 2}, 24);
    floats(&b, "new", 6, x);
    floats(&b, "both", 6, x);
    gguf_builder_tensor(&b, "column", F32, 2, (const uint64_t[]){3, 1}, 12);
    compare(f, &a, &b, NULL);
    assert_int_equal(f->it->n_tensors, 5);
    assert_int_equal(f->it->n_different_tensors, 3);
    assert_int_equal(tensor(f, "gone")->verdict, BITCONV_DIFF_ONLY_A);
    assert_string_equal(tensor(f, "gone")->type_a, "F32");
    assert_null(tensor(f, "gone")->type_b);
    assert_int_equal(tensor(f, "new")->verdict, BITCONV_DIFF_ONLY_B);
    assert_int_equal(tensor(f, "turned")->verdict, BITCONV_DIFF_CHANGED);
    assert_string_equal(tensor(f, "turned")->problem, "the shapes differ: 2 x 3 and 3 x 2");
    assert_int_equal(tensor(f, "column")->verdict, BITCONV_DIFF_SAME);
    assert_int_equal(tensor(f, "both")->basis, BITCONV_DIFF_BY_BYTES);
}

/* Types that cannot be decoded are compared as they lie there. */
static void undecodable(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder a = {0}, b = {0};
    const struct bitconv_diff_options options = {.dialect = "prism"};
    uint8_t block[34] = {1, 2, 3};
    gguf_builder_string(&a, "general.architecture", "llama");
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_data(&a, "same", 142, 1, (const uint64_t[]){128}, block, sizeof block);
    gguf_builder_data(&a, "other", 142, 1, (const uint64_t[]){128}, block, sizeof block);
    gguf_builder_data(&b, "same", 142, 1, (const uint64_t[]){128}, block, sizeof block);
    block[33] = 1;
    gguf_builder_data(&b, "other", 142, 1, (const uint64_t[]){128}, block, sizeof block);
    compare(f, &a, &b, &options);
    assert_int_equal(tensor(f, "same")->verdict, BITCONV_DIFF_SAME);
    assert_int_equal(tensor(f, "other")->verdict, BITCONV_DIFF_CHANGED);
    assert_int_equal(tensor(f, "other")->basis, BITCONV_DIFF_BY_BYTES);
    assert_non_null(strstr(tensor(f, "other")->problem, "Hadamard"));
}

/* A pack against the numbers that it stands for, against its own twin, and with another scale. */
static void packs(void **state)
{
    struct fixture *f = *state;
    for (int pass = 0; pass < 3; pass++) {
        struct gguf_builder a = {0}, b = {0};
        struct bc_buf data = {0};
        float x[128];
        /* 0x19: codes 0, 1, 2, 1 in the values i, i + 32, i + 64, i + 96 */
        for (size_t i = 0; i < 128; i++)
            x[i] = i < 32 ? -0.25f : i >= 64 && i < 96 ? 0.25f : 0.0f;
        gguf_builder_string(&a, "general.architecture", "bitnet-b1.58");
        gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
        i2_s_bytes(&data, 128, 0x19, 0.25f);
        gguf_builder_data(&a, "w", I2_S, 1, (const uint64_t[]){128}, data.data, data.size);
        if (pass == 2) bc_put_f32(data.data + 32, 0.5f);
        if (pass == 0)
            floats(&b, "w", 128, x);
        else
            gguf_builder_data(&b, "w", I2_S, 1, (const uint64_t[]){128}, data.data, data.size);
        bc_buf_release(&data);
        compare(f, &a, &b, NULL);
        const struct bitconv_diff_tensor *t = tensor(f, "w");
        assert_string_equal(t->type_a, "i2_s");
        assert_int_equal(t->verdict, pass == 2 ? BITCONV_DIFF_CHANGED : BITCONV_DIFF_SAME);
        assert_int_equal(t->basis, pass == 1 ? BITCONV_DIFF_BY_FINGERPRINT : BITCONV_DIFF_BY_VALUE);
        assert_int_equal(strlen(t->fingerprint_a), pass == 0 ? 0 : 32);
        if (pass == 2) {
            assert_string_not_equal(t->fingerprint_a, t->fingerprint_b);
            assert_int_equal(t->n_different, 64);
            assert_true(t->max_difference == 0.25);
        }
    }
}

/* Blocks of trits whose scale stands beside them are the pack with that scale. */
static void scale_beside(void **state)
{
    struct fixture *f = *state;
    for (int pass = 0; pass < 2; pass++) {
        struct gguf_builder a = {0}, b = {0};
        uint8_t block[66];
        float x[256];
        const float scale = pass == 0 ? 0.1f : 0.2f; /* 0.1 is no float16 */
        memset(block, 0x19, 64); /* as in I2_S, but the first code in the low bits: 1, 2, 1, 0 */
        bc_put_u16(block + 64, 0x3c00);
        for (size_t i = 0; i < 256; i++) {
            const size_t code = i % 128 / 32;
            x[i] = code == 1 ? 0.1f : code == 3 ? -0.1f : 0.0f;
        }
        gguf_builder_string(&a, "general.architecture", "bitnet");
        gguf_builder_data(&a, "w.weight", TQ2_0, 1, (const uint64_t[]){256}, block, 66);
        floats(&a, "w.scale", 1, &scale);
        floats(&a, "v.scale", 1, &scale);
        gguf_builder_string(&b, "general.architecture", "bitnet");
        floats(&b, "w.weight", 256, x);
        compare(f, &a, &b, NULL);
        assert_int_equal(f->it->n_tensors, 2); /* w.scale is part of w.weight, v.scale is not */
        assert_int_equal(tensor(f, "v.scale")->verdict, BITCONV_DIFF_ONLY_A);
        const struct bitconv_diff_tensor *t = tensor(f, "w.weight");
        assert_int_equal(t->verdict, pass == 0 ? BITCONV_DIFF_SAME : BITCONV_DIFF_CHANGED);
        assert_int_equal(t->n_different, pass == 0 ? 0 : 128);
    }
}

/* ---- checkpoints, real files ---- */

static void checkpoints(void **state)
{
    struct fixture *f = *state;
    const float x[4] = {1, 2, 3, 4}, y[4] = {1, 2, 3, 5};
    static const char *const dirs[] = {"a", "b"};
    char *paths[2], *file;
    for (int i = 0; i < 2; i++) {
        struct st_builder b = {0};
        char name[64];
        snprintf(name, sizeof name, "%s/config.json", dirs[i]);
        temp_dir_puts(f->dir, name,
                      i == 0 ? "{\"architectures\": [\"X\"], \"dtype\": \"float32\", \"n\": 1}"
                             : "{\"architectures\": [\"X\"], \"dtype\": \"bfloat16\", \"n\": 2}");
        snprintf(name, sizeof name, "%s/tokenizer.json", dirs[i]);
        temp_dir_puts(f->dir, name, i == 0 ? "{}" : "{ }");
        snprintf(name, sizeof name, "%s/model.safetensors", dirs[i]);
        st_builder_add_floats(&b, "same", i == 0 ? BITCONV_F32 : BITCONV_BF16, 1,
                              (const uint64_t[]){4}, x);
        st_builder_add_floats(&b, "other", BITCONV_F32, 1, (const uint64_t[]){4}, i == 0 ? x : y);
        file = temp_dir_path(f->dir, name);
        assert_true(st_builder_write(&b, file));
        free(file);
        st_builder_release(&b);
        paths[i] = temp_dir_path(f->dir, dirs[i]);
    }
    temp_dir_puts(f->dir, "b/merges.txt", "a b\n");
    if (diff(f, paths[0], paths[1], NULL) != BITCONV_OK) fail_msg("%s", f->err.text);
    assert_int_equal(f->it->n_different_keys, 3);
    assert_false(key(f, "dtype")->counts);
    assert_string_equal(key(f, "n")->b, "2");
    assert_string_equal(key(f, "tokenizer.json")->type_a, "FILE");
    assert_string_equal(key(f, "tokenizer.json")->b, "3 bytes");
    assert_int_equal(key(f, "merges.txt")->verdict, BITCONV_DIFF_ONLY_B);
    assert_int_equal(tensor(f, "same")->basis, BITCONV_DIFF_BY_VALUE);
    assert_int_equal(tensor(f, "same")->verdict, BITCONV_DIFF_SAME);
    assert_int_equal(tensor(f, "other")->first_different, 3);
    /* A folder against a single file: the tensors. */
    file = temp_dir_path(f->dir, "a/model.safetensors");
    if (diff(f, paths[0], file, NULL) != BITCONV_OK) fail_msg("%s", f->err.text);
    assert_true(f->it->equal);
    assert_non_null(f->it->keys_skipped);
    free(file);
    free(paths[0]);
    free(paths[1]);
}

static void convert(const char *outtype, const char *path)
{
    struct bitconv_conversion *conversion = NULL;
    struct bitconv_error err = {0};
    const struct bitconv_convert_options options = {.outtype = outtype, .outfile = path};
    if (bitconv_convert(BITCONV_SOURCE_DIR "/fixtures/models/bitnet", &options, NULL, &conversion,
                        &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    bitconv_conversion_free(conversion);
}

/* Every pack of the registry that holds the model is equal to every other by its fingerprints. */
static void every_pack(void **state)
{
    struct fixture *f = *state;
    static const char *const packs[] = {"tl1", "bitcos", "t5"};
    char *i2_s = temp_dir_path(f->dir, "i2_s.gguf"), *other = temp_dir_path(f->dir, "other.gguf");
    convert("i2_s", i2_s);
    for (size_t i = 0; i < sizeof packs / sizeof packs[0]; i++) {
        size_t by_fingerprint = 0;
        remove(other);
        convert(packs[i], other);
        if (diff(f, i2_s, other, NULL) != BITCONV_OK) fail_msg("%s", f->err.text);
        assert_true(f->it->equal);
        for (size_t k = 0; k < f->it->n_tensors; k++) {
            const struct bitconv_diff_tensor *t = &f->it->tensors[k];
            if (t->basis != BITCONV_DIFF_BY_FINGERPRINT) continue;
            by_fingerprint++;
            assert_string_equal(t->type_a, "i2_s");
            assert_string_equal(t->type_b, packs[i]);
            assert_true(t->n_values >= 128 * 64);
        }
        assert_int_equal(by_fingerprint, 14);
    }
    free(i2_s);
    free(other);
}

/* The same model in two types is equal; and what cannot be compared is refused. */
static void conversions(void **state)
{
    struct fixture *f = *state;
    const struct bitconv_diff_options dialect = {.dialect = "klingon"}, cpu = {.cpu = "abacus"};
    char *i2_s = temp_dir_path(f->dir, "i2_s.gguf"), *f32 = temp_dir_path(f->dir, "f32.gguf");
    convert("i2_s", i2_s);
    convert("f32", f32);
    if (diff(f, i2_s, f32, NULL) != BITCONV_OK) fail_msg("%s", f->err.text);
    assert_true(f->it->equal);
    if (diff(f, i2_s, i2_s, NULL) != BITCONV_OK) fail_msg("%s", f->err.text);
    size_t by_fingerprint = 0;
    for (size_t i = 0; i < f->it->n_tensors; i++)
        by_fingerprint += f->it->tensors[i].basis == BITCONV_DIFF_BY_FINGERPRINT;
    assert_int_equal(by_fingerprint, 14);
    assert_int_equal(diff(f, i2_s, BITCONV_SOURCE_DIR "/fixtures/models/bitnet", NULL),
                     BITCONV_E_ARG);
    assert_non_null(strstr(f->err.text, "verify FILE --source DIR"));
    assert_int_equal(diff(f, i2_s, BITCONV_SOURCE_DIR "/absent", NULL), BITCONV_E_IO);
    assert_int_equal(diff(f, i2_s, f32, &dialect), BITCONV_E_ARG);
    assert_int_equal(diff(f, i2_s, f32, &cpu), BITCONV_E_ARG);
    free(i2_s);
    free(f32);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys),        TEST(strict),     TEST(values),       TEST(special_values),
        TEST(undecodable), TEST(packs),      TEST(scale_beside), TEST(missing_and_misshapen),
        TEST(checkpoints), TEST(every_pack), TEST(conversions),
    };
    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
