/* SPDX-License-Identifier: MIT
 * Forward passes for tests. */
#include "support/engine_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "engine/session.h"

void engine_result_free(struct engine_result *r)
{
    free(r->hidden);
    free(r->pre_norm);
    free(r->logits);
    *r = (struct engine_result){0};
}

static void values_equal(const float *a, const float *b, size_t n, size_t width, const char *what,
                         const char *which)
{
    for (size_t i = 0; i < n * width; i++) {
        if (bc_f32_bits(a[i]) == bc_f32_bits(b[i])) continue;
        print_error("%s: %s: token %zu, value %zu: %.9g and %.9g\n", what, which, i / width,
                    i % width, (double)a[i], (double)b[i]);
        fail();
    }
}

void engine_results_equal(const struct engine_result *a, const struct engine_result *b,
                          const char *what)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_embd, b->n_embd);
    assert_int_equal(a->n_vocab, b->n_vocab);
    values_equal(a->pre_norm, b->pre_norm, a->n, a->n_embd, what, "before the final norm");
    values_equal(a->hidden, b->hidden, a->n, a->n_embd, what, "hidden");
    values_equal(a->logits, b->logits, a->n, a->n_vocab, what, "logits");
}

void engine_tokens(int32_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)((i * 37 + i * i * 11 + 5) % 320);
}

static void append(float **to, size_t at, size_t n, size_t width, const float *from)
{
    *to = realloc(*to, (at + n) * width * sizeof **to);
    assert_non_null(*to);
    memcpy(*to + at * width, from, n * width * sizeof **to);
}

void engine_run(struct bitconv_engine *engine, const int32_t *tokens, size_t n, size_t piece,
                struct engine_result *out)
{
    struct bitconv_session *session = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    struct bitconv_engine_info info;
    bitconv_engine_info(engine, &info);
    *out = (struct engine_result){.n = n, .n_embd = info.n_embd, .n_vocab = info.n_vocab};
    assert_int_equal(bitconv_session_new(engine, &session, &err), BITCONV_OK);
    for (size_t at = 0; at < n;) {
        const size_t m = piece == 0 || n - at < piece ? n - at : piece;
        struct bitconv_run run = {
            .want_hidden = true, .want_pre_norm = true, .want_logits = BITCONV_LOGITS_ALL};
        if (bitconv_session_run(session, tokens + at, m, &run, &err) != BITCONV_OK)
            print_error("%s\n", err.text);
        assert_int_equal(err.status, BITCONV_OK);
        append(&out->hidden, at, m, info.n_embd, run.hidden);
        append(&out->pre_norm, at, m, info.n_embd, run.pre_norm);
        append(&out->logits, at, m, info.n_vocab, run.logits);
        at += m;
    }
    bitconv_session_free(session);
}

struct bitconv_engine *engine_of_file(const struct convert_run *r,
                                      const struct bitconv_engine_options *options)
{
    struct bitconv_engine *engine = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    if (bitconv_engine_open(r->out, options, NULL, &engine, &err) != BITCONV_OK)
        print_error("%s\n", err.text);
    assert_non_null(engine);
    return engine;
}

void engine_source_open(const struct convert_run *r, const struct bitconv_engine_options *options,
                        struct engine_source *out)
{
    static const struct bitconv_engine_options defaults = {.n_threads = 1};
    struct bc_model_options model = {.target = strcmp(r->result->target, "bitnet") == 0
                                                   ? BC_TARGET_BITNET
                                                   : BC_TARGET_LLAMA_CPP};
    struct bc_weight_options weights = {.mode = BC_QUANT_AUTO};
    struct bitconv_error err = {.status = BITCONV_OK};
    if (r->options.quant != NULL && strcmp(r->options.quant, "absmean") == 0)
        weights.mode = BC_QUANT_ABSMEAN;
    *out = (struct engine_source){0};
    out->stated = calloc(1, sizeof *out->stated);
    out->carry = calloc(1, sizeof *out->carry);
    assert_true(out->stated != NULL && out->carry != NULL);
    assert_int_equal(bc_stated_read(r->gguf, &out->arena, out->stated, &err), BITCONV_OK);
    assert_int_equal(bc_checkpoint_open(r->model, true, NULL, &out->checkpoint, &err), BITCONV_OK);
    assert_int_equal(bc_model_load(out->checkpoint, &model, NULL, &out->model, &err), BITCONV_OK);
    *out->carry = bc_carry_file_of(r->gguf, out->stated);
    if (bc_engine_open_model(out->model, &weights, bc_carry_as_file, out->carry, NULL,
                             options != NULL ? options : &defaults, NULL, &out->engine,
                             &err) != BITCONV_OK)
        print_error("%s\n", err.text);
    assert_non_null(out->engine);
}

void engine_source_close(struct engine_source *s)
{
    bitconv_engine_close(s->engine);
    bc_model_free(s->model);
    bc_checkpoint_close(s->checkpoint);
    bc_stated_release(s->stated);
    bc_arena_release(&s->arena);
    free(s->stated);
    free(s->carry);
}
