/* SPDX-License-Identifier: MIT
 * The common middle form of every kind of tokenizer, and writing it as GGUF arrays. */
#include "model/tokenizer_vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"

/* Ids without a token, at most: the row count may come from a few bytes of config.json alone. */
#define MAX_PADDING 0x100000u

void bc_vocab_release(struct bc_vocab *vocab)
{
    bc_free(vocab->tokens);
    bc_free(vocab->order);
    bc_map_release(&vocab->by_text);
    bc_buf_release(&vocab->merges);
    bc_buf_release(&vocab->charsmap);
    bc_arena_release(&vocab->arena);
    *vocab = (struct bc_vocab){0};
}

enum bitconv_status bc_vocab_add(struct bc_vocab *vocab, const char *source, const char *text,
                                 size_t len, uint64_t id, struct bc_token **out,
                                 struct bitconv_error *err)
{
    if (id > BC_VOCAB_MAX_ID)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: token \"%.64s\": id %" PRIu64 " is beyond the limit of %u", source,
                       text, id, BC_VOCAB_MAX_ID);
    if (len > UINT32_MAX)
        return bc_fail(err, BITCONV_E_LIMIT, "%s: token of id %" PRIu64 ": %zu bytes long", source,
                       id, len);
    if (!bc_grow((void **)&vocab->tokens, &vocab->cap_tokens, vocab->n_tokens,
                 sizeof *vocab->tokens))
        return bc_fail_nomem(err, "vocabulary");
    uint64_t at = 0;
    switch (bc_map_put(&vocab->by_text, text, len, vocab->n_tokens, &at)) {
    case BC_MAP_NOMEM:
        return bc_fail_nomem(err, "vocabulary");
    case BC_MAP_EXISTS:
        if (vocab->tokens[at].id != id)
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: token \"%.64s\" has two ids, %" PRIu32 " and %" PRIu64
                           "; correct the tokenizer files",
                           source, text, vocab->tokens[at].id, id);
        break;
    case BC_MAP_NEW:
        at = vocab->n_tokens++;
        vocab->tokens[at] = (struct bc_token){
            .text = text, .len = (uint32_t)len, .id = (uint32_t)id, .type = BC_TOKEN_NORMAL};
        break;
    }
    if (out != NULL) *out = &vocab->tokens[at];
    return BITCONV_OK;
}

/* One position and its id, so that sorting needs no context. */
struct ranked {
    uint32_t id;
    uint32_t at;
};

static int by_id(const void *a, const void *b)
{
    const struct ranked *const x = a;
    const struct ranked *const y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Fills order from scratch. */
static bool sort_by_id(struct bc_vocab *vocab)
{
    struct ranked *const ranked = bc_alloc_array(vocab->n_tokens, sizeof *ranked);
    uint32_t *const order = bc_alloc_array(vocab->n_tokens, sizeof *order);
    if (ranked == NULL || order == NULL) {
        bc_free(ranked);
        bc_free(order);
        return false;
    }
    bool sorted = true;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        ranked[i] = (struct ranked){vocab->tokens[i].id, (uint32_t)i};
        if (i > 0 && ranked[i].id < ranked[i - 1].id) sorted = false;
    }
    if (!sorted) qsort(ranked, vocab->n_tokens, sizeof *ranked, by_id);
    for (size_t i = 0; i < vocab->n_tokens; i++)
        order[i] = ranked[i].at;
    bc_free(ranked);
    bc_free(vocab->order);
    vocab->order = order;
    vocab->n_sealed = vocab->n_tokens;
    return true;
}

enum bitconv_status bc_vocab_seal(struct bc_vocab *vocab, struct bitconv_error *err)
{
    if (vocab->n_tokens == 0)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: the vocabulary is empty", vocab->source);
    if (vocab->n_sealed == vocab->n_tokens) return BITCONV_OK;
    if (!sort_by_id(vocab)) return bc_fail_nomem(err, "vocabulary");
    for (size_t i = 1; i < vocab->n_tokens; i++) {
        const struct bc_token *const a = &vocab->tokens[vocab->order[i - 1]];
        const struct bc_token *const b = &vocab->tokens[vocab->order[i]];
        if (a->id == b->id)
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: id %" PRIu32 " belongs to two tokens, \"%.64s\" and \"%.64s\"; "
                           "correct the tokenizer files",
                           vocab->source, a->id, a->text, b->text);
    }
    return BITCONV_OK;
}

struct bc_token *bc_vocab_find(const struct bc_vocab *vocab, const char *text, size_t len)
{
    uint64_t at = 0;
    return bc_map_get(&vocab->by_text, text, len, &at) ? &vocab->tokens[at] : NULL;
}

