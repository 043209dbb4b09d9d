/* SPDX-License-Identifier: MIT
 * Repacking files of others, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <math.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "quant/kernels.h"
#include "support/convert_run.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

enum { COLS = 512, ROWS = 64, N = COLS * ROWS };
#define WEIGHT "blk.0.ffn_up.weight"

/* ---- making inputs ---- */

static void random_trits(uint64_t seed, size_t n, int8_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int8_t)((int)rng_below(&seed, 3) - 1);
}

/* A tensor of trits in a pack, with metadata that does not say which. `tile`: of tiled packs. */
static void add_packed(struct gguf_builder *b, const char *name, const char *pack,
                       const int8_t *trits, float scale, const uint32_t *tile)
{
    const struct bc_format *f = bc_format_find(pack);
    const uint64_t ne[2] = {COLS, ROWS};
    struct bc_pack_shape shape = {.cols = COLS, .rows = ROWS, .slices = 1, .n = N};
    if (tile != NULL) memcpy(shape.tile, tile, sizeof shape.tile);
    uint8_t *bytes = calloc(1, f->size(&shape));
    assert_non_null(bytes);
    f->pack(bc_kernels_at(0), &shape, trits, 0, N, bytes);
    f->put_scales(&shape, &scale, 1, bytes);
    gguf_builder_data(b, name, f->type_id, 2, ne, bytes, f->size(&shape));
    free(bytes);
}

static void add_floats(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                       const uint64_t *ne, const float *values)
{
    struct bc_buf data = {0};
    const uint64_t n = ne[0] * ne[1] * (n_dims > 2 ? ne[2] : 1);
    for (uint64_t i = 0; i < n; i++) {
        uint8_t bytes[4];
        const uint32_t bits = bc_f32_bits(values[i]);
        bc_put_u32(bytes, type == 0   ? bits
                          : type == 1 ? bc_f32_to_f16(values[i])
                                      : bc_f32_to_bf16(values[i]));
        bc_buf_append(&data, bytes, type == 0 ? 4 : 2);
    }
    gguf_builder_data(b, name, type, n_dims, ne, data.data, data.size);
    bc_buf_release(&data);
}

static char *write_input(struct convert_run *r, struct gguf_builder *b)
{
    gguf_builder_string(b, "general.architecture", "some"); /* whose readers demand nothing */
    return gguf_builder_write(b, r->root, "in.gguf");
}

/* ---- running ---- */

static enum bitconv_status repack(struct convert_run *r, const char *from,
                                  const struct bitconv_repack_options *options)
{
    struct bitconv_repack_options o = *options;
    bitconv_gguf_close(r->gguf);
    bitconv_conversion_free(r->result);
    r->gguf = NULL;
    r->result = NULL;
    r->err = (struct bitconv_error){.status = BITCONV_OK};
    bc_buf_clear(&r->messages);
    if (o.outfile == NULL) o.outfile = r->out;
    return bitconv_repack(from, &o, &r->sink, &r->result, &r->err);
}

/* Asserts success and opens the output. */
static void accept(struct convert_run *r, const char *from,
                   const struct bitconv_repack_options *options)
{
    (void)remove(r->out);
    if (repack(r, from, options) != BITCONV_OK)
        fail_msg("%s\n%s", r->err.text, bc_buf_str(&r->messages));
    if (bitconv_gguf_open(r->result->output, &r->gguf, &r->err) != BITCONV_OK)
        fail_msg("%s", r->err.text);
    struct verify_run v = {.result = NULL};
    verify_run(&v, r->result->output, NULL);
    if (!verify_run_ok(&v)) fail_msg("%s", bc_buf_str(&v.problems));
    verify_run_release(&v);
}

static void refuse(struct convert_run *r, const char *from,
                   const struct bitconv_repack_options *options, enum bitconv_status status,
                   const char *text)
{
    struct stat st;
    (void)remove(r->out);
    assert_int_equal(repack(r, from, options), status);
    assert_null(r->result);
    if (!convert_run_said(r, text)) fail_msg("%s\n%s", r->err.text, bc_buf_str(&r->messages));
    assert_int_not_equal(stat(r->out, &st), 0);
}

