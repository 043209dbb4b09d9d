/* SPDX-License-Identifier: MIT
 * Choosing tokens, and giving out text without splitting characters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "bitconv/generate.h"
#include "generate/text_stream.h"

/* ---- sampling ---- */

static struct bitconv_sampler *sampler(double temperature, uint32_t top_k, double top_p,
                                       uint64_t seed, uint32_t n)
{
    const struct bitconv_sampling how = {temperature, top_k, top_p, seed};
    struct bitconv_sampler *s = NULL;
    struct bitconv_error err = {0};
    assert_int_equal(bitconv_sampler_new(&how, n, &s, &err), BITCONV_OK);
    return s;
}

static void greedy_takes_the_first_of_the_likeliest(void **state)
{
    const float logits[] = {1, 3, NAN, 3, -INFINITY, 2};
    const float nothing[] = {NAN, NAN, -INFINITY};
    struct bitconv_sampler *s = sampler(0, 2, 0.5, 9, 6);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(bitconv_sampler_next(s, logits), 1);
    bitconv_sampler_free(s);
    s = sampler(0, 0, 0, 0, 3);
    assert_int_equal(bitconv_sampler_next(s, nothing), 0);
    bitconv_sampler_free(s);
}

enum { N = 5, DRAWS = 20000 };

static void count_draws(struct bitconv_sampler *s, const float *logits, unsigned counts[N])
{
    memset(counts, 0, N * sizeof *counts);
    for (int i = 0; i < DRAWS; i++) {
        const uint32_t id = bitconv_sampler_next(s, logits);
        assert_true(id < N);
        counts[id]++;
    }
    bitconv_sampler_free(s);
}

/* Shares within five standard deviations of what they should be. */
static void shares_are(const unsigned counts[N], const double expected[N])
{
    for (int i = 0; i < N; i++) {
        const double p = expected[i];
        const double bound = 5 * sqrt(p * (1 - p) / DRAWS);
        if (fabs((double)counts[i] / DRAWS - p) > bound)
            fail_msg("token %d: %u of %d draws, probability %g", i, counts[i], DRAWS, p);
    }
}

static void draws_follow_the_softmax(void **state)
{
    const float logits[N] = {(float)log(0.4), (float)log(0.1), (float)log(0.3), (float)log(0.15),
                             (float)log(0.05)};
    const double half[N] = {0.16 / 0.285, 0.01 / 0.285, 0.09 / 0.285, 0.0225 / 0.285,
                            0.0025 / 0.285};
    unsigned counts[N];
    (void)state;
    count_draws(sampler(1, 0, 0, 1, N), logits, counts);
    shares_are(counts, (const double[N]){0.4, 0.1, 0.3, 0.15, 0.05});
    count_draws(sampler(0.5, 0, 1, 2, N), logits, counts); /* squares, normalised */
    shares_are(counts, half);
    count_draws(sampler(1, 2, 0, 3, N), logits, counts);
    shares_are(counts, (const double[N]){0.4 / 0.7, 0, 0.3 / 0.7, 0, 0});
    count_draws(sampler(1, 0, 0.75, 4, N), logits, counts); /* 0.4 + 0.3 do not reach it */
    shares_are(counts, (const double[N]){0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85, 0});
    /* of the three that are left, 0.85 in all, the first two reach 0.8 */
    count_draws(sampler(1, 3, 0.8, 5, N), logits, counts);
    shares_are(counts, (const double[N]){0.4 / 0.7, 0, 0.3 / 0.7, 0, 0});
    count_draws(sampler(1, 0, 1e-9, 6, N), logits, counts);
    shares_are(counts, (const double[N]){1, 0, 0, 0, 0});
    count_draws(sampler(1, 1, 0, 7, N), logits, counts);
    shares_are(counts, (const double[N]){1, 0, 0, 0, 0});
}

static void seeds_decide(void **state)
{
    float logits[64] = {0};
    uint32_t first[32];
    bool differs = false;
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct bitconv_sampler *s = sampler(1, 0, 0, round == 2 ? 43 : 42, 64);
        for (int i = 0; i < 32; i++) {
            const uint32_t id = bitconv_sampler_next(s, logits);
            if (round == 0) first[i] = id;
            if (round == 1) assert_int_equal(id, first[i]);
            if (round == 2) differs = differs || id != first[i];
        }
        bitconv_sampler_free(s);
    }
    assert_true(differs);
}

