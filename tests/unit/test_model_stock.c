/* SPDX-License-Identifier: MIT
 * Tests of the stock families qwen2, phi3, bert and lfm2: what their configs mean, which tensors
 * they need, and the metadata that describes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "model/model_internal.h"
#include "support/model_fixture.h"
#include "support/temp_dir.h"

#define TIED ",\"tie_word_embeddings\":true"
#define QWEN2                                                                                      \
    "\"model_type\":\"qwen2\",\"hidden_act\":\"silu\",\"rope_theta\":"                             \
    "1000000," MODEL_FIXTURE_COUNTS
#define PHI3                                                                                       \
    "\"model_type\":\"phi3\",\"hidden_act\":\"silu\",\"rope_theta\":10000," MODEL_FIXTURE_COUNTS   \
        TIED
#define LONGROPE                                                                                   \
    ",\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":\"longrope\"," LISTS "}"
#define LISTS "\"long_factor\":[1.5,3],\"short_factor\":[1,1.25]"
#define BERT_OF(act, positions, types)                                                             \
    "\"model_type\":\"bert\",\"layer_norm_eps\":1e-12,\"hidden_size\":8,"                          \
    "\"intermediate_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":2,"                  \
    "\"vocab_size\":16,\"hidden_act\":\"" act "\",\"max_position_embeddings\":" positions          \
    ",\"type_vocab_size\":" types
#define BERT BERT_OF("gelu", "64", "2")
/* The width of 12 is stated: most tests are not about the rule that gives it. */
#define LFM2_COUNTS                                                                                \
    "\"model_type\":\"lfm2\",\"norm_eps\":1e-5,\"hidden_size\":8,\"num_hidden_layers\":2,"         \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":16,"                       \
    "\"max_position_embeddings\":64"
#define LFM2_WIDTH ",\"block_ff_dim\":12,\"block_auto_adjust_ff_dim\":false"
#define LFM2_TYPES ",\"layer_types\":[\"conv\",\"full_attention\"]"
#define LFM2       LFM2_COUNTS LFM2_WIDTH LFM2_TYPES ",\"rope_theta\":1000000,\"conv_L_cache\":3"

static struct model_fixture *with(void **state, const struct bc_arch *arch, const char *prefix,
                                  const char *omit)
{
    struct model_fixture *const f = *state;
    model_fixture_add_family(f, arch, prefix, omit);
    return f;
}

static const struct bc_weight *need(const struct model_fixture *f, const char *name)
{
    const struct bc_weight *w = model_fixture_weight(f, name);
    if (w == NULL) fail_msg("no weight %s", name);
    return w;
}

static void expect_weight(const struct model_fixture *f, const char *name, enum bc_role role,
                          uint64_t ne0, uint64_t ne1)
{
    const struct bc_weight *w = need(f, name);
    assert_int_equal(w->role, role);
    assert_int_equal(w->n_dims, ne1 == 0 ? 1 : 2);
    assert_int_equal(w->ne[0], ne0);
    assert_int_equal(w->ne[1], ne1 == 0 ? 1 : ne1);
    assert_int_equal(w->permute_heads, 0);
}

static uint64_t get_u64(const struct bitconv_gguf *file, const char *key)
{
    uint64_t v = 0;
    if (!bitconv_gguf_value_u64(bitconv_gguf_find_key(file, key), &v)) fail_msg("%s", key);
    return v;
}

static double get_f64(const struct bitconv_gguf *file, const char *key)
{
    double v = 0;
    if (!bitconv_gguf_value_f64(bitconv_gguf_find_key(file, key), &v)) fail_msg("%s", key);
    return v;
}

static void assert_text(const struct bitconv_gguf *file, const char *key, const char *wanted)
{
    const char *s = NULL;
    size_t len = 0;
    if (!bitconv_gguf_value_string(bitconv_gguf_find_key(file, key), &s, &len)) fail_msg("%s", key);
    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(s, wanted, len);
}

/* ---- qwen2 ---- */

