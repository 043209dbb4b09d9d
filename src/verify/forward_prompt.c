/* SPDX-License-Identifier: MIT
 * Which tokens a forward proof runs. */
#include <inttypes.h>
#include <string.h>

#include "bitconv/tokenize.h"
#include "verify/forward.h"

static const char default_text[] =
    "Ternary weights are -1, 0 or +1: a product with them needs additions only, 2 bits each.";

enum {
    FIXED_IDS = 16,      /* where there is no tokenizer */
    BEHIND_WINDOW = 8,   /* so many tokens more than a sliding window */
    LONGEST_CHOSEN = 640 /* of tokens that nobody asked for: beyond windows of 512 */
};

/* ---- where ids come from ---- */

static enum bitconv_status copy_ids(struct bc_forward *f, const struct bitconv_ids *ids,
                                    struct bitconv_error *err)
{
    f->tokens = bc_arena_alloc(&f->arena, ids->n, sizeof *f->tokens);
    if (f->tokens == NULL) return bc_fail_nomem(err, "tokens");
    for (size_t i = 0; i < ids->n; i++)
        f->tokens[i] = (int32_t)ids->ids[i];
    f->n_tokens = ids->n;
    return BITCONV_OK;
}

/* Encodes a text with the file's own tokenizer. */
static enum bitconv_status encode(const struct bc_verifier *v, struct bc_forward *f,
                                  const char *text, struct bitconv_error *err)
{
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_ids ids = {0};
    BC_TRY(bitconv_tokenizer_open_gguf(v->container.gguf, v->sink, &tok, err));
    enum bitconv_status status = bitconv_tokenizer_encode(tok, text, strlen(text), true, &ids, err);
    if (status == BITCONV_OK) status = copy_ids(f, &ids, err);
    bitconv_ids_release(&ids);
    bitconv_tokenizer_close(tok);
    return status;
}

/* The first id that has no row in the embedding; n_tokens when there is none. */
static size_t first_outside(const struct bc_forward *f)
{
    size_t i = 0;
    while (i < f->n_tokens && f->tokens[i] >= 0 && (uint32_t)f->tokens[i] < f->hp.n_vocab)
        i++;
    return i;
}

static enum bitconv_status fixed_ids(struct bc_forward *f, struct bitconv_error *err)
{
    f->tokens = bc_arena_alloc(&f->arena, FIXED_IDS, sizeof *f->tokens);
    if (f->tokens == NULL) return bc_fail_nomem(err, "tokens");
    for (uint32_t i = 0; i < FIXED_IDS; i++)
        f->tokens[i] = f->hp.n_vocab > 0 ? (int32_t)((i * 37 + i * i * 11 + 5) % f->hp.n_vocab) : 0;
    f->n_tokens = FIXED_IDS;
    return BITCONV_OK;
}

/* The default text, or fixed ids where the file's tokenizer cannot encode it. */
static enum bitconv_status default_tokens(const struct bc_verifier *v, struct bc_forward *f,
                                          const char **of, struct bitconv_error *err)
{
    struct bitconv_error why = {.status = BITCONV_OK};
    *of = " of the default text";
    const enum bitconv_status status = encode(v, f, default_text, &why);
    if (status == BITCONV_E_NOMEM) return bc_fail_nomem(err, "the tokenizer");
    if (status == BITCONV_OK && f->n_tokens > 0 && first_outside(f) == f->n_tokens)
        return BITCONV_OK;
    bc_say(v->sink, BITCONV_NOTE, "no text is run but fixed token ids: %s",
           status != BITCONV_OK ? why.text : "the tokenizer's ids do not fit the embedding");
    *of = " (fixed ids)";
    return fixed_ids(f, err);
}

/* ---- sliding windows ---- */

static uint32_t window_of(const struct bc_hparams *hp)
{
    bool local = false;
    for (uint32_t i = 0; i < hp->n_layers && hp->layer_is_local != NULL; i++)
        local = local || hp->layer_is_local[i];
    return local ? hp->sliding_window : 0;
}

