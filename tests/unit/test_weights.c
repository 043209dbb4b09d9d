/* SPDX-License-Identifier: MIT
 * Values, trits and scales of output tensors, against hand-made sources and a second, plain way to
 * compute them. */
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
#include "base/mem.h"
#include "model/weights.h"
#include "support/rng.h"

enum { MAX_SOURCES = 4, MAX_DIMS = 2 };

/* A weight with its sources in memory. */
struct made {
    struct bc_weight w;
    struct bc_model model;
    struct bc_source sources[MAX_SOURCES];
    struct bitconv_tensor tensors[MAX_SOURCES], scales[MAX_SOURCES];
    uint64_t shapes[MAX_SOURCES][MAX_DIMS];
    struct bc_buf data[MAX_SOURCES], scale_data[MAX_SOURCES];
    struct bc_weight_options options;
    struct bc_ternary decision;
    struct bitconv_error err;
    struct bc_buf messages;
};

static void collect(void *user, enum bitconv_severity severity, const char *text)
{
    bc_buf_printf(user, "%d %s\n", (int)severity, text);
}

/* A linear weight of cols x rows per source, in the output's order. */
static void make(struct made *m, uint64_t cols, uint64_t rows, uint32_t n_sources)
{
    memset(m, 0, sizeof *m);
    m->w = (struct bc_weight){.name = "blk.0.ffn_up.weight",
                              .role = BC_ROLE_LINEAR,
                              .n_dims = n_sources > 1 ? 3 : 2,
                              .ne = {cols, rows, n_sources, 1},
                              .sources = m->sources,
                              .n_sources = n_sources};
}

static void put_value(struct bc_buf *buf, enum bitconv_dtype dtype, float value)
{
    uint8_t half[2];
    if (dtype == BITCONV_F32) {
        bc_buf_f32(buf, value);
    } else if (dtype == BITCONV_U8 || dtype == BITCONV_I8) {
        bc_buf_u8(buf, (uint8_t)(int)value);
    } else {
        bc_put_u16(half, dtype == BITCONV_F16 ? bc_f32_to_f16(value) : bc_f32_to_bf16(value));
        bc_buf_append(buf, half, sizeof half);
    }
}

/* Sets source i to a tensor of rows x cols. */
static void set_source(struct made *m, uint32_t i, enum bitconv_dtype dtype, uint64_t rows,
                       uint64_t cols, const float *values)
{
    struct bitconv_tensor *t = &m->tensors[i];
    bc_buf_clear(&m->data[i]);
    for (uint64_t j = 0; j < rows * cols; j++)
        put_value(&m->data[i], dtype, values[j]);
    assert_false(m->data[i].failed);
    m->shapes[i][0] = rows;
    m->shapes[i][1] = cols;
    *t = (struct bitconv_tensor){.name = "layers.0.mlp.up_proj.weight",
                                 .dtype = dtype,
                                 .n_dims = 2,
                                 .shape = m->shapes[i],
                                 .n_elements = rows * cols,
                                 .data = m->data[i].data,
                                 .size = m->data[i].size,
                                 .file = "model.safetensors",
                                 .file_offset = 1000};
    m->sources[i].tensor = t;
}

static void set_scale(struct made *m, uint32_t i, enum bitconv_dtype dtype, const float *values,
                      uint64_t n)
{
    struct bitconv_tensor *t = &m->scales[i];
    bc_buf_clear(&m->scale_data[i]);
    for (uint64_t j = 0; j < n; j++)
        put_value(&m->scale_data[i], dtype, values[j]);
    *t = (struct bitconv_tensor){.name = "layers.0.mlp.up_proj.weight_scale",
                                 .dtype = dtype,
                                 .n_elements = n,
                                 .data = m->scale_data[i].data,
                                 .size = m->scale_data[i].size,
                                 .file = "model.safetensors"};
    m->sources[i].scale = t;
}

