/* SPDX-License-Identifier: MIT
 * The schema of a family descriptor: tables only, no functions. One file per family in archs/.
 *
 * How to add a family: 1. archs/NAME.c with its tables, as the neighbours do. 2. One line in the
 * list in arch.c. A quirk that the tables cannot say becomes an enum value
 * here and one case in the interpreter (arch.c, model_*.c), so that every family can use it. */
#ifndef BC_MODEL_ARCH_H
#define BC_MODEL_ARCH_H

#include "base/mem.h"
#include "model/hparams.h"

/* Whose conventions a file follows (names, dtype of norms, type ids): --target. */
enum bc_target { BC_TARGET_AUTO, BC_TARGET_BITNET, BC_TARGET_LLAMA_CPP, BC_N_TARGETS };

/* What a tensor is for; decides its type in the file (convert/plan_types.h). */
enum bc_role {
    BC_ROLE_NONE,       /* no row of a table */
    BC_ROLE_LINEAR,     /* becomes ternary */
    BC_ROLE_EMBED,      /* token_embd */
    BC_ROLE_OUTPUT,     /* lm_head */
    BC_ROLE_NORM,       /* norms, 1-D */
    BC_ROLE_ROUTER,     /* MoE gate */
    BC_ROLE_BIAS,       /* 1-D */
    BC_ROLE_EXPERT,     /* one expert of a stack; the stacked tensor has role LINEAR */
    BC_ROLE_ROPE,       /* rope_freqs, rope_factors_long, rope_factors_short */
    BC_ROLE_SKIP,       /* known, not carried: computed from the config (rotary_emb.inv_freq) */
    BC_ROLE_LAYER_NORM, /* LayerNorm: BASE.weight and BASE.bias (old names: .gamma, .beta); the
                         * tensors have the roles NORM and BIAS */
    BC_ROLE_TABLE,      /* learned positions and token types: added to the embeddings in F32 */
    BC_ROLE_CONV,       /* short convolutions, one filter a channel: F32 */
    BC_ROLE_UNUSED      /* known, not carried: what only training and other tasks use */
};

/* The dimensions of tensors in terms of hyper-parameters. */
enum bc_dim {
    BC_N_NONE,
    BC_N_EMBD,
    BC_N_FF,
    BC_N_VOCAB,
    BC_N_Q,      /* n_head * head_dim_k */
    BC_N_K,      /* n_head_kv * head_dim_k */
    BC_N_V,      /* n_head_kv * head_dim_v */
    BC_N_O,      /* n_head * head_dim_v: what the output projection reads */
    BC_N_HEAD_K, /* head_dim_k */
    BC_N_EXPERT,
    BC_N_QKV,       /* q, k and v below each other */
    BC_N_FF2,       /* gate and up below each other */
    BC_N_EMBD3,     /* the two gates and the input of a short convolution */
    BC_N_CONV,      /* length of a short convolution */
    BC_N_POSITIONS, /* n_ctx */
    BC_N_TOKEN_TYPES
};

/* A row of the tensor table. Names are base names: `.weight` and the suffixes of companions are
 * the interpreter's business. {l} stands for the layer, {e} for the expert; {a} is a layer with
 * attention, {c} one with a short convolution instead, where the layers differ (bc_pattern_layers).
 * The prefixes of the backbone ("model." and so on, arch.c) are not part of a pattern.
 *
 * The role says the rest. LINEAR: may have BASE.bias, BASE.weight_scale, and BASE.norm.weight or
 * BASE.rms_norm.weight (BitLinear's RMSNorm of the input). OUTPUT: needed unless tied. SKIP and
 * UNUSED: never needed, the pattern is the whole name, a final {*} stands for any rest. All others
 * are required. */
struct bc_arch_tensor {
    const char *hf[2];    /* both generations of names; the second may be NULL */
    const char *gguf;     /* GGUF base name; NULL for SKIP and UNUSED */
    enum bc_role role;    /* EXPERT: a matrix of a stack over {e} */
    enum bc_dim shape[2]; /* order of the checkpoint: rows, columns; vectors: length, NONE */
};

enum bc_value_type { BC_U32, BC_F32 };

/* Where the value of a hyper-parameter comes from when no JSON path is there. */
enum bc_absent {
    BC_ABSENT_REFUSE,
    BC_ABSENT_DEFAULT,    /* `fallback`, said as a warning: the configuration class's own default */
    BC_ABSENT_QUIET,      /* `fallback`, normal */
    BC_ABSENT_LIKE_HEADS, /* n_head (no grouped queries) */
    BC_ABSENT_PER_HEAD    /* n_embd / n_head */
};

