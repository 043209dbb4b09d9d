/* SPDX-License-Identifier: MIT
 * Renders a comparison: what differs, on what the verdicts rest, and what does not count. */
#include "diff_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "view_text.h"

enum { MAX_SHOWN = 25 }; /* keys and tensors of a list; --all and JSON have all */

static void heading(const struct diff_view *view, const char *title, struct bc_buf *out)
{
    bc_buf_printf(out, "\n%s%s%s\n", ui_on(view->ui, UI_BOLD), title, ui_off(view->ui));
}

void diff_verdict(const struct bitconv_diff *it, struct bc_buf *out)
{
    if (it->equal) {
        bc_buf_puts(out, "equal");
        return;
    }
    if (it->n_different_keys != 0)
        bc_buf_printf(out, "%zu key%s", it->n_different_keys, view_plural(it->n_different_keys));
    if (it->n_different_keys != 0 && it->n_different_tensors != 0) bc_buf_puts(out, " and ");
    if (it->n_different_tensors != 0)
        bc_buf_printf(out, "%zu tensor%s", it->n_different_tensors,
                      view_plural(it->n_different_tensors));
    bc_buf_puts(out, it->n_different_keys + it->n_different_tensors == 1 ? " differs" : " differ");
}

/* ---- metadata ---- */

static void show_side(char side, const char *value, const char *type, bool with_type,
                      struct bc_buf *out)
{
    struct bc_buf text = {0};
    if (value == NULL) return;
    bc_buf_puts(&text, value);
    if (with_type) bc_buf_printf(&text, " (%s)", type);
    bc_buf_printf(out, "    %c  ", side);
    view_wrap(out, bc_buf_str(&text), 7, ui_columns());
    bc_buf_putc(out, '\n');
    bc_buf_release(&text);
}

static void show_key(const struct bitconv_diff_key *key, struct bc_buf *out)
{
    const bool types =
        key->verdict == BITCONV_DIFF_CHANGED && strcmp(key->type_a, key->type_b) != 0;
    bc_buf_puts(out, "  ");
    ui_cell(out, key->name, 0, false);
    bc_buf_puts(out, key->verdict == BITCONV_DIFF_ONLY_A   ? "  only in A\n"
                     : key->verdict == BITCONV_DIFF_ONLY_B ? "  only in B\n"
                                                           : "\n");
    show_side('A', key->a, key->type_a, types, out);
    show_side('B', key->b, key->type_b, types, out);
}

static void show_keys(const struct diff_view *view, bool counting, const char *title,
                      struct bc_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < view->it->n_keys; i++) {
        const struct bitconv_diff_key *key = &view->it->keys[i];
        if ((key->counts || view->strict) != counting) continue;
        if (n++ == 0) heading(view, title, out);
        if (n <= MAX_SHOWN || view->all) show_key(key, out);
    }
    if (n > MAX_SHOWN && !view->all)
        bc_buf_printf(out, "  ... and %zu more (--all)\n", n - MAX_SHOWN);
}

static void show_metadata(const struct diff_view *view, struct bc_buf *out)
{
    const struct bitconv_diff *it = view->it;
    bc_buf_puts(out, "metadata: ");
    if (it->keys_skipped != NULL)
        bc_buf_printf(out, "not compared: %s\n", it->keys_skipped);
    else
        bc_buf_printf(out, "%zu key%s the same, %zu not\n", it->n_same_keys,
                      view_plural(it->n_same_keys), it->n_keys);
}

/* ---- tensors ---- */

static void show_tensors_line(const struct diff_view *view, struct bc_buf *out)
{
    size_t by[BITCONV_N_DIFF_BASES] = {0}, verdicts[BITCONV_N_DIFF_VERDICTS] = {0};
    struct bc_buf text = {0};
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_diff_tensor *t = &view->it->tensors[i];
        verdicts[t->verdict]++;
        if (t->verdict == BITCONV_DIFF_SAME) by[t->basis]++;
    }
    bc_buf_printf(&text, "tensors: %zu the same", verdicts[BITCONV_DIFF_SAME]);
    if (verdicts[BITCONV_DIFF_SAME] != 0)
        bc_buf_printf(&text, " (%zu by bytes, %zu by fingerprint, %zu by value)",
                      by[BITCONV_DIFF_BY_BYTES], by[BITCONV_DIFF_BY_FINGERPRINT],
                      by[BITCONV_DIFF_BY_VALUE]);
    bc_buf_printf(&text, ", %zu changed, %zu only in A, %zu only in B",
                  verdicts[BITCONV_DIFF_CHANGED], verdicts[BITCONV_DIFF_ONLY_A],
                  verdicts[BITCONV_DIFF_ONLY_B]);
    view_wrap(out, bc_buf_str(&text), 0, ui_columns());
    bc_buf_putc(out, '\n');
    bc_buf_release(&text);
}

static void describe_change(const struct bitconv_diff_tensor *t, struct bc_buf *out)
{
    if (t->basis == BITCONV_DIFF_BY_BYTES)
        bc_buf_printf(out, "other bytes: %s", t->problem);
    else if (t->problem != NULL)
        bc_buf_puts(out, t->problem);
    else
        bc_buf_printf(out,
                      "%" PRIu64 " of %" PRIu64 " values (%.3g %%), from [%" PRIu64
                      "] on, by at most %.6g (largest value %.6g)",
                      t->n_different, t->n_values,
                      100.0 * (double)t->n_different / (double)t->n_values, t->first_different,
                      t->max_difference, t->largest);
}

