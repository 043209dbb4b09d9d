/* SPDX-License-Identifier: MIT
 * `bitconv inspect` for people: sections and tables in 80 columns. */
#include "inspect_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "view_text.h"

enum {
    LABEL_WIDTH = 18,  /* of the model's summary */
    ARRAY_SHOWN = 4,   /* elements of a long array */
    KEY_WIDTH = 41,    /* of the metadata's columns */
    TYPE_WIDTH = 14,   /* "ARRAY[FLOAT32]" */
    OFFSET_WIDTH = 13, /* of the tensor table's columns */
    TABLE_FIXED = 36,  /* blank, type, shape, bytes */
    STATS_NAME = 27,
    MIN_TEXT = 20 /* bytes of a text value, however narrow the terminal */
};

static void heading(const struct inspect_view *view, struct bc_buf *out, const char *title)
{
    if (out->size > 0) bc_buf_putc(out, '\n');
    bc_buf_printf(out, "%s%s%s\n", ui_on(view->ui, UI_BOLD), title, ui_off(view->ui));
}

static void trim_blanks(struct bc_buf *out)
{
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->size--;
}

static void right_count(struct bc_buf *out, uint64_t n, size_t width)
{
    struct bc_buf text = {0};
    ui_count(&text, n);
    view_right(out, bc_buf_str(&text), width);
    bc_buf_release(&text);
}

static void right_bytes(struct bc_buf *out, uint64_t n, size_t width)
{
    struct bc_buf text = {0};
    ui_bytes(&text, n);
    view_right(out, bc_buf_str(&text), width);
    bc_buf_release(&text);
}

/* ---- header and model ---- */

static void show_header(const struct inspect_view *view, struct bc_buf *out)
{
    const struct bitconv_inspection *it = view->it;
    if (!view->diffable) {
        ui_cell(out, it->file, 0, false);
        bc_buf_puts(out, "\n");
    }
    struct bc_buf facts = {0};
    if (it->container == BITCONV_CONTAINER_GGUF)
        bc_buf_printf(&facts, "GGUF version %" PRIu32 ", alignment %" PRIu64, it->version,
                      it->alignment);
    else
        bc_buf_puts(&facts, it->container == BITCONV_CONTAINER_CHECKPOINT ? "checkpoint folder"
                                                                          : "safetensors file");
    bc_buf_printf(&facts, ", %zu key%s, %zu tensor%s, ", it->n_keys, view_plural(it->n_keys),
                  it->n_tensors, view_plural(it->n_tensors));
    ui_count(&facts, it->parameters);
    bc_buf_printf(&facts, " parameter%s", view_plural(it->parameters));
    if (!view->diffable) {
        bc_buf_puts(&facts, ", ");
        ui_bytes(&facts, it->file_size);
        if (it->n_files > 1) bc_buf_printf(&facts, " in %" PRIu32 " files", it->n_files);
    }
    view_wrap(out, bc_buf_str(&facts), 0, ui_columns());
    bc_buf_puts(out, "\n");
    bc_buf_release(&facts);
    if (it->dialect != NULL) {
        struct bc_buf text = {0};
        bc_buf_printf(&text, "dialect %s: %s", it->dialect, it->dialect_evidence);
        view_wrap(out, bc_buf_str(&text), 0, ui_columns());
        bc_buf_puts(out, "\n");
        bc_buf_release(&text);
    }
    if (it->fingerprint[0] != '\0') bc_buf_printf(out, "fingerprint %s\n", it->fingerprint);
}

static void show_word(const struct inspect_view *view, struct bc_buf *out, const char *label,
                      const char *value)
{
    if (value == NULL || value[0] == '\0') return;
    bc_buf_printf(out, "%-*s ", LABEL_WIDTH, label);
    ui_cell(out, value, view->full ? 0 : ui_columns() - LABEL_WIDTH - 1, true);
    trim_blanks(out);
    bc_buf_puts(out, "\n");
}

