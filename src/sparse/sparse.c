/* SPDX-License-Identifier: MIT
 * Calibrating and running, from a path to a report. */
#include "bitconv/sparse.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "sparse/calibrate.h"
#include "sparse/compare.h"

#define DEFAULT_SHARE 0.3
enum { DEFAULT_RANK = 32, TIMED_TOKENS = 64 };

/* All that lives during one call. Zero-initialise. */
struct task {
    const struct bitconv_sparse_options *options;
    const struct bitconv_sink *sink;
    struct bitconv_engine *engine;
    struct bc_predictor *predictor;
    struct bitconv_sparse_report *report;
};

/* A report and what it points to. */
struct bc_sparse_report {
    struct bitconv_sparse_report report; /* first: that is what callers hold */
    struct bc_arena arena;
};

void bitconv_sparse_report_free(struct bitconv_sparse_report *report)
{
    struct bc_sparse_report *r = (struct bc_sparse_report *)(void *)report;
    if (r == NULL) return;
    bc_arena_release(&r->arena);
    bc_free(r);
}

static struct bc_arena *arena_of(struct bitconv_sparse_report *report)
{
    return &((struct bc_sparse_report *)(void *)report)->arena;
}

/* ---- rules ---- */

static enum bitconv_status choose_rule(const struct bitconv_sparse_rule *asked, uint32_t n_ff,
                                       struct bc_sparse_rule *rule, struct bitconv_error *err)
{
    const int n = (asked->top_k != 0) + (asked->share != 0) + asked->has_threshold;
    if (n > 1)
        return bc_fail(err, BITCONV_E_ARG,
                       "only one of --top-k, --share and --threshold can decide");
    if (asked->share != 0 && !(asked->share > 0 && asked->share <= 1))
        return bc_fail(err, BITCONV_E_ARG, "--share: %g is not above 0 and at most 1",
                       asked->share);
    if (asked->has_threshold)
        *rule = (struct bc_sparse_rule){.by_threshold = true, .threshold = (float)asked->threshold};
    else if (asked->top_k != 0)
        *rule = (struct bc_sparse_rule){.top_k = asked->top_k};
    else if (asked->share != 0)
        *rule = (struct bc_sparse_rule){.top_k = bc_sparse_share(asked->share, n_ff)};
    return bc_sparse_check_rule(rule, n_ff, err);
}

/* ---- parts of a report ---- */

static enum bitconv_status new_report(struct task *t, struct bitconv_error *err)
{
    struct bc_sparse_report *r = bc_alloc_array(1, sizeof *r);
    const struct bc_predictor *p = t->predictor;
    if (r == NULL) return bc_fail_nomem(err, "a report");
    t->report = &r->report;
    r->report = (struct bitconv_sparse_report){
        .family = bc_arena_strdup(&r->arena, p->model.family),
        .fingerprint = bc_arena_strdup(&r->arena, p->model.fingerprint),
        .mode = t->engine->mode == BC_MODE_INT8 ? "int8" : "float",
        .n_layers = p->model.n_layers,
        .n_embd = p->model.n_embd,
        .n_ff = p->model.n_ff,
        .rank = p->rank,
        .by_threshold = p->rule.by_threshold,
        .top_k = p->rule.top_k,
        .threshold = (double)p->rule.threshold,
        .ridge = p->ridge,
        .n_samples = p->n_samples};
    if (r->report.family == NULL || r->report.fingerprint == NULL)
        return bc_fail_nomem(err, "a report");
    return BITCONV_OK;
}

static enum bitconv_status compare(struct task *t, const struct bitconv_sparse_text *texts,
                                   size_t n, struct bitconv_sparse_quality **out,
                                   struct bitconv_error *err)
{
    struct bc_arena *arena = arena_of(t->report);
    struct bitconv_sparse_quality *q = bc_arena_alloc(arena, 1, sizeof *q);
    if (q != NULL) q->layers = bc_arena_alloc(arena, t->report->n_layers, sizeof *q->layers);
    if (q == NULL || q->layers == NULL) return bc_fail_nomem(err, "a report");
    BC_TRY(bc_sparse_compare(t->engine, t->predictor, texts, n, t->sink, q, err));
    *out = q;
    return BITCONV_OK;
}

/* ---- opening ---- */

static enum bitconv_status check_texts(const struct bitconv_sparse_text *texts, size_t n,
                                       size_t *longest, struct bitconv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (texts[i].n == 0) return bc_fail(err, BITCONV_E_ARG, "text %zu has no tokens", i + 1);
        if (texts[i].n > *longest) *longest = texts[i].n;
    }
    return BITCONV_OK;
}

/* An engine with a context of n tokens (where the model has one of those at all: sessions say so
 * otherwise), and what model it runs. */
