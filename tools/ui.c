/* SPDX-License-Identifier: MIT
 * Messages, progress, signals and table cells of the command-line tool. */
#include "ui.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"

enum { SHOWN_FINDINGS = 5 }; /* reasons for a refusal, without --verbose */

/* Raised by SIGINT and SIGTERM; holds the signal's number. The one thing a handler may touch. */
static volatile sig_atomic_t raised_signal;

static void on_signal(int number)
{
    raised_signal = number;
}

static void catch_signals(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    /* A second signal ends the process at once. */
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    /* A full pipe is an ordinary write error, and so is a file beyond ulimit -f. */
    struct sigaction ignore = {0};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

/* Whether it is a terminal that knows escape sequences. */
static bool takes_escapes(int fd)
{
    const char *const term = getenv("TERM");
    return isatty(fd) == 1 && !(term && strcmp(term, "dumb") == 0);
}

static bool wants_color(int fd)
{
    const char *const no_color = getenv("NO_COLOR");
    return takes_escapes(fd) && !(no_color && no_color[0]);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void clear_progress(struct ui *ui)
{
    if (ui->progress_shown) fputs("\r\033[K", stderr);
    ui->progress_shown = false;
}

static void print_line(struct ui *ui, enum ui_style style, const char *label, const char *text)
{
    static const char *const codes[] = {"",         "\033[1m",  "\033[2m",
                                        "\033[31m", "\033[32m", "\033[33m"};
    struct bc_buf masked = {0};
    clear_progress(ui);
    bc_utf8_mask(&masked, text, strlen(text), 0);
    fprintf(stderr, "bitconv: %s%s%s%s\n", ui->color_err ? codes[style] : "", label,
            ui->color_err && codes[style][0] ? "\033[0m" : "", bc_buf_str(&masked));
    bc_buf_release(&masked);
}

void text_list_add(struct text_list *list, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = bc_alloc_array(size, 1);
    if (copy == NULL || !bc_grow((void **)&list->items, &list->cap, list->n, sizeof *list->items)) {
        bc_free(copy);
        return;
    }
    memcpy(copy, text, size);
    list->items[list->n++] = copy;
}

void text_list_release(struct text_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        bc_free(list->items[i]);
    bc_free(list->items);
    *list = (struct text_list){.items = NULL};
}

/* One of the reasons for a refusal. A model of which everything is wrong gives hundreds. */
static void on_finding(struct ui *ui, const char *text)
{
    text_list_add(&ui->findings, text);
    if (ui->findings.n > SHOWN_FINDINGS && !ui->globals->verbose) {
        ui->n_findings_hidden++;
        return;
    }
    print_line(ui, UI_PLAIN, "", text);
    snprintf(ui->last_finding, sizeof ui->last_finding, "%s", text);
}

/* In place of the findings that were not shown; a line that would stand for one is that one. */
static void count_hidden_findings(struct ui *ui)
{
    const char *const last = ui->findings.n > 0 ? ui->findings.items[ui->findings.n - 1] : "";
    char text[80];
    snprintf(text, sizeof text, "and %zu more (--verbose shows all)", ui->n_findings_hidden);
    if (ui->n_findings_hidden > 0)
        print_line(ui, UI_PLAIN, "", ui->n_findings_hidden == 1 ? last : text);
    ui->n_findings_hidden = 0;
}

static void on_message(void *user, enum bitconv_severity severity, const char *text)
{
    struct ui *ui = user;
    if (severity == BITCONV_NOTE) {
        if (ui->globals->verbose) print_line(ui, UI_DIM, "note: ", text);
    } else if (severity == BITCONV_WARNING) {
        text_list_add(&ui->warnings, text);
        if (!ui->globals->quiet) print_line(ui, UI_YELLOW, "warning: ", text);
    } else {
        on_finding(ui, text);
    }
}

static void on_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct ui *ui = user;
    if (!ui->progress || total == 0) return;
    const uint64_t now = now_ns();
    if (ui->progress_what == NULL || strcmp(ui->progress_what, what) != 0) {
        ui->progress_what = what;
        ui->progress_start_ns = now;
        ui->progress_last_ns = 0;
    }
    if (done >= total) {
        clear_progress(ui);
        return;
    }
    if (now - ui->progress_last_ns < 100000000u) return;
    ui->progress_last_ns = now;
    const double seconds = (double)(now - ui->progress_start_ns) / 1e9;
    const double rate = seconds > 0 ? (double)done / seconds : 0;
    const unsigned percent = (unsigned)((double)done * 100.0 / (double)total);
    char bar[21];
    for (unsigned i = 0; i < 20; i++)
        bar[i] = i < percent / 5 ? '#' : '.';
    bar[20] = '\0';
    fprintf(stderr, "\r\033[K%-11.11s [%s] %3u%%", what, bar, percent);
    /* What is counted in steps, not in bytes, has no rate worth a number. */
    if (rate >= 0.05e6) fprintf(stderr, "  %7.1f MB/s", rate / 1e6);
    if (rate > 0) fprintf(stderr, "  ETA %.0f s", (double)(total - done) / rate);
    fflush(stderr);
    ui->progress_shown = true;
}

void ui_init(struct ui *ui, const struct globals *globals)
{
    memset(ui, 0, sizeof *ui);
    ui->globals = globals;
    ui->color_out = wants_color(STDOUT_FILENO);
    ui->color_err = wants_color(STDERR_FILENO);
    ui->progress =
        takes_escapes(STDERR_FILENO) && !globals->quiet && !globals->no_progress && !globals->json;
    ui->sink.message = on_message;
    ui->sink.progress = on_progress;
    ui->sink.user = ui;
    ui->sink.cancel = &raised_signal;
    catch_signals();
}

void ui_release(struct ui *ui)
{
    clear_progress(ui);
    text_list_release(&ui->warnings);
    text_list_release(&ui->findings);
    memset(ui, 0, sizeof *ui);
}

int ui_fail(struct ui *ui, const struct bitconv_error *err)
{
    if (err->status == BITCONV_E_CANCELED) {
        print_line(ui, UI_RED, "", "interrupted");
        return 128 + (raised_signal ? (int)raised_signal : SIGINT);
    }
    /* That standard output has failed is said at the end, once. */
    if (err->status == BITCONV_E_IO && ferror(stdout) != 0) return 2;
    count_hidden_findings(ui);
    /* The only reason for a refusal has been said as a finding already: once is enough. */
    if (strcmp(err->text, ui->last_finding) != 0 || err->text[0] == '\0')
        print_line(ui, UI_RED, "", err->text[0] ? err->text : bitconv_status_name(err->status));
    return err->status == BITCONV_E_MISMATCH ? 1 : 2;
}

int ui_fail_to_do(struct ui *ui, const struct bitconv_error *err)
{
    const int status = ui_fail(ui, err);
    return status == 1 ? 2 : status;
}

int ui_usage(struct ui *ui, const char *command, const char *fmt, ...)
{
    struct bc_buf text = {0};
    va_list ap;
    bc_buf_printf(&text, "%s: ", command);
    va_start(ap, fmt);
    bc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    bc_buf_printf(&text, " (try `bitconv %s --help`)", command);
    print_line(ui, UI_PLAIN, "", bc_buf_str(&text));
    bc_buf_release(&text);
    return 2;
}

void ui_warn(struct ui *ui, const char *fmt, ...)
{
    struct bc_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    bc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    on_message(ui, BITCONV_WARNING, bc_buf_str(&text));
    bc_buf_release(&text);
}

const char *ui_on(const struct ui *ui, enum ui_style style)
{
    static const char *const codes[] = {"",         "\033[1m",  "\033[2m",
                                        "\033[31m", "\033[32m", "\033[33m"};
    return ui->color_out ? codes[style] : "";
}

const char *ui_off(const struct ui *ui)
{
    return ui->color_out ? "\033[0m" : "";
}

void ui_write(const struct bc_buf *buf)
{
    fwrite(bc_buf_str(buf), 1, buf->size, stdout);
}

enum bitconv_status ui_stream(struct bc_buf *buf, struct bitconv_error *err)
{
    ui_write(buf);
    bc_buf_clear(buf);
    if (ferror(stdout) == 0) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_IO, "standard output: write error");
}

