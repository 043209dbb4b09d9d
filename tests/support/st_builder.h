/* SPDX-License-Identifier: MIT
 * Makes well-formed safetensors files for tests. */
#ifndef TESTS_SUPPORT_ST_BUILDER_H
#define TESTS_SUPPORT_ST_BUILDER_H

#include "base/mem.h"
#include "bitconv/tensor.h"

/* Zero-initialise. Tensors are laid out in the order they were added. */
struct st_builder {
    struct bc_buf entries; /* the header's members so far, without braces */
    struct bc_buf data;
};

/* Copies name, shape and `size` bytes of data; data = NULL stands for zeros. The size is not
 * compared with the shape: a test may want them to differ. */
void st_builder_add(struct st_builder *b, const char *name, enum bitconv_dtype dtype,
                    uint32_t n_dims, const uint64_t *shape, const void *data, size_t size);
/* The same from float32 values, stored as F32, F16 or BF16 (nearest); size from the shape. */
void st_builder_add_floats(struct st_builder *b, const char *name, enum bitconv_dtype dtype,
                           uint32_t n_dims, const uint64_t *shape, const float *values);
/* Sets __metadata__ to {key: value}; at most once. */
void st_builder_metadata(struct st_builder *b, const char *key, const char *value);
/* Appends the whole file to `out`. */
void st_builder_bytes(const struct st_builder *b, struct bc_buf *out);
/* Writes the file; false when that fails, or memory ran out before. */
bool st_builder_write(const struct st_builder *b, const char *path);
void st_builder_release(struct st_builder *b);

#endif