static void show_number(struct bc_buf *out, const char *label, uint64_t value)
{
    if (value != 0) bc_buf_printf(out, "%-*s %" PRIu64 "\n", LABEL_WIDTH, label, value);
}

static void show_model(const struct inspect_view *view, struct bc_buf *out)
{
    const struct bitconv_model_summary *m = &view->it->model;
    if (m->architecture == NULL) return;
    heading(view, out, "model");
    show_word(view, out, "architecture", m->architecture);
    show_word(view, out, "name", m->name);
    show_word(view, out, "quantization", m->quantization);
    show_number(out, "layers", m->layers);
    show_number(out, "hidden size", m->hidden_size);
    show_number(out, "intermediate size", m->intermediate_size);
    show_number(out, "heads", m->heads);
    show_number(out, "key/value heads", m->kv_heads);
    show_number(out, "head size", m->head_dim);
    show_number(out, "experts", m->experts);
    show_number(out, "experts used", m->experts_used);
    show_number(out, "vocabulary", m->vocab_size);
    show_number(out, "context length", m->context_length);
    show_number(out, "sliding window", m->sliding_window);
    if (m->rope_theta != 0)
        bc_buf_printf(out, "%-*s %.9g\n", LABEL_WIDTH, "RoPE base", m->rope_theta);
    show_word(view, out, "RoPE scaling", m->rope_scaling);
    show_word(view, out, "activation", m->hidden_act);
    show_word(view, out, "pooling", m->pooling);
}

/* ---- metadata ---- */

static void show_text(struct bc_buf *out, const char *text, size_t len, size_t max)
{
    bc_buf_putc(out, '"');
    bc_utf8_mask(out, text, len, max);
    bc_buf_putc(out, '"');
}

static void show_scalar(struct bc_buf *out, const struct bitconv_gguf_value *v, size_t max)
{
    struct bc_jw w = {.buf = out, .first = true};
    const char *text = NULL;
    size_t len = 0;
    if (bitconv_gguf_value_string(v, &text, &len))
        show_text(out, text, len, max);
    else
        inspect_json_scalar(&w, v);
}

static void show_array(struct bc_buf *out, const struct bitconv_gguf_value *v, uint64_t shown,
                       size_t max)
{
    uint64_t pos = 0;
    bc_buf_printf(out, "%" PRIu64 ": ", v->count);
    for (uint64_t i = 0; i < v->count && i < shown; i++) {
        const char *text = NULL;
        size_t len = 0;
        struct bitconv_gguf_value element;
        if (i > 0) bc_buf_puts(out, ", ");
        if (v->elem != BITCONV_GGUF_STRING && bitconv_gguf_array_at(v, i, &element))
            show_scalar(out, &element, max);
        else if (bitconv_gguf_array_next_string(v, &pos, &text, &len))
            show_text(out, text, len, max);
    }
    if (v->count > shown) bc_buf_puts(out, ", ...");
}

static void show_metadata(const struct inspect_view *view, struct bc_buf *out)
{
    const size_t columns = ui_columns();
    const size_t used = KEY_WIDTH + 1 + TYPE_WIDTH + 3;
    heading(view, out, "metadata");
    for (size_t i = 0; i < view->it->n_keys; i++) {
        const struct bitconv_inspected_key *key = view->keys[i];
        struct bc_buf cell = {0};
        ui_cell(out, key->name, KEY_WIDTH, false);
        bc_buf_putc(out, ' ');
        ui_cell(out, key->type, TYPE_WIDTH, false);
        bc_buf_putc(out, ' ');
        const size_t max = columns > used + MIN_TEXT ? columns - used : MIN_TEXT;
        if (key->value.type == BITCONV_GGUF_ARRAY)
            show_array(&cell, &key->value, view->full ? UINT64_MAX : ARRAY_SHOWN,
                       view->full ? 0 : max);
        else
            show_scalar(&cell, &key->value, view->full ? 0 : max);
        /* The cell is masked already: only its length is at stake. */
        ui_cell(out, bc_buf_str(&cell), view->full ? 0 : max + 2, true);
        bc_buf_release(&cell);
        trim_blanks(out);
        bc_buf_putc(out, '\n');
    }
}

