/* SPDX-License-Identifier: MIT
 * Tokenizers of every kind at run time, from the fixtures and from files of a few tokens. The
 * expected ids are those of the tokenizers library 0.23 and of SentencePiece 0.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "bitconv/tokenize.h"
#include "model/tokenizer_pre.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"
#include "tokenizer/steps_read.h"

#define SAMPLE "the cat, and  the hat 123's\n"

static struct bitconv_tokenizer *open_path(const char *path)
{
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    if (bitconv_tokenizer_open(path, NULL, &tok, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return tok;
}

static char *fixture(const char *name)
{
    return temp_dir_path(BITCONV_SOURCE_DIR "/fixtures/models", name);
}

/* "1,2,3" of a text, into ids that the caller releases. */
static void encode(const struct bitconv_tokenizer *tok, const char *text, size_t len, bool special,
                   struct bitconv_ids *ids)
{
    struct bitconv_error err = {0};
    ids->n = 0;
    if (bitconv_tokenizer_encode(tok, text, len, special, ids, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
}

static void expect_ids_n(const struct bitconv_tokenizer *tok, const char *text, size_t len,
                         bool special, const char *want)
{
    struct bitconv_ids ids = {0};
    struct bc_buf got = {0};
    encode(tok, text, len, special, &ids);
    for (size_t i = 0; i < ids.n; i++)
        bc_buf_printf(&got, "%s%u", i == 0 ? "" : ",", (unsigned)ids.ids[i]);
    assert_string_equal(bc_buf_str(&got), want);
    bc_buf_release(&got);
    bitconv_ids_release(&ids);
}

static void expect_ids(const struct bitconv_tokenizer *tok, const char *text, const char *want)
{
    expect_ids_n(tok, text, strlen(text), true, want);
}

/* Encodes and decodes, special tokens left out. */
static void expect_decoded(const struct bitconv_tokenizer *tok, const char *text, const char *want)
{
    struct bitconv_ids ids = {0};
    struct bitconv_text back = {0};
    encode(tok, text, strlen(text), true, &ids);
    assert_int_equal(bitconv_tokenizer_decode(tok, ids.ids, ids.n, true, &back, NULL), BITCONV_OK);
    assert_string_equal(back.data, want);
    bitconv_text_release(&back);
    bitconv_ids_release(&ids);
}

static const struct fixture_case {
    const char *name;
    enum bc_tokenizer_policy policy;
    const char *ids;     /* of SAMPLE */
    const char *unknown; /* of "héllo <unk> " */
} fixture_cases[] = {
    {"bitnet", BC_TOKENIZER_LLAMA,
     "276,257,32,99,97,116,44,262,32,258,32,104,97,116,32,49,50,51,39,115,10",
     "276,104,195,169,272,111,32,60,117,110,107,62,32"},
    {"qwen3-embed", BC_TOKENIZER_QWEN,
     "257,32,99,97,116,44,262,32,258,32,104,97,116,32,49,50,51,39,115,10,276",
     "104,195,169,272,111,32,60,117,110,107,62,32,276"},
    {"gemma3-embed", BC_TOKENIZER_GEMMA,
     "2,291,263,266,264,283,51,296,263,292,263,271,264,283,263,56,57,58,46,282,17",
     "2,271,202,176,306,278,263,3,263"},
};

static void test_fixtures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fixture_cases / sizeof fixture_cases[0]; i++) {
        char *const path = fixture(fixture_cases[i].name);
        struct bitconv_tokenizer *const tok = open_path(path);
        expect_ids(tok, SAMPLE, fixture_cases[i].ids);
        expect_ids(tok, "h\xc3\xa9llo <unk> ", fixture_cases[i].unknown);
        expect_ids_n(tok, "", 0, false, "");
        expect_decoded(tok, SAMPLE, SAMPLE);
        bitconv_tokenizer_close(tok);
        free(path);
    }
}

static void copy_file(const char *from, const char *name, const char *to)
{
    struct bc_buf bytes = {0};
    char *const path = temp_dir_path(from, name);
    assert_int_equal(bc_text_load(path, &bytes, NULL), BITCONV_OK);
    temp_dir_write(to, name, bytes.data, bytes.size);
    bc_buf_release(&bytes);
    free(path);
}

