/* SPDX-License-Identifier: MIT
 * Runs tokens through the layers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "engine/session.h"

enum { BATCH = 128 }; /* tokens of a prompt that are computed at once */

/* ---- observation ---- */

enum bitconv_status bc_session_note(const struct bitconv_session *s, uint32_t layer,
                                    const char *what, const float *values, size_t n_tokens,
                                    size_t width, struct bitconv_error *err)
{
    const struct bitconv_engine *e = s->engine;
    char name[64];
    if (!e->check && e->observe == NULL) return BITCONV_OK;
    if (layer == BC_NO_LAYER)
        snprintf(name, sizeof name, "%s", what);
    else
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, what);
    if (e->check) {
        const size_t at = bc_find_nonfinite(values, n_tokens * width);
        if (at < n_tokens * width)
            return bc_fail(err, BITCONV_E_MISMATCH,
                           "%s: %s: value %zu of token %" PRIu64
                           " is %s, the first result that is not finite",
                           e->provider->path, name, at % width, s->n_past + at / width,
                           isnan(values[at]) ? "NaN" : "infinite");
    }
    if (e->observe == NULL) return BITCONV_OK;
    return e->observe(e->user, name, values, n_tokens, width, err);
}

void bc_for_tokens(const struct bitconv_session *s,
                   void (*fn)(void *ctx, size_t token, unsigned worker), void *ctx)
{
    bc_pool_run(s->n_new > 1 ? s->engine->pool : NULL, (size_t)s->n_new, fn, ctx);
}

struct norming {
    const struct bc_graph *g;
    const struct bc_norm *norm;
    size_t groups;
    const float *x;
    float *y;
};

static void norm_token(void *ctx, size_t t, unsigned worker)
{
    const struct norming *job = ctx;
    const size_t at = t * job->groups * (size_t)job->norm->n;
    (void)worker;
    bc_norm_apply(job->g, job->norm, job->x + at, job->groups, job->y + at);
}

void bc_session_norm(const struct bitconv_session *s, const struct bc_norm *norm, size_t groups,
                     const float *x, float *y)
{
    struct norming job = {s->g, norm, groups, x, y};
    if (norm->weight == NULL && x == y) return;
    bc_for_tokens(s, norm_token, &job);
}

/* ---- memory ---- */

static void free_buffers(struct bitconv_session *s)
{
    float **const buffers[] = {&s->x,      &s->h,       &s->y,    &s->q,        &s->heads,
                               &s->fused,  &s->gate,    &s->up,   &s->gathered, &s->part,
                               &s->router, &s->cosines, &s->sines};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        bc_free(*buffers[i]);
        *buffers[i] = NULL;
    }
    s->room = 0;
}

static enum bitconv_status new_floats(float **out, uint64_t rows, uint64_t width,
                                      struct bitconv_error *err)
{
    uint64_t n = 0;
    *out = NULL;
    if (bc_mul_u64(rows, width, &n) && n <= SIZE_MAX / sizeof **out)
        *out = bc_alloc_array((size_t)n, sizeof **out);
    return *out != NULL ? BITCONV_OK : bc_fail_nomem(err, "activations");
}

static enum bitconv_status new_buffers(struct bitconv_session *s, uint64_t n,
                                       struct bitconv_error *err)
{
    const struct bc_hparams *hp = &s->g->hp;
    const struct bc_graph *g = s->g;
    const uint64_t d = hp->n_embd, n_ff = hp->n_ff;
    const uint64_t q = g->has_attention ? bc_dim_size(hp, BC_N_Q) : 0;
    const uint64_t o = g->has_attention ? bc_dim_size(hp, BC_N_O) : 0;
    const uint64_t half = g->rotation.dims / 2;
    const uint64_t conv = g->has_conv ? 3 * d : 0;
    const uint64_t qkv = g->has_fused_qkv ? bc_dim_size(hp, BC_N_QKV) : 0;
    const uint64_t moe = g->has_experts ? 1 : 0;
    BC_TRY(new_floats(&s->x, n, d, err));
    BC_TRY(new_floats(&s->h, n, d, err));
    BC_TRY(new_floats(&s->y, n, d, err));
    BC_TRY(new_floats(&s->q, n, q, err));
    BC_TRY(new_floats(&s->heads, n, o > d ? o : d, err));
    BC_TRY(new_floats(&s->fused, n, conv > qkv ? conv : qkv, err));
    BC_TRY(new_floats(&s->gate, n, n_ff, err));
    BC_TRY(new_floats(&s->up, n, 2 * n_ff, err));
    BC_TRY(new_floats(&s->gathered, moe * n, d, err));
    BC_TRY(new_floats(&s->part, moe * n, d, err));
    BC_TRY(new_floats(&s->router, 2 * moe * n, hp->n_expert, err));
    BC_TRY(new_floats(&s->cosines, 2 * n, half, err));
    return new_floats(&s->sines, 2 * n, half, err);
}

