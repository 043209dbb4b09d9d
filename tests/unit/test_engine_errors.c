/* SPDX-License-Identifier: MIT
 * What the engine refuses, and what it says; observation, pooling, and layers of some neurons. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/file.h"
#include "engine/session.h"
#include "io/gguf_impl.h"
#include "support/engine_run.h"
#include "support/rng.h"
#include "support/temp_dir.h"

enum { N_TOKENS = 5 };

/* Opening r's file fails with `status`, and the error holds `text`. */
static void refused(const struct convert_run *r, const struct bitconv_engine_options *options,
                    enum bitconv_status status, const char *text)
{
    struct bitconv_engine *engine = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    assert_int_equal(bitconv_engine_open(r->out, options, NULL, &engine, &err), status);
    if (strstr(err.text, text) == NULL) print_error("\"%s\" is not in: %s\n", text, err.text);
    assert_non_null(strstr(err.text, text));
    assert_null(engine);
}

static void run_refused(struct bitconv_session *s, const int32_t *tokens, size_t n,
                        enum bitconv_status status, const char *text)
{
    struct bitconv_error err = {.status = BITCONV_OK};
    struct bitconv_run run = {.want_hidden = true};
    assert_int_equal(bitconv_session_run(s, tokens, n, &run, &err), status);
    if (strstr(err.text, text) == NULL) print_error("\"%s\" is not in: %s\n", text, err.text);
    assert_non_null(strstr(err.text, text));
    assert_null(run.hidden);
}

static size_t find_text(const struct bc_buf *bytes, const char *text)
{
    const size_t n = strlen(text);
    size_t at = 0;
    while (at + n <= bytes->size && memcmp(bytes->data + at, text, n) != 0)
        at++;
    assert_true(at + n <= bytes->size);
    return at;
}

/* Replaces the first `from` in r's file by `to`, of the same length. */
static void patch(const struct convert_run *r, const char *from, const char *to)
{
    struct bc_buf bytes = {0};
    convert_run_file(r->out, &bytes);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(bytes.data + find_text(&bytes, from), to, strlen(to));
    assert_int_equal(bc_file_write(r->out, bytes.data, bytes.size, true, NULL), BITCONV_OK);
    bc_buf_release(&bytes);
}

static void options_are_checked(void **state)
{
    struct convert_run *const r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    refused(r, &(struct bitconv_engine_options){.mode = "int4"}, BITCONV_E_ARG, "float or int8");
    refused(r, &(struct bitconv_engine_options){.cpu = "mmx"}, BITCONV_E_ARG, "not known");
    refused(r, &(struct bitconv_engine_options){.n_ctx = 4097}, BITCONV_E_LIMIT, "4096");
}

static void missing_tensors_are_named(void **state)
{
    static const char *const names[] = {"blk.1.attn_norm.weight", "blk.0.attn_sub_norm.weight",
                                        "blk.1.ffn_down.weight", "token_embd.weight",
                                        "output_norm.weight"};
    struct convert_run *const r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char other[64];
        convert_run_accept(r, "f32");
        strcpy(other, names[i]);
        other[4] = 'X'; /* blk.X. and the like */
        patch(r, names[i], other);
        refused(r, NULL, BITCONV_E_CORRUPT, names[i]);
    }
}

static void missing_scaling_and_norms_are_named(void **state)
{
    struct convert_run *const r = *state;
    convert_run_model(r, "llama-158", NULL, 0);
    convert_run_accept(r, "f32");
    patch(r, "rope_freqs.weight", "rope_frexs.weight");
    refused(r, NULL, BITCONV_E_CORRUPT, "rope_freqs.weight: missing");
    convert_run_model(r, "qwen3-embed", NULL, 0);
    convert_run_accept(r, "f16");
    patch(r, "blk.0.attn_k_norm_in.weight", "blk.0.attn_k_nxrm_in.weight");
    refused(r, NULL, BITCONV_E_CORRUPT, "blk.0.attn_k.weight: other projections have a norm");
}

static void unknown_metadata_is_refused(void **state)
{
    struct convert_run *const r = *state;
    convert_run_model(r, "llama-ternary", NULL, 0);
    convert_run_accept(r, "f32");
    patch(r, "linear", "lineax");
    refused(r, NULL, BITCONV_E_UNSUPPORTED, "'lineax' is not a RoPE scaling");
    convert_run_accept(r, "f32");
    patch(r, "silu", "sxlu");
    refused(r, NULL, BITCONV_E_UNSUPPORTED, "the activation 'sxlu'");
}

