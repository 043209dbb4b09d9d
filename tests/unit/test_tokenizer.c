/* SPDX-License-Identifier: MIT
 * Tests of the tokenizer metadata from tokenizer.json, vocab.json and vocab.txt: token lists,
 * types, scores, merges, vocabulary sizes. Tiny tokenizers written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "model/tokenizer_rules.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"

/* Llama 3's pre-tokenizer with the digits given, and what a tokenizer.json has around it. */
#define PRE(digits)                                                                                \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":" \
    "{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits    \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"     \
    "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":"    \
    "false,\"trim_offsets\":true,\"use_regex\":false}]}"
#define PRE_LLAMA3 PRE("\\\\p{N}{1,3}")
#define VOCAB      "\"vocab\":{\"a\":0,\"b\":1,\"\xc4\xa0\":2,\"ab\":3,\"\xc4\xa0\x61\":4}"
#define ADDED(id, content, special)                                                                \
    "{\"id\":" id ",\"content\":\"" content "\",\"special\":" special "}"
#define BPE(added, vocab, merges)                                                                  \
    "{\"added_tokens\":[" added "],\"normalizer\":null," PRE_LLAMA3                                \
    ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":true," vocab ",\"merges\":" merges "}}"
#define MERGES      "[\"a b\",\"\xc4\xa0 a\"]"
#define MERGE_PAIRS "[[\"a\",\"b\"],[\"\xc4\xa0\",\"a\"]]"

#define FOUR_ADDED                                                                                 \
    ADDED("5", "<|end|>", "true")                                                                  \
    "," ADDED("6", "<think>", "false") "," ADDED("7", "<|x|>", "false") "," ADDED(                 \
        "8", "\xe2\x96\x81\xe2\x96\x81", "false")

static struct tokenizer_run start(const char *tokenizer_json, uint32_t n_rows)
{
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = n_rows};
    if (tokenizer_json != NULL) temp_dir_puts(run.dir, "tokenizer.json", tokenizer_json);
    return run;
}

static void expect_base(const struct tokenizer_run *run)
{
    assert_int_equal(run->status, BITCONV_OK);
    tokenizer_run_expect_string(run, "tokenizer.ggml.model", "gpt2");
    tokenizer_run_expect_string(run, "tokenizer.ggml.pre", "llama-bpe");
    tokenizer_run_expect_token(run, 0, "a", BC_TOKEN_NORMAL);
    tokenizer_run_expect_token(run, 4, "\xc4\xa0\x61", BC_TOKEN_NORMAL);
    tokenizer_run_expect_element(run, "tokenizer.ggml.merges", 0, "a b");
    tokenizer_run_expect_element(run, "tokenizer.ggml.merges", 1, "\xc4\xa0 a");
    assert_false(tokenizer_run_has(run, "tokenizer.ggml.scores"));
}

/* Which added tokens are control tokens, and what padding looks like, per family and target. */
static void test_byte_level_rules(void **state)
{
    (void)state;
    const struct {
        enum bc_tokenizer_policy policy;
        enum bc_target target;
        int think, x, padding;
        const char *blanks;
    } rows[] = {
        {BC_TOKENIZER_LLAMA, BC_TARGET_BITNET, BC_TOKEN_USER_DEFINED, BC_TOKEN_USER_DEFINED,
         BC_TOKEN_USER_DEFINED, "\xe2\x96\x81\xe2\x96\x81"},
        {BC_TOKENIZER_QWEN, BC_TARGET_BITNET, BC_TOKEN_CONTROL, BC_TOKEN_CONTROL, BC_TOKEN_UNUSED,
         "\xe2\x96\x81\xe2\x96\x81"},
        {BC_TOKENIZER_LLAMA, BC_TARGET_LLAMA_CPP, BC_TOKEN_USER_DEFINED, BC_TOKEN_CONTROL,
         BC_TOKEN_UNUSED, "  "},
        {BC_TOKENIZER_QWEN, BC_TARGET_LLAMA_CPP, BC_TOKEN_USER_DEFINED, BC_TOKEN_CONTROL,
         BC_TOKEN_UNUSED, "  "},
    };
    struct tokenizer_run run = start(BPE(FOUR_ADDED, VOCAB, MERGES), 11);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run.policy = rows[i].policy;
        run.target = rows[i].target;
        tokenizer_run(&run);
        expect_base(&run);
        tokenizer_run_expect_token(&run, 5, "<|end|>", BC_TOKEN_CONTROL);
        tokenizer_run_expect_token(&run, 6, "<think>", rows[i].think);
        tokenizer_run_expect_token(&run, 7, "<|x|>", rows[i].x);
        tokenizer_run_expect_token(&run, 8, rows[i].blanks, BC_TOKEN_USER_DEFINED);
        tokenizer_run_expect_token(&run, 9, "[PAD9]", rows[i].padding);
        tokenizer_run_expect_token(&run, 10, "[PAD10]", rows[i].padding);
        assert_true(tokenizer_run_said(&run, "2 ids without a token"));
    }
    tokenizer_run_end(&run);
}

