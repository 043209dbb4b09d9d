/* SPDX-License-Identifier: MIT
 * Dot products with rows of block packs. */
#include <string.h>

#include "base/bytes.h"
#include "formats/block_rows.h"

enum { BATCH = 64 }; /* blocks: of 256 trits, they fit half of a first-level cache */

/* One row's part of the sum, n_blocks <= BATCH. */
static float add_blocks(const struct bc_block_pack *bp, const struct bc_kernels *k,
                        const uint8_t *blocks, uint64_t n_blocks, const int8_t *x, float sum)
{
    int32_t dots[BATCH];
    bp->block_dots(k, blocks, n_blocks, x, dots);
    for (uint64_t i = 0; i < n_blocks; i++)
        sum += (float)dots[i] * bc_block_scale(bp, blocks + i * bp->block_size);
    return sum;
}

void bc_block_dot_rows(const struct bc_block_pack *bp, const struct bc_kernels *k,
                       const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                       uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                       float *out)
{
    const uint64_t n_blocks = shape->cols / bp->block; /* of a row */
    for (uint64_t r = 0; r < n_rows; r++) {
        const uint8_t *blocks = packed + (row + r) * n_blocks * bp->block_size;
        for (uint32_t v = 0; v < n_x; v++) {
            float sum = 0.0f;
            for (uint64_t b = 0; b < n_blocks; b += BATCH) {
                const uint64_t n = n_blocks - b < BATCH ? n_blocks - b : BATCH;
                sum = add_blocks(bp, k, blocks + b * bp->block_size, n,
                                 x + v * x_stride + b * bp->block, sum);
            }
            out[v * n_rows + r] = sum;
        }
    }
}

void bc_block_dots_decoded(const struct bc_block_pack *bp, const struct bc_kernels *k,
                           const uint8_t *blocks, uint64_t n_blocks, const int8_t *x, int32_t *dots)
{
    int8_t trits[256];
    const struct bc_pack_shape shape = {.cols = bp->block, .rows = 1, .slices = 1, .n = bp->block};
    for (uint64_t i = 0; i < n_blocks; i++) {
        (void)bp->format->unpack(k, &shape, blocks + i * bp->block_size, 0, bp->block, trits);
        const struct bc_i8_dots dot = {.w = (const uint8_t *)trits,
                                       .n_rows = 1,
                                       .x = x + i * bp->block,
                                       .n_x = 1,
                                       .n = bp->block,
                                       .out = dots + i};
        dots[i] = 0;
        k->trit_dots(&dot);
    }
}
