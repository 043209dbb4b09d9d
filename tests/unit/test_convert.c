/* SPDX-License-Identifier: MIT
 * What a conversion puts into the file: types by family and target, values, trits and scales, its
 * own metadata; and what it refuses because of the weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "bitconv/safetensors.h"
#include "formats/fingerprint.h"
#include "support/convert_run.h"
#include "support/temp_dir.h"

enum { COLS = 128, ROWS = 128 };

/* ---- types ---- */

/* The types of linear weight, embedding, lm_head, norm. NULL: there is none in that fixture. */
struct type_case {
    const char *fixture, *target, *outtype;
    const char *linear, *embed, *output, *norm;
};

static const struct type_case type_cases[] = {
    {"qwen3-embed", "bitnet", "f32", "F32", "F32", NULL, "F32"},
    {"qwen3-embed", "bitnet", "f16", "F16", "F16", NULL, "F16"},
    {"qwen3-embed", "bitnet", "bf16", "BF16", "BF16", NULL, "F32"},
    {"qwen3-embed", "bitnet", "i2_s", "I2_S", "F16", NULL, "F16"},
    {"gemma3-embed", "bitnet", "f16", "F16", "F16", NULL, "F16"},
    {"gemma3-embed", "bitnet", "i2_s", "I2_S", "F16", NULL, "F16"},
    {"bitnet", "bitnet", "f32", "F32", "F32", NULL, "F32"},
    {"bitnet", "bitnet", "f16", "F16", "F32", NULL, "F32"},
    {"bitnet", "bitnet", "bf16", "BF16", "F32", NULL, "F32"},
    {"bitnet", "bitnet", "i2_s", "I2_S", "F16", NULL, "F32"},
    {"llama-158", "bitnet", "f32", "F32", "F32", "F32", "F32"},
    {"llama-158", "bitnet", "f16", "F16", "F32", "F16", "F32"},
    {"llama-158", "bitnet", "bf16", "BF16", "F32", "BF16", "F32"},
    {"llama-158", "bitnet", "i2_s", "I2_S", "F16", "F16", "F32"},
    {"llama-158", "llama.cpp", "f16", "F16", "F16", "F16", "F32"},
    {"llama-158", "llama.cpp", "bf16", "BF16", "BF16", "BF16", "F32"},
};

static void expect_type(const struct convert_run *r, const char *tensor, const char *wanted)
{
    if (wanted == NULL) {
        assert_null(bitconv_gguf_find_tensor(r->gguf, tensor));
        return;
    }
    assert_string_equal(convert_run_stored(r, tensor)->type_name, wanted);
    assert_string_equal(convert_run_tensor(r, tensor)->type, wanted);
}

static void types_follow_family_target_and_outtype(void **state)
{
    struct convert_run *r = *state;
    for (size_t i = 0; i < sizeof type_cases / sizeof type_cases[0]; i++) {
        const struct type_case *c = &type_cases[i];
        convert_run_model(r, c->fixture, NULL, 0);
        r->options.target = c->target;
        convert_run_accept(r, c->outtype);
        assert_string_equal(r->result->target, c->target);
        expect_type(r, "blk.0.ffn_up.weight", c->linear);
        expect_type(r, "token_embd.weight", c->embed);
        expect_type(r, "output.weight", c->output);
        expect_type(r, "blk.0.attn_norm.weight", c->norm);
    }
}

static void file_type_and_architecture_are_stated(void **state)
{
    static const struct {
        const char *outtype;
        uint64_t file_type;
    } cases[] = {{"f32", 0}, {"f16", 1}, {"bf16", 32}, {"i2_s", 40}};
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    for (size_t i = 0; i < 4; i++) {
        uint64_t file_type;
        convert_run_accept(r, cases[i].outtype);
        assert_true(bitconv_gguf_value_u64(bitconv_gguf_find_key(r->gguf, "general.file_type"),
                                           &file_type));
        assert_int_equal(file_type, cases[i].file_type);
        assert_string_equal(r->result->architecture, "bitnet-b1.58");
        assert_int_equal(bitconv_gguf_n_findings(r->gguf), 0);
    }
}

static void moe_routers_stay_float(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "mixtral", NULL, 0);
    r->options.target = "bitnet";
    convert_run_accept(r, "f16");
    expect_type(r, "blk.0.ffn_gate_inp.weight", "F32");
    expect_type(r, "blk.0.ffn_up_exps.weight", "F16");
    assert_int_equal(convert_run_stored(r, "blk.0.ffn_up_exps.weight")->n_dims, 3);
    r->options.on_misfit = "f16";
    convert_run_accept(r, "i2_s");
    expect_type(r, "blk.0.ffn_gate_inp.weight", "F16");
    expect_type(r, "blk.0.attn_q.weight", "I2_S");
}

