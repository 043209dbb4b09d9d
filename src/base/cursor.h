/* SPDX-License-Identifier: MIT
 * A bounded, sticky reader over bytes: the only code that takes lengths from a file. */
#ifndef BC_BASE_CURSOR_H
#define BC_BASE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

/* After the first read past the end `overrun` is set and every later read returns 0 / NULL without
 * moving, so a group of reads needs one check. */
struct bc_cursor {
    const uint8_t *data;
    uint64_t size;
    uint64_t pos;
    bool overrun;
};

/* Over borrowed bytes, from their start. */
static inline struct bc_cursor bc_cursor_make(const uint8_t *data, uint64_t size)
{
    const struct bc_cursor c = {data, size, 0, false};
    return c;
}

/* Bytes that can still be read. */
static inline uint64_t bc_cursor_left(const struct bc_cursor *c)
{
    return c->overrun ? 0 : c->size - c->pos;
}

/* The next n bytes, or NULL (and overrun) when fewer are left. n = 0 gives a non-NULL pointer. */
const uint8_t *bc_cursor_take(struct bc_cursor *c, uint64_t n);
uint8_t bc_cursor_u8(struct bc_cursor *c);
uint32_t bc_cursor_u32(struct bc_cursor *c);
uint64_t bc_cursor_u64(struct bc_cursor *c);

#endif
