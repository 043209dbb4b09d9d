/* SPDX-License-Identifier: MIT
 * BitNet b1.58: microsoft's BitNetForCausalLM (2B-4T) and 1bitLLM's BitnetForCausalLM, whose
 * sub-norms have other names. Every linear weight is ternarised when the model is loaded. */
#include "model/arch.h"

static const struct bc_arch_hparam hparams[] = {
    {{"rms_norm_eps"}, offsetof(struct bc_hparams, norm_eps), BC_F32, BC_ABSENT_DEFAULT, 1e-5},
    {{NULL}, 0, BC_U32, BC_ABSENT_QUIET, 0}};

static const struct bc_arch_tensor tensors[] = {
    {{"embed_tokens"}, "token_embd", BC_ROLE_EMBED, {BC_N_VOCAB, BC_N_EMBD}},
    {{"norm"}, "output_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"lm_head"}, "output", BC_ROLE_OUTPUT, {BC_N_VOCAB, BC_N_EMBD}},
    {{"layers.{l}.input_layernorm"}, "blk.{l}.attn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.self_attn.q_proj"}, "blk.{l}.attn_q", BC_ROLE_LINEAR, {BC_N_Q, BC_N_EMBD}},
    {{"layers.{l}.self_attn.k_proj"}, "blk.{l}.attn_k", BC_ROLE_LINEAR, {BC_N_K, BC_N_EMBD}},
    {{"layers.{l}.self_attn.v_proj"}, "blk.{l}.attn_v", BC_ROLE_LINEAR, {BC_N_V, BC_N_EMBD}},
    {{"layers.{l}.self_attn.attn_sub_norm", "layers.{l}.self_attn.inner_attn_ln"},
     "blk.{l}.attn_sub_norm",
     BC_ROLE_NORM,
     {BC_N_O}},
    {{"layers.{l}.self_attn.o_proj"}, "blk.{l}.attn_output", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_O}},
    {{"layers.{l}.post_attention_layernorm"}, "blk.{l}.ffn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.mlp.gate_proj"}, "blk.{l}.ffn_gate", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.mlp.up_proj"}, "blk.{l}.ffn_up", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.mlp.ffn_sub_norm", "layers.{l}.mlp.ffn_layernorm"},
     "blk.{l}.ffn_sub_norm",
     BC_ROLE_NORM,
     {BC_N_FF}},
    {{"layers.{l}.mlp.down_proj"}, "blk.{l}.ffn_down", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_FF}},
    {{"layers.{l}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"},
     NULL,
     BC_ROLE_SKIP,
     {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

/* llama.cpp's converter states the RoPE scaling of this family behind the file type. */
static const enum bc_key llama_cpp_keys[] = {BC_KEY_BLOCK_COUNT,
                                             BC_KEY_CONTEXT_LENGTH,
                                             BC_KEY_EMBEDDING_LENGTH,
                                             BC_KEY_FEED_FORWARD_LENGTH,
                                             BC_KEY_HEAD_COUNT,
                                             BC_KEY_HEAD_COUNT_KV,
                                             BC_KEY_ROPE_BASE,
                                             BC_KEY_RMS_EPS,
                                             BC_KEY_KEY_LENGTH,
                                             BC_KEY_VALUE_LENGTH,
                                             BC_KEY_FILE_TYPE,
                                             BC_KEY_ROPE_SCALING,
                                             BC_KEY_VOCAB_SIZE,
                                             BC_KEY_ROPE_DIMS,
                                             BC_KEY_CAUSAL,
                                             BC_KEY_HIDDEN_ACT,
                                             BC_KEY_NORM_IN_EPS,
                                             BC_KEY_POOLING,
                                             BC_KEY_QUANTIZATION_VERSION,
                                             BC_KEY_END};

/* 1bitLLM's configuration states the widths of its training arithmetic. */
static const char *const ignored[] = {"input_bits", "weight_bits", NULL};

const struct bc_arch bc_arch_bitnet = {
    .name = "bitnet",
    .classes = {{"BitNetForCausalLM", "bitnet", false}, {"BitnetForCausalLM", NULL, false}},
    .gguf_name = {[BC_TARGET_BITNET] = "bitnet-b1.58", [BC_TARGET_LLAMA_CPP] = "bitnet"},
    .gguf_aliases = {"bitnet", "bitnet-25", "bitnet-b1.58"},
    .activations = {"silu", "relu2"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order = {[BC_TARGET_BITNET] = bc_keys_bitnet, [BC_TARGET_LLAMA_CPP] = llama_cpp_keys},
    .ignored = ignored,
    .traits = {.ternary_class = true,
               .reader_linear_rope = true,
               .default_rope_theta = 500000,
               .default_act = "relu2"}};
