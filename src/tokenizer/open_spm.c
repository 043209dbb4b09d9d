/* SPDX-License-Identifier: MIT
 * A tokenizer from tokenizer.model, as SentencePiece itself would use it; its control tokens and
 * those of the files beside it are recognised in a text, as transformers does. */
#include <string.h>

#include "tokenizer/build.h"
#include "tokenizer/steps_read.h"

/* Control, unknown and byte pieces are none that text is made of. */
static bool is_text(const struct bc_token *token)
{
    return token->base && (token->type == BC_TOKEN_NORMAL || token->type == BC_TOKEN_UNUSED ||
                           token->type == BC_TOKEN_USER_DEFINED);
}

static enum bitconv_status add_normalizer(struct bitconv_tokenizer *tok,
                                          const struct bc_vocab *vocab, struct bitconv_error *err)
{
    struct bc_step *const step = bc_steps_add(&tok->normalizer, bc_step_spm);
    if (step == NULL) return bc_fail_nomem(err, "tokenizer");
    step->spm = (struct bc_spm_rules){
        .dummy_prefix = vocab->space_prefix != 0,
        .remove_extra_spaces = vocab->remove_extra_whitespaces,
        .escape_spaces = vocab->escape_whitespaces,
        .space_is_suffix = vocab->whitespace_is_suffix,
    };
    step->verbatim = &tok->user_defined;
    return bc_charsmap_open(vocab->charsmap.data, vocab->charsmap.size, &step->map, err);
}

static enum bitconv_status add_special_tokens(struct bitconv_tokenizer *tok,
                                              const struct bc_vocab *vocab,
                                              struct bitconv_error *err)
{
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        const struct bc_token *const token = &vocab->tokens[i];
        const bool wanted = token->type == BC_TOKEN_CONTROL || token->type == BC_TOKEN_UNKNOWN ||
                            (token->added && !token->base);
        const struct bc_added added = {.text = token->text, .len = token->len, .id = token->id};
        if (wanted) BC_TRY(bc_build_added(tok, &added, false, err));
        if (token->type == BC_TOKEN_UNKNOWN) tok->unknown = token->id;
    }
    return BITCONV_OK;
}

static enum bitconv_status choose_model(struct bitconv_tokenizer *tok, const struct bc_vocab *vocab,
                                        struct bitconv_error *err)
{
    tok->fuse_unknown = true;
    for (size_t i = 0; i < 256; i++)
        if (tok->byte_ids[i] != BC_NO_ID) tok->byte_fallback = true;
    if (vocab->spm_algorithm == BC_SPM_UNIGRAM) {
        tok->model = BC_MODEL_UNIGRAM;
        tok->model_name = "t5";
        return bc_build_trie(tok, err);
    }
    if (vocab->spm_algorithm == BC_SPM_BPE) {
        tok->model = BC_MODEL_SCORED;
        return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "tokenizer.model: SentencePiece algorithm %llu (%s) is not supported; BPE and "
                   "unigram are",
                   (unsigned long long)vocab->spm_algorithm,
                   vocab->spm_algorithm == BC_SPM_WORD   ? "word"
                   : vocab->spm_algorithm == BC_SPM_CHAR ? "char"
                                                         : "unknown");
}

static enum bitconv_status build(struct bitconv_tokenizer *tok,
                                 const struct bc_tokenizer_files *files,
                                 const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                 struct bitconv_error *err)
{
    static const struct bc_affixes llama = {1, 0, 0}; /* LlamaTokenizer's own */
    const struct bc_tokenizer_rules *const rules =
        bc_tokenizer_rules(BC_TOKENIZER_LLAMA, BC_TARGET_BITNET);
    BC_TRY(bc_declare_added(files, rules, sink, vocab, err));
    BC_TRY(bc_build_pieces(tok, vocab, is_text, err));
    BC_TRY(bc_build_user_defined(tok, err));
    BC_TRY(choose_model(tok, vocab, err));
    BC_TRY(add_normalizer(tok, vocab, err));
    BC_TRY(add_special_tokens(tok, vocab, err));
    BC_TRY(bc_build_spm_decoder(tok, vocab->space_prefix != 0, err));
    return bc_build_specials(tok, files, vocab, false, llama, sink, err);
}

static enum bitconv_status open_data(const struct bc_buf *data,
                                     const struct bc_tokenizer_files *files,
                                     const struct bitconv_sink *sink,
                                     struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct bc_vocab vocab = {0};
    BC_TRY(bc_build_new("tokenizer.model", "llama", out, err));
    vocab.lowercase = vocab.strip_accents = -1;
    vocab.spm_bos = vocab.spm_eos = vocab.spm_unk = vocab.spm_pad = -1;
    enum bitconv_status status = bc_read_spm(data->data, data->size, &vocab, err);
    if (status == BITCONV_OK) status = build(*out, files, sink, &vocab, err);
    bc_vocab_release(&vocab);
    if (status != BITCONV_OK) {
        bitconv_tokenizer_close(*out);
        *out = NULL;
    }
    return status;
}

enum bitconv_status bc_tokenizer_of_spm(const struct bc_tokenizer_files *files,
                                        const struct bitconv_sink *sink,
                                        struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct bc_buf data = {0};
    bool found;
    *out = NULL;
    enum bitconv_status status =
        bc_tokenizer_text(files->dir, "tokenizer.model", &data, &found, err);
    if (status == BITCONV_OK && found) status = open_data(&data, files, sink, out, err);
    bc_buf_release(&data);
    return status;
}
