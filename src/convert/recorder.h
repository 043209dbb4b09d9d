/* SPDX-License-Identifier: MIT
 * Keeps the messages of a part that runs on another thread until the calling thread passes them on:
 * a sink's callbacks run on the calling thread only. */
#ifndef BC_CONVERT_RECORDER_H
#define BC_CONVERT_RECORDER_H

#include "base/mem.h"

struct bc_recorded {
    enum bitconv_severity severity;
    char *text;
};

/* Zero-initialise. */
struct bc_recorder {
    struct bc_recorded *items;
    size_t n, cap;
    struct bc_arena arena; /* texts */
};

/* A sink that records into r. Messages for which there is no memory are lost. */
struct bitconv_sink bc_recorder_sink(struct bc_recorder *r);
/* Sends everything recorded to `sink`, in order, and releases r. */
void bc_recorder_replay(struct bc_recorder *r, const struct bitconv_sink *sink);

#endif