static void test_looks_special(void **state)
{
    (void)state;
    const struct bc_tokenizer_rules *const mainline =
        bc_tokenizer_rules(BC_TOKENIZER_LLAMA, BC_TARGET_LLAMA_CPP);
    static const char *const markers[] = {
        "<pad>",     "<mask>", "<2mass>", "[@BOS@]", "<|im_end|>", "<\xef\xbd\x9c\x42\xef\xbd\x9c>",
        "<unused99>"};
    static const char *const words[] = {"<think>", "[INST]", "<|", "|>", "<unused", "<x|>", ""};
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
        assert_int_equal(bc_added_token_type(mainline, markers[i], false), BC_TOKEN_CONTROL);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(bc_added_token_type(mainline, words[i], false), BC_TOKEN_USER_DEFINED);
        assert_int_equal(bc_added_token_type(mainline, words[i], true), BC_TOKEN_CONTROL);
    }
    const struct bc_tokenizer_rules *const embedding =
        bc_tokenizer_rules(BC_TOKENIZER_GEMMA, BC_TARGET_BITNET);
    assert_int_equal(bc_added_token_type(embedding, "[multimodal]", false), BC_TOKEN_CONTROL);
    assert_int_equal(bc_added_token_type(embedding, "<", false), BC_TOKEN_USER_DEFINED);
    assert_int_equal(bc_added_token_type(embedding, "\n\n", false), BC_TOKEN_USER_DEFINED);
}

static void test_merge_forms(void **state)
{
    (void)state;
    static const char *const texts[] = {
        BPE("", VOCAB, MERGES),
        BPE("", VOCAB, MERGE_PAIRS),
        BPE("", VOCAB, "[[\"a\",\"b\"],\"\xc4\xa0 a\"]"),
    };
    struct tokenizer_run run = start(NULL, 5);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        temp_dir_puts(run.dir, "tokenizer.json", texts[i]);
        tokenizer_run(&run);
        expect_base(&run);
        assert_string_equal(bc_buf_str(&run.messages), "");
    }
    tokenizer_run_end(&run);
}

static void test_merge_with_blank(void **state)
{
    (void)state;
    struct tokenizer_run run = start(BPE("", VOCAB, "[[\"a\",\"b\"],[\"  a\",\" \"]]"), 5);
    tokenizer_run(&run);
    assert_int_equal(run.status, BITCONV_OK);
    tokenizer_run_expect_element(&run, "tokenizer.ggml.merges", 1, "\xc4\xa0\xc4\xa0\x61 \xc4\xa0");
    assert_true(tokenizer_run_said(&run, "1 of 2 merges make a token that has no id"));
    tokenizer_run_end(&run);
}

static void test_bad_merges(void **state)
{
    (void)state;
    static const char *const bad[] = {
        BPE("", VOCAB, "[\"ab\"]"),         BPE("", VOCAB, "[\"a b c\"]"),
        BPE("", VOCAB, "[\"a b\",\" b\"]"), BPE("", VOCAB, "[\"a b\",\"a \"]"),
        BPE("", VOCAB, "[[\"a\"]]"),        BPE("", VOCAB, "[[\"a\",\"b\",\"c\"]]"),
        BPE("", VOCAB, "[[\"a\",\"\"]]"),   BPE("", VOCAB, "[7]"),
        BPE("", VOCAB, "[{\"a\":\"b\"}]"),  BPE("", VOCAB, "[[\"a\",1]]"),
    };
    struct tokenizer_run run = start(NULL, 5);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        temp_dir_puts(run.dir, "tokenizer.json", bad[i]);
        tokenizer_run(&run);
        tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "is neither \"left right\" nor");
    }
    static const char *const none[] = {BPE("", VOCAB, "[]"), BPE("", VOCAB, "null"),
                                       "{" PRE_LLAMA3 ",\"model\":{\"type\":\"BPE\"," VOCAB "}}"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        temp_dir_puts(run.dir, "tokenizer.json", none[i]);
        tokenizer_run(&run);
        tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "without merges");
    }
    tokenizer_run_end(&run);
}

