/* SPDX-License-Identifier: MIT
 * Tests of base/file.h: maps, paths, naming of files, atomic output by each of its methods. */
#define _GNU_SOURCE /* unshare, for a disk that is really full */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/file_internal.h"
#include "base/mem.h"
#include "support/temp_dir.h"

static const enum bc_out_method methods[] = {BC_OUT_UNNAMED, BC_OUT_COPIED, BC_OUT_NAMED};
enum { N_METHODS = sizeof methods / sizeof methods[0] };

/* The names in a folder, joined by blanks; "?" when it cannot be read. */
static const char *listing(const char *dir)
{
    static char text[1024];
    char **names;
    size_t n;
    text[0] = '\0';
    if (bc_dir_list(dir, &names, &n, NULL) != BITCONV_OK) return "?";
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " " : "", names[i]);
        bc_free(names[i]);
    }
    bc_free(names);
    return text;
}

/* True when the file holds exactly that text. */
static bool holds(const char *path, const char *text)
{
    struct bc_file file;
    if (bc_file_open(path, &file, NULL) != BITCONV_OK) return false;
    const bool same = file.size == strlen(text) && memcmp(file.data, text, strlen(text)) == 0;
    bc_file_close(&file);
    return same;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* Stands in for the C library's, so that tests can count calls and make them fail. */
static int n_syncs;
static int sync_errno; /* 0: works */

int fsync(int fd)
{
    n_syncs++;
    if (sync_errno == 0) return (int)syscall(SYS_fsync, fd);
    errno = sync_errno;
    return -1;
}

/* ---- reading ---- */

static void test_open_maps_the_bytes(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "data");
    uint8_t *const bytes = bc_alloc_array(100003, 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < 100003; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 256);
    temp_dir_write(dir, "data", bytes, 100003);

    struct bc_file file;
    struct bitconv_error err = {0};
    assert_int_equal(bc_file_open(path, &file, &err), BITCONV_OK);
    assert_true(file.size == 100003);
    assert_string_equal(file.path, path);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(file.ino == (uint64_t)st.st_ino && file.dev == (uint64_t)st.st_dev);
    assert_memory_equal(file.data, bytes, 100003);
    /* Advice must never change what is read, however odd the range. */
    static const uint64_t ranges[][2] = {{0, 100003},     {1, 5},          {4095, 4098},
                                         {4096, 8192},    {99999, 4},      {99999, UINT64_MAX},
                                         {100003, 1},     {UINT64_MAX, 1}, {UINT64_MAX, UINT64_MAX},
                                         {0, UINT64_MAX}, {50000, 0}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        bc_file_done_with(&file, ranges[i][0], ranges[i][1]);
        assert_memory_equal(file.data, bytes, 100003);
    }
    bc_file_close(&file);
    assert_null(file.data);
    assert_null(file.path);
    bc_file_close(&file);
    bc_free(bytes);
    free(path);
    temp_dir_remove(dir);
}

static void test_open_empty(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "empty");
    temp_dir_puts(dir, "empty", "");
    struct bc_file file;
    assert_int_equal(bc_file_open(path, &file, NULL), BITCONV_OK);
    assert_non_null(file.data);
    assert_true(file.size == 0);
    bc_file_done_with(&file, 0, 10);
    bc_file_close(&file);
    free(path);
    temp_dir_remove(dir);
}

static void expect_no_open(const char *path, enum bitconv_status status, const char *reason)
{
    struct bc_file file;
    memset(&file, 0xa5, sizeof file);
    struct bitconv_error err = {0};
    assert_int_equal(bc_file_open(path, &file, &err), status);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, reason));
    assert_null(file.data);
    assert_null(file.path);
}

static void test_open_refuses(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "x");
    expect_no_open(path, BITCONV_E_IO, "No such file");
    expect_no_open(dir, BITCONV_E_ARG, "is a folder");
    expect_no_open("/dev/null", BITCONV_E_ARG, "is a device");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_no_open(path, BITCONV_E_ARG, "pipe"); /* and does not wait for a writer */
    assert_int_equal(unlink(path), 0);
    temp_dir_puts(dir, "x", "secret");
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) expect_no_open(path, BITCONV_E_IO, "Permission denied");
    free(path);
    temp_dir_remove(dir);
}

/* ---- paths ---- */

