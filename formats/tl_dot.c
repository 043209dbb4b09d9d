/* SPDX-License-Identifier: MIT
 * Dot products with the rows of TL1 and TL2, tile column by tile column: the tables of a tile's
 * columns serve all rows, which is what these packs' order is for. */
#include "formats/tl_blocks.h"

/* A part of a tile column and of a vector, and what the rows wanted are. */
struct part {
    const struct bc_tl_grid *grid;
    const struct bc_tl_product *product;
    const struct bc_kernels *k;
    const uint8_t *packed;
    uint64_t row, n_rows;
    uint64_t tile;
    uint32_t col, n_cols; /* within the tile */
};

/* Rows are summed BC_TL_ROWS at a time, and those wanted of them taken. */
static void add_part(const struct part *p, const uint8_t *tables, int32_t *out)
{
    const uint64_t end = p->row + p->n_rows;
    for (uint64_t row = p->row / BC_TL_ROWS * BC_TL_ROWS; row < end; row += BC_TL_ROWS) {
        int32_t sums[BC_TL_ROWS] = {0};
        p->product->add_up(p->k, p->grid, p->packed, bc_tl_block_of(p->grid, row, p->tile),
                           (uint32_t)(row % p->grid->block_rows), p->col, p->n_cols, tables, sums);
        for (uint64_t i = 0; i < BC_TL_ROWS; i++) {
            if (row + i >= p->row && row + i < end) out[row + i - p->row] += sums[i];
        }
    }
}

void bc_tl_dot_rows(const struct bc_tl_grid *grid, const struct bc_tl_product *product,
                    const struct bc_kernels *k, const uint8_t *packed, uint64_t row,
                    uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    uint8_t tables[BC_TL_TABLES];
    struct part part = {
        .grid = grid, .product = product, .k = k, .packed = packed, .row = row, .n_rows = n_rows};
    for (part.tile = 0; part.tile < grid->n_tiles; part.tile++) {
        const uint64_t first = grid->first_col + part.tile * grid->tile_cols;
        for (part.col = 0; part.col < grid->tile_cols; part.col += part.n_cols) {
            const uint32_t left = grid->tile_cols - part.col;
            part.n_cols = left < product->columns ? left : product->columns;
            for (uint32_t v = 0; v < n_x; v++) {
                product->make_tables(k, x + v * x_stride + first + part.col, part.n_cols, tables);
                add_part(&part, tables, out + v * n_rows);
            }
        }
    }
}