static void test_merges_txt_beside(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *warning; /* NULL: none */
    } rows[] = {
        {"#version: 0.2\na b\n\xc4\xa0 a\n", NULL},
        {"a b\r\n\xc4\xa0 a", NULL},
        {"a b\nb a\n", "merge 1 differs"},
        {"a b\n", "merge 1 differs"},
        {"a b\n\xc4\xa0 a\na a\n", "merge 2 differs"},
    };
    struct tokenizer_run run = start(BPE("", VOCAB, MERGES), 5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        temp_dir_puts(run.dir, "merges.txt", rows[i].text);
        tokenizer_run(&run);
        expect_base(&run);
        if (rows[i].warning == NULL)
            assert_string_equal(bc_buf_str(&run.messages), "");
        else
            assert_true(tokenizer_run_said(&run, rows[i].warning));
    }
    tokenizer_run_end(&run);
}

static void test_vocab_and_merges_files(void **state)
{
    (void)state;
    struct tokenizer_run run = start(NULL, 6);
    temp_dir_puts(run.dir, "vocab.json", "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "without merges.txt");
    temp_dir_puts(run.dir, "merges.txt", "#version: 0.2\na b\n");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, "--pre NAME");
    run.options.pre = "refact";
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "refact");
    tokenizer_run_expect_token(&run, 3, "<|endoftext|>", BC_TOKEN_NORMAL);

    run.options.pre = NULL;
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"tokenizer_class\":\"GPT2Tokenizer\",\"eos_token\":\"<|endoftext|>\"}");
    temp_dir_puts(run.dir, "added_tokens.json", "{\"<x>\":4}");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "gpt-2");
    tokenizer_run_expect_token(&run, 2, "ab", BC_TOKEN_NORMAL);
    tokenizer_run_expect_token(&run, 3, "<|endoftext|>", BC_TOKEN_CONTROL);
    tokenizer_run_expect_token(&run, 4, "<x>", BC_TOKEN_USER_DEFINED);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.eos_token_id"), 3);
    tokenizer_run_expect_element(&run, "tokenizer.ggml.merges", 0, "a b");

    temp_dir_puts(run.dir, "merges.txt", "a b\nab\n");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "merge 1 is not");
    temp_dir_puts(run.dir, "merges.txt", "#version: 0.2\n");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "without merges");
    tokenizer_run_end(&run);
}

#define U "\xe2\x96\x81"
#define SPM_VOCAB                                                                                  \
    "\"vocab\":{\"<unk>\":0,\"<0x0A>\":1,\"" U "\":2,\"a\":3,\"b\":4,\"ab\":5,\"" U "ab\":6,"      \
    "\"<0xG0>\":7}"
#define SPM_BPE(normalizer, pre)                                                                   \
    "{\"added_tokens\":[" ADDED("0", "<unk>", "true") "," ADDED(                                   \
        "8", "\\n\\n", "false") "],"                                                               \
                                "\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre             \
                                ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_"       \
                                "token\":\"<unk>\"," SPM_VOCAB ",\"merges\":[\"a b\",\"" U         \
                                " ab\",[\"" U "\",\"ab\"]]}}"
#define PREPEND           "{\"type\":\"Prepend\",\"prepend\":\"" U "\"}"
#define REPLACE           "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" U "\"}"
#define LLAMA2_NORMALIZER "{\"type\":\"Sequence\",\"normalizers\":[" PREPEND "," REPLACE "]}"
#define GEMMA_SPLIT                                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\","      \
    "\"invert\":false}"

