/* SPDX-License-Identifier: MIT
 * verify --forward: files that compute something else than their checkpoint are caught by the
 * computation, and the place is named. */
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
#include "formats/block_pack.h"
#include "support/convert_run.h"
#include "support/engine_run.h"
#include "support/gguf_edit.h"
#include "support/verify_run.h"
#include "support/wide_model.h"
#include "verify/proofs.h"

enum { HEAD_DIM = 32, MAX_EDITS = 4 };

/* ---- helpers ---- */

struct tamper {
    struct convert_run *r;
    char *path; /* of the changed file */
    struct verify_run run;
};

static int set_up(void **state)
{
    void *convert = NULL;
    struct tamper *t = calloc(1, sizeof *t);
    if (t == NULL || convert_run_set_up(&convert) != 0) return 1;
    t->r = convert;
    t->r->options.plain = true; /* no fingerprints: only a look at the checkpoint can tell */
    t->path = calloc(1, strlen(t->r->root) + 32);
    if (t->path == NULL) return 1;
    sprintf(t->path, "%s/tampered.gguf", t->r->root);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct tamper *t = *state;
    void *convert = t->r;
    verify_run_release(&t->run);
    free(t->path);
    free(t);
    return convert_run_tear_down(&convert);
}

static void make(struct tamper *t, const char *fixture, const char *outtype)
{
    convert_run_model(t->r, fixture, NULL, 0);
    convert_run_accept(t->r, outtype);
}

static void verify_as(struct tamper *t, const char *path, struct bitconv_verify_options options)
{
    options.n_threads = 1;
    options.forward = true;
    verify_run(&t->run, path, &options);
}

static void verify_source(struct tamper *t, const char *path)
{
    const struct bitconv_verify_options options = {.source = t->r->model};
    verify_as(t, path, options);
}

/* The unchanged file passes; with the edits the forward proof fails and says `text`. */
static void caught(struct tamper *t, const struct gguf_edit *edits, size_t n, const char *text)
{
    verify_source(t, t->r->out);
    if (!verify_run_ok(&t->run)) print_error("%s", bc_buf_str(&t->run.problems));
    assert_true(verify_run_ok(&t->run));
    assert_int_equal(verify_run_proof(&t->run, "forward")->verdict, BITCONV_PASSED);
    gguf_edit_write(t->r->gguf, t->path, edits, n);
    verify_source(t, t->path);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    print_message("%s\n", forward->detail);
    assert_false(t->run.result->ok);
    assert_int_equal(forward->verdict, BITCONV_FAILED);
    assert_non_null(strstr(forward->detail, text));
}

static uint8_t *copy_of(const struct tamper *t, const char *tensor, uint64_t *size)
{
    const struct bitconv_gguf_tensor *stored = convert_run_stored(t->r, tensor);
    uint8_t *bytes = malloc((size_t)stored->size);
    assert_non_null(bytes);
    memcpy(bytes, stored->data, (size_t)stored->size);
    *size = stored->size;
    return bytes;
}

/* ---- weights ---- */

static void scale_is_tampered(void **state)
{
    struct tamper *t = *state;
    uint64_t size;
    make(t, "bitnet", "i2_s");
    uint8_t *bytes = copy_of(t, "blk.1.ffn_up.weight", &size);
    uint8_t *scale = bytes + size - 32;
    bc_put_u32(scale, bc_get_u32(scale) ^ 1); /* the last bit of the float */
    const struct gguf_edit edit = {.name = "blk.1.ffn_up.weight", .data = bytes, .size = size};
    caught(t, &edit, 1, "blk.1.ffn_up: float activations");
    assert_true(verify_run_says(&t->run.problems, "blk.1.ffn_up: int8 activations"));
    free(bytes);
}

static void equal_shapes_are_swapped(void **state)
{
    static const char *const types[] = {"i2_s", "f32"};
    struct tamper *t = *state;
    const struct gguf_edit edits[] = {
        {.name = "blk.0.attn_k.weight", .renamed = "blk.0.attn_v.weight"},
        {.name = "blk.0.attn_v.weight", .renamed = "blk.0.attn_k.weight"}};
    for (size_t i = 0; i < 2; i++) {
        make(t, "bitnet", types[i]);
        caught(t, edits, 2, "blk.0.attn_k: float activations");
    }
}

/* Row h * d + 2 i + j of a llama file is row h * d + j * d / 2 + i of the checkpoint. */
static uint8_t *unpermuted(const struct tamper *t, const char *name, uint64_t *size)
{
    const struct bitconv_gguf_tensor *stored = convert_run_stored(t->r, name);
    const uint64_t tail = strcmp(stored->type_name, "I2_S") == 0 ? 32 : 0;
    const uint64_t row = (stored->size - tail) / stored->ne[1], half = HEAD_DIM / 2;
    uint8_t *bytes = copy_of(t, name, size);
    for (uint64_t r = 0; r < stored->ne[1]; r++) {
        const uint64_t in_head = r % HEAD_DIM;
        const uint64_t hf = r - in_head + in_head % 2 * half + in_head / 2;
        memcpy(bytes + hf * row, stored->data + r * row, (size_t)row);
    }
    return bytes;
}

