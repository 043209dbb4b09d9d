/* SPDX-License-Identifier: MIT
 * Sums over the samples, layer by layer, and the fit to them. */
#include "sparse/calibrate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "sparse/low_rank.h"

#define DEFAULT_RIDGE 0.01
enum {
    TOGETHER = 4,
    LANES = 8
}; /* tokens that are added at once: rows of the sums are read less often */
static const uint64_t default_memory = UINT64_C(2) << 30;

/* Of one layer: X^T X (lower triangle) and X^T M, of inputs x and magnitudes m. */
struct sums {
    double *gram, *cross;
    double squares; /* |M|^2 */
};

struct collector {
    const struct bc_predictor *p;
    struct bc_pool *pool;
    uint32_t first, n; /* layers that are collected */
    struct sums *sums; /* n */
    float *x, *m;      /* inputs and magnitudes of a batch */
    size_t room;       /* its tokens */
    uint64_t n_samples;
};

bool bc_sparse_layer_of(const char *name, const char *what, uint32_t *layer)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0) return false;
    const unsigned long number = strtoul(name + 4, &end, 10);
    if (*end != '.' || strcmp(end + 1, what) != 0) return false;
    *layer = (uint32_t)number;
    return true;
}

/* ---- collecting ---- */

struct adding {
    const struct collector *c;
    struct sums *sums;
    const float *x, *m;
    size_t n_tokens;
};

/* sum[i] += x[t] * v[t][i] for up to TOGETHER tokens, in their order. */
static void add_rows(const double x[TOGETHER], size_t n_x, const float *restrict v, size_t stride,
                     size_t n, double *restrict sum)
{
    size_t i = 0;
    for (; n_x == TOGETHER && i + LANES <= n; i += LANES) /* a shape that becomes vectors */
        for (size_t j = 0; j < LANES; j++) {
            const float *at = v + i + j;
            sum[i + j] = (((sum[i + j] + x[0] * (double)at[0]) + x[1] * (double)at[stride]) +
                          x[2] * (double)at[2 * stride]) +
                         x[3] * (double)at[3 * stride];
        }
    for (; i < n; i++)
        for (size_t t = 0; t < n_x; t++)
            sum[i] += x[t] * (double)v[t * stride + i];
}

/* Row `row` of both sums. */
static void add_row(void *ctx, size_t row, unsigned worker)
{
    const struct adding *job = ctx;
    const size_t d = job->c->p->model.n_embd, n_ff = job->c->p->model.n_ff;
    (void)worker;
    for (size_t t = 0; t < job->n_tokens; t += TOGETHER) {
        const size_t n = job->n_tokens - t < TOGETHER ? job->n_tokens - t : TOGETHER;
        double x[TOGETHER];
        for (size_t i = 0; i < n; i++)
            x[i] = (double)job->x[(t + i) * d + row];
        add_rows(x, n, job->x + t * d, d, row + 1, job->sums->gram + row * d);
        add_rows(x, n, job->m + t * n_ff, n_ff, n_ff, job->sums->cross + row * n_ff);
    }
}

static void add_batch(struct collector *c, uint32_t layer, const float *gated, size_t n_tokens)
{
    const size_t n_ff = c->p->model.n_ff;
    struct sums *sums = &c->sums[layer - c->first];
    for (size_t i = 0; i < n_tokens * n_ff; i++) {
        c->m[i] = gated[i] < 0 ? -gated[i] : gated[i];
        sums->squares += (double)gated[i] * (double)gated[i];
    }
    struct adding job = {c, sums, c->x, c->m, n_tokens};
    bc_pool_run(c->pool, c->p->model.n_embd, add_row, &job);
}

static enum bitconv_status reserve(struct collector *c, size_t n_tokens, struct bitconv_error *err)
{
    if (n_tokens <= c->room) return BITCONV_OK;
    bc_free(c->x);
    bc_free(c->m);
    c->room = 0;
    c->x = bc_alloc_array(n_tokens, c->p->model.n_embd * sizeof *c->x);
    c->m = bc_alloc_array(n_tokens, c->p->model.n_ff * sizeof *c->m);
    if (c->x == NULL || c->m == NULL) return bc_fail_nomem(err, "samples");
    c->room = n_tokens;
    return BITCONV_OK;
}

