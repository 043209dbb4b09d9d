/* SPDX-License-Identifier: MIT
 * Each proof of verify: what passes, what fails, and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bitconv/convert.h"
#include "bitconv/gguf.h"
#include "bitconv/inspect.h"
#include "support/st_builder.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

enum { F32 = 0, F16 = 1, I2_S = 36, F64 = 28, BF16 = 30 };
static const char weight[] = "blk.0.ffn_down.weight";
static const uint64_t shape[] = {128, 2};

struct fixture {
    char *dir;
    struct verify_run run;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return 1;
    f->dir = temp_dir_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    verify_run_release(&f->run);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static void run_on(struct fixture *f, struct gguf_builder *b, bool lenient)
{
    const struct bitconv_verify_options options = {.lenient = lenient, .n_threads = 1};
    char *path = gguf_builder_write(b, f->dir, "t.gguf");
    verify_run(&f->run, path, &options);
    free(path);
}

/* A file with one I2_S tensor of `byte`s, changed at `offset` to `value`. */
static void run_i2_s(struct fixture *f, uint8_t byte, float scale, size_t offset, uint8_t value,
                     bool ours, bool lenient)
{
    struct gguf_builder b = {0};
    struct bc_buf data = {0};
    gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    if (ours) gguf_builder_string(&b, "bitconv.version", "0.1.0");
    i2_s_bytes(&data, 256, byte, scale);
    data.data[offset] = value;
    gguf_builder_data(&b, weight, I2_S, 2, shape, data.data, data.size);
    bc_buf_release(&data);
    run_on(f, &b, lenient);
}

static void assert_fails(const struct fixture *f, const char *proof, const char *text)
{
    assert_false(verify_run_ok(&f->run));
    assert_int_equal(verify_run_proof(&f->run, proof)->verdict, BITCONV_FAILED);
    if (!verify_run_says(&f->run.problems, text))
        fail_msg("'%s' is not in: %s", text, bc_buf_str(&f->run.problems));
}

static void sound_pack(void **state)
{
    struct fixture *f = *state;
    run_i2_s(f, 0x18, 0.5f, 3, 0x99, false, false);
    assert_true(verify_run_ok(&f->run));
    const struct bitconv_proof *packs = verify_run_proof(&f->run, "packs");
    assert_int_equal(packs->verdict, BITCONV_PASSED);
    assert_int_equal(packs->checked, 1);
    const struct bitconv_verified_tensor *t = &f->run.result->tensors[0];
    assert_string_equal(t->name, weight);
    assert_string_equal(t->pack, "i2_s");
    assert_true(t->ok && t->problem == NULL && t->scale == 0.5f);
    assert_int_equal(strlen(t->fingerprint), 32);
    assert_int_equal(strlen(t->xxh3), 32);
    assert_int_equal(strlen(f->run.result->fingerprint), 32);
    /* Proofs that were not asked for are listed all the same. */
    assert_int_equal(verify_run_proof(&f->run, "source")->verdict, BITCONV_NOT_RUN);
    assert_non_null(strstr(verify_run_proof(&f->run, "source")->detail, "--source"));
    assert_int_equal(verify_run_proof(&f->run, "manifest")->verdict, BITCONV_NOT_RUN);
}

static void reserved_code(void **state)
{
    struct fixture *f = *state;
    /* Byte 40 is the second block's byte 8; bits 5-4 are its value 32 + 8, in row 1. */
    run_i2_s(f, 0x55, 1.0f, 40, 0x75, false, false);
    assert_fails(f, "packs", "code 3 is reserved");
    assert_true(verify_run_says(&f->run.problems, weight));
    assert_true(verify_run_says(&f->run.problems, "row 1, column 40"));
    assert_false(f->run.result->tensors[0].ok);
    assert_string_equal(f->run.result->tensors[0].fingerprint, "");

    run_i2_s(f, 0x55, 1.0f, 40, 0x75, false, true);
    assert_true(verify_run_ok(&f->run));
    assert_true(verify_run_says(&f->run.warnings, "code 3"));
}

