/* SPDX-License-Identifier: MIT
 * Opening the files beside a tokenizer, and the tokens that they add to a vocabulary. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "model/checkpoint.h"
#include "model/tokenizer_load.h"

/* Score of added tokens in a vocabulary with scores: never the result of a merge. */
#define ADDED_SCORE -1000.0F

enum bitconv_status bc_tokenizer_files_open(const char *dir, struct bc_tokenizer_files *files,
                                            struct bitconv_error *err)
{
    *files = (struct bc_tokenizer_files){.dir = dir};
    BC_TRY(bc_checkpoint_object(dir, "tokenizer.json", &files->tokenizer, err));
    BC_TRY(bc_checkpoint_object(dir, "tokenizer_config.json", &files->config, err));
    BC_TRY(bc_checkpoint_object(dir, "special_tokens_map.json", &files->special_map, err));
    return bc_checkpoint_object(dir, "added_tokens.json", &files->added, err);
}

void bc_tokenizer_files_close(struct bc_tokenizer_files *files)
{
    bc_json_free(files->tokenizer);
    bc_json_free(files->config);
    bc_json_free(files->special_map);
    bc_json_free(files->added);
    *files = (struct bc_tokenizer_files){0};
}

/* A path that is there and is a file, or NULL. */
static char *existing(const char *dir, const char *name)
{
    char *const path = bc_path_join(dir, name);
    if (path != NULL && bc_path_kind(path) == BC_PATH_FILE) return path;
    bc_free(path);
    return NULL;
}

enum bitconv_status bc_tokenizer_text(const char *dir, const char *name, struct bc_buf *text,
                                      bool *found, struct bitconv_error *err)
{
    char compressed[64];
    snprintf(compressed, sizeof compressed, "%s.gz", name);
    char *path = existing(dir, name);
    if (path == NULL) path = existing(dir, compressed);
    *found = path != NULL;
    if (path == NULL) return BITCONV_OK;
    enum bitconv_status status = bc_text_load(path, text, err);
    char what[160];
    const uint8_t *const bytes = (const uint8_t *)bc_buf_str(text);
    const char *guess = NULL;
    if (status == BITCONV_OK) guess = bc_file_guess(bytes, text->size, what, sizeof what);
    /* Templates start with braces and BERT's vocabularies with "[PAD]": that is no JSON. */
    if (guess != NULL && bytes[0] != '{' && bytes[0] != '[')
        status = bc_fail(err, BITCONV_E_CORRUPT, "%s: a tokenizer file was expected, but it is %s",
                         path, guess);
    bc_free(path);
    return status;
}

const char *bc_tokenizer_named_token(const struct bc_json *object, const char *key)
{
    const struct bc_json *const node = bc_json_get(object, key);
    const char *const text = bc_json_string(node);
    return text != NULL ? text : bc_json_string(bc_json_get(node, "content"));
}

/* What one file says about one token. */
struct declaration {
    const char *source;
    const char *text;
    uint64_t id;
    bool special;
    bool may_rename; /* its text wins over a piece of tokenizer.model */
};

struct declaring {
    const struct bc_tokenizer_rules *rules;
    const struct bitconv_sink *sink;
    struct bc_vocab *vocab;
    bool spm;
};

static void mark_added(const struct declaring *d, struct bc_token *token, bool special)
{
    token->added = true;
    token->special = special;
    token->type = bc_added_token_type(d->rules, token->text, special);
    token->score = (double)ADDED_SCORE;
}

/* The id is taken by another text: a contradiction, or a renamed piece. */
static enum bitconv_status rename_piece(const struct declaring *d, const struct declaration *decl,
                                        struct bc_token *token, struct bitconv_error *err)
{
    struct bc_vocab *const vocab = d->vocab;
    if (!decl->may_rename || !d->spm)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: id %" PRIu64 " is \"%.64s\" there, but \"%.64s\" in %s; correct the "
                       "tokenizer files",
                       decl->source, decl->id, decl->text, token->text, vocab->source);
    bc_say(d->sink, BITCONV_WARNING, "%s: id %" PRIu64 " is \"%.64s\" instead of \"%.64s\" of %s",
           decl->source, decl->id, decl->text, token->text, vocab->source);
    const size_t at = (size_t)(token - vocab->tokens);
    const size_t len = strlen(decl->text);
    uint64_t old = at;
    if (bc_map_put(&vocab->by_text, decl->text, len, at, &old) == BC_MAP_NOMEM)
        return bc_fail_nomem(err, "vocabulary");
    if (old != at)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: token \"%.64s\" has two ids, %" PRIu32 " and %" PRIu64, decl->source,
                       decl->text, vocab->tokens[old].id, decl->id);
    token->text = decl->text;
    token->len = (uint32_t)len;
    mark_added(d, token, decl->special);
    return BITCONV_OK;
}

