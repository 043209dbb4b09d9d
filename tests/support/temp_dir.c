/* SPDX-License-Identifier: MIT
 * Scratch folders for tests. */
#include "support/temp_dir.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

char *temp_dir_path(const char *dir, const char *name)
{
    const size_t size = strlen(dir) + strlen(name) + 2;
    char *const path = malloc(size);
    assert_non_null(path);
    (void)snprintf(path, size, "%s/%s", dir, name);
    return path;
}

char *temp_dir_new(void)
{
    const char *const base = getenv("TMPDIR");
    char *const dir =
        temp_dir_path(base != NULL && *base != '\0' ? base : "/tmp", "bitconv-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static void remove_tree(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0) return;
    if (!S_ISDIR(st.st_mode)) {
        (void)unlink(path);
        return;
    }
    (void)chmod(path, 0700); /* tests take rights away */
    DIR *const stream = opendir(path);
    if (stream == NULL) return;
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char *const child = temp_dir_path(path, entry->d_name);
        remove_tree(child);
        free(child);
    }
    (void)closedir(stream);
    (void)rmdir(path);
}

void temp_dir_remove(char *dir)
{
    if (dir == NULL) return;
    remove_tree(dir);
    free(dir);
}

void temp_dir_write(const char *dir, const char *name, const void *data, size_t size)
{
    char *const path = temp_dir_path(dir, name);
    for (char *slash = strchr(path + strlen(dir) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700); /* there already: fine; other failures show up in fopen */
        *slash = '/';
    }
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    free(path);
}

void temp_dir_puts(const char *dir, const char *name, const char *text)
{
    temp_dir_write(dir, name, text, strlen(text));
}