static void qwen2_has_biases_of_q_k_v_only(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen2, "model.", NULL);
    model_fixture_accept(f, QWEN2 TIED);
    assert_int_equal(f->model->target, BC_TARGET_LLAMA_CPP);
    assert_string_equal(f->model->arch_name, "qwen2");
    expect_weight(f, "blk.1.attn_q.bias", BC_ROLE_BIAS, 8, 0);
    expect_weight(f, "blk.1.attn_k.bias", BC_ROLE_BIAS, 4, 0);
    expect_weight(f, "blk.1.attn_q.weight", BC_ROLE_LINEAR, 8, 8);
    assert_null(model_fixture_weight(f, "blk.1.attn_output.bias"));
    /* the class does not look at the config's attention_bias */
    model_fixture_accept(f, QWEN2 TIED ",\"attention_bias\":false");
    model_fixture_add(f, "model.layers.0.self_attn.o_proj.bias", BITCONV_BF16, 8, 0);
    model_fixture_refuse(f, QWEN2 TIED, "the model class has no biases");
}

static void qwen2_misses_no_bias(void **state)
{
    struct model_fixture *const f =
        with(state, &bc_arch_qwen2, "model.", "model.layers.1.self_attn.k_proj.bias");
    model_fixture_refuse(f, QWEN2 TIED, "layers.1.self_attn.k_proj.bias: missing");
}

static void qwen2_window_is_a_choice(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen2, "model.", NULL);
    model_fixture_accept(
        f, QWEN2 TIED ",\"sliding_window\":8,\"use_sliding_window\":false,\"max_window_layers\":1");
    assert_null(f->model->hp.layer_is_local);
    model_fixture_accept(
        f, QWEN2 TIED ",\"sliding_window\":8,\"use_sliding_window\":true,\"max_window_layers\":1");
    assert_int_equal(f->model->hp.sliding_window, 8);
    assert_false(f->model->hp.layer_is_local[0]);
    assert_true(f->model->hp.layer_is_local[1]);
    model_fixture_load_family(f, &bc_arch_qwen2, QWEN2 TIED ",\"architectures\":[\"Qwen2Model\"]");
    assert_non_null(f->model);
    assert_true(f->model->embedding_model);
    assert_int_equal(f->model->hp.pooling, 1);
}

/* ---- phi3 ---- */

static void phi3_keeps_fused_projections(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_phi3, "model.", NULL);
    model_fixture_accept(f, PHI3);
    expect_weight(f, "blk.0.attn_qkv.weight", BC_ROLE_LINEAR, 8, 16);
    expect_weight(f, "blk.0.ffn_up.weight", BC_ROLE_LINEAR, 8, 24);
    expect_weight(f, "blk.0.ffn_down.weight", BC_ROLE_LINEAR, 12, 8);
    assert_int_equal(f->model->hp.rope_scaling, BC_ROPE_NONE);
    struct bitconv_gguf *file = model_fixture_metadata(f);
    /* readers tell Phi-4 by a window of 0 */
    assert_int_equal(get_u64(file, "phi3.attention.sliding_window"), 0);
    assert_null(bitconv_gguf_find_key(file, "phi3.attention.sliding_window_pattern"));
    assert_null(bitconv_gguf_find_key(file, "phi3.rope.scaling.original_context_length"));
    bitconv_gguf_close(file);
    model_fixture_accept(f, PHI3 ",\"sliding_window\":32,\"original_max_position_embeddings\":64");
    assert_true(f->model->hp.layer_is_local[0] && f->model->hp.layer_is_local[1]);
    file = model_fixture_metadata(f);
    assert_int_equal(get_u64(file, "phi3.attention.sliding_window"), 32);
    assert_int_equal(get_u64(file, "phi3.rope.scaling.original_context_length"), 64);
    assert_null(bitconv_gguf_find_key(file, "phi3.rope.scaling.type"));
    bitconv_gguf_close(file);
    model_fixture_refuse(f, PHI3 ",\"full_attn_mod\":2", "full_attn_mod: changes what");
    model_fixture_add(f, "model.layers.0.self_attn.qkv_proj.bias", BITCONV_BF16, 16, 0);
    model_fixture_refuse(f, PHI3, "the model class has no biases");
}

