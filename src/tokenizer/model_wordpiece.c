/* SPDX-License-Identifier: MIT
 * WordPiece (google-research/bert, tokenization.py): at every place of a word the longest piece;
 * a word that cannot be made of pieces is unknown as a whole. */
#include "base/utf8.h"
#include "tokenizer/runtime.h"

/* The end of the longest piece that starts at `at`; `at` itself when there is none. */
static size_t longest_piece(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                            size_t at, struct bc_buf *word, uint32_t *id)
{
    static const char mark[] = "##";
    size_t end = len - at > tok->longest ? at + tok->longest : len;
    while (end > at) {
        if (end == len || ((uint8_t)s[end] & 0xc0u) != 0x80u) {
            bc_buf_clear(word);
            if (at > 0) bc_buf_puts(word, mark);
            bc_buf_append(word, s + at, end - at);
            *id = bc_piece_id(tok, bc_buf_str(word), word->size);
            if (*id != BC_NO_ID) return end;
        }
        end--;
    }
    return at;
}

static enum bitconv_status put_unknown(const struct bitconv_tokenizer *tok, struct bc_work *work,
                                       struct bitconv_error *err)
{
    return tok->unknown == BC_NO_ID ? BITCONV_OK : bc_put_id(work->ids, tok->unknown, err);
}

enum bitconv_status bc_encode_wordpiece(const struct bitconv_tokenizer *tok, const char *s,
                                        size_t len, struct bc_work *work, struct bitconv_error *err)
{
    const size_t n_before = work->ids->n;
    if (bc_utf8_count(s, len) > tok->max_chars) return put_unknown(tok, work, err);
    for (size_t at = 0; at < len;) {
        uint32_t id = BC_NO_ID;
        const size_t end = longest_piece(tok, s, len, at, &work->word, &id);
        if (work->word.failed) return bc_fail_nomem(err, "text to tokenize");
        if (end == at) {
            work->ids->n = n_before;
            return put_unknown(tok, work, err);
        }
        BC_TRY(bc_put_id(work->ids, id, err));
        at = end;
    }
    return BITCONV_OK;
}
