/* SPDX-License-Identifier: MIT
 * Dot products with rows of block packs: kernels give one integer per block, which is summed as it
 * is, or after it was multiplied with the block's scale. */
#include <string.h>

#include "base/bytes.h"
#include "formats/block_rows.h"
#include "formats/dot.h"

enum {
    BATCH = 64,       /* blocks whose integers are held at once */
    MANY_VECTORS = 3, /* with so many, decoding once is cheaper than so many kernels' decoding */
};

/* A row's blocks [first, first + n), n <= BATCH, and a vector's part that they are multiplied with.
 */
struct run {
    const struct bc_block_pack *bp;
    const struct bc_kernels *k;
    uint64_t first, n;
    const int8_t *x;
    int32_t offsets[BATCH]; /* what the codes, trit + 1, count too much */
};

static void start_run(struct run *run, const int8_t *x, uint64_t first, uint64_t n_blocks)
{
    run->first = first;
    run->n = n_blocks - first < BATCH ? n_blocks - first : BATCH;
    run->x = x + first * run->bp->block;
    run->k->block_sums(run->x, (size_t)run->n, run->bp->block, run->offsets);
}

static int32_t integer_sum(const struct run *run, const uint8_t *row_blocks)
{
    int32_t dots[BATCH];
    int32_t sum = 0;
    run->bp->block_codes(run->k, row_blocks + run->first * run->bp->block_size, run->n, run->x,
                         dots);
    for (uint64_t i = 0; i < run->n; i++)
        sum += dots[i] - run->offsets[i];
    return sum;
}

static float scaled_sum(const struct run *run, const uint8_t *row_blocks, float sum)
{
    const uint8_t *block = row_blocks + run->first * run->bp->block_size;
    int32_t dots[BATCH];
    run->bp->block_codes(run->k, block, run->n, run->x, dots);
    for (uint64_t i = 0; i < run->n; i++, block += run->bp->block_size)
        sum += (float)(dots[i] - run->offsets[i]) * bc_block_scale(run->bp, block);
    return sum;
}

void bc_block_integer_rows(const struct bc_block_pack *bp, const struct bc_kernels *k,
                           const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                           uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                           int32_t *out)
{
    const uint64_t n_blocks = shape->cols / bp->block, row_bytes = n_blocks * bp->block_size;
    struct run run = {.bp = bp, .k = k};
    if (n_x >= MANY_VECTORS) {
        bc_dot_decoded(bp->format, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
        return;
    }
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    for (uint32_t v = 0; v < n_x; v++) {
        for (uint64_t first = 0; first < n_blocks; first += BATCH) {
            start_run(&run, x + v * x_stride, first, n_blocks);
            for (uint64_t r = 0; r < n_rows; r++)
                out[v * n_rows + r] += integer_sum(&run, packed + (row + r) * row_bytes);
        }
    }
}

void bc_block_dot_rows(const struct bc_block_pack *bp, const struct bc_kernels *k,
                       const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                       uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                       float *out)
{
    const uint64_t n_blocks = shape->cols / bp->block, row_bytes = n_blocks * bp->block_size;
    struct run run = {.bp = bp, .k = k};
    for (uint64_t i = 0; i < n_rows * n_x; i++)
        out[i] = 0.0f;
    for (uint32_t v = 0; v < n_x; v++) {
        for (uint64_t first = 0; first < n_blocks; first += BATCH) {
            start_run(&run, x + v * x_stride, first, n_blocks);
            for (uint64_t r = 0; r < n_rows; r++) {
                float *sum = &out[v * n_rows + r];
                *sum = scaled_sum(&run, packed + (row + r) * row_bytes, *sum);
            }
        }
    }
}