static void bad_scales(void **state)
{
    struct fixture *f = *state;
    static const float bad[] = {0.0f, -1.0f};
    for (size_t i = 0; i < 2; i++) {
        run_i2_s(f, 0x18, bad[i], 0, 0x18, false, false);
        assert_fails(f, "packs", "scale");
    }
    /* 0x7f800000 and 0x7fc00000, bytes little-endian: only the third differs from 1.0's. */
    run_i2_s(f, 0x18, 1.0f, 64 + 3, 0x7f, false, false);
    assert_fails(f, "packs", "inf");
    /* All trits are zero: nothing is scaled. */
    run_i2_s(f, 0x55, 0.0f, 0, 0x55, false, false);
    assert_true(verify_run_ok(&f->run));
    assert_true(verify_run_says(&f->run.warnings, "the scale is 0"));
}

static void one_code(void **state)
{
    struct fixture *f = *state;
    static const uint8_t bytes[] = {0x00, 0x55, 0xaa};
    static const char *const texts[] = {"every trit is -1", "every trit is 0", "every trit is +1"};
    for (size_t i = 0; i < 3; i++) {
        run_i2_s(f, bytes[i], 1.0f, 0, bytes[i], false, false);
        assert_true(verify_run_ok(&f->run));
        assert_true(verify_run_says(&f->run.warnings, texts[i]));
    }
    run_i2_s(f, 0x00, 1.0f, 63, 0x01, false, false);
    assert_false(verify_run_says(&f->run.warnings, "every trit"));
}

static void spare_bytes(void **state)
{
    struct fixture *f = *state;
    run_i2_s(f, 0x18, 1.0f, 64 + 9, 0xff, false, false);
    assert_true(verify_run_ok(&f->run));
    assert_true(verify_run_says(&f->run.notes, "spare bytes"));
    run_i2_s(f, 0x18, 1.0f, 64 + 9, 0xff, true, false);
    assert_fails(f, "packs", "spare byte");
}

/* The byte behind a tensor of 20 bytes, in a file of ours and in one of another writer. */
static void padding(void **state)
{
    struct fixture *f = *state;
    for (int ours = 0; ours < 2; ours++) {
        struct gguf_builder b = {0};
        uint8_t data[32] = {0};
        data[20] = 1;
        gguf_builder_string(&b, "general.architecture", "llama");
        if (ours) gguf_builder_string(&b, "bitconv.source", "x");
        gguf_builder_data(&b, "norm", F32, 1, (const uint64_t[]){5}, data, sizeof data);
        run_on(f, &b, false);
        if (ours)
            assert_fails(f, "structure", "norm");
        else
            assert_true(verify_run_says(&f->run.notes, "norm"));
        if (!ours) assert_true(verify_run_ok(&f->run));
    }
}

static void unknown_type(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_tensor(&b, "odd", 199, 1, (const uint64_t[]){32}, 64);
    run_on(f, &b, false);
    assert_fails(f, "structure", "odd");
    assert_false(f->run.result->tensors[0].ok);
}

static void non_finite_floats(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint32_t type;
        size_t width;
        uint8_t top[2]; /* of an infinity, and of a NaN's pattern when or-ed with the payload */
    } cases[] = {{F32, 4, {0x80, 0x7f}},
                 {F16, 2, {0x00, 0x7c}},
                 {BF16, 2, {0x80, 0x7f}},
                 {F64, 8, {0xf0, 0x7f}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int nan = 0; nan < 2; nan++) {
            struct gguf_builder b = {0};
            uint8_t data[80] = {0};
            uint8_t *value = data + 9 * cases[i].width;
            memcpy(value + cases[i].width - 2, cases[i].top, 2);
            if (nan) value[0] |= 1;
            gguf_builder_string(&b, "general.architecture", "llama");
            gguf_builder_data(&b, "v", cases[i].type, 1, (const uint64_t[]){10}, data,
                              10 * cases[i].width);
            run_on(f, &b, false);
            assert_fails(f, "floats", nan ? "v: value 9 is nan" : "v: value 9 is inf");
        }
    }
}

/* ---- metadata ---- */

static const char *const tokens[] = {"a", "b", "c"};
static const uint32_t types[] = {1, 1, 1};