static void infinities_are_drawn_as_such(void **state)
{
    const float logits[N] = {0, INFINITY, NAN, INFINITY, -INFINITY};
    unsigned counts[N];
    (void)state;
    count_draws(sampler(0.7, 0, 0, 8, N), logits, counts);
    shares_are(counts, (const double[N]){0, 0.5, 0, 0.5, 0});
}

static void senseless_sampling_is_refused(void **state)
{
    const struct bitconv_sampling bad[] = {
        {.temperature = -1}, {.temperature = NAN}, {.temperature = INFINITY},
        {.top_p = -0.1},     {.top_p = 1.5},       {.top_p = NAN},
    };
    struct bitconv_sampler *s;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bitconv_error err = {0};
        assert_int_equal(bitconv_sampler_new(&bad[i], 4, &s, &err), BITCONV_E_ARG);
        assert_null(s);
        assert_true(err.text[0] != '\0');
    }
}

static void candidates_come_in_order(void **state)
{
    const float logits[] = {(float)log(0.25), (float)log(0.5), NAN, (float)log(0.25)};
    struct bitconv_candidate top[4];
    (void)state;
    assert_int_equal(bitconv_top_candidates(logits, 4, 3, top), 3);
    assert_int_equal(top[0].id, 1);
    assert_int_equal(top[1].id, 0);
    assert_int_equal(top[2].id, 3);
    assert_true(fabs(top[0].probability - 0.5) < 1e-6);
    assert_true(fabs(top[1].probability - 0.25) < 1e-6);
    assert_int_equal(bitconv_top_candidates(logits, 4, 100, top), 4);
    assert_true(top[3].probability == 0);
}

/* ---- text ---- */

static void tails_of_characters(void **state)
{
    static const struct {
        const char *text;
        size_t tail;
    } cases[] = {
        {"", 0},
        {"a", 0},
        {"\xc3", 1},
        {"\xc3\xa9", 0},
        {"a\xe2", 1},
        {"a\xe2\x82", 2},
        {"a\xe2\x82\xac", 0},
        {"\xf0\x9f\x98", 3},
        {"\xf0\x9f\x98\x80", 0},
        {"\x80", 0}, /* no beginning */
        {"\x80\x80\x80\x80", 0},
        {"\xc0", 0}, /* begins nothing */
        {"\xf5\x80", 0},
        {"\xc3\xa9\xa9", 0}, /* one too many */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(bc_incomplete_tail(cases[i].text, strlen(cases[i].text)), cases[i].tail);
}

/* Streams the ids of `text` behind the first `given` ones: whole characters each time, and together
 * the rest of what all ids decode to. */
static void stream_gives_all(const struct bitconv_tokenizer *tok, const char *text, size_t given)
{
    struct bitconv_ids ids = {0};
    struct bitconv_text whole = {0}, start = {0};
    struct bc_text_stream stream = {.tok = tok, .skip_special = true};
    struct bc_buf got = {0};
    struct bitconv_error err = {0};
    assert_int_equal(bitconv_tokenizer_encode(tok, text, strlen(text), true, &ids, &err),
                     BITCONV_OK);
    if (given > ids.n) given = ids.n;
    assert_int_equal(bitconv_tokenizer_decode(tok, ids.ids, ids.n, true, &whole, &err), BITCONV_OK);
    assert_int_equal(bitconv_tokenizer_decode(tok, ids.ids, given, true, &start, &err), BITCONV_OK);
    assert_int_equal(bc_text_stream_start(&stream, ids.ids, given, &err), BITCONV_OK);
    for (size_t n = given; n < ids.n; n++) {
        const char *piece;
        size_t len;
        assert_int_equal(bc_text_stream_next(&stream, ids.ids, n + 1, false, &piece, &len, &err),
                         BITCONV_OK);
        /* where the given part ends within a character its rest comes first */
        assert_true(bc_utf8_valid(piece, len) || !bc_utf8_valid(start.data, start.size));
        bc_buf_append(&got, piece, len);
    }
    assert_int_equal(whole.size, start.size + got.size);
    if (got.size > 0) assert_memory_equal(whole.data + start.size, got.data, got.size);
    bc_text_stream_release(&stream);
    bc_buf_release(&got);
    bitconv_text_release(&whole);
    bitconv_text_release(&start);
    bitconv_ids_release(&ids);
}

static struct bitconv_tokenizer *open_fixture(const char *name)
{
    struct bitconv_tokenizer *tok = NULL;
    struct bitconv_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/fixtures/models/%s", BITCONV_SOURCE_DIR, name);
    if (bitconv_tokenizer_open(path, NULL, &tok, &err) != BITCONV_OK) fail_msg("%s", err.text);
    return tok;
}

static void streams_are_the_text(void **state)
{
    static const char *const fixtures[] = {"bitnet", "bitnet-1bitllm", "gemma3-embed", "qwen2",
                                           "phi3",   "mixtral",        "bert"};
    static const char *const texts[] = {
        "hello world, the cat and the dog", "caf\xc3\xa9 \xe2\x82\xac 5 \xf0\x9f\x98\x80 end",
        "  two  blanks\n\nand lines\t.", "\xe4\xbd\xa0\xe5\xa5\xbd, world don't"};
    (void)state;
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct bitconv_tokenizer *tok = open_fixture(fixtures[f]);
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            for (size_t given = 0; given < 12; given++)
                stream_gives_all(tok, texts[t], given);
        bitconv_tokenizer_close(tok);
    }
}

