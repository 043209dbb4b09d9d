/* SPDX-License-Identifier: MIT
 * Atomic output of a folder: filled under a hidden name beside the target, renamed when complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_hidden.h"
#include "base/mem.h"

enum { MAX_NAME_ATTEMPTS = 100 };

struct bc_out_folder {
    struct bc_out_folder_options options;
    char *target; /* as given, without slashes at its end */
    char *parent; /* of the target */
    const char *base;
    char *hidden; /* name within the parent, NULL while there is none */
    char *path;   /* of the hidden folder */
    int parent_fd, fd;
};

/* Cuts the path into parent and name. */
static enum bitconv_status split(struct bc_out_folder *f, const char *path,
                                 struct bitconv_error *err)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    f->target = bc_alloc_array(len + 1, 1);
    if (f->target == NULL) return bc_fail_nomem(err, "path");
    memcpy(f->target, path, len);
    char *const slash = strrchr(f->target, '/');
    f->base = slash != NULL ? slash + 1 : f->target;
    if (f->base[0] == '\0' || strcmp(f->base, ".") == 0 || strcmp(f->base, "..") == 0)
        return bc_fail(err, BITCONV_E_ARG, "%s: a folder to be made needs a name", path);
    const size_t n = slash == NULL ? 0 : slash == f->target ? 1 : (size_t)(slash - f->target);
    f->parent = bc_alloc_array(n + 2, 1);
    if (f->parent == NULL) return bc_fail_nomem(err, "path");
    memcpy(f->parent, n > 0 ? f->target : ".", n > 0 ? n : 1);
    return BITCONV_OK;
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bc_free(names[i]);
    bc_free(names);
}

/* Are all entries of `path` (called `prefix`NAME) replaceable? Folders one level deep. */
static enum bitconv_status check_entries(const struct bc_out_folder *f, const char *path,
                                         const char *prefix, struct bitconv_error *err)
{
    char **names = NULL;
    size_t n = 0;
    enum bitconv_status status = bc_dir_list(path, &names, &n, err);
    for (size_t i = 0; i < n && status == BITCONV_OK; i++) {
        struct bc_buf name = {0};
        bc_buf_printf(&name, "%s%s", prefix, names[i]);
        char *const inner = bc_path_join(path, names[i]);
        struct stat st;
        const bool is_dir = inner != NULL && lstat(inner, &st) == 0 && S_ISDIR(st.st_mode);
        if (inner == NULL || name.failed)
            status = bc_fail_nomem(err, "path");
        else if (is_dir && prefix[0] == '\0')
            bc_buf_putc(&name, '/');
        if (status == BITCONV_OK && ((is_dir && prefix[0] != '\0') ||
                                     (!is_dir && !f->options.replaceable(bc_buf_str(&name)))))
            status = bc_fail(err, BITCONV_E_ARG,
                             "%s: holds %s, which is not part of what would replace the folder: "
                             "remove the folder by hand or choose another",
                             f->target, bc_buf_str(&name));
        if (status == BITCONV_OK && is_dir)
            status = check_entries(f, inner, bc_buf_str(&name), err);
        bc_free(inner);
        bc_buf_release(&name);
    }
    free_names(names, n);
    return status;
}

/* What is at the target already: nothing, an empty folder, or one that may go. */
static enum bitconv_status check_target(const struct bc_out_folder *f, struct bitconv_error *err)
{
    struct stat st;
    if (lstat(f->target, &st) != 0) {
        if (errno == ENOENT) return BITCONV_OK;
        return bc_fail_errno(err, "%s: cannot be looked at", f->target);
    }
    if (!S_ISDIR(st.st_mode))
        return bc_fail(err, BITCONV_E_ARG, "%s: is there already and is no folder", f->target);
    char **names = NULL;
    size_t n = 0;
    BC_TRY(bc_dir_list(f->target, &names, &n, err));
    free_names(names, n);
    if (n == 0) return BITCONV_OK;
    if (!f->options.force)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: is there already and is not empty: use --force to replace it",
                       f->target);
    return check_entries(f, f->target, "", err);
}

/* Makes the hidden folder and locks it. */
static enum bitconv_status make_hidden(struct bc_out_folder *f, struct bitconv_error *err)
{
    for (int attempt = 0; attempt < MAX_NAME_ATTEMPTS; attempt++) {
        char *const name = bc_hidden_name(f->base, attempt);
        if (name == NULL) return bc_fail_nomem(err, "path");
        if (mkdirat(f->parent_fd, name, 0777) == 0) {
            f->hidden = name;
            break;
        }
        const int code = errno;
        bc_free(name);
        errno = code;
        if (code != EEXIST) break;
    }
    if (f->hidden == NULL)
        return bc_fail_errno(err, "%s: no folder can be made in %s", f->target, f->parent);
    f->path = bc_path_join(f->parent, f->hidden);
    if (f->path == NULL) return bc_fail_nomem(err, "path");
    f->fd = openat(f->parent_fd, f->hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0) return bc_fail_errno(err, "%s: cannot be opened", f->path);
    bc_hidden_lock(f->fd);
    return BITCONV_OK;
}