static void release(struct made *m)
{
    for (size_t i = 0; i < MAX_SOURCES; i++) {
        bc_buf_release(&m->data[i]);
        bc_buf_release(&m->scale_data[i]);
    }
    bc_ternary_release(&m->decision);
    bc_buf_release(&m->messages);
}

static enum bitconv_status decide(struct made *m)
{
    const struct bitconv_sink sink = {.message = collect, .user = &m->messages};
    bc_ternary_release(&m->decision);
    bc_buf_clear(&m->messages);
    m->err = (struct bitconv_error){.status = BITCONV_OK};
    return bc_ternary_decide(&m->model, &m->w, &m->options, bc_kernels_best(), NULL, &sink,
                             &m->decision, &m->err);
}

static void refuse(struct made *m, enum bitconv_status status, const char *text)
{
    assert_int_equal(decide(m), status);
    if (strstr(m->err.text, text) == NULL) fail_msg("'%s' lacks '%s'", m->err.text, text);
    assert_non_null(strstr(m->err.text, "model.safetensors: layers.0.mlp.up_proj.weight"));
    assert_null(m->decision.scales);
}

static void accept(struct made *m)
{
    if (decide(m) != BITCONV_OK) fail_msg("%s", m->err.text);
}

static void read_f32(struct made *m, uint64_t first, uint64_t n, float *dst)
{
    const enum bitconv_status status =
        bc_weight_f32_at(&m->model, &m->w, &m->options, bc_kernels_best(), first, n, dst, &m->err);
    if (status != BITCONV_OK) fail_msg("%s", m->err.text);
}

static void read_trits(struct made *m, uint64_t first, uint64_t n, int8_t *dst)
{
    const enum bitconv_status status =
        bc_weight_trits_at(&m->model, &m->w, &m->decision, &m->options, bc_kernels_best(), first, n,
                           dst, NULL, &m->err);
    if (status != BITCONV_OK) fail_msg("%s", m->err.text);
}

static void expect_f32(struct made *m, const float *wanted, size_t n)
{
    float got[64];
    assert_true(n <= 64);
    read_f32(m, 0, n, got);
    for (size_t i = 0; i < n; i++)
        if (bc_f32_bits(got[i]) != bc_f32_bits(wanted[i]))
            fail_msg("value %zu: %g instead of %g", i, (double)got[i], (double)wanted[i]);
}

static void expect_trits(struct made *m, const int8_t *wanted, size_t n)
{
    int8_t got[64];
    assert_true(n <= 64);
    read_trits(m, 0, n, got);
    for (size_t i = 0; i < n; i++)
        if (got[i] != wanted[i]) fail_msg("trit %zu: %d instead of %d", i, got[i], wanted[i]);
}

/* ---- float values ---- */

static void stored_values_are_widened(void **state)
{
    static const float values[6] = {1.5f, -0.0f, 65504.0f, 0x1p-24f, -3.0f, 0.25f};
    static const enum bitconv_dtype dtypes[] = {BITCONV_F32, BITCONV_F16};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct made m;
        make(&m, 3, 2, 1);
        set_source(&m, 0, dtypes[i], 2, 3, values);
        expect_f32(&m, values, 6);
        assert_true(bc_weight_is_plain_copy(&m.w));
        release(&m);
    }
}

static void one_is_added_in_float32(void **state)
{
    /* bf16 0.00390625 + 1 is not a bf16: the sum must not be rounded to the source's type. */
    static const float values[3] = {0.25f, 0.00390625f, -1.0f};
    static const float wanted[3] = {1.25f, 1.00390625f, 0.0f};
    struct made m;
    (void)state;
    make(&m, 3, 1, 1);
    m.w.n_dims = 1;
    m.w.add_one = true;
    set_source(&m, 0, BITCONV_BF16, 1, 3, values);
    expect_f32(&m, wanted, 3);
    assert_false(bc_weight_is_plain_copy(&m.w));
    release(&m);
}

