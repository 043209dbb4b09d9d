/* SPDX-License-Identifier: MIT
 * The hyper-parameters of a model, resolved: what the graph and the metadata need. */
#ifndef BC_MODEL_HPARAMS_H
#define BC_MODEL_HPARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_rope_scaling {
    BC_ROPE_NONE,
    BC_ROPE_LINEAR,
    BC_ROPE_LLAMA3,
    BC_ROPE_YARN,
    BC_ROPE_LONGROPE
};

/* Everything the graph and the metadata need, resolved from the config (defaults of the family
 * applied). Counts are checked to be positive and to agree with the tensor shapes. The tables of
 * the families (arch.h) name members of this struct by their offset. */
struct bc_hparams {
    uint32_t n_layers, n_embd, n_ff, n_head, n_head_kv, n_ctx;
    uint32_t n_vocab;                /* rows of the embedding */
    uint32_t head_dim_k, head_dim_v; /* from the config; hidden / heads only when it is silent */
    bool head_dim_in_config;
    float norm_eps;
    bool layer_norm;   /* norms are LayerNorm (with biases), else RMSNorm */
    float norm_in_eps; /* of the per-projection norms; 0: norm_eps
                          (quantization_config.rms_norm_eps) */
    float rope_theta;
    bool has_rope_theta;    /* stated by the config (else the family's default, with a warning) */
    float rope_theta_local; /* sliding-window layers; 0: none */
    uint32_t rope_dims;     /* rotated dimensions of a head, the first ones; 0: no RoPE but learned
                               positions */
    enum bc_rope_scaling rope_scaling;
    float rope_factor, rope_low_freq_factor, rope_high_freq_factor;
    uint32_t rope_orig_ctx;
    /* yarn: as given, 0: not given; longrope: the factor of the rotated q and k (cos and sin are
     * multiplied by it), resolved */
    float rope_attn_factor, rope_beta_fast, rope_beta_slow;
    /* longrope: rope_dims / 2 divisors of the frequencies, for texts longer than rope_orig_ctx and
     * for others; NULL otherwise. Files hold them as rope_factors_long and rope_factors_short */
    const float *rope_long_factors, *rope_short_factors;
    const char *hidden_act;      /* as the config says: "silu", "relu2", "gelu_pytorch_tanh" */
    uint32_t sliding_window;     /* tokens a local layer sees; 0: none */
    bool *layer_is_local;        /* n_layers entries; NULL: no local layer */
    bool *layer_is_conv;         /* short convolutions in place of attention; NULL: no such layer */
    uint32_t conv_l_cache;       /* length of the short convolutions: a token and those before it */
    uint32_t n_token_types;      /* rows of token_types, of which row 0 is text; 0: none */
    float query_pre_attn_scalar; /* 0: not given */
    float attn_scale;            /* factor of the attention scores; 0: head_dim_k^-0.5 */
    float attn_softcap, final_softcap; /* 0: none */
    uint32_t n_expert, n_expert_used;  /* 0: dense */
    bool causal;
    bool tied;   /* output projection is the embedding */
    int pooling; /* -1: not an embedding model; GGUF pooling_type 0 none, 1 mean, 2 cls, 3 last */
    int64_t bos_id, eos_id, pad_id; /* of config.json (a list: its first); -1: absent */
};

#endif
