/* SPDX-License-Identifier: MIT
 * Synthetic models: their values, shapes and tensors, what converting and verifying makes of them, and
 * that a GGUF made at once is the GGUF made of the folder. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/file.h"
#include "bitconv/bitconv.h"
#include "dummy/kinds.h"
#include "dummy/values.h"
#include "support/temp_dir.h"

/* ---- values ---- */

static float units[BC_DUMMY_NUMBERS];

/* The definition, element by element. */
static uint32_t number_at(uint64_t key, uint64_t i)
{
    uint64_t z = key + (i / 4 + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (uint32_t)(z >> 16 * (i % 4) & 0xffff);
}

static int trit_at(uint64_t key, uint32_t n_zero, uint64_t i)
{
    const uint32_t number = number_at(key, i);
    if (number < n_zero) return 0;
    return (number - n_zero) % 2 == 0 ? 1 : -1;
}

/* The first outputs of SplitMix64 with seed 1234567, as its authors' program gives them. */
static void numbers_are_splitmix64(void **state)
{
    static const uint64_t wanted[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                      UINT64_C(9817491932198370423)};
    (void)state;
    for (size_t j = 0; j < 3; j++)
        for (uint64_t lane = 0; lane < 4; lane++)
            assert_int_equal(number_at(1234567, 4 * j + lane), wanted[j] >> 16 * lane & 0xffff);
}

static void trits_follow_the_definition(void **state)
{
    static const uint32_t shares[] = {0, 1, 21845, 32767, 32768, 32769, 62259, 65535};
    static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 255, 1024, 1027, 2500};
    int8_t trits[2500];
    (void)state;
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        const struct bc_dummy_values v = {.key = 77 + s, .n_zero = shares[s]};
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            const uint64_t first = (uint64_t)l * 1000003 + l % 4;
            bc_dummy_trits(&v, first, lengths[l], trits);
            for (size_t i = 0; i < lengths[l]; i++)
                assert_int_equal(trits[i], trit_at(v.key, v.n_zero, first + i));
        }
    }
}

/* Absmean of masters gives the trits that packed weights hold, whatever the share of zeros. */
static void masters_quantize_to_the_trits(void **state)
{
    enum { N = 4096 };
    static const double shares[] = {0, 0.1, 1.0 / 3.0, 0.5, 0.9, BC_DUMMY_MAX_ZEROS};
    float values[N];
    uint8_t narrow[2 * N];
    int8_t trits[N];
    (void)state;
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        const struct bc_dummy_values v = {.key = 5 + s,
                                          .n_zero = bc_dummy_n_zero(shares[s]),
                                          .scale = 0.0390625f,
                                          .units = units};
        double sum = 0, zeros = 0;
        bc_dummy_units(v.n_zero, units);
        for (size_t i = 0; i < N; i += BC_DUMMY_CHUNK)
            bc_dummy_masters(&v, i, BC_DUMMY_CHUNK, values + i);
        bc_kernels_best()->narrow_bf16(values, N, narrow);
        bc_kernels_best()->widen_bf16(narrow, N, values);
        bc_dummy_trits(&v, 0, N, trits);
        for (size_t i = 0; i < N; i++)
            sum += fabs((double)values[i]);
        const double scale = sum / N;
        assert_true(fabs(scale / (double)v.scale - 1.0) < 0.1);
        for (size_t i = 0; i < N; i++) {
            const double q = nearbyint((double)values[i] / scale);
            assert_int_equal((int)fmax(-1, fmin(1, q)), trits[i]);
            zeros += trits[i] == 0;
        }
        assert_true(fabs(zeros / N - shares[s]) < 0.03);
    }
}

static void other_values_have_their_range(void **state)
{
    const struct bc_dummy_values v = {.key = 9, .centre = 1.0f, .spread = 0.1f};
    float values[1024];
    double sum = 0;
    (void)state;
    bc_dummy_floats(&v, 3, 1024, values);
    for (size_t i = 0; i < 1024; i++) {
        assert_true(values[i] >= 0.9f && values[i] <= 1.1f);
        sum += (double)values[i];
    }
    assert_true(fabs(sum / 1024 - 1.0) < 0.01);
    float alone;
    bc_dummy_floats(&v, 500, 1, &alone);
    assert_true(alone == values[497]);
}

