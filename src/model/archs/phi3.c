/* SPDX-License-Identifier: MIT
 * Phi3ForCausalLM (Phi-3, Phi-3.5, Phi-4): q, k, v in one matrix, gate and up in another, no
 * biases; long contexts by two lists of frequency divisors (longrope); in Phi-4-mini only a part of
 * each head is rotated. */
#include "model/arch.h"

/* Phi3Config's own defaults. */
static const struct bc_arch_hparam hparams[] = {
    {{"max_position_embeddings"},
     offsetof(struct bc_hparams, n_ctx),
     BC_U32,
     BC_ABSENT_DEFAULT,
     4096},
    {{"rms_norm_eps"}, offsetof(struct bc_hparams, norm_eps), BC_F32, BC_ABSENT_DEFAULT, 1e-5},
    {{NULL}, 0, BC_U32, BC_ABSENT_QUIET, 0}};

static const struct bc_arch_tensor tensors[] = {
    {{"embed_tokens"}, "token_embd", BC_ROLE_EMBED, {BC_N_VOCAB, BC_N_EMBD}},
    {{"norm"}, "output_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"lm_head"}, "output", BC_ROLE_OUTPUT, {BC_N_VOCAB, BC_N_EMBD}},
    {{"layers.{l}.input_layernorm"}, "blk.{l}.attn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.self_attn.qkv_proj"}, "blk.{l}.attn_qkv", BC_ROLE_LINEAR, {BC_N_QKV, BC_N_EMBD}},
    {{"layers.{l}.self_attn.o_proj"}, "blk.{l}.attn_output", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_O}},
    {{"layers.{l}.post_attention_layernorm"}, "blk.{l}.ffn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.mlp.gate_up_proj"}, "blk.{l}.ffn_up", BC_ROLE_LINEAR, {BC_N_FF2, BC_N_EMBD}},
    {{"layers.{l}.mlp.down_proj"}, "blk.{l}.ffn_down", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_FF}},
    {{"layers.{l}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"},
     NULL,
     BC_ROLE_SKIP,
     {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

/* Order of llama.cpp's converter, with the facts that it leaves out behind the window. */
static const enum bc_key keys[] = {BC_KEY_CONTEXT_LENGTH,
                                   BC_KEY_ROPE_SCALING,
                                   BC_KEY_EMBEDDING_LENGTH,
                                   BC_KEY_FEED_FORWARD_LENGTH,
                                   BC_KEY_BLOCK_COUNT,
                                   BC_KEY_HEAD_COUNT,
                                   BC_KEY_HEAD_COUNT_KV,
                                   BC_KEY_RMS_EPS,
                                   BC_KEY_ROPE_DIMS,
                                   BC_KEY_ROPE_BASE,
                                   BC_KEY_FILE_TYPE,
                                   BC_KEY_SLIDING_WINDOW,
                                   BC_KEY_VOCAB_SIZE,
                                   BC_KEY_KEY_LENGTH,
                                   BC_KEY_VALUE_LENGTH,
                                   BC_KEY_POOLING,
                                   BC_KEY_CAUSAL,
                                   BC_KEY_HIDDEN_ACT,
                                   BC_KEY_NORM_IN_EPS,
                                   BC_KEY_QUANTIZATION_VERSION,
                                   BC_KEY_END};

/* Read with the RoPE settings. */
static const char *const ignored[] = {"partial_rotary_factor", NULL};

/* Of Phi-4-mini's own code; the class of transformers has no such settings. */
static const struct bc_config_fixed fixed[] = {{"full_attn_mod", NULL, 1},
                                               {"interpolate_factor", NULL, 1},
                                               {"lm_head_bias", NULL, 0},
                                               {NULL, NULL, 0}};

const struct bc_arch bc_arch_phi3 = {
    .name = "phi3",
    .classes = {{"Phi3ForCausalLM", "phi3", false}},
    .gguf_name = {[BC_TARGET_BITNET] = "phi3", [BC_TARGET_LLAMA_CPP] = "phi3"},
    .activations = {"silu"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order = {[BC_TARGET_BITNET] = keys, [BC_TARGET_LLAMA_CPP] = keys},
    .ignored = ignored,
    .fixed = fixed,
    .traits = {.default_rope_theta = 10000,
               .default_rope_orig_ctx = 4096,
               .default_act = "silu",
               .sliding = BC_SLIDING_ALL,
               .states_no_window = true,
               .biases = BC_BIASES_NONE,
               .partial_rotary = true,
               .longrope = true,
               .tokenizer = BC_TOKENIZER_PHI3}};
