/* SPDX-License-Identifier: MIT
 * The page of a report: head, proofs, charts, tables. */
#include "report.h"
#include "bitconv/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "bitconv/support.h"

/* Colours have a light and a dark value; everything else uses them by name. The eight of the series
 * keep a contrast of at least 3 to 1 against either ground. */
static const char style[] =
    ":root{color-scheme:light dark;--ground:#fff;--card:#f6f7f9;--ink:#1b1f24;--dim:#59636e;"
    "--grid:#d5dae0;--accent:#1f5fbf;--on:#fff;--good:#1a7f37;--bad:#c62828;--c0:#1f5fbf;"
    "--c1:#b35900;--c2:#1a7f37;--c3:#b5297b;--c4:#6b46c1;--c5:#0b7285;--c6:#8a6100;--c7:#5c6770}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#12161b;--card:#1b2128;--ink:#e7ebef;"
    "--dim:#a3adb8;--grid:#37404a;--accent:#6ba6ff;--on:#0b1017;--good:#5fce7e;--bad:#ff7b72;"
    "--c0:#6ba6ff;--c1:#f0a04b;--c2:#5fce7e;--c3:#f279bd;--c4:#b79bff;--c5:#4fd0e0;--c6:#e0c04b;"
    "--c7:#a3adb8}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}main{max-width:1120px;margin:0 auto;padding:16px}\n"
    "h1{font-size:1.35rem;line-height:1.25;margin:.3em 0;overflow-wrap:anywhere}"
    "h2{font-size:1.05rem;margin:0 0 .5em}p{margin:.4em 0}.dim,.legend{color:var(--dim)}\n"
    ".grid{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr))"
    ";"
    "align-items:start}.card{background:var(--card);border-radius:10px;padding:16px;min-width:0;"
    "margin:0 0 16px}.grid .card{margin:0}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0}"
    "dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}\n"
    ".good{color:var(--good)}.bad{color:var(--bad)}.legend{font-size:.85rem}"
    ".legend span{white-space:nowrap;margin-right:.8em}.legend i{display:inline-block;width:.8em;"
    "height:.8em;border-radius:50%;margin-right:.35em;vertical-align:-.05em}"
    ".legend i.ramp{width:6em;border-radius:3px;margin:0 .5em;"
    "background:linear-gradient(90deg,var(--card),var(--accent))}\n"
    "svg{display:block;width:100%;max-width:560px;height:auto;margin:0 auto}"
    "svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg text.on{fill:var(--on)}"
    ".grid line,.guide,.bound{fill:none}line.grid{stroke:var(--grid);stroke-width:1}"
    ".guide{stroke:var(--dim);stroke-width:1;stroke-dasharray:4 3}"
    ".bound{stroke:var(--ink);stroke-width:1.5}.heat,.bar{fill:var(--accent)}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;width:100%}"
    "th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--grid);"
    "vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}summary{cursor:pointer;font-weight:600}\n"
    "@media(max-width:480px){main{padding:8px}.card{padding:12px}}\n";

void report_escape(struct bc_buf *out, const char *text)
{
    struct bc_buf masked = {0};
    bc_utf8_mask(&masked, text, strlen(text), 0);
    for (const char *c = bc_buf_str(&masked); *c != '\0'; c++) {
        switch (*c) {
        case '&':
            bc_buf_puts(out, "&amp;");
            break;
        case '<':
            bc_buf_puts(out, "&lt;");
            break;
        case '>':
            bc_buf_puts(out, "&gt;");
            break;
        case '"':
            bc_buf_puts(out, "&quot;");
            break;
        case '\'':
            bc_buf_puts(out, "&#39;");
            break;
        default:
            bc_buf_putc(out, *c);
        }
    }
    out->failed |= masked.failed;
    bc_buf_release(&masked);
}

static void element(struct bc_buf *out, const char *tag, const char *class, const char *text)
{
    bc_buf_printf(out, class != NULL ? "<%s class=\"%s\">" : "<%s>", tag, class);
    report_escape(out, text);
    bc_buf_printf(out, "</%s>", tag);
}