/* Facts that other writers leave out take the family's default, in one note. */
static void absent_facts_are_said(void **state)
{
    struct convert_run *const r = *state;
    struct bitconv_engine *engine = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    convert_run_model(r, "llama-ternary", NULL, 0);
    convert_run_accept(r, "f32");
    patch(r, "llama.rope.freq_base", "llama.rope.xreq_base");
    patch(r, "llama.hidden_activation", "llama.xidden_activation");
    assert_int_equal(bitconv_engine_open(r->out, NULL, &r->sink, &engine, &err), BITCONV_OK);
    assert_true(convert_run_said(r, "rope.freq_base (10000), hidden_activation (silu)"));
    bitconv_engine_close(engine);
}

static void tokens_are_checked(void **state)
{
    static const int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, bad[] = {3, 320}, worse[] = {-1};
    const struct bitconv_engine_options options = {.n_ctx = 8, .n_threads = 1};
    struct convert_run *const r = *state;
    struct bitconv_session *s = NULL;
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_engine *engine = engine_of_file(r, &options);
    assert_int_equal(bitconv_session_new(engine, &s, NULL), BITCONV_OK);
    run_refused(s, tokens, 0, BITCONV_E_ARG, "no tokens");
    run_refused(s, tokens, 9, BITCONV_E_LIMIT, "9 tokens behind 0 do not fit into a context of 8");
    run_refused(s, bad, 2, BITCONV_E_ARG, "token 1 is 320");
    run_refused(s, worse, 1, BITCONV_E_ARG, "token 0 is -1");
    struct bitconv_run run = {.want_hidden = true};
    assert_int_equal(bitconv_session_run(s, tokens, 6, &run, NULL), BITCONV_OK);
    assert_int_equal(bitconv_session_length(s), 6);
    run_refused(s, tokens, 3, BITCONV_E_LIMIT, "behind 6");
    bitconv_session_reset(s);
    assert_int_equal(bitconv_session_run(s, tokens, 8, &run, NULL), BITCONV_OK);
    bitconv_session_free(s);
    bitconv_engine_close(engine);
}

static void both_directions_want_the_whole_text(void **state)
{
    static const int32_t tokens[] = {1, 2, 3};
    struct convert_run *const r = *state;
    struct bitconv_session *s = NULL;
    struct bitconv_run run = {.want_hidden = true};
    convert_run_model(r, "bert", NULL, 0);
    convert_run_accept(r, "f32");
    struct bitconv_engine *engine = engine_of_file(r, NULL);
    assert_int_equal(bitconv_session_new(engine, &s, NULL), BITCONV_OK);
    assert_int_equal(bitconv_session_run(s, tokens, 3, &run, NULL), BITCONV_OK);
    run_refused(s, tokens, 1, BITCONV_E_ARG, "the whole text must come at once");
    bitconv_session_free(s);
    bitconv_engine_close(engine);
}

/* A weight too large: products overflow, and the first place is named. */
static void first_nonfinite_result_is_named(void **state)
{
    static const int32_t tokens[] = {1, 2, 3};
    struct convert_run *const r = *state;
    const struct bitconv_engine_options options = {.check = true, .n_threads = 1};
    struct bitconv_session *s = NULL;
    convert_run_model(r, "llama-ternary", NULL, 0);
    convert_run_accept(r, "f32");
    const uint64_t at = convert_run_stored(r, "blk.0.ffn_down.weight")->file_offset + 4 * 128 * 5;
    struct bc_buf bytes = {0};
    convert_run_file(r->out, &bytes);
    for (size_t i = 0; i < 128; i++)
        bc_put_f32(bytes.data + at + 4 * i, NAN);
    assert_int_equal(bc_file_write(r->out, bytes.data, bytes.size, true, NULL), BITCONV_OK);
    bc_buf_release(&bytes);
    struct bitconv_engine *engine = engine_of_file(r, &options);
    assert_int_equal(bitconv_session_new(engine, &s, NULL), BITCONV_OK);
    run_refused(s, tokens, 3, BITCONV_E_MISMATCH, "blk.0.ffn_down: value 5 of token 0 is NaN");
    assert_int_equal(bitconv_session_length(s), 0);
    bitconv_session_free(s);
    bitconv_engine_close(engine);
}

