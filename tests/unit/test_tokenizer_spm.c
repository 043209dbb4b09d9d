/* SPDX-License-Identifier: MIT
 * Tests of tokenizer.model: pieces, added tokens and padding per target, refusals, and damage at
 * every byte. The models are encoded here, field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tokenizer_load.h"
#include "support/temp_dir.h"
#include "support/tokenizer_run.h"

static void put_varint(struct bc_buf *buf, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        bc_buf_u8(buf, (uint8_t)(value | 0x80));
    bc_buf_u8(buf, (uint8_t)value);
}

static void put_number(struct bc_buf *buf, unsigned field, uint64_t value)
{
    put_varint(buf, (uint64_t)field << 3);
    put_varint(buf, value);
}

static void put_bytes(struct bc_buf *buf, unsigned field, const void *data, size_t size)
{
    put_varint(buf, (uint64_t)field << 3 | 2);
    put_varint(buf, size);
    bc_buf_append(buf, data, size);
}

/* type 0 leaves the field out, as protobuf does for the default. */
static void put_piece(struct bc_buf *model, const char *text, float score, unsigned type)
{
    struct bc_buf piece = {0};
    put_bytes(&piece, 1, text, strlen(text));
    put_varint(&piece, 2 << 3 | 5);
    bc_buf_f32(&piece, score);
    if (type != 0) put_number(&piece, 3, type);
    put_bytes(model, 1, piece.data, piece.size);
    bc_buf_release(&piece);
}

static void put_trainer(struct bc_buf *model, uint64_t algorithm, uint64_t bos, uint64_t pad)
{
    struct bc_buf trainer = {0};
    if (algorithm != 0) put_number(&trainer, 3, algorithm);
    put_varint(&trainer, 10 << 3 | 5); /* fields that nobody asked for are passed over */
    bc_buf_f32(&trainer, 0.5F);
    put_varint(&trainer, 11 << 3 | 1);
    bc_buf_u64(&trainer, 7);
    put_bytes(&trainer, 31, "<|user|>", 8);
    put_number(&trainer, 41, bos);
    put_number(&trainer, 43, pad);
    put_bytes(model, 2, trainer.data, trainer.size);
    bc_buf_release(&trainer);
}

static void put_normalizer(struct bc_buf *model, bool dummy_prefix, bool extra_spaces)
{
    struct bc_buf normalizer = {0};
    put_bytes(&normalizer, 1, "identity", 8);
    put_bytes(&normalizer, 2, "charsmap", 8);
    put_number(&normalizer, 3, dummy_prefix);
    put_number(&normalizer, 4, extra_spaces);
    put_bytes(model, 3, normalizer.data, normalizer.size);
    bc_buf_release(&normalizer);
}

static void put_pieces(struct bc_buf *model)
{
    put_piece(model, "<unk>", 0, 2);
    put_piece(model, "<s>", 0, 3);
    put_piece(model, "</s>", 0, 3);
    put_piece(model, "<|user|>", 0, 4);
    put_piece(model, "<0x0A>", 0, 6);
    put_piece(model, "\xe2\x96\x81\x61", -1.5F, 0);
    put_piece(model, "gone", -2.5F, 5);
}

/* 7 pieces, byte-pair encoding, no space in front, no charsmap of use. */
static void build_model(struct bc_buf *model)
{
    put_pieces(model);
    put_trainer(model, 2, 1, UINT64_MAX); /* pad -1 */
    put_normalizer(model, false, false);
    assert_false(model->failed);
}

static struct tokenizer_run start(uint32_t n_rows)
{
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = n_rows};
    struct bc_buf model = {0};
    build_model(&model);
    temp_dir_write(run.dir, "tokenizer.model", model.data, model.size);
    bc_buf_release(&model);
    return run;
}