static void test_byte_fallback(void **state)
{
    (void)state;
    struct tokenizer_run run = start(SPM_BPE(LLAMA2_NORMALIZER, "null"), 10);
    for (int target = BC_TARGET_BITNET; target <= BC_TARGET_LLAMA_CPP; target++) {
        run.target = (enum bc_target)target;
        tokenizer_run(&run);
        tokenizer_run_expect_string(&run, "tokenizer.ggml.model", "llama");
        tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "default");
        assert_false(tokenizer_run_has(&run, "tokenizer.ggml.merges"));
        tokenizer_run_expect_token(&run, 0, "<unk>", BC_TOKEN_CONTROL);
        tokenizer_run_expect_token(&run, 1, "<0x0A>", BC_TOKEN_BYTE);
        tokenizer_run_expect_token(&run, 7, "<0xG0>", BC_TOKEN_NORMAL);
        tokenizer_run_expect_token(&run, 8, "\n\n", BC_TOKEN_USER_DEFINED);
        assert_true(tokenizer_run_score(&run, 0) == -1000.0F);
        assert_true(tokenizer_run_score(&run, 1) == 0.0F);
        assert_true(tokenizer_run_score(&run, 3) == 0.0F);
        assert_true(tokenizer_run_score(&run, 5) == 0.0F);  /* rank 0 */
        assert_true(tokenizer_run_score(&run, 6) == -1.0F); /* first of two merges */
        assert_true(tokenizer_run_score(&run, 8) == -1000.0F);
        assert_true(tokenizer_run_bool(&run, "tokenizer.ggml.add_space_prefix"));
    }
    tokenizer_run_expect_token(&run, 9, "[PAD9]", BC_TOKEN_UNUSED);
    assert_true(tokenizer_run_score(&run, 9) == -10000.0F);
    tokenizer_run_end(&run);
}

static void test_space_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool prefix;
    } rows[] = {
        {SPM_BPE(LLAMA2_NORMALIZER, "null"), true},
        {SPM_BPE(REPLACE, GEMMA_SPLIT), false},
        {SPM_BPE(REPLACE, "null"), false},
        {SPM_BPE("null", "{\"type\":\"Metaspace\",\"replacement\":\"" U
                         "\",\"prepend_scheme\":\"first\",\"split\":false}"),
         true},
        {SPM_BPE("null", "{\"type\":\"Metaspace\",\"replacement\":\"" U
                         "\",\"prepend_scheme\":\"never\",\"split\":false}"),
         false},
        {SPM_BPE("null",
                 "{\"type\":\"Metaspace\",\"replacement\":\"" U "\",\"add_prefix_space\":true}"),
         true},
    };
    struct tokenizer_run run = start(NULL, 9);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        temp_dir_puts(run.dir, "tokenizer.json", rows[i].json);
        run.policy = BC_TOKENIZER_LLAMA;
        tokenizer_run(&run);
        assert_int_equal(tokenizer_run_bool(&run, "tokenizer.ggml.add_space_prefix"),
                         rows[i].prefix);
        run.policy = BC_TOKENIZER_GEMMA; /* never, whatever the file says */
        tokenizer_run(&run);
        assert_false(tokenizer_run_bool(&run, "tokenizer.ggml.add_space_prefix"));
    }
    tokenizer_run_end(&run);
}

static void test_vocabulary_size(void **state)
{
    (void)state;
    struct tokenizer_run run = start(BPE(FOUR_ADDED, VOCAB, MERGES), 9);
    tokenizer_run(&run);
    assert_int_equal(run.status, BITCONV_OK);
    assert_string_equal(bc_buf_str(&run.messages), "");

    run.n_rows = 6; /* added tokens may be dropped */
    tokenizer_run(&run);
    expect_base(&run);
    assert_true(tokenizer_run_said(&run, "warning: tokenizer.json: 3 added tokens beyond the 6"));
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.ggml.tokens")->count, 6);

    run.n_rows = 4; /* base tokens may not */
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "9 tokens with ids up to 8");
    assert_non_null(strstr(run.err.text, "4 rows"));
    run.options.trim_vocab = true;
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 3, "ab", BC_TOKEN_NORMAL);
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.ggml.tokens")->count, 4);
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.ggml.token_type")->count, 4);
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.ggml.merges")->count, 2);
    assert_true(tokenizer_run_said(&run, "5 tokens dropped"));

    run.n_rows = 0;
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_LIMIT, "vocab_size 0");
    run.n_rows = 4000000000;
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_LIMIT, "vocab_size 4000000000");
    run.n_rows = 4000000;
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_LIMIT, "would have to be padded");
    tokenizer_run_end(&run);
}

