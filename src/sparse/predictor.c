/* SPDX-License-Identifier: MIT
 * Which model a predictor is for, and which neurons it makes active. */
#include "sparse/predictor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"

enum {
    SAMPLED_ROWS = 8,
    SCORE_BLOCK = 1024, /* scores that a thread takes at once; the result does not depend on it */
    RADIX_BITS = 8
};

/* ---- the model ---- */

/* Rows of one matrix into the digest. */
static enum bitconv_status digest_rows(const struct bc_tensor *t, uint64_t first, uint64_t n_rows,
                                       float *row, int8_t *trits, struct bc_digest *digest,
                                       struct bitconv_error *err)
{
    const size_t cols = (size_t)t->cols;
    for (uint64_t i = 0; i < SAMPLED_ROWS; i++) {
        const uint64_t at = first + n_rows * i / SAMPLED_ROWS;
        if (t->ternary) {
            BC_TRY(bc_tensor_trits(t, at, 1, trits, err));
            bc_digest_update(digest, trits, cols);
            continue;
        }
        BC_TRY(bc_tensor_floats(t, at, 1, trits, row, err));
        for (size_t c = 0; c < cols; c++) {
            uint8_t bytes[4];
            bc_put_f32(bytes, row[c]);
            bc_digest_update(digest, bytes, sizeof bytes);
        }
    }
    return BITCONV_OK;
}

static enum bitconv_status digest_layers(const struct bc_graph *g, struct bc_digest *digest,
                                         struct bitconv_error *err)
{
    const size_t d = g->hp.n_embd;
    const uint64_t n_ff = g->hp.n_ff;
    float *row = bc_alloc_array(d, sizeof *row);
    int8_t *trits = bc_alloc_array(d, 1);
    enum bitconv_status status = BITCONV_OK;
    if (row == NULL || trits == NULL) status = bc_fail_nomem(err, "the model's fingerprint");
    for (uint32_t i = 0; i < g->hp.n_layers && status == BITCONV_OK; i++) {
        const struct bc_layer *l = &g->layers[i];
        const struct bc_tensor *gate = l->fused_gate ? &l->up.w : &l->gate.w;
        status = digest_rows(gate, 0, n_ff, row, trits, digest, err);
        if (status == BITCONV_OK)
            status = digest_rows(&l->up.w, l->fused_gate ? n_ff : 0, n_ff, row, trits, digest, err);
    }
    bc_free(row);
    bc_free(trits);
    return status;
}

static enum bitconv_status check_layers(const struct bitconv_engine *e, struct bitconv_error *err)
{
    const struct bc_graph *g = e->graph;
    for (uint32_t i = 0; i < g->hp.n_layers; i++) {
        const struct bc_layer *l = &g->layers[i];
        if (bc_linear_is(&l->router))
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "%s: blk.%" PRIu32 ": the feed-forward block is a mixture of experts, "
                           "which is sparse already: predictors are for dense gated blocks",
                           e->provider->path, i);
        if (!l->fused_gate && !bc_linear_is(&l->gate))
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "%s: blk.%" PRIu32 ": the feed-forward block has no gate (family %s): "
                           "predictors are for dense gated blocks",
                           e->provider->path, i, g->arch->name);
    }
    return BITCONV_OK;
}

enum bitconv_status bc_sparse_identify(const struct bitconv_engine *engine,
                                       struct bc_sparse_model *out, struct bitconv_error *err)
{
    const struct bc_graph *g = engine->graph;
    char sizes[128];
    BC_TRY(check_layers(engine, err));
    *out = (struct bc_sparse_model){
        .n_layers = g->hp.n_layers, .n_embd = g->hp.n_embd, .n_ff = g->hp.n_ff};
    snprintf(out->family, sizeof out->family, "%s", g->arch->name);
    snprintf(sizes, sizeof sizes, "%" PRIu32 " %" PRIu32 " %" PRIu32 " %s", out->n_layers,
             out->n_embd, out->n_ff, g->act->name);
    struct bc_digest *digest = bc_digest_new();
    if (digest == NULL) return bc_fail_nomem(err, "the model's fingerprint");
    bc_digest_update(digest, sizes, strlen(sizes) + 1);
    const enum bitconv_status status = digest_layers(g, digest, err);
    if (status == BITCONV_OK) bc_hash128_hex(bc_digest_128(digest), out->fingerprint);
    bc_digest_free(digest);
    return status;
}

/* ---- memory ---- */

static bool allocate(struct bc_predictor *p)
{
    const size_t d = p->model.n_embd, n_ff = p->model.n_ff, rank = p->rank;
    p->layers = bc_arena_alloc(&p->arena, p->model.n_layers, sizeof *p->layers);
    p->hidden = bc_arena_alloc(&p->arena, rank, sizeof *p->hidden);
    p->scores = bc_arena_alloc(&p->arena, n_ff, sizeof *p->scores);
    if (p->layers == NULL || p->hidden == NULL || p->scores == NULL) return false;
    for (uint32_t i = 0; i < p->model.n_layers; i++) {
        p->layers[i].u = bc_arena_alloc(&p->arena, rank, d * sizeof *p->layers[i].u);
        p->layers[i].v = bc_arena_alloc(&p->arena, rank, n_ff * sizeof *p->layers[i].v);
        if (p->layers[i].u == NULL || p->layers[i].v == NULL) return false;
    }
    return true;
}