static void generated_values_have_no_source(void **state)
{
    static const float factors[4] = {1.0f, 2.5f, 8.0f, 8.0f};
    struct made m;
    (void)state;
    make(&m, 4, 1, 1);
    m.w.n_dims = 1;
    m.w.n_sources = 0;
    m.w.generated = factors;
    assert_int_equal(bc_weight_check(&m.w, &m.err), BITCONV_OK);
    expect_f32(&m, factors, 4);
    assert_false(bc_weight_is_plain_copy(&m.w));
    release(&m);
}

/* Row r of a head is row (r % 2) * half + r / 2 of the checkpoint. */
static void rows_are_permuted_per_head(void **state)
{
    /* Two heads of four rows, two columns; a value is 10 * row + column. */
    static const uint64_t from[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    float values[16], wanted[16];
    struct made m;
    (void)state;
    for (uint64_t r = 0; r < 8; r++)
        for (uint64_t c = 0; c < 2; c++) {
            values[2 * r + c] = (float)(10 * r + c);
            wanted[2 * r + c] = (float)(10 * from[r] + c);
        }
    make(&m, 2, 8, 1);
    m.w.permute_heads = 2;
    set_source(&m, 0, BITCONV_F32, 8, 2, values);
    expect_f32(&m, wanted, 16);
    /* A bias of q is permuted the same way. */
    for (uint64_t r = 0; r < 8; r++) {
        values[r] = (float)r;
        wanted[r] = (float)from[r];
    }
    m.w.n_dims = 1;
    m.w.ne[0] = 8;
    m.w.ne[1] = 1;
    set_source(&m, 0, BITCONV_F32, 1, 8, values);
    expect_f32(&m, wanted, 8);
    /* One head for k: all eight rows belong together. */
    static const uint64_t one_head[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    m.w.permute_heads = 1;
    for (uint64_t r = 0; r < 8; r++)
        wanted[r] = (float)one_head[r];
    expect_f32(&m, wanted, 8);
    release(&m);
}

static void experts_are_stacked(void **state)
{
    static const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4] = {9, 10, 11, 12};
    static const float wanted[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    float part[4];
    struct made m;
    (void)state;
    make(&m, 2, 2, 3);
    set_source(&m, 0, BITCONV_BF16, 2, 2, a);
    set_source(&m, 1, BITCONV_BF16, 2, 2, b);
    set_source(&m, 2, BITCONV_BF16, 2, 2, c);
    expect_f32(&m, wanted, 12);
    /* Values count over all slices: 6 to 9 are the last row of b and the first of c. */
    assert_int_equal(
        bc_weight_f32_at(&m.model, &m.w, &m.options, bc_kernels_best(), 6, 4, part, &m.err),
        BITCONV_OK);
    assert_memory_equal(part, wanted + 6, sizeof part);
    assert_int_equal(
        bc_weight_f32_at(&m.model, &m.w, &m.options, bc_kernels_best(), 10, 4, part, &m.err),
        BITCONV_E_BUG);
    release(&m);
}

static void shapes_that_do_not_agree_are_a_bug(void **state)
{
    static const float values[8] = {0};
    struct made m;
    (void)state;
    make(&m, 4, 2, 1);
    set_source(&m, 0, BITCONV_F32, 1, 4, values);
    assert_int_equal(bc_weight_check(&m.w, &m.err), BITCONV_E_BUG);
    set_source(&m, 0, BITCONV_F32, 2, 4, values);
    assert_int_equal(bc_weight_check(&m.w, NULL), BITCONV_OK);
    m.w.permute_heads = 2; /* heads of one row cannot be halved */
    assert_int_equal(bc_weight_check(&m.w, NULL), BITCONV_E_UNSUPPORTED);
    release(&m);
}

/* ---- packed sources ---- */

static void packed_rows_lie_in_four_groups(void **state)
{
    /* Eight rows of one column, -1 0 1 -1 0 1 -1 0, are the bytes 18 61 (field case 10). */
    static const float bytes[2] = {0x18, 0x61};
    static const int8_t wanted[8] = {-1, 0, 1, -1, 0, 1, -1, 0};
    static const float scale = 2.0f;
    struct made m;
    (void)state;
    make(&m, 1, 8, 1);
    m.w.packed = true;
    m.model.training = BC_TRAINING_OFFLINE;
    set_source(&m, 0, BITCONV_U8, 2, 1, bytes);
    set_scale(&m, 0, BITCONV_BF16, &scale, 1);
    accept(&m);
    assert_int_equal(m.decision.how, BC_HOW_OFFLINE);
    expect_trits(&m, wanted, 8);
    assert_float_equal(m.decision.scales[0], 2.0f, 0.0f);
    expect_f32(&m, (const float[]){-2, 0, 2, -2, 0, 2, -2, 0}, 8);
    /* linear_class bitlinear stores the inverse of the multiplier. */
    m.model.scale_divides = true;
    accept(&m);
    assert_float_equal(m.decision.scales[0], 0.5f, 0.0f);
    assert_float_equal(m.decision.stored[0], 2.0f, 0.0f);
    expect_f32(&m, (const float[]){-0.5f, 0, 0.5f, -0.5f, 0, 0.5f, -0.5f, 0}, 8);
    release(&m);
}

static void rows_that_fill_up_are_cropped(void **state)
{
    /* Six rows, 1 0 -1 1 1 0, in two byte rows; rows 6 and 7 do not exist and may hold code 3. */
    static const int8_t wanted[6] = {1, 0, -1, 1, 1, 0};
    static const float scale = 1.0f;
    float bytes[2] = {0, 0};
    struct made m;
    (void)state;
    for (int r = 0; r < 6; r++)
        bytes[r % 2] += (float)((wanted[r] + 1) << 2 * (r / 2));
    bytes[0] += 3 << 6;
    bytes[1] += 3 << 6;
    make(&m, 1, 6, 1);
    m.w.packed = true;
    set_source(&m, 0, BITCONV_U8, 2, 1, bytes);
    set_scale(&m, 0, BITCONV_F32, &scale, 1);
    accept(&m);
    expect_trits(&m, wanted, 6);
    release(&m);
}

static void code_3_is_refused_with_its_place(void **state)
{
    /* Eight rows of three columns; row 5 is group 2 of byte row 1. */
    static const float scale = 1.0f;
    float bytes[6] = {0x55, 0x55, 0x55, 0x55, 0x55, 0x55};
    struct made m;
    (void)state;
    bytes[5] = 0x55 | 3 << 4;
    make(&m, 3, 8, 1);
    m.w.packed = true;
    set_source(&m, 0, BITCONV_U8, 2, 3, bytes);
    set_scale(&m, 0, BITCONV_F32, &scale, 1);
    refuse(&m, BITCONV_E_CORRUPT, "offset 1005");
    assert_non_null(strstr(m.err.text, "row 5, column 2"));
    assert_int_equal(m.err.offset, 1005);
    release(&m);
}

static void bad_scales_are_refused(void **state)
{
    static const float bytes[1] = {0x55};
    static const float bad[] = {0.0f, -1.0f, NAN, INFINITY, 1e-45f};
    static const float two[2] = {1.0f, 1.0f};
    struct made m;
    (void)state;
    make(&m, 1, 4, 1);
    m.w.packed = true;
    m.model.scale_divides = true; /* so that a scale without a finite inverse is bad too */
    set_source(&m, 0, BITCONV_U8, 1, 1, bytes);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set_scale(&m, 0, BITCONV_F32, &bad[i], 1);
        refuse(&m, BITCONV_E_CORRUPT, "weight_scale: the scale is");
    }
    set_scale(&m, 0, BITCONV_F32, two, 2);
    refuse(&m, BITCONV_E_UNSUPPORTED, "2 scales, one was expected");
    set_scale(&m, 0, BITCONV_U8, two, 1);
    refuse(&m, BITCONV_E_UNSUPPORTED, "type U8");
    release(&m);
}

static void unpacked_trits_may_have_a_scale(void **state)
{
    static const float trits[4] = {-1, 0, 1, 1}, others[4] = {-1, 0, 0.5f, 1};
    static const float scale = 3.0f;
    struct made m;
    (void)state;
    make(&m, 4, 1, 1);
    set_scale(&m, 0, BITCONV_F32, &scale, 1);
    set_source(&m, 0, BITCONV_BF16, 1, 4, trits);
    accept(&m);
    assert_int_equal(m.decision.how, BC_HOW_OFFLINE);
    expect_f32(&m, (const float[]){-3, 0, 3, 3}, 4);
    set_source(&m, 0, BITCONV_BF16, 1, 4, others);
    refuse(&m, BITCONV_E_UNSUPPORTED, "not only -1, 0 and 1");
    release(&m);
}

/* ---- float sources ---- */

static void online_weights_get_absmean(void **state)
{
    /* mean 1: 1.5 0.5 1 1 -> 1 0 1 1, half to even (field case 11). */
    static const float values[4] = {1.5f, 0.5f, -1, 1};
    struct made m;
    (void)state;
    make(&m, 4, 1, 1);
    m.model.training = BC_TRAINING_ONLINE;
    set_source(&m, 0, BITCONV_BF16, 1, 4, values);
    accept(&m);
    assert_int_equal(m.decision.how, BC_HOW_ONLINE);
    assert_float_equal(m.decision.scales[0], 1.0f, 0.0f);
    assert_null(m.decision.stored);
    expect_trits(&m, (const int8_t[]){1, 0, -1, 1}, 4);
    assert_int_equal(m.messages.size, 0);
    release(&m);
}

static void online_ternary_weights_are_named(void **state)
{
    static const float values[4] = {0.5f, 0, -0.5f, 0}, full[4] = {0.5f, 0.5f, -0.5f, 0.5f};
    static const enum bitconv_dtype dtypes[] = {BITCONV_F32, BITCONV_F16, BITCONV_BF16};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct made m;
        make(&m, 4, 1, 1);
        m.model.training = BC_TRAINING_ONLINE;
        set_source(&m, 0, dtypes[i], 1, 4, values);
        accept(&m);
        assert_float_equal(m.decision.scales[0], 0.25f, 0.0f);
        assert_float_equal(m.decision.magnitude, 0.5f, 0.0f);
        assert_non_null(strstr(bc_buf_str(&m.messages), "magnitude 0.5"));
        assert_non_null(strstr(bc_buf_str(&m.messages), "scale 0.25"));
        /* --quant baked keeps the magnitude. */
        m.options.mode = BC_QUANT_BAKED;
        accept(&m);
        assert_int_equal(m.decision.how, BC_HOW_MAGNITUDE);
        assert_float_equal(m.decision.scales[0], 0.5f, 0.0f);
        assert_int_equal(m.messages.size, 0);
        /* Without zeros both are the same number, and there is nothing to say. */
        m.options.mode = BC_QUANT_AUTO;
        set_source(&m, 0, dtypes[i], 1, 4, full);
        accept(&m);
        assert_float_equal(m.decision.scales[0], 0.5f, 0.0f);
        assert_int_equal(m.messages.size, 0);
        release(&m);
    }
}

