/* SPDX-License-Identifier: MIT
 * Decoders: steps from the texts of tokens to the text they stand for. */
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/steps.h"

/* The token as bytes; false, with nothing appended, when a character is not of the alphabet. */
static bool put_unbytes(struct bc_buf *out, const char *s, size_t len)
{
    const size_t start = out->size;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        const int byte = n == 0 ? -1 : bc_char_to_byte(cp);
        if (byte < 0) {
            out->size = start;
            return false;
        }
        bc_buf_u8(out, (uint8_t)byte);
        i += n;
    }
    return true;
}

enum bitconv_status bc_step_unbytes(const struct bc_step *step, const struct bc_pieces *in,
                                    struct bc_pieces *out, struct bitconv_error *err)
{
    (void)step;
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        if (!put_unbytes(&out->text, s, len)) bc_buf_append(&out->text, s, len);
        bc_pieces_end(out);
    }
    return bc_pieces_check(out, err);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *const at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

int bc_byte_piece(const char *text, size_t len)
{
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    const int high = hex_digit(text[3]);
    const int low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

enum bitconv_status bc_step_byte_fallback(const struct bc_step *step, const struct bc_pieces *in,
                                          struct bc_pieces *out, struct bitconv_error *err)
{
    (void)step;
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        const int byte = bc_byte_piece(s, len);
        if (byte >= 0)
            bc_buf_u8(&out->text, (uint8_t)byte);
        else
            bc_buf_append(&out->text, s, len);
        bc_pieces_end(out);
    }
    return bc_pieces_check(out, err);
}

enum bitconv_status bc_step_fuse(const struct bc_step *step, const struct bc_pieces *in,
                                 struct bc_pieces *out, struct bitconv_error *err)
{
    (void)step;
    bc_pieces_add(out, bc_buf_str(&in->text), in->text.size);
    return bc_pieces_check(out, err);
}

enum bitconv_status bc_step_strip_text(const struct bc_step *step, const struct bc_pieces *in,
                                       struct bc_pieces *out, struct bitconv_error *err)
{
    const char *const what = bc_buf_str(&step->text);
    const size_t n = step->text.size;
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *s = bc_pieces_at(in, i, &len);
        for (unsigned k = 0; k < step->start && n > 0 && len >= n && memcmp(s, what, n) == 0; k++) {
            s += n;
            len -= n;
        }
        for (unsigned k = 0;
             k < step->stop && n > 0 && len >= n && memcmp(s + len - n, what, n) == 0; k++)
            len -= n;
        bc_pieces_add(out, s, len);
    }
    return bc_pieces_check(out, err);
}

/* The mark becomes a blank; in the first token it is dropped where one had been put in front. */
enum bitconv_status bc_step_unmetaspace(const struct bc_step *step, const struct bc_pieces *in,
                                        struct bc_pieces *out, struct bitconv_error *err)
{
    const char *const mark = bc_buf_str(&step->text);
    const size_t n_mark = step->text.size;
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *const s = bc_pieces_at(in, i, &len);
        for (size_t k = 0; k < len;) {
            const bool is_mark =
                n_mark > 0 && len - k >= n_mark && memcmp(s + k, mark, n_mark) == 0;
            if (!is_mark)
                bc_buf_putc(&out->text, s[k]);
            else if (i > 0 || step->prefix == BC_PREFIX_NEVER)
                bc_buf_putc(&out->text, ' ');
            k += is_mark ? n_mark : 1;
        }
        bc_pieces_end(out);
    }
    return bc_pieces_check(out, err);
}

/* Blanks that BERT's tokenizer put between words and what belongs to them, as the library undoes
 * them: one after the other, each over the whole token. */
static void tidy(const char *s, size_t len, struct bc_buf *out)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    struct bc_buf now = {0};
    struct bc_buf next = {0};
    bc_buf_append(&now, s, len);
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
        const size_t n = strlen(pairs[p][0]);
        bc_buf_clear(&next);
        for (size_t i = 0; i < now.size;) {
            const bool here = now.size - i >= n && memcmp(now.data + i, pairs[p][0], n) == 0;
            if (here)
                bc_buf_puts(&next, pairs[p][1]);
            else
                bc_buf_u8(&next, now.data[i]);
            i += here ? n : 1;
        }
        const struct bc_buf swap = now;
        now = next;
        next = swap;
    }
    bc_buf_append(out, now.data, now.size);
    out->failed = out->failed || now.failed || next.failed;
    bc_buf_release(&now);
    bc_buf_release(&next);
}

enum bitconv_status bc_step_join_words(const struct bc_step *step, const struct bc_pieces *in,
                                       struct bc_pieces *out, struct bitconv_error *err)
{
    const char *const mark = bc_buf_str(&step->text);
    const size_t n_mark = step->text.size;
    struct bc_buf word = {0};
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const char *s = bc_pieces_at(in, i, &len);
        const bool goes_on = i > 0 && len >= n_mark && memcmp(s, mark, n_mark) == 0;
        bc_buf_clear(&word);
        if (i > 0 && !goes_on) bc_buf_putc(&word, ' ');
        bc_buf_append(&word, s + (goes_on ? n_mark : 0), len - (goes_on ? n_mark : 0));
        if (step->clean)
            tidy(bc_buf_str(&word), word.size, &out->text);
        else
            bc_buf_append(&out->text, word.data, word.size);
        bc_pieces_end(out);
    }
    out->text.failed = out->text.failed || word.failed;
    bc_buf_release(&word);
    return bc_pieces_check(out, err);
}
