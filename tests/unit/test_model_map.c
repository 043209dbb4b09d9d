/* SPDX-License-Identifier: MIT
 * Tests of tensors -> weights: names, order, roles, stacks, scales, tied heads, everything that is
 * missing or does not fit, and the metadata that describes the result. */
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

#define COUNTS MODEL_FIXTURE_COUNTS ",\"rope_theta\":500000"
#define TIED   ",\"tie_word_embeddings\":true"
#define UNTIED ",\"tie_word_embeddings\":false"
#define BITNET "\"model_type\":\"bitnet\",\"hidden_act\":\"relu2\"," COUNTS TIED
#define LLAMA  "\"model_type\":\"llama\",\"hidden_act\":\"silu\"," COUNTS
#define QWEN   "\"model_type\":\"qwen3\",\"hidden_act\":\"silu\"," COUNTS
#define MIXTRAL                                                                                    \
    "\"model_type\":\"mixtral\",\"hidden_act\":\"silu\",\"num_local_experts\":2,"                  \
    "\"num_experts_per_tok\":1," COUNTS TIED
#define GEMMA                                                                                      \
    "\"architectures\":[\"Gemma3TextModel\"],\"hidden_activation\":\"gelu_pytorch_tanh\"," COUNTS  \
    ",\"rope_local_base_freq\":10000,\"query_pre_attn_scalar\":4,\"sliding_window\":8,"            \
    "\"layer_types\":[\"sliding_attention\",\"full_attention\"]"
#define OFFLINE                                                                                    \
    ",\"quantization_config\":{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\","    \
    "\"quantization_mode\":\"offline\"}"

static struct model_fixture *with(void **state, const struct bc_arch *arch, const char *omit)
{
    struct model_fixture *const f = *state;
    model_fixture_add_family(f, arch, "model.", omit);
    return f;
}

static const struct bc_weight *need(const struct model_fixture *f, const char *name)
{
    const struct bc_weight *w = model_fixture_weight(f, name);
    if (w == NULL) fail_msg("no weight %s", name);
    return w;
}

/* A checkpoint's order (names sorted bytewise) is the file's. */
static void order_is_the_checkpoints(void **state)
{
    static const char *const wanted[] = {
        "token_embd.weight",         "blk.0.attn_norm.weight",     "blk.0.ffn_down.weight",
        "blk.0.ffn_sub_norm.weight", "blk.0.ffn_gate.weight",      "blk.0.ffn_up.weight",
        "blk.0.ffn_norm.weight",     "blk.0.attn_sub_norm.weight", "blk.0.attn_k.weight",
        "blk.0.attn_output.weight",  "blk.0.attn_q.weight",        "blk.0.attn_v.weight"};
    struct model_fixture *const f = with(state, &bc_arch_bitnet, NULL);
    model_fixture_accept(f, BITNET);
    assert_int_equal(f->model->n_weights, 24);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_string_equal(f->model->weights[i].name, wanted[i]);
    assert_string_equal(f->model->weights[23].name, "output_norm.weight");
    const struct bc_weight *q = need(f, "blk.1.attn_q.weight");
    assert_int_equal(q->role, BC_ROLE_LINEAR);
    assert_int_equal(q->n_dims, 2);
    assert_int_equal(q->ne[0], 8);
    assert_int_equal(q->ne[1], 8);
    assert_int_equal(q->n_sources, 1);
    assert_string_equal(q->sources[0].tensor->name, "model.layers.1.self_attn.q_proj.weight");
    assert_int_equal(q->permute_heads, 0);
    const struct bc_weight *down = need(f, "blk.1.ffn_down.weight");
    assert_int_equal(down->ne[0], 12);
    assert_int_equal(down->ne[1], 8);
    assert_int_equal(need(f, "blk.0.ffn_norm.weight")->role, BC_ROLE_NORM);
    assert_int_equal(need(f, "blk.0.ffn_norm.weight")->n_dims, 1);
    assert_int_equal(need(f, "token_embd.weight")->role, BC_ROLE_EMBED);
}

static void prefixes_do_not_matter(void **state)
{
    static const char *const prefixes[] = {"", "model.", "language_model.model.",
                                           "model.language_model."};
    struct model_fixture *const f = *state;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        st_builder_release(&f->tensors);
        f->tensors = (struct st_builder){0};
        model_fixture_add_family(f, &bc_arch_qwen3, prefixes[i], NULL);
        model_fixture_accept(f, QWEN TIED);
        assert_int_equal(f->model->n_weights, 24);
        assert_string_equal(f->model->weights[0].name, "token_embd.weight");
    }
}