enum bitconv_status bc_predictor_new(const struct bc_sparse_model *model, uint32_t rank,
                                     struct bc_predictor **out, struct bitconv_error *err)
{
    struct bc_predictor *p = bc_alloc_array(1, sizeof *p);
    *out = NULL;
    if (p == NULL) return bc_fail_nomem(err, "a predictor");
    p->model = *model;
    p->rank = rank;
    p->kernels = bc_kernels_best();
    if (!allocate(p)) {
        bc_predictor_free(p);
        return bc_fail_nomem(err, "a predictor");
    }
    *out = p;
    return BITCONV_OK;
}

void bc_predictor_free(struct bc_predictor *p)
{
    if (p == NULL) return;
    bc_arena_release(&p->arena);
    bc_free(p);
}

/* ---- rules ---- */

uint32_t bc_sparse_share(double share, uint32_t n_ff)
{
    const double k = ceil(share * n_ff);
    return k < 1 ? 1 : k > n_ff ? n_ff : (uint32_t)k;
}

enum bitconv_status bc_sparse_check_rule(const struct bc_sparse_rule *rule, uint32_t n_ff,
                                         struct bitconv_error *err)
{
    if (rule->by_threshold && !isfinite(rule->threshold))
        return bc_fail(err, BITCONV_E_ARG, "the threshold is not a finite number");
    if (!rule->by_threshold && (rule->top_k == 0 || rule->top_k > n_ff))
        return bc_fail(err, BITCONV_E_ARG,
                       "%" PRIu32 " active neurons were asked for, the blocks have %" PRIu32,
                       rule->top_k, n_ff);
    return BITCONV_OK;
}

/* Unsigned numbers in the order of the floats; both zeros are equal. */
static uint32_t order_of(float f)
{
    const uint32_t bits = bc_f32_bits(f + 0.0f);
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/* The order of the k-th largest score; *n_above scores are larger. Radix selection, from the highest
 * byte down: linear, and the same whatever the scores are. */
static uint32_t kth_largest(const float *scores, uint32_t n, uint32_t k, uint32_t *n_above)
{
    uint32_t prefix = 0, mask = 0;
    *n_above = 0;
    for (int shift = 32 - RADIX_BITS; shift >= 0; shift -= RADIX_BITS) {
        uint32_t counts[1 << RADIX_BITS] = {0};
        uint32_t digit = (1u << RADIX_BITS) - 1;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t order = order_of(scores[i]);
            if ((order & mask) == prefix) counts[(order >> shift) & ((1u << RADIX_BITS) - 1)]++;
        }
        while (*n_above + counts[digit] < k)
            *n_above += counts[digit--];
        prefix |= digit << shift;
        mask |= ((1u << RADIX_BITS) - 1) << shift;
    }
    return prefix;
}

size_t bc_sparse_pick(const struct bc_sparse_rule *rule, float *scores, uint32_t n,
                      uint32_t *neurons)
{
    size_t n_active = 0;
    for (uint32_t i = 0; i < n; i++)
        if (isnan(scores[i])) scores[i] = INFINITY;
    if (rule->by_threshold) {
        for (uint32_t i = 0; i < n; i++)
            if (scores[i] >= rule->threshold) neurons[n_active++] = i;
        return n_active;
    }
    const uint32_t k = rule->top_k < n ? rule->top_k : n;
    uint32_t n_above;
    const uint32_t bound = kth_largest(scores, n, k, &n_above);
    uint32_t n_equal = k - n_above; /* of those at the bound, the first */
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t order = order_of(scores[i]);
        if (order < bound || (order == bound && n_equal == 0)) continue;
        if (order == bound) n_equal--;
        neurons[n_active++] = i;
    }
    return n_active;
}

/* ---- selecting ---- */

struct scoring {
    struct bc_predictor *p;
    uint32_t layer;
};

static void score_block(void *ctx, size_t i, unsigned worker)
{
    const struct scoring *job = ctx;
    struct bc_predictor *p = job->p;
    const size_t first = i * SCORE_BLOCK, n_ff = p->model.n_ff, rank = p->rank;
    const size_t n = n_ff - first < SCORE_BLOCK ? n_ff - first : SCORE_BLOCK;
    const float *v = p->layers[job->layer].v + first;
    (void)worker;
    memset(p->scores + first, 0, n * sizeof *p->scores);
    for (size_t r = 0; r < rank; r++)
        p->kernels->axpy(p->hidden[r], v + r * n_ff, n, p->scores + first);
}

size_t bc_predictor_select(struct bc_predictor *p, uint32_t layer, const float *x,
                           uint32_t *neurons)
{
    const uint32_t n_ff = p->model.n_ff;
    const size_t d = p->model.n_embd;
    if (!p->rule.by_threshold && p->rule.top_k >= n_ff) {
        for (uint32_t i = 0; i < n_ff; i++)
            neurons[i] = i;
        return n_ff;
    }
    const struct bc_f32_dots dots = {.w = p->layers[layer].u,
                                     .w_stride = d,
                                     .n_rows = p->rank,
                                     .x = x,
                                     .x_stride = d,
                                     .n_x = 1,
                                     .n = d,
                                     .out = p->hidden,
                                     .out_stride = p->rank};
    struct scoring job = {p, layer};
    p->kernels->dots_f32(&dots);
    bc_pool_run(p->pool, (n_ff + SCORE_BLOCK - 1) / SCORE_BLOCK, score_block, &job);
    return bc_sparse_pick(&p->rule, p->scores, n_ff, neurons);
}

size_t bc_predictor_hook(void *user, uint32_t layer, const float *x, uint32_t *neurons)
{
    return bc_predictor_select(user, layer, x, neurons);
}
