/* SPDX-License-Identifier: MIT
 * Rates of models: prompts and generation, in turns with the read bandwidth that bounds the latter. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "bench/read_bandwidth.h"
#include "bitconv/bench.h"
#include "bitconv/engine.h"

enum { DEFAULT_REPETITIONS = 3, MAX_REPETITIONS = 1000, MAX_TOKENS = 1 << 20, WARM_UP = 4 };

static const unsigned default_prompts[] = {128, 512};
static const unsigned default_generates[] = {32};
static const unsigned default_threads[] = {0};

/* A model that is open with one number of threads. */
struct subject {
    struct bitconv_engine *engine;
    struct bitconv_session *session;
    struct bitconv_engine_info info;
};

struct bench {
    struct bitconv_bench_models_options o; /* defaults filled in */
    const struct bitconv_sink *sink;
    struct bitconv_model_bench *out;
    struct bc_read_buffer buffer;
    struct subject *subjects; /* one per path */
    int32_t *tokens;          /* n_longest of them */
    unsigned n_longest;
    double *samples; /* [rate or bandwidth of the threads at work][repetition] */
    uint64_t done, total;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct bitconv_measured summarise(const double *samples, unsigned n)
{
    struct bitconv_measured m = {.best = 0};
    double squares = 0;
    for (unsigned i = 0; i < n; i++) {
        m.mean += samples[i] / n;
        if (samples[i] > m.best) m.best = samples[i];
    }
    for (unsigned i = 0; i < n; i++)
        squares += (samples[i] - m.mean) * (samples[i] - m.mean);
    m.deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
    return m;
}

/* ---- what is measured ---- */

static size_t n_tests(const struct bench *b)
{
    return b->o.n_prompts + b->o.n_generates;
}

static bool test_is_prompt(const struct bench *b, size_t test)
{
    return test < b->o.n_prompts;
}

static unsigned test_tokens(const struct bench *b, size_t test)
{
    return test_is_prompt(b, test) ? b->o.prompts[test] : b->o.generates[test - b->o.n_prompts];
}

/* Any tokens: the time does not depend on which. */
static enum bitconv_status make_tokens(struct bench *b, struct bitconv_error *err)
{
    b->n_longest = WARM_UP;
    for (size_t i = 0; i < n_tests(b); i++)
        if (test_tokens(b, i) > b->n_longest) b->n_longest = test_tokens(b, i);
    if (b->n_longest > MAX_TOKENS)
        return bc_fail(err, BITCONV_E_ARG, "%u tokens were asked for, at most %d are measured",
                       b->n_longest, MAX_TOKENS);
    b->tokens = bc_alloc_array(b->n_longest, sizeof *b->tokens);
    return b->tokens != NULL ? BITCONV_OK : bc_fail_nomem(err, "tokens");
}

/* `n` tokens at once, or one by one; with the logits of the last of each run. */
static enum bitconv_status run_tokens(struct bench *b, const struct subject *s, unsigned n,
                                      bool at_once, struct bitconv_error *err)
{
    struct bitconv_run run = {.want_logits =
                                  s->info.causal ? BITCONV_LOGITS_LAST : BITCONV_LOGITS_NONE,
                              .want_hidden = !s->info.causal};
    const unsigned step = at_once ? n : 1;
    bitconv_session_reset(s->session);
    for (unsigned i = 0; i < n; i++)
        b->tokens[i] = (int32_t)((uint64_t)i * 7919 % s->info.n_vocab);
    for (unsigned at = 0; at < n; at += step) {
        BC_TRY(bitconv_session_run(s->session, b->tokens + at, step, &run, err));
        if (bc_canceled(b->sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
    }
    return BITCONV_OK;
}

/* ---- one number of threads ---- */

static enum bitconv_status open_subjects(struct bench *b, unsigned n_threads,
                                         struct bitconv_error *err)
{
    const struct bitconv_engine_options options = {.n_threads = n_threads,
                                                   .cpu = b->o.cpu,
                                                   .mode = b->o.mode != NULL ? b->o.mode : "int8",
                                                   .n_ctx = b->n_longest};
    for (size_t i = 0; i < b->o.n_paths; i++) {
        struct subject *s = &b->subjects[i];
        BC_TRY(bitconv_engine_open(b->o.paths[i], &options, b->sink, &s->engine, err));
        bitconv_engine_info(s->engine, &s->info);
        BC_TRY(bitconv_session_new(s->engine, &s->session, err));
        BC_TRY(run_tokens(b, s, WARM_UP, true, err));
        b->out->cpu = s->info.cpu;
        b->out->models[i] = (struct bitconv_benched_model){b->o.paths[i], s->info.family,
                                                           s->info.mode, s->info.weight_bytes};
    }
    return BITCONV_OK;
}

static void close_subjects(struct bench *b)
{
    for (size_t i = 0; b->subjects != NULL && i < b->o.n_paths; i++) {
        bitconv_session_free(b->subjects[i].session);
        bitconv_engine_close(b->subjects[i].engine);
        b->subjects[i] = (struct subject){.engine = NULL};
    }
}

/* Generation of a model that needs the whole text at once cannot be measured. */
static bool is_measured(const struct bench *b, const struct subject *s, size_t test)
{
    return test_tokens(b, test) > 0 && (s->info.causal || test_is_prompt(b, test));
}

static enum bitconv_status repeat(struct bench *b, unsigned r, struct bc_pool *pool,
                                  struct bitconv_error *err)
{
    const size_t n = n_tests(b);
    b->samples[r] = bc_read_bandwidth(&b->buffer, pool);
    for (size_t m = 0; m < b->o.n_paths; m++) {
        for (size_t test = 0; test < n; test++) {
            bc_progress(b->sink, "measuring", b->done++, b->total);
            if (!is_measured(b, &b->subjects[m], test)) continue;
            const double start = now();
            BC_TRY(
                run_tokens(b, &b->subjects[m], test_tokens(b, test), test_is_prompt(b, test), err));
            const double seconds = now() - start;
            b->samples[(1 + m * n + test) * b->o.repetitions + r] =
                seconds > 0 ? test_tokens(b, test) / seconds : 0;
        }
    }
    return BITCONV_OK;
}

static void keep_rates(struct bench *b, size_t threads)
{
    const size_t n = n_tests(b);
    const struct bitconv_measured bandwidth = summarise(b->samples, b->o.repetitions);
    b->out->bandwidths[threads].bytes_per_second = bandwidth;
    for (size_t m = 0; m < b->o.n_paths; m++) {
        const uint64_t bytes = b->out->models[m].weight_bytes;
        for (size_t test = 0; test < n; test++) {
            if (!is_measured(b, &b->subjects[m], test)) continue;
            struct bitconv_model_rate *rate = &b->out->rates[b->out->n_rates++];
            *rate = (struct bitconv_model_rate){
                .model = m,
                .threads = threads,
                .is_prompt = test_is_prompt(b, test),
                .n_tokens = test_tokens(b, test),
                .rate = summarise(b->samples + (1 + m * n + test) * b->o.repetitions,
                                  b->o.repetitions)};
            if (!rate->is_prompt && bandwidth.mean > 0)
                rate->bound_share = rate->rate.mean * (double)bytes / bandwidth.mean;
        }
    }
}

static enum bitconv_status measure_threads(struct bench *b, size_t threads,
                                           struct bitconv_error *err)
{
    struct bc_pool *pool;
    BC_TRY(bc_pool_new(b->o.threads[threads], &pool, err));
    b->out->bandwidths[threads].n_threads = bc_pool_threads(pool);
    enum bitconv_status status = open_subjects(b, b->o.threads[threads], err);
    for (unsigned r = 0; r < b->o.repetitions && status == BITCONV_OK; r++)
        status = repeat(b, r, pool, err);
    if (status == BITCONV_OK) keep_rates(b, threads);
    close_subjects(b);
    bc_pool_free(pool);
    return status;
}

/* ---- all of it ---- */

static enum bitconv_status fill_in(struct bench *b, const struct bitconv_bench_models_options *o,
                                   struct bitconv_error *err)
{
    b->o = *o;
    if (o->prompts == NULL) {
        b->o.prompts = default_prompts;
        b->o.n_prompts = sizeof default_prompts / sizeof *default_prompts;
    }
    if (o->generates == NULL) {
        b->o.generates = default_generates;
        b->o.n_generates = sizeof default_generates / sizeof *default_generates;
    }
    if (o->threads == NULL) {
        b->o.threads = default_threads;
        b->o.n_threads = sizeof default_threads / sizeof *default_threads;
    }
    if (o->repetitions == 0) b->o.repetitions = DEFAULT_REPETITIONS;
    if (b->o.repetitions > MAX_REPETITIONS)
        return bc_fail(err, BITCONV_E_ARG, "%u repetitions were asked for, at most %d are made",
                       b->o.repetitions, MAX_REPETITIONS);
    if (o->n_paths == 0 || b->o.n_threads == 0)
        return bc_fail(err, BITCONV_E_ARG, "no model, or no number of threads to measure");
    return make_tokens(b, err);
}

static enum bitconv_status allocate(struct bench *b, struct bitconv_error *err)
{
    struct bitconv_model_bench *out = b->out;
    const size_t n = n_tests(b) * b->o.n_paths;
    out->repetitions = b->o.repetitions;
    out->n_models = b->o.n_paths;
    out->n_bandwidths = b->o.n_threads;
    out->models = bc_alloc_array(out->n_models, sizeof *out->models);
    out->bandwidths = bc_alloc_array(out->n_bandwidths, sizeof *out->bandwidths);
    out->rates = bc_alloc_array(n * b->o.n_threads, sizeof *out->rates);
    b->subjects = bc_alloc_array(b->o.n_paths, sizeof *b->subjects);
    b->samples = bc_alloc_array((n + 1) * b->o.repetitions, sizeof *b->samples);
    b->total = (uint64_t)n * b->o.n_threads * b->o.repetitions;
    if (out->models == NULL || out->bandwidths == NULL || out->rates == NULL ||
        b->subjects == NULL || b->samples == NULL)
        return bc_fail_nomem(err, "the benchmark");
    return bc_read_buffer_new(&b->buffer, err);
}

enum bitconv_status bitconv_bench_models(const struct bitconv_bench_models_options *options,
                                         const struct bitconv_sink *sink,
                                         struct bitconv_model_bench **out,
                                         struct bitconv_error *err)
{
    struct bench b = {.sink = sink};
    *out = NULL;
    b.out = bc_alloc_array(1, sizeof *b.out);
    if (b.out == NULL) return bc_fail_nomem(err, "the benchmark");
    enum bitconv_status status = fill_in(&b, options, err);
    if (status == BITCONV_OK) status = allocate(&b, err);
    for (size_t t = 0; t < b.o.n_threads && status == BITCONV_OK; t++)
        status = measure_threads(&b, t, err);
    if (status == BITCONV_OK) bc_progress(sink, "measuring", b.total, b.total);
    bc_free(b.subjects);
    bc_free(b.tokens);
    bc_free(b.samples);
    bc_read_buffer_free(&b.buffer);
    if (status == BITCONV_OK)
        *out = b.out;
    else
        bitconv_model_bench_free(b.out);
    return status;
}

void bitconv_model_bench_free(struct bitconv_model_bench *bench)
{
    if (bench == NULL) return;
    bc_free(bench->models);
    bc_free(bench->bandwidths);
    bc_free(bench->rates);
    bc_free(bench);
}
