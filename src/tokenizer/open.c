/* SPDX-License-Identifier: MIT
 * Opening a tokenizer from whatever a path names, and what is known about it. */
#include <string.h>

#include "base/file.h"
#include "tokenizer/build.h"

/* The first of the known files that is there, as transformers prefers them. */
static enum bitconv_status open_any(const struct bc_tokenizer_files *files,
                                    const struct bitconv_sink *sink, struct bitconv_tokenizer **out,
                                    struct bitconv_error *err)
{
    if (files->tokenizer != NULL) return bc_tokenizer_of_json(files, sink, out, err);
    BC_TRY(bc_tokenizer_of_spm(files, sink, out, err));
    if (*out == NULL) BC_TRY(bc_tokenizer_of_pair(files, sink, out, err));
    if (*out == NULL) BC_TRY(bc_tokenizer_of_lines(files, sink, out, err));
    if (*out != NULL) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: no tokenizer: none of tokenizer.json, tokenizer.model, vocab.json with "
                   "merges.txt, vocab.txt is there",
                   files->dir);
}

static enum bitconv_status open_folder(const char *dir, const struct bitconv_sink *sink,
                                       struct bitconv_tokenizer **out, struct bitconv_error *err)
{
    struct bc_tokenizer_files files = {0};
    enum bitconv_status status = bc_tokenizer_files_open(dir, &files, err);
    if (status == BITCONV_OK) status = open_any(&files, sink, out, err);
    bc_tokenizer_files_close(&files);
    return status;
}

enum bitconv_status bitconv_tokenizer_open(const char *path, const struct bitconv_sink *sink,
                                           struct bitconv_tokenizer **out,
                                           struct bitconv_error *err)
{
    struct bitconv_gguf *file = NULL;
    *out = NULL;
    if (bc_path_kind(path) == BC_PATH_DIR) return open_folder(path, sink, out, err);
    BC_TRY(bitconv_gguf_open(path, &file, err));
    const enum bitconv_status status = bitconv_tokenizer_open_gguf(file, sink, out, err);
    bitconv_gguf_close(file);
    return status;
}

void bitconv_tokenizer_info(const struct bitconv_tokenizer *tok, struct bitconv_tokenizer_info *out)
{
    static const char *const algorithms[BC_N_TOKEN_MODELS] = {
        [BC_MODEL_BPE] = "BPE",
        [BC_MODEL_SCORED] = "SentencePiece BPE",
        [BC_MODEL_UNIGRAM] = "unigram",
        [BC_MODEL_WORDPIECE] = "WordPiece",
    };
    *out = (struct bitconv_tokenizer_info){
        .algorithm = algorithms[tok->model],
        .source = tok->source,
        .model = tok->model_name,
        .pre = tok->pre,
        .n_tokens = tok->n_pieces,
        .bos = tok->bos,
        .eos = tok->eos,
        .pad = tok->pad,
    };
}