/* Buffers for n tokens at once. */
static enum bitconv_status reserve(struct bitconv_session *s, uint64_t n, struct bitconv_error *err)
{
    if (n <= s->room) return BITCONV_OK;
    free_buffers(s);
    BC_TRY(bc_compute_reserve(&s->compute, (size_t)n, err));
    BC_TRY(new_buffers(s, n, err));
    s->room = (size_t)n;
    return BITCONV_OK;
}

/* Rows for the results of a run. */
static enum bitconv_status reserve_results(struct bitconv_session *s, size_t n,
                                           const struct bitconv_run *run, struct bitconv_error *err)
{
    const struct bc_hparams *hp = &s->g->hp;
    const size_t n_logits = run->want_logits == BITCONV_LOGITS_ALL    ? n
                            : run->want_logits == BITCONV_LOGITS_LAST ? 1
                                                                      : 0;
    if (n > s->result_room) {
        bc_free(s->hidden);
        bc_free(s->pre_norm);
        s->hidden = s->pre_norm = NULL;
        s->result_room = 0;
        BC_TRY(new_floats(&s->hidden, n, hp->n_embd, err));
        BC_TRY(new_floats(&s->pre_norm, n, hp->n_embd, err));
        s->result_room = n;
    }
    if (n_logits > s->logits_room) {
        bc_free(s->logits);
        s->logits = NULL;
        s->logits_room = 0;
        BC_TRY(new_floats(&s->logits, n_logits, hp->n_vocab, err));
        s->logits_room = n_logits;
    }
    return BITCONV_OK;
}

static enum bitconv_status make(struct bitconv_session *s, struct bitconv_error *err)
{
    const struct bitconv_engine *e = s->engine;
    const struct bc_hparams *hp = &s->g->hp;
    const uint64_t rows = s->g->has_attention ? (uint64_t)hp->n_layers * e->n_ctx : 0;
    const uint64_t taps = s->g->has_conv ? hp->conv_l_cache - 1 : 0;
    BC_TRY(bc_compute_init(&s->compute, e->kernels, e->pool, e->mode, s->g->max_cols, err));
    const uint64_t heads = s->g->has_attention ? hp->n_head / hp->n_head_kv : 1;
    s->scores_size = (size_t)(heads * e->n_ctx);
    BC_TRY(new_floats(&s->scores, bc_pool_threads(e->pool) * heads, e->n_ctx, err));
    BC_TRY(new_floats(&s->keys, rows, bc_dim_size(hp, BC_N_K), err));
    BC_TRY(new_floats(&s->values, rows, bc_dim_size(hp, BC_N_V), err));
    BC_TRY(new_floats(&s->conv_state, hp->n_layers * taps, hp->n_embd, err));
    s->neurons = bc_alloc_array(hp->n_ff, sizeof *s->neurons);
    return s->neurons != NULL ? BITCONV_OK : bc_fail_nomem(err, "activations");
}

enum bitconv_status bitconv_session_new(struct bitconv_engine *engine, struct bitconv_session **out,
                                        struct bitconv_error *err)
{
    struct bitconv_session *s = bc_alloc_array(1, sizeof *s);
    *out = NULL;
    if (s == NULL) return bc_fail_nomem(err, "a session");
    s->engine = engine;
    s->g = engine->graph;
    const enum bitconv_status status = make(s, err);
    if (status == BITCONV_OK)
        *out = s;
    else
        bitconv_session_free(s);
    return status;
}

void bitconv_session_free(struct bitconv_session *session)
{
    if (session == NULL) return;
    free_buffers(session);
    bc_compute_release(&session->compute);
    bc_free(session->scores);
    bc_free(session->keys);
    bc_free(session->values);
    bc_free(session->conv_state);
    bc_free(session->neurons);
    bc_free(session->hidden);
    bc_free(session->pre_norm);
    bc_free(session->logits);
    bc_free(session);
}