static void test_pieces(void **state)
{
    (void)state;
    struct tokenizer_run run = start(7);
    for (int target = BC_TARGET_BITNET; target <= BC_TARGET_LLAMA_CPP; target++) {
        run.target = (enum bc_target)target;
        tokenizer_run(&run);
        tokenizer_run_expect_string(&run, "tokenizer.ggml.model", "llama");
        tokenizer_run_expect_string(&run, "tokenizer.ggml.pre", "default");
        tokenizer_run_expect_token(&run, 0, "<unk>", BC_TOKEN_UNKNOWN);
        tokenizer_run_expect_token(&run, 1, "<s>", BC_TOKEN_CONTROL);
        tokenizer_run_expect_token(&run, 3, "<|user|>", BC_TOKEN_NORMAL); /* sic */
        tokenizer_run_expect_token(&run, 4, "<0x0A>", BC_TOKEN_BYTE);
        tokenizer_run_expect_token(&run, 5, "\xe2\x96\x81\x61", BC_TOKEN_NORMAL);
        tokenizer_run_expect_token(&run, 6, "gone", BC_TOKEN_UNUSED);
        assert_true(tokenizer_run_score(&run, 5) == -1.5F);
        assert_true(tokenizer_run_score(&run, 0) == 0.0F);
        assert_false(tokenizer_run_bool(&run, "tokenizer.ggml.add_space_prefix"));
        assert_false(tokenizer_run_has(&run, "tokenizer.ggml.remove_extra_whitespaces"));
        assert_int_equal(
            bitconv_gguf_find_key(run.gguf, "tokenizer.ggml.precompiled_charsmap")->count, 8);
        /* No file but the model says ids: its own are taken, where the pieces bear them out. */
        assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.bos_token_id"), 1);
        assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.eos_token_id"), 2);
        assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.unknown_token_id"), 0);
        assert_false(tokenizer_run_has(&run, "tokenizer.ggml.padding_token_id"));
    }
    tokenizer_run_end(&run);
}

static void test_trainer_ids_need_a_piece_to_match(void **state)
{
    (void)state;
    struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 7};
    struct bc_buf model = {0};
    put_pieces(&model);
    put_trainer(&model, 2, 5, 300); /* bos is an ordinary piece, pad does not exist */
    temp_dir_write(run.dir, "tokenizer.model", model.data, model.size);
    bc_buf_release(&model);
    tokenizer_run(&run);
    assert_false(tokenizer_run_has(&run, "tokenizer.ggml.bos_token_id"));
    assert_false(tokenizer_run_has(&run, "tokenizer.ggml.padding_token_id"));
    /* Without a normalizer_spec the proto's defaults hold. */
    assert_true(tokenizer_run_bool(&run, "tokenizer.ggml.add_space_prefix"));
    assert_true(tokenizer_run_bool(&run, "tokenizer.ggml.remove_extra_whitespaces"));
    tokenizer_run_end(&run);
}

static void test_added_tokens_bitnet(void **state)
{
    (void)state;
    struct tokenizer_run run = start(12);
    temp_dir_puts(run.dir, "added_tokens.json", "{\"</line>\":9,\"<s>\":1,\"<pad>\":7}");
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 1, "<s>", BC_TOKEN_CONTROL);
    assert_true(tokenizer_run_score(&run, 1) == 0.0F);
    tokenizer_run_expect_token(&run, 7, "<pad>", BC_TOKEN_USER_DEFINED);
    assert_true(tokenizer_run_score(&run, 7) == -1000.0F);
    tokenizer_run_expect_token(&run, 8, "[PAD1]", BC_TOKEN_UNUSED);
    tokenizer_run_expect_token(&run, 9, "</line>", BC_TOKEN_USER_DEFINED);
    tokenizer_run_expect_token(&run, 10, "[PAD2]", BC_TOKEN_UNUSED);
    assert_true(tokenizer_run_score(&run, 11) == -1000.0F);
    assert_true(tokenizer_run_said(&run, "3 ids without a token"));
    tokenizer_run_end(&run);
}

#define DECODER                                                                                    \
    "{\"added_tokens_decoder\":{\"0\":{\"content\":\"<unk>\",\"special\":true},"                   \
    "\"3\":{\"content\":\"<|user|>\",\"special\":false},"                                          \
    "\"7\":{\"content\":\"<new>\",\"special\":false}}}"

