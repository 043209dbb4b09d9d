/* SPDX-License-Identifier: MIT
 * How `bitconv sparse` shows its reports. */
#include "sparse_view.h"

#include <inttypes.h>

#include "base/json.h"

/* ---- tables ---- */

static void put_layer(const struct bitconv_sparse_layer *l, bool explained, struct bc_buf *out)
{
    bc_buf_printf(out, "  %9.1f%%  %7.1f%%  %7.1f%%  %12.6f", 100 * (1 - l->sparsity),
                  100 * l->recall, 100 * l->mass, l->error);
    if (explained) bc_buf_printf(out, "  %9.1f%%", 100 * l->explained);
    bc_buf_putc(out, '\n');
}

static void put_quality(const struct ui *ui, const struct bitconv_sparse_report *r,
                        const struct bitconv_sparse_quality *q, const char *title, bool explained,
                        struct bc_buf *out)
{
    bc_buf_printf(out, "%s%s, %" PRIu64 " tokens%s\n", ui_on(ui, UI_BOLD), title, q->n_tokens,
                  ui_off(ui));
    bc_buf_printf(out, "%s%5s  %10s  %8s  %8s  %12s%s%s\n", ui_on(ui, UI_DIM), "layer", "computed",
                  "recall", "mass", "output error", explained ? "   explained" : "", ui_off(ui));
    for (uint32_t i = 0; i < r->n_layers; i++) {
        bc_buf_printf(out, "%5" PRIu32, i);
        put_layer(&q->layers[i], explained, out);
    }
    bc_buf_printf(out, "%5s", "all");
    put_layer(&q->total, explained, out);
    bc_buf_printf(out, "hidden states: error %.6f, cosine %.6f\n", q->hidden_error, q->cosine);
    if (q->has_logits)
        bc_buf_printf(out, "logits: error %.6f, same next token %.1f%%\n", q->logits_error,
                      100 * q->top1);
}

static double rate(uint64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static double ratio_of(const struct bitconv_sparse_speed *s)
{
    return s->sparse_seconds > 0 ? s->dense_seconds / s->sparse_seconds : 0;
}

void sparse_table(const struct ui *ui, const struct bitconv_sparse_report *r, struct bc_buf *out)
{
    const struct bitconv_sparse_speed *s = &r->speed;
    bc_buf_printf(out, "rank %" PRIu32 ", fitted to %" PRIu64 " tokens; ", r->rank, r->n_samples);
    if (r->by_threshold)
        bc_buf_printf(out, "neurons with scores from %g on\n", r->threshold);
    else
        bc_buf_printf(out, "%" PRIu32 " of %" PRIu32 " neurons\n", r->top_k, r->n_ff);
    if (r->samples != NULL) put_quality(ui, r, r->samples, "calibration texts", true, out);
    if (r->held_out != NULL)
        put_quality(ui, r, r->held_out, r->samples != NULL ? "held-out texts" : "this text", false,
                    out);
    bc_buf_printf(out,
                  "speed: dense %.1f, sparse %.1f tokens/s: ratio %.2f (%" PRIu64
                  " tokens one by one)\n",
                  rate(s->n_tokens, s->dense_seconds), rate(s->n_tokens, s->sparse_seconds),
                  ratio_of(s), s->n_tokens);
}

/* ---- JSON ---- */

static void json_layer(struct bc_jw *w, const struct bitconv_sparse_layer *l, bool explained)
{
    bc_jw_begin_object(w);
    bc_jw_key_f64(w, "recall", l->recall);
    bc_jw_key_f64(w, "mass", l->mass);
    bc_jw_key_f64(w, "sparsity", l->sparsity);
    bc_jw_key_f64(w, "output_error", l->error);
    if (explained) bc_jw_key_f64(w, "explained", l->explained);
    bc_jw_end_object(w);
}

static void json_quality(struct bc_jw *w, const char *key, const struct bitconv_sparse_report *r,
                         const struct bitconv_sparse_quality *q, bool explained)
{
    bc_jw_key(w, key);
    if (q == NULL) {
        bc_jw_null(w);
        return;
    }
    bc_jw_begin_object(w);
    bc_jw_key_u64(w, "n_tokens", q->n_tokens);
    bc_jw_key(w, "total");
    json_layer(w, &q->total, explained);
    bc_jw_key_f64(w, "hidden_error", q->hidden_error);
    bc_jw_key_f64(w, "cosine", q->cosine);
    bc_jw_key_known_f64(w, "logits_error", q->has_logits, q->logits_error);
    bc_jw_key_known_f64(w, "top1_agreement", q->has_logits, q->top1);
    bc_jw_key(w, "by_layer");
    bc_jw_begin_array(w);
    for (uint32_t i = 0; i < r->n_layers; i++)
        json_layer(w, &q->layers[i], explained);
    bc_jw_end_array(w);
    bc_jw_end_object(w);
}

static void json_predictor(struct bc_jw *w, const struct bitconv_sparse_report *r)
{
    bc_jw_key_string(w, "family", r->family);
    bc_jw_key_string(w, "fingerprint", r->fingerprint);
    bc_jw_key_string(w, "mode", r->mode);
    bc_jw_key_u64(w, "layers", r->n_layers);
    bc_jw_key_u64(w, "hidden_size", r->n_embd);
    bc_jw_key_u64(w, "intermediate_size", r->n_ff);
    bc_jw_key_u64(w, "rank", r->rank);
    bc_jw_key_string(w, "rule", r->by_threshold ? "threshold" : "top_k");
    bc_jw_key_count(w, "top_k", r->by_threshold ? 0 : r->top_k);
    bc_jw_key_known_f64(w, "threshold", r->by_threshold, r->threshold);
    bc_jw_key_f64(w, "ridge", r->ridge);
    bc_jw_key_u64(w, "samples", r->n_samples);
}

static void json_text(struct bc_jw *w, const struct bitconv_sparse_report *r, const char *text,
                      size_t n)
{
    bc_jw_key(w, "text");
    if (text != NULL)
        bc_jw_string_n(w, text, n);
    else
        bc_jw_null(w);
    bc_jw_key(w, "tokens");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < r->n_generated; i++)
        bc_jw_i64(w, r->generated[i]);
    bc_jw_end_array(w);
    bc_jw_key(w, "embedding");
    if (r->embedding == NULL) {
        bc_jw_null(w);
        return;
    }
    bc_jw_begin_array(w);
    for (uint32_t i = 0; i < r->n_embd; i++)
        bc_jw_f32(w, r->embedding[i]);
    bc_jw_end_array(w);
}

static void json_speed(struct bc_jw *w, const struct bitconv_sparse_speed *s)
{
    bc_jw_key(w, "speed");
    bc_jw_begin_object(w);
    bc_jw_key_u64(w, "n_tokens", s->n_tokens);
    bc_jw_key_f64(w, "dense_tokens_per_second", rate(s->n_tokens, s->dense_seconds));
    bc_jw_key_f64(w, "sparse_tokens_per_second", rate(s->n_tokens, s->sparse_seconds));
    bc_jw_key_f64(w, "ratio", ratio_of(s));
    bc_jw_end_object(w);
}

void sparse_json(const struct bitconv_sparse_report *r, const char *output, const char *text,
                 size_t n, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    if (output != NULL) bc_jw_key_string(&w, "output", output);
    json_predictor(&w, r);
    if (output != NULL) {
        json_quality(&w, "calibration", r, r->samples, true);
    } else {
        json_text(&w, r, text, n);
    }
    json_quality(&w, output != NULL ? "held_out" : "quality", r, r->held_out, false);
    json_speed(&w, &r->speed);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