static void llama_permutes_q_and_k(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < 4; i++) {
            static const char *const proj[] = {"q", "k", "v", "o"};
            static const uint64_t rows[] = {8, 4, 4, 8};
            char name[64];
            (void)snprintf(name, sizeof name, "model.layers.%d.self_attn.%s_proj.bias", layer,
                           proj[i]);
            model_fixture_add(f, name, BITCONV_BF16, rows[i], 0);
        }
    model_fixture_accept(f, LLAMA TIED ",\"attention_bias\":true");
    assert_int_equal(need(f, "blk.0.attn_q.weight")->permute_heads, 2);
    assert_int_equal(need(f, "blk.0.attn_k.weight")->permute_heads, 1);
    assert_int_equal(need(f, "blk.0.attn_v.weight")->permute_heads, 0);
    assert_int_equal(need(f, "blk.0.attn_output.weight")->permute_heads, 0);
    assert_int_equal(need(f, "blk.1.attn_q.bias")->permute_heads, 2);
    assert_int_equal(need(f, "blk.1.attn_k.bias")->permute_heads, 1);
    assert_int_equal(need(f, "blk.1.attn_v.bias")->permute_heads, 0);
    assert_int_equal(need(f, "blk.1.attn_q.bias")->role, BC_ROLE_BIAS);
    assert_int_equal(need(f, "blk.1.attn_q.bias")->n_dims, 1);
    model_fixture_accept(f, LLAMA TIED);
    model_fixture_refuse(f, LLAMA TIED ",\"attention_bias\":false", "there are no biases");
}

static void biases_are_complete_or_absent(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    model_fixture_refuse(f, LLAMA TIED ",\"attention_bias\":true",
                         "layers.0.self_attn.o_proj.bias: missing");
    model_fixture_refuse(f, LLAMA TIED ",\"mlp_bias\":true",
                         "layers.1.mlp.down_proj.bias: missing");
    model_fixture_accept(f, LLAMA TIED ",\"mlp_bias\":false,\"attention_bias\":false");
    model_fixture_add(f, "model.layers.0.self_attn.q_proj.bias", BITCONV_BF16, 8, 0);
    model_fixture_refuse(f, LLAMA TIED, "layers.1.self_attn.q_proj.bias: missing");
}

/* field case 17: norms of Gemma get 1, those in front of projections never */
static void gemma_norms_get_one_but_not_norm_in(void **state)
{
    static const char *const names[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                        "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                        "mlp.down_proj"};
    static const uint64_t inputs[] = {8, 8, 8, 8, 8, 8, 12};
    struct model_fixture *const f = with(state, &bc_arch_gemma3, NULL);
    char name[96];
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < 7; i++) {
            (void)snprintf(name, sizeof name, "model.layers.%d.%s.norm.weight", layer, names[i]);
            model_fixture_add(f, name, BITCONV_BF16, inputs[i], 0);
        }
    model_fixture_accept(f, GEMMA);
    assert_true(f->model->has_norm_in && f->model->embedding_model);
    assert_int_equal(f->model->training, BC_TRAINING_ONLINE);
    assert_int_equal(f->model->target, BC_TARGET_BITNET);
    size_t n_plus = 0, n_in = 0;
    for (size_t i = 0; i < f->model->n_weights; i++) {
        const struct bc_weight *w = &f->model->weights[i];
        if (strstr(w->name, "_norm_in.weight") != NULL) {
            assert_int_equal(w->role, BC_ROLE_NORM);
            assert_false(w->add_one);
            n_in++;
        } else if (w->role == BC_ROLE_NORM) {
            assert_true(w->add_one);
            n_plus++;
        } else {
            assert_false(w->add_one);
        }
    }
    assert_int_equal(n_in, 14);
    assert_int_equal(n_plus, 13);
    assert_int_equal(need(f, "blk.1.ffn_down_norm_in.weight")->ne[0], 12);
}

static void norm_in_is_complete_or_absent(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3, NULL);
    model_fixture_add(f, "model.layers.0.self_attn.q_proj.norm.weight", BITCONV_BF16, 8, 0);
    model_fixture_refuse(f, QWEN TIED, "layers.1.mlp.down_proj.norm.weight: missing");
    model_fixture_refuse(f,
                         QWEN TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\","
                                   "\"use_rms_norm\":true}",
                         "layers.1.mlp.down_proj.rms_norm.weight: missing");
}

