/* SPDX-License-Identifier: MIT
 * Two runs of the same tokens, compared result by result without keeping them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "verify/forward.h"

/* One intermediate result as the first run gave it. */
struct observed {
    char name[64];
    uint64_t n_values;
    struct bc_hash128 hash;
};

/* What the observers of a comparison share. */
struct comparing {
    struct bc_verifier *v;
    struct bc_forward *f;
    struct observed *first;
    size_t n, cap;              /* results of the first run */
    size_t at;                  /* results of the second run so far; of the repeated run likewise */
    uint64_t token, next_token; /* where the batch begins */
    bool stopped;               /* a result differed: the run was ended for that reason */
    size_t width;               /* of that result */
    float *values;              /* the second run's; owned */
    struct bc_forward_difference *out;
};

/* ---- running ---- */

static enum bitconv_status run_session(struct bitconv_session *session,
                                       const struct bitconv_engine *engine,
                                       const struct bc_forward *f, struct bitconv_error *err)
{
    struct bitconv_engine_info info;
    bitconv_engine_info(engine, &info);
    if (info.pooling < 0) {
        struct bitconv_run run = {.want_logits = BITCONV_LOGITS_LAST};
        return bitconv_session_run(session, f->tokens, f->n_tokens, &run, err);
    }
    const size_t rows = info.pooling == 0 ? f->n_tokens : 1;
    float *pooled = bc_alloc_array(rows * info.n_embd, sizeof *pooled);
    if (pooled == NULL) return bc_fail_nomem(err, "an embedding");
    enum bitconv_status status =
        bitconv_session_embed(session, f->tokens, f->n_tokens, -1, -1, pooled, err);
    if (status == BITCONV_OK && engine->observe != NULL)
        status = engine->observe(engine->user, "pooled", pooled, rows, info.n_embd, err);
    bc_free(pooled);
    return status;
}

/* Runs all tokens in a new session of the engine: an embedding model up to its pooled vector, which
 * goes to the observer as "pooled" (not normalised), others up to the logits of the last token. */
static enum bitconv_status run_engine(struct bitconv_engine *engine, const struct bc_forward *f,
                                      bitconv_observe_fn *observe, void *user,
                                      struct bitconv_error *err)
{
    struct bitconv_session *session = NULL;
    engine->observe = observe;
    engine->user = user;
    BC_TRY(bitconv_session_new(engine, &session, err));
    const enum bitconv_status status = run_session(session, engine, f, err);
    bitconv_session_free(session);
    engine->observe = NULL;
    return status;
}

/* Progress counts layers; a result that ends one is called blk.N.out. */
static enum bitconv_status advance(struct bc_verifier *v, struct bc_forward *f, const char *name,
                                   struct bitconv_error *err)
{
    const size_t len = strlen(name);
    if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    if (len < 4 || strcmp(name + len - 4, ".out") != 0) return BITCONV_OK;
    if (f->done < f->total) f->done++;
    bc_progress(v->sink, "computing", f->done, f->total);
    return BITCONV_OK;
}

/* ---- observers ---- */

