/* SPDX-License-Identifier: MIT
 * Predictors and sparse blocks on whole models: all neurons are dense exactly, a map that is of low
 * rank is found, other models' and damaged predictors are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/file.h"
#include "formats/format.h"
#include "sparse/predictor.h"
#include "support/engine_run.h"
#include "support/wide_model.h"

enum { N_TOKENS = 9 };

static size_t all_neurons(void *user, uint32_t layer, const float *x, uint32_t *neurons)
{
    const uint32_t n = *(const uint32_t *)user;
    (void)layer;
    (void)x;
    for (uint32_t i = 0; i < n; i++)
        neurons[i] = i;
    return n;
}

static void dense_equals_all(struct convert_run *r, const char *what)
{
    static const char *const modes[] = {"float", "int8"};
    int32_t tokens[N_TOKENS];
    engine_tokens(tokens, N_TOKENS);
    for (size_t m = 0; m < 2; m++) {
        const struct bitconv_engine_options options = {
            .mode = modes[m], .n_threads = 1, .n_ctx = 64};
        struct engine_result dense, sparse;
        char text[96];
        struct bitconv_engine *engine = engine_of_file(r, &options);
        uint32_t n = engine->graph->hp.n_ff;
        snprintf(text, sizeof text, "%s, %s", what, modes[m]);
        engine_run(engine, tokens, N_TOKENS, 0, &dense);
        engine->select = all_neurons;
        engine->select_user = &n;
        engine_run(engine, tokens, N_TOKENS, 0, &sparse);
        engine_results_equal(&dense, &sparse, text);
        engine_result_free(&sparse);
        n = n / 2 + 1; /* and it is not the dense path that ran */
        engine_run(engine, tokens, N_TOKENS, 0, &sparse);
        assert_memory_not_equal(dense.hidden, sparse.hidden, dense.n_embd * sizeof(float));
        engine_result_free(&dense);
        engine_result_free(&sparse);
        bitconv_engine_close(engine);
    }
}

/* Gates of their own and fused ones, input norms, sub norms, convolutions; every pack. */
static void all_neurons_are_dense(void **state)
{
    static const char *const fixtures[] = {"bitnet",       "bitnet-1bitllm", "bitnet-master",
                                           "gemma3-embed", "llama-ternary",  "qwen3-embed",
                                           "qwen2",        "phi3",           "lfm2"};
    struct convert_run *const r = *state;
    r->options.on_misfit = "f16";
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        wide_model(r, fixtures[f]);
        for (size_t p = 0; bc_format_at(p) != NULL; p++) {
            char what[64];
            const char *pack = bc_format_at(p)->name;
            if (strcmp(pack, "q1_0") == 0) continue; /* no code for zeros */
            snprintf(what, sizeof what, "%s as %s", fixtures[f], pack);
            convert_run_accept(r, pack);
            dense_equals_all(r, what);
        }
        convert_run_accept(r, "f16");
        dense_equals_all(r, fixtures[f]);
    }
}

/* ---- calibrating ---- */

/* What a test calibrates with. */
static struct bitconv_sparse_options settings(const struct convert_run *r,
                                              struct bitconv_sparse_text *text, int32_t *tokens,
                                              size_t n, const char *outfile)
{
    (void)r;
    engine_tokens(tokens, n);
    *text = (struct bitconv_sparse_text){tokens, n};
    return (struct bitconv_sparse_options){
        .n_threads = 1, .texts = text, .n_texts = 1, .outfile = outfile, .force = true};
}

static struct bitconv_sparse_report *calibrate(const char *path,
                                               const struct bitconv_sparse_options *o)
{
    struct bitconv_sparse_report *report = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    if (bitconv_sparse_calibrate(path, o, NULL, &report, &err) != BITCONV_OK)
        print_error("%s\n", err.text);
    assert_non_null(report);
    return report;
}

static char *beside(const struct convert_run *r, const char *name)
{
    char *path = bc_path_join(r->root, name);
    assert_non_null(path);
    return path;
}

/* One token over and over gives one input a layer: the map from it to its magnitudes is of rank 1
 * exactly, and finds the truly largest. */
static void exact_map_is_found(void **state)
{
    enum { N = 12 };
    struct convert_run *const r = *state;
    struct bitconv_sparse_text text;
    int32_t tokens[N];
    char *path = beside(r, "predictor.gguf");
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_sparse_options o = settings(r, &text, tokens, N, path);
    for (size_t i = 0; i < N; i++)
        tokens[i] = 17;
    o.rank = 1;
    o.ridge = 1e-7;
    o.f32 = true;
    o.rule.share = 0.25;
    struct bitconv_sparse_report *report = calibrate(r->out, &o);
    const struct bitconv_sparse_quality *q = report->samples;
    assert_int_equal(report->n_samples, N);
    assert_int_equal(report->top_k, 32);
    for (uint32_t i = 0; i < report->n_layers; i++) {
        assert_true(q->layers[i].recall > 0.999999);
        assert_true(q->layers[i].explained > 0.9999);
        assert_true(fabs(q->layers[i].sparsity - 0.75) < 1e-12);
    }
    assert_true(q->total.recall > 0.999999 && q->has_logits && q->n_tokens == N);
    bitconv_sparse_report_free(report);
    bc_free(path);
}

