/* SPDX-License-Identifier: MIT
 * Tokenizer metadata of every golden case against what independent converters wrote: type and value
 * of scalars, sha256 of arrays and long strings. Skipped where the golden data is absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"

static const struct golden_case {
    const char *folder; /* under golden/ */
    enum bc_tokenizer_policy policy;
    bool embedding_model;
    bool trim;
} cases[] = {
    {"bitnet-1bitllm", BC_TOKENIZER_LLAMA, false, false},
    {"bitnet-1bitllm-spm", BC_TOKENIZER_LLAMA, false, false},
    {"bitnet-2b4t", BC_TOKENIZER_LLAMA, false, false},
    {"bitnet-2b4t-bf16", BC_TOKENIZER_LLAMA, false, false},
    {"gemma3-bitnet-embed", BC_TOKENIZER_GEMMA, true, false},
    {"gemma3-plain", BC_TOKENIZER_GEMMA, true, true},
    {"llama-158", BC_TOKENIZER_LLAMA, false, false},
    {"llama-158-spm", BC_TOKENIZER_LLAMA, false, false},
    {"mixtral-moe", BC_TOKENIZER_LLAMA, false, false},
    {"qwen3-bitnet-embed", BC_TOKENIZER_QWEN, true, false},
    {"qwen3-plain", BC_TOKENIZER_QWEN, true, true},
    {"stock/bert", BC_TOKENIZER_BERT, true, false},
    {"stock/bitnet-1bitllm", BC_TOKENIZER_LLAMA, false, false},
    {"stock/gemma3", BC_TOKENIZER_GEMMA, false, false},
    {"stock/gemma3-embed", BC_TOKENIZER_GEMMA, true, false},
    {"stock/gemma3-spm", BC_TOKENIZER_GEMMA, false, false},
    {"stock/lfm2", BC_TOKENIZER_LLAMA, false, false},
    {"stock/llama", BC_TOKENIZER_LLAMA, false, false},
    {"stock/llama2", BC_TOKENIZER_LLAMA, false, false},
    {"stock/mistral", BC_TOKENIZER_LLAMA, false, false},
    {"stock/phi3", BC_TOKENIZER_PHI3, false, false},
    {"stock/qwen2", BC_TOKENIZER_QWEN, false, false},
    {"stock/qwen3", BC_TOKENIZER_QWEN, false, false},
    {"stock/qwen3-embed", BC_TOKENIZER_QWEN, true, false},
};

static const char *shared_dir(void)
{
    const char *const dir = getenv("BITCONV_SHARED");
    return dir != NULL ? dir : BITCONV_SOURCE_DIR "/../shared";
}

static char *join3(const char *a, const char *b, const char *c)
{
    char *const ab = temp_dir_path(a, b);
    char *const abc = temp_dir_path(ab, c);
    free(ab);
    return abc;
}

/* The bytes of a file as they are; false when it is not there. */
static bool read_file(const char *path, struct bc_buf *out)
{
    struct bc_file file;
    if (bc_path_kind(path) != BC_PATH_FILE) return false;
    assert_int_equal(bc_file_open(path, &file, NULL), BITCONV_OK);
    bc_buf_append(out, file.data, (size_t)file.size);
    bc_file_close(&file);
    assert_false(out->failed);
    return true;
}

static bool copy_file(const char *from_dir, const char *name, const char *to_dir)
{
    struct bc_buf bytes = {0};
    char *const path = temp_dir_path(from_dir, name);
    const bool found = read_file(path, &bytes);
    if (found) temp_dir_write(to_dir, name, bytes.data, bytes.size);
    bc_buf_release(&bytes);
    free(path);
    return found;
}

