/* SPDX-License-Identifier: MIT
 * Normalizers: steps that change a text before it is cut. */
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/steps.h"

#define SPACE_MARK "\xe2\x96\x81" /* U+2581 */

/* Runs body-like functions over every piece: each gives one piece. */
typedef void piece_fn(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out);

static enum bitconv_status each(const struct bc_step *step, const struct bc_pieces *in,
                                struct bc_pieces *out, piece_fn *fn, struct bitconv_error *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        fn(step, s, len, &out->text);
        bc_pieces_end(out);
    }
    return bc_pieces_check(out, err);
}

static void unicode_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    bc_unicode_normalize(s, len, step->form, out);
}

enum bitconv_status bc_step_unicode(const struct bc_step *step, const struct bc_pieces *in,
                                    struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, unicode_piece, err);
}

static void put_cp(struct bc_buf *out, uint32_t cp)
{
    char bytes[4];
    bc_buf_append(out, bytes, bc_utf8_encode(cp, bytes));
}

static void lower_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    (void)step;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        uint32_t lower[2];
        i += bc_utf8_decode(s + i, len - i, &cp);
        const size_t n = bc_unicode_lower(cp, lower);
        for (size_t k = 0; k < n; k++)
            put_cp(out, lower[k]);
    }
}

enum bitconv_status bc_step_lowercase(const struct bc_step *step, const struct bc_pieces *in,
                                      struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, lower_piece, err);
}

static void strip_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    size_t start = 0;
    size_t end = 0; /* behind the last character that stays */
    bool inside = false;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        const bool space = bc_unicode_is_space(cp);
        if (!inside && space && step->left) start = i + n;
        inside = inside || !space;
        i += n;
        if (!space || !step->right) end = i;
    }
    if (end > start) bc_buf_append(out, s + start, end - start);
}

enum bitconv_status bc_step_strip(const struct bc_step *step, const struct bc_pieces *in,
                                  struct bc_pieces *out, struct bitconv_error *err)
{
    if (step->left && in->n > 0) {
        uint32_t cp = 0;
        size_t len;
        const char *const s = bc_pieces_at(in, 0, &len);
        if (bc_utf8_decode(s, len, &cp) > 0 && bc_unicode_is_space(cp)) out->at_start = false;
    }
    return each(step, in, out, strip_piece, err);
}

static void drop_kind(bool (*is)(uint32_t), const char *s, size_t len, struct bc_buf *out)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        if (!is(cp)) bc_buf_append(out, s + i, n);
        i += n;
    }
}

static void unmark_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    (void)step;
    drop_kind(bc_unicode_is_mark, s, len, out);
}

enum bitconv_status bc_step_strip_accents(const struct bc_step *step, const struct bc_pieces *in,
                                          struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, unmark_piece, err);
}

static enum bitconv_status replace_piece(const struct bc_step *step, const char *s, size_t len,
                                         struct bc_buf *out, struct bitconv_error *err)
{
    struct bc_search search;
    size_t done = 0;
    bool found = false;
    BC_TRY(bc_search_begin(&search, step->pattern, s, len, err));
    enum bitconv_status status;
    while ((status = bc_search_next(&search, &found, err)) == BITCONV_OK && found) {
        bc_buf_append(out, s + done, search.start - done);
        bc_buf_append(out, step->text.data, step->text.size);
        done = search.end;
    }
    bc_search_end(&search);
    bc_buf_append(out, s + done, len - done);
    return status;
}

enum bitconv_status bc_step_replace(const struct bc_step *step, const struct bc_pieces *in,
                                    struct bc_pieces *out, struct bitconv_error *err)
{
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        BC_TRY(replace_piece(step, s, len, &out->text, err));
        bc_pieces_end(out);
    }
    return bc_pieces_check(out, err);
}

static void prepend_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    if (len > 0) bc_buf_append(out, step->text.data, step->text.size);
    bc_buf_append(out, s, len);
}

enum bitconv_status bc_step_prepend(const struct bc_step *step, const struct bc_pieces *in,
                                    struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, prepend_piece, err);
}

/* ---- precompiled_charsmap as the tokenizers library applies it ---- */

/* Replaces a whole chunk when a key starts it; the library takes the shortest key. */
static bool put_mapped(const struct bc_charsmap *map, const char *s, size_t len, struct bc_buf *out)
{
    const char *to = NULL;
    size_t n_to = 0;
    if (bc_charsmap_find(map, s, len, false, &to, &n_to) == 0) return false;
    bc_buf_append(out, to, n_to);
    return true;
}

static void map_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    for (size_t i = 0; i < len;) {
        const size_t n = bc_unicode_grapheme(s + i, len - i);
        const size_t end = i + n;
        if (n < 6 && put_mapped(step->map, s + i, n, out)) i = end;
        while (i < end) {
            uint32_t cp = 0;
            const size_t n_cp = bc_utf8_decode(s + i, end - i, &cp);
            if (!put_mapped(step->map, s + i, n_cp, out)) bc_buf_append(out, s + i, n_cp);
            i += n_cp;
        }
    }
}