static void norm_in_epsilon_is_carried(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    static const char *const names[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                        "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                        "mlp.down_proj"};
    char name[96];
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < 7; i++) {
            (void)snprintf(name, sizeof name, "model.layers.%d.%s.rms_norm.weight", layer,
                           names[i]);
            model_fixture_add(f, name, BITCONV_BF16, i == 6 ? 12 : 8, 0);
        }
    model_fixture_accept(f, LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\","
                                       "\"use_rms_norm\":true}");
    assert_true(f->model->hp.norm_in_eps == 1e-6f);
    assert_false(f->model->embedding_model); /* a causal family with BitLinear norms stays causal */
    assert_int_equal(need(f, "blk.0.attn_q_norm_in.weight")->permute_heads, 0);
    assert_int_equal(need(f, "blk.0.attn_q.weight")->permute_heads, 2);
    model_fixture_accept(f, LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\","
                                       "\"use_rms_norm\":true,\"rms_norm_eps\":1e-5}");
    assert_true(f->model->hp.norm_in_eps == 0);
}

static void experts_are_stacked(void **state)
{
    static const char *const wanted[] = {"token_embd.weight",          "blk.0.ffn_gate_exps.weight",
                                         "blk.0.ffn_down_exps.weight", "blk.0.ffn_up_exps.weight",
                                         "blk.0.ffn_gate_inp.weight",  "blk.0.attn_norm.weight",
                                         "blk.0.ffn_norm.weight",      "blk.0.attn_k.weight"};
    struct model_fixture *const f = with(state, &bc_arch_mixtral, NULL);
    model_fixture_accept(f, MIXTRAL);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_string_equal(f->model->weights[i].name, wanted[i]);
    const struct bc_weight *down = need(f, "blk.1.ffn_down_exps.weight");
    assert_int_equal(down->role, BC_ROLE_LINEAR);
    assert_int_equal(down->n_dims, 3);
    assert_int_equal(down->ne[0], 12);
    assert_int_equal(down->ne[1], 8);
    assert_int_equal(down->ne[2], 2);
    assert_int_equal(down->n_sources, 2);
    for (uint32_t e = 0; e < 2; e++) {
        char name[96];
        (void)snprintf(name, sizeof name, "model.layers.1.block_sparse_moe.experts.%u.w2.weight",
                       (unsigned)e);
        assert_string_equal(down->sources[e].tensor->name, name);
    }
    assert_int_equal(need(f, "blk.1.ffn_gate_inp.weight")->role, BC_ROLE_ROUTER);
}

static void missing_experts_are_listed(void **state)
{
    struct model_fixture *const f =
        with(state, &bc_arch_mixtral, "model.layers.1.block_sparse_moe.experts.0.w3.weight");
    model_fixture_refuse(f, MIXTRAL, "layers.1.block_sparse_moe.experts.0.w3.weight: missing");
    assert_true(model_fixture_said(f, "unprocessed experts"));
    assert_true(model_fixture_said(f, "expert 1 w3"));
    assert_non_null(strstr(f->err.text, "expert"));
    model_fixture_add(f, "model.layers.0.block_sparse_moe.experts.2.w1.weight", BITCONV_BF16, 12,
                      8);
    model_fixture_refuse(f, MIXTRAL, "expert 2, but the config says 2 experts");
}

/* field case 22: all that is wrong is told at once */
static void everything_wrong_is_listed(void **state)
{
    struct model_fixture *const f =
        with(state, &bc_arch_llama, "model.layers.0.mlp.up_proj.weight");
    model_fixture_add(f, "model.layers.0.self_attn.q_norm.weight", BITCONV_BF16, 4, 0);
    model_fixture_add(f, "model.layers.2.mlp.up_proj.weight", BITCONV_BF16, 12, 8);
    model_fixture_add(f, "norm.weight", BITCONV_BF16, 8, 0);
    model_fixture_add(f, "model.layers.1.mlp.gate_proj.bias", BITCONV_BF16, 13, 0);
    model_fixture_refuse(f, LLAMA UNTIED, "faults in the tensors");
    assert_true(model_fixture_said(f, "layers.0.mlp.up_proj.weight: missing"));
    assert_true(model_fixture_said(f, "q_norm.weight: not a tensor that the llama family has"));
    assert_true(model_fixture_said(f, "layer 2, but num_hidden_layers is 2"));
    assert_true(model_fixture_said(f, "would both become output_norm.weight"));
    assert_true(model_fixture_said(f, "shape [13], wanted [12] by the config"));
    assert_true(model_fixture_said(f, "lm_head.weight: missing, and tie_word_embeddings is false"));
}

