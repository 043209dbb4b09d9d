/* SPDX-License-Identifier: MIT
 * Text of a growing list of ids, piece by piece, without splitting characters. */
#ifndef BC_GENERATE_TEXT_STREAM_H
#define BC_GENERATE_TEXT_STREAM_H

#include "base/mem.h"
#include "bitconv/tokenize.h"

/* Zero-initialise `text`, set tok and skip_special; release at the end. */
struct bc_text_stream {
    const struct bitconv_tokenizer *tok;
    bool skip_special;
    size_t from;              /* first id of the window that is decoded */
    size_t done;              /* bytes of the window's text that have been given out */
    struct bitconv_text text; /* of the window */
};

/* What ids[0..n) say counts as given out. */
enum bitconv_status bc_text_stream_start(struct bc_text_stream *s, const uint32_t *ids, size_t n,
                                         struct bitconv_error *err);
/* After ids[n - 1] was appended: *text and *len are what has become complete (perhaps nothing), valid
 * until the next call. With `last` incomplete characters are given out too. */
enum bitconv_status bc_text_stream_next(struct bc_text_stream *s, const uint32_t *ids, size_t n,
                                        bool last, const char **text, size_t *len,
                                        struct bitconv_error *err);
void bc_text_stream_release(struct bc_text_stream *s);

/* Bytes at the end of a text that begin a character of UTF-8 and do not complete it (0 to 3). */
size_t bc_incomplete_tail(const char *text, size_t len);

#endif
