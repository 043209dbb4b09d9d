/* SPDX-License-Identifier: MIT
 * SentencePiece's byte-pair encoding (google/sentencepiece, src/bpe_model.cc): two neighbours merge
 * when their text is a piece, the one of the greatest score first. */
#include "base/bytes.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tokenizer/runtime.h"

/* Greater scores first: the order of floats turned into one of integers. */
static uint32_t priority_of(float score)
{
    const uint32_t bits = bc_f32_bits(score + 0.0F); /* -0.0 becomes 0.0 */
    const uint32_t ascending = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    return ~ascending;
}

static bool pair_of_texts(const void *ctx, const struct bc_symbols *symbols,
                          const struct bc_symbol *left, const struct bc_symbol *right,
                          uint32_t *priority, uint32_t *result)
{
    const struct bitconv_tokenizer *const tok = ctx;
    const size_t len = left->len + right->len;
    if (len > tok->longest) return false;
    const uint32_t id = bc_piece_id(tok, symbols->text + left->start, len);
    if (id == BC_NO_ID) return false;
    *priority = priority_of((float)tok->pieces[id].score);
    *result = id;
    return true;
}

static enum bitconv_status add_symbols(const struct bitconv_tokenizer *tok, const char *s,
                                       size_t len, struct bc_symbols *symbols,
                                       struct bitconv_error *err)
{
    for (size_t at = 0; at < len;) {
        uint32_t ignored;
        uint32_t cp;
        size_t n = bc_trie_longest(&tok->user_defined, s + at, len - at, &ignored);
        const bool frozen = n > 0;
        if (n == 0) n = bc_utf8_decode(s + at, len - at, &cp);
        if (n == 0) n = 1;
        BC_TRY(bc_symbols_add(symbols, at, n, bc_piece_id(tok, s + at, n), frozen, err));
        at += n;
    }
    return BITCONV_OK;
}

/* What could not become a piece: bytes, or one unknown token for a run of them. */
static enum bitconv_status put_unknown(const struct bitconv_tokenizer *tok, const char *s,
                                       size_t len, bool *in_run, struct bc_work *work,
                                       struct bitconv_error *err)
{
    if (bc_has_byte_ids(tok, s, len)) {
        for (size_t i = 0; i < len; i++)
            BC_TRY(bc_put_id(work->ids, tok->byte_ids[(uint8_t)s[i]], err));
        return BITCONV_OK;
    }
    if (tok->unknown != BC_NO_ID && !*in_run) BC_TRY(bc_put_id(work->ids, tok->unknown, err));
    *in_run = true;
    return BITCONV_OK;
}

/* An unused piece is a step on the way to longer ones, but no token: it falls apart into the pair
 * that made it, and these again where they are unused. */
static enum bitconv_status put_unused(const struct bitconv_tokenizer *tok, const char *s,
                                      size_t len, struct bc_work *work, struct bitconv_error *err)
{
    struct bc_symbols stack = {0}; /* stretches that are still to come, the next one on top */
    enum bitconv_status status = bc_symbols_add(&stack, 0, len, 0, false, err);
    while (status == BITCONV_OK && stack.n > 0) {
        const struct bc_symbol it = stack.items[--stack.n];
        const uint32_t id = bc_piece_id(tok, s + it.start, it.len);
        const bool unused = id != BC_NO_ID && tok->pieces[id].type == BC_TOKEN_UNUSED;
        const size_t cut = unused ? work->symbols.left_lens[id] : 0;
        bool in_run = false;
        if (id == BC_NO_ID) {
            status = put_unknown(tok, s + it.start, it.len, &in_run, work, err);
        } else if (cut == 0 || cut >= it.len) {
            status = bc_put_id(work->ids, id, err);
        } else {
            status = bc_symbols_add(&stack, it.start + cut, it.len - cut, 0, false, err);
            if (status == BITCONV_OK) status = bc_symbols_add(&stack, it.start, cut, 0, false, err);
        }
    }
    bc_symbols_release(&stack);
    return status;
}

enum bitconv_status bc_encode_scored(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                                     struct bc_work *work, struct bitconv_error *err)
{
    struct bc_symbols *const symbols = &work->symbols;
    bool in_run = false;
    bc_symbols_clear(symbols, s);
    if (tok->has_unused && symbols->left_lens == NULL) {
        symbols->left_lens = bc_alloc_array(tok->n_pieces, sizeof *symbols->left_lens);
        if (symbols->left_lens == NULL) return bc_fail_nomem(err, "text to tokenize");
    }
    BC_TRY(add_symbols(tok, s, len, symbols, err));
    BC_TRY(bc_symbols_merge(symbols, pair_of_texts, tok, err));
    for (size_t i = 0; i < symbols->n; i++) {
        const struct bc_symbol *const it = &symbols->items[i];
        if (it->len == 0) continue;
        if (it->id == BC_NO_ID) {
            BC_TRY(put_unknown(tok, s + it->start, it->len, &in_run, work, err));
            continue;
        }
        in_run = false;
        if (tok->pieces[it->id].type == BC_TOKEN_UNUSED)
            BC_TRY(put_unused(tok, s + it->start, it->len, work, err));
        else
            BC_TRY(bc_put_id(work->ids, it->id, err));
    }
    return BITCONV_OK;
}
