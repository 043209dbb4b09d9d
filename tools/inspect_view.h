/* SPDX-License-Identifier: MIT
 * The two faces of `bitconv inspect`: tables for people, JSON for programs. */
#ifndef BC_TOOLS_INSPECT_VIEW_H
#define BC_TOOLS_INSPECT_VIEW_H

#include "base/json.h"
#include "bitconv/inspect.h"
#include "ui.h"

/* What to show. */
struct inspect_view {
    const struct bitconv_inspection *it;
    const struct ui *ui;
    bool summary, metadata, tensors; /* sections */
    bool stats, hash;
    bool diffable; /* no offsets, no paths; keys and tensors by name */
    bool full;     /* long arrays and texts are not cut */
    const struct bitconv_inspected_key *const *keys;     /* in the order of showing */
    const struct bitconv_inspected_tensor *const *table; /* in the order of showing */
};

/* Writes a value that is no array: numbers by the shortest text that reads back to them. */
void inspect_json_scalar(struct bc_jw *w, const struct bitconv_gguf_value *v);

/* Both append to `out`; nothing in it can move a cursor. */
void inspect_text(const struct inspect_view *view, struct bc_buf *out);
void inspect_json(const struct inspect_view *view, struct bc_buf *out);

#endif