static enum bitconv_status record(void *user, const char *name, const float *values,
                                  size_t n_tokens, size_t width, struct bitconv_error *err)
{
    struct comparing *c = user;
    BC_TRY(advance(c->v, c->f, name, err));
    if (!bc_grow((void **)&c->first, &c->cap, c->n, sizeof *c->first))
        return bc_fail_nomem(err, "hashes of results");
    struct observed *o = &c->first[c->n++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->n_values = (uint64_t)n_tokens * width;
    o->hash = bc_hash128(values, n_tokens * width * sizeof *values);
    return BITCONV_OK;
}

/* Ends a run on purpose; bc_forward_compare takes the error back. */
static enum bitconv_status stop(struct comparing *c, struct bitconv_error *err)
{
    c->stopped = true;
    return bc_fail(err, BITCONV_E_MISMATCH, "results differ");
}

static void note_batch(struct comparing *c, const char *name, size_t n_tokens)
{
    if (strcmp(name, "embedding") != 0) return;
    c->token = c->next_token;
    c->next_token += n_tokens;
}

static enum bitconv_status compare(void *user, const char *name, const float *values,
                                   size_t n_tokens, size_t width, struct bitconv_error *err)
{
    struct comparing *c = user;
    struct bc_forward_difference *out = c->out;
    const uint64_t n = (uint64_t)n_tokens * width;
    static const struct observed none = {.name = ""};
    BC_TRY(advance(c->v, c->f, name, err));
    note_batch(c, name, n_tokens);
    const struct observed *o = c->at < c->n ? &c->first[c->at] : &none;
    const struct bc_hash128 hash = bc_hash128(values, (size_t)n * sizeof *values);
    const bool same_name = strcmp(o->name, name) == 0;
    if (same_name && o->n_values == n && o->hash.high == hash.high && o->hash.low == hash.low) {
        c->at++;
        return BITCONV_OK;
    }
    out->found = true;
    out->n_values = n;
    out->other_shape = same_name && o->n_values != n;
    snprintf(out->name, sizeof out->name, "%s", o->name);
    if (!same_name) snprintf(out->other_name, sizeof out->other_name, "%s", name);
    if (!same_name || out->other_shape) return stop(c, err);
    c->width = width;
    c->values = bc_alloc_array((size_t)n, sizeof *c->values);
    if (c->values == NULL) return bc_fail_nomem(err, "results");
    memcpy(c->values, values, (size_t)n * sizeof *c->values);
    return stop(c, err);
}

/* The first run again, up to the result that differs. */
static enum bitconv_status look_closer(void *user, const char *name, const float *values,
                                       size_t n_tokens, size_t width, struct bitconv_error *err)
{
    struct comparing *c = user;
    struct bc_forward_difference *out = c->out;
    (void)name;
    (void)n_tokens;
    (void)width;
    if (bc_canceled(c->v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    if (c->at-- > 0) return BITCONV_OK;
    for (uint64_t i = 0; i < out->n_values; i++) {
        if (bc_f32_bits(values[i]) == bc_f32_bits(c->values[i])) continue;
        if (out->n_different++ > 0) continue;
        out->token = c->token + i / c->width;
        out->index = i % c->width;
        out->first = values[i];
        out->second = c->values[i];
    }
    return stop(c, err);
}

/* ---- comparing ---- */

/* A run that an observer of ours has ended is no failure. */
static enum bitconv_status run_until(struct comparing *c, struct bitconv_engine *engine,
                                     bitconv_observe_fn *observe, struct bitconv_error *err)
{
    struct bitconv_error why = {.status = BITCONV_OK};
    c->stopped = false;
    const enum bitconv_status status = run_engine(engine, c->f, observe, c, &why);
    if (status == BITCONV_OK || c->stopped) return BITCONV_OK;
    return bc_fail(err, status, "%s", why.text);
}

static enum bitconv_status compare_runs(struct comparing *c, struct bitconv_engine *first,
                                        struct bitconv_engine *second, uint64_t *n_results,
                                        struct bitconv_error *err)
{
    BC_TRY(run_until(c, first, record, err));
    BC_TRY(run_until(c, second, compare, err));
    *n_results = c->at;
    if (!c->out->found && c->at < c->n) { /* the second run ended before the first */
        c->out->found = true;
        snprintf(c->out->name, sizeof c->out->name, "%s", c->first[c->at].name);
        snprintf(c->out->other_name, sizeof c->out->other_name, "nothing");
    }
    if (c->values == NULL) return BITCONV_OK;
    return run_until(c, first, look_closer, err);
}

enum bitconv_status bc_forward_compare(struct bc_verifier *v, struct bc_forward *f,
                                       struct bitconv_engine *first, struct bitconv_engine *second,
                                       struct bc_forward_difference *out, uint64_t *n_results,
                                       struct bitconv_error *err)
{
    struct comparing c = {.v = v, .f = f, .out = out};
    *out = (struct bc_forward_difference){.found = false};
    *n_results = 0;
    const enum bitconv_status status = compare_runs(&c, first, second, n_results, err);
    bc_free(c.first);
    bc_free(c.values);
    return status;
}

static enum bitconv_status count(void *user, const char *name, const float *values, size_t n_tokens,
                                 size_t width, struct bitconv_error *err)
{
    struct comparing *c = user;
    (void)values;
    (void)n_tokens;
    (void)width;
    c->n++;
    return advance(c->v, c->f, name, err);
}

enum bitconv_status bc_forward_check(struct bc_verifier *v, struct bc_forward *f,
                                     struct bitconv_engine *engine, uint64_t *n_results,
                                     struct bitconv_error *err)
{
    struct comparing c = {.v = v, .f = f};
    const enum bitconv_status status = run_engine(engine, f, count, &c, err);
    *n_results = c.n;
    return status;
}