static void embedding_and_output_types_can_be_chosen(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "llama-158", NULL, 0);
    r->options.embd_type = "bf16";
    r->options.output_type = "f32";
    convert_run_accept(r, "i2_s");
    expect_type(r, "token_embd.weight", "BF16");
    expect_type(r, "output.weight", "F32");
    r->options.embd_type = "i2_s";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "a float type was expected");
}

static void tensors_can_be_kept_float(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet-master", NULL, 0);
    r->options.keep_regex = "ffn_down";
    convert_run_accept(r, "i2_s");
    expect_type(r, "blk.0.ffn_down.weight", "F16");
    expect_type(r, "blk.0.ffn_up.weight", "I2_S");
    assert_null(convert_run_tensor(r, "blk.0.ffn_down.weight")->how);
}

/* ---- values ---- */

/* A tensor of the committed fixture's only weight file. */
struct source {
    struct bitconv_safetensors *file;
    const struct bitconv_tensor *tensor;
};

static struct source open_source(const char *fixture, const char *name)
{
    struct source s;
    char *const dir = model_copy_source(fixture);
    char *const path = temp_dir_path(dir, "model.safetensors");
    assert_int_equal(bitconv_safetensors_open(path, &s.file, NULL), BITCONV_OK);
    s.tensor = bitconv_safetensors_find(s.file, name);
    assert_non_null(s.tensor);
    free(path);
    free(dir);
    return s;
}

static float source_value(const struct source *s, uint64_t index)
{
    const uint8_t *data = s->tensor->data;
    if (s->tensor->dtype == BITCONV_F32) return bc_get_f32(data + 4 * index);
    const uint16_t half = bc_get_u16(data + 2 * index);
    return s->tensor->dtype == BITCONV_F16 ? bc_f16_to_f32(half) : bc_bf16_to_f32(half);
}

/* The absmean of a fixture's weights: their values are integers over a power of two, so that every
 * order of summation gives this sum. */
static float plain_absmean(const struct source *s)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < s->tensor->n_elements; i++)
        sum += fabs((double)source_value(s, i));
    return (float)sum / (float)s->tensor->n_elements;
}

static int rounded(float w, float scale)
{
    const float q = rintf(w * (1.0f / scale));
    return q > 1.0f ? 1 : q < -1.0f ? -1 : (int)q;
}

static void master_weights_become_trits(void **state)
{
    struct convert_run *r = *state;
    const struct source s = open_source("bitnet-master", "model.layers.0.mlp.up_proj.weight");
    const float scale = plain_absmean(&s);
    uint64_t n_zero = 0;
    convert_run_model(r, "bitnet-master", NULL, 0);
    convert_run_accept(r, "i2_s");
    assert_int_equal(bc_f32_bits(convert_run_scale(r, "blk.0.ffn_up.weight")), bc_f32_bits(scale));
    for (uint64_t i = 0; i < COLS * ROWS; i++) {
        const int trit = rounded(source_value(&s, i), scale);
        assert_int_equal(convert_run_trit(r, "blk.0.ffn_up.weight", i), trit);
        n_zero += trit == 0;
    }
    const struct bitconv_converted_tensor *t = convert_run_tensor(r, "blk.0.ffn_up.weight");
    assert_string_equal(t->how, "absmean");
    assert_string_equal(t->pack, "i2_s");
    assert_string_equal(t->source, "model.layers.0.mlp.up_proj.weight");
    assert_true(t->zeros == (double)n_zero / (COLS * ROWS));
    assert_true(t->relative_error > 0.3 && t->relative_error < 0.8);
    assert_int_equal(t->size, COLS * ROWS / 4 + 32);
    bitconv_safetensors_close(s.file);
}

