/* SPDX-License-Identifier: MIT
 * Collecting all reasons for a refusal. */
#include "model/findings.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_SHOWN = 100 }; /* findings of one kind told one by one */

void bc_finding(struct bc_findings *f, enum bitconv_status status, const char *fmt, ...)
{
    char text[sizeof f->first.text];
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(text, sizeof text, fmt, ap) < 0) text[0] = '\0';
    va_end(ap);
    bc_say(f->sink, BITCONV_FINDING, "%s", text);
    (void)bc_fail(&f->first, status, "%s", text); /* keeps only the first */
    f->n++;
}

bool bc_finding_wanted(struct bc_finding_kind *kind)
{
    return kind->n++ < MAX_SHOWN;
}

void bc_finding_rest(struct bc_findings *f, const struct bc_finding_kind *kind)
{
    if (kind->n > MAX_SHOWN)
        bc_finding(f, BITCONV_E_CORRUPT, "%s: %zu more %s", f->subject, kind->n - MAX_SHOWN,
                   kind->what);
}

enum bitconv_status bc_findings_result(const struct bc_findings *f, const char *what,
                                       struct bitconv_error *err)
{
    if (f->n == 0) return BITCONV_OK;
    if (f->n == 1) return bc_fail(err, f->first.status, "%s", f->first.text);
    return bc_fail(err, f->first.status, "%s: %zu %s, the first: %s", f->subject, f->n, what,
                   f->first.text);
}
