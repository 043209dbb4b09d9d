/* SPDX-License-Identifier: MIT
 * Tests of config.json -> hyper-parameters: both RoPE schemas, defaults that are said,
 * contradictions and unknown computations that are refused, training kinds, pooling, names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/model_fixture.h"
#include "support/temp_dir.h"

#define COUNTS MODEL_FIXTURE_COUNTS
#define TIED   ",\"tie_word_embeddings\":true"
#define LLAMA  "\"architectures\":[\"LlamaForCausalLM\"],\"hidden_act\":\"silu\"," COUNTS TIED
#define THETA  ",\"rope_theta\":500000"
#define QWEN   "\"architectures\":[\"Qwen3ForCausalLM\"],\"hidden_act\":\"silu\"," COUNTS TIED THETA
#define GEMMA                                                                                      \
    "\"architectures\":[\"Gemma3TextModel\"],\"hidden_activation\":\"gelu_pytorch_tanh\"," COUNTS  \
    ",\"query_pre_attn_scalar\":4"

/* A fixture with the tensors of a family. */
static struct model_fixture *with(void **state, const struct bc_arch *arch)
{
    struct model_fixture *const f = *state;
    model_fixture_add_family(f, arch, "model.", NULL);
    return f;
}

static void counts_are_read(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    model_fixture_accept(f, LLAMA THETA ",\"bos_token_id\":1,\"eos_token_id\":[2,3]");
    const struct bc_hparams *hp = &f->model->hp;
    assert_int_equal(hp->n_layers, 2);
    assert_int_equal(hp->n_embd, 8);
    assert_int_equal(hp->n_ff, 12);
    assert_int_equal(hp->n_head, 2);
    assert_int_equal(hp->n_head_kv, 1);
    assert_int_equal(hp->head_dim_k, 4);
    assert_int_equal(hp->head_dim_v, 4);
    assert_true(hp->head_dim_in_config);
    assert_int_equal(hp->n_ctx, 64);
    assert_int_equal(hp->n_vocab, 16);
    assert_true(hp->norm_eps == 1e-5f);
    assert_true(hp->rope_theta == 500000.0f && hp->has_rope_theta);
    assert_true(hp->causal && hp->tied);
    assert_int_equal(hp->bos_id, 1);
    assert_int_equal(hp->eos_id, 2);
    assert_int_equal(hp->pad_id, -1);
    assert_int_equal(hp->pooling, -1);
    assert_string_equal(hp->hidden_act, "silu");
    assert_int_equal(f->messages.size, 0);
}

static void bad_counts_are_refused(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    static const char *const bad[] = {"0", "-1", "2.5", "\"2\"", "4294967296", "true", "[2]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char config[512];
        (void)snprintf(config, sizeof config,
                       "\"architectures\":[\"LlamaForCausalLM\"],\"hidden_act\":\"silu\","
                       "\"hidden_size\":8,\"intermediate_size\":12,\"num_hidden_layers\":%s,"
                       "\"num_attention_heads\":2" TIED THETA,
                       bad[i]);
        model_fixture_refuse(f, config, "num_hidden_layers: wanted a positive integer");
    }
    model_fixture_refuse(f, "\"model_type\":\"llama\",\"hidden_size\":8", "intermediate_size");
    assert_true(model_fixture_said(f, "num_hidden_layers: missing"));
    assert_true(model_fixture_said(f, "num_attention_heads: missing"));
}

/* No number in a config may make us allocate or loop beyond what the file can hold. */
static void huge_counts_are_refused(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_mixtral);
    model_fixture_refuse(f,
                         "\"model_type\":\"mixtral\",\"hidden_act\":\"silu\",\"hidden_size\":8,"
                         "\"intermediate_size\":12,\"num_hidden_layers\":4294967295,"
                         "\"num_attention_heads\":2,\"num_local_experts\":4294967295",
                         "num_hidden_layers is 4294967295");
    assert_true(model_fixture_said(f, "4294967295 experts"));
}