static void permutation_is_left_out(void **state)
{
    static const char *const types[] = {"i2_s", "f32"};
    struct tamper *t = *state;
    for (size_t i = 0; i < 2; i++) {
        struct gguf_edit edits[] = {{.name = "blk.0.attn_q.weight"},
                                    {.name = "blk.0.attn_k.weight"},
                                    {.name = "blk.1.attn_q.weight"},
                                    {.name = "blk.1.attn_k.weight"}};
        uint8_t *bytes[4];
        make(t, "llama-158", types[i]);
        for (size_t e = 0; e < 4; e++)
            edits[e].data = bytes[e] = unpermuted(t, edits[e].name, &edits[e].size);
        caught(t, edits, 4, "blk.0.attn_q: float activations");
        for (size_t e = 0; e < 4; e++)
            free(bytes[e]);
    }
}

static void one_is_added_again(void **state)
{
    static const struct {
        const char *tensor, *said;
    } cases[] = {{"blk.1.attn_norm.weight", "blk.1.attn_norm: float"},
                 {"blk.0.post_ffw_norm.weight", "blk.0.post_ffw_norm: float"},
                 {"blk.0.attn_k_norm.weight", "blk.0.attn (the heads' outputs"},
                 {"blk.0.ffn_down_norm_in.weight", "blk.0.ffn_down: float"},
                 {"output_norm.weight", "final_norm: float"}};
    struct tamper *t = *state;
    make(t, "gemma3-embed", "f32");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint64_t size;
        uint8_t *bytes = copy_of(t, cases[c].tensor, &size);
        for (uint64_t i = 0; i < size; i += 4)
            bc_put_u32(bytes + i, bc_f32_bits(bc_get_f32(bytes + i) + 1.0f));
        const struct gguf_edit edit = {.name = cases[c].tensor, .data = bytes, .size = size};
        caught(t, &edit, 1, cases[c].said);
        free(bytes);
    }
}

/* ---- metadata ---- */

static void activation_is_another(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit silu = {.name = "bitnet-b1.58.hidden_activation", .text = "silu"};
    const struct gguf_edit unknown = {.name = "bitnet-b1.58.hidden_activation", .text = "swoosh"};
    t->r->options.plain = false; /* plain files of this family leave it to the reader */
    make(t, "bitnet", "i2_s");
    caught(t, &silu, 1, "blk.0.ffn_gated");
    caught(t, &unknown, 1, "the activation 'swoosh'");
}

static void rope_base_is_another(void **state)
{
    struct tamper *t = *state;
    uint8_t base[4];
    bc_put_u32(base, bc_f32_bits(10000.0f));
    const struct gguf_edit bitnet = {
        .name = "bitnet-b1.58.rope.freq_base", .data = base, .size = sizeof base};
    const struct gguf_edit llama = {
        .name = "llama.rope.freq_base", .data = base, .size = sizeof base};
    make(t, "bitnet", "i2_s");
    caught(t, &bitnet, 1, "blk.0.attn (the heads' outputs");
    make(t, "llama-158", "f16");
    caught(t, &llama, 1, "blk.0.attn (the heads' outputs");
}

static void rope_frequencies_are_missing(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit edits[] = {{.name = "rope_freqs.weight", .drop = true},
                                      {.name = "llama.rope.scaling.llama3.factor", .drop = true}};
    make(t, "llama-158", "i2_s");
    caught(t, edits, 1, "rope_freqs.weight: missing");
    caught(t, edits, 2, "blk.0.attn (the heads' outputs"); /* no key says that they belong there */
}

static void window_is_missing(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit edits[] = {
        {.name = "gemma3.attention.sliding_window", .drop = true},
        {.name = "gemma3.attention.sliding_window_pattern", .drop = true}};
    make(t, "gemma3-embed", "i2_s");
    caught(t, edits, 2, "blk.0.attn (the heads' outputs");
    caught(t, edits, 1, "blk.0.attn (the heads' outputs");
    /* Texts that the window holds cannot tell, which is said. */
    static const int32_t tokens[] = {7, 8, 9};
    const struct bitconv_verify_options few = {
        .source = t->r->model, .tokens = tokens, .n_tokens = 3};
    verify_as(t, t->path, few);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    assert_int_equal(forward->verdict, BITCONV_PASSED);
    assert_non_null(strstr(forward->detail, "sliding window of 4 tokens is longer"));
    assert_false(t->run.result->ok); /* the metadata has the difference */
}

/* A window that is longer than the default text makes the text longer. */
static void windows_are_outgrown(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit drop = {.name = "gemma3.attention.sliding_window", .drop = true};
    convert_run_model(t->r, "gemma3-embed", NULL, 0);
    model_copy_config(t->r->model, "\"sliding_window\": 4", "\"sliding_window\": 100");
    convert_run_accept(t->r, "i2_s");
    caught(t, &drop, 1, "blk.0.attn (the heads' outputs");
    assert_true(verify_run_says(&t->run.problems, "of token 100, is"));
    verify_source(t, t->r->out);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    assert_non_null(strstr(forward->detail, "108 tokens of the default text"));
}

/* ---- an adversary's list ---- */

/* Changes the value of a key (tensor NULL) or the bytes of a tensor. */
typedef void change_fn(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor);

static void first_bit_flips(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    (void)size;
    (void)tensor;
    bytes[0] ^= 1;
}