/* A bitconv_observe_fn: the inputs of a block are kept until its magnitudes come. */
static enum bitconv_status collect(void *user, const char *name, const float *values,
                                   size_t n_tokens, size_t width, struct bitconv_error *err)
{
    struct collector *c = user;
    uint32_t layer;
    const bool is_input = bc_sparse_layer_of(name, "ffn_in", &layer);
    if (!is_input && !bc_sparse_layer_of(name, "ffn_gated", &layer)) return BITCONV_OK;
    if (layer < c->first || layer - c->first >= c->n) return BITCONV_OK;
    if (is_input) {
        BC_TRY(reserve(c, n_tokens, err));
        memcpy(c->x, values, n_tokens * width * sizeof *values);
        if (layer == c->first) c->n_samples += n_tokens;
        return BITCONV_OK;
    }
    add_batch(c, layer, values, n_tokens);
    return BITCONV_OK;
}

static enum bitconv_status run_texts(struct bitconv_engine *engine, struct collector *c,
                                     const struct bitconv_sparse_options *options,
                                     const struct bitconv_sink *sink, struct bitconv_error *err)
{
    struct bitconv_session *session;
    c->n_samples = 0;
    BC_TRY(bitconv_session_new(engine, &session, err));
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < options->n_texts && status == BITCONV_OK; i++) {
        struct bitconv_run run = {.want_logits = BITCONV_LOGITS_NONE};
        const struct bitconv_sparse_text *text = &options->texts[i];
        bitconv_session_reset(session);
        if (bc_canceled(sink)) status = bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        if (status == BITCONV_OK)
            status = bitconv_session_run(session, text->tokens, text->n, &run, err);
        bc_progress(sink, "collecting", i + 1, options->n_texts);
    }
    bitconv_session_free(session);
    return status;
}

/* ---- fitting ---- */

/* From the double rows of the fit to the predictor's floats. */
static void keep_fit(struct bc_predictor *p, uint32_t layer, const double *ut, const double *vt)
{
    const size_t d = p->model.n_embd, n_ff = p->model.n_ff, rank = p->rank;
    for (size_t i = 0; i < rank * d; i++)
        p->layers[layer].u[i] = (float)ut[i];
    for (size_t i = 0; i < rank * n_ff; i++)
        p->layers[layer].v[i] = (float)vt[i];
}

static enum bitconv_status fit_layer(const struct collector *c, uint32_t layer, double ridge,
                                     struct bc_predictor *p, double *ut, double *vt,
                                     double *explained, struct bitconv_error *err)
{
    const struct sums *s = &c->sums[layer - c->first];
    const size_t d = p->model.n_embd;
    struct bitconv_error why = {.status = BITCONV_OK};
    double trace = 0, captured = 0;
    for (size_t i = 0; i < d; i++)
        trace += s->gram[i * d + i];
    const struct bc_low_rank problem = {.gram = s->gram,
                                        .cross = s->cross,
                                        .d = d,
                                        .m = p->model.n_ff,
                                        .rank = p->rank,
                                        .ridge = ridge * trace / (double)d};
    const enum bitconv_status status = bc_low_rank_fit(&problem, c->pool, ut, vt, &captured, &why);
    if (status != BITCONV_OK) return bc_fail(err, status, "blk.%" PRIu32 ": %s", layer, why.text);
    keep_fit(p, layer, ut, vt);
    explained[layer] = s->squares > 0 ? captured / s->squares : 0;
    return BITCONV_OK;
}

static enum bitconv_status fit_group(const struct collector *c, double ridge,
                                     const struct bitconv_sink *sink, struct bc_predictor *p,
                                     double *explained, struct bitconv_error *err)
{
    double *ut = bc_alloc_array(p->rank, p->model.n_embd * sizeof *ut);
    double *vt = bc_alloc_array(p->rank, p->model.n_ff * sizeof *vt);
    enum bitconv_status status = BITCONV_OK;
    if (ut == NULL || vt == NULL) status = bc_fail_nomem(err, "fitting a predictor");
    for (uint32_t i = 0; i < c->n && status == BITCONV_OK; i++) {
        bc_progress(sink, "fitting", c->first + i, p->model.n_layers);
        if (bc_canceled(sink)) status = bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        if (status == BITCONV_OK)
            status = fit_layer(c, c->first + i, ridge, p, ut, vt, explained, err);
    }
    bc_free(ut);
    bc_free(vt);
    return status;
}