static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *dir, *name, *joined;
    } joins[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}};
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        char *const joined = bc_path_join(joins[i].dir, joins[i].name);
        assert_string_equal(joined, joins[i].joined);
        bc_free(joined);
    }
    char *const dir = temp_dir_new();
    temp_dir_puts(dir, "Model-1/config.json", "{}");
    char *const link = temp_dir_path(dir, "link");
    assert_int_equal(symlink("Model-1", link), 0);
    static const char *const forms[] = {"Model-1", "Model-1///", "link",
                                        "link/",   "link/.",     "Model-1/../link"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char *const path = temp_dir_path(dir, forms[i]);
        char *const base = bc_path_real_base(path);
        assert_string_equal(base, "Model-1");
        assert_int_equal(bc_path_kind(path), BC_PATH_DIR);
        bc_free(base);
        free(path);
    }
    char *const root = bc_path_real_base("/");
    assert_string_equal(root, "");
    bc_free(root);
    assert_null(bc_path_real_base("/no/such/folder"));

    char *const file = temp_dir_path(dir, "Model-1/config.json");
    assert_int_equal(bc_path_kind(file), BC_PATH_FILE);
    assert_int_equal(bc_path_kind("/dev/null"), BC_PATH_OTHER);
    assert_int_equal(bc_path_kind("/no/such/folder"), BC_PATH_NONE);
    free(file);
    free(link);
    temp_dir_remove(dir);
}

static void test_dir_list(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    assert_string_equal(listing(dir), "");
    static const char *const names[] = {"b", "a10", "a2", "B", ".hidden", "sub/x"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        temp_dir_puts(dir, names[i], "");
    assert_string_equal(listing(dir), ".hidden B a10 a2 b sub");
    struct bitconv_error err = {0};
    char **list;
    size_t n;
    assert_int_equal(bc_dir_list("/no/such/folder", &list, &n, &err), BITCONV_E_IO);
    assert_null(list);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.text, "/no/such/folder"));
    temp_dir_remove(dir);
}

static void test_guess(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *guess;
    } cases[] = {
#define BYTES(s) s, sizeof s - 1
        {BYTES(""), "empty"},
        {BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:01\nsize 1178623988\n"),
         "a Git LFS pointer (73 bytes; real size 1178623988): run `git lfs pull`"},
        {BYTES("version https://git-lfs.github.com/spec/v1\n"),
         "a Git LFS pointer (43 bytes): run `git lfs pull`"},
        {BYTES("version https://git-lfs.github.com/spec/v1\nsize 99999999999999999999999\n"),
         "a Git LFS pointer (72 bytes): run `git lfs pull`"},
        {BYTES("  <!DocType HTML>"), "an HTML page (a web page was saved in place of the file)"},
        {BYTES("<html lang=\"en\">"), "an HTML page (a web page was saved in place of the file)"},
        {BYTES("<?xml version=\"1.0\"?>"), "an XML document (an error message of a server?)"},
        {BYTES("\x1f\x8b\x08"), "a gzip file"},
        {BYTES("PK\x03\x04............................archive/data.pkl"),
         "a PyTorch zip checkpoint"},
        {BYTES("PK\x03\x04............................word/document.xml"), "a zip archive"},
        {BYTES("\x80\x02}q\x01"), "a PyTorch pickle checkpoint"},
        {BYTES("GGUF\x03\0\0\0"), "a GGUF file"},
        {BYTES("\x02\0\0\0\0\0\0\0{}"), "a safetensors file"},
        {BYTES("\xff\0\0\0\0\0\0\0{}"), NULL}, /* a header longer than the file */
        {BYTES("\xef\xbb\xbf\n[1]"), "a JSON text"},
        {BYTES(" {\"a\":1}"), "a JSON text"},
        {BYTES("\0\0\0\0\0\0"), "a run of zero bytes (an unfinished download?)"},
        {BYTES("\r\n \t"), "nothing but blanks"},
        {BYTES("hello"), NULL},
        {BYTES("G"), NULL},
#undef BYTES
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[160];
        /* A copy of exactly that size: the guess may not look further. */
        uint8_t *const copy = bc_alloc_array(cases[i].size, 1);
        assert_non_null(copy);
        memcpy(copy, cases[i].bytes, cases[i].size);
        const char *const guess = bc_file_guess(copy, cases[i].size, buf, sizeof buf);
        if (cases[i].guess == NULL)
            assert_null(guess);
        else
            assert_string_equal(guess, cases[i].guess);
        bc_free(copy);
    }
}

/* ---- atomic output ---- */

static enum bitconv_status write_text(const char *path, const struct bc_out_options *options,
                                      enum bc_out_method method, const char *text,
                                      struct bitconv_error *err)
{
    struct bc_out *out;
    BC_TRY(bc_out_open_with(path, options, method, &out, err));
    const enum bitconv_status status = bc_out_write(out, text, strlen(text), err);
    if (status == BITCONV_OK) return bc_out_commit(out, err);
    bc_out_abort(out);
    return status;
}

