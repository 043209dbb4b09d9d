/* SPDX-License-Identifier: MIT
 * Renders a verification: every proof by name with its verdict and what it covered. */
#include "verify_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "view_text.h"

enum {
    NAME_WIDTH = 17,   /* "source-metadata" */
    VERDICT_WIDTH = 9, /* "not run" */
    MAX_SHOWN = 25     /* problems and warnings of a report; JSON has all */
};

static const char *verdict_name(enum bitconv_verdict verdict)
{
    switch (verdict) {
    case BITCONV_PASSED:
        return "passed";
    case BITCONV_FAILED:
        return "FAILED";
    case BITCONV_NOT_RUN:
        break;
    }
    return "not run";
}

static enum ui_style verdict_style(enum bitconv_verdict verdict)
{
    if (verdict == BITCONV_PASSED) return UI_GREEN;
    return verdict == BITCONV_FAILED ? UI_RED : UI_DIM;
}

static void show_list(const struct verify_view *view, const struct text_list *list,
                      const char *title, enum ui_style style, struct bc_buf *out)
{
    if (list->n == 0) return;
    bc_buf_printf(out, "\n%s%s%s\n", ui_on(view->ui, UI_BOLD), title, ui_off(view->ui));
    for (size_t i = 0; i < list->n && i < MAX_SHOWN; i++) {
        bc_buf_printf(out, "  %s", ui_on(view->ui, style));
        view_wrap(out, list->items[i], 2, ui_columns());
        bc_buf_printf(out, "%s\n", ui_off(view->ui));
    }
    if (list->n > MAX_SHOWN) bc_buf_printf(out, "  ... and %zu more\n", list->n - MAX_SHOWN);
}

static void put_scale(struct bc_buf *out, const struct bitconv_verified_tensor *t)
{
    bc_buf_printf(out, " zeros %5.1f%%  ", 100.0 * t->zeros);
    if (isnan(t->scale))
        bc_buf_puts(out, "several scales");
    else
        bc_buf_printf(out, "scale %.9g", (double)t->scale);
}

static void show_tensors(const struct verify_view *view, struct bc_buf *out)
{
    bc_buf_printf(out, "\n%stensors%s\n", ui_on(view->ui, UI_BOLD), ui_off(view->ui));
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_verified_tensor *t = &view->it->tensors[i];
        ui_cell(out, t->name, 31, false);
        bc_buf_putc(out, ' ');
        ui_cell(out, t->pack != NULL ? t->pack : t->type, 8, false);
        bc_buf_printf(out, " %-6s", t->ok ? "ok" : "FAILED");
        if (t->pack != NULL) put_scale(out, t);
        bc_buf_printf(out, "\n  xxh3 %s", t->xxh3);
        if (t->fingerprint[0] != '\0') bc_buf_printf(out, "  trits %s", t->fingerprint);
        bc_buf_putc(out, '\n');
    }
}

void verify_text(const struct verify_view *view, struct bc_buf *out)
{
    const struct bitconv_verification *it = view->it;
    const struct globals *globals = view->ui->globals;
    size_t counts[3] = {0};
    ui_cell(out, view->file, 0, false);
    bc_buf_putc(out, '\n');
    for (size_t i = 0; i < it->n_proofs; i++) {
        const struct bitconv_proof *proof = &it->proofs[i];
        counts[proof->verdict]++;
        bc_buf_puts(out, "  ");
        ui_cell(out, proof->name, NAME_WIDTH, false);
        bc_buf_puts(out, ui_on(view->ui, verdict_style(proof->verdict)));
        ui_cell(out, verdict_name(proof->verdict), VERDICT_WIDTH, false);
        bc_buf_puts(out, ui_off(view->ui));
        view_wrap(out, proof->detail, 2 + NAME_WIDTH + VERDICT_WIDTH, ui_columns());
        bc_buf_putc(out, '\n');
    }
    if (globals->verbose) show_tensors(view, out);
    show_list(view, &view->problems, "problems", UI_RED, out);
    if (!globals->quiet) show_list(view, &view->warnings, "warnings", UI_YELLOW, out);
    if (globals->verbose) show_list(view, &view->notes, "notes", UI_DIM, out);
    if (globals->quiet) return;
    bc_buf_printf(out, "\n%s%s%s: %zu proof%s passed, %zu failed, %zu not run\n",
                  ui_on(view->ui, it->ok ? UI_GREEN : UI_RED), it->ok ? "ok" : "FAILED",
                  ui_off(view->ui), counts[BITCONV_PASSED], view_plural(counts[BITCONV_PASSED]),
                  counts[BITCONV_FAILED], counts[BITCONV_NOT_RUN]);
}

