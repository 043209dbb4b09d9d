/* SPDX-License-Identifier: MIT
 * A tokenizer from the metadata of a GGUF (ggml docs/gguf.md; defaults as in llama.cpp's
 * llama-vocab.cpp). Flags of added tokens and the order of merges of a SentencePiece-style
 * tokenizer.json are not in it: scores stand for the latter. */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "model/tokenizer_pre.h"
#include "tokenizer/build.h"
#include "tokenizer/steps_read.h"

#define MARK "\xe2\x96\x81"

struct reading {
    const struct bitconv_gguf *file;
    struct bitconv_tokenizer *tok;
    struct bc_vocab vocab;
};

static const struct bitconv_gguf_value *key(const struct reading *r, const char *name)
{
    return bitconv_gguf_find_key(r->file, name);
}

static bool flag(const struct reading *r, const char *name, bool fallback)
{
    bool value = fallback;
    (void)bitconv_gguf_value_bool(key(r, name), &value);
    return value;
}

static int64_t id_of(const struct reading *r, const char *name, int64_t fallback)
{
    uint64_t id;
    if (!bitconv_gguf_value_u64(key(r, name), &id)) return fallback;
    return id < r->tok->n_pieces ? (int64_t)id : -1;
}

/* ---- the lists ---- */

static const struct bitconv_gguf_value *array(const struct reading *r, const char *name,
                                              uint64_t count)
{
    const struct bitconv_gguf_value *const value = key(r, name);
    return value != NULL && value->type == BITCONV_GGUF_ARRAY && value->count == count ? value
                                                                                       : NULL;
}

static void read_type(const struct bitconv_gguf_value *types, uint64_t id, struct bc_token *token)
{
    struct bitconv_gguf_value element;
    int64_t type;
    if (types == NULL || !bitconv_gguf_array_at(types, id, &element) ||
        !bitconv_gguf_value_i64(&element, &type))
        return;
    if (type >= BC_TOKEN_NORMAL && type <= BC_TOKEN_BYTE) token->type = (enum bc_token_type)type;
}

static void read_score(const struct bitconv_gguf_value *scores, uint64_t id, struct bc_token *token)
{
    struct bitconv_gguf_value element;
    double score;
    if (scores != NULL && bitconv_gguf_array_at(scores, id, &element) &&
        bitconv_gguf_value_f64(&element, &score))
        token->score = score;
}

/* Padding in place of ids that no token has. */
static bool is_padding(const struct bc_token *token)
{
    return token->type == BC_TOKEN_UNUSED && strncmp(token->text, "[PAD", 4) == 0;
}

static enum bitconv_status load_tokens(struct reading *r, struct bitconv_error *err)
{
    const struct bitconv_gguf_value *const tokens = key(r, "tokenizer.ggml.tokens");
    if (tokens == NULL || tokens->type != BITCONV_GGUF_ARRAY || tokens->elem != BITCONV_GGUF_STRING)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "tokenizer.ggml.tokens: the list of tokens is not there");
    const struct bitconv_gguf_value *const types =
        array(r, "tokenizer.ggml.token_type", tokens->count);
    const struct bitconv_gguf_value *const scores =
        array(r, "tokenizer.ggml.scores", tokens->count);
    uint64_t pos = 0;
    const char *text;
    size_t len;
    for (uint64_t id = 0; bitconv_gguf_array_next_string(tokens, &pos, &text, &len); id++) {
        const char *const copy = bc_arena_strndup(&r->vocab.arena, text, len);
        struct bc_token *token;
        if (copy == NULL) return bc_fail_nomem(err, "vocabulary");
        if (memchr(text, '\0', len) != NULL || !bc_utf8_valid(text, len))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "tokenizer.ggml.tokens: token %" PRIu64 " is not UTF-8 text", id);
        BC_TRY(bc_vocab_add(&r->vocab, "tokenizer.ggml.tokens", copy, len, id, &token, err));
        read_type(types, id, token);
        read_score(scores, id, token);
        token->base = !is_padding(token);
    }
    return bc_vocab_seal(&r->vocab, err);
}