static void longrope_becomes_two_tensors(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_phi3, "model.", NULL);
    model_fixture_accept(f, PHI3 LONGROPE);
    const struct bc_hparams *hp = &f->model->hp;
    const struct bc_weight *w = f->model->weights;
    assert_int_equal(hp->rope_scaling, BC_ROPE_LONGROPE);
    assert_int_equal(hp->rope_orig_ctx, 16);
    assert_string_equal(w[0].name, "rope_factors_long.weight");
    assert_string_equal(w[1].name, "rope_factors_short.weight");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(w[i].role, BC_ROLE_ROPE);
        assert_int_equal(w[i].ne[0], 2);
    }
    assert_ptr_equal(w[0].generated, hp->rope_long_factors);
    assert_true(w[0].generated[0] == 1.5f && w[0].generated[1] == 3.0f);
    assert_true(w[1].generated[0] == 1.0f && w[1].generated[1] == 1.25f);
    /* sqrt(1 + ln 4 / ln 16) */
    assert_true(hp->rope_attn_factor == (float)sqrt(1.5));
    struct bitconv_gguf *file = model_fixture_metadata(f);
    assert_true(get_f64(file, "phi3.rope.scaling.attn_factor") == (double)(float)sqrt(1.5));
    assert_int_equal(get_u64(file, "phi3.rope.scaling.original_context_length"), 16);
    assert_text(file, "phi3.rope.scaling.type", "longrope");
    /* readers would divide all frequencies by it */
    assert_null(bitconv_gguf_find_key(file, "phi3.rope.scaling.factor"));
    bitconv_gguf_close(file);
}

#define ORIG ",\"original_max_position_embeddings\":16"

static void longrope_in_its_other_spellings(void **state)
{
    static const char *const same[] = {
        PHI3 ORIG ",\"rope_scaling\":{\"rope_type\":\"longrope\"," LISTS "}",
        PHI3 ORIG ",\"rope_scaling\":{\"type\":\"su\"," LISTS "}",
        PHI3 ORIG ",\"rope_scaling\":{\"type\":\"longrope\",\"factor\":4.0," LISTS "}",
        PHI3 ",\"rope_parameters\":{\"rope_type\":\"longrope\",\"rope_theta\":10000,"
             "\"original_max_position_embeddings\":16," LISTS "}",
        PHI3 LONGROPE ",\"rope_parameters\":{\"rope_type\":\"longrope\"," LISTS "}"};
    struct model_fixture *const f = with(state, &bc_arch_phi3, "model.", NULL);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        model_fixture_accept(f, same[i]);
        assert_int_equal(f->model->hp.rope_scaling, BC_ROPE_LONGROPE);
        assert_int_equal(f->model->hp.rope_orig_ctx, 16);
        assert_true(f->model->hp.rope_attn_factor == (float)sqrt(1.5));
        assert_true(f->model->hp.rope_long_factors[1] == 3.0f);
    }
    model_fixture_accept(f, PHI3 ORIG
                         ",\"rope_scaling\":{\"type\":\"longrope\",\"attention_factor\":1.5," LISTS
                         "}");
    assert_true(f->model->hp.rope_attn_factor == 1.5f);
    /* nothing is stretched: the factor is 1 */
    model_fixture_accept(f, PHI3 ",\"original_max_position_embeddings\":64,\"rope_scaling\":{"
                                 "\"type\":\"longrope\"," LISTS "}");
    assert_true(f->model->hp.rope_attn_factor == 1.0f);
    model_fixture_accept(f, PHI3 ",\"rope_scaling\":{\"type\":\"longrope\"," LISTS "}");
    assert_int_equal(f->model->hp.rope_orig_ctx, 4096);
    assert_true(model_fixture_said(f, "original_max_position_embeddings: missing; taking 4096"));
}

