/* SPDX-License-Identifier: MIT
 * Files: read-only maps and atomic output. file*.c are the only ones that talk POSIX about files.
 */
#ifndef BC_BASE_FILE_H
#define BC_BASE_FILE_H

#include "base/error.h"

/* A read-only map of a whole file. An empty file has data != NULL and size 0. */
struct bc_file {
    const uint8_t *data;
    uint64_t size;
    char *path; /* owned copy, for messages */
    uint64_t dev, ino;
};

/* Maps `path`. A directory, FIFO or device is refused. On failure *file is zeroed. */
enum bitconv_status bc_file_open(const char *path, struct bc_file *file, struct bitconv_error *err);
void bc_file_close(struct bc_file *file); /* zeroed file: nothing happens */
/* Tells the kernel that [offset, offset+size) will not be needed soon. Advisory. */
void bc_file_done_with(const struct bc_file *file, uint64_t offset, uint64_t size);

enum bc_path_kind { BC_PATH_NONE, BC_PATH_FILE, BC_PATH_DIR, BC_PATH_OTHER };
enum bc_path_kind bc_path_kind(const char *path);
/* "dir/name" into a fresh string (bc_free); NULL when out of memory. */
char *bc_path_join(const char *dir, const char *name);
/* What stands behind the last slash of a path, which owns it; all of it where nothing does. */
const char *bc_path_base(const char *path);
/* The base name of the directory's real path ("." and symlinks resolved, trailing slashes
 * ignored); bc_free; NULL on failure. */
char *bc_path_real_base(const char *path);
/* Names of the entries of a directory, sorted bytewise, "." and ".." left out. Free each name and
 * the array with bc_free. */
enum bitconv_status bc_dir_list(const char *path, char ***out_names, size_t *out_n,
                                struct bitconv_error *err);

/* What a file that is not what its name says really is, for messages: "a Git LFS pointer (135
 * bytes; real size 1178623988): run `git lfs pull`", "an HTML page", "empty", "a gzip file", "a
 * PyTorch zip/pickle checkpoint", "a GGUF file", ... or NULL when nothing is recognised. `buf` of
 * `buf_size` bytes holds the answer. */
const char *bc_file_guess(const uint8_t *data, uint64_t size, char *buf, size_t buf_size);

/* Atomic output. The bytes go to an unnamed file (O_TMPFILE) in the target's folder where the file
 * system can, else to a locked ".NAME.XXXXXX.partial"; commit syncs and renames it into place, so a
 * crash, a full disk or SIGKILL leaves an old file of that name untouched and no litter. Character
 * devices and FIFOs (/dev/null, /dev/full, /dev/stdout) are written to directly. */
struct bc_out;
struct bc_out_options {
    bool force;    /* replace an existing regular file; else its presence is an error */
    uint64_t size; /* final size when known, else 0: free space is checked against it first */
    const struct bc_file *const *inputs; /* refuse when the target is one of these (same inode) */
    size_t n_inputs;
    /* The same for inputs that are not open: files, and folders of which no file is replaced;
     * NULL is none. */
    const char *const *input_paths;
    size_t n_input_paths;
};
enum bitconv_status bc_out_open(const char *path, const struct bc_out_options *options,
                                struct bc_out **out, struct bitconv_error *err);
/* Whether bc_out_open would succeed: to be asked before long work. Leaves nothing behind. */
enum bitconv_status bc_out_probe(const char *path, const struct bc_out_options *options,
                                 struct bitconv_error *err);
/* Whether two outputs would be one file: the same name in the same folder behind their symlinks,
 * whether anything is there yet or not. False where a folder is missing, which the opening of the
 * output tells. Hard links are two outputs: a rename replaces one of them. */
bool bc_out_same(const char *a, const char *b);
/* Appends. Not for concurrent use. */
enum bitconv_status bc_out_write(struct bc_out *out, const void *data, size_t size,
                                 struct bitconv_error *err);
uint64_t bc_out_tell(const struct bc_out *out);
/* False for devices, pipes and open descriptors, which take bytes once and in order. */
bool bc_out_is_file(const struct bc_out *out);
/* Overwrites bytes that were written before (a header whose values were not known yet): the range
 * must lie below bc_out_tell. Files only. */
enum bitconv_status bc_out_pwrite(struct bc_out *out, uint64_t offset, const void *data,
                                  size_t size, struct bitconv_error *err);
/* Flushes and syncs: what can still fail for lack of space or a bad disk. For sets of files that
 * are to appear all or not at all: sync each, then commit each. */
enum bitconv_status bc_out_sync(struct bc_out *out, struct bitconv_error *err);
/* Flushes, syncs, renames into place, and frees `out` whether or not it worked. */
enum bitconv_status bc_out_commit(struct bc_out *out, struct bitconv_error *err);
/* Drops everything written; NULL is fine. */
void bc_out_abort(struct bc_out *out);

/* A small file in one call (atomic as above). */
enum bitconv_status bc_file_write(const char *path, const void *data, size_t size, bool force,
                                  struct bitconv_error *err);

/* Atomic output of a whole folder: it is filled under the hidden name ".NAME.XXXXXX.partial" beside
 * the target and renamed when complete; abort removes it, and the next open for the same target
 * removes what killed runs left behind. */
struct bc_out_folder;
struct bc_out_folder_options {
    bool force; /* replace a folder that is there, if `replaceable` accepts all that it holds */
    /* Is `name` an entry that may be deleted with an old folder? Its entries are looked at as well
     * ("1_Pooling/config.json"), deeper ones are refused. */
    bool (*replaceable)(const char *name);
};
/* `path` must not exist, or be an empty folder, or a folder that may be replaced. */
enum bitconv_status bc_out_folder_open(const char *path,
                                       const struct bc_out_folder_options *options,
                                       struct bc_out_folder **out, struct bitconv_error *err);
/* Where to write the files meanwhile. */
const char *bc_out_folder_path(const struct bc_out_folder *folder);
/* Makes a folder inside. */
enum bitconv_status bc_out_folder_mkdir(struct bc_out_folder *folder, const char *name,
                                        struct bitconv_error *err);
/* Syncs and renames into place, and frees `folder` whether or not it worked. */
enum bitconv_status bc_out_folder_commit(struct bc_out_folder *folder, struct bitconv_error *err);
/* Removes everything written; NULL is fine. */
void bc_out_folder_abort(struct bc_out_folder *folder);

#endif
