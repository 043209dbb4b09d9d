/* SPDX-License-Identifier: MIT
 * Small pieces of the reports that inspect and verify print. */
#ifndef BC_TOOLS_VIEW_TEXT_H
#define BC_TOOLS_VIEW_TEXT_H

#include "base/mem.h"

/* Appends text masked, broken at blanks so that no line exceeds `columns` where a word fits at all. The
 * text starts at column `indent`, and so do its further lines. */
void view_wrap(struct bc_buf *out, const char *text, size_t indent, size_t columns);
/* Appends trusted text behind so many blanks that it ends `width` columns further. */
void view_right(struct bc_buf *out, const char *text, size_t width);
/* Appends a name masked and padded to `width`; a longer one gets a line of its own. */
void view_name(struct bc_buf *out, const char *name, size_t width);
/* "" for 1, else "s". */
const char *view_plural(uint64_t n);

#endif
