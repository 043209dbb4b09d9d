/* SPDX-License-Identifier: MIT
 * How fast memory can be read. */
#ifndef BC_BENCH_READ_BANDWIDTH_H
#define BC_BENCH_READ_BANDWIDTH_H

#include "base/pool.h"

/* A buffer that no cache holds. */
struct bc_read_buffer {
    uint8_t *bytes;
    size_t size;
};
enum bitconv_status bc_read_buffer_new(struct bc_read_buffer *buffer, struct bitconv_error *err);
void bc_read_buffer_free(struct bc_read_buffer *buffer);

/* Bytes per second of reading all of it with all threads of the pool; the best of a few times. */
double bc_read_bandwidth(const struct bc_read_buffer *buffer, struct bc_pool *pool);

#endif
