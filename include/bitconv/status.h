/* SPDX-License-Identifier: MIT
 * How every bitconv call reports failure, warnings and progress. */
#ifndef BITCONV_STATUS_H
#define BITCONV_STATUS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BITCONV_API __attribute__((visibility("default")))
#else
#define BITCONV_API
#endif

/* The kinds of failure. The command line maps MISMATCH to exit 1, CANCELED to 130/143, the rest to 2. */
enum bitconv_status {
    BITCONV_OK = 0,
    BITCONV_E_ARG,         /* the caller asked for something that makes no sense */
    BITCONV_E_IO,          /* the system refused: sys_errno says why */
    BITCONV_E_NOMEM,       /* an allocation failed */
    BITCONV_E_CORRUPT,     /* the input breaks the rules of its own format */
    BITCONV_E_UNSUPPORTED, /* the input is legal, but not something bitconv handles */
    BITCONV_E_LIMIT,       /* a stated bound was exceeded */
    BITCONV_E_MISMATCH,    /* a verification found a difference */
    BITCONV_E_CANCELED,    /* the caller's cancel flag was raised */
    BITCONV_E_BUG          /* one of bitconv's own invariants is broken */
};

/* Caller-owned error record; zero-initialise it. Untouched on success; the first failure wins.
 * `text` is complete on its own ("FILE: TENSOR: what was found, what was wanted"), without a final
 * full stop. It may hold bytes from untrusted names: mask control characters when printing. */
struct bitconv_error {
    enum bitconv_status status;
    int sys_errno;
    uint64_t offset; /* byte offset in the file where it makes sense, else 0 */
    char text[1024];
};

/* Name of a status ("corrupt", "io", ...); never NULL. */
BITCONV_API const char *bitconv_status_name(enum bitconv_status status);

enum bitconv_severity {
    BITCONV_NOTE,    /* worth knowing (shown with --verbose) */
    BITCONV_WARNING, /* the result may surprise */
    BITCONV_FINDING  /* one of several reasons for a refusal that follows */
};

/* Where a long-running call sends what it has to say while it runs. All members may be zero.
 * The callbacks run on the calling thread. `cancel`, when not NULL, is polled between row groups:
 * non-zero makes the call clean up and return BITCONV_E_CANCELED. */
struct bitconv_sink {
    void (*message)(void *user, enum bitconv_severity severity, const char *text);
    void (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
    const volatile sig_atomic_t *cancel;
};

#ifdef __cplusplus
}
#endif
#endif
