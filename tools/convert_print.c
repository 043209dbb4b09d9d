/* SPDX-License-Identifier: MIT
 * Tables and JSON of a finished conversion. */
#include "convert_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "view_text.h"

enum { MAX_TYPES = 32, NAME_WIDTH = 32, NAME_WIDTH_ROUNDED = 22 };

/* Sums over the tensors of one type. */
struct type_sum {
    const char *type;
    uint64_t tensors, parameters, bytes;
};

/* People see the pack where the GGUF type does not say it. */
static const char *shown_type(const struct bitconv_converted_tensor *t)
{
    return t->pack != NULL && strcmp(t->type, "I8") == 0 ? t->pack : t->type;
}

static size_t sum_types(const struct bitconv_conversion *c, bool for_people,
                        struct type_sum sums[MAX_TYPES])
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &c->tensors[i];
        const char *type = for_people ? shown_type(t) : t->type;
        size_t at = 0;
        while (at < n && strcmp(sums[at].type, type) != 0)
            at++;
        if (at == MAX_TYPES) continue;
        if (at == n) sums[n++] = (struct type_sum){.type = type};
        sums[at].tensors++;
        sums[at].parameters += t->parameters;
        sums[at].bytes += t->size;
    }
    return n;
}

/* Right-aligned in `width` columns. */
static void put_right(struct bc_buf *out, const struct bc_buf *cell, size_t width)
{
    bc_buf_printf(out, "%*s", (int)width, bc_buf_str(cell));
}

static void put_count(struct bc_buf *out, uint64_t n, size_t width)
{
    struct bc_buf cell = {0};
    ui_count(&cell, n);
    put_right(out, &cell, width);
    bc_buf_release(&cell);
}

static void put_bytes(struct bc_buf *out, uint64_t n, size_t width)
{
    struct bc_buf cell = {0};
    ui_bytes(&cell, n);
    put_right(out, &cell, width);
    bc_buf_release(&cell);
}

static void put_heading(const struct ui *ui, struct bc_buf *out, const char *text)
{
    bc_buf_printf(out, "%s%s%s\n", ui_on(ui, UI_BOLD), text, ui_off(ui));
}

static void put_type_row(struct bc_buf *out, const struct type_sum *s)
{
    const double bits = s->parameters > 0 ? 8.0 * (double)s->bytes / (double)s->parameters : 0.0;
    bc_buf_printf(out, "%-8s", s->type);
    put_count(out, s->tensors, 10);
    put_count(out, s->parameters, 20);
    put_bytes(out, s->bytes, 14);
    bc_buf_printf(out, "%16.3f\n", bits);
}

static void put_types(const struct ui *ui, struct bc_buf *out, const struct bitconv_conversion *c)
{
    struct type_sum sums[MAX_TYPES], total = {.type = "all"};
    const size_t n = sum_types(c, true, sums);
    put_heading(ui, out, "type       tensors          parameters         bytes bits per weight");
    for (size_t i = 0; i < n; i++) {
        put_type_row(out, &sums[i]);
        total.tensors += sums[i].tensors;
        total.parameters += sums[i].parameters;
        total.bytes += sums[i].bytes;
    }
    if (n > 1) put_type_row(out, &total);
}

static bool has_rounded_scales(const struct bitconv_conversion *c)
{
    for (size_t i = 0; i < c->n_tensors; i++)
        if (c->tensors[i].scale_error > 0.0) return true;
    return false;
}

/* One line about the packed tensors together. */
static void put_trits(struct bc_buf *out, const struct bitconv_conversion *c)
{
    const struct bitconv_converted_tensor *worst = NULL;
    double zeros = 0.0;
    uint64_t n = 0;
    size_t n_tensors = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &c->tensors[i];
        if (t->how == NULL) continue;
        n_tensors++;
        n += t->parameters;
        zeros += t->zeros * (double)t->parameters;
        if (worst == NULL || t->relative_error > worst->relative_error) worst = t;
    }
    if (n == 0) return;
    bc_buf_printf(out, "\n%zu ternary tensor%s, %.1f %% of their weights are zero; ", n_tensors,
                  view_plural(n_tensors), 100.0 * zeros / (double)n);
    if (worst->relative_error > 0.0) {
        bc_buf_printf(out, "largest relative error\n%.3g in ", worst->relative_error);
        ui_cell(out, worst->name, 0, false);
        bc_buf_puts(out, " (--verbose shows all tensors)\n");
    } else {
        bc_buf_puts(out, has_rounded_scales(c) ? "exact but for rounded scales\n"
                                               : "all of them are exact\n");
    }
    if (c->fingerprint[0] != '\0')
        bc_buf_printf(out, "fingerprint of the model: %s\n", c->fingerprint);
}