static void assert_trits(const struct convert_run *r, const char *name, const int8_t *trits,
                         float scale)
{
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, name);
    const struct bc_format *f = bc_format_find(convert_run_tensor(r, name)->pack);
    struct bc_pack_shape shape = {.cols = COLS, .rows = ROWS, .slices = 1, .n = N};
    char why[256];
    assert_true(bc_format_fit(f, NULL, &shape, why, sizeof why));
    if (f->open_payload != NULL)
        assert_true(f->open_payload(&shape, t->data, t->size, &shape, why, sizeof why));
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(f->trit_at(&shape, t->data, 0, i / COLS, i % COLS), trits[i]);
    assert_int_equal(bc_f32_bits(f->get_scale(&shape, t->data, 0)), bc_f32_bits(scale));
}

/* ---- packs of others ---- */

static void assert_same_keys(const struct bitconv_gguf *in, const struct bitconv_gguf *out)
{
    size_t at = 0;
    for (size_t i = 0; i < bitconv_gguf_n_keys(in); i++) {
        const struct bitconv_gguf_key *a = bitconv_gguf_key_at(in, i);
        if (strcmp(a->name, "general.alignment") == 0) continue;
        const struct bitconv_gguf_key *b = bitconv_gguf_key_at(out, at++);
        assert_string_equal(a->name, b->name);
        if (strcmp(a->name, "general.file_type") == 0) continue;
        assert_int_equal(a->value.type, b->value.type);
        assert_int_equal(a->value.count, b->value.count);
        assert_int_equal(a->value.size, b->value.size);
        assert_memory_equal(a->value.data, b->value.data, a->value.size);
    }
    for (; at < bitconv_gguf_n_keys(out); at++)
        assert_memory_equal(bitconv_gguf_key_at(out, at)->name, "bitconv.", 8);
}

/* A file of an ARM build: I2_S in blocks of 64, rubbish behind the scale, another alignment, tensors
 * that nobody makes ternary. */
static void arm_files_are_read_in_their_layout(void **state)
{
    static const char *const words[] = {"one", "two", ""};
    struct convert_run *r = *state;
    struct gguf_builder b = {.alignment = 64};
    static int8_t trits[N];
    uint8_t blocks[2 * 210];
    uint64_t seed = 5;
    random_trits(1, N, trits);
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = (uint8_t)(i % 210 >= 208 ? 0x3c : rng_next(&seed));
    gguf_builder_string(&b, "some.text", "a\nb");
    gguf_builder_u32(&b, "general.alignment", 64);
    gguf_builder_u32(&b, "general.file_type", 40);
    gguf_builder_strings(&b, "some.words", words, 3);
    add_packed(&b, WEIGHT, "i2_s_64", trits, 0.3f, NULL);
    while (b.data.size % 64 != 0)
        bc_buf_u8(&b.data, 0);
    memset(b.data.data + N / 4 + 4, 0xab, 28);
    gguf_builder_data(&b, "table.weight", 14, 1, (const uint64_t[]){512}, blocks, sizeof blocks);
    char *path = write_input(r, &b);
    struct bitconv_gguf *in = NULL;
    assert_int_equal(bitconv_gguf_open(path, &in, NULL), BITCONV_OK);
    static const char *const outtypes[] = {"bitcos", "i2_s", "t5", "tl1"};
    for (size_t i = 0; i < 4; i++) {
        accept(r, path,
               &(struct bitconv_repack_options){.outtype = outtypes[i], .input_i2s_layout = "64"});
        assert_trits(r, WEIGHT, trits, 0.3f);
        assert_same_keys(in, r->gguf);
        assert_int_equal(bitconv_gguf_alignment(r->gguf), 32);
        assert_memory_equal(convert_run_stored(r, "table.weight")->data, blocks, sizeof blocks);
        assert_true(convert_run_said(r, "spare bytes"));
    }
    /* With an outtype that is not I2_S the layout can only be the input's. */
    accept(r, path, &(struct bitconv_repack_options){.outtype = "t5", .i2s_layout = "64"});
    assert_trits(r, WEIGHT, trits, 0.3f);
    /* Without a word the usual layout is taken: other trits, and a note. */
    accept(r, path, &(struct bitconv_repack_options){.outtype = "t5"});
    assert_true(convert_run_said(r, "--input-i2s-layout 64"));
    assert_true(convert_run_said(r, "does not state the layout"));
    bitconv_gguf_close(in);
    free(path);
}

