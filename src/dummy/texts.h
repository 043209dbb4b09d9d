/* SPDX-License-Identifier: MIT
 * The small files of a synthetic checkpoint: everything but the weights. */
#ifndef BC_DUMMY_TEXTS_H
#define BC_DUMMY_TEXTS_H

#include "bitconv/tensor.h"
#include "dummy/shape.h"

/* A file: its name within the folder (at most one folder deep) and its text. */
struct bc_dummy_text {
    const char *name;
    struct bc_buf text;
};
enum { BC_DUMMY_N_TEXTS = 9 };

/* All of them; those without a name are not there. Zero-initialise. */
struct bc_dummy_texts {
    struct bc_dummy_text files[BC_DUMMY_N_TEXTS];
    size_t n;
};

/* Makes them: config.json, generation_config.json, the tokenizer's files, of embedding models
 * modules.json and 1_Pooling/config.json, of baked weights deployment_info.json. Release in any
 * case. */
enum bitconv_status bc_dummy_texts_make(const struct bc_dummy_model *model,
                                        enum bitconv_dummy_form form, enum bitconv_dtype dtype,
                                        struct bc_dummy_texts *out, struct bitconv_error *err);
void bc_dummy_texts_release(struct bc_dummy_texts *texts);
/* The text of a file; "" when there is none of that name. */
const char *bc_dummy_text_find(const struct bc_dummy_texts *texts, const char *name);
/* A new file of that name, empty; the caller fills its text. */
struct bc_buf *bc_dummy_text_add(struct bc_dummy_texts *texts, const char *name);

/* Ids of special tokens; -1: none. */
struct bc_dummy_ids {
    int64_t bos, eos, pad;
};
struct bc_dummy_ids bc_dummy_tokenizer_ids(enum bc_dummy_tokenizer kind, uint32_t n_vocab);
/* Adds tokenizer.json (of BERT vocab.txt too) and tokenizer_config.json with n_vocab entries, which
 * is between BC_DUMMY_MIN_VOCAB and BC_DUMMY_MAX_VOCAB. */
void bc_dummy_tokenizer(enum bc_dummy_tokenizer kind, uint32_t n_vocab,
                        struct bc_dummy_texts *texts);

#endif
