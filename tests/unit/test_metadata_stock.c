/* SPDX-License-Identifier: MIT
 * Metadata against tensors for phi3, bert and lfm2: complete models keep every rule, and each single
 * change breaks the one that is about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bitconv/gguf.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"
#include "verify/metadata_rules.h"

/* 4 heads of 16, 2 groups; FFN 96; 3 tokens. */
enum { EMBD = 64, FFN = 96, KV = 32, TOKENS = 3, BLOCKS = 2, MAX_ROWS = 32 };

struct tensor {
    const char *name; /* of the model, or behind "blk.N." */
    uint64_t ne[2];   /* the second 0: one dimension */
    int blocks;       /* bits: 1 block 0, 2 block 1; 0: of the model */
};

struct count {
    const char *suffix;
    uint32_t value;
};

struct model {
    const char *arch, *epsilon;
    struct count counts[MAX_ROWS];
    struct tensor tensors[MAX_ROWS];
    uint32_t kv_heads[BLOCKS]; /* an array when they differ */
};

enum { BOTH = 3, FIRST = 1, SECOND = 2 };

static const struct model phi3 = {"phi3",
                                  "attention.layer_norm_rms_epsilon",
                                  {{"rope.dimension_count", 16}},
                                  {{"token_embd.weight", {EMBD, TOKENS}, 0},
                                   {"output_norm.weight", {EMBD, 0}, 0},
                                   {"rope_factors_long.weight", {8, 0}, 0},
                                   {"rope_factors_short.weight", {8, 0}, 0},
                                   {"attn_norm.weight", {EMBD, 0}, BOTH},
                                   {"attn_qkv.weight", {EMBD, EMBD + 2 * KV}, BOTH},
                                   {"attn_output.weight", {EMBD, EMBD}, BOTH},
                                   {"ffn_norm.weight", {EMBD, 0}, BOTH},
                                   {"ffn_up.weight", {EMBD, 2 * FFN}, BOTH},
                                   {"ffn_down.weight", {FFN, EMBD}, BOTH}},
                                  {2, 2}};

static const struct model bert = {"bert",
                                  "attention.layer_norm_epsilon",
                                  {{NULL, 0}},
                                  {{"token_embd.weight", {EMBD, TOKENS}, 0},
                                   {"token_embd_norm.weight", {EMBD, 0}, 0},
                                   {"token_embd_norm.bias", {EMBD, 0}, 0},
                                   {"position_embd.weight", {EMBD, 32}, 0},
                                   {"token_types.weight", {EMBD, 2}, 0},
                                   {"attn_q.weight", {EMBD, EMBD}, BOTH},
                                   {"attn_q.bias", {EMBD, 0}, BOTH},
                                   {"attn_k.weight", {EMBD, EMBD}, BOTH},
                                   {"attn_v.weight", {EMBD, EMBD}, BOTH},
                                   {"attn_output.weight", {EMBD, EMBD}, BOTH},
                                   {"attn_output_norm.weight", {EMBD, 0}, BOTH},
                                   {"attn_output_norm.bias", {EMBD, 0}, BOTH},
                                   {"ffn_up.weight", {EMBD, FFN}, BOTH},
                                   {"ffn_up.bias", {FFN, 0}, BOTH},
                                   {"ffn_down.weight", {FFN, EMBD}, BOTH},
                                   {"layer_output_norm.weight", {EMBD, 0}, BOTH}},
                                  {4, 4}};

static const struct model lfm2 = {"lfm2",
                                  "attention.layer_norm_rms_epsilon",
                                  {{"shortconv.l_cache", 3}},
                                  {{"token_embd.weight", {EMBD, TOKENS}, 0},
                                   {"token_embd_norm.weight", {EMBD, 0}, 0},
                                   {"attn_norm.weight", {EMBD, 0}, BOTH},
                                   {"shortconv.in_proj.weight", {EMBD, 3 * EMBD}, FIRST},
                                   {"shortconv.conv.weight", {3, EMBD}, FIRST},
                                   {"shortconv.out_proj.weight", {EMBD, EMBD}, FIRST},
                                   {"attn_q.weight", {EMBD, EMBD}, SECOND},
                                   {"attn_k.weight", {EMBD, KV}, SECOND},
                                   {"attn_v.weight", {EMBD, KV}, SECOND},
                                   {"attn_output.weight", {EMBD, EMBD}, SECOND},
                                   {"ffn_norm.weight", {EMBD, 0}, BOTH},
                                   {"ffn_up.weight", {EMBD, FFN}, BOTH},
                                   {"ffn_down.weight", {FFN, EMBD}, BOTH}},
                                  {0, 2}};

