/* SPDX-License-Identifier: MIT
 * Reads tokenizer.ggml.* and decides what kind of tokenizer files says the same. */
#include "export/export_vocab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"

#define WORD_START  "\xe2\x96\x81" /* U+2581 */
#define ADDED_SCORE (-1000.0f)     /* what convert gives to added tokens */

/* The arrays of the file, checked. */
struct arrays {
    const struct bitconv_gguf_value *tokens, *scores, *types, *merges;
};

static enum bitconv_status bad(const struct bc_exporter *e, const char *key, const char *wanted,
                               struct bitconv_error *err)
{
    return bc_fail(err, BITCONV_E_CORRUPT, "%s: tokenizer.ggml.%s: wanted %s", e->path, key,
                   wanted);
}

static const struct bitconv_gguf_value *find(const struct bc_exporter *e, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "tokenizer.ggml.%s", key);
    return bitconv_gguf_find_key(e->file, name);
}

/* An optional array of that element type; `count` elements unless that is UINT64_MAX. */
static enum bitconv_status find_array(const struct bc_exporter *e, const char *key,
                                      enum bitconv_gguf_type elem, uint64_t count,
                                      const struct bitconv_gguf_value **out,
                                      struct bitconv_error *err)
{
    *out = find(e, key);
    if (*out == NULL) return BITCONV_OK;
    if ((*out)->type != BITCONV_GGUF_ARRAY || (*out)->elem != elem)
        return bad(e, key, "an array of another type (the kind that its readers know)", err);
    if (count != UINT64_MAX && (*out)->count != count)
        return bad(e, key, "as many entries as there are tokens", err);
    return BITCONV_OK;
}

static enum bitconv_status find_arrays(const struct bc_exporter *e, struct arrays *a,
                                       struct bitconv_error *err)
{
    BC_TRY(find_array(e, "tokens", BITCONV_GGUF_STRING, UINT64_MAX, &a->tokens, err));
    if (a->tokens == NULL || a->tokens->count == 0)
        return bad(e, "tokens", "an array of texts", err);
    const uint64_t n = a->tokens->count;
    if (n > e->hp.n_vocab)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: tokenizer.ggml.tokens: %" PRIu64 " tokens, but the embedding has %u "
                       "rows",
                       e->path, n, (unsigned)e->hp.n_vocab);
    BC_TRY(find_array(e, "scores", BITCONV_GGUF_FLOAT32, n, &a->scores, err));
    BC_TRY(find_array(e, "token_type", BITCONV_GGUF_INT32, n, &a->types, err));
    return find_array(e, "merges", BITCONV_GGUF_STRING, UINT64_MAX, &a->merges, err);
}

/* ---- tokens ---- */

/* Ids without a token are named and typed by rules (tokenizer_vocab.c): converting again makes them
 * anew. */
static bool is_padding(const struct bc_export_vocab *v, const struct bc_tokenizer_rules *rules,
                       uint32_t id, uint32_t n_before)
{
    const struct bc_export_token *t = &v->tokens[id];
    const bool gpt2 = v->kind == BC_VOCAB_BYTE_LEVEL;
    char name[32];
    const int len = snprintf(name, sizeof name, "[PAD%" PRIu32 "]",
                             rules->counted_padding && !gpt2 ? n_before + 1 : id);
    return t->type == (gpt2 ? rules->gpt2_padding : BC_TOKEN_UNUSED) && t->len == (uint32_t)len &&
           memcmp(t->text, name, (size_t)len) == 0;
}