static void head_dim_is_not_derived_when_given(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    model_fixture_accept(f, "\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":8,"
                            "\"intermediate_size\":12,\"num_hidden_layers\":2,"
                            "\"num_attention_heads\":2,\"num_key_value_heads\":1,"
                            "\"head_dim\":null,\"vocab_size\":16" TIED THETA);
    assert_int_equal(f->model->hp.head_dim_k, 4);
    assert_false(f->model->hp.head_dim_in_config);
    assert_true(model_fixture_said(f, "warning: "));
    assert_true(model_fixture_said(f, "max_position_embeddings: missing; taking 2048"));
    assert_true(model_fixture_said(f, "rms_norm_eps: missing; taking 1e-06"));
    model_fixture_refuse(f,
                         "\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":8,"
                         "\"intermediate_size\":12,\"num_hidden_layers\":2,"
                         "\"num_attention_heads\":3" THETA,
                         "hidden_size 8 is not a multiple of num_attention_heads 3");
    model_fixture_refuse(f,
                         "\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":8,"
                         "\"intermediate_size\":12,\"num_hidden_layers\":2,\"head_dim\":3,"
                         "\"num_attention_heads\":2" THETA,
                         "head_dim 3 is odd");
}

static void classes_are_recognised(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
#define BARE "\"hidden_act\":\"silu\"," COUNTS TIED THETA
    model_fixture_accept(f, "\"model_type\":\"llama\"," BARE);
    model_fixture_accept(f, "\"model_type\":\"llama\",\"architectures\":[]," BARE);
    model_fixture_accept(f, "\"model_type\":\"llama\",\"architectures\":null," BARE);
    assert_string_equal(f->model->class_name, "LlamaForCausalLM");
    model_fixture_refuse(f, "\"model_type\":\"llama\",\"architectures\":[\"LlamaModel\"]," BARE,
                         "\"LlamaModel\" is not supported; supported are BitNetForCausalLM");
    model_fixture_refuse(f, "\"model_type\":\"mamba\"," BARE, "\"mamba\" is not supported");
    model_fixture_refuse(f, BARE, "neither architectures nor model_type");
    model_fixture_load_family(f, &bc_arch_bitnet,
                              "\"architectures\":[\"BitnetForCausalLM\"],"
                              "\"model_type\":\"llama\"," BARE);
    assert_ptr_equal(f->model->arch, &bc_arch_bitnet);
    model_fixture_accept(f, "\"architectures\":[\"BitNetForCausalLM\"]," BARE);
#undef BARE
}

static void nested_text_config_is_read(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_gemma3);
    model_fixture_accept(f, "\"text_config\":{\"model_type\":\"gemma3_text\"," COUNTS
                            ",\"hidden_activation\":\"gelu_pytorch_tanh\","
                            "\"query_pre_attn_scalar\":4}");
    assert_int_equal(f->model->hp.n_embd, 8);
    assert_true(f->model->hp.tied);
}

static void rope_schemas_agree(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    static const char *const same[] = {
        LLAMA THETA,
        LLAMA ",\"rope_parameters\":{\"rope_theta\":500000,\"rope_type\":\"default\"}",
        LLAMA ",\"rope_parameters\":{\"rope_theta\":500000.0}",
        LLAMA THETA ",\"rope_scaling\":null",
        LLAMA THETA ",\"rope_scaling\":{\"type\":\"default\"}",
        LLAMA THETA ",\"rope_parameters\":{\"rope_theta\":500000,\"rope_type\":\"default\"}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        model_fixture_accept(f, same[i]);
        assert_true(f->model->hp.rope_theta == 500000.0f);
        assert_true(f->model->hp.has_rope_theta);
        assert_int_equal(f->model->hp.rope_scaling, BC_ROPE_NONE);
        assert_int_equal(f->messages.size, 0);
    }
    model_fixture_accept(f, LLAMA);
    assert_true(f->model->hp.rope_theta == 10000.0f);
    assert_false(f->model->hp.has_rope_theta);
    assert_true(model_fixture_said(f, "warning: ") && model_fixture_said(f, "rope_theta: missing"));
}

