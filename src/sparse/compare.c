/* SPDX-License-Identifier: MIT
 * Two sessions of one engine side by side, one dense and one sparse. */
#include "sparse/compare.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sparse/calibrate.h"

enum { CHUNK = 64 }; /* tokens that are compared at once: bounds what is kept of the dense run */

/* Sums of one layer over the tokens. */
struct tally {
    double hits, wanted, mass, all_mass, active, neurons, difference, size;
};

struct comparison {
    struct bitconv_engine *engine;
    struct bc_predictor *p;
    struct bitconv_session *dense, *sparse;
    bool is_sparse; /* which session is running */
    struct tally *layers;
    float *x;       /* CHUNK inputs of a block */
    float *outputs; /* [layer][CHUNK][n_embd] of the dense run */
    float *magnitudes;
    uint32_t *active, *largest; /* n_ff each */
    float *embeddings;          /* two: dense and sparse */
    double hidden_difference, hidden_size, logits_difference, logits_size, cosines, same_top;
    uint64_t n_cosines;
    struct bitconv_sparse_quality *q;
};

/* ---- runs ---- */

enum bitconv_status bc_sparse_step(struct bitconv_session *session, struct bc_predictor *p,
                                   const int32_t *tokens, size_t n, struct bitconv_run *run,
                                   struct bitconv_error *err)
{
    struct bitconv_engine *e = session->engine;
    e->select = p != NULL ? bc_predictor_hook : NULL;
    e->select_user = p;
    const enum bitconv_status status = bitconv_session_run(session, tokens, n, run, err);
    e->select = NULL;
    return status;
}

enum bitconv_status bc_sparse_embed(struct bitconv_session *session, struct bc_predictor *p,
                                    const struct bitconv_sparse_text *text, float *out,
                                    struct bitconv_error *err)
{
    struct bitconv_engine *e = session->engine;
    e->select = p != NULL ? bc_predictor_hook : NULL;
    e->select_user = p;
    const enum bitconv_status status =
        bitconv_session_embed(session, text->tokens, text->n, -1, 2, out, err);
    e->select = NULL;
    return status;
}

/* ---- observation ---- */

static size_t count_common(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b)
{
    size_t n = 0;
    for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
        if (a[i] == b[j]) n++;
        const bool both = a[i] == b[j], first = a[i] < b[j];
        if (both || first) i++;
        if (both || !first) j++;
    }
    return n;
}

/* Predicted against true neurons of one token of the dense run. */
static void judge(struct comparison *c, uint32_t layer, const float *x, const float *gated)
{
    struct tally *t = &c->layers[layer];
    const uint32_t n_ff = c->p->model.n_ff;
    const size_t n = bc_predictor_select(c->p, layer, x, c->active);
    for (uint32_t i = 0; i < n_ff; i++) {
        c->magnitudes[i] = fabsf(gated[i]);
        t->all_mass += (double)c->magnitudes[i];
    }
    for (size_t i = 0; i < n; i++)
        t->mass += (double)c->magnitudes[c->active[i]];
    t->active += (double)n;
    t->neurons += n_ff;
    if (n == 0) return;
    const struct bc_sparse_rule rule = {.top_k = (uint32_t)n};
    const size_t k = bc_sparse_pick(&rule, c->magnitudes, n_ff, c->largest);
    t->hits += (double)count_common(c->active, n, c->largest, k);
    t->wanted += (double)k;
}

static double squared_distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* A bitconv_observe_fn for both runs. */
static enum bitconv_status watch(void *user, const char *name, const float *values, size_t n_tokens,
                                 size_t width, struct bitconv_error *err)
{
    struct comparison *c = user;
    const size_t d = c->p->model.n_embd;
    uint32_t layer;
    (void)err;
    if (bc_sparse_layer_of(name, "ffn_down", &layer)) {
        float *kept = c->outputs + (size_t)layer * CHUNK * d;
        if (!c->is_sparse) {
            memcpy(kept, values, n_tokens * width * sizeof *values);
            return BITCONV_OK;
        }
        c->layers[layer].difference += squared_distance(values, kept, n_tokens * width);
        c->layers[layer].size += dot(kept, kept, n_tokens * width);
    } else if (c->is_sparse) {
        return BITCONV_OK;
    } else if (bc_sparse_layer_of(name, "ffn_in", &layer)) {
        memcpy(c->x, values, n_tokens * width * sizeof *values);
    } else if (bc_sparse_layer_of(name, "ffn_gated", &layer)) {
        for (size_t t = 0; t < n_tokens; t++)
            judge(c, layer, c->x + t * d, values + t * width);
    }
    return BITCONV_OK;
}

/* ---- comparing ---- */