/* A conversion of the fixture's tokenizer, and the tokenizer of what it wrote. */
static void test_fixtures_from_gguf(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fixture_cases / sizeof fixture_cases[0]; i++) {
        char *const path = fixture(fixture_cases[i].name);
        struct tokenizer_run run = {
            .dir = temp_dir_new(), .policy = fixture_cases[i].policy, .n_rows = 512};
        struct bitconv_tokenizer *tok = NULL;
        copy_file(path, "tokenizer.json", run.dir);
        copy_file(path, "tokenizer_config.json", run.dir);
        tokenizer_run(&run);
        assert_int_equal(bitconv_tokenizer_open_gguf(run.gguf, NULL, &tok, NULL), BITCONV_OK);
        expect_ids(tok, SAMPLE, fixture_cases[i].ids);
        expect_ids(tok, "h\xc3\xa9llo <unk> ", fixture_cases[i].unknown);
        expect_decoded(tok, SAMPLE, SAMPLE);
        bitconv_tokenizer_close(tok);
        tokenizer_run_end(&run);
        free(path);
    }
}

static void test_sentencepiece_bpe(void **state)
{
    (void)state;
    char *const path = fixture("bitnet-1bitllm");
    struct bitconv_tokenizer *const tok = open_path(path);
    expect_ids_n(tok, SAMPLE, strlen(SAMPLE), false,
                 "261,279,282,280,299,47,265,279,261,279,287,280,299,279,52,53,54,42,298,13");
    expect_decoded(tok, SAMPLE, SAMPLE);
    bitconv_tokenizer_close(tok);
    free(path);
}

/* ---- tokenizers of a few tokens ---- */

static struct bitconv_tokenizer *open_text(const char *file, const char *text,
                                           enum bitconv_status want, const char *message)
{
    char *const dir = temp_dir_new();
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    temp_dir_puts(dir, file, text);
    const enum bitconv_status status = bitconv_tokenizer_open(dir, NULL, &tok, &err);
    if (status != want) fail_msg("status %d: %s", status, err.text);
    if (message != NULL && strstr(err.text, message) == NULL) fail_msg("%s", err.text);
    temp_dir_remove(dir);
    return tok;
}

static struct bitconv_tokenizer *open_json(const char *text)
{
    return open_text("tokenizer.json", text, BITCONV_OK, NULL);
}

static void refuse(const char *text, enum bitconv_status status, const char *message)
{
    assert_null(open_text("tokenizer.json", text, status, message));
}

static void test_wordpiece(void **state)
{
    (void)state;
    struct bitconv_tokenizer *tok = open_json(
        "{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true}],"
        "\"normalizer\":{\"type\":\"BertNormalizer\",\"strip_accents\":null},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"max_input_chars_per_word\":8,"
        "\"vocab\":{\"[UNK]\":0,\"un\":1,\"##aff\":2,\"##able\":3,\"a\":4,\"\xe6\x9d\xb1\":5,"
        "\"!\":6,\"resume\":7}}}");
    expect_ids(tok,
               "Unaffable! R\xc3\x89SUM\xc3\x89 \xe6\x9d\xb1"
               "a unaffableun",
               "0,6,7,5,4,0");
    expect_decoded(tok, "! resume", "! resume");
    bitconv_tokenizer_close(tok);
    tok =
        open_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n", BITCONV_OK, NULL);
    expect_ids(tok, "UNaffable x", "2,4,5,6,1,3");
    expect_decoded(tok, "unaffable", "unaffable");
    bitconv_tokenizer_close(tok);
}

static void test_unigram(void **state)
{
    (void)state;
    struct bitconv_tokenizer *const tok =
        open_json("{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                  "\"prepend_scheme\":\"always\"},\"decoder\":{\"type\":\"Metaspace\"},"
                  "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],"
                  "[\"\xe2\x96\x81\",-3.0],[\"a\",-4.0],[\"b\",-4.0],[\"ab\",-5.0],[\"\xe2\x96\x81"
                  "a\",-3.5],"
                  "[\"\xe2\x96\x81"
                  "ab\",-9.0],[\"aba\",-6.5]]}}");
    expect_ids(tok, "abab xyz a", "5,3,4,1,0,5");
    expect_decoded(tok, "abab a", "abab a");
    bitconv_tokenizer_close(tok);
}