/* Tokens that the model makes of text; the others are looked for in it. */
static bool is_text(const struct bc_token *token)
{
    return token->base && token->type != BC_TOKEN_CONTROL && token->type != BC_TOKEN_UNKNOWN &&
           token->type != BC_TOKEN_BYTE;
}

/* How many blanks a token is a run of, written as blanks or as U+2581; 0 for any other text. */
static size_t n_blanks(const struct bc_token *token)
{
    const size_t n_mark = strlen(MARK);
    if (token->len > 0 && strspn(token->text, " ") == token->len) return token->len;
    for (size_t at = 0; at < token->len; at += n_mark)
        if (strncmp(token->text + at, MARK, n_mark) != 0) return 0;
    return token->len / n_mark;
}

/* User-defined runs of blanks (Gemma's): some converters write them as blanks, some as the pieces
 * have them. They are found in a text in both forms, and as pieces they come before all others, as
 * their merges do. */
static enum bitconv_status add_blanks(struct reading *r, const struct bc_token *token,
                                      struct bitconv_error *err)
{
    static const char *const forms[] = {" ", MARK};
    const size_t n = n_blanks(token);
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        struct bc_buf text = {0};
        for (size_t i = 0; i < n; i++)
            bc_buf_puts(&text, forms[form]);
        const char *const copy = bc_arena_strndup(&r->tok->arena, bc_buf_str(&text), text.size);
        const struct bc_added added = {.text = copy, .len = (uint32_t)text.size, .id = token->id};
        const bool failed = text.failed || copy == NULL;
        bc_buf_release(&text);
        if (failed) return bc_fail_nomem(err, "added tokens");
        BC_TRY(bc_build_added(r->tok, &added, false, err));
        if (form == 0) continue;
        if (bc_map_put(&r->tok->by_text, copy, added.len, token->id, NULL) == BC_MAP_NOMEM)
            return bc_fail_nomem(err, "added tokens");
        if (added.len > r->tok->longest) r->tok->longest = added.len;
        r->tok->pieces[token->id].score = (double)FLT_MAX;
    }
    return BITCONV_OK;
}

static enum bitconv_status add_special_tokens(struct reading *r, struct bitconv_error *err)
{
    for (size_t i = 0; i < r->vocab.n_tokens; i++) {
        const struct bc_token *const token = &r->vocab.tokens[i];
        const struct bc_added added = {.text = token->text, .len = token->len, .id = token->id};
        if (r->tok->model == BC_MODEL_SCORED && token->type == BC_TOKEN_USER_DEFINED &&
            n_blanks(token) > 0) {
            BC_TRY(add_blanks(r, token, err));
            continue;
        }
        if (token->type == BC_TOKEN_CONTROL || token->type == BC_TOKEN_UNKNOWN ||
            token->type == BC_TOKEN_USER_DEFINED)
            BC_TRY(bc_build_added(r->tok, &added, false, err));
    }
    return BITCONV_OK;
}

/* ---- models ---- */

static enum bitconv_status add_plain(struct bc_steps *steps, bc_step_fn *run,
                                     struct bitconv_error *err)
{
    return bc_steps_add(steps, run) == NULL ? bc_fail_nomem(err, "tokenizer") : BITCONV_OK;
}

static enum bitconv_status read_gpt2(struct reading *r, struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = r->tok;
    const struct bitconv_gguf_value *const merges = key(r, "tokenizer.ggml.merges");
    const char *name;
    size_t len;
    if (merges == NULL || merges->type != BITCONV_GGUF_ARRAY || merges->elem != BITCONV_GGUF_STRING)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "tokenizer.ggml.merges: the list of merges is not there");
    if (!bitconv_gguf_value_string(key(r, "tokenizer.ggml.pre"), &name, &len))
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "tokenizer.ggml.pre: the file does not say how text is split; tokenize from "
                       "the checkpoint's own files");
    tok->model = BC_MODEL_BPE;
    tok->pre = bc_arena_strndup(&tok->arena, name, len);
    if (tok->pre == NULL) return bc_fail_nomem(err, "tokenizer");
    BC_TRY(bc_steps_of_name(tok->pre, &tok->normalizer, &tok->pre_steps, &tok->ignore_merges, err));
    BC_TRY(add_plain(&tok->decoder, bc_step_unbytes, err));
    BC_TRY(bc_build_pieces(tok, &r->vocab, is_text, err));
    return bc_build_merge_payload(tok, merges->data, merges->size, merges->count, err);
}