/* A row of a hyper-parameter table. The common rows are evaluated first, in order; a family's row
 * for the same member takes the common one's place. */
struct bc_arch_hparam {
    const char *json[2];     /* keys of config.json (text part); several present must agree */
    size_t offset;           /* into struct bc_hparams */
    enum bc_value_type type; /* U32: positive integers; F32: positive reals */
    enum bc_absent absent;
    double fallback;
};

/* Which layers see only a window of tokens. `layer_types` in the config goes before the rule. */
enum bc_sliding {
    BC_SLIDING_NONE,   /* the model class has no sliding window */
    BC_SLIDING_ALL,    /* every layer, when sliding_window is not null (Mistral, Mixtral) */
    BC_SLIDING_QWEN,   /* layers from max_window_layers on, when use_sliding_window (Qwen) */
    BC_SLIDING_PATTERN /* all but every n-th, n = sliding_window_pattern or 6 (Gemma 3) */
};

/* Which linear weights have biases. */
enum bc_biases {
    BC_BIASES_STATED, /* attention_bias and mlp_bias of the config, else by the tensors */
    BC_BIASES_NONE,
    BC_BIASES_QKV, /* the class says so: q, k and v, no others (Qwen 2) */
    BC_BIASES_ALL  /* the class says so (BERT) */
};

/* How positions get into the model. */
enum bc_positions {
    BC_POSITIONS_ROPE,   /* q and k are rotated */
    BC_POSITIONS_LEARNED /* a row of position_embd is added to the embedding */
};

/* How the width of the feed-forward block follows from the number in the config. */
enum bc_ff_rule {
    BC_FF_STATED,
    BC_FF_TWO_THIRDS /* LFM2: 2/3 of it, times a factor, rounded up, when the config says so */
};

/* Keys of a GGUF behind "ARCH." (or whole: general.*); the order of the enum has no meaning. */
enum bc_key {
    BC_KEY_END,
    BC_KEY_BLOCK_COUNT,
    BC_KEY_CONTEXT_LENGTH,
    BC_KEY_EMBEDDING_LENGTH,
    BC_KEY_FEED_FORWARD_LENGTH,
    BC_KEY_HEAD_COUNT,
    BC_KEY_HEAD_COUNT_KV,
    BC_KEY_VOCAB_SIZE,
    BC_KEY_ROPE_DIMS,
    BC_KEY_KEY_LENGTH,
    BC_KEY_VALUE_LENGTH,
    BC_KEY_ROPE_BASE,
    BC_KEY_ROPE_BASE_LOCAL,
    BC_KEY_RMS_EPS,
    BC_KEY_NORM_IN_EPS,
    BC_KEY_EXPERT_COUNT,
    BC_KEY_EXPERT_USED_COUNT,
    BC_KEY_QUERY_SCALAR,
    BC_KEY_ATTENTION_SCALE,
    BC_KEY_ATTENTION_SOFTCAP,
    BC_KEY_FINAL_SOFTCAP,
    BC_KEY_HIDDEN_ACT,
    BC_KEY_SLIDING_WINDOW, /* with its pattern */
    BC_KEY_ROPE_SCALING,   /* all of rope.scaling.* */
    BC_KEY_CAUSAL,
    BC_KEY_POOLING,
    BC_KEY_FILE_TYPE,            /* general.file_type */
    BC_KEY_QUANTIZATION_VERSION, /* general.quantization_version */
    BC_KEY_LAYER_NORM_EPS,       /* of LayerNorm, where RMS_EPS is that of RMSNorm */
    BC_KEY_HEAD_COUNT_KV_LAYERS, /* one entry a layer, 0 for those without attention */
    BC_KEY_CONV_CACHE            /* length of the short convolutions */
};

/* A model class of transformers. */
struct bc_arch_class {
    const char *name;       /* "Qwen3Model", as in `architectures` */
    const char *model_type; /* taken for this class when `architectures` is absent; NULL: never */
    bool backbone;          /* no language-model head: used for embeddings */
};

/* Whose habits the tokenizer metadata of a family follows (tokenizer_rules.c has the details per
 * target). What kind of tokenizer it is (byte-level BPE, SentencePiece, WordPiece) is read from the
 * files. */