static void test_added_tokens(void **state)
{
    (void)state;
    struct bitconv_tokenizer *const tok = open_json(
        "{\"added_tokens\":["
        "{\"id\":5,\"content\":\"<l>\",\"lstrip\":true,\"normalized\":false,\"special\":true},"
        "{\"id\":6,\"content\":\"<r>\",\"rstrip\":true,\"normalized\":false,\"special\":true},"
        "{\"id\":7,\"content\":\"w\",\"single_word\":true,\"normalized\":false,\"special\":false},"
        "{\"id\":8,\"content\":\"AB\",\"normalized\":true,\"special\":false}],"
        "\"normalizer\":{\"type\":\"Lowercase\"},"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,"
        "\"vocab\":{\"?\":0,\"a\":1,\" \":2,\"b\":3,\"aa\":4},\"merges\":[\"a a\"]}}");
    expect_ids(tok, "a  <l> aaa<r>  w ww aB xx", "1,5,2,4,1,6,7,2,0,2,8,2,0");
    bitconv_tokenizer_close(tok);
}

/* ---- input that nobody means well with ---- */

static void test_ill_formed_text(void **state)
{
    (void)state;
    struct bitconv_tokenizer *const tok =
        open_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\xef\xbf\xbd\":1},"
                  "\"merges\":[\"a a\"]}}");
    expect_ids_n(tok,
                 "a\xff"
                 "a",
                 3, false, "0,1,0");
    expect_ids_n(tok, "\xf0\x9f\x98", 3, false, "1");     /* the start of a character: one part */
    expect_ids_n(tok, "\xed\xa0\x80", 3, false, "1,1,1"); /* a surrogate: three */
    expect_ids_n(tok, "\xc3", 1, false, "1");
    expect_ids_n(tok, "\0a", 2, false, "0"); /* unknown without an unknown token: dropped */
    bitconv_tokenizer_close(tok);
}

/* A word of a megabyte: merging must not be quadratic. */
static void test_long_word(void **state)
{
    (void)state;
    const size_t n = 1000000;
    struct bitconv_ids ids = {0};
    char *const text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    struct bitconv_tokenizer *const tok =
        open_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaaa\":2,\"aaa\":3},"
                  "\"merges\":[\"a a\",[\"aa\",\"aa\"],\"aa a\"]}}");
    encode(tok, text, n, false, &ids);
    assert_int_equal(ids.n, n / 4);
    for (size_t i = 0; i < ids.n; i++)
        assert_int_equal(ids.ids[i], 2);
    bitconv_ids_release(&ids);
    bitconv_tokenizer_close(tok);
    free(text);
}

static void test_regex_catastrophe(void **state)
{
    (void)state;
    struct bitconv_ids ids = {0};
    struct bitconv_error err = {0};
    struct bitconv_tokenizer *const tok =
        open_json("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a|aa)+[xy]\"},"
                  "\"behavior\":\"Isolated\"},"
                  "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}");
    const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    assert_int_equal(bitconv_tokenizer_encode(tok, text, strlen(text), false, &ids, &err),
                     BITCONV_E_LIMIT);
    assert_non_null(strstr(err.text, "regular expression"));
    bitconv_ids_release(&ids);
    bitconv_tokenizer_close(tok);
}

static void test_hostile_files(void **state)
{
    (void)state;
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4294967296},\"merges\":[\"a a\"]}}",
           BITCONV_E_LIMIT, "beyond the limit");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":16000000},\"merges\":[\"a a\"]}}",
           BITCONV_E_LIMIT, "ids without a token");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}",
           BITCONV_E_CORRUPT, "merge 0");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"\",\"a\"]]}}",
           BITCONV_E_CORRUPT, "merge 0");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", BITCONV_E_CORRUPT, "empty");
    refuse("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}", BITCONV_E_UNSUPPORTED,
           "WordLevel");
    refuse("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}},"
           "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
           BITCONV_E_UNSUPPORTED, "regular expression");
    refuse("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"}},"
           "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
           BITCONV_E_UNSUPPORTED, "intersects");
    refuse("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA/w==\"},"
           "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
           BITCONV_E_CORRUPT, "precompiled_charsmap");
    refuse("{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\"},"
           "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
           BITCONV_E_CORRUPT, "replacement");
    refuse("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", BITCONV_E_CORRUPT, "entry 0");
}

