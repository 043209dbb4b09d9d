/* SPDX-License-Identifier: MIT
 * Copies of GGUF files with something changed, for tests of what notices. Failures end the test. */
#ifndef TESTS_SUPPORT_GGUF_EDIT_H
#define TESTS_SUPPORT_GGUF_EDIT_H

#include "bitconv/gguf.h"

/* One change to the key or tensor of that name, which must be there, but for added keys. */
struct gguf_edit {
    const char *name;
    bool drop;
    bool add;             /* a key of value type *type with the value `data`, behind all others */
    const char *renamed;  /* a tensor's new name, or NULL */
    const char *text;     /* a string key's new value, or NULL */
    const void *data;     /* other bytes: a scalar key's value, a tensor's data; or NULL */
    uint64_t size;        /* of data: as many as there were, but for tensors with `type` */
    const uint32_t *type; /* a tensor's new type id, or NULL */
};

/* Writes the file to `path`, with the edits. Keys and tensors keep their order. */
void gguf_edit_write(const struct bitconv_gguf *file, const char *path,
                     const struct gguf_edit *edits, size_t n);

#endif