static void rope_contradictions_are_refused(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    static const char *const bad[][2] = {
        {LLAMA THETA ",\"rope_parameters\":{\"rope_theta\":10000}", "contradicting RoPE settings"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},"
                     "\"rope_parameters\":{\"rope_type\":\"default\"}",
         "contradicting RoPE settings"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},"
                     "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4}",
         "factor is 2 in one place and 4 in another"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"linear\",\"rope_type\":\"yarn\",\"factor\":2}",
         "contradicts"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}",
         "RoPE type \"dynamic\" is not supported"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"linear\"}", "factor: missing"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}",
         "wanted a positive number"},
        {LLAMA THETA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"mscale\":1}",
         "rope_scaling.mscale: not a RoPE setting"},
        {LLAMA THETA ",\"rope_scaling\":3", "rope_scaling: wanted an object"},
        {LLAMA ",\"rope_theta\":-1", "rope_theta: wanted a positive number"},
        {LLAMA ",\"rope_theta\":1e60", "rope_theta: wanted a positive number"},
        {LLAMA ",\"rope_parameters\":{\"rope_theta\":1e4,\"partial_rotary_factor\":0.5}",
         "partial_rotary_factor"},
        {LLAMA ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e4}}",
         "not a RoPE setting"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        model_fixture_refuse(f, bad[i][0], bad[i][1]);
    /* of an unknown type nothing else is said */
    model_fixture_refuse(f,
                         LLAMA ",\"rope_parameters\":{\"rope_type\":\"dynamic\",\"factor\":2,"
                               "\"rope_theta\":1e4}",
                         "RoPE type \"dynamic\" is not supported");
    assert_false(model_fixture_said(f, "no effect"));
    /* a base that is no number is not a missing one */
    model_fixture_refuse(f, LLAMA ",\"rope_theta\":\"10000\"", "rope_theta: wanted a positive");
    assert_false(model_fixture_said(f, "missing"));
}

/* A factor must not vanish: nothing says what it does, or it does nothing. */
static void rope_factors_without_type(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    model_fixture_refuse(f, LLAMA THETA ",\"rope_scaling\":{\"factor\":4}", "no rope_type says");
    model_fixture_refuse(f, LLAMA ",\"rope_parameters\":{\"rope_theta\":5e5,\"factor\":4}",
                         "no rope_type says");
    model_fixture_accept(f, LLAMA THETA ",\"rope_scaling\":{\"type\":\"default\",\"factor\":4}");
    assert_int_equal(f->model->hp.rope_scaling, BC_ROPE_NONE);
    assert_true(model_fixture_said(f, "warning: ") && model_fixture_said(f, "has no effect"));
    model_fixture_accept(f, LLAMA THETA ",\"rope_scaling\":{\"factor\":1}");
    model_fixture_accept(f, LLAMA THETA ",\"rope_scaling\":{}");
    assert_int_equal(f->messages.size, 0);
}

static void llama3_scaling_is_read(void **state)
{
#define SCALES "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4"
#define ORIG   ",\"original_max_position_embeddings\":8192"
    struct model_fixture *const f = with(state, &bc_arch_llama);
    static const char *const same[] = {
        LLAMA THETA ",\"rope_scaling\":{\"type\":\"llama3\"," SCALES ORIG "}",
        LLAMA THETA ",\"rope_scaling\":{\"rope_type\":\"llama3\"," SCALES ORIG "}",
        LLAMA THETA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"type\":\"llama3\"," SCALES
                    "}" ORIG,
        LLAMA ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":5e5," SCALES ORIG "}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        model_fixture_accept(f, same[i]);
        const struct bc_hparams *hp = &f->model->hp;
        assert_int_equal(hp->rope_scaling, BC_ROPE_LLAMA3);
        assert_true(hp->rope_factor == 8 && hp->rope_low_freq_factor == 1);
        assert_true(hp->rope_high_freq_factor == 4 && hp->rope_orig_ctx == 8192);
        assert_non_null(model_fixture_weight(f, "rope_freqs.weight"));
    }
    model_fixture_refuse(f, LLAMA THETA ",\"rope_scaling\":{\"type\":\"llama3\"," SCALES "}",
                         "original_max_position_embeddings: missing");
    model_fixture_refuse(f,
                         LLAMA THETA ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,"
                                     "\"low_freq_factor\":4,\"high_freq_factor\":4" ORIG "}",
                         "low_freq_factor 4 must be below high_freq_factor 4");
#undef SCALES
#undef ORIG
}