/* Merges that make each other's parts, an empty piece, a merge whose product is unknown: no harm. */
static void test_odd_merges(void **state)
{
    (void)state;
    struct bitconv_tokenizer *const tok =
        open_json("{\"added_tokens\":[{\"id\":5,\"content\":\"\",\"special\":true}],"
                  "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"ba\":3,"
                  "\"aba\":4,\"\":5},"
                  "\"merges\":[\"ab a\",\"a ba\",\"a b\",\"b a\",\"aba aba\",\"c a\"]}}");
    expect_ids(tok, "abaabab", "4,4,1");
    bitconv_tokenizer_close(tok);
}

/* ---- tables ---- */

static void test_every_named_splitting(void **state)
{
    (void)state;
    for (size_t i = 0; i < bc_pre_n_rows; i++) {
        struct bc_steps normalizer = {0};
        struct bc_steps pre = {0};
        struct bitconv_error err = {0};
        if (bc_steps_of_signature(bc_pre_rows[i].signature, bc_pre_rows[i].name, &normalizer, &pre,
                                  &err) != BITCONV_OK)
            fail_msg("%s: %s", bc_pre_rows[i].name, err.text);
        assert_true(pre.n > 0);
        assert_true(normalizer.n == (strncmp(bc_pre_rows[i].signature, "NFC", 3) == 0));
        bc_steps_release(&normalizer);
        bc_steps_release(&pre);
    }
}