static void plain_weights_keep_their_magnitude(void **state)
{
    static const float values[6] = {0.3f, 0, -0.3f, -0.0f, 0.3f, 0};
    struct made m;
    (void)state;
    make(&m, 6, 1, 1);
    set_source(&m, 0, BITCONV_F32, 1, 6, values);
    accept(&m);
    assert_int_equal(m.decision.how, BC_HOW_MAGNITUDE);
    assert_int_equal(bc_f32_bits(m.decision.scales[0]), bc_f32_bits(0.3f));
    expect_trits(&m, (const int8_t[]){1, 0, -1, 0, 1, 0}, 6);
    release(&m);
}

static void all_zero_weights_have_the_smallest_scale(void **state)
{
    static const enum bc_training trainings[] = {BC_TRAINING_NONE, BC_TRAINING_ONLINE,
                                                 BC_TRAINING_BAKED};
    static const float values[4] = {0, -0.0f, 0, 0};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct made m;
        make(&m, 4, 1, 1);
        m.model.training = trainings[i];
        set_source(&m, 0, BITCONV_BF16, 1, 4, values);
        accept(&m);
        assert_int_equal(m.decision.how, BC_HOW_ZERO);
        assert_int_equal(bc_f32_bits(m.decision.scales[0]), bc_f32_bits(1e-5f));
        expect_trits(&m, (const int8_t[]){0, 0, 0, 0}, 4);
        release(&m);
    }
}