static void test_write_new_file(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out.gguf");
        const struct bc_out_options options = {.size = 5};
        struct bitconv_error err = {0};
        const mode_t mask = umask(027);
        const enum bitconv_status status = write_text(path, &options, methods[m], "hello", &err);
        (void)umask(mask);
        if (status != BITCONV_OK) fail_msg("%s", err.text);
        assert_true(holds(path, "hello"));
        assert_int_equal(mode_of(path), 0640);
        assert_string_equal(listing(dir), "out.gguf");
        free(path);
        temp_dir_remove(dir);
    }
}

static void test_nothing_shows_before_commit(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        const struct bc_out_options options = {.force = true};
        struct bc_out *out;
        assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, NULL), BITCONV_OK);
        assert_int_equal(bc_out_write(out, "half", 4, NULL), BITCONV_OK);
        assert_int_equal(bc_path_kind(path), BC_PATH_NONE);
        bc_out_abort(out);
        assert_string_equal(listing(dir), "");

        temp_dir_puts(dir, "out", "old");
        assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, NULL), BITCONV_OK);
        assert_int_equal(bc_out_write(out, "half", 4, NULL), BITCONV_OK);
        assert_true(holds(path, "old"));
        bc_out_abort(out);
        assert_true(holds(path, "old"));
        assert_string_equal(listing(dir), "out");
        free(path);
        temp_dir_remove(dir);
    }
    bc_out_abort(NULL);
}

/* Sizes around the buffer's, mixed: the file is the concatenation of all that was written. */
static void test_write_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,      0,      262143, 1, 262144, 5, 262145, 262143, 262143,
                                   700000, 100000, 100000, 3, 262144, 1, 262144, 1 << 20};
    const size_t n_sizes = sizeof sizes / sizeof sizes[0];
    uint8_t *const bytes = bc_alloc_array(4 << 20, 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < (4 << 20); i++)
        bytes[i] = (uint8_t)(i * 13 + i / 509);
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        const struct bc_out_options options = {.force = false};
        struct bc_out *out;
        assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, NULL), BITCONV_OK);
        size_t total = 0;
        for (size_t i = 0; i < n_sizes; i++) {
            assert_int_equal(bc_out_write(out, bytes + total, sizes[i], NULL), BITCONV_OK);
            total += sizes[i];
            assert_true(bc_out_tell(out) == total);
        }
        assert_int_equal(bc_out_commit(out, NULL), BITCONV_OK);
        struct bc_file file;
        assert_int_equal(bc_file_open(path, &file, NULL), BITCONV_OK);
        assert_true(file.size == total);
        assert_memory_equal(file.data, bytes, total);
        bc_file_close(&file);
        free(path);
        temp_dir_remove(dir);
    }
    bc_free(bytes);
}

/* A header that is filled in at the end, with the data behind it partly still in memory. */
static void test_overwrite(void **state)
{
    (void)state;
    static const uint8_t zeros[300000];
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        const struct bc_out_options options = {.force = false};
        struct bitconv_error err = {0};
        struct bc_out *out;
        assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, NULL), BITCONV_OK);
        assert_true(bc_out_is_file(out));
        assert_int_equal(bc_out_write(out, zeros, sizeof zeros, NULL), BITCONV_OK);
        assert_int_equal(bc_out_write(out, "tail", 4, NULL), BITCONV_OK);
        assert_int_equal(bc_out_pwrite(out, 0, "head", 4, NULL), BITCONV_OK);
        assert_int_equal(bc_out_pwrite(out, 300002, "IL", 2, NULL), BITCONV_OK);
        assert_true(bc_out_tell(out) == 300004);
        assert_int_equal(bc_out_pwrite(out, 300003, "xx", 2, &err), BITCONV_E_BUG);
        assert_int_equal(bc_out_pwrite(out, UINT64_MAX, "xx", 2, NULL), BITCONV_E_BUG);
        assert_int_equal(bc_out_write(out, "more", 4, NULL), BITCONV_OK); /* goes on at the end */
        n_syncs = 0;
        assert_int_equal(bc_out_sync(out, NULL), BITCONV_OK);
        assert_int_equal(n_syncs, 1);
        assert_int_equal(bc_path_kind(path), BC_PATH_NONE); /* synced, not yet published */
        assert_int_equal(bc_out_commit(out, NULL), BITCONV_OK);
        struct bc_file file;
        assert_int_equal(bc_file_open(path, &file, NULL), BITCONV_OK);
        assert_true(file.size == 300008);
        assert_memory_equal(file.data, "head\0\0", 6);
        assert_memory_equal(file.data + 299998, "\0\0taILmore", 10);
        bc_file_close(&file);
        free(path);
        temp_dir_remove(dir);
    }
    const struct bc_out_options options = {.force = false};
    struct bc_out *out;
    assert_int_equal(bc_out_open("/dev/null", &options, &out, NULL), BITCONV_OK);
    assert_false(bc_out_is_file(out));
    assert_int_equal(bc_out_write(out, "x", 1, NULL), BITCONV_OK);
    assert_int_equal(bc_out_pwrite(out, 0, "y", 1, NULL), BITCONV_E_BUG);
    assert_int_equal(bc_out_sync(out, NULL), BITCONV_OK);
    assert_int_equal(bc_out_commit(out, NULL), BITCONV_OK);
}

