/* SPDX-License-Identifier: MIT
 * How `bitconv embed` shows embeddings. */
#ifndef BC_TOOLS_EMBED_VIEW_H
#define BC_TOOLS_EMBED_VIEW_H

#include "model_run.h"

/* One text's vectors: one, or without pooling one for each token. */
struct embedding {
    struct model_input input;
    struct bitconv_ids ids;
    float *values; /* n_rows of the model's width */
    size_t n_rows;
};

struct embed_view {
    const struct ui *ui;
    const struct bitconv_engine_info *info;
    int pooling, normalize; /* as in bitconv_session_embed; pooling not -1 */
    const struct embedding *items;
    size_t n;
};

/* Names of poolings by number; NULL behind the last. */
const char *embed_pooling_name(int pooling);

/* For people: the first values of each vector, and cosines of few texts. */
void embed_text(const struct embed_view *view, struct bc_buf *out);
/* What llama.cpp's llama-embedding calls array, json and json+ (a matrix of cosines); vectors without
 * pooling count one by one. */
void embed_array(const struct embed_view *view, struct bc_buf *out);
void embed_openai(const struct embed_view *view, struct bc_buf *out);
void embed_openai_cosines(const struct embed_view *view, struct bc_buf *out);
/* The same list with texts, ids and how the vectors were made. */
void embed_json(const struct embed_view *view, struct bc_buf *out);
/* One line of a batch. */
void embed_json_line(const struct embed_view *view, const struct embedding *item,
                     struct bc_buf *out);

#endif
