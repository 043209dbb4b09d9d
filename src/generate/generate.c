/* SPDX-License-Identifier: MIT
 * The loop: run the prompt, choose a token, run it, and so on. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "bitconv/generate.h"
#include "engine/session.h"
#include "generate/text_stream.h"

enum { PROMPT_STEP = 128 }; /* tokens of a prompt between two looks at the cancel flag */

struct generating {
    struct bitconv_session *session;
    const struct bitconv_generate_options *o;
    const struct bitconv_sink *sink;
    struct bitconv_sampler *sampler;
    struct bc_text_stream stream;
    struct bc_buf text;
    struct bitconv_ids all; /* prompt and what was chosen */
    size_t n_prompt;
    float *logits; /* n_vocab: what the sampler sees */
    bool *padding; /* by id: never chosen */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *bitconv_stop_name(enum bitconv_stop stop)
{
    static const char *const names[] = {"length", "stop", "context"};
    return names[stop];
}

static enum bitconv_status run_token(struct bitconv_session *session, uint32_t token,
                                     struct bitconv_run *run, struct bitconv_error *err)
{
    const int32_t id = (int32_t)token;
    return bitconv_session_run(session, &id, 1, run, err);
}

/* The prompt in steps, so that it can be interrupted; results are those of one run. */
static enum bitconv_status run_prompt(struct generating *g, struct bitconv_run *run,
                                      struct bitconv_error *err)
{
    int32_t step[PROMPT_STEP];
    bitconv_session_reset(g->session);
    for (size_t at = 0; at < g->n_prompt;) {
        size_t n = g->n_prompt - at < PROMPT_STEP ? g->n_prompt - at : PROMPT_STEP;
        for (size_t i = 0; i < n; i++)
            step[i] = g->all.ids[at + i] > INT32_MAX ? -1 : (int32_t)g->all.ids[at + i];
        at += n;
        run->want_logits = at == g->n_prompt ? BITCONV_LOGITS_LAST : BITCONV_LOGITS_NONE;
        BC_TRY(bitconv_session_run(g->session, step, n, run, err));
        if (bc_canceled(g->sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
    }
    return BITCONV_OK;
}

/* Gives out what has become complete. */
static enum bitconv_status emit(struct generating *g, bool last, struct bitconv_error *err)
{
    const char *text;
    size_t len;
    BC_TRY(bc_text_stream_next(&g->stream, g->all.ids, g->all.n, last, &text, &len, err));
    if (len == 0) return BITCONV_OK;
    bc_buf_append(&g->text, text, len);
    if (g->text.failed) return bc_fail_nomem(err, "text");
    return g->o->on_text != NULL ? g->o->on_text(g->o->user, text, len, err) : BITCONV_OK;
}

static bool is_stop(const struct bitconv_generate_options *o, uint32_t token)
{
    for (size_t i = 0; i < o->n_stop_ids; i++)
        if (o->stop_ids[i] == token) return true;
    return false;
}

static enum bitconv_status append(struct generating *g, uint32_t token, struct bitconv_error *err)
{
    if (!bc_grow((void **)&g->all.ids, &g->all.cap, g->all.n, sizeof *g->all.ids))
        return bc_fail_nomem(err, "token ids");
    g->all.ids[g->all.n++] = token;
    return BITCONV_OK;
}

/* Rows of the embedding that no token has: the tokenizer does not know them, or a converter made up
 * names for them. */
static bool is_padding(const struct bitconv_tokenizer *tok, uint32_t id)
{
    char made_up[24];
    const char *const piece = bitconv_tokenizer_piece(tok, id, NULL);
    if (piece == NULL) return true;
    if (piece[0] != '[') return false;
    snprintf(made_up, sizeof made_up, "[PAD%" PRIu32 "]", id);
    return strcmp(piece, made_up) == 0;
}

static uint32_t choose(struct generating *g, const float *logits)
{
    const uint32_t n = g->session->engine->graph->hp.n_vocab;
    for (uint32_t i = 0; i < n; i++)
        g->logits[i] = g->padding[i] ? NAN : logits[i];
    return bitconv_sampler_next(g->sampler, g->logits);
}

/* Chooses and runs tokens until something ends it; `run` has the logits behind the prompt. */
static enum bitconv_status go_on(struct generating *g, struct bitconv_run *run,
                                 enum bitconv_stop *stop, struct bitconv_error *err)
{
    *stop = BITCONV_STOP_LENGTH;
    while (g->all.n - g->n_prompt < g->o->n_predict) {
        const uint32_t token = choose(g, run->logits);
        if (is_stop(g->o, token)) {
            *stop = BITCONV_STOP_TOKEN;
            return BITCONV_OK;
        }
        BC_TRY(append(g, token, err));
        BC_TRY(emit(g, false, err));
        if (bc_canceled(g->sink)) return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
        if (g->all.n - g->n_prompt == g->o->n_predict) return BITCONV_OK;
        if (bitconv_session_length(g->session) == g->session->engine->n_ctx) {
            *stop = BITCONV_STOP_CONTEXT;
            return BITCONV_OK;
        }
        BC_TRY(run_token(g->session, token, run, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status prepare(struct generating *g, const struct bitconv_tokenizer *tok,
                                   const uint32_t *prompt, struct bitconv_error *err)
{
    const struct bitconv_engine *e = g->session->engine;
    if (!e->graph->hp.causal)
        return bc_fail(
            err, BITCONV_E_ARG,
            "%s: a model that attends in both directions gives embeddings, no next tokens",
            e->provider->path);
    if (g->n_prompt > e->n_ctx)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: a prompt of %zu tokens does not fit into a context of %" PRIu32
                       " (the model states %" PRIu32 ")",
                       e->provider->path, g->n_prompt, e->n_ctx, e->graph->hp.n_ctx);
    if (g->n_prompt == 0)
        return bc_fail(err, BITCONV_E_ARG, "%s: the prompt has no tokens, and there is no bos",
                       e->provider->path);
    BC_TRY(bitconv_sampler_new(&g->o->sampling, e->graph->hp.n_vocab, &g->sampler, err));
    for (size_t i = 0; i < g->n_prompt; i++)
        BC_TRY(append(g, prompt[i], err));
    const uint32_t n_vocab = e->graph->hp.n_vocab;
    g->logits = bc_alloc_array(n_vocab, sizeof *g->logits);
    g->padding = bc_alloc_array(n_vocab, sizeof *g->padding);
    if (g->logits == NULL || g->padding == NULL) return bc_fail_nomem(err, "logits");
    for (uint32_t i = 0; i < n_vocab; i++)
        g->padding[i] = is_padding(tok, i);
    g->stream = (struct bc_text_stream){.tok = tok, .skip_special = !g->o->show_special};
    return bc_text_stream_start(&g->stream, g->all.ids, g->n_prompt, err);
}

static enum bitconv_status generate(struct generating *g, struct bitconv_generation *out,
                                    struct bitconv_error *err)
{
    struct bitconv_run run = {.want_logits = BITCONV_LOGITS_LAST};
    const double start = now();
    BC_TRY(run_prompt(g, &run, err));
    const double middle = now();
    out->prompt_seconds = middle - start;
    const enum bitconv_status status = go_on(g, &run, &out->stop, err);
    out->generate_seconds = now() - middle;
    const enum bitconv_status rest = emit(g, true, status == BITCONV_OK ? err : NULL);
    return status != BITCONV_OK ? status : rest;
}

/* What was chosen and said, also before a failure. */
static enum bitconv_status hand_over(struct generating *g, struct bitconv_generation *out,
                                     struct bitconv_error *err)
{
    const size_t n = g->all.n > g->n_prompt ? g->all.n - g->n_prompt : 0;
    out->tokens.ids = bc_alloc_array(n, sizeof *out->tokens.ids);
    if (out->tokens.ids == NULL) return bc_fail_nomem(err, "token ids");
    if (n > 0) memcpy(out->tokens.ids, g->all.ids + g->n_prompt, n * sizeof *g->all.ids);
    out->tokens.n = out->tokens.cap = n;
    out->text.data = (char *)g->text.data;
    out->text.size = g->text.size;
    g->text = (struct bc_buf){0};
    return BITCONV_OK;
}

enum bitconv_status bitconv_generate(struct bitconv_session *session,
                                     const struct bitconv_tokenizer *tok, const uint32_t *prompt,
                                     size_t n_prompt,
                                     const struct bitconv_generate_options *options,
                                     const struct bitconv_sink *sink,
                                     struct bitconv_generation *out, struct bitconv_error *err)
{
    struct generating g = {.session = session, .o = options, .sink = sink, .n_prompt = n_prompt};
    *out = (struct bitconv_generation){.stop = BITCONV_STOP_LENGTH};
    enum bitconv_status status = prepare(&g, tok, prompt, err);
    if (status == BITCONV_OK) status = generate(&g, out, err);
    const enum bitconv_status handed = hand_over(&g, out, status == BITCONV_OK ? err : NULL);
    bitconv_sampler_free(g.sampler);
    bc_text_stream_release(&g.stream);
    bc_buf_release(&g.text);
    bitconv_ids_release(&g.all);
    bc_free(g.logits);
    bc_free(g.padding);
    return status != BITCONV_OK ? status : handed;
}

void bitconv_generation_release(struct bitconv_generation *generation)
{
    bitconv_ids_release(&generation->tokens);
    bitconv_text_release(&generation->text);
}
