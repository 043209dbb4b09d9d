/* SPDX-License-Identifier: MIT
 * A bounded, sticky reader over bytes: the only code that takes lengths from a file. */
#include "base/cursor.h"

#include <stddef.h>

#include "base/bytes.h"

const uint8_t *bc_cursor_take(struct bc_cursor *c, uint64_t n)
{
    static const uint8_t nothing[1] = {0};
    if (c->overrun || n > c->size - c->pos) {
        c->overrun = true;
        return NULL;
    }
    if (n == 0) return nothing;
    const uint8_t *const taken = c->data + c->pos;
    c->pos += n;
    return taken;
}

uint8_t bc_cursor_u8(struct bc_cursor *c)
{
    const uint8_t *const p = bc_cursor_take(c, 1);
    return p != NULL ? *p : 0;
}

uint32_t bc_cursor_u32(struct bc_cursor *c)
{
    const uint8_t *const p = bc_cursor_take(c, 4);
    return p != NULL ? bc_get_u32(p) : 0;
}

uint64_t bc_cursor_u64(struct bc_cursor *c)
{
    const uint8_t *const p = bc_cursor_take(c, 8);
    return p != NULL ? bc_get_u64(p) : 0;
}