struct seen {
    size_t n;
    char first[64], last[64];
    bool stop;
};

static enum bitconv_status see(void *user, const char *name, const float *values, size_t n_tokens,
                               size_t width, struct bitconv_error *err)
{
    struct seen *seen = user;
    assert_true(values != NULL && n_tokens == 3 && width > 0);
    if (seen->n++ == 0) strcpy(seen->first, name);
    strcpy(seen->last, name);
    if (!seen->stop || strcmp(name, "blk.0.ffn_act") != 0) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CANCELED, "stopped");
}

static void results_are_observed(void **state)
{
    static const int32_t tokens[] = {1, 2, 3};
    struct seen seen = {0};
    struct convert_run *const r = *state;
    const struct bitconv_engine_options options = {.observe = see, .user = &seen};
    struct bitconv_session *s = NULL;
    struct bitconv_run run = {.want_hidden = true};
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_engine *engine = engine_of_file(r, &options);
    assert_int_equal(bitconv_session_new(engine, &s, NULL), BITCONV_OK);
    assert_int_equal(bitconv_session_run(s, tokens, 3, &run, NULL), BITCONV_OK);
    assert_string_equal(seen.first, "embedding");
    assert_string_equal(seen.last, "final_norm");
    assert_int_equal(seen.n, 2 + 2 * 14);
    seen.stop = true;
    bitconv_session_reset(s);
    run_refused(s, tokens, 3, BITCONV_E_CANCELED, "stopped");
    assert_string_equal(seen.last, "blk.0.ffn_act");
    bitconv_session_free(s);
    bitconv_engine_close(engine);
}

static size_t all_neurons(void *user, uint32_t layer, const float *x, uint32_t *neurons)
{
    const size_t n = *(const size_t *)user;
    (void)layer;
    (void)x;
    for (size_t i = 0; i < n; i++)
        neurons[i] = (uint32_t)i;
    return n;
}

/* With every neuron selected nothing changes, bit for bit; with fewer it does. */
static void sparse_with_all_neurons_is_dense(void **state)
{
    static const char *const modes[] = {"float", "int8"};
    struct convert_run *const r = *state;
    int32_t tokens[N_TOKENS];
    engine_tokens(tokens, N_TOKENS);
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    for (size_t m = 0; m < 2; m++) {
        const struct bitconv_engine_options options = {.mode = modes[m], .n_threads = 2};
        struct engine_result dense, sparse;
        size_t n = 128;
        struct bitconv_engine *engine = engine_of_file(r, &options);
        engine_run(engine, tokens, N_TOKENS, 0, &dense);
        engine->select = all_neurons;
        engine->select_user = &n;
        engine_run(engine, tokens, N_TOKENS, 0, &sparse);
        engine_results_equal(&dense, &sparse, modes[m]);
        engine_result_free(&sparse);
        n = 64;
        engine_run(engine, tokens, N_TOKENS, 0, &sparse);
        assert_memory_not_equal(dense.hidden, sparse.hidden, dense.n_embd * sizeof(float));
        engine_result_free(&dense);
        engine_result_free(&sparse);
        bitconv_engine_close(engine);
    }
}