static void yarn_takes_the_models_context(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3);
    model_fixture_accept(f, QWEN ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                                 "\"beta_fast\":32,\"attention_factor\":1.5}");
    assert_int_equal(f->model->hp.rope_scaling, BC_ROPE_YARN);
    assert_int_equal(f->model->hp.rope_orig_ctx, 64);
    assert_true(f->model->hp.rope_beta_fast == 32 && f->model->hp.rope_beta_slow == 0);
    assert_true(f->model->hp.rope_attn_factor == 1.5f);
    model_fixture_accept(f, QWEN ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                                 "\"original_max_position_embeddings\":16}");
    assert_int_equal(f->model->hp.rope_orig_ctx, 16);
}

static void gemma_has_two_bases(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_gemma3);
    static const char *const same[] = {
        GEMMA ",\"rope_theta\":5e5,\"rope_local_base_freq\":2e4",
        GEMMA ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5e5,"
              "\"rope_type\":\"default\"},\"sliding_attention\":{\"rope_theta\":2e4}}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        model_fixture_accept(f, same[i]);
        assert_true(f->model->hp.rope_theta == 5e5f);
        assert_true(f->model->hp.rope_theta_local == 2e4f);
    }
    model_fixture_accept(f, GEMMA);
    assert_true(f->model->hp.rope_theta == 1e6f && f->model->hp.rope_theta_local == 1e4f);
    assert_true(model_fixture_said(f, "rope_theta: missing"));
    assert_true(model_fixture_said(f, "rope_local_base_freq: missing"));
    model_fixture_refuse(f,
                         GEMMA ",\"rope_local_base_freq\":2e4,\"rope_parameters\":"
                               "{\"sliding_attention\":{\"rope_theta\":1e4}}",
                         "contradicting RoPE settings");
    model_fixture_refuse(f,
                         GEMMA ",\"rope_parameters\":{\"sliding_attention\":"
                               "{\"rope_theta\":1e4,\"rope_type\":\"linear\",\"factor\":2}}",
                         "scaling of sliding-window layers");
    model_fixture_accept(f, GEMMA ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6,"
                                  "\"rope_type\":\"linear\",\"factor\":8}}");
    assert_int_equal(f->model->hp.rope_scaling, BC_ROPE_LINEAR);
}

static void unknown_computations_are_refused(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    static const char *const bad[] = {"\"attention_multiplier\":0.5",
                                      "\"residual_multiplier\":0.22",
                                      "\"logit_scale\":0.0625",
                                      "\"attn_logit_softcapping\":50",
                                      "\"use_qk_norm\":true",
                                      "\"clip_qkv\":8",
                                      "\"partial_rotary_factor\":0.5",
                                      "\"rotary_pct\":0.25",
                                      "\"num_local_experts\":8",
                                      "\"use_bidirectional_attention\":true",
                                      "\"is_causal\":false",
                                      "\"no_rope_layers\":[1]",
                                      "\"compression_config\":{\"a\":1}"};
    static const char *const fine[] = {
        "\"attention_multiplier\":null",         "\"residual_multiplier\":1", "\"logit_scale\":1.0",
        "\"attn_logit_softcapping\":0",          "\"use_qk_norm\":false",     "\"clip_qkv\":null",
        "\"partial_rotary_factor\":1.0",         "\"no_rope_layers\":[]",     "\"is_causal\":true",
        "\"use_bidirectional_attention\":false", "\"dropout_of_2031\":null"};
    char config[1024];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(config, sizeof config, "%s,%s", LLAMA THETA, bad[i]);
        model_fixture_refuse(f, config, "support");
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        (void)snprintf(config, sizeof config, "%s,%s", LLAMA THETA, fine[i]);
        model_fixture_accept(f, config);
        assert_int_equal(f->messages.size, 0);
    }
    model_fixture_accept(f, LLAMA THETA ",\"favourite_colour\":\"blue\"");
    assert_true(model_fixture_said(f, "note: ") &&
                model_fixture_said(f, "favourite_colour: not known to bitconv"));
}