/* ---- models ---- */

struct fixture {
    char *dir;
    struct bitconv_dummy_options options;
    struct bitconv_dummy *result;
    struct bitconv_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->dir = temp_dir_new();
    f->options = (struct bitconv_dummy_options){
        .arch = "bitnet", .layers = 1, .hidden = 256, .vocab = 512, .n_threads = 2};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    bitconv_dummy_free(f->result);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static enum bitconv_status make(struct fixture *f, const char *name)
{
    char *path = temp_dir_path(f->dir, name);
    struct bitconv_dummy_options o = f->options;
    o.outfile = path;
    bitconv_dummy_free(f->result);
    f->err = (struct bitconv_error){.status = BITCONV_OK};
    const enum bitconv_status status = bitconv_dummy(&o, NULL, &f->result, &f->err);
    free(path);
    return status;
}

static void must_make(struct fixture *f, const char *name)
{
    if (make(f, name) != BITCONV_OK) fail_msg("%s %s: %s", f->options.arch, name, f->err.text);
}

static struct bc_hash128 hash_of(const struct fixture *f, const char *name)
{
    char *path = temp_dir_path(f->dir, name);
    struct bc_file file;
    assert_int_equal(bc_file_open(path, &file, NULL), BITCONV_OK);
    const struct bc_hash128 hash = bc_hash128(file.data, file.size);
    bc_file_close(&file);
    free(path);
    return hash;
}

static bool same_files(const struct fixture *f, const char *a, const char *b)
{
    const struct bc_hash128 x = hash_of(f, a), y = hash_of(f, b);
    return x.high == y.high && x.low == y.low;
}

/* Converts DIR/from to DIR/to, and verifies it against the folder. */
static void convert(struct fixture *f, const char *from, const char *outtype, const char *to,
                    bool verify)
{
    char *dir = temp_dir_path(f->dir, from), *path = temp_dir_path(f->dir, to);
    const struct bitconv_convert_options o = {
        .outtype = outtype, .outfile = path, .n_threads = 2, .force = true, .on_misfit = "f16"};
    const struct bitconv_verify_options v = {.source = dir, .conversion = &o, .n_threads = 2};
    struct bitconv_conversion *c = NULL;
    struct bitconv_verification *result = NULL;
    if (bitconv_convert(dir, &o, NULL, &c, &f->err) != BITCONV_OK)
        fail_msg("%s to %s: %s", from, outtype, f->err.text);
    bitconv_conversion_free(c);
    if (verify) {
        if (bitconv_verify(path, &v, NULL, &result, &f->err) != BITCONV_OK || !result->ok)
            fail_msg("%s to %s: not verified: %s", from, outtype, f->err.text);
        bitconv_verification_free(result);
    }
    free(dir);
    free(path);
}

/* Every family, in every form: the folder is what its class needs, and converting is proven. */
static void every_family_converts(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; bitconv_dummy_arch(i) != NULL; i++) {
        f->options.arch = bitconv_dummy_arch(i);
        f->options.force = true;
        for (int form = 0; form <= BITCONV_DUMMY_PACKED; form++) {
            f->options.form = (enum bitconv_dummy_form)form;
            must_make(f, "m");
            convert(f, "m", "i2_s", "c.gguf", true);
        }
        convert(f, "m", "f16", "c.gguf", true);
    }
}