static void integer_dtypes_are_refused(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, "model.norm.weight");
    model_fixture_add(f, "model.norm.weight", BITCONV_I32, 8, 0);
    model_fixture_refuse(f, LLAMA TIED, "model.norm.weight: dtype I32, wanted a float type");
}

static void inv_freq_is_dropped(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    model_fixture_add(f, "model.layers.0.self_attn.rotary_emb.inv_freq", BITCONV_F32, 2, 0);
    model_fixture_add(f, "model.layers.1.self_attn.rotary_emb.inv_freq", BITCONV_F32, 2, 0);
    model_fixture_add(f, "model.rotary_emb.inv_freq", BITCONV_F32, 2, 0);
    model_fixture_accept(f, LLAMA TIED);
    assert_int_equal(f->model->n_dropped, 3);
    assert_string_equal(f->model->dropped[2].name, "model.rotary_emb.inv_freq");
    assert_true(f->model->dropped[2].why[0] != '\0');
}

/* The bitnet family with packed linear weights; `scales`: with their weight_scale. */
static void add_packed(struct model_fixture *f, const char *omit_scale)
{
    static const struct {
        const char *name;
        uint64_t rows, cols; /* logical */
    } linear[] = {{"self_attn.q_proj", 8, 8}, {"self_attn.k_proj", 4, 8},
                  {"self_attn.v_proj", 4, 8}, {"self_attn.o_proj", 8, 8},
                  {"mlp.gate_proj", 12, 8},   {"mlp.up_proj", 12, 8},
                  {"mlp.down_proj", 8, 12}};
    static const char *const norms[] = {"input_layernorm", "post_attention_layernorm"};
    char name[96];
    model_fixture_add(f, "model.embed_tokens.weight", BITCONV_BF16, 16, 8);
    model_fixture_add(f, "model.norm.weight", BITCONV_BF16, 8, 0);
    for (int layer = 0; layer < 2; layer++) {
        for (size_t i = 0; i < 7; i++) {
            (void)snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, linear[i].name);
            model_fixture_add(f, name, BITCONV_U8, (linear[i].rows + 3) / 4, linear[i].cols);
            (void)snprintf(name, sizeof name, "model.layers.%d.%s.weight_scale", layer,
                           linear[i].name);
            if (omit_scale == NULL || strcmp(name, omit_scale) != 0)
                model_fixture_add(f, name, BITCONV_BF16, 1, 0);
        }
        for (size_t i = 0; i < 2; i++) {
            (void)snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, norms[i]);
            model_fixture_add(f, name, BITCONV_BF16, 8, 0);
        }
    }
}

/* field case 2 */
static void scale_convention_follows_the_class(void **state)
{
    struct model_fixture *const f = *state;
    add_packed(f, NULL);
    model_fixture_accept(f, LLAMA TIED OFFLINE);
    assert_int_equal(f->model->training, BC_TRAINING_OFFLINE);
    assert_false(f->model->scale_divides);
    model_fixture_accept(f, LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\"}");
    assert_true(f->model->scale_divides);
    model_fixture_accept(f, LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\","
                                       "\"linear_class\":\"bitlinear\"}");
    assert_true(f->model->scale_divides);
    model_fixture_refuse(f, LLAMA TIED, "say it with --scale-convention");
    model_fixture_refuse(f,
                         LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\","
                                    "\"linear_class\":\"autobitlinear\","
                                    "\"quantization_mode\":\"online\"}",
                         "\"online\", which has no weight_scale");
    f->options.scale_convention = BC_SCALE_DIVIDE;
    model_fixture_accept(f, LLAMA TIED);
    assert_true(f->model->scale_divides);
    f->options.scale_convention = BC_SCALE_MULTIPLY;
    model_fixture_accept(f, LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\"}");
    assert_false(f->model->scale_divides);
}