static void activations_are_checked(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_bitnet);
#define BITNET "\"architectures\":[\"BitNetForCausalLM\"]," COUNTS TIED THETA
    model_fixture_accept(f, BITNET ",\"hidden_act\":\"relu2\"");
    assert_string_equal(f->model->hp.hidden_act, "relu2");
    model_fixture_accept(f, BITNET);
    assert_string_equal(f->model->hp.hidden_act, "relu2");
    assert_true(model_fixture_said(f, "hidden_act: missing; taking \"relu2\""));
    model_fixture_refuse(f, BITNET ",\"hidden_act\":\"gelu_fast\"",
                         "\"gelu_fast\" is not an activation");
    model_fixture_refuse(f, BITNET ",\"hidden_act\":7", "is not an activation");
    model_fixture_accept(f, BITNET ",\"hidden_act\":\"relu2\",\"hidden_activation\":\"relu2\"");
    model_fixture_refuse(f, BITNET ",\"hidden_act\":\"relu2\",\"hidden_activation\":\"silu\"",
                         "hidden_activation is \"silu\", but hidden_act is \"relu2\"");
#undef BITNET
}

static void sliding_windows_follow_the_class(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3);
    model_fixture_accept(f, QWEN ",\"sliding_window\":8,\"max_window_layers\":1");
    assert_int_equal(f->model->hp.sliding_window, 0);
    assert_null(f->model->hp.layer_is_local);
    model_fixture_accept(
        f, QWEN ",\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":1");
    assert_int_equal(f->model->hp.sliding_window, 8);
    assert_false(f->model->hp.layer_is_local[0]);
    assert_true(f->model->hp.layer_is_local[1]);

#define MISTRAL                                                                                    \
    "\"architectures\":[\"MistralForCausalLM\"],\"hidden_act\":\"silu\"," COUNTS TIED THETA
    model_fixture_load_family(f, &bc_arch_mistral, MISTRAL ",\"sliding_window\":null");
    assert_int_equal(f->model->hp.sliding_window, 0);
    model_fixture_accept(f, MISTRAL ",\"sliding_window\":32");
    assert_int_equal(f->model->hp.sliding_window, 32);
    assert_true(f->model->hp.layer_is_local[0] && f->model->hp.layer_is_local[1]);
    model_fixture_accept(f, MISTRAL);
    assert_int_equal(f->model->hp.sliding_window, 4096);
    assert_true(model_fixture_said(f, "sliding_window: missing; taking 4096"));
    model_fixture_refuse(f, MISTRAL ",\"sliding_window\":0", "sliding_window: wanted a positive");
#undef MISTRAL

    model_fixture_load_family(f, &bc_arch_llama, LLAMA THETA ",\"sliding_window\":32");
    assert_int_equal(f->model->hp.sliding_window, 0);
    assert_true(model_fixture_said(f, "do not use it"));
}

static void layer_types_decide(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_gemma3);
#define G GEMMA ",\"rope_theta\":1e6,\"rope_local_base_freq\":1e4,\"sliding_window\":8"
    model_fixture_accept(f, G);
    assert_true(f->model->hp.layer_is_local[0] && f->model->hp.layer_is_local[1]);
    model_fixture_accept(f, G ",\"sliding_window_pattern\":2");
    assert_true(f->model->hp.layer_is_local[0] && !f->model->hp.layer_is_local[1]);
    model_fixture_accept(f, G ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]");
    assert_true(!f->model->hp.layer_is_local[0] && f->model->hp.layer_is_local[1]);
    model_fixture_accept(f, G ",\"layer_types\":[\"full_attention\",\"full_attention\"]");
    assert_int_equal(f->model->hp.sliding_window, 0);
    model_fixture_refuse(f, G ",\"layer_types\":[\"full_attention\"]", "1 entries for 2 layers");
    model_fixture_refuse(f, G ",\"layer_types\":[\"full_attention\",\"conv\"]",
                         "layer_types[1]: \"conv\" is not a layer type");
    model_fixture_load_family(f, &bc_arch_qwen3,
                              QWEN ",\"layer_types\":[\"sliding_attention\","
                                   "\"full_attention\"]");
    assert_null(f->model);
    assert_true(model_fixture_said(f, "there is no sliding window"));
#undef G
}