static void floats_double(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    (void)tensor;
    for (uint64_t i = 0; i + 4 <= size; i += 4)
        bc_put_u32(bytes + i, bc_f32_bits(2 * bc_get_f32(bytes + i)));
}

static void swap_bytes(uint8_t *a, uint8_t *b, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        const uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* Rows of matrices, matrices of stacks. */
static void first_two_swap(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    const uint64_t part = size / tensor->ne[tensor->n_dims - 1];
    swap_bytes(bytes, bytes + part, part);
}

static void halves_swap(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    (void)tensor;
    swap_bytes(bytes, bytes + size / 2, size / 2);
}

static void filters_reverse(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    const uint64_t taps = tensor->ne[0];
    for (uint64_t row = 0; row < size; row += taps * 4)
        for (uint64_t i = 0; i < taps / 2; i++)
            swap_bytes(bytes + row + 4 * i, bytes + row + 4 * (taps - 1 - i), 4);
}

static void last_bit_flips(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    (void)tensor;
    bytes[size - 1] ^= 1;
}

/* The first two strings of an array, which are as long as each other. */
static void strings_swap(uint8_t *bytes, uint64_t size, const struct bitconv_gguf_tensor *tensor)
{
    const uint64_t len = bc_get_u64(bytes);
    (void)tensor;
    assert_true(size >= 16 + 2 * len && bc_get_u64(bytes + 8 + len) == len);
    swap_bytes(bytes + 8, bytes + 16 + len, len);
}

/* A proof that must fail, and what it says. */
struct tampering {
    const char *fixture, *outtype, *name;
    change_fn *change; /* NULL: the key or tensor goes */
    const char *proof, *said;
};

static void change_one(struct tamper *t, const struct tampering *c)
{
    const struct bitconv_gguf_tensor *tensor = bitconv_gguf_find_tensor(t->r->gguf, c->name);
    const struct bitconv_gguf_value *value = bitconv_gguf_find_key(t->r->gguf, c->name);
    struct gguf_edit edit = {.name = c->name, .drop = c->change == NULL};
    assert_true(tensor != NULL || value != NULL);
    const void *from = tensor != NULL ? tensor->data : value->data;
    edit.size = tensor != NULL ? tensor->size : value->size;
    uint8_t *bytes = malloc((size_t)edit.size);
    assert_non_null(bytes);
    memcpy(bytes, from, (size_t)edit.size);
    if (c->change != NULL) c->change(bytes, edit.size, tensor);
    edit.data = bytes;
    gguf_edit_write(t->r->gguf, t->path, &edit, 1);
    free(bytes);
}

static void others_are_caught(void **state)
{
    static const struct tampering cases[] = {
        {"qwen2", "f16", "blk.0.attn_q.bias", NULL, "forward", "blk.0.attn_q.bias: missing"},
        {"qwen2", "f16", "blk.0.attn_q.bias", floats_double, "forward", "blk.0.attn_q: float"},
        {"bert", "f16", "blk.0.attn_output.bias", NULL, "forward",
         "blk.0.attn_output.bias: missing"},
        {"qwen2", "f16", "qwen2.attention.layer_norm_rms_epsilon", floats_double, "forward",
         "blk.0.attn_norm: float"},
        {"lfm2", "f16", "lfm2.attention.layer_norm_rms_epsilon", floats_double, "forward",
         "blk.0.attn_norm: float"},
        {"bert", "f16", "bert.attention.layer_norm_epsilon", floats_double, "source-metadata",
         "bert.attention.layer_norm_epsilon: 1.99999999e-12"},
        {"bitnet", "f32", "token_embd.weight", floats_double, "forward",
         "embedding (rows of token_embd"},
        {"llama-158", "i2_s", "output.weight", NULL, "forward", "logits: float"},
        {"mixtral", "f32", "blk.0.ffn_gate_exps.weight", first_two_swap, "forward",
         "blk.0.ffn_experts ("},
        {"mixtral", "bitcos", "blk.0.ffn_gate_inp.weight", first_two_swap, "forward",
         "blk.0.ffn_gate_inp: float"},
        {"mixtral", "bitcos", "llama.expert_used_count", first_bit_flips, "forward",
         "blk.0.ffn_experts ("},
        {"gemma3-embed", "i2_s", "gemma3.attention.sliding_window_pattern", halves_swap, "forward",
         "blk.0.attn (the heads'"},
        {"gemma3-embed", "i2_s", "gemma3.attention.sliding_window", first_bit_flips, "forward",
         "blk.0.attn (the heads'"},
        {"gemma3-embed", "i2_s", "gemma3.attention.scale", floats_double, "forward",
         "blk.0.attn (the heads'"},
        {"gemma3-embed", "i2_s", "gemma3.attention.query_pre_attn_scalar", floats_double,
         "source-metadata", "query_pre_attn_scalar: 64"},
        {"gemma3-embed", "i2_s", "gemma3.rope.freq_base_swa", floats_double, "forward",
         "blk.0.attn (the heads'"},
        {"gemma3-embed", "i2_s", "gemma3.attention.causal", first_bit_flips, "forward",
         "blk.0.attn (the heads'"},
        {"bert", "f16", "token_types.weight", first_two_swap, "forward", "what is added to them"},
        {"bert", "f16", "position_embd.weight", first_two_swap, "forward", "what is added to them"},
        {"bert", "f16", "bert.attention.causal", first_bit_flips, "forward",
         "blk.0.attn (the heads'"},
        {"bert", "f16", "bert.pooling_type", first_bit_flips, "forward", "pooled (pooling)"},
        {"qwen3-embed", "i2_s", "qwen3.pooling_type", first_bit_flips, "forward",
         "pooled (pooling)"},
        {"lfm2", "f16", "blk.0.shortconv.conv.weight", filters_reverse, "forward",
         "blk.0.shortconv.conv: float"},
        {"lfm2", "f16", "lfm2.attention.head_count_kv", halves_swap, "forward",
         "blk.1.shortconv.in_proj.weight: missing"},
        {"lfm2", "f16", "lfm2.shortconv.l_cache", first_bit_flips, "forward",
         "blk.0.shortconv.conv.weight: 3 x 128"},
        {"qwen3-embed", "i2_s", "blk.0.attn_q_norm.weight", NULL, "forward",
         "blk.0.attn_q_norm.weight: missing"},
        {"qwen3-embed", "i2_s", "blk.0.ffn_up_norm_in.weight", NULL, "forward",
         "blk.0.ffn_up.weight: other projections have a norm"},
        {"phi3", "f16", "blk.0.ffn_up.weight", halves_swap, "forward", "blk.0.ffn_up: float"},
        {"phi3", "f16", "phi3.rope.scaling.attn_factor", floats_double, "forward",
         "blk.0.attn (the heads'"},
        {"phi3", "f16", "phi3.rope.scaling.original_context_length", first_bit_flips,
         "source-metadata", "original_context_length: 1025"},
        {"bitnet", "i2_s", "bitnet-b1.58.attention.head_count_kv", first_bit_flips, "forward",
         "a divisor of the head count"},
        {"qwen2", "f16", "tokenizer.ggml.tokens", strings_swap, "source-metadata",
         "tokenizer.ggml.tokens"},
        {"qwen2", "f16", "tokenizer.ggml.merges", last_bit_flips, "source-metadata",
         "from element 19 on"},
        {"qwen2", "f16", "tokenizer.ggml.add_bos_token", first_bit_flips, "source-metadata",
         "add_bos_token: true"},
        {"qwen2", "f16", "tokenizer.ggml.add_eos_token", first_bit_flips, "source-metadata",
         "add_eos_token: false"},
        {"qwen2", "f16", "tokenizer.ggml.eos_token_id", first_bit_flips, "source-metadata",
         "eos_token_id: 277"},
        {"qwen2", "f16", "tokenizer.ggml.pre", last_bit_flips, "source-metadata",
         "tokenizer.ggml.pre"},
        {"gemma3-embed", "i2_s", "tokenizer.ggml.scores", floats_double, "source-metadata",
         "tokenizer.ggml.scores"},
        {"mixtral", "bitcos", "tokenizer.ggml.add_space_prefix", first_bit_flips, "source-metadata",
         "add_space_prefix: false"},
        {"bert", "f16", "tokenizer.ggml.token_type", first_bit_flips, "source-metadata",
         "from element 0 on"},
        {"bert", "f16", "tokenizer.ggml.normalizer.lowercase", first_bit_flips, "source-metadata",
         "lowercase: false"},
    };
    struct tamper *t = *state;
    t->r->options.plain = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tampering *c = &cases[i];
        make(t, c->fixture, c->outtype);
        change_one(t, c);
        verify_source(t, t->path);
        const struct bitconv_proof *proof = verify_run_proof(&t->run, c->proof);
        print_message("%s %s: %s: %s\n", c->fixture, c->name, c->proof, proof->detail);
        assert_false(t->run.result->ok);
        assert_int_equal(proof->verdict, BITCONV_FAILED);
        assert_non_null(strstr(proof->detail, c->said));
    }
}