enum bc_tokenizer_policy {
    BC_TOKENIZER_LLAMA, /* tokenizer.model before tokenizer.json, unless told otherwise */
    BC_TOKENIZER_QWEN,  /* pooled models end a text with <|endoftext|> */
    BC_TOKENIZER_GEMMA, /* no space is put in front of a text */
    BC_TOKENIZER_PHI3,  /* added tokens are control tokens only where declared special */
    BC_TOKENIZER_BERT,  /* WordPiece */
    BC_N_TOKENIZER_POLICIES
};

/* What is fixed about a family and is no table of its own. */
struct bc_arch_traits {
    bool ternary_class;    /* the BitNet classes: linear weights are ternarised at every load */
    bool embedding_family; /* *_norm_in tensors make it an embedding model (BitNet embeddings) */
    bool permute_qk;       /* files rotate neighbouring pairs of a head: rows of q, k interleaved */
    bool norm_plus_one;    /* RMSNorm multiplies by 1 + w, and so do files (never *_norm_in) */
    bool default_tied;     /* tie_word_embeddings when the config does not say */
    bool reader_linear_rope; /* llama.cpp's converter states rope scaling "linear" by 1 (bitnet) */
    double default_rope_theta;
    double default_rope_theta_local; /* > 0: sliding-window layers have a base of their own */
    enum bc_sliding sliding;
    double default_sliding_window; /* 0: none when the key is absent */
    const char *default_act;       /* hidden_act of the configuration class */
    const char *act_key;           /* the config's key for it; NULL: hidden_act */
    enum bc_tokenizer_policy tokenizer;
    enum bc_biases biases;
    enum bc_positions positions;
    enum bc_ff_rule ff_rule;
    bool layer_norm;     /* norms subtract the mean and have biases */
    bool bidirectional;  /* the class attends in both directions */
    bool act_is_fixed;   /* the class has no hidden_act: it is default_act */
    bool conv_layers;    /* layer_types may say "conv", or full_attn_idxs what is not */
    bool partial_rotary; /* partial_rotary_factor: only the first part of a head is rotated */
    bool longrope;       /* RoPE scaling is longrope, and no other */
    double default_rope_orig_ctx; /* original_max_position_embeddings of the class; 0: none */
    bool states_no_window;        /* readers tell variants by a sliding window of 0 */
};

/* What the family's graph has beyond what the tensors tell (engine/graph.h). */
struct bc_arch_graph {
    bool scaled_embedding;      /* embeddings are multiplied by sqrt(n_embd) */
    const char *embedding_norm; /* GGUF base name of a norm of the embeddings, or NULL */
    const char *final_norm;     /* of the norm behind the last layer; NULL: "output_norm" */
};

/* A second name of a config key; both may be there if they agree. */
struct bc_config_alias {
    const char *alias, *key;
};

/* A config key of which only one value is what the family's graph computes; null passes too. */
struct bc_config_fixed {
    const char *key;
    const char *text; /* the string, or NULL: `value` */
    double value;     /* true counts as 1, false as 0 */
};

struct bc_arch {
    const char *name; /* family, for people */
    struct bc_arch_class classes[4];
    const char *gguf_name[BC_N_TARGETS]; /* general.architecture by target (AUTO unused) */
    /* general.architecture for llama.cpp when a backbone attends in both directions, or NULL */
    const char *gguf_name_bidirectional;
    const char *gguf_aliases[4]; /* more names that readers know (--arch-name, other writers) */
    const char *activations[4];  /* values of hidden_act whose formula the family's graphs have */
    const struct bc_arch_hparam *hparams; /* beside the common ones; ends with an empty row */
    const struct bc_arch_tensor *tensors; /* ends with an empty row */
    const enum bc_key *key_order[BC_N_TARGETS];
    const char *const *ignored; /* config keys of this family that do not matter; NULL-terminated */
    struct bc_arch_traits traits;
    const char *prefix; /* one more that may stand in front of the backbone's names, or NULL */
    const struct bc_config_alias *aliases; /* ends with a NULL key; NULL: none */
    const struct bc_config_fixed *fixed;   /* ends with a NULL key; NULL: none */
    struct bc_arch_graph graph;
};

/* Config keys that change the computation in ways bitconv does not carry, unless they are null or
 * have the neutral value. */
struct bc_config_neutral {
    const char *key;
    double value; /* true counts as 1, false and what is empty as 0 */
};

/* archs/common.c: tables shared by the families. */
extern const struct bc_arch_hparam bc_hparams_common[];    /* ends with an empty row */
extern const char *const bc_config_ignored[];              /* ends with NULL */
extern const struct bc_config_neutral bc_config_neutral[]; /* ends with a NULL key */
extern const enum bc_key bc_keys_embedding[];              /* order of BitNet's embedding script */
extern const enum bc_key bc_keys_bitnet[];                 /* order of BitNet's general script */
extern const enum bc_key bc_keys_llama_cpp[];              /* order of llama.cpp's converter */

