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

/* The members of \w: Alphabetic, marks, decimal digits, connectors, and the digits of Latin-1 that
 * are none (what Oniguruma, the library behind tokenizers, has); PCRE2's own has numbers, no marks. */
static void put_word_members(struct bc_buf *out)
{
    static const char *const categories[] = {"L", "M", "Nd"};
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
        bc_buf_printf(out, "\\p{%s}%s", categories[i],
                      bc_regex_later_members(categories[i], strlen(categories[i])));
    bc_buf_puts(out, "\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}"
                     "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}");
}

static void put_word_class(struct bc_buf *out, const char *open)
{
    bc_buf_puts(out, open);
    put_word_members(out);
    bc_buf_putc(out, ']');
}

/* \b and \B: where a character of \w is on one side alone, or on both or none. */
static void put_boundary(struct bc_buf *out, bool negated)
{
    bc_buf_puts(out, "(?:(?<=");
    put_word_class(out, "[");
    bc_buf_puts(out, negated ? ")(?=" : ")(?!");
    put_word_class(out, "[");
    bc_buf_puts(out, ")|(?<!");
    put_word_class(out, "[");
    bc_buf_puts(out, negated ? ")(?!" : ")(?=");
    put_word_class(out, "[");
    bc_buf_puts(out, "))");
}

/* Escapes that ask for the class of words. */
static enum bitconv_status put_word(struct translation *t)
{
    const char letter = t->pos[1];
    if (letter == 'W' && t->depth > 0)
        return bc_fail(t->err, BITCONV_E_UNSUPPORTED,
                       "%s: the regular expression has \\W inside of a class: %.300s", t->where,
                       t->pos);
    if (letter == 'b' || letter == 'B')
        put_boundary(t->out, letter == 'B');
    else if (t->depth > 0)
        put_word_members(t->out);
    else
        put_word_class(t->out, letter == 'W' ? "[^" : "[");
    t->pos += 2;
    return BITCONV_OK;
}

static enum bitconv_status put_escape(struct translation *t)
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
        return BITCONV_OK;
    }
    if (letter == 'w' || letter == 'W') return put_word(t);
    if ((letter == 'b' || letter == 'B') && t->depth == 0) return put_word(t);
    if (put_property(t)) return BITCONV_OK;
    if (letter == 'u' && strspn(t->pos + 2, "0123456789abcdefABCDEF") >= 4) {
        bc_buf_printf(t->out, "\\x{%.4s}", t->pos + 2);
        t->pos += 6;
        return BITCONV_OK;
    }
    bc_buf_append(t->out, t->pos, letter == '\0' ? 1 : 2);
    t->pos += letter == '\0' ? 1 : 2;
    return BITCONV_OK;
}

/* [:NAME:] inside of a class, whose meaning Unicode's derived properties give; PCRE2 goes by general
 * categories. False when it is none of those. */
static bool put_posix(struct translation *t)
{
    static const struct {
        const char *name, *members;
    } own[] = {{"[:alpha:]", "\\p{Alphabetic}"}, {"[:alnum:]", "\\p{Alphabetic}\\p{Nd}"},
               {"[:lower:]", "\\p{Lowercase}"},  {"[:upper:]", "\\p{Uppercase}"},
               {"[:punct:]", "\\p{P}\\p{S}"},    {"[:space:]", SPACES},
               {"[:blank:]", "\\t\\p{Zs}"}};
    if (strncmp(t->pos, "[:word:]", 8) == 0) {
        put_word_members(t->out);
        t->pos += 8;
        return true;
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        const size_t n = strlen(own[i].name);
        if (strncmp(t->pos, own[i].name, n) != 0) continue;
        bc_buf_puts(t->out, own[i].members);
        t->pos += n;
        return true;
    }
    return false;
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
    if (put_posix(t)) return BITCONV_OK;
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
            BC_TRY(put_escape(&t));
        else if (t.depth > 0)
            BC_TRY(put_in_class(&t));
        else if (*t.pos == '[')
            open_class(&t);
        else
            bc_buf_putc(out, *t.pos++);
    }
    return BITCONV_OK;
}
