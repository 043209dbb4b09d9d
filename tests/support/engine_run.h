/* SPDX-License-Identifier: MIT
 * Runs converted fixtures through the engine, by the file path and by the source path. Failures end
 * the test. */
#ifndef TESTS_SUPPORT_ENGINE_RUN_H
#define TESTS_SUPPORT_ENGINE_RUN_H

#include "bitconv/engine.h"
#include "engine/provider.h"
#include "support/convert_run.h"

/* What a run gave, copied: n tokens. */
struct engine_result {
    size_t n, n_embd, n_vocab;
    float *hidden, *pre_norm, *logits; /* n rows each */
};
void engine_result_free(struct engine_result *r);
/* Asserts equality bit for bit; `what` is printed otherwise. */
void engine_results_equal(const struct engine_result *a, const struct engine_result *b,
                          const char *what);

/* n tokens of a fixture's vocabulary (320), always the same. */
void engine_tokens(int32_t *out, size_t n);

/* Runs the tokens in pieces of `piece` (0: all at once). */
void engine_run(struct bitconv_engine *engine, const int32_t *tokens, size_t n, size_t piece,
                struct engine_result *out);

/* Opens r's converted file; `options` may be NULL. */
struct bitconv_engine *engine_of_file(const struct convert_run *r,
                                      const struct bitconv_engine_options *options);

/* r's checkpoint, read as for r's converted file (its target) and carried as that file does. */
struct engine_source {
    struct bc_checkpoint *checkpoint;
    struct bc_model *model;
    struct bc_stated *stated;
    struct bc_carry_file *carry;
    struct bc_arena arena;
    struct bitconv_engine *engine;
};
void engine_source_open(const struct convert_run *r, const struct bitconv_engine_options *options,
                        struct engine_source *out);
void engine_source_close(struct engine_source *s);

#endif
