/* SPDX-License-Identifier: MIT
 * What the files that turn a checkpoint into a bc_model share. */
#ifndef BC_MODEL_MODEL_INTERNAL_H
#define BC_MODEL_MODEL_INTERNAL_H

#include "base/error.h"
#include "model/findings.h"
#include "model/model.h"

#define BC_MAX_LAYERS 65536u /* where no tensors bound the number of layers (vocabulary only) */

/* A weight on its way into model->weights: `pos` and `sub` order it. */
struct bc_pending {
    struct bc_weight weight;
    size_t pos;   /* index of the source tensor whose place in the checkpoint it takes */
    unsigned sub; /* order among weights of one place (stacks) */
};

/* A load in progress. */
struct bc_loading {
    const struct bc_checkpoint *ckpt;
    const struct bc_model_options *options;
    const struct bitconv_sink *sink;
    const struct bc_arch_class *class_row;
    struct bc_findings findings;
    struct bc_model *model;
    const char *config_path;  /* for messages */
    struct bc_match *matches; /* one per source tensor; row NULL: not in the tables */
    struct bc_pending *pending;
    size_t n_pending, cap_pending;
    bool has_scales;   /* some weight_scale or uint8 weight is there */
    bool use_rms_norm; /* quantization_config: every BitLinear has a norm of its input */
    const struct bc_json *keep_modules; /* quantization_config.modules_to_not_convert, or NULL */
};

/* A config value by key: of the text part, else of the whole config; NULL when absent or null. */
const struct bc_json *bc_config_get(const struct bc_checkpoint *ckpt, const char *key);
/* The same, also under the family's second name of the key (bc_config_alias). Both there with
 * different values: a finding, and `key`'s own value. */
const struct bc_json *bc_config_get_aliased(struct bc_loading *load, const char *key);

/* The rows of the embedding against vocab_size: the rows win, fewer are a finding. */
void bc_model_read_vocab(struct bc_loading *load);
/* Fills model->hp from the config by the family's tables; what is wrong becomes findings. */
enum bitconv_status bc_model_read_config(struct bc_loading *load, struct bitconv_error *err);
/* Keys of the config that no table knows: neutral ones pass, known dangerous ones are findings, the
 * rest notes. */
void bc_model_check_unknown_keys(struct bc_loading *load);
/* RoPE bases and scaling, of both schemas. */
enum bitconv_status bc_model_read_rope(struct bc_loading *load, struct bitconv_error *err);
/* The width of the feed-forward block by the family's rule, where hp->n_ff is not it already. */
void bc_model_adjust_ff(struct bc_loading *load);
/* sliding_window, layer_types and the family's rules: which layers are local, which convolutions. */
enum bitconv_status bc_model_read_layers(struct bc_loading *load, struct bitconv_error *err);
/* Pooling of sentence-transformers; model->embedding_model must be known. */
void bc_model_read_pooling(struct bc_loading *load);
/* quantization_config, deployment_info.json: training kind and scale convention. */
enum bitconv_status bc_model_read_training(struct bc_loading *load, struct bitconv_error *err);

/* Fills model->weights and ->dropped from load->matches; all that does not fit becomes findings. */
enum bitconv_status bc_model_map(struct bc_loading *load, struct bitconv_error *err);
/* The source of a weight: its scale looked up, dtype and stored shape checked against the logical
 * shape `rows` x `cols` (cols 0: a vector). *packed: uint8 with four rows to a byte. */
struct bc_source bc_model_source(struct bc_loading *load, size_t tensor_index, uint64_t rows,
                                 uint64_t cols, bool *packed);
/* Appends to load->pending. */
enum bitconv_status bc_model_pend(struct bc_loading *load, const struct bc_weight *weight,
                                  size_t pos, unsigned sub, struct bitconv_error *err);
/* Stacks of experts: complete ones become weights, the others findings. */
enum bitconv_status bc_model_map_experts(struct bc_loading *load, struct bitconv_error *err);
/* True when modules_to_not_convert names the module of a tensor. */
bool bc_model_is_kept(const struct bc_loading *load, const char *tensor_name);
/* What becomes of an lm_head: *out_carry when it is to be written; else it is recorded as dropped.
 */
enum bitconv_status bc_model_map_output(struct bc_loading *load, const struct bitconv_tensor *head,
                                        bool *out_carry, struct bitconv_error *err);
/* Records a source tensor that is not carried; `why` must outlive the model. */
enum bitconv_status bc_model_drop(struct bc_model *model, const char *name, const char *why,
                                  struct bitconv_error *err);
/* --quantize and --keep: turns the roles of matching weights. */
enum bitconv_status bc_model_select(struct bc_loading *load, struct bitconv_error *err);

/* Which rows of the table have biases: findings where the tensors (`any`: some layer has one) and
 * the class or the config disagree. True when every layer must have one. */
bool bc_model_check_bias(struct bc_loading *load, const struct bc_arch_tensor *row, bool any);

/* LongRoPE (Ding et al. 2024, as transformers computes it): the divisors of both lists of a
 * rope_scaling object into hp->rope_long_factors and ->rope_short_factors, and the attention factor
 * into hp->rope_attn_factor: `attention_factor` when > 0, else bc_rope_attention_factor. Lists of
 * another length than rope_dims / 2 are findings. */
enum bitconv_status bc_model_read_longrope(struct bc_loading *load, const struct bc_json *long_list,
                                           const struct bc_json *short_list,
                                           double attention_factor, struct bitconv_error *err);

/* LongRoPE's factor of the rotated q and k: sqrt(1 + ln(s) / ln(orig_ctx)) for s = n_ctx / orig_ctx
 * > 1, else 1. orig_ctx must be above 1. */
float bc_rope_attention_factor(uint32_t n_ctx, uint32_t orig_ctx);

/* Frequency divisors of Llama 3's RoPE scaling: head_dim / 2 float32 values (rope.c). */
void bc_rope_llama3_factors(const struct bc_hparams *hp, float *out);

/* general.architecture-independent names of things in metadata and messages. */
const char *bc_pooling_name(int pooling);                    /* "mean"; NULL below 0 */
const char *bc_rope_scaling_name(enum bc_rope_scaling type); /* "linear"; NULL for none */

/* Behind "ARCH.": bitconv's own key of Llama 3's scaling factor. */
#define BC_LLAMA3_FACTOR_KEY "rope.scaling.llama3.factor"

/* A key of the metadata table (model_keys.c). */
enum bc_key_kind { BC_KIND_U32, BC_KIND_F32, BC_KIND_BOOL, BC_KIND_STRING, BC_KIND_SPECIAL };
struct bc_key_row {
    const char *suffix; /* behind "ARCH."; NULL for special keys */
    enum bc_key_kind kind;
    size_t offset; /* into bc_hparams */
    bool always;   /* written even when 0 */
};
const struct bc_key_row *bc_key_row(enum bc_key key);

/* Sampling settings: keys of generation_config.json and of a file; integers are INT32, the others
 * FLOAT32. Ends with a NULL name. */
struct bc_sampling_row {
    const char *json, *key;
    bool integer;
};
extern const struct bc_sampling_row bc_sampling_rows[];

#endif
