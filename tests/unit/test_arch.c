/* SPDX-License-Identifier: MIT
 * Tests of the family descriptors: that the tables are sound, and how names are looked up. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_internal.h"

enum { MAX_ROWS = 64, MAX_HF = 2, MAX_GGUF_NAME = 63 };

/* Fails with both strings when a list has one twice. */
static void assert_distinct(const char *const *list, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            if (strcmp(list[i], list[j]) == 0) fail_msg("%s: %s is there twice", what, list[i]);
}

static void classes_and_types_are_distinct(void **state)
{
    const char *names[MAX_ROWS], *types[MAX_ROWS];
    size_t n_names = 0, n_types = 0;
    (void)state;
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        const struct bc_arch *arch = bc_arch_at(i);
        for (size_t c = 0; c < 4 && arch->classes[c].name != NULL; c++) {
            const struct bc_arch_class *row = NULL;
            names[n_names++] = arch->classes[c].name;
            if (arch->classes[c].model_type != NULL) types[n_types++] = arch->classes[c].model_type;
            assert_ptr_equal(bc_arch_by_class(arch->classes[c].name, &row), arch);
            assert_ptr_equal(row, &arch->classes[c]);
        }
    }
    assert_true(n_names >= 9);
    assert_distinct(names, n_names, "class");
    assert_distinct(types, n_types, "model_type");
}

/* Braces hold a mark, * only at the end, and a layer comes with blk. */
static void check_pattern(const char *pattern)
{
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '{') assert_true(p[1] != '\0' && strchr("lace*", p[1]) && p[2] == '}');
        if (*p == '*') assert_true(p[2] == '\0');
        if (*p == '}') assert_true(p >= pattern + 2 && p[-2] == '{');
        assert_true(strchr("abcdefghijklmnopqrstuvwxyzLN0123456789_.{}*", *p) != NULL);
    }
}

static void tensor_tables_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        const struct bc_arch *arch = bc_arch_at(i);
        const char *hf[MAX_ROWS], *gguf[MAX_ROWS];
        size_t n_hf = 0, n_gguf = 0, n_roles[BC_ROLE_UNUSED + 1] = {0};
        for (const struct bc_arch_tensor *row = arch->tensors; row->role != BC_ROLE_NONE; row++) {
            for (size_t g = 0; g < MAX_HF && row->hf[g] != NULL; g++)
                check_pattern(hf[n_hf++] = row->hf[g]);
            assert_true(n_hf < MAX_ROWS - MAX_HF);
            const bool dropped = row->role == BC_ROLE_SKIP || row->role == BC_ROLE_UNUSED;
            assert_true((row->gguf == NULL) == dropped);
            assert_true((row->shape[0] == BC_N_NONE) == dropped);
            assert_true((row->role == BC_ROLE_EXPERT) == (strstr(row->hf[0], "{e}") != NULL));
            n_roles[row->role]++;
            if (row->gguf == NULL) continue;
            check_pattern(gguf[n_gguf++] = row->gguf);
            assert_null(strstr(row->gguf, "{e}"));
            assert_int_equal(bc_pattern_layers(row->gguf), bc_pattern_layers(row->hf[0]));
            assert_true((strncmp(row->gguf, "blk.{", 5) == 0) ==
                        (bc_pattern_layers(row->gguf) != BC_LAYERS_NONE));
            assert_true(bc_pattern_layers(row->gguf) <= BC_LAYERS_ALL || arch->traits.conv_layers);
            /* the longest companion, with a layer of three digits, must fit a GGUF tensor name */
            assert_true(strlen(row->gguf) + strlen("_norm_in.weight") <= MAX_GGUF_NAME);
        }
        assert_distinct(hf, n_hf, arch->name);
        assert_distinct(gguf, n_gguf, arch->name);
        assert_int_equal(n_roles[BC_ROLE_EMBED], 1);
        assert_true(n_roles[BC_ROLE_OUTPUT] == 1 || arch->classes[0].backbone);
        assert_true(n_roles[BC_ROLE_LINEAR] >= 4);
    }
}

static void hparam_tables_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        const struct bc_arch_hparam *tables[] = {bc_hparams_common, bc_arch_at(i)->hparams};
        for (size_t t = 0; t < 2; t++)
            for (const struct bc_arch_hparam *a = tables[t]; a->json[0] != NULL; a++) {
                assert_true(a->offset < sizeof(struct bc_hparams));
                assert_true(a->absent != BC_ABSENT_DEFAULT || a->fallback > 0);
                for (const struct bc_arch_hparam *b = a + 1; b->json[0] != NULL; b++) {
                    assert_true(a->offset != b->offset);
                    assert_string_not_equal(a->json[0], b->json[0]);
                }
            }
    }
}

