/* SPDX-License-Identifier: MIT
 * The two faces of `bitconv verify`: a report for people, JSON for programs. */
#ifndef BC_TOOLS_VERIFY_VIEW_H
#define BC_TOOLS_VERIFY_VIEW_H

#include "bitconv/verify.h"
#include "ui.h"

struct verify_view {
    const struct bitconv_verification *it;
    const struct ui *ui;
    const char *file;
    /* What was said while the proofs ran. */
    struct text_list problems, warnings, notes;
};

/* Both append to `out`; nothing in it can move a cursor. */
void verify_text(const struct verify_view *view, struct bc_buf *out);
void verify_json(const struct verify_view *view, struct bc_buf *out);

#endif