/* ---- groups of layers ---- */

/* Layers whose sums fit into memory at once, beside one fit. */
static enum bitconv_status group_size(const struct bc_predictor *p, uint64_t memory, uint32_t *out,
                                      struct bitconv_error *err)
{
    const uint64_t d = p->model.n_embd, n_ff = p->model.n_ff;
    const uint64_t fit = bc_low_rank_memory(d, n_ff, p->rank);
    uint64_t layer, needed = UINT64_MAX;
    if (!bc_mul_u64(d * sizeof(double), d + n_ff, &layer)) layer = UINT64_MAX;
    if (!bc_add_u64(layer, fit, &needed)) needed = UINT64_MAX;
    if (needed > memory)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "fitting one layer takes %" PRIu64 " MiB of memory, --memory allows %" PRIu64
                       " MiB",
                       (needed >> 20) + 1, memory >> 20);
    const uint64_t n = (memory - fit) / layer;
    *out = n < p->model.n_layers ? (uint32_t)n : p->model.n_layers;
    return BITCONV_OK;
}

static enum bitconv_status new_sums(struct collector *c, struct bitconv_error *err)
{
    const size_t d = c->p->model.n_embd, n_ff = c->p->model.n_ff;
    for (uint32_t i = 0; i < c->n; i++) {
        bc_free(c->sums[i].gram);
        bc_free(c->sums[i].cross);
        c->sums[i] = (struct sums){.gram = bc_alloc_array(d, d * sizeof(double)),
                                   .cross = bc_alloc_array(d, n_ff * sizeof(double))};
        if (c->sums[i].gram == NULL || c->sums[i].cross == NULL)
            return bc_fail_nomem(err, "sums over the samples");
    }
    return BITCONV_OK;
}

static enum bitconv_status fit_all(struct bitconv_engine *engine, struct collector *c,
                                   uint32_t group, const struct bitconv_sparse_options *options,
                                   const struct bitconv_sink *sink, struct bc_predictor *p,
                                   double *explained, struct bitconv_error *err)
{
    for (c->first = 0; c->first < p->model.n_layers; c->first += group) {
        const uint32_t left = p->model.n_layers - c->first;
        c->n = left < group ? left : group;
        BC_TRY(new_sums(c, err));
        BC_TRY(run_texts(engine, c, options, sink, err));
        BC_TRY(fit_group(c, p->ridge, sink, p, explained, err));
    }
    p->n_samples = c->n_samples;
    return BITCONV_OK;
}

enum bitconv_status bc_sparse_fit(struct bitconv_engine *engine,
                                  const struct bitconv_sparse_options *options,
                                  const struct bitconv_sink *sink, struct bc_predictor *p,
                                  double *explained, struct bitconv_error *err)
{
    bitconv_observe_fn *const observe = engine->observe;
    void *const user = engine->user;
    const bool check = engine->check;
    struct collector c = {.p = p, .pool = engine->pool};
    uint32_t group = 0;
    p->ridge = options->ridge > 0 ? options->ridge : DEFAULT_RIDGE;
    BC_TRY(group_size(p, options->memory > 0 ? options->memory : default_memory, &group, err));
    c.sums = bc_alloc_array(group, sizeof *c.sums);
    if (c.sums == NULL) return bc_fail_nomem(err, "sums over the samples");
    engine->observe = collect;
    engine->user = &c;
    engine->check = true; /* a sum must not be spoilt by a value that is not finite */
    const enum bitconv_status status = fit_all(engine, &c, group, options, sink, p, explained, err);
    engine->observe = observe;
    engine->user = user;
    engine->check = check;
    for (uint32_t i = 0; i < group; i++) {
        bc_free(c.sums[i].gram);
        bc_free(c.sums[i].cross);
    }
    bc_free(c.sums);
    bc_free(c.x);
    bc_free(c.m);
    return status;
}