static size_t count_key(const enum bc_key *order, enum bc_key wanted)
{
    size_t n = 0;
    for (; *order != BC_KEY_END; order++)
        if (*order == wanted) n++;
    return n;
}

/* Keys that files of the family do not have: of rotations where positions are learned, of the other
 * kind of norm, of groups of queries in another form. */
static bool is_foreign(const struct bc_arch *arch, enum bc_key key)
{
    const struct bc_arch_traits *t = &arch->traits;
    switch (key) {
    case BC_KEY_ROPE_DIMS:
    case BC_KEY_ROPE_BASE:
    case BC_KEY_ROPE_SCALING:
        return t->positions != BC_POSITIONS_ROPE;
    case BC_KEY_RMS_EPS:
        return t->layer_norm;
    case BC_KEY_LAYER_NORM_EPS:
        return !t->layer_norm;
    case BC_KEY_HEAD_COUNT_KV:
        return t->conv_layers || t->positions != BC_POSITIONS_ROPE; /* BERT has no groups */
    case BC_KEY_HEAD_COUNT_KV_LAYERS:
    case BC_KEY_CONV_CACHE:
        return !t->conv_layers;
    default:
        return false;
    }
}

/* Every key that is always written is in each order, and no key is there twice. */
static void key_orders_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        const struct bc_arch *arch = bc_arch_at(i);
        for (int t = BC_TARGET_BITNET; t < BC_N_TARGETS; t++) {
            assert_non_null(arch->key_order[t]);
            assert_non_null(arch->gguf_name[t]);
            assert_true(bc_arch_has_gguf_name(arch, arch->gguf_name[t]));
            for (int k = BC_KEY_BLOCK_COUNT; k <= BC_KEY_CONV_CACHE; k++) {
                const size_t n = count_key(arch->key_order[t], (enum bc_key)k);
                assert_true(n <= 1);
                if (is_foreign(arch, (enum bc_key)k)) assert_int_equal(n, 0);
                if (k == BC_KEY_QUANTIZATION_VERSION) continue; /* BitNet's scripts leave it out */
                if (bc_key_row((enum bc_key)k)->always && !is_foreign(arch, (enum bc_key)k))
                    assert_int_equal(n, 1);
            }
            if (t == BC_TARGET_LLAMA_CPP)
                assert_int_equal(count_key(arch->key_order[t], BC_KEY_QUANTIZATION_VERSION), 1);
            assert_int_equal(count_key(arch->key_order[t], BC_KEY_ROPE_SCALING),
                             is_foreign(arch, BC_KEY_ROPE_SCALING) ? 0 : 1);
            assert_int_equal(count_key(arch->key_order[t], BC_KEY_POOLING), 1);
            if (arch->traits.sliding != BC_SLIDING_NONE)
                assert_int_equal(count_key(arch->key_order[t], BC_KEY_SLIDING_WINDOW), 1);
        }
    }
}

/* No config key is both harmless and dangerous, and none is listed twice. */
static void config_key_lists_do_not_overlap(void **state)
{
    const char *keys[512];
    size_t n = 0;
    (void)state;
    for (const char *const *key = bc_config_ignored; *key != NULL; key++)
        keys[n++] = *key;
    for (const struct bc_config_neutral *row = bc_config_neutral; row->key != NULL; row++)
        keys[n++] = row->key;
    for (const struct bc_arch_hparam *row = bc_hparams_common; row->json[0] != NULL; row++)
        keys[n++] = row->json[0];
    assert_true(n < sizeof keys / sizeof *keys);
    assert_distinct(keys, n, "config keys");
}

/* A file of tables has no function: nowhere does a brace follow a closing parenthesis. */
static void check_has_no_function(const char *path)
{
    FILE *const f = fopen(path, "rb");
    int c = 0, last = 0;
    bool comment = false;
    size_t n = 0;
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF) {
        n++;
        if (comment) {
            if (last == '*' && c == '/') comment = false;
            last = c;
        } else if (last == '/' && c == '*') {
            comment = true;
            last = 0;
        } else if (c != ' ' && c != '\n') {
            if (last == ')' && c == '{') fail_msg("%s holds a function", path);
            last = c;
        }
    }
    (void)fclose(f);
    assert_true(n > 0);
}