/* N different inputs and rank N: every sample's magnitudes are given back, in every mode of storing
 * the sums, with any number of threads: the files are equal. */
static void samples_are_given_back(void **state)
{
    enum { N = 20 };
    struct convert_run *const r = *state;
    struct bitconv_sparse_text text;
    int32_t tokens[N];
    struct bc_buf first = {0}, second = {0};
    char *path = beside(r, "predictor.gguf");
    convert_run_model(r, "llama-ternary", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_sparse_options o = settings(r, &text, tokens, N, path);
    o.rank = N;
    o.ridge = 1e-7;
    o.f32 = true;
    struct bitconv_sparse_report *report = calibrate(r->out, &o);
    assert_true(report->samples->total.recall > 0.999);
    assert_true(report->samples->total.explained > 0.9999);
    convert_run_file(path, &first);
    bitconv_sparse_report_free(report);
    o.n_threads = 3;
    o.memory = 720000; /* a pass for every layer */
    bitconv_sparse_report_free(calibrate(r->out, &o));
    convert_run_file(path, &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    bc_buf_release(&first);
    bc_buf_release(&second);
    bc_free(path);
}

/* share 1: errors are 0, logits and generated tokens those of the dense model. */
static void share_one_is_dense(void **state)
{
    enum { N = 12, MORE = 8 };
    static const char *const modes[] = {"float", "int8"};
    struct convert_run *const r = *state;
    struct bitconv_sparse_text text;
    int32_t tokens[N];
    char *path = beside(r, "predictor.gguf");
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "tl1");
    struct bitconv_sparse_options o = settings(r, &text, tokens, N, path);
    bitconv_sparse_report_free(calibrate(r->out, &o));
    o.predictor = path;
    o.prompt = text;
    o.n_generate = MORE;
    for (size_t m = 0; m < 2; m++) {
        struct bitconv_sparse_report *report = NULL;
        o.mode = modes[m];
        o.rule.share = 1;
        assert_int_equal(bitconv_sparse_run(r->out, &o, NULL, &report, NULL), BITCONV_OK);
        const struct bitconv_sparse_quality *q = report->held_out;
        assert_true(q->hidden_error == 0 && q->logits_error == 0 && q->top1 == 1);
        assert_true(q->total.error == 0 && q->total.recall == 1 && q->total.mass == 1);
        assert_true(q->total.sparsity == 0 && report->n_generated > 0);
        bitconv_sparse_report_free(report);
        o.rule.share = 0.1;
        assert_int_equal(bitconv_sparse_run(r->out, &o, NULL, &report, NULL), BITCONV_OK);
        assert_true(report->held_out->hidden_error > 0 && report->top_k == 13);
        bitconv_sparse_report_free(report);
    }
    bc_free(path);
}

/* ---- refusals ---- */

static void refused(const char *path, const struct bitconv_sparse_options *o, bool run,
                    enum bitconv_status status, const char *text)
{
    struct bitconv_sparse_report *report = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    const enum bitconv_status got = run ? bitconv_sparse_run(path, o, NULL, &report, &err)
                                        : bitconv_sparse_calibrate(path, o, NULL, &report, &err);
    if (got != status || strstr(err.text, text) == NULL)
        print_error("wanted %s, %s; got %s\n", bitconv_status_name(status), text, err.text);
    assert_int_equal(got, status);
    assert_non_null(strstr(err.text, text));
    assert_null(report);
}

static void models_without_gates_are_refused(void **state)
{
    struct convert_run *const r = *state;
    struct bitconv_sparse_text text;
    int32_t tokens[4];
    char *path = beside(r, "predictor.gguf");
    struct bitconv_sparse_options o = settings(r, &text, tokens, 4, path);
    convert_run_model(r, "mixtral", NULL, 0);
    convert_run_accept(r, "f32");
    refused(r->out, &o, false, BITCONV_E_UNSUPPORTED, "mixture of experts");
    convert_run_model(r, "bert", NULL, 0);
    convert_run_accept(r, "f32");
    refused(r->out, &o, false, BITCONV_E_UNSUPPORTED, "has no gate");
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "f32");
    o.memory = 1000;
    refused(r->out, &o, false, BITCONV_E_LIMIT, "--memory");
    o.memory = 0;
    o.rank = 129;
    refused(r->out, &o, false, BITCONV_E_ARG, "--rank");
    o.rank = 0;
    o.rule.top_k = 129;
    refused(r->out, &o, false, BITCONV_E_ARG, "129 active neurons");
    o.rule.share = 0.5;
    refused(r->out, &o, false, BITCONV_E_ARG, "only one of");
    o.rule = (struct bitconv_sparse_rule){.share = NAN};
    refused(r->out, &o, false, BITCONV_E_ARG, "--share");
    assert_int_equal(bc_path_kind(path), BC_PATH_NONE);
    bc_free(path);
}

