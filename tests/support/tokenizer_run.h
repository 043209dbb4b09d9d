/* SPDX-License-Identifier: MIT
 * Runs the tokenizer step of a conversion on a scratch folder and reads its keys back. */
#ifndef TESTS_SUPPORT_TOKENIZER_RUN_H
#define TESTS_SUPPORT_TOKENIZER_RUN_H

#include "base/mem.h"
#include "model/tokenizer.h"

/* Fill in dir (temp_dir_new) and what is not zero, write the files, then run; may run again. */
struct tokenizer_run {
    char *dir; /* config.json is made when it is not there */
    enum bc_tokenizer_policy policy;
    enum bc_target target; /* AUTO stands for BITNET */
    uint32_t n_rows;
    bool embedding_model;
    struct bc_tokenizer_options options;

    enum bitconv_status status;
    struct bitconv_error err;
    struct bc_buf messages;    /* "warning: ...\n" of the last run */
    struct bitconv_gguf *gguf; /* NULL when it failed */
};

void tokenizer_run(struct tokenizer_run *run);
/* Closes everything and removes the folder. */
void tokenizer_run_end(struct tokenizer_run *run);

/* All of these end the test when the key is missing or of another type. */
const char *tokenizer_run_string(const struct tokenizer_run *run, const char *key, size_t *len);
uint64_t tokenizer_run_u64(const struct tokenizer_run *run, const char *key);
bool tokenizer_run_bool(const struct tokenizer_run *run, const char *key);
bool tokenizer_run_has(const struct tokenizer_run *run, const char *key);
void tokenizer_run_expect_string(const struct tokenizer_run *run, const char *key,
                                 const char *text);
/* Element `index` of an array of strings. */
void tokenizer_run_expect_element(const struct tokenizer_run *run, const char *key, uint64_t index,
                                  const char *text);
/* Text and type of a token. */
void tokenizer_run_expect_token(const struct tokenizer_run *run, uint32_t id, const char *text,
                                int type);
float tokenizer_run_score(const struct tokenizer_run *run, uint32_t id);
/* The run failed with that status and a message that has `part` in it. */
void tokenizer_run_expect_failure(const struct tokenizer_run *run, enum bitconv_status status,
                                  const char *part);
/* True when a message of the run has `part` in it. */
bool tokenizer_run_said(const struct tokenizer_run *run, const char *part);

#endif
