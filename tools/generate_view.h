/* SPDX-License-Identifier: MIT
 * How `bitconv generate` shows texts and logits. */
#ifndef BC_TOOLS_GENERATE_VIEW_H
#define BC_TOOLS_GENERATE_VIEW_H

#include "bitconv/generate.h"
#include "model_run.h"

/* Text of a model, as bytes; on a terminal without what it would obey, but for line feeds and tabs. */
void generate_put_text(const char *text, size_t len, bool terminal, struct bc_buf *out);

/* One result on one line: text, ids, why it ended; with `times` how long it took. */
void generate_json(const struct model_input *input, const struct bitconv_ids *prompt,
                   const struct bitconv_generation *generation, bool times, struct bc_buf *out);

/* The n_top likeliest next tokens, as a table, and on one line of JSON together with all logits. */
void generate_logits_table(const struct ui *ui, const struct model_run *run, const float *logits,
                           size_t n_top, struct bc_buf *out);
void generate_logits_json(const struct model_run *run, const struct model_input *input,
                          const struct bitconv_ids *prompt, const float *logits, size_t n_top,
                          struct bc_buf *out);

#endif