enum bitconv_status bc_step_charsmap(const struct bc_step *step, const struct bc_pieces *in,
                                     struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, map_piece, err);
}

/* ---- BERT ---- */

/* CJK ideographs as BERT's tokenizer lists them; the library's range of extension E starts late. */
static bool is_ideograph(uint32_t cp)
{
    static const uint32_t ranges[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (cp >= ranges[i][0] && cp <= ranges[i][1]) return true;
    return false;
}

static void clean_cp(const struct bc_step *step, uint32_t cp, struct bc_buf *out)
{
    if (step->clean) {
        const bool white = cp == '\t' || cp == '\n' || cp == '\r';
        if (cp == 0 || cp == 0xfffd || (!white && bc_unicode_is_invisible(cp))) return;
        if (white || bc_unicode_is_space(cp)) cp = ' ';
    }
    const bool apart = step->cjk_blanks && is_ideograph(cp);
    if (apart) bc_buf_putc(out, ' ');
    put_cp(out, cp);
    if (apart) bc_buf_putc(out, ' ');
}

static void bert_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    struct bc_buf cleaned = {0};
    struct bc_buf plain = {0};
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        i += bc_utf8_decode(s + i, len - i, &cp);
        clean_cp(step, cp, &cleaned);
    }
    if (step->accents) {
        struct bc_buf decomposed = {0};
        bc_unicode_normalize(bc_buf_str(&cleaned), cleaned.size, BC_NFD, &decomposed);
        drop_kind(bc_unicode_is_nonspacing, bc_buf_str(&decomposed), decomposed.size, &plain);
        plain.failed = plain.failed || decomposed.failed;
        bc_buf_release(&decomposed);
    } else {
        bc_buf_append(&plain, cleaned.data, cleaned.size);
    }
    if (step->lower)
        lower_piece(step, bc_buf_str(&plain), plain.size, out);
    else
        bc_buf_append(out, plain.data, plain.size);
    out->failed = out->failed || cleaned.failed || plain.failed;
    bc_buf_release(&cleaned);
    bc_buf_release(&plain);
}

enum bitconv_status bc_step_bert(const struct bc_step *step, const struct bc_pieces *in,
                                 struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, bert_piece, err);
}

/* ---- SentencePiece ---- */

/* The next unit of a text: a user-defined piece, what the map makes of a prefix, or a character. */
static size_t spm_unit(const struct bc_step *step, const char *s, size_t len, const char **to,
                       size_t *n_to)
{
    uint32_t ignored;
    size_t n = step->verbatim == NULL ? 0 : bc_trie_longest(step->verbatim, s, len, &ignored);
    if (n == 0) {
        n = bc_charsmap_find(step->map, s, len, true, to, n_to);
        if (n > 0) return n;
        uint32_t cp;
        n = bc_utf8_decode(s, len, &cp);
        if (n == 0) n = 1; /* not reached: the text is well-formed */
    }
    *to = s;
    *n_to = n;
    return n;
}

static void put_spm(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == ' ' && step->spm.escape_spaces)
            bc_buf_puts(out, SPACE_MARK);
        else
            bc_buf_putc(out, s[i]);
    }
}

static void trim_spm(const struct bc_step *step, size_t start, struct bc_buf *out)
{
    const char *const space = step->spm.escape_spaces ? SPACE_MARK : " ";
    const size_t n = strlen(space);
    while (out->size - start >= n && memcmp(out->data + out->size - n, space, n) == 0)
        out->size -= n;
    if (out->data != NULL) out->data[out->size] = '\0';
}

static void spm_piece(const struct bc_step *step, const char *s, size_t len, struct bc_buf *out)
{
    const struct bc_spm_rules *const rules = &step->spm;
    const char *to = NULL;
    size_t n_to = 0;
    size_t i = 0;
    while (rules->remove_extra_spaces && i < len) {
        const size_t n = spm_unit(step, s + i, len - i, &to, &n_to);
        if (n_to != 1 || to[0] != ' ') break;
        i += n;
    }
    if (i == len) return;
    const size_t start = out->size;
    if (rules->dummy_prefix && !rules->space_is_suffix) put_spm(step, " ", 1, out);
    bool after_space = rules->remove_extra_spaces;
    while (i < len) {
        i += spm_unit(step, s + i, len - i, &to, &n_to);
        for (; after_space && n_to > 0 && to[0] == ' '; n_to--)
            to++;
        put_spm(step, to, n_to, out);
        if (n_to > 0) after_space = to[n_to - 1] == ' ';
        if (!rules->remove_extra_spaces) after_space = false;
    }
    if (out->failed) return;
    if (rules->remove_extra_spaces) trim_spm(step, start, out);
    if (rules->dummy_prefix && rules->space_is_suffix) put_spm(step, " ", 1, out);
}

enum bitconv_status bc_step_spm(const struct bc_step *step, const struct bc_pieces *in,
                                struct bc_pieces *out, struct bitconv_error *err)
{
    return each(step, in, out, spm_piece, err);
}
