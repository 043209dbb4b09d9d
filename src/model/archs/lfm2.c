/* SPDX-License-Identifier: MIT
 * Lfm2ForCausalLM (LFM2): layers of attention (with per-head norms of q and k) among layers of gated
 * short convolutions. in_proj gives two gates and an input of n_embd each; every channel has a
 * filter over conv_l_cache tokens. */
#include "model/arch.h"

/* Lfm2Config's own defaults; intermediate_size is the newer name of block_ff_dim. */
static const struct bc_arch_hparam hparams[] = {
    {{"block_ff_dim", "intermediate_size"},
     offsetof(struct bc_hparams, n_ff),
     BC_U32,
     BC_ABSENT_REFUSE,
     0},
    {{"num_key_value_heads"}, offsetof(struct bc_hparams, n_head_kv), BC_U32, BC_ABSENT_DEFAULT, 8},
    {{"max_position_embeddings"},
     offsetof(struct bc_hparams, n_ctx),
     BC_U32,
     BC_ABSENT_DEFAULT,
     128000},
    {{"norm_eps", "block_norm_eps"},
     offsetof(struct bc_hparams, norm_eps),
     BC_F32,
     BC_ABSENT_DEFAULT,
     1e-5},
    {{"conv_L_cache"}, offsetof(struct bc_hparams, conv_l_cache), BC_U32, BC_ABSENT_DEFAULT, 3},
    {{NULL}, 0, BC_U32, BC_ABSENT_QUIET, 0}};

static const struct bc_arch_tensor tensors[] = {
    {{"embed_tokens"}, "token_embd", BC_ROLE_EMBED, {BC_N_VOCAB, BC_N_EMBD}},
    /* the norm behind the last layer, whatever both names say */
    {{"embedding_norm"}, "token_embd_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"lm_head"}, "output", BC_ROLE_OUTPUT, {BC_N_VOCAB, BC_N_EMBD}},
    {{"layers.{l}.operator_norm"}, "blk.{l}.attn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{c}.conv.in_proj"},
     "blk.{c}.shortconv.in_proj",
     BC_ROLE_LINEAR,
     {BC_N_EMBD3, BC_N_EMBD}},
    {{"layers.{c}.conv.conv"}, "blk.{c}.shortconv.conv", BC_ROLE_CONV, {BC_N_EMBD, BC_N_CONV}},
    {{"layers.{c}.conv.out_proj"},
     "blk.{c}.shortconv.out_proj",
     BC_ROLE_LINEAR,
     {BC_N_EMBD, BC_N_EMBD}},
    {{"layers.{a}.self_attn.q_proj"}, "blk.{a}.attn_q", BC_ROLE_LINEAR, {BC_N_Q, BC_N_EMBD}},
    {{"layers.{a}.self_attn.k_proj"}, "blk.{a}.attn_k", BC_ROLE_LINEAR, {BC_N_K, BC_N_EMBD}},
    {{"layers.{a}.self_attn.v_proj"}, "blk.{a}.attn_v", BC_ROLE_LINEAR, {BC_N_V, BC_N_EMBD}},
    {{"layers.{a}.self_attn.q_layernorm"}, "blk.{a}.attn_q_norm", BC_ROLE_NORM, {BC_N_HEAD_K}},
    {{"layers.{a}.self_attn.k_layernorm"}, "blk.{a}.attn_k_norm", BC_ROLE_NORM, {BC_N_HEAD_K}},
    {{"layers.{a}.self_attn.out_proj"}, "blk.{a}.attn_output", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_O}},
    {{"layers.{l}.ffn_norm"}, "blk.{l}.ffn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.feed_forward.w1"}, "blk.{l}.ffn_gate", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.feed_forward.w3"}, "blk.{l}.ffn_up", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.feed_forward.w2"}, "blk.{l}.ffn_down", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_FF}},
    {{"layers.{a}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"},
     NULL,
     BC_ROLE_SKIP,
     {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

/* Order of llama.cpp's converter, with the facts that it leaves out behind. */
static const enum bc_key keys[] = {BC_KEY_BLOCK_COUNT,
                                   BC_KEY_CONTEXT_LENGTH,
                                   BC_KEY_EMBEDDING_LENGTH,
                                   BC_KEY_FEED_FORWARD_LENGTH,
                                   BC_KEY_HEAD_COUNT,
                                   BC_KEY_HEAD_COUNT_KV_LAYERS,
                                   BC_KEY_ROPE_SCALING,
                                   BC_KEY_ROPE_BASE,
                                   BC_KEY_RMS_EPS,
                                   BC_KEY_FILE_TYPE,
                                   BC_KEY_VOCAB_SIZE,
                                   BC_KEY_CONV_CACHE,
                                   BC_KEY_ROPE_DIMS,
                                   BC_KEY_KEY_LENGTH,
                                   BC_KEY_VALUE_LENGTH,
                                   BC_KEY_POOLING,
                                   BC_KEY_CAUSAL,
                                   BC_KEY_HIDDEN_ACT,
                                   BC_KEY_NORM_IN_EPS,
                                   BC_KEY_QUANTIZATION_VERSION,
                                   BC_KEY_END};

/* Widths that the class takes from hidden_size, initialisation, and what is read elsewhere. */
static const char *const ignored[] = {"block_auto_adjust_ff_dim",
                                      "block_dim",
                                      "block_ffn_dim_multiplier",
                                      "block_mlp_init_scale",
                                      "block_multiple_of",
                                      "block_out_init_scale",
                                      "block_use_xavier_init",
                                      "conv_dim",
                                      "conv_dim_out",
                                      "conv_use_xavier_init",
                                      "full_attn_idxs",
                                      "num_heads",
                                      "theta",
                                      NULL};

static const struct bc_config_alias aliases[] = {
    {"tie_embedding", "tie_word_embeddings"}, {"theta", "rope_theta"}, {NULL, NULL}};

static const struct bc_config_fixed fixed[] = {{"block_use_swiglu", NULL, 1},
                                               {"use_pos_enc", NULL, 1},
                                               {"conv_bias", NULL, 0},
                                               {NULL, NULL, 0}};

const struct bc_arch bc_arch_lfm2 = {
    .name = "lfm2",
    .classes = {{"Lfm2ForCausalLM", "lfm2", false}},
    .gguf_name = {[BC_TARGET_BITNET] = "lfm2", [BC_TARGET_LLAMA_CPP] = "lfm2"},
    .activations = {"silu"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order = {[BC_TARGET_BITNET] = keys, [BC_TARGET_LLAMA_CPP] = keys},
    .ignored = ignored,
    .aliases = aliases,
    .fixed = fixed,
    .graph = {.final_norm = "token_embd_norm"},
    .traits = {.default_tied = true,
               .default_rope_theta = 1000000,
               .default_act = "silu",
               .act_is_fixed = true,
               .conv_layers = true,
               .ff_rule = BC_FF_TWO_THIRDS,
               .biases = BC_BIASES_NONE}};