static void tiles_come_from_the_kernel_configuration(void **state)
{
    static const uint32_t tile[3] = {32, 128, 32};
    struct convert_run *r = *state;
    struct gguf_builder b = {0};
    static int8_t trits[N];
    random_trits(2, N, trits);
    add_packed(&b, WEIGHT, "tl1", trits, 0.7f, tile);
    char *path = write_input(r, &b);
    temp_dir_puts(r->root, "k.ini", "[Kernels_0]\nm = 64\nk = 512\nbm = 32\nbk = 128\nbmm = 32\n");
    char *config = temp_dir_path(r->root, "k.ini");
    accept(r, path, &(struct bitconv_repack_options){.outtype = "i2_s", .kernel_config = config});
    assert_trits(r, WEIGHT, trits, 0.7f);
    accept(r, path,
           &(struct bitconv_repack_options){.outtype = "tl1", .input_kernel_config = config});
    accept(r, path, &(struct bitconv_repack_options){.outtype = "i2_s"});
    assert_true(convert_run_said(r, "does not state the tiles"));
    free(config);
    free(path);
}

/* ---- floats ---- */

static void floats_of_one_magnitude_are_trits(void **state)
{
    static const uint32_t types[] = {0, 1, 30};
    struct convert_run *r = *state;
    static int8_t trits[N];
    static float ternary[N], other[N];
    const uint64_t ne[2] = {COLS, ROWS};
    random_trits(3, N, trits);
    for (size_t i = 0; i < N; i++) {
        ternary[i] = 0.375f * (float)trits[i];
        other[i] = i == N - 1 ? 0.5f : ternary[i];
    }
    for (size_t i = 0; i < 3; i++) {
        struct gguf_builder b = {0};
        add_floats(&b, WEIGHT, types[i], 2, ne, ternary);
        add_floats(&b, "blk.0.ffn_down.weight", types[i], 2, ne, other);
        add_floats(&b, "table.weight", types[i], 2, ne, ternary);
        char *path = write_input(r, &b);
        accept(r, path, &(struct bitconv_repack_options){.outtype = "i2_s"});
        assert_trits(r, WEIGHT, trits, 0.375f);
        assert_string_equal(convert_run_tensor(r, WEIGHT)->how, "magnitude");
        assert_null(convert_run_tensor(r, "blk.0.ffn_down.weight")->pack);
        assert_null(convert_run_tensor(r, "table.weight")->pack);
        assert_int_equal(convert_run_stored(r, "table.weight")->type, types[i]);
        assert_true(convert_run_said(r, "2 distinct magnitudes"));
        assert_true(convert_run_value(r, "blk.0.ffn_down.weight", N - 1) == 0.5f);
        free(path);
    }
}

/* A stack of experts has a scale for each. */
static void stacks_of_floats_keep_a_scale_per_expert(void **state)
{
    struct convert_run *r = *state;
    struct gguf_builder b = {0};
    static int8_t trits[N];
    static float values[N];
    const uint64_t ne[3] = {COLS, ROWS / 4, 4};
    const char *name = "blk.0.ffn_up_exps.weight";
    random_trits(4, N, trits);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)trits[i] * (0.1f + 0.1f * (float)(i / (N / 4)));
    add_floats(&b, name, 0, 3, ne, values);
    char *path = write_input(r, &b);
    refuse(r, path, &(struct bitconv_repack_options){.outtype = "i2_s"}, BITCONV_E_UNSUPPORTED,
           "experts have different scales");
    accept(r, path, &(struct bitconv_repack_options){.outtype = "bitcos"});
    char *packed = temp_dir_path(r->root, "bitcos.gguf");
    assert_int_equal(rename(r->out, packed), 0);
    accept(r, packed, &(struct bitconv_repack_options){.outtype = "f32"});
    for (uint64_t i = 0; i < N; i++)
        assert_true(convert_run_value(r, name, i) == values[i]);
    accept(r, packed,
           &(struct bitconv_repack_options){.outtype = "auto", .auto_packs = "i2_s,bitcos,t5"});
    assert_string_equal(convert_run_tensor(r, name)->pack, "t5");
    free(packed);
    free(path);
}

/* ---- blocks with scales of their own ---- */

/* Like a file of mainline's quantizer: each block has its own scale. */
static void add_blocks(struct gguf_builder *b, const char *pack, const int8_t *trits, size_t run,
                       float *values)
{
    const struct bc_block_pack *bp = bc_block_pack_find(pack);
    const uint64_t ne[2] = {COLS, ROWS};
    uint8_t *bytes = calloc(N / bp->block, bp->block_size);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)trits[i] * (0.25f + (float)(i / run) / 1024.0f);
    bc_block_from_floats(bp, bc_kernels_at(0), values, N / bp->block, bytes);
    gguf_builder_data(b, WEIGHT, bp->format->type_id, 2, ne, bytes,
                      (size_t)N / bp->block * bp->block_size);
    free(bytes);
}