static void test_gap_is_padded(void **state)
{
    (void)state;
    struct tokenizer_run run = start(
        BPE(ADDED("7", "<|late|>", "true"), "\"vocab\":{\"b\":3,\"a\":0,\"ab\":1}", "[\"a b\"]"),
        8);
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 1, "ab", BC_TOKEN_NORMAL);
    tokenizer_run_expect_token(&run, 2, "[PAD2]", BC_TOKEN_USER_DEFINED);
    tokenizer_run_expect_token(&run, 3, "b", BC_TOKEN_NORMAL);
    tokenizer_run_expect_token(&run, 7, "<|late|>", BC_TOKEN_CONTROL);
    assert_true(tokenizer_run_said(&run, "4 ids without a token"));
    tokenizer_run_end(&run);
}

static void test_contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *json, *added, *config;
        const char *message;
    } rows[] = {
        {BPE("", "\"vocab\":{\"a\":0,\"b\":1,\"ab\":1}", "[\"a b\"]"), NULL, NULL,
         "id 1 belongs to two tokens"},
        {BPE(ADDED("5", "ab", "true"), VOCAB, MERGES), NULL, NULL, "\"ab\" has two ids, 3 and 5"},
        {BPE(ADDED("3", "<x>", "true"), VOCAB, MERGES), NULL, NULL, "id 3 is \"<x>\" there"},
        {BPE(ADDED("5", "<x>", "true") "," ADDED("5", "<y>", "true"), VOCAB, MERGES), NULL, NULL,
         "id 5 belongs to two tokens"},
        {BPE(FOUR_ADDED, VOCAB, MERGES), "{\"<think>\":7}", NULL, "added_tokens.json"},
        {BPE(FOUR_ADDED, VOCAB, MERGES), "{\"<think>\":9}", NULL, "has two ids, 6 and 9"},
        {BPE(FOUR_ADDED, VOCAB, MERGES), NULL,
         "{\"added_tokens_decoder\":{\"6\":{\"content\":\"<other>\"}}}", "tokenizer_config.json"},
        {BPE("", "\"vocab\":{\"a\":0,\"b\":-1}", "[\"a b\"]"), NULL, NULL, "not a number >= 0"},
        {BPE("", "\"vocab\":{\"a\":0,\"b\":1.5}", "[\"a b\"]"), NULL, NULL, "not a number >= 0"},
        {BPE("", "\"vocab\":{\"a\":0,\"b\":\"1\"}", "[\"a b\"]"), NULL, NULL, "not a number >= 0"},
        {BPE("", "\"vocab\":[\"a\"]", "[\"a b\"]"), NULL, NULL, "not an object"},
        {BPE("", "\"vocab\":{}", "[\"a b\"]"), NULL, NULL, "empty"},
        {BPE("{\"id\":5}", VOCAB, MERGES), NULL, NULL, "lacks its content"},
        {BPE("{\"content\":\"x\"}", VOCAB, MERGES), NULL, NULL, "lacks its content"},
        {BPE("", VOCAB, MERGES), "{\"<x>\":\"5\"}", NULL, "not a number >= 0"},
        {BPE("", VOCAB, MERGES), NULL, "{\"added_tokens_decoder\":{\"5x\":{\"content\":\"y\"}}}",
         "\"5x\" is not an id"},
        {BPE("", VOCAB, MERGES), NULL, "{\"added_tokens_decoder\":{\"5\":{}}}", "is not an id"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tokenizer_run run = start(rows[i].json, 10);
        if (rows[i].added != NULL) temp_dir_puts(run.dir, "added_tokens.json", rows[i].added);
        if (rows[i].config != NULL) temp_dir_puts(run.dir, "tokenizer_config.json", rows[i].config);
        tokenizer_run(&run);
        tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, rows[i].message);
        tokenizer_run_end(&run);
    }
    struct tokenizer_run run =
        start(BPE("", "\"vocab\":{\"a\":0,\"b\":16777216}", "[\"a b\"]"), 10);
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_LIMIT, "beyond the limit");
    tokenizer_run_end(&run);
}