/* A key that the checkpoint does not give, of which readers know what it does. */
static void keys_are_added(void **state)
{
    static const uint32_t f32 = BITCONV_GGUF_FLOAT32, boolean = BITCONV_GGUF_BOOL;
    static const struct {
        const char *fixture, *name;
        float value; /* 0: the key is a bool, false */
        const char *proof, *said;
    } cases[] = {
        {"qwen2", "qwen2.final_logit_softcapping", 30, "forward", "logits: float"},
        {"gemma3-embed", "gemma3.attn_logit_softcapping", 50, "forward", "blk.0.attn (the heads'"},
        {"qwen2", "qwen2.rope.scaling.factor", 4, "forward", "blk.0.attn (the heads'"},
        {"llama-158", "llama.attention.scale", 0.5f, "forward", "blk.0.attn (the heads'"},
        {"mixtral", "llama.expert_weights_scale", 2, "source-metadata",
         "llama.expert_weights_scale"},
        {"mixtral", "llama.expert_weights_norm", 0, "source-metadata", "llama.expert_weights_norm"},
        {"mixtral", "tokenizer.ggml.add_sep_token", 0, "source-metadata", "tokenizer.ggml.add_sep"},
    };
    struct tamper *t = *state;
    t->r->options.plain = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t value[4] = {0};
        const bool number = cases[i].value > 0;
        if (number) bc_put_u32(value, bc_f32_bits(cases[i].value));
        const struct gguf_edit edit = {.name = cases[i].name,
                                       .add = true,
                                       .type = number ? &f32 : &boolean,
                                       .data = value,
                                       .size = number ? 4 : 1};
        make(t, cases[i].fixture, "f16");
        gguf_edit_write(t->r->gguf, t->path, &edit, 1);
        verify_source(t, t->path);
        const struct bitconv_proof *proof = verify_run_proof(&t->run, cases[i].proof);
        assert_false(t->run.result->ok);
        assert_int_equal(proof->verdict, BITCONV_FAILED);
        assert_non_null(strstr(proof->detail, cases[i].said));
    }
}

