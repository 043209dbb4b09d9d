/* SPDX-License-Identifier: MIT
 * Running verify in a test, with everything it says in one text. */
#ifndef TESTS_SUPPORT_VERIFY_RUN_H
#define TESTS_SUPPORT_VERIFY_RUN_H

#include "base/mem.h"
#include "bitconv/verify.h"
#include "support/gguf_builder.h"

/* Zero-initialise; verify_run_release empties it. */
struct verify_run {
    enum bitconv_status status;          /* of the call */
    struct bitconv_verification *result; /* NULL when the call failed */
    struct bc_buf problems;              /* FINDINGs and the error's text, one a line */
    struct bc_buf warnings, notes;
};

/* Verifies `path`; an earlier run in *run is released first. */
void verify_run(struct verify_run *run, const char *path,
                const struct bitconv_verify_options *options);
void verify_run_release(struct verify_run *run);
/* The file is sound: the call worked and no proof failed. */
bool verify_run_ok(const struct verify_run *run);
/* The proof of that name; ends the test when there is none. */
const struct bitconv_proof *verify_run_proof(const struct verify_run *run, const char *name);
/* Whether some problem (warning, note) holds that text. */
bool verify_run_says(const struct bc_buf *list, const char *text);

/* Tensor info and data, padded with zeros to 32 bytes. */
void gguf_builder_data(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                       const uint64_t *ne, const void *data, size_t size);
/* An array key of strings, or of 4-byte numbers given little-endian. */
void gguf_builder_strings(struct gguf_builder *b, const char *name, const char *const *strings,
                          size_t n);
void gguf_builder_numbers(struct gguf_builder *b, const char *name, uint32_t elem,
                          const uint32_t *bits, size_t n);
/* An I2_S tensor's bytes in blocks of 128: `byte` n / 4 times, the scale, 28 zeros. Appended to buf. */
void i2_s_bytes(struct bc_buf *buf, uint64_t n, uint8_t byte, float scale);
/* Writes the builder's file to DIR/NAME and gives its path; free() it. */
char *gguf_builder_write(struct gguf_builder *b, const char *dir, const char *name);

#endif
