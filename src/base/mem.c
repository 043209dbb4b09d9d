/* SPDX-License-Identifier: MIT
 * The one door to malloc: overflow-checked arrays, an arena, a growable byte buffer. */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* n * size as a request that malloc can take: at least one byte, at most PTRDIFF_MAX. */
static bool request(size_t n, size_t size, size_t *out)
{
    if (n == 0 || size == 0) {
        *out = 1;
        return true;
    }
    if (n > (size_t)PTRDIFF_MAX / size) return false;
    *out = n * size;
    return true;
}

void *bc_alloc_array(size_t n, size_t size)
{
    size_t total;
    if (!request(n, size, &total)) return NULL;
    return calloc(1, total);
}

void *bc_alloc_lines(size_t n, size_t size)
{
    enum { LINE = 64 };
    size_t total;
    if (!request(n, size, &total) || total > (size_t)PTRDIFF_MAX - LINE) return NULL;
    return aligned_alloc(LINE, (total + LINE - 1) / LINE * LINE);
}

void *bc_realloc_array(void *p, size_t n, size_t size)
{
    size_t total;
    if (!request(n, size, &total)) return NULL;
    return realloc(p, total);
}

void bc_free(void *p)
{
    free(p);
}

bool bc_grow(void **items, size_t *cap, size_t n, size_t size)
{
    if (n < *cap) return true;
    if (n > SIZE_MAX / 2) return false;
    const size_t new_cap = n < 8 ? 8 : 2 * n;
    void *const grown = bc_realloc_array(*items, new_cap, size);
    if (grown == NULL) return false;
    *items = grown;
    *cap = new_cap;
    return true;
}

enum { ARENA_ALIGN = 16, ARENA_FIRST_BLOCK = 4096, ARENA_LARGEST_BLOCK = 1 << 20 };

struct bc_arena_block {
    struct bc_arena_block *next;
    size_t size; /* bytes behind the header */
    size_t used;
    unsigned char data[];
};

/* Bytes to skip so that p is aligned. */
static size_t padding(const unsigned char *p)
{
    return (size_t)(-(uintptr_t)p % ARENA_ALIGN);
}

static struct bc_arena_block *new_block(size_t size)
{
    struct bc_arena_block *const block = bc_alloc_array(1, sizeof *block + size);
    if (block == NULL) return NULL;
    block->size = size;
    block->used = padding(block->data);
    return block;
}

void *bc_arena_alloc(struct bc_arena *arena, size_t n, size_t size)
{
    size_t total;
    if (!request(n, size, &total) || total > SIZE_MAX / 4) return NULL;
    total = (total + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;

    struct bc_arena_block *block = arena->head;
    if (block == NULL || block->size - block->used < total) {
        size_t block_size = block == NULL ? ARENA_FIRST_BLOCK : 2 * block->size;
        if (block_size > ARENA_LARGEST_BLOCK) block_size = ARENA_LARGEST_BLOCK;
        const bool own_block = total + ARENA_ALIGN > block_size / 2;
        block = new_block(own_block ? total + ARENA_ALIGN : block_size);
        if (block == NULL) return NULL;
        if (own_block && arena->head != NULL) {
            /* Goes behind the head, whose free space stays in use. */
            block->next = arena->head->next;
            arena->head->next = block;
        } else {
            block->next = arena->head;
            arena->head = block;
        }
    }
    void *const result = block->data + block->used;
    block->used += total;
    return result;
}

char *bc_arena_strndup(struct bc_arena *arena, const char *s, size_t len)
{
    if (len == SIZE_MAX) return NULL;
    char *const copy = bc_arena_alloc(arena, len + 1, 1);
    if (copy != NULL && len > 0) memcpy(copy, s, len);
    return copy;
}

char *bc_arena_strdup(struct bc_arena *arena, const char *s)
{
    return bc_arena_strndup(arena, s, strlen(s));
}

char *bc_arena_printf(struct bc_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) return NULL;
    char *const text = bc_arena_alloc(arena, (size_t)n + 1, 1);
    if (text == NULL) return NULL;
    va_start(ap, fmt);
    (void)vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

void bc_arena_release(struct bc_arena *arena)
{
    struct bc_arena_block *block = arena->head;
    while (block != NULL) {
        struct bc_arena_block *const next = block->next;
        bc_free(block);
        block = next;
    }
    arena->head = NULL;
}

/* Makes room for `more` bytes and a NUL behind the content. */
static bool reserve(struct bc_buf *buf, size_t more)
{
    if (buf->failed) return false;
    if (more >= SIZE_MAX / 2 - buf->size) {
        buf->failed = true;
        return false;
    }
    const size_t need = buf->size + more + 1;
    if (need <= buf->cap) return true;
    size_t cap = buf->cap < 64 ? 64 : buf->cap;
    while (cap < need)
        cap *= 2;
    uint8_t *const grown = bc_realloc_array(buf->data, cap, 1);
    if (grown == NULL) {
        buf->failed = true;
        return false;
    }
    buf->data = grown;
    buf->cap = cap;
    return true;
}

void bc_buf_append(struct bc_buf *buf, const void *data, size_t size)
{
    if (!reserve(buf, size)) return;
    if (size > 0) memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void bc_buf_puts(struct bc_buf *buf, const char *s)
{
    bc_buf_append(buf, s, strlen(s));
}

void bc_buf_putc(struct bc_buf *buf, char c)
{
    bc_buf_append(buf, &c, 1);
}

void bc_buf_vprintf(struct bc_buf *buf, const char *fmt, va_list ap)
{
    va_list measure;
    va_copy(measure, ap);
    const int n = vsnprintf(NULL, 0, fmt, measure);
    va_end(measure);
    if (n < 0) buf->failed = true;
    if (n < 0 || !reserve(buf, (size_t)n)) return;
    (void)vsnprintf((char *)buf->data + buf->size, (size_t)n + 1, fmt, ap);
    buf->size += (size_t)n;
}

void bc_buf_printf(struct bc_buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bc_buf_vprintf(buf, fmt, ap);
    va_end(ap);
}

void bc_buf_u8(struct bc_buf *buf, uint8_t v)
{
    bc_buf_append(buf, &v, 1);
}

void bc_buf_u32(struct bc_buf *buf, uint32_t v)
{
    uint8_t bytes[4];
    bc_put_u32(bytes, v);
    bc_buf_append(buf, bytes, sizeof bytes);
}

void bc_buf_u64(struct bc_buf *buf, uint64_t v)
{
    uint8_t bytes[8];
    bc_put_u64(bytes, v);
    bc_buf_append(buf, bytes, sizeof bytes);
}

void bc_buf_f32(struct bc_buf *buf, float v)
{
    bc_buf_u32(buf, bc_f32_bits(v));
}

const char *bc_buf_str(const struct bc_buf *buf)
{
    return buf->data != NULL ? (const char *)buf->data : "";
}

void bc_buf_clear(struct bc_buf *buf)
{
    buf->size = 0;
    if (buf->data != NULL) buf->data[0] = '\0';
}

void bc_buf_release(struct bc_buf *buf)
{
    bc_free(buf->data);
    *buf = (struct bc_buf){NULL, 0, 0, false};
}
