/* SPDX-License-Identifier: MIT
 * Metadata against tensors: a complete model keeps every rule, and each single change of a key, a
 * shape or a name breaks the one that is about it. */
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
#include "bitconv/gguf.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"
#include "verify/metadata_rules.h"

enum { EMBD = 64, FFN = 96, HEADS = 4, KV_HEADS = 2, HEAD = 32, ROWS = 3, BLOCKS = 2 };

/* One change of the model: a key (NULL value: left out) or a tensor. */
struct change {
    const char *what; /* a key without its architecture, or a tensor's name */
    enum { KEEP, DROP, SET_COUNT, SET_REAL, SET_TEXT, SET_SHAPE } how;
    uint64_t ne[2]; /* SET_COUNT: ne[0] */
    double real;
    const char *text;
    const char *said; /* what is to be found in the errors; NULL: nothing is wrong */
};

static const struct change nothing = {"", KEEP, {0, 0}, 0, NULL, NULL};

static bool is_about(const struct change *c, const char *what)
{
    return c->how != KEEP && strcmp(c->what, what) == 0;
}

static void put_key(struct gguf_builder *b, const struct change *c, const char *suffix,
                    uint32_t type, uint32_t bits)
{
    char key[96];
    uint8_t value[4];
    snprintf(key, sizeof key, "bitnet-b1.58.%s", suffix);
    if (is_about(c, suffix)) {
        if (c->how == DROP) return;
        if (c->how == SET_TEXT) {
            gguf_builder_string(b, key, c->text);
            return;
        }
        bits = c->how == SET_REAL ? bc_f32_bits((float)c->real) : (uint32_t)c->ne[0];
    }
    bc_put_u32(value, bits);
    gguf_builder_key(b, key, type, value, sizeof value);
}

static void put_keys(struct gguf_builder *b, const struct change *c)
{
    static const struct {
        const char *suffix;
        uint32_t value;
    } counts[] = {{"context_length", 32},       {"embedding_length", EMBD},
                  {"block_count", BLOCKS},      {"feed_forward_length", FFN},
                  {"attention.head_count", 4},  {"attention.head_count_kv", KV_HEADS},
                  {"attention.key_length", 32}, {"attention.value_length", HEAD},
                  {"rope.dimension_count", 32}, {"vocab_size", ROWS}};
    static const char *const merges[] = {"a b"};
    static const char *const tokens[] = {"a", "b", "ab"};
    gguf_builder_string(b, "general.architecture", "bitnet-b1.58");
    gguf_builder_string(b, "bitnet-b1.58.hidden_activation", "relu2");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        put_key(b, c, counts[i].suffix, BITCONV_GGUF_UINT32, counts[i].value);
    put_key(b, c, "rope.freq_base", BITCONV_GGUF_FLOAT32, bc_f32_bits(10000.0f));
    put_key(b, c, "attention.layer_norm_rms_epsilon", BITCONV_GGUF_FLOAT32, bc_f32_bits(1e-5f));
    if (is_about(c, "pooling_type")) put_key(b, c, "pooling_type", BITCONV_GGUF_UINT32, 0);
    if (is_about(c, "rope.scaling.type")) put_key(b, c, "rope.scaling.type", 0, 0);
    if (!is_about(c, "tokenizer.ggml.model"))
        gguf_builder_string(b, "tokenizer.ggml.model", "gpt2");
    gguf_builder_strings(b, "tokenizer.ggml.tokens", tokens, ROWS);
    if (!is_about(c, "tokenizer.ggml.merges"))
        gguf_builder_strings(b, "tokenizer.ggml.merges", merges, 1);
}

static void put_tensor(struct gguf_builder *b, const struct change *c, const char *name,
                       uint64_t columns, uint64_t rows)
{
    uint64_t ne[2] = {columns, rows};
    if (is_about(c, name)) {
        if (c->how == DROP) return;
        memcpy(ne, c->ne, sizeof ne);
    }
    const uint32_t n_dims = ne[1] != 0 ? 2 : 1;
    gguf_builder_tensor(b, name, 0, n_dims, ne, 4 * ne[0] * (n_dims == 2 ? ne[1] : 1));
}