static void weights_that_are_not_ternary_are_refused(void **state)
{
    static const float values[6] = {1, 2, 3, -1, 0, 2}, by_row[6] = {1, 0, -1, 2, 2, -2};
    struct made m;
    (void)state;
    make(&m, 3, 2, 1);
    set_source(&m, 0, BITCONV_F32, 2, 3, values);
    refuse(&m, BITCONV_E_UNSUPPORTED,
           "not ternary (3 distinct magnitudes) and nothing declares ternary training");
    set_source(&m, 0, BITCONV_F32, 2, 3, by_row);
    refuse(&m, BITCONV_E_UNSUPPORTED, "one scale per row");
    m.model.training = BC_TRAINING_BAKED;
    refuse(&m, BITCONV_E_UNSUPPORTED, "marked as baked");
    m.model.training = BC_TRAINING_ONLINE;
    m.options.mode = BC_QUANT_BAKED;
    refuse(&m, BITCONV_E_UNSUPPORTED, "--quant baked needs weights of one magnitude");
    /* Forced: accepted, and said. */
    m.model.training = BC_TRAINING_NONE;
    m.options.mode = BC_QUANT_ABSMEAN;
    accept(&m);
    assert_int_equal(m.decision.how, BC_HOW_FORCED);
    assert_non_null(strstr(bc_buf_str(&m.messages), "--quant absmean asks for it"));
    release(&m);
}