/* BitNet classes hold trit * scale in float files; zero trits are +0 also for negative weights. */
static void float_files_of_bitnet_classes_are_ternary(void **state)
{
    struct convert_run *r = *state;
    const struct source s = open_source("bitnet-master", "model.layers.1.self_attn.k_proj.weight");
    const float scale = plain_absmean(&s);
    uint64_t n_negative_zeros = 0;
    convert_run_model(r, "bitnet-master", NULL, 0);
    convert_run_accept(r, "f32");
    for (uint64_t i = 0; i < s.tensor->n_elements; i++) {
        const int trit = rounded(source_value(&s, i), scale);
        const float wanted = trit == 0 ? 0.0f : (float)trit * scale;
        const float got = convert_run_value(r, "blk.1.attn_k.weight", i);
        assert_int_equal(bc_f32_bits(got), bc_f32_bits(wanted));
        n_negative_zeros += trit == 0 && signbit(source_value(&s, i));
    }
    assert_true(n_negative_zeros > 0);
    const struct bitconv_converted_tensor *t = convert_run_tensor(r, "blk.1.attn_k.weight");
    assert_true(t->reference_differs); /* it would write -0 */
    assert_null(t->pack);
    assert_string_equal(t->how, "absmean");
    assert_string_equal(t->fingerprint, "");
    convert_run_accept(r, "f16");
    assert_true(convert_run_value(r, "blk.1.attn_k.weight", 0) ==
                bc_f16_to_f32(bc_f32_to_f16((float)rounded(source_value(&s, 0), scale) * scale)));
    bitconv_safetensors_close(s.file);
}

/* The embedding families' float files are the float baselines: stored values. */
static void float_files_of_embedding_families_are_baselines(void **state)
{
    struct convert_run *r = *state;
    const struct source s = open_source("qwen3-embed", "layers.0.mlp.gate_proj.weight");
    convert_run_model(r, "qwen3-embed", NULL, 0);
    convert_run_accept(r, "f32");
    for (uint64_t i = 0; i < s.tensor->n_elements; i++)
        assert_true(convert_run_value(r, "blk.0.ffn_gate.weight", i) == source_value(&s, i));
    assert_null(convert_run_tensor(r, "blk.0.ffn_gate.weight")->how);
    /* BF16 to BF16 is a copy of the bytes, BF16 to F16 the nearest value. */
    convert_run_accept(r, "bf16");
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, "blk.0.ffn_gate.weight");
    assert_int_equal(t->size, s.tensor->size);
    assert_memory_equal(t->data, s.tensor->data, (size_t)t->size);
    convert_run_accept(r, "f16");
    for (uint64_t i = 0; i < s.tensor->n_elements; i++)
        assert_true(convert_run_value(r, "blk.0.ffn_gate.weight", i) ==
                    bc_f16_to_f32(bc_f32_to_f16(source_value(&s, i))));
    bitconv_safetensors_close(s.file);
}

/* linear_class autobitlinear: the stored scale multiplies; absent or bitlinear: it divides. */
static void packed_weights_keep_their_scale(void **state)
{
    static const char scale_name[] = "model.layers.0.mlp.up_proj.weight_scale";
    struct convert_run *r = *state;
    const struct source w = open_source("bitnet", "model.layers.0.mlp.up_proj.weight");
    const struct source s = open_source("bitnet", scale_name);
    const float stored = source_value(&s, 0);
    assert_true(stored != 1.0f);
    for (int divides = 0; divides < 2; divides++) {
        const float scale = divides ? 1.0f / stored : stored;
        convert_run_model(r, "bitnet", NULL, 0);
        if (divides) model_copy_config(r->model, "\"autobitlinear\"", "\"bitlinear\"");
        convert_run_accept(r, "i2_s");
        assert_true(convert_run_scale(r, "blk.0.ffn_up.weight") == scale);
        for (uint64_t row = 0; row < ROWS; row++) {
            const uint8_t byte = w.tensor->data[row % (ROWS / 4) * COLS + 7];
            const int trit = (byte >> 2 * (row / (ROWS / 4)) & 3) - 1;
            assert_int_equal(convert_run_trit(r, "blk.0.ffn_up.weight", row * COLS + 7), trit);
        }
        const struct bitconv_converted_tensor *t = convert_run_tensor(r, "blk.0.ffn_up.weight");
        assert_string_equal(t->how, "offline");
        assert_true(t->stored_scale == stored && t->scale == scale);
        assert_true(t->relative_error == 0.0);
        /* BitNet's script multiplies for I2_S and divides for float files, whatever the class. */
        assert_int_equal(t->reference_differs, divides == 1);
        convert_run_accept(r, "f32");
        assert_int_equal(convert_run_tensor(r, "blk.0.ffn_up.weight")->reference_differs,
                         divides == 0);
    }
    /* The user may know better. */
    r->options.scale_convention = "multiply";
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_scale(r, "blk.0.ffn_up.weight") == stored);
    bitconv_safetensors_close(w.file);
    bitconv_safetensors_close(s.file);
}