static void expect_cut(const char *regex, const char *text, const char *want)
{
    struct bc_steps steps = {0};
    struct bc_pieces pieces = {0};
    struct bc_pieces spare = {0};
    struct bc_buf got = {0};
    struct bitconv_error err = {0};
    if (bc_steps_add_regex(&steps, regex, "test", BC_ISOLATED, false, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    bc_pieces_add(&pieces, text, strlen(text));
    assert_int_equal(bc_steps_run(&steps, &pieces, &spare, &err), BITCONV_OK);
    for (size_t i = 0; i < pieces.n; i++) {
        size_t len;
        const char *const piece = bc_pieces_at(&pieces, i, &len);
        bc_buf_printf(&got, "%s%.*s", i == 0 ? "" : "|", (int)len, piece);
    }
    assert_string_equal(bc_buf_str(&got), want);
    bc_buf_release(&got);
    bc_pieces_release(&pieces);
    bc_pieces_release(&spare);
    bc_steps_release(&steps);
}

static void test_regex_syntax(void **state)
{
    (void)state;
    expect_cut("\\s+",
               "a \xe1\xa0\x8e"
               "b",
               "a| |\xe1\xa0\x8e"
               "b"); /* U+180E is no blank */
    expect_cut("[^\\s]+",
               "ab\xc2\xa0"
               "c",
               "ab|\xc2\xa0|c");
    expect_cut("[\\S]+",
               "ab\xe2\x80\x83"
               "c",
               "ab|\xe2\x80\x83|c");
    expect_cut(" ?[^(\\s|[.,!?])]+", "ab, c", "ab|,| c"); /* a class within a class */
    expect_cut("\\h+", "xyfFz", "xy|fF|z");               /* hexadecimal digits */
    expect_cut("a$", "a\na", "a|\n|a");                   /* at every line */
    expect_cut("\\u0041", "xAx", "x|A|x");
    expect_cut("\\p{L}+",
               "a\xf0\xb1\x8d\x90"
               "1",
               "a\xf0\xb1\x8d\x90|1"); /* U+31350, Unicode 15 */
    expect_cut("\\w+", "a\xcc\x81-b", "a\xcc\x81|-|b");
    expect_cut("\\W", "\xe0\xa4\xa8\xe0\xa4\xbf-\xe2\x91\xa0",
               "\xe0\xa4\xa8\xe0\xa4\xbf|-|\xe2\x91\xa0"); /* a mark; U+2460 is no word */
    expect_cut("\\W", "a\xe2\x91\xa0\xe2\x91\xa0", "a|\xe2\x91\xa0|\xe2\x91\xa0");
    expect_cut("a\\b.", "a\xcc\x81 a-", "a\xcc\x81 |a-");
    expect_cut("a\\B.", "a\xcc\x81 a-", "a\xcc\x81| a-");
    expect_cut("[[:punct:]]", "a\xc2\xa9+", "a|\xc2\xa9|+"); /* symbols too */
    expect_cut("[[:alpha:]-]+", "\xe2\x93\x90-\xcc\x81", "\xe2\x93\x90-|\xcc\x81");
    expect_cut("[_[:word:]]+", "a\xcc\x81_\xe2\x91\xa0", "a\xcc\x81_|\xe2\x91\xa0");
}

#define SHARE "\xe2\x96\x81"

/* What precedes a piece is gone: it does not start the input, so "first" gives it no mark. */
static void test_removed_start(void **state)
{
    (void)state;
    static const char *const before[] = {
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
        "{\"type\":\"WhitespaceSplit\"},",
        "\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true},"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["};
    for (size_t i = 0; i < 2; i++) {
        struct bc_buf json = {0};
        bc_buf_printf(
            &json,
            "{%s{\"type\":\"Metaspace\",\"replacement\":\"" SHARE
            "\",\"prepend_scheme\":\"first\"}]},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,"
            "\"vocab\":[[\"<unk>\",0.0],[\"" SHARE "\",-3.0],[\"a\",-4.0]]}}",
            before[i]);
        struct bitconv_tokenizer *const tok = open_json(bc_buf_str(&json));
        expect_ids(tok, "a", "1,2");
        expect_ids(tok, " a", "2");
        bitconv_tokenizer_close(tok);
        bc_buf_release(&json);
    }
}

/* The library's \w has the joiners, and no superscripts. */
static void test_whitespace(void **state)
{
    (void)state;
    struct bitconv_tokenizer *const tok =
        open_json("{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"type\":\"WordPiece\","
                  "\"unk_token\":"
                  "\"?\",\"vocab\":{\"?\":0,\"!\":1,\"\xe2\x80\x8d\":2,\"x\":3,\"\xc2\xb2\":4}}}");
    expect_ids(tok, "!\xe2\x80\x8d! x\xc2\xb2", "1,2,1,3,4");
    bitconv_tokenizer_close(tok);
}

/* Scores are double in this file: float would see equal sums, and take the first. */
static void test_close_scores(void **state)
{
    (void)state;
    struct bitconv_tokenizer *const tok =
        open_json("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",-9.0],"
                  "[\"a\",-2.0],[\"b\",-2.0],[\"ab\",-4.0000000001]]}}");
    expect_ids(tok, "ab", "1,2");
    bitconv_tokenizer_close(tok);
}

static void test_check_hash(void **state)
{
    (void)state;
    struct bitconv_check_hash hash;
    struct bitconv_tokenizer *const tok = open_json(
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"e\":0,\"x\":1},\"merges\":[\"x x\"]}}");
    assert_int_equal(bitconv_tokenizer_check_hash(tok, BITCONV_CHECK_UPSTREAM, &hash, NULL),
                     BITCONV_OK);
    /* The text has 19 e and 0 x. */
    assert_string_equal(hash.sha256,
                        "52d2e02e522086890e7d689594eb35414cc52ece8e14a8f304ddf44a901bf822");
    assert_null(hash.name);
    assert_true(hash.agrees);
    bitconv_tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixtures),          cmocka_unit_test(test_fixtures_from_gguf),
        cmocka_unit_test(test_sentencepiece_bpe), cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_unigram),           cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_ill_formed_text),   cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_regex_catastrophe), cmocka_unit_test(test_hostile_files),
        cmocka_unit_test(test_odd_merges),        cmocka_unit_test(test_every_named_splitting),
        cmocka_unit_test(test_regex_syntax),      cmocka_unit_test(test_removed_start),
        cmocka_unit_test(test_whitespace),        cmocka_unit_test(test_close_scores),
        cmocka_unit_test(test_check_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