static void test_added_tokens_llama_cpp(void **state)
{
    (void)state;
    struct tokenizer_run run = start(10);
    run.target = BC_TARGET_LLAMA_CPP;
    temp_dir_puts(run.dir, "tokenizer_config.json", DECODER);
    temp_dir_puts(run.dir, "added_tokens.json", "{\"<s>\":1}");
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 0, "<unk>", BC_TOKEN_CONTROL);
    assert_true(tokenizer_run_score(&run, 0) == -1000.0F);
    tokenizer_run_expect_token(&run, 1, "<s>", BC_TOKEN_USER_DEFINED);
    assert_true(tokenizer_run_score(&run, 1) == -1000.0F);
    tokenizer_run_expect_token(&run, 2, "</s>", BC_TOKEN_CONTROL);
    assert_true(tokenizer_run_score(&run, 2) == 0.0F);
    tokenizer_run_expect_token(&run, 3, "<|user|>", BC_TOKEN_CONTROL); /* looks special */
    tokenizer_run_expect_token(&run, 7, "<new>", BC_TOKEN_USER_DEFINED);
    tokenizer_run_expect_token(&run, 8, "[PAD8]", BC_TOKEN_UNUSED);
    assert_true(tokenizer_run_score(&run, 9) == -10000.0F);
    run.policy = BC_TOKENIZER_PHI3; /* looks do not count */
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 3, "<|user|>", BC_TOKEN_USER_DEFINED);
    tokenizer_run_end(&run);
}

/* Fine-tunes rename unused pieces in tokenizer_config.json; added_tokens.json must agree. */
static void test_renamed_pieces(void **state)
{
    (void)state;
    struct tokenizer_run run = start(7);
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"added_tokens_decoder\":{\"6\":{\"content\":\"<tool>\",\"special\":true}},"
                  "\"eos_token\":\"<tool>\"}");
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 6, "<tool>", BC_TOKEN_CONTROL);
    assert_true(tokenizer_run_said(&run, "\"<tool>\" instead of \"gone\""));
    assert_int_equal(tokenizer_run_u64(&run, "tokenizer.ggml.eos_token_id"), 6);
    temp_dir_puts(run.dir, "tokenizer_config.json",
                  "{\"added_tokens_decoder\":{\"6\":{\"content\":\"<s>\"}}}");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "two ids, 1 and 6");
    temp_dir_puts(run.dir, "tokenizer_config.json", "{}");
    temp_dir_puts(run.dir, "added_tokens.json", "{\"<tool>\":6}");
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "\"gone\" in tokenizer.model");
    tokenizer_run_end(&run);
}

static void test_vocabulary_size(void **state)
{
    (void)state;
    struct tokenizer_run run = start(5);
    tokenizer_run(&run);
    tokenizer_run_expect_failure(&run, BITCONV_E_CORRUPT, "7 tokens with ids up to 6");
    run.options.trim_vocab = true;
    tokenizer_run(&run);
    tokenizer_run_expect_token(&run, 4, "<0x0A>", BC_TOKEN_BYTE);
    assert_int_equal(bitconv_gguf_find_key(run.gguf, "tokenizer.ggml.scores")->count, 5);
    tokenizer_run_end(&run);
}