static enum bitconv_status read_tokens(struct bc_exporter *e, struct bc_export_vocab *v,
                                       const struct arrays *a, struct bitconv_error *err)
{
    uint64_t at = 0;
    v->n = (uint32_t)a->tokens->count;
    v->has_scores = a->scores != NULL;
    v->tokens = bc_alloc_array(v->n, sizeof *v->tokens);
    if (v->tokens == NULL) return bc_fail_nomem(err, "vocabulary");
    for (uint32_t id = 0; id < v->n; id++) {
        struct bc_export_token *t = &v->tokens[id];
        size_t len = 0;
        uint32_t type = BC_TOKEN_NORMAL;
        if (!bitconv_gguf_array_next_string(a->tokens, &at, &t->text, &len) || len > UINT32_MAX)
            return bad(e, "tokens", "an array of texts", err);
        t->len = (uint32_t)len;
        if (a->scores != NULL) t->score = bc_get_f32(a->scores->data + 4 * (size_t)id);
        if (a->types != NULL) type = bc_get_u32(a->types->data + 4 * (size_t)id);
        if (type < BC_TOKEN_NORMAL || type > BC_TOKEN_BYTE)
            return bad(e, "token_type", "types from 1 to 6", err);
        t->type = (enum bc_token_type)type;
        if (!bc_utf8_valid(t->text, len) || memchr(t->text, '\0', len) != NULL)
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "%s: tokenizer.ggml.tokens: token %" PRIu32
                           " is not UTF-8 text: no tokenizer.json can hold it",
                           e->path, id);
    }
    return BITCONV_OK;
}

static enum bitconv_status index_tokens(struct bc_exporter *e, struct bc_export_vocab *v,
                                        struct bitconv_error *err)
{
    for (uint32_t id = 0; id < v->n; id++) {
        const struct bc_export_token *t = &v->tokens[id];
        uint64_t other = 0;
        if (t->padding) continue;
        switch (bc_map_put(&v->by_text, t->text, t->len, id, &other)) {
        case BC_MAP_NOMEM:
            return bc_fail_nomem(err, "vocabulary");
        case BC_MAP_EXISTS:
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "%s: tokenizer.ggml.tokens: %" PRIu64 " and %" PRIu32
                           " are the same text: no tokenizer file can say that",
                           e->path, other, id);
        case BC_MAP_NEW:
            break;
        }
    }
    return BITCONV_OK;
}

/* GGUF readers mark the start of a word where BERT marks its continuation. */
static enum bitconv_status rewrite_wordpieces(struct bc_exporter *e, struct bc_export_vocab *v,
                                              struct bitconv_error *err)
{
    const size_t n = strlen(WORD_START);
    for (uint32_t id = 0; id < v->n; id++) {
        struct bc_export_token *t = &v->tokens[id];
        if (t->type == BC_TOKEN_CONTROL || t->padding) continue;
        if (t->len > n && memcmp(t->text, WORD_START, n) == 0) {
            t->text += n;
            t->len -= (uint32_t)n;
            continue;
        }
        t->text = bc_arena_printf(&e->arena, "##%.*s", (int)t->len, t->text);
        if (t->text == NULL) return bc_fail_nomem(err, "vocabulary");
        t->len += 2;
    }
    return BITCONV_OK;
}

/* ---- merges ---- */

static enum bitconv_status add_merge(struct bc_export_vocab *v, uint32_t left, uint32_t right,
                                     struct bitconv_error *err)
{
    void *items = v->merges;
    if (!bc_grow(&items, &v->cap_merges, v->n_merges, sizeof *v->merges))
        return bc_fail_nomem(err, "merges");
    v->merges = items;
    v->merges[v->n_merges++] = (struct bc_export_merge){left, right};
    return BITCONV_OK;
}

/* "left right": both parts are tokens of the model's own vocabulary, and so should their product be.
 * Without that the tokenizers library refuses the file. */