/* Repeats the tokens until there are `n`. */
static enum bitconv_status repeat(struct bc_forward *f, size_t n, struct bitconv_error *err)
{
    int32_t *tokens = bc_arena_alloc(&f->arena, n, sizeof *tokens);
    if (tokens == NULL) return bc_fail_nomem(err, "tokens");
    for (size_t i = 0; i < n; i++)
        tokens[i] = f->tokens[i % f->n_tokens];
    f->tokens = tokens;
    f->n_tokens = n;
    return BITCONV_OK;
}

/* What nobody has chosen is cut where the model has no more positions, and made longer than windows.
 * A window shows only in texts that are longer; the windows of the file and of the checkpoint may
 * differ, so both are looked at. */
static enum bitconv_status fit_length(const struct bc_verifier *v, struct bc_forward *f,
                                      bool chosen, struct bitconv_error *err)
{
    const struct bc_hparams *source =
        v->source != NULL && v->source->model != NULL ? &v->source->model->hp : &f->hp;
    const struct bc_hparams *both[] = {&f->hp, source};
    const uint32_t n_ctx = f->hp.n_ctx < source->n_ctx ? f->hp.n_ctx : source->n_ctx;
    if (chosen && f->n_tokens > source->n_ctx)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: %zu tokens to run, the model has positions for %" PRIu32, v->path,
                       f->n_tokens, source->n_ctx);
    if (!chosen && f->n_tokens > n_ctx && n_ctx > 0) f->n_tokens = n_ctx;
    for (size_t i = 0; i < 2; i++) {
        const uint32_t window = window_of(both[i]);
        if (window == 0 || window >= n_ctx || window < f->n_tokens) continue;
        if (chosen || window > LONGEST_CHOSEN - BEHIND_WINDOW) {
            f->unseen_window = window;
            continue;
        }
        const size_t wanted = (size_t)window + BEHIND_WINDOW;
        BC_TRY(repeat(f, wanted < n_ctx ? wanted : n_ctx, err));
    }
    return BITCONV_OK;
}

/* ---- the whole ---- */

static enum bitconv_status check_tokens(const struct bc_verifier *v, const struct bc_forward *f,
                                        struct bitconv_error *err)
{
    const size_t outside = first_outside(f);
    if (f->n_tokens == 0)
        return bc_fail(err, BITCONV_E_ARG, "%s: the text to run has no tokens", v->path);
    if (outside < f->n_tokens)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: token %zu to run is %" PRId32 ", the file's embedding has rows 0 to "
                       "%" PRIu32,
                       v->path, outside, f->tokens[outside], f->hp.n_vocab - 1);
    if (f->n_tokens > UINT32_MAX)
        return bc_fail(err, BITCONV_E_LIMIT, "%s: %zu tokens are too many", v->path, f->n_tokens);
    return BITCONV_OK;
}

enum bitconv_status bc_forward_prompt(struct bc_verifier *v, struct bc_forward *f,
                                      struct bitconv_error *err)
{
    const struct bitconv_verify_options *o = v->options;
    const char *of = "";
    if (o->tokens != NULL) {
        f->tokens = bc_arena_alloc(&f->arena, o->n_tokens, sizeof *f->tokens);
        if (f->tokens == NULL) return bc_fail_nomem(err, "tokens");
        memcpy(f->tokens, o->tokens, o->n_tokens * sizeof *f->tokens);
        f->n_tokens = o->n_tokens;
        of = " given";
    } else if (o->prompt != NULL) {
        BC_TRY(encode(v, f, o->prompt, err));
        of = " of the prompt";
    } else {
        BC_TRY(default_tokens(v, f, &of, err));
    }
    BC_TRY(check_tokens(v, f, err));
    BC_TRY(fit_length(v, f, o->tokens != NULL || o->prompt != NULL, err));
    f->what =
        bc_arena_printf(&f->arena, "%zu token%s%s", f->n_tokens, f->n_tokens == 1 ? "" : "s", of);
    return f->what != NULL ? BITCONV_OK : bc_fail_nomem(err, "tokens");
}