static void write_style(struct bc_buf *out)
{
    bc_buf_puts(out, "<style>\n");
    bc_buf_puts(out, style);
    for (int i = 0; i < 8; i++)
        bc_buf_printf(out,
                      ".c%d{fill:var(--c%d)}.b%d{background:var(--c%d)}.l%d{stroke:var(--c%d);"
                      "fill:none;stroke-width:1;stroke-opacity:.5}\n",
                      i, i, i, i, i, i);
    bc_buf_puts(out, "</style>\n");
}

static void write_head(const struct report *report, struct bc_buf *out)
{
    bc_buf_puts(out, REPORT_DOCTYPE "\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                                    "<meta name=\"viewport\" content=\"width=device-width, "
                                    "initial-scale=1\">\n<title>bitconv ");
    bc_buf_printf(out, "%s: ", report->command);
    report_escape(out, report->file);
    bc_buf_puts(out, "</title>\n");
    write_style(out);
    bc_buf_puts(out, "</head><body><main>\n<h1>");
    report_escape(out, report->file);
    bc_buf_puts(out, "</h1>\n");
    if (report->verdict >= 0)
        element(out, "p", report->verdict ? "good" : "bad",
                report->verdict ? "\xe2\x9c\x93 every proof that was run passed"
                                : "\xe2\x9c\x97 a proof failed");
    bc_buf_printf(out, "<p class=\"dim\">bitconv %s</p>\n", report->command);
}

static void write_facts(const struct report *report, struct bc_buf *out)
{
    bc_buf_puts(out, "<section class=\"card\"><dl>\n");
    for (size_t i = 0; i < report->n_facts; i++) {
        element(out, "dt", NULL, report->facts[i].label);
        element(out, "dd", NULL, report->facts[i].value);
        bc_buf_putc(out, '\n');
    }
    bc_buf_puts(out, "</dl></section>\n");
}

static void write_proofs(const struct report *report, struct bc_buf *out)
{
    static const char *const verdicts[] = {[BITCONV_PASSED] = "\xe2\x9c\x93 passed",
                                           [BITCONV_FAILED] = "\xe2\x9c\x97 failed",
                                           [BITCONV_NOT_RUN] = "not run"};
    static const char *const classes[] = {
        [BITCONV_PASSED] = "good", [BITCONV_FAILED] = "bad", [BITCONV_NOT_RUN] = "dim"};
    if (report->n_proofs == 0) return;
    bc_buf_puts(out, "<section class=\"card\"><h2>Proofs</h2><table>\n");
    for (size_t i = 0; i < report->n_proofs; i++) {
        const struct bitconv_proof *p = &report->proofs[i];
        bc_buf_puts(out, "<tr>");
        element(out, "td", NULL, p->name);
        element(out, "td", classes[p->verdict], verdicts[p->verdict]);
        element(out, "td", NULL, p->detail != NULL ? p->detail : "");
        bc_buf_puts(out, "</tr>\n");
    }
    bc_buf_puts(out, "</table></section>\n");
}

static void write_warnings(const struct report *report, struct bc_buf *out)
{
    if (report->n_warnings == 0) return;
    bc_buf_puts(out, "<section class=\"card\"><h2>Warnings</h2><ul>\n");
    for (size_t i = 0; i < report->n_warnings; i++)
        element(out, "li", NULL, report->warnings[i]);
    bc_buf_puts(out, "</ul></section>\n");
}

static void write_chart(const struct report *report, const char *title, const char *what,
                        bool (*chart)(const struct report *, struct bc_buf *), struct bc_buf *out)
{
    struct bc_buf svg = {0};
    if (chart(report, &svg)) {
        bc_buf_printf(out, "<section class=\"card\"><h2>%s</h2><p class=\"dim\">%s</p>\n", title,
                      what);
        bc_buf_append(out, svg.data, svg.size);
        bc_buf_puts(out, "</section>\n");
    }
    out->failed |= svg.failed;
    bc_buf_release(&svg);
}

static void write_charts(const struct report *report, struct bc_buf *out)
{
    bc_buf_puts(out, "<div class=\"grid\">\n");
    write_chart(report, "Zeros", "share of zero weights by layer and projection", report_heat_map,
                out);
    write_chart(report, "Bits per weight",
                "each ternary tensor by its share of zeros, against the entropy bound",
                report_bits_chart, out);
    write_chart(report, "Scales", "of each projection by layer, logarithmic", report_scale_chart,
                out);
    write_chart(report, "Sizes", "bytes by part of the model and type", report_size_chart, out);
    bc_buf_puts(out, "</div>\n");
}