/* Mistral's and Llama's classes compute one kind of layer, whatever the list says. */
static void layer_types_that_classes_do_not_read(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_mistral);
#define TYPES(a, b) ",\"sliding_window\":8,\"layer_types\":[\"" a "\",\"" b "\"]"
#define FULL        "full_attention"
#define LOCAL       "sliding_attention"
#define MISTRAL                                                                                    \
    "\"architectures\":[\"MistralForCausalLM\"],\"hidden_act\":\"silu\"," COUNTS TIED THETA
    model_fixture_accept(f, MISTRAL TYPES(LOCAL, LOCAL));
    assert_true(f->model->hp.layer_is_local[0] && f->model->hp.layer_is_local[1]);
    model_fixture_refuse(f, MISTRAL TYPES(LOCAL, FULL),
                         "layer_types[1] is \"full_attention\", but the mistral classes do not");
    model_fixture_load_family(f, &bc_arch_llama, LLAMA THETA TYPES(FULL, FULL));
    assert_int_equal(f->model->hp.sliding_window, 0);
    model_fixture_refuse(f, LLAMA THETA TYPES(LOCAL, FULL),
                         "they compute \"full_attention\" in every layer");
    assert_false(model_fixture_said(f, "there is no sliding window"));
#undef TYPES
#undef FULL
#undef LOCAL
#undef MISTRAL
}

static void gemma_facts_are_read(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_gemma3);
    model_fixture_accept(f, GEMMA ",\"final_logit_softcapping\":30,"
                                  "\"attn_logit_softcapping\":null,"
                                  "\"use_bidirectional_attention\":true");
    assert_true(f->model->hp.query_pre_attn_scalar == 4 && f->model->hp.attn_scale == 0.5f);
    assert_true(f->model->hp.final_softcap == 30 && f->model->hp.attn_softcap == 0);
    assert_false(f->model->hp.causal);
    assert_true(f->model->embedding_model);
    /* transformers' attention does not apply it */
    model_fixture_refuse(f, GEMMA ",\"attn_logit_softcapping\":50",
                         "attn_logit_softcapping: changes what the model computes; for the gemma3");
}

/* field case 30, and what else quantization_config may say */
static void quantization_configs(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
#define Q(text) LLAMA THETA ",\"quantization_config\":{" text "}"
    static const char *const methods[] = {"fp8", "gptq", "awq", "bitsandbytes",
                                          "compressed-tensors"};
    char config[1024];
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        (void)snprintf(config, sizeof config,
                       "%s,\"quantization_config\":{\"quant_method\":\"%s\"}", LLAMA THETA,
                       methods[i]);
        model_fixture_refuse(f, config, "needs a dequantized checkpoint");
        assert_non_null(strstr(f->err.text, methods[i]));
    }
    model_fixture_refuse(f, Q("\"bits\":4"), "needs a dequantized checkpoint");
    model_fixture_refuse(f, Q("\"quant_method\":\"bitnet\",\"linear_class\":\"trilinear\""),
                         "linear_class: \"trilinear\"");
    model_fixture_refuse(f, Q("\"quant_method\":\"bitnet\",\"quantization_mode\":\"lazy\""),
                         "quantization_mode: \"lazy\"");
    model_fixture_accept(f, Q("\"quant_method\":\"bitnet\""));
    assert_int_equal(f->model->training, BC_TRAINING_ONLINE);
    assert_true(model_fixture_said(f, "unpacked masters"));
    model_fixture_accept(f, Q("\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\","
                              "\"quantization_mode\":\"online\""));
    assert_int_equal(f->model->training, BC_TRAINING_ONLINE);
    model_fixture_accept(f, LLAMA THETA ",\"quantization_config\":null");
    assert_int_equal(f->model->training, BC_TRAINING_NONE);
    static const char *const no_lists[] = {"\"lm_head\"", "[1]", "[\"lm_head\",null]", "{}"};
    for (size_t i = 0; i < sizeof no_lists / sizeof *no_lists; i++) {
        (void)snprintf(config, sizeof config,
                       "%s,\"quantization_config\":{\"quant_method\":"
                       "\"bitnet\",\"modules_to_not_convert\":%s}",
                       LLAMA THETA, no_lists[i]);
        model_fixture_refuse(f, config, "modules_to_not_convert: wanted a list of module names");
    }
    model_fixture_accept(f, Q("\"quant_method\":\"bitnet\",\"use_rms_norm\":false"));
    model_fixture_add(f, "model.layers.0.self_attn.q_proj.rms_norm.weight", BITCONV_BF16, 8, 0);
    model_fixture_refuse(f, Q("\"quant_method\":\"bitnet\",\"use_rms_norm\":false"),
                         "use_rms_norm is false, but the checkpoint has norms");
