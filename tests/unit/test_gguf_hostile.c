/* SPDX-License-Identifier: MIT
 * The malformed GGUF files of the golden data, against their verdicts for `inspect` (does the file
 * open) and, as far as the reader is concerned, for `verify` (does it find errors). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "bitconv/gguf.h"

static char folder[512];

static FILE *open_verdicts(void)
{
    char path[640];
    snprintf(path, sizeof path, "%s/verdicts.tsv", folder);
    return fopen(path, "r");
}

static size_t n_errors(const struct bitconv_gguf *g)
{
    size_t n = 0;
    for (size_t i = 0; i < bitconv_gguf_n_findings(g); i++)
        n += bitconv_gguf_finding_at(g, i)->is_error;
    return n;
}

/* What is wrong inside tensors (codes, scales) is for the verifier, not for the reader. */
static bool is_about_contents(const char *name)
{
    return strncmp(name, "g50_", 4) == 0;
}

static void check(const char *name, const char *inspect, const char *verify, const char *note)
{
    char path[640];
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const clock_t before = clock();
    const enum bitconv_status status = bitconv_gguf_open(path, &g, &err);
    assert_true(clock() - before < CLOCKS_PER_SEC);
    if (status == BITCONV_OK) {
        if (strcmp(inspect, "fail") == 0) fail_msg("%s must not open", name);
        const size_t n = n_errors(g);
        if (strcmp(verify, "ok") == 0 && n > 0)
            fail_msg("%s must have no error: %s", name, bitconv_gguf_finding_at(g, 0)->text);
        if (strcmp(verify, "fail") == 0 && n == 0 && !is_about_contents(name))
            fail_msg("%s must have an error", name);
    } else {
        if (strcmp(inspect, "ok") == 0) fail_msg("%s must open: %s", name, err.text);
        if (strstr(note, "big-endian") != NULL) assert_non_null(strstr(err.text, "big-endian"));
        assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
        assert_null(strchr(err.text, '\n'));
    }
    bitconv_gguf_close(g);
}

static void test_verdicts(void **state)
{
    (void)state;
    FILE *verdicts = open_verdicts();
    char line[512];
    size_t n = 0;
    assert_non_null(verdicts);
    while (fgets(line, sizeof line, verdicts) != NULL) {
        char name[128] = "", inspect[16] = "", verify[16] = "";
        if (sscanf(line, "%127s %15s %15s", name, inspect, verify) != 3) continue;
        if (strstr(name, ".gguf") == NULL) continue;
        check(name, inspect, verify, line);
        n++;
    }
    fclose(verdicts);
    assert_true(n >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};
    const char *shared = getenv("BITCONV_SHARED");
    if (shared == NULL) shared = BITCONV_SOURCE_DIR "/../shared";
    snprintf(folder, sizeof folder, "%s/golden/hostile", shared);
    FILE *verdicts = open_verdicts();
    if (verdicts == NULL) {
        printf("skipped: %s is not here\n", folder);
        return 77;
    }
    fclose(verdicts);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