static void descriptors_have_no_functions(void **state)
{
    const char *const folder = BITCONV_SOURCE_DIR "/src/model/archs";
    DIR *const dir = opendir(folder);
    size_t n = 0;
    (void)state;
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[4096];
        const size_t len = strlen(entry->d_name);
        if (len < 2 || strcmp(entry->d_name + len - 2, ".c") != 0) continue;
        assert_true(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path);
        check_has_no_function(path);
        n++;
    }
    (void)closedir(dir);
    assert_true(n >= 10);
}

static void patterns_take_canonical_numbers_only(void **state)
{
    static const struct {
        const char *text;
        bool matches;
        uint32_t layer, expert;
    } cases[] = {{"layers.0.e.1.w", true, 0, 1},
                 {"layers.31.e.4294967295.w", true, 31, UINT32_MAX},
                 {"layers.0.e.4294967296.w", false, 0, 0},
                 {"layers.00.e.1.w", false, 0, 0},
                 {"layers.01.e.1.w", false, 0, 0},
                 {"layers.-1.e.1.w", false, 0, 0},
                 {"layers.+1.e.1.w", false, 0, 0},
                 {"layers..e.1.w", false, 0, 0},
                 {"layers.1.e.1.w2", false, 0, 0},
                 {"layers.1.e.1.", false, 0, 0},
                 {"xlayers.1.e.1.w", false, 0, 0},
                 {"", false, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t layer = 0, expert = 0;
        const bool matches = bc_pattern_match("layers.{l}.e.{e}.w", cases[i].text,
                                              strlen(cases[i].text), &layer, &expert);
        if (matches != cases[i].matches) fail_msg("%s", cases[i].text);
        if (!matches) continue;
        assert_int_equal(layer, cases[i].layer);
        assert_int_equal(expert, cases[i].expert);
    }
}

/* Names of published checkpoints and what they become. */
static void names_map_to_gguf(void **state)
{
    static const struct {
        const struct bc_arch *arch;
        const char *hf, *gguf;
    } cases[] = {
        {&bc_arch_qwen3, "embed_tokens.weight", "token_embd.weight"},
        {&bc_arch_qwen3, "model.norm.weight", "output_norm.weight"},
        {&bc_arch_qwen3, "norm.weight", "output_norm.weight"},
        {&bc_arch_qwen3, "lm_head.weight", "output.weight"},
        {&bc_arch_qwen3, "layers.27.self_attn.q_proj.norm.weight", "blk.27.attn_q_norm_in.weight"},
        {&bc_arch_qwen3, "layers.3.mlp.down_proj.rms_norm.weight", "blk.3.ffn_down_norm_in.weight"},
        {&bc_arch_qwen3, "model.layers.3.self_attn.q_norm.weight", "blk.3.attn_q_norm.weight"},
        {&bc_arch_qwen3, "layers.3.post_attention_layernorm.weight", "blk.3.ffn_norm.weight"},
        {&bc_arch_gemma3, "layers.3.post_attention_layernorm.weight",
         "blk.3.post_attention_norm.weight"},
        {&bc_arch_gemma3, "layers.3.pre_feedforward_layernorm.weight", "blk.3.ffn_norm.weight"},
        {&bc_arch_gemma3, "layers.3.post_feedforward_layernorm.weight",
         "blk.3.post_ffw_norm.weight"},
        {&bc_arch_gemma3, "language_model.model.layers.3.mlp.up_proj.weight",
         "blk.3.ffn_up.weight"},
        {&bc_arch_gemma3, "model.language_model.embed_tokens.weight", "token_embd.weight"},
        {&bc_arch_bitnet, "model.layers.0.self_attn.attn_sub_norm.weight",
         "blk.0.attn_sub_norm.weight"},
        {&bc_arch_bitnet, "model.layers.0.self_attn.inner_attn_ln.weight",
         "blk.0.attn_sub_norm.weight"},
        {&bc_arch_bitnet, "model.layers.0.mlp.ffn_layernorm.weight", "blk.0.ffn_sub_norm.weight"},
        {&bc_arch_bitnet, "model.layers.0.mlp.ffn_sub_norm.weight", "blk.0.ffn_sub_norm.weight"},
        {&bc_arch_llama, "model.layers.1.self_attn.q_proj.bias", "blk.1.attn_q.bias"},
        {&bc_arch_llama, "model.layers.1.self_attn.o_proj.bias", "blk.1.attn_output.bias"},
        {&bc_arch_qwen2, "model.layers.1.self_attn.k_proj.bias", "blk.1.attn_k.bias"},
        {&bc_arch_phi3, "model.layers.1.self_attn.qkv_proj.weight", "blk.1.attn_qkv.weight"},
        {&bc_arch_phi3, "model.layers.1.mlp.gate_up_proj.weight", "blk.1.ffn_up.weight"},
        {&bc_arch_bert, "embeddings.word_embeddings.weight", "token_embd.weight"},
        {&bc_arch_bert, "bert.embeddings.LayerNorm.gamma", "token_embd_norm.weight"},
        {&bc_arch_bert, "bert.embeddings.LayerNorm.beta", "token_embd_norm.bias"},
        {&bc_arch_bert, "encoder.layer.11.output.LayerNorm.bias", "blk.11.layer_output_norm.bias"},
        {&bc_arch_bert, "encoder.layer.3.attention.output.dense.bias", "blk.3.attn_output.bias"},
        {&bc_arch_bert, "encoder.layer.3.output.dense.weight", "blk.3.ffn_down.weight"},
        {&bc_arch_lfm2, "model.embedding_norm.weight", "token_embd_norm.weight"},
        {&bc_arch_lfm2, "model.layers.2.conv.conv.weight", "blk.2.shortconv.conv.weight"},
        {&bc_arch_lfm2, "model.layers.2.self_attn.out_proj.weight", "blk.2.attn_output.weight"},
        {&bc_arch_lfm2, "model.layers.2.feed_forward.w3.weight", "blk.2.ffn_up.weight"},
        {&bc_arch_mixtral, "model.layers.1.block_sparse_moe.gate.weight",
         "blk.1.ffn_gate_inp.weight"},
        {&bc_arch_mixtral, "model.layers.1.block_sparse_moe.experts.7.w1.weight",
         "blk.1.ffn_gate_exps.weight"},
        {&bc_arch_mixtral, "model.layers.1.block_sparse_moe.experts.7.w2.weight",
         "blk.1.ffn_down_exps.weight"},
        {&bc_arch_mixtral, "model.layers.1.block_sparse_moe.experts.7.w3.weight",
         "blk.1.ffn_up_exps.weight"}};
    struct bc_arena arena = {NULL};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bc_match match;
        if (!bc_arch_match(cases[i].arch, cases[i].hf, &match)) fail_msg("%s", cases[i].hf);
        assert_string_equal(bc_match_gguf_name(&match, &arena), cases[i].gguf);
    }
    bc_arena_release(&arena);
}