/* Overwrites bytes of a file. */
static void patch(const char *path, uint64_t at, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Replaces the first occurrence of a text in a file by one of the same length. */
static void replace(const char *path, const char *from, const char *to)
{
    struct bc_buf file = {0};
    convert_run_file(path, &file);
    for (size_t i = 0; i + strlen(from) <= file.size; i++) {
        if (memcmp(file.data + i, from, strlen(from)) != 0) continue;
        patch(path, i, to, strlen(to));
        bc_buf_release(&file);
        return;
    }
    fail_msg("%s is not in the file", from);
}

static void damaged_predictors_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"sparse-ffn", "sparse-xxx", "no predictor"},
        {"sparse-ffn.rank", "sparse-ffn.rang", "sparse-ffn.rank is missing"},
        {"top_k", "top_j", "neither top_k nor threshold"},
        {"sparse-ffn.block_count", "sparse-ffn.block_xxxxx", "block_count is missing"},
        {"blk.1.ffn_pred_v", "blk.1.ffn_pred_w", "blk.1.ffn_pred_v.weight is missing"},
        {"bitnet", "bitnat", "not for models of the family"},
    };
    struct convert_run *const r = *state;
    struct bitconv_sparse_text text;
    int32_t tokens[4];
    char *path = beside(r, "predictor.gguf");
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_sparse_options o = settings(r, &text, tokens, 4, path);
    o.f32 = true;
    o.predictor = path;
    o.prompt = text;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bitconv_sparse_report *report = NULL;
        struct bitconv_error err = {.status = BITCONV_OK};
        bitconv_sparse_report_free(calibrate(r->out, &o));
        replace(path, cases[i].from, cases[i].to);
        assert_int_not_equal(bitconv_sparse_run(r->out, &o, NULL, &report, &err), BITCONV_OK);
        if (strstr(err.text, cases[i].says) == NULL) print_error("%s\n", err.text);
        assert_non_null(strstr(err.text, cases[i].says));
    }
    /* a value that is not finite; a shape; another rank */
    static const uint8_t nan[] = {0, 0, 0xc0, 0x7f}, zero[4] = {0};
    struct bitconv_gguf *file = NULL;
    bitconv_sparse_report_free(calibrate(r->out, &o));
    assert_int_equal(bitconv_gguf_open(path, &file, NULL), BITCONV_OK);
    const uint64_t v = bitconv_gguf_find_tensor(file, "blk.1.ffn_pred_v.weight")->file_offset;
    bitconv_gguf_close(file);
    patch(path, v + 4 * 77, nan, sizeof nan);
    refused(r->out, &o, true, BITCONV_E_CORRUPT, "blk.1.ffn_pred_v.weight: value 77 is not finite");
    patch(path, v + 4 * 77, zero, sizeof zero);
    struct bc_buf bytes = {0};
    convert_run_file(path, &bytes);
    const char key[] = "sparse-ffn.rank";
    for (size_t i = 0; i + sizeof key < bytes.size; i++)
        if (memcmp(bytes.data + i, key, sizeof key - 1) == 0) {
            patch(path, i + sizeof key - 1 + 4, "\x1f", 1);
            refused(r->out, &o, true, BITCONV_E_CORRUPT, "wanted 128 x 31");
            patch(path, i + sizeof key - 1 + 4, "\xff\xff\xff\xff", 4);
            refused(r->out, &o, true, BITCONV_E_CORRUPT, "rank is 4294967295");
        }
    bc_buf_release(&bytes);
    bc_free(path);
}

/* The same model in another pack is the same; another one is not. */
static void predictors_know_their_model(void **state)
{
    struct convert_run *const r = *state;
    struct bitconv_sparse_text text;
    struct bitconv_sparse_report *report = NULL;
    int32_t tokens[4];
    char *path = beside(r, "predictor.gguf");
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_sparse_options o = settings(r, &text, tokens, 4, path);
    o.predictor = path;
    o.prompt = text;
    bitconv_sparse_report_free(calibrate(r->out, &o));
    convert_run_accept(r, "bitcos");
    assert_int_equal(bitconv_sparse_run(r->out, &o, NULL, &report, NULL), BITCONV_OK);
    assert_int_equal(report->n_generated, 0);
    bitconv_sparse_report_free(report);
    assert_int_equal(bitconv_sparse_run(r->model, &o, NULL, &report, NULL), BITCONV_OK);
    bitconv_sparse_report_free(report);
    wide_model(r, "bitnet");
    convert_run_accept(r, "i2_s");
    refused(r->out, &o, true, BITCONV_E_ARG, "embedding_length is 128");
    convert_run_model(r, "bitnet-master", NULL, 0);
    convert_run_accept(r, "i2_s");
    refused(r->out, &o, true, BITCONV_E_ARG, "the predictor is for another model");
    bc_free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exact_map_is_found),
        TEST(samples_are_given_back),
        TEST(share_one_is_dense),
        TEST(models_without_gates_are_refused),
        TEST(damaged_predictors_are_refused),
        TEST(predictors_know_their_model),
        TEST(all_neurons_are_dense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
