/* SPDX-License-Identifier: MIT
 * How `bitconv tokenize` shows what it found. */
#ifndef BC_TOOLS_TOKENIZE_VIEW_H
#define BC_TOOLS_TOKENIZE_VIEW_H

#include "bitconv/tokenize.h"
#include "ui.h"

/* A table of ids and tokens. */
void tokenize_table(const struct ui *ui, const struct bitconv_tokenizer *tok,
                    const struct bitconv_ids *ids, struct bc_buf *out);
/* "1,2,3" and a line feed. */
void tokenize_ids(const struct bitconv_ids *ids, struct bc_buf *out);
/* A document, and a line of a file of documents. */
void tokenize_json(const struct bitconv_tokenizer *tok, const char *text,
                   const struct bitconv_ids *ids, struct bc_buf *out);
void tokenize_json_line(const struct bitconv_tokenizer *tok, const char *text, size_t len,
                        const struct bitconv_ids *ids, struct bc_buf *out);
/* Text that is not UTF-8 stands in "bytes" as hexadecimal digits. */
void tokenize_decoded_json(const struct bitconv_text *text, struct bc_buf *out);
/* `hashes` has one for each text. */
void tokenize_hashes(const struct bitconv_tokenizer *tok, const struct bitconv_check_hash *hashes,
                     struct bc_buf *out);
void tokenize_hashes_json(const struct bitconv_tokenizer *tok,
                          const struct bitconv_check_hash *hashes, struct bc_buf *out);

#endif
