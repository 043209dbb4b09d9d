/* SPDX-License-Identifier: MIT
 * UTF-8: validation, decoding, and masking of text that goes to a terminal. */
#ifndef BC_BASE_UTF8_H
#define BC_BASE_UTF8_H

#include "base/mem.h"

/* Decodes one code point of well-formed UTF-8 (no overlong forms, no surrogates, <= U+10FFFF) from
 * s[0..len). Returns its length in bytes (1-4), or 0 when malformed or len is 0. */
size_t bc_utf8_decode(const char *s, size_t len, uint32_t *out);
/* Writes a code point as UTF-8 into out[4], returns the length; 0 for surrogates and > U+10FFFF. */
size_t bc_utf8_encode(uint32_t cp, char out[4]);
bool bc_utf8_valid(const char *s, size_t len);
size_t bc_utf8_count(const char *s, size_t len); /* code points; malformed bytes count one each */
/* Characters that can move the cursor, end a line or reorder text: C0, DEL, C1, line and paragraph
 * separators, bidirectional controls. */
bool bc_utf8_is_control(uint32_t cp);
/* Appends s with control characters (bc_utf8_is_control) and malformed bytes as \xNN or
 * \u{NNNN}, cut after max_len bytes of input with "..." when longer (0: no cut). */
void bc_utf8_mask(struct bc_buf *buf, const char *s, size_t len, size_t max_len);

#endif
