/* SPDX-License-Identifier: MIT
 * Files with one text a line. */
#ifndef BC_TOOLS_TEXT_LINES_H
#define BC_TOOLS_TEXT_LINES_H

#include "base/mem.h"
#include "bitconv/status.h"

/* One text, valid during the call. `index` counts lines from 0. */
struct text_line {
    size_t index;
    const char *text;
    size_t len;
};
typedef enum bitconv_status text_line_fn(void *user, const struct text_line *line,
                                         struct bitconv_error *err);

/* Calls fn for every line of a file, of a pipe, or of standard input where the path is "-"; lines end
 * with LF or CR LF, the last may do without. With `escaped` each line is a JSON string. Stops at the
 * first failure, and when the sink's cancel flag is raised; `progress` names what is done
 * ("embedding"), NULL: nothing is reported. */
enum bitconv_status text_lines_each(const char *path, bool escaped, const char *progress,
                                    const struct bitconv_sink *sink, text_line_fn *fn, void *user,
                                    struct bitconv_error *err);

#endif