static size_t most_likely(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static double cosine(const float *a, const float *b, size_t n)
{
    const double norms = sqrt(dot(a, a, n)) * sqrt(dot(b, b, n));
    return norms > 0 ? dot(a, b, n) / norms : 1;
}

static void add_results(struct comparison *c, const struct bitconv_run *dense,
                        const struct bitconv_run *sparse, size_t n)
{
    const size_t d = c->p->model.n_embd, n_vocab = c->engine->graph->hp.n_vocab;
    c->hidden_difference += squared_distance(sparse->hidden, dense->hidden, n * d);
    c->hidden_size += dot(dense->hidden, dense->hidden, n * d);
    for (size_t t = 0; t < n && c->q->has_logits; t++) {
        const float *a = dense->logits + t * n_vocab, *b = sparse->logits + t * n_vocab;
        c->logits_difference += squared_distance(b, a, n_vocab);
        c->logits_size += dot(a, a, n_vocab);
        c->same_top += most_likely(a, n_vocab) == most_likely(b, n_vocab);
        c->cosines += cosine(dense->hidden + t * d, sparse->hidden + t * d, d);
        c->n_cosines++;
    }
    c->q->n_tokens += n;
}

static enum bitconv_status compare_chunk(struct comparison *c, const int32_t *tokens, size_t n,
                                         struct bitconv_error *err)
{
    const enum bitconv_logits logits = c->q->has_logits ? BITCONV_LOGITS_ALL : BITCONV_LOGITS_NONE;
    struct bitconv_run dense = {.want_hidden = true, .want_logits = logits}, sparse = dense;
    c->is_sparse = false;
    BC_TRY(bc_sparse_step(c->dense, NULL, tokens, n, &dense, err));
    c->is_sparse = true;
    BC_TRY(bc_sparse_step(c->sparse, c->p, tokens, n, &sparse, err));
    add_results(c, &dense, &sparse, n);
    return BITCONV_OK;
}

/* Embedding models: what counts is the vector of the whole text. */
static enum bitconv_status compare_embeddings(struct comparison *c,
                                              const struct bitconv_sparse_text *text,
                                              struct bitconv_error *err)
{
    const size_t d = c->p->model.n_embd;
    bitconv_observe_fn *const observe = c->engine->observe;
    c->engine->observe = NULL;
    enum bitconv_status status = bc_sparse_embed(c->dense, NULL, text, c->embeddings, err);
    if (status == BITCONV_OK)
        status = bc_sparse_embed(c->sparse, c->p, text, c->embeddings + d, err);
    c->engine->observe = observe;
    c->cosines += cosine(c->embeddings, c->embeddings + d, d);
    c->n_cosines++;
    return status;
}

static enum bitconv_status compare_text(struct comparison *c,
                                        const struct bitconv_sparse_text *text,
                                        const struct bitconv_sink *sink, struct bitconv_error *err)
{
    bitconv_session_reset(c->dense);
    bitconv_session_reset(c->sparse);
    for (size_t at = 0; at < text->n; at += CHUNK) {
        const size_t n = text->n - at < CHUNK ? text->n - at : CHUNK;
        if (bc_canceled(sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        BC_TRY(compare_chunk(c, text->tokens + at, n, err));
    }
    return c->q->has_logits ? BITCONV_OK : compare_embeddings(c, text, err);
}

/* ---- results ---- */

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* What is active of nothing is all of it. */
static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 1;
}

static void add_tally(struct tally *sum, const struct tally *t)
{
    sum->hits += t->hits;
    sum->wanted += t->wanted;
    sum->mass += t->mass;
    sum->all_mass += t->all_mass;
    sum->active += t->active;
    sum->neurons += t->neurons;
}

static void settle(const struct tally *t, struct bitconv_sparse_layer *out)
{
    out->recall = share(t->hits, t->wanted);
    out->mass = share(t->mass, t->all_mass);
    out->sparsity = 1 - ratio(t->active, t->neurons);
}

static void summarise(const struct comparison *c)
{
    struct bitconv_sparse_quality *q = c->q;
    const uint32_t n_layers = c->p->model.n_layers;
    struct tally sum = {0};
    double errors = 0;
    for (uint32_t i = 0; i < n_layers; i++) {
        settle(&c->layers[i], &q->layers[i]);
        q->layers[i].error = sqrt(ratio(c->layers[i].difference, c->layers[i].size));
        errors += q->layers[i].error;
        add_tally(&sum, &c->layers[i]);
    }
    settle(&sum, &q->total);
    q->total.error = errors / n_layers;
    q->hidden_error = sqrt(ratio(c->hidden_difference, c->hidden_size));
    q->logits_error = sqrt(ratio(c->logits_difference, c->logits_size));
    q->cosine = share(c->cosines, (double)c->n_cosines);
    q->top1 = share(c->same_top, (double)c->n_cosines);
}

/* ---- set-up ---- */

static enum bitconv_status set_up(struct comparison *c, struct bitconv_error *err)
{
    const size_t d = c->p->model.n_embd, n_ff = c->p->model.n_ff;
    c->layers = bc_alloc_array(c->p->model.n_layers, sizeof *c->layers);
    c->x = bc_alloc_array(CHUNK, d * sizeof *c->x);
    c->outputs = bc_alloc_array(c->p->model.n_layers, CHUNK * d * sizeof *c->outputs);
    c->magnitudes = bc_alloc_array(n_ff, sizeof *c->magnitudes);
    c->active = bc_alloc_array(n_ff, sizeof *c->active);
    c->largest = bc_alloc_array(n_ff, sizeof *c->largest);
    c->embeddings = bc_alloc_array(2, d * sizeof *c->embeddings);
    if (c->layers == NULL || c->x == NULL || c->outputs == NULL || c->magnitudes == NULL ||
        c->active == NULL || c->largest == NULL || c->embeddings == NULL)
        return bc_fail_nomem(err, "comparing sparse with dense");
    BC_TRY(bitconv_session_new(c->engine, &c->dense, err));
    return bitconv_session_new(c->engine, &c->sparse, err);
}

static void tear_down(struct comparison *c)
{
    bitconv_session_free(c->dense);
    bitconv_session_free(c->sparse);
    bc_free(c->layers);
    bc_free(c->x);
    bc_free(c->outputs);
    bc_free(c->magnitudes);
    bc_free(c->active);
    bc_free(c->largest);
    bc_free(c->embeddings);
}

enum bitconv_status bc_sparse_compare(struct bitconv_engine *engine, struct bc_predictor *p,
                                      const struct bitconv_sparse_text *texts, size_t n_texts,
                                      const struct bitconv_sink *sink,
                                      struct bitconv_sparse_quality *q, struct bitconv_error *err)
{
    bitconv_observe_fn *const observe = engine->observe;
    void *const user = engine->user;
    struct comparison c = {.engine = engine, .p = p, .q = q};
    q->n_tokens = 0;
    /* an embedding model without pooling gives its tokens' vectors, which logits do not matter to */
    q->has_logits = engine->graph->hp.pooling <= 0;
    enum bitconv_status status = set_up(&c, err);
    engine->observe = watch;
    engine->user = &c;
    for (size_t i = 0; i < n_texts && status == BITCONV_OK; i++) {
        status = compare_text(&c, &texts[i], sink, err);
        bc_progress(sink, "comparing", i + 1, n_texts);
    }
    engine->observe = observe;
    engine->user = user;
    if (status == BITCONV_OK) summarise(&c);
    tear_down(&c);
    return status;
}

/* ---- time ---- */

static double seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The first n tokens of a text one by one. */
static enum bitconv_status time_tokens(struct bitconv_session *session, struct bc_predictor *p,
                                       const int32_t *tokens, size_t n, double *total,
                                       struct bitconv_error *err)
{
    const bool logits = session->g->hp.pooling < 0;
    const double start = seconds();
    bitconv_session_reset(session);
    for (size_t i = 0; i < n; i++) {
        struct bitconv_run run = {
            .want_hidden = true, .want_logits = logits ? BITCONV_LOGITS_LAST : BITCONV_LOGITS_NONE};
        BC_TRY(bc_sparse_step(session, p, tokens + i, 1, &run, err));
    }
    *total += seconds() - start;
    return BITCONV_OK;
}

static enum bitconv_status time_texts(struct bitconv_session *session, struct bc_predictor *p,
                                      const struct bitconv_sparse_text *texts, size_t n_texts,
                                      uint64_t max_tokens, const struct bitconv_sink *sink,
                                      struct bitconv_sparse_speed *out, struct bitconv_error *err)
{
    double warm_up = 0;
    BC_TRY(time_tokens(session, NULL, texts[0].tokens, 1, &warm_up, err));
    BC_TRY(time_tokens(session, p, texts[0].tokens, 1, &warm_up, err));
    for (size_t i = 0; i < n_texts && out->n_tokens < max_tokens; i++) {
        const uint64_t left = max_tokens - out->n_tokens;
        const size_t n = texts[i].n < left ? texts[i].n : (size_t)left;
        if (bc_canceled(sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        BC_TRY(time_tokens(session, NULL, texts[i].tokens, n, &out->dense_seconds, err));
        BC_TRY(time_tokens(session, p, texts[i].tokens, n, &out->sparse_seconds, err));
        out->n_tokens += n;
    }
    return BITCONV_OK;
}

enum bitconv_status bc_sparse_time(struct bitconv_engine *engine, struct bc_predictor *p,
                                   const struct bitconv_sparse_text *texts, size_t n_texts,
                                   uint64_t max_tokens, const struct bitconv_sink *sink,
                                   struct bitconv_sparse_speed *out, struct bitconv_error *err)
{
    struct bitconv_session *session;
    const bool check = engine->check;
    *out = (struct bitconv_sparse_speed){0};
    BC_TRY(bitconv_session_new(engine, &session, err));
    engine->check = false;
    const enum bitconv_status status =
        time_texts(session, p, texts, n_texts, max_tokens, sink, out, err);
    engine->check = check;
    bitconv_session_free(session);
    return status;
}