static void llama_rows_are_permuted(void **state)
{
    /* Row r of a head of 32 is row (r % 2) * 16 + r / 2 of the checkpoint; v is left alone. */
    struct convert_run *r = *state;
    const struct source k = open_source("llama-ternary", "model.layers.0.self_attn.k_proj.weight");
    const struct source v = open_source("llama-ternary", "model.layers.0.self_attn.v_proj.weight");
    float magnitude = 0.0f;
    convert_run_model(r, "llama-ternary", NULL, 0);
    convert_run_accept(r, "f32");
    for (uint64_t row = 0; row < 64; row++) {
        const uint64_t from = row / 32 * 32 + row % 32 % 2 * 16 + row % 32 / 2;
        for (uint64_t col = 0; col < COLS; col++) {
            assert_true(convert_run_value(r, "blk.0.attn_k.weight", row * COLS + col) ==
                        source_value(&k, from * COLS + col));
            assert_true(convert_run_value(r, "blk.0.attn_v.weight", row * COLS + col) ==
                        source_value(&v, row * COLS + col));
        }
    }
    /* Plain ternary weights: the magnitude is the scale, bit for bit, not the mean. */
    for (uint64_t i = 0; magnitude == 0.0f; i++)
        magnitude = fabsf(source_value(&k, i));
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_scale(r, "blk.0.attn_k.weight") == magnitude);
    assert_string_equal(convert_run_tensor(r, "blk.0.attn_k.weight")->how, "magnitude");
    assert_true(convert_run_tensor(r, "blk.0.attn_k.weight")->reference_differs);
    bitconv_safetensors_close(k.file);
    bitconv_safetensors_close(v.file);
}

static void gemma_norms_get_their_one(void **state)
{
    struct convert_run *r = *state;
    const struct source norm = open_source("gemma3-embed", "layers.1.input_layernorm.weight");
    const struct source norm_in =
        open_source("gemma3-embed", "layers.1.self_attn.q_proj.norm.weight");
    convert_run_model(r, "gemma3-embed", NULL, 0);
    convert_run_accept(r, "f32");
    for (uint64_t i = 0; i < COLS; i++) {
        assert_true(convert_run_value(r, "blk.1.attn_norm.weight", i) ==
                    source_value(&norm, i) + 1.0f);
        assert_true(convert_run_value(r, "blk.1.attn_q_norm_in.weight", i) ==
                    source_value(&norm_in, i));
    }
    bitconv_safetensors_close(norm.file);
    bitconv_safetensors_close(norm_in.file);
}

static void rope_factors_are_generated(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "llama-158", NULL, 0);
    convert_run_accept(r, "i2_s");
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, "rope_freqs.weight");
    assert_string_equal(t->type_name, "F32");
    assert_int_equal(t->n_elements, 16);
    assert_true(convert_run_value(r, "rope_freqs.weight", 0) == 1.0f);
    assert_true(convert_run_value(r, "rope_freqs.weight", 15) == 8.0f);
    assert_true(convert_run_tensor(r, "rope_freqs.weight")->reference_differs);
    assert_string_equal(convert_run_tensor(r, "rope_freqs.weight")->source, "(generated)");
}

/* ---- things that speak against it ---- */

static const char some_weight[] = "model.layers.0.mlp.up_proj.weight";

static void nonfinite_values_anywhere_are_refused(void **state)
{
    static const char *const names[] = {"model.embed_tokens.weight", "model.norm.weight",
                                        some_weight};
    static const uint64_t rows[] = {320, 1, 128};
    struct convert_run *r = *state;
    float *values = calloc((size_t)320 * COLS, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < (size_t)320 * COLS; i++)
        values[i] = (float)(i % 3) - 1.0f;
    values[77] = NAN;
    for (size_t i = 0; i < 3; i++) {
        const bool vector = rows[i] == 1;
        const struct model_edit edit = {.name = names[i],
                                        .dtype = BITCONV_BF16,
                                        .n_dims = vector ? 1 : 2,
                                        .shape = {vector ? COLS : rows[i], COLS},
                                        .values = values};
        convert_run_model(r, "bitnet-master", &edit, 1);
        convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, names[i]);
        assert_true(convert_run_said(r, "value 77"));
        assert_true(convert_run_said(r, "NaN"));
        r->options.allow_nonfinite_zero = true;
        convert_run_accept(r, "i2_s");
        assert_true(convert_run_said(r, "warning"));
        r->options.allow_nonfinite_zero = false;
    }
    free(values);
}

