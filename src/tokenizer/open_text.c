/* SPDX-License-Identifier: MIT
 * Tokenizers whose rules are in the code of their class: vocab.json with merges.txt (GPT-2, Qwen 2),
 * and vocab.txt (BERT). */
#include <string.h>

#include "model/checkpoint.h"
#include "model/tokenizer_pre.h"
#include "tokenizer/build.h"
#include "tokenizer/steps_read.h"

static bool is_base(const struct bc_token *token)
{
    return token->base;
}

static enum bitconv_status declare(struct bitconv_tokenizer *tok,
                                   const struct bc_tokenizer_files *files,
                                   const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                   struct bitconv_error *err)
{
    const struct bc_tokenizer_rules *const rules =
        bc_tokenizer_rules(BC_TOKENIZER_LLAMA, BC_TARGET_BITNET);
    BC_TRY(bc_declare_added(files, rules, sink, vocab, err));
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        const struct bc_token *const token = &vocab->tokens[i];
        const struct bc_added added = {.text = token->text, .len = token->len, .id = token->id};
        if (token->added) BC_TRY(bc_build_added(tok, &added, false, err));
    }
    return bc_build_pieces(tok, vocab, is_base, err);
}

enum bitconv_status bc_build_merge_payload(struct bitconv_tokenizer *tok, const uint8_t *payload,
                                           uint64_t size, uint64_t count, struct bitconv_error *err)
{
    const struct bitconv_gguf_value list = {.type = BITCONV_GGUF_ARRAY,
                                            .elem = BITCONV_GGUF_STRING,
                                            .count = count,
                                            .data = payload,
                                            .size = size};
    uint64_t pos = 0;
    const char *line;
    size_t len;
    for (uint32_t rank = 0; bitconv_gguf_array_next_string(&list, &pos, &line, &len); rank++) {
        struct bc_merge_text merge;
        if (!bc_merge_of_text(line, len, &merge))
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: merge %u is not \"left right\"",
                           tok->source, rank);
        BC_TRY(bc_build_merge(tok, &merge, rank, err));
    }
    return BITCONV_OK;
}

/* ---- vocab.json and merges.txt ---- */

static enum bitconv_status build_pair(struct bitconv_tokenizer *tok,
                                      const struct bc_tokenizer_files *files,
                                      const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                      struct bitconv_error *err)
{
    static const struct bc_affixes nothing = {0, 0, 0};
    tok->model = BC_MODEL_BPE;
    tok->pre = bc_pre_of_class(files->config);
    if (tok->pre == NULL)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: vocab.json and merges.txt do not say how text is split and the "
                       "tokenizer_class is not a known one",
                       files->dir);
    BC_TRY(bc_steps_of_name(tok->pre, &tok->normalizer, &tok->pre_steps, &tok->ignore_merges, err));
    if (bc_steps_add(&tok->decoder, bc_step_unbytes) == NULL)
        return bc_fail_nomem(err, "tokenizer");
    BC_TRY(declare(tok, files, sink, vocab, err));
    BC_TRY(
        bc_build_merge_payload(tok, vocab->merges.data, vocab->merges.size, vocab->n_merges, err));
    return bc_build_specials(tok, files, vocab, false, nothing, sink, err);
}

static enum bitconv_status load_pair(const struct bc_tokenizer_files *files,
                                     const struct bc_json *vocab_json,
                                     const struct bitconv_sink *sink, struct bitconv_tokenizer *tok,
                                     struct bitconv_error *err)
{
    struct bc_buf merges = {0};
    struct bc_vocab vocab = {0};
    bool found;
    enum bitconv_status status = bc_tokenizer_text(files->dir, "merges.txt", &merges, &found, err);
    if (status == BITCONV_OK && !found)
        status = bc_fail(err, BITCONV_E_CORRUPT,
                         "%s: vocab.json without merges.txt (and no tokenizer.json)", files->dir);
    if (status == BITCONV_OK) status = bc_load_bpe_files(vocab_json, &merges, sink, &vocab, err);
    if (status == BITCONV_OK) status = build_pair(tok, files, sink, &vocab, err);
    bc_vocab_release(&vocab);
    bc_buf_release(&merges);
    return status;
}

enum bitconv_status bc_tokenizer_of_pair(const struct bc_tokenizer_files *files,
                                         const struct bitconv_sink *sink,
                                         struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct bc_json *vocab_json = NULL;
    *out = NULL;
    BC_TRY(bc_checkpoint_object(files->dir, "vocab.json", &vocab_json, err));
    if (vocab_json == NULL) return BITCONV_OK;
    enum bitconv_status status = bc_build_new("vocab.json", "gpt2", out, err);
    if (status == BITCONV_OK) status = load_pair(files, vocab_json, sink, *out, err);
    bc_json_free(vocab_json);
    if (status != BITCONV_OK) {
        bitconv_tokenizer_close(*out);
        *out = NULL;
    }
    return status;
}

/* ---- vocab.txt ---- */

static enum bitconv_status add_named(struct bitconv_tokenizer *tok, struct bc_id_list *list,
                                     const char *text, struct bitconv_error *err)
{
    const uint32_t id = bc_piece_id(tok, text, strlen(text));
    return id == BC_NO_ID ? BITCONV_OK : bc_id_list_add(list, id, err);
}

static enum bitconv_status build_lines(struct bitconv_tokenizer *tok,
                                       const struct bc_tokenizer_files *files,
                                       const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                       struct bitconv_error *err)
{
    static const struct bc_affixes both = {1, 1, 0};
    const bool lower = vocab->lowercase != 0;
    const bool accents = vocab->strip_accents < 0 ? lower : vocab->strip_accents != 0;
    tok->model = BC_MODEL_WORDPIECE;
    tok->max_chars = 100;
    BC_TRY(bc_steps_add_bert(&tok->normalizer, &tok->pre_steps, lower, accents, err));
    BC_TRY(bc_steps_add_words_decoder(&tok->decoder, "##", true, err));
    BC_TRY(declare(tok, files, sink, vocab, err));
    tok->unknown = bc_piece_id(tok, "[UNK]", strlen("[UNK]"));
    BC_TRY(bc_build_specials(tok, files, vocab, false, both, sink, err));
    /* BertTokenizer's names, where no file says others. */
    if (tok->bos < 0) BC_TRY(add_named(tok, &tok->prefix, "[CLS]", err));
    return tok->eos < 0 ? add_named(tok, &tok->suffix, "[SEP]", err) : BITCONV_OK;
}

enum bitconv_status bc_tokenizer_of_lines(const struct bc_tokenizer_files *files,
                                          const struct bitconv_sink *sink,
                                          struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    struct bc_vocab vocab = {0};
    bool found;
    *out = NULL;
    enum bitconv_status status = bc_tokenizer_text(files->dir, "vocab.txt", &text, &found, err);
    if (status == BITCONV_OK && found) {
        status = bc_build_new("vocab.txt", "bert", out, err);
        if (status == BITCONV_OK) status = bc_load_vocab_txt(files, &text, &vocab, err);
        if (status == BITCONV_OK) status = build_lines(*out, files, sink, &vocab, err);
    }
    bc_vocab_release(&vocab);
    bc_buf_release(&text);
    if (status != BITCONV_OK) {
        bitconv_tokenizer_close(*out);
        *out = NULL;
    }
    return status;
}
