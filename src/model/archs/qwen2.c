/* SPDX-License-Identifier: MIT
 * Qwen2ForCausalLM and Qwen2Model (Qwen 2, Qwen 2.5): the llama block with biases of q, k and v,
 * which the class has whatever the config says. */
#include "model/arch.h"

/* Qwen2Config's own defaults. */
static const struct bc_arch_hparam hparams[] = {{{"num_key_value_heads"},
                                                 offsetof(struct bc_hparams, n_head_kv),
                                                 BC_U32,
                                                 BC_ABSENT_DEFAULT,
                                                 32},
                                                {{"max_position_embeddings"},
                                                 offsetof(struct bc_hparams, n_ctx),
                                                 BC_U32,
                                                 BC_ABSENT_DEFAULT,
                                                 32768},
                                                {{NULL}, 0, BC_U32, BC_ABSENT_QUIET, 0}};

static const struct bc_arch_tensor tensors[] = {
    {{"embed_tokens"}, "token_embd", BC_ROLE_EMBED, {BC_N_VOCAB, BC_N_EMBD}},
    {{"norm"}, "output_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"lm_head"}, "output", BC_ROLE_OUTPUT, {BC_N_VOCAB, BC_N_EMBD}},
    {{"layers.{l}.input_layernorm"}, "blk.{l}.attn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.self_attn.q_proj"}, "blk.{l}.attn_q", BC_ROLE_LINEAR, {BC_N_Q, BC_N_EMBD}},
    {{"layers.{l}.self_attn.k_proj"}, "blk.{l}.attn_k", BC_ROLE_LINEAR, {BC_N_K, BC_N_EMBD}},
    {{"layers.{l}.self_attn.v_proj"}, "blk.{l}.attn_v", BC_ROLE_LINEAR, {BC_N_V, BC_N_EMBD}},
    {{"layers.{l}.self_attn.o_proj"}, "blk.{l}.attn_output", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_O}},
    {{"layers.{l}.post_attention_layernorm"}, "blk.{l}.ffn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.mlp.gate_proj"}, "blk.{l}.ffn_gate", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.mlp.up_proj"}, "blk.{l}.ffn_up", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.mlp.down_proj"}, "blk.{l}.ffn_down", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_FF}},
    {{"layers.{l}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"},
     NULL,
     BC_ROLE_SKIP,
     {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

static const char *const ignored[] = {NULL};

const struct bc_arch bc_arch_qwen2 = {
    .name = "qwen2",
    .classes = {{"Qwen2ForCausalLM", "qwen2", false}, {"Qwen2Model", NULL, true}},
    .gguf_name = {[BC_TARGET_BITNET] = "qwen2", [BC_TARGET_LLAMA_CPP] = "qwen2"},
    .activations = {"silu"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order = {[BC_TARGET_BITNET] = bc_keys_bitnet, [BC_TARGET_LLAMA_CPP] = bc_keys_llama_cpp},
    .ignored = ignored,
    .traits = {.default_rope_theta = 10000,
               .default_act = "silu",
               .sliding = BC_SLIDING_QWEN,
               .default_sliding_window = 4096,
               .biases = BC_BIASES_QKV,
               .tokenizer = BC_TOKENIZER_QWEN}};
