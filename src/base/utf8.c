/* SPDX-License-Identifier: MIT
 * UTF-8: validation, decoding, and masking of text that goes to a terminal.
 * Well-formed is what the Unicode Standard's table 3-7 says. */
#include "base/utf8.h"

#include <string.h>

static bool is_continuation(uint8_t c)
{
    return (c & 0xc0u) == 0x80u;
}

size_t bc_utf8_decode(const char *s, size_t len, uint32_t *out)
{
    if (len == 0) return 0;
    const uint8_t *const p = (const uint8_t *)s;
    if (p[0] < 0x80) {
        *out = p[0];
        return 1;
    }
    size_t n;
    uint32_t smallest; /* below it the form is overlong */
    uint32_t cp;
    if (p[0] < 0xc2) return 0;
    if (p[0] < 0xe0) {
        n = 2, smallest = 0x80, cp = p[0] & 0x1fu;
    } else if (p[0] < 0xf0) {
        n = 3, smallest = 0x800, cp = p[0] & 0x0fu;
    } else if (p[0] < 0xf5) {
        n = 4, smallest = 0x10000, cp = p[0] & 0x07u;
    } else {
        return 0;
    }
    if (len < n) return 0;
    for (size_t i = 1; i < n; i++) {
        if (!is_continuation(p[i])) return 0;
        cp = cp << 6 | (p[i] & 0x3fu);
    }
    if (cp < smallest || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) return 0;
    *out = cp;
    return n;
}

size_t bc_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0u | cp >> 6);
        out[1] = (char)(0x80u | (cp & 0x3fu));
        return 2;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) return 0;
    if (cp < 0x10000) {
        out[0] = (char)(0xe0u | cp >> 12);
        out[1] = (char)(0x80u | (cp >> 6 & 0x3fu));
        out[2] = (char)(0x80u | (cp & 0x3fu));
        return 3;
    }
    out[0] = (char)(0xf0u | cp >> 18);
    out[1] = (char)(0x80u | (cp >> 12 & 0x3fu));
    out[2] = (char)(0x80u | (cp >> 6 & 0x3fu));
    out[3] = (char)(0x80u | (cp & 0x3fu));
    return 4;
}

bool bc_utf8_valid(const char *s, size_t len)
{
    size_t i = 0;
    while (i < len) {
        uint32_t cp;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        if (n == 0) return false;
        i += n;
    }
    return true;
}

size_t bc_utf8_count(const char *s, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; count++) {
        uint32_t cp;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        i += n > 0 ? n : 1;
    }
    return count;
}

bool bc_utf8_is_control(uint32_t cp)
{
    if (cp < 0x20 || (cp >= 0x7f && cp <= 0x9f)) return true;
    if (cp == 0x2028 || cp == 0x2029) return true; /* line and paragraph separator */
    return cp == 0x061c || cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

void bc_utf8_mask(struct bc_buf *buf, const char *s, size_t len, size_t max_len)
{
    const bool cut = max_len > 0 && len > max_len;
    const size_t stop = cut ? max_len : len;
    size_t i = 0;
    while (i < stop) {
        uint32_t cp = 0;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        if (n > stop - i) break; /* the cut would go through a character */
        if (n == 0 || cp < 0x80) {
            const uint8_t byte = (uint8_t)s[i];
            if (n == 0 || bc_utf8_is_control(cp))
                bc_buf_printf(buf, "\\x%02x", byte);
            else
                bc_buf_putc(buf, s[i]);
        } else if (bc_utf8_is_control(cp)) {
            bc_buf_printf(buf, "\\u{%04x}", (unsigned)cp);
        } else {
            bc_buf_append(buf, s + i, n);
        }
        i += n > 0 ? n : 1;
    }
    if (cut) bc_buf_puts(buf, "...");
}