/* A model of one block that keeps every rule, but for the key `without` and one number. */
static void model(struct gguf_builder *b, const char *without, uint32_t vocabulary,
                  uint32_t file_type)
{
    static const struct {
        const char *key;
        uint32_t value;
    } counts[] = {{"llama.context_length", 32},
                  {"llama.embedding_length", 128},
                  {"llama.block_count", 1},
                  {"llama.feed_forward_length", 128},
                  {"llama.attention.head_count", 2}};
    static const char *const merges[] = {"a b"};
    static const char *const norms[] = {"blk.0.attn_norm.weight", "output_norm.weight"};
    static const char *const matrices[] = {"blk.0.attn_q.weight", "blk.0.attn_k.weight",
                                           "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                                           "blk.0.ffn_up.weight"};
    static const uint64_t square[] = {128, 128};
    struct bc_buf data = {0};
    uint8_t eps[4];
    gguf_builder_string(b, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (strcmp(counts[i].key, without) != 0)
            gguf_builder_u32(b, counts[i].key, counts[i].value);
    bc_put_f32(eps, 1e-5f);
    gguf_builder_key(b, "llama.attention.layer_norm_rms_epsilon", 6, eps, 4);
    gguf_builder_u32(b, "llama.vocab_size", vocabulary);
    gguf_builder_u32(b, "general.file_type", file_type);
    gguf_builder_string(b, "tokenizer.ggml.model", "gpt2");
    if (strcmp(without, "tokenizer.ggml.tokens") != 0)
        gguf_builder_strings(b, "tokenizer.ggml.tokens", tokens, 3);
    gguf_builder_numbers(b, "tokenizer.ggml.token_type", 5, types, 3);
    gguf_builder_strings(b, "tokenizer.ggml.merges", merges, 1);
    gguf_builder_tensor(b, "token_embd.weight", F16, 2, (const uint64_t[]){128, 3}, 768);
    i2_s_bytes(&data, (uint64_t)128 * 128, 0x18, 1.0f);
    gguf_builder_data(b, weight, I2_S, 2, square, data.data, data.size);
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
        gguf_builder_data(b, matrices[i], I2_S, 2, square, data.data, data.size);
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++)
        gguf_builder_tensor(b, norms[i], F32, 1, square, 512);
    bc_buf_release(&data);
}

static void complete_model(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    model(&b, "", 3, 40);
    run_on(f, &b, false);
    if (!verify_run_ok(&f->run)) fail_msg("%s", bc_buf_str(&f->run.problems));
    assert_int_equal(verify_run_proof(&f->run, "metadata")->verdict, BITCONV_PASSED);
}

static void required_keys(void **state)
{
    struct fixture *f = *state;
    static const char *const keys[] = {"llama.context_length", "llama.block_count",
                                       "llama.attention.head_count", "tokenizer.ggml.tokens"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct gguf_builder b = {0};
        model(&b, keys[i], 3, 40);
        run_on(f, &b, false);
        assert_fails(f, "metadata", keys[i]);
    }
}

static void sizes_that_disagree(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    model(&b, "", 4, 40);
    run_on(f, &b, false);
    assert_fails(f, "metadata", "vocab_size says 4");
    assert_false(f->run.result->tensors[0].ok); /* token_embd */

    model(&b, "", 3, 40);
    gguf_builder_u32(&b, "tokenizer.ggml.bos_token_id", 3);
    run_on(f, &b, false);
    assert_fails(f, "metadata", "bos_token_id is 3");

    model(&b, "", 3, 40);
    gguf_builder_numbers(&b, "tokenizer.ggml.scores", 6, types, 2);
    run_on(f, &b, false);
    assert_fails(f, "metadata", "tokenizer.ggml.scores has 2 entries");

    model(&b, "", 3, 40);
    gguf_builder_tensor(&b, "blk.1.attn_norm.weight", F32, 1, (const uint64_t[]){128}, 512);
    run_on(f, &b, false);
    assert_fails(f, "metadata", "blk.1.attn_norm.weight");
}

static void file_type(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    model(&b, "", 3, 1);
    run_on(f, &b, false);
    assert_fails(f, "metadata", "general.file_type");

    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_u32(&b, "general.file_type", 40);
    gguf_builder_tensor(&b, "a", F16, 2, shape, 512);
    run_on(f, &b, false);
    assert_fails(f, "metadata", "0 tensors are I2_S");
}

static void activation_of_bitnet(void **state)
{
    struct fixture *f = *state;
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    gguf_builder_u32(&b, "bitnet-b1.58.block_count", 0);
    run_on(f, &b, false);
    assert_true(verify_run_says(&f->run.warnings, "hidden_activation"));
}

/* ---- fingerprints ---- */

static void stated_fingerprints(void **state)
{
    struct fixture *f = *state;
    char tensor_print[33], model_print[33];
    run_i2_s(f, 0x18, 0.5f, 3, 0x99, false, false);
    strcpy(tensor_print, f->run.result->tensors[0].fingerprint);
    strcpy(model_print, f->run.result->fingerprint);
    const uint32_t zeros = bc_f32_bits((float)f->run.result->tensors[0].zeros);
    for (int fault = 0; fault < 6; fault++) {
        struct gguf_builder b = {0};
        struct bc_buf data = {0};
        const uint32_t tile[] = {0, fault == 5, 0};
        const uint32_t stated_zeros = fault == 4 ? zeros + 1 : zeros;
        const char *const names[] = {fault == 1 ? "blk.0.other.weight" : weight};
        const char *const packs[] = {fault == 2 ? "tl1" : "i2_s"};
        if (fault == 3) tensor_print[31] = tensor_print[31] == '0' ? '1' : '0';
        const char *const prints[] = {tensor_print};
        gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
        gguf_builder_string(&b, "bitconv.version", "0.1.0");
        gguf_builder_string(&b, "bitconv.source", "x");
        gguf_builder_string(&b, "bitconv.fingerprint", model_print);
        gguf_builder_strings(&b, "bitconv.tensor.name", names, 1);
        gguf_builder_strings(&b, "bitconv.tensor.pack", packs, 1);
        gguf_builder_strings(&b, "bitconv.tensor.fingerprint", prints, 1);
        gguf_builder_numbers(&b, "bitconv.tensor.zeros", 6, &stated_zeros, 1);
        gguf_builder_numbers(&b, "bitconv.tensor.tile", 4, tile, 3);
        i2_s_bytes(&data, 256, 0x18, 0.5f);
        data.data[3] = 0x99;
        gguf_builder_data(&b, weight, I2_S, 2, shape, data.data, data.size);
        bc_buf_release(&data);
        run_on(f, &b, false);
        if (fault == 0 && !verify_run_ok(&f->run)) fail_msg("%s", bc_buf_str(&f->run.problems));
        if (fault > 0) assert_fails(f, "fingerprints", weight);
        if (fault == 3) tensor_print[31] = tensor_print[31] == '0' ? '1' : '0';
    }
}

static void missing_own_keys(void **state)
{
    struct fixture *f = *state;
    run_i2_s(f, 0x18, 0.5f, 0, 0x18, true, false);
    assert_fails(f, "fingerprints", "bitconv.fingerprint is missing");
}

/* ---- other containers ---- */

static void safetensors(void **state)
{
    struct fixture *f = *state;
    struct st_builder b = {0};
    float values[4] = {1, 2, 3, 4};
    char *path = temp_dir_path(f->dir, "t.safetensors");
    for (int nan = 0; nan < 2; nan++) {
        memset(&b, 0, sizeof b);
        if (nan) values[2] = bc_f32_from_bits(0x7fc00000);
        st_builder_add_floats(&b, "a.weight", BITCONV_BF16, 1, (const uint64_t[]){4}, values);
        assert_true(st_builder_write(&b, path));
        st_builder_release(&b);
        verify_run(&f->run, path, NULL);
        if (nan)
            assert_fails(f, "floats", "a.weight: value 2");
        else
            assert_true(verify_run_ok(&f->run));
        assert_int_equal(verify_run_proof(&f->run, "structure")->verdict, BITCONV_PASSED);
        assert_int_equal(verify_run_proof(&f->run, "packs")->verdict, BITCONV_NOT_RUN);
    }
    free(path);
}

static void what_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    const struct bitconv_verify_options cpu = {.cpu = "abacus"};
    const struct bitconv_verify_options dialect = {.dialect = "klingon"};
    char *path = temp_dir_path(f->dir, "t.gguf");
    verify_run(&f->run, path, NULL);
    assert_int_equal(f->run.status, BITCONV_E_IO);
    temp_dir_puts(f->dir, "t.gguf", "GGUF");
    verify_run(&f->run, path, NULL);
    assert_int_equal(f->run.status, BITCONV_E_CORRUPT);
    verify_run(&f->run, path, &cpu);
    assert_int_equal(f->run.status, BITCONV_E_ARG);
    verify_run(&f->run, path, &dialect);
    assert_int_equal(f->run.status, BITCONV_E_ARG);
    verify_run(&f->run, f->dir, NULL); /* a folder without config.json */
    assert_int_not_equal(f->run.status, BITCONV_OK);
    free(path);
}

