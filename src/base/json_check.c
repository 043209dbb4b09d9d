/* SPDX-License-Identifier: MIT
 * The strict JSON checker that runs before cJSON: RFC 8259 grammar by recursive descent (at most
 * BC_JSON_MAX_DEPTH levels), and no object with two equal keys. */
#include "base/json_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "base/utf8.h"

/* cJSON copies a number into 64 bytes. */
enum { MAX_NUMBER_LEN = 63 };

/* A key of an object that is still open; escapes resolved. */
struct key {
    uint64_t hash;
    const char *text; /* within the JSON text, or in checker.decoded */
    size_t len;
    size_t offset; /* of the opening quote */
};

struct checker {
    const char *text;
    size_t size;
    size_t pos;
    const char *where;
    struct bitconv_error *err;
    size_t n_values;
    struct key *keys; /* a stack: those of the innermost object are on top */
    size_t n_keys;
    size_t cap_keys;
    struct bc_arena decoded;
};

static enum bitconv_status check_value(struct checker *c, int depth);

static size_t line_of(const struct checker *c, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += c->text[i] == '\n';
    return line;
}

/* Fails at `offset` with a message that says where that is. */
BC_PRINTF(4, 5)
static enum bitconv_status refuse(const struct checker *c, enum bitconv_status status,
                                  size_t offset, const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return bc_fail_at(c->err, status, offset, "%s: JSON line %zu, byte %zu: %s", c->where,
                      line_of(c, offset), offset, what);
}

/* What stands at the current position is not what the grammar asks for. */
static enum bitconv_status unexpected(const struct checker *c, const char *wanted)
{
    if (c->pos >= c->size)
        return refuse(c, BITCONV_E_CORRUPT, c->pos, "the text ends where %s was expected", wanted);
    const uint8_t found = (uint8_t)c->text[c->pos];
    if (found > 0x20 && found < 0x7f)
        return refuse(c, BITCONV_E_CORRUPT, c->pos, "found '%c' where %s was expected", found,
                      wanted);
    return refuse(c, BITCONV_E_CORRUPT, c->pos, "found byte 0x%02x where %s was expected", found,
                  wanted);
}

/* The byte at the current position; NUL (which no rule accepts) at the end. */
static char peek(const struct checker *c)
{
    return c->pos < c->size ? c->text[c->pos] : '\0';
}

static void skip_space(struct checker *c)
{
    while (c->pos < c->size) {
        const char ch = c->text[c->pos];
        if (ch != ' ' && ch != '\n' && ch != '\r' && ch != '\t') return;
        c->pos++;
    }
}

static bool skip_digits(struct checker *c)
{
    const size_t start = c->pos;
    while (peek(c) >= '0' && peek(c) <= '9')
        c->pos++;
    return c->pos > start;
}

static enum bitconv_status check_number(struct checker *c)
{
    const size_t start = c->pos;
    if (peek(c) == '-') c->pos++;
    if (peek(c) == '0') {
        c->pos++;
        if (peek(c) >= '0' && peek(c) <= '9')
            return refuse(c, BITCONV_E_CORRUPT, start, "a number starts with a needless 0");
    } else if (!skip_digits(c)) {
        return unexpected(c, "a digit");
    }
    if (peek(c) == '.') {
        c->pos++;
        if (!skip_digits(c)) return unexpected(c, "a digit of a fraction");
    }
    if (peek(c) == 'e' || peek(c) == 'E') {
        c->pos++;
        if (peek(c) == '+' || peek(c) == '-') c->pos++;
        if (!skip_digits(c)) return unexpected(c, "a digit of an exponent");
    }
    if (c->pos - start > MAX_NUMBER_LEN)
        return refuse(c, BITCONV_E_UNSUPPORTED, start,
                      "a number of %zu characters: at most %d are handled", c->pos - start,
                      MAX_NUMBER_LEN);
    return BITCONV_OK;
}

/* The value of four hex digits at s, or -1. */
static int32_t hex4(const char *s)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char ch = s[i];
        int digit;
        if (ch >= '0' && ch <= '9')
            digit = ch - '0';
        else if (ch >= 'a' && ch <= 'f')
            digit = ch - 'a' + 10;
        else if (ch >= 'A' && ch <= 'F')
            digit = ch - 'A' + 10;
        else
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* At "\u" of a text[0..len): the code point and how many bytes spell it (6, or 12 for a surrogate
 * pair); 0 when malformed. */