/* ---- tensors ---- */

static void show_types(const struct inspect_view *view, struct bc_buf *out)
{
    heading(view, out, "types");
    for (size_t i = 0; i < view->it->n_types; i++) {
        const struct bitconv_type_total *t = &view->it->types[i];
        view_name(out, t->type, 16);
        right_count(out, t->n_tensors, 7);
        bc_buf_puts(out, t->n_tensors == 1 ? " tensor " : " tensors");
        right_count(out, t->parameters, 18);
        bc_buf_puts(out, " weights");
        right_bytes(out, t->bytes, 11);
        if (t->parameters != 0)
            bc_buf_printf(out, " %7.3f bpw", 8.0 * (double)t->bytes / (double)t->parameters);
        bc_buf_putc(out, '\n');
    }
}

static void shape_text(const struct bitconv_inspected_tensor *t, struct bc_buf *out)
{
    for (uint32_t i = 0; i < t->n_dims; i++)
        bc_buf_printf(out, "%s%" PRIu64, i > 0 ? " x " : "", t->ne[i]);
    if (t->n_dims == 0) bc_buf_puts(out, "scalar");
}

/* "type 142" of "type 142 (PQ2_0)": the rest is told once, in the section of the types. */
static void type_text(const struct bitconv_inspected_tensor *t, struct bc_buf *out)
{
    const char *bracket = strstr(t->type, " (");
    if (t->pack != NULL && strcmp(t->pack, "i2_s_64") == 0)
        bc_buf_puts(out, t->pack);
    else
        bc_buf_append(out, t->type,
                      bracket != NULL ? (size_t)(bracket - t->type) : strlen(t->type));
}

/* Offsets give way to long names; what is longer still gets a line of its own. */
static bool has_room_for_offsets(const struct inspect_view *view)
{
    size_t longest = 0;
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = view->table[i];
        const size_t n = bc_utf8_count(t->name, t->name_len);
        if (n > longest) longest = n;
    }
    return !view->diffable && longest + OFFSET_WIDTH + TABLE_FIXED <= ui_columns();
}

static void show_table(const struct inspect_view *view, struct bc_buf *out)
{
    const bool offsets = has_room_for_offsets(view);
    const size_t name_width = ui_columns() - TABLE_FIXED - (offsets ? OFFSET_WIDTH : 0);
    heading(view, out, "tensors (columns x rows)");
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = view->table[i];
        struct bc_buf cell = {0};
        view_name(out, t->name, name_width);
        bc_buf_putc(out, ' ');
        type_text(t, &cell);
        ui_cell(out, bc_buf_str(&cell), 8, false);
        bc_buf_clear(&cell);
        shape_text(t, &cell);
        view_right(out, bc_buf_str(&cell), 16);
        bc_buf_release(&cell);
        if (offsets) {
            char offset[32];
            snprintf(offset, sizeof offset, " %" PRIu64, t->offset);
            view_right(out, offset, OFFSET_WIDTH);
        }
        right_bytes(out, t->size, 11);
        bc_buf_putc(out, '\n');
    }
}

static void show_ternary_stats(const struct inspect_view *view, struct bc_buf *out)
{
    bool first = true;
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = view->table[i];
        const struct bitconv_tensor_stats *s = &t->stats;
        if (s->kind != BITCONV_STATS_TERNARY) continue;
        if (first) {
            heading(view, out, "ternary tensors");
            bc_buf_printf(out, "%-*s %9s %9s %9s %6s %5s %s\n", STATS_NAME, "", "-1", "0", "+1",
                          "zeros", "bits", "scale");
        }
        first = false;
        view_name(out, t->name, STATS_NAME);
        char scale[32] = "several"; /* blocks with scales of their own */
        if (!isnan(s->scale)) snprintf(scale, sizeof scale, "%.4g", (double)s->scale);
        bc_buf_printf(out, " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %5.1f%% %5.3f %s%s\n", s->minus,
                      s->zero, s->plus, 100.0 * s->zeros, s->entropy, scale,
                      s->one_code       ? "  ONE CODE"
                      : s->illegal != 0 ? "  ILLEGAL CODES"
                                        : "");
    }
}