static void nonfinite_values_become_zero_when_allowed(void **state)
{
    struct convert_run *r = *state;
    float values[COLS] = {1.0f, INFINITY, 2.0f};
    const struct model_edit edit = {.name = "model.norm.weight",
                                    .dtype = BITCONV_F32,
                                    .n_dims = 1,
                                    .shape = {COLS},
                                    .values = values};
    convert_run_model(r, "bitnet-master", &edit, 1);
    r->options.allow_nonfinite_zero = true;
    convert_run_accept(r, "f32");
    assert_true(convert_run_value(r, "output_norm.weight", 0) == 1.0f);
    assert_true(convert_run_value(r, "output_norm.weight", 1) == 0.0f);
    assert_true(convert_run_value(r, "output_norm.weight", 2) == 2.0f);
}

/* Weights of one magnitude take another way than masters. */
static void a_nonfinite_magnitude_is_zeroed_with_a_warning(void **state)
{
    struct convert_run *r = *state;
    float *values = calloc((size_t)128 * COLS, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < (size_t)128 * COLS; i++)
        values[i] = (float)(i % 3) - 1.0f;
    values[2] = NAN;
    const struct model_edit edit = {.name = some_weight,
                                    .dtype = BITCONV_F32,
                                    .n_dims = 2,
                                    .shape = {128, COLS},
                                    .values = values};
    convert_run_model(r, "llama-ternary", &edit, 1);
    r->options.allow_nonfinite_zero = true;
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_said(r, "warning: "));
    assert_true(convert_run_said(r, "mlp.up_proj.weight: holds NaN or Inf"));
    assert_int_equal(convert_run_trit(r, "blk.0.ffn_up.weight", 2), 0);
    assert_int_equal(convert_run_trit(r, "blk.0.ffn_up.weight", 5), 1);
    free(values);
}

static void empty_words_are_no_names(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.name = "";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--name");
    r->options.name = "bad\xff";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--name");
    r->options.name = NULL;
    r->options.pre = "";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "--pre");
}

static void values_beyond_float16_are_refused(void **state)
{
    struct convert_run *r = *state;
    float *values = calloc((size_t)320 * COLS, sizeof *values);
    assert_non_null(values);
    values[130] = 65536.0f; /* the next bfloat16 above F16's range */
    const struct model_edit edit = {.name = "embed_tokens.weight",
                                    .dtype = BITCONV_BF16,
                                    .n_dims = 2,
                                    .shape = {320, COLS},
                                    .values = values};
    convert_run_model(r, "qwen3-embed", &edit, 1);
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "embed_tokens.weight");
    assert_true(convert_run_said(r, "value 130 (row 1, column 2) is 65536"));
    assert_true(convert_run_said(r, "range of F16"));
    assert_true(convert_run_said(r, "--embd-type bf16"));
    r->options.embd_type = "bf16";
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_value(r, "token_embd.weight", 130) == 65536.0f);
    r->options.embd_type = NULL;
    /* 65504 is the largest F16; what rounds down to it is in range. */
    values[130] = -65504.0f;
    values[131] = 65519.0f;
    struct model_edit in_range = edit;
    in_range.dtype = BITCONV_F32;
    convert_run_model(r, "qwen3-embed", &in_range, 1);
    convert_run_accept(r, "f16");
    assert_true(convert_run_value(r, "token_embd.weight", 130) == -65504.0f);
    assert_true(convert_run_value(r, "token_embd.weight", 131) == 65504.0f);
    /* 65520 is halfway to 65536, and the tie goes up. */
    values[131] = 65520.0f;
    convert_run_model(r, "qwen3-embed", &in_range, 1);
    convert_run_refuse(r, "f16", BITCONV_E_UNSUPPORTED, "value 131");
    free(values);
}

static void values_that_vanish_in_float16_are_counted(void **state)
{
    struct convert_run *r = *state;
    float values[COLS] = {1.0f, 1e-8f, -1e-9f, 0.0f, 0x1p-24f};
    const struct model_edit edit = {.name = "norm.weight",
                                    .dtype = BITCONV_BF16,
                                    .n_dims = 1,
                                    .shape = {COLS},
                                    .values = values};
    convert_run_model(r, "qwen3-embed", &edit, 1);
    convert_run_accept(r, "f16");
    assert_true(convert_run_said(r, "output_norm.weight: 2 values are too small for F16"));
    assert_true(convert_run_value(r, "output_norm.weight", 4) == 0x1p-24f);
}

