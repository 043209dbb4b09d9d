/* SPDX-License-Identifier: MIT
 * Steps from what names them: tokenizer.json, or the name of a pre-tokenizer. */
#ifndef BC_TOKENIZER_STEPS_READ_H
#define BC_TOKENIZER_STEPS_READ_H

#include "base/json.h"
#include "tokenizer/steps.h"

/* The normalizer, pre_tokenizer, decoder of a tokenizer.json; absent or null: no step. UNSUPPORTED
 * for a type that is not known. */
enum bitconv_status bc_steps_read_normalizer(const struct bc_json *node, struct bc_steps *out,
                                             struct bitconv_error *err);
enum bitconv_status bc_steps_read_pre(const struct bc_json *node, struct bc_steps *out,
                                      struct bitconv_error *err);
enum bitconv_status bc_steps_read_decoder(const struct bc_json *node, struct bc_steps *out,
                                          struct bitconv_error *err);

/* What tokenizer.ggml.pre NAME means, by the table of model/tokenizer_pre.h: the steps of its
 * signature, and whether whole pieces come before merges. UNSUPPORTED for an unknown name. */
enum bitconv_status bc_steps_of_name(const char *name, struct bc_steps *normalizer,
                                     struct bc_steps *pre, bool *ignore_merges,
                                     struct bitconv_error *err);
/* Do two names stand for the same splitting? */
bool bc_pre_same(const char *a, const char *b);
/* The same for a signature ("NFC | split-isolated/REGEX/ bytes"); `name` is for messages. */
enum bitconv_status bc_steps_of_signature(const char *signature, const char *name,
                                          struct bc_steps *normalizer, struct bc_steps *pre,
                                          struct bitconv_error *err);

/* Adds a step that cuts by an expression or by a kind of character. */
enum bitconv_status bc_steps_add_regex(struct bc_steps *steps, const char *regex, const char *where,
                                       enum bc_behavior behavior, bool invert,
                                       struct bitconv_error *err);
enum bitconv_status bc_steps_add_kind(struct bc_steps *steps, bool (*is)(uint32_t),
                                      enum bc_behavior behavior, struct bitconv_error *err);
/* Adds the ByteLevel step, with GPT-2's expression where `cuts`. */
enum bitconv_status bc_steps_add_bytes(struct bc_steps *steps, bool prefix, bool cuts,
                                       struct bitconv_error *err);
/* Adds a step that has a text, and one that replaces one text by another. */
enum bitconv_status bc_steps_add_text(struct bc_steps *steps, bc_step_fn *run, const char *text,
                                      struct bc_step **out, struct bitconv_error *err);
enum bitconv_status bc_steps_add_replace(struct bc_steps *steps, const char *from, const char *to,
                                         struct bitconv_error *err);
/* Adds BertNormalizer and BertPreTokenizer, and the WordPiece decoder. */
enum bitconv_status bc_steps_add_bert(struct bc_steps *normalizer, struct bc_steps *pre, bool lower,
                                      bool strip_accents, struct bitconv_error *err);
enum bitconv_status bc_steps_add_words_decoder(struct bc_steps *decoder, const char *mark,
                                               bool clean, struct bitconv_error *err);
bool bc_is_bert_punctuation(uint32_t cp); /* ASCII's symbols count as well */

#endif
