/* SPDX-License-Identifier: MIT
 * How `bitconv sparse` shows its reports. */
#ifndef BC_TOOLS_SPARSE_VIEW_H
#define BC_TOOLS_SPARSE_VIEW_H

#include "bitconv/sparse.h"
#include "ui.h"

/* Tables of quality, and the speed. */
void sparse_table(const struct ui *ui, const struct bitconv_sparse_report *r, struct bc_buf *out);
/* One object. `output`: the predictor written, or NULL; `text`: what was generated (n bytes), or NULL.
 */
void sparse_json(const struct bitconv_sparse_report *r, const char *output, const char *text,
                 size_t n, struct bc_buf *out);

#endif