static void weights_that_are_not_ternary_are_refused_all_at_once(void **state)
{
    struct convert_run *r = *state;
    float *values = calloc((size_t)ROWS * COLS, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        values[i] = (float)(i % 1000) + 1.0f;
    const struct model_edit edits[] = {{.name = "model.layers.0.mlp.up_proj.weight",
                                        .dtype = BITCONV_F32,
                                        .n_dims = 2,
                                        .shape = {ROWS, COLS},
                                        .values = values},
                                       {.name = "model.layers.0.mlp.down_proj.weight",
                                        .dtype = BITCONV_F32,
                                        .n_dims = 2,
                                        .shape = {ROWS, COLS},
                                        .values = values}};
    convert_run_model(r, "llama-ternary", edits, 2);
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "1000 distinct magnitudes");
    assert_true(convert_run_said(r, "finding: "));
    assert_non_null(strstr(bc_buf_str(&r->messages), "mlp.up_proj.weight"));
    assert_non_null(strstr(bc_buf_str(&r->messages), "mlp.down_proj.weight"));
    assert_true(convert_run_said(r, "--quant absmean"));
    /* Float files multiply what is stored. */
    convert_run_accept(r, "f32");
    /* Forced: the relative error says what that costs. */
    r->options.quant = "absmean";
    convert_run_accept(r, "i2_s");
    assert_string_equal(convert_run_tensor(r, "blk.0.ffn_up.weight")->how, "forced absmean");
    assert_true(convert_run_tensor(r, "blk.0.ffn_up.weight")->relative_error > 0.1);
    free(values);
}

static void misfits_are_listed_or_stored_otherwise(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "mixtral", NULL, 0);
    r->options.target = "bitnet";
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "scale");
    assert_non_null(strstr(bc_buf_str(&r->messages), "blk.0.ffn_gate_exps.weight"));
    assert_non_null(strstr(bc_buf_str(&r->messages), "blk.0.ffn_down_exps.weight"));
    assert_non_null(strstr(bc_buf_str(&r->messages), "blk.0.ffn_up_exps.weight"));
    r->options.on_misfit = "bf16";
    convert_run_accept(r, "i2_s");
    expect_type(r, "blk.0.ffn_up_exps.weight", "BF16");
    const struct bitconv_converted_tensor *t = convert_run_tensor(r, "blk.0.ffn_up_exps.weight");
    assert_true(t->misfit);
    assert_null(t->pack);
    assert_true(convert_run_said(r, "3 tensors with 147456 parameters"));
    /* The values are those of each expert's own magnitude. */
    const struct source e1 =
        open_source("mixtral", "model.layers.0.block_sparse_moe.experts.1.w3.weight");
    for (uint64_t i = 0; i < ROWS * COLS; i++)
        assert_true(convert_run_value(r, "blk.0.ffn_up_exps.weight", ROWS * COLS + i) ==
                    source_value(&e1, i));
    bitconv_safetensors_close(e1.file);
}

static void a_file_without_the_asked_type_is_refused(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "llama-ternary", NULL, 0);
    r->options.keep_regex = ".*";
    convert_run_refuse(r, "i2_s", BITCONV_E_UNSUPPORTED, "would be i2_s");
}

/* ---- warnings ---- */

static void strange_tensors_are_warned_about(void **state)
{
    struct convert_run *r = *state;
    float *zeros = calloc((size_t)ROWS * COLS, sizeof *zeros);
    float *ones = calloc((size_t)ROWS * COLS, sizeof *ones);
    assert_non_null(zeros);
    assert_non_null(ones);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        ones[i] = -0.5f;
    const struct model_edit edits[] = {{.name = "model.layers.0.mlp.up_proj.weight",
                                        .dtype = BITCONV_BF16,
                                        .n_dims = 2,
                                        .shape = {ROWS, COLS},
                                        .values = zeros},
                                       {.name = "model.layers.0.mlp.down_proj.weight",
                                        .dtype = BITCONV_BF16,
                                        .n_dims = 2,
                                        .shape = {ROWS, COLS},
                                        .values = ones}};
    convert_run_model(r, "bitnet-master", edits, 2);
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_said(r, "blk.0.ffn_up.weight: all 16384 weights are zero"));
    assert_true(convert_run_said(r, "blk.0.ffn_down.weight: all 16384 weights are -1"));
    assert_int_equal(bc_f32_bits(convert_run_scale(r, "blk.0.ffn_up.weight")), bc_f32_bits(1e-5f));
    assert_string_equal(convert_run_tensor(r, "blk.0.ffn_up.weight")->how, "all zero");
    assert_true(convert_run_tensor(r, "blk.0.ffn_up.weight")->relative_error == 0.0);
    assert_true(convert_run_tensor(r, "blk.0.ffn_down.weight")->zeros == 0.0);
    free(zeros);
    free(ones);
}