/* Twice the heads of half the size: no shape changes. */
static void head_size_is_another(void **state)
{
    struct tamper *t = *state;
    uint8_t eight[4], four[4], sixteen[4];
    bc_put_u32(eight, 8);
    bc_put_u32(four, 4);
    bc_put_u32(sixteen, 16);
    const struct gguf_edit edits[] = {
        {.name = "qwen2.attention.head_count", .data = eight, .size = 4},
        {.name = "qwen2.attention.head_count_kv", .data = four, .size = 4},
        {.name = "qwen2.attention.key_length", .data = sixteen, .size = 4},
        {.name = "qwen2.attention.value_length", .data = sixteen, .size = 4},
        {.name = "qwen2.rope.dimension_count", .data = sixteen, .size = 4}};
    t->r->options.plain = false;
    make(t, "qwen2", "f16");
    caught(t, edits, 5, "blk.0.attn (the heads' outputs");
}

/* The file has an output projection of its own, the checkpoint says that it is the embedding. */
static void output_is_not_tied(void **state)
{
    struct tamper *t = *state;
    make(t, "llama-158", "f16");
    model_copy_config(t->r->model, "\"tie_word_embeddings\": false",
                      "\"tie_word_embeddings\": true");
    verify_source(t, t->r->out);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    assert_false(t->run.result->ok);
    assert_int_equal(forward->verdict, BITCONV_FAILED);
    assert_non_null(strstr(forward->detail, "logits: float"));
}

/* Texts on either side of the original context use one list of factors each; both are run. */
static void both_rope_factors_are_run(void **state)
{
    static const struct {
        uint32_t orig_ctx;
        const char *tensor, *said;
    } cases[] = {{1024, "rope_factors_short.weight", "float activations: "},
                 {1024, "rope_factors_long.weight", "float activations, long RoPE factors: "},
                 {16, "rope_factors_short.weight", "float activations, short RoPE factors: "},
                 {16, "rope_factors_long.weight", "float activations: "}};
    struct tamper *t = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t size;
        convert_run_model(t->r, "phi3", NULL, 0);
        if (cases[i].orig_ctx == 16)
            model_copy_config(t->r->model, "embeddings\": 1024", "embeddings\": 16");
        convert_run_accept(t->r, "i2_s");
        uint8_t *bytes = copy_of(t, cases[i].tensor, &size);
        bc_put_u32(bytes + 8, bc_get_u32(bytes + 8) ^ 0x10000);
        const struct gguf_edit edit = {.name = cases[i].tensor, .data = bytes, .size = size};
        caught(t, &edit, 1, cases[i].said);
        free(bytes);
    }
    verify_source(t, t->r->out);
    assert_non_null(strstr(verify_run_proof(&t->run, "forward")->detail,
                           "float and int8 activations, short and long RoPE factors"));
}

/* One token chooses two of three experts. */
static void idle_experts_are_counted(void **state)
{
    static const int32_t token[] = {5};
    struct tamper *t = *state;
    make(t, "mixtral", "bitcos");
    const struct bitconv_verify_options one = {
        .source = t->r->model, .tokens = token, .n_tokens = 1};
    verify_as(t, t->r->out, one);
    assert_non_null(strstr(verify_run_proof(&t->run, "forward")->detail,
                           "experts that no token chose, and that were not run: 1"));
    verify_source(t, t->r->out);
    assert_null(strstr(verify_run_proof(&t->run, "forward")->detail, "no token chose"));
}

/* ---- what cannot be run ---- */

static void nonfinite_results_are_named(void **state)
{
    static const struct {
        uint32_t bits;
        const char *said;
    } cases[] = {{0x7fc00000u, "is NaN"}, {0x7f800000u, "the first result that is not finite"}};
    struct tamper *t = *state;
    make(t, "qwen3-embed", "f32");
    for (size_t c = 0; c < 2; c++) {
        uint64_t size;
        uint8_t *bytes = copy_of(t, "blk.0.ffn_up.weight", &size);
        const struct gguf_edit edit = {.name = "blk.0.ffn_up.weight", .data = bytes, .size = size};
        const struct bitconv_verify_options alone = {.source = NULL};
        bc_put_u32(bytes + 4 * 130, cases[c].bits);
        caught(t, &edit, 1, cases[c].said);
        verify_as(t, t->path, alone);
        const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
        assert_int_equal(forward->verdict, BITCONV_FAILED);
        assert_non_null(strstr(forward->detail, "blk.0.ffn_up: value 1 of token 0"));
        free(bytes);
    }
}

static void shapes_are_checked(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit edits[] = {
        {.name = "blk.0.attn_q.weight", .renamed = "blk.0.attn_k.weight"},
        {.name = "blk.0.attn_k.weight", .renamed = "blk.0.attn_q.weight"}};
    make(t, "bitnet", "f32");
    caught(t, edits, 2, "blk.0.attn_q.weight: 128 x 64");
    const struct bitconv_verified_tensor *marked = NULL;
    for (size_t i = 0; i < t->run.result->n_tensors; i++)
        if (!t->run.result->tensors[i].ok) marked = &t->run.result->tensors[i];
    assert_non_null(marked);
}

