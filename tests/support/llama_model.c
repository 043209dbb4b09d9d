/* SPDX-License-Identifier: MIT
 * Writes llama checkpoints of any size. */
#include "support/llama_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/rng.h"

enum { KV_HEADS = 2 };

static void make_tensor(struct llama_model *m, size_t i, const char *name, uint64_t rows,
                        uint64_t cols, bool ternary, uint64_t *seed)
{
    const uint64_t n = rows * (cols == 0 ? 1 : cols);
    m->values[i] = malloc((size_t)n * sizeof *m->values[i]);
    assert_non_null(m->values[i]);
    for (uint64_t j = 0; j < n; j++)
        m->values[i][j] = ternary ? 0.25f * (float)((int)rng_below(seed, 3) - 1)
                                  : (float)((int)rng_below(seed, 2001) - 1000) / 1024.0f;
    m->edits[i] = (struct model_edit){.name = name,
                                      .dtype = BITCONV_BF16,
                                      .n_dims = cols == 0 ? 1 : 2,
                                      .shape = {rows, cols},
                                      .values = m->values[i]};
}

void llama_model_make(struct convert_run *r, struct llama_model *m, uint64_t hidden, uint64_t ff)
{
    const uint64_t kv = hidden / LLAMA_MODEL_HEADS * KV_HEADS;
    uint64_t seed = hidden + ff;
    make_tensor(m, 0, "model.embed_tokens.weight", LLAMA_MODEL_VOCAB, hidden, false, &seed);
    make_tensor(m, 1, "model.norm.weight", hidden, 0, false, &seed);
    make_tensor(m, 2, "model.layers.0.input_layernorm.weight", hidden, 0, false, &seed);
    make_tensor(m, 3, "model.layers.0.post_attention_layernorm.weight", hidden, 0, false, &seed);
    make_tensor(m, 4, "model.layers.0.self_attn.q_proj.weight", hidden, hidden, true, &seed);
    make_tensor(m, 5, "model.layers.0.self_attn.k_proj.weight", kv, hidden, true, &seed);
    make_tensor(m, 6, "model.layers.0.self_attn.v_proj.weight", kv, hidden, true, &seed);
    make_tensor(m, 7, "model.layers.0.self_attn.o_proj.weight", hidden, hidden, true, &seed);
    make_tensor(m, 8, "model.layers.0.mlp.gate_proj.weight", ff, hidden, true, &seed);
    make_tensor(m, 9, "model.layers.0.mlp.up_proj.weight", ff, hidden, true, &seed);
    make_tensor(m, 10, "model.layers.0.mlp.down_proj.weight", hidden, ff, true, &seed);
    llama_model_write(r, m, hidden, ff);
    r->options.target = "bitnet";
}

void llama_model_write(struct convert_run *r, const struct llama_model *m, uint64_t hidden,
                       uint64_t ff)
{
    char text[64];
    convert_run_model(r, "llama-ternary", m->edits, LLAMA_MODEL_TENSORS - 1);
    (void)snprintf(text, sizeof text, "\"hidden_size\": %u", (unsigned)hidden);
    model_copy_config(r->model, "\"hidden_size\": 128", text);
    (void)snprintf(text, sizeof text, "\"intermediate_size\": %u", (unsigned)ff);
    model_copy_config(r->model, "\"intermediate_size\": 128", text);
}

void llama_model_free(struct llama_model *m)
{
    for (size_t i = 0; i < LLAMA_MODEL_TENSORS; i++)
        free(m->values[i]);
}
