/* SPDX-License-Identifier: MIT
 * The charts of a report, as SVG 400 units wide: readable at the width of a phone. Colours are
 * classes (c0 .. c7, ink, grid, heat), which the page gives a light and a dark value. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitconv/support.h"
#include "report.h"

enum { WIDTH = 400, LEFT = 44, RIGHT = 12, MAX_SERIES = 24, N_COLORS = 8, MAX_PARTS = 16 };

/* The distinct projections of the ternary tensors. */
struct series {
    const char *names[MAX_SERIES];
    size_t n;
    uint32_t n_layers;
};

static size_t find_series(const struct series *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0) return i;
    return s->n;
}

static bool is_drawn(const struct report_tensor *t)
{
    return t->has_layer && t->pack != NULL && t->zeros >= 0;
}

static bool add_series(struct series *s, const char *name)
{
    if (find_series(s, name) < s->n || s->n == MAX_SERIES) return false;
    s->names[s->n++] = name;
    return true;
}

static bool is_among(const struct report *report, const char *projection)
{
    for (size_t i = 0; i < report->n_tensors; i++)
        if (is_drawn(&report->tensors[i]) && strcmp(report->tensors[i].projection, projection) == 0)
            return true;
    return false;
}

/* The usual ones in the order of the forward pass, others as they come. */
static struct series collect_series(const struct report *report)
{
    static const char *const usual[] = {"attn_q",      "attn_k",   "attn_v", "attn_qkv",
                                        "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
    struct series s = {.n = 0};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (is_among(report, usual[i])) add_series(&s, usual[i]);
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        if (!is_drawn(t)) continue;
        add_series(&s, t->projection);
        if (t->layer + 1 > s.n_layers) s.n_layers = t->layer + 1;
    }
    return s;
}

static void open_svg(struct bc_buf *out, int height, const char *label)
{
    bc_buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", WIDTH,
                  height, label);
}

static void text_at(struct bc_buf *out, double x, double y, const char *anchor, const char *text)
{
    bc_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    report_escape(out, text);
    bc_buf_puts(out, "</text>\n");
}

static void line_at(struct bc_buf *out, const char *class, double x1, double y1, double x2,
                    double y2)
{
    bc_buf_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                  class, x1, y1, x2, y2);
}

/* A dot with the tensor's name and a number behind it for the pointer. */
static void dot_at(struct bc_buf *out, size_t color, double x, double y,
                   const struct report_tensor *t, const char *value)
{
    bc_buf_printf(out, "<circle class=\"c%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>",
                  color % N_COLORS, x, y);
    report_escape(out, t->name);
    bc_buf_printf(out, ": %s</title></circle>\n", value);
}

/* Coloured names below a chart, as HTML so that they wrap. */
static void legend(struct bc_buf *out, const struct series *s)
{
    bc_buf_puts(out, "<p class=\"legend\">");
    for (size_t i = 0; i < s->n; i++) {
        bc_buf_printf(out, "<span><i class=\"b%zu\"></i>", i % N_COLORS);
        report_escape(out, s->names[i]);
        bc_buf_puts(out, "</span> ");
    }
    bc_buf_puts(out, "</p>\n");
}

/* ---- zero share by layer and projection ---- */

static void zero_range(const struct report *report, double *min, double *max)
{
    *min = 1;
    *max = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        if (!is_drawn(t)) continue;
        if (t->zeros < *min) *min = t->zeros;
        if (t->zeros > *max) *max = t->zeros;
    }
}

static void heat_cell(struct bc_buf *out, const struct report_tensor *t, double x, double y,
                      double w, double h, double strength)
{
    bc_buf_printf(out,
                  "<rect class=\"heat\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                  "fill-opacity=\"%.3f\"><title>",
                  x, y, w - 1, h - 1, 0.06 + 0.94 * strength);
    report_escape(out, t->name);
    bc_buf_printf(out, ": %.2f %% zeros</title></rect>\n", 100 * t->zeros);
    if (w < 22) return;
    bc_buf_printf(out,
                  "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f</text>\n",
                  strength > 0.55 ? "on" : "cell", x + w / 2 - 0.5, y + h - 4.5, 100 * t->zeros);
}