/* field cases 9 and 10 */
static void packed_weights_have_logical_shapes(void **state)
{
    struct model_fixture *const f = *state;
    add_packed(f, NULL);
    model_fixture_accept(f, LLAMA TIED OFFLINE);
    const struct bc_weight *up = need(f, "blk.0.ffn_up.weight");
    assert_true(up->packed);
    assert_int_equal(up->ne[0], 8);
    assert_int_equal(up->ne[1], 12);
    assert_string_equal(up->sources[0].scale->name, "model.layers.0.mlp.up_proj.weight_scale");
    assert_int_equal(need(f, "blk.0.attn_k.weight")->permute_heads, 1);
    /* n_ff 10: 3 packed rows hold it as well; 14 does not fit 3, nor 8 */
#define FF(n)                                                                                      \
    "\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":8,"                          \
    "\"intermediate_size\":" n ",\"num_hidden_layers\":2,\"num_attention_heads\":2,"               \
    "\"num_key_value_heads\":1,\"rope_theta\":10000" TIED OFFLINE
    model_fixture_refuse(f, FF("14"), "wanted [4, 8]: uint8 holding four rows of [14, 8]");
    model_fixture_refuse(f, FF("8"), "wanted [2, 8]: uint8 holding four rows of [8, 8]");
    model_fixture_refuse(f, FF("10"), "mlp.down_proj.weight: shape [2, 12], wanted [2, 10]");
    assert_false(model_fixture_said(f, "up_proj"));
#undef FF
}

static void scales_and_weights_pair_by_name(void **state)
{
    struct model_fixture *const f = *state;
    add_packed(f, "model.layers.1.mlp.up_proj.weight_scale");
    model_fixture_refuse(f, LLAMA TIED OFFLINE,
                         "model.layers.1.mlp.up_proj.weight: packed (uint8), but there is no");
    st_builder_release(&f->tensors);
    f->tensors = (struct st_builder){0};
    model_fixture_add_family(f, &bc_arch_llama, "model.", "model.layers.1.mlp.up_proj.weight");
    model_fixture_add(f, "model.layers.1.mlp.up_proj.weight_scale", BITCONV_BF16, 1, 0);
    model_fixture_refuse(f, LLAMA TIED OFFLINE, "a scale without its weight");
    /* float weights may have scales (unpacked trits), but then all of them */
    assert_true(model_fixture_said(f, "layers.1.mlp.up_proj.weight: missing"));
    assert_true(model_fixture_said(
        f, "there is no model.layers.0.mlp.up_proj.weight_scale, but other weights have theirs"));
}

static void scales_may_be_in_another_shard(void **state)
{
    struct model_fixture *const f = *state;
    struct st_builder scales = {0};
    const uint64_t one[] = {1};
    add_packed(f, "model.layers.1.mlp.up_proj.weight_scale");
    st_builder_add(&scales, "model.layers.1.mlp.up_proj.weight_scale", BITCONV_BF16, 1, one, NULL,
                   2);
    char *const first = temp_dir_path(f->dir, "model-00001-of-00002.safetensors");
    char *const second = temp_dir_path(f->dir, "model-00002-of-00002.safetensors");
    assert_true(st_builder_write(&scales, first));
    assert_true(st_builder_write(&f->tensors, second));
    temp_dir_puts(f->dir, "config.json", "{" LLAMA TIED OFFLINE "}");
    assert_int_equal(bc_checkpoint_open(f->dir, true, &f->sink, &f->ckpt, &f->err), BITCONV_OK);
    assert_int_equal(bc_model_load(f->ckpt, &f->options, &f->sink, &f->model, &f->err), BITCONV_OK);
    assert_non_null(need(f, "blk.1.ffn_up.weight")->sources[0].scale);
    st_builder_release(&scales);
    free(first);
    free(second);
}

static void modules_to_not_convert_are_kept(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_bitnet, NULL);
#define KEEP(list)                                                                                 \
    BITNET                                                                                         \
    ",\"quantization_config\":{\"quant_method\":\"bitnet\",\"modules_to_not_convert\":" list "}"
    model_fixture_accept(f, KEEP("[\"lm_head\",\"model.layers.1.mlp\",\"v_proj\"]"));
    assert_true(need(f, "blk.1.ffn_up.weight")->keep);
    assert_true(need(f, "blk.0.attn_v.weight")->keep);
    assert_false(need(f, "blk.0.ffn_up.weight")->keep);
    assert_false(need(f, "blk.1.attn_q.weight")->keep);
    model_fixture_accept(f, KEEP("[\"_proj\",\"layers.1.mlp.up\"]"));
    assert_false(need(f, "blk.1.ffn_up.weight")->keep);
    model_fixture_accept(f, KEEP("null"));
    model_fixture_refuse(f, KEEP("\"lm_head\""), "wanted a list of module names");