/* Bytes that never become a character do come out in the end. */
static void incomplete_ends_are_given_out(void **state)
{
    struct bitconv_tokenizer *tok = open_fixture("bitnet");
    struct bitconv_ids ids = {0};
    struct bitconv_error err = {0};
    struct bc_text_stream stream = {.tok = tok, .skip_special = true};
    const char *piece;
    size_t len;
    (void)state;
    assert_int_equal(bitconv_tokenizer_encode(tok, "\xe2\x82\xac", 3, false, &ids, &err),
                     BITCONV_OK);
    assert_true(ids.n >= 2); /* the small vocabulary has bytes only */
    assert_int_equal(bc_text_stream_start(&stream, ids.ids, 0, &err), BITCONV_OK);
    assert_int_equal(bc_text_stream_next(&stream, ids.ids, 1, false, &piece, &len, &err),
                     BITCONV_OK);
    assert_int_equal(len, 0);
    assert_int_equal(bc_text_stream_next(&stream, ids.ids, 1, true, &piece, &len, &err),
                     BITCONV_OK);
    assert_true(len >= 1 && piece[0] == '\xe2');
    bc_text_stream_release(&stream);
    bitconv_ids_release(&ids);
    bitconv_tokenizer_close(tok);
}

/* What belongs behind a text is no part of a prompt. */
static void prompts_are_open(void **state)
{
    struct bitconv_tokenizer *tok = open_fixture("bert");
    struct bitconv_ids all = {0}, prompt = {0}, bare = {0}, empty = {0};
    struct bitconv_error err = {0};
    (void)state;
    assert_int_equal(bitconv_tokenizer_encode(tok, "the cat", 7, true, &all, &err), BITCONV_OK);
    assert_int_equal(bitconv_tokenizer_encode(tok, "the cat", 7, false, &bare, &err), BITCONV_OK);
    assert_int_equal(bitconv_prompt_encode(tok, "the cat", 7, &prompt, &err), BITCONV_OK);
    assert_int_equal(all.n, bare.n + 2); /* [CLS] and [SEP] */
    assert_int_equal(prompt.n, bare.n + 1);
    assert_memory_equal(prompt.ids, all.ids, prompt.n * sizeof *prompt.ids);
    assert_int_equal(bitconv_prompt_encode(tok, "", 0, &empty, &err), BITCONV_OK);
    assert_true(empty.n <= 1);
    bitconv_ids_release(&all);
    bitconv_ids_release(&prompt);
    bitconv_ids_release(&bare);
    bitconv_ids_release(&empty);
    bitconv_tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_first_of_the_likeliest),
        cmocka_unit_test(draws_follow_the_softmax),
        cmocka_unit_test(seeds_decide),
        cmocka_unit_test(infinities_are_drawn_as_such),
        cmocka_unit_test(senseless_sampling_is_refused),
        cmocka_unit_test(candidates_come_in_order),
        cmocka_unit_test(tails_of_characters),
        cmocka_unit_test(streams_are_the_text),
        cmocka_unit_test(incomplete_ends_are_given_out),
        cmocka_unit_test(prompts_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