static void online_weights_that_are_ternary_are_named(void **state)
{
    struct convert_run *r = *state;
    float *values = calloc((size_t)ROWS * COLS, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i += 2)
        values[i] = 0.25f;
    const struct model_edit edit = {.name = some_weight,
                                    .dtype = BITCONV_BF16,
                                    .n_dims = 2,
                                    .shape = {ROWS, COLS},
                                    .values = values};
    convert_run_model(r, "bitnet-master", &edit, 1);
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_said(r, "already ternary with magnitude 0.25"));
    assert_true(convert_run_said(r, "makes the scale 0.125"));
    assert_true(convert_run_scale(r, "blk.0.ffn_up.weight") == 0.125f);
    free(values);
}

/* ---- bitconv's own metadata ---- */

static const struct bitconv_gguf_value *array_key(const struct convert_run *r, const char *key,
                                                  uint64_t count)
{
    const struct bitconv_gguf_value *v = bitconv_gguf_find_key(r->gguf, key);
    assert_non_null(v);
    assert_int_equal(v->type, BITCONV_GGUF_ARRAY);
    assert_int_equal(v->count, count);
    return v;
}

static void expect_string_key(const struct convert_run *r, const char *key, const char *wanted)
{
    const char *s;
    size_t len;
    assert_true(bitconv_gguf_value_string(bitconv_gguf_find_key(r->gguf, key), &s, &len));
    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(s, wanted, len);
}

/* Recomputes a fingerprint from the file alone. */
static struct bc_hash128 fingerprint_of(const struct convert_run *r, const char *name)
{
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, name);
    const float scale = convert_run_scale(r, name);
    struct bc_fingerprint fp;
    bool all_zero = true;
    for (uint64_t i = 0; i < t->n_elements; i++)
        if (convert_run_trit(r, name, i) != 0) all_zero = false;
    assert_int_equal(bc_fingerprint_begin(&fp, t->n_dims, t->ne, &scale, 1, all_zero, NULL),
                     BITCONV_OK);
    for (uint64_t i = 0; i < t->n_elements; i++) {
        const int8_t trit = (int8_t)convert_run_trit(r, name, i);
        bc_fingerprint_trits(&fp, &trit, 1);
    }
    return bc_fingerprint_end(&fp);
}

static void expect_own_metadata(const struct convert_run *r, const char *pack, uint64_t n)
{
    const struct bitconv_gguf_value *names = array_key(r, "bitconv.tensor.name", n);
    const struct bitconv_gguf_value *packs = array_key(r, "bitconv.tensor.pack", n);
    const struct bitconv_gguf_value *prints = array_key(r, "bitconv.tensor.fingerprint", n);
    const struct bitconv_gguf_value *zeros = array_key(r, "bitconv.tensor.zeros", n);
    struct bc_named_hash *hashes = calloc(n, sizeof *hashes);
    struct bc_arena arena = {NULL};
    struct bc_hash128 whole;
    char hex[33];
    uint64_t at[3] = {0, 0, 0};
    assert_non_null(hashes);
    for (uint64_t i = 0; i < n; i++) {
        const char *s;
        size_t len;
        assert_true(bitconv_gguf_array_next_string(names, &at[0], &s, &len));
        char *name = bc_arena_strndup(&arena, s, len);
        hashes[i] = (struct bc_named_hash){name, fingerprint_of(r, name)};
        bc_hash128_hex(hashes[i].hash, hex);
        assert_true(bitconv_gguf_array_next_string(prints, &at[1], &s, &len));
        assert_int_equal(len, 32);
        assert_memory_equal(s, hex, 32);
        assert_string_equal(convert_run_tensor(r, name)->fingerprint, hex);
        assert_true(bitconv_gguf_array_next_string(packs, &at[2], &s, &len));
        assert_int_equal(len, strlen(pack));
        assert_memory_equal(s, pack, len);
        assert_true(bc_get_f32(zeros->data + 4 * i) == (float)convert_run_tensor(r, name)->zeros);
    }
    assert_int_equal(bc_fingerprint_model(hashes, n, &whole, NULL), BITCONV_OK);
    bc_hash128_hex(whole, hex);
    expect_string_key(r, "bitconv.fingerprint", hex);
    assert_string_equal(r->result->fingerprint, hex);
    bc_arena_release(&arena);
    free(hashes);
}

