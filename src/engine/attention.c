/* SPDX-License-Identifier: MIT
 * Attention with grouped queries (Vaswani et al. 2017, Ainslie et al. 2023), rotations, sliding
 * windows, in one direction or both. */
#include <math.h>
#include <string.h>

#include "engine/session.h"

/* What the tokens and heads of a batch share. */
struct attending {
    struct bitconv_session *s;
    const struct bc_layer *layer;
    float *keys, *values; /* of the layer */
    size_t q_width, k_width, v_width, o_width;
    const float *cosines, *sines;
    uint32_t rope_dims;
    uint32_t together; /* heads of a token that one job takes: they read the same keys and values */
};

/* Norms and rotates the heads of a token: queries, and keys in their place in the cache. */
static void place_token(void *ctx, size_t t, unsigned worker)
{
    const struct attending *a = ctx;
    const struct bc_graph *g = a->s->g;
    const struct bc_hparams *hp = &g->hp;
    const uint32_t half = a->rope_dims / 2;
    float *q = a->s->q + t * a->q_width;
    float *k = a->keys + (a->s->n_past + t) * a->k_width;
    (void)worker;
    if (a->layer->q_norm.weight != NULL) bc_norm_apply(g, &a->layer->q_norm, q, hp->n_head, q);
    if (a->layer->k_norm.weight != NULL) bc_norm_apply(g, &a->layer->k_norm, k, hp->n_head_kv, k);
    for (uint32_t h = 0; h < hp->n_head && half > 0; h++)
        bc_rotate(q + (size_t)h * hp->head_dim_k, a->cosines + t * half, a->sines + t * half,
                  a->rope_dims, g->neighbours);
    for (uint32_t h = 0; h < hp->n_head_kv && half > 0; h++)
        bc_rotate(k + (size_t)h * hp->head_dim_k, a->cosines + t * half, a->sines + t * half,
                  a->rope_dims, g->neighbours);
}

/* The positions [*first, *end) that the token at `position` sees. A window counts the token itself
 * and those before it; attending in both directions, transformers halves it: |i - j| <= window / 2
 * (Gemma 3 embeddings). */
static void visible(const struct attending *a, uint64_t position, uint64_t *first, uint64_t *end)
{
    const struct bc_hparams *hp = &a->s->g->hp;
    const uint64_t all = a->s->n_past + a->s->n_new;
    const uint64_t window = a->layer->local ? hp->sliding_window : 0;
    *first = 0;
    *end = hp->causal ? position + 1 : all;
    if (window == 0) return;
    const uint64_t before = hp->causal ? window - 1 : window / 2;
    if (position > before) *first = position - before;
    if (!hp->causal && position + before + 1 < all) *end = position + before + 1;
}

static void soft_cap(float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++)
        x[i] = cap * tanhf(x[i] / cap);
}

/* The weights of the visible positions, instead of their scores. */
static void weigh(const struct attending *a, float *scores, size_t n)
{
    const float cap = a->s->g->hp.attn_softcap;
    for (size_t j = 0; j < n; j++)
        scores[j] *= a->s->g->attn_scale;
    if (cap > 0) soft_cap(scores, n, cap);
    bc_softmax(scores, n);
}

/* Some heads of a token, `together` of them, that share keys and values. */
static void attend_heads(void *ctx, size_t i, unsigned worker)
{
    const struct attending *a = ctx;
    const struct bc_hparams *hp = &a->s->g->hp;
    const struct bc_kernels *k = a->s->engine->kernels;
    const size_t jobs = hp->n_head / a->together; /* of a token */
    const size_t t = i / jobs, head = i % jobs * a->together;
    const size_t group = head / (hp->n_head / hp->n_head_kv);
    float *const scores = a->s->scores + (size_t)worker * a->s->scores_size;
    uint64_t first, end;
    visible(a, a->s->n_past + t, &first, &end);
    const size_t n = (size_t)(end - first);
    const struct bc_f32_dots dots = {.w = a->keys + first * a->k_width + group * hp->head_dim_k,
                                     .w_stride = a->k_width,
                                     .n_rows = n,
                                     .x = a->s->q + t * a->q_width + head * hp->head_dim_k,
                                     .x_stride = hp->head_dim_k,
                                     .n_x = a->together,
                                     .n = hp->head_dim_k,
                                     .out = scores,
                                     .out_stride = n};
    const struct bc_f32_sums sums = {.f = scores,
                                     .f_stride = n,
                                     .n_sums = a->together,
                                     .x = a->values + first * a->v_width + group * hp->head_dim_v,
                                     .x_stride = a->v_width,
                                     .n = n,
                                     .width = hp->head_dim_v,
                                     .out = a->s->heads + t * a->o_width + head * hp->head_dim_v,
                                     .out_stride = hp->head_dim_v};
    k->dots_f32(&dots);
    for (size_t h = 0; h < a->together; h++)
        weigh(a, scores + h * n, n);
    k->sums_f32(&sums);
}