static void missing_tensors_are_named(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit drop = {.name = "blk.1.ffn_down.weight", .drop = true};
    make(t, "bitnet", "i2_s");
    caught(t, &drop, 1, "blk.1.ffn_down.weight: missing");
}

static void foreign_types_are_run_alone(void **state)
{
    static const uint32_t q4_0 = 2;
    struct tamper *t = *state;
    make(t, "bitnet", "f32");
    const struct bitconv_gguf_tensor *stored = convert_run_stored(t->r, "blk.0.attn_q.weight");
    const uint64_t size = stored->n_elements / 32 * 18;
    void *bytes = calloc(1, (size_t)size);
    const struct gguf_edit edit = {
        .name = "blk.0.attn_q.weight", .data = bytes, .size = size, .type = &q4_0};
    gguf_edit_write(t->r->gguf, t->path, &edit, 1);
    verify_source(t, t->path);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    assert_int_equal(forward->verdict, BITCONV_PASSED);
    assert_non_null(strstr(forward->detail, "does not write Q4_0 (blk.0.attn_q.weight)"));
    assert_false(t->run.result->ok); /* its values are not the checkpoint's */
    free(bytes);
}

static void unknown_families_are_not_run(void **state)
{
    struct tamper *t = *state;
    const struct bitconv_verify_options alone = {.source = NULL};
    const struct gguf_edit edit = {.name = "general.architecture", .text = "abacus"};
    make(t, "bitnet", "f32");
    gguf_edit_write(t->r->gguf, t->path, &edit, 1);
    verify_as(t, t->path, alone);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    assert_int_equal(forward->verdict, BITCONV_NOT_RUN);
    assert_non_null(strstr(forward->detail, "'abacus' is no family"));
    assert_int_equal(verify_run_proof(&t->run, "kernels")->verdict, BITCONV_NOT_RUN);
}

/* ---- every pack ---- */

static const char *const fixtures[] = {
    "bitnet",      "bitnet-1bitllm", "bitnet-master", "gemma3-embed", "llama-ternary", "mixtral",
    "qwen3-embed", "qwen2",          "phi3",          "bert",         "lfm2"};

static void passes(struct tamper *t, const char *fixture, const char *outtype, const char *said)
{
    const struct bitconv_verify_options options = {.source = t->r->model,
                                                   .conversion = &t->r->options};
    convert_run_accept(t->r, outtype);
    verify_as(t, t->r->out, options);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    if (forward->verdict != BITCONV_PASSED || strstr(forward->detail, said) == NULL)
        print_error("%s as %s: %s\n", fixture, outtype, forward->detail);
    assert_true(verify_run_ok(&t->run));
    assert_int_equal(forward->verdict, BITCONV_PASSED);
    assert_non_null(strstr(forward->detail, said));
    assert_int_equal(verify_run_proof(&t->run, "kernels")->verdict, BITCONV_PASSED);
}

/* Wide enough for blocks of 256 and for TL2; what does not fit is stored as floats. */
static void every_pack_computes_the_same(void **state)
{
    struct tamper *t = *state;
    t->r->options.on_misfit = "f16";
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        wide_model(t->r, fixtures[f]);
        for (size_t p = 0; bc_format_at(p) != NULL; p++) {
            const char *pack = bc_format_at(p)->name;
            if (strcmp(pack, "q1_0") == 0) continue; /* has no code for zeros */
            t->r->options.plain =
                p % 2 == 0 && strcmp(pack, "i2_s_64") != 0 && bc_format_at(p)->choose_tile == NULL;
            passes(t, fixtures[f], pack, "float and int8 activations");
            if (bc_block_pack_find(pack) == NULL) continue;
            t->r->options.scale_tensor = true;
            passes(t, fixtures[f], pack, "float and int8 activations");
            t->r->options.scale_tensor = false;
        }
    }
}

/* Blocks with scales of their own: the integers of int8 mode are summed up block by block, which the
 * checkpoint's path does not do. */
static void quantized_blocks_compute_the_same(void **state)
{
    static const char *const types[] = {"q2_0", "q1_0"};
    struct tamper *t = *state;
    t->r->options.quant = "block";
    convert_run_model(t->r, "bert", NULL, 0);
    for (size_t i = 0; i < 2; i++)
        passes(t, "bert", types[i], "those of int8, where blocks have scales of their own, finite");
    wide_model(t->r, "qwen2"); /* ternary: each block's largest magnitude is the scale of all */
    passes(t, "qwen2", "tq1_0", "float and int8 activations: 34 intermediate results equal");
}

/* ---- options ---- */

static void nothing_is_run_unasked(void **state)
{
    static const char *const names[] = {"forward", "kernels", "unquantized"};
    struct tamper *t = *state;
    make(t, "bitnet", "i2_s");
    const struct bitconv_verify_options options = {.n_threads = 1, .source = t->r->model};
    verify_run(&t->run, t->r->out, &options);
    assert_true(verify_run_ok(&t->run));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(verify_run_proof(&t->run, names[i])->verdict, BITCONV_NOT_RUN);
        assert_string_equal(verify_run_proof(&t->run, names[i])->detail, "no --forward given");
    }
    assert_false(t->run.result->distance.measured);
}