/* Who reads the packs. */
static const struct hint {
    const char *type, *text;
} hints[] = {
    {"I2_S", "bitnet.cpp reads I2_S; mainline llama.cpp has removed the type and cannot\nload this "
             "file"},
    {"TL1", "bitnet.cpp reads TL1 when built with kernels for the tiles of this file\n"
            "(bitconv.tensor.tile); mainline llama.cpp cannot load it"},
    {"TL2", "bitnet.cpp reads TL2 when built with kernels for the tiles of this file\n"
            "(bitconv.tensor.tile); mainline llama.cpp cannot load it"},
    {"bitcos", "only bitconv computes with bitcos tensors; other programs list them as bytes"},
    {"t5", "only bitconv computes with t5 tensors; other programs list them as bytes"},
};

static void put_hint(struct bc_buf *out, const struct bitconv_conversion *c)
{
    for (size_t i = 0; i < c->n_tensors; i++) {
        if (c->tensors[i].pack == NULL) continue;
        for (size_t h = 0; h < sizeof hints / sizeof hints[0]; h++) {
            if (strcmp(shown_type(&c->tensors[i]), hints[h].type) != 0) continue;
            bc_buf_printf(out, "\nhint: %s\n", hints[h].text);
            return;
        }
    }
}

/* A table of types: tensors, parameters, bytes, bits per weight; how the trits came about; hints. */
static void put_summary(const struct ui *ui, struct bc_buf *out, const struct bitconv_conversion *c,
                        bool dry_run)
{
    bc_buf_puts(out, dry_run ? "would write " : "wrote ");
    ui_cell(out, c->output, 0, false);
    if (c->n_files > 1) bc_buf_printf(out, " and %" PRIu32 " more", c->n_files - 1);
    bc_buf_puts(out, ": ");
    ui_bytes(out, c->file_size);
    bc_buf_puts(out, "\narchitecture ");
    ui_cell(out, c->architecture, 0, false);
    if (c->target != NULL) bc_buf_printf(out, ", conventions of %s", c->target);
    bc_buf_puts(out, "\n\n");
    if (c->n_tensors > 0) {
        put_types(ui, out, c);
        put_trits(out, c);
    }
    put_hint(out, c);
}

/* "offline", or "offline (1/2)" where the multiplier is the inverse of what is stored. */
static void put_how(struct bc_buf *out, const struct bitconv_converted_tensor *t)
{
    char cell[32];
    if (t->stored_scale != 0.0f && t->stored_scale != t->scale)
        snprintf(cell, sizeof cell, "%s (1/%.4g)", t->how, (double)t->stored_scale);
    else
        snprintf(cell, sizeof cell, "%s", t->how);
    ui_cell(out, cell, 17, false);
}

/* Zeros and scale; blocks of several scales have none to show. */
static void put_scale(struct bc_buf *out, const struct bitconv_converted_tensor *t)
{
    bc_buf_printf(out, "%5.1f %% ", 100.0 * t->zeros);
    if (t->scale != 0.0f)
        bc_buf_printf(out, "%10.4g", (double)t->scale);
    else
        bc_buf_printf(out, "%10s", "several");
}

/* A row per ternary tensor (with `all`, per tensor): how its trits were obtained, zeros, scale,
 * relative error. Nothing when there is no row. */
