/* SPDX-License-Identifier: MIT
 * Packs with a scale per block from end to end: scales rounded into the blocks or exact beside them,
 * blocks quantized by themselves, misfits of values, experts, and what verify says of each. */
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
#include "bitconv/diff.h"
#include "bitconv/inspect.h"
#include "formats/block_pack.h"
#include "support/llama_model.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

enum { HIDDEN = 256, FF = 512, FIRST_LINEAR = 4, N_LINEAR = 7, N_ROUNDED = 5 /* not 0.5 and 1 */ };

static const char *const packs[] = {"tq1_0", "tq2_0", "q2_0", "q1_0"};
#define N_PACKS (sizeof packs / sizeof packs[0])

static const char weight[] = "blk.0.ffn_up.weight", scale_name[] = "blk.0.ffn_up.scale";

/* ---- checkpoints ---- */

/* New values of the linear weights, by tensor and index; stored as float32. */
typedef float value_at(size_t tensor, uint64_t i, uint64_t cols, uint64_t *rng);

static void fill(struct convert_run *r, struct llama_model *m, value_at *value)
{
    uint64_t rng = 11;
    for (size_t t = FIRST_LINEAR; t < FIRST_LINEAR + N_LINEAR; t++) {
        struct model_edit *e = &m->edits[t];
        e->dtype = BITCONV_F32;
        for (uint64_t i = 0; i < e->shape[0] * e->shape[1]; i++)
            m->values[t][i] = value(t, i, e->shape[1], &rng);
    }
    llama_model_write(r, m, HIDDEN, FF);
}

static void make(struct convert_run *r, struct llama_model *m, value_at *value)
{
    memset(m, 0, sizeof *m);
    llama_model_make(r, m, HIDDEN, FF);
    r->options.target = NULL;
    fill(r, m, value);
}

static float trit(uint64_t *rng)
{
    return (float)((int)rng_below(rng, 3) - 1);
}

static float sign(uint64_t *rng)
{
    return (float)(2 * (int)rng_below(rng, 2) - 1);
}

/* A scale that float16 holds, one that it rounds, and the same without zeros. */
static float exact(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)cols;
    return i % 300 < 2 ? 0.0f : 0.03125f * (float)t * trit(rng);
}

static float inexact(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)cols;
    return (float)(t * 256 > i ? 0 : 1) * 0.1f * (float)t * trit(rng);
}

static float exact_signs(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)i;
    (void)cols;
    return 0.03125f * (float)t * sign(rng);
}

static float inexact_signs(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)i;
    (void)cols;
    return 0.1f * (float)t * sign(rng);
}

/* No magnitude twice. */
static float spread(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)t;
    (void)i;
    (void)cols;
    return (float)((int)rng_below(rng, 2000001) - 1000000) / 1048576.0f;
}

/* Ternary in each row, with a magnitude of its own. */
static float by_row(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)t;
    return trit(rng) * (0.01f + 0.001f * (float)(i / cols));
}

static bool holds_zeros(const char *pack)
{
    return bc_block_pack_find(pack)->holds_zeros;
}

/* ---- proofs ---- */

/* All proofs beside the source; the form of the scales and what the fingerprints proof says. */
static void check_file(const struct convert_run *r, const char *form, enum bitconv_verdict prints)
{
    const struct bitconv_verify_options options = {
        .source = r->model, .n_threads = 2, .conversion = &r->options};
    struct verify_run run = {.status = BITCONV_OK};
    verify_run(&run, r->result->output, &options);
    if (!verify_run_ok(&run)) fail_msg("%s", bc_buf_str(&run.problems));
    assert_int_equal(verify_run_proof(&run, "packs")->verdict, BITCONV_PASSED);
    assert_int_equal(verify_run_proof(&run, "source")->verdict, BITCONV_PASSED);
    assert_int_equal(verify_run_proof(&run, "fingerprints")->verdict, prints);
    assert_string_equal(run.result->fingerprint, r->result->fingerprint);
    for (size_t i = 0; i < run.result->n_tensors; i++) {
        const struct bitconv_verified_tensor *t = &run.result->tensors[i];
        if (t->pack == NULL) continue;
        assert_string_equal(t->scale_form, form);
        assert_string_equal(t->fingerprint, convert_run_tensor(r, t->name)->fingerprint);
    }
    verify_run_release(&run);
}