static void nonfinite_weights_are_refused_by_index(void **state)
{
    static const enum bc_training trainings[] = {BC_TRAINING_NONE, BC_TRAINING_ONLINE};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        float values[6] = {1, 0, -1, 1, 0, 1};
        struct made m;
        values[4] = bad[i / 2];
        make(&m, 3, 2, 1);
        m.model.training = trainings[i % 2];
        set_source(&m, 0, BITCONV_BF16, 2, 3, values);
        refuse(&m, BITCONV_E_UNSUPPORTED, "value 4 (row 1, column 1) is");
        assert_non_null(strstr(m.err.text, i < 2 ? "NaN" : "infinite"));
        m.options.zero_nonfinite = true;
        accept(&m);
        expect_trits(&m, (const int8_t[]){1, 0, -1, 1, 0, 1}, 6);
        expect_f32(&m, (const float[]){1, 0, -1, 1, 0, 1}, 6);
        release(&m);
    }
}

/* ---- stacks ---- */

static void experts_may_have_scales_of_their_own(void **state)
{
    static const float a[2] = {1, -1}, b[2] = {2, 0}, zero[2] = {0, 0};
    struct made m;
    (void)state;
    make(&m, 2, 1, 3);
    set_source(&m, 0, BITCONV_F32, 1, 2, a);
    set_source(&m, 1, BITCONV_F32, 1, 2, b);
    set_source(&m, 2, BITCONV_F32, 1, 2, a);
    accept(&m);
    assert_int_equal(m.decision.n_scales, 3);
    assert_true(m.decision.scales_differ);
    assert_float_equal(m.decision.scales[1], 2.0f, 0.0f);
    expect_trits(&m, (const int8_t[]){1, -1, 1, 0, 1, -1}, 6);
    set_source(&m, 1, BITCONV_F32, 1, 2, a);
    accept(&m);
    assert_false(m.decision.scales_differ);
    /* One expert of zeros does not make the stack all zero. */
    set_source(&m, 0, BITCONV_F32, 1, 2, zero);
    accept(&m);
    assert_int_equal(m.decision.how, BC_HOW_MAGNITUDE);
    expect_trits(&m, (const int8_t[]){0, 0, 1, -1, 1, -1}, 6);
    /* Some with a weight_scale and some without: nobody knows what that means. */
    set_source(&m, 0, BITCONV_F32, 1, 2, a);
    set_scale(&m, 1, BITCONV_F32, a, 1);
    assert_int_equal(decide(&m), BITCONV_E_UNSUPPORTED);
    release(&m);
}