/* Column heads, slanted so that long names fit. */
static void heat_heads(struct bc_buf *out, const struct series *s, double cell, double top)
{
    for (size_t i = 0; i < s->n; i++) {
        const double x = LEFT + cell * ((double)i + 0.5);
        bc_buf_printf(out,
                      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"start\" transform=\"rotate(-45 "
                      "%.1f %.1f)\">",
                      x, top - 4, x, top - 4);
        report_escape(out, s->names[i]);
        bc_buf_puts(out, "</text>\n");
    }
}

bool report_heat_map(const struct report *report, struct bc_buf *out)
{
    const struct series s = collect_series(report);
    const double top = 74, row = s.n_layers > 40 ? 12 : 17;
    double min, max;
    if (s.n == 0) return false;
    zero_range(report, &min, &max);
    const double right = 40; /* room for the last slanted head */
    const double cell = (WIDTH - LEFT - right) / (double)s.n;
    open_svg(out, (int)(top + row * s.n_layers) + 4, "share of zeros by layer and projection");
    heat_heads(out, &s, cell, top);
    for (uint32_t l = 0; l < s.n_layers; l++) {
        char label[16];
        snprintf(label, sizeof label, "%" PRIu32, l);
        if (row >= 17 || l % 2 == 0)
            text_at(out, LEFT - 6, top + row * (l + 1) - 4.5, "end", label);
    }
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        const size_t column = is_drawn(t) ? find_series(&s, t->projection) : s.n;
        if (column == s.n) continue;
        const double strength = max > min ? (t->zeros - min) / (max - min) : 0.5;
        heat_cell(out, t, LEFT + cell * (double)column, top + row * t->layer, cell, row, strength);
    }
    bc_buf_puts(out, "</svg>\n");
    bc_buf_printf(out,
                  "<p class=\"legend\">numbers: per cent zeros; layers downwards <span>%.1f %%<i "
                  "class=\"ramp\"></i>%.1f %%</span></p>\n",
                  100 * min, 100 * max);
    return true;
}

/* ---- bits per weight against the share of zeros ---- */

enum { BITS_TOP = 12, BITS_HEIGHT = 210 };

static double bits_x(double zeros)
{
    return LEFT + zeros * (WIDTH - LEFT - RIGHT);
}

static double bits_y(double bits, double most)
{
    return BITS_TOP + BITS_HEIGHT * (1 - bits / most);
}

static void bits_axes(struct bc_buf *out, double most)
{
    char label[16];
    for (double b = 0; b <= most + 1e-9; b += most > 4 ? 4 : 0.5) {
        line_at(out, "grid", LEFT, bits_y(b, most), WIDTH - RIGHT, bits_y(b, most));
        snprintf(label, sizeof label, "%g", b);
        text_at(out, LEFT - 6, bits_y(b, most) + 4, "end", label);
    }
    for (int z = 0; z <= 100; z += 25) {
        snprintf(label, sizeof label, "%d %%", z);
        text_at(out, bits_x(z / 100.0), BITS_TOP + BITS_HEIGHT + 16, z == 100 ? "end" : "middle",
                label);
    }
}

static void bits_curves(struct bc_buf *out, double most)
{
    bc_buf_puts(out, "<polyline class=\"bound\" points=\"");
    for (int i = 0; i <= 100; i++)
        bc_buf_printf(out, "%.1f,%.1f ", bits_x(i / 100.0),
                      bits_y(bitconv_entropy_bound(i / 100.0), most));
    bc_buf_puts(out, "\"/>\n");
    line_at(out, "guide", bits_x(0), bits_y(2, most), bits_x(1), bits_y(1, most));
    line_at(out, "guide", bits_x(0), bits_y(1.6, most), bits_x(1), bits_y(1.6, most));
    text_at(out, bits_x(0.04), bits_y(2, most) - 5, "start", "BITCOS 2 - z");
    text_at(out, bits_x(1) - 4, bits_y(1.6, most) - 4, "end", "five trits a byte 1.6");
    text_at(out, bits_x(0.05), bits_y(bitconv_entropy_bound(0.02), most) + 14, "start",
            "entropy bound");
}