static void test_existing_file(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        temp_dir_puts(dir, "out", "old");
        assert_int_equal(chmod(path, 0464), 0);
        struct bitconv_error err = {0};
        struct bc_out_options options = {.force = false};
        assert_int_equal(write_text(path, &options, methods[m], "new", &err), BITCONV_E_ARG);
        assert_non_null(strstr(err.text, "exists already: use --force to replace it"));
        assert_true(holds(path, "old"));

        options.force = true;
        memset(&err, 0, sizeof err);
        if (write_text(path, &options, methods[m], "new", &err) != BITCONV_OK)
            fail_msg("%s", err.text);
        assert_true(holds(path, "new"));
        assert_int_equal(mode_of(path), 0464); /* as it was, whatever umask says */
        assert_string_equal(listing(dir), "out");
        free(path);
        temp_dir_remove(dir);
    }
}

/* The target appears while the output is being written. */
static void test_target_appears(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        for (int force = 0; force < 2; force++) {
            char *const dir = temp_dir_new();
            char *const path = temp_dir_path(dir, "out");
            const struct bc_out_options options = {.force = force != 0};
            struct bitconv_error err = {0};
            struct bc_out *out;
            assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, NULL), BITCONV_OK);
            assert_int_equal(bc_out_write(out, "ours", 4, NULL), BITCONV_OK);
            temp_dir_puts(dir, "out", "theirs");
            const enum bitconv_status status = bc_out_commit(out, &err);
            assert_int_equal(status, force != 0 ? BITCONV_OK : BITCONV_E_ARG);
            assert_true(holds(path, force != 0 ? "ours" : "theirs"));
            if (force == 0) assert_non_null(strstr(err.text, "in the meantime"));
            assert_string_equal(listing(dir), "out");
            free(path);
            temp_dir_remove(dir);
        }
    }
}

static void test_symlinks(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        temp_dir_puts(dir, "real/a", "old");
        char *const link = temp_dir_path(dir, "link");
        char *const second = temp_dir_path(dir, "second");
        char *const real = temp_dir_path(dir, "real/a");
        assert_int_equal(symlink("real/a", link), 0);
        assert_int_equal(symlink(link, second), 0); /* absolute, to a relative one */
        const struct bc_out_options force = {.force = true};
        assert_int_equal(write_text(second, &force, methods[m], "new", NULL), BITCONV_OK);
        assert_true(holds(real, "new"));
        struct stat st;
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));

        /* A link to nothing yet: that is where the file goes. */
        assert_int_equal(unlink(real), 0);
        const struct bc_out_options options = {.force = false};
        assert_int_equal(write_text(second, &options, methods[m], "fresh", NULL), BITCONV_OK);
        assert_true(holds(real, "fresh"));
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_string_equal(listing(dir), "link real second");

        assert_int_equal(unlink(link), 0);
        assert_int_equal(symlink("second", link), 0); /* a loop */
        struct bitconv_error err = {0};
        assert_int_equal(write_text(link, &force, methods[m], "x", &err), BITCONV_E_IO);
        assert_int_equal(err.sys_errno, ELOOP);
        free(link);
        free(second);
        free(real);
        temp_dir_remove(dir);
    }
}

static void test_output_is_an_input(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    temp_dir_puts(dir, "in", "weights");
    char *const in = temp_dir_path(dir, "in");
    char *const hard = temp_dir_path(dir, "hard");
    char *const soft = temp_dir_path(dir, "soft");
    assert_int_equal(link(in, hard), 0);
    assert_int_equal(symlink("in", soft), 0);
    struct bc_file file;
    assert_int_equal(bc_file_open(in, &file, NULL), BITCONV_OK);
    const struct bc_file other = {0};
    const struct bc_file *const inputs[] = {&other, &file};
    const struct bc_out_options options = {.force = true, .inputs = inputs, .n_inputs = 2};
    const char *const names[] = {in, hard, soft};
    for (size_t i = 0; i < 3; i++) {
        struct bitconv_error err = {0};
        struct bc_out *out;
        assert_int_equal(bc_out_open(names[i], &options, &out, &err), BITCONV_E_ARG);
        assert_null(out);
        assert_non_null(strstr(err.text, "is the same file as the input"));
    }
    bc_file_close(&file);
    assert_true(holds(in, "weights"));
    free(in);
    free(hard);
    free(soft);
    temp_dir_remove(dir);
}

