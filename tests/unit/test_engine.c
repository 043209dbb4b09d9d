/* SPDX-License-Identifier: MIT
 * Forward passes: the source path equals the file path bit for bit for every family and every type,
 * and nothing depends on threads, instruction sets or how many tokens come at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/session.h"
#include "formats/block_pack.h"
#include "model/model_gguf.h"
#include "support/engine_run.h"
#include "support/wide_model.h"

enum { N_TOKENS = 9 };

static const char *const fixtures[] = {
    "bitnet",  "bitnet-1bitllm", "bitnet-master", "gemma3-embed", "llama-158", "llama-ternary",
    "mixtral", "qwen3-embed",    "qwen2",         "phi3",         "bert",      "lfm2"};
#define N_FIXTURES (sizeof fixtures / sizeof *fixtures)
static const char *const modes[] = {"float", "int8"};

static void paths_equal(struct convert_run *r, const char *what)
{
    int32_t tokens[N_TOKENS];
    engine_tokens(tokens, N_TOKENS);
    for (size_t m = 0; m < 2; m++) {
        const struct bitconv_engine_options options = {
            .n_threads = 1, .mode = modes[m], .n_ctx = 64, .check = true};
        struct engine_source source;
        struct engine_result from_source, from_file;
        char text[128];
        snprintf(text, sizeof text, "%s, %s", what, modes[m]);
        struct bitconv_engine *file = engine_of_file(r, &options);
        engine_source_open(r, &options, &source);
        engine_run(file, tokens, N_TOKENS, 0, &from_file);
        engine_run(source.engine, tokens, N_TOKENS, 0, &from_source);
        engine_results_equal(&from_source, &from_file, text);
        engine_result_free(&from_source);
        engine_result_free(&from_file);
        engine_source_close(&source);
        bitconv_engine_close(file);
    }
}

static void convert_and_compare(struct convert_run *r, const char *fixture, const char *outtype)
{
    char what[96];
    snprintf(what, sizeof what, "%s as %s", fixture, outtype);
    print_message("%s\n", what);
    convert_run_accept(r, outtype);
    paths_equal(r, what);
}

static void source_equals_file_in_float_types(void **state)
{
    static const char *const types[] = {"f32", "f16", "bf16", "q8_0"};
    struct convert_run *const r = *state;
    for (size_t f = 0; f < N_FIXTURES; f++) {
        convert_run_model(r, fixtures[f], NULL, 0);
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            convert_and_compare(r, fixtures[f], types[t]);
    }
}

/* Does the converted file hold a tensor in a pack? */
static bool holds_packs(const struct convert_run *r)
{
    for (size_t i = 0; i < r->result->n_tensors; i++)
        if (r->result->tensors[i].pack != NULL) return true;
    return false;
}

/* Every row of the registry; a tensor that a pack cannot hold is stored as floats. Q1_0 has no code
 * for zeros: only misfits would be left. Block packs: with the scale in a tensor, where the float16
 * of the blocks does not round it, and without. */
static void source_equals_file_in_packs(void **state)
{
    struct convert_run *const r = *state;
    r->options.on_misfit = "f16";
    for (size_t f = 0; f < N_FIXTURES; f++) {
        if (strcmp(fixtures[f], "llama-158") == 0) continue; /* in shards */
        wide_model(r, fixtures[f]);
        for (size_t p = 0; bc_format_at(p) != NULL; p++) {
            const char *pack = bc_format_at(p)->name;
            if (strcmp(pack, "q1_0") == 0) continue;
            convert_and_compare(r, fixtures[f], pack);
            assert_true(holds_packs(r));
            if (bc_block_pack_find(pack) == NULL) continue;
            r->options.scale_tensor = true;
            convert_and_compare(r, fixtures[f], pack);
            r->options.scale_tensor = false;
        }
    }
}

/* Q1_0 and the others by their own quantizers: each block its own largest magnitude. The integer path
 * needs the file's blocks, so only float mode can be compared. */
static void source_equals_file_in_quantized_blocks(void **state)
{
    static const char *const types[] = {"tq1_0", "tq2_0", "q2_0", "q1_0"};
    const struct bitconv_engine_options options = {.n_threads = 1, .n_ctx = 64};
    struct convert_run *const r = *state;
    int32_t tokens[N_TOKENS];
    engine_tokens(tokens, N_TOKENS);
    r->options.quant = "block";
    wide_model(r, "qwen2");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct engine_source source;
        struct engine_result from_source, from_file;
        convert_run_accept(r, types[i]);
        struct bitconv_engine *file = engine_of_file(r, &options);
        engine_source_open(r, &options, &source);
        engine_run(file, tokens, N_TOKENS, 0, &from_file);
        engine_run(source.engine, tokens, N_TOKENS, 0, &from_source);
        engine_results_equal(&from_source, &from_file, types[i]);
        engine_result_free(&from_source);
        engine_result_free(&from_file);
        engine_source_close(&source);
        bitconv_engine_close(file);
    }
}