static double bits_of(const struct report_tensor *t)
{
    return t->parameters > 0 ? 8.0 * (double)t->bytes / (double)t->parameters : 0;
}

/* Packs in order of appearance: the colours of the dots. */
static struct series collect_packs(const struct report *report, double *most)
{
    struct series packs = {.n = 0};
    *most = 2.5;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        if (t->pack == NULL || t->zeros < 0) continue;
        add_series(&packs, t->pack);
        if (bits_of(t) > *most) *most = fmin(32, ceil(bits_of(t)));
    }
    return packs;
}

bool report_bits_chart(const struct report *report, struct bc_buf *out)
{
    double most;
    const struct series packs = collect_packs(report, &most);
    if (packs.n == 0) return false;
    open_svg(out, BITS_TOP + BITS_HEIGHT + 24, "bits per weight against the share of zeros");
    bits_axes(out, most);
    bits_curves(out, most);
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        char value[80];
        if (t->pack == NULL || t->zeros < 0) continue;
        snprintf(value, sizeof value, "%.3f bits, %.1f %% zeros", bits_of(t), 100 * t->zeros);
        dot_at(out, find_series(&packs, t->pack), bits_x(t->zeros),
               bits_y(fmin(bits_of(t), most), most), t, value);
    }
    bc_buf_puts(out, "</svg>\n");
    legend(out, &packs);
    return true;
}

/* ---- scales by layer ---- */

static bool has_scale(const struct report_tensor *t)
{
    return is_drawn(t) && t->scale > 0 && t->scale < INFINITY;
}

/* Whole decades around the scales, as exponents of 10; false: there are none. */
static bool scale_decades(const struct report *report, int *low, int *high)
{
    double min = INFINITY, max = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        if (!has_scale(t)) continue;
        min = fmin(min, (double)t->scale);
        max = fmax(max, (double)t->scale);
    }
    if (max == 0) return false;
    *low = (int)floor(log10(min));
    *high = (int)ceil(log10(max));
    if (*high == *low) ++*high;
    return true;
}

static double scale_y(double scale, int low, int high)
{
    return BITS_TOP + BITS_HEIGHT * (1 - (log10(scale) - low) / (high - low));
}

static double layer_x(uint32_t layer, uint32_t n_layers)
{
    const double span = WIDTH - LEFT - RIGHT - 12;
    return LEFT + 6 + (n_layers > 1 ? span * layer / (n_layers - 1) : span / 2);
}

static void scale_axes(struct bc_buf *out, const struct series *s, int low, int high)
{
    const int step = (high - low + 7) / 8;
    char label[24];
    for (int d = low; d <= high; d += step) {
        const double y = scale_y(pow(10, d), low, high);
        line_at(out, "grid", LEFT, y, WIDTH - RIGHT, y);
        snprintf(label, sizeof label, "1e%d", d);
        text_at(out, LEFT - 6, y + 4, "end", label);
    }
    const uint32_t every = s->n_layers > 10 ? (s->n_layers + 7) / 8 : 1;
    for (uint32_t l = 0; l < s->n_layers; l += every) {
        snprintf(label, sizeof label, "%" PRIu32, l);
        text_at(out, layer_x(l, s->n_layers), BITS_TOP + BITS_HEIGHT + 16, "middle", label);
    }
}

static int by_layer(const void *a, const void *b)
{
    const struct report_tensor *const *x = a;
    const struct report_tensor *const *y = b;
    return (*x)->layer < (*y)->layer ? -1 : (*x)->layer > (*y)->layer;
}