/* verify finds out by itself that blocks were quantized by themselves, plain file or not. */
static void check_untold(const struct convert_run *r)
{
    const struct bitconv_verify_options options = {.source = r->model, .n_threads = 1};
    struct verify_run run = {.status = BITCONV_OK};
    verify_run(&run, r->result->output, &options);
    if (!verify_run_ok(&run)) fail_msg("%s", bc_buf_str(&run.problems));
    assert_true(verify_run_says(&run.notes, "--quant block"));
    verify_run_release(&run);
}

/* Every block of a stored tensor has the scale, or 0 where its trits are zeros; returns how many
 * of the latter there are. */
static size_t check_block_scales(const struct convert_run *r, const char *name, const char *pack,
                                 float scale)
{
    const struct bc_block_pack *bp = bc_block_pack_find(pack);
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, name);
    size_t n_zero = 0;
    assert_string_equal(t->type_name, bp->format->type_name);
    for (uint64_t at = 0; at < t->size; at += bp->block_size) {
        const bool zero = bp->is_zero(t->data + at);
        assert_true(bc_block_scale(bp, t->data + at) == (zero ? 0.0f : scale));
        n_zero += zero;
    }
    return n_zero;
}

static void scales_in_the_blocks(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < N_PACKS; i++) {
        struct llama_model m;
        make(r, &m, holds_zeros(packs[i]) ? exact : exact_signs);
        convert_run_accept(r, packs[i]);
        assert_string_equal(r->result->target, "llama.cpp");
        assert_false(convert_run_said(r, "rounded"));
        assert_null(bitconv_gguf_find_tensor(r->gguf, scale_name));
        (void)check_block_scales(r, weight, packs[i], 9 * 0.03125f);
        assert_true(convert_run_tensor(r, weight)->scale_error == 0.0);
        check_file(r, "blocks", BITCONV_PASSED);
        llama_model_free(&m);
    }
}

/* float16 rounds 0.9: the loss is exactly that, and it is told. */
static void rounded_scales(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < N_PACKS; i++) {
        struct llama_model m;
        make(r, &m, holds_zeros(packs[i]) ? inexact : inexact_signs);
        const float scale = 0.1f * 9, rounded = bc_block_rounded_scale(scale);
        assert_true(rounded != scale);
        convert_run_accept(r, packs[i]);
        assert_true(convert_run_said(r, "warning: the scales of 5 out of 7 packed tensors were "
                                        "rounded to float16"));
        const struct bitconv_converted_tensor *t = convert_run_tensor(r, weight);
        assert_true(t->scale == scale);
        assert_true(t->relative_error == 0.0);
        assert_true(t->scale_error == fabs((double)rounded - (double)scale) / (double)scale);
        /* the first blocks of `inexact` are zeros */
        assert_int_equal(check_block_scales(r, weight, packs[i], rounded) != 0,
                         holds_zeros(packs[i]));
        check_file(r, "blocks", BITCONV_PASSED);
        llama_model_free(&m);
    }
}

/* With the scale beside it nothing is lost: the fingerprints are those of every other pack. */
static void scales_beside(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < N_PACKS; i++) {
        struct llama_model m;
        char fingerprint[33];
        make(r, &m, holds_zeros(packs[i]) ? inexact : inexact_signs);
        r->options.scale_tensor = false;
        r->options.target = "llama.cpp";
        convert_run_accept(r, "t5");
        memcpy(fingerprint, r->result->fingerprint, sizeof fingerprint);
        r->options.scale_tensor = true;
        convert_run_accept(r, packs[i]);
        assert_string_equal(r->result->fingerprint, fingerprint);
        assert_false(convert_run_said(r, "rounded"));
        assert_true(convert_run_said(r, "--scale-tensor: llama.cpp's bitnet graph"));
        (void)check_block_scales(r, weight, packs[i], 1.0f);
        const struct bitconv_gguf_tensor *scale = convert_run_stored(r, scale_name);
        assert_string_equal(scale->type_name, "F32");
        assert_int_equal(scale->n_dims, 1);
        assert_int_equal(scale->n_elements, 1);
        assert_true(convert_run_value(r, scale_name, 0) == 0.1f * 9);
        assert_true(convert_run_tensor(r, weight)->scale_error == 0.0);
        assert_ptr_equal(scale - 1, convert_run_stored(r, weight));
        check_file(r, "scale tensor", BITCONV_PASSED);
        llama_model_free(&m);
    }
}

