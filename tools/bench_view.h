/* SPDX-License-Identifier: MIT
 * The report of `bitconv bench --pack`. */
#ifndef BC_TOOLS_BENCH_VIEW_H
#define BC_TOOLS_BENCH_VIEW_H

#include "bitconv/bench.h"
#include "ui.h"

/* Appends the report: text for a terminal, a Markdown table, CSV (per second and shares as plain
 * numbers), JSON. */
void bench_packs_text(const struct ui *ui, const struct bitconv_pack_bench *bench,
                      struct bc_buf *out);
void bench_packs_markdown(const struct ui *ui, const struct bitconv_pack_bench *bench,
                          struct bc_buf *out);
void bench_packs_csv(const struct ui *ui, const struct bitconv_pack_bench *bench,
                     struct bc_buf *out);
void bench_packs_json(const struct ui *ui, const struct bitconv_pack_bench *bench,
                      struct bc_buf *out);

#endif