static void tokens_are_checked(void **state)
{
    static const int32_t outside[] = {1, 320};
    struct tamper *t = *state;
    const struct bitconv_verify_options options = {.tokens = outside, .n_tokens = 2};
    const struct bitconv_verify_options empty = {.tokens = outside, .n_tokens = 0};
    make(t, "bitnet", "i2_s");
    verify_as(t, t->r->out, options);
    assert_int_equal(t->run.status, BITCONV_E_ARG);
    assert_true(verify_run_says(&t->run.problems, "token 1 to run is 320"));
    verify_as(t, t->r->out, empty);
    assert_int_equal(t->run.status, BITCONV_E_ARG);
    int32_t many[65] = {0}; /* bert has 64 positions */
    const struct bitconv_verify_options too_many = {.tokens = many, .n_tokens = 65};
    make(t, "bert", "f32");
    verify_as(t, t->r->out, too_many);
    assert_int_equal(t->run.status, BITCONV_E_LIMIT);
    assert_true(
        verify_run_says(&t->run.problems, "65 tokens to run, the model has positions for 64"));
}

/* A text of the user wants the tokenizer; the default text can do without. */
static void prompts_want_a_tokenizer(void **state)
{
    struct tamper *t = *state;
    const struct gguf_edit edit = {.name = "tokenizer.ggml.tokens", .drop = true};
    make(t, "bitnet", "i2_s");
    const struct bitconv_verify_options prompt = {.prompt = "Hello", .source = t->r->model};
    verify_as(t, t->r->out, prompt);
    assert_true(verify_run_ok(&t->run));
    assert_non_null(strstr(verify_run_proof(&t->run, "forward")->detail, "of the prompt"));
    gguf_edit_write(t->r->gguf, t->path, &edit, 1);
    verify_as(t, t->path, prompt);
    assert_int_not_equal(t->run.status, BITCONV_OK);
    verify_source(t, t->path);
    const struct bitconv_proof *forward = verify_run_proof(&t->run, "forward");
    assert_int_equal(forward->verdict, BITCONV_PASSED);
    assert_non_null(strstr(forward->detail, "fixed ids"));
}

/* ---- the distance from the checkpoint as stored ---- */

static void distance_is_what_the_engines_give(void **state)
{
    enum { N = 9, WIDTH = 128 };
    struct tamper *t = *state;
    int32_t tokens[N];
    float a[WIDTH], b[WIDTH];
    double max = 0, dot = 0;
    const struct bitconv_engine_options file = {.n_threads = 1, .n_ctx = N};
    const struct bitconv_engine_options stored = {.n_threads = 1, .n_ctx = N, .as_stored = true};
    engine_tokens(tokens, N);
    make(t, "qwen3-embed", "i2_s");
    const char *const paths[] = {t->r->out, t->r->model};
    for (size_t i = 0; i < 2; i++) {
        struct bitconv_engine *engine = NULL;
        struct bitconv_session *session = NULL;
        struct bitconv_error err = {.status = BITCONV_OK};
        assert_int_equal(
            bitconv_engine_open(paths[i], i == 0 ? &file : &stored, NULL, &engine, &err), 0);
        assert_int_equal(bitconv_session_new(engine, &session, &err), BITCONV_OK);
        assert_int_equal(bitconv_session_embed(session, tokens, N, -1, 2, i == 0 ? a : b, &err),
                         BITCONV_OK);
        bitconv_session_free(session);
        bitconv_engine_close(engine);
    }
    for (size_t i = 0; i < WIDTH; i++) {
        dot += (double)a[i] * (double)b[i];
        if (fabs((double)a[i] - (double)b[i]) > max) max = fabs((double)a[i] - (double)b[i]);
    }
    struct bitconv_verify_options options = {
        .source = t->r->model, .tokens = tokens, .n_tokens = N, .has_tolerance = true};
    options.tolerance = max;
    verify_as(t, t->r->out, options);
    const struct bitconv_distance *d = &t->run.result->distance;
    assert_true(verify_run_ok(&t->run) && d->measured && d->embedding);
    assert_true(max > 0.001 && d->max_difference == max);
    assert_true(fabs(d->cosine - dot) < 1e-6 && d->cosine < 0.9999);
    options.tolerance = max * 0.999;
    verify_as(t, t->r->out, options);
    assert_false(t->run.result->ok);
    assert_int_equal(verify_run_proof(&t->run, "unquantized")->verdict, BITCONV_FAILED);
    assert_int_equal(verify_run_proof(&t->run, "forward")->verdict, BITCONV_PASSED);
}

