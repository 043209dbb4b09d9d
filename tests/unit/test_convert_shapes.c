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
#include "support/llama_model.h"

enum { HEADS = LLAMA_MODEL_HEADS, VOCAB = LLAMA_MODEL_VOCAB };

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
    struct llama_model m = {.values = {NULL}};
    assert_true((uint64_t)HIDDEN * FF > 3 * BC_PIECE_VALUES);
    llama_model_make(r, &m, HIDDEN, FF);
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
    llama_model_free(&m);
}

/* The pieces do not depend on the threads, so neither do sums over them. */
static void many_pieces_on_many_threads_give_the_same_bytes(void **state)
{
    static const unsigned threads[] = {1, 2, 5};
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    struct bc_buf files[3] = {{0}};
    double errors[3];
    llama_model_make(r, &m, 416, 1000);
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
    llama_model_free(&m);
}

static void misfits_of_shape_are_all_listed(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 160, 101); /* 160 x 101 = 16160 = 126 * 128 + 32 */
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
    llama_model_free(&m);
}

static void a_file_of_misfits_alone_is_refused(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 200, 101);
    r->options.on_misfit = "f16";
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "would be i2_s");
    llama_model_free(&m);
}

/* The x86 runtime computes rows that are no multiple of 128 wrong: the file is right, so a warning. */
static void row_lengths_are_warned_about_once(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 160, 128);
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_said(r, "rows of 160 values, no multiple of 128 (6 such tensors)"));
    llama_model_free(&m);
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