static void put_tensors(struct gguf_builder *b, const struct change *c)
{
    static const struct {
        const char *suffix;
        uint64_t columns, rows; /* rows 0: one dimension */
    } of_block[] = {
        {"attn_norm.weight", EMBD, 0},
        {"attn_q.weight", EMBD, (uint64_t)HEADS * HEAD},
        {"attn_k.weight", EMBD, (uint64_t)KV_HEADS * HEAD},
        {"attn_v.weight", EMBD, (uint64_t)KV_HEADS * HEAD},
        {"attn_sub_norm.weight", (uint64_t)HEADS * HEAD, 0},
        {"attn_output.weight", (uint64_t)HEADS * HEAD, EMBD},
        {"ffn_norm.weight", EMBD, 0},
        {"ffn_gate.weight", EMBD, FFN},
        {"ffn_up.weight", EMBD, FFN},
        {"ffn_sub_norm.weight", FFN, 0},
        {"ffn_down.weight", FFN, EMBD},
    };
    put_tensor(b, c, "token_embd.weight", EMBD, ROWS);
    for (int block = 0; block < BLOCKS; block++)
        for (size_t i = 0; i < sizeof of_block / sizeof of_block[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s", block, of_block[i].suffix);
            put_tensor(b, c, name, of_block[i].columns, of_block[i].rows);
        }
    put_tensor(b, c, "output_norm.weight", EMBD, 0);
}

/* Errors and warnings of the rules, one a line each. */
struct said {
    struct bc_buf errors, warnings;
};

static void note(void *user, bool is_error, const char *text)
{
    struct said *said = user;
    bc_buf_printf(is_error ? &said->errors : &said->warnings, "%s\n", text);
}

static void check(const struct change *c, struct said *said)
{
    struct gguf_builder b = {0};
    struct bitconv_gguf *file = NULL;
    struct bitconv_error err = {0};
    const struct bc_rule_report report = {note, said};
    char *dir = temp_dir_new();
    put_keys(&b, c);
    put_tensors(&b, c);
    char *path = gguf_builder_write(&b, dir, "t.gguf");
    if (bitconv_gguf_open(path, &file, &err) != BITCONV_OK) fail_msg("%s", err.text);
    bc_check_model_metadata(file, &report);
    bitconv_gguf_close(file);
    free(path);
    temp_dir_remove(dir);
}

static void release(struct said *said)
{
    bc_buf_release(&said->errors);
    bc_buf_release(&said->warnings);
}

static void complete_model(void **state)
{
    struct said said = {0};
    (void)state;
    check(&nothing, &said);
    assert_string_equal(bc_buf_str(&said.errors), "");
    assert_string_equal(bc_buf_str(&said.warnings), "");
    release(&said);
}

/* Each changes one thing; `said` is what the errors must hold. */
static const struct change changes[] = {
    {"embedding_length", SET_COUNT, {32, 0}, 0, NULL, "token_embd.weight: rows of 64"},
    {"feed_forward_length", SET_COUNT, {95, 0}, 0, NULL, "blk.0.ffn_up.weight: 96 rows"},
    {"feed_forward_length", SET_COUNT, {0, 0}, 0, NULL, "feed_forward_length is 0"},
    {"context_length", SET_COUNT, {0, 0}, 0, NULL, "context_length is 0"},
    {"attention.head_count", SET_COUNT, {0, 0}, 0, NULL, "attention.head_count is 0"},
    {"attention.head_count", SET_COUNT, {3, 0}, 0, NULL, "does not divide"},
    {"attention.head_count", SET_COUNT, {2, 0}, 0, NULL, "blk.0.attn_q.weight: 128 rows"},
    {"attention.head_count_kv", SET_COUNT, {1, 0}, 0, NULL, "blk.0.attn_k.weight: 64 rows"},
    {"attention.head_count_kv", SET_COUNT, {0, 0}, 0, NULL, "head_count_kv is 0"},
    {"attention.head_count_kv", DROP, {0, 0}, 0, NULL, "blk.1.attn_v.weight: 64 rows"},
    {"attention.key_length", SET_COUNT, {16, 0}, 0, NULL, "blk.1.attn_q.weight: 128 rows"},
    {"attention.key_length", DROP, {0, 0}, 0, NULL, "blk.0.attn_q.weight: 128 rows"},
    {"attention.value_length", SET_COUNT, {16, 0}, 0, NULL, "blk.0.attn_output.weight: 128 col"},
    {"attention.value_length", SET_COUNT, {UINT32_MAX, 0}, 0, NULL, "blk.0.attn_v.weight: 64"},
    {"rope.dimension_count", SET_COUNT, {34, 0}, 0, NULL, "rope.dimension_count: 34"},
    {"rope.dimension_count", SET_COUNT, {31, 0}, 0, NULL, "rope.dimension_count: 31"},
    {"rope.freq_base", SET_REAL, {0, 0}, NAN, NULL, "rope.freq_base is nan"},
    {"rope.freq_base", SET_REAL, {0, 0}, 0, NULL, "rope.freq_base is 0"},
    {"rope.freq_base", SET_REAL, {0, 0}, -1, NULL, "rope.freq_base is -1"},
    {"attention.layer_norm_rms_epsilon", SET_REAL, {0, 0}, INFINITY, NULL, "epsilon is inf"},
    {"attention.layer_norm_rms_epsilon", SET_REAL, {0, 0}, 0, NULL, NULL},
    {"pooling_type", SET_COUNT, {77, 0}, 0, NULL, "pooling_type is 77"},
    {"pooling_type", SET_COUNT, {4, 0}, 0, NULL, NULL},
    {"rope.scaling.type", SET_TEXT, {0, 0}, 0, "yarn", NULL},
    {"tokenizer.ggml.merges", DROP, {0, 0}, 0, NULL, "tokenizer.ggml.merges is missing"},
    {"tokenizer.ggml.model", DROP, {0, 0}, 0, NULL, "tokenizer.ggml.model is missing"},
    {"token_embd.weight", DROP, {0, 0}, 0, NULL, "token_embd.weight is missing"},
    {"output_norm.weight", DROP, {0, 0}, 0, NULL, "output_norm.weight is missing"},
    {"blk.1.attn_norm.weight", DROP, {0, 0}, 0, NULL, "blk.1.attn_norm.weight is missing"},
    {"blk.0.ffn_gate.weight", DROP, {0, 0}, 0, NULL, "blk.0.ffn_gate.weight is missing"},
    {"blk.1.ffn_sub_norm.weight", DROP, {0, 0}, 0, NULL, "blk.1.ffn_sub_norm.weight is missing"},
    {"output_norm.weight", SET_SHAPE, {32, 0}, 0, NULL, "output_norm.weight: 32 columns"},
    {"blk.1.ffn_down.weight", SET_SHAPE, {64, 96}, 0, NULL, "blk.1.ffn_down.weight: 64 columns"},
    {"blk.1.ffn_down.weight", SET_SHAPE, {96, 32}, 0, NULL, "blk.1.ffn_down.weight: 32 rows"},
    {"blk.0.attn_sub_norm.weight", SET_SHAPE, {64, 0}, 0, NULL, "blk.0.attn_sub_norm.weight: 64"},
    {"blk.1.attn_k.weight", SET_SHAPE, {64, 32}, 0, NULL, "blk.1.attn_k.weight: 32 rows"},
};

static void single_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct change *c = &changes[i];
        struct said said = {0};
        check(c, &said);
        const char *errors = bc_buf_str(&said.errors);
        if (c->said != NULL ? strstr(errors, c->said) == NULL : errors[0] != '\0')
            fail_msg("%s: '%s' wanted, said: %s", c->what, c->said != NULL ? c->said : "nothing",
                     errors);
        release(&said);
    }
}

static void unknown_scaling(void **state)
{
    static const struct change odd = {"rope.scaling.type", SET_TEXT, {0, 0}, 0, "odd", NULL};
    struct said said = {0};
    (void)state;
    check(&odd, &said);
    assert_string_equal(bc_buf_str(&said.errors), "");
    assert_non_null(strstr(bc_buf_str(&said.warnings), "rope.scaling.type"));
    release(&said);
}

static void names_of_blocks(void **state)
{
    uint64_t block = 0;
    (void)state;
    assert_string_equal(bc_block_name("blk.12.attn_q.weight", &block), "attn_q.weight");
    assert_int_equal(block, 12);
    assert_null(bc_block_name("blk..x", &block));
    assert_null(bc_block_name("blk.12", &block));
    assert_null(bc_block_name("blk.x.y", &block));
    assert_null(bc_block_name("blk.99999999999.y", &block));
    assert_null(bc_block_name("output.weight", &block));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_model),
        cmocka_unit_test(single_changes),
        cmocka_unit_test(unknown_scaling),
        cmocka_unit_test(names_of_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