/* A GGUF made at once is what converting the packed folder of its name gives. */
static void gguf_is_the_converted_folder(void **state)
{
    static const char *const outtypes[] = {"f32",     "f16",  "bf16",   "q8_0",  "i2_s",
                                           "i2_s_64", "tl1",  "tl2",    "tq1_0", "tq2_0",
                                           "q2_0",    "q1_0", "bitcos", "t5",    "auto"};
    struct fixture *f = *state;
    f->options.force = true;
    f->options.conversion.on_misfit = "f16";
    for (size_t i = 0; bitconv_dummy_arch(i) != NULL; i++) {
        f->options.arch = bitconv_dummy_arch(i);
        f->options.form = BITCONV_DUMMY_PACKED;
        f->options.dtype = i % 2 == 0 ? "bf16" : "f32";
        f->options.zeros = 0.1 * (double)(i % 5);
        f->options.has_zeros = true;
        f->options.outtype = NULL;
        must_make(f, "m");
        for (size_t k = 0; k < sizeof outtypes / sizeof outtypes[0]; k++) {
            /* nothing but float linear weights, which not every asked pack accepts */
            if (strcmp(outtypes[k], "q1_0") == 0 && f->options.zeros > 0) continue;
            f->options.outtype = outtypes[k];
            must_make(f, "m.gguf");
            convert(f, "m", outtypes[k], "c.gguf", false);
            if (!same_files(f, "m.gguf", "c.gguf"))
                fail_msg("%s %s differs from the conversion", f->options.arch, outtypes[k]);
        }
    }
}

/* The bytes depend on the seed, not on threads, instruction sets, or how they are dealt to files. */
static void the_same_seed_gives_the_same_bytes(void **state)
{
    struct fixture *f = *state;
    f->options.hidden = 512;
    must_make(f, "a");
    f->options.n_threads = 1;
    f->options.cpu = "scalar";
    must_make(f, "b");
    assert_true(same_files(f, "a/model.safetensors", "b/model.safetensors"));
    assert_true(same_files(f, "a/tokenizer.json", "b/tokenizer.json"));
    f->options.seed = 1;
    must_make(f, "c");
    assert_false(same_files(f, "a/model.safetensors", "c/model.safetensors"));
    f->options.seed = 0;
    f->options.shards = 3;
    must_make(f, "d");
    assert_int_equal(f->result->n_files, 3);
    f->options.shards = 0;
    f->options.max_shard_size = 100000;
    must_make(f, "e");
    assert_true(f->result->n_files > 3);
}

/* Files of different folders differ in nothing but the folder's name. */
static void shards_change_nothing(void **state)
{
    struct fixture *f = *state;
    f->options.name = "model";
    must_make(f, "one");
    convert(f, "one", "i2_s", "one.gguf", false);
    const struct bc_hash128 one = hash_of(f, "one.gguf");
    char *from = temp_dir_path(f->dir, "one"), *to = temp_dir_path(f->dir, "kept");
    assert_int_equal(rename(from, to), 0);
    f->options.shards = 4;
    must_make(f, "one");
    convert(f, "one", "i2_s", "four.gguf", true);
    const struct bc_hash128 four = hash_of(f, "four.gguf");
    assert_true(one.high == four.high && one.low == four.low);
    free(from);
    free(to);
}

static void parameters_are_near_what_is_asked(void **state)
{
    static const struct {
        const char *size;
        double parameters, tolerance;
    } sizes[] = {{"1M", 1e6, 0.08},     {"10M", 1e7, 0.05},  {"125M", 125e6, 0.05},
                 {"350M", 350e6, 0.05}, {"1B", 1e9, 0.03},   {"1.7b", 1.7e9, 0.03},
                 {"30B", 30e9, 0.02},   {"70B", 70e9, 0.02}, {"100B", 100e9, 0.02}};
    struct fixture *f = *state;
    f->options.dry_run = true;
    f->options.layers = f->options.hidden = f->options.vocab = 0;
    for (size_t i = 0; bitconv_dummy_arch(i) != NULL; i++) {
        f->options.arch = bitconv_dummy_arch(i);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            f->options.size = sizes[k].size;
            must_make(f, "x");
            const struct bitconv_dummy *d = f->result;
            const double off = fabs((double)d->parameters / sizes[k].parameters - 1.0);
            if (off > sizes[k].tolerance)
                fail_msg("%s %s has %llu parameters", f->options.arch, sizes[k].size,
                         (unsigned long long)d->parameters);
            assert_int_equal(d->heads % d->kv_heads, 0);
            uint64_t bytes = 0;
            for (size_t t = 0; t < d->n_tensors; t++)
                bytes += d->tensors[t].size;
            assert_int_equal(bytes, d->size);
            assert_int_equal(bytes, 2 * d->parameters); /* BF16 masters */
        }
    }
}

