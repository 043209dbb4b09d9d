/* SPDX-License-Identifier: MIT
 * Ids, decoded texts and pre-tokenizer hashes of golden/tokenizers, which the tokenizers library made:
 * from the tokenizer files, and from GGUF metadata alone. Skipped where the data is absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "bitconv/tokenize.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"

static const struct golden {
    const char *name;
    enum bc_tokenizer_policy policy;
    uint32_t n_rows;
} cases[] = {
    {"gemma3", BC_TOKENIZER_GEMMA, 262208},
    {"llama2", BC_TOKENIZER_LLAMA, 32000},
    {"llama3", BC_TOKENIZER_LLAMA, 128256},
    {"qwen3", BC_TOKENIZER_QWEN, 151936},
};

static const char *shared_dir(void)
{
    const char *const dir = getenv("BITCONV_SHARED");
    return dir != NULL ? dir : BITCONV_SOURCE_DIR "/../shared";
}

static char *path_of(const char *folder, const char *name)
{
    char *const dir = temp_dir_path(shared_dir(), folder);
    char *const path = temp_dir_path(dir, name);
    free(dir);
    return path;
}

static struct bc_json *load_expectations(const char *name)
{
    char file[64];
    struct bc_json *json = NULL;
    struct bitconv_error err = {0};
    snprintf(file, sizeof file, "%s.json", name);
    char *const path = path_of("golden/tokenizers", file);
    if (bc_path_kind(path) == BC_PATH_FILE) {
        struct bc_buf text = {0};
        assert_int_equal(bc_text_load(path, &text, NULL), BITCONV_OK);
        /* Our JSON has no NUL in strings; the bytes of texts are taken from utf8_hex. */
        for (char *nul = (char *)text.data; (nul = strstr(nul, "\\u0000")) != NULL;)
            nul[5] = '1';
        if (bc_json_parse(bc_buf_str(&text), text.size, path, &json, &err) != BITCONV_OK)
            fail_msg("%s", err.text);
        bc_buf_release(&text);
    }
    free(path);
    return json;
}

static unsigned hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static void unhex(const char *hex, struct bc_buf *out)
{
    bc_buf_clear(out);
    for (; hex[0] != '\0'; hex += 2)
        bc_buf_u8(out, (uint8_t)(hex_value(hex[0]) << 4 | hex_value(hex[1])));
}

static bool same_ids(const struct bc_json *want, const struct bitconv_ids *got)
{
    size_t i = 0;
    for (const struct bc_json *node = bc_json_first(want); node != NULL;
         node = bc_json_next(node), i++) {
        uint64_t id = 0;
        assert_true(bc_json_u64(node, &id));
        if (i >= got->n || got->ids[i] != id) return false;
    }
    return i == got->n;
}

static void check_decoding(const struct bitconv_tokenizer *tok, const struct bitconv_ids *ids,
                           const struct bc_buf *text, const char *label)
{
    struct bitconv_text decoded = {0};
    assert_int_equal(bitconv_tokenizer_decode(tok, ids->ids, ids->n, false, &decoded, NULL),
                     BITCONV_OK);
    if (decoded.size != text->size ||
        (text->size > 0 && memcmp(decoded.data, text->data, text->size) != 0))
        fail_msg("%s: decoded to \"%s\" instead of \"%s\"", label, decoded.data, bc_buf_str(text));
    bitconv_text_release(&decoded);
}

/* All strings, with the ids under `key`; decodes those of "ids" where the tokenizer is lossless. */
static void check_strings(const struct bitconv_tokenizer *tok, const struct bc_json *golden,
                          const char *key, bool special, const char *label)
{
    const struct bc_json *lossless = bc_json_first(bc_json_get(golden, "decode_roundtrip"));
    struct bc_buf text = {0};
    struct bitconv_ids ids = {0};
    size_t n = 0;
    for (const struct bc_json *node = bc_json_first(bc_json_get(golden, "strings")); node != NULL;
         node = bc_json_next(node), lossless = bc_json_next(lossless), n++) {
        struct bitconv_error err = {0};
        bool round_trip = false;
        unhex(bc_json_string(bc_json_get(node, "utf8_hex")), &text);
        ids.n = 0;
        if (bitconv_tokenizer_encode(tok, bc_buf_str(&text), text.size, special, &ids, &err) !=
            BITCONV_OK)
            fail_msg("%s: %s", label, err.text);
        if (!same_ids(bc_json_get(node, key), &ids))
            fail_msg("%s: %s of \"%s\" differ", label, key, bc_buf_str(&text));
        assert_true(bc_json_bool(lossless, &round_trip));
        if (!special && round_trip) check_decoding(tok, &ids, &text, label);
    }
    assert_true(n >= 42);
    bc_buf_release(&text);
    bitconv_ids_release(&ids);
}

