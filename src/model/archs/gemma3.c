/* SPDX-License-Identifier: MIT
 * Gemma 3 text models (Gemma3ForCausalLM, Gemma3TextModel), also as the base of BitNet embedding
 * models. Norms multiply by 1 + w (never the per-projection ones, which are BitLinear's own);
 * embeddings are scaled by sqrt(n_embd), which the architecture name implies. */
#include "model/arch.h"

/* Published nested configs leave out what equals the class's default. */
static const struct bc_arch_hparam hparams[] = {
    {{"num_attention_heads"}, offsetof(struct bc_hparams, n_head), BC_U32, BC_ABSENT_DEFAULT, 8},
    {{"num_key_value_heads"}, offsetof(struct bc_hparams, n_head_kv), BC_U32, BC_ABSENT_DEFAULT, 4},
    {{"head_dim"}, offsetof(struct bc_hparams, head_dim_k), BC_U32, BC_ABSENT_DEFAULT, 256},
    {{"max_position_embeddings"},
     offsetof(struct bc_hparams, n_ctx),
     BC_U32,
     BC_ABSENT_DEFAULT,
     32768},
    {{"query_pre_attn_scalar"},
     offsetof(struct bc_hparams, query_pre_attn_scalar),
     BC_F32,
     BC_ABSENT_DEFAULT,
     256},
    {{"final_logit_softcapping"},
     offsetof(struct bc_hparams, final_softcap),
     BC_F32,
     BC_ABSENT_QUIET,
     0},
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
    {{"layers.{l}.post_attention_layernorm"},
     "blk.{l}.post_attention_norm",
     BC_ROLE_NORM,
     {BC_N_EMBD}},
    {{"layers.{l}.pre_feedforward_layernorm"}, "blk.{l}.ffn_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.mlp.gate_proj"}, "blk.{l}.ffn_gate", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.mlp.up_proj"}, "blk.{l}.ffn_up", BC_ROLE_LINEAR, {BC_N_FF, BC_N_EMBD}},
    {{"layers.{l}.mlp.down_proj"}, "blk.{l}.ffn_down", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_FF}},
    {{"layers.{l}.post_feedforward_layernorm"}, "blk.{l}.post_ffw_norm", BC_ROLE_NORM, {BC_N_EMBD}},
    {{"layers.{l}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"},
     NULL,
     BC_ROLE_SKIP,
     {BC_N_NONE}},
    {{"rotary_emb_local.inv_freq"}, NULL, BC_ROLE_SKIP, {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

static const char *const ignored[] = {NULL};

/* The configuration class has the setting, but the attention of the model class ignores it. */
static const struct bc_config_fixed fixed[] = {{"attn_logit_softcapping", NULL, 0},
                                               {NULL, NULL, 0}};

const struct bc_arch bc_arch_gemma3 = {
    .name = "gemma3",
    .classes = {{"Gemma3ForCausalLM", "gemma3_text", false}, {"Gemma3TextModel", NULL, true}},
    .gguf_name = {[BC_TARGET_BITNET] = "gemma3", [BC_TARGET_LLAMA_CPP] = "gemma3"},
    .gguf_name_bidirectional = "gemma-embedding",
    .gguf_aliases = {"gemma3", "gemma-embedding"},
    .activations = {"gelu_pytorch_tanh"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order =
        {[BC_TARGET_BITNET] = bc_keys_embedding, [BC_TARGET_LLAMA_CPP] = bc_keys_llama_cpp},
    .ignored = ignored,
    .fixed = fixed,
    .graph = {.scaled_embedding = true},
    .traits = {.embedding_family = true,
               .norm_plus_one = true,
               .default_tied = true,
               .default_rope_theta = 1000000,
               .default_rope_theta_local = 10000,
               .default_act = "gelu_pytorch_tanh",
               .act_key = "hidden_activation",
               .sliding = BC_SLIDING_PATTERN,
               .default_sliding_window = 4096,
               .tokenizer = BC_TOKENIZER_GEMMA}};
