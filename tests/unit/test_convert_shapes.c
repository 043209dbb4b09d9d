/* SPDX-License-Identifier: MIT
 * Conversions of tensors of awkward shapes and of more than one piece: all families of values against
 * the source, misfits of shape, rows that a runtime computes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "convert/piece.h"
#include "support/convert_run.h"
#include "support/rng.h"

enum { N_TENSORS = 12, HEADS = 4, KV_HEADS = 2, VOCAB = 320 };

/* A llama of one layer whose sizes a test chooses. Its linear weights are trits of 0.25. */
struct llama {
    struct model_edit edits[N_TENSORS];
    float *values[N_TENSORS];
};

static void make_tensor(struct llama *m, size_t i, const char *name, uint64_t rows, uint64_t cols,
                        bool ternary, uint64_t *seed)
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

static void make_llama(struct convert_run *r, struct llama *m, uint64_t hidden, uint64_t ff)
{
    const uint64_t kv = hidden / HEADS * KV_HEADS;
    char text[64];
    uint64_t seed = hidden + ff;
    make_tensor(m, 0, "model.embed_tokens.weight", VOCAB, hidden, false, &seed);
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
    convert_run_model(r, "llama-ternary", m->edits, 11);
    (void)snprintf(text, sizeof text, "\"hidden_size\": %u", (unsigned)hidden);
    model_copy_config(r->model, "\"hidden_size\": 128", text);
    (void)snprintf(text, sizeof text, "\"intermediate_size\": %u", (unsigned)ff);
    model_copy_config(r->model, "\"intermediate_size\": 128", text);
    r->options.target = "bitnet";
}

static void free_llama(struct llama *m)
{
    for (size_t i = 0; i < N_TENSORS; i++)
        free(m->values[i]);
}

/* Where value `index` of a permuted tensor (hidden columns, heads of head_rows rows) comes from. */
static uint64_t permuted(uint64_t index, uint64_t cols, uint64_t head_rows)
{
    const uint64_t row = index / cols, r = row % head_rows;
    return (row - r + r % 2 * (head_rows / 2) + r / 2) * cols + index % cols;
}

/* Tensors of several pieces whose ends fall into rows: float and packed. */
static void tensors_of_many_pieces_are_whole(void **state)
{
    static const char *const outtypes[] = {"f32", "f16", "bf16", "i2_s"};
    enum { HIDDEN = 416, FF = 1000 };
    struct convert_run *r = *state;
    struct llama m = {.values = {NULL}};
    assert_true((uint64_t)HIDDEN * FF > 3 * BC_PIECE_VALUES);
    make_llama(r, &m, HIDDEN, FF);
    for (size_t t = 0; t < 4; t++) {
        convert_run_accept(r, outtypes[t]);
        const bool packed = t == 3;
        for (uint64_t i = 0; i < (uint64_t)VOCAB * HIDDEN; i++) {
            const float stored = bc_bf16_to_f32(bc_f32_to_bf16(m.values[0][i]));
            assert_true(convert_run_value(r, "token_embd.weight", i) == stored);
        }
        for (uint64_t i = 0; i < (uint64_t)HIDDEN * FF; i++) {
            const float wanted = m.values[10][i];
            if (packed)
                assert_int_equal(convert_run_trit(r, "blk.0.ffn_down.weight", i),
                                 (int)(4 * wanted));
            else
                assert_true(convert_run_value(r, "blk.0.ffn_down.weight", i) == wanted);
        }
        for (uint64_t i = 0; i < (uint64_t)HIDDEN * HIDDEN; i++) {
            const float wanted = m.values[4][permuted(i, HIDDEN, HIDDEN / HEADS)];
            if (packed)
                assert_int_equal(convert_run_trit(r, "blk.0.attn_q.weight", i), (int)(4 * wanted));
            else
                assert_true(convert_run_value(r, "blk.0.attn_q.weight", i) == wanted);
        }
    }
    assert_true(convert_run_scale(r, "blk.0.ffn_down.weight") == 0.25f);
    free_llama(&m);
}

/* The pieces do not depend on the threads, so neither do sums over them. */
static void many_pieces_on_many_threads_give_the_same_bytes(void **state)
{
    static const unsigned threads[] = {1, 2, 5};
    struct convert_run *r = *state;
    struct llama m = {.values = {NULL}};
    struct bc_buf files[3] = {{0}};
    double errors[3];
    make_llama(r, &m, 416, 1000);
    r->options.quant = "absmean";
    for (size_t t = 0; t < 3; t++) {
        r->options.n_threads = threads[t];
        convert_run_accept(r, "i2_s");
        convert_run_file(r->out, &files[t]);
        errors[t] = convert_run_tensor(r, "blk.0.ffn_down.weight")->relative_error;
        assert_int_equal(files[t].size, files[0].size);
        assert_memory_equal(files[t].data, files[0].data, files[0].size);
        assert_true(errors[t] == errors[0]);
    }
    /* Forced absmean of trits t * c with a share z of zeros: the scale is (1 - z) c, the loss z. */
    const double z = convert_run_tensor(r, "blk.0.ffn_down.weight")->zeros;
    assert_true(fabs(errors[0] - z) < 1e-4);
    for (size_t t = 0; t < 3; t++)
        bc_buf_release(&files[t]);
    free_llama(&m);
}

static void misfits_of_shape_are_all_listed(void **state)
{
    struct convert_run *r = *state;
    struct llama m = {.values = {NULL}};
    make_llama(r, &m, 160, 101); /* 160 x 101 = 16160 = 126 * 128 + 32 */
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "160 x 101 = 16160");
    assert_true(convert_run_said(r, "finding: blk.0.ffn_gate.weight: misfit"));
    assert_true(convert_run_said(r, "finding: blk.0.ffn_up.weight: misfit"));
    assert_true(convert_run_said(r, "finding: blk.0.ffn_down.weight: misfit"));
    assert_false(convert_run_said(r, "attn_q.weight: misfit"));
    assert_true(convert_run_said(r, "32 are left over"));
    r->options.on_misfit = "f16";
    convert_run_accept(r, "i2_s");
    assert_string_equal(convert_run_stored(r, "blk.0.ffn_up.weight")->type_name, "F16");
    assert_string_equal(convert_run_stored(r, "blk.0.attn_q.weight")->type_name, "I2_S");
    assert_true(convert_run_said(r, "3 tensors with 48480 parameters"));
    for (uint64_t i = 0; i < 160u * 101u; i++)
        assert_true(convert_run_value(r, "blk.0.ffn_up.weight", i) == m.values[9][i]);
    free_llama(&m);
}

static void a_file_of_misfits_alone_is_refused(void **state)
{
    struct convert_run *r = *state;
    struct llama m = {.values = {NULL}};
    make_llama(r, &m, 200, 101);
    r->options.on_misfit = "f16";
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "would be I2_S");
    free_llama(&m);
}

/* The x86 runtime computes rows that are no multiple of 128 wrong: the file is right, so a warning. */
static void row_lengths_are_warned_about_once(void **state)
{
    struct convert_run *r = *state;
    struct llama m = {.values = {NULL}};
    make_llama(r, &m, 160, 128);
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_said(r, "rows of 160 values, no multiple of 128 (6 such tensors)"));
    free_llama(&m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(tensors_of_many_pieces_are_whole),
        TEST(many_pieces_on_many_threads_give_the_same_bytes),
        TEST(misfits_of_shape_are_all_listed),
        TEST(a_file_of_misfits_alone_is_refused),
        TEST(row_lengths_are_warned_about_once),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
