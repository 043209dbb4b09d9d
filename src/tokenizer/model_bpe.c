/* SPDX-License-Identifier: MIT
 * Byte-pair encoding by a list of merges, as the tokenizers library does it (models/bpe). */
#include "base/utf8.h"
#include "tokenizer/runtime.h"

static bool pair_of_table(const void *ctx, const struct bc_symbols *symbols,
                          const struct bc_symbol *left, const struct bc_symbol *right,
                          uint32_t *priority, uint32_t *result)
{
    const struct bitconv_tokenizer *const tok = ctx;
    (void)symbols;
    return bc_merges_get(&tok->merges, left->id, right->id, priority, result);
}

/* A run of unknown characters that is not yet a symbol. */
struct unknown_run {
    size_t start, len;
};

static enum bitconv_status flush_unknown(const struct bitconv_tokenizer *tok,
                                         struct unknown_run *run, struct bc_symbols *symbols,
                                         struct bitconv_error *err)
{
    if (run->len == 0) return BITCONV_OK;
    BC_TRY(bc_symbols_add(symbols, run->start, run->len, tok->unknown, false, err));
    run->len = 0;
    return BITCONV_OK;
}

/* A character without a token: its bytes, or part of an unknown token, or nothing. */
static enum bitconv_status add_unknown(const struct bitconv_tokenizer *tok, const char *s,
                                       size_t at, size_t n, struct unknown_run *run,
                                       struct bc_symbols *symbols, struct bitconv_error *err)
{
    if (bc_has_byte_ids(tok, s + at, n)) {
        for (size_t i = 0; i < n; i++)
            BC_TRY(
                bc_symbols_add(symbols, at + i, 1, tok->byte_ids[(uint8_t)s[at + i]], false, err));
        return BITCONV_OK;
    }
    if (tok->unknown == BC_NO_ID) return BITCONV_OK;
    if (!tok->fuse_unknown) BC_TRY(flush_unknown(tok, run, symbols, err));
    if (run->len == 0) run->start = at;
    run->len += n;
    return BITCONV_OK;
}

static enum bitconv_status add_symbols(const struct bitconv_tokenizer *tok, const char *s,
                                       size_t len, struct bc_symbols *symbols,
                                       struct bitconv_error *err)
{
    struct unknown_run run = {0};
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        size_t n = bc_utf8_decode(s + at, len - at, &cp);
        if (n == 0) n = 1;
        const uint32_t id = bc_piece_id(tok, s + at, n);
        if (id == BC_NO_ID) {
            BC_TRY(add_unknown(tok, s, at, n, &run, symbols, err));
        } else {
            BC_TRY(flush_unknown(tok, &run, symbols, err));
            BC_TRY(bc_symbols_add(symbols, at, n, id, false, err));
        }
        at += n;
    }
    return flush_unknown(tok, &run, symbols, err);
}

enum bitconv_status bc_encode_bpe(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                                  struct bc_work *work, struct bitconv_error *err)
{
    struct bc_symbols *const symbols = &work->symbols;
    if (tok->ignore_merges) {
        const uint32_t id = bc_piece_id(tok, s, len);
        if (id != BC_NO_ID) return bc_put_id(work->ids, id, err);
    }
    bc_symbols_clear(symbols, s);
    BC_TRY(add_symbols(tok, s, len, symbols, err));
    BC_TRY(bc_symbols_merge(symbols, pair_of_table, tok, err));
    for (size_t i = 0; i < symbols->n; i++)
        if (symbols->items[i].len > 0) BC_TRY(bc_put_id(work->ids, symbols->items[i].id, err));
    return BITCONV_OK;
}
