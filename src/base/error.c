/* SPDX-License-Identifier: MIT
 * Filling in a bitconv_error, and passing messages to a bitconv_sink. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *bitconv_status_name(enum bitconv_status status)
{
    switch (status) {
    case BITCONV_OK:
        return "ok";
    case BITCONV_E_ARG:
        return "argument";
    case BITCONV_E_IO:
        return "io";
    case BITCONV_E_NOMEM:
        return "no memory";
    case BITCONV_E_CORRUPT:
        return "corrupt";
    case BITCONV_E_UNSUPPORTED:
        return "unsupported";
    case BITCONV_E_LIMIT:
        return "limit";
    case BITCONV_E_MISMATCH:
        return "mismatch";
    case BITCONV_E_CANCELED:
        return "canceled";
    case BITCONV_E_BUG:
        return "bug";
    }
    return "unknown";
}

/* Formats into text[size]; what does not fit is replaced by "..." at the end, never cutting a UTF-8
 * sequence in two. size is at least 8. */
BC_PRINTF(3, 0)
static void format_text(char *text, size_t size, const char *fmt, va_list ap)
{
    const int n = vsnprintf(text, size, fmt, ap);
    if (n < 0) {
        text[0] = '\0';
        return;
    }
    if ((size_t)n < size) return;
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0u) == 0x80u)
        end--;
    memcpy(text + end, "...", 4);
}

/* Puts `suffix` behind the formatted text; the text gives way when both do not fit. */
BC_PRINTF(6, 0)
static void record(struct bitconv_error *err, enum bitconv_status status, int sys_errno,
                   uint64_t offset, const char *suffix, const char *fmt, va_list ap)
{
    if (err == NULL || err->status != BITCONV_OK) return;
    const size_t suffix_len = strlen(suffix);
    err->status = status;
    err->sys_errno = sys_errno;
    err->offset = offset;
    format_text(err->text, sizeof err->text - suffix_len, fmt, ap);
    memcpy(err->text + strlen(err->text), suffix, suffix_len + 1);
}

enum bitconv_status bc_fail(struct bitconv_error *err, enum bitconv_status status, const char *fmt,
                            ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(err, status, 0, 0, "", fmt, ap);
    va_end(ap);
    return status;
}

enum bitconv_status bc_fail_at(struct bitconv_error *err, enum bitconv_status status,
                               uint64_t offset, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(err, status, 0, offset, "", fmt, ap);
    va_end(ap);
    return status;
}

enum bitconv_status bc_fail_errno(struct bitconv_error *err, const char *fmt, ...)
{
    const int code = errno;
    const enum bitconv_status status = code == ENOMEM ? BITCONV_E_NOMEM : BITCONV_E_IO;
    char reason[128];
    char suffix[sizeof reason + 2];
    if (strerror_r(code, reason, sizeof reason) != 0)
        (void)snprintf(reason, sizeof reason, "error %d", code);
    (void)snprintf(suffix, sizeof suffix, ": %s", reason);

    va_list ap;
    va_start(ap, fmt);
    record(err, status, code, 0, suffix, fmt, ap);
    va_end(ap);
    return status;
}

enum bitconv_status bc_fail_nomem(struct bitconv_error *err, const char *what)
{
    return bc_fail(err, BITCONV_E_NOMEM, "out of memory (%s)", what);
}

void bc_say(const struct bitconv_sink *sink, enum bitconv_severity severity, const char *fmt, ...)
{
    if (sink == NULL || sink->message == NULL) return;
    char text[sizeof((struct bitconv_error *)0)->text];
    va_list ap;
    va_start(ap, fmt);
    format_text(text, sizeof text, fmt, ap);
    va_end(ap);
    sink->message(sink->user, severity, text);
}

void bc_progress(const struct bitconv_sink *sink, const char *what, uint64_t done, uint64_t total)
{
    if (sink == NULL || sink->progress == NULL) return;
    sink->progress(sink->user, what, done, total);
}

bool bc_canceled(const struct bitconv_sink *sink)
{
    return sink != NULL && sink->cancel != NULL && *sink->cancel != 0;
}
