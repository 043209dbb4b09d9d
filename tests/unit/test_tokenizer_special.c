/* SPDX-License-Identifier: MIT
 * Tests of special ids, of what is put around a text, and of chat templates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "model/tokenizer_rules.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"

#define BOS     "tokenizer.ggml.bos_token_id"
#define EOS     "tokenizer.ggml.eos_token_id"
#define EOT     "tokenizer.ggml.eot_token_id"
#define EOG     "tokenizer.ggml.eog_token_ids"
#define PAD     "tokenizer.ggml.padding_token_id"
#define ADD_BOS "tokenizer.ggml.add_bos_token"
#define ADD_EOS "tokenizer.ggml.add_eos_token"
#define ADD_SEP "tokenizer.ggml.add_sep_token"

/* Ids 3 to 7 are special; GPT-2's splitting. */
#define TOKENIZER(post)                                                                            \
    "{\"added_tokens\":["                                                                          \
    "{\"id\":3,\"content\":\"<s>\",\"special\":true},"                                             \
    "{\"id\":4,\"content\":\"</s>\",\"special\":true},"                                            \
    "{\"id\":5,\"content\":\"<|im_end|>\",\"special\":true},"                                      \
    "{\"id\":6,\"content\":\"<sep>\",\"special\":true},"                                           \
    "{\"id\":7,\"content\":\"<|endoftext|>\",\"special\":true}],"                                  \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"    \
    "\"post_processor\":" post ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}" \
    ",\"merges\":[\"a b\"]}}"
#define SPECIAL(text)  "{\"SpecialToken\":{\"id\":\"" text "\",\"type_id\":0}}"
#define SEQUENCE(name) "{\"Sequence\":{\"id\":\"" name "\",\"type_id\":0}}"
#define TEMPLATE(single, pair)                                                                     \
    "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair "]}"

static struct tokenizer_run start(const char *post, const char *config)
{
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 8};
    temp_dir_puts(run.dir, "tokenizer.json", post);
    if (config != NULL) temp_dir_puts(run.dir, "tokenizer_config.json", config);
    return run;
}