/* The values that inspect shows are those that a runtime computes with, times the scale beside them. */
static void inspected(void **state)
{
    struct convert_run *r = *state;
    struct bitconv_inspection *it = NULL;
    struct llama_model m;
    const struct bitconv_inspect_options options = {.stats = true, .hash = true, .tensor = weight};
    make(r, &m, inexact);
    r->options.scale_tensor = true;
    convert_run_accept(r, "tq2_0");
    assert_int_equal(bitconv_inspect(r->out, &options, NULL, &it, &r->err), BITCONV_OK);
    assert_int_equal(it->n_warnings, 0);
    assert_string_equal(it->fingerprint, r->result->fingerprint);
    const struct bitconv_inspected_tensor *t = &it->tensors[it->values->tensor];
    assert_string_equal(t->pack, "tq2_0");
    assert_true(t->stats.scale == 0.1f * 9);
    assert_string_equal(t->fingerprint, convert_run_tensor(r, weight)->fingerprint);
    assert_true(t->bits_per_weight == 2.0625);
    for (uint64_t i = 0; i < it->values->n; i++)
        assert_true(it->values->reals[i] ==
                    (double)(0.1f * 9 * (float)convert_run_trit(r, weight, i)));
    assert_true(it->values->scale == 0.1f * 9 && !it->values->is_ternary);
    assert_string_equal(it->values->scale_tensor, scale_name);
    bitconv_inspection_free(it);
    llama_model_free(&m);
}

/* diff compares what the tensors mean, wherever their scales stand. */
static void compared(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m;
    struct bitconv_diff *d = NULL;
    char *other = temp_dir_path(r->root, "other.gguf");
    make(r, &m, inexact);
    r->options.target = "llama.cpp";
    r->options.outfile = other;
    assert_int_equal(convert_run(r, "bitcos"), BITCONV_OK);
    r->options.outfile = r->out;
    for (int beside = 0; beside < 2; beside++) {
        r->options.scale_tensor = beside != 0;
        convert_run_accept(r, "tq1_0");
        assert_int_equal(bitconv_diff(r->out, other, NULL, NULL, &d, &r->err), BITCONV_OK);
        assert_int_equal(d->n_different_tensors, beside ? 0 : N_ROUNDED);
        for (size_t i = 0; i < d->n_tensors; i++)
            assert_null(strstr(d->tensors[i].name, ".scale"));
        bitconv_diff_free(d);
    }
    (void)remove(other);
    free(other);
    llama_model_free(&m);
}

/* ---- blocks by themselves ---- */

/* --quant block: what from_floats makes of the rows, for any weights and every thread count. */
static void quantized_by_block(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < N_PACKS; i++) {
        const struct bc_block_pack *bp = bc_block_pack_find(packs[i]);
        struct llama_model m;
        make(r, &m, spread);
        r->options.quant = NULL;
        convert_run_refuse(r, packs[i], BITCONV_E_UNSUPPORTED, "not ternary");
        r->options.quant = "block";
        for (r->options.n_threads = 1; r->options.n_threads < 4; r->options.n_threads += 2) {
            convert_run_accept(r, packs[i]);
            const struct bitconv_gguf_tensor *t = convert_run_stored(r, weight);
            uint8_t *wanted = malloc(t->size);
            assert_non_null(wanted);
            bc_block_from_floats(bp, bc_kernels_best(), m.values[9], t->n_elements / bp->block,
                                 wanted);
            assert_memory_equal(t->data, wanted, t->size);
            free(wanted);
            const struct bitconv_converted_tensor *c = convert_run_tensor(r, weight);
            assert_string_equal(c->how, "by block");
            assert_string_equal(c->fingerprint, "");
            assert_true(c->relative_error > 0.3 && c->relative_error < 0.7);
            assert_true(c->scale == 0.0f);
            assert_string_equal(r->result->fingerprint, "");
            check_file(r, "differing blocks", BITCONV_NOT_RUN);
            check_untold(r);
            r->options.plain = !r->options.plain;
        }
        r->options.plain = false;
        r->options.quant = NULL;
        llama_model_free(&m);
    }
}