static void blocks_keep_their_scales_in_block_packs(void **state)
{
    struct convert_run *r = *state;
    static int8_t trits[N];
    static float values[N], decoded[N];
    static const struct {
        const char *from, *to;
        size_t run;
        bool holds;
    } cases[] = {{"tq2_0", "tq1_0", 256, true},  {"tq1_0", "tq2_0", 256, true},
                 {"tq2_0", "q2_0", 256, true},   {"q2_0", "tq2_0", 256, true},
                 {"q2_0", "tq2_0", 64, false},   {"tq2_0", "i2_s", 256, false},
                 {"tq2_0", "bitcos", 256, false}};
    random_trits(6, N, trits);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf_builder b = {0};
        add_blocks(&b, cases[i].from, trits, cases[i].run, values);
        char *path = write_input(r, &b);
        struct bitconv_repack_options o = {.outtype = cases[i].to};
        if (!cases[i].holds) {
            refuse(r, path, &o, BITCONV_E_UNSUPPORTED, "scales of their own");
            o.on_misfit = o.outtype = "f32";
        }
        accept(r, path, &o);
        const struct bitconv_gguf_tensor *t = convert_run_stored(r, WEIGHT);
        bc_dequant_values(bc_dequant_find(t->type_name), t->data, 0, N, decoded);
        for (size_t j = 0; j < N; j++)
            assert_true(decoded[j] == values[j]);
        free(path);
    }
}

/* The scale of zeros is lost in no type, whatever was stored for it. */
static void zeros_lose_no_scale(void **state)
{
    static const char *const inputs[] = {"i2_s", "tq2_0"};
    struct convert_run *r = *state;
    static const int8_t zeros[N];
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        struct gguf_builder b = {0};
        add_packed(&b, WEIGHT, inputs[i], zeros, 0.3f, NULL);
        char *path = write_input(r, &b);
        accept(r, path, &(struct bitconv_repack_options){.outtype = "tq1_0"});
        assert_true(convert_run_tensor(r, WEIGHT)->scale_error == 0.0);
        assert_false(convert_run_said(r, "rounded"));
        free(path);
    }
}

/* ---- refusals ---- */

/* NAME.scale beside a pack that has no such thing is any tensor. Copied beside the blocks of a block
 * pack it would become the scales of NAME.weight. */
static void foreign_scale_tensors_stay_foreign(void **state)
{
    struct convert_run *r = *state;
    static int8_t trits[N];
    static float values[N];
    const uint64_t ne[2] = {COLS, ROWS};
    random_trits(9, N, trits);
    for (size_t i = 0; i < N; i++)
        values[i] = 0.5f * (float)trits[i];
    for (int floats = 0; floats < 2; floats++) {
        struct gguf_builder b = {0};
        uint8_t scale[4];
        bc_put_u32(scale, bc_f32_bits(3.0f));
        if (floats)
            add_floats(&b, WEIGHT, 1, 2, ne, values);
        else
            add_packed(&b, WEIGHT, "i2_s", trits, 0.5f, NULL);
        gguf_builder_data(&b, "blk.0.ffn_up.scale", 0, 1, (const uint64_t[]){1}, scale, 4);
        char *path = write_input(r, &b);
        struct bitconv_repack_options o = {.outtype = "tq2_0"};
        refuse(r, path, &o, BITCONV_E_UNSUPPORTED, "tensor blk.0.ffn_up.scale for its scales");
        o.scale_tensor = true;
        refuse(r, path, &o, BITCONV_E_UNSUPPORTED, "tensor blk.0.ffn_up.scale for its scales");
        accept(r, path, &(struct bitconv_repack_options){.outtype = "t5"});
        assert_trits(r, WEIGHT, trits, 0.5f);
        assert_true(convert_run_value(r, "blk.0.ffn_up.scale", 0) == 3.0f);
        free(path);
    }
}

static void damage_is_refused_by_name(void **state)
{
    struct convert_run *r = *state;
    const struct bitconv_repack_options o = {.outtype = "t5"};
    static int8_t trits[N];
    random_trits(7, N, trits);
    for (int i = 0; i < 3; i++) {
        static const char *const texts[] = {"row 0, column 96", "inf beside non-zero trits",
                                            "-0.5 beside"};
        struct gguf_builder b = {0};
        add_packed(&b, WEIGHT, "i2_s", trits, i == 1 ? INFINITY : i == 2 ? -0.5f : 0.5f, NULL);
        if (i == 0) b.data.data[0] |= 3;
        char *path = write_input(r, &b);
        refuse(r, path, &o, BITCONV_E_CORRUPT, texts[i]);
        assert_true(convert_run_said(r, WEIGHT));
        free(path);
    }
}

