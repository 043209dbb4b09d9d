/* SPDX-License-Identifier: MIT
 * The report of `bitconv bench FILE`. */
#ifndef BC_TOOLS_BENCH_MODELS_VIEW_H
#define BC_TOOLS_BENCH_MODELS_VIEW_H

#include "bitconv/bench.h"
#include "ui.h"

/* Appends the report: a Markdown table, CSV (plain numbers), JSON. */
void bench_models_markdown(const struct bitconv_model_bench *bench, struct bc_buf *out);
void bench_models_csv(const struct bitconv_model_bench *bench, struct bc_buf *out);
void bench_models_json(const struct bitconv_model_bench *bench, struct bc_buf *out);

#endif
