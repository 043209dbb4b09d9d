/* SPDX-License-Identifier: MIT
 * Files with one text a line. */
#include "text_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

/* A JSON string becomes the text it stands for, in `scratch`. */
static enum bitconv_status unescape(const char *path, struct text_line *line,
                                    struct bc_buf *scratch, struct bitconv_error *err)
{
    struct bc_json *json = NULL;
    bc_buf_clear(scratch);
    bc_buf_printf(scratch, "%s: text %zu", path, line->index + 1);
    if (scratch->failed) return bc_fail_nomem(err, "text");
    BC_TRY(bc_json_parse(line->text, line->len, bc_buf_str(scratch), &json, err));
    const char *const string = bc_json_string(json);
    bc_buf_clear(scratch);
    if (string != NULL) bc_buf_puts(scratch, string);
    bc_json_free(json);
    if (string == NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: line %zu is not a JSON string", path,
                       line->index + 1);
    if (scratch->failed) return bc_fail_nomem(err, "text");
    line->text = bc_buf_str(scratch);
    line->len = scratch->size;
    return BITCONV_OK;
}

/* What is done with every line. */
struct reading {
    const char *name; /* of the file, for messages */
    bool escaped;
    const struct bitconv_sink *sink;
    text_line_fn *fn;
    void *user;
    struct bc_buf scratch;
    size_t n_lines; /* so far */
};

/* A line of `len` bytes; `ended` when a line feed follows them. */
static enum bitconv_status take_line(struct reading *r, const char *text, size_t len, bool ended,
                                     struct bitconv_error *err)
{
    const bool carriage_return = ended && len > 0 && text[len - 1] == '\r';
    struct text_line line = {r->n_lines++, text, len - carriage_return};
    if (r->escaped) BC_TRY(unescape(r->name, &line, &r->scratch, err));
    BC_TRY(r->fn(r->user, &line, err));
    return bc_canceled(r->sink) ? bc_fail(err, BITCONV_E_CANCELED, "interrupted") : BITCONV_OK;
}

static enum bitconv_status read_file(struct reading *r, const char *progress,
                                     struct bitconv_error *err)
{
    struct bc_file file;
    enum bitconv_status status = BITCONV_OK;
    BC_TRY(bc_file_open(r->name, &file, err));
    const char *const text = (const char *)file.data;
    const size_t size = (size_t)file.size;
    for (size_t at = 0; at < size && status == BITCONV_OK;) {
        const char *const newline = memchr(text + at, '\n', size - at);
        const size_t len = newline == NULL ? size - at : (size_t)(newline - text) - at;
        if (progress != NULL) bc_progress(r->sink, progress, at, size);
        status = take_line(r, text + at, len, newline != NULL, err);
        at += len + 1;
    }
    if (progress != NULL && status == BITCONV_OK) bc_progress(r->sink, progress, size, size);
    bc_file_close(&file);
    return status;
}

/* Line by line as they come: somebody may be typing them. */
static enum bitconv_status read_stream(struct reading *r, FILE *stream, struct bitconv_error *err)
{
    char *text = NULL;
    size_t cap = 0;
    enum bitconv_status status = BITCONV_OK;
    errno = 0;
    for (ssize_t n; status == BITCONV_OK && (n = getline(&text, &cap, stream)) >= 0;) {
        const bool ended = n > 0 && text[n - 1] == '\n';
        status = take_line(r, text, (size_t)n - ended, ended, err);
        errno = 0;
    }
    if (status == BITCONV_OK && bc_canceled(r->sink))
        status = bc_fail(err, BITCONV_E_CANCELED, "interrupted");
    else if (status == BITCONV_OK && !feof(stream))
        status = bc_fail_errno(err, "%s: cannot be read", r->name);
    free(text);
    return status;
}

static enum bitconv_status read_pipe(struct reading *r, struct bitconv_error *err)
{
    FILE *const stream = fopen(r->name, "r");
    if (stream == NULL && bc_canceled(r->sink))
        return bc_fail(err, BITCONV_E_CANCELED, "interrupted");
    if (stream == NULL) return bc_fail_errno(err, "%s: cannot be opened", r->name);
    const enum bitconv_status status = read_stream(r, stream, err);
    (void)fclose(stream);
    return status;
}

enum bitconv_status text_lines_each(const char *path, bool escaped, const char *progress,
                                    const struct bitconv_sink *sink, text_line_fn *fn, void *user,
                                    struct bitconv_error *err)
{
    struct reading r = {.name = path, .escaped = escaped, .sink = sink, .fn = fn, .user = user};
    enum bitconv_status status;
    if (strcmp(path, "-") == 0) {
        r.name = "standard input";
        status = read_stream(&r, stdin, err);
    } else if (bc_path_kind(path) == BC_PATH_OTHER) {
        status = read_pipe(&r, err);
    } else {
        status = read_file(&r, progress, err);
    }
    bc_buf_release(&r.scratch);
    return status;
}
