/* SPDX-License-Identifier: MIT
 * How fast memory can be read: what bounds a computation that reads every weight once. */
#include "bench/read_bandwidth.h"

#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/mem.h"

enum {
    SIZE = 1 << 28, /* eight times the largest caches there are on common machines */
    PART = 1 << 22, /* a thread takes so much at once */
    STREAMS = 4,    /* places of a part that are read side by side: prefetchers follow each */
    LINE = 64,      /* bytes of a cache line: one load brings all of it */
    PASSES = 3
};

enum bitconv_status bc_read_buffer_new(struct bc_read_buffer *buffer, struct bitconv_error *err)
{
    buffer->size = SIZE;
    buffer->bytes = bc_alloc_array(SIZE, 1);
    if (buffer->bytes == NULL) return bc_fail_nomem(err, "the buffer that measures memory");
    memset(buffer->bytes, 1, SIZE); /* pages of its own, not the one of zeros */
    return BITCONV_OK;
}

void bc_read_buffer_free(struct bc_read_buffer *buffer)
{
    bc_free(buffer->bytes);
    buffer->bytes = NULL;
}

struct reading {
    const uint8_t *bytes;
    uint64_t *folded; /* one per thread: what was read is used for something */
};

static void read_part(void *ctx, size_t i, unsigned worker)
{
    const struct reading *job = ctx;
    const uint8_t *part = job->bytes + i * PART;
    uint64_t folded[STREAMS] = {0};
    for (size_t at = 0; at < PART / STREAMS; at += LINE)
        for (size_t s = 0; s < STREAMS; s++)
            folded[s] ^= bc_get_u64(part + s * (PART / STREAMS) + at);
    for (size_t s = 0; s < STREAMS; s++)
        job->folded[worker] ^= folded[s];
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bc_read_bandwidth(const struct bc_read_buffer *buffer, struct bc_pool *pool)
{
    uint64_t *folded = bc_alloc_array(bc_pool_threads(pool), sizeof *folded);
    struct reading job = {buffer->bytes, folded};
    double best = 0;
    if (folded == NULL) return 0;
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = now();
        bc_pool_run(pool, buffer->size / PART, read_part, &job);
        const double seconds = now() - start;
        const double rate = seconds > 0 ? (double)buffer->size / seconds : 0;
        if (rate > best) best = rate;
    }
    bc_free(folded);
    return best;
}
