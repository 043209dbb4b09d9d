/* SPDX-License-Identifier: MIT
 * The hidden names of unfinished output: making, locking, cleaning up. */
#define _DEFAULT_SOURCE /* flock: POSIX record locks fall with any close in the process */
#include "base/file_hidden.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/mem.h"

enum {
    SUFFIX_LEN = 6,    /* of the random part */
    MAX_STEM_LEN = 200 /* of the part that is taken from the target's name */
};
static const char ending[] = ".partial";

/* The fixed part in front, ".NAME."; NULL when out of memory. */
static char *stem_of(const char *base)
{
    struct bc_buf buf = {NULL, 0, 0, false};
    bc_buf_printf(&buf, ".%.*s.", MAX_STEM_LEN, base);
    if (buf.failed) bc_buf_release(&buf);
    return (char *)buf.data;
}

char *bc_hidden_name(const char *base, int attempt)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t seeds[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(),
                              (uint64_t)(uintptr_t)&now, (uint64_t)attempt};
    uint64_t random = bc_hash64(seeds, sizeof seeds);
    char suffix[SUFFIX_LEN];
    for (int i = 0; i < SUFFIX_LEN; i++) {
        suffix[i] = alphabet[random % (sizeof alphabet - 1)];
        random /= sizeof alphabet - 1;
    }
    struct bc_buf name = {NULL, 0, 0, false};
    bc_buf_printf(&name, ".%.*s.%.*s%s", MAX_STEM_LEN, base, SUFFIX_LEN, suffix, ending);
    if (name.failed) bc_buf_release(&name);
    return (char *)name.data;
}

void bc_hidden_lock(int fd)
{
    (void)flock(fd, LOCK_EX | LOCK_NB);
}

bool bc_hidden_names_fd(int dir_fd, const char *name, int fd)
{
    struct stat by_name, by_fd;
    return fstatat(dir_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &by_fd) == 0 &&
           by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

static bool is_hidden_name(const char *name, const char *stem)
{
    const size_t stem_len = strlen(stem);
    return strncmp(name, stem, stem_len) == 0 &&
           strlen(name) == stem_len + SUFFIX_LEN + strlen(ending) &&
           strcmp(name + stem_len + SUFFIX_LEN, ending) == 0;
}

enum { MAX_FOLDER_DEPTH = 2 }; /* a checkpoint's modules have folders of their own */

/* Removes all that the folder behind fd holds, then closes it. */
static bool empty_folder(int fd, int depth)
{
    DIR *const dir = fdopendir(fd);
    bool ok = dir != NULL;
    if (dir == NULL) (void)close(fd);
    const struct dirent *entry;
    while (ok && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(fd, entry->d_name, 0) == 0) continue;
        const int inner =
            depth < MAX_FOLDER_DEPTH
                ? openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                : -1;
        ok = inner >= 0 && empty_folder(inner, depth + 1) &&
             unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0;
    }
    if (dir != NULL) (void)closedir(dir);
    return ok;
}

bool bc_hidden_remove_folder(int dir_fd, const char *name)
{
    const int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && empty_folder(fd, 1) && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0;
}

/* Removes one partial file or folder unless its writer still holds the lock. */
static void remove_if_stale(int dir_fd, const char *name)
{
    const int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    struct stat st;
    if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && bc_hidden_names_fd(dir_fd, name, fd)) {
        if (S_ISDIR(st.st_mode))
            (void)bc_hidden_remove_folder(dir_fd, name);
        else
            (void)unlinkat(dir_fd, name, 0);
    }
    (void)close(fd);
}

void bc_hidden_remove_stale(int dir_fd, const char *base)
{
    /* Not a dup of dir_fd: that would share, and move, its position. */
    const int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    char *const stem = stem_of(base);
    const struct dirent *entry;
    while (stem != NULL && (entry = readdir(dir)) != NULL) {
        if (is_hidden_name(entry->d_name, stem)) remove_if_stale(dir_fd, entry->d_name);
    }
    bc_free(stem);
    (void)closedir(dir);
}