static void show_tensor(const struct bitconv_diff_tensor *t, struct bc_buf *out)
{
    struct bc_buf text = {0};
    bc_buf_puts(out, "  ");
    ui_cell(out, t->name, 0, false);
    bc_buf_puts(out, "\n    ");
    if (t->verdict == BITCONV_DIFF_ONLY_A || t->verdict == BITCONV_DIFF_ONLY_B)
        bc_buf_printf(&text, "only in %c (%s)", t->verdict == BITCONV_DIFF_ONLY_A ? 'A' : 'B',
                      t->type_a != NULL ? t->type_a : t->type_b);
    else if (strcmp(t->type_a, t->type_b) == 0)
        bc_buf_printf(&text, "%s: ", t->type_a);
    else
        bc_buf_printf(&text, "%s and %s: ", t->type_a, t->type_b);
    if (t->verdict == BITCONV_DIFF_CHANGED) describe_change(t, &text);
    if (t->verdict == BITCONV_DIFF_SAME)
        bc_buf_printf(&text, "the same by %s", bitconv_diff_basis_name(t->basis));
    view_wrap(out, bc_buf_str(&text), 4, ui_columns());
    bc_buf_putc(out, '\n');
    bc_buf_release(&text);
}

static void show_different_tensors(const struct diff_view *view, struct bc_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_diff_tensor *t = &view->it->tensors[i];
        const bool typed =
            view->strict && t->verdict == BITCONV_DIFF_SAME && strcmp(t->type_a, t->type_b) != 0;
        if (t->verdict == BITCONV_DIFF_SAME && !typed && !view->all) continue;
        if (n++ == 0) heading(view, view->all ? "tensors" : "tensors that differ", out);
        if (n <= MAX_SHOWN || view->all) show_tensor(t, out);
    }
    if (n > MAX_SHOWN && !view->all)
        bc_buf_printf(out, "  ... and %zu more (--all)\n", n - MAX_SHOWN);
}

void diff_text(const struct diff_view *view, struct bc_buf *out)
{
    const struct bitconv_diff *it = view->it;
    struct bc_buf verdict = {0};
    bc_buf_puts(out, "A  ");
    ui_cell(out, it->a, 0, false);
    bc_buf_puts(out, "\nB  ");
    ui_cell(out, it->b, 0, false);
    bc_buf_putc(out, '\n');
    show_metadata(view, out);
    show_tensors_line(view, out);
    show_keys(view, true, "metadata that differ", out);
    show_keys(view, false, "about the file, not the model (does not count)", out);
    show_different_tensors(view, out);
    diff_verdict(it, &verdict);
    bc_buf_printf(out, "\n%s%s%s\n", ui_on(view->ui, it->equal ? UI_GREEN : UI_RED),
                  bc_buf_str(&verdict), ui_off(view->ui));
    bc_buf_release(&verdict);
}

/* ---- JSON ---- */

static void write_key(struct bc_jw *w, const struct bitconv_diff_key *key)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "key", key->name);
    bc_jw_key_string(w, "verdict", bitconv_diff_verdict_name(key->verdict));
    bc_jw_key_bool(w, "counts", key->counts);
    bc_jw_key_string(w, "type_a", key->type_a);
    bc_jw_key_string(w, "type_b", key->type_b);
    bc_jw_key_string(w, "a", key->a);
    bc_jw_key_string(w, "b", key->b);
    bc_jw_end_object(w);
}

static void write_tensor(struct bc_jw *w, const struct bitconv_diff_tensor *t)
{
    const bool by_value = t->basis == BITCONV_DIFF_BY_VALUE;
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "name", t->name);
    bc_jw_key_string(w, "verdict", bitconv_diff_verdict_name(t->verdict));
    bc_jw_key_string(w, "by", bitconv_diff_basis_name(t->basis));
    bc_jw_key_string(w, "type_a", t->type_a);
    bc_jw_key_string(w, "type_b", t->type_b);
    bc_jw_key_u64(w, "values", t->n_values);
    if (by_value) {
        bc_jw_key_u64(w, "different", t->n_different);
        bc_jw_key_known_u64(w, "first_different", t->n_different != 0, t->first_different);
        bc_jw_key(w, "max_difference");
        bc_jw_f64(w, t->max_difference);
        bc_jw_key(w, "largest");
        bc_jw_f64(w, t->largest);
    }
    bc_jw_key_string(w, "fingerprint_a", t->fingerprint_a[0] != '\0' ? t->fingerprint_a : NULL);
    bc_jw_key_string(w, "fingerprint_b", t->fingerprint_b[0] != '\0' ? t->fingerprint_b : NULL);
    bc_jw_key_string(w, "problem", t->problem);
    bc_jw_end_object(w);
}

void diff_json(const struct diff_view *view, struct bc_buf *out)
{
    const struct bitconv_diff *it = view->it;
    struct bc_jw w = {.buf = out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "a", it->a);
    bc_jw_key_string(&w, "b", it->b);
    bc_jw_key_bool(&w, "equal", it->equal);
    bc_jw_key_u64(&w, "different_keys", it->n_different_keys);
    bc_jw_key_u64(&w, "different_tensors", it->n_different_tensors);
    bc_jw_key_u64(&w, "same_keys", it->n_same_keys);
    bc_jw_key_string(&w, "metadata_skipped", it->keys_skipped);
    bc_jw_key(&w, "metadata");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < it->n_keys; i++)
        write_key(&w, &it->keys[i]);
    bc_jw_end_array(&w);
    bc_jw_key(&w, "tensors");
    bc_jw_begin_array(&w);
    for (size_t i = 0; i < it->n_tensors; i++)
        write_tensor(&w, &it->tensors[i]);
    bc_jw_end_array(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}