static enum bitconv_status read_merges(struct bc_exporter *e, struct bc_export_vocab *v,
                                       const struct bitconv_gguf_value *list,
                                       struct bitconv_error *err)
{
    uint64_t at = 0;
    const char *s = NULL;
    size_t len = 0;
    if (list == NULL || list->count == 0)
        return bad(e, "merges", "the merges of a byte-level vocabulary", err);
    for (uint64_t i = 0; bitconv_gguf_array_next_string(list, &at, &s, &len); i++) {
        const char *blank = len > 1 ? memchr(s + 1, ' ', len - 1) : NULL;
        uint64_t left = 0, right = 0;
        if (blank == NULL || !bc_map_get(&v->by_text, s, (size_t)(blank - s), &left) ||
            !bc_map_get(&v->by_text, blank + 1, len - (size_t)(blank - s) - 1, &right))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: tokenizer.ggml.merges: entry %" PRIu64
                           " is not \"left right\" with two tokens",
                           e->path, i);
        v->tokens[left].base = v->tokens[right].base = true;
        BC_TRY(add_merge(v, (uint32_t)left, (uint32_t)right, err));
        struct bc_buf product = {0};
        uint64_t id = 0;
        bc_buf_append(&product, s, (size_t)(blank - s));
        bc_buf_append(&product, blank + 1, len - (size_t)(blank - s) - 1);
        if (!product.failed && bc_map_get(&v->by_text, bc_buf_str(&product), product.size, &id))
            v->tokens[id].base = true;
        bc_buf_release(&product);
    }
    return BITCONV_OK;
}

/* ---- kinds ---- */

/* Does everything look like what convert makes of a tokenizer.json? */
static bool scores_are_ranks(const struct bc_export_vocab *v)
{
    if (find(v->e, "remove_extra_whitespaces") != NULL ||
        find(v->e, "precompiled_charsmap") != NULL)
        return false; /* only a tokenizer.model says these */
    for (uint32_t id = 0; id < v->n && v->has_scores; id++) {
        const struct bc_export_token *t = &v->tokens[id];
        const bool added = t->type == BC_TOKEN_CONTROL || t->type == BC_TOKEN_USER_DEFINED;
        if (t->padding) continue;
        if (t->type == BC_TOKEN_UNKNOWN || t->type == BC_TOKEN_UNUSED) return false;
        if (added && t->score != ADDED_SCORE) return false;
        if (!added && (t->score > 0 || (t->score == 0 && signbit(t->score)) ||
                       t->score < -16777216.0f || floorf(t->score) != t->score))
            return false;
    }
    return v->has_scores;
}

static void mark_added(struct bc_export_vocab *v, const struct bc_tokenizer_rules *rules)
{
    for (uint32_t id = 0; id < v->n; id++) {
        struct bc_export_token *t = &v->tokens[id];
        const bool special = t->type == BC_TOKEN_CONTROL || t->type == BC_TOKEN_UNKNOWN;
        if (t->padding) continue;
        t->added = special || t->type == BC_TOKEN_USER_DEFINED;
        if (!t->added || v->kind != BC_VOCAB_BYTE_LEVEL) t->base = true;
        /* where declaring a piece changes its type and score, only those may be declared that were */
        if (v->kind == BC_VOCAB_SPM && rules->redeclare_pieces &&
            (t->score != ADDED_SCORE || t->type == BC_TOKEN_UNKNOWN))
            t->added = false;
    }
}

/* SPM: the added tokens (and padding) at the end are no pieces of the model. */
static void count_pieces(struct bc_export_vocab *v)
{
    v->n_pieces = v->n;
    while (v->n_pieces > 0) {
        const struct bc_export_token *t = &v->tokens[v->n_pieces - 1];
        if (!t->padding && !(t->added && t->score == ADDED_SCORE)) break;
        v->n_pieces--;
    }
}