static void put_tensors(const struct ui *ui, struct bc_buf *out, const struct bitconv_conversion *c,
                        bool all)
{
    size_t n_rows = 0;
    for (size_t i = 0; i < c->n_tensors; i++)
        n_rows += all || c->tensors[i].how != NULL;
    if (n_rows == 0) return;
    const bool rounded = has_rounded_scales(c);
    put_heading(
        ui, out,
        rounded
            ? "tensor                 how                zeros      scale rel. error rounding"
            : "tensor                           how                zeros      scale rel. error");
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &c->tensors[i];
        if (!all && t->how == NULL) continue;
        ui_cell(out, t->name, rounded ? NAME_WIDTH_ROUNDED : NAME_WIDTH, true);
        bc_buf_putc(out, ' ');
        if (t->how == NULL) {
            bc_buf_printf(out, "%s%s\n", t->type, t->misfit ? " (misfit)" : "");
            continue;
        }
        put_how(out, t);
        put_scale(out, t);
        bc_buf_printf(out, " %10.3g", t->relative_error);
        if (rounded) bc_buf_printf(out, " %8.1e", t->scale_error);
        bc_buf_puts(out, t->misfit ? " misfit\n" : "\n");
    }
    bc_buf_putc(out, '\n');
}

/* Outtype auto: why each tensor got its pack. */
static void put_choices(const struct ui *ui, struct bc_buf *out, const struct bitconv_conversion *c)
{
    put_heading(ui, out,
                "tensor                           pack      zeros bits/weight entropy bound");
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &c->tensors[i];
        if (t->pack == NULL) continue;
        ui_cell(out, t->name, NAME_WIDTH, true);
        bc_buf_printf(out, " %-7s %5.1f %% %11.3f %13.3f\n", t->pack, 100.0 * t->zeros,
                      8.0 * (double)t->size / (double)t->parameters, t->entropy_bound);
    }
    bc_buf_putc(out, '\n');
}

/* A row per tensor: type, shape, bytes; and the memory that the conversion takes. */
static void put_plan(const struct ui *ui, struct bc_buf *out, const struct bitconv_conversion *c)
{
    put_heading(ui, out,
                "tensor                           type    shape                     bytes");
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &c->tensors[i];
        struct bc_buf shape = {0};
        ui_cell(out, t->name, NAME_WIDTH, true);
        for (uint32_t d = 0; d < t->n_dims; d++)
            bc_buf_printf(&shape, "%s%" PRIu64, d > 0 ? " x " : "", t->ne[d]);
        bc_buf_printf(out, " %-7s %-21s", shown_type(t), bc_buf_str(&shape));
        put_bytes(out, t->size, 10);
        bc_buf_puts(out, t->misfit ? " misfit\n" : "\n");
        bc_buf_release(&shape);
    }
    bc_buf_puts(out, "\npeak memory: ");
    ui_bytes(out, c->peak_memory);
    bc_buf_puts(out, c->target != NULL ? " beside the tokenizer's JSON,\n" : ",\n");
    if (c->tensor_memory > 0) ui_bytes(out, c->tensor_memory);
    bc_buf_puts(out, c->tensor_memory > 0 ? " of it for the largest packed tensor\n"
                                          : "whatever the model's size\n");
}

/* ---- JSON ---- */

static void json_types(struct bc_jw *w, const struct bitconv_conversion *c)
{
    struct type_sum sums[MAX_TYPES];
    const size_t n = sum_types(c, false, sums);
    bc_jw_key(w, "types");
    bc_jw_begin_object(w);
    for (size_t i = 0; i < n; i++) {
        bc_jw_key(w, sums[i].type);
        bc_jw_begin_object(w);
        bc_jw_key(w, "tensors");
        bc_jw_u64(w, sums[i].tensors);
        bc_jw_key(w, "parameters");
        bc_jw_u64(w, sums[i].parameters);
        bc_jw_key(w, "bytes");
        bc_jw_u64(w, sums[i].bytes);
        bc_jw_end_object(w);
    }
    bc_jw_end_object(w);
}