static void published_shapes_are_exact(void **state)
{
    struct fixture *f = *state;
    f->options.dry_run = true;
    f->options.layers = f->options.hidden = f->options.vocab = 0;
    f->options.size = "2b-4t";
    must_make(f, "x");
    const struct bitconv_dummy *d = f->result;
    assert_int_equal(d->parameters, UINT64_C(2412820480)); /* microsoft/bitnet-b1.58-2B-4T */
    assert_int_equal(d->layers, 30);
    assert_int_equal(d->hidden, 2560);
    assert_int_equal(d->ffn, 6912);
    assert_int_equal(d->heads, 20);
    assert_int_equal(d->kv_heads, 5);
    assert_int_equal(d->vocab, 128256);
    assert_true(d->tied);
    f->options.arch = "llama";
    f->options.size = "7B";
    must_make(f, "x");
    assert_int_equal(f->result->parameters, UINT64_C(6738415616)); /* Llama 2 7B */
    f->options.size = "8B";
    must_make(f, "x");
    assert_int_equal(f->result->parameters, UINT64_C(8030261248)); /* Llama 3 8B */
    f->options.arch = "mistral";
    f->options.size = "7B";
    must_make(f, "x");
    assert_int_equal(f->result->parameters, UINT64_C(7241732096)); /* Mistral 7B v0.1 */
}

/* A hundred thousand million parameters are planned without a value or a file. */
static void large_models_are_planned(void **state)
{
    struct fixture *f = *state;
    f->options.dry_run = true;
    f->options.layers = f->options.hidden = f->options.vocab = 0;
    f->options.arch = "llama";
    f->options.size = "100B";
    f->options.outtype = "bitcos";
    must_make(f, "x.gguf");
    assert_true(f->result->size_is_expected);
    /* 2 - z bits a weight, and the embedding and output in F16 */
    assert_true(f->result->size > UINT64_C(20) << 30 && f->result->size < UINT64_C(23) << 30);
    assert_true(f->result->peak_memory < UINT64_C(128) << 20);
    char *path = temp_dir_path(f->dir, "x.gguf");
    assert_int_equal(bc_path_kind(path), BC_PATH_NONE);
    free(path);
}

static void refuse(struct fixture *f, const char *text)
{
    assert_int_equal(make(f, "x"), BITCONV_E_ARG);
    if (strstr(f->err.text, text) == NULL) fail_msg("'%s' lacks '%s'", f->err.text, text);
}

static void options_are_judged(void **state)
{
    struct fixture *f = *state;
    const struct bitconv_dummy_options good = f->options;
    f->options.arch = "bloom";
    refuse(f, "--arch: 'bloom' is not one of: bitnet,");
    f->options = good;
    f->options.layers = 0;
    refuse(f, "--size is missing");
    f->options.size = "125Q";
    refuse(f, "--size: '125Q'");
    f->options.size = "1";
    refuse(f, "--size: '1'");
    f->options = good;
    f->options.vocab = 300;
    refuse(f, "--vocab: 300 is not between 512 and");
    f->options = good;
    f->options.heads = 6;
    f->options.kv_heads = 4;
    refuse(f, "--kv-heads: 4");
    f->options = good;
    f->options.has_zeros = true;
    f->options.zeros = 1.5;
    refuse(f, "--zeros: 1.5");
    f->options = good;
    f->options.experts = 4;
    refuse(f, "--experts");
    f->options = good;
    f->options.dtype = "f64";
    refuse(f, "--dtype: 'f64'");
    f->options = good;
    f->options.shards = 1000;
    refuse(f, "--shards: 1000 files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_splitmix64),
        cmocka_unit_test(trits_follow_the_definition),
        cmocka_unit_test(masters_quantize_to_the_trits),
        cmocka_unit_test(other_values_have_their_range),
        cmocka_unit_test_setup_teardown(every_family_converts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gguf_is_the_converted_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_same_seed_gives_the_same_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shards_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters_are_near_what_is_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(published_shapes_are_exact, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_models_are_planned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(options_are_judged, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
