/* SPDX-License-Identifier: MIT
 * Tests of recognising pre-tokenizers: the structures as the tokenizer.json files of published
 * models have them, variations that mean the same, and those that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tokenizer_pre.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"

#define NFC        "{\"type\":\"NFC\"}"
#define SEQ(steps) "{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                          \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}"
#define KEEP(regex)                                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                          \
    "\"},\"behavior\":\"Removed\",\"invert\":true}"
#define BYTES                                                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":"      \
    "false}"
#define GPT2_BYTES                                                                                 \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define DIGITS(each) "{\"type\":\"Digits\",\"individual_digits\":" each "}"
#define CASES        "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CL100K(digits)                                                                             \
    CASES "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                                       \
          "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define LLAMA3 CL100K("\\\\p{N}{1,3}")
#define QWEN2  CL100K("\\\\p{N}")
#define QWEN35                                                                                     \
    CASES "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}| "                          \
          "?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"   \
          "\\\\s+"
#define UPPER "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define LOWER "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define O200K(cases, digits)                                                                       \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" UPPER "*" LOWER "+" cases                                     \
    "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" UPPER "+" LOWER "*" cases "|" digits                         \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define DEEPSEEK3                                                                                  \
    "[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\\\p{L}\\\\p{P}"   \
    "\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|\\\\s*[\\r\\n]+|\\\\s+"          \
    "(?!\\\\S)|\\\\s+"

/* The formatter finds no end to breaking these strings. */
/* clang-format off */
#define CASED_LETTERS \
    "\\\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-Ί" \
    "ΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-" \
    "Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂ" \
    "ℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ" \
    "-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]" \
    "+"
#define NO_STEPS "{\"type\":\"Sequence\",\"normalizers\":[]}"
#define CJK "[\\u4e00-\\u9fa5\\u0800-\\u4e00\\uac00-\\ud7ff]+"