static enum bitconv_status open_folder(struct bc_out_folder *f, const char *path,
                                       struct bitconv_error *err)
{
    if (path[0] == '\0') return bc_fail(err, BITCONV_E_ARG, "the output path is empty");
    BC_TRY(split(f, path, err));
    f->parent_fd = open(f->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->parent_fd < 0)
        return bc_fail_errno(err, "%s: folder %s cannot be opened", f->target, f->parent);
    BC_TRY(check_target(f, err));
    bc_hidden_remove_stale(f->parent_fd, f->base);
    return make_hidden(f, err);
}

void bc_out_folder_abort(struct bc_out_folder *f)
{
    if (f == NULL) return;
    if (f->hidden != NULL) (void)bc_hidden_remove_folder(f->parent_fd, f->hidden);
    if (f->fd >= 0) (void)close(f->fd);
    if (f->parent_fd >= 0) (void)close(f->parent_fd);
    bc_free(f->target);
    bc_free(f->parent);
    bc_free(f->hidden);
    bc_free(f->path);
    bc_free(f);
}

enum bitconv_status bc_out_folder_open(const char *path,
                                       const struct bc_out_folder_options *options,
                                       struct bc_out_folder **out, struct bitconv_error *err)
{
    *out = NULL;
    struct bc_out_folder *const f = bc_alloc_array(1, sizeof *f);
    if (f == NULL) return bc_fail_nomem(err, "output folder");
    f->options = *options;
    f->parent_fd = f->fd = -1;
    const enum bitconv_status status = open_folder(f, path, err);
    if (status != BITCONV_OK) {
        bc_out_folder_abort(f);
        return status;
    }
    *out = f;
    return BITCONV_OK;
}

const char *bc_out_folder_path(const struct bc_out_folder *f)
{
    return f->path;
}

enum bitconv_status bc_out_folder_mkdir(struct bc_out_folder *f, const char *name,
                                        struct bitconv_error *err)
{
    if (mkdirat(f->fd, name, 0777) == 0 || errno == EEXIST) return BITCONV_OK;
    return bc_fail_errno(err, "%s: folder %s cannot be made", f->target, name);
}

/* Moves an old folder out of the way, under a hidden name that is then removed; *old is that name,
 * NULL when there was nothing. */
static enum bitconv_status move_old(struct bc_out_folder *f, char **old, struct bitconv_error *err)
{
    *old = NULL;
    BC_TRY(check_target(f, err)); /* somebody may have put something there meanwhile */
    char *const name = bc_hidden_name(f->base, MAX_NAME_ATTEMPTS);
    if (name == NULL) return bc_fail_nomem(err, "path");
    if (renameat(f->parent_fd, f->base, f->parent_fd, name) == 0) {
        *old = name;
        return BITCONV_OK;
    }
    const int code = errno;
    bc_free(name);
    errno = code;
    if (code == ENOENT) return BITCONV_OK;
    return bc_fail_errno(err, "%s: the old folder cannot be moved away", f->target);
}

static enum bitconv_status publish(struct bc_out_folder *f, struct bitconv_error *err)
{
    char *old = NULL;
    (void)fsync(f->fd); /* the files are synced already; not every file system syncs folders */
    BC_TRY(move_old(f, &old, err));
    if (renameat(f->parent_fd, f->hidden, f->parent_fd, f->base) != 0) {
        (void)bc_fail_errno(err, "%s: the finished folder cannot be given its name", f->target);
        if (old != NULL) (void)renameat(f->parent_fd, old, f->parent_fd, f->base);
        bc_free(old);
        return BITCONV_E_IO;
    }
    bc_free(f->hidden);
    f->hidden = NULL;
    (void)fsync(f->parent_fd);
    if (old != NULL && !bc_hidden_remove_folder(f->parent_fd, old)) {
        const enum bitconv_status status = bc_fail_errno(
            err, "%s: written, but the old folder is left as %s/%s", f->target, f->parent, old);
        bc_free(old);
        return status;
    }
    bc_free(old);
    return BITCONV_OK;
}

enum bitconv_status bc_out_folder_commit(struct bc_out_folder *f, struct bitconv_error *err)
{
    const enum bitconv_status status = publish(f, err);
    bc_out_folder_abort(f); /* after success there is no hidden folder left to remove */
    return status;
}
