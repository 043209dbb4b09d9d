/* SPDX-License-Identifier: MIT
 * The common middle form of every kind of tokenizer: a list of tokens with text, id, score and
 * type. */
#ifndef BC_MODEL_TOKENIZER_VOCAB_H
#define BC_MODEL_TOKENIZER_VOCAB_H

#include "base/map.h"
#include "base/mem.h"
#include "bitconv/gguf.h"
#include "model/tokenizer_rules.h"

/* Ids beyond this are refused: no published vocabulary comes near it. */
#define BC_VOCAB_MAX_ID 0xffffffu

struct bc_token {
    const char *text; /* UTF-8, NUL-terminated; lives as long as the vocabulary or its files */
    uint32_t len;
    uint32_t id;
    double score; /* float32 in files but tokenizer.json */
    enum bc_token_type type;
    bool base;    /* part of the model's own vocabulary (pieces of tokenizer.model, model.vocab) */
    bool added;   /* listed among the added tokens; may be base as well (Gemma) */
    bool special; /* declared special by the file that lists it */
    bool
        user_defined; /* a user-defined piece of tokenizer.model, whose type is written as normal */
    bool ranked;      /* a merge makes it: score is minus the rank of the first that does */
};

/* trainer_spec.model_type of a tokenizer.model. */
enum bc_spm_algorithm { BC_SPM_UNIGRAM = 1, BC_SPM_BPE = 2, BC_SPM_WORD = 3, BC_SPM_CHAR = 4 };

/* Zero-initialise; bc_vocab_release at the end. */
struct bc_vocab {
    const char *model;       /* tokenizer.ggml.model: "gpt2", "llama" or "bert" */
    const char *source;      /* file the tokens come from, for messages */
    const char *pre;         /* tokenizer.ggml.pre */
    struct bc_token *tokens; /* order of the file */
    size_t n_tokens, cap_tokens;
    uint32_t *order; /* positions in tokens, ascending by id: those that bc_vocab_seal has seen */
    size_t n_sealed;
    struct bc_map by_text; /* text -> position in tokens */
    bool has_scores;       /* tokenizer.ggml.scores is written */
    bool has_merges;       /* tokenizer.ggml.merges is written */
    struct bc_buf merges;  /* GGUF array payload of "left right" strings */
    uint64_t n_merges;
    int space_prefix;              /* add_space_prefix: 1, 0, or -1 when nothing says */
    int lowercase, strip_accents;  /* WordPiece normalizer: 1, 0, or -1 when nothing says */
    bool remove_extra_whitespaces; /* normalizer of a tokenizer.model */
    struct bc_buf charsmap;        /* its precompiled_charsmap, empty when it has none */
    uint64_t spm_algorithm;        /* enum bc_spm_algorithm, as the file has it */
    bool escape_whitespaces;       /* its normalizer: " " becomes U+2581 */
    bool whitespace_is_suffix;     /* its trainer: the dummy prefix stands behind */
    int64_t spm_bos, spm_eos, spm_unk, spm_pad; /* of its trainer_spec; -1: none */
    struct bc_arena arena;                      /* texts that no file holds as they are needed */
};

void bc_vocab_release(struct bc_vocab *vocab);

/* Adds a token, or finds the one of the same text and id. `text` is borrowed. *out (may be NULL)
 * stays valid until the next addition. CORRUPT when the text is known under another id, LIMIT when
 * the id is out of bounds. `source` names the file in messages. */
enum bitconv_status bc_vocab_add(struct bc_vocab *vocab, const char *source, const char *text,
                                 size_t len, uint64_t id, struct bc_token **out,
                                 struct bitconv_error *err);

/* Sorts by id; CORRUPT when two tokens share an id. Call again after further additions. */
enum bitconv_status bc_vocab_seal(struct bc_vocab *vocab, struct bitconv_error *err);

/* NULL when there is no such token. bc_vocab_at finds those that the last bc_vocab_seal has seen.
 */
struct bc_token *bc_vocab_find(const struct bc_vocab *vocab, const char *text, size_t len);
struct bc_token *bc_vocab_at(const struct bc_vocab *vocab, uint32_t id);

/* Checks a sealed vocabulary against the rows of the embedding: base tokens beyond them are refused
 * unless `trim`, added ones are dropped with a warning; missing ids are counted in a note, LIMIT
 * when they are more than a million. */
enum bitconv_status bc_vocab_fit(const struct bc_vocab *vocab, uint32_t n_rows, bool trim,
                                 const struct bitconv_sink *sink, struct bitconv_error *err);

/* Writes tokenizer.ggml.model, pre, tokens, scores, token_type, merges: one entry per row of the
 * embedding, in id order, ids without a token filled as the rules say. */
enum bitconv_status bc_vocab_write(const struct bc_vocab *vocab, uint32_t n_rows,
                                   const struct bc_tokenizer_rules *rules,
                                   struct bitconv_gguf_writer *w, struct bitconv_error *err);

#endif
