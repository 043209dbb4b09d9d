/* SPDX-License-Identifier: MIT
 * GGUF files for tests, straight from the layout in ggml's docs/gguf.md. */
#include "support/gguf_builder.h"

#include <string.h>

void gguf_builder_key_n(struct gguf_builder *b, const char *name, size_t name_len, uint32_t type,
                        const void *value, size_t size)
{
    bc_buf_u64(&b->keys, name_len);
    bc_buf_append(&b->keys, name, name_len);
    bc_buf_u32(&b->keys, type);
    bc_buf_append(&b->keys, value, size);
    b->n_keys++;
}

void gguf_builder_key(struct gguf_builder *b, const char *name, uint32_t type, const void *value,
                      size_t size)
{
    gguf_builder_key_n(b, name, strlen(name), type, value, size);
}

void gguf_builder_u32(struct gguf_builder *b, const char *name, uint32_t value)
{
    struct bc_buf bytes = {0};
    bc_buf_u32(&bytes, value);
    gguf_builder_key(b, name, 4, bytes.data, bytes.size);
    bc_buf_release(&bytes);
}

void gguf_builder_string(struct gguf_builder *b, const char *name, const char *value)
{
    struct bc_buf bytes = {0};
    bc_buf_u64(&bytes, strlen(value));
    bc_buf_puts(&bytes, value);
    gguf_builder_key(b, name, 8, bytes.data, bytes.size);
    bc_buf_release(&bytes);
}

void gguf_builder_info_n(struct gguf_builder *b, const char *name, size_t name_len, uint32_t type,
                         uint32_t n_dims, const uint64_t *ne, uint64_t offset)
{
    bc_buf_u64(&b->infos, name_len);
    bc_buf_append(&b->infos, name, name_len);
    bc_buf_u32(&b->infos, n_dims);
    for (uint32_t d = 0; d < n_dims; d++)
        bc_buf_u64(&b->infos, ne[d]);
    bc_buf_u32(&b->infos, type);
    bc_buf_u64(&b->infos, offset);
    b->n_tensors++;
}

void gguf_builder_info(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                       const uint64_t *ne, uint64_t offset)
{
    gguf_builder_info_n(b, name, strlen(name), type, n_dims, ne, offset);
}

void gguf_builder_zeros(struct gguf_builder *b, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        bc_buf_u8(&b->data, 0);
}

static uint64_t alignment(const struct gguf_builder *b)
{
    return b->alignment == 0 ? 32 : b->alignment;
}

void gguf_builder_tensor(struct gguf_builder *b, const char *name, uint32_t type, uint32_t n_dims,
                         const uint64_t *ne, uint64_t size)
{
    gguf_builder_info(b, name, type, n_dims, ne, b->data.size);
    gguf_builder_zeros(b, size);
    while (b->data.size % alignment(b) != 0)
        bc_buf_u8(&b->data, 0);
}

void gguf_builder_bytes(struct gguf_builder *b, struct bc_buf *out)
{
    const size_t start = out->size;
    bc_buf_append(out, "GGUF", 4);
    bc_buf_u32(out, b->version == 0 ? 3 : b->version);
    bc_buf_u64(out, b->n_tensors);
    bc_buf_u64(out, b->n_keys);
    bc_buf_append(out, b->keys.data, b->keys.size);
    bc_buf_append(out, b->infos.data, b->infos.size);
    while ((out->size - start) % alignment(b) != 0)
        bc_buf_u8(out, 0);
    bc_buf_append(out, b->data.data, b->data.size);
    bc_buf_release(&b->keys);
    bc_buf_release(&b->infos);
    bc_buf_release(&b->data);
    memset(b, 0, sizeof *b);
}

void gguf_builder_sample(struct bc_buf *out)
{
    static const uint8_t numbers[8] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t half[8] = {0, 0, 0, 0, 0, 0, 0xe0, 0x3f}; /* 0.5 as FLOAT64 */
    static const uint8_t yes = 1;
    static const uint8_t counts[] = {5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
                                     1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
    static const uint8_t words[] = {8, 0, 0, 0, 2, 0,   0,   0, 0, 0, 0, 0, 2, 0, 0,
                                    0, 0, 0, 0, 0, 'a', 'b', 0, 0, 0, 0, 0, 0, 0, 0};
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", "bitnet-b1.58");
    gguf_builder_u32(&b, "general.file_type", 40);
    gguf_builder_key(&b, "test.u8", 0, numbers, 1);
    gguf_builder_key(&b, "test.i8", 1, numbers, 1);
    gguf_builder_key(&b, "test.u16", 2, numbers, 2);
    gguf_builder_key(&b, "test.i16", 3, numbers, 2);
    gguf_builder_key(&b, "test.i32", 5, numbers, 4);
    gguf_builder_key(&b, "test.f32", 6, half + 4, 4);
    gguf_builder_key(&b, "test.bool", 7, &yes, 1);
    gguf_builder_key(&b, "test.u64", 10, numbers, 8);
    gguf_builder_key(&b, "test.i64", 11, numbers, 8);
    gguf_builder_key(&b, "test.f64", 12, half, 8);
    gguf_builder_key(&b, "test.counts", 9, counts, sizeof counts);
    gguf_builder_key(&b, "test.words", 9, words, sizeof words);
    gguf_builder_tensor(&b, "token_embd.weight", 1, 2, (const uint64_t[]){128, 3}, 768);
    gguf_builder_tensor(&b, "blk.0.ffn_up.weight", 36, 2, (const uint64_t[]){128, 4}, 160);
    gguf_builder_tensor(&b, "output_norm.weight", 0, 1, (const uint64_t[]){5}, 20);
    gguf_builder_bytes(&b, out);
}
