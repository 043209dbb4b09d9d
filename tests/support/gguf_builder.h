/* SPDX-License-Identifier: MIT
 * Makes GGUF files for tests, byte by byte and without judgement: what is wrong stays wrong. Shares
 * nothing with the library's own writer. */
#ifndef TESTS_SUPPORT_GGUF_BUILDER_H
#define TESTS_SUPPORT_GGUF_BUILDER_H

#include "base/mem.h"

/* Zero-initialise; version and alignment 0 stand for 3 and 32. The alignment only moves data: a key
 * general.alignment is the test's business. */
struct gguf_builder {
    uint32_t version;
    uint64_t alignment;
    uint64_t n_keys, n_tensors; /* may be overwritten before _bytes */
    struct bc_buf keys, infos, data;
};

/* A key with a value of any type: `value` is what follows the u32 type in the file. */
void gguf_builder_key(struct gguf_builder *b, const char *name, uint32_t type, const void *value,
                      size_t size);
void gguf_builder_key_n(struct gguf_builder *b, const char *name, size_t name_len, uint32_t type,
                        const void *value, size_t size);
void gguf_builder_u32(struct gguf_builder *b, const char *name, uint32_t value);
void gguf_builder_string(struct gguf_builder *b, const char *name, const char *value);
/* Only the tensor info. */
void gguf_builder_info(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                       const uint64_t *ne, uint64_t offset);
void gguf_builder_info_n(struct gguf_builder *b, const char *name, size_t name_len, uint32_t type,
                         uint32_t n_dims, const uint64_t *ne, uint64_t offset);
/* Tensor info and `size` zero bytes of data, padded. */
void gguf_builder_tensor(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                         const uint64_t *ne, uint64_t size);
/* Appends `size` zero bytes to the data section. */
void gguf_builder_zeros(struct gguf_builder *b, uint64_t size);
/* Appends the whole file to `out`, and releases the builder. */
void gguf_builder_bytes(struct gguf_builder *b, struct bc_buf *out);

/* A small file with keys of every kind and tensors of several types, in dialect bitnet. */
void gguf_builder_sample(struct bc_buf *out);

#endif
