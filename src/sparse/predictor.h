/* SPDX-License-Identifier: MIT
 * The predictor of active neurons of a model (Liu et al. 2023, "Deja Vu"; Song et al. 2023,
 * "PowerInfer"): two matrices of low rank a layer and a rule, kept in a GGUF beside the model. */
#ifndef BC_SPARSE_PREDICTOR_H
#define BC_SPARSE_PREDICTOR_H

#include "bitconv/gguf.h"
#include "engine/session.h"

/* Which neurons a score makes active. */
struct bc_sparse_rule {
    bool by_threshold;
    uint32_t top_k;  /* else: that many largest scores; of equal ones the first */
    float threshold; /* scores not below it */
};

/* U and V of a layer: score[j] = sum over r of (sum over i of x[i] * u[r][i]) * v[r][j]. */
struct bc_predictor_layer {
    float *u; /* rank rows of n_embd */
    float *v; /* rank rows of n_ff; the file has them the other way round */
};

/* Which model a predictor is for. */
struct bc_sparse_model {
    char family[64];
    char fingerprint[33]; /* bc_sparse_identify */
    uint32_t n_layers, n_embd, n_ff;
};

struct bc_predictor {
    struct bc_sparse_model model;
    uint32_t rank;
    struct bc_sparse_rule rule;
    struct bc_predictor_layer *layers; /* model.n_layers */
    /* What it was fitted with; for people. */
    double ridge;
    uint64_t n_samples;
    /* For selecting. */
    const struct bc_kernels *kernels; /* borrowed */
    struct bc_pool *pool;             /* borrowed, or NULL */
    float *hidden, *scores;           /* rank; n_ff */
    struct bc_arena arena;
};

/* Describes the model of an engine. UNSUPPORTED for models whose feed-forward blocks have no gate, or
 * are mixtures of experts. The fingerprint is XXH3-128 over the sizes, the activation, and 8 rows of
 * gate and of up of every layer, evenly spread: their trits where they are ternary, so that it is the
 * same in every pack, else their float32 values. */
enum bitconv_status bc_sparse_identify(const struct bitconv_engine *engine,
                                       struct bc_sparse_model *out, struct bitconv_error *err);

/* A predictor of zeros for a model. Free with bc_predictor_free. */
enum bitconv_status bc_predictor_new(const struct bc_sparse_model *model, uint32_t rank,
                                     struct bc_predictor **out, struct bitconv_error *err);
void bc_predictor_free(struct bc_predictor *p); /* NULL is fine */

/* k of a share of n_ff neurons: rounded up, at least 1. */
uint32_t bc_sparse_share(double share, uint32_t n_ff);
/* ARG when the rule makes no sense for n_ff neurons. */
enum bitconv_status bc_sparse_check_rule(const struct bc_sparse_rule *rule, uint32_t n_ff,
                                         struct bitconv_error *err);

/* The active neurons for an input x [n_embd], ascending, into neurons (room for n_ff); how many. One
 * at a time for a predictor. A score that is NaN counts as the largest: it must come out. */
size_t bc_predictor_select(struct bc_predictor *p, uint32_t layer, const float *x,
                           uint32_t *neurons);
/* The same as a bc_select_fn; user is the predictor. */
bc_select_fn bc_predictor_hook;
/* The rule alone: active neurons of n scores, which are changed where they are NaN. */
size_t bc_sparse_pick(const struct bc_sparse_rule *rule, float *scores, uint32_t n,
                      uint32_t *neurons);

/* Writes blk.N.ffn_pred_u.weight (ne = n_embd, rank) and blk.N.ffn_pred_v.weight (ne = rank, n_ff) as
 * F32 or F16, and keys sparse-ffn.*, atomically. */
enum bitconv_status bc_predictor_write(const struct bc_predictor *p, const char *path, bool f16,
                                       bool force, struct bitconv_error *err);
/* Reads a predictor for `model`. Refused: one of another model (ARG),
 * missing tensors, other shapes or types, values that are not finite. */
enum bitconv_status bc_predictor_read(const char *path, const struct bc_sparse_model *model,
                                      struct bc_predictor **out, struct bitconv_error *err);

#endif