/* The tensors of one projection that have a scale, by layer, into `picked` (room for all). */
static size_t pick_series(const struct report *report, const char *projection,
                          const struct report_tensor **picked)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        if (has_scale(t) && strcmp(t->projection, projection) == 0) picked[n++] = t;
    }
    if (n > 1) qsort(picked, n, sizeof *picked, by_layer);
    return n;
}

static void scale_series(const struct report_tensor *const *picked, size_t n, size_t color,
                         uint32_t n_layers, int low, int high, struct bc_buf *out)
{
    char value[40];
    bc_buf_printf(out, "<polyline class=\"l%zu\" points=\"", color % N_COLORS);
    for (size_t i = 0; i < n; i++)
        bc_buf_printf(out, "%.1f,%.1f ", layer_x(picked[i]->layer, n_layers),
                      scale_y((double)picked[i]->scale, low, high));
    bc_buf_puts(out, "\"/>\n");
    for (size_t i = 0; i < n; i++) {
        snprintf(value, sizeof value, "scale %.6g", (double)picked[i]->scale);
        dot_at(out, color, layer_x(picked[i]->layer, n_layers),
               scale_y((double)picked[i]->scale, low, high), picked[i], value);
    }
}

bool report_scale_chart(const struct report *report, struct bc_buf *out)
{
    const struct series s = collect_series(report);
    int low, high;
    if (s.n == 0 || !scale_decades(report, &low, &high)) return false;
    open_svg(out, BITS_TOP + BITS_HEIGHT + 24, "scales by layer");
    scale_axes(out, &s, low, high);
    const struct report_tensor **picked = bc_alloc_array(report->n_tensors, sizeof *picked);
    out->failed |= picked == NULL;
    for (size_t i = 0; picked != NULL && i < s.n; i++) {
        const size_t n = pick_series(report, s.names[i], picked);
        scale_series(picked, n, i, s.n_layers, low, high, out);
    }
    bc_free(picked);
    bc_buf_puts(out, "</svg>\n");
    legend(out, &s);
    return true;
}

/* ---- bytes by part of the model ---- */

struct part {
    const char *group, *type;
    uint64_t bytes;
};

static size_t collect_parts(const struct report *report, struct part parts[MAX_PARTS])
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        const char *type = t->pack != NULL ? t->pack : t->type;
        size_t at = 0;
        while (at < n &&
               (strcmp(parts[at].group, t->group) != 0 || strcmp(parts[at].type, type) != 0))
            at++;
        if (at == n && n == MAX_PARTS) continue;
        if (at == n) parts[n++] = (struct part){t->group, type, 0};
        parts[at].bytes += t->bytes;
    }
    return n;
}

static uint64_t most_bytes(const struct part *parts, size_t n)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++)
        if (parts[i].bytes > most) most = parts[i].bytes;
    return most;
}

bool report_size_chart(const struct report *report, struct bc_buf *out)
{
    const int row = 24, label_width = 150, room = WIDTH - label_width - 78;
    struct part parts[MAX_PARTS];
    const size_t n = collect_parts(report, parts);
    const uint64_t most = most_bytes(parts, n);
    if (most == 0) return false;
    open_svg(out, row * (int)n + 6, "bytes by part of the model");
    for (size_t i = 0; i < n; i++) {
        const double y = (double)row * (double)i, w = room * (double)parts[i].bytes / (double)most;
        struct bc_buf text = {0};
        bc_buf_printf(&text, "%s, %s", parts[i].group, parts[i].type);
        text_at(out, label_width - 8, y + 16, "end", bc_buf_str(&text));
        bc_buf_printf(out,
                      "<rect class=\"bar\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                      label_width, y + 4, fmax(w, 1), row - 8);
        bc_buf_clear(&text);
        ui_bytes(&text, parts[i].bytes);
        text_at(out, label_width + fmax(w, 1) + 6, y + 16, "start", bc_buf_str(&text));
        bc_buf_release(&text);
    }
    bc_buf_puts(out, "</svg>\n");
    return true;
}
