/* SPDX-License-Identifier: MIT
 * The vocabulary of a file's metadata, and the tokenizer files made of it. Internal to src/export. */
#ifndef BC_EXPORT_EXPORT_VOCAB_H
#define BC_EXPORT_EXPORT_VOCAB_H

#include "base/json.h"
#include "base/map.h"
#include "export/exporter.h"

/* How converting the checkpoint again reads the vocabulary. */
enum bc_vocab_kind {
    BC_VOCAB_BYTE_LEVEL,   /* model "gpt2": tokenizer.json, byte-level BPE */
    BC_VOCAB_BPE_FALLBACK, /* model "llama" from a tokenizer.json: scores are ranks of merges */
    BC_VOCAB_SPM,          /* model "llama" from a tokenizer.model: scores are its own */
    BC_VOCAB_WORDPIECE     /* model "bert" */
};

struct bc_export_token {
    const char *text; /* UTF-8; of the file, or arena-owned where it is rewritten */
    uint32_t len;
    float score;
    enum bc_token_type type;
    bool padding; /* stands for an id that the checkpoint's tokenizer does not have */
    bool added;   /* to be listed among the added tokens */
    bool base;    /* to be listed in the model's own vocabulary */
};

/* A merge: ids of the tokens whose texts are joined. Strings that are no token (in files of other
 * writers) are refused. */
struct bc_export_merge {
    uint32_t left, right;
};

/* Zero-initialise; bc_export_vocab_release. */
struct bc_export_vocab {
    const struct bc_exporter *e;
    enum bc_vocab_kind kind;
    struct bc_export_token *tokens; /* index: id */
    uint32_t n;
    bool has_scores;
    struct bc_map by_text;
    struct bc_export_merge *merges;
    size_t n_merges, cap_merges;
    uint32_t n_pieces;            /* SPM: tokens [0, n_pieces) are in tokenizer.model */
    bool space_prefix;            /* a blank is put in front of a text */
    const char *pre;              /* tokenizer.ggml.pre, or what the user said */
    int lowercase, strip_accents; /* WordPiece: 1, 0, -1 when the file does not say */
};

/* Reads and checks tokenizer.ggml.*; decides kind, padding, added. *out_found false when the file
 * has no tokenizer. */
enum bitconv_status bc_export_vocab_read(struct bc_exporter *e, struct bc_export_vocab *v,
                                         bool *out_found, struct bitconv_error *err);
void bc_export_vocab_release(struct bc_export_vocab *v);
/* NULL when the id has no token. */
const struct bc_export_token *bc_export_token_at(const struct bc_export_vocab *v, int64_t id);

/* v->merges of a vocabulary with scores: a merge for every way in which two tokens make a third, in
 * the order of its score. `ranks`: scores are minus the rank of the first merge that makes a token,
 * and the list must give just these; false when no list does. */
enum bitconv_status bc_export_derive_merges(struct bc_export_vocab *v, bool ranks, bool *out_ok,
                                            struct bitconv_error *err);

/* tokenizer.model: a SentencePiece ModelProto of type BPE. */
void bc_export_spm(const struct bc_export_vocab *v, struct bc_buf *out);
/* tokenizer.json. UNSUPPORTED when the splitting is not known by the file's name for it. */
enum bitconv_status bc_export_tokenizer_json(const struct bc_export_vocab *v, struct bc_buf *out,
                                             struct bitconv_error *err);
/* The members "normalizer" and "pre_tokenizer" of a byte-level tokenizer.json, by the readers' name
 * for the splitting, and *ignore_merges; false when the name is not known. */
bool bc_export_pre(struct bc_jw *w, const char *pre, bool *ignore_merges);

#endif
