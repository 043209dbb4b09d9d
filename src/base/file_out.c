/* SPDX-License-Identifier: MIT
 * Atomic output: all bytes under the target's name, or none.
 *
 * The bytes go to a file without a name in the target's folder, which the kernel drops by itself
 * when the process dies. Commit gives it its name: straight away when there is no such file, else
 * through a hidden name and rename(). Where unnamed files do not exist the hidden name is there
 * from the start, locked while its writer lives, so that the next run can tell and remove what a
 * killed one left behind. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file_hidden.h"
#include "base/file_target.h"
#include "base/mem.h"

enum {
    PENDING_SIZE = 256 * 1024, /* small writes are gathered to this */
    MAX_WRITE = 1 << 30,       /* Linux takes a little under 2 GiB at once */
    MAX_NAME_ATTEMPTS = 100
};

struct bc_out {
    struct bc_out_target target;
    enum bc_out_method method;
    bool force;
    bool failed;         /* a write failed: commit must not publish */
    int fd;              /* -1: none */
    int dir_fd;          /* the target's folder; -1 for direct output */
    char *hidden;        /* name of the partial file in the folder, NULL while there is none */
    uint64_t planned;    /* final size, 0 when not known */
    uint64_t n_accepted; /* bytes given to bc_out_write */
    uint64_t n_on_disk;  /* of these, written to fd */
    uint8_t *pending;    /* the rest */
    size_t n_pending;
};

/* ---- free space and writing ---- */

/* Bytes that an ordinary user may still write to the folder's file system; false when unknown. */
static bool free_space(const struct bc_out *out, uint64_t *bytes)
{
    struct statvfs vfs;
    if (out->dir_fd < 0 || fstatvfs(out->dir_fd, &vfs) != 0) return false;
    if (vfs.f_blocks == 0) return false; /* some virtual file systems keep no count */
    if (!bc_mul_u64(vfs.f_bavail, vfs.f_frsize, bytes)) *bytes = UINT64_MAX;
    return true;
}

static enum bitconv_status check_space(const struct bc_out *out, struct bitconv_error *err)
{
    uint64_t available;
    if (!free_space(out, &available) || out->planned <= available) return BITCONV_OK;
    errno = ENOSPC;
    return bc_fail_errno(err,
                         "%s: needs %" PRIu64 " bytes, but the file system of folder %s has only "
                         "%" PRIu64 " free",
                         out->target.path, out->planned, out->target.folder, available);
}

/* Reads errno. */
static enum bitconv_status write_failure(const struct bc_out *out, struct bitconv_error *err)
{
    const int code = errno;
    uint64_t available;
    if ((code != ENOSPC && code != EDQUOT) || !free_space(out, &available)) {
        errno = code;
        return bc_fail_errno(err, "%s: writing failed after %" PRIu64 " bytes", out->target.path,
                             out->n_on_disk);
    }
    const uint64_t need = out->planned > out->n_accepted ? out->planned : out->n_accepted;
    errno = code;
    return bc_fail_errno(err,
                         "%s: writing failed after %" PRIu64 " of %s%" PRIu64
                         " bytes, with %" PRIu64 " bytes free in folder %s",
                         out->target.path, out->n_on_disk, out->planned == 0 ? "at least " : "",
                         need, available, out->target.folder);
}

/* Writes everything, through interruptions and short writes. */
static enum bitconv_status write_all(struct bc_out *out, const uint8_t *data, size_t size,
                                     struct bitconv_error *err)
{
    while (size > 0) {
        const ssize_t n = write(out->fd, data, size < MAX_WRITE ? size : MAX_WRITE);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; /* no progress: trying again could go on for ever */
        if (n <= 0) {
            out->failed = true;
            return write_failure(out, err);
        }
        data += n;
        size -= (size_t)n;
        out->n_on_disk += (uint64_t)n;
    }
    return BITCONV_OK;
}

static enum bitconv_status flush_pending(struct bc_out *out, struct bitconv_error *err)
{
    const size_t n = out->n_pending;
    out->n_pending = 0;
    return write_all(out, out->pending, n, err);
}

