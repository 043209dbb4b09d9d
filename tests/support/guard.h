/* SPDX-License-Identifier: MIT
 * Buffers between two unmapped pages: one byte too far, read or written, is a segmentation fault.
 */
#ifndef BC_TESTS_GUARD_H
#define BC_TESTS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guard {
    uint8_t *map;
    size_t map_size;
    uint8_t *start; /* first usable byte; the page before it is unmapped */
    size_t room;    /* usable bytes, whole pages; the page behind them is unmapped */
};

/* At least `size` usable bytes; false when the system refuses. Close with guard_close. */
bool guard_open(struct guard *g, size_t size);
void guard_close(struct guard *g);
/* Where `size` bytes must start to end right before the unmapped page. */
uint8_t *guard_end(const struct guard *g, size_t size);

#endif
