/* SPDX-License-Identifier: MIT
 * Tokenizer files of a checkpoint -> the tokenizer.* keys of a GGUF. */
#ifndef BC_MODEL_TOKENIZER_H
#define BC_MODEL_TOKENIZER_H

#include "bitconv/gguf.h"
#include "model/model.h"

struct bc_tokenizer_files;

/* A second opinion on the splitting of a byte-level BPE from tokenizer.json: `begin` starts it beside
 * the rest of the work, once the files have been read (they stay until `end`); `end` says what came
 * of it, given the name that is written, or NULL when nothing is to be said. */
struct bc_tokenizer_check {
    void *(*begin)(const struct bc_tokenizer_files *files);
    void (*end)(void *state, const char *pre, const struct bitconv_sink *sink);
};

struct bc_tokenizer_options {
    const char *pre;                        /* --pre NAME, or NULL: recognised by structure */
    const char *chat_template;              /* --chat-template FILE's content, or NULL */
    bool trim_vocab;                        /* --trim-vocab */
    const struct bc_tokenizer_check *check; /* NULL: none */
};

/* Reads the tokenizer files of ckpt->dir (tokenizer.json, tokenizer_config.json,
 * special_tokens_map.json, added_tokens.json, vocab.json + merges.txt, vocab.txt, tokenizer.model,
 * chat_template.jinja; each may be gzip-compressed) and writes tokenizer.ggml.* and
 * tokenizer.chat_template* for the model's family and target, padded or trimmed to
 * model->hp.n_vocab rows. The JSON trees are freed before it returns. Contradictions, unknown
 * pre-tokenizers (regex shown), vocabularies that do not fit are refused; what is dropped or padded
 * is said through the sink. A folder without any tokenizer file is refused. */
enum bitconv_status bc_tokenizer_metadata(const struct bc_checkpoint *ckpt,
                                          const struct bc_model *model,
                                          const struct bc_tokenizer_options *options,
                                          const struct bitconv_sink *sink,
                                          struct bitconv_gguf_writer *w, struct bitconv_error *err);

#endif