static void longrope_faults_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"{\"type\":\"longrope\",\"long_factor\":[1,2]}", "short_factor: missing"},
        {"{\"type\":\"longrope\",\"long_factor\":[1],\"short_factor\":[1,2]}",
         "long_factor: wanted a list of 2 numbers"},
        {"{\"type\":\"longrope\",\"long_factor\":[1,2],\"short_factor\":2}",
         "short_factor: wanted a list of 2 numbers"},
        {"{\"type\":\"longrope\",\"long_factor\":[1,0],\"short_factor\":[1,2]}",
         "long_factor[1]: wanted a positive number"},
        {"{\"type\":\"longrope\",\"long_factor\":[1,\"2\"],\"short_factor\":[1,2]}",
         "long_factor[1]: wanted a positive number"},
        {"{\"type\":\"longrope\",\"factor\":8," LISTS "}", "rope_scaling.factor is 8"},
        {"{\"type\":\"longrope\",\"short_mscale\":1.2," LISTS "}", "short_mscale"},
        {"{\"type\":\"default\",\"long_factor\":[1,2]}", "only RoPE type \"longrope\" has it"},
        {"{\"type\":\"ntk\",\"factor\":2}",
         "\"ntk\" is not supported for the phi3 family (default, longrope are)"},
        /* transformers would read it as longrope, llama.cpp with another attention factor */
        {"{\"type\":\"yarn\",\"factor\":2," LISTS "}", "\"yarn\" is not supported"}};
    struct model_fixture *const f = with(state, &bc_arch_phi3, "model.", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[1024];
        (void)snprintf(config, sizeof config, "%s%s,\"rope_scaling\":%s", PHI3, ORIG, cases[i][0]);
        model_fixture_refuse(f, config, cases[i][1]);
    }
    model_fixture_refuse(f,
                         PHI3 ",\"original_max_position_embeddings\":1,\"rope_scaling\":{\"type\":"
                              "\"longrope\"," LISTS "}",
                         "original_max_position_embeddings: wanted 2 or more");
    model_fixture_refuse(f,
                         PHI3 LONGROPE ",\"rope_parameters\":{\"rope_type\":\"longrope\","
                                       "\"long_factor\":[1.5,4]}",
                         "different long_factor");
    model_fixture_load_family(f, &bc_arch_qwen2, QWEN2 TIED LONGROPE);
    assert_null(f->model);
    assert_true(model_fixture_said(f, "RoPE type \"longrope\" is not supported"));
}

static void phi4_mini_rotates_a_part_of_each_head(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_phi3, "model.", NULL);
    model_fixture_accept(f, PHI3 ",\"partial_rotary_factor\":0.5");
    assert_int_equal(f->model->hp.rope_dims, 2);
    assert_int_equal(f->model->hp.head_dim_k, 4);
    struct bitconv_gguf *file = model_fixture_metadata(f);
    assert_int_equal(get_u64(file, "phi3.rope.dimension_count"), 2);
    assert_int_equal(get_u64(file, "phi3.attention.key_length"), 4);
    bitconv_gguf_close(file);
    model_fixture_accept(f, PHI3 ORIG
                         ",\"rope_parameters\":{\"partial_rotary_factor\":0.5,\"rope_type\":"
                         "\"longrope\",\"long_factor\":[2],\"short_factor\":[1]}");
    assert_int_equal(f->model->weights[0].ne[0], 1);
    model_fixture_refuse(f, PHI3 ",\"partial_rotary_factor\":0.25", "rotary positions need pairs");
    model_fixture_refuse(f, PHI3 ",\"partial_rotary_factor\":1.5", "at most 1");
    model_fixture_refuse(
        f, PHI3 ",\"partial_rotary_factor\":0.5,\"rope_parameters\":{\"partial_rotary_factor\":1}",
        "partial_rotary_factor is");
    model_fixture_load_family(f, &bc_arch_qwen2, QWEN2 TIED ",\"partial_rotary_factor\":0.5");
    assert_null(f->model);
    assert_true(model_fixture_said(f, "partial_rotary_factor: changes what the model computes"));
}

/* ---- bert ---- */

