/* SPDX-License-Identifier: MIT
 * The test texts by whose ids Python converters recognise a tokenizer, and the hashes they know. */
#ifndef BC_TOKENIZER_CHECK_TABLE_H
#define BC_TOKENIZER_CHECK_TABLE_H

#include "bitconv/tokenize.h"

extern const char *const bc_check_texts[BITCONV_N_CHECK_TEXTS];

struct bc_check_row {
    enum bitconv_check_text text;
    const char *sha256;
    const char *name; /* tokenizer.ggml.pre that the list gives it */
};
extern const struct bc_check_row bc_check_rows[];
extern const size_t bc_check_n_rows;

#endif