static void results_do_not_depend_on_threads_or_cpu(void **state)
{
    struct convert_run *const r = *state;
    int32_t tokens[N_TOKENS];
    engine_tokens(tokens, N_TOKENS);
    for (size_t m = 0; m < 2; m++) {
        convert_run_model(r, "mixtral", NULL, 0);
        convert_run_accept(r, "bitcos");
        struct bitconv_engine_options options = {.n_threads = 1, .mode = modes[m], .cpu = "scalar"};
        struct engine_result first, other;
        struct bitconv_engine *engine = engine_of_file(r, &options);
        engine_run(engine, tokens, N_TOKENS, 0, &first);
        bitconv_engine_close(engine);
        for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
            options.cpu = bc_kernels_at(i)->name;
            for (options.n_threads = 1; options.n_threads <= 3; options.n_threads++) {
                engine = engine_of_file(r, &options);
                engine_run(engine, tokens, N_TOKENS, 0, &other);
                engine_results_equal(&first, &other, options.cpu);
                engine_result_free(&other);
                bitconv_engine_close(engine);
            }
        }
        engine_result_free(&first);
    }
}

/* More tokens than a batch has room for, against the same one by one and in odd pieces. */
static void prompt_equals_single_tokens(void **state)
{
    enum { N = 150 };
    struct convert_run *const r = *state;
    int32_t tokens[N];
    engine_tokens(tokens, N);
    for (size_t f = 0; f < N_FIXTURES; f++) {
        if (strcmp(fixtures[f], "bert") == 0) continue; /* attends in both directions */
        convert_run_model(r, fixtures[f], NULL, 0);
        r->options.on_misfit = "f16";
        convert_run_accept(r, "i2_s");
        for (size_t m = 0; m < 2; m++) {
            const struct bitconv_engine_options options = {
                .n_threads = 2, .mode = modes[m], .n_ctx = N};
            struct bitconv_engine *engine = engine_of_file(r, &options);
            struct engine_result whole, single, pieces;
            engine_run(engine, tokens, N, 0, &whole);
            engine_run(engine, tokens, N, 1, &single);
            engine_run(engine, tokens, N, 7, &pieces);
            engine_results_equal(&whole, &single, fixtures[f]);
            engine_results_equal(&whole, &pieces, fixtures[f]);
            engine_result_free(&whole);
            engine_result_free(&single);
            engine_result_free(&pieces);
            bitconv_engine_close(engine);
        }
    }
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* What is read back from metadata is what the config said. */
static void hparams_come_back_from_metadata(void **state)
{
    struct convert_run *const r = *state;
    for (size_t f = 0; f < N_FIXTURES; f++) {
        struct engine_source source;
        struct bc_arena arena = {NULL};
        struct bc_hparams b;
        const struct bc_arch *arch = NULL;
        struct bitconv_error err = {.status = BITCONV_OK};
        convert_run_model(r, fixtures[f], NULL, 0);
        convert_run_accept(r, "f32");
        engine_source_open(r, NULL, &source);
        const struct bc_hparams *a = &source.model->hp;
        assert_int_equal(bc_hparams_from_gguf(r->gguf, &arena, NULL, &arch, &b, &err), BITCONV_OK);
        assert_true(arch->tensors == source.model->arch->tensors);
        assert_true(a->n_layers == b.n_layers && a->n_embd == b.n_embd && a->n_ff == b.n_ff);
        assert_true(a->n_head == b.n_head && a->n_head_kv == b.n_head_kv && a->n_ctx == b.n_ctx);
        assert_true(a->head_dim_k == b.head_dim_k && a->head_dim_v == b.head_dim_v);
        assert_true(a->n_vocab == b.n_vocab && a->tied == b.tied && a->causal == b.causal);
        assert_true(a->norm_eps == b.norm_eps && a->norm_in_eps == b.norm_in_eps);
        assert_true(a->layer_norm == b.layer_norm && a->pooling == b.pooling);
        assert_true(a->rope_theta == b.rope_theta && a->rope_theta_local == b.rope_theta_local);
        assert_true(a->rope_dims == b.rope_dims && a->rope_scaling == b.rope_scaling);
        assert_true(a->rope_factor == b.rope_factor && a->rope_orig_ctx == b.rope_orig_ctx);
        assert_true(a->rope_attn_factor == b.rope_attn_factor);
        assert_true(same_text(a->hidden_act, b.hidden_act));
        assert_true(a->sliding_window == b.sliding_window);
        assert_true(a->conv_l_cache == b.conv_l_cache && a->n_token_types == b.n_token_types);
        assert_true(a->query_pre_attn_scalar == b.query_pre_attn_scalar);
        assert_true(a->n_expert == b.n_expert && a->n_expert_used == b.n_expert_used);
        for (uint32_t i = 0; i < a->n_layers; i++) {
            assert_int_equal(a->layer_is_local != NULL && a->layer_is_local[i],
                             b.layer_is_local != NULL && b.layer_is_local[i]);
            assert_int_equal(a->layer_is_conv != NULL && a->layer_is_conv[i],
                             b.layer_is_conv != NULL && b.layer_is_conv[i]);
        }
        bc_arena_release(&arena);
        engine_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(source_equals_file_in_float_types, convert_run_set_up,
                                        convert_run_tear_down),
        cmocka_unit_test_setup_teardown(source_equals_file_in_packs, convert_run_set_up,
                                        convert_run_tear_down),
        cmocka_unit_test_setup_teardown(source_equals_file_in_quantized_blocks, convert_run_set_up,
                                        convert_run_tear_down),
        cmocka_unit_test_setup_teardown(results_do_not_depend_on_threads_or_cpu, convert_run_set_up,
                                        convert_run_tear_down),
        cmocka_unit_test_setup_teardown(prompt_equals_single_tokens, convert_run_set_up,
                                        convert_run_tear_down),
        cmocka_unit_test_setup_teardown(hparams_come_back_from_metadata, convert_run_set_up,
                                        convert_run_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