struct bc_token *bc_vocab_at(const struct bc_vocab *vocab, uint32_t id)
{
    size_t low = 0;
    size_t high = vocab->n_sealed;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        struct bc_token *const token = &vocab->tokens[vocab->order[mid]];
        if (token->id == id) return token;
        if (token->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

enum bitconv_status bc_vocab_fit(const struct bc_vocab *vocab, uint32_t n_rows, bool trim,
                                 const struct bitconv_sink *sink, struct bitconv_error *err)
{
    uint64_t n_base = 0;
    uint64_t n_added = 0;
    const struct bc_token *first_added = NULL;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        const struct bc_token *const token = &vocab->tokens[vocab->order[i]];
        if (token->id < n_rows) continue;
        n_base += token->base;
        n_added += !token->base;
        if (!token->base && first_added == NULL) first_added = token;
    }
    const uint32_t last = vocab->tokens[vocab->order[vocab->n_tokens - 1]].id;
    if (n_base > 0 && !trim)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: %zu tokens with ids up to %" PRIu32 ", but the embedding has %" PRIu32
                       " rows; --trim-vocab cuts the vocabulary there",
                       vocab->source, vocab->n_tokens, last, n_rows);
    if (n_base > 0)
        bc_say(sink, BITCONV_WARNING,
               "%s: vocabulary cut at the %" PRIu32 " rows of the embedding: %" PRIu64
               " tokens dropped",
               vocab->source, n_rows, n_base + n_added);
    else if (n_added > 0)
        bc_say(sink, BITCONV_WARNING,
               "%s: %" PRIu64 " added tokens beyond the %" PRIu32
               " rows of the embedding dropped, first \"%.64s\" (id %" PRIu32 ")",
               vocab->source, n_added, n_rows, first_added->text, first_added->id);
    const uint64_t n_kept = vocab->n_tokens - n_base - n_added;
    if (n_rows - n_kept > MAX_PADDING)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: %" PRIu64 " tokens for %" PRIu32
                       " rows of the embedding: more than %u ids would have to be padded",
                       vocab->source, n_kept, n_rows, MAX_PADDING);
    if (n_kept < n_rows)
        bc_say(sink, BITCONV_NOTE, "%s: %" PRIu64 " ids without a token are padded", vocab->source,
               n_rows - n_kept);
    return BITCONV_OK;
}

/* The arrays of a vocabulary while they are filled, one entry per row. */
struct arrays {
    struct bc_buf texts, scores, types;
    uint32_t n_padding;
};

static void append_text(struct bc_buf *buf, const char *text, size_t len)
{
    bc_buf_u64(buf, len);
    bc_buf_append(buf, text, len);
}

/* U+2581 stands for a blank inside pieces; a user-defined token is looked for in the raw text. */
static void append_unescaped(struct bc_buf *buf, const char *text, size_t len)
{
    static const char mark[] = "\xe2\x96\x81";
    const size_t n_mark = sizeof mark - 1;
    const size_t start = buf->size;
    bc_buf_u64(buf, 0);
    for (size_t i = 0; i < len;) {
        const bool blank = len - i >= n_mark && memcmp(text + i, mark, n_mark) == 0;
        bc_buf_append(buf, blank ? " " : text + i, 1);
        i += blank ? n_mark : 1;
    }
    if (!buf->failed) bc_put_u64(buf->data + start, buf->size - start - 8);
}

static void append_padding(const struct bc_vocab *vocab, const struct bc_tokenizer_rules *rules,
                           uint32_t id, struct arrays *a)
{
    const bool gpt2 = vocab->model[0] == 'g';
    char name[32];
    a->n_padding++;
    const int len = snprintf(name, sizeof name, "[PAD%" PRIu32 "]",
                             rules->counted_padding && !gpt2 ? a->n_padding : id);
    append_text(&a->texts, name, (size_t)len);
    bc_buf_f32(&a->scores, rules->padding_score);
    bc_buf_u32(&a->types, gpt2 ? (uint32_t)rules->gpt2_padding : (uint32_t)BC_TOKEN_UNUSED);
}

static void fill_arrays(const struct bc_vocab *vocab, uint32_t n_rows,
                        const struct bc_tokenizer_rules *rules, struct arrays *a)
{
    size_t next = 0;
    for (uint32_t id = 0; id < n_rows; id++) {
        const struct bc_token *const token =
            next < vocab->n_tokens ? &vocab->tokens[vocab->order[next]] : NULL;
        if (token == NULL || token->id != id) {
            append_padding(vocab, rules, id, a);
            continue;
        }
        if (rules->unescape_spaces && token->type == BC_TOKEN_USER_DEFINED)
            append_unescaped(&a->texts, token->text, token->len);
        else
            append_text(&a->texts, token->text, token->len);
        bc_buf_f32(&a->scores, (float)token->score);
        bc_buf_u32(&a->types, (uint32_t)token->type);
        next++;
    }
}

enum bitconv_status bc_vocab_write(const struct bc_vocab *vocab, uint32_t n_rows,
                                   const struct bc_tokenizer_rules *rules,
                                   struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    struct arrays a = {0};
    fill_arrays(vocab, n_rows, rules, &a);
    const bool failed = a.texts.failed || a.scores.failed || a.types.failed;
    if (!failed) {
        bitconv_gguf_set_string(w, "tokenizer.ggml.model", vocab->model);
        bitconv_gguf_set_string(w, "tokenizer.ggml.pre", vocab->pre);
        bitconv_gguf_set_array(w, "tokenizer.ggml.tokens", BITCONV_GGUF_STRING, n_rows,
                               a.texts.data, a.texts.size);
        if (vocab->has_scores)
            bitconv_gguf_set_array(w, "tokenizer.ggml.scores", BITCONV_GGUF_FLOAT32, n_rows,
                                   a.scores.data, a.scores.size);
        bitconv_gguf_set_array(w, "tokenizer.ggml.token_type", BITCONV_GGUF_INT32, n_rows,
                               a.types.data, a.types.size);
        if (vocab->has_merges)
            bitconv_gguf_set_array(w, "tokenizer.ggml.merges", BITCONV_GGUF_STRING, vocab->n_merges,
                                   vocab->merges.data, vocab->merges.size);
    }
    bc_buf_release(&a.texts);
    bc_buf_release(&a.scores);
    bc_buf_release(&a.types);
    return failed ? bc_fail_nomem(err, "token arrays") : BITCONV_OK;
}