static void bert_is_an_encoder_for_embeddings(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_bert, "", NULL);
    model_fixture_accept(f, BERT ",\"position_embedding_type\":\"absolute\",\"is_decoder\":false");
    const struct bc_hparams *hp = &f->model->hp;
    assert_true(f->model->embedding_model && hp->layer_norm && !hp->causal);
    assert_int_equal(hp->rope_dims, 0);
    assert_int_equal(hp->n_head_kv, 2);
    assert_int_equal(hp->n_token_types, 2);
    assert_int_equal(hp->pooling, 1);
    assert_int_equal(f->messages.size, 0); /* above all nothing about rope_theta */
    expect_weight(f, "position_embd.weight", BC_ROLE_TABLE, 8, 64);
    expect_weight(f, "token_types.weight", BC_ROLE_TABLE, 8, 2);
    expect_weight(f, "token_embd_norm.weight", BC_ROLE_NORM, 8, 0);
    expect_weight(f, "token_embd_norm.bias", BC_ROLE_BIAS, 8, 0);
    expect_weight(f, "blk.1.attn_k.weight", BC_ROLE_LINEAR, 8, 8);
    expect_weight(f, "blk.1.ffn_up.bias", BC_ROLE_BIAS, 12, 0);
    expect_weight(f, "blk.1.layer_output_norm.bias", BC_ROLE_BIAS, 8, 0);
    struct bitconv_gguf *file = model_fixture_metadata(f);
    assert_true(get_f64(file, "bert.attention.layer_norm_epsilon") == (double)1e-12f);
    assert_int_equal(get_u64(file, "bert.pooling_type"), 1);
    assert_text(file, "bert.hidden_activation", "gelu");
    bool causal = true;
    assert_true(
        bitconv_gguf_value_bool(bitconv_gguf_find_key(file, "bert.attention.causal"), &causal));
    assert_false(causal);
    assert_null(bitconv_gguf_find_key(file, "bert.rope.freq_base"));
    assert_null(bitconv_gguf_find_key(file, "bert.attention.layer_norm_rms_epsilon"));
    bitconv_gguf_close(file);
}

static void bert_drops_heads_and_pooler(void **state)
{
    static const char *const unused[] = {
        "bert.pooler.dense.weight", "cls.predictions.decoder.weight", "cls.seq_relationship.bias"};
    struct model_fixture *const f = with(state, &bc_arch_bert, "bert.", NULL);
    for (size_t i = 0; i < 3; i++)
        model_fixture_add(f, unused[i], BITCONV_F32, 8, i == 2 ? 0 : 8);
    model_fixture_add(f, "bert.embeddings.position_ids", BITCONV_I64, 1, 64);
    model_fixture_accept(f, BERT ",\"architectures\":[\"BertForMaskedLM\"]");
    assert_int_equal(f->model->n_dropped, 4);
    assert_int_equal(f->model->n_weights, 5 + 2 * 16);
    model_fixture_add(f, "classifier.weight", BITCONV_F32, 2, 8);
    model_fixture_refuse(f, BERT, "classifier.weight: not a tensor that the bert family has");
}

static void bert_norms_may_have_their_old_names(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_bert, "", "embeddings.LayerNorm.weight");
    model_fixture_refuse(f, BERT, "embeddings.LayerNorm.weight: missing");
    model_fixture_add(f, "embeddings.LayerNorm.gamma", BITCONV_F32, 8, 0);
    model_fixture_accept(f, BERT);
    expect_weight(f, "token_embd_norm.weight", BC_ROLE_NORM, 8, 0);
    model_fixture_add(f, "embeddings.LayerNorm.beta", BITCONV_F32, 8, 0);
    model_fixture_refuse(f, BERT, "would both become token_embd_norm.bias");
}