/* tokenizer.json beside tokenizer.model: which one counts depends on family and target. */
static void test_precedence(void **state)
{
    (void)state;
    struct tokenizer_run run = start(7);
    temp_dir_puts(run.dir, "tokenizer.json",
                  "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
                  "\"content\":\"\xe2\x96\x81\"},\"model\":{\"type\":\"BPE\",\"byte_fallback\":"
                  "true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}");
    static const struct {
        enum bc_tokenizer_policy policy;
        enum bc_target target;
        const char *first;
    } rows[] = {
        {BC_TOKENIZER_LLAMA, BC_TARGET_BITNET, "<unk>"},
        {BC_TOKENIZER_LLAMA, BC_TARGET_LLAMA_CPP, "<unk>"},
        {BC_TOKENIZER_GEMMA, BC_TARGET_BITNET, "a"},
        {BC_TOKENIZER_GEMMA, BC_TARGET_LLAMA_CPP, "<unk>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run.policy = rows[i].policy;
        run.target = rows[i].target;
        tokenizer_run(&run);
        tokenizer_run_expect_element(&run, "tokenizer.ggml.tokens", 0, rows[i].first);
    }
    tokenizer_run_end(&run);
}

static void test_algorithms(void **state)
{
    (void)state;
    static const struct {
        uint64_t algorithm;
        const char *message; /* NULL: accepted */
    } rows[] = {{2, NULL},   {1, "unigram"}, {0, "unigram"},
                {3, "word"}, {4, "char"},    {9, "unknown"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tokenizer_run run = {.dir = temp_dir_new(), .n_rows = 7};
        struct bc_buf model = {0};
        put_pieces(&model);
        put_trainer(&model, rows[i].algorithm, 1, 2);
        temp_dir_write(run.dir, "tokenizer.model", model.data, model.size);
        bc_buf_release(&model);
        tokenizer_run(&run);
        if (rows[i].message == NULL)
            assert_int_equal(run.status, BITCONV_OK);
        else
            tokenizer_run_expect_failure(&run, BITCONV_E_UNSUPPORTED, rows[i].message);
        tokenizer_run_end(&run);
    }
}

/* Loads a copy of exactly `size` bytes, so that the sanitizer sees every read behind it. */
static enum bitconv_status load(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size == 0 ? 1 : size);
    assert_non_null(copy);
    memcpy(copy, data, size);
    struct bc_vocab vocab = {0};
    struct bitconv_error err = {0};
    const enum bitconv_status status = bc_load_spm(copy, size, &vocab, &err);
    assert_int_equal(status, err.status);
    bc_vocab_release(&vocab);
    free(copy);
    return status;
}

static void test_bad_encodings(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"", 0},                                                  /* no pieces */
        {"\x0a", 1},                                              /* no length */
        {"\x0a\x05\x0a\x01", 4},                                  /* shorter than said */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* 2^64 - 1 bytes */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* varint of eleven bytes */
        {"\x0a\x00", 2},                                          /* a piece without text */
        {"\x0a\x02\x0a\x00", 4},                                  /* empty text */
        {"\x0a\x03\x0a\x01\xff", 5},                              /* not UTF-8 */
        {"\x0a\x05\x0a\x01\x61\x18\x00", 7},                      /* type 0 */
        {"\x0a\x05\x0a\x01\x61\x18\x07", 7},                      /* type 7 */
        {"\x0a\x03\x0a\x01\x61\x0a\x03\x0a\x01\x61", 10},         /* one text twice */
        {"\x0b", 1},                                              /* group */
        {"\x02\x00", 2},                                          /* field 0 */
        {"IQ== 0\nIg== 1\n", 14},                                 /* tiktoken's text form */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (load((const uint8_t *)rows[i].bytes, rows[i].size) != BITCONV_E_CORRUPT)
            fail_msg("row %zu was accepted", i);
    }
}

static void test_damage_everywhere(void **state)
{
    (void)state;
    struct bc_buf model = {0};
    build_model(&model);
    assert_int_equal(load(model.data, model.size), BITCONV_OK);
    size_t n_refused = 0;
    for (size_t size = 0; size < model.size; size++)
        n_refused += load(model.data, size) != BITCONV_OK;
    /* Only a cut between two top-level messages leaves a model. */
    assert_true(n_refused >= model.size - 10);
    for (size_t i = 0; i < model.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            model.data[i] ^= (uint8_t)(1u << bit);
            (void)load(model.data, model.size); /* any answer, but an answer */
            model.data[i] ^= (uint8_t)(1u << bit);
        }
        const uint8_t before = model.data[i];
        model.data[i] = 0xff;
        (void)load(model.data, model.size);
        model.data[i] = before;
    }
    bc_buf_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_trainer_ids_need_a_piece_to_match),
        cmocka_unit_test(test_added_tokens_bitnet),
        cmocka_unit_test(test_added_tokens_llama_cpp),
        cmocka_unit_test(test_renamed_pieces),
        cmocka_unit_test(test_vocabulary_size),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_bad_encodings),
        cmocka_unit_test(test_damage_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
