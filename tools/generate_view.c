/* SPDX-License-Identifier: MIT
 * How `bitconv generate` shows texts and logits. */
#include "generate_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "view_text.h"

void generate_put_text(const char *text, size_t len, bool terminal, struct bc_buf *out)
{
    for (size_t at = 0; at < len;) {
        size_t n = 0;
        while (terminal && at + n < len && text[at + n] != '\n' && text[at + n] != '\t')
            n++;
        if (!terminal) n = len;
        if (terminal)
            bc_utf8_mask(out, text + at, n, 0);
        else
            bc_buf_append(out, text, n);
        if (at + n < len) bc_buf_putc(out, text[at + n++]);
        at += n;
    }
}

static double rate(size_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static void put_times(const struct bitconv_ids *prompt, const struct bitconv_generation *g,
                      struct bc_buf *out)
{
    bc_buf_printf(out,
                  ", \"prompt_seconds\": %.6f, \"prompt_tokens_per_second\": %.3f"
                  ", \"seconds\": %.6f, \"tokens_per_second\": %.3f",
                  g->prompt_seconds, rate(prompt->n, g->prompt_seconds), g->generate_seconds,
                  rate(g->tokens.n, g->generate_seconds));
}

void generate_json(const struct model_input *input, const struct bitconv_ids *prompt,
                   const struct bitconv_generation *generation, bool times, struct bc_buf *out)
{
    model_put_input(out, input);
    bc_buf_printf(out, ", \"n_prompt\": %zu, \"generated\": ", prompt->n);
    model_put_string(out, generation->text.data, generation->text.size);
    bc_buf_puts(out, ", \"tokens\": ");
    model_put_ids(out, &generation->tokens);
    bc_buf_printf(out, ", \"stop\": \"%s\"", bitconv_stop_name(generation->stop));
    if (times) put_times(prompt, generation, out);
    bc_buf_putc(out, '}');
}

/* NULL when out of memory. */
static struct bitconv_candidate *best(const struct model_run *run, const float *logits, size_t *n)
{
    struct bitconv_candidate *top;
    if (*n > run->info.n_vocab) *n = run->info.n_vocab;
    top = bc_alloc_array(*n, sizeof *top);
    if (top != NULL) *n = bitconv_top_candidates(logits, run->info.n_vocab, *n, top);
    return top;
}

void generate_logits_table(const struct ui *ui, const struct model_run *run, const float *logits,
                           size_t n_top, struct bc_buf *out)
{
    struct bitconv_candidate *top = best(run, logits, &n_top);
    bc_buf_printf(out, "%s%8s %12s %12s  %s%s\n", ui_on(ui, UI_BOLD), "id", "logit", "probability",
                  "token", ui_off(ui));
    for (size_t i = 0; top != NULL && i < n_top; i++) {
        const char *piece = bitconv_tokenizer_piece(run->tok, top[i].id, NULL);
        bc_buf_printf(out, "%8" PRIu32 " %12.5f %12.6f  ", top[i].id, (double)top[i].logit,
                      top[i].probability);
        if (piece != NULL) bc_utf8_mask(out, piece, strlen(piece), 40);
        bc_buf_putc(out, '\n');
    }
    out->failed = out->failed || top == NULL;
    bc_free(top);
}

static void put_candidate(const struct model_run *run, const struct bitconv_candidate *c,
                          struct bc_buf *out)
{
    const char *piece = bitconv_tokenizer_piece(run->tok, c->id, NULL);
    struct bc_jw w = {.buf = out, .first = true, .after_key = true};
    bc_buf_printf(out, "{\"id\": %" PRIu32 ", \"piece\": ", c->id);
    if (piece != NULL)
        model_put_string(out, piece, strlen(piece));
    else
        bc_buf_puts(out, "null");
    bc_buf_puts(out, ", \"logit\": ");
    bc_jw_f32(&w, c->logit);
    bc_buf_printf(out, ", \"probability\": %.9g}", c->probability);
}

void generate_logits_json(const struct model_run *run, const struct model_input *input,
                          const struct bitconv_ids *prompt, const float *logits, size_t n_top,
                          struct bc_buf *out)
{
    struct bitconv_candidate *top = best(run, logits, &n_top);
    model_put_input(out, input);
    bc_buf_printf(out, ", \"n_prompt\": %zu, \"top\": [", prompt->n);
    for (size_t i = 0; top != NULL && i < n_top; i++) {
        if (i > 0) bc_buf_puts(out, ", ");
        put_candidate(run, &top[i], out);
    }
    bc_buf_puts(out, "], \"logits\": ");
    model_put_floats(out, logits, run->info.n_vocab);
    bc_buf_putc(out, '}');
    out->failed = out->failed || top == NULL;
    bc_free(top);
}
