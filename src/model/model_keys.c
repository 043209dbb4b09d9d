/* SPDX-License-Identifier: MIT
 * The metadata keys that are one hyper-parameter each, as a table: writing and reading share it. */
#include "model/model_internal.h"

#define MEMBER(name) offsetof(struct bc_hparams, name)
static const struct bc_key_row rows[] = {
    [BC_KEY_BLOCK_COUNT] = {"block_count", BC_KIND_U32, MEMBER(n_layers), true},
    [BC_KEY_CONTEXT_LENGTH] = {"context_length", BC_KIND_U32, MEMBER(n_ctx), true},
    [BC_KEY_EMBEDDING_LENGTH] = {"embedding_length", BC_KIND_U32, MEMBER(n_embd), true},
    [BC_KEY_FEED_FORWARD_LENGTH] = {"feed_forward_length", BC_KIND_U32, MEMBER(n_ff), true},
    [BC_KEY_HEAD_COUNT] = {"attention.head_count", BC_KIND_U32, MEMBER(n_head), true},
    [BC_KEY_HEAD_COUNT_KV] = {"attention.head_count_kv", BC_KIND_U32, MEMBER(n_head_kv), true},
    [BC_KEY_VOCAB_SIZE] = {"vocab_size", BC_KIND_U32, MEMBER(n_vocab), true},
    [BC_KEY_ROPE_DIMS] = {"rope.dimension_count", BC_KIND_U32, MEMBER(rope_dims), true},
    [BC_KEY_KEY_LENGTH] = {"attention.key_length", BC_KIND_U32, MEMBER(head_dim_k), true},
    [BC_KEY_VALUE_LENGTH] = {"attention.value_length", BC_KIND_U32, MEMBER(head_dim_v), true},
    [BC_KEY_ROPE_BASE] = {"rope.freq_base", BC_KIND_F32, MEMBER(rope_theta), true},
    [BC_KEY_ROPE_BASE_LOCAL] = {"rope.freq_base_swa", BC_KIND_F32, MEMBER(rope_theta_local), false},
    [BC_KEY_RMS_EPS] = {"attention.layer_norm_rms_epsilon", BC_KIND_F32, MEMBER(norm_eps), true},
    [BC_KEY_LAYER_NORM_EPS] = {"attention.layer_norm_epsilon", BC_KIND_F32, MEMBER(norm_eps), true},
    [BC_KEY_NORM_IN_EPS] = {"attention.norm_in_rms_epsilon", BC_KIND_F32, MEMBER(norm_in_eps),
                            false},
    [BC_KEY_EXPERT_COUNT] = {"expert_count", BC_KIND_U32, MEMBER(n_expert), false},
    [BC_KEY_EXPERT_USED_COUNT] = {"expert_used_count", BC_KIND_U32, MEMBER(n_expert_used), false},
    [BC_KEY_QUERY_SCALAR] = {"attention.query_pre_attn_scalar", BC_KIND_F32,
                             MEMBER(query_pre_attn_scalar), false},
    [BC_KEY_ATTENTION_SCALE] = {"attention.scale", BC_KIND_F32, MEMBER(attn_scale), false},
    [BC_KEY_ATTENTION_SOFTCAP] = {"attn_logit_softcapping", BC_KIND_F32, MEMBER(attn_softcap),
                                  false},
    [BC_KEY_FINAL_SOFTCAP] = {"final_logit_softcapping", BC_KIND_F32, MEMBER(final_softcap), false},
    [BC_KEY_HIDDEN_ACT] = {"hidden_activation", BC_KIND_STRING, MEMBER(hidden_act), true},
    [BC_KEY_CONV_CACHE] = {"shortconv.l_cache", BC_KIND_U32, MEMBER(conv_l_cache), true},
    [BC_KEY_HEAD_COUNT_KV_LAYERS] = {"attention.head_count_kv", BC_KIND_SPECIAL, MEMBER(n_head_kv),
                                     true},
    [BC_KEY_CAUSAL] = {"attention.causal", BC_KIND_BOOL, MEMBER(causal), true},
    [BC_KEY_SLIDING_WINDOW] = {"attention.sliding_window", BC_KIND_SPECIAL, MEMBER(sliding_window),
                               false},
    [BC_KEY_ROPE_SCALING] = {"rope.scaling.type", BC_KIND_SPECIAL, MEMBER(rope_scaling), false},
    [BC_KEY_POOLING] = {"pooling_type", BC_KIND_SPECIAL, MEMBER(pooling), false},
    [BC_KEY_FILE_TYPE] = {NULL, BC_KIND_SPECIAL, 0, true},
    [BC_KEY_QUANTIZATION_VERSION] = {NULL, BC_KIND_SPECIAL, 0, true},
};

const struct bc_key_row *bc_key_row(enum bc_key key)
{
    return &rows[key];
}

const struct bc_sampling_row bc_sampling_rows[] = {
    {"top_k", "general.sampling.top_k", true},
    {"top_p", "general.sampling.top_p", false},
    {"min_p", "general.sampling.min_p", false},
    {"temperature", "general.sampling.temp", false},
    {"repetition_penalty", "general.sampling.penalty_repeat", false},
    {NULL, NULL, false}};