static void expect_no_output(const char *path, const struct bc_out_options *options,
                             enum bitconv_status status, const char *reason)
{
    for (size_t m = 0; m < N_METHODS; m++) {
        struct bitconv_error err = {0};
        struct bc_out *out;
        assert_int_equal(bc_out_open_with(path, options, methods[m], &out, &err), status);
        assert_null(out);
        if (strstr(err.text, reason) == NULL) fail_msg("%s", err.text);
    }
}

static void test_impossible_targets(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const missing = temp_dir_path(dir, "no/such/out");
    char *const slash = temp_dir_path(dir, "new/");
    char *const below = temp_dir_path(dir, "file/out");
    temp_dir_puts(dir, "file", "");
    char long_name[300];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    char *const too_long = temp_dir_path(dir, long_name);
    char *const plain = temp_dir_path(dir, "out");
    const struct bc_out_options options = {.force = true};
    expect_no_output("", &options, BITCONV_E_ARG, "path is empty");
    expect_no_output(dir, &options, BITCONV_E_ARG, "is a folder");
    expect_no_output(slash, &options, BITCONV_E_ARG, "names a folder");
    expect_no_output(missing, &options, BITCONV_E_IO, "no/such cannot be opened: No such file");
    expect_no_output(below, &options, BITCONV_E_IO, "Not a directory");
    expect_no_output(too_long, &options, BITCONV_E_IO, "File name too long");

    const struct bc_out_options huge = {.size = UINT64_C(1) << 60};
    struct bitconv_error err = {0};
    struct bc_out *out;
    assert_int_equal(bc_out_open(plain, &huge, &out, &err), BITCONV_E_IO);
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_non_null(strstr(err.text, "out: needs 1152921504606846976 bytes, but the file system"));
    assert_non_null(strstr(err.text, dir));
    assert_string_equal(listing(dir), "file");

    assert_int_equal(chmod(dir, 0500), 0);
    if (geteuid() != 0) expect_no_output(plain, &options, BITCONV_E_IO, "Permission denied");
    free(missing);
    free(slash);
    free(below);
    free(too_long);
    free(plain);
    temp_dir_remove(dir);
}

/* The longest legal name must leave room for its hidden form. */
static void test_long_names(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, name);
        const struct bc_out_options options = {.force = true};
        for (int round = 0; round < 2; round++)
            assert_int_equal(write_text(path, &options, methods[m], "x", NULL), BITCONV_OK);
        assert_string_equal(listing(dir), name);
        free(path);
        temp_dir_remove(dir);
    }
}

static void test_relative_path(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(dir), 0);
    const struct bc_out_options options = {.force = false};
    struct bc_out *out;
    assert_int_equal(bc_out_open("here", &options, &out, NULL), BITCONV_OK);
    assert_int_equal(chdir(before), 0); /* where the folder is was settled when opening */
    assert_int_equal(bc_out_write(out, "x", 1, NULL), BITCONV_OK);
    assert_int_equal(bc_out_commit(out, NULL), BITCONV_OK);
    assert_string_equal(listing(dir), "here");
    temp_dir_remove(dir);
}

/* Partial files that a killed run left are removed; those of living writers and of other targets
 * are not. */
static void test_stale_partials(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    temp_dir_puts(dir, ".out.aaaaaa.partial", "stale");
    temp_dir_puts(dir, ".out.bbbbbb.partial", "locked");
    temp_dir_puts(dir, ".out.ccccccc.partial", "another pattern");
    temp_dir_puts(dir, ".out2.dddddd.partial", "another target");
    temp_dir_puts(dir, ".out.eeeeee.partial/x", "a stale folder");
    temp_dir_puts(dir, ".out.ggggggg.partial/x", "another pattern");
    char *const link = temp_dir_path(dir, ".out.ffffff.partial");
    assert_int_equal(symlink("victim", link), 0);
    temp_dir_puts(dir, "victim", "behind a link");
    char *const locked = temp_dir_path(dir, ".out.bbbbbb.partial");
    const int fd = open(locked, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);

    char *const path = temp_dir_path(dir, "out");
    const struct bc_out_options options = {.force = false};
    struct bc_out *out;
    assert_int_equal(bc_out_open_with(path, &options, BC_OUT_NAMED, &out, NULL), BITCONV_OK);
    /* A second writer of the same target leaves the first one's file alone. */
    struct bc_out *second;
    assert_int_equal(bc_out_open_with(path, &options, BC_OUT_NAMED, &second, NULL), BITCONV_OK);
    bc_out_abort(second);
    assert_int_equal(bc_out_write(out, "done", 4, NULL), BITCONV_OK);
    assert_int_equal(bc_out_commit(out, NULL), BITCONV_OK);
    assert_true(holds(path, "done"));
    assert_string_equal(listing(dir), ".out.bbbbbb.partial .out.ccccccc.partial "
                                      ".out.ffffff.partial .out.ggggggg.partial "
                                      ".out2.dddddd.partial out victim");
    assert_int_equal(close(fd), 0);
    free(path);
    free(link);
    free(locked);
    temp_dir_remove(dir);
}