static const struct {
    const char *name; /* NULL: unknown */
    const char *normalizer, *pre, *ignore_merges;
} structures[] = {
    {"llama-bpe", "null", SEQ(SPLIT(LLAMA3) "," BYTES), "true"},
    {"smaug-bpe", "null", SEQ(SPLIT(LLAMA3) "," BYTES), "false"},
    {"llama-bpe", "null", SEQ(KEEP(LLAMA3) "," BYTES), "true"},
    {"dbrx", "null", SEQ(KEEP(LLAMA3) "," BYTES), "false"},
    {"qwen2", NFC, SEQ(SPLIT(QWEN2) "," BYTES), "false"},
    {"qwen2", "{\"type\":\"Sequence\",\"normalizers\":[" NFC "]}", SEQ(SPLIT(QWEN2) "," BYTES), "true"},
    {"qwen35", NFC, SEQ(SPLIT(QWEN35) "," BYTES), "false"},
    {"gpt-2", "null", GPT2_BYTES, "false"},
    {"gpt-2", "null", SEQ(GPT2_BYTES), "false"},
    {"gpt-2", "null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "false"},
    {"olmo", NFC, GPT2_BYTES, "false"},
    {"starcoder", "null", SEQ(DIGITS("true") "," GPT2_BYTES), "false"},
    {"command-r", NFC, SEQ(DIGITS("true") "," GPT2_BYTES), "false"},
    {"falcon", "null",
     SEQ("{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}," GPT2_BYTES ","
         DIGITS("false") "," SPLIT("[0-9][0-9][0-9]")), "false"},
    {"deepseek-llm", NO_STEPS,
     SEQ(SPLIT("[\\r\\n]") "," SPLIT(CASED_LETTERS) ","
         SPLIT("\\\\s?[!-/:-~\\uff01-\\uff0f\\uff1a-\\uff5e\\u2018-\\u201f\\u3000-\\u3002]+") ","
         SPLIT("\\\\s+$") "," SPLIT(CJK) "," DIGITS("true") "," BYTES), "false"},
    {"deepseek-coder", NO_STEPS,
     SEQ(SPLIT("[\\r\\n]") "," SPLIT("\\\\s?\\\\p{L}+") "," SPLIT("\\\\s?\\\\p{P}+") ","
         SPLIT(CJK) "," DIGITS("true") "," BYTES), "false"},
    {"deepseek-v3", NO_STEPS,
     SEQ(SPLIT("\\\\p{N}{1,3}") ","
         SPLIT("[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+") ","
         SPLIT(DEEPSEEK3) "," BYTES), "false"},
    {"tekken", "null", SEQ(SPLIT(O200K("", "\\\\p{N}")) "," BYTES), "false"},
    {"gpt-4o", "null", SEQ(SPLIT(O200K(CASES "?", "\\\\p{N}{1,3}")) "," BYTES), "false"},
    {"gpt-4o", "null", SEQ(KEEP(O200K(CASES "?", "\\\\p{N}{1,3}")) "," BYTES), "false"},
    {"bloom", "null",
     SEQ(SPLIT(" ?[^(\\\\s|[.,!?\\u2026\\u3002\\uff0c\\u3001\\u0964\\u06d4\\u060c])]+") ","
         BYTES), "false"},
    {"seed-coder", "null",
     SEQ(SPLIT(CASES "|[^\\r\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1}| ?[^\\\\s\\\\p{L}\\\\p{N}"
               "\\r\\n]+|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+") "," BYTES), "false"},
    {"bailingmoe", "null",
     SEQ(SPLIT("'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}+|\\\\p{N}| "
               "?[^\\\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|\\\\s+")
         "," BYTES), "false"},
    /* One thing changed at a time. */
    {NULL, NFC, SEQ(SPLIT(LLAMA3) "," BYTES), "true"},
    {NULL, "{\"type\":\"NFKC\"}", SEQ(SPLIT(QWEN2) "," BYTES), "false"},
    {NULL, "{\"type\":\"Lowercase\"}", GPT2_BYTES, "false"},
    {NULL, "null", SEQ(SPLIT(CL100K("\\\\p{N}{1,2}")) "," BYTES), "false"},
    {NULL, "null", SEQ(SPLIT(LLAMA3) "," GPT2_BYTES), "true"},
    {NULL, "null", SEQ(BYTES "," SPLIT(LLAMA3)), "true"},
    {NULL, "null", SEQ(SPLIT(LLAMA3)), "true"},
    {NULL, "null", "null", "false"},
    {NULL, "null", SEQ(""), "false"},
    {NULL, "null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "false"},
    {NULL, "null", "{\"type\":\"Whitespace\"}", "false"},
    {"gpt-2", "null", SEQ(SEQ(GPT2_BYTES)), "false"},
    {NULL, "null", SEQ(DIGITS("false") "," GPT2_BYTES), "false"},
    {NULL, "null",
     SEQ("{\"type\":\"Split\",\"pattern\":{\"String\":\"" LLAMA3
         "\"},\"behavior\":\"Isolated\",\"invert\":false}," BYTES), "true"},
    {NULL, "null",
     SEQ("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" LLAMA3
         "\"},\"behavior\":\"Removed\",\"invert\":false}," BYTES), "true"},
};
/* clang-format on */

static void write_tokenizer(const char *dir, const char *normalizer, const char *pre,
                            const char *ignore_merges, const char *added)
{
    struct bc_buf text = {0};
    bc_buf_printf(&text,
                  "{\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{"
                  "\"type\":\"BPE\",\"ignore_merges\":%s,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
                  "\"merges\":[\"a b\"]}}",
                  added, normalizer, pre, ignore_merges);
    assert_false(text.failed);
    temp_dir_puts(dir, "tokenizer.json", bc_buf_str(&text));
    bc_buf_release(&text);
}

static void test_structures(void **state)
{
    (void)state;
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 3};
    for (size_t i = 0; i < sizeof structures / sizeof structures[0]; i++) {
        write_tokenizer(run.dir, structures[i].normalizer, structures[i].pre,
                        structures[i].ignore_merges, "");
        tokenizer_run(&run);
        if (structures[i].name == NULL) {
            tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, "--pre NAME");
            assert_true(tokenizer_run_said(&run, "finding: tokenizer.json: normalizer | "));
        } else {
            if (run.status != BITCONV_OK) fail_msg("%s: %s", structures[i].name, run.err.text);
            tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", structures[i].name);
        }
    }
    tokenizer_run_end(&run);
}

