/* SPDX-License-Identifier: MIT
 * Tiny checkpoints in a scratch folder, and what loading them says. */
#ifndef TESTS_SUPPORT_MODEL_FIXTURE_H
#define TESTS_SUPPORT_MODEL_FIXTURE_H

#include "model/model.h"
#include "support/st_builder.h"

struct model_fixture {
    char *dir;
    struct st_builder tensors; /* what is written as model.safetensors */
    struct bc_model_options options;
    struct bc_buf messages; /* "note: ...\n", "warning: ...\n", "finding: ...\n" */
    struct bitconv_sink sink;
    struct bitconv_error err;
    struct bc_checkpoint *ckpt;
    struct bc_model *model; /* NULL when the load was refused */
};

/* cmocka set-up and tear-down; *state is a struct model_fixture. */
int model_fixture_set_up(void **state);
int model_fixture_tear_down(void **state);

/* The sizes of every fixture: 2 layers, n_embd 8, n_ff 12, 2 heads of 4 with 1 kv head, 16 tokens,
 * 2 experts where the family has any, 64 positions, 2 token types; where the family has
 * convolutions, layer 0 is one, of length 3. BERT has no grouped queries. */
struct bc_hparams model_fixture_sizes(void);
/* The members of a config.json that say so, without braces, for a class. */
#define MODEL_FIXTURE_COUNTS                                                                       \
    "\"hidden_size\":8,\"intermediate_size\":12,\"num_hidden_layers\":2,"                          \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":4,\"vocab_size\":16,"        \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5"

/* Adds a zero tensor; cols 0: a vector. */
void model_fixture_add(struct model_fixture *f, const char *name, enum bitconv_dtype dtype,
                       uint64_t rows, uint64_t cols);
/* Adds every tensor of the family as BF16 zeros, but no lm_head, names after `prefix` ("model."),
 * but for `omit` (a whole name, or NULL). */
void model_fixture_add_family(struct model_fixture *f, const struct bc_arch *arch,
                              const char *prefix, const char *omit);

/* Writes config.json ("{" members "}") and model.safetensors, and loads. Earlier results, messages
 * and errors are dropped; the tensors stay for another load. */
void model_fixture_load(struct model_fixture *f, const char *config_members);
/* The same for families other than the one whose tensors were added: starts over with those. */
void model_fixture_load_family(struct model_fixture *f, const struct bc_arch *arch,
                               const char *config_members);
/* Loads and asserts success, or refusal with `text` in the error or a message. */
void model_fixture_accept(struct model_fixture *f, const char *config_members);
void model_fixture_refuse(struct model_fixture *f, const char *config_members, const char *text);
/* Does a message hold `text`? */
bool model_fixture_said(const struct model_fixture *f, const char *text);
/* The weight of that name, or NULL. */
const struct bc_weight *model_fixture_weight(const struct model_fixture *f, const char *name);
/* Writes the metadata of the loaded model to a GGUF without tensors and opens it. */
struct bitconv_gguf *model_fixture_metadata(struct model_fixture *f);

#endif