static size_t unicode_escape(const char *text, size_t len, uint32_t *cp)
{
    if (len < 6) return 0;
    const int32_t first = hex4(text + 2);
    if (first < 0 || (first >= 0xdc00 && first <= 0xdfff)) return 0;
    *cp = (uint32_t)first;
    if (first < 0xd800 || first > 0xdfff) return 6;
    if (len < 12 || text[6] != '\\' || text[7] != 'u') return 0;
    const int32_t second = hex4(text + 8);
    if (second < 0xdc00 || second > 0xdfff) return 0;
    *cp = 0x10000u + ((uint32_t)(first - 0xd800) << 10) + (uint32_t)(second - 0xdc00);
    return 12;
}

static enum bitconv_status check_escape(struct checker *c)
{
    const size_t left = c->size - c->pos;
    const char kind = left > 1 ? c->text[c->pos + 1] : '\0';
    if (kind != '\0' && strchr("\"\\/bfnrt", kind) != NULL) {
        c->pos += 2;
        return BITCONV_OK;
    }
    if (kind != 'u')
        return refuse(c, BITCONV_E_CORRUPT, c->pos, "a backslash without a known escape behind it");
    uint32_t cp;
    const size_t n = unicode_escape(c->text + c->pos, left, &cp);
    if (n == 0)
        return refuse(c, BITCONV_E_CORRUPT, c->pos,
                      "a \\u escape without four hex digits, or half of a surrogate pair");
    if (cp == 0)
        return refuse(c, BITCONV_E_UNSUPPORTED, c->pos, "a NUL character (\\u0000) in a string");
    c->pos += n;
    return BITCONV_OK;
}

/* At the opening quote; leaves the position behind the closing one. */
static enum bitconv_status check_string(struct checker *c, bool *has_escapes)
{
    const size_t start = c->pos++;
    *has_escapes = false;
    while (c->pos < c->size) {
        const uint8_t ch = (uint8_t)c->text[c->pos];
        if (ch == '"') {
            c->pos++;
            return BITCONV_OK;
        }
        if (ch == '\\') {
            *has_escapes = true;
            BC_TRY(check_escape(c));
        } else if (ch < 0x20) {
            return refuse(c, BITCONV_E_CORRUPT, c->pos,
                          "a bare control character 0x%02x in a string", ch);
        } else if (ch < 0x80) {
            c->pos++;
        } else {
            uint32_t cp;
            const size_t n = bc_utf8_decode(c->text + c->pos, c->size - c->pos, &cp);
            if (n == 0)
                return refuse(c, BITCONV_E_CORRUPT, c->pos, "byte 0x%02x is not valid UTF-8", ch);
            c->pos += n;
        }
    }
    return refuse(c, BITCONV_E_CORRUPT, start, "a string without a closing quote");
}

/* Resolves the escapes of a checked string body; returns the length of `out`, which has room for
 * len bytes: no escape is shorter than what it stands for. */