static void own_metadata_says_what_is_packed(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    expect_string_key(r, "bitconv.version", BITCONV_VERSION_STRING);
    expect_string_key(r, "bitconv.source", "model");
    expect_own_metadata(r, "i2_s", 14);
    const struct bitconv_gguf_value *tile = array_key(r, "bitconv.tensor.tile", 3 * 14);
    for (uint64_t i = 0; i < tile->size; i++)
        assert_int_equal(tile->data[i], 0);
    /* Nothing packed: no arrays. */
    convert_run_accept(r, "f16");
    assert_null(bitconv_gguf_find_key(r->gguf, "bitconv.fingerprint"));
    assert_non_null(bitconv_gguf_find_key(r->gguf, "bitconv.version"));
    assert_string_equal(r->result->fingerprint, "");
    /* --plain: none of it. */
    r->options.plain = true;
    convert_run_accept(r, "i2_s");
    for (size_t i = 0; i < bitconv_gguf_n_keys(r->gguf); i++)
        assert_null(strstr(bitconv_gguf_key_at(r->gguf, i)->name, "bitconv."));
    assert_int_equal(strlen(r->result->fingerprint), 32);
}

/* Packed zeros may come with any scale; the fingerprint's canonical scale is 1e-5. */
static void all_zero_packed_weights_have_the_canonical_fingerprint(void **state)
{
    struct convert_run *r = *state;
    uint8_t codes[ROWS / 4 * COLS];
    memset(codes, 0x55, sizeof codes);
    const struct model_edit edit = {.name = some_weight,
                                    .dtype = BITCONV_U8,
                                    .n_dims = 2,
                                    .shape = {ROWS / 4, COLS},
                                    .bytes = codes,
                                    .size = sizeof codes};
    convert_run_model(r, "bitnet", &edit, 1);
    convert_run_accept(r, "i2_s");
    assert_true(convert_run_scale(r, "blk.0.ffn_up.weight") > 1e-5f);
    expect_own_metadata(r, "i2_s", 14);
}

static void the_arm_layout_is_recorded(void **state)
{
    struct convert_run *r = *state;
    int8_t trits[COLS * ROWS];
    convert_run_model(r, "bitnet", NULL, 0);
    convert_run_accept(r, "i2_s");
    for (uint64_t i = 0; i < COLS * ROWS; i++)
        trits[i] = (int8_t)convert_run_trit(r, "blk.0.ffn_up.weight", i);
    const float scale = convert_run_scale(r, "blk.0.ffn_up.weight");
    char fingerprint[33];
    memcpy(fingerprint, r->result->fingerprint, sizeof fingerprint);
    r->options.i2s_layout = "64";
    convert_run_accept(r, "i2_s");
    for (uint64_t i = 0; i < COLS * ROWS; i++)
        assert_int_equal(convert_run_trit(r, "blk.0.ffn_up.weight", i), trits[i]);
    assert_true(convert_run_scale(r, "blk.0.ffn_up.weight") == scale);
    expect_own_metadata(r, "i2_s_64", 14);
    assert_string_equal(r->result->fingerprint, fingerprint); /* the same model */
    convert_run_refuse(r, "f16", BITCONV_E_ARG, "--i2s-layout");
    r->options.i2s_layout = "32";
    convert_run_refuse(r, "i2_s", BITCONV_E_ARG, "'32' is not one of: 128, 64");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(types_follow_family_target_and_outtype),
        TEST(file_type_and_architecture_are_stated),
        TEST(moe_routers_stay_float),
        TEST(embedding_and_output_types_can_be_chosen),
        TEST(tensors_can_be_kept_float),
        TEST(master_weights_become_trits),
        TEST(float_files_of_bitnet_classes_are_ternary),
        TEST(float_files_of_embedding_families_are_baselines),
        TEST(packed_weights_keep_their_scale),
        TEST(llama_rows_are_permuted),
        TEST(gemma_norms_get_their_one),
        TEST(rope_factors_are_generated),
        TEST(nonfinite_values_anywhere_are_refused),
        TEST(nonfinite_values_become_zero_when_allowed),
        TEST(a_nonfinite_magnitude_is_zeroed_with_a_warning),
        TEST(empty_words_are_no_names),
        TEST(values_beyond_float16_are_refused),
        TEST(values_that_vanish_in_float16_are_counted),
        TEST(weights_that_are_not_ternary_are_refused_all_at_once),
        TEST(misfits_are_listed_or_stored_otherwise),
        TEST(a_file_without_the_asked_type_is_refused),
        TEST(strange_tensors_are_warned_about),
        TEST(online_weights_that_are_ternary_are_named),
        TEST(own_metadata_says_what_is_packed),
        TEST(all_zero_packed_weights_have_the_canonical_fingerprint),
        TEST(the_arm_layout_is_recorded),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
