/* SPDX-License-Identifier: MIT
 * Rewrites the tensors of a fixture in other sizes, by the tables of its family. */
#include "support/wide_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "support/rng.h"

enum { MAX_EDITS = 64, WIDTH = 256 };

struct widening {
    const struct bc_arch *arch;
    struct bc_hparams hp; /* the new sizes */
    struct model_edit edits[MAX_EDITS];
    void *values[MAX_EDITS];
    size_t n;
    uint64_t seed;
};

static void random_bytes(struct widening *w, struct model_edit *e, size_t n)
{
    uint8_t *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = 0;
        for (unsigned shift = 0; shift < 8; shift += 2)
            bytes[i] = (uint8_t)(bytes[i] | rng_below(&w->seed, 3) << shift);
    }
    w->values[w->n] = bytes;
    e->bytes = bytes;
    e->size = n;
}

static void random_floats(struct widening *w, struct model_edit *e, size_t n, bool ternary)
{
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = ternary ? 0.0625f * (float)((int)rng_below(&w->seed, 3) - 1)
                            : 0.5f + (float)((int)rng_below(&w->seed, 2001) - 1000) / 1024.0f;
    w->values[w->n] = values;
    e->values = values;
}

/* The tensor in the new sizes; what no table row describes stays. */
static void widen_tensor(struct widening *w, const struct bitconv_tensor *t)
{
    struct bc_match match;
    if (!bc_arch_match(w->arch, t->name, &match) || match.row->gguf == NULL) return;
    if (match.part == BC_MATCH_SCALE) return;
    struct model_edit e = {.name = t->name, .dtype = t->dtype, .n_dims = t->n_dims};
    const uint64_t rows = bc_dim_size(&w->hp, match.row->shape[0]);
    const uint64_t cols = bc_dim_size(&w->hp, match.row->shape[1]);
    const bool linear = match.row->role == BC_ROLE_LINEAR || match.row->role == BC_ROLE_EXPERT;
    size_t n = 1;
    assert_true(t->n_dims >= 1 && t->n_dims <= 3 && w->n < MAX_EDITS);
    e.shape[0] = match.part == BC_MATCH_NORM_IN ? cols : rows;
    if (t->n_dims == 3) e.shape[1] = 1;
    if (t->n_dims > 1) e.shape[t->n_dims - 1] = cols;
    if (t->dtype == BITCONV_U8) e.shape[0] = rows / 4;
    for (uint32_t i = 0; i < t->n_dims; i++)
        n *= (size_t)e.shape[i];
    if (t->dtype == BITCONV_U8)
        random_bytes(w, &e, n);
    else
        random_floats(w, &e, n, linear && match.part == BC_MATCH_WEIGHT);
    w->edits[w->n++] = e;
}

/* Doubles a number of config.json that is there. */
static void change(struct convert_run *r, const char *from, const char *to)
{
    struct bc_buf text = {0};
    bc_buf_printf(&text, "%s/config.json", r->model);
    struct bc_buf config = {0};
    convert_run_file(bc_buf_str(&text), &config);
    if (strstr(bc_buf_str(&config), from) != NULL) model_copy_config(r->model, from, to);
    bc_buf_release(&config);
    bc_buf_release(&text);
}

void wide_model(struct convert_run *r, const char *fixture)
{
    struct widening *w = calloc(1, sizeof *w);
    struct bc_checkpoint *checkpoint = NULL;
    struct bc_model *model = NULL;
    const struct bc_model_options options = {.target = BC_TARGET_AUTO};
    char *const source = model_copy_source(fixture);
    assert_non_null(w);
    assert_int_equal(bc_checkpoint_open(source, true, NULL, &checkpoint, NULL), BITCONV_OK);
    assert_int_equal(bc_model_load(checkpoint, &options, NULL, &model, NULL), BITCONV_OK);
    w->arch = model->arch;
    w->hp = model->hp;
    w->hp.n_embd = w->hp.n_ff = WIDTH;
    w->hp.n_head *= 2;
    w->hp.n_head_kv *= 2;
    w->seed = 11;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        widen_tensor(w, checkpoint->tensors[i]);
    convert_run_model(r, fixture, w->edits, w->n);
    change(r, "\"hidden_size\": 128", "\"hidden_size\": 256");
    change(r, "\"intermediate_size\": 128", "\"intermediate_size\": 256");
    change(r, "\"block_ff_dim\": 150", "\"block_ff_dim\": 384");
    change(r, "\"num_attention_heads\": 4", "\"num_attention_heads\": 8");
    change(r, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4");
    for (size_t i = 0; i < w->n; i++)
        free(w->values[i]);
    bc_model_free(model);
    bc_checkpoint_close(checkpoint);
    free(source);
    free(w);
}