#undef KEEP
}

static void packed_weights_cannot_be_kept(void **state)
{
    struct model_fixture *const f = *state;
    add_packed(f, NULL);
    model_fixture_refuse(f,
                         LLAMA TIED ",\"quantization_config\":{\"quant_method\":\"bitnet\","
                                    "\"modules_to_not_convert\":[\"up_proj\"]}",
                         "packed, but modules_to_not_convert names it");
}

static void regexes_overrule_roles(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_bitnet, NULL);
    f->options.keep_regex = "^blk\\.0\\.";
    f->options.quantize_regex = "embed_tokens";
    model_fixture_accept(f, BITNET);
    assert_true(need(f, "blk.0.attn_q.weight")->keep);
    assert_false(need(f, "blk.1.attn_q.weight")->keep);
    assert_int_equal(need(f, "token_embd.weight")->role, BC_ROLE_LINEAR);
    assert_int_equal(need(f, "blk.0.attn_norm.weight")->role, BC_ROLE_NORM);
    f->options.keep_regex = "no_such_tensor";
    model_fixture_refuse(f, BITNET, "--keep: \"no_such_tensor\" matches no linear weight");
    f->options.keep_regex = "(";
    model_fixture_refuse(f, BITNET, "--keep: not a regular expression at character 1");
    f->options.keep_regex = NULL;
    f->options.quantize_regex = "norm";
    model_fixture_refuse(f, BITNET, "--quantize: \"norm\" matches no matrix");
}

static void put_head(struct model_fixture *f, float last)
{
    const uint64_t shape[] = {16, 8};
    float values[16 * 8] = {0};
    values[127] = last;
    st_builder_add_floats(&f->tensors, "lm_head.weight", BITCONV_F32, 2, shape, values);
}

static void tied_heads_are_dropped(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    put_head(f, 0);
    model_fixture_accept(f, LLAMA TIED);
    assert_null(model_fixture_weight(f, "output.weight"));
    assert_int_equal(f->model->n_dropped, 1);
    assert_int_equal(f->messages.size, 0);
    /* the family's default is untied */
    model_fixture_accept(f, LLAMA);
    assert_int_equal(need(f, "output.weight")->role, BC_ROLE_OUTPUT);
    assert_false(f->model->hp.tied);
}

static void other_heads_are_dropped_with_a_warning(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    put_head(f, -0.75f);
    model_fixture_accept(f, LLAMA TIED);
    assert_null(model_fixture_weight(f, "output.weight"));
    assert_true(model_fixture_said(f, "warning: ") && model_fixture_said(f, "by up to 0.75"));
    model_fixture_accept(f, LLAMA UNTIED);
    assert_non_null(model_fixture_weight(f, "output.weight"));
}

static void embedding_models_have_no_head(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_qwen3, NULL);
#define MODEL "\"architectures\":[\"Qwen3Model\"],\"hidden_act\":\"silu\"," COUNTS
    model_fixture_accept(f, MODEL UNTIED); /* none there, none needed */
    put_head(f, 1);
    model_fixture_accept(f, MODEL UNTIED);
    assert_null(model_fixture_weight(f, "output.weight"));
    assert_int_equal(f->model->n_dropped, 1);
    model_fixture_accept(f, QWEN UNTIED);
    assert_non_null(model_fixture_weight(f, "output.weight"));
#undef MODEL
}

/* Values of the reference formula for head size 32 (transformers and llama.cpp agree). */
static void rope_freqs_are_the_references(void **state)
{
    static const float wanted[16] = {1, 1, 1, 1, 1, 1, 1, 1, 2.6945300102233887f,
                                     8, 8, 8, 8, 8, 8, 8};
    const struct bc_hparams hp = {.rope_dims = 32,
                                  .rope_theta = 500000,
                                  .rope_factor = 8,
                                  .rope_low_freq_factor = 1,
                                  .rope_high_freq_factor = 4,
                                  .rope_orig_ctx = 8192};
    float factors[16];
    (void)state;
    bc_rope_llama3_factors(&hp, factors);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(bc_f32_bits(factors[i]), bc_f32_bits(wanted[i]));
}