/* ---- JSON ---- */

static void write_list(struct bc_jw *w, const char *key, const struct text_list *list)
{
    bc_jw_key(w, key);
    bc_jw_begin_array(w);
    for (size_t i = 0; i < list->n; i++)
        bc_jw_string(w, list->items[i]);
    bc_jw_end_array(w);
}

static void write_proof(struct bc_jw *w, const struct bitconv_proof *proof)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "name", proof->name);
    bc_jw_key(w, "ok");
    if (proof->verdict == BITCONV_NOT_RUN)
        bc_jw_null(w);
    else
        bc_jw_bool(w, proof->verdict == BITCONV_PASSED);
    bc_jw_key_string(w, "verdict", verdict_name(proof->verdict));
    bc_jw_key_string(w, "detail", proof->detail);
    bc_jw_key(w, "checked");
    bc_jw_u64(w, proof->checked);
    bc_jw_key(w, "skipped");
    bc_jw_u64(w, proof->skipped);
    bc_jw_end_object(w);
}

static void write_tensor(struct bc_jw *w, const struct bitconv_verified_tensor *t)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "name", t->name);
    bc_jw_key_string(w, "type", t->type);
    bc_jw_key_string(w, "pack", t->pack);
    bc_jw_key(w, "ok");
    bc_jw_bool(w, t->ok);
    bc_jw_key_known_f32(w, "scale", t->pack != NULL, t->scale);
    bc_jw_key_string(w, "scale_form", t->scale_form);
    bc_jw_key_known_f64(w, "zeros", t->pack != NULL, t->zeros);
    bc_jw_key_string(w, "fingerprint", t->fingerprint[0] != '\0' ? t->fingerprint : NULL);
    bc_jw_key_string(w, "xxh3", t->xxh3);
    bc_jw_key_string(w, "problem", t->problem);
    bc_jw_end_object(w);
}

/* JSON has no infinities and no NaN. */
static void key_number(struct bc_jw *w, const char *key, bool there, double value)
{
    bc_jw_key_known_f64(w, key, there && isfinite(value), value);
}

static void write_distance(struct bc_jw *w, const struct bitconv_distance *d)
{
    bc_jw_key(w, "distance");
    if (!d->measured) {
        bc_jw_null(w);
        return;
    }
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "of", d->embedding ? "embedding" : "logits");
    bc_jw_key(w, "tokens");
    bc_jw_u64(w, d->n_tokens);
    key_number(w, "max_difference", true, d->max_difference);
    key_number(w, "cosine", true, d->cosine);
    key_number(w, "divergence", !d->embedding, d->divergence);
    key_number(w, "same_top1", d->n_top1 > 0, (double)d->n_same_top1 / (double)d->n_top1);
    bc_jw_end_object(w);
}

void verify_json(const struct verify_view *view, struct bc_buf *out)
{
    const struct bitconv_verification *it = view->it;
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "file", view->file);
    bc_jw_key(&w, "ok");
    bc_jw_bool(&w, it->ok);
    bc_jw_key(&w, "proofs");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < it->n_proofs; i++)
        write_proof(&w, &it->proofs[i]);
    bc_jw_end_array(&w);
    bc_jw_key(&w, "tensors");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < it->n_tensors; i++)
        write_tensor(&w, &it->tensors[i]);
    bc_jw_end_array(&w);
    bc_jw_key_string(&w, "fingerprint", it->fingerprint[0] != '\0' ? it->fingerprint : NULL);
    write_distance(&w, &it->distance);
    write_list(&w, "problems", &view->problems);
    write_list(&w, "warnings", &view->warnings);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
