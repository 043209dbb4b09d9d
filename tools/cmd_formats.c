/* SPDX-License-Identifier: MIT
 * bitconv formats: how tensors can be stored, what is written and what is read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "bitconv/support.h"
#include "cmd.h"
#include "view_text.h"

struct settings {
    bool packs;
};

static const struct option_row options[] = {
    {"packs", 0, OPTION_FLAG, offsetof(struct settings, packs), NULL,
     "only those that hold ternary weights"},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL},
};

static void show_bits(double bits, const char *spec, struct bc_buf *out)
{
    char text[32] = "-";
    if (bits > 0) snprintf(text, sizeof text, spec, bits);
    view_right(out, text, 8);
}

static void show_packs(const struct ui *ui, struct bc_buf *out)
{
    struct bitconv_format_info f;
    bc_buf_printf(out, "%sternary packs%s (bits: of a 4096 x 4096 matrix, a third of it zeros)\n",
                  ui_on(ui, UI_BOLD), ui_off(ui));
    bc_buf_printf(out, "%-9s%-12s%8s  %-8s%s\n", "name", "GGUF type", "bits", "convert", "what");
    for (size_t i = 0; bitconv_format_info_at(i, &f); i++) {
        char type[48];
        if (!f.ternary) continue;
        if (f.type_id_rebased != 0)
            snprintf(type, sizeof type, "%s (%" PRIu32 "/%" PRIu32 ")", f.type_name, f.type_id,
                     f.type_id_rebased);
        else
            snprintf(type, sizeof type, "%s (%" PRIu32 ")", f.type_name, f.type_id);
        bc_buf_printf(out, "%-9s%-12s", f.name, type);
        show_bits(f.bits_per_weight, "%.3f", out);
        bc_buf_printf(out, "  %-8s", f.writes ? "yes" : "no");
        view_wrap(out, f.title, 39, ui_columns());
        bc_buf_putc(out, '\n');
    }
}

static void show_types(const struct ui *ui, struct bc_buf *out)
{
    struct bitconv_format_info f;
    bc_buf_printf(out, "\n%sother GGUF types%s\n", ui_on(ui, UI_BOLD), ui_off(ui));
    bc_buf_printf(out, "%-11s%5s%7s%7s%8s  %-8s%-7s%s\n", "type", "id", "block", "bytes", "bits",
                  "convert", "values", "dialects");
    for (size_t i = 0; bitconv_format_info_at(i, &f); i++) {
        char number[16] = "-";
        if (f.ternary) continue;
        bc_buf_printf(out, "%-11s%5" PRIu32, f.type_name, f.type_id);
        if (f.block != 0) snprintf(number, sizeof number, "%" PRIu32, f.block);
        view_right(out, number, 7);
        if (f.block != 0) snprintf(number, sizeof number, "%" PRIu32, f.block_size);
        view_right(out, number, 7);
        show_bits(f.bits_per_weight, "%.4g", out);
        bc_buf_printf(out, "  %-8s%-7s", f.writes ? "yes" : "no", f.decodes ? "yes" : "no");
        view_wrap(out, f.dialects, 55, ui_columns());
        bc_buf_putc(out, '\n');
    }
}

static bool refused_before(const char *refusal, size_t index)
{
    struct bitconv_format_info f;
    for (size_t i = 0; i < index && bitconv_format_info_at(i, &f); i++)
        if (f.refusal != NULL && strcmp(f.refusal, refusal) == 0) return true;
    return false;
}

/* The types whose values are not read, grouped by reason. */
static void show_refusals(const struct ui *ui, struct bc_buf *out)
{
    struct bitconv_format_info f, other;
    struct bc_buf line = {0};
    bc_buf_printf(out, "\n%swhose values are not read%s\n", ui_on(ui, UI_BOLD), ui_off(ui));
    for (size_t i = 0; bitconv_format_info_at(i, &f); i++) {
        if (f.refusal == NULL || refused_before(f.refusal, i)) continue;
        bc_buf_clear(&line);
        bc_buf_puts(&line, f.type_name);
        for (size_t j = i + 1; bitconv_format_info_at(j, &other); j++)
            if (other.refusal != NULL && strcmp(other.refusal, f.refusal) == 0)
                bc_buf_printf(&line, ", %s", other.type_name);
        bc_buf_printf(&line, ": %s", f.refusal);
        view_wrap(out, bc_buf_str(&line), 0, ui_columns());
        bc_buf_putc(out, '\n');
    }
    out->failed = out->failed || line.failed;
    bc_buf_release(&line);
}

/* ---- JSON ---- */

static void write_format(struct bc_jw *w, const struct bitconv_format_info *f)
{
    bc_jw_begin_object(w);
    bc_jw_key_string(w, "name", f->name);
    bc_jw_key_string(w, "title", f->title);
    bc_jw_key_string(w, "type", f->type_name);
    bc_jw_key(w, "type_id");
    bc_jw_u64(w, f->type_id);
    bc_jw_key_count(w, "type_id_rebased", f->type_id_rebased);
    bc_jw_key_string(w, "dialects", f->dialects);
    bc_jw_key_string(w, "kind", bitconv_format_kind_name(f->kind));
    bc_jw_key_bool(w, "ternary", f->ternary);
    bc_jw_key_count(w, "block", f->block);
    bc_jw_key_count(w, "block_bytes", f->block_size);
    bc_jw_key_known_f64(w, "bits_per_weight", f->bits_per_weight > 0, f->bits_per_weight);
    bc_jw_key_bool(w, "convert", f->writes);
    bc_jw_key_bool(w, "values", f->decodes);
    bc_jw_key_string(w, "refusal", f->refusal);
    bc_jw_end_object(w);
}

static void formats_json(const struct settings *s, struct bc_buf *out)
{
    struct bc_jw w = {.buf = out, .first = true};
    struct bitconv_format_info f;
    bc_jw_begin_object(&w);
    bc_jw_key(&w, "formats");
    bc_jw_begin_array(&w);
    for (size_t i = 0; bitconv_format_info_at(i, &f); i++)
        if (f.ternary || !s->packs) write_format(&w, &f);
    bc_jw_end_array(&w);
    bc_jw_end_object(&w);
    bc_buf_putc(out, '\n');
}

static int run(struct ui *ui, const struct globals *globals, const void *settings,
               const char *const *args, size_t n_args)
{
    const struct settings *s = settings;
    struct bc_buf text = {0};
    (void)args;
    if (n_args != 0) return ui_usage(ui, "formats", "no arguments were expected");
    if (globals->json) {
        formats_json(s, &text);
    } else {
        show_packs(ui, &text);
        if (!s->packs) {
            show_types(ui, &text);
            show_refusals(ui, &text);
        }
    }
    return ui_finish(ui, &text);
}

const struct command command_formats = {
    .name = "formats",
    .summary = "list the formats of tensors: what is written, what is read",
    .usage = "formats [options]",
    .examples = "  bitconv formats\n"
                "  bitconv formats --packs\n"
                "  bitconv formats --json\n",
    .options = options,
    .settings_size = sizeof(struct settings),
    .run = run,
};