/* ---- damage anywhere ---- */

static void look_and_prove(struct fixture *f, const char *path)
{
    const struct bitconv_inspect_options all = {.stats = true, .hash = true, .n_threads = 1};
    const struct bitconv_verify_options one = {.n_threads = 1};
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    const enum bitconv_status status = bitconv_inspect(path, &all, NULL, &it, &err);
    assert_true((status == BITCONV_OK) == (it != NULL));
    assert_true((status == BITCONV_OK) == (err.text[0] == '\0'));
    bitconv_inspection_free(it);
    verify_run(&f->run, path, &one);
    assert_true(verify_run_ok(&f->run) || f->run.problems.size > 0);
}

/* Every byte of a small file changed in two ways, and the file cut at every length: an answer every time,
 * never a fault (the sanitizers watch), and a cut file never passes. */
static void damage_anywhere(void **state)
{
    struct fixture *f = *state;
    struct bc_buf bytes = {0};
    char *path = temp_dir_path(f->dir, "t.gguf");
    gguf_builder_sample(&bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        static const uint8_t masks[] = {0x01, 0xff};
        for (size_t j = 0; j < 2; j++) {
            bytes.data[i] ^= masks[j];
            temp_dir_write(f->dir, "t.gguf", bytes.data, bytes.size);
            bytes.data[i] ^= masks[j];
            look_and_prove(f, path);
        }
    }
    /* The last 12 bytes are padding behind the last tensor. */
    for (size_t size = 0; size < bytes.size - 12; size++) {
        temp_dir_write(f->dir, "t.gguf", bytes.data, size);
        look_and_prove(f, path);
        assert_false(verify_run_ok(&f->run));
    }
    bc_buf_release(&bytes);
    free(path);
}