static void check_hashes(const struct bitconv_tokenizer *tok, const struct bc_json *golden,
                         const char *variant)
{
    static const char *const scripts[BITCONV_N_CHECK_TEXTS] = {
        [BITCONV_CHECK_UPSTREAM] = "convert-hf-to-gguf-bitnet.py",
        [BITCONV_CHECK_EMBEDDING] = "convert-bitnet-embedding-to-gguf.py",
    };
    const struct bc_json *const hashes = bc_json_get(bc_json_get(golden, "chkhsh"), variant);
    for (int i = 0; i < BITCONV_N_CHECK_TEXTS; i++) {
        struct bitconv_check_hash found;
        const struct bc_json *const want = bc_json_get(hashes, scripts[i]);
        const char *const pre = bc_json_string(bc_json_get(want, "pre"));
        assert_int_equal(
            bitconv_tokenizer_check_hash(tok, (enum bitconv_check_text)i, &found, NULL),
            BITCONV_OK);
        assert_string_equal(found.sha256, bc_json_string(bc_json_get(want, "chkhsh")));
        if (pre == NULL) continue;
        assert_string_equal(found.name, pre);
        assert_true(found.agrees);
    }
}

static struct bitconv_tokenizer *open_folder(const char *dir)
{
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    if (bitconv_tokenizer_open(dir, NULL, &tok, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return tok;
}

/* Puts another value in the place of "post_processor": the text is known to have it once, at the
 * top. */
static void replace_processor(const struct bc_buf *json, const char *value, struct bc_buf *out)
{
    const char *const text = bc_buf_str(json);
    const char *const key = strstr(text, "\"post_processor\"");
    assert_non_null(key);
    const char *const open = strchr(key, '{');
    assert_non_null(open);
    const char *close = open;
    for (int depth = 0; *close != '\0'; close++) {
        depth += (*close == '{') - (*close == '}');
        if (depth == 0) break;
    }
    bc_buf_append(out, text, (size_t)(open - text));
    bc_buf_puts(out, value);
    bc_buf_puts(out, close + 1);
}

/* The template of the golden patch: one token before or behind the text. */
static void write_processor(const struct bc_json *patch, struct bc_buf *out)
{
    const struct bc_json *const processor = bc_json_get(patch, "post_processor");
    const struct bc_json *const token = bc_json_first(bc_json_get(processor, "special_tokens"));
    uint64_t id = 0;
    assert_true(bc_json_u64(bc_json_first(bc_json_get(token, "ids")), &id));
    const struct bc_json *const first = bc_json_first(bc_json_get(processor, "single"));
    const bool in_front = bc_json_get(first, "SpecialToken") != NULL;
    char element[160];
    snprintf(element, sizeof element, "{\"SpecialToken\":{\"id\":\"%s\",\"type_id\":0}}",
             bc_json_key(token));
    bc_buf_printf(
        out,
        "{\"type\":\"TemplateProcessing\",\"single\":[%s%s{\"Sequence\":{\"id\":\"A\","
        "\"type_id\":0}}%s%s],\"pair\":[],\"special_tokens\":{\"%s\":{\"id\":\"%s\",\"ids\":"
        "[%u],\"tokens\":[\"%s\"]}}}",
        in_front ? element : "", in_front ? "," : "", in_front ? "" : ",", in_front ? "" : element,
        bc_json_key(token), bc_json_key(token), (unsigned)id, bc_json_key(token));
}

/* A folder with the tokenizer as it is, or patched. */
static char *make_folder(const struct golden *golden, const struct bc_json *patch)
{
    char *const dir = temp_dir_new();
    char folder[64];
    struct bc_buf json = {0};
    struct bc_buf config = {0};
    struct bc_buf processor = {0};
    struct bc_buf patched = {0};
    snprintf(folder, sizeof folder, "tokenizers/%s", golden->name);
    char *const json_path = path_of(folder, "tokenizer.json.gz");
    char *const config_path = path_of(folder, "tokenizer_config.json");
    assert_int_equal(bc_text_load(json_path, &json, NULL), BITCONV_OK);
    assert_int_equal(bc_text_load(config_path, &config, NULL), BITCONV_OK);
    if (patch != NULL) {
        write_processor(patch, &processor);
        replace_processor(&json, bc_buf_str(&processor), &patched);
    } else {
        bc_buf_append(&patched, json.data, json.size);
    }
    temp_dir_write(dir, "tokenizer.json", patched.data, patched.size);
    temp_dir_write(dir, "tokenizer_config.json", config.data, config.size);
    free(json_path);
    free(config_path);
    bc_buf_release(&json);
    bc_buf_release(&config);
    bc_buf_release(&processor);
    bc_buf_release(&patched);
    return dir;
}

/* The same ids from what a conversion writes, and from nothing else. */
static void check_gguf(const struct golden *golden, const struct bc_json *expected, char *dir,
                       enum bc_target target, const char *special_key)
{
    struct tokenizer_run run = {
        .dir = dir, .policy = golden->policy, .target = target, .n_rows = golden->n_rows};
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    tokenizer_run(&run);
    if (run.status != BITCONV_OK) fail_msg("%s: %s", golden->name, run.err.text);
    if (bitconv_tokenizer_open_gguf(run.gguf, NULL, &tok, &err) != BITCONV_OK)
        fail_msg("%s: %s", golden->name, err.text);
    const char *const label =
        target == BC_TARGET_BITNET ? "GGUF for bitnet.cpp" : "GGUF for llama.cpp";
    check_strings(tok, expected, "ids", false, label);
    check_strings(tok, expected, special_key, true, label);
    bitconv_tokenizer_close(tok);
    run.dir = NULL;
    bitconv_gguf_close(run.gguf);
    bc_buf_release(&run.messages);
}

static void check_case(const struct golden *golden)
{
    struct bc_json *const expected = load_expectations(golden->name);
    if (expected == NULL) {
        printf("skipped: no golden data at %s\n", shared_dir());
        exit(77);
    }
    const struct bc_json *patch = bc_json_get(expected, "patch");
    if (!bc_json_is(patch, BC_JSON_OBJECT)) patch = NULL;
    char *const plain = make_folder(golden, NULL);
    struct bitconv_tokenizer *tok = open_folder(plain);
    check_strings(tok, expected, "ids", false, golden->name);
    check_strings(tok, expected, "ids_special", true, golden->name);
    check_hashes(tok, expected, "unmodified");
    bitconv_tokenizer_close(tok);
    char *dir = plain;
    if (patch != NULL) {
        dir = make_folder(golden, patch);
        tok = open_folder(dir);
        check_strings(tok, expected, "ids_special_patched", true, golden->name);
        check_hashes(tok, expected, "with tokenizer-patch.json");
        bitconv_tokenizer_close(tok);
        temp_dir_remove(plain);
    }
    const char *const key = patch != NULL ? "ids_special_patched" : "ids_special";
    check_gguf(golden, expected, dir, BC_TARGET_LLAMA_CPP, key);
    check_gguf(golden, expected, dir, BC_TARGET_BITNET, key);
    temp_dir_remove(dir);
    bc_json_free(expected);
}

static void test_gemma3(void **state)
{
    (void)state;
    check_case(&cases[0]);
}

static void test_llama2(void **state)
{
    (void)state;
    check_case(&cases[1]);
}

static void test_llama3(void **state)
{
    (void)state;
    check_case(&cases[2]);
}

static void test_qwen3(void **state)
{
    (void)state;
    check_case(&cases[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_llama2),
        cmocka_unit_test(test_llama3),
        cmocka_unit_test(test_qwen3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