static enum bitconv_status add_spm_normalizer(struct reading *r, struct bitconv_error *err)
{
    const struct bitconv_gguf_value *const map = key(r, "tokenizer.ggml.precompiled_charsmap");
    struct bc_step *const step = bc_steps_add(&r->tok->normalizer, bc_step_spm);
    if (step == NULL) return bc_fail_nomem(err, "tokenizer");
    step->spm = (struct bc_spm_rules){
        .dummy_prefix = flag(r, "tokenizer.ggml.add_space_prefix", true),
        .remove_extra_spaces = flag(r, "tokenizer.ggml.remove_extra_whitespaces", false),
        .escape_spaces = true,
    };
    BC_TRY(bc_build_spm_decoder(r->tok, step->spm.dummy_prefix, err));
    if (map == NULL || map->type != BITCONV_GGUF_ARRAY || map->size != map->count)
        return BITCONV_OK;
    return bc_charsmap_open(map->data, (size_t)map->size, &r->tok->normalizer.items[0].map, err);
}

static enum bitconv_status read_spm(struct reading *r, enum bc_token_model model, int64_t unknown,
                                    struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = r->tok;
    tok->model = model;
    BC_TRY(bc_build_pieces(tok, &r->vocab, is_text, err));
    for (size_t i = 0; i < 256; i++)
        if (tok->byte_ids[i] != BC_NO_ID) tok->byte_fallback = true;
    tok->fuse_unknown = true;
    unknown = id_of(r, "tokenizer.ggml.unknown_token_id", unknown);
    if (unknown >= 0 && unknown < (int64_t)tok->n_pieces) tok->unknown = (uint32_t)unknown;
    BC_TRY(add_spm_normalizer(r, err));
    return model == BC_MODEL_UNIGRAM ? bc_build_trie(tok, err) : BITCONV_OK;
}

static enum bitconv_status read_llama(struct reading *r, struct bitconv_error *err)
{
    return read_spm(r, BC_MODEL_SCORED, 0, err);
}

static enum bitconv_status read_t5(struct reading *r, struct bitconv_error *err)
{
    return read_spm(r, BC_MODEL_UNIGRAM, 2, err);
}

/* Undoes bc_wordpiece_rewrite: "▁x" starts a word, any other "x" goes on with one. */
static enum bitconv_status unmark_words(struct bc_vocab *vocab, struct bitconv_error *err)
{
    bc_map_release(&vocab->by_text);
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        struct bc_token *const token = &vocab->tokens[i];
        if (token->type == BC_TOKEN_CONTROL || !token->base) continue;
        if (token->len >= strlen(MARK) && memcmp(token->text, MARK, strlen(MARK)) == 0) {
            token->text += strlen(MARK);
            token->len -= (uint32_t)strlen(MARK);
            continue;
        }
        token->text = bc_arena_printf(&vocab->arena, "##%s", token->text);
        if (token->text == NULL) return bc_fail_nomem(err, "vocabulary");
        token->len += 2;
    }
    return BITCONV_OK;
}

static bool is_word(const struct bc_token *token)
{
    return token->base;
}

static enum bitconv_status read_bert(struct reading *r, struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = r->tok;
    const bool lower = flag(r, "tokenizer.ggml.normalizer.lowercase", true);
    const bool accents = flag(r, "tokenizer.ggml.normalizer.strip_accents", lower);
    tok->model = BC_MODEL_WORDPIECE;
    tok->max_chars = 100;
    BC_TRY(unmark_words(&r->vocab, err));
    BC_TRY(bc_steps_add_bert(&tok->normalizer, &tok->pre_steps, lower, accents, err));
    BC_TRY(bc_steps_add_words_decoder(&tok->decoder, "##", true, err));
    BC_TRY(bc_build_pieces(tok, &r->vocab, is_word, err));
    const int64_t unknown = id_of(r, "tokenizer.ggml.unknown_token_id", 100);
    if (unknown >= 0 && unknown < (int64_t)tok->n_pieces) tok->unknown = (uint32_t)unknown;
    return BITCONV_OK;
}

