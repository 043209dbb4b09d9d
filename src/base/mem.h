/* SPDX-License-Identifier: MIT
 * The one door to malloc: overflow-checked arrays, an arena, a growable byte buffer. */
#ifndef BC_BASE_MEM_H
#define BC_BASE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Zeroed array of n elements of `size` bytes; NULL on overflow or out of memory. n = 0 gives a
 * pointer that may be freed. Free with bc_free. */
void *bc_alloc_array(size_t n, size_t size);
/* The same, not zeroed, from the start of a cache line on: no aligned vector lies on two lines. */
void *bc_alloc_lines(size_t n, size_t size);
/* Grows or shrinks; on NULL the old block is still valid. New bytes are not initialised. */
void *bc_realloc_array(void *p, size_t n, size_t size);
void bc_free(void *p);

/* Grows *items (elements of `size` bytes, *cap allocated) so that one more fits after `n` used;
 * returns false when out of memory. *items keeps its content. */
bool bc_grow(void **items, size_t *cap, size_t n, size_t size);

/* An arena: many small things that die together. Zero-initialise; release frees all of it.
 * Allocations are aligned to 16 bytes and zeroed. All return NULL when out of memory. */
struct bc_arena {
    struct bc_arena_block *head;
};
void *bc_arena_alloc(struct bc_arena *arena, size_t n, size_t size);
char *bc_arena_strdup(struct bc_arena *arena, const char *s);
char *bc_arena_strndup(struct bc_arena *arena, const char *s, size_t len); /* adds a NUL */
char *bc_arena_printf(struct bc_arena *arena, const char *fmt, ...) BC_PRINTF(2, 3);
void bc_arena_release(struct bc_arena *arena);

/* A growable byte buffer. After an allocation failure `failed` is set and further appends do
 * nothing, so a sequence of appends needs one check at its end. `data` is always NUL-terminated
 * when not NULL (the NUL is not counted in size). */
struct bc_buf {
    uint8_t *data;
    size_t size;
    size_t cap;
    bool failed;
};
void bc_buf_append(struct bc_buf *buf, const void *data, size_t size);
void bc_buf_puts(struct bc_buf *buf, const char *s);
void bc_buf_putc(struct bc_buf *buf, char c);
void bc_buf_printf(struct bc_buf *buf, const char *fmt, ...) BC_PRINTF(2, 3);
void bc_buf_vprintf(struct bc_buf *buf, const char *fmt, va_list ap) BC_PRINTF(2, 0);
void bc_buf_u8(struct bc_buf *buf, uint8_t v);
void bc_buf_u32(struct bc_buf *buf, uint32_t v); /* little-endian, like the next ones */
void bc_buf_u64(struct bc_buf *buf, uint64_t v);
void bc_buf_f32(struct bc_buf *buf, float v);
const char *bc_buf_str(const struct bc_buf *buf); /* "" when empty */
void bc_buf_clear(struct bc_buf *buf);            /* size = 0, memory kept */
void bc_buf_release(struct bc_buf *buf);

#endif