#undef Q
}

static void training_follows_class_and_marks(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_bitnet);
    model_fixture_accept(f,
                         "\"model_type\":\"bitnet\",\"hidden_act\":\"relu2\"," COUNTS TIED THETA);
    assert_int_equal(f->model->training, BC_TRAINING_ONLINE);
    temp_dir_puts(f->dir, "deployment_info.json", "{\"baked_ternary_weights\":true}");
    model_fixture_accept(f,
                         "\"model_type\":\"bitnet\",\"hidden_act\":\"relu2\"," COUNTS TIED THETA);
    assert_int_equal(f->model->training, BC_TRAINING_BAKED);
    temp_dir_puts(f->dir, "deployment_info.json", "{\"baked_ternary_weights\":false}");
    model_fixture_accept(f,
                         "\"model_type\":\"bitnet\",\"hidden_act\":\"relu2\"," COUNTS TIED THETA);
    assert_int_equal(f->model->training, BC_TRAINING_ONLINE);
    model_fixture_load_family(f, &bc_arch_qwen3, QWEN);
    assert_int_equal(f->model->training, BC_TRAINING_NONE);
    assert_false(f->model->embedding_model);
}

static void vocabulary_rows_win(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
#define V(text)                                                                                    \
    "\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":8,"                          \
    "\"intermediate_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":2,"                  \
    "\"num_key_value_heads\":1" TIED THETA text
    model_fixture_accept(f, V(",\"vocab_size\":12"));
    assert_int_equal(f->model->hp.n_vocab, 16);
    assert_true(model_fixture_said(f, "warning: ") && model_fixture_said(f, "vocab_size is 12"));
    model_fixture_accept(f, V(""));
    assert_int_equal(f->model->hp.n_vocab, 16);
    model_fixture_refuse(f, V(",\"vocab_size\":20"), "16 rows, but vocab_size is 20");
#undef V
}

/* --target auto */
static void targets_are_decided(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3);
    f->options.target = BC_TARGET_AUTO;
    model_fixture_accept(f, QWEN);
    assert_int_equal(f->model->target, BC_TARGET_LLAMA_CPP);
    f->options.ternary_outtype = true;
    model_fixture_accept(f, QWEN);
    assert_int_equal(f->model->target, BC_TARGET_BITNET);
    f->options.ternary_outtype = false;
    f->options.llama_cpp_only_type = true;
    model_fixture_load_family(
        f, &bc_arch_bitnet, "\"model_type\":\"bitnet\",\"hidden_act\":\"silu\"," COUNTS TIED THETA);
    assert_int_equal(f->model->target, BC_TARGET_LLAMA_CPP);
    assert_string_equal(f->model->arch_name, "bitnet");
    f->options.llama_cpp_only_type = false;
    model_fixture_accept(f, "\"model_type\":\"bitnet\",\"hidden_act\":\"silu\"," COUNTS TIED THETA);
    assert_int_equal(f->model->target, BC_TARGET_BITNET);
    assert_string_equal(f->model->arch_name, "bitnet-b1.58");
    f->options.arch_name = "bitnet-25";
    model_fixture_accept(f, "\"model_type\":\"bitnet\",\"hidden_act\":\"silu\"," COUNTS TIED THETA);
    assert_string_equal(f->model->arch_name, "bitnet-25");
    f->options.arch_name = "llama";
    model_fixture_refuse(f, "\"model_type\":\"bitnet\",\"hidden_act\":\"silu\"," COUNTS TIED THETA,
                         "--arch-name: \"llama\"");
    f->options.arch_name = NULL;
    f->options.target = BC_TARGET_LLAMA_CPP;
    model_fixture_load_family(f, &bc_arch_gemma3, GEMMA ",\"use_bidirectional_attention\":true");
    assert_string_equal(f->model->arch_name, "gemma-embedding");
    model_fixture_accept(f, GEMMA);
    assert_string_equal(f->model->arch_name, "gemma3");
}