/* Files that say the same, and files that say more. */
static void test_further_declarations(void **state)
{
    (void)state;
    struct tokenizer_run run = start(BPE(FOUR_ADDED, VOCAB, MERGES), 12);
    temp_dir_puts(run.dir, "added_tokens.json", "{\"<think>\":6,\"<new>\":9}");
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"added_tokens_decoder\":{\"5\":{\"content\":\"<|end|>\",\"special\":false},"
                  "\"3\":{\"content\":\"ab\",\"special\":true},"
                  "\"10\":{\"content\":\"<newer>\",\"special\":true}}}");
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 3, "ab", BC_TOKEN_CONTROL);
    tokenizer_run_expect_token(&run, 5, "<|end|>", BC_TOKEN_CONTROL); /* tokenizer.json decides */
    tokenizer_run_expect_token(&run, 9, "<new>", BC_TOKEN_USER_DEFINED);
    tokenizer_run_expect_token(&run, 10, "<newer>", BC_TOKEN_CONTROL);
    tokenizer_run_end(&run);
}

#define WORDPIECE(extra)                                                                           \
    "{\"added_tokens\":[" ADDED("0", "[PAD]", "true") "," ADDED("1", "[CLS]", "true") "," ADDED(   \
        "2", "[SEP]", "true") "],\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,"  \
                              "\"strip_accents\":null},\"pre_tokenizer\":{\"type\":"               \
                              "\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\"," extra     \
                              "\"vocab\":{\"[PAD]\":0,\"[CLS]\":1,\"[SEP]\":2,\"run\":3,"          \
                              "\"##ning\":4,\"##\":5}}}"

static void expect_wordpiece(const struct tokenizer_run *run)
{
    tokenizer_run_expect_string(run, "tokenizer.ggml.model", "bert");
    tokenizer_run_expect_token(run, 0, "[PAD]", BC_TOKEN_CONTROL);
    tokenizer_run_expect_token(run, 2, "[SEP]", BC_TOKEN_CONTROL);
    tokenizer_run_expect_token(run, 3, U "run", BC_TOKEN_NORMAL);
    tokenizer_run_expect_token(run, 4, "ning", BC_TOKEN_NORMAL);
    tokenizer_run_expect_token(run, 5, U "##", BC_TOKEN_NORMAL); /* never an empty text */
    assert_false(tokenizer_run_has(run, "tokenizer.ggml.scores"));
    assert_false(tokenizer_run_has(run, "tokenizer.ggml.merges"));
    assert_true(tokenizer_run_bool(run, "tokenizer.ggml.normalizer.lowercase"));
    assert_false(tokenizer_run_has(run, "tokenizer.ggml.normalizer.strip_accents"));
}

static void test_wordpiece(void **state)
{
    (void)state;
    struct tokenizer_run run = start(WORDPIECE(""), 7);
    run.policy = BC_TOKENIZER_BERT;
    run.target = BC_TARGET_LLAMA_CPP;
    temp_dir_puts(run.dir, "config.json", "{\"type_vocab_size\":2}");
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"cls_token\":\"[CLS]\",\"sep_token\":\"[SEP]\",\"pad_token\":\"[PAD]\"}");
    tokenizer_run(&run);
    expect_wordpiece(&run);
    tokenizer_run_expect_token(&run, 6, "[PAD6]", BC_TOKEN_UNUSED);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.token_type_count"), 2);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.bos_token_id"), 1);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.eos_token_id"), 2);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.seperator_token_id"), 2);
    assert_false(tokenizer_run_has(&run, "tokenizer.ggml.cls_token_id"));

    temp_dir_puts(run.dir, "tokenizer.json", WORDPIECE("\"continuing_subword_prefix\":\"@@\","));
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, "\"@@\" instead of \"##\"");
    tokenizer_run_end(&run);
}

