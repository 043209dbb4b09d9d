/* SPDX-License-Identifier: MIT
 * Recognising how a tokenizer splits text from its structure, and naming it as GGUF readers do. */
#ifndef BC_MODEL_TOKENIZER_PRE_H
#define BC_MODEL_TOKENIZER_PRE_H

#include "base/json.h"
#include "model/tokenizer_vocab.h"

/* A byte-level splitting that readers know by name. `signature` is the canonical form of normalizer
 * and pre_tokenizer that bc_pre_signature writes. Where `ignore_merges` is not -1,
 * model.ignore_merges (absent: false) must be equal. The first row that fits decides. */
struct bc_pre_row {
    const char *name;
    int ignore_merges;
    const char *signature;
};
extern const struct bc_pre_row bc_pre_rows[];
extern const size_t bc_pre_n_rows;

/* "NORMALIZER | PRE_TOKENIZER" of a tokenizer.json in one line: sequences flattened, parameters
 * that do not change the result left out. For example "NFC | split-isolated/REGEX/ bytes". */
void bc_pre_signature(const struct bc_json *tokenizer, struct bc_buf *out);

/* Sets vocab->pre (and space_prefix where it is -1) for a vocabulary from tokenizer.json of model
 * "gpt2" or "llama". `name` (--pre, or NULL) overrides the look-up. An unknown structure is refused
 * with the signature shown. */
enum bitconv_status bc_pre_recognise(const struct bc_json *tokenizer, const char *name,
                                     const struct bitconv_sink *sink, struct bc_vocab *vocab,
                                     struct bitconv_error *err);

/* The name of a tokenizer.json's splitting for tokenizer.ggml.model `model` ("gpt2", "llama"), NULL
 * when its structure is not a known one. */
const char *bc_pre_name(const struct bc_json *tokenizer, const char *model);

/* The name for a tokenizer without tokenizer.json, whose splitting is in its class's code: by the
 * tokenizer_class of tokenizer_config.json; NULL when it is none of the known ones. */
const char *bc_pre_of_class(const struct bc_json *config);

#endif
