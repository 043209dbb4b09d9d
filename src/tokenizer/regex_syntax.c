/* SPDX-License-Identifier: MIT
 * From the syntax in which tokenizers write regular expressions to that of PCRE2. */
#include "tokenizer/regex_syntax.h"

#include <string.h>

#include "tokenizer/regex_classes.h"

/* White_Space (Unicode's PropList.txt). PCRE2's own \s has U+180E as well, which lost the property
 * in Unicode 6.3. The complement is spelled out for use inside of classes. */
#define SPACES                                                                                     \
    "\\t-\\r\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"          \
    "\\x{205f}\\x{3000}"
#define NO_SPACES                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"                   \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"                 \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

struct translation {
    const char *pos; /* the rest of the expression */
    const char *where;
    struct bc_buf *out;
    struct bitconv_error *err;
    int depth; /* of character classes: 0 outside */
};

/* A class by itself, or its members where a class is open. */
static void put_members(const struct translation *t, const char *members)
{
    bc_buf_printf(t->out, t->depth > 0 ? "%s" : "[%s]", members);
}

/* \p{NAME}: what Unicode has added to the category since is spelled out behind it. */
static bool put_property(struct translation *t)
{
    const char *const close = strchr(t->pos, '}');
    if (t->pos[1] != 'p' || t->pos[2] != '{' || close == NULL) return false;
    const size_t n = (size_t)(close - t->pos) - 3;
    const char *const later = bc_regex_later_members(t->pos + 3, n);
    if (later == NULL) return false;
    if (t->depth == 0) bc_buf_putc(t->out, '[');
    bc_buf_printf(t->out, "\\p{%.*s}%s", (int)n, t->pos + 3, later);
    if (t->depth == 0) bc_buf_putc(t->out, ']');
    t->pos = close + 1;
    return true;
}

/* \w: Alphabetic, marks, decimal digits, connectors; PCRE2's own has numbers and no marks. */
static void put_word(struct translation *t)
{
    static const char *const categories[] = {"L", "M", "Nd"};
    if (t->depth == 0) bc_buf_putc(t->out, '[');
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
        bc_buf_printf(t->out, "\\p{%s}%s", categories[i],
                      bc_regex_later_members(categories[i], strlen(categories[i])));
    bc_buf_puts(t->out, "\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"
                        "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}");
    if (t->depth == 0) bc_buf_putc(t->out, ']');
    t->pos += 2;
}

static void put_escape(struct translation *t)
{
    static const struct {
        char letter;
        const char *members;
    } own[] = {
        {'s', SPACES}, {'S', NO_SPACES}, {'h', "0-9A-Fa-f"}, {'H', "\\x{0}-/:-@G-`g-\\x{10ffff}"}};
    const char letter = t->pos[1];
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (letter != own[i].letter) continue;
        put_members(t, own[i].members);
        t->pos += 2;
        return;
    }
    if (letter == 'w') {
        put_word(t);
        return;
    }
    if (put_property(t)) return;
    if (letter == 'u' && strspn(t->pos + 2, "0123456789abcdefABCDEF") >= 4) {
        bc_buf_printf(t->out, "\\x{%.4s}", t->pos + 2);
        t->pos += 6;
        return;
    }
    bc_buf_append(t->out, t->pos, letter == '\0' ? 1 : 2);
    t->pos += letter == '\0' ? 1 : 2;
}

/* One element of a class that is open. */
static enum bitconv_status put_in_class(struct translation *t)
{
    const char *const pos = t->pos;
    if (pos[0] == '&' && pos[1] == '&')
        return bc_fail(t->err, BITCONV_E_UNSUPPORTED,
                       "%s: the regular expression intersects classes (&&): %.300s", t->where, pos);
    if (pos[0] == '[' && pos[1] == '^')
        return bc_fail(t->err, BITCONV_E_UNSUPPORTED,
                       "%s: the regular expression has a negated class inside of a class: %.300s",
                       t->where, pos);
    t->pos++;
    if (pos[0] == '[' && pos[1] != ':') {
        t->depth++; /* a union: the inner brackets are left out */
    } else if (pos[0] == ']') {
        if (--t->depth == 0) bc_buf_putc(t->out, ']');
    } else {
        bc_buf_putc(t->out, pos[0]);
        const char *const posix_end = pos[0] == '[' ? strstr(pos, ":]") : NULL;
        if (posix_end != NULL) {
            bc_buf_append(t->out, pos + 1, (size_t)(posix_end - pos) + 1);
            t->pos = posix_end + 2;
        }
    }
    return BITCONV_OK;
}

/* "[" or "[^"; a "]" right behind it is a member. */
static void open_class(struct translation *t)
{
    bc_buf_putc(t->out, *t->pos++);
    if (*t->pos == '^') bc_buf_putc(t->out, *t->pos++);
    if (*t->pos == ']') {
        bc_buf_puts(t->out, "\\]");
        t->pos++;
    }
    t->depth = 1;
}

enum bitconv_status bc_regex_translate(const char *regex, const char *where, struct bc_buf *out,
                                       struct bitconv_error *err)
{
    struct translation t = {.pos = regex, .where = where, .out = out, .err = err};
    while (*t.pos != '\0') {
        if (*t.pos == '\\')
            put_escape(&t);
        else if (t.depth > 0)
            BC_TRY(put_in_class(&t));
        else if (*t.pos == '[')
            open_class(&t);
        else
            bc_buf_putc(out, *t.pos++);
    }
    return BITCONV_OK;
}