static void rope_freqs_come_first(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    model_fixture_accept(f, LLAMA TIED ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
                                       "\"low_freq_factor\":1,\"high_freq_factor\":4,"
                                       "\"original_max_position_embeddings\":8192}");
    const struct bc_weight *w = &f->model->weights[0];
    assert_string_equal(w->name, "rope_freqs.weight");
    assert_int_equal(w->role, BC_ROLE_ROPE);
    assert_int_equal(w->n_sources, 0);
    assert_int_equal(w->n_dims, 1);
    assert_int_equal(w->ne[0], 2);
    assert_true(w->generated[0] == 1);
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

static void metadata_has_the_facts_of_the_graph(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_gemma3, NULL);
    f->options.target = BC_TARGET_BITNET;
    model_fixture_accept(f, GEMMA ",\"final_logit_softcapping\":30");
    struct bitconv_gguf *file = model_fixture_metadata(f);
    assert_text(file, "general.architecture", "gemma3");
    assert_text(file, "general.name", "a name");
    assert_text(file, "gemma3.hidden_activation", "gelu_pytorch_tanh");
    assert_int_equal(get_u64(file, "general.file_type"), 1);
    assert_int_equal(get_u64(file, "gemma3.attention.key_length"), 4);
    assert_int_equal(get_u64(file, "gemma3.attention.value_length"), 4);
    assert_int_equal(get_u64(file, "gemma3.rope.dimension_count"), 4);
    assert_int_equal(get_u64(file, "gemma3.pooling_type"), 1);
    assert_int_equal(get_u64(file, "gemma3.attention.sliding_window"), 8);
    assert_true(get_f64(file, "gemma3.rope.freq_base_swa") == 10000);
    assert_true(get_f64(file, "gemma3.attention.query_pre_attn_scalar") == 4);
    assert_true(get_f64(file, "gemma3.attention.scale") == 0.5);
    assert_true(get_f64(file, "gemma3.final_logit_softcapping") == 30);
    assert_null(bitconv_gguf_find_key(file, "gemma3.attn_logit_softcapping"));
    assert_null(bitconv_gguf_find_key(file, "general.quantization_version"));
    const struct bitconv_gguf_value *pattern =
        bitconv_gguf_find_key(file, "gemma3.attention.sliding_window_pattern");
    assert_non_null(pattern);
    assert_int_equal(pattern->elem, BITCONV_GGUF_BOOL);
    assert_int_equal(pattern->count, 2);
    assert_true(pattern->data[0] == 1 && pattern->data[1] == 0);
    bitconv_gguf_close(file);
}

static void metadata_of_llama_cpp(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_mixtral, NULL);
    f->options.target = BC_TARGET_LLAMA_CPP;
    temp_dir_puts(f->dir, "generation_config.json",
                  "{\"top_k\":40,\"temperature\":0.6,\"top_p\":null}");
    model_fixture_accept(f, MIXTRAL);
    struct bitconv_gguf *file = model_fixture_metadata(f);
    assert_text(file, "general.type", "model");
    assert_int_equal(get_u64(file, "general.quantization_version"), 2);
    assert_int_equal(get_u64(file, "llama.expert_count"), 2);
    assert_int_equal(get_u64(file, "llama.expert_used_count"), 1);
    assert_int_equal(bitconv_gguf_find_key(file, "general.sampling.top_k")->type,
                     BITCONV_GGUF_INT32);
    assert_true(get_f64(file, "general.sampling.temp") == (double)0.6f);
    assert_null(bitconv_gguf_find_key(file, "general.sampling.top_p"));
    assert_null(bitconv_gguf_find_key(file, "llama.pooling_type"));
    bitconv_gguf_close(file);
}

/* Readers end at a scaling type they do not know, so Llama 3's is never written as one. */
static void llama3_scaling_has_keys_of_our_own(void **state)
{
    struct model_fixture *const f = with(state, &bc_arch_llama, NULL);
    struct bc_arena arena = {NULL};
    struct bc_model_info info;
    model_fixture_accept(f, LLAMA TIED ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
                                       "\"low_freq_factor\":1,\"high_freq_factor\":4,"
                                       "\"original_max_position_embeddings\":8192}");
    struct bitconv_gguf *file = model_fixture_metadata(f);
    assert_null(bitconv_gguf_find_key(file, "llama.rope.scaling.type"));
    assert_null(bitconv_gguf_find_key(file, "llama.rope.scaling.factor"));
    assert_int_equal(get_u64(file, "llama.rope.scaling.original_context_length"), 8192);
    assert_true(get_f64(file, "llama.rope.scaling.llama3.factor") == 8);
    bc_model_info_gguf(file, &arena, NULL, &info);
    assert_string_equal(info.rope_scaling, "llama3");
    assert_string_equal(info.architecture, "llama");
    assert_int_equal(info.kv_heads, 1);
    assert_true(info.rope_theta == 500000);
    bitconv_gguf_close(file);
    bc_model_info(f->model, &arena, &info);
    assert_string_equal(info.rope_scaling, "llama3");
    assert_string_equal(info.quantization, "BF16");
    bc_arena_release(&arena);
}

