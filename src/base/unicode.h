/* SPDX-License-Identifier: MIT
 * Properties of characters and the normalization forms. unicode.c is the only file that includes
 * utf8proc.h, whose Unicode version is the system library's. */
#ifndef BC_BASE_UNICODE_H
#define BC_BASE_UNICODE_H

#include "base/mem.h"

/* Unicode Standard Annex 15. */
enum bc_unicode_form { BC_NFC, BC_NFD, BC_NFKC, BC_NFKD };

/* Appends the normal form of well-formed UTF-8; text of other bytes is appended as it is. Out of
 * memory is out->failed. */
void bc_unicode_normalize(const char *s, size_t len, enum bc_unicode_form form, struct bc_buf *out);

/* The lower-case form, one code point or two (U+0130, whose mapping is the only one of two);
 * returns how many. Final sigma is not treated apart. */
size_t bc_unicode_lower(uint32_t cp, uint32_t out[2]);

bool bc_unicode_is_space(uint32_t cp);       /* White_Space */
bool bc_unicode_is_number(uint32_t cp);      /* general category N */
bool bc_unicode_is_punctuation(uint32_t cp); /* P */
bool bc_unicode_is_mark(uint32_t cp);        /* M */
bool bc_unicode_is_nonspacing(uint32_t cp);  /* Mn */
bool bc_unicode_is_invisible(uint32_t cp);   /* Cc, Cf, Cs, Co: C without the unassigned */
bool bc_unicode_is_word(uint32_t cp);        /* \w: letters, marks, decimal digits, connectors */

/* Bytes of the extended grapheme cluster (Annex 29) at the start of well-formed UTF-8; len > 0. */
size_t bc_unicode_grapheme(const char *s, size_t len);

#endif