static struct bc_json *load_json(const char *path)
{
    struct bc_json *json = NULL;
    struct bitconv_error err = {0};
    if (bc_path_kind(path) != BC_PATH_FILE) return NULL;
    if (bc_json_load(path, &json, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return json;
}

static void write_json(struct bc_jw *w, const struct bc_json *node, const struct bc_json *patch);

static void write_members(struct bc_jw *w, const struct bc_json *node, const struct bc_json *patch)
{
    for (const struct bc_json *child = bc_json_first(node); child != NULL;
         child = bc_json_next(child)) {
        const struct bc_json *const other = bc_json_get(patch, bc_json_key(child));
        bc_jw_key(w, bc_json_key(child));
        write_json(w, other != NULL ? other : child, NULL);
    }
}

/* Writes a tree again, top-level members replaced by those of `patch`. */
static void write_json(struct bc_jw *w, const struct bc_json *node, const struct bc_json *patch)
{
    bool flag = false;
    double number = 0;
    switch (bc_json_type(node)) {
    case BC_JSON_NULL:
        bc_jw_null(w);
        break;
    case BC_JSON_BOOL:
        (void)bc_json_bool(node, &flag);
        bc_jw_bool(w, flag);
        break;
    case BC_JSON_NUMBER:
        (void)bc_json_f64(node, &number);
        bc_jw_f64(w, number);
        break;
    case BC_JSON_STRING:
        bc_jw_string(w, bc_json_string(node));
        break;
    case BC_JSON_ARRAY:
        bc_jw_begin_array(w);
        for (const struct bc_json *child = bc_json_first(node); child != NULL;
             child = bc_json_next(child))
            write_json(w, child, NULL);
        bc_jw_end_array(w);
        break;
    case BC_JSON_OBJECT:
        bc_jw_begin_object(w);
        write_members(w, node, patch);
        bc_jw_end_object(w);
        break;
    }
}

/* A shared tokenizer.json with the case's patch applied. */
static void stage_patched(const char *tokenizer_dir, const struct bc_json *patch, const char *dir)
{
    char *const path = temp_dir_path(tokenizer_dir, "tokenizer.json.gz");
    struct bc_json *const json = load_json(path);
    struct bc_buf text = {0};
    struct bc_jw w = {.buf = &text, .first = true};
    write_json(&w, json, patch);
    assert_false(text.failed);
    temp_dir_write(dir, "tokenizer.json", text.data, text.size);
    bc_buf_release(&text);
    bc_json_free(json);
    free(path);
}

/* Makes the tokenizer files of a case as check_golden.py does. */
static void stage(const char *model_dir, const char *dir)
{
    static const char *const own[] = {
        "config.json",     "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "tokenizer.model", "added_tokens.json",      "vocab.txt",      "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        (void)copy_file(model_dir, own[i], dir);
    struct bc_buf name = {0};
    char *const name_path = temp_dir_path(model_dir, "tokenizer.txt");
    assert_true(read_file(name_path, &name));
    free(name_path);
    while (name.size > 0 && name.data[name.size - 1] <= ' ')
        name.data[--name.size] = '\0';
    if (strcmp(bc_buf_str(&name), "own") != 0 && strcmp(bc_buf_str(&name), "none") != 0) {
        char *const tokenizer_dir = join3(shared_dir(), "tokenizers", bc_buf_str(&name));
        char *const patch_path = temp_dir_path(model_dir, "tokenizer-patch.json");
        struct bc_json *const patch = load_json(patch_path);
        if (patch == NULL)
            assert_true(copy_file(tokenizer_dir, "tokenizer.json.gz", dir));
        else
            stage_patched(tokenizer_dir, patch, dir);
        assert_true(copy_file(tokenizer_dir, "tokenizer_config.json", dir));
        bc_json_free(patch);
        free(patch_path);
        free(tokenizer_dir);
    }
    bc_buf_release(&name);
}

static bool is_ignored(const struct bc_json *ignored, const char *key)
{
    for (const struct bc_json *node = bc_json_first(ignored); node != NULL;
         node = bc_json_next(node)) {
        const char *const pattern = bc_json_string(node);
        const size_t len = strlen(pattern);
        const bool prefix = len > 0 && pattern[len - 1] == '*';
        if (prefix ? strncmp(key, pattern, len - 1) == 0 : strcmp(key, pattern) == 0) return true;
    }
    return false;
}

static void expect_type(const char *key, const struct bitconv_gguf_value *value, const char *type)
{
    char found[64];
    if (value->type == BITCONV_GGUF_ARRAY)
        snprintf(found, sizeof found, "ARRAY[%s]", bitconv_gguf_type_name(value->elem));
    else
        snprintf(found, sizeof found, "%s", bitconv_gguf_type_name(value->type));
    if (strcmp(found, type) != 0) fail_msg("%s: %s instead of %s", key, found, type);
}

static void expect_scalar(const char *key, const struct bitconv_gguf_value *value,
                          const struct bc_json *wanted)
{
    const char *text;
    size_t len;
    uint64_t number;
    uint64_t wanted_number;
    bool flag;
    bool wanted_flag;
    bool ok = false;
    if (bitconv_gguf_value_string(value, &text, &len))
        ok = bc_json_string(wanted) != NULL && strlen(bc_json_string(wanted)) == len &&
             memcmp(bc_json_string(wanted), text, len) == 0;
    else if (bitconv_gguf_value_bool(value, &flag))
        ok = bc_json_bool(wanted, &wanted_flag) && flag == wanted_flag;
    else if (bitconv_gguf_value_u64(value, &number))
        ok = bc_json_u64(wanted, &wanted_number) && number == wanted_number;
    if (!ok) fail_msg("%s has another value", key);
}

/* Compares one key; returns 1 so that keys can be counted. */
static unsigned compare(const struct tokenizer_run *run, const char *key,
                        const struct bc_json *wanted, const struct bc_json *ignored)
{
    if (strncmp(key, "tokenizer.", 10) != 0 || is_ignored(ignored, key)) return 0;
    const struct bitconv_gguf_value *const value = bitconv_gguf_find_key(run->gguf, key);
    if (value == NULL) fail_msg("%s is missing", key);
    expect_type(key, value, bc_json_string(bc_json_get(wanted, "type")));
    const char *const digest = bc_json_string(bc_json_get(wanted, "sha256"));
    if (digest == NULL) {
        expect_scalar(key, value, bc_json_get(wanted, "value"));
        return 1;
    }
    uint64_t count;
    if (bc_json_u64(bc_json_get(wanted, "count"), &count) && count != value->count)
        fail_msg("%s: %llu elements instead of %llu", key, (unsigned long long)value->count,
                 (unsigned long long)count);
    char found[65];
    bc_sha256_hex(value->data, (size_t)value->size, found);
    if (strcmp(found, digest) != 0) fail_msg("%s: the bytes differ", key);
    return 1;
}

/* metadata is an object, or a list of [key, facts] pairs. */
static unsigned compare_all(const struct tokenizer_run *run, const struct bc_json *metadata,
                            const struct bc_json *ignored)
{
    unsigned n = 0;
    for (const struct bc_json *node = bc_json_first(metadata); node != NULL;
         node = bc_json_next(node)) {
        const char *const pair_key = bc_json_string(bc_json_first(node));
        if (bc_json_is(metadata, BC_JSON_OBJECT))
            n += compare(run, bc_json_key(node), node, ignored);
        else
            n += compare(run, pair_key, bc_json_next(bc_json_first(node)), ignored);
    }
    return n;
}

static void run_case(const struct golden_case *c, const char *case_dir)
{
    char *const model_dir = temp_dir_path(case_dir, "model");
    /* What is said about the tokenizer is the same for every output type. */
    char *expect_path = temp_dir_path(case_dir, "expect-f32.json");
    if (bc_path_kind(expect_path) != BC_PATH_FILE) {
        free(expect_path);
        expect_path = temp_dir_path(case_dir, "expect-i2_s.json");
    }
    char *const corrections_path = temp_dir_path(case_dir, "corrections.json");
    struct bc_json *const expect = load_json(expect_path);
    struct bc_json *const corrections = load_json(corrections_path);
    assert_non_null(expect);
    struct tokenizer_run run = {
        .dir = temp_dir_new(),
        .policy = c->policy,
        .target = strncmp(c->folder, "stock/", 6) == 0 ? BC_TARGET_LLAMA_CPP : BC_TARGET_BITNET,
        .embedding_model = c->embedding_model,
        .options = {.trim_vocab = c->trim},
    };
    stage(model_dir, run.dir);
    char *const config_path = temp_dir_path(run.dir, "config.json");
    struct bc_json *const config = load_json(config_path);
    uint64_t n_rows = 0;
    assert_true(bc_json_u64(bc_json_get(config, "vocab_size"), &n_rows));
    run.n_rows = (uint32_t)n_rows;
    bc_json_free(config);
    tokenizer_run(&run);
    if (run.status != BITCONV_OK) fail_msg("%s", run.err.text);
    const struct bc_json *const ignored = bc_json_path(corrections, "f32.ignore_metadata");
    const unsigned n_compared = compare_all(&run, bc_json_get(expect, "metadata"), ignored);
    if (!is_ignored(ignored, "tokenizer.*")) assert_true(n_compared >= 5);
    tokenizer_run_end(&run);
    bc_json_free(expect);
    bc_json_free(corrections);
    free(config_path);
    free(model_dir);
    free(expect_path);
    free(corrections_path);
}

static void test_case(void **state)
{
    const struct golden_case *const c = *state;
    char *const case_dir = join3(shared_dir(), "golden", c->folder);
    assert_int_equal(bc_path_kind(case_dir), BC_PATH_DIR);
    run_case(c, case_dir);
    free(case_dir);
}

int main(void)
{
    enum { N_CASES = sizeof cases / sizeof cases[0] };
    char *const tokenizers = temp_dir_path(shared_dir(), "tokenizers");
    const bool present = bc_path_kind(tokenizers) == BC_PATH_DIR;
    free(tokenizers);
    if (!present) {
        printf("skipped: no golden data in %s\n", shared_dir());
        return 77;
    }
    struct CMUnitTest tests[N_CASES];
    struct golden_case states[N_CASES];
    for (size_t i = 0; i < N_CASES; i++) {
        states[i] = cases[i];
        tests[i] = (struct CMUnitTest){cases[i].folder, test_case, NULL, NULL, &states[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