static enum bitconv_status choose_model(struct bc_exporter *e, struct bc_export_vocab *v,
                                        const struct bitconv_gguf_value *model,
                                        struct bitconv_error *err)
{
    static const struct {
        const char *name;
        enum bc_vocab_kind kind;
    } models[] = {
        {"gpt2", BC_VOCAB_BYTE_LEVEL}, {"llama", BC_VOCAB_SPM}, {"bert", BC_VOCAB_WORDPIECE}};
    const char *s = NULL;
    size_t len = 0;
    if (!bitconv_gguf_value_string(model, &s, &len)) return bad(e, "model", "a text", err);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (strlen(models[i].name) != len || memcmp(models[i].name, s, len) != 0) continue;
        v->kind = models[i].kind;
        return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "%s: tokenizer.ggml.model: \"%.*s\" cannot be exported (gpt2, llama, bert can)",
                   e->path, (int)(len < 32 ? len : 32), s);
}

static int flag(const struct bc_exporter *e, const char *key)
{
    bool value = false;
    return bitconv_gguf_value_bool(find(e, key), &value) ? value : -1;
}

static enum bitconv_status read_words(struct bc_exporter *e, struct bc_export_vocab *v,
                                      struct bitconv_error *err)
{
    const char *s = NULL;
    size_t len = 0;
    v->pre = e->options->pre;
    if (v->pre == NULL && bitconv_gguf_value_string(find(e, "pre"), &s, &len)) {
        v->pre = bc_arena_strndup(&e->arena, s, len);
        if (v->pre == NULL) return bc_fail_nomem(err, "vocabulary");
    }
    v->space_prefix = flag(e, "add_space_prefix") != 0;
    v->lowercase = flag(e, "normalizer.lowercase");
    v->strip_accents = flag(e, "normalizer.strip_accents");
    return BITCONV_OK;
}

/* What merges there are, and with them the kind of a SentencePiece-style vocabulary. */
static enum bitconv_status find_merges(struct bc_exporter *e, struct bc_export_vocab *v,
                                       const struct arrays *a, struct bitconv_error *err)
{
    bool ok = false;
    if (v->kind == BC_VOCAB_BYTE_LEVEL) return read_merges(e, v, a->merges, err);
    if (v->kind == BC_VOCAB_WORDPIECE) return BITCONV_OK;
    if (scores_are_ranks(v)) BC_TRY(bc_export_derive_merges(v, true, &ok, err));
    if (ok) v->kind = BC_VOCAB_BPE_FALLBACK;
    return ok ? BITCONV_OK : bc_export_derive_merges(v, false, &ok, err);
}

enum bitconv_status bc_export_vocab_read(struct bc_exporter *e, struct bc_export_vocab *v,
                                         bool *out_found, struct bitconv_error *err)
{
    const struct bc_tokenizer_rules *rules =
        bc_tokenizer_rules(e->arch->traits.tokenizer, e->target);
    const struct bitconv_gguf_value *model = find(e, "model");
    struct arrays a;
    uint32_t n_padding = 0;
    v->e = e;
    *out_found = model != NULL;
    if (model == NULL) return BITCONV_OK;
    BC_TRY(choose_model(e, v, model, err));
    BC_TRY(find_arrays(e, &a, err));
    BC_TRY(read_tokens(e, v, &a, err));
    BC_TRY(read_words(e, v, err));
    for (uint32_t id = 0; id < v->n; id++) {
        v->tokens[id].padding = is_padding(v, rules, id, n_padding);
        n_padding += v->tokens[id].padding;
    }
    if (v->kind == BC_VOCAB_WORDPIECE) BC_TRY(rewrite_wordpieces(e, v, err));
    BC_TRY(index_tokens(e, v, err));
    BC_TRY(find_merges(e, v, &a, err));
    mark_added(v, rules);
    if (v->kind == BC_VOCAB_SPM) count_pieces(v);
    return BITCONV_OK;
}

void bc_export_vocab_release(struct bc_export_vocab *v)
{
    bc_free(v->tokens);
    bc_free(v->merges);
    bc_map_release(&v->by_text);
}

const struct bc_export_token *bc_export_token_at(const struct bc_export_vocab *v, int64_t id)
{
    if (id < 0 || id >= (int64_t)v->n || v->tokens[id].padding) return NULL;
    return &v->tokens[id];
}