static void test_order_of_sources(void **state)
{
    (void)state;
    struct tokenizer_run run = start(TOKENIZER("null"), NULL);
    temp_dir_puts(run.dir, "config.json",
                  "{\"bos_token_id\":1,\"eos_token_id\":2,\"pad_token_id\":null}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, BOS), 1);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 2);
    assert_false(tokenizer_run_has(&run, PAD));
    assert_string_equal(bc_buf_str(&run.messages), "");

    temp_dir_puts(run.dir, "generation_config.json", "{\"bos_token_id\":2,\"pad_token_id\":-1}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, BOS), 2);
    assert_false(tokenizer_run_has(&run, PAD));
    assert_true(tokenizer_run_said(&run, "warning: bos_token_id: 2 in generation_config.json, 1 in "
                                         "config.json; generation_config.json is taken"));

    temp_dir_puts(run.dir, "special_tokens_map.json",
                  "{\"bos_token\":{\"content\":\"<s>\",\"lstrip\":false},\"eos_token\":\"</s>\"}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, BOS), 3);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 4);

    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"bos_token\":null,\"eos_token\":\"<|im_end|>\",\"pad_token\":\"nowhere\"}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, BOS), 3);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 5);
    assert_false(tokenizer_run_has(&run, PAD));
    assert_true(tokenizer_run_said(&run, "pad_token \"nowhere\" is not in the vocabulary"));
    assert_true(tokenizer_run_said(&run, "eos_token_id: 5 in tokenizer_config.json, 4 in"));
    tokenizer_run_end(&run);
}

static void test_list_of_ends(void **state)
{
    (void)state;
    struct tokenizer_run run = start(TOKENIZER("null"), NULL);
    temp_dir_puts(run.dir, "config.json", "{\"eos_token_id\":[4,5]}");
    temp_dir_puts(run.dir, "generation_config.json", "{\"eos_token_id\":[5,7,4,70]}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 5); /* the first of the first source */
    const struct bitconv_gguf_value *ids = bitconv_gguf_find_key(run.gguf, EOG);
    assert_non_null(ids);
    assert_int_equal(ids->count, 3); /* 70 is beyond the rows */
    assert_int_equal(bc_get_u32(ids->data), 5);
    assert_int_equal(bc_get_u32(ids->data + 4), 7);
    assert_int_equal(bc_get_u32(ids->data + 8), 4);
    assert_string_equal(bc_buf_str(&run.messages),
                        "warning: eos_token_id: 70 of the list is beyond the 8 rows of the "
                        "embedding and is not written\n");

    /* A token that the list holds is no contradiction; one that it lacks is. */
    temp_dir_puts(run.dir, "generation_config.json", "{\"eos_token_id\":[5,7,4]}");
    temp_dir_puts(run.dir, "tokenizer_config.json", "{\"eos_token\":\"</s>\"}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 4);
    assert_string_equal(bc_buf_str(&run.messages), "");
    temp_dir_puts(run.dir, "tokenizer_config.json", "{\"eos_token\":\"<sep>\"}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 6);
    assert_true(tokenizer_run_said(&run, "6 in tokenizer_config.json, 5 in generation_config"));
    tokenizer_run_end(&run);
}

/* What stands in place of an id and is none is left out, but never in silence. */
static void test_ids_that_are_none(void **state)
{
    (void)state;
    static const char *const none[] = {"null", "-1", "[]"};
    static const char *const bad[] = {"\"2\"", "true", "2.5", "{}", "[4,\"5\"]", "[[4]]", "[-4]"};
    struct tokenizer_run run = start(TOKENIZER("null"), "{\"eos_token\":\"</s>\"}");
    for (size_t i = 0; i < sizeof none / sizeof none[0] + sizeof bad / sizeof bad[0]; i++) {
        const bool is_bad = i >= sizeof none / sizeof none[0];
        char config[64];
        (void)snprintf(config, sizeof config, "{\"eos_token_id\":%s}",
                       is_bad ? bad[i - sizeof none / sizeof none[0]] : none[i]);
        temp_dir_puts(run.dir, "config.json", config);
        tokenizer_run(&run);
        assert_int_equal(tokenizer_run_u64(&run, EOS), 4);
        assert_int_equal(tokenizer_run_said(&run, "warning: config.json: eos_token_id"), is_bad);
    }
    tokenizer_run_end(&run);
}

static void test_ids_beyond_the_rows(void **state)
{
    (void)state;
    struct tokenizer_run run =
        start(TOKENIZER("null"), "{\"bos_token\":\"<s>\",\"eos_token\":\"<|im_end|>\"}");
    temp_dir_puts(run.dir, "config.json", "{\"pad_token_id\":32000,\"unk_token_id\":5000000000}");
    run.n_rows = 4;
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, BOS), 3);
    assert_false(tokenizer_run_has(&run, EOS));
    assert_false(tokenizer_run_has(&run, PAD));
    assert_false(tokenizer_run_has(&run, "tokenizer.ggml.unknown_token_id"));
    assert_true(tokenizer_run_said(&run, "eos_token_id 5 is beyond the 4 rows"));
    assert_true(tokenizer_run_said(&run, "pad_token_id 32000 is beyond"));
    assert_true(tokenizer_run_said(&run, "unk_token_id is 5000000000, which is no id"));
    tokenizer_run_end(&run);
}

/* post_processor, tokenizer_config.json -> add_bos, add_eos, add_sep (-1: key absent), warning. */
static void test_affixes(void **state)
{
    (void)state;
    static const char names[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"sep_token\":"
                                "\"<sep>\"}";
    static const char switches[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</"
                                   "s>\",\"add_bos_token\":true,\"add_eos_token\":true}";
    static const struct {
        const char *tokenizer, *config;
        int bos, eos, sep;
        const char *warning;
    } rows[] = {
        {TOKENIZER("null"), names, 0, 0, -1, NULL},
        {TOKENIZER("null"), switches, 1, 1, -1, NULL},
        {TOKENIZER("{\"type\":\"ByteLevel\"}"), names, 0, 0, -1, NULL},
        {TOKENIZER("{\"type\":\"ByteLevel\"}"), switches, 0, 0, -1, "add_bos_token is true, but"},
        {TOKENIZER("{\"type\":\"RobertaProcessing\"}"), names, 1, 1, 1, NULL},
        {TOKENIZER("{\"type\":\"BertProcessing\"}"), names, 1, 1, 0, NULL},
        {TOKENIZER(TEMPLATE(SEQUENCE("A"), SEQUENCE("A") "," SEQUENCE("B"))), switches, 1, 1, -1,
         NULL},
        {TOKENIZER(TEMPLATE(SPECIAL("<s>") "," SEQUENCE("A"),
                            SPECIAL("<s>") "," SEQUENCE("A") "," SPECIAL("<s>") "," SEQUENCE("B"))),
         names, 1, 0, 0, NULL},
        {TOKENIZER("{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"}," TEMPLATE(
             SPECIAL("<s>") "," SEQUENCE("A"), "") "]}"),
         names, 1, 0, -1, NULL},
        {TOKENIZER(TEMPLATE(SPECIAL("<sep>") "," SEQUENCE("A"), "")), names, 0, 0, -1,
         "neither bos nor cls"},
        {TOKENIZER(
             TEMPLATE(SEQUENCE("A") "," SPECIAL("</s>"),
                      SEQUENCE("A") "," SPECIAL("</s>") "," SEQUENCE("B") "," SPECIAL("</s>"))),
         names, 0, 1, 0, NULL},
        {TOKENIZER(TEMPLATE(SEQUENCE("A"), SEQUENCE("A") "," SPECIAL("<sep>") "," SEQUENCE("B"))),
         names, 0, 0, 1, NULL},
        {TOKENIZER(TEMPLATE(SEQUENCE("A") "," SPECIAL("</s>"),
                            SEQUENCE("A") "," SPECIAL("<sep>") "," SPECIAL("</s>") "," SEQUENCE(
                                "B") "," SPECIAL("</s>"))),
         names, 0, 1, 1, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tokenizer_run run = start(rows[i].tokenizer, rows[i].config);
        tokenizer_run(&run);
        const struct {
            const char *key;
            int wanted;
        } keys[] = {{ADD_BOS, rows[i].bos}, {ADD_EOS, rows[i].eos}, {ADD_SEP, rows[i].sep}};
        for (size_t k = 0; k < 3; k++) {
            if (tokenizer_run_has(&run, keys[k].key) != (keys[k].wanted >= 0))
                fail_msg("row %zu: %s", i, keys[k].key);
            if (keys[k].wanted >= 0 &&
                tokenizer_run_bool(&run, keys[k].key) != (keys[k].wanted == 1))
                fail_msg("row %zu: %s is not %d", i, keys[k].key, keys[k].wanted);
        }
        if (rows[i].warning == NULL)
            assert_string_equal(bc_buf_str(&run.messages), "");
        else
            assert_true(tokenizer_run_said(&run, rows[i].warning));
        tokenizer_run_end(&run);
    }
}

/* A template that ends with another token than eos: that is eos, the former one ends turns. */
static void test_end_of_template(void **state)
{
    (void)state;
    struct tokenizer_run run =
        start(TOKENIZER(TEMPLATE(SEQUENCE("A") "," SPECIAL("<|endoftext|>"), "")),
              "{\"eos_token\":\"<|im_end|>\"}");
    temp_dir_puts(run.dir, "config.json", "{\"eos_token_id\":7}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 7);
    assert_int_equal(tokenizer_run_u64(&run, EOT), 5);
    assert_true(tokenizer_run_bool(&run, ADD_EOS));
    assert_string_equal(bc_buf_str(&run.messages), "");
    temp_dir_puts(run.dir, "config.json", "{\"eos_token_id\":4}");
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 7);
    assert_true(tokenizer_run_said(&run, "eot_token_id: 5 in tokenizer_config.json, 4 in"));
    tokenizer_run_end(&run);
}

/* Embedding models of the Qwen family end with <|endoftext|>, whatever the files call eos. */
static void test_pooled_end(void **state)
{
    (void)state;
    struct tokenizer_run run = start(TOKENIZER("null"), "{\"eos_token\":\"<|im_end|>\"}");
    const struct {
        enum bc_tokenizer_policy policy;
        bool embedding_model;
        unsigned eos;
        bool add_eos;
    } rows[] = {
        {BC_TOKENIZER_QWEN, true, 7, true},
        {BC_TOKENIZER_QWEN, false, 5, false},
        {BC_TOKENIZER_LLAMA, true, 5, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run.policy = rows[i].policy;
        run.embedding_model = rows[i].embedding_model;
        tokenizer_run(&run);
        assert_int_equal(tokenizer_run_u64(&run, EOS), rows[i].eos);
        assert_int_equal(tokenizer_run_bool(&run, ADD_EOS), rows[i].add_eos);
        assert_int_equal(tokenizer_run_has(&run, EOT), rows[i].eos == 7);
    }
    tokenizer_run_end(&run);

    /* No such token: the tokenizer's own stays, and is still appended. */
    static const char other[] =
        "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"added_tokens\":[{"
        "\"id\":3,\"content\":\"<e>\"}],\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,"
        "\"ab\":2},\"merges\":[\"a b\"]}}";
    run = start(other, "{\"eos_token\":\"<e>\"}");
    run.policy = BC_TOKENIZER_QWEN;
    run.embedding_model = true;
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 3);
    assert_true(tokenizer_run_bool(&run, ADD_EOS));
    tokenizer_run_end(&run);
}

/* Id 151643 is taken when the vocabulary has it, even under another name. */
static void test_pooled_end_by_id(void **state)
{
    (void)state;
    static const char json[] =
        "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"added_tokens\":[{"
        "\"id\":3,\"content\":\"<|endoftext|>\"},{\"id\":151643,\"content\":\"<end>\"}],\"model\":{"
        "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}";
    struct tokenizer_run run = start(json, NULL);
    run.policy = BC_TOKENIZER_QWEN;
    run.embedding_model = true;
    run.n_rows = 151700;
    tokenizer_run(&run);
    assert_int_equal(tokenizer_run_u64(&run, EOS), 151643);
    tokenizer_run_end(&run);
}

#define CHAT "tokenizer.chat_template"

static void test_chat_templates(void **state)
{
    (void)state;
    struct tokenizer_run run = start(TOKENIZER("null"), "{\"chat_template\":\"from config\"}");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, CHAT, "from config");
    temp_dir_puts(run.dir, "chat_template.json", "{\"chat_template\":\"from json\"}");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, CHAT, "from json");
    temp_dir_puts(run.dir, "chat_template.jinja", "{{ from_jinja }}\n");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, CHAT, "{{ from_jinja }}\n");
    assert_false(tokenizer_run_has(&run, "tokenizer.chat_templates"));
    temp_dir_puts(run.dir, "additional_chat_templates/tool.jinja", "with tools");
    temp_dir_puts(run.dir, "additional_chat_templates/notes.txt", "no template");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, CHAT, "{{ from_jinja }}\n");
    tokenizer_run_expect_string(&run, CHAT ".tool", "with tools");
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.chat_templates")->count, 1);
    run.options.chat_template = "given";
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, CHAT, "given");
    assert_false(tokenizer_run_has(&run, CHAT ".tool"));
    run.options.chat_template = NULL;
    temp_dir_puts(run.dir, "chat_template.jinja", "\xff");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "not UTF-8");
    tokenizer_run_end(&run);
}