/* One pack over all ternary tensors that have sizes. */
struct pack_total {
    uint64_t tensors, weights, bytes; /* of those that it holds */
};

static struct pack_total total_of(const struct inspect_view *view, size_t pack)
{
    struct pack_total total = {0, 0, 0};
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_tensor_stats *s = &view->it->tensors[i].stats;
        if (pack >= s->n_sizes || s->sizes[pack].bytes == 0) continue;
        total.tensors++;
        total.weights += view->it->tensors[i].n_elements;
        total.bytes += s->sizes[pack].bytes;
    }
    return total;
}

/* What the ternary tensors would take in each pack, against the bound. */
static void show_pack_sizes(const struct inspect_view *view, struct bc_buf *out)
{
    const struct bitconv_tensor_stats *any = NULL;
    double bits = 0.0, zeros = 0.0;
    uint64_t weights = 0;
    size_t n = 0;
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = &view->it->tensors[i];
        if (t->stats.n_sizes == 0) continue;
        any = &t->stats;
        n++;
        weights += t->n_elements;
        zeros += t->stats.zeros * (double)t->n_elements;
        bits += t->stats.entropy_bound * (double)t->n_elements;
    }
    if (weights == 0) return;
    heading(view, out, "sizes in other packs");
    bc_buf_printf(out, "%zu tensor%s, %.1f%% zeros; entropy bound %.3f bits a weight\n", n,
                  view_plural(n), 100.0 * zeros / (double)weights, bits / (double)weights);
    bc_buf_printf(out, "%-10s %9s %15s %12s\n", "", "holds", "bytes", "bits/weight");
    for (size_t p = 0; p < any->n_sizes; p++) {
        const struct pack_total total = total_of(view, p);
        bc_buf_printf(out, "%-10s %9" PRIu64, any->sizes[p].pack, total.tensors);
        if (total.weights == 0) {
            bc_buf_putc(out, '\n');
            continue;
        }
        right_count(out, total.bytes, 16);
        bc_buf_printf(out, " %12.3f\n", 8.0 * (double)total.bytes / (double)total.weights);
    }
}

static void show_number_stats(const struct inspect_view *view, struct bc_buf *out)
{
    bool first = true;
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = view->table[i];
        const struct bitconv_tensor_stats *s = &t->stats;
        if (s->kind != BITCONV_STATS_NUMBERS) continue;
        if (first) {
            heading(view, out, "numbers (outliers: beyond 6 sigma)");
            bc_buf_printf(out, "%-*s %9s %9s %9s %8s %6s %4s\n", STATS_NAME, "", "min", "max",
                          "mean", "sigma", "zeros", "outl");
        }
        first = false;
        view_name(out, t->name, STATS_NAME);
        bc_buf_printf(out, " %9.3g %9.3g %9.2g %8.3g %5.1f%% %4" PRIu64 "%s\n", s->min, s->max,
                      s->mean, s->stddev, 100.0 * s->zeros, s->outliers,
                      s->nonfinite != 0 ? "  NaN/Inf"
                      : s->zeros == 1.0 ? "  ALL ZERO"
                                        : "");
    }
}

static void show_hashes(const struct inspect_view *view, struct bc_buf *out)
{
    heading(view, out, "digests (XXH3-128 of the bytes; fingerprint of the trits)");
    for (size_t i = 0; i < view->it->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = view->table[i];
        ui_cell(out, t->name, 0, false);
        bc_buf_printf(out, "\n  xxh3 %s", t->xxh3);
        if (t->fingerprint[0] != '\0') bc_buf_printf(out, "  trits %s", t->fingerprint);
        bc_buf_putc(out, '\n');
    }
}