static void test_vocab_txt(void **state)
{
    (void)state;
    struct tokenizer_run run = start(NULL, 6);
    run.policy = BC_TOKENIZER_BERT;
    run.target = BC_TARGET_LLAMA_CPP;
    temp_dir_puts(run.dir, "vocab.txt", "[PAD]\n[CLS]\r\n[SEP]\nrun\n##ning\n##\n");
    tokenizer_run(&run);
    expect_wordpiece(&run);
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"do_lower_case\":false,\"strip_accents\":true}");
    tokenizer_run(&run);
    assert_false(tokenizer_run_bool(&run, "tokenizer.ggml.normalizer.lowercase"));
    assert_true(tokenizer_run_bool(&run, "tokenizer.ggml.normalizer.strip_accents"));

    /* BertTokenizer's own names and template, which no file states */
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.bos_token_id"), 1);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.eos_token_id"), 2);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.seperator_token_id"), 2);
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.padding_token_id"), 0);
    assert_false(tokenizer_run_has(&run, "tokenizer.ggml.mask_token_id"));
    assert_true(tokenizer_run_bool(&run, "tokenizer.ggml.add_bos_token"));
    assert_true(tokenizer_run_bool(&run, "tokenizer.ggml.add_eos_token"));
    assert_false(tokenizer_run_bool(&run, "tokenizer.ggml.add_sep_token"));

    static const char *const bad[][2] = {{"[PAD]\n\nrun\n", "line 2 is not a token"},
                                         {"[PAD]\nx\n[PAD]\n", "has two ids, 0 and 2"},
                                         {"[PAD]\n\xff\n", "line 2 is not a token"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        temp_dir_puts(run.dir, "vocab.txt", bad[i][0]);
        tokenizer_run(&run);
        tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, bad[i][1]);
    }
    temp_dir_puts(run.dir, "vocab.txt", "[PAD]\n[CLS]\n[SEP]\nrun\n##ning\n##\n");
    temp_dir_puts(run.dir, "tokenizer_config.json", "{\"tokenizer_class\":\"BertTokenizerFast\"}");
    tokenizer_run(&run);
    expect_wordpiece(&run);
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"tokenizer_class\":\"BertJapaneseTokenizer\"}");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, "\"BertJapaneseTokenizer\" with a");
    tokenizer_run_end(&run);
}

static void test_refused_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *message;
        enum bitconv_status status;
    } rows[] = {
        {"tokenizer.json", "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1.5]]}}", "Unigram",
         BITCONV_E_UNSUPPORTED},
        {"tokenizer.json", "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}", "WordLevel",
         BITCONV_E_UNSUPPORTED},
        {"tokenizer.json",
         "{\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0}}}",
         "</w>", BITCONV_E_UNSUPPORTED},
        {"tokenizer.json", "{}", "not an object", BITCONV_E_CORRUPT},
        {"tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
         "Git LFS pointer", BITCONV_E_CORRUPT},
        {"tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
         "Git LFS pointer", BITCONV_E_CORRUPT},
        {"vocab.txt", "<!DOCTYPE html><html></html>", "HTML page", BITCONV_E_CORRUPT},
        {"vocab.txt", "", "empty", BITCONV_E_CORRUPT},
        {"unrelated.txt", "x", "no tokenizer: none of", BITCONV_E_CORRUPT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tokenizer_run run = start(NULL, 4);
        temp_dir_puts(run.dir, rows[i].file, rows[i].text);
        tokenizer_run(&run);
        tokenizer_run_expect_failure(&run, rows[i].status, rows[i].message);
        tokenizer_run_end(&run);
    }
}

static void write_gz(const char *dir, const char *name, const char *text)
{
    char *const path = temp_dir_path(dir, name);
    const gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzputs(file, text), (int)strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
    free(path);
}

static void test_compressed_files(void **state)
{
    (void)state;
    struct tokenizer_run run = start(NULL, 9);
    write_gz(run.dir, "tokenizer.json.gz", BPE(FOUR_ADDED, VOCAB, MERGES));
    write_gz(run.dir, "merges.txt.gz", "a b\na a\n");
    write_gz(run.dir, "chat_template.jinja.gz", "{{ x }}");
    tokenizer_run(&run);
    expect_base(&run);
    assert_true(tokenizer_run_said(&run, "merge 1 differs"));
    tokenizer_run_expect_string(&run, "tokenizer.chat_template", "{{ x }}");
    tokenizer_run_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_byte_level_rules),
        cmocka_unit_test(test_looks_special),
        cmocka_unit_test(test_merge_forms),
        cmocka_unit_test(test_merge_with_blank),
        cmocka_unit_test(test_bad_merges),
        cmocka_unit_test(test_merges_txt_beside),
        cmocka_unit_test(test_vocab_and_merges_files),
        cmocka_unit_test(test_byte_fallback),
        cmocka_unit_test(test_space_prefix),
        cmocka_unit_test(test_vocabulary_size),
        cmocka_unit_test(test_gap_is_padded),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_further_declarations),
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_vocab_txt),
        cmocka_unit_test(test_refused_kinds),
        cmocka_unit_test(test_compressed_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