enum bitconv_status bc_out_write(struct bc_out *out, const void *data, size_t size,
                                 struct bitconv_error *err)
{
    if (size == 0) return BITCONV_OK;
    out->n_accepted += size;
    if (size > PENDING_SIZE - out->n_pending) BC_TRY(flush_pending(out, err));
    if (size >= PENDING_SIZE) return write_all(out, data, size, err);
    memcpy(out->pending + out->n_pending, data, size);
    out->n_pending += size;
    return BITCONV_OK;
}

uint64_t bc_out_tell(const struct bc_out *out)
{
    return out->n_accepted;
}

bool bc_out_is_file(const struct bc_out *out)
{
    return !out->target.direct;
}

enum bitconv_status bc_out_pwrite(struct bc_out *out, uint64_t offset, const void *data,
                                  size_t size, struct bitconv_error *err)
{
    const uint8_t *bytes = data;
    uint64_t end;
    if (out->target.direct || !bc_add_u64(offset, size, &end) || end > out->n_accepted)
        return bc_fail(err, BITCONV_E_BUG,
                       "%s: bytes %" PRIu64 " to %" PRIu64 " cannot be overwritten",
                       out->target.path, offset, offset + size);
    BC_TRY(flush_pending(out, err));
    while (size > 0) {
        const ssize_t n =
            pwrite(out->fd, bytes, size < MAX_WRITE ? size : MAX_WRITE, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) {
            out->failed = true;
            return write_failure(out, err);
        }
        bytes += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return BITCONV_OK;
}

/* ---- hidden names ---- */

/* Calls `make` with new hidden names until one is free; the name stays in out->hidden. Returns
 * false with errno set when it cannot be done. */
static bool with_hidden_name(struct bc_out *out, bool (*make)(struct bc_out *out, const char *name))
{
    for (int attempt = 0; attempt < MAX_NAME_ATTEMPTS; attempt++) {
        char *const name = bc_hidden_name(out->target.base, attempt);
        if (name == NULL) {
            errno = ENOMEM;
            return false;
        }
        if (make(out, name)) {
            out->hidden = name;
            return true;
        }
        const int code = errno;
        bc_free(name);
        errno = code;
        if (code != EEXIST) return false;
    }
    return false;
}

/* ---- opening ---- */

static bool create_named(struct bc_out *out, const char *name)
{
    const int fd =
        openat(out->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, out->target.mode);
    if (fd < 0) return false;
    bc_hidden_lock(fd);
    /* Another run may have taken the file for a stale one before it was locked. */
    if (!bc_hidden_names_fd(out->dir_fd, name, fd)) {
        (void)close(fd);
        errno = EEXIST;
        return false;
    }
    out->fd = fd;
    return true;
}

/* True when the unnamed file can be reached for linking. */
static bool has_proc_link(int fd)
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    struct stat by_name, by_fd;
    return stat(link, &by_name) == 0 && fstat(fd, &by_fd) == 0 && by_name.st_dev == by_fd.st_dev &&
           by_name.st_ino == by_fd.st_ino;
}

static bool create_unnamed(struct bc_out *out)
{
#ifdef O_TMPFILE
    const int fd = openat(out->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, out->target.mode);
    if (fd < 0) return false;
    if (!has_proc_link(fd)) {
        (void)close(fd);
        return false;
    }
    bc_hidden_lock(fd);
    out->fd = fd;
    return true;
#else
    (void)out;
    (void)has_proc_link;
    return false;
#endif
}