static size_t unescape(const char *body, size_t len, char *out)
{
    static const char names[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    size_t n_out = 0;
    for (size_t i = 0; i < len;) {
        if (body[i] != '\\') {
            out[n_out++] = body[i++];
            continue;
        }
        if (body[i + 1] == 'u') {
            uint32_t cp = 0;
            char utf8[4];
            i += unicode_escape(body + i, len - i, &cp);
            const size_t n = bc_utf8_encode(cp, utf8);
            memcpy(out + n_out, utf8, n);
            n_out += n;
            continue;
        }
        const char *const name = strchr(names, body[i + 1]);
        out[n_out++] = name != NULL ? meanings[name - names] : body[i + 1];
        i += 2;
    }
    return n_out;
}

/* At the opening quote of a key: checks it and puts it on the stack of keys. */
static enum bitconv_status check_key(struct checker *c)
{
    const size_t offset = c->pos;
    bool has_escapes;
    if (peek(c) != '"') return unexpected(c, "a key in quotes");
    BC_TRY(check_string(c, &has_escapes));
    const char *text = c->text + offset + 1;
    size_t len = c->pos - offset - 2;
    if (has_escapes) {
        char *const decoded = bc_arena_alloc(&c->decoded, len, 1);
        if (decoded == NULL) return bc_fail_nomem(c->err, "JSON key");
        len = unescape(text, len, decoded);
        text = decoded;
    }
    void *grown = c->keys;
    if (!bc_grow(&grown, &c->cap_keys, c->n_keys, sizeof *c->keys))
        return bc_fail_nomem(c->err, "JSON keys");
    c->keys = grown;
    c->keys[c->n_keys++] = (struct key){bc_hash64(text, len), text, len, offset};
    return BITCONV_OK;
}

static bool same_key(const struct key *a, const struct key *b)
{
    return a->hash == b->hash && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* By hash, then by content: equal keys end up side by side, the earlier one first, and keys made to
 * collide cost no more than others. */
static int compare_keys(const void *left, const void *right)
{
    const struct key *const a = left;
    const struct key *const b = right;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    const int order = memcmp(a->text, b->text, a->len);
    if (order != 0) return order;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Takes the keys from `first` on off the stack; fails when two of them are equal. */
static enum bitconv_status close_object(struct checker *c, size_t first)
{
    const size_t n = c->n_keys - first;
    c->n_keys = first;
    if (n < 2) return BITCONV_OK;
    struct key *const keys = c->keys + first;
    qsort(keys, n, sizeof *keys, compare_keys);
    const struct key *twice = NULL; /* the one that is reported: the first in the text */
    for (size_t i = 1; i < n; i++) {
        if (same_key(&keys[i - 1], &keys[i]) && (twice == NULL || keys[i].offset < twice->offset))
            twice = &keys[i];
    }
    if (twice == NULL) return BITCONV_OK;
    return refuse(c, BITCONV_E_CORRUPT, twice->offset,
                  "the key \"%.*s\" appears twice in one object",
                  twice->len < 100 ? (int)twice->len : 100, twice->text);
}

static enum bitconv_status check_object(struct checker *c, int depth)
{
    const size_t first_key = c->n_keys;
    c->pos++;
    skip_space(c);
    if (peek(c) == '}') {
        c->pos++;
        return BITCONV_OK;
    }
    for (;;) {
        skip_space(c);
        BC_TRY(check_key(c));
        skip_space(c);
        if (peek(c) != ':') return unexpected(c, "':'");
        c->pos++;
        BC_TRY(check_value(c, depth + 1));
        skip_space(c);
        const char ch = peek(c);
        if (ch != ',' && ch != '}') return unexpected(c, "',' or '}'");
        c->pos++;
        if (ch == '}') return close_object(c, first_key);
    }
}

static enum bitconv_status check_array(struct checker *c, int depth)
{
    c->pos++;
    skip_space(c);
    if (peek(c) == ']') {
        c->pos++;
        return BITCONV_OK;
    }
    for (;;) {
        BC_TRY(check_value(c, depth + 1));
        skip_space(c);
        const char ch = peek(c);
        if (ch != ',' && ch != ']') return unexpected(c, "',' or ']'");
        c->pos++;
        if (ch == ']') return BITCONV_OK;
    }
}

static enum bitconv_status check_word(struct checker *c, const char *word)
{
    const size_t len = strlen(word);
    if (c->size - c->pos < len || memcmp(c->text + c->pos, word, len) != 0)
        return unexpected(c, "a value");
    c->pos += len;
    return BITCONV_OK;
}

/* `depth` counts the arrays and objects around the value. */
static enum bitconv_status check_value(struct checker *c, int depth)
{
    skip_space(c);
    if (++c->n_values > BC_JSON_MAX_VALUES)
        return refuse(c, BITCONV_E_LIMIT, c->pos, "more than %d values in one JSON text",
                      BC_JSON_MAX_VALUES);
    const char ch = peek(c);
    if ((ch == '{' || ch == '[') && depth >= BC_JSON_MAX_DEPTH)
        return refuse(c, BITCONV_E_LIMIT, c->pos, "nested deeper than %d levels",
                      BC_JSON_MAX_DEPTH);
    bool has_escapes;
    switch (ch) {
    case '{':
        return check_object(c, depth);
    case '[':
        return check_array(c, depth);
    case '"':
        return check_string(c, &has_escapes);
    case 't':
        return check_word(c, "true");
    case 'f':
        return check_word(c, "false");
    case 'n':
        return check_word(c, "null");
    default:
        if (ch == '-' || (ch >= '0' && ch <= '9')) return check_number(c);
        return unexpected(c, "a value");
    }
}

static enum bitconv_status check_text(struct checker *c)
{
    if (c->size >= 3 && memcmp(c->text, "\xef\xbb\xbf", 3) == 0)
        return refuse(c, BITCONV_E_CORRUPT, 0,
                      "a byte order mark in front: save the file as UTF-8 without one");
    BC_TRY(check_value(c, 0));
    skip_space(c);
    if (c->pos < c->size) return unexpected(c, "the end of the text");
    return BITCONV_OK;
}

enum bitconv_status bc_json_check(const char *text, size_t size, const char *where,
                                  struct bitconv_error *err)
{
    struct checker c = {.text = text, .size = size, .where = where, .err = err};
    const enum bitconv_status status = check_text(&c);
    bc_arena_release(&c.decoded);
    bc_free(c.keys);
    return status;
}