/* q, k and v of a fused projection to their places. */
static void split_token(void *ctx, size_t t, unsigned worker)
{
    const struct attending *a = ctx;
    const size_t at = a->s->n_past + t;
    const float *from = a->s->fused + t * (a->q_width + a->k_width + a->v_width);
    (void)worker;
    memcpy(a->s->q + t * a->q_width, from, a->q_width * sizeof *from);
    from += a->q_width;
    memcpy(a->keys + at * a->k_width, from, a->k_width * sizeof *from);
    from += a->k_width;
    memcpy(a->values + at * a->v_width, from, a->v_width * sizeof *from);
}

static enum bitconv_status project(struct attending *a, const float *h, struct bitconv_error *err)
{
    struct bitconv_session *s = a->s;
    const struct bc_layer *l = a->layer;
    const size_t n = (size_t)s->n_new;
    if (bc_linear_is(&l->qkv)) {
        const struct bc_product all = {&l->qkv, 0, h, s->fused};
        BC_TRY(bc_products(&s->compute, &all, 1, n, err));
        bc_for_tokens(s, split_token, a);
        return BITCONV_OK;
    }
    const struct bc_product each[] = {{&l->q, 0, h, s->q},
                                      {&l->k, 0, h, a->keys + s->n_past * a->k_width},
                                      {&l->v, 0, h, a->values + s->n_past * a->v_width}};
    return bc_products(&s->compute, each, 3, n, err);
}

static enum bitconv_status note_projections(const struct attending *a, uint32_t layer,
                                            struct bitconv_error *err)
{
    const struct bitconv_session *s = a->s;
    const size_t n = (size_t)s->n_new;
    BC_TRY(bc_session_note(s, layer, "attn_q", s->q, n, a->q_width, err));
    BC_TRY(
        bc_session_note(s, layer, "attn_k", a->keys + s->n_past * a->k_width, n, a->k_width, err));
    return bc_session_note(s, layer, "attn_v", a->values + s->n_past * a->v_width, n, a->v_width,
                           err);
}

enum bitconv_status bc_attention(struct bitconv_session *s, uint32_t layer, const float *h,
                                 float *y, struct bitconv_error *err)
{
    const struct bc_graph *g = s->g;
    const struct bc_hparams *hp = &g->hp;
    const bool local = g->layers[layer].local && g->local_rotation.dims > 0;
    const size_t n = (size_t)s->n_new;
    const size_t set = local ? s->room * (g->rotation.dims / 2) : 0;
    struct attending a = {.s = s, .layer = &g->layers[layer], .rope_dims = g->rotation.dims};
    a.q_width = (size_t)bc_dim_size(hp, BC_N_Q);
    a.k_width = (size_t)bc_dim_size(hp, BC_N_K);
    a.v_width = (size_t)bc_dim_size(hp, BC_N_V);
    a.o_width = (size_t)bc_dim_size(hp, BC_N_O);
    a.keys = s->keys + (size_t)layer * s->engine->n_ctx * a.k_width;
    a.values = s->values + (size_t)layer * s->engine->n_ctx * a.v_width;
    a.cosines = s->cosines + set;
    a.sines = s->sines + set;
    /* A single token's heads are what there is to spread over threads. */
    a.together = n > 1 ? hp->n_head / hp->n_head_kv : 1;
    BC_TRY(project(&a, h, err));
    BC_TRY(note_projections(&a, layer, err));
    bc_for_tokens(s, place_token, &a);
    bc_pool_run(s->engine->pool, n * (hp->n_head / a.together), attend_heads, &a);
    BC_TRY(bc_session_note(s, layer, "attn", s->heads, n, a.o_width, err));
    bc_session_norm(s, &a.layer->attn_sub_norm, 1, s->heads, s->heads);
    const struct bc_product out = {&a.layer->o, 0, s->heads, y};
    BC_TRY(bc_products(&s->compute, &out, 1, n, err));
    return bc_session_note(s, layer, "attn_output", y, n, hp->n_embd, err);
}
