/* SPDX-License-Identifier: MIT
 * All metadata of the output that does not depend on the weights. Reading a tokenizer takes about a
 * second for a large vocabulary, on one thread: it is done beside the statistics pass. */
#ifndef BC_CONVERT_METADATA_H
#define BC_CONVERT_METADATA_H

#include <stdatomic.h>

#include "base/pool.h"
#include "convert/recorder.h"
#include "convert/setup.h"

/* The making of the metadata. Zero-initialise. */
struct bc_metadata {
    const struct bc_setup *setup;
    const struct bc_checkpoint *ckpt;
    const struct bc_model *model;
    const char *name;                   /* general.name */
    struct bitconv_gguf_writer *writer; /* owned */
    struct bc_recorder messages;
    struct bc_task *task;
    atomic_bool failed; /* set while it runs, for those who could stop early */
    enum bitconv_status status;
    struct bitconv_error err;
};

/* Starts: model keys, tokenizer keys, --meta. In the background, or, when `wait`, before it
 * returns. Everything is borrowed until bc_metadata_finish, which must follow a success. */
enum bitconv_status bc_metadata_start(struct bc_metadata *m, const struct bc_setup *setup,
                                      const struct bc_checkpoint *ckpt,
                                      const struct bc_model *model, const char *name, bool wait,
                                      struct bitconv_error *err);
/* Waits for the end, passes on what there was to say, and hands out the writer (the caller's then)
 * or the failure. */
enum bitconv_status bc_metadata_finish(struct bc_metadata *m, const struct bitconv_sink *sink,
                                       struct bitconv_gguf_writer **writer,
                                       struct bitconv_error *err);

#endif
