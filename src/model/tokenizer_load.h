/* SPDX-License-Identifier: MIT
 * Readers of the tokenizer files: each fills a bc_vocab. Internal to model/tokenizer*.c. */
#ifndef BC_MODEL_TOKENIZER_LOAD_H
#define BC_MODEL_TOKENIZER_LOAD_H

#include "base/json.h"
#include "model/tokenizer_vocab.h"

/* The small JSON files beside a tokenizer, and tokenizer.json itself. Absent files are NULL. */
struct bc_tokenizer_files {
    const char *dir;
    struct bc_json *tokenizer;   /* tokenizer.json */
    struct bc_json *config;      /* tokenizer_config.json */
    struct bc_json *special_map; /* special_tokens_map.json */
    struct bc_json *added;       /* added_tokens.json */
};

/* Reads those of the folder's tokenizer files that are there (the others NULL), `dir` borrowed. Close
 * in any case. */
enum bitconv_status bc_tokenizer_files_open(const char *dir, struct bc_tokenizer_files *files,
                                            struct bitconv_error *err);
void bc_tokenizer_files_close(struct bc_tokenizer_files *files);

/* Content of DIR/NAME or DIR/NAME.gz, inflated where compressed; *found false and BITCONV_OK when
 * there is neither. Git LFS pointers, HTML pages and empty files are refused by what they are. */
enum bitconv_status bc_tokenizer_text(const char *dir, const char *name, struct bc_buf *text,
                                      bool *found, struct bitconv_error *err);

/* The content of "bos_token" and the like in tokenizer_config.json or special_tokens_map.json: a
 * string, or an object with "content". NULL when absent or null. */
const char *bc_tokenizer_named_token(const struct bc_json *object, const char *key);

/* model.type BPE of tokenizer.json. byte_fallback without a byte-level pre-tokenizer gives model
 * "llama" with scores of minus the rank of the first merge that makes a token; else model "gpt2"
 * with merges. Unsupported: WordLevel, Unigram, subword prefixes or suffixes. No merges: CORRUPT.
 */
enum bitconv_status bc_load_bpe(const struct bc_tokenizer_files *files,
                                const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                struct bitconv_error *err);
/* Model "gpt2" from vocab.json and merges.txt alone. `vocab_json` must outlive the vocabulary. */
enum bitconv_status bc_load_bpe_files(const struct bc_json *vocab_json, const struct bc_buf *merges,
                                      const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                      struct bitconv_error *err);
/* The two parts of a merge, borrowed. */
struct bc_merge_text {
    const char *left, *right;
    size_t n_left, n_right;
};
/* "a b": exactly one blank, with something on both sides of it; else false. */
bool bc_merge_of_text(const char *line, size_t len, struct bc_merge_text *out);
/* Both JSON forms: "a b", and ["a", "b"] (tokenizers 0.20 and later), whose parts may hold blanks.
 */
bool bc_merge_of_json(const struct bc_json *node, struct bc_merge_text *out);

/* Warns where merges.txt and the merges of tokenizer.json (already loaded) are not the same list.
 */
void bc_compare_merges(const struct bc_vocab *vocab, const struct bc_buf *merges,
                       const struct bitconv_sink *sink);

/* tokenizer.model: a SentencePiece ModelProto (google/sentencepiece, sentencepiece_model.proto) of
 * any algorithm (vocab->spm). Texts are copied. CORRUPT with a byte offset when the encoding breaks
 * its rules. */
enum bitconv_status bc_read_spm(const uint8_t *data, size_t size, struct bc_vocab *vocab,
                                struct bitconv_error *err);
/* The same, but UNSUPPORTED when it is not BPE: for what a GGUF can hold. */
enum bitconv_status bc_load_spm(const uint8_t *data, size_t size, struct bc_vocab *vocab,
                                struct bitconv_error *err);

/* WordPiece from tokenizer.json. */
enum bitconv_status bc_load_wordpiece(const struct bc_tokenizer_files *files,
                                      struct bc_vocab *vocab, struct bitconv_error *err);
/* WordPiece from vocab.txt: one token a line, the line number is the id. UNSUPPORTED when
 * tokenizer_config.json names a class that finds words otherwise than BertTokenizer. */
enum bitconv_status bc_load_vocab_txt(const struct bc_tokenizer_files *files,
                                      const struct bc_buf *text, struct bc_vocab *vocab,
                                      struct bitconv_error *err);
/* The form llama.cpp wants after types are known: "##x" -> "x", other "x" -> U+2581 "x", control
 * tokens as they are (its converter, BertModel.set_vocab). */
enum bitconv_status bc_wordpiece_rewrite(struct bc_vocab *vocab, struct bitconv_error *err);

/* Entries of model.vocab (text -> id) of tokenizer.json or vocab.json. */
enum bitconv_status bc_load_vocab_object(const struct bc_json *object, const char *source,
                                         struct bc_vocab *vocab, struct bitconv_error *err);

/* Brings in the tokens declared by added_tokens of tokenizer.json, added_tokens_decoder of
 * tokenizer_config.json and added_tokens.json; types and scores as the rules say. Declarations that
 * contradict each other or the vocabulary are refused (a renamed piece of tokenizer.model that
 * tokenizer_config.json declares: a warning, its text wins, where pieces are redeclared). */
enum bitconv_status bc_declare_added(const struct bc_tokenizer_files *files,
                                     const struct bc_tokenizer_rules *rules,
                                     const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                     struct bitconv_error *err);

#endif