/* ---- values ---- */

static void show_value(const struct inspect_view *view, uint64_t index, struct bc_buf *out)
{
    const struct bitconv_inspected_values *values = view->it->values;
    struct bc_jw number = {.buf = out, .first = true};
    const double real = values->reals[index];
    if (values->integers != NULL && values->is_unsigned)
        bc_buf_printf(out, "%" PRIu64, (uint64_t)values->integers[index]);
    else if (values->integers != NULL)
        bc_buf_printf(out, "%" PRId64, values->integers[index]);
    else if (!isfinite(real))
        bc_buf_puts(out, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
    else if (strcmp(view->it->tensors[values->tensor].type, "F64") == 0)
        bc_jw_f64(&number, real);
    else
        bc_jw_f32(&number, (float)real);
}

/* One row of the tensor a paragraph, as many values a line as fit. */
static void show_values(const struct inspect_view *view, struct bc_buf *out)
{
    const struct bitconv_inspected_values *values = view->it->values;
    const struct bitconv_inspected_tensor *t = &view->it->tensors[values->tensor];
    const size_t per_line = 5;
    struct bc_buf cell = {0};
    bc_buf_printf(&cell, "%s: %s, ", t->name, t->type);
    shape_text(t, &cell);
    bc_buf_printf(&cell, ", %" PRIu64 " of %" PRIu64 " values", values->n, values->n_total);
    if (values->is_ternary)
        bc_buf_printf(&cell, ", trits times the scale %.9g", (double)values->scale);
    if (values->scale_tensor != NULL)
        bc_buf_printf(&cell, ", blocks times the scale %.9g in %s", (double)values->scale,
                      values->scale_tensor);
    view_wrap(out, bc_buf_str(&cell), 0, ui_columns());
    bc_buf_putc(out, '\n');
    for (uint64_t i = 0; i < values->n; i++) {
        const uint64_t col = values->cols != 0 ? i % values->cols : i;
        if (col == 0 || col % per_line == 0) {
            char label[64];
            if (i > 0) bc_buf_putc(out, '\n');
            snprintf(label, sizeof label, "[%" PRIu64 ", %" PRIu64 "]",
                     values->cols != 0 ? i / values->cols : 0, col);
            bc_buf_printf(out, "%-12s", label);
        }
        bc_buf_clear(&cell);
        show_value(view, i, &cell);
        view_right(out, bc_buf_str(&cell), 13);
    }
    if (values->n > 0) bc_buf_putc(out, '\n');
    bc_buf_release(&cell);
}

static void show_warnings(const struct inspect_view *view, struct bc_buf *out)
{
    if (view->it->n_warnings == 0 || view->ui->globals->quiet) return;
    heading(view, out, "warnings");
    for (size_t i = 0; i < view->it->n_warnings; i++) {
        bc_buf_puts(out, ui_on(view->ui, UI_YELLOW));
        view_wrap(out, view->it->warnings[i], 0, ui_columns());
        bc_buf_printf(out, "%s\n", ui_off(view->ui));
    }
}

void inspect_text(const struct inspect_view *view, struct bc_buf *out)
{
    if (view->summary) {
        show_header(view, out);
        show_model(view, out);
    }
    if (view->metadata && view->it->n_keys > 0) show_metadata(view, out);
    if (view->summary && view->it->n_types > 0) show_types(view, out);
    if (view->tensors && view->it->n_tensors > 0) show_table(view, out);
    if (view->stats) {
        show_ternary_stats(view, out);
        show_pack_sizes(view, out);
        show_number_stats(view, out);
    }
    if (view->hash && view->it->n_tensors > 0) show_hashes(view, out);
    if (view->it->values != NULL) show_values(view, out);
    show_warnings(view, out);
}
