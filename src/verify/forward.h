/* SPDX-License-Identifier: MIT
 * What the proofs by computation share: the tokens that are run, the engine over the file, and the
 * comparison of two runs. */
#ifndef BC_VERIFY_FORWARD_H
#define BC_VERIFY_FORWARD_H

#include "engine/session.h"
#include "verify/source_state.h"

/* Kept from bc_prove_forward for the proofs behind it. */
struct bc_forward {
    struct bc_arena arena; /* of hp and tokens */
    struct bc_hparams hp;  /* as the file's metadata has them */
    int32_t *tokens;
    size_t n_tokens;
    const char *what;       /* "12 tokens of the default text" */
    uint32_t unseen_window; /* sliding window that is longer than the text; 0: none */
    struct bitconv_engine
        *file;            /* the file path; NULL: the file cannot be run, or was not asked to */
    uint64_t done, total; /* layers, for progress */
};

/* Chooses what is run: options->tokens, or the ids that the file's own tokenizer gives
 * options->prompt, or those of a fixed sentence, or fixed ids where the file has no tokenizer that
 * can be used. What nobody has chosen is repeated until it is longer than the sliding windows of the
 * model (the file's and the checkpoint's), as far as that costs little. f->hp must be there. ARG and
 * LIMIT: ids outside of the vocabulary, or more of them than the model has positions for; as the
 * tokenizer for a prompt that it cannot encode. */
enum bitconv_status bc_forward_prompt(struct bc_verifier *v, struct bc_forward *f,
                                      struct bitconv_error *err);

/* The first intermediate result in which two runs differ. */
struct bc_forward_difference {
    bool found;
    char name[64];       /* of the first run's result; "" when it has no more */
    char other_name[64]; /* of the second run's at that place, where it is another; else "" */
    bool other_shape;    /* more or fewer values */
    uint64_t n_values, n_different;
    uint64_t token, index; /* of the first value that differs */
    float first, second;   /* it, in both runs */
};

/* Runs both engines and compares every intermediate result, bit for bit, in the order of
 * computation. Memory: a hash for each result; where one differs, its values in both runs, for which
 * the first run is made again up to there. *n_results: how many were equal. A run that fails: its
 * error. */
enum bitconv_status bc_forward_compare(struct bc_verifier *v, struct bc_forward *f,
                                       struct bitconv_engine *first, struct bitconv_engine *second,
                                       struct bc_forward_difference *out, uint64_t *n_results,
                                       struct bitconv_error *err);

/* Runs one engine alone; *n_results: how many intermediate results there were. */
enum bitconv_status bc_forward_check(struct bc_verifier *v, struct bc_forward *f,
                                     struct bitconv_engine *engine, uint64_t *n_results,
                                     struct bitconv_error *err);

/* What a failed computation means for a proof: failures of the machine (memory, I/O, a bug, a
 * cancellation) stay errors; a file that cannot be computed, or gives NaN, is a problem. */
enum bitconv_status bc_forward_failed(struct bc_verifier *v, struct bitconv_proof *proof,
                                      const struct bitconv_error *why, struct bitconv_error *err);

#endif