/* Ternary weights come out of it as they would without, but for weights without zeros in Q1_0. */
static void ternary_weights_by_block(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < 3; i++) {
        struct llama_model m;
        struct bc_buf plain = {0}, by_block = {0};
        make(r, &m, inexact);
        convert_run_accept(r, packs[i]);
        convert_run_file(r->out, &plain);
        r->options.quant = "block";
        convert_run_accept(r, packs[i]);
        convert_run_file(r->out, &by_block);
        assert_int_equal(plain.size, by_block.size);
        assert_memory_equal(plain.data, by_block.data, plain.size);
        check_file(r, "blocks", BITCONV_PASSED);
        r->options.quant = NULL;
        bc_buf_release(&plain);
        bc_buf_release(&by_block);
        llama_model_free(&m);
    }
}

/* A magnitude per row needs no option where the pack can hold it. */
static void ternary_in_each_row(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m;
    make(r, &m, by_row);
    for (size_t i = 0; i < 3; i++) {
        convert_run_accept(r, packs[i]);
        const struct bitconv_converted_tensor *c = convert_run_tensor(r, weight);
        assert_string_equal(c->how, "by block");
        assert_true(c->relative_error < 1e-3);
        check_file(r, "differing blocks", BITCONV_NOT_RUN);
    }
    r->options.scale_tensor = true;
    convert_run_refuse(r, "tq2_0", BITCONV_E_UNSUPPORTED, "one scale per row");
    r->options.scale_tensor = false;
    convert_run_refuse(r, "q1_0", BITCONV_E_UNSUPPORTED, "one scale per row");
    convert_run_refuse(r, "bitcos", BITCONV_E_UNSUPPORTED, "one scale per row");
    r->options.quant = "absmean";
    convert_run_accept(r, "tq2_0");
    assert_string_equal(convert_run_tensor(r, weight)->how, "forced absmean");
    check_file(r, "blocks", BITCONV_PASSED);
    llama_model_free(&m);
}

/* Rows that are no whole blocks keep their stored values under --quant block. */
static void misfits_by_block(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 256, 320);
    for (uint64_t i = 0; i < 256 * 320; i++)
        m.values[10][i] = (float)(i % 97) / 128.0f;
    llama_model_write(r, &m, 256, 320);
    r->options.target = NULL;
    r->options.quant = "block";
    r->options.on_misfit = "f16";
    convert_run_accept(r, "tq2_0");
    assert_true(convert_run_tensor(r, "blk.0.ffn_down.weight")->misfit);
    assert_null(convert_run_tensor(r, "blk.0.ffn_down.weight")->how);
    assert_true(convert_run_value(r, "blk.0.ffn_down.weight", 5) == 5.0f / 128.0f);
    check_file(r, "blocks", BITCONV_PASSED);
    llama_model_free(&m);
}

/* Where nothing fits, the types of mainline's converter give the file that it gives: all F16, with the
 * file_type of the type that was asked for. Others are refused (test_convert_shapes.c). */
