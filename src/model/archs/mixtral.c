/* SPDX-License-Identifier: MIT
 * MixtralForCausalLM: the llama block with a router and a stack of experts (w1 gate, w2 down, w3
 * up) in place of the MLP. Files say architecture "llama" with expert counts. */
#include "model/arch.h"

static const struct bc_arch_hparam hparams[] = {
    {{"num_key_value_heads"}, offsetof(struct bc_hparams, n_head_kv), BC_U32, BC_ABSENT_DEFAULT, 8},
    {{"max_position_embeddings"},
     offsetof(struct bc_hparams, n_ctx),
     BC_U32,
     BC_ABSENT_DEFAULT,
     131072},
    {{"rms_norm_eps"}, offsetof(struct bc_hparams, norm_eps), BC_F32, BC_ABSENT_DEFAULT, 1e-5},
    {{"num_local_experts"}, offsetof(struct bc_hparams, n_expert), BC_U32, BC_ABSENT_DEFAULT, 8},
    {{"num_experts_per_tok"},
     offsetof(struct bc_hparams, n_expert_used),
     BC_U32,
     BC_ABSENT_DEFAULT,
     2},
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
    {{"layers.{l}.block_sparse_moe.gate"},
     "blk.{l}.ffn_gate_inp",
     BC_ROLE_ROUTER,
     {BC_N_EXPERT, BC_N_EMBD}},
    /* stacks are emitted in this order, at the place of the layer's last expert */
    {{"layers.{l}.block_sparse_moe.experts.{e}.w1"},
     "blk.{l}.ffn_gate_exps",
     BC_ROLE_EXPERT,
     {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.block_sparse_moe.experts.{e}.w2"},
     "blk.{l}.ffn_down_exps",
     BC_ROLE_EXPERT,
     {BC_N_EMBD, BC_N_FF}},
    {{"layers.{l}.block_sparse_moe.experts.{e}.w3"},
     "blk.{l}.ffn_up_exps",
     BC_ROLE_EXPERT,
     {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"},
     NULL,
     BC_ROLE_SKIP,
     {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

/* The class always renormalises the weights of the chosen experts. */
static const char *const ignored[] = {"norm_topk_prob", NULL};

const struct bc_arch bc_arch_mixtral = {
    .name = "mixtral",
    .classes = {{"MixtralForCausalLM", "mixtral", false}},
    .gguf_name = {[BC_TARGET_BITNET] = "llama", [BC_TARGET_LLAMA_CPP] = "llama"},
    .activations = {"silu"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order = {[BC_TARGET_BITNET] = bc_keys_bitnet, [BC_TARGET_LLAMA_CPP] = bc_keys_llama_cpp},
    .ignored = ignored,
    .traits = {.permute_qk = true,
               .default_rope_theta = 1000000,
               .default_act = "silu",
               .sliding = BC_SLIDING_ALL}};