/* No row hides another: each is the first that fits its own signature. */
static void test_rows_are_distinct(void **state)
{
    (void)state;
    for (size_t i = 0; i < bc_pre_n_rows; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(bc_pre_rows[i].signature, bc_pre_rows[k].signature) == 0) {
                assert_true(bc_pre_rows[i].ignore_merges >= 0);
                assert_true(bc_pre_rows[k].ignore_merges >= 0);
                assert_int_not_equal(bc_pre_rows[i].ignore_merges, bc_pre_rows[k].ignore_merges);
            }
}

/* Sequences within sequences apply their steps in the same order; empty ones are no step. */
static void test_nested_sequences(void **state)
{
    (void)state;
    static const char *const same[] = {
        SEQ(SEQ(SPLIT(LLAMA3)) "," BYTES),
        SEQ(SEQ("") "," SEQ(SEQ(SPLIT(LLAMA3) "," SEQ(BYTES)))),
    };
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 3};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        write_tokenizer(run.dir, NO_STEPS, same[i], "true", "");
        tokenizer_run(&run);
        tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "llama-bpe");
    }
    write_tokenizer(run.dir, "null", SEQ(BYTES "," SEQ(SPLIT(LLAMA3))), "true", "");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, "none | bytes split-isolated/");
    tokenizer_run_end(&run);
}

/* What breaks recognition by a hash of ids: a fine-tune that adds a token. */
static void test_added_token_changes_nothing(void **state)
{
    (void)state;
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 4};
    write_tokenizer(run.dir, "null", SEQ(SPLIT(LLAMA3) "," BYTES), "true",
                    "{\"id\":3,\"content\":\"<new>\",\"special\":true}");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "llama-bpe");
    tokenizer_run_end(&run);
}

static void test_unknown_shows_the_expression(void **state)
{
    (void)state;
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 3};
    write_tokenizer(run.dir, NFC, SEQ(SPLIT("\\\\p{Greek}+|[\\r\\n]") "," BYTES), "false", "");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED,
                                 "NFC | split-isolated/\\p{Greek}+|[\\r\\n]/ bytes");
    assert_true(tokenizer_run_said(&run, "split-isolated/\\p{Greek}+|[\\r\\n]/ bytes"));
    run.options.pre = "my-pre";
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "my-pre");
    assert_string_equal(bc_buf_str(&run.messages), "");
    tokenizer_run_end(&run);
}

static void test_override(void **state)
{
    (void)state;
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 3, .options = {.pre = "qwen2"}};
    write_tokenizer(run.dir, "null", SEQ(SPLIT(LLAMA3) "," BYTES), "true", "");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "qwen2");
    assert_true(tokenizer_run_said(&run, "warning: tokenizer.json: the pre-tokenizer looks like "
                                         "llama-bpe"));
    run.options.pre = "llama-bpe";
    tokenizer_run(&run);
    assert_string_equal(bc_buf_str(&run.messages), "");
    tokenizer_run_end(&run);
}

/* Byte fallback with a splitting that SentencePiece does not have is no SentencePiece model. */
static void test_unknown_sentencepiece_style(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
        "\"merges\":[\"a b\"]}}",
        "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"},\"model\":{\"type\":"
        "\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a "
        "b\"]}}",
    };
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 3};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        temp_dir_puts(run.dir, "tokenizer.json", texts[i]);
        tokenizer_run(&run);
        tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, "not a known one");
    }
    /* With a byte-level step it is an ordinary byte-level tokenizer. */
    temp_dir_puts(run.dir, "tokenizer.json",
                  "{\"pre_tokenizer\":" GPT2_BYTES
                  ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
                  "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, "tokenizer.ggml.model", "gpt2");
    tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "gpt-2");
    tokenizer_run_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structures),
        cmocka_unit_test(test_rows_are_distinct),
        cmocka_unit_test(test_nested_sequences),
        cmocka_unit_test(test_added_token_changes_nothing),
        cmocka_unit_test(test_unknown_shows_the_expression),
        cmocka_unit_test(test_override),
        cmocka_unit_test(test_unknown_sentencepiece_style),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