void bitconv_session_reset(struct bitconv_session *session)
{
    const struct bc_hparams *hp = &session->g->hp;
    session->n_past = 0;
    if (session->g->has_conv)
        memset(session->conv_state, 0,
               (size_t)hp->n_layers * (hp->conv_l_cache - 1) * hp->n_embd *
                   sizeof *session->conv_state);
}

uint64_t bitconv_session_length(const struct bitconv_session *session)
{
    return session->n_past;
}

/* ---- running ---- */

/* x = (row of token_embd) * scale + position + type, then the norm of the embeddings. */
static enum bitconv_status embed(struct bitconv_session *s, const int32_t *tokens,
                                 struct bitconv_error *err)
{
    const struct bc_graph *g = s->g;
    const size_t d = g->hp.n_embd, n = (size_t)s->n_new;
    int8_t *scratch = bc_alloc_array(d, 1);
    if (scratch == NULL) return bc_fail_nomem(err, "activations");
    enum bitconv_status status = BITCONV_OK;
    for (size_t t = 0; t < n && status == BITCONV_OK; t++) {
        float *x = s->x + t * d;
        status = bc_tensor_floats(&g->embedding, (uint64_t)tokens[t], 1, scratch, x, err);
        for (size_t i = 0; i < d && g->embedding_scale != 1.0f; i++)
            x[i] *= g->embedding_scale;
        if (g->token_type != NULL) bc_add(x, g->token_type, d);
        if (g->positions != NULL) bc_add(x, g->positions + (s->n_past + t) * d, d);
    }
    bc_free(scratch);
    BC_TRY(status);
    bc_session_norm(s, &g->embedding_norm, 1, s->x, s->x);
    return bc_session_note(s, BC_NO_LAYER, "embedding", s->x, n, d, err);
}

static void rotate_token(void *ctx, size_t t, unsigned worker)
{
    struct bitconv_session *s = ctx;
    const struct bc_graph *g = s->g;
    const size_t half = g->rotation.dims / 2;
    const bool beyond = s->engine->n_ctx > g->hp.rope_orig_ctx;
    const bool is_long = g->long_rotation.dims > 0 && beyond != s->engine->other_rotation;
    const struct bc_rotation *rotation = is_long ? &g->long_rotation : &g->rotation;
    (void)worker;
    bc_rotation_angles(rotation, s->n_past + t, s->cosines + t * half, s->sines + t * half);
    if (g->local_rotation.dims > 0)
        bc_rotation_angles(&g->local_rotation, s->n_past + t, s->cosines + (s->room + t) * half,
                           s->sines + (s->room + t) * half);
}

/* One of the norms around the blocks of a layer, which does nothing where it is absent. */
static enum bitconv_status norm_of_layer(struct bitconv_session *s, uint32_t layer,
                                         const char *what, const struct bc_norm *norm,
                                         const float *x, float *y, struct bitconv_error *err)
{
    bc_session_norm(s, norm, 1, x, y);
    if (norm->weight == NULL) return BITCONV_OK;
    return bc_session_note(s, layer, what, y, (size_t)s->n_new, s->g->hp.n_embd, err);
}

static enum bitconv_status run_layer(struct bitconv_session *s, uint32_t layer,
                                     struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t d = s->g->hp.n_embd, n = (size_t)s->n_new;
    float *const x = s->x, *const h = s->h, *const y = s->y;
    BC_TRY(norm_of_layer(s, layer, "attn_norm", &l->attn_norm, x, h, err));
    if (l->conv != NULL)
        BC_TRY(bc_short_convolution(s, layer, h, y, err));
    else
        BC_TRY(bc_attention(s, layer, h, y, err));
    BC_TRY(norm_of_layer(s, layer, "post_attention_norm", &l->post_attn_norm, y, y, err));
    bc_add(x, y, n * d);
    BC_TRY(norm_of_layer(s, layer, "attn_output_norm", &l->attn_out_norm, x, x, err));
    BC_TRY(norm_of_layer(s, layer, "ffn_norm", &l->ffn_norm, x, h, err));
    BC_TRY(bc_feed_forward(s, layer, h, y, err));
    BC_TRY(norm_of_layer(s, layer, "post_ffw_norm", &l->post_ffn_norm, y, y, err));
    bc_add(x, y, n * d);
    BC_TRY(norm_of_layer(s, layer, "layer_output_norm", &l->layer_out_norm, x, x, err));
    return bc_session_note(s, layer, "out", x, n, d, err);
}