static void files_of_misfits_alone_are_as_mainline_writes_them(void **state)
{
    static const struct {
        const char *outtype;
        uint64_t file_type;
    } cases[] = {{"tq1_0", 36}, {"tq2_0", 37}};
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    llama_model_make(r, &m, 128, 320);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bitconv_verify_options o = {.source = r->model};
        struct verify_run v = {.status = BITCONV_OK};
        uint64_t file_type = 0;
        r->options.target = NULL;
        r->options.on_misfit = NULL;
        convert_run_refuse(r, cases[i].outtype, BITCONV_E_UNSUPPORTED, "misfit");
        r->options.on_misfit = "f16";
        convert_run_accept(r, cases[i].outtype);
        assert_true(convert_run_said(r, "none of the tensors fits"));
        assert_string_equal(convert_run_stored(r, weight)->type_name, "F16");
        assert_true(bitconv_gguf_value_u64(bitconv_gguf_find_key(r->gguf, "general.file_type"),
                                           &file_type));
        assert_int_equal(file_type, cases[i].file_type);
        verify_run(&v, r->result->output, &o);
        if (!verify_run_ok(&v)) fail_msg("%s", bc_buf_str(&v.problems));
        verify_run_release(&v);
    }
    llama_model_free(&m);
}

/* ---- misfits of values ---- */

static float tiny(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)i;
    (void)cols;
    return t == 9 ? 1e-9f * sign(rng) : 0.5f * sign(rng);
}

static float huge(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)i;
    (void)cols;
    return t == 9 ? 1e6f * sign(rng) : 0.5f * sign(rng);
}

static float one_zero(size_t t, uint64_t i, uint64_t cols, uint64_t *rng)
{
    (void)cols;
    return t == 9 && i == 256 * 70 + 3 ? 0.0f : 0.5f * sign(rng);
}

static void scales_beyond_float16(void **state)
{
    static const struct {
        value_at *value;
        const char *text;
    } cases[] = {{tiny, "its scale 1e-09 is 0 as a float16"},
                 {huge, "its scale 1e+06 is infinite as a float16"}};
    struct convert_run *r = *state;
    for (size_t i = 0; i < 2; i++) {
        struct llama_model m;
        make(r, &m, cases[i].value);
        convert_run_refuse(r, "tq1_0", BITCONV_E_UNSUPPORTED, cases[i].text);
        r->options.on_misfit = "f16"; /* is no better */
        convert_run_refuse(r, "tq1_0", BITCONV_E_UNSUPPORTED, "beyond the range of F16");
        r->options.on_misfit = "f32";
        convert_run_accept(r, "tq1_0");
        assert_string_equal(convert_run_tensor(r, weight)->type, "F32");
        check_file(r, "blocks", BITCONV_PASSED);
        r->options.on_misfit = NULL;
        r->options.scale_tensor = true;
        convert_run_accept(r, "tq1_0");
        check_file(r, "scale tensor", BITCONV_PASSED);
        r->options.scale_tensor = false;
        llama_model_free(&m);
    }
}

/* Quantizing by block refuses what would be infinite, and writes what vanishes as mainline does. */
static void blocks_beyond_float16(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m;
    make(r, &m, huge);
    r->options.quant = "block";
    convert_run_refuse(r, "q2_0", BITCONV_E_UNSUPPORTED, "beyond the range of Q2_0");
    m.values[9][0] = NAN;
    llama_model_write(r, &m, HIDDEN, FF);
    convert_run_refuse(r, "q2_0", BITCONV_E_UNSUPPORTED, "is NaN");
    llama_model_free(&m);
}

static void q1_0_without_zeros_only(void **state)
{
    struct convert_run *r = *state;
    for (int beside = 0; beside < 2; beside++) {
        struct llama_model m;
        make(r, &m, one_zero);
        r->options.scale_tensor = beside != 0;
        convert_run_refuse(r, "q1_0", BITCONV_E_UNSUPPORTED,
                           "Q1_0 holds no zeros, the trit in row 70, column 3 is the first");
        r->options.on_misfit = "f16";
        convert_run_accept(r, "q1_0");
        assert_true(convert_run_tensor(r, weight)->misfit);
        assert_null(bitconv_gguf_find_tensor(r->gguf, scale_name));
        check_file(r, beside ? "scale tensor" : "blocks", BITCONV_PASSED);
        r->options.on_misfit = NULL;
        llama_model_free(&m);
    }
}

/* ---- experts ---- */

