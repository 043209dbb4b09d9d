/* SPDX-License-Identifier: MIT
 * Repacking files of our own: every pack to every pack gives the file that converting to it gives,
 * byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/bytes.h"
#include "quant/kernels.h"
#include "support/llama_model.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

/* Packs that keep the scale: block packs with it in a tensor of its own. */
static const struct exact_pack {
    const char *name;
    bool scale_tensor;
} exact_packs[] = {
    {"i2_s", false}, {"i2_s_64", false}, {"tl1", false},  {"tl2", false}, {"bitcos", false},
    {"t5", false},   {"tq1_0", true},    {"tq2_0", true}, {"q2_0", true}, {"q1_0", true},
};
enum { N_PACKS = sizeof exact_packs / sizeof exact_packs[0] };

/* Repacks `from` to r->out; the result in r->result or r->err. */
static enum bitconv_status repack(struct convert_run *r, const char *from,
                                  const struct bitconv_repack_options *options)
{
    struct bitconv_repack_options o = *options;
    bitconv_conversion_free(r->result);
    r->result = NULL;
    r->err = (struct bitconv_error){.status = BITCONV_OK};
    bc_buf_clear(&r->messages);
    if (o.outfile == NULL) o.outfile = r->out;
    o.force = true;
    return bitconv_repack(from, &o, &r->sink, &r->result, &r->err);
}

static void repack_accept(struct convert_run *r, const char *from,
                          const struct bitconv_repack_options *options)
{
    if (repack(r, from, options) != BITCONV_OK)
        fail_msg("%s to %s: %s\n%s", from, options->outtype, r->err.text, bc_buf_str(&r->messages));
}

/* A conversion of the model to ROOT/NAME.gguf; NULL when nothing fits the pack. */
static char *convert_to(struct convert_run *r, const char *pack, bool scale_tensor)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s.gguf", pack);
    char *path = temp_dir_path(r->root, name);
    r->options.outfile = path;
    r->options.scale_tensor = scale_tensor;
    r->options.force = true;
    const enum bitconv_status status = convert_run(r, pack);
    if (status == BITCONV_OK) return path;
    if (status != BITCONV_E_UNSUPPORTED || !convert_run_said(r, "choose another --outtype"))
        fail_msg("%s: %s", pack, r->err.text);
    free(path);
    return NULL;
}

/* A llama of one layer whose matrices have that share of zeros and scales that float16 does not hold. */
static void make_model(struct convert_run *r, struct llama_model *m, uint64_t hidden, uint64_t ff,
                       double zeros)
{
    uint64_t seed = hidden * 1000 + ff;
    llama_model_make(r, m, hidden, ff);
    for (size_t i = 0; i < LLAMA_MODEL_TENSORS - 1; i++) {
        const struct model_edit *edit = &m->edits[i];
        const float scale = 0.1f + 0.01f * (float)i;
        m->edits[i].dtype = BITCONV_F32;
        for (uint64_t j = 0; i >= 4 && j < edit->shape[0] * edit->shape[1]; j++) {
            const bool zero = (double)rng_below(&seed, 1000000) < 1e6 * zeros;
            m->values[i][j] = zero ? 0.0f : rng_below(&seed, 2) != 0 ? scale : -scale;
        }
    }
    llama_model_write(r, m, hidden, ff);
}

static int signum(float v)
{
    return (v > 0.0f) - (v < 0.0f);
}

/* Where the text first stands in the bytes; NULL: nowhere. */
static const uint8_t *memmem_text(const struct bc_buf *bytes, const char *text)
{
    const size_t len = strlen(text);
    for (size_t i = 0; i + len <= bytes->size; i++)
        if (memcmp(bytes->data + i, text, len) == 0) return bytes->data + i;
    return NULL;
}

static void assert_same_file(const char *a, const char *b, const char *from, const char *cpu)
{
    struct bc_buf x = {0}, y = {0};
    convert_run_file(a, &x);
    convert_run_file(b, &y);
    size_t i = 0;
    while (i < x.size && i < y.size && x.data[i] == y.data[i])
        i++;
    if (x.size != y.size || i < x.size)
        fail_msg("%s from %s (%s): %zu bytes, %zu wanted, first difference at %zu", b, from, cpu,
                 x.size, y.size, i);
    bc_buf_release(&x);
    bc_buf_release(&y);
}

/* Pairs of packs that hold some tensor of the model: every third pair, another third for another
 * `part`. Misfits are F32: trits times the scale are exact there, so what one pack could not hold
 * comes back for the next. `turn` goes round the instruction sets. */
