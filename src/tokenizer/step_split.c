/* SPDX-License-Identifier: MIT
 * Pre-tokenizers: steps that cut a text into the pieces that the model sees one by one. */
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/steps.h"

/* A stretch of a text: a match or what is between two of them. */
struct stretch {
    size_t start, end;
    bool match;
};

struct stretches {
    struct stretch *items;
    size_t n, cap;
};

static enum bitconv_status put_stretch(struct stretches *list, size_t start, size_t end, bool match,
                                       struct bitconv_error *err)
{
    if (!bc_grow((void **)&list->items, &list->cap, list->n, sizeof *list->items))
        return bc_fail_nomem(err, "text to tokenize");
    list->items[list->n++] = (struct stretch){start, end, match};
    return BITCONV_OK;
}

static enum bitconv_status find_all(struct bc_search *search, bool invert, struct stretches *list,
                                    struct bitconv_error *err)
{
    size_t done = 0;
    bool found = false;
    for (;;) {
        BC_TRY(bc_search_next(search, &found, err));
        if (!found) break;
        if (search->start > done) BC_TRY(put_stretch(list, done, search->start, invert, err));
        BC_TRY(put_stretch(list, search->start, search->end, !invert, err));
        done = search->end;
    }
    return done < search->len ? put_stretch(list, done, search->len, invert, err) : BITCONV_OK;
}

/* Does a stretch go on with the piece of the one before it? */
static bool joins(enum bc_behavior behavior, const struct stretch *before, const struct stretch *it)
{
    switch (behavior) {
    case BC_MERGED_WITH_PREVIOUS:
        return it->match && !before->match;
    case BC_MERGED_WITH_NEXT:
        return before->match && !it->match;
    case BC_CONTIGUOUS:
        return before->match == it->match;
    default:
        return false;
    }
}

/* Cuts s by a pattern, appending to out; empty pieces are dropped. */
static enum bitconv_status cut_by(const struct bc_pattern *pattern, enum bc_behavior behavior,
                                  bool invert, const char *s, size_t len, struct bc_pieces *out,
                                  struct bitconv_error *err)
{
    struct bc_search search;
    struct stretches list = {0};
    BC_TRY(bc_search_begin(&search, pattern, s, len, err));
    const enum bitconv_status status = find_all(&search, invert, &list, err);
    bc_search_end(&search);
    if (behavior == BC_REMOVED && list.n > 0 && list.items[0].match && out->text.size == 0)
        out->at_start = false; /* the input's start is gone */
    for (size_t i = 0; status == BITCONV_OK && i < list.n; i++) {
        const struct stretch *const it = &list.items[i];
        if (i > 0 && !joins(behavior, it - 1, it)) bc_pieces_end_filled(out);
        if (behavior != BC_REMOVED || !it->match)
            bc_buf_append(&out->text, s + it->start, it->end - it->start);
    }
    bc_pieces_end_filled(out);
    bc_free(list.items);
    return status;
}

enum bitconv_status bc_step_split(const struct bc_step *step, const struct bc_pieces *in,
                                  struct bc_pieces *out, struct bitconv_error *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        BC_TRY(cut_by(step->pattern, step->behavior, step->invert, s, len, out, err));
    }
    return bc_pieces_check(out, err);
}

/* The bytes that stand for themselves in GPT-2's alphabet. */
static bool is_plain(uint32_t cp)
{
    return (cp >= '!' && cp <= '~') || (cp >= 0xa1 && cp <= 0xac) || (cp >= 0xae && cp <= 0xff);
}

static uint32_t byte_to_char(uint8_t byte)
{
    if (is_plain(byte)) return byte;
    if (byte <= ' ') return 0x100u + byte;
    if (byte <= 0xa0) return 0x121u + (byte - 0x7fu);
    return 0x143; /* 0xad */
}

int bc_char_to_byte(uint32_t cp)
{
    if (is_plain(cp)) return (int)cp;
    if (cp >= 0x100 && cp <= 0x120) return (int)(cp - 0x100);
    if (cp >= 0x121 && cp <= 0x142) return (int)(cp - 0x121 + 0x7f);
    return cp == 0x143 ? 0xad : -1;
}

static void put_bytes(struct bc_buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char bytes[4];
        bc_buf_append(out, bytes, bc_utf8_encode(byte_to_char((uint8_t)s[i]), bytes));
    }
}

enum bitconv_status bc_step_bytes(const struct bc_step *step, const struct bc_pieces *in,
                                  struct bc_pieces *out, struct bitconv_error *err)
{
    struct bc_pieces cut = {0};
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < in->n && status == BITCONV_OK; i++) {
        size_t len;
        const char *s = bc_pieces_at(in, i, &len);
        bc_pieces_clear(&cut);
        if (step->prefix != BC_PREFIX_NEVER && (len == 0 || s[0] != ' '))
            bc_buf_putc(&cut.text, ' ');
        bc_buf_append(&cut.text, s, len);
        bc_pieces_end(&cut);
        if (step->pattern == NULL) {
            put_bytes(&out->text, bc_buf_str(&cut.text), cut.text.size);
            bc_pieces_end_filled(out);
            continue;
        }
        struct bc_pieces words = {0};
        status = cut_by(step->pattern, BC_ISOLATED, false, bc_buf_str(&cut.text), cut.text.size,
                        &words, err);
        for (size_t k = 0; k < words.n; k++) {
            const char *const word = bc_pieces_at(&words, k, &len);
            put_bytes(&out->text, word, len);
            bc_pieces_end_filled(out);
        }
        out->text.failed = out->text.failed || words.text.failed;
        bc_pieces_release(&words);
    }
    out->text.failed = out->text.failed || cut.text.failed;
    bc_pieces_release(&cut);
    return status == BITCONV_OK ? bc_pieces_check(out, err) : status;
}

/* Blanks become the mark, which starts a piece. */
static void put_metaspace(const struct bc_step *step, const char *s, size_t len, bool prefix,
                          struct bc_pieces *out)
{
    const char *const mark = bc_buf_str(&step->text);
    const size_t n_mark = step->text.size;
    const bool marked = len > 0 && (s[0] == ' ' || (len >= n_mark && memcmp(s, mark, n_mark) == 0));
    if (prefix && !marked) bc_buf_append(&out->text, mark, n_mark);
    for (size_t i = 0; i < len;) {
        const bool is_mark = len - i >= n_mark && memcmp(s + i, mark, n_mark) == 0;
        const bool starts = s[i] == ' ' || is_mark;
        if (starts && step->splits) bc_pieces_end_filled(out);
        if (starts)
            bc_buf_append(&out->text, mark, n_mark);
        else
            bc_buf_putc(&out->text, s[i]);
        i += is_mark ? n_mark : 1;
    }
    bc_pieces_end_filled(out);
}

enum bitconv_status bc_step_metaspace(const struct bc_step *step, const struct bc_pieces *in,
                                      struct bc_pieces *out, struct bitconv_error *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        const bool first = i == 0 && in->at_start;
        const bool prefix =
            step->prefix == BC_PREFIX_ALWAYS || (step->prefix == BC_PREFIX_FIRST && first);
        put_metaspace(step, s, len, prefix, out);
    }
    return bc_pieces_check(out, err);
}
