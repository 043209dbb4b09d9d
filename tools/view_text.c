/* SPDX-License-Identifier: MIT
 * Line breaking and alignment of reports. */
#include "view_text.h"

#include <string.h>

#include "base/utf8.h"

static void blanks(struct bc_buf *out, size_t n)
{
    while (n-- > 0)
        bc_buf_putc(out, ' ');
}

void view_wrap(struct bc_buf *out, const char *text, size_t indent, size_t columns)
{
    struct bc_buf masked = {0};
    bc_utf8_mask(&masked, text, strlen(text), 0);
    const char *p = bc_buf_str(&masked);
    size_t column = indent;
    while (*p != '\0') {
        const size_t word = strcspn(p, " ");
        const size_t width = bc_utf8_count(p, word);
        if (column > indent && column + 1 + width > columns) {
            bc_buf_putc(out, '\n');
            blanks(out, indent);
            column = indent;
        } else if (column > indent) {
            bc_buf_putc(out, ' ');
            column++;
        }
        bc_buf_append(out, p, word);
        column += width;
        p += word;
        while (*p == ' ')
            p++;
    }
    bc_buf_release(&masked);
}

void view_right(struct bc_buf *out, const char *text, size_t width)
{
    const size_t used = bc_utf8_count(text, strlen(text));
    blanks(out, used < width ? width - used : 0);
    bc_buf_puts(out, text);
}

void view_name(struct bc_buf *out, const char *name, size_t width)
{
    struct bc_buf masked = {0};
    bc_utf8_mask(&masked, name, strlen(name), 0);
    const size_t used = bc_utf8_count(bc_buf_str(&masked), masked.size);
    bc_buf_puts(out, bc_buf_str(&masked));
    if (used > width) bc_buf_putc(out, '\n');
    blanks(out, used > width ? width : width - used);
    bc_buf_release(&masked);
}

const char *view_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