static void check_pairs(struct convert_run *r, size_t part, size_t *turn, size_t *n_pairs)
{
    char *paths[N_PACKS];
    char fingerprints[N_PACKS][33];
    r->options.on_misfit = "f32";
    r->options.cpu = "scalar";
    for (size_t i = 0; i < N_PACKS; i++) {
        paths[i] = convert_to(r, exact_packs[i].name, exact_packs[i].scale_tensor);
        if (paths[i] != NULL) strcpy(fingerprints[i], r->result->fingerprint);
    }
    for (size_t from = 0; from < N_PACKS; from++) {
        for (size_t to = 0; to < N_PACKS; to++) {
            if (paths[from] == NULL || paths[to] == NULL || (from + to + part) % 3 != 0) continue;
            if (bc_kernels_at(*turn) == NULL) *turn = 0;
            const struct bitconv_repack_options o = {.outtype = exact_packs[to].name,
                                                     .scale_tensor = exact_packs[to].scale_tensor,
                                                     .on_misfit = "f32",
                                                     .cpu = bc_kernels_at((*turn)++)->name};
            repack_accept(r, paths[from], &o);
            assert_same_file(r->out, paths[to], exact_packs[from].name, o.cpu);
            assert_string_equal(r->result->fingerprint, fingerprints[to]);
            ++*n_pairs;
        }
    }
    for (size_t i = 0; i < N_PACKS; i++)
        free(paths[i]);
}

/* Side lengths: multiples of what block packs, TL and I2_S want, and such that suit none of them.
 * Heads must be even. */
static uint64_t random_side(uint64_t *seed, size_t turn)
{
    static const uint64_t steps[] = {8, 32, 64, 256};
    const uint64_t step = steps[turn % 4];
    return step * (1 + rng_below(seed, step == 256 ? 2 : 320 / step));
}

/* 25 models of four shapes: every pair for each, and over the models each pair with each of three
 * shares of zeros. */
static void every_pair_of_packs_gives_what_converting_gives(void **state)
{
    static const double zeros[] = {0.0, 0.4, 0.9};
    struct convert_run *r = *state;
    uint64_t seed = 20261130;
    size_t turn = 0, n_pairs = 0;
    for (size_t i = 0; i < 25; i++) {
        const uint64_t hidden = random_side(&seed, i);
        const uint64_t ff = i % 5 == 4 ? 1 + rng_below(&seed, 200) : random_side(&seed, i / 4 + i);
        for (size_t z = 0; z < 3; z++) {
            struct llama_model m = {.values = {NULL}};
            make_model(r, &m, hidden, ff, zeros[z]);
            check_pairs(r, i + z, &turn, &n_pairs);
            llama_model_free(&m);
        }
    }
    print_message("%zu pairs\n", n_pairs);
    assert_true(n_pairs > 1000);
}

/* ---- block packs without a scale tensor ---- */

/* The only loss is that float16 rounds the scale, and it is told. */
static void rounded_scales_are_reported(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    make_model(r, &m, 256, 256, 0.4);
    char *exact = convert_to(r, "i2_s", false);
    char *blocks = convert_to(r, "tq2_0", false);
    repack_accept(r, exact, &(struct bitconv_repack_options){.outtype = "tq2_0"});
    assert_same_file(r->out, blocks, "i2_s", "best");
    assert_true(convert_run_said(r, "were rounded to float16"));
    for (size_t i = 0; i < r->result->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &r->result->tensors[i];
        if (t->pack == NULL) continue;
        const double rounded = bc_f16_to_f32(bc_f32_to_f16(t->scale));
        const double error = fabs(rounded - (double)t->scale) / (double)t->scale;
        assert_true(t->scale_error == error && error > 0.0 && error < 1.0 / 2048);
    }
    /* Back again: the trits and the rounded scale. */
    repack_accept(r, blocks, &(struct bitconv_repack_options){.outtype = "i2_s"});
    assert_false(convert_run_said(r, "rounded"));
    assert_int_equal(bitconv_gguf_open(r->out, &r->gguf, NULL), BITCONV_OK);
    const float scale = 0.1f + 0.01f * 4;
    assert_true(convert_run_scale(r, "blk.0.attn_q.weight") == bc_f16_to_f32(bc_f32_to_f16(scale)));
    for (uint64_t i = 0; i < 256; i++)
        assert_int_equal(convert_run_trit(r, "blk.0.attn_q.weight", i), signum(m.values[4][i]));
    free(exact);
    free(blocks);
    llama_model_free(&m);
}

/* ---- outtype auto ---- */

/* Tensors on both sides of the crossing: each gets the pack that is smaller for it, from the checkpoint
 * and from any file of it, and the file proves itself. */
