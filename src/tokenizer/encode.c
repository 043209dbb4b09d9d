/* SPDX-License-Identifier: MIT
 * Text to ids: added tokens out of the raw text, normalizer, added tokens out of the normalized
 * text, pre-tokenizer, model. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tokenizer/runtime.h"

enum bitconv_status bc_put_id(struct bitconv_ids *ids, uint32_t id, struct bitconv_error *err)
{
    if (!bc_grow((void **)&ids->ids, &ids->cap, ids->n, sizeof *ids->ids))
        return bc_fail_nomem(err, "token ids");
    ids->ids[ids->n++] = id;
    return BITCONV_OK;
}

void bitconv_ids_release(struct bitconv_ids *ids)
{
    bc_free(ids->ids);
    *ids = (struct bitconv_ids){0};
}

static void release_work(struct bc_work *work)
{
    bc_pieces_release(&work->pieces);
    bc_pieces_release(&work->spare);
    bc_pieces_release(&work->parts);
    bc_symbols_release(&work->symbols);
    bc_free(work->path);
    bc_buf_release(&work->word);
}

uint32_t bc_piece_id(const struct bitconv_tokenizer *tok, const char *s, size_t len)
{
    uint64_t id;
    if (len > tok->longest) return BC_NO_ID;
    return bc_map_get(&tok->by_text, s, len, &id) ? (uint32_t)id : BC_NO_ID;
}

bool bc_has_byte_ids(const struct bitconv_tokenizer *tok, const char *s, size_t len)
{
    if (!tok->byte_fallback) return false;
    for (size_t i = 0; i < len; i++)
        if (tok->byte_ids[(uint8_t)s[i]] == BC_NO_ID) return false;
    return true;
}

typedef enum bitconv_status model_fn(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                                     struct bc_work *work, struct bitconv_error *err);

static model_fn *const models[BC_N_TOKEN_MODELS] = {
    [BC_MODEL_BPE] = bc_encode_bpe,
    [BC_MODEL_SCORED] = bc_encode_scored,
    [BC_MODEL_UNIGRAM] = bc_encode_unigram,
    [BC_MODEL_WORDPIECE] = bc_encode_wordpiece,
};

/* One call of encode. */
struct encoding {
    const struct bitconv_tokenizer *tok;
    struct bc_work work;
    bool at_start; /* the stretch in hand starts the input */
};

/* A stretch of normalized text. */
static enum bitconv_status put_normalized(void *ctx, const char *s, size_t len, size_t offset,
                                          const struct bc_added *token, struct bitconv_error *err)
{
    struct encoding *const e = ctx;
    struct bc_work *const work = &e->work;
    if (token != NULL) return bc_put_id(work->ids, token->id, err);
    bc_pieces_clear(&work->pieces);
    work->pieces.at_start = e->at_start && offset == 0;
    bc_pieces_add(&work->pieces, s, len);
    BC_TRY(bc_pieces_check(&work->pieces, err));
    BC_TRY(bc_steps_run(&e->tok->pre_steps, &work->pieces, &work->spare, err));
    for (size_t i = 0; i < work->pieces.n; i++) {
        size_t n;
        const char *const piece = bc_pieces_at(&work->pieces, i, &n);
        if (n > 0) BC_TRY(models[e->tok->model](e->tok, piece, n, work, err));
    }
    return BITCONV_OK;
}

/* A stretch of raw text. The normalized text moves to `parts`: the next steps need the buffers. */
static enum bitconv_status put_raw(void *ctx, const char *s, size_t len, size_t offset,
                                   const struct bc_added *token, struct bitconv_error *err)
{
    struct encoding *const e = ctx;
    struct bc_work *const work = &e->work;
    if (token != NULL) return bc_put_id(work->ids, token->id, err);
    bc_pieces_clear(&work->pieces);
    work->pieces.at_start = offset == 0;
    bc_pieces_add(&work->pieces, s, len);
    BC_TRY(bc_pieces_check(&work->pieces, err));
    BC_TRY(bc_steps_run(&e->tok->normalizer, &work->pieces, &work->spare, err));
    e->at_start = work->pieces.at_start;
    const struct bc_pieces swap = work->parts;
    work->parts = work->pieces;
    work->pieces = swap;
    return bc_split_added(e->tok, &e->tok->normalized_added, bc_buf_str(&work->parts.text),
                          work->parts.text.size, put_normalized, e, err);
}

/* How many bytes at s, which start no character, count as one ill-formed part: the longest start of
 * a well-formed sequence, at least one byte (the Unicode Standard, table 3-7). */
static size_t ill_formed_part(const char *s, size_t len)
{
    const uint8_t *const p = (const uint8_t *)s;
    const size_t wanted = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
                          : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                          : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                        : 1;
    size_t n = 1;
    for (; n < wanted && n < len; n++) {
        uint8_t low = 0x80;
        uint8_t high = 0xbf;
        if (n == 1 && p[0] == 0xe0) low = 0xa0;
        if (n == 1 && p[0] == 0xed) high = 0x9f;
        if (n == 1 && p[0] == 0xf0) low = 0x90;
        if (n == 1 && p[0] == 0xf4) high = 0x8f;
        if (p[n] < low || p[n] > high) break;
    }
    return n;
}

static void replace_ill_formed(const char *s, size_t len, struct bc_buf *out)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        const size_t n = bc_utf8_decode(s + i, len - i, &cp);
        if (n > 0)
            bc_buf_append(out, s + i, n);
        else
            bc_buf_puts(out, "\xef\xbf\xbd");
        i += n > 0 ? n : ill_formed_part(s + i, len - i);
    }
}

static enum bitconv_status put_list(const struct bc_id_list *list, struct bitconv_ids *ids,
                                    struct bitconv_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        BC_TRY(bc_put_id(ids, list->ids[i], err));
    return BITCONV_OK;
}

static enum bitconv_status encode_well_formed(const struct bitconv_tokenizer *tok, const char *text,
                                              size_t len, struct bitconv_ids *ids,
                                              struct bitconv_error *err)
{
    struct encoding e = {.tok = tok, .work = {.ids = ids}};
    const enum bitconv_status status =
        bc_split_added(tok, &tok->raw_added, text, len, put_raw, &e, err);
    release_work(&e.work);
    return status;
}

enum bitconv_status bitconv_tokenizer_encode(const struct bitconv_tokenizer *tok, const char *text,
                                             size_t len, bool add_special, struct bitconv_ids *ids,
                                             struct bitconv_error *err)
{
    struct bc_buf repaired = {0};
    if (add_special) BC_TRY(put_list(&tok->prefix, ids, err));
    if (!bc_utf8_valid(text, len)) {
        replace_ill_formed(text, len, &repaired);
        if (repaired.failed) return bc_fail_nomem(err, "text to tokenize");
        text = bc_buf_str(&repaired);
        len = repaired.size;
    }
    const enum bitconv_status status = encode_well_formed(tok, text, len, ids, err);
    bc_buf_release(&repaired);
    if (status == BITCONV_OK && add_special) return put_list(&tok->suffix, ids, err);
    return status;
}
