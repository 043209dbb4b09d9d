/* SPDX-License-Identifier: MIT
 * BERT encoders (BertModel and its pre-training classes) as embedding models: MiniLM, BGE, E5.
 * LayerNorm behind each residual sum, learned positions and token types, biases everywhere. Heads
 * and the pooler, which no embedding uses, are not carried. */
#include "model/arch.h"

/* BertConfig's own defaults. */
static const struct bc_arch_hparam hparams[] = {
    /* every head has its own keys and values */
    {{"num_attention_heads"}, offsetof(struct bc_hparams, n_head_kv), BC_U32, BC_ABSENT_REFUSE, 0},
    {{"max_position_embeddings"},
     offsetof(struct bc_hparams, n_ctx),
     BC_U32,
     BC_ABSENT_DEFAULT,
     512},
    {{"layer_norm_eps"}, offsetof(struct bc_hparams, norm_eps), BC_F32, BC_ABSENT_DEFAULT, 1e-12},
    {{"type_vocab_size"}, offsetof(struct bc_hparams, n_token_types), BC_U32, BC_ABSENT_DEFAULT, 2},
    {{NULL}, 0, BC_U32, BC_ABSENT_QUIET, 0}};

static const struct bc_arch_tensor tensors[] = {
    {{"embeddings.word_embeddings"}, "token_embd", BC_ROLE_EMBED, {BC_N_VOCAB, BC_N_EMBD}},
    {{"embeddings.position_embeddings"},
     "position_embd",
     BC_ROLE_TABLE,
     {BC_N_POSITIONS, BC_N_EMBD}},
    {{"embeddings.token_type_embeddings"},
     "token_types",
     BC_ROLE_TABLE,
     {BC_N_TOKEN_TYPES, BC_N_EMBD}},
    {{"embeddings.LayerNorm"}, "token_embd_norm", BC_ROLE_LAYER_NORM, {BC_N_EMBD}},
    {{"encoder.layer.{l}.attention.self.query"},
     "blk.{l}.attn_q",
     BC_ROLE_LINEAR,
     {BC_N_Q, BC_N_EMBD}},
    {{"encoder.layer.{l}.attention.self.key"},
     "blk.{l}.attn_k",
     BC_ROLE_LINEAR,
     {BC_N_K, BC_N_EMBD}},
    {{"encoder.layer.{l}.attention.self.value"},
     "blk.{l}.attn_v",
     BC_ROLE_LINEAR,
     {BC_N_V, BC_N_EMBD}},
    {{"encoder.layer.{l}.attention.output.dense"},
     "blk.{l}.attn_output",
     BC_ROLE_LINEAR,
     {BC_N_EMBD, BC_N_O}},
    {{"encoder.layer.{l}.attention.output.LayerNorm"},
     "blk.{l}.attn_output_norm",
     BC_ROLE_LAYER_NORM,
     {BC_N_EMBD}},
    {{"encoder.layer.{l}.intermediate.dense"},
     "blk.{l}.ffn_up",
     BC_ROLE_LINEAR,
     {BC_N_FF, BC_N_EMBD}},
    {{"encoder.layer.{l}.output.dense"}, "blk.{l}.ffn_down", BC_ROLE_LINEAR, {BC_N_EMBD, BC_N_FF}},
    {{"encoder.layer.{l}.output.LayerNorm"},
     "blk.{l}.layer_output_norm",
     BC_ROLE_LAYER_NORM,
     {BC_N_EMBD}},
    {{"embeddings.position_ids", "embeddings.token_type_ids"}, NULL, BC_ROLE_SKIP, {BC_N_NONE}},
    {{"pooler.dense.{*}"}, NULL, BC_ROLE_UNUSED, {BC_N_NONE}},
    {{"cls.predictions.{*}", "cls.seq_relationship.{*}"}, NULL, BC_ROLE_UNUSED, {BC_N_NONE}},
    {{NULL}, NULL, BC_ROLE_NONE, {BC_N_NONE}}};

/* Order of llama.cpp's converter, with the facts that it leaves out behind. */
static const enum bc_key keys[] = {BC_KEY_BLOCK_COUNT,
                                   BC_KEY_CONTEXT_LENGTH,
                                   BC_KEY_EMBEDDING_LENGTH,
                                   BC_KEY_FEED_FORWARD_LENGTH,
                                   BC_KEY_HEAD_COUNT,
                                   BC_KEY_LAYER_NORM_EPS,
                                   BC_KEY_FILE_TYPE,
                                   BC_KEY_CAUSAL,
                                   BC_KEY_POOLING,
                                   BC_KEY_VOCAB_SIZE,
                                   BC_KEY_KEY_LENGTH,
                                   BC_KEY_VALUE_LENGTH,
                                   BC_KEY_HIDDEN_ACT,
                                   BC_KEY_NORM_IN_EPS,
                                   BC_KEY_QUANTIZATION_VERSION,
                                   BC_KEY_END};

/* The pooler of next-sentence prediction, which is not carried. */
static const char *const ignored[] = {
    "directionality",       "output_past",          "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",    NULL};

static const struct bc_config_fixed fixed[] = {
    {"position_embedding_type", "absolute", 0}, {"is_decoder", NULL, 0}, {NULL, NULL, 0}};

const struct bc_arch bc_arch_bert = {
    .name = "bert",
    .classes = {{"BertModel", "bert", true},
                {"BertForMaskedLM", NULL, true},
                {"BertForPreTraining", NULL, true}},
    .gguf_name = {[BC_TARGET_BITNET] = "bert", [BC_TARGET_LLAMA_CPP] = "bert"},
    .activations = {"gelu"},
    .hparams = hparams,
    .tensors = tensors,
    .key_order = {[BC_TARGET_BITNET] = keys, [BC_TARGET_LLAMA_CPP] = keys},
    .ignored = ignored,
    .prefix = "bert.",
    .fixed = fixed,
    .graph = {.embedding_norm = "token_embd_norm"},
    .traits = {.default_act = "gelu",
               .default_tied = true,
               .layer_norm = true,
               .bidirectional = true,
               .positions = BC_POSITIONS_LEARNED,
               .biases = BC_BIASES_ALL,
               .tokenizer = BC_TOKENIZER_BERT}};
