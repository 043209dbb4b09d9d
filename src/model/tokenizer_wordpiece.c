/* SPDX-License-Identifier: MIT
 * WordPiece vocabularies (BERT): tokenizer.json or vocab.txt. */
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "model/tokenizer_load.h"

/* U+2581: llama.cpp marks the start of a word where BERT marks its continuation. */
#define WORD_START "\xe2\x96\x81"

/* 1 or 0 for a JSON boolean, -1 for anything else. */
static int tristate(const struct bc_json *node)
{
    bool value;
    return bc_json_bool(node, &value) ? value : -1;
}

/* Lowercasing and accents, from a BertNormalizer or single normalizers, alone or in a Sequence. */
static void read_normalizer(const struct bc_json *node, struct bc_vocab *vocab)
{
    const char *const type = bc_json_string(bc_json_get(node, "type"));
    if (type == NULL) return;
    if (strcmp(type, "Lowercase") == 0) vocab->lowercase = 1;
    if (strcmp(type, "StripAccents") == 0) vocab->strip_accents = 1;
    if (strcmp(type, "BertNormalizer") == 0) {
        vocab->lowercase = tristate(bc_json_get(node, "lowercase"));
        vocab->strip_accents = tristate(bc_json_get(node, "strip_accents"));
    }
    if (strcmp(type, "Sequence") != 0) return;
    for (const struct bc_json *part = bc_json_first(bc_json_get(node, "normalizers")); part != NULL;
         part = bc_json_next(part)) {
        const char *const inner = bc_json_string(bc_json_get(part, "type"));
        if (inner != NULL && strcmp(inner, "Sequence") != 0) read_normalizer(part, vocab);
    }
}

enum bitconv_status bc_load_wordpiece(const struct bc_tokenizer_files *files,
                                      struct bc_vocab *vocab, struct bitconv_error *err)
{
    const struct bc_json *const model = bc_json_get(files->tokenizer, "model");
    const char *const prefix = bc_json_string(bc_json_get(model, "continuing_subword_prefix"));
    if (prefix != NULL && strcmp(prefix, "##") != 0)
        return bc_fail(
            err, BITCONV_E_UNSUPPORTED,
            "tokenizer.json: WordPiece with continuing_subword_prefix \"%.32s\" instead of "
            "\"##\": GGUF readers know no other",
            prefix);
    vocab->source = "tokenizer.json";
    vocab->model = "bert";
    read_normalizer(bc_json_get(files->tokenizer, "normalizer"), vocab);
    return bc_load_vocab_object(bc_json_get(model, "vocab"), vocab->source, vocab, err);
}

/* A vocab.txt says nothing of how words are found: that is in the code of the tokenizer's class, and
 * readers know BertTokenizer's way only. */
static enum bitconv_status check_class(const struct bc_json *config, struct bitconv_error *err)
{
    static const char *const classes[] = {"BertTokenizer", "DistilBertTokenizer",
                                          "ElectraTokenizer", "MobileBertTokenizer"};
    const char *const name = bc_json_string(bc_json_get(config, "tokenizer_class"));
    if (name == NULL) return BITCONV_OK;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        const size_t len = strlen(classes[i]);
        if (strncmp(name, classes[i], len) != 0) continue;
        if (name[len] == '\0' || strcmp(name + len, "Fast") == 0) return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "tokenizer_config.json: tokenizer_class \"%.64s\" with a vocab.txt: only "
                   "BertTokenizer and its like split text as GGUF readers do; a tokenizer.json "
                   "would say how this one does",
                   name);
}

enum bitconv_status bc_load_vocab_txt(const struct bc_tokenizer_files *files,
                                      const struct bc_buf *text, struct bc_vocab *vocab,
                                      struct bitconv_error *err)
{
    const char *pos = bc_buf_str(text);
    const char *const end = pos + text->size;
    BC_TRY(check_class(files->config, err));
    vocab->source = "vocab.txt";
    vocab->model = "bert";
    /* BertTokenizer's defaults: lower case unless told otherwise, accents follow it. */
    vocab->lowercase = tristate(bc_json_get(files->config, "do_lower_case"));
    if (vocab->lowercase < 0) vocab->lowercase = 1;
    vocab->strip_accents = tristate(bc_json_get(files->config, "strip_accents"));
    while (pos < end) {
        const char *const newline = memchr(pos, '\n', (size_t)(end - pos));
        size_t len = (size_t)((newline == NULL ? end : newline) - pos);
        const char *const line = pos;
        pos += newline == NULL ? len : len + 1;
        if (len > 0 && line[len - 1] == '\r') len--;
        if (len == 0 || !bc_utf8_valid(line, len) || memchr(line, '\0', len) != NULL)
            return bc_fail(err, BITCONV_E_CORRUPT, "vocab.txt: line %zu is not a token",
                           vocab->n_tokens + 1);
        const char *const copy = bc_arena_strndup(&vocab->arena, line, len);
        if (copy == NULL) return bc_fail_nomem(err, "vocabulary");
        struct bc_token *token;
        BC_TRY(bc_vocab_add(vocab, "vocab.txt", copy, len, vocab->n_tokens, &token, err));
        token->base = true;
    }
    return BITCONV_OK;
}

enum bitconv_status bc_wordpiece_rewrite(struct bc_vocab *vocab, struct bitconv_error *err)
{
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        struct bc_token *const token = &vocab->tokens[i];
        if (token->type == BC_TOKEN_CONTROL) continue;
        if (token->len > 2 && memcmp(token->text, "##", 2) == 0) {
            token->text += 2;
            token->len -= 2;
            continue;
        }
        const char *const text =
            bc_arena_printf(&vocab->arena, WORD_START "%.*s", (int)token->len, token->text);
        if (text == NULL) return bc_fail_nomem(err, "vocabulary");
        token->text = text;
        token->len += (uint32_t)strlen(WORD_START);
    }
    return BITCONV_OK;
}
