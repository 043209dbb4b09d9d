/* SPDX-License-Identifier: MIT
 * Kernel configurations of TL1 and TL2: what is legal and why not, the choice against a search
 * through all tiles, the table of tiling.md, configuration files good, bad and mutilated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "formats/tiling.h"
#include "support/rng.h"
#include "support/temp_dir.h"

enum { WHY = 256 };

/* ---- legal and illegal ---- */

static const char *refusal(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, uint32_t bm_rows,
                           uint32_t bk, uint32_t bm)
{
    static char why[WHY];
    const uint32_t tile[3] = {bm_rows, bk, bm};
    why[0] = '\0';
    if (bc_tiling_check(pack, rows, cols, tile, why, sizeof why)) return "legal";
    return why;
}

static void test_refusals_name_the_numbers(void **state)
{
    const enum bc_tiled_pack tl1 = BC_TILED_TL1, tl2 = BC_TILED_TL2;
    (void)state;
    assert_string_equal(refusal(tl1, 320, 256, 160, 64, 32), "legal");
    assert_string_equal(refusal(tl2, 320, 256, 160, 96, 32), "legal");
    assert_string_equal(refusal(tl1, 100, 128, 64, 64, 32),
                        "TL1: M % BM is not 0: M = 100 rows, BM = 64, 36 left over");
    assert_string_equal(refusal(tl2, 100, 256, 64, 96, 32),
                        "TL2: M % BM is not 0: M = 100 rows, BM = 64, 36 left over");
    assert_string_equal(refusal(tl1, 128, 130, 64, 64, 32),
                        "TL1: K % BK is not 0: K = 130 columns, BK = 64, 2 left over");
    assert_string_equal(
        refusal(tl2, 128, 1000, 64, 96, 32),
        "TL2: K % BK is no multiple of 32: K = 1000 columns, BK = 96, a tail of 40");
    assert_string_equal(refusal(tl1, 128, 128, 96, 64, 64),
                        "TL1: BM % bm is not 0: BM = 96, bm = 64, 32 left over");
    assert_string_equal(refusal(tl2, 128, 256, 48, 96, 32),
                        "TL2: BM % bm is not 0: BM = 48, bm = 32, 16 left over");
    assert_string_equal(refusal(tl1, 128, 128, 64, 64, 16), "TL1: bm = 16, it must be 32 or 64");
    assert_string_equal(refusal(tl2, 128, 256, 64, 96, 64), "TL2: bm = 64, it must be 32");
    assert_string_equal(refusal(tl1, 128, 128, 64, 4, 32),
                        "TL1: BK = 4 is no multiple of 8 (256 / bm)");
    assert_string_equal(refusal(tl1, 128, 128, 64, 4, 64), "legal");
    assert_string_equal(refusal(tl2, 128, 256, 64, 64, 32),
                        "TL2: BK = 64 is no multiple of 24 (eight triples)");
    assert_string_equal(refusal(tl2, 32, 744, 32, 456, 32),
                        "TL2: K % BK is above 256: K = 744 columns, BK = 456 leave 288 for pairs, "
                        "so that the trits take 5344 bytes of the 5301 that every runtime reckons "
                        "with");
    assert_string_equal(refusal(tl2, 32, 712, 32, 456, 32), "legal"); /* 256 for pairs */
    assert_string_equal(refusal(tl1, 0, 128, 64, 64, 32), "TL1: the tensor has no values");
    assert_string_equal(refusal(tl1, 128, 128, 0, 64, 32),
                        "TL1: the kernel configuration (BM, BK, bm) of this tensor of 128 x 128 is "
                        "not known, and the order of its bytes depends on it");
    assert_string_equal(refusal(tl2, UINT64_MAX, UINT64_MAX, 32, 24, 32),
                        "TL2: 18446744073709551615 x 18446744073709551615 values are too many");
    const uint32_t tile[3] = {64, 64, 16};
    assert_false(bc_tiling_check(tl1, 128, 128, tile, NULL, 0));
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* With K < 256 converter and runtime round a negative number, each in its way, and come to the same
 * place of the scale all the same (tl2.md). */
static void test_below_256_columns(void **state)
{
    unsigned n_different = 0;
    (void)state;
    for (int64_t rows = 32; rows <= 3200; rows += 32) {
        for (int64_t cols = 8; cols < 256; cols += 8) {
            const int64_t rounded_down =
                floor_div(floor_div((cols - 256) * rows, 3) * 5, 8) + 256 * rows / 2 * 4 / 8;
            const int64_t formula = (int64_t)bc_tl2_formula((uint64_t)rows, (uint64_t)cols);
            assert_int_equal((formula + 31) / 32, (rounded_down + 31) / 32);
            assert_true(formula >= (int64_t)bc_tl2_used((uint64_t)rows, (uint64_t)cols, 264));
            n_different += formula != rounded_down;
        }
    }
    assert_true(n_different > 100);
    assert_string_equal(refusal(BC_TILED_TL2, 32, 32, 32, 24, 32),
                        "TL2: K % BK is no multiple of 32: K = 32 columns, BK = 24, a tail of 8");
    assert_string_equal(refusal(BC_TILED_TL2, 32, 32, 32, 48, 32), "legal");
}

/* ---- the choice ---- */

static bool is_legal(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, uint64_t bm_rows,
                     uint64_t bk, uint64_t bm)
{
    if (rows % bm_rows != 0 || bm_rows % bm != 0) return false;
    if (pack == BC_TILED_TL1) return cols % bk == 0 && bk % (256 / bm) == 0;
    return bm == 32 && bk % 24 == 0 && cols % bk % 32 == 0 && cols % bk <= 256 && cols >= 256;
}

/* Rule 3 of tiling.md by trying everything: BM and BK are judged in the order of preference. */
static bool search(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, uint32_t tile[3])
{
    for (uint32_t bm_rows = 320; bm_rows > 0; bm_rows--) {
        if (rows % bm_rows != 0) continue;
        for (uint32_t i = 1; i <= 256 + cols; i++) {
            const uint32_t bk = i <= 256 ? 257 - i : i;
            if (pack == BC_TILED_TL1 && i > 256) break;
            for (uint32_t bm = 64; bm >= 32; bm -= 32) {
                if (!is_legal(pack, rows, cols, bm_rows, bk, bm)) continue;
                tile[0] = bm_rows;
                tile[1] = bk;
                tile[2] = bm;
                return true;
            }
        }
    }
    return false;
}

static void check_choice(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols)
{
    uint32_t chosen[3], expected[3];
    enum bc_tiling_source source;
    char why[WHY] = "";
    const bool possible = search(pack, rows, cols, expected);
    const bool found = bc_tiling_choose(NULL, pack, rows, cols, chosen, &source, why, sizeof why);
    if (found != possible)
        fail_msg("TL%d %" PRIu64 " x %" PRIu64 ": %s", 1 + (int)pack, rows, cols, why);
    if (!found) {
        assert_true(strlen(why) > 20);
        return;
    }
    assert_int_equal(source, BC_TILING_LARGEST);
    assert_memory_equal(chosen, expected, sizeof chosen);
    assert_true(bc_tiling_check(pack, rows, cols, chosen, why, sizeof why));
}

static void test_choice_is_the_largest_legal_tile(void **state)
{
    uint64_t rng = 3;
    (void)state;
    for (unsigned i = 0; i < 1500; i++) {
        const uint64_t rows = 16 * (1 + rng_below(&rng, 60));
        const uint64_t cols = 4 * (1 + rng_below(&rng, 400));
        check_choice(i % 2 == 0 ? BC_TILED_TL1 : BC_TILED_TL2, rows, cols);
    }
    /* Columns for which no BK up to 256 leaves a tail of whole 32s. */
    check_choice(BC_TILED_TL2, 64, 440);
    check_choice(BC_TILED_TL2, 64, 472);
    check_choice(BC_TILED_TL2, 64, 2600);
    /* Prime numbers of 32s; the smallest of all. */
    check_choice(BC_TILED_TL1, 32 * 997, 4 * 1009);
    check_choice(BC_TILED_TL1, 64 * 997, 4 * 1009);
    check_choice(BC_TILED_TL2, 32 * 997, 8 * 1009);
    check_choice(BC_TILED_TL1, 32, 8);
    check_choice(BC_TILED_TL2, 32, 256);
}

static void test_shapes_without_a_tile(void **state)
{
    static const struct {
        enum bc_tiled_pack pack;
        uint64_t rows, cols;
        const char *why;
    } shapes[] = {
        {BC_TILED_TL1, 100, 128,
         "TL1: no BM fits: M = 100 rows are no multiple of 32, 4 left over"},
        {BC_TILED_TL2, 100, 512,
         "TL2: no BM fits: M = 100 rows are no multiple of 32, 4 left over"},
        {BC_TILED_TL1, 96, 100,
         "TL1: no BK fits: K = 100 columns are no multiple of 8, 4 left over"},
        {BC_TILED_TL1, 128, 50,
         "TL1: no BK fits: K = 50 columns are no multiple of 4, 2 left over"},
        {BC_TILED_TL2, 128, 100,
         "TL2: K = 100 columns are fewer than 256, for which the size formula of the runtimes is "
         "made"},
        {BC_TILED_TL2, 128, 128,
         "TL2: K = 128 columns are fewer than 256, for which the size formula of the runtimes is "
         "made"},
        {BC_TILED_TL2, 128, 1004,
         "TL2: no BK fits: K = 1004 columns are no multiple of 8, 4 left over"},
        {BC_TILED_TL2, 0, 512, "TL2: the tensor has no values"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        uint32_t tile[3];
        char why[WHY] = "";
        assert_false(bc_tiling_choose(NULL, shapes[i].pack, shapes[i].rows, shapes[i].cols, tile,
                                      NULL, why, sizeof why));
        assert_string_equal(why, shapes[i].why);
    }
    uint32_t tile[3];
    char why[WHY];
    assert_true(bc_tiling_choose(NULL, BC_TILED_TL2, 128, 1000, tile, NULL, why, sizeof why));
    assert_int_equal(tile[1], 168); /* 5 x 168 + 160: the tail of 40 is one of BK = 96 */
    /* The widest matrix that there is: an answer without a long search. */
    assert_true(bc_tiling_choose(NULL, BC_TILED_TL2, 32, (UINT64_C(1) << 56) - 24, tile, NULL, why,
                                 sizeof why));
    assert_false(
        bc_tiling_choose(NULL, BC_TILED_TL1, UINT64_MAX - 31, 64, tile, NULL, why, sizeof why));
}

/* ---- the published ones ---- */

/* The rows of the table in tiling.md are the built-in ones, in their order. */
static void test_table_of_the_description(void **state)
{
    char path[512], line[512];
    size_t n = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/formats/tiling.md", BITCONV_SOURCE_DIR);
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t rows, cols;
        uint32_t a[3], b[3];
        if (sscanf(line,
                   "| %*s | %" SCNu64 " | %" SCNu64 " | %" SCNu32 ", %" SCNu32 ", %" SCNu32
                   " | %" SCNu32 ", %" SCNu32 ", %" SCNu32 " |",
                   &rows, &cols, &a[0], &a[1], &a[2], &b[0], &b[1], &b[2]) != 8)
            continue;
        const struct bc_tiling *tl1 = bc_tiling_published(BC_TILED_TL1, n);
        const struct bc_tiling *tl2 = bc_tiling_published(BC_TILED_TL2, n);
        assert_true(tl1 != NULL && tl2 != NULL);
        assert_true(tl1->rows == rows && tl1->cols == cols);
        assert_true(tl2->rows == rows && tl2->cols == cols);
        assert_memory_equal(tl1->tile, a, sizeof a);
        assert_memory_equal(tl2->tile, b, sizeof b);
        n++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(n, 14);
    assert_null(bc_tiling_published(BC_TILED_TL1, n));
    assert_null(bc_tiling_published(BC_TILED_TL2, n));
}

static void test_published_ones_are_legal(void **state)
{
    (void)state;
    for (unsigned p = 0; p < 2; p++) {
        const enum bc_tiled_pack pack = p == 0 ? BC_TILED_TL1 : BC_TILED_TL2;
        const struct bc_tiling *t;
        for (size_t i = 0; (t = bc_tiling_published(pack, i)) != NULL; i++) {
            enum bc_tiling_source source;
            uint32_t tile[3];
            char why[WHY] = "";
            if (!bc_tiling_check(pack, t->rows, t->cols, t->tile, why, sizeof why))
                fail_msg("%s", why);
            assert_true(
                bc_tiling_choose(NULL, pack, t->rows, t->cols, tile, &source, why, sizeof why));
            assert_int_equal(source, BC_TILING_PUBLISHED);
            assert_memory_equal(tile, t->tile, sizeof tile); /* no shape is there twice */
        }
    }
}

/* ---- files ---- */

static enum bitconv_status parse(const char *text, struct bc_tilings *out,
                                 struct bitconv_error *err)
{
    /* A block of the text's size exactly, so that the sanitizer sees a step beyond it. */
    const size_t size = strlen(text);
    uint8_t *const copy = malloc(size + (size == 0));
    assert_non_null(copy);
    memcpy(copy, text, size);
    const enum bitconv_status status = bc_tilings_parse("k.ini", copy, size, out, err);
    free(copy);
    return status;
}

static void test_a_file(void **state)
{
    static const char text[] = "\xef\xbb\xbf# by a generator\r\n"
                               "[Kernels_0]\r\n"
                               "m = 64\r\nk = 288\r\nbm = 32\r\nbk = 96\r\nbmm = 32\r\n"
                               "\r\n"
                               "; a section out of order\n"
                               "  [ Kernels_1 ]\n"
                               "\tBMM=32\n BK : 48 \nK = 0288\nBm = 64\nM = 64\nthreads = many\n"
                               "[Kernels_0]\n"
                               "m=2560\nk=2560\nbm=32\nbk=64\nbmm=32";
    struct bc_tilings config;
    struct bitconv_error err = {0};
    enum bc_tiling_source source;
    uint32_t tile[3];
    char why[WHY] = "";
    (void)state;
    if (parse(text, &config, &err) != BITCONV_OK) fail_msg("%s", err.text);
    assert_int_equal(config.n, 3);
    assert_int_equal(config.items[0].line, 2);
    assert_int_equal(config.items[1].line, 10);
    assert_int_equal(config.items[1].tile[0], 64);
    assert_int_equal(config.items[1].tile[1], 48);
    assert_int_equal(config.items[1].tile[2], 32);
    assert_string_equal(config.path, "k.ini");

    /* Of two sections for a shape the first one. */
    assert_true(bc_tiling_choose(&config, BC_TILED_TL2, 64, 288, tile, &source, why, sizeof why));
    assert_int_equal(source, BC_TILING_FILE);
    assert_int_equal(tile[1], 96);
    /* The file comes before the published table, even where it is of no use to the pack. */
    assert_true(
        bc_tiling_choose(&config, BC_TILED_TL1, 2560, 2560, tile, &source, why, sizeof why));
    assert_int_equal(source, BC_TILING_FILE);
    assert_int_equal(tile[0], 32);
    assert_false(
        bc_tiling_choose(&config, BC_TILED_TL2, 2560, 2560, tile, &source, why, sizeof why));
    assert_string_equal(why,
                        "TL2: BK = 64 is no multiple of 24 (eight triples) (k.ini, the section "
                        "at line 17)");
    /* What it does not have comes from the table or the rule. */
    assert_true(bc_tiling_choose(&config, BC_TILED_TL1, 640, 2560, tile, &source, why, sizeof why));
    assert_int_equal(source, BC_TILING_PUBLISHED);
    assert_true(bc_tiling_choose(&config, BC_TILED_TL1, 64, 64, tile, &source, why, sizeof why));
    assert_int_equal(source, BC_TILING_LARGEST);
    bc_tilings_release(&config);
    bc_tilings_release(&config);
}

/* Only a file can ask for fewer than 256 columns in TL2. */
static void test_a_file_below_256_columns(void **state)
{
    struct bc_tilings config;
    uint32_t tile[3];
    char why[WHY] = "";
    (void)state;
    assert_int_equal(parse("[a]\nm=128\nk=128\nbm=64\nbk=96\nbmm=32\n", &config, NULL), BITCONV_OK);
    assert_false(bc_tiling_choose(NULL, BC_TILED_TL2, 128, 128, tile, NULL, why, sizeof why));
    assert_true(bc_tiling_choose(&config, BC_TILED_TL2, 128, 128, tile, NULL, why, sizeof why));
    assert_int_equal(tile[1], 96);
    bc_tilings_release(&config);
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *message;
    } files[] = {
        {"", "k.ini: no [SECTION] with a kernel configuration in it"},
        {"# nothing\n\n", "k.ini: no [SECTION] with a kernel configuration in it"},
        {"m = 3\n", "k.ini: line 1: 'm = 3' stands before the first [SECTION]"},
        {"[a]\nm = 3\nk = 4\nbm = 5\nbmm = 6\n",
         "k.ini: line 1: the section that begins here has no 'bk', a kernel configuration has the "
         "keys m, k, bm, bk and bmm"},
        {"\n[a]\n[b]\n",
         "k.ini: line 2: the section that begins here has no 'm', a kernel configuration has the "
         "keys m, k, bm, bk and bmm"},
        {"[a]\nm = 3\nm = 4\n",
         "k.ini: line 3: 'm' stands twice in the section that begins at line 1"},
        {"[a]\nm = 0\n",
         "k.ini: line 2: 'm' is '0', a whole number from 1 to 4294967295 was expected"},
        {"[a]\nm = -1\n",
         "k.ini: line 2: 'm' is '-1', a whole number from 1 to 4294967295 was expected"},
        {"[a]\nm = 4294967296\n", "k.ini: line 2: 'm' is '4294967296', a whole number from 1 to "
                                  "4294967295 was expected"},
        {"[a]\nm = 99999999999999999999999999999999999999999999999999\n",
         "k.ini: line 2: 'm' is '9999999999999999999999999999999999999999', a whole number from 1 "
         "to 4294967295 was expected"},
        {"[a]\nm = 3 4\n",
         "k.ini: line 2: 'm' is '3 4', a whole number from 1 to 4294967295 was expected"},
        {"[a]\nbm =\n",
         "k.ini: line 2: 'bm' is '', a whole number from 1 to 4294967295 was expected"},
        {"[a]\nm 3\n", "k.ini: line 2: 'm 3' is neither [SECTION] nor KEY = NUMBER"},
        {"[a\nm = 3\n", "k.ini: line 1: '[a' has no ']', a section's head is [NAME]"},
        {"<html>", "k.ini: line 1: '<html>' is neither [SECTION] nor KEY = NUMBER"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct bc_tilings config;
        struct bitconv_error err = {0};
        assert_int_equal(parse(files[i].text, &config, &err), BITCONV_E_CORRUPT);
        assert_string_equal(err.text, files[i].message);
        assert_null(config.items);
        assert_null(config.path);
    }
}

static void test_loading(void **state)
{
    static const char text[] = "[a]\nm=128\nk=128\nbm=64\nbk=96\nbmm=32\n";
    struct bc_tilings config;
    struct bitconv_error err = {0};
    char path[600];
    char *const dir = temp_dir_new();
    (void)state;
    assert_int_equal(bc_tilings_load(dir, &config, &err), BITCONV_E_ARG);
    snprintf(path, sizeof path, "%s/k.ini", dir);
    err = (struct bitconv_error){0};
    assert_int_equal(bc_tilings_load(path, &config, &err), BITCONV_E_IO);
    assert_int_equal(bc_file_write(path, text, strlen(text), true, NULL), BITCONV_OK);
    assert_int_equal(bc_tilings_load(path, &config, NULL), BITCONV_OK);
    assert_int_equal(config.n, 1);
    assert_string_equal(config.path, path);
    bc_tilings_release(&config);

    const size_t large = (1 << 20) + 1;
    char *const blanks = malloc(large);
    assert_non_null(blanks);
    memset(blanks, '\n', large);
    assert_int_equal(bc_file_write(path, blanks, large, true, NULL), BITCONV_OK);
    err = (struct bitconv_error){0};
    assert_int_equal(bc_tilings_load(path, &config, &err), BITCONV_E_LIMIT);
    assert_int_equal(bc_file_write(path, blanks, large - 1, true, NULL), BITCONV_OK);
    assert_int_equal(bc_tilings_load(path, &config, NULL), BITCONV_E_CORRUPT); /* no section */
    free(blanks);
    temp_dir_remove(dir);
}

/* Every truncation and many mutations of a good file: an answer, and a message with a line if it is
 * no. */
static void test_mutilated_files(void **state)
{
    static const char good[] = "[K]\nm = 64\nk = 288\nbm = 32\nbk = 96\nbmm = 32\n\n"
                               "[L]\nm = 32\nk = 256\nbm = 32\nbk = 24\nbmm = 32\n";
    static const char letters[] = "[]=:#;\r\n\t 09mkbM\xff\xef\x7f-";
    uint64_t rng = 11;
    unsigned n_good = 0, n_bad = 0;
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        const size_t size = strlen(text);
        if (i < size)
            text[i] = '\0';
        else
            for (uint64_t j = rng_below(&rng, 4); j-- > 0;)
                text[rng_below(&rng, size)] = letters[rng_below(&rng, sizeof letters - 1)];
        struct bc_tilings config;
        struct bitconv_error err = {0};
        const enum bitconv_status status = parse(text, &config, &err);
        if (status == BITCONV_OK) {
            assert_true(config.n == 1 || config.n == 2);
            n_good++;
        } else {
            assert_int_equal(status, BITCONV_E_CORRUPT);
            assert_int_equal(strncmp(err.text, "k.ini: ", 7), 0);
            n_bad++;
        }
        bc_tilings_release(&config);
    }
    assert_true(n_good > 1000 && n_bad > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_name_the_numbers),
        cmocka_unit_test(test_below_256_columns),
        cmocka_unit_test(test_choice_is_the_largest_legal_tile),
        cmocka_unit_test(test_shapes_without_a_tile),
        cmocka_unit_test(test_table_of_the_description),
        cmocka_unit_test(test_published_ones_are_legal),
        cmocka_unit_test(test_a_file),
        cmocka_unit_test(test_a_file_below_256_columns),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_loading),
        cmocka_unit_test(test_mutilated_files),
    };
    return cmocka_run_group_tests_name("tiling", tests, NULL, NULL);
}