/* `vocab` is sealed, but for what this pass has added itself. */
static enum bitconv_status declare(const struct declaring *d, const struct declaration *decl,
                                   struct bitconv_error *err)
{
    struct bc_vocab *const vocab = d->vocab;
    const size_t len = strlen(decl->text);
    struct bc_token *token =
        decl->id <= BC_VOCAB_MAX_ID ? bc_vocab_at(vocab, (uint32_t)decl->id) : NULL;
    if (token != NULL && (token->len != len || memcmp(token->text, decl->text, len) != 0))
        return rename_piece(d, decl, token, err);
    const size_t n_before = vocab->n_tokens;
    BC_TRY(bc_vocab_add(vocab, decl->source, decl->text, len, decl->id, &token, err));
    const bool is_new = vocab->n_tokens > n_before;
    if (is_new || (!token->added && (!d->spm || d->rules->redeclare_pieces)))
        mark_added(d, token, decl->special);
    return BITCONV_OK;
}

/* added_tokens of tokenizer.json: [{"id", "content", "special", ...}, ...]. */
static enum bitconv_status declare_list(const struct declaring *d, const struct bc_json *list,
                                        struct bitconv_error *err)
{
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node)) {
        struct declaration decl = {.source = "tokenizer.json",
                                   .text = bc_json_string(bc_json_get(node, "content")),
                                   .may_rename = true};
        if (decl.text == NULL || !bc_json_u64(bc_json_get(node, "id"), &decl.id))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "tokenizer.json: an entry of added_tokens lacks its content or its id");
        (void)bc_json_bool(bc_json_get(node, "special"), &decl.special);
        BC_TRY(declare(d, &decl, err));
    }
    return BITCONV_OK;
}

/* Decimal digits only, at most nine of them: beyond that no id is valid. */
static bool parse_id(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 10; n++)
        value = value * 10 + (uint64_t)(text[n] - '0');
    *out = value;
    return n > 0 && n < 10 && text[n] == '\0';
}

/* added_tokens_decoder of tokenizer_config.json: {"id": {"content", "special", ...}, ...}. */
static enum bitconv_status declare_decoder(const struct declaring *d, const struct bc_json *object,
                                           struct bitconv_error *err)
{
    for (const struct bc_json *node = bc_json_first(object); node != NULL;
         node = bc_json_next(node)) {
        struct declaration decl = {.source = "tokenizer_config.json",
                                   .text = bc_json_string(bc_json_get(node, "content")),
                                   .may_rename = true};
        if (decl.text == NULL || !parse_id(bc_json_key(node), &decl.id))
            return bc_fail(
                err, BITCONV_E_CORRUPT,
                "tokenizer_config.json: added_tokens_decoder: entry \"%.32s\" is not an id "
                "with a token",
                bc_json_key(node));
        (void)bc_json_bool(bc_json_get(node, "special"), &decl.special);
        BC_TRY(declare(d, &decl, err));
    }
    return BITCONV_OK;
}

/* added_tokens.json: {"token": id, ...}. */
static enum bitconv_status declare_object(const struct declaring *d, const struct bc_json *object,
                                          struct bitconv_error *err)
{
    for (const struct bc_json *node = bc_json_first(object); node != NULL;
         node = bc_json_next(node)) {
        struct declaration decl = {.source = "added_tokens.json", .text = bc_json_key(node)};
        if (!bc_json_u64(node, &decl.id))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "added_tokens.json: token \"%.64s\": the id is not a number >= 0",
                           decl.text);
        BC_TRY(declare(d, &decl, err));
    }
    return BITCONV_OK;
}

/* Tokens that tokenizer_config.json names as bos, eos and so on are special even where no list says
 * so (GPT-2's vocab.json, BERT's vocab.txt). */
static void mark_named(const struct declaring *d, const struct bc_json *object)
{
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *const text = bc_tokenizer_named_token(object, keys[i]);
        struct bc_token *const token =
            text == NULL ? NULL : bc_vocab_find(d->vocab, text, strlen(text));
        if (token != NULL && !token->added) mark_added(d, token, true);
    }
}

/* What BertTokenizer takes for special when no file names anything. */
static void mark_bert_defaults(const struct declaring *d)
{
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bc_token *const token = bc_vocab_find(d->vocab, names[i], strlen(names[i]));
        if (token != NULL && !token->added) mark_added(d, token, true);
    }
}

enum bitconv_status bc_declare_added(const struct bc_tokenizer_files *files,
                                     const struct bc_tokenizer_rules *rules,
                                     const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                     struct bitconv_error *err)
{
    const struct declaring d = {rules, sink, vocab, strcmp(vocab->source, "tokenizer.model") == 0};
    const struct bc_json *const list = bc_json_get(files->tokenizer, "added_tokens");
    const struct bc_json *const decoder = bc_json_get(files->config, "added_tokens_decoder");
    BC_TRY(bc_vocab_seal(vocab, err));
    if (!d.spm) BC_TRY(declare_list(&d, list, err));
    BC_TRY(bc_vocab_seal(vocab, err));
    BC_TRY(declare_object(&d, files->added, err));
    BC_TRY(bc_vocab_seal(vocab, err));
    BC_TRY(declare_decoder(&d, decoder, err));
    BC_TRY(bc_vocab_seal(vocab, err));
    if (d.spm) {
        BC_TRY(declare_list(&d, list, err));
    } else {
        mark_named(&d, files->config);
        mark_named(&d, files->special_map);
    }
    if (files->tokenizer == NULL && vocab->model[0] == 'b') mark_bert_defaults(&d);
    return bc_vocab_seal(vocab, err);
}
