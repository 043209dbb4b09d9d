/* SPDX-License-Identifier: MIT
 * Ids to text. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "tokenizer/runtime.h"

void bitconv_text_release(struct bitconv_text *text)
{
    bc_free(text->data);
    *text = (struct bitconv_text){0};
}

const char *bitconv_tokenizer_piece(const struct bitconv_tokenizer *tok, uint32_t id, bool *special)
{
    if (id >= tok->n_pieces || tok->pieces[id].text == NULL) return NULL;
    if (special != NULL) *special = tok->pieces[id].special;
    return tok->pieces[id].text;
}

static enum bitconv_status collect(const struct bitconv_tokenizer *tok, const uint32_t *ids,
                                   size_t n, bool skip_special, struct bc_pieces *out,
                                   struct bitconv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        bool special = false;
        const char *const text = bitconv_tokenizer_piece(tok, ids[i], &special);
        if (text == NULL)
            return bc_fail(err, BITCONV_E_ARG,
                           "token id %" PRIu32 " is not in the vocabulary of %" PRIu32 " tokens",
                           ids[i], tok->n_pieces);
        if (special && skip_special) continue;
        if (tok->joins_with_blanks && out->n > 0) bc_buf_putc(&out->text, ' ');
        bc_buf_append(&out->text, text, tok->pieces[ids[i]].len);
        bc_pieces_end(out);
    }
    return bc_pieces_check(out, err);
}

enum bitconv_status bitconv_tokenizer_decode(const struct bitconv_tokenizer *tok,
                                             const uint32_t *ids, size_t n, bool skip_special,
                                             struct bitconv_text *text, struct bitconv_error *err)
{
    struct bc_pieces pieces = {0};
    struct bc_pieces spare = {0};
    bitconv_text_release(text);
    enum bitconv_status status = collect(tok, ids, n, skip_special, &pieces, err);
    if (status == BITCONV_OK) status = bc_steps_run(&tok->decoder, &pieces, &spare, err);
    if (status == BITCONV_OK) {
        text->data = bc_alloc_array(pieces.text.size + 1, 1);
        if (text->data == NULL) {
            status = bc_fail_nomem(err, "text");
        } else {
            if (pieces.text.size > 0) memcpy(text->data, pieces.text.data, pieces.text.size);
            text->size = pieces.text.size;
        }
    }
    bc_pieces_release(&pieces);
    bc_pieces_release(&spare);
    return status;
}