static void auto_takes_the_smallest_pack(void **state)
{
    struct convert_run *r = *state;
    struct llama_model m = {.values = {NULL}};
    struct verify_run v = {.result = NULL};
    size_t n_bitcos = 0, n_t5 = 0;
    make_model(r, &m, 256, 320, 0.2);
    for (size_t i = 8; i < LLAMA_MODEL_TENSORS - 1; i++)
        for (size_t j = 0; j < 256u * 320u; j += 2)
            m.values[i][j] = 0.0f; /* 60 % zeros */
    llama_model_write(r, &m, 256, 320);
    char *i2_s = convert_to(r, "i2_s", false);
    char *smallest = convert_to(r, "auto", false);
    for (size_t i = 0; i < r->result->n_tensors; i++) {
        const struct bitconv_converted_tensor *t = &r->result->tensors[i];
        if (t->pack == NULL) continue;
        assert_string_equal(t->pack, t->zeros > 0.45 ? "bitcos" : "t5");
        n_bitcos += strcmp(t->pack, "bitcos") == 0;
        n_t5 += strcmp(t->pack, "t5") == 0;
        const double z = t->zeros;
        assert_true(fabs(t->entropy_bound + z * log2(z) + (1 - z) * log2((1 - z) / 2)) < 1e-12);
        assert_true(8.0 * (double)t->size / (double)t->parameters > t->entropy_bound);
    }
    assert_int_equal(n_bitcos, 3);
    assert_int_equal(n_t5, 4);
    repack_accept(r, i2_s, &(struct bitconv_repack_options){.outtype = "auto"});
    assert_same_file(r->out, smallest, "i2_s", "best");
    repack_accept(r, smallest, &(struct bitconv_repack_options){.outtype = "i2_s"});
    assert_same_file(r->out, i2_s, "auto", "best");
    verify_run(&v, smallest, &(struct bitconv_verify_options){.source = r->model});
    if (!verify_run_ok(&v)) fail_msg("%s", bc_buf_str(&v.problems));
    verify_run_release(&v);
    free(i2_s);
    free(smallest);
    llama_model_free(&m);
}

/* Any list: mixtures of bitnet.cpp's packs and of mainline's prove themselves too. */
static void auto_packs_may_be_any(void **state)
{
    static const struct {
        const char *list;
        double zeros;
        const char *wanted;
        const char *embd; /* f32: the file has no F16 tensor, though its file_type says so */
    } cases[] = {{"i2_s,tl1", 0.4, "i2_s", NULL},     {"tl1,i2_s,tl2", 0.4, "tl2", "f32"},
                 {"tq2_0,tq1_0", 0.4, "tq1_0", NULL}, {"tq1_0,q1_0", 0.0, "q1_0", "f32"},
                 {"q1_0,q2_0", 0.4, "q2_0", "f32"},   {"i2_s,q1_0,t5", 0.4, "t5", "f32"}};
    struct convert_run *r = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct llama_model m = {.values = {NULL}};
        struct verify_run v = {.result = NULL};
        make_model(r, &m, 512, 768, cases[i].zeros);
        const struct bitconv_verify_options o = {.source = r->model, .conversion = &r->options};
        r->options.auto_packs = cases[i].list;
        r->options.embd_type = cases[i].embd;
        char *path = convert_to(r, "auto", false);
        assert_string_equal(convert_run_tensor(r, "blk.0.ffn_up.weight")->pack, cases[i].wanted);
        verify_run(&v, path, &o);
        if (!verify_run_ok(&v)) fail_msg("%s: %s", cases[i].list, bc_buf_str(&v.problems));
        verify_run_release(&v);
        r->options.auto_packs = NULL;
        r->options.embd_type = NULL;
        free(path);
        llama_model_free(&m);
    }
}

/* ---- files ---- */

/* Split inputs and outputs, and files that state nothing of themselves. */
static void split_and_plain_files_are_as_convert_writes_them(void **state)
{
    struct convert_run *r = *state;
    struct bitconv_repack_options o = {.outtype = "i2_s", .split_max_size = 90000};
    struct bc_buf whole = {0};
    convert_run_model(r, "bitnet", NULL, 0);
    r->options.split_max_size = 90000;
    char *path = convert_to(r, "i2_s", false);
    assert_true(r->result->n_files > 1);
    char *shard = strdup(r->result->output);
    r->options.split_max_size = 0;
    char *t5 = convert_to(r, "t5", false);
    repack_accept(r, t5, &o);
    assert_same_file(r->result->output, shard, "t5", "best");
    o = (struct bitconv_repack_options){.outtype = "t5"};
    repack_accept(r, shard, &o);
    assert_same_file(r->out, t5, "split i2_s", "best");
    r->options.plain = true;
    char *plain = convert_to(r, "i2_s", false);
    o = (struct bitconv_repack_options){.outtype = "i2_s", .plain = true};
    repack_accept(r, t5, &o);
    assert_same_file(r->out, plain, "t5", "best");
    /* What a plain file does not say is made up from its name. */
    o.plain = false;
    repack_accept(r, plain, &o);
    convert_run_file(r->out, &whole);
    assert_non_null(memmem_text(&whole, "bitconv.fingerprint"));
    assert_non_null(memmem_text(&whole, "i2_s.gguf"));
    bc_buf_release(&whole);
    free(path);
    free(shard);
    free(t5);
    free(plain);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, convert_run_set_up, convert_run_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_packs_gives_what_converting_gives),
        TEST(rounded_scales_are_reported),
        TEST(auto_takes_the_smallest_pack),
        TEST(auto_packs_may_be_any),
        TEST(split_and_plain_files_are_as_convert_writes_them),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
