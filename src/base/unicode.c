/* SPDX-License-Identifier: MIT
 * Properties of characters and the normalization forms, from libutf8proc. */
#include "base/unicode.h"

#include <utf8proc.h>

#include "base/utf8.h"

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

static bool is_ascii(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] >= 0x80) return false;
    return true;
}

static void append_code_points(const utf8proc_int32_t *cps, utf8proc_ssize_t n, struct bc_buf *out)
{
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char bytes[4];
        bc_buf_append(out, bytes, bc_utf8_encode((uint32_t)cps[i], bytes));
    }
}

void bc_unicode_normalize(const char *s, size_t len, enum bc_unicode_form form, struct bc_buf *out)
{
    static const int options[] = {
        [BC_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [BC_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [BC_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [BC_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    const utf8proc_option_t option = (utf8proc_option_t)options[form];
    if (len == 0 || len > PTRDIFF_MAX || is_ascii(s, len)) {
        bc_buf_append(out, s, len);
        return;
    }
    const utf8proc_uint8_t *const bytes = (const utf8proc_uint8_t *)s;
    const utf8proc_ssize_t size = (utf8proc_ssize_t)len;
    utf8proc_ssize_t n = utf8proc_decompose(bytes, size, NULL, 0, option);
    if (n < 0) {
        bc_buf_append(out, s, len);
        return;
    }
    utf8proc_int32_t *const cps = bc_alloc_array((size_t)n + 1, sizeof *cps);
    if (cps == NULL) {
        out->failed = true;
        return;
    }
    n = utf8proc_decompose(bytes, size, cps, n, option);
    if (n > 0) n = utf8proc_normalize_utf32(cps, n, option);
    append_code_points(cps, n, out);
    bc_free(cps);
}

size_t bc_unicode_lower(uint32_t cp, uint32_t out[2])
{
    if (cp == 0x130) { /* I with a dot: i and the dot */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    return 1;
}

bool bc_unicode_is_space(uint32_t cp)
{
    if (cp < 0x80) return (cp >= 9 && cp <= 13) || cp == ' ';
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return true;
    default:
        return cp == 0x85; /* next line: a control character */
    }
}

bool bc_unicode_is_number(uint32_t cp)
{
    const utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool bc_unicode_is_punctuation(uint32_t cp)
{
    const utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool bc_unicode_is_mark(uint32_t cp)
{
    const utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool bc_unicode_is_nonspacing(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_MN;
}

bool bc_unicode_is_invisible(uint32_t cp)
{
    return category(cp) >= UTF8PROC_CATEGORY_CC;
}

bool bc_unicode_is_word(uint32_t cp)
{
    const utf8proc_category_t c = category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || bc_unicode_is_mark(cp) ||
           c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_PC;
}

size_t bc_unicode_grapheme(const char *s, size_t len)
{
    uint32_t cp = 0;
    utf8proc_int32_t state = 0;
    size_t at = bc_utf8_decode(s, len, &cp);
    if (at == 0) return 1;
    while (at < len) {
        uint32_t next = 0;
        const size_t n = bc_utf8_decode(s + at, len - at, &next);
        if (n == 0 ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next, &state))
            break;
        cp = next;
        at += n;
    }
    return at;
}