static void experts(void **state)
{
    static const char stack[] = "blk.0.ffn_up_exps.weight", beside[] = "blk.0.ffn_up_exps.scale";
    struct convert_run *r = *state;
    char fingerprint[33];
    convert_run_model(r, "mixtral", NULL, 0);
    r->options.target = "llama.cpp";
    convert_run_accept(r, "bitcos");
    memcpy(fingerprint, r->result->fingerprint, sizeof fingerprint);
    r->options.target = NULL;
    convert_run_accept(r, "q2_0");
    const struct bc_block_pack *bp = bc_block_pack_find("q2_0");
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, stack);
    struct bc_pack_shape shape = {
        .cols = t->ne[0], .rows = t->ne[1], .slices = t->ne[2], .n = t->n_elements};
    float scales[3];
    uint64_t other;
    assert_int_equal(shape.slices, 3);
    assert_int_equal(bc_block_slice_scales(bp, &shape, t->data, scales, &other),
                     BC_BLOCKS_ONE_SCALE);
    assert_true(scales[0] != scales[1] && scales[1] != scales[2]);
    assert_true(scales[0] == bc_block_rounded_scale(convert_run_tensor(r, stack)->scale));
    check_file(r, "blocks", BITCONV_PASSED);

    r->options.scale_tensor = true;
    convert_run_accept(r, "q2_0");
    assert_int_equal(convert_run_stored(r, beside)->n_elements, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(bc_block_rounded_scale(convert_run_value(r, beside, i)) == scales[i]);
    assert_string_equal(r->result->fingerprint, fingerprint);
    check_file(r, "scale tensor", BITCONV_PASSED);
}

/* ---- targets ---- */

/* llama.cpp's conventions, but for models with norms in front of the projections. */
static void targets(void **state)
{
    static const struct {
        const char *fixture, *target;
    } cases[] = {{"llama-ternary", "llama.cpp"},
                 {"bitnet", "llama.cpp"},
                 {"bitnet-1bitllm", "llama.cpp"},
                 {"qwen3-embed", "bitnet"},
                 {"gemma3-embed", "bitnet"}};
    struct convert_run *r = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        convert_run_model(r, cases[i].fixture, NULL, 0);
        for (int beside = 0; beside < 2; beside++) {
            r->options.scale_tensor = beside != 0;
            convert_run_accept(r, "q2_0");
            assert_string_equal(r->result->target, cases[i].target);
            check_file(r, beside ? "scale tensor" : "blocks", BITCONV_PASSED);
        }
    }
}

/* ---- options ---- */

static void options(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m;
    make(r, &m, exact);
    r->options.scale_tensor = true;
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--scale-tensor: applies to packs with a scale");
    convert_run_refuse(r, "f16", BITCONV_E_ARG, "not to f16");
    r->options.quant = "block";
    convert_run_refuse(r, "tq2_0", BITCONV_E_ARG, "choose one of the two");
    r->options.scale_tensor = false;
    convert_run_refuse(r, "bitcos", BITCONV_E_ARG, "--quant block: applies to packs");
    r->options.quant = NULL;
    r->options.target = "bitnet"; /* asked for by name */
    convert_run_accept(r, "q2_0");
    assert_string_equal(r->result->target, "bitnet");
    check_file(r, "blocks", BITCONV_PASSED);
    r->options.plain = true;
    convert_run_accept(r, "q2_0");
    assert_null(bitconv_gguf_find_key(r->gguf, "bitconv.tensor.name"));
    assert_string_equal(bitconv_dialect_name(bitconv_gguf_dialect(r->gguf)), "upstream");
    check_file(r, "blocks", BITCONV_PASSED);
    llama_model_free(&m);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(scales_in_the_blocks),
        TEST(rounded_scales),
        TEST(scales_beside),
        TEST(inspected),
        TEST(compared),
        TEST(quantized_by_block),
        TEST(ternary_weights_by_block),
        TEST(ternary_in_each_row),
        TEST(misfits_by_block),
        TEST(files_of_misfits_alone_are_as_mainline_writes_them),
        TEST(scales_beyond_float16),
        TEST(blocks_beyond_float16),
        TEST(q1_0_without_zeros_only),
        TEST(experts),
        TEST(targets),
        TEST(options),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
