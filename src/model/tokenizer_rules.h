/* SPDX-License-Identifier: MIT
 * What differs between families and targets in the token lists of a GGUF, as one table. */
#ifndef BC_MODEL_TOKENIZER_RULES_H
#define BC_MODEL_TOKENIZER_RULES_H

#include "model/model.h"

/* tokenizer.ggml.token_type (ggml docs/gguf.md). */
enum bc_token_type {
    BC_TOKEN_NORMAL = 1,
    BC_TOKEN_UNKNOWN = 2,
    BC_TOKEN_CONTROL = 3,
    BC_TOKEN_USER_DEFINED = 4,
    BC_TOKEN_UNUSED = 5,
    BC_TOKEN_BYTE = 6
};

/* Which added tokens count as control tokens although they are not declared special. */
enum bc_special_looks {
    BC_LOOKS_NONE,
    BC_LOOKS_BRACKETS, /* <...> and [...] */
    BC_LOOKS_MARKERS   /* <|...|>, <unused...>, <pad> and the like */
};

struct bc_tokenizer_rules {
    bool spm_first; /* tokenizer.model is preferred to tokenizer.json */
    enum bc_special_looks looks;
    enum bc_token_type gpt2_padding; /* type of missing ids in a byte-level vocabulary */
    bool counted_padding; /* SentencePiece: missing ids are [PAD1], [PAD2]...; else [PAD<id>] */
    float padding_score;
    bool redeclare_pieces; /* a declared token gets the type and score of added tokens even where
                            * tokenizer.model has it as a piece */
    bool unescape_spaces;  /* user-defined tokens: U+2581 becomes a space */
    bool no_space_prefix;  /* add_space_prefix is false whatever the files say */
    bool pooled_eos;       /* embedding models end with <|endoftext|> */
};

/* The rules of a family for a target (never AUTO). */
const struct bc_tokenizer_rules *bc_tokenizer_rules(enum bc_tokenizer_policy policy,
                                                    enum bc_target target);

/* CONTROL or USER_DEFINED for an added token. */
enum bc_token_type bc_added_token_type(const struct bc_tokenizer_rules *rules, const char *text,
                                       bool special);

#endif