/* A writer killed half way: the old file is whole, the next run leaves no litter. */
static void test_killed_writer(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        temp_dir_puts(dir, "out", "old");
        const struct bc_out_options options = {.force = true};
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct bc_out *out;
            static const char bytes[600000];
            if (bc_out_open_with(path, &options, methods[m], &out, NULL) == BITCONV_OK &&
                bc_out_write(out, bytes, sizeof bytes, NULL) == BITCONV_OK)
                (void)kill(getpid(), SIGKILL);
            _exit(1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_true(holds(path, "old"));
        if (methods[m] != BC_OUT_NAMED) assert_string_equal(listing(dir), "out");
        assert_int_equal(write_text(path, &options, methods[m], "new", NULL), BITCONV_OK);
        assert_true(holds(path, "new"));
        assert_string_equal(listing(dir), "out");
        free(path);
        temp_dir_remove(dir);
    }
}

static void test_direct_output(void **state)
{
    (void)state;
    const struct bc_out_options options = {.size = 100};
    assert_int_equal(write_text("/dev/null", &options, BC_OUT_UNNAMED, "x", NULL), BITCONV_OK);

    struct bitconv_error err = {0};
    assert_int_equal(write_text("/dev/full", &options, BC_OUT_UNNAMED, "x", &err), BITCONV_E_IO);
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_string_equal(err.text,
                        "/dev/full: writing failed after 0 bytes: No space left on device");
    struct stat st;
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode)); /* not replaced */

    char *const dir = temp_dir_new();
    char *const fifo = temp_dir_path(dir, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const int reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(write_text(fifo, &options, BC_OUT_UNNAMED, "through", NULL), BITCONV_OK);
    char text[16] = "";
    assert_int_equal(read(reader, text, sizeof text), 7);
    assert_string_equal(text, "through");
    assert_int_equal(close(reader), 0);
    free(fifo);
    temp_dir_remove(dir);
}

/* What /dev/stdout leads to when it is redirected to a file: written, not replaced. */
static void test_open_descriptor(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "redirected");
    char name[64];
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", fd);
    struct stat before, after;
    assert_int_equal(fstat(fd, &before), 0);
    const struct bc_out_options options = {.force = false};
    assert_int_equal(write_text(name, &options, BC_OUT_UNNAMED, "one ", NULL), BITCONV_OK);
    assert_int_equal(write_text(name, &options, BC_OUT_UNNAMED, "two", NULL), BITCONV_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_true(holds(path, "one two"));
    assert_int_equal(close(fd), 0);
    free(path);
    temp_dir_remove(dir);
}

/* The system refuses to write on at 1 MB: an error that names what happened, and nothing left. */
static void test_write_error(void **state)
{
    (void)state;
    struct rlimit old_limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    void (*const old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    uint8_t *const bytes = bc_alloc_array(1500000, 1);
    assert_non_null(bytes);
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        temp_dir_puts(dir, "out", "old");
        const struct bc_out_options options = {.force = true, .size = 1500000};
        struct bitconv_error err = {0};
        struct bc_out *out;
        assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, &err), BITCONV_OK);
        const struct rlimit limit = {1000000, old_limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const enum bitconv_status write_status = bc_out_write(out, bytes, 1500000, &err);
        /* Somebody who does not look at the result must not get a broken file. */
        const enum bitconv_status commit_status = bc_out_commit(out, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
        assert_int_equal(write_status, BITCONV_E_IO);
        assert_int_equal(commit_status, BITCONV_E_IO);
        assert_int_equal(err.sys_errno, EFBIG);
        assert_non_null(strstr(err.text, "out: writing failed after 1000000 bytes"));
        assert_true(holds(path, "old"));
        assert_string_equal(listing(dir), "out");
        free(path);
        temp_dir_remove(dir);
    }
    (void)signal(SIGXFSZ, old_handler);
    bc_free(bytes);
}