/* A legal code for another: only the fingerprint that the file states tells. */
static void stated_fingerprints_are_compared(void **state)
{
    struct convert_run *r = *state;
    struct bc_buf bytes = {0};
    convert_run_model(r, "llama-ternary", NULL, 0);
    convert_run_accept(r, "i2_s");
    convert_run_file(r->out, &bytes);
    const struct bitconv_gguf_tensor *t = convert_run_stored(r, "blk.0.attn_q.weight");
    uint8_t *byte = &bytes.data[t->file_offset];
    *byte = *byte == 0x55 ? 0x00 : 0x55;
    temp_dir_write(r->root, "in.gguf", bytes.data, bytes.size);
    char *path = temp_dir_path(r->root, "in.gguf");
    refuse(r, path, &(struct bitconv_repack_options){.outtype = "t5"}, BITCONV_E_CORRUPT,
           "the file states another");
    assert_true(convert_run_said(r, "blk.0.attn_q.weight"));
    bc_buf_release(&bytes);
    free(path);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    struct convert_run *r = *state;
    struct gguf_builder b = {0};
    static int8_t trits[N];
    random_trits(8, N, trits);
    add_packed(&b, WEIGHT, "i2_s", trits, 0.5f, NULL);
    /* MXFP4, which has the id of TL2 in bitnet.cpp */
    gguf_builder_tensor(&b, "table.weight", 39, 1, (const uint64_t[]){64}, 34);
    char *path = write_input(r, &b);
    struct bitconv_repack_options o = {.outtype = "nothing"};
    refuse(r, path, &o, BITCONV_E_ARG, "'nothing'");
    o.outtype = NULL;
    refuse(r, path, &o, BITCONV_E_ARG, "--outtype is missing");
    o.outtype = "auto";
    o.auto_packs = "bitcos,,t5";
    refuse(r, path, &o, BITCONV_E_ARG, "no list");
    o.auto_packs = "bitcos,f16";
    refuse(r, path, &o, BITCONV_E_ARG, "f16 is no ternary pack");
    o.outtype = "t5";
    refuse(r, path, &o, BITCONV_E_ARG, "outtype auto only");
    o.auto_packs = NULL;
    o.scale_tensor = true;
    refuse(r, path, &o, BITCONV_E_ARG, "--scale-tensor");
    o.scale_tensor = false;
    o.input_dialect = "klingon";
    refuse(r, path, &o, BITCONV_E_ARG, "klingon");
    o = (struct bitconv_repack_options){.outtype = "t5", .outfile = path, .force = true};
    assert_int_not_equal(repack(r, path, &o), BITCONV_OK);
    assert_true(convert_run_said(r, "in.gguf"));
    o = (struct bitconv_repack_options){.outtype = "tl2", .input_dialect = "bitnet-rebased"};
    refuse(r, path, &o, BITCONV_E_UNSUPPORTED, "MXFP4");
    free(path);
}

/* A file without anything ternary has nothing to repack. */
static void files_without_trits_are_refused(void **state)
{
    struct convert_run *r = *state;
    convert_run_model(r, "gemma3-embed", NULL, 0);
    convert_run_accept(r, "f32");
    char *path = temp_dir_path(r->root, "in.gguf");
    assert_int_equal(rename(r->out, path), 0);
    refuse(r, path, &(struct bitconv_repack_options){.outtype = "i2_s"}, BITCONV_E_UNSUPPORTED,
           "would be i2_s");
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(arm_files_are_read_in_their_layout),
        TEST(tiles_come_from_the_kernel_configuration),
        TEST(floats_of_one_magnitude_are_trits),
        TEST(stacks_of_floats_keep_a_scale_per_expert),
        TEST(blocks_keep_their_scales_in_block_packs),
        TEST(zeros_lose_no_scale),
        TEST(foreign_scale_tensors_stay_foreign),
        TEST(damage_is_refused_by_name),
        TEST(stated_fingerprints_are_compared),
        TEST(options_that_make_no_sense_are_refused),
        TEST(files_without_trits_are_refused),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
