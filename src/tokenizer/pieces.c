/* SPDX-License-Identifier: MIT
 * A text cut into pieces: what the steps of a tokenizer hand on to each other. */
#include "tokenizer/pieces.h"

void bc_pieces_clear(struct bc_pieces *pieces)
{
    bc_buf_clear(&pieces->text);
    pieces->n = 0;
}

void bc_pieces_end(struct bc_pieces *pieces)
{
    if (!bc_grow((void **)&pieces->ends, &pieces->cap, pieces->n, sizeof *pieces->ends)) {
        pieces->text.failed = true;
        return;
    }
    pieces->ends[pieces->n++] = pieces->text.size;
}

void bc_pieces_end_filled(struct bc_pieces *pieces)
{
    const size_t start = pieces->n == 0 ? 0 : pieces->ends[pieces->n - 1];
    if (pieces->text.size > start) bc_pieces_end(pieces);
}

void bc_pieces_add(struct bc_pieces *pieces, const char *s, size_t len)
{
    bc_buf_append(&pieces->text, s, len);
    bc_pieces_end(pieces);
}

const char *bc_pieces_at(const struct bc_pieces *pieces, size_t index, size_t *len)
{
    const size_t start = index == 0 ? 0 : pieces->ends[index - 1];
    *len = pieces->ends[index] - start;
    return bc_buf_str(&pieces->text) + start;
}

enum bitconv_status bc_pieces_check(const struct bc_pieces *pieces, struct bitconv_error *err)
{
    return pieces->text.failed ? bc_fail_nomem(err, "text to tokenize") : BITCONV_OK;
}

void bc_pieces_release(struct bc_pieces *pieces)
{
    bc_buf_release(&pieces->text);
    bc_free(pieces->ends);
    *pieces = (struct bc_pieces){0};
}
