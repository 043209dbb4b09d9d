/* SPDX-License-Identifier: MIT
 * Where output goes: symlinks, devices, existing files. */
#include "base/file_target.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { MAX_LINKS = 40, MAX_LINK_LEN = 4096 };

static char *copy_n(const char *s, size_t len)
{
    char *const copy = bc_alloc_array(len + 1, 1);
    if (copy != NULL) memcpy(copy, s, len);
    return copy;
}

/* Length of the folder part of a path, without the slash that ends it unless it is the root's. */
static size_t folder_len(const char *path)
{
    const char *const slash = strrchr(path, '/');
    if (slash == NULL) return 0;
    return slash == path ? 1 : (size_t)(slash - path);
}

/* What the link `path` points to, seen from where `path` is seen. */
static char *link_target(const char *path, const char *content)
{
    if (content[0] == '/') return copy_n(content, strlen(content));
    char *const folder = copy_n(path, folder_len(path));
    if (folder == NULL) return NULL;
    char *const target = bc_path_join(folder, content);
    bc_free(folder);
    return target;
}

/* /dev/stdout and the like: the link that these end in names an open descriptor, not a place. */
static bool is_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 ||
           (strncmp(path, "/proc/", 6) == 0 && strstr(path, "/fd/") != NULL);
}

/* Follows symlinks at the end of `path`, so that a link stays and what it points to is written;
 * that need not exist yet. *direct is set when the way leads through an open descriptor. */
static enum bitconv_status follow_links(const char *path, char **out, bool *direct,
                                        struct bitconv_error *err)
{
    char *current = copy_n(path, strlen(path));
    for (int i = 0; current != NULL && i <= MAX_LINKS; i++) {
        char content[MAX_LINK_LEN];
        const ssize_t n = readlink(current, content, sizeof content - 1);
        *direct = is_descriptor(current);
        if (n < 0 || *direct) {
            *out = current;
            return BITCONV_OK;
        }
        content[n] = '\0';
        char *const next = link_target(current, content);
        bc_free(current);
        current = next;
    }
    if (current == NULL) return bc_fail_nomem(err, "path");
    bc_free(current);
    errno = ELOOP;
    return bc_fail_errno(err, "%s: cannot be followed", path);
}

static bool is_same(const char *path, const struct stat *st)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

/* Whether an input that is not open is the file, or a folder that holds it under some name. */
static enum bitconv_status check_input_path(const char *path, const char *input,
                                            const struct stat *st, struct bitconv_error *err)
{
    char **names = NULL;
    size_t n = 0;
    bool same = is_same(input, st), failed = false;
    if (bc_path_kind(input) == BC_PATH_DIR) BC_TRY(bc_dir_list(input, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        char *const entry = bc_path_join(input, names[i]);
        failed = failed || entry == NULL;
        same = same || (entry != NULL && is_same(entry, st));
        bc_free(entry);
        bc_free(names[i]);
    }
    bc_free(names);
    if (failed) return bc_fail_nomem(err, "path");
    if (!same) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_ARG,
                   "%s: is the same file as the input %s, or in it: write to "
                   "another one",
                   path, input);
}

/* A regular file is there already: may it be replaced? */
static enum bitconv_status check_existing(const char *path, const struct stat *st,
                                          const struct bc_out_options *options,
                                          struct bitconv_error *err)
{
    for (size_t i = 0; i < options->n_inputs; i++) {
        const struct bc_file *const input = options->inputs[i];
        if (input->dev == (uint64_t)st->st_dev && input->ino == (uint64_t)st->st_ino)
            return bc_fail(err, BITCONV_E_ARG,
                           "%s: is the same file as the input %s: write to another one", path,
                           input->path);
    }
    for (size_t i = 0; i < options->n_input_paths; i++)
        if (options->input_paths[i] != NULL)
            BC_TRY(check_input_path(path, options->input_paths[i], st, err));
    if (!options->force)
        return bc_fail(err, BITCONV_E_ARG, "%s: exists already: use --force to replace it", path);
    return BITCONV_OK;
}

static enum bitconv_status examine(const char *path, const struct bc_out_options *options,
                                   struct bc_out_target *target, struct bitconv_error *err)
{
    struct stat st;
    target->mode = 0666;
    if (stat(path, &st) != 0) {
        /* ENOENT is the usual case; a missing folder comes up when the folder is opened. */
        if (errno == ENOENT) return BITCONV_OK;
        return bc_fail_errno(err, "%s: cannot be written", path);
    }
    if (S_ISDIR(st.st_mode))
        return bc_fail(err, BITCONV_E_ARG, "%s: is a folder, the name of a file was expected",
                       path);
    if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) target->direct = true;
    if (target->direct) return BITCONV_OK;
    if (!S_ISREG(st.st_mode))
        return bc_fail(err, BITCONV_E_ARG, "%s: is neither a regular file nor a pipe", path);
    target->exists = true;
    target->mode = st.st_mode & 0777;
    return check_existing(path, &st, options, err);
}

/* Splits the resolved path into folder and name. */
static enum bitconv_status split(const char *resolved, struct bc_out_target *target,
                                 struct bitconv_error *err)
{
    const size_t len = folder_len(resolved);
    const char *const slash = strrchr(resolved, '/');
    const char *const base = slash != NULL ? slash + 1 : resolved;
    if (base[0] == '\0')
        return bc_fail(err, BITCONV_E_ARG, "%s: names a folder, the name of a file was expected",
                       target->path);
    target->folder = len > 0 ? copy_n(resolved, len) : copy_n(".", 1);
    target->base = copy_n(base, strlen(base));
    if (target->folder == NULL || target->base == NULL) return bc_fail_nomem(err, "path");
    return BITCONV_OK;
}

enum bitconv_status bc_out_target_find(const char *path, const struct bc_out_options *options,
                                       struct bc_out_target *target, struct bitconv_error *err)
{
    if (path[0] == '\0') return bc_fail(err, BITCONV_E_ARG, "the output path is empty");
    target->path = copy_n(path, strlen(path));
    if (target->path == NULL) return bc_fail_nomem(err, "path");
    char *resolved = NULL;
    BC_TRY(follow_links(path, &resolved, &target->direct, err));
    enum bitconv_status status = examine(path, options, target, err);
    if (status == BITCONV_OK && !target->direct) status = split(resolved, target, err);
    bc_free(resolved);
    return status;
}

bool bc_out_same(const char *a, const char *b)
{
    const char *const paths[2] = {a, b};
    struct bc_out_target targets[2] = {{0}};
    struct stat folders[2];
    bool same = true;
    for (size_t i = 0; i < 2; i++) {
        char *resolved = NULL;
        same = same && follow_links(paths[i], &resolved, &targets[i].direct, NULL) == BITCONV_OK &&
               split(resolved, &targets[i], NULL) == BITCONV_OK &&
               stat(targets[i].folder, &folders[i]) == 0;
        bc_free(resolved);
    }
    same = same && folders[0].st_dev == folders[1].st_dev &&
           folders[0].st_ino == folders[1].st_ino && strcmp(targets[0].base, targets[1].base) == 0;
    bc_out_target_release(&targets[0]);
    bc_out_target_release(&targets[1]);
    return same;
}

void bc_out_target_release(struct bc_out_target *target)
{
    bc_free(target->path);
    bc_free(target->folder);
    bc_free(target->base);
}