/* The data must be on the disk before the name points to it; a disk that fails then is an error, a
 * file system without fsync is none. */
static void test_sync(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_METHODS; m++) {
        char *const dir = temp_dir_new();
        char *const path = temp_dir_path(dir, "out");
        temp_dir_puts(dir, "out", "old");
        const struct bc_out_options options = {.force = true};
        struct bitconv_error err = {0};
        sync_errno = EIO;
        assert_int_equal(write_text(path, &options, methods[m], "new", &err), BITCONV_E_IO);
        assert_int_equal(err.sys_errno, EIO);
        /* A sync that failed once is not made good by a later one: the pages may be gone. */
        struct bc_out *out;
        assert_int_equal(bc_out_open_with(path, &options, methods[m], &out, NULL), BITCONV_OK);
        assert_int_equal(bc_out_write(out, "new", 3, NULL), BITCONV_OK);
        assert_int_equal(bc_out_sync(out, NULL), BITCONV_E_IO);
        sync_errno = 0;
        assert_int_equal(bc_out_commit(out, NULL), BITCONV_E_IO);
        assert_true(holds(path, "old"));
        assert_string_equal(listing(dir), "out");
        sync_errno = EINVAL;
        assert_int_equal(write_text(path, &options, methods[m], "new", NULL), BITCONV_OK);
        assert_true(holds(path, "new"));
        sync_errno = 0;
        n_syncs = 0;
        assert_int_equal(write_text(path, &options, methods[m], "newer", NULL), BITCONV_OK);
        assert_true(n_syncs >= 2); /* the file and its folder */
        free(path);
        temp_dir_remove(dir);
    }
}

static void ignore_signal(int signal_number)
{
    (void)signal_number;
}

enum { PIPED_SIZE = 3000000 };

static uint8_t piped_byte(size_t i)
{
    return (uint8_t)(i * 7 + i / 1021);
}

/* Reads all of a FIFO; the exit status tells whether it was what should come. */
static int read_piped(const char *fifo)
{
    static uint8_t bytes[PIPED_SIZE + 1];
    const int fd = open(fifo, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t n;
    do {
        /* Slowly, so that the writer is also interrupted while the pipe is full. */
        const struct timespec pause = {0, 50000};
        (void)nanosleep(&pause, NULL);
        const size_t room = sizeof bytes - size;
        n = read(fd, bytes + size, room < 30011 ? room : 30011);
        if (n > 0) size += (size_t)n;
    } while (n > 0);
    if (size != PIPED_SIZE) return 1;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != piped_byte(i)) return 2;
    }
    return 0;
}

