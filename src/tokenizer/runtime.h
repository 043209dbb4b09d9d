/* SPDX-License-Identifier: MIT
 * A tokenizer ready to use, as the files of src/tokenizer share it. */
#ifndef BC_TOKENIZER_RUNTIME_H
#define BC_TOKENIZER_RUNTIME_H

#include "base/map.h"
#include "bitconv/tokenize.h"
#include "model/tokenizer_rules.h"
#include "tokenizer/merges.h"
#include "tokenizer/steps.h"
#include "tokenizer/trie.h"

#define BC_NO_ID UINT32_MAX

enum bc_token_model {
    BC_MODEL_BPE,    /* merges in the order of a list */
    BC_MODEL_SCORED, /* SentencePiece's BPE: any two neighbours that make a piece, best score first */
    BC_MODEL_UNIGRAM,   /* the pieces whose scores have the greatest sum */
    BC_MODEL_WORDPIECE, /* the longest piece at every place */
    BC_N_TOKEN_MODELS
};

struct bc_piece {
    const char *text; /* NULL: no token has this id */
    uint32_t len;
    double score;
    uint8_t type; /* enum bc_token_type */
    bool special; /* left out when decoding without special tokens */
};

/* A token that is looked for in the text itself, before the model sees it. */
struct bc_added {
    const char *text;
    uint32_t len;
    uint32_t id;
    bool lstrip, rstrip; /* takes the white space before, behind it */
    bool single_word;    /* only between characters that are not of a word */
};

struct bc_id_list {
    uint32_t *ids;
    size_t n, cap;
};

struct bitconv_tokenizer {
    enum bc_token_model model;
    const char *source;     /* "tokenizer.json", "tokenizer.model", "metadata" ...; static */
    const char *pre;        /* name of the splitting, NULL when it has none; in the arena */
    const char *model_name; /* tokenizer.ggml.model's word: gpt2, llama, t5, bert; static */
    struct bc_arena arena;
    struct bc_piece *pieces; /* by id */
    uint32_t n_pieces;
    struct bc_map by_text; /* pieces that the model may produce -> id */
    size_t longest;        /* bytes of the longest text of by_text */

    struct bc_added *added;
    size_t n_added, cap_added;
    struct bc_trie raw_added;        /* found in the raw text -> index in added */
    struct bc_trie normalized_added; /* found behind the normalizer */
    struct bc_steps normalizer, pre_steps, decoder;
    bool joins_with_blanks; /* no decoder: tokens are words */

    uint32_t unknown; /* id, or BC_NO_ID: what is unknown is dropped */
    bool fuse_unknown;
    bool byte_fallback;
    uint32_t byte_ids[256]; /* of <0xHH>; BC_NO_ID */
    bool ignore_merges;     /* a piece that is in the vocabulary is not taken apart */
    struct bc_merges merges;
    struct bc_trie trie;         /* UNIGRAM: all pieces */
    struct bc_trie user_defined; /* of SentencePiece: not normalized, not taken apart */
    bool exact_sums; /* UNIGRAM: double, as the tokenizers library; else float, as SentencePiece */
    double unknown_score;
    double user_defined_score; /* per byte, less 0.1; SentencePiece's bonus */
    bool has_unused;           /* pieces that are taken apart again */
    uint32_t max_chars;        /* WORDPIECE: longer words are unknown */

    struct bc_id_list prefix, suffix; /* around every text */
    int64_t bos, eos, pad;            /* -1: none */
};

/* What one call of encode needs beside the tokenizer. */
struct bc_work {
    struct bc_pieces pieces, spare, parts;
    struct bc_symbols symbols;
    struct bc_path_node *path; /* UNIGRAM */
    size_t cap_path;
    struct bc_buf word; /* WORDPIECE */
    struct bitconv_ids *ids;
};

/* Appends an id. */
enum bitconv_status bc_put_id(struct bitconv_ids *ids, uint32_t id, struct bitconv_error *err);

/* The models: append the ids of one piece of normalized, pre-tokenized text. */
enum bitconv_status bc_encode_bpe(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                                  struct bc_work *work, struct bitconv_error *err);
enum bitconv_status bc_encode_scored(const struct bitconv_tokenizer *tok, const char *s, size_t len,
                                     struct bc_work *work, struct bitconv_error *err);
enum bitconv_status bc_encode_unigram(const struct bitconv_tokenizer *tok, const char *s,
                                      size_t len, struct bc_work *work, struct bitconv_error *err);
enum bitconv_status bc_encode_wordpiece(const struct bitconv_tokenizer *tok, const char *s,
                                        size_t len, struct bc_work *work,
                                        struct bitconv_error *err);

/* The id of a piece that the model may produce, BC_NO_ID when there is none. */
uint32_t bc_piece_id(const struct bitconv_tokenizer *tok, const char *s, size_t len);
/* Appends the byte tokens of an unknown character; false when byte fallback is off or a byte has
 * none (nothing is appended then). */
bool bc_has_byte_ids(const struct bitconv_tokenizer *tok, const char *s, size_t len);

/* Cuts s at added tokens (`trie` says which): calls `each` for every stretch of text and every
 * token (then token != NULL) in order. The rules of lstrip, rstrip and single_word are those of the
 * tokenizers library's AddedVocabulary. */
typedef enum bitconv_status bc_stretch_fn(void *ctx, const char *s, size_t len, size_t offset,
                                          const struct bc_added *token, struct bitconv_error *err);
enum bitconv_status bc_split_added(const struct bitconv_tokenizer *tok, const struct bc_trie *trie,
                                   const char *s, size_t len, bc_stretch_fn *each, void *ctx,
                                   struct bitconv_error *err);

#endif