/* Logits of rows of hidden states. */
static enum bitconv_status project(struct bitconv_session *s, const float *hidden, size_t n,
                                   float *logits, struct bitconv_error *err)
{
    const struct bc_hparams *hp = &s->g->hp;
    const struct bc_product output = {&s->g->output, 0, hidden, logits};
    BC_TRY(bc_products(&s->compute, &output, 1, n, err));
    const size_t n_values = n * (size_t)hp->n_vocab;
    for (size_t i = 0; i < n_values && hp->final_softcap > 0; i++)
        logits[i] = hp->final_softcap * tanhf(logits[i] / hp->final_softcap);
    return bc_session_note(s, BC_NO_LAYER, "logits", logits, n, hp->n_vocab, err);
}

/* n tokens, of which the results go to row `at` of the run's. */
static enum bitconv_status run_batch(struct bitconv_session *s, const int32_t *tokens, size_t n,
                                     size_t at, bool last, const struct bitconv_run *run,
                                     struct bitconv_error *err)
{
    const struct bc_hparams *hp = &s->g->hp;
    const size_t d = hp->n_embd;
    s->n_new = n;
    BC_TRY(embed(s, tokens, err));
    if (s->g->rotation.dims > 0) bc_for_tokens(s, rotate_token, s);
    for (uint32_t i = 0; i < hp->n_layers; i++)
        BC_TRY(run_layer(s, i, err));
    float *hidden = s->hidden + at * d;
    if (run->want_pre_norm) memcpy(s->pre_norm + at * d, s->x, n * d * sizeof *s->x);
    bc_session_norm(s, &s->g->final_norm, 1, s->x, hidden);
    BC_TRY(bc_session_note(s, BC_NO_LAYER, "final_norm", hidden, n, d, err));
    if (run->want_logits == BITCONV_LOGITS_ALL)
        BC_TRY(project(s, hidden, n, s->logits + at * hp->n_vocab, err));
    else if (run->want_logits == BITCONV_LOGITS_LAST && last)
        BC_TRY(project(s, hidden + (n - 1) * d, 1, s->logits, err));
    s->n_past += n;
    return BITCONV_OK;
}

static enum bitconv_status check_tokens(const struct bitconv_session *s, const int32_t *tokens,
                                        size_t n, struct bitconv_error *err)
{
    const struct bitconv_engine *e = s->engine;
    if (n == 0) return bc_fail(err, BITCONV_E_ARG, "%s: no tokens to run", e->provider->path);
    if (n > e->n_ctx || s->n_past > e->n_ctx - n)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: %zu tokens behind %" PRIu64 " do not fit into a context of %" PRIu32
                       " (the model states %" PRIu32 ")",
                       e->provider->path, n, s->n_past, e->n_ctx, s->g->hp.n_ctx);
    if (!s->g->hp.causal && s->n_past > 0)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: the model attends in both directions: the whole text must come at once",
                       e->provider->path);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= s->g->hp.n_vocab)
            return bc_fail(err, BITCONV_E_ARG,
                           "%s: token %zu is %" PRId32 ", the vocabulary has ids 0 to %" PRIu32,
                           e->provider->path, i, tokens[i], s->g->hp.n_vocab - 1);
    return BITCONV_OK;
}

enum bitconv_status bitconv_session_run(struct bitconv_session *session, const int32_t *tokens,
                                        size_t n, struct bitconv_run *run,
                                        struct bitconv_error *err)
{
    const uint64_t before = session->n_past;
    run->logits = run->hidden = run->pre_norm = NULL;
    BC_TRY(check_tokens(session, tokens, n, err));
    const size_t batch = !session->g->hp.causal || n < BATCH ? n : BATCH;
    BC_TRY(reserve(session, batch, err));
    BC_TRY(reserve_results(session, n, run, err));
    for (size_t at = 0; at < n; at += batch) {
        const size_t m = n - at < batch ? n - at : batch;
        const enum bitconv_status status =
            run_batch(session, tokens + at, m, at, at + m == n, run, err);
        if (status == BITCONV_OK) continue;
        session->n_past = before;
        return status;
    }
    if (run->want_hidden) run->hidden = session->hidden;
    if (run->want_pre_norm) run->pre_norm = session->pre_norm;
    if (run->want_logits != BITCONV_LOGITS_NONE) run->logits = session->logits;
    return BITCONV_OK;
}