/* ---- losses ---- */

static void loss_is_what_the_trits_leave_out(void **state)
{
    enum { N = 3000 };
    static float values[N];
    static int8_t trits[N];
    struct bc_trit_loss loss = {.wants_minus_zeros = true};
    double lost = 0, total = 0;
    uint64_t seed = 7, n_minus_zero = 0;
    struct made m;
    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = (float)((double)rng_below(&seed, 2001) / 1000.0 - 1.0);
    make(&m, N / 2, 2, 1);
    m.model.training = BC_TRAINING_ONLINE;
    set_source(&m, 0, BITCONV_F32, 2, N / 2, values);
    accept(&m);
    assert_int_equal(bc_weight_trits_at(&m.model, &m.w, &m.decision, &m.options, bc_kernels_best(),
                                        0, N, trits, &loss, &m.err),
                     BITCONV_OK);
    for (size_t i = 0; i < N; i++) {
        const double d = (double)values[i] - (double)trits[i] * (double)m.decision.scales[0];
        lost += d * d;
        total += (double)values[i] * (double)values[i];
        n_minus_zero += trits[i] == 0 && signbit(values[i]);
    }
    assert_true(fabs(loss.lost - lost) < 1e-5 * lost);
    assert_true(fabs(loss.total - total) < 1e-5 * total);
    assert_int_equal(loss.n_minus_zero, n_minus_zero);
    assert_true(n_minus_zero > 0);
    release(&m);
}

/* ---- any range, any row of kernels ---- */

/* A packed, permuted stack: value (slice, row, column) found the long way. */
static int8_t trit_the_long_way(const struct made *m, uint64_t flat)
{
    const uint64_t cols = m->w.ne[0], rows = m->w.ne[1], byte_rows = (rows + 3) / 4;
    const uint64_t slice = flat / (cols * rows), row = flat / cols % rows, col = flat % cols;
    const uint64_t head = rows / m->w.permute_heads, r = row % head;
    const uint64_t from = row / head * head + (r % 2 == 0 ? r / 2 : head / 2 + r / 2);
    const uint8_t byte = m->data[slice].data[from % byte_rows * cols + col];
    return (int8_t)((byte >> 2 * (from / byte_rows) & 3) - 1);
}

