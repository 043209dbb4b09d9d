/* SPDX-License-Identifier: MIT
 * Runs conversions of (changed) fixture checkpoints in a scratch folder and reads the result back. */
#ifndef TESTS_SUPPORT_CONVERT_RUN_H
#define TESTS_SUPPORT_CONVERT_RUN_H

#include "base/mem.h"
#include "bitconv/bitconv.h"
#include "support/model_copy.h"

struct convert_run {
    char *root;  /* scratch folder */
    char *model; /* ROOT/model, the checkpoint */
    char *out;   /* ROOT/out.gguf, options.outfile until a test changes it */
    struct bitconv_convert_options options;
    struct bitconv_sink sink;
    struct bc_buf messages; /* "note: ...\n", "warning: ...\n", "finding: ...\n" */
    struct bitconv_error err;
    struct bitconv_conversion *result;
    struct bitconv_gguf *gguf; /* the output, opened by convert_run_accept; NULL: none */
};

/* cmocka set-up and tear-down; *state is a struct convert_run. */
int convert_run_set_up(void **state);
int convert_run_tear_down(void **state);

/* Makes the checkpoint from a fixture (replacing an earlier one). */
void convert_run_model(struct convert_run *r, const char *fixture, const struct model_edit *edits,
                       size_t n);
/* Converts to `outtype`, replacing an earlier output; the result in r->result or r->err. */
enum bitconv_status convert_run(struct convert_run *r, const char *outtype);
/* The same, asserting success, and opens the output unless it is a dry run. */
void convert_run_accept(struct convert_run *r, const char *outtype);
/* Asserts refusal with `status`, `text` in the error or a message, and no output. */
void convert_run_refuse(struct convert_run *r, const char *outtype, enum bitconv_status status,
                        const char *text);
/* Does a message or the error hold `text`? */
bool convert_run_said(const struct convert_run *r, const char *text);

/* All of these end the test when there is no such thing. */
const struct bitconv_converted_tensor *convert_run_tensor(const struct convert_run *r,
                                                          const char *name);
const struct bitconv_gguf_tensor *convert_run_stored(const struct convert_run *r, const char *name);
/* Value `index` of a stored F32, F16 or BF16 tensor. */
float convert_run_value(const struct convert_run *r, const char *name, uint64_t index);
/* Trit `index` of a packed tensor, by the independent reader. */
int convert_run_trit(const struct convert_run *r, const char *name, uint64_t index);
/* Its scale. */
float convert_run_scale(const struct convert_run *r, const char *name);
/* Bytes of a file; release *out. */
void convert_run_file(const char *path, struct bc_buf *out);

#endif
