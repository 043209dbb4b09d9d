/* SPDX-License-Identifier: MIT
 * The two faces of `bitconv diff`: a report for people, JSON for programs. */
#ifndef BC_TOOLS_DIFF_VIEW_H
#define BC_TOOLS_DIFF_VIEW_H

#include "bitconv/diff.h"
#include "ui.h"

/* What to show. */
struct diff_view {
    const struct bitconv_diff *it;
    const struct ui *ui;
    bool strict; /* as in bitconv_diff_options */
    bool all;    /* long lists are not cut; tensors that are the same are listed */
};

/* Both append to `out`; nothing in it can move a cursor. */
void diff_text(const struct diff_view *view, struct bc_buf *out);
void diff_json(const struct diff_view *view, struct bc_buf *out);
/* "2 keys and 1 tensor differ" */
void diff_verdict(const struct bitconv_diff *it, struct bc_buf *out);

#endif
