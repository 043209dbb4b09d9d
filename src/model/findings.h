/* SPDX-License-Identifier: MIT
 * Collecting all reasons for a refusal, so that the user hears of every one and not only the first.
 */
#ifndef BC_MODEL_FINDINGS_H
#define BC_MODEL_FINDINGS_H

#include "base/error.h"

/* Zero-initialise but for the first two. */
struct bc_findings {
    const struct bitconv_sink *sink; /* gets every finding as it is made; may be NULL */
    const char *subject;             /* file or folder that the summary is about; borrowed */
    size_t n;
    struct bitconv_error first;
};

/* Reports one finding to the sink: a complete line as in struct bitconv_error. */
void bc_finding(struct bc_findings *f, enum bitconv_status status, const char *fmt, ...)
    BC_PRINTF(3, 4);

/* Counts findings of one kind, so that a list of thousands is cut and its length told. */
struct bc_finding_kind {
    const char *what; /* plural, for the line that stands for the rest: "tensors missing" */
    size_t n;
};

/* Counts one more; true while they are to be reported one by one. */
bool bc_finding_wanted(struct bc_finding_kind *kind);
/* Reports how many were not reported one by one, if any. */
void bc_finding_rest(struct bc_findings *f, const struct bc_finding_kind *kind);

/* BITCONV_OK when there were none. Else fails with the one finding, or with the number of `what`
 * ("faults in the weight files") and the first of them, with the status of the first. */
enum bitconv_status bc_findings_result(const struct bc_findings *f, const char *what,
                                       struct bitconv_error *err);

#endif
