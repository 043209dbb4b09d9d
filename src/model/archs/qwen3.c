/* SPDX-License-Identifier: MIT
 * Qwen3ForCausalLM and Qwen3Model, also as the base of BitNet embedding models: per-head norms of q
 * and k, and there one RMSNorm in front of every projection. */
#include "model/arch.h"

static const struct bc_arch_hparam hparams[] = {
    {{"head_dim"}, offsetof(struct bc_hparams, head_dim_k), BC_U32, BC_ABSENT_DEFAULT, 128},
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
    {{"layers.{l}.self_attn.q_norm"}, "blk.{l}.attn_q_norm", BC_ROLE_NORM, {BC_N_HEAD_K}},
    {{"layers.{l}.self_attn.k_norm"}, "blk.{l}.attn_k_norm", BC_ROLE_NORM, {BC_N_HEAD_K}},
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

const struct bc_arch bc_arch_qwen3 = {
    .name = "qwen3",
    .classes = {{"Qwen3ForCausalLM", "qwen3", false}, {"Qwen3Model", NULL, true}},
    .gguf_name = {[BC_TARGET_BITNET] = "qwen3", [BC_TARGET_LLAMA_CPP] = "qwen3"},
    .activations = {"silu"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order =
        {[BC_TARGET_BITNET] = bc_keys_embedding, [BC_TARGET_LLAMA_CPP] = bc_keys_llama_cpp},
    .ignored = ignored,
    .traits = {.embedding_family = true,
               .default_rope_theta = 10000,
               .default_act = "silu",
               .sliding = BC_SLIDING_QWEN,
               .default_sliding_window = 4096,
               .tokenizer = BC_TOKENIZER_QWEN}};
