/* SPDX-License-Identifier: MIT
 * Tests of base/nearest.h: distances by every kind of typing error, and where nothing is near. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"

static const char *best_of(const char *word, const char *const *candidates)
{
    struct bc_nearest nearest = {.word = word};
    for (; *candidates != NULL; candidates++)
        bc_nearest_offer(&nearest, *candidates);
    return nearest.best;
}

static void distances(void **state)
{
    static const struct {
        const char *word, *candidate;
        size_t distance;
    } cases[] = {
        {"convert", "convert", 0},  {"conver", "convert", 1},
        {"convertt", "convert", 1}, {"comvert", "convert", 1},
        {"ocnvert", "convert", 1},  {"convetr", "convert", 1},
        {"cnovetr", "convert", 2},  {"i2s", "i2_s", 1},
        {"tq1", "tq1_0", 2},        {"tokneise", "tokenize", 2},
        {"reppakc", "repack", 2},   {"outtyp", "outtype", 1},
        {"bcos", "bitcos", 2},      {"llama-cpp", "llama.cpp", 1},
        {"gnerrae", "generate", 3}, {"I2_S", "i2_s", 0},
        {"TQ1", "tq1_0", 2},        {"Convetr", "convert", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bc_nearest nearest = {.word = cases[i].word};
        bc_nearest_offer(&nearest, cases[i].candidate);
        assert_ptr_equal(nearest.best, cases[i].candidate);
        assert_int_equal(nearest.distance, cases[i].distance);
    }
}

static void the_nearest_is_kept(void **state)
{
    static const char *const types[] = {"tq1_0", "tq2_0", "q2_0", "q1_0", NULL};
    static const char *const twins[] = {"tl1", "tl2", NULL};
    (void)state;
    assert_string_equal(best_of("tq2_O", types), "tq2_0");
    assert_string_equal(best_of("q2_0", types), "q2_0");
    assert_string_equal(best_of("tl3", twins), "tl1"); /* the first of equals */
}

static void nothing_is_near(void **state)
{
    static const char *const words[] = {"convert", "i2_s", "f16", NULL};
    char long_word[80];
    (void)state;
    assert_null(best_of("frobnicate", words));
    assert_null(best_of("q5_k_m", words));
    assert_null(best_of("", (const char *const[]){"i2_s", "f16", NULL}));
    memset(long_word, 'a', sizeof long_word);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(best_of(long_word, (const char *const[]){long_word, NULL}));
    assert_null(best_of("a", (const char *const[]){long_word, NULL}));
    long_word[63] = '\0'; /* the longest that is looked at */
    assert_ptr_equal(best_of(long_word, (const char *const[]){long_word, NULL}), long_word);
}

static void hints(void **state)
{
    char hint[BC_NEAREST_HINT_SIZE], word[64];
    struct bc_nearest nearest = {.word = "outtyp"};
    (void)state;
    assert_string_equal(bc_nearest_hint(&nearest, "--", hint, sizeof hint), "");
    bc_nearest_offer(&nearest, "outtype");
    assert_string_equal(bc_nearest_hint(&nearest, "--", hint, sizeof hint),
                        ": did you mean --outtype?");
    memset(word, 'b', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    nearest = (struct bc_nearest){.word = word};
    bc_nearest_offer(&nearest, word);
    bc_nearest_hint(&nearest, "--", hint, sizeof hint);
    assert_int_equal(hint[strlen(hint) - 1], '?'); /* the longest word fits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(the_nearest_is_kept),
        cmocka_unit_test(nothing_is_near),
        cmocka_unit_test(hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