static void json_tensor(struct bc_jw *w, const struct bitconv_converted_tensor *t)
{
    const bool ternary = t->how != NULL;
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "name", t->name);
    bc_jw_key_string(w, "source", t->source);
    bc_jw_key_string(w, "type", t->type);
    bc_jw_key_string(w, "pack", t->pack);
    bc_jw_key_string(w, "how", t->how);
    bc_jw_key_known_f64(w, "zeros", ternary, t->zeros);
    bc_jw_key_known_f64(w, "entropy_bound", ternary, t->entropy_bound);
    bc_jw_key_known_f32(w, "scale", ternary && t->scale != 0.0f, t->scale);
    bc_jw_key_known_f64(w, "relative_error", ternary, t->relative_error);
    bc_jw_key_known_f64(w, "scale_error", ternary, t->scale_error);
    bc_jw_key_u64s(w, "shape", t->ne, t->n_dims);
    bc_jw_key(w, "bytes");
    bc_jw_u64(w, t->size);
    bc_jw_key_string(w, "fingerprint", t->fingerprint[0] != '\0' ? t->fingerprint : NULL);
    bc_jw_key(w, "reference_differs");
    bc_jw_bool(w, t->reference_differs);
    bc_jw_key(w, "misfit");
    bc_jw_bool(w, t->misfit);
    bc_jw_end_object(w);
}

/* The members of the document about a conversion, written or not. */
static void json_conversion(struct bc_jw *w, const struct bitconv_conversion *c)
{
    bc_jw_key_string(w, "outtype", c->outtype);
    bc_jw_key_string(w, "target", c->target);
    bc_jw_key_string(w, "architecture", c->architecture);
    bc_jw_key(w, "n_files");
    bc_jw_u64(w, c->n_files);
    bc_jw_key(w, "bytes");
    bc_jw_u64(w, c->file_size);
    bc_jw_key(w, "peak_memory");
    bc_jw_u64(w, c->peak_memory);
    bc_jw_key_string(w, "fingerprint", c->fingerprint[0] != '\0' ? c->fingerprint : NULL);
    json_types(w, c);
    bc_jw_key(w, "tensors");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < c->n_tensors; i++)
        json_tensor(w, &c->tensors[i]);
    bc_jw_end_array(w);
}

static int finish_document(struct bc_jw *w, struct ui *ui)
{
    bc_jw_key_strings(w, "warnings", (const char *const *)ui->warnings.items, ui->warnings.n);
    bc_jw_end_object(w);
    bc_buf_putc(w->buf, '\n');
    return ui_finish(ui, w->buf);
}

static int print_json(struct ui *ui, const struct bitconv_conversion *c)
{
    struct bc_buf out = {0};
    struct bc_jw w = {.buf = &out, .first = true};
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "output", c->output);
    json_conversion(&w, c);
    return finish_document(&w, ui);
}

int convert_print_check(struct ui *ui, const char *dir, const char *outtype,
                        const struct bitconv_conversion *c, const struct bitconv_error *err)
{
    struct bc_buf out = {0};
    struct bc_jw w = {.buf = &out, .first = true};
    const char *const only = c == NULL ? err->text : NULL;
    const bool several = ui->findings.n > 0;
    bc_jw_begin_object(&w);
    bc_jw_key_string(&w, "source", dir);
    if (c == NULL) bc_jw_key_string(&w, "outtype", outtype);
    bc_jw_key_bool(&w, "ok", c != NULL);
    bc_jw_key_strings(&w, "reasons", several ? (const char *const *)ui->findings.items : &only,
                      c != NULL ? 0
                      : several ? ui->findings.n
                                : 1);
    if (c != NULL) json_conversion(&w, c);
    return finish_document(&w, ui);
}

/* ---- everything ---- */

int convert_print(struct ui *ui, const struct bitconv_conversion *c, const char *outfile,
                  bool dry_run)
{
    struct bc_buf out = {0};
    if (outfile != NULL && ui_is_stdout(outfile) && !dry_run) return 0;
    if (ui->globals->json) return print_json(ui, c);
    if (ui->globals->quiet) return 0;
    if (dry_run) put_plan(ui, &out, c);
    put_tensors(ui, &out, c, ui->globals->verbose);
    if (strcmp(c->outtype, "auto") == 0) put_choices(ui, &out, c);
    put_summary(ui, &out, c, dry_run);
    return ui_finish(ui, &out);
}
