/* SPDX-License-Identifier: MIT
 * BPE vocabularies and merges: tokenizer.json of the Hugging Face tokenizers library, or vocab.json
 * with merges.txt. */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "model/tokenizer_load.h"

enum bitconv_status bc_load_vocab_object(const struct bc_json *object, const char *source,
                                         struct bc_vocab *vocab, struct bitconv_error *err)
{
    if (!bc_json_is(object, BC_JSON_OBJECT))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: the vocabulary is not an object of token: id",
                       source);
    for (const struct bc_json *node = bc_json_first(object); node != NULL;
         node = bc_json_next(node)) {
        const char *const text = bc_json_key(node);
        uint64_t id;
        if (!bc_json_u64(node, &id))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: token \"%.64s\": the id is not a number >= 0", source, text);
        struct bc_token *token;
        BC_TRY(bc_vocab_add(vocab, source, text, strlen(text), id, &token, err));
        token->base = true;
    }
    return BITCONV_OK;
}

bool bc_merge_of_text(const char *line, size_t len, struct bc_merge_text *out)
{
    const char *const blank = memchr(line, ' ', len);
    if (blank == NULL) return false;
    out->left = line;
    out->n_left = (size_t)(blank - line);
    out->right = blank + 1;
    out->n_right = len - out->n_left - 1;
    return out->n_left > 0 && out->n_right > 0 && memchr(out->right, ' ', out->n_right) == NULL;
}

bool bc_merge_of_json(const struct bc_json *node, struct bc_merge_text *out)
{
    const char *const line = bc_json_string(node);
    if (line != NULL) return bc_merge_of_text(line, strlen(line), out);
    const struct bc_json *const first = bc_json_first(node);
    const struct bc_json *const second = bc_json_next(first);
    out->left = bc_json_string(first);
    out->right = bc_json_string(second);
    if (!bc_json_is(node, BC_JSON_ARRAY) || out->left == NULL || out->right == NULL ||
        bc_json_next(second) != NULL)
        return false;
    out->n_left = strlen(out->left);
    out->n_right = strlen(out->right);
    return out->n_left > 0 && out->n_right > 0;
}

/* A blank inside a part is written as U+0120, the byte-level alphabet's blank, as mainline's
 * converter does: the blank between the parts stays the only one. */
static void append_part(struct bc_buf *buf, const char *part, size_t len)
{
    for (const char *blank; (blank = memchr(part, ' ', len)) != NULL;) {
        const size_t n = (size_t)(blank - part);
        bc_buf_append(buf, part, n);
        bc_buf_append(buf, "\xc4\xa0", 2);
        part += n + 1;
        len -= n + 1;
    }
    bc_buf_append(buf, part, len);
}

static size_t part_size(const char *part, size_t len)
{
    size_t n = len;
    for (const char *blank; (blank = memchr(part, ' ', len)) != NULL;) {
        n++;
        len -= (size_t)(blank - part) + 1;
        part = blank + 1;
    }
    return n;
}

/* Takes one merge in: its text for model gpt2, the rank of its product for model llama. */
struct merge_sink {
    struct bc_vocab *vocab;
    struct bc_buf product; /* scratch */
    uint64_t n_unknown;    /* products that are not in the vocabulary */
};

static void take_merge(struct merge_sink *sink, const struct bc_merge_text *merge)
{
    struct bc_vocab *const vocab = sink->vocab;
    const uint64_t rank = vocab->n_merges++;
    if (vocab->has_merges) {
        bc_buf_u64(&vocab->merges, part_size(merge->left, merge->n_left) + 1 +
                                       part_size(merge->right, merge->n_right));
        append_part(&vocab->merges, merge->left, merge->n_left);
        bc_buf_putc(&vocab->merges, ' ');
        append_part(&vocab->merges, merge->right, merge->n_right);
    }
    bc_buf_clear(&sink->product);
    bc_buf_append(&sink->product, merge->left, merge->n_left);
    bc_buf_append(&sink->product, merge->right, merge->n_right);
    struct bc_token *const token =
        bc_vocab_find(vocab, (const char *)sink->product.data, sink->product.size);
    if (token == NULL) {
        sink->n_unknown++;
    } else if (vocab->has_scores && !token->ranked) {
        token->ranked = true;
        token->score = rank == 0 ? 0.0 : -(double)rank; /* not -0.0 */
    }
}