void ui_wrote(const struct ui *ui, const char *path)
{
    if (ui->globals->json || ui->globals->quiet || ui_is_stdout(path)) return;
    struct bc_buf line = {0};
    bc_buf_puts(&line, "\nwrote ");
    ui_cell(&line, path, 0, false);
    bc_buf_putc(&line, '\n');
    ui_write(&line);
    bc_buf_release(&line);
}

int ui_finish(struct ui *ui, struct bc_buf *buf)
{
    const struct bitconv_error nomem = {.status = BITCONV_E_NOMEM, .text = "out of memory"};
    const bool failed = buf->failed;
    if (!failed) ui_write(buf);
    bc_buf_release(buf);
    return failed ? ui_fail(ui, &nomem) : 0;
}

/* Bytes of the first `count` code points of s. */
static size_t prefix_bytes(const char *s, size_t len, size_t count)
{
    size_t at = 0;
    while (at < len && count > 0) {
        uint32_t cp;
        const size_t n = bc_utf8_decode(s + at, len - at, &cp);
        at += n ? n : 1;
        count--;
    }
    return at;
}

void ui_cell(struct bc_buf *buf, const char *s, size_t width, bool cut)
{
    struct bc_buf masked = {0};
    bc_utf8_mask(&masked, s, strlen(s), 0);
    const char *text = bc_buf_str(&masked);
    size_t columns = bc_utf8_count(text, masked.size);
    if (cut && width > 2 && columns > width) {
        bc_buf_append(buf, text, prefix_bytes(text, masked.size, width - 2));
        bc_buf_puts(buf, "..");
        columns = width;
    } else {
        bc_buf_append(buf, text, masked.size);
    }
    for (; columns < width; columns++)
        bc_buf_putc(buf, ' ');
    bc_buf_release(&masked);
}

void ui_bytes(struct bc_buf *buf, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024.0;
    if (unit == 0)
        bc_buf_printf(buf, "%" PRIu64 " B", bytes);
    else
        bc_buf_printf(buf, value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
}

void ui_count(struct bc_buf *buf, uint64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) bc_buf_putc(buf, ' ');
        bc_buf_putc(buf, digits[i]);
    }
}

size_t ui_columns(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 80)
        return size.ws_col;
    return 80;
}

bool ui_is_stdout(const char *path)
{
    static const char *const names[] = {OPTS_STDOUT, "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(path, names[i]) == 0) return true;
    return false;
}