static void test_named_templates(void **state)
{
    (void)state;
    struct tokenizer_run run = start(
        TOKENIZER("null"),
        "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"T\"},{\"name\":\"default\","
        "\"template\":\"D\"},{\"name\":\"rag 2\",\"template\":\"R\"},{\"name\":\"no\"},7,"
        "{\"name\":\"tool_use\",\"template\":\"T2\"}]}");
    tokenizer_run(&run);
    tokenizer_run_expect_string(&run, CHAT, "D");
    tokenizer_run_expect_string(&run, CHAT ".tool_use", "T2");
    tokenizer_run_expect_string(&run, CHAT ".rag_2", "R");
    assert_true(tokenizer_run_said(&run, "warning: tokenizer_config.json: chat_template: neither"));
    tokenizer_run_expect_element(&run, "tokenizer.chat_templates", 0, "tool_use");
    tokenizer_run_expect_element(&run, "tokenizer.chat_templates", 1, "rag_2");
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.chat_templates")->count, 2);
    temp_dir_puts(run.dir, "tokenizer_config.json", "{\"chat_template\":\"\"}");
    tokenizer_run(&run);
    assert_false(tokenizer_run_has(&run, CHAT)); /* empty strings are not written */
    assert_string_equal(bc_buf_str(&run.messages), "");
    temp_dir_puts(run.dir, "tokenizer_config.json", "{\"chat_template\":{\"default\":\"D\"}}");
    tokenizer_run(&run);
    assert_false(tokenizer_run_has(&run, CHAT));
    assert_true(tokenizer_run_said(&run, "warning: tokenizer_config.json: chat_template: neither"));
    temp_dir_puts(run.dir, "tokenizer_config.json", "{\"chat_template\":null}");
    tokenizer_run(&run);
    assert_string_equal(bc_buf_str(&run.messages), "");
    tokenizer_run_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_sources),    cmocka_unit_test(test_list_of_ends),
        cmocka_unit_test(test_ids_beyond_the_rows), cmocka_unit_test(test_affixes),
        cmocka_unit_test(test_end_of_template),     cmocka_unit_test(test_pooled_end),
        cmocka_unit_test(test_pooled_end_by_id),    cmocka_unit_test(test_chat_templates),
        cmocka_unit_test(test_named_templates),     cmocka_unit_test(test_ids_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
