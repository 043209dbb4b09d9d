/* SPDX-License-Identifier: MIT
 * The safetensors files of the hostile collection, with their verdicts. Skipped without that data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bitconv/safetensors.h"
#include "support/temp_dir.h"

/* The folder with the files; free() it. */
static char *hostile_dir(void)
{
    const char *const shared = getenv("BITCONV_SHARED");
    return temp_dir_path(shared != NULL ? shared : BITCONV_SOURCE_DIR "/../shared",
                         "golden/hostile");
}

static void check_file(const char *dir, const char *name, const char *verdict)
{
    char *const path = temp_dir_path(dir, name);
    struct bitconv_error err = {BITCONV_OK, 0, 0, ""};
    struct bitconv_safetensors *st;
    const bool ok = bitconv_safetensors_open(path, &st, &err) == BITCONV_OK;
    bitconv_safetensors_close(st);
    if (ok != (strcmp(verdict, "ok") == 0))
        fail_msg("%s: wanted %s, got: %s", name, verdict, ok ? "accepted" : err.text);
    if (!ok) {
        assert_non_null(strstr(err.text, name)); /* one line that names the file */
        assert_null(strchr(err.text, '\n'));
    }
    if (strcmp(name, "s01_lfs_pointer.safetensors") == 0)
        assert_non_null(strstr(err.text, "is a Git LFS pointer (135 bytes; real size 1178623988)"));
    if (strcmp(name, "s05_data_truncated.safetensors") == 0)
        assert_non_null(strstr(err.text, "short by 1 of 8 data bytes"));
    free(path);
}

static void test_verdicts(void **state)
{
    (void)state;
    char *const dir = hostile_dir();
    char *const path = temp_dir_path(dir, "verdicts.tsv");
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    char line[512];
    int n = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        char name[128], verdict[16];
        if (sscanf(line, "%127[^\t]\t%15[^\t]", name, verdict) != 2) continue;
        if (strstr(name, ".safetensors") == NULL) continue;
        check_file(dir, name, verdict);
        n++;
    }
    assert_true(n >= 20);
    (void)fclose(f);
    free(path);
    free(dir);
}

int main(void)
{
    char *const dir = hostile_dir();
    char *const path = temp_dir_path(dir, "verdicts.tsv");
    FILE *const f = fopen(path, "r");
    if (f == NULL) printf("skipped: %s is not there\n", path);
    free(path);
    free(dir);
    if (f == NULL) return 77;
    (void)fclose(f);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