static enum bitconv_status end_merges(struct merge_sink *merges, const struct bitconv_sink *sink,
                                      const char *source, struct bitconv_error *err)
{
    const bool failed = merges->product.failed || merges->vocab->merges.failed;
    bc_buf_release(&merges->product);
    if (failed) return bc_fail_nomem(err, "merges");
    if (merges->vocab->n_merges == 0)
        return bc_fail(
            err, BITCONV_E_CORRUPT,
            "%s: a BPE tokenizer without merges cannot split text; get the complete file", source);
    if (merges->n_unknown > 0)
        bc_say(sink, BITCONV_WARNING, "%s: %llu of %llu merges make a token that has no id", source,
               (unsigned long long)merges->n_unknown, (unsigned long long)merges->vocab->n_merges);
    return BITCONV_OK;
}

static enum bitconv_status load_json_merges(const struct bc_json *list, const char *source,
                                            const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                            struct bitconv_error *err)
{
    struct merge_sink merges = {.vocab = vocab};
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node)) {
        struct bc_merge_text merge;
        if (!bc_merge_of_json(node, &merge)) {
            bc_buf_release(&merges.product);
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: merge %llu is neither \"left right\" nor [\"left\", \"right\"]",
                           source, (unsigned long long)vocab->n_merges);
        }
        take_merge(&merges, &merge);
    }
    return end_merges(&merges, sink, source, err);
}

/* The next line of merges.txt that is a merge: empty lines and the "#version" line are passed over.
 */
static bool next_line(const char **pos, const char *end, const char **line, size_t *len)
{
    while (*pos < end) {
        const char *const newline = memchr(*pos, '\n', (size_t)(end - *pos));
        *line = *pos;
        *len = (size_t)((newline == NULL ? end : newline) - *pos);
        *pos = newline == NULL ? end : newline + 1;
        if (*len > 0 && (*line)[*len - 1] == '\r') --*len;
        if (*len > 0 && !(*len >= 8 && memcmp(*line, "#version", 8) == 0)) return true;
    }
    return false;
}

static enum bitconv_status load_text_merges(const struct bc_buf *text, const char *source,
                                            const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                            struct bitconv_error *err)
{
    struct merge_sink merges = {.vocab = vocab};
    const char *pos = bc_buf_str(text);
    const char *const end = pos + text->size;
    const char *line;
    size_t len;
    while (next_line(&pos, end, &line, &len)) {
        struct bc_merge_text merge;
        if (!bc_merge_of_text(line, len, &merge) || !bc_utf8_valid(line, len)) {
            bc_buf_release(&merges.product);
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: merge %llu is not \"left right\"", source,
                           (unsigned long long)vocab->n_merges);
        }
        take_merge(&merges, &merge);
    }
    return end_merges(&merges, sink, source, err);
}

void bc_compare_merges(const struct bc_vocab *vocab, const struct bc_buf *merges,
                       const struct bitconv_sink *sink)
{
    const char *pos = bc_buf_str(merges);
    const char *const end = pos + merges->size;
    const uint8_t *ours = vocab->merges.data;
    const uint8_t *const ours_end = ours + vocab->merges.size;
    const char *line;
    size_t len;
    uint64_t n = 0;
    while (next_line(&pos, end, &line, &len)) {
        const uint64_t ours_len = ours < ours_end ? bc_get_u64(ours) : 0;
        if (ours == ours_end || ours_len != len || memcmp(ours + 8, line, len) != 0) break;
        ours += 8 + len;
        n++;
        line = NULL;
    }
    if (line == NULL && ours == ours_end) return;
    bc_say(sink, BITCONV_WARNING,
           "merges.txt and tokenizer.json are not the same list: merge %llu differs; "
           "tokenizer.json is taken",
           (unsigned long long)n);
}