static void bert_refusals(void **state)
{
    static const char *const cases[][2] = {
        {BERT ",\"position_embedding_type\":\"relative_key\"", "supports only \"absolute\""},
        {BERT ",\"is_decoder\":true", "is_decoder: changes what the model computes"},
        {BERT ",\"is_causal\":true", "attention in one direction is not supported"},
        {BERT_OF("relu", "64", "2"), "\"relu\" is not an activation"},
        {BERT_OF("gelu", "32", "2"), "shape [64, 8], wanted [32, 8]"},
        {BERT_OF("gelu", "64", "1"), "shape [2, 8], wanted [1, 8]"}};
    struct model_fixture *const f = with(state, &bc_arch_bert, "", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        model_fixture_refuse(f, cases[i][0], cases[i][1]);
    model_fixture_refuse(f, BERT ",\"architectures\":[\"XLMRobertaModel\"]",
                         "\"XLMRobertaModel\" is not supported");
}

static void bert_misses_no_bias(void **state)
{
    struct model_fixture *const f =
        with(state, &bc_arch_bert, "", "encoder.layer.0.output.dense.bias");
    model_fixture_refuse(f, BERT, "encoder.layer.0.output.dense.bias: missing");
}

/* ---- lfm2 ---- */

static void lfm2_has_layers_of_two_kinds(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_lfm2, "model.", NULL);
    model_fixture_accept(f, LFM2);
    const struct bc_hparams *hp = &f->model->hp;
    assert_true(hp->layer_is_conv[0] && !hp->layer_is_conv[1]);
    assert_null(hp->layer_is_local);
    assert_int_equal(hp->conv_l_cache, 3);
    assert_int_equal(hp->n_ff, 12);
    assert_true(hp->tied);
    assert_string_equal(hp->hidden_act, "silu");
    assert_int_equal(f->messages.size, 0); /* that the class has no hidden_act is normal */
    expect_weight(f, "blk.0.shortconv.conv.weight", BC_ROLE_CONV, 3, 8);
    expect_weight(f, "blk.0.shortconv.in_proj.weight", BC_ROLE_LINEAR, 8, 24);
    expect_weight(f, "blk.1.attn_k.weight", BC_ROLE_LINEAR, 8, 4);
    expect_weight(f, "blk.1.attn_q_norm.weight", BC_ROLE_NORM, 4, 0);
    expect_weight(f, "token_embd_norm.weight", BC_ROLE_NORM, 8, 0);
    assert_null(model_fixture_weight(f, "blk.0.attn_q.weight"));
    struct bitconv_gguf *file = model_fixture_metadata(f);
    const struct bitconv_gguf_value *kv =
        bitconv_gguf_find_key(file, "lfm2.attention.head_count_kv");
    assert_non_null(kv);
    assert_int_equal(kv->elem, BITCONV_GGUF_INT32);
    assert_int_equal(kv->count, 2);
    assert_int_equal(bc_get_u32(kv->data), 0);
    assert_int_equal(bc_get_u32(kv->data + 4), 1);
    assert_int_equal(get_u64(file, "lfm2.shortconv.l_cache"), 3);
    bitconv_gguf_close(file);
}

static void lfm2_conv_weights_may_have_a_middle_of_one(void **state)
{
    struct model_fixture *const f =
        with(state, &bc_arch_lfm2, "model.", "model.layers.0.conv.conv.weight");
    const uint64_t shape[3] = {8, 1, 3};
    st_builder_add(&f->tensors, "model.layers.0.conv.conv.weight", BITCONV_BF16, 3, shape, NULL,
                   8 * 3 * 2);
    model_fixture_accept(f, LFM2);
    expect_weight(f, "blk.0.shortconv.conv.weight", BC_ROLE_CONV, 3, 8);
}

static void lfm2_layers_in_the_older_form(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_lfm2, "model.", NULL);
#define OLD LFM2_COUNTS LFM2_WIDTH ",\"theta\":1000000.0,\"tie_embedding\":true"
    model_fixture_accept(f, OLD ",\"full_attn_idxs\":[1]");
    assert_true(f->model->hp.layer_is_conv[0] && !f->model->hp.layer_is_conv[1]);
    assert_true(f->model->hp.rope_theta == 1000000.0f && f->model->hp.has_rope_theta);
    model_fixture_accept(f, OLD LFM2_TYPES ",\"full_attn_idxs\":[1]");
    model_fixture_refuse(f, OLD LFM2_TYPES ",\"full_attn_idxs\":[0]", "name different layers");
    model_fixture_refuse(f, OLD LFM2_TYPES ",\"full_attn_idxs\":[]", "name different layers");
    model_fixture_refuse(f, OLD ",\"full_attn_idxs\":[2]", "wanted numbers of the 2 layers");
    model_fixture_refuse(f, OLD ",\"full_attn_idxs\":[0,1]", "conv.conv.weight: by the config");
    model_fixture_refuse(f, OLD ",\"full_attn_idxs\":[]",
                         "self_attn.q_proj.weight: by the config layer 1 is a convolution");
    model_fixture_refuse(f, OLD LFM2_TYPES ",\"rope_theta\":10000",
                         "rope_theta and theta contradict each other");
    model_fixture_refuse(f, OLD LFM2_TYPES ",\"tie_word_embeddings\":false",
                         "tie_word_embeddings and tie_embedding contradict each other");
}