static void any_range_gives_the_same_values(void **state)
{
    enum { COLS = 37, ROWS = 24, SLICES = 3, N = COLS * ROWS * SLICES, BYTES = COLS * ROWS / 4 };
    static float bytes[BYTES];
    static int8_t whole[N], part[N];
    const float scale = 0.5f;
    uint64_t seed = 11;
    struct made m;
    (void)state;
    make(&m, COLS, ROWS, SLICES);
    m.w.packed = true;
    m.w.permute_heads = 3;
    for (uint32_t s = 0; s < SLICES; s++) {
        for (size_t i = 0; i < BYTES; i++) {
            unsigned byte = 0;
            for (unsigned shift = 0; shift < 8; shift += 2)
                byte |= (unsigned)rng_below(&seed, 3) << shift;
            bytes[i] = (float)byte;
        }
        set_source(&m, s, BITCONV_U8, ROWS / 4, COLS, bytes);
        set_scale(&m, s, BITCONV_F32, &scale, 1);
    }
    accept(&m);
    read_trits(&m, 0, N, whole);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(whole[i], trit_the_long_way(&m, i));
    for (int round = 0; round < 500; round++) {
        const uint64_t first = rng_below(&seed, N + 1);
        const uint64_t n = rng_below(&seed, N - first + 1);
        float values[16];
        read_trits(&m, first, n, part);
        assert_memory_equal(part, whole + first, (size_t)n);
        if (n < 16) continue;
        read_f32(&m, first, 16, values);
        for (size_t i = 0; i < 16; i++)
            assert_float_equal(values[i], 0.5f * (float)whole[first + i], 0.0f);
    }
    assert_int_equal(bc_weight_trits_at(&m.model, &m.w, &m.decision, &m.options, bc_kernels_best(),
                                        N, 1, part, NULL, &m.err),
                     BITCONV_E_BUG);
    release(&m);
}

static void kernels_and_threads_do_not_matter(void **state)
{
    enum { COLS = 515, ROWS = 300, N = COLS * ROWS };
    float *values = malloc(N * sizeof *values);
    int8_t *first = malloc(N), *other = malloc(N);
    uint64_t seed = 13;
    struct bc_pool *pool = NULL;
    struct made m;
    (void)state;
    assert_non_null(values);
    assert_non_null(first);
    assert_non_null(other);
    assert_int_equal(bc_pool_new(3, &pool, NULL), BITCONV_OK);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)((double)rng_below(&seed, 1000001) * 1e-6 - 0.5);
    make(&m, COLS, ROWS, 1);
    m.model.training = BC_TRAINING_ONLINE;
    set_source(&m, 0, BITCONV_F32, ROWS, COLS, values);
    accept(&m);
    read_trits(&m, 0, N, first);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        const struct bc_kernels *k = bc_kernels_at(i);
        struct bc_ternary d;
        assert_int_equal(bc_ternary_decide(&m.model, &m.w, &m.options, k, pool, NULL, &d, &m.err),
                         BITCONV_OK);
        assert_int_equal(bc_f32_bits(d.scales[0]), bc_f32_bits(m.decision.scales[0]));
        assert_int_equal(bc_weight_trits(&m.model, &m.w, &d, &m.options, k, 0, ROWS, other, &m.err),
                         BITCONV_OK);
        assert_memory_equal(first, other, N);
        bc_ternary_release(&d);
    }
    bc_pool_free(pool);
    free(values);
    free(first);
    free(other);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_values_are_widened),
        cmocka_unit_test(one_is_added_in_float32),
        cmocka_unit_test(generated_values_have_no_source),
        cmocka_unit_test(rows_are_permuted_per_head),
        cmocka_unit_test(experts_are_stacked),
        cmocka_unit_test(shapes_that_do_not_agree_are_a_bug),
        cmocka_unit_test(packed_rows_lie_in_four_groups),
        cmocka_unit_test(rows_that_fill_up_are_cropped),
        cmocka_unit_test(code_3_is_refused_with_its_place),
        cmocka_unit_test(bad_scales_are_refused),
        cmocka_unit_test(unpacked_trits_may_have_a_scale),
        cmocka_unit_test(online_weights_get_absmean),
        cmocka_unit_test(online_ternary_weights_are_named),
        cmocka_unit_test(plain_weights_keep_their_magnitude),
        cmocka_unit_test(all_zero_weights_have_the_smallest_scale),
        cmocka_unit_test(weights_that_are_not_ternary_are_refused),
        cmocka_unit_test(nonfinite_weights_are_refused_by_index),
        cmocka_unit_test(experts_may_have_scales_of_their_own),
        cmocka_unit_test(loss_is_what_the_trits_leave_out),
        cmocka_unit_test(any_range_gives_the_same_values),
        cmocka_unit_test(kernels_and_threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