/* One change: a tensor left out or of another shape, a count left out or of another value. */
struct change {
    const struct model *model;
    const char *what; /* a whole name or a key behind "ARCH." */
    enum { DROP, SET } how;
    uint64_t ne[2];   /* a count: ne[0] */
    const char *said; /* in the errors; NULL: nothing is wrong */
};

static void put_count(struct gguf_builder *b, const struct change *c, const char *suffix,
                      uint32_t value)
{
    char key[96];
    (void)snprintf(key, sizeof key, "%s.%s", c->model->arch, suffix);
    if (strcmp(suffix, c->what) == 0) {
        if (c->how == DROP) return;
        value = (uint32_t)c->ne[0];
    }
    gguf_builder_u32(b, key, value);
}

static void put_kv_heads(struct gguf_builder *b, const struct model *m)
{
    uint8_t array[12 + 4 * BLOCKS];
    bc_put_u32(array, BITCONV_GGUF_INT32);
    bc_put_u64(array + 4, BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        bc_put_u32(array + 12 + 4 * i, m->kv_heads[i]);
    gguf_builder_key(b, "lfm2.attention.head_count_kv", BITCONV_GGUF_ARRAY, array, sizeof array);
}

static void put_keys(struct gguf_builder *b, const struct change *c)
{
    static const char *const tokens[] = {"a", "b", "ab"};
    static const struct count common[] = {{"context_length", 32},
                                          {"embedding_length", EMBD},
                                          {"block_count", BLOCKS},
                                          {"feed_forward_length", FFN},
                                          {"attention.head_count", 4}};
    const struct model *m = c->model;
    char key[96];
    uint8_t epsilon[4];
    gguf_builder_string(b, "general.architecture", m->arch);
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        put_count(b, c, common[i].suffix, common[i].value);
    for (const struct count *row = m->counts; row->suffix != NULL; row++)
        put_count(b, c, row->suffix, row->value);
    if (m->kv_heads[0] != m->kv_heads[1])
        put_kv_heads(b, m);
    else
        put_count(b, c, "attention.head_count_kv", m->kv_heads[0]);
    (void)snprintf(key, sizeof key, "%s.%s", m->arch, m->epsilon);
    bc_put_f32(epsilon, 1e-5f);
    gguf_builder_key(b, key, BITCONV_GGUF_FLOAT32, epsilon, sizeof epsilon);
    gguf_builder_u32(b, "tokenizer.ggml.token_type_count", 2);
    gguf_builder_string(b, "tokenizer.ggml.model", "bert");
    gguf_builder_strings(b, "tokenizer.ggml.tokens", tokens, TOKENS);
}

static void put_tensor(struct gguf_builder *b, const struct change *c, const char *name,
                       const uint64_t *usual)
{
    const bool changed = strcmp(name, c->what) == 0;
    const uint64_t *ne = changed ? c->ne : usual;
    const uint32_t n_dims = ne[1] != 0 ? 2 : 1;
    if (changed && c->how == DROP) return;
    gguf_builder_tensor(b, name, 0, n_dims, ne, 4 * ne[0] * (n_dims == 2 ? ne[1] : 1));
}

static void put_tensors(struct gguf_builder *b, const struct change *c)
{
    for (const struct tensor *t = c->model->tensors; t->name != NULL; t++) {
        char name[64];
        if (t->blocks == 0) put_tensor(b, c, t->name, t->ne);
        for (int block = 0; block < BLOCKS; block++) {
            if ((t->blocks & 1 << block) == 0) continue;
            (void)snprintf(name, sizeof name, "blk.%d.%s", block, t->name);
            put_tensor(b, c, name, t->ne);
        }
    }
}

static void note(void *user, bool is_error, const char *text)
{
    if (is_error) bc_buf_printf(user, "%s\n", text);
}

static void check(const struct change *c)
{
    struct gguf_builder b = {0};
    struct bitconv_gguf *file = NULL;
    struct bitconv_error err = {0};
    struct bc_buf errors = {0};
    const struct bc_rule_report report = {note, &errors};
    char *dir = temp_dir_new();
    put_keys(&b, c);
    put_tensors(&b, c);
    char *path = gguf_builder_write(&b, dir, "t.gguf");
    if (bitconv_gguf_open(path, &file, &err) != BITCONV_OK) fail_msg("%s", err.text);
    bc_check_model_metadata(file, &report);
    bitconv_gguf_close(file);
    const char *said = bc_buf_str(&errors);
    if (c->said != NULL ? strstr(said, c->said) == NULL : said[0] != '\0')
        fail_msg("%s %s: '%s' wanted, said: %s", c->model->arch, c->what,
                 c->said != NULL ? c->said : "nothing", said);
    bc_buf_release(&errors);
    free(path);
    temp_dir_remove(dir);
}

static void complete_models(void **state)
{
    const struct model *const models[] = {&phi3, &bert, &lfm2};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        check(&(struct change){models[i], "", DROP, {0, 0}, NULL});
}

static const struct change changes[] = {
    {&phi3, "blk.1.attn_qkv.weight", SET, {EMBD, EMBD}, "attn_qkv.weight: 64 rows"},
    {&phi3, "blk.0.ffn_up.weight", SET, {EMBD, FFN}, "feed_forward_length times 2 gives 192"},
    {&phi3, "rope_factors_long.weight", SET, {16, 0}, "rope_factors_long.weight: 16 columns"},
    {&phi3, "rope.dimension_count", SET, {8, 0}, "rope_factors_short.weight: 8 columns"},
    {&phi3, "attention.head_count_kv", SET, {1, 0}, "blk.0.attn_qkv.weight: 128 rows"},
    {&phi3, "attention.head_count_kv", SET, {3, 0}, "does not divide attention.head_count"},
    {&phi3, "blk.1.attn_qkv.weight", DROP, {0, 0}, "blk.1.attn_qkv.weight is missing"},
    {&bert, "context_length", SET, {64, 0}, "position_embd.weight: 32 rows"},
    {&bert, "position_embd.weight", DROP, {0, 0}, "position_embd.weight is missing"},
    {&bert, "token_embd_norm.weight", DROP, {0, 0}, "token_embd_norm.weight is missing"},
    {&bert, "token_embd_norm.bias", SET, {32, 0}, "token_embd_norm.bias: 32 columns"},
    {&bert, "token_types.weight", SET, {EMBD, 3}, "token_types.weight: 3 rows"},
    {&bert, "blk.0.attn_q.bias", DROP, {0, 0}, "blk.0.attn_q.bias is missing"},
    {&bert, "blk.0.ffn_up.bias", SET, {EMBD, 0}, "blk.0.ffn_up.bias: 64 columns"},
    {&bert, "blk.1.layer_output_norm.weight", SET, {FFN, 0}, "layer_output_norm.weight: 96"},
    {&lfm2, "shortconv.l_cache", DROP, {0, 0}, "shortconv.l_cache is missing"},
    {&lfm2, "shortconv.l_cache", SET, {4, 0}, "blk.0.shortconv.conv.weight: 3 columns"},
    {&lfm2, "blk.0.shortconv.conv.weight", DROP, {0, 0}, "blk.0.shortconv.conv.weight is missing"},
    {&lfm2, "blk.0.shortconv.in_proj.weight", SET, {EMBD, EMBD}, "in_proj.weight: 64 rows"},
    {&lfm2, "blk.1.attn_q.weight", DROP, {0, 0}, "blk.1.attn_q.weight is missing"},
    {&lfm2, "blk.1.attn_k.weight", SET, {EMBD, EMBD}, "blk.1.attn_k.weight: 64 rows"},
    {&lfm2, "blk.0.ffn_up.weight", DROP, {0, 0}, "blk.0.ffn_up.weight is missing"},
    {&lfm2, "token_embd_norm.weight", DROP, {0, 0}, "token_embd_norm.weight is missing"},
};

static void single_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        check(&changes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_models),
        cmocka_unit_test(single_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