/* ---- source ---- */

static char *source_dir(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fixtures/models", BITCONV_SOURCE_DIR);
    return temp_dir_path(path, name);
}

static char *convert(struct fixture *f, const char *name, const char *outtype,
                     const struct bitconv_convert_options *more)
{
    struct bitconv_convert_options options = {0};
    struct bitconv_conversion *conversion = NULL;
    struct bitconv_error err = {0};
    char *source = source_dir(name);
    char *out = temp_dir_path(f->dir, "model.gguf");
    if (more != NULL) options = *more;
    options.outtype = outtype;
    options.outfile = out;
    options.force = true;
    if (bitconv_convert(source, &options, NULL, &conversion, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    bitconv_conversion_free(conversion);
    free(source);
    return out;
}

static void run_source(struct fixture *f, const char *path, const char *name,
                       const struct bitconv_convert_options *conversion)
{
    char *source = source_dir(name);
    const struct bitconv_verify_options options = {
        .source = source, .conversion = conversion, .n_threads = 2};
    verify_run(&f->run, path, &options);
    free(source);
}

static void every_family_and_type(void **state)
{
    struct fixture *f = *state;
    static const char *const models[] = {"bitnet",       "bitnet-master", "bitnet-1bitllm",
                                         "llama-158",    "llama-ternary", "qwen3-embed",
                                         "gemma3-embed", "mixtral"};
    static const char *const outtypes[] = {"f32", "f16", "bf16", "i2_s"};
    static const char *const targets[] = {NULL, "bitnet", "llama.cpp"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        for (size_t j = 0; j < 12; j++) {
            const struct bitconv_convert_options options = {.target = targets[j / 4],
                                                            .on_misfit = "f16"};
            char *path = convert(f, models[i], outtypes[j % 4], &options);
            run_source(f, path, models[i], NULL);
            if (!verify_run_ok(&f->run))
                fail_msg("%s as %s for %s: %s", models[i], outtypes[j % 4],
                         targets[j / 4] ? targets[j / 4] : "auto", bc_buf_str(&f->run.problems));
            assert_int_equal(verify_run_proof(&f->run, "source")->verdict, BITCONV_PASSED);
            assert_int_equal(verify_run_proof(&f->run, "source-metadata")->verdict, BITCONV_PASSED);
            free(path);
        }
    }
}

/* What convert was told has to be told here as well, and then passes. */
static void told_conversions(void **state)
{
    struct fixture *f = *state;
    static const char *const meta[] = {"general.author=str:me"};
    const struct bitconv_convert_options told[] = {
        {.name = "Other"},          {.meta = meta, .n_meta = 1}, {.embd_type = "bf16"},
        {.keep_regex = "ffn_down"}, {.quant = "absmean"},        {.pre = "qwen2"},
    };
    static const char *const models[] = {"bitnet", "bitnet",        "bitnet",
                                         "bitnet", "llama-ternary", "bitnet"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        char *path = convert(f, models[i], "i2_s", &told[i]);
        run_source(f, path, models[i], &told[i]);
        if (!verify_run_ok(&f->run)) fail_msg("%zu: %s", i, bc_buf_str(&f->run.problems));
        run_source(f, path, models[i], NULL);
        if (verify_run_ok(&f->run)) fail_msg("%zu passes without being told", i);
        free(path);
    }
}

static void another_checkpoint(void **state)
{
    struct fixture *f = *state;
    char *path = convert(f, "bitnet", "i2_s", NULL);
    run_source(f, path, "bitnet-master", NULL);
    assert_fails(f, "source", "blk.0.attn_q.weight");
    run_source(f, path, "nothing-there", NULL);
    assert_int_not_equal(f->run.status, BITCONV_OK);
    free(path);
}

/* Two tensors of equal shape change places: every byte is legal, and wrong. */
static void swapped_tensors(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"blk.0.attn_k.weight", "blk.1.attn_k.weight"};
    char *path = convert(f, "bitnet", "i2_s", NULL);
    struct bitconv_gguf *gguf = NULL;
    uint8_t data[2][8192];
    uint64_t offsets[2];
    assert_int_equal(bitconv_gguf_open(path, &gguf, NULL), BITCONV_OK);
    const struct bitconv_gguf_tensor *t = NULL;
    for (size_t i = 0; i < 2; i++) {
        t = bitconv_gguf_find_tensor(gguf, names[i]);
        assert_non_null(t);
        assert_true(t->size <= sizeof data[i]);
        memcpy(data[i], t->data, t->size);
        offsets[i] = t->file_offset;
    }
    const size_t size = (size_t)t->size;
    bitconv_gguf_close(gguf);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fseek(file, (long)offsets[i], SEEK_SET), 0);
        assert_int_equal(fwrite(data[1 - i], 1, size, file), size);
    }
    fclose(file);
    run_source(f, path, "bitnet", NULL);
    assert_fails(f, "source", names[0]);
    assert_true(verify_run_says(&f->run.problems, names[1]));
    free(path);
}

