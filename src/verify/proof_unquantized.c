/* SPDX-License-Identifier: MIT
 * How far the file is from the checkpoint as it is stored, in float32 and not made ternary: measured
 * at the result, and judged by a tolerance. */
#include <inttypes.h>
#include <math.h>

#include "verify/forward.h"
#include "verify/proofs.h"

enum { PIECE = 32 }; /* tokens whose logits are in memory at once */

/* Sums over all values that were compared. */
struct measuring {
    double max, dot, file2, source2;
    uint64_t n_rows, same_top;
    double kl; /* of the last row */
};

/* ---- measures ---- */

static void add_values(struct measuring *m, const float *file, const float *source, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double a = (double)file[i], b = (double)source[i];
        if (!(fabs(a - b) <= m->max)) m->max = fabs(a - b); /* NaN stays */
        m->dot += a * b;
        m->file2 += a * a;
        m->source2 += b * b;
    }
}

static size_t top(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* log(sum(exp(x))) */
static double log_sum_exp(const float *x, size_t n)
{
    const double max = (double)x[top(x, n)];
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    return max + log(sum);
}

/* Kullback-Leibler divergence of the file's distribution from the checkpoint's, in nats. */
static double divergence(const float *file, const float *source, size_t n)
{
    const double file_total = log_sum_exp(file, n), source_total = log_sum_exp(source, n);
    double kl = 0;
    for (size_t i = 0; i < n; i++) {
        const double log_p = (double)source[i] - source_total;
        kl += exp(log_p) * (log_p - ((double)file[i] - file_total));
    }
    return kl;
}

static void add_logits(struct measuring *m, const float *file, const float *source, size_t rows,
                       size_t n)
{
    add_values(m, file, source, rows * n);
    for (size_t r = 0; r < rows; r++)
        m->same_top += top(file + r * n, n) == top(source + r * n, n);
    m->n_rows += rows;
    m->kl = divergence(file + (rows - 1) * n, source + (rows - 1) * n, n);
}

/* ---- runs ---- */

/* Both models in step, so that logits of a few tokens are enough. */
static enum bitconv_status run_logits(struct bc_verifier *v, const struct bc_forward *f,
                                      struct bitconv_session *file, struct bitconv_session *source,
                                      struct measuring *m, struct bitconv_error *err)
{
    const size_t piece = f->hp.causal ? PIECE : f->n_tokens;
    for (size_t at = 0; at < f->n_tokens; at += piece) {
        const size_t n = f->n_tokens - at < piece ? f->n_tokens - at : piece;
        struct bitconv_run a = {.want_logits = BITCONV_LOGITS_ALL}, b = a;
        if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        bc_progress(v->sink, "measuring", at, f->n_tokens);
        BC_TRY(bitconv_session_run(file, f->tokens + at, n, &a, err));
        BC_TRY(bitconv_session_run(source, f->tokens + at, n, &b, err));
        add_logits(m, a.logits, b.logits, n, f->hp.n_vocab);
    }
    bc_progress(v->sink, "measuring", f->n_tokens, f->n_tokens);
    return BITCONV_OK;
}

/* Pooled vectors of unit length (not pooled: one a token). */
static enum bitconv_status run_embeddings(const struct bc_forward *f, struct bitconv_session *file,
                                          struct bitconv_session *source, struct measuring *m,
                                          struct bitconv_error *err)
{
    const size_t n = f->hp.n_embd * (f->hp.pooling == 0 ? f->n_tokens : 1);
    float *a = bc_alloc_array(n, sizeof *a), *b = bc_alloc_array(n, sizeof *b);
    enum bitconv_status status =
        a != NULL && b != NULL ? BITCONV_OK : bc_fail_nomem(err, "embeddings");
    if (status == BITCONV_OK)
        status = bitconv_session_embed(file, f->tokens, f->n_tokens, f->hp.pooling, 2, a, err);
    if (status == BITCONV_OK)
        status = bitconv_session_embed(source, f->tokens, f->n_tokens, f->hp.pooling, 2, b, err);
    if (status == BITCONV_OK) add_values(m, a, b, n);
    bc_free(a);
    bc_free(b);
    return status;
}

static enum bitconv_status run_both(struct bc_verifier *v, struct bc_forward *f,
                                    struct bitconv_engine *source, struct measuring *m,
                                    struct bitconv_error *err)
{
    struct bitconv_session *a = NULL, *b = NULL;
    f->file->mode = source->mode = BC_MODE_FLOAT;
    enum bitconv_status status = bitconv_session_new(f->file, &a, err);
    if (status == BITCONV_OK) status = bitconv_session_new(source, &b, err);
    if (status == BITCONV_OK && f->hp.pooling >= 0)
        status = run_embeddings(f, a, b, m, err);
    else if (status == BITCONV_OK)
        status = run_logits(v, f, a, b, m, err);
    bitconv_session_free(a);
    bitconv_session_free(b);
    return status;
}

/* ---- the proof ---- */

static void store(struct bc_verifier *v, const struct bc_forward *f, const struct measuring *m)
{
    struct bitconv_distance *out = &v->result->distance;
    out->measured = true;
    out->embedding = f->hp.pooling >= 0;
    out->n_tokens = f->n_tokens;
    out->max_difference = m->max;
    out->cosine = m->dot / sqrt(m->file2 * m->source2);
    out->divergence = m->kl;
    out->n_top1 = m->n_rows;
    out->n_same_top1 = m->same_top;
}

static void judge(struct bc_verifier *v, const struct bc_forward *f, struct bitconv_proof *proof)
{
    const struct bitconv_distance *d = &v->result->distance;
    struct bc_buf text = {0};
    const bool judged = v->options->has_tolerance;
    bc_buf_printf(&text, "%s, against the checkpoint as stored in float32: %s differ by at most %g",
                  f->what, d->embedding ? "embeddings (unit length)" : "logits", d->max_difference);
    bc_buf_printf(&text, ", cosine %.9g", d->cosine);
    if (!d->embedding)
        bc_buf_printf(&text,
                      ", divergence of the last token's distribution %.6g nats, the same first "
                      "choice for %" PRIu64 " of %" PRIu64 " tokens",
                      d->divergence, d->n_same_top1, d->n_top1);
    proof->checked = d->n_tokens;
    if (!isfinite(d->max_difference) || (judged && d->max_difference > v->options->tolerance))
        bc_problem(v, proof, BC_NO_TENSOR, "%s; the tolerance is %g", bc_buf_str(&text),
                   judged ? v->options->tolerance : INFINITY);
    else if (judged)
        bc_conclude(v, proof, "%s; within the tolerance of %g", bc_buf_str(&text),
                    v->options->tolerance);
    else
        bc_conclude(v, proof, "%s (measured only: no --tolerance given)", bc_buf_str(&text));
    bc_buf_release(&text);
}

/* Why it cannot be measured; NULL: it can. */
static const char *obstacle(const struct bc_verifier *v)
{
    if (!v->options->forward) return "no --forward given";
    if (v->source == NULL) return "no --source DIR given";
    if (v->forward == NULL || v->forward->file == NULL) return "the file cannot be run";
    const struct bc_hparams *a = &v->forward->hp, *b = &v->source->model->hp;
    if (a->n_vocab != b->n_vocab || a->n_embd != b->n_embd ||
        (a->pooling >= 0) != (b->pooling >= 0) || a->causal != b->causal)
        return "the checkpoint computes something of another shape";
    return NULL;
}

enum bitconv_status bc_prove_unquantized(struct bc_verifier *v, struct bitconv_proof *proof,
                                         struct bitconv_error *err)
{
    const char *why_not = obstacle(v);
    struct bc_forward *f = v->forward;
    struct bitconv_error why = {.status = BITCONV_OK};
    struct measuring m = {.max = 0};
    struct bitconv_engine *source = NULL;
    if (why_not != NULL) {
        bc_not_run(v, proof, "%s", why_not);
        return BITCONV_OK;
    }
    const struct bitconv_engine_options options = {.cpu = v->options->cpu,
                                                   .n_ctx = (uint32_t)f->n_tokens};
    enum bitconv_status status =
        bc_engine_open_model(v->source->model, &v->source->weight_options, bc_carry_as_stored, NULL,
                             v->pool, &options, NULL, &source, &why);
    if (status == BITCONV_OK) status = run_both(v, f, source, &m, &why);
    bitconv_engine_close(source);
    if (status != BITCONV_OK) return bc_forward_failed(v, proof, &why, err);
    store(v, f, &m);
    judge(v, f, proof);
    return BITCONV_OK;
}
