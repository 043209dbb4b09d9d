/* SPDX-License-Identifier: MIT
 * Files with one text a line. */
#include "text_lines.h"

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

enum bitconv_status text_lines_each(const char *path, bool escaped, const char *progress,
                                    const struct bitconv_sink *sink, text_line_fn *fn, void *user,
                                    struct bitconv_error *err)
{
    struct bc_file file;
    struct bc_buf scratch = {0};
    enum bitconv_status status = BITCONV_OK;
    BC_TRY(bc_file_open(path, &file, err));
    const char *const text = (const char *)file.data;
    const size_t size = (size_t)file.size;
    struct text_line line = {.index = 0};
    for (size_t at = 0; at < size && status == BITCONV_OK; line.index++) {
        const char *const newline = memchr(text + at, '\n', size - at);
        const size_t len = newline == NULL ? size - at : (size_t)(newline - text) - at;
        const bool carriage_return = newline != NULL && len > 0 && newline[-1] == '\r';
        line.text = text + at;
        line.len = len - carriage_return;
        if (progress != NULL) bc_progress(sink, progress, at, size);
        if (escaped) status = unescape(path, &line, &scratch, err);
        if (status == BITCONV_OK) status = fn(user, &line, err);
        at += len + 1;
        if (status == BITCONV_OK && bc_canceled(sink))
            status = bc_fail(err, BITCONV_E_CANCELED, "interrupted");
    }
    if (progress != NULL && status == BITCONV_OK) bc_progress(sink, progress, size, size);
    bc_buf_release(&scratch);
    bc_file_close(&file);
    return status;
}
