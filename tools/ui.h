/* SPDX-License-Identifier: MIT
 * What a person sees: messages and progress on stderr, colour only where wanted, masked names,
 * tables. */
#ifndef BC_TOOLS_UI_H
#define BC_TOOLS_UI_H

#include "base/mem.h"
#include "bitconv/status.h"
#include "opts.h"

/* Texts that are kept. Zero-initialise. */
struct text_list {
    char **items;
    size_t n, cap;
};
/* A copy; lost when memory runs out, as it is only said again. */
void text_list_add(struct text_list *list, const char *text);
void text_list_release(struct text_list *list);

struct ui {
    const struct globals *globals;
    bool color_out, color_err; /* a terminal, no NO_COLOR, TERM not dumb */
    bool progress;             /* the same of stderr, not --quiet/--no-progress/--json */
    bool progress_shown;
    uint64_t progress_start_ns, progress_last_ns;
    const char *progress_what;
    char last_finding[sizeof((struct bitconv_error *)0)->text]; /* so that it is not said twice */
    struct text_list warnings, findings;                        /* so far, for --json */
    size_t n_findings_hidden; /* of these, not printed: only the first few are without --verbose */
    struct bitconv_sink sink; /* hand this to the library: prints notes (verbose), warnings,
                                 findings, progress; cancel is raised by SIGINT/SIGTERM */
};

enum ui_style { UI_PLAIN, UI_BOLD, UI_DIM, UI_RED, UI_GREEN, UI_YELLOW };

void ui_init(struct ui *ui, const struct globals *globals);
void ui_release(struct ui *ui);

/* Exit status for a failed call, after printing "bitconv: TEXT" (masked, one line) to stderr:
 * 1 for MISMATCH, 128 + signal for CANCELED (message "interrupted"), else 2. */
int ui_fail(struct ui *ui, const struct bitconv_error *err);
/* The same for commands that prove nothing: what they find wrong is 2 as well, they could not do it. */
int ui_fail_to_do(struct ui *ui, const struct bitconv_error *err);
/* The same for a usage error of the tool itself; returns 2. */
int ui_usage(struct ui *ui, const char *command, const char *fmt, ...) BC_PRINTF(3, 4);
/* "bitconv: warning: ..." on stderr (not with --quiet) and into ui->warnings. */
void ui_warn(struct ui *ui, const char *fmt, ...) BC_PRINTF(2, 3);

/* Escape sequences for stdout, "" where colour is off: printf("%s%s%s", ui_on(ui, UI_BOLD), s,
 * ui_off(ui)). */
const char *ui_on(const struct ui *ui, enum ui_style style);
const char *ui_off(const struct ui *ui);

/* Whether a file that was written is standard output itself, which then has no room for a report. */
bool ui_is_stdout(const char *path);
/* Writes a buffer to stdout. Untrusted text must have been masked (bc_utf8_mask) or JSON-escaped
 * before. */
void ui_write(const struct bc_buf *buf);
/* The same for one of many pieces, and empties the buffer. BITCONV_E_IO once standard output has failed:
 * nobody reads the rest, so there is no use in computing it. */
enum bitconv_status ui_stream(struct bc_buf *buf, struct bitconv_error *err);
/* "wrote PATH" behind a report, for a file beside it; nothing with --json or --quiet. */
void ui_wrote(const struct ui *ui, const char *path);
/* Writes a complete report and releases the buffer; returns the exit status: 0, or 2 after saying
 * that memory ran out while it was made. */
int ui_finish(struct ui *ui, struct bc_buf *buf);
/* Writes s masked, padded with blanks to `width` columns (0: no padding), cut with ".." when longer
 * and cut is true. Widths count code points. */
void ui_cell(struct bc_buf *buf, const char *s, size_t width, bool cut);
/* "1.18 GiB", "512 B". */
void ui_bytes(struct bc_buf *buf, uint64_t bytes);
/* "1 234 567" (thin groups of three, plain blanks). */
void ui_count(struct bc_buf *buf, uint64_t n);
/* Width of the terminal on stdout for tables: 80 unless it is a wider terminal. */
size_t ui_columns(void);

#endif
