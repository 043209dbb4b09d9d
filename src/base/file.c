/* SPDX-License-Identifier: MIT
 * Files: read-only maps, paths and folders. */
#define _DEFAULT_SOURCE /* madvise: POSIX's own call cannot drop pages on Linux */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"

static char *copy_string(const char *s)
{
    const size_t size = strlen(s) + 1;
    char *const copy = bc_alloc_array(size, 1);
    if (copy != NULL) memcpy(copy, s, size);
    return copy;
}

static enum bitconv_status map_fd(int fd, const char *path, struct bc_file *file,
                                  struct bitconv_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return bc_fail_errno(err, "%s: cannot be examined", path);
    if (S_ISDIR(st.st_mode))
        return bc_fail(err, BITCONV_E_ARG, "%s: is a folder, a file was expected", path);
    if (!S_ISREG(st.st_mode))
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: is a device, pipe or socket, a regular file was expected", path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return bc_fail(err, BITCONV_E_LIMIT, "%s: %" PRIu64 " bytes do not fit this address space",
                       path, (uint64_t)st.st_size);
    file->size = (uint64_t)st.st_size;
    file->dev = (uint64_t)st.st_dev;
    file->ino = (uint64_t)st.st_ino;
    if (file->size == 0) {
        file->data = (const uint8_t *)""; /* an empty map is not possible */
        return BITCONV_OK;
    }
    void *const data = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return bc_fail_errno(err, "%s: cannot be mapped", path);
    (void)madvise(data, (size_t)file->size, MADV_SEQUENTIAL);
    file->data = data;
    return BITCONV_OK;
}

enum bitconv_status bc_file_open(const char *path, struct bc_file *file, struct bitconv_error *err)
{
    memset(file, 0, sizeof *file);
    if (path[0] == '\0')
        return bc_fail(err, BITCONV_E_ARG,
                       "an empty path was given, the name of a file was expected");
    /* Without O_NONBLOCK opening a FIFO would wait for a writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return bc_fail_errno(err, "%s: cannot be opened", path);
    file->path = copy_string(path);
    const enum bitconv_status status =
        file->path != NULL ? map_fd(fd, path, file, err) : bc_fail_nomem(err, "path");
    (void)close(fd);
    if (status != BITCONV_OK) {
        bc_free(file->path);
        memset(file, 0, sizeof *file);
    }
    return status;
}

void bc_file_close(struct bc_file *file)
{
    if (file->size > 0) {
        /* munmap takes what mmap gave, which was never const. */
        void *data;
        memcpy(&data, &file->data, sizeof data);
        (void)munmap(data, (size_t)file->size);
    }
    bc_free(file->path);
    memset(file, 0, sizeof *file);
}

static uint64_t page_size(void)
{
    const long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (uint64_t)size : 4096;
}

void bc_file_done_with(const struct bc_file *file, uint64_t offset, uint64_t size)
{
    if (offset >= file->size) return;
    const uint64_t page = page_size(), begin = bc_round_up(offset, page);
    uint64_t end;
    if (!bc_add_u64(offset, size, &end) || end > file->size) end = file->size;
    /* Only whole pages: what shares a page with the range may still be needed. Nothing shares the
     * last page of the file from behind. */
    end = end == file->size ? bc_round_up(end, page) : end & ~(page - 1);
    if (begin >= end) return;
    /* madvise takes what mmap gave, which was never const. */
    const uint8_t *const start = file->data + begin;
    void *address;
    memcpy(&address, &start, sizeof address);
    (void)madvise(address, (size_t)(end - begin), MADV_DONTNEED);
}

enum bc_path_kind bc_path_kind(const char *path)
{
    struct stat st;
    /* What cannot be looked at (a loop of links, a folder without permission) is there all the same. */
    if (stat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? BC_PATH_NONE : BC_PATH_OTHER;
    if (S_ISREG(st.st_mode)) return BC_PATH_FILE;
    return S_ISDIR(st.st_mode) ? BC_PATH_DIR : BC_PATH_OTHER;
}

char *bc_path_join(const char *dir, const char *name)
{
    struct bc_buf buf = {NULL, 0, 0, false};
    const size_t dir_len = strlen(dir);
    bc_buf_append(&buf, dir, dir_len);
    if (dir_len > 0 && dir[dir_len - 1] != '/') bc_buf_putc(&buf, '/');
    bc_buf_puts(&buf, name);
    if (buf.failed) bc_buf_release(&buf);
    return (char *)buf.data;
}

const char *bc_path_base(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

char *bc_path_real_base(const char *path)
{
    char *const real = realpath(path, NULL);
    if (real == NULL) return NULL;
    char *const base = copy_string(strrchr(real, '/') + 1);
    free(real); /* from realpath, not from bc_alloc_array */
    return base;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

struct name_list {
    char **names;
    size_t n;
    size_t cap;
};

static bool add_name(struct name_list *list, const char *name)
{
    void *grown = list->names;
    if (!bc_grow(&grown, &list->cap, list->n, sizeof *list->names)) return false;
    list->names = grown;
    list->names[list->n] = copy_string(name);
    if (list->names[list->n] == NULL) return false;
    list->n++;
    return true;
}

static enum bitconv_status read_names(DIR *dir, const char *path, struct name_list *list,
                                      struct bitconv_error *err)
{
    for (;;) {
        errno = 0; /* the only way to tell an error from the end */
        const struct dirent *const entry = readdir(dir);
        if (entry == NULL && errno != 0) return bc_fail_errno(err, "%s: cannot be listed", path);
        if (entry == NULL) return BITCONV_OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (!add_name(list, entry->d_name)) return bc_fail_nomem(err, "names of a folder");
    }
}

enum bitconv_status bc_dir_list(const char *path, char ***out_names, size_t *out_n,
                                struct bitconv_error *err)
{
    *out_names = NULL;
    *out_n = 0;
    if (path[0] == '\0')
        return bc_fail(err, BITCONV_E_ARG, "an empty path was given, a folder was expected");
    DIR *const dir = opendir(path);
    if (dir == NULL) return bc_fail_errno(err, "%s: cannot be opened as a folder", path);
    struct name_list list = {NULL, 0, 0};
    const enum bitconv_status status = read_names(dir, path, &list, err);
    (void)closedir(dir);
    if (status != BITCONV_OK) {
        for (size_t i = 0; i < list.n; i++)
            bc_free(list.names[i]);
        bc_free(list.names);
        return status;
    }
    if (list.n > 1) qsort(list.names, list.n, sizeof *list.names, compare_names);
    *out_names = list.names;
    *out_n = list.n;
    return BITCONV_OK;
}