static void foreign_names_do_not_match(void **state)
{
    static const struct {
        const struct bc_arch *arch;
        const char *hf;
    } cases[] = {{&bc_arch_llama, "model.layers.0.self_attn.q_norm.weight"},
                 {&bc_arch_llama, "model.layers.0.self_attn.qkv_proj.weight"},
                 {&bc_arch_llama, "model.layers.0.self_attn.q_proj.weight_scale_inv"},
                 {&bc_arch_llama, "model.layers.0.self_attn.q_proj"},
                 {&bc_arch_llama, "model.layers.0.input_layernorm.bias"},
                 {&bc_arch_llama, "lm_head.weight_scale"},
                 {&bc_arch_llama, "lm_head.bias"},
                 {&bc_arch_llama, "transformer.h.0.attn.weight"},
                 {&bc_arch_llama, "model.model.norm.weight"},
                 {&bc_arch_qwen3, "layers.0.input_layernorm.norm.weight"},
                 {&bc_arch_mixtral, "model.layers.0.block_sparse_moe.gate.weight_scale"},
                 {&bc_arch_llama, "model.layers.0.input_layernorm.gamma"},
                 {&bc_arch_llama, "bert.norm.weight"},
                 {&bc_arch_bert, "encoder.layer.0.output.dense.gamma"},
                 {&bc_arch_bert, "classifier.weight"},
                 {&bc_arch_bert, "pooler.dense"},
                 {&bc_arch_lfm2, "model.layers.0.conv.conv.bias"},
                 {&bc_arch_bitnet, "vision_tower.layers.0.input_layernorm.weight"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bc_match match;
        if (bc_arch_match(cases[i].arch, cases[i].hf, &match)) fail_msg("%s", cases[i].hf);
        assert_null(match.row);
    }
}

static void parts_are_told_apart(void **state)
{
    struct bc_match match;
    (void)state;
    assert_true(bc_arch_match(&bc_arch_llama, "model.layers.5.mlp.up_proj.weight_scale", &match));
    assert_int_equal(match.part, BC_MATCH_SCALE);
    assert_int_equal(match.layer, 5);
    assert_true(match.has_layer);
    assert_true(
        bc_arch_match(&bc_arch_llama, "model.layers.5.mlp.up_proj.rms_norm.weight", &match));
    assert_int_equal(match.part, BC_MATCH_NORM_IN);
    assert_true(bc_arch_match(&bc_arch_llama, "model.norm.weight", &match));
    assert_int_equal(match.part, BC_MATCH_WEIGHT);
    assert_false(match.has_layer);
    assert_true(
        bc_arch_match(&bc_arch_llama, "model.layers.0.self_attn.rotary_emb.inv_freq", &match));
    assert_int_equal(match.row->role, BC_ROLE_SKIP);
    assert_true(bc_arch_match(&bc_arch_bert, "cls.predictions.transform.dense.bias", &match));
    assert_int_equal(match.row->role, BC_ROLE_UNUSED);
    assert_true(bc_arch_match(&bc_arch_bert, "encoder.layer.1.output.LayerNorm.beta", &match));
    assert_int_equal(match.part, BC_MATCH_BIAS);
}

static void patterns_say_their_layers(void **state)
{
    bool conv[] = {true, false};
    const struct bc_hparams hp = {.n_layers = 2, .layer_is_conv = conv};
    const struct bc_hparams plain = {.n_layers = 2};
    (void)state;
    assert_int_equal(bc_pattern_layers("token_embd"), BC_LAYERS_NONE);
    assert_int_equal(bc_pattern_layers("experts.{e}.w1"), BC_LAYERS_NONE);
    assert_int_equal(bc_pattern_layers("blk.{l}.x"), BC_LAYERS_ALL);
    assert_int_equal(bc_pattern_layers("blk.{a}.x"), BC_LAYERS_ATTENTION);
    assert_int_equal(bc_pattern_layers("blk.{c}.x"), BC_LAYERS_CONV);
    assert_true(bc_layer_is_one_of(&hp, BC_LAYERS_CONV, 0));
    assert_false(bc_layer_is_one_of(&hp, BC_LAYERS_CONV, 1));
    assert_false(bc_layer_is_one_of(&hp, BC_LAYERS_ATTENTION, 0));
    assert_true(bc_layer_is_one_of(&hp, BC_LAYERS_ATTENTION, 1));
    assert_true(bc_layer_is_one_of(&hp, BC_LAYERS_ALL, 0));
    assert_true(bc_layer_is_one_of(&plain, BC_LAYERS_ATTENTION, 1));
    assert_false(bc_layer_is_one_of(&plain, BC_LAYERS_CONV, 1));
}

static void files_of_other_writers_are_recognised(void **state)
{
    (void)state;
    assert_ptr_equal(bc_arch_by_gguf_name("bitnet"), &bc_arch_bitnet);
    assert_ptr_equal(bc_arch_by_gguf_name("bitnet-25"), &bc_arch_bitnet);
    assert_ptr_equal(bc_arch_by_gguf_name("bitnet-b1.58"), &bc_arch_bitnet);
    assert_ptr_equal(bc_arch_by_gguf_name("llama"), &bc_arch_llama);
    assert_ptr_equal(bc_arch_by_gguf_name("gemma-embedding"), &bc_arch_gemma3);
    assert_null(bc_arch_by_gguf_name("llama4"));
    assert_false(bc_arch_has_gguf_name(&bc_arch_qwen3, "llama"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_types_are_distinct),
        cmocka_unit_test(tensor_tables_are_sound),
        cmocka_unit_test(hparam_tables_are_sound),
        cmocka_unit_test(key_orders_are_complete),
        cmocka_unit_test(config_key_lists_do_not_overlap),
        cmocka_unit_test(descriptors_have_no_functions),
        cmocka_unit_test(patterns_take_canonical_numbers_only),
        cmocka_unit_test(names_map_to_gguf),
        cmocka_unit_test(foreign_names_do_not_match),
        cmocka_unit_test(parts_are_told_apart),
        cmocka_unit_test(patterns_say_their_layers),
        cmocka_unit_test(files_of_other_writers_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