/* Writes to a pipe are cut short and interrupted by a timer; nothing may get lost or come twice. */
static void test_interrupted_writes(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const fifo = temp_dir_path(dir, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(read_piped(fifo));
    uint8_t *const bytes = bc_alloc_array(PIPED_SIZE, 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < PIPED_SIZE; i++)
        bytes[i] = piped_byte(i);

    const struct bc_out_options options = {.size = PIPED_SIZE};
    struct bc_out *out;
    assert_int_equal(bc_out_open(fifo, &options, &out, NULL), BITCONV_OK);
    struct sigaction interrupt = {.sa_handler = ignore_signal}, before;
    assert_int_equal(sigaction(SIGALRM, &interrupt, &before), 0); /* no SA_RESTART */
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    const enum bitconv_status write_status = bc_out_write(out, bytes, PIPED_SIZE, NULL);
    const enum bitconv_status commit_status = bc_out_commit(out, NULL);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(write_status, BITCONV_OK);
    assert_int_equal(commit_status, BITCONV_OK);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    bc_free(bytes);
    free(fifo);
    temp_dir_remove(dir);
}

static bool write_proc(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && written;
}

/* Lets the process mount for itself alone: as root, or as root of a user namespace of its own. */
static bool enter_mount_namespace(void)
{
    char uid_map[64], gid_map[64];
    (void)snprintf(uid_map, sizeof uid_map, "0 %ld 1", (long)geteuid());
    (void)snprintf(gid_map, sizeof gid_map, "0 %ld 1", (long)getegid());
    if (unshare(CLONE_NEWNS) != 0 &&
        (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write_proc("/proc/self/setgroups", "deny") ||
         !write_proc("/proc/self/uid_map", uid_map) || !write_proc("/proc/self/gid_map", gid_map)))
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* In a child with a file system of its own, of 1 MiB. Returns 77 where that is not allowed, 0 when
 * everything was as it should be, else the number of the check that failed. */
static int fill_a_disk(const char *dir)
{
    if (!enter_mount_namespace()) return 77;
    if (mount("bitconv-test", dir, "tmpfs", 0, "size=1m") != 0) return 77;
    static const uint8_t bytes[1500000];
    char *const path = bc_path_join(dir, "out");
    if (path == NULL) return 1;
    if (bc_file_write(path, "old", 3, false, NULL) != BITCONV_OK) return 2;
    int result = 0;
    for (size_t m = 0; m < N_METHODS && result == 0; m++) {
        struct bitconv_error err = {0};
        struct bc_out_options options = {.force = true, .size = sizeof bytes};
        struct bc_out *out;
        /* Known in advance: refused before anything is written, with both numbers. */
        if (bc_out_open_with(path, &options, methods[m], &out, &err) != BITCONV_E_IO) result = 3;
        if (strstr(err.text, "needs 1500000 bytes") == NULL) result = 4;
        /* Not known in advance: refused when it happens. */
        memset(&err, 0, sizeof err);
        options.size = 0;
        if (bc_out_open_with(path, &options, methods[m], &out, &err) != BITCONV_OK) return 5;
        if (bc_out_write(out, bytes, sizeof bytes, &err) != BITCONV_E_IO) result = 6;
        bc_out_abort(out);
        if (err.sys_errno != ENOSPC || strstr(err.text, "bytes free in folder") == NULL) result = 7;
        if (!holds(path, "old") || strcmp(listing(dir), "out") != 0) result = 8;
    }
    bc_free(path);
    return result;
}

static void test_disk_full(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(fill_a_disk(dir));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    temp_dir_remove(dir);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: not allowed to mount a small file system\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Inputs that are not open: files under any name, and what a folder holds. */
static void test_output_is_an_input_path(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    temp_dir_puts(dir, "in", "weights");
    temp_dir_puts(dir, "free", "old");
    char *const in = temp_dir_path(dir, "in");
    char *const hard = temp_dir_path(dir, "hard");
    char *const fresh = temp_dir_path(dir, "fresh");
    char *const spare = temp_dir_path(dir, "free");
    assert_int_equal(link(in, hard), 0);
    const char *inputs[] = {NULL, in};
    struct bc_out_options options = {.force = true, .input_paths = inputs, .n_input_paths = 2};
    struct bitconv_error err = {0};
    assert_int_equal(bc_out_probe(in, &options, &err), BITCONV_E_ARG);
    assert_non_null(strstr(err.text, "is the same file as the input"));
    assert_int_equal(bc_out_probe(hard, &options, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_out_probe(fresh, &options, NULL), BITCONV_OK);
    assert_int_equal(bc_path_kind(fresh), BC_PATH_NONE); /* a probe leaves nothing behind */
    assert_int_equal(bc_out_probe(spare, &options, NULL), BITCONV_OK);
    assert_true(holds(spare, "old") && holds(in, "weights"));
    inputs[1] = dir;
    assert_int_equal(bc_out_probe(hard, &options, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_out_probe(spare, &options, NULL), BITCONV_E_ARG);
    assert_int_equal(bc_out_probe(fresh, &options, NULL), BITCONV_OK);
    options.force = false;
    inputs[1] = "no such input";
    assert_int_equal(bc_out_probe(spare, &options, NULL), BITCONV_E_ARG);
    free(in);
    free(hard);
    free(fresh);
    free(spare);
    temp_dir_remove(dir);
}

static void test_file_write(void **state)
{
    (void)state;
    char *const dir = temp_dir_new();
    char *const path = temp_dir_path(dir, "x");
    struct bitconv_error err = {0};
    assert_int_equal(bc_file_write(path, "", 0, false, &err), BITCONV_OK);
    assert_true(holds(path, ""));
    assert_int_equal(bc_file_write(path, "a", 1, false, &err), BITCONV_E_ARG);
    assert_int_equal(bc_file_write(path, "a", 1, true, NULL), BITCONV_OK);
    assert_true(holds(path, "a"));
    free(path);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_maps_the_bytes),
        cmocka_unit_test(test_open_empty),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_dir_list),
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_write_new_file),
        cmocka_unit_test(test_nothing_shows_before_commit),
        cmocka_unit_test(test_write_sizes),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_existing_file),
        cmocka_unit_test(test_target_appears),
        cmocka_unit_test(test_symlinks),
        cmocka_unit_test(test_output_is_an_input),
        cmocka_unit_test(test_output_is_an_input_path),
        cmocka_unit_test(test_impossible_targets),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_relative_path),
        cmocka_unit_test(test_stale_partials),
        cmocka_unit_test(test_killed_writer),
        cmocka_unit_test(test_direct_output),
        cmocka_unit_test(test_open_descriptor),
        cmocka_unit_test(test_write_error),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_interrupted_writes),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_file_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