/* ---- the kinds ---- */

static const struct kind {
    const char *name; /* tokenizer.ggml.model */
    enum bitconv_status (*read)(struct reading *r, struct bitconv_error *err);
    bool adds_bos, adds_eos; /* where the file does not say */
    int64_t bos, eos;        /* likewise */
} kinds[] = {
    {"gpt2", read_gpt2, false, false, -1, -1},
    {"llama", read_llama, true, false, 1, 2},
    {"t5", read_t5, false, true, -1, 1},
    {"bert", read_bert, true, true, 101, 102},
};

static const struct kind *find_kind(const struct reading *r, struct bitconv_error *err)
{
    const char *name;
    size_t len;
    if (!bitconv_gguf_value_string(key(r, "tokenizer.ggml.model"), &name, &len)) {
        (void)bc_fail(err, BITCONV_E_CORRUPT,
                      "%s: there is no tokenizer in this file (tokenizer.ggml.model)",
                      bitconv_gguf_shard_path(r->file, 0));
        return NULL;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0) return &kinds[i];
    (void)bc_fail(
        err, BITCONV_E_UNSUPPORTED,
        "%s: tokenizer.ggml.model: \"%.*s\" is not supported (gpt2, llama, t5 and bert are)",
        bitconv_gguf_shard_path(r->file, 0), len > 48 ? 48 : (int)len, name);
    return NULL;
}

static enum bitconv_status read_affixes(struct reading *r, const struct kind *kind,
                                        struct bitconv_error *err)
{
    struct bitconv_tokenizer *const tok = r->tok;
    tok->bos = id_of(r, "tokenizer.ggml.bos_token_id", kind->bos);
    tok->eos = id_of(r, "tokenizer.ggml.eos_token_id", kind->eos);
    tok->pad = id_of(r, "tokenizer.ggml.padding_token_id", -1);
    int64_t first = tok->bos;
    int64_t last = tok->eos;
    if (tok->model == BC_MODEL_WORDPIECE) { /* around BERT's text stand cls and sep */
        first = id_of(r, "tokenizer.ggml.cls_token_id", first);
        last = id_of(r, "tokenizer.ggml.seperator_token_id", last);
    }
    if (flag(r, "tokenizer.ggml.add_bos_token", kind->adds_bos))
        BC_TRY(bc_build_affix(tok, &tok->prefix, first, err));
    if (flag(r, "tokenizer.ggml.add_eos_token", kind->adds_eos))
        BC_TRY(bc_build_affix(tok, &tok->suffix, last, err));
    return BITCONV_OK;
}

static enum bitconv_status read_all(struct reading *r, struct bitconv_error *err)
{
    const struct kind *const kind = find_kind(r, err);
    if (kind == NULL) return err == NULL ? BITCONV_E_UNSUPPORTED : err->status;
    r->tok->model_name = kind->name;
    BC_TRY(load_tokens(r, err));
    BC_TRY(kind->read(r, err));
    BC_TRY(add_special_tokens(r, err));
    return read_affixes(r, kind, err);
}

enum bitconv_status bitconv_tokenizer_open_gguf(const struct bitconv_gguf *file,
                                                const struct bitconv_sink *sink,
                                                struct bitconv_tokenizer **out,
                                                struct bitconv_error *err)
{
    struct bitconv_error own = {0};
    struct reading r = {.file = file, .vocab = {.source = "tokenizer.ggml.tokens"}};
    (void)sink;
    if (err == NULL) err = &own;
    *out = NULL;
    BC_TRY(bc_build_new("GGUF metadata", "gpt2", &r.tok, err));
    const enum bitconv_status status = read_all(&r, err);
    bc_vocab_release(&r.vocab);
    if (status != BITCONV_OK) {
        bitconv_tokenizer_close(r.tok);
        return status;
    }
    *out = r.tok;
    return BITCONV_OK;
}