/* ---- manifests ---- */

static void manifests(void **state)
{
    struct fixture *f = *state;
    struct bitconv_error err = {0};
    char *path = convert(f, "bitnet", "i2_s", NULL);
    char *manifest = temp_dir_path(f->dir, "manifest.json");
    const struct bitconv_verify_options against = {.against = manifest};
    verify_run(&f->run, path, NULL);
    assert_int_equal(bitconv_manifest_write(f->run.result, manifest, false, &err), BITCONV_OK);
    assert_int_not_equal(bitconv_manifest_write(f->run.result, manifest, false, &err), BITCONV_OK);
    assert_int_equal(bitconv_manifest_write(f->run.result, manifest, true, NULL), BITCONV_OK);
    verify_run(&f->run, path, &against);
    assert_true(verify_run_ok(&f->run));
    assert_int_equal(verify_run_proof(&f->run, "manifest")->verdict, BITCONV_PASSED);
    free(path);

    path = convert(f, "bitnet-master", "i2_s", NULL);
    verify_run(&f->run, path, &against);
    assert_fails(f, "manifest", "blk.0.attn_q.weight: its fingerprint");
    free(path);
    path = convert(f, "bitnet", "f16", NULL);
    verify_run(&f->run, path, &against);
    assert_fails(f, "manifest", "blk.0.attn_q.weight: its type");
    temp_dir_puts(f->dir, "manifest.json", "{\"tensors\": []}");
    verify_run(&f->run, path, &against);
    assert_int_equal(f->run.status, BITCONV_E_CORRUPT);
    free(path);
    free(manifest);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sound_pack),
        TEST(reserved_code),
        TEST(bad_scales),
        TEST(one_code),
        TEST(spare_bytes),
        TEST(padding),
        TEST(unknown_type),
        TEST(non_finite_floats),
        TEST(complete_model),
        TEST(required_keys),
        TEST(sizes_that_disagree),
        TEST(file_type),
        TEST(activation_of_bitnet),
        TEST(stated_fingerprints),
        TEST(missing_own_keys),
        TEST(damage_anywhere),
        TEST(safetensors),
        TEST(what_cannot_be_read),
        TEST(every_family_and_type),
        TEST(told_conversions),
        TEST(another_checkpoint),
        TEST(swapped_tensors),
        TEST(manifests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