static void lfm2_width_follows_from_the_config(void **state)
{
    static const struct {
        const char *members;
        unsigned width;
    } cases[] = {
        {"\"block_ff_dim\":12288", 8192},
        {"\"block_ff_dim\":6656", 4608},
        {"\"intermediate_size\":6656", 4608},
        {"\"block_ff_dim\":10,\"block_multiple_of\":4", 8},
        {"\"block_ff_dim\":100,\"block_multiple_of\":1,\"block_ffn_dim_multiplier\":1.3", 85},
        {"\"block_ff_dim\":100,\"block_ffn_dim_multiplier\":null", 66},
        {"\"block_ff_dim\":100,\"block_auto_adjust_ff_dim\":false", 100}};
    struct model_fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[1024];
        char wanted[64];
        st_builder_release(&f->tensors);
        f->tensors = (struct st_builder){0};
        model_fixture_add_family(f, &bc_arch_lfm2, "model.", NULL);
        /* the tensors have another width, which the refusal names beside the wanted one */
        (void)snprintf(config, sizeof config, "%s%s,%s", LFM2_COUNTS, LFM2_TYPES, cases[i].members);
        (void)snprintf(wanted, sizeof wanted, "wanted [%u, 8]", cases[i].width);
        model_fixture_refuse(f, config, wanted);
    }
    model_fixture_refuse(f, LFM2_COUNTS LFM2_TYPES ",\"block_ff_dim\":12,\"block_multiple_of\":-1",
                         "block_multiple_of: wanted a positive number");
    model_fixture_refuse(
        f, LFM2_COUNTS LFM2_TYPES ",\"block_ff_dim\":4294967295,\"block_multiple_of\":4294967296",
        "gives no width of a feed-forward block");
}

static void lfm2_refusals(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_lfm2, "model.", NULL);
    model_fixture_refuse(f, LFM2 ",\"conv_bias\":true",
                         "conv_bias: changes what the model computes");
    model_fixture_refuse(f, LFM2 ",\"block_use_swiglu\":false", "supports only true or 1");
    model_fixture_refuse(f, LFM2_COUNTS LFM2_WIDTH LFM2_TYPES ",\"conv_L_cache\":4",
                         "wanted [8, 4]");
    model_fixture_refuse(f,
                         LFM2_COUNTS LFM2_WIDTH ",\"layer_types\":[\"conv\",\"linear_attention\"]",
                         "\"linear_attention\" is not a layer type");
    model_fixture_refuse(f, LFM2 ",\"tie_word_embeddings\":false", "lm_head.weight: missing");
    model_fixture_add(f, "model.layers.0.conv.in_proj.bias", BITCONV_BF16, 24, 0);
    model_fixture_refuse(f, LFM2, "the model class has no biases");
    /* a family without convolutions does not know such layers */
    model_fixture_load_family(f, &bc_arch_qwen2,
                              QWEN2 TIED ",\"layer_types\":[\"conv\",\"full_attention\"]");
    assert_null(f->model);
    assert_true(model_fixture_said(f, "\"conv\" is not a layer type"));
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, model_fixture_set_up, model_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(qwen2_has_biases_of_q_k_v_only),
        TEST(qwen2_misses_no_bias),
        TEST(qwen2_window_is_a_choice),
        TEST(phi3_keeps_fused_projections),
        TEST(longrope_becomes_two_tensors),
        TEST(longrope_in_its_other_spellings),
        TEST(longrope_faults_are_refused),
        TEST(phi4_mini_rotates_a_part_of_each_head),
        TEST(bert_is_an_encoder_for_embeddings),
        TEST(bert_drops_heads_and_pooler),
        TEST(bert_norms_may_have_their_old_names),
        TEST(bert_refusals),
        TEST(bert_misses_no_bias),
        TEST(lfm2_has_layers_of_two_kinds),
        TEST(lfm2_conv_weights_may_have_a_middle_of_one),
        TEST(lfm2_layers_in_the_older_form),
        TEST(lfm2_width_follows_from_the_config),
        TEST(lfm2_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