struct pack_total {
    const char *pack;
    uint64_t n, parameters, bytes;
    double bound; /* bits of all its tensors together */
};

static size_t collect_totals(const struct report *report, struct pack_total *totals, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct report_tensor *t = &report->tensors[i];
        size_t at = 0;
        if (t->pack == NULL || t->zeros < 0) continue;
        while (at < n && strcmp(totals[at].pack, t->pack) != 0)
            at++;
        if (at == n && n == room) continue;
        if (at == n) totals[n++] = (struct pack_total){.pack = t->pack};
        totals[at].n++;
        totals[at].parameters += t->parameters;
        totals[at].bytes += t->bytes;
        totals[at].bound += bitconv_entropy_bound(t->zeros) * (double)t->parameters;
    }
    return n;
}

static void write_packs(const struct report *report, struct bc_buf *out)
{
    struct pack_total totals[32];
    const size_t n = collect_totals(report, totals, 32);
    if (n == 0) return;
    bc_buf_puts(out, "<section class=\"card\" style=\"margin-top:16px\"><h2>Packs</h2><div "
                     "class=\"scroll\"><table>\n<tr><th>pack</th><th class=\"n\">tensors</th><th "
                     "class=\"n\">size</th><th class=\"n\">bits per weight</th><th "
                     "class=\"n\">entropy bound</th></tr>\n");
    for (size_t i = 0; i < n; i++) {
        const struct pack_total *t = &totals[i];
        const double weights = t->parameters > 0 ? (double)t->parameters : 1;
        bc_buf_puts(out, "<tr>");
        element(out, "td", NULL, t->pack);
        bc_buf_printf(out, "<td class=\"n\">%" PRIu64 "</td><td class=\"n\">", t->n);
        ui_bytes(out, t->bytes);
        bc_buf_printf(out, "</td><td class=\"n\">%.3f</td><td class=\"n\">%.3f</td></tr>\n",
                      8.0 * (double)t->bytes / weights, t->bound / weights);
    }
    bc_buf_puts(out, "</table></div></section>\n");
}

static void write_tensor(const struct report_tensor *t, struct bc_buf *out)
{
    bc_buf_puts(out, "<tr>");
    element(out, "td", t->bad ? "bad" : NULL, t->name);
    element(out, "td", NULL, t->pack != NULL ? t->pack : t->type);
    bc_buf_puts(out, "<td class=\"n\">");
    for (uint32_t d = 0; d < t->n_dims && d < 4; d++)
        bc_buf_printf(out, "%s%" PRIu64, d > 0 ? " x " : "", t->ne[d]);
    bc_buf_puts(out, "</td><td class=\"n\">");
    ui_bytes(out, t->bytes);
    bc_buf_puts(out, "</td><td class=\"n\">");
    if (t->zeros >= 0) bc_buf_printf(out, "%.2f %%", 100 * t->zeros);
    bc_buf_puts(out, "</td><td class=\"n\">");
    if (t->scale != 0) bc_buf_printf(out, "%.6g", (double)t->scale);
    bc_buf_puts(out, "</td>");
    element(out, "td", t->bad ? "bad" : NULL, t->note != NULL ? t->note : "");
    bc_buf_puts(out, "</tr>\n");
}

static void write_tensors(const struct report *report, struct bc_buf *out)
{
    if (report->n_tensors == 0) return;
    bc_buf_printf(
        out,
        "<section class=\"card\" style=\"margin-top:16px\"><details><summary>All %zu "
        "tensors</summary><div class=\"scroll\"><table>\n<tr><th>tensor</th><th>type</th>"
        "<th class=\"n\">shape</th><th class=\"n\">size</th><th class=\"n\">zeros</th><th "
        "class=\"n\">scale</th><th></th></tr>\n",
        report->n_tensors);
    for (size_t i = 0; i < report->n_tensors; i++)
        write_tensor(&report->tensors[i], out);
    bc_buf_puts(out, "</table></div></details></section>\n");
}

void report_html(const struct report *report, struct bc_buf *out)
{
    write_head(report, out);
    write_facts(report, out);
    write_proofs(report, out);
    write_warnings(report, out);
    write_charts(report, out);
    write_packs(report, out);
    write_tensors(report, out);
    bc_buf_puts(out, "</main></body></html>\n");
}
