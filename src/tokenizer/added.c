/* SPDX-License-Identifier: MIT
 * Cutting a text at added tokens: the leftmost of them, of those that start there the longest. */
#include "base/utf8.h"
#include "tokenizer/runtime.h"

/* The character that ends before `at`; 0 at the start. */
static uint32_t char_before(const char *s, size_t at, size_t *n)
{
    size_t start = at;
    uint32_t cp = 0;
    while (start > 0 && at - start < 4) {
        start--;
        if (((uint8_t)s[start] & 0xc0u) != 0x80u) break;
    }
    *n = bc_utf8_decode(s + start, at - start, &cp);
    return cp;
}

static bool stands_alone(const char *s, size_t len, size_t start, size_t end)
{
    size_t n;
    uint32_t cp = 0;
    if (start > 0 && bc_unicode_is_word(char_before(s, start, &n))) return false;
    return bc_utf8_decode(s + end, len - end, &cp) == 0 || !bc_unicode_is_word(cp);
}

/* Back over the white space before `at`, not further than `least`. */
static size_t skip_back(const char *s, size_t at, size_t least)
{
    while (at > least) {
        size_t n = 0;
        if (!bc_unicode_is_space(char_before(s, at, &n)) || n == 0 || n > at - least) break;
        at -= n;
    }
    return at;
}

static size_t skip_forward(const char *s, size_t len, size_t at)
{
    uint32_t cp = 0;
    size_t n;
    while ((n = bc_utf8_decode(s + at, len - at, &cp)) > 0 && bc_unicode_is_space(cp))
        at += n;
    return at;
}

enum bitconv_status bc_split_added(const struct bitconv_tokenizer *tok, const struct bc_trie *trie,
                                   const char *s, size_t len, bc_stretch_fn *each, void *ctx,
                                   struct bitconv_error *err)
{
    size_t done = 0;
    for (size_t at = 0; at < len;) {
        uint32_t index = 0;
        const size_t n = bc_trie_longest(trie, s + at, len - at, &index);
        if (n == 0) {
            at++;
            continue;
        }
        const struct bc_added *const token = &tok->added[index];
        size_t start = at;
        size_t end = at + n;
        at = end;
        if (start < done || (token->single_word && !stands_alone(s, len, start, end))) continue;
        if (token->lstrip) start = skip_back(s, start, done);
        if (token->rstrip) end = skip_forward(s, len, end);
        if (start > done) BC_TRY(each(ctx, s + done, start - done, done, NULL, err));
        BC_TRY(each(ctx, s + start, end - start, start, token, err));
        done = end;
    }
    return done < len ? each(ctx, s + done, len - done, done, NULL, err) : BITCONV_OK;
}