extern const struct bc_arch bc_arch_bitnet, bc_arch_llama, bc_arch_mistral, bc_arch_mixtral,
    bc_arch_qwen3, bc_arch_gemma3, bc_arch_qwen2, bc_arch_phi3, bc_arch_bert, bc_arch_lfm2;

/* The i-th family, NULL behind the last. */
const struct bc_arch *bc_arch_at(size_t index);
/* By class name of transformers; *out_class gets its row. NULL: not supported. */
const struct bc_arch *bc_arch_by_class(const char *class_name,
                                       const struct bc_arch_class **out_class);
const struct bc_arch *bc_arch_by_model_type(const char *model_type,
                                            const struct bc_arch_class **out_class);
/* By general.architecture of a file, any writer's. "llama" is all that Mistral and Mixtral say: the
 * llama family answers for them. NULL: unknown. */
const struct bc_arch *bc_arch_by_gguf_name(const char *name);
/* True when the family may be written under that general.architecture. */
bool bc_arch_has_gguf_name(const struct bc_arch *arch, const char *name);
/* The i-th row of hyper-parameters that applies to the family: the common ones in their order, the
 * family's in the place of those for the same member, then its others. NULL behind the last. */
const struct bc_arch_hparam *bc_arch_hparam_at(const struct bc_arch *arch, size_t index);
/* The row for the member at that offset, the family's before the common one; NULL: neither has it. */
const struct bc_arch_hparam *bc_arch_hparam_of(const struct bc_arch *arch, size_t offset);
/* The member that a row stands for, whatever its type; 0 where the model has none. */
double bc_arch_hparam_value(const struct bc_hparams *hp, const struct bc_arch_hparam *row);
/* "A, B, C": all classes, for messages. */
void bc_arch_list_classes(struct bc_buf *buf);

/* Which part of a table row a tensor of the checkpoint is. */
enum bc_match_part {
    BC_MATCH_WEIGHT,  /* BASE.weight (or the whole name, for SKIP and UNUSED rows) */
    BC_MATCH_BIAS,    /* BASE.bias */
    BC_MATCH_NORM_IN, /* BASE.norm.weight, BASE.rms_norm.weight */
    BC_MATCH_SCALE    /* BASE.weight_scale */
};

struct bc_match {
    const struct bc_arch_tensor *row; /* NULL: the table has no such tensor */
    enum bc_match_part part;
    uint32_t layer, expert; /* 0 where the pattern has none */
    bool has_layer;
};

/* Finds the row of a tensor name of a checkpoint, with or without the prefixes of the backbone;
 * false when there is none (or the row does not allow that companion). */
bool bc_arch_match(const struct bc_arch *arch, const char *hf_name, struct bc_match *out);
/* Which layers the tensors of a pattern are in. */
enum bc_layers {
    BC_LAYERS_NONE, /* the pattern has no layer */
    BC_LAYERS_ALL,
    BC_LAYERS_ATTENTION,
    BC_LAYERS_CONV
};
enum bc_layers bc_pattern_layers(const char *pattern);
/* True when the layer is one of those (which layers are convolutions: hp->layer_is_conv). */
bool bc_layer_is_one_of(const struct bc_hparams *hp, enum bc_layers layers, uint32_t layer);
/* `text` against a pattern with {l}, {a} or {c}, and {e}: decimal numbers without leading zeros
 * below 2^32; {*} at the end: any rest. */
bool bc_pattern_match(const char *pattern, const char *text, size_t text_len, uint32_t *layer,
                      uint32_t *expert);
/* The pattern with its layer and {e} filled in, then `suffix`; NULL when out of memory. */
char *bc_pattern_fill(struct bc_arena *arena, const char *pattern, uint32_t layer, uint32_t expert,
                      const char *suffix);
/* GGUF name of a match ("blk.3.attn_q_norm_in.weight"), arena-owned; NULL when out of memory. */
char *bc_match_gguf_name(const struct bc_match *match, struct bc_arena *arena);
/* Does the class fix that the weights of a row have biases? Layer norms always do; of linear layers
 * with BC_BIASES_STATED config and tensors say so. */
bool bc_arch_has_bias(const struct bc_arch *arch, const struct bc_arch_tensor *row);
/* A dimension's size. */
uint64_t bc_dim_size(const struct bc_hparams *hp, enum bc_dim dim);

#endif