static enum bitconv_status open_engine(struct task *t, const char *path, size_t n,
                                       struct bc_sparse_model *model, struct bitconv_error *err)
{
    const struct bitconv_engine_options options = {
        .n_threads = t->options->n_threads, .cpu = t->options->cpu, .mode = t->options->mode};
    BC_TRY(bitconv_engine_open(path, &options, t->sink, &t->engine, err));
    BC_TRY(bc_sparse_identify(t->engine, model, err));
    if (n < t->engine->n_ctx) t->engine->n_ctx = (uint32_t)n;
    return BITCONV_OK;
}

static void lend_kernels(struct task *t)
{
    t->predictor->kernels = t->engine->kernels;
    t->predictor->pool = t->engine->pool;
}

static enum bitconv_status finish(struct task *t, enum bitconv_status status,
                                  struct bitconv_sparse_report **out)
{
    bc_predictor_free(t->predictor);
    bitconv_engine_close(t->engine);
    if (status == BITCONV_OK)
        *out = t->report;
    else
        bitconv_sparse_report_free(t->report);
    return status;
}

/* ---- calibrating ---- */

static enum bitconv_status check_options(const char *path, const struct bitconv_sparse_options *o,
                                         size_t *longest, struct bitconv_error *err)
{
    if (o->n_texts == 0)
        return bc_fail(err, BITCONV_E_ARG, "no texts to calibrate with (--prompts, -p, --tokens)");
    if (o->outfile == NULL) return bc_fail(err, BITCONV_E_ARG, "the output file is missing (-o)");
    if (!(o->ridge >= 0) || !isfinite(o->ridge))
        return bc_fail(err, BITCONV_E_ARG, "--ridge: %g is no number from 0 on", o->ridge);
    const struct bc_out_options out = {.force = o->force, .input_paths = &path, .n_input_paths = 1};
    BC_TRY(bc_out_probe(o->outfile, &out, err));
    BC_TRY(check_texts(o->texts, o->n_texts, longest, err));
    return check_texts(o->eval, o->n_eval, longest, err);
}

static enum bitconv_status new_predictor(struct task *t, const struct bc_sparse_model *model,
                                         struct bitconv_error *err)
{
    const uint32_t most = model->n_embd < model->n_ff ? model->n_embd : model->n_ff;
    const uint32_t rank = t->options->rank != 0 ? t->options->rank
                          : most < DEFAULT_RANK ? most
                                                : DEFAULT_RANK;
    struct bc_sparse_rule rule = {.top_k = bc_sparse_share(DEFAULT_SHARE, model->n_ff)};
    BC_TRY(choose_rule(&t->options->rule, model->n_ff, &rule, err));
    if (rank > most)
        return bc_fail(err, BITCONV_E_ARG,
                       "--rank: %" PRIu32 " is more than the blocks (%" PRIu32 " x %" PRIu32
                       ") can have",
                       rank, model->n_embd, model->n_ff);
    BC_TRY(bc_predictor_new(model, rank, &t->predictor, err));
    t->predictor->rule = rule;
    lend_kernels(t);
    return BITCONV_OK;
}

/* What is measured is what the file holds: values as it rounds them. */
static void round_values(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = bc_f16_to_f32(bc_f32_to_f16(values[i]));
}

static void round_predictor(struct bc_predictor *p)
{
    for (uint32_t i = 0; i < p->model.n_layers; i++) {
        round_values(p->layers[i].u, (size_t)p->rank * p->model.n_embd);
        round_values(p->layers[i].v, (size_t)p->rank * p->model.n_ff);
    }
}

static enum bitconv_status report_calibration(struct task *t, const double *explained,
                                              struct bitconv_error *err)
{
    const struct bitconv_sparse_options *o = t->options;
    BC_TRY(new_report(t, err));
    BC_TRY(compare(t, o->texts, o->n_texts, &t->report->samples, err));
    for (uint32_t i = 0; i < t->report->n_layers; i++) {
        t->report->samples->layers[i].explained = explained[i];
        t->report->samples->total.explained += explained[i] / t->report->n_layers;
    }
    if (o->n_eval > 0) BC_TRY(compare(t, o->eval, o->n_eval, &t->report->held_out, err));
    return bc_sparse_time(t->engine, t->predictor, o->n_eval > 0 ? o->eval : o->texts,
                          o->n_eval > 0 ? o->n_eval : o->n_texts, TIMED_TOKENS, t->sink,
                          &t->report->speed, err);
}

static enum bitconv_status calibrate(struct task *t, const char *path, struct bitconv_error *err)
{
    const struct bitconv_sparse_options *o = t->options;
    struct bc_sparse_model model;
    size_t longest = 0;
    BC_TRY(check_options(path, o, &longest, err));
    BC_TRY(open_engine(t, path, longest, &model, err));
    BC_TRY(new_predictor(t, &model, err));
    double *explained = bc_alloc_array(model.n_layers, sizeof *explained);
    if (explained == NULL) return bc_fail_nomem(err, "a predictor");
    enum bitconv_status status = bc_sparse_fit(t->engine, o, t->sink, t->predictor, explained, err);
    if (!o->f32) round_predictor(t->predictor);
    if (status == BITCONV_OK) status = report_calibration(t, explained, err);
    if (status == BITCONV_OK)
        status = bc_predictor_write(t->predictor, o->outfile, !o->f32, o->force, err);
    bc_free(explained);
    return status;
}