static void put_pooling(struct model_fixture *f, const char *pooling)
{
    temp_dir_puts(
        f->dir, "modules.json",
        "[{\"idx\":0,\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
        "{\"idx\":1,\"path\":\"1_Pooling\","
        "\"type\":\"sentence_transformers.models.Pooling\"}]");
    temp_dir_puts(f->dir, "1_Pooling/config.json", pooling);
}

static void pooling_is_read(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3);
    static const struct {
        const char *config;
        int pooling;
    } cases[] = {{"{\"pooling_mode_lasttoken\":true,\"pooling_mode_mean_tokens\":false}", 3},
                 {"{\"pooling_mode_cls_token\":true}", 2},
                 {"{\"pooling_mode_mean_tokens\":true}", 1},
                 {"{\"pooling_mode_lasttoken\":false}", 1},
                 {"{\"pooling_mode_lasttoken\":true,\"pooling_mode_cls_token\":true}", 2},
                 {"{\"pooling_mode\":\"lasttoken\"}", 3},
                 {"{\"pooling_mode\":\"cls\"}", 2},
                 {"{}", 1}};
    model_fixture_accept(f, QWEN);
    assert_int_equal(f->model->hp.pooling, -1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_pooling(f, cases[i].config);
        model_fixture_accept(f, QWEN);
        assert_true(f->model->embedding_model);
        assert_int_equal(f->model->hp.pooling, cases[i].pooling);
    }
    put_pooling(f, "{\"pooling_mode_max_tokens\":true}");
    model_fixture_refuse(f, QWEN, "pooling_mode_max_tokens");
    put_pooling(f, "{\"pooling_mode\":\"weightedmean\"}");
    model_fixture_refuse(f, QWEN, "weightedmean");
}

static void backbones_pool_by_mean(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3);
    model_fixture_accept(
        f, "\"architectures\":[\"Qwen3Model\"],\"hidden_act\":\"silu\"," COUNTS TIED THETA);
    assert_true(f->model->embedding_model);
    assert_int_equal(f->model->hp.pooling, 1);
}

/* field case 39 */
static void names_are_never_paths_or_hashes(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama);
    static const struct {
        const char *config, *name; /* name NULL: the folder's */
    } cases[] = {
        {LLAMA THETA, NULL},
        {LLAMA THETA ",\"_name_or_path\":\"someone/Model-7B\"", "Model-7B"},
        {LLAMA THETA ",\"_name_or_path\":\"Model-7B\"", "Model-7B"},
        {LLAMA THETA ",\"_name_or_path\":\"/home/me/Model-7B\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":\"./out\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":\".\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":\"\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":\"a/b/c\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":\"C:\\\\models\\\\x\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":\"0123456789abcdef0123456789abcdef01234567\"", NULL},
        {LLAMA THETA ",\"_name_or_path\":null", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_fixture_accept(f, cases[i].config);
        assert_string_equal(bc_model_name(f->model, f->ckpt),
                            cases[i].name != NULL ? cases[i].name : f->ckpt->base_name);
    }
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, model_fixture_set_up, model_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_are_read),
        TEST(bad_counts_are_refused),
        TEST(huge_counts_are_refused),
        TEST(head_dim_is_not_derived_when_given),
        TEST(classes_are_recognised),
        TEST(nested_text_config_is_read),
        TEST(rope_schemas_agree),
        TEST(rope_contradictions_are_refused),
        TEST(rope_factors_without_type),
        TEST(llama3_scaling_is_read),
        TEST(yarn_takes_the_models_context),
        TEST(gemma_has_two_bases),
        TEST(unknown_computations_are_refused),
        TEST(activations_are_checked),
        TEST(sliding_windows_follow_the_class),
        TEST(layer_types_decide),
        TEST(layer_types_that_classes_do_not_read),
        TEST(gemma_facts_are_read),
        TEST(quantization_configs),
        TEST(training_follows_class_and_marks),
        TEST(vocabulary_rows_win),
        TEST(targets_are_decided),
        TEST(pooling_is_read),
        TEST(backbones_pool_by_mean),
        TEST(names_are_never_paths_or_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
