/* SPDX-License-Identifier: MIT
 * A checkpoint understood: architecture, hyper-parameters, and every tensor of the GGUF to be
 * written with the source tensors it comes from. What is known about families is in src/model/archs
 * as tables; this is the interpreter's result. */
#ifndef BC_MODEL_MODEL_H
#define BC_MODEL_MODEL_H

#include "bitconv/gguf.h"
#include "model/arch.h"
#include "model/checkpoint.h"

/* How the runtime of this checkpoint gets its linear weights. */
enum bc_training {
    BC_TRAINING_NONE,    /* nothing declares ternary training: stored values are multiplied */
    BC_TRAINING_ONLINE,  /* absmean applied to whatever is stored, at every load */
    BC_TRAINING_OFFLINE, /* uint8 (or unpacked trits) with weight_scale */
    BC_TRAINING_BAKED /* deployment_info.json says baked_ternary_weights: magnitude is the scale */
};

enum bc_scale_convention { BC_SCALE_AUTO, BC_SCALE_MULTIPLY, BC_SCALE_DIVIDE };

/* One source matrix (or vector) of an output tensor. */
struct bc_source {
    const struct bitconv_tensor *tensor;
    const struct bitconv_tensor *scale; /* its weight_scale, or NULL */
};

/* A tensor of the output. Its values are: the sources' (stacked along the slowest dimension when
 * there are several), unpacked where offline, rows permuted per head, 1 added. */
struct bc_weight {
    const char *name; /* GGUF name */
    enum bc_role role;
    uint32_t n_dims;
    uint64_t ne[4]; /* ggml order, logical (unpacked) shape; unused = 1 */
    struct bc_source *sources;
    uint32_t n_sources; /* 1; experts of a stack; 0 for generated tensors */
    uint32_t
        permute_heads; /* > 0: rows of each of that many heads are interleaved (llama q and k) */
    bool add_one;      /* Gemma's norm + 1 */
    bool packed;       /* uint8 source rows hold four logical rows each */
    bool keep;         /* linear by role, but modules_to_not_convert / --keep says no */
    const float
        *generated; /* ne[0] values of a tensor that no source tensor holds (rope_freqs), or NULL */
};

struct bc_model_options {
    enum bc_target target;
    bool ternary_outtype;     /* the asked type is a ternary pack (AUTO target rule) */
    bool llama_cpp_only_type; /* tq1_0, tq2_0, q1_0, q2_0, q8_0: AUTO means llama.cpp unless
                               *_norm_in */
    const char *arch_name;    /* --arch-name, or NULL */
    enum bc_scale_convention scale_convention;
    const char *quantize_regex, *keep_regex; /* --quantize / --keep (PCRE2), or NULL */
};

struct bc_model {
    const struct bc_arch *arch;
    const struct bc_checkpoint
        *ckpt;             /* borrowed: its config and generation_config are read later */
    const char *arch_name; /* general.architecture */
    const char *class_name;
    enum bc_target target; /* never AUTO */
    bool embedding_model;  /* ...Model class, modules.json or *_norm_in */
    bool has_norm_in;
    enum bc_training training;
    bool scale_divides; /* weight_scale is the inverse of the multiplier (linear_class bitlinear) */
    struct bc_hparams hp;
    struct bc_weight *weights; /* file order */
    size_t n_weights;
    /* Source tensors deliberately not carried (lm_head of embedding models, inv_freq, tied copies):
     * name and why, so that every source tensor is accounted for. weight_scale tensors are part of
     * their weight. */
    struct bc_dropped {
        const char *name;
        const char *why;
    } * dropped;
    size_t n_dropped;
    struct bc_arena arena; /* owns everything above but the checkpoint */
};

/* Recognises the architecture (class, else model_type; the refusal lists what is supported), reads
 * the config, maps every tensor. Unknown tensors, missing ones, wrong shapes, unprocessed experts,
 * weights without scale and the like are all sent to the sink as FINDINGs, then the call fails with
 * a summary. The checkpoint must stay open while the model is used. */
enum bitconv_status bc_model_load(const struct bc_checkpoint *ckpt,
                                  const struct bc_model_options *options,
                                  const struct bitconv_sink *sink, struct bc_model **out,
                                  struct bitconv_error *err);
void bc_model_free(struct bc_model *model);

/* Writes general.architecture, general.name and every ARCH.* key for the target.
 * `name` is general.name; file_type goes to general.file_type. */
enum bitconv_status bc_model_metadata(const struct bc_model *model, const char *name,
                                      uint32_t file_type, struct bitconv_gguf_writer *w,
                                      struct bitconv_error *err);

/* general.name when the user gave none: the config's _name_or_path (its last part, never a path of
 * this machine, ".", or a snapshot hash), else the folder's real base name. Arena-owned. */
const char *bc_model_name(struct bc_model *model, const struct bc_checkpoint *ckpt);

/* For people: the model behind a checkpoint or a GGUF. Strings are arena-owned; numbers 0 when
 * unknown. */
struct bc_model_info {
    const char *architecture, *name, *quantization, *rope_scaling, *hidden_act, *pooling;
    uint64_t hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, vocab_size,
        context_length, experts, experts_used, sliding_window;
    double rope_theta;
};
void bc_model_info(const struct bc_model *model, struct bc_arena *arena, struct bc_model_info *out);
/* From metadata alone; facts that other writers leave out take the family's default, said once
 * through the sink. `quantization` is the majority type of the linear tensors. */
void bc_model_info_gguf(const struct bitconv_gguf *file, struct bc_arena *arena,
                        const struct bitconv_sink *sink, struct bc_model_info *out);

#endif