enum bitconv_status bitconv_sparse_calibrate(const char *path,
                                             const struct bitconv_sparse_options *options,
                                             const struct bitconv_sink *sink,
                                             struct bitconv_sparse_report **out,
                                             struct bitconv_error *err)
{
    struct task t = {.options = options, .sink = sink};
    *out = NULL;
    return finish(&t, calibrate(&t, path, err), out);
}

/* ---- running ---- */

/* Generates behind text[0, *n), greedily: of equally likely tokens the first. */
static enum bitconv_status generate(struct task *t, struct bitconv_session *session, int32_t *text,
                                    size_t *n, struct bitconv_error *err)
{
    const struct bc_hparams *hp = &t->engine->graph->hp;
    struct bitconv_run run = {.want_logits = BITCONV_LOGITS_LAST};
    const size_t end = *n + t->options->n_generate;
    BC_TRY(bc_sparse_step(session, t->predictor, text, *n, &run, err));
    while (*n < end) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < hp->n_vocab; i++)
            if (run.logits[i] > run.logits[best]) best = i;
        text[(*n)++] = (int32_t)best;
        if ((int64_t)best == hp->eos_id || *n == end) break;
        if (bc_canceled(t->sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        BC_TRY(bc_sparse_step(session, t->predictor, text + *n - 1, 1, &run, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status embed(struct task *t, struct bitconv_session *session,
                                 struct bitconv_error *err)
{
    float *out = bc_arena_alloc(arena_of(t->report), t->report->n_embd, sizeof *out);
    if (out == NULL) return bc_fail_nomem(err, "an embedding");
    BC_TRY(bc_sparse_embed(session, t->predictor, &t->options->prompt, out, err));
    t->report->embedding = out;
    return BITCONV_OK;
}

/* The text itself: prompt, and what is generated or its embedding. */
static enum bitconv_status produce(struct task *t, struct bitconv_sparse_text *text,
                                   struct bitconv_error *err)
{
    const struct bitconv_sparse_options *o = t->options;
    struct bitconv_session *session;
    int32_t *tokens =
        bc_arena_alloc(arena_of(t->report), o->prompt.n + o->n_generate, sizeof *tokens);
    if (tokens == NULL) return bc_fail_nomem(err, "a text");
    memcpy(tokens, o->prompt.tokens, o->prompt.n * sizeof *tokens);
    *text = (struct bitconv_sparse_text){tokens, o->prompt.n};
    BC_TRY(bitconv_session_new(t->engine, &session, err));
    enum bitconv_status status = BITCONV_OK;
    if (t->engine->graph->hp.pooling > 0)
        status = embed(t, session, err);
    else if (o->n_generate > 0)
        status = generate(t, session, tokens, &text->n, err);
    bitconv_session_free(session);
    t->report->generated = tokens + o->prompt.n;
    t->report->n_generated = text->n - o->prompt.n;
    return status;
}

static enum bitconv_status run(struct task *t, const char *path, struct bitconv_error *err)
{
    const struct bitconv_sparse_options *o = t->options;
    struct bc_sparse_model model;
    struct bitconv_sparse_text text;
    size_t longest = 0;
    if (o->predictor == NULL) return bc_fail(err, BITCONV_E_ARG, "--predictor FILE is missing");
    BC_TRY(check_texts(&o->prompt, 1, &longest, err));
    if (o->n_generate > UINT32_MAX - longest)
        return bc_fail(err, BITCONV_E_LIMIT, "%zu tokens are too many", o->n_generate);
    BC_TRY(open_engine(t, path, longest + o->n_generate, &model, err));
    BC_TRY(bc_predictor_read(o->predictor, &model, &t->predictor, err));
    BC_TRY(choose_rule(&o->rule, model.n_ff, &t->predictor->rule, err));
    lend_kernels(t);
    BC_TRY(new_report(t, err));
    BC_TRY(produce(t, &text, err));
    BC_TRY(compare(t, &text, 1, &t->report->held_out, err));
    return bc_sparse_time(t->engine, t->predictor, &text, 1, TIMED_TOKENS, t->sink,
                          &t->report->speed, err);
}

enum bitconv_status bitconv_sparse_run(const char *path,
                                       const struct bitconv_sparse_options *options,
                                       const struct bitconv_sink *sink,
                                       struct bitconv_sparse_report **out,
                                       struct bitconv_error *err)
{
    struct task t = {.options = options, .sink = sink};
    *out = NULL;
    return finish(&t, run(&t, path, err), out);
}
