/* SPDX-License-Identifier: MIT
 * Filling in a bitconv_error, and passing messages to a bitconv_sink. */
#ifndef BC_BASE_ERROR_H
#define BC_BASE_ERROR_H

#include "bitconv/status.h"

#if defined(__GNUC__)
#define BC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define BC_PRINTF(fmt, args)
#endif

/* Records a failure in `err` (which may be NULL; a record that already holds a failure is kept) and
 * returns `status`, so that `return bc_fail(...)` reads well. */
enum bitconv_status bc_fail(struct bitconv_error *err, enum bitconv_status status, const char *fmt,
                            ...) BC_PRINTF(3, 4);

/* The same with a byte offset of the file. */
enum bitconv_status bc_fail_at(struct bitconv_error *err, enum bitconv_status status,
                               uint64_t offset, const char *fmt, ...) BC_PRINTF(4, 5);

/* BITCONV_E_IO (NOMEM for ENOMEM) with errno's text appended after ": ". Reads errno first thing.
 */
enum bitconv_status bc_fail_errno(struct bitconv_error *err, const char *fmt, ...) BC_PRINTF(2, 3);

/* BITCONV_E_NOMEM: "out of memory (what)". */
enum bitconv_status bc_fail_nomem(struct bitconv_error *err, const char *what);

/* Sends a formatted message to the sink (NULL sink or NULL callback: does nothing). */
void bc_say(const struct bitconv_sink *sink, enum bitconv_severity severity, const char *fmt, ...)
    BC_PRINTF(3, 4);

/* Reports progress; `what` is a short noun ("writing"), done/total in bytes. */
void bc_progress(const struct bitconv_sink *sink, const char *what, uint64_t done, uint64_t total);

/* True when the sink's cancel flag is raised. */
bool bc_canceled(const struct bitconv_sink *sink);

/* Leaves the function when a call fails. */
#define BC_TRY(call)                                                                               \
    do {                                                                                           \
        const enum bitconv_status bc_try_status_ = (call);                                         \
        if (bc_try_status_ != BITCONV_OK) return bc_try_status_;                                   \
    } while (0)

#endif
