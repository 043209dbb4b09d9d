/* SPDX-License-Identifier: MIT
 * A text cut into pieces: what the steps of a tokenizer hand on to each other. */
#ifndef BC_TOKENIZER_PIECES_H
#define BC_TOKENIZER_PIECES_H

#include "base/mem.h"

/* Zero-initialise. The pieces stand one after the other in `text`. Out of memory is remembered in
 * text.failed; bc_pieces_check reports it. */
struct bc_pieces {
    struct bc_buf text;
    size_t *ends; /* of each piece in text */
    size_t n, cap;
    bool at_start; /* the first piece begins with what the input begins with */
};

void bc_pieces_clear(struct bc_pieces *pieces); /* keeps the memory */
/* Appends a whole piece. Here and below memory that runs out is told by bc_pieces_check. */
void bc_pieces_add(struct bc_pieces *pieces, const char *s, size_t len);
/* Closes a piece whose bytes have been appended to text. */
void bc_pieces_end(struct bc_pieces *pieces);
/* The same, but an empty piece is none. */
void bc_pieces_end_filled(struct bc_pieces *pieces);
/* The bytes of a piece, borrowed until the next addition; index < n. */
const char *bc_pieces_at(const struct bc_pieces *pieces, size_t index, size_t *len);
enum bitconv_status bc_pieces_check(const struct bc_pieces *pieces, struct bitconv_error *err);
void bc_pieces_release(struct bc_pieces *pieces);

#endif