static enum bitconv_status open_direct(struct bc_out *out, struct bitconv_error *err)
{
    /* O_APPEND: /dev/stdout may be a regular file that already holds something. */
    out->fd = open(out->target.path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (out->fd < 0)
        return bc_fail_errno(err, "%s: cannot be opened for writing", out->target.path);
    return BITCONV_OK;
}

static enum bitconv_status open_in_folder(struct bc_out *out, struct bitconv_error *err)
{
    const struct bc_out_target *const target = &out->target;
    out->dir_fd = open(target->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->dir_fd < 0)
        return bc_fail_errno(err, "%s: folder %s cannot be opened", target->path, target->folder);
    BC_TRY(check_space(out, err));
    bc_hidden_remove_stale(out->dir_fd, target->base);
    /* Whatever the reason against an unnamed file, a named one is tried: its errno is the plain
     * one. */
    if (out->method != BC_OUT_NAMED && !create_unnamed(out)) out->method = BC_OUT_NAMED;
    if (out->method == BC_OUT_NAMED && !with_hidden_name(out, create_named))
        return bc_fail_errno(err, "%s: no file can be created in folder %s", target->path,
                             target->folder);
    /* umask does not apply to the permissions of a file that is replaced. Not every file system has
     * permissions, so a failure is none. */
    if (target->exists) (void)fchmod(out->fd, target->mode);
    return BITCONV_OK;
}

/* Closes and frees everything; a partial file stays. */
static void release(struct bc_out *out)
{
    if (out->fd >= 0) (void)close(out->fd);
    if (out->dir_fd >= 0) (void)close(out->dir_fd);
    bc_free(out->hidden);
    bc_free(out->pending);
    bc_out_target_release(&out->target);
    bc_free(out);
}

void bc_out_abort(struct bc_out *out)
{
    if (out == NULL) return;
    if (out->hidden != NULL) (void)unlinkat(out->dir_fd, out->hidden, 0);
    release(out);
}

enum bitconv_status bc_out_open_with(const char *path, const struct bc_out_options *options,
                                     enum bc_out_method method, struct bc_out **out_ret,
                                     struct bitconv_error *err)
{
    *out_ret = NULL;
    struct bc_out *const out = bc_alloc_array(1, sizeof *out);
    if (out == NULL) return bc_fail_nomem(err, "output");
    out->method = method;
    out->force = options->force;
    out->planned = options->size;
    out->fd = out->dir_fd = -1;
    out->pending = bc_alloc_array(PENDING_SIZE, 1);
    enum bitconv_status status = out->pending == NULL
                                     ? bc_fail_nomem(err, "output buffer")
                                     : bc_out_target_find(path, options, &out->target, err);
    if (status == BITCONV_OK)
        status = out->target.direct ? open_direct(out, err) : open_in_folder(out, err);
    if (status != BITCONV_OK) {
        bc_out_abort(out);
        return status;
    }
    *out_ret = out;
    return BITCONV_OK;
}

enum bitconv_status bc_out_open(const char *path, const struct bc_out_options *options,
                                struct bc_out **out, struct bitconv_error *err)
{
    return bc_out_open_with(path, options, BC_OUT_UNNAMED, out, err);
}

enum bitconv_status bc_out_probe(const char *path, const struct bc_out_options *options,
                                 struct bitconv_error *err)
{
    struct bc_out *out = NULL;
    BC_TRY(bc_out_open(path, options, &out, err));
    bc_out_abort(out);
    return BITCONV_OK;
}

/* ---- commit ---- */

/* fsync; some file systems have no such thing, which is no failure. */
static bool sync_fd(int fd)
{
    while (fsync(fd) != 0) {
        if (errno == EINVAL || errno == ENOTSUP || errno == ENOSYS) return true;
        if (errno != EINTR) return false;
    }
    return true;
}

/* Brings up write errors that the system holds back until close (NFS), before the file gets its
 * name. Closing a duplicate does that and keeps the lock. */
static bool close_check(int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return errno == EMFILE; /* no descriptor left says nothing about the file */
    return close(copy) == 0 || errno == EINTR;
}

static bool link_unnamed(struct bc_out *out, const char *name)
{
    char link[64];
    if (out->method == BC_OUT_COPIED) {
        errno = ENOENT;
        return false;
    }
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", out->fd);
    return linkat(AT_FDCWD, link, out->dir_fd, name, AT_SYMLINK_FOLLOW) == 0;
}

static enum bitconv_status appeared(const struct bc_out *out, struct bitconv_error *err)
{
    return bc_fail(err, BITCONV_E_ARG,
                   "%s: was created by somebody else in the meantime: use --force to replace it",
                   out->target.path);
}

static enum bitconv_status publish_failure(const struct bc_out *out, struct bitconv_error *err)
{
    return bc_fail_errno(err, "%s: the finished file cannot be given its name", out->target.path);
}

/* Copies the unnamed file, which turned out not to be linkable, to a hidden name. */
static enum bitconv_status copy_to_named(struct bc_out *out, struct bitconv_error *err)
{
    const int from = out->fd;
    const uint64_t size = out->n_on_disk;
    out->fd = -1;
    enum bitconv_status status = BITCONV_OK;
    if (!with_hidden_name(out, create_named)) status = publish_failure(out, err);
    out->n_on_disk = 0;
    while (status == BITCONV_OK && out->n_on_disk < size) {
        const ssize_t n = pread(from, out->pending, PENDING_SIZE, (off_t)out->n_on_disk);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        status = n > 0 ? write_all(out, out->pending, (size_t)n, err) : publish_failure(out, err);
    }
    (void)close(from);
    if (status == BITCONV_OK && !sync_fd(out->fd)) status = publish_failure(out, err);
    if (status == BITCONV_OK && out->target.exists) (void)fchmod(out->fd, out->target.mode);
    return status;
}

/* Gives the hidden file its final name. */
static enum bitconv_status rename_hidden(struct bc_out *out, struct bitconv_error *err)
{
    const char *const base = out->target.base;
    if (!out->force) {
        /* A hard link, unlike rename(), never replaces. */
        if (linkat(out->dir_fd, out->hidden, out->dir_fd, base, 0) == 0) {
            (void)unlinkat(out->dir_fd, out->hidden, 0);
            bc_free(out->hidden);
            out->hidden = NULL;
            return BITCONV_OK;
        }
        if (errno == EEXIST) return appeared(out, err);
        /* A file system without hard links: look, then rename. */
        struct stat st;
        if (fstatat(out->dir_fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0) return appeared(out, err);
    }
    if (renameat(out->dir_fd, out->hidden, out->dir_fd, base) != 0)
        return publish_failure(out, err);
    bc_free(out->hidden);
    out->hidden = NULL;
    return BITCONV_OK;
}

static enum bitconv_status publish(struct bc_out *out, struct bitconv_error *err)
{
    if (out->hidden == NULL) {
        if (link_unnamed(out, out->target.base)) return BITCONV_OK;
        /* EEXIST: the name is taken, so the way there leads through a hidden one. All else: this
         * file cannot be linked. */
        if (errno != EEXIST || !with_hidden_name(out, link_unnamed))
            BC_TRY(copy_to_named(out, err));
    }
    return rename_hidden(out, err);
}

static enum bitconv_status finish(struct bc_out *out, struct bitconv_error *err)
{
    const char *const path = out->target.path;
    if (out->failed) return bc_fail(err, BITCONV_E_IO, "%s: an earlier write failed", path);
    BC_TRY(flush_pending(out, err));
    if (out->target.direct) {
        const int fd = out->fd;
        out->fd = -1;
        if (close(fd) != 0) return bc_fail_errno(err, "%s: closing failed", path);
        return BITCONV_OK;
    }
    if (!sync_fd(out->fd) || !close_check(out->fd)) return write_failure(out, err);
    BC_TRY(publish(out, err));
    if (!sync_fd(out->dir_fd))
        return bc_fail_errno(err, "%s: written, but its folder cannot be synced", path);
    return BITCONV_OK;
}

enum bitconv_status bc_out_sync(struct bc_out *out, struct bitconv_error *err)
{
    if (out->failed)
        return bc_fail(err, BITCONV_E_IO, "%s: an earlier write failed", out->target.path);
    BC_TRY(flush_pending(out, err));
    if (out->target.direct) return BITCONV_OK;
    if (!sync_fd(out->fd) || !close_check(out->fd)) {
        out->failed = true;
        return write_failure(out, err);
    }
    return BITCONV_OK;
}

enum bitconv_status bc_out_commit(struct bc_out *out, struct bitconv_error *err)
{
    const enum bitconv_status status = finish(out, err);
    bc_out_abort(out); /* after success there is no hidden name left to remove */
    return status;
}

enum bitconv_status bc_file_write(const char *path, const void *data, size_t size, bool force,
                                  struct bitconv_error *err)
{
    const struct bc_out_options options = {.force = force, .size = size};
    struct bc_out *out;
    BC_TRY(bc_out_open(path, &options, &out, err));
    const enum bitconv_status status = bc_out_write(out, data, size, err);
    if (status != BITCONV_OK) {
        bc_out_abort(out);
        return status;
    }
    return bc_out_commit(out, err);
}