/* Poolings and norms against the hidden states. */
static void embeddings_are_pooled(void **state)
{
    enum { D = 128 };
    struct convert_run *const r = *state;
    int32_t tokens[N_TOKENS];
    struct engine_result all;
    float out[N_TOKENS * D];
    struct bitconv_session *s = NULL;
    double sum = 0, largest = 0;
    engine_tokens(tokens, N_TOKENS);
    convert_run_model(r, "qwen3-embed", NULL, 0);
    convert_run_accept(r, "i2_s");
    struct bitconv_engine *engine = engine_of_file(r, NULL);
    engine_run(engine, tokens, N_TOKENS, 0, &all);
    assert_int_equal(bitconv_session_new(engine, &s, NULL), BITCONV_OK);
    assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, 3, -1, out, NULL), BITCONV_OK);
    assert_memory_equal(out, all.hidden + (N_TOKENS - 1) * D, D * sizeof *out);
    assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, 2, -1, out, NULL), BITCONV_OK);
    assert_memory_equal(out, all.hidden, D * sizeof *out);
    assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, 0, -1, out, NULL), BITCONV_OK);
    assert_memory_equal(out, all.hidden, sizeof out);
    assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, 1, -1, out, NULL), BITCONV_OK);
    for (size_t t = 0; t < N_TOKENS; t++)
        sum += (double)all.hidden[t * D + 7] / N_TOKENS;
    assert_true(fabs(sum - (double)out[7]) < 1e-6);
    for (int p = 1; p <= 3; p++) {
        assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, -1, p, out, NULL), BITCONV_OK);
        sum = 0;
        for (size_t i = 0; i < D; i++)
            sum += pow(fabs((double)out[i]), p);
        assert_true(fabs(sum - 1) < 1e-5);
    }
    assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, -1, 0, out, NULL), BITCONV_OK);
    for (size_t i = 0; i < D; i++)
        largest = fmax(largest, fabs((double)out[i]));
    assert_true(fabs(largest - 32760) < 0.01);
    assert_int_equal(bitconv_session_embed(s, tokens, N_TOKENS, 4, 2, out, NULL), BITCONV_E_ARG);
    engine_result_free(&all);
    bitconv_session_free(s);
    bitconv_engine_close(engine);
}

/* Runs a file held in memory where it can be opened. */
static void try_bytes(const struct bc_buf *bytes, const char *mode)
{
    static const int32_t tokens[] = {1, 2};
    const struct bitconv_engine_options options = {.n_threads = 1, .n_ctx = 4, .mode = mode};
    struct bc_arena arena = {NULL};
    struct bc_stated stated = {0};
    struct bitconv_gguf *file = NULL;
    struct bitconv_engine *engine = NULL;
    struct bitconv_session *s = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    struct bitconv_run run = {.want_logits = BITCONV_LOGITS_LAST};
    if (bc_gguf_parse(bytes->data, bytes->size, "memory", &file, &err) != BITCONV_OK) return;
    if (bc_stated_read(file, &arena, &stated, &err) == BITCONV_OK &&
        bc_engine_open_gguf(file, &stated, NULL, &options, NULL, &engine, &err) == BITCONV_OK &&
        bitconv_session_new(engine, &s, &err) == BITCONV_OK)
        (void)bitconv_session_run(s, tokens, 2, &run, &err);
    assert_true(engine != NULL || err.text[0] != '\0');
    bitconv_session_free(s);
    bitconv_engine_close(engine);
    bc_stated_release(&stated);
    bc_arena_release(&arena);
    bitconv_gguf_close(file);
}

/* Single bytes of keys, values and tensor infos changed: refused or run, never more. */
static void damaged_headers_are_survived(void **state)
{
    static const char *const cases[][2] = {{"bitnet", "i2_s"}, {"mixtral", "bitcos"},
                                           {"lfm2", "f16"},    {"phi3", "t5"},
                                           {"bert", "q8_0"},   {"gemma3-embed", "f32"}};
    struct convert_run *const r = *state;
    uint64_t seed = 7;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct bc_buf bytes = {0};
        convert_run_model(r, cases[c][0], NULL, 0);
        convert_run_accept(r, cases[c][1]);
        const uint64_t header = bitconv_gguf_data_offset(r->gguf);
        convert_run_file(r->out, &bytes);
        const uint64_t tokens = find_text(&bytes, "tokenizer.ggml.model");
        for (size_t i = 0; i < 300; i++) {
            /* in front of the tokenizer, or among the tensor infos */
            const uint64_t at =
                i % 2 == 0 ? rng_below(&seed, tokens) : header - 1 - rng_below(&seed, 1500);
            const uint8_t old = bytes.data[at];
            bytes.data[at] = (uint8_t)rng_below(&seed, 256);
            try_bytes(&bytes, i % 4 < 2 ? "float" : "int8");
            bytes.data[at] = old;
        }
        bc_buf_release(&bytes);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(options_are_checked),
        TEST(missing_tensors_are_named),
        TEST(missing_scaling_and_norms_are_named),
        TEST(unknown_metadata_is_refused),
        TEST(absent_facts_are_said),
        TEST(tokens_are_checked),
        TEST(both_directions_want_the_whole_text),
        TEST(first_nonfinite_result_is_named),
        TEST(results_are_observed),
        TEST(sparse_with_all_neurons_is_dense),
        TEST(embeddings_are_pooled),
        TEST(damaged_headers_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