/* Byte pieces of SentencePiece: <0x00> to <0xFF>. */
static bool is_byte_piece(const struct bc_token *token)
{
    static const char digits[] = "0123456789ABCDEF";
    return token->len == 6 && memcmp(token->text, "<0x", 3) == 0 && token->text[5] == '>' &&
           strchr(digits, token->text[3]) != NULL && strchr(digits, token->text[4]) != NULL;
}

/* A subword prefix or suffix changes what a token's text means; no GGUF tokenizer model has them.
 */
static enum bitconv_status check_affixes(const struct bc_json *model, struct bitconv_error *err)
{
    static const char *const keys[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *const value = bc_json_string(bc_json_get(model, keys[i]));
        if (value != NULL && value[0] != '\0')
            return bc_fail(
                err, BITCONV_E_UNSUPPORTED,
                "tokenizer.json: model.%s is \"%.32s\": GGUF has no BPE tokenizer with it", keys[i],
                value);
    }
    return BITCONV_OK;
}

static enum bitconv_status check_type(const struct bc_json *model, struct bitconv_error *err)
{
    const char *const type = bc_json_string(bc_json_get(model, "type"));
    if (type == NULL || strcmp(type, "BPE") == 0) return BITCONV_OK;
    return bc_fail(
        err, BITCONV_E_UNSUPPORTED,
        "tokenizer.json: tokenizer type %.32s is not supported (BPE and WordPiece are%s)", type,
        strcmp(type, "Unigram") == 0
            ? "; GGUF readers know Unigram only for T5, whose architecture is not handled"
            : "");
}

/* True when a step of the pre-tokenizer maps text to the byte-level alphabet: byte_fallback then
 * has nothing left to do. */
static bool is_byte_level(const struct bc_json *pre)
{
    const char *type = bc_json_string(bc_json_get(pre, "type"));
    if (type != NULL && strcmp(type, "ByteLevel") == 0) return true;
    for (const struct bc_json *step = bc_json_first(bc_json_get(pre, "pretokenizers"));
         step != NULL; step = bc_json_next(step)) {
        type = bc_json_string(bc_json_get(step, "type"));
        if (type != NULL && strcmp(type, "ByteLevel") == 0) return true;
    }
    return false;
}

enum bitconv_status bc_load_bpe(const struct bc_tokenizer_files *files,
                                const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                struct bitconv_error *err)
{
    static const char source[] = "tokenizer.json";
    const struct bc_json *const model = bc_json_get(files->tokenizer, "model");
    bool byte_fallback = false;
    BC_TRY(check_type(model, err));
    BC_TRY(check_affixes(model, err));
    (void)bc_json_bool(bc_json_get(model, "byte_fallback"), &byte_fallback);
    if (is_byte_level(bc_json_get(files->tokenizer, "pre_tokenizer"))) byte_fallback = false;
    vocab->source = source;
    vocab->model = byte_fallback ? "llama" : "gpt2";
    vocab->has_scores = byte_fallback;
    vocab->has_merges = !byte_fallback;
    BC_TRY(bc_load_vocab_object(bc_json_get(model, "vocab"), source, vocab, err));
    BC_TRY(load_json_merges(bc_json_get(model, "merges"), source, sink, vocab, err));
    for (size_t i = 0; byte_fallback && i < vocab->n_tokens; i++)
        if (is_byte_piece(&vocab->tokens[i])) vocab->tokens[i].type = BC_TOKEN_BYTE;
    return BITCONV_OK;
}

enum bitconv_status bc_load_bpe_files(const struct bc_json *vocab_json, const struct bc_buf *merges,
                                      const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                      struct bitconv_error *err)
{
    vocab->source = "vocab.json";
    vocab->model = "gpt2";
    vocab->has_merges = true;
    BC_TRY(bc_load_vocab_object(vocab_json, "vocab.json", vocab, err));
    return load_text_merges(merges, "merges.txt", sink, vocab, err);
}