/* Files of other writers: what they leave out is the family's default, and that is said. */
static void info_takes_defaults_and_says_so(void **state)
{
    struct model_fixture *const f = *state;
    struct bc_arena arena = {NULL};
    struct bc_model_info info;
    struct bitconv_gguf_writer *const w = bitconv_gguf_writer_new();
    struct bitconv_gguf *file = NULL;
    const uint8_t *header = NULL;
    uint64_t header_size = 0, file_size = 0;
    assert_non_null(w);
    bitconv_gguf_set_string(w, "general.architecture", "qwen3");
    bitconv_gguf_set_u32(w, "qwen3.block_count", 28);
    bitconv_gguf_set_u32(w, "qwen3.embedding_length", 1024);
    bitconv_gguf_set_u32(w, "qwen3.attention.head_count", 16);
    assert_int_equal(bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, &f->err),
                     BITCONV_OK);
    temp_dir_write(f->dir, "x.gguf", header, (size_t)header_size);
    char *const path = temp_dir_path(f->dir, "x.gguf");
    assert_int_equal(bitconv_gguf_open(path, &file, &f->err), BITCONV_OK);
    bc_model_info_gguf(file, &arena, &f->sink, &info);
    assert_int_equal(info.layers, 28);
    assert_int_equal(info.head_dim, 64);
    assert_int_equal(info.kv_heads, 16);
    assert_true(info.rope_theta == 10000);
    assert_string_equal(info.hidden_act, "silu");
    assert_null(info.pooling);
    assert_true(model_fixture_said(f, "rope.freq_base (10000), hidden_activation (silu)"));
    bc_arena_release(&arena);
    bitconv_gguf_close(file);
    bitconv_gguf_writer_free(w);
    free(path);
}

static void vocabulary_only_needs_no_weights(void **state)
{
    struct model_fixture *const f = *state;
    temp_dir_puts(f->dir, "config.json", "{" LLAMA TIED "}");
    assert_int_equal(bc_checkpoint_open(f->dir, false, &f->sink, &f->ckpt, &f->err), BITCONV_OK);
    assert_int_equal(bc_model_load(f->ckpt, &f->options, &f->sink, &f->model, &f->err), BITCONV_OK);
    assert_int_equal(f->model->n_weights, 0);
    assert_int_equal(f->model->hp.n_vocab, 16);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, model_fixture_set_up, model_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(order_is_the_checkpoints),
        TEST(prefixes_do_not_matter),
        TEST(llama_permutes_q_and_k),
        TEST(biases_are_complete_or_absent),
        TEST(gemma_norms_get_one_but_not_norm_in),
        TEST(norm_in_is_complete_or_absent),
        TEST(norm_in_epsilon_is_carried),
        TEST(experts_are_stacked),
        TEST(missing_experts_are_listed),
        TEST(everything_wrong_is_listed),
        TEST(integer_dtypes_are_refused),
        TEST(inv_freq_is_dropped),
        TEST(scale_convention_follows_the_class),
        TEST(packed_weights_have_logical_shapes),
        TEST(scales_and_weights_pair_by_name),
        TEST(scales_may_be_in_another_shard),
        TEST(modules_to_not_convert_are_kept),
        TEST(packed_weights_cannot_be_kept),
        TEST(regexes_overrule_roles),
        TEST(tied_heads_are_dropped),
        TEST(other_heads_are_dropped_with_a_warning),
        TEST(embedding_models_have_no_head),
        TEST(rope_freqs_are_the_references),
        TEST(rope_freqs_come_first),
        TEST(metadata_has_the_facts_of_the_graph),
        TEST(metadata_of_llama_cpp),
        TEST(llama3_scaling_has_keys_of_our_own),
        TEST(info_takes_defaults_and_says_so),
        TEST(vocabulary_only_needs_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