/* Logits of all tokens, which are computed in pieces, against those of whole runs. */
static void logits_are_measured_over_all_tokens(void **state)
{
    enum { N = 70, VOCAB = 320 };
    struct tamper *t = *state;
    int32_t tokens[N];
    struct engine_result a, b;
    double max = 0, kl = 0, sum_a = 0, sum_b = 0;
    uint64_t same = 0;
    const struct bitconv_engine_options options = {.n_threads = 1, .n_ctx = N, .as_stored = true};
    struct bitconv_engine *source = NULL;
    struct bitconv_error err = {.status = BITCONV_OK};
    engine_tokens(tokens, N);
    make(t, "llama-158", "q8_0");
    struct bitconv_engine *file = engine_of_file(t->r, &options);
    assert_int_equal(bitconv_engine_open(t->r->model, &options, NULL, &source, &err), BITCONV_OK);
    engine_run(file, tokens, N, 0, &a);
    engine_run(source, tokens, N, 0, &b);
    for (size_t i = 0; i < N; i++) {
        size_t top_a = 0, top_b = 0;
        const float *x = a.logits + i * VOCAB, *y = b.logits + i * VOCAB;
        for (size_t j = 0; j < VOCAB; j++) {
            if (x[j] > x[top_a]) top_a = j;
            if (y[j] > y[top_b]) top_b = j;
            if (fabs((double)x[j] - (double)y[j]) > max) max = fabs((double)x[j] - (double)y[j]);
        }
        same += top_a == top_b;
    }
    const float *x = a.logits + (N - 1) * VOCAB, *y = b.logits + (N - 1) * VOCAB;
    for (size_t j = 0; j < VOCAB; j++) {
        sum_a += exp((double)x[j]);
        sum_b += exp((double)y[j]);
    }
    for (size_t j = 0; j < VOCAB; j++)
        kl += exp((double)y[j]) / sum_b * ((double)y[j] - log(sum_b) - (double)x[j] + log(sum_a));
    const struct bitconv_verify_options all = {
        .source = t->r->model, .tokens = tokens, .n_tokens = N};
    verify_as(t, t->r->out, all);
    const struct bitconv_distance *d = &t->run.result->distance;
    assert_true(verify_run_ok(&t->run) && d->measured && !d->embedding);
    assert_true(max > 0 && d->max_difference == max);
    assert_true(d->n_top1 == N && d->n_same_top1 == same);
    assert_true(kl > 0 && fabs(d->divergence - kl) < 1e-3 * kl + 1e-12);
    engine_result_free(&a);
    engine_result_free(&b);
    bitconv_engine_close(file);
    bitconv_engine_close(source);
}

/* ---- kernels ---- */

static const struct bc_format *honest;

/* A kernel that is off by one in the last row of what it is asked for, for several vectors only. */
static void wrong_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                       const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                       uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    honest->dot_rows(k, shape, packed, row, n_rows, x, x_stride, n_x, out);
    if (n_x > 1) out[n_rows - 1]++;
}

static void wrong_kernels_are_caught(void **state)
{
    struct tamper *t = *state;
    struct bitconv_verified_tensor row = {.name = "blk.0.ffn_up.weight", .ok = true};
    struct bitconv_verification result = {.tensors = &row, .n_tensors = 1};
    struct bc_verification_data data = {.size = 0};
    const struct bitconv_verify_options options = {.forward = true};
    struct bc_stated stated = {.present = false};
    struct bc_tensor_proof tensor = {.scanned = true};
    struct bitconv_error err = {.status = BITCONV_OK};
    char why[128];
    make(t, "bitnet", "tl1");
    assert_true(bc_packed_open(convert_run_stored(t->r, row.name), &stated, &tensor.packed, why,
                               sizeof why));
    struct bc_verifier v = {.options = &options,
                            .tensors = &tensor,
                            .result = &result,
                            .data = &data,
                            .container = {.gguf = t->r->gguf}};
    struct bitconv_proof right = {.name = "kernels"}, wrong = right;
    assert_int_equal(bc_prove_kernels(&v, &right, &err), BITCONV_OK);
    assert_true(right.verdict == BITCONV_PASSED && right.checked == 1);
    honest = tensor.packed.format;
    struct bc_format dishonest = *honest;
    dishonest.dot_rows = wrong_rows;
    tensor.packed.format = &dishonest;
    assert_int_equal(bc_prove_kernels(&v, &wrong, &err), BITCONV_OK);
    assert_int_equal(wrong.verdict, BITCONV_FAILED);
    assert_non_null(strstr(wrong.detail, "blk.0.ffn_up.weight: row 31 "));
    assert_non_null(strstr(wrong.detail, "by the scalar kernels"));
    bc_arena_release(&data.arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scale_is_tampered),
        TEST(equal_shapes_are_swapped),
        TEST(permutation_is_left_out),
        TEST(one_is_added_again),
        TEST(activation_is_another),
        TEST(rope_base_is_another),
        TEST(rope_frequencies_are_missing),
        TEST(window_is_missing),
        TEST(windows_are_outgrown),
        TEST(others_are_caught),
        TEST(keys_are_added),
        TEST(head_size_is_another),
        TEST(output_is_not_tied),
        TEST(both_rope_factors_are_run),
        TEST(idle_experts_are_counted),
        TEST(nonfinite_results_are_named),
        TEST(shapes_are_checked),
        TEST(missing_tensors_are_named),
        TEST(foreign_types_are_run_alone),
        TEST(unknown_families_are_not_run),
        TEST(every_pack_computes_the_same),
        TEST(quantized_blocks_compute_the_same),
        TEST(nothing_is_run_unasked),
        TEST(tokens_are_checked),
        TEST(prompts_want_a_tokenizer),
        TEST(distance_is_what_the_engines_give),
        TEST(logits_are_measured_over_all_tokens),
        TEST(wrong_kernels_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
