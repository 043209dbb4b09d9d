/* SPDX-License-Identifier: MIT
 * `--report FILE.html`: what a command found, as one page for a browser. It is self-contained (no
 * script, no font, nothing fetched), light or dark as the reader's system is, and fits a phone. */
#ifndef BC_TOOLS_REPORT_H
#define BC_TOOLS_REPORT_H

#include "bitconv/convert.h"
#include "bitconv/inspect.h"
#include "ui.h"
#include "verify_view.h"

#define REPORT_DOCTYPE "<!doctype html>" /* how every page begins */

/* One tensor as the page shows it. Strings are borrowed. */
struct report_tensor {
    const char *name, *type;
    const char *pack;    /* NULL: not ternary */
    const char *note;    /* how its trits were obtained, or its problem; NULL: nothing */
    const char *group;   /* part of the model: "attention", "norms", ... */
    uint32_t layer;      /* of "blk.N.PROJECTION.weight" */
    bool has_layer;      /* false: the name has none */
    char projection[40]; /* "attn_q"; the whole name, cut, when there is no layer */
    uint32_t n_dims;
    uint64_t ne[4];
    uint64_t parameters, bytes;
    double zeros; /* share of zero trits; -1: not known */
    float scale;  /* of slice 0; 0: not known */
    bool bad;     /* a verification found a difference */
};

struct report_fact {
    const char *label;
    char value[160];
};

struct report {
    const char *command; /* "inspect", "convert", "verify" */
    const char *file;
    int verdict; /* 1 passed, 0 failed, -1 nothing was judged */
    struct report_fact facts[16];
    size_t n_facts;
    const struct bitconv_proof *proofs;
    size_t n_proofs;
    struct report_tensor *tensors; /* owned; file order; NULL: out of memory */
    size_t n_tensors;
    const char *const *warnings;
    size_t n_warnings;
};

/* Fill *out from a command's result, whose strings are borrowed; report_write in any case. The
 * inspection must have been made with statistics. */
void report_from_inspection(const struct bitconv_inspection *it, struct report *out);
void report_from_conversion(const struct bitconv_conversion *c, const struct ui *ui,
                            struct report *out);
void report_from_verification(const struct verify_view *view, struct report *out);

/* The page. */
void report_html(const struct report *report, struct bc_buf *out);
/* Appends text with markup characters escaped and control characters masked. */
void report_escape(struct bc_buf *out, const char *text);

/* The charts (report_charts.c): SVG that takes its colours from the page. Each appends one, or
 * nothing where the report has nothing to show; true when it did. */
bool report_heat_map(const struct report *report, struct bc_buf *out);    /* zeros */
bool report_bits_chart(const struct report *report, struct bc_buf *out);  /* bits against zeros */
bool report_scale_chart(const struct report *report, struct bc_buf *out); /* scales by layer */
bool report_size_chart(const struct report *report, struct bc_buf *out);  /* bytes by part */

/* Whether the page may be written there, asked before the work: refuses an existing file without
 * `force`, and with it one that is no HTML page, and the place of the command's `other` output
 * (NULL: none), be it there already or not. Then writes it, atomically, and releases the
 * report. Both print the reason on failure and return the exit status. */
int report_check_target(struct ui *ui, const char *path, const char *other, bool force);
int report_write(struct ui *ui, const char *path, bool force, struct report *report);

#endif
