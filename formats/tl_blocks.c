/* SPDX-License-Identifier: MIT
 * The walk over blocks and tiles that TL1 and both runs of TL2 have in common.
 *
 * The matrix goes row by row, the packed bytes block by block. Tiles side by side are walked
 * together, as many as leave their blocks in the first-level cache: then a row is read (or written)
 * in runs long enough for the processor to fetch ahead. */
#include "formats/tl_blocks.h"

enum { TRITS_AT_ONCE = 32768 };

uint64_t bc_tl_block_of(const struct bc_tl_grid *g, uint64_t row, uint64_t tile)
{
    const uint64_t tile_row = row / g->tile_rows;
    const uint64_t block = row % g->tile_rows / g->block_rows;
    return (tile_row * g->n_tiles + tile) * (g->tile_rows / g->block_rows) + block;
}

static uint64_t tiles_at_once(const struct bc_tl_grid *g)
{
    const uint64_t n = TRITS_AT_ONCE / g->block_rows / g->tile_cols;
    return n == 0 ? 1 : n;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void bc_tl_pack(const struct bc_tl_grid *grid, bc_tl_encode encode, const int8_t *trits,
                uint8_t *packed)
{
    const uint64_t blocks_of_tile = grid->tile_rows / grid->block_rows;
    const uint64_t step = tiles_at_once(grid);
    for (uint64_t row = 0; row < grid->rows; row += grid->block_rows) {
        for (uint64_t tile = 0; tile < grid->n_tiles; tile += step) {
            const uint64_t n = min_u64(step, grid->n_tiles - tile);
            const uint64_t block = bc_tl_block_of(grid, row, tile);
            for (uint32_t r = 0; r < grid->block_rows; r++) {
                const int8_t *src =
                    trits + (row + r) * grid->cols + grid->first_col + tile * grid->tile_cols;
                for (uint64_t i = 0; i < n; i++, src += grid->tile_cols)
                    encode(grid, src, block + i * blocks_of_tile, r, packed);
            }
        }
    }
}

/* What unpacking carries around. */
struct range {
    const struct bc_tl_grid *grid;
    bc_tl_decode decode;
    const uint8_t *packed;
    uint64_t first, end; /* flat indices of what is wanted */
    int8_t *trits;       /* where `first` goes */
};

/* Part of a group, columns [begin, end) of the tile: the whole group is decoded, and only what is
 * asked for is judged. */
static bool unpack_part(const struct range *r, uint64_t block, uint32_t row, uint32_t begin,
                        uint32_t end, int8_t *trits)
{
    int8_t group[BC_TL_MAX_GROUP];
    const uint32_t size = r->grid->group;
    bool legal = true;
    (void)r->decode(r->grid, r->packed, block, row, begin / size, 1, group);
    for (uint32_t i = 0; i < end - begin; i++) {
        trits[i] = group[begin % size + i];
        if (trits[i] == BC_TRIT_ILLEGAL) legal = false;
    }
    return legal;
}

/* Columns [begin, end) of one row of a tile: a part of a group, whole groups, a part of a group. */
static bool unpack_row(const struct range *r, uint64_t block, uint32_t row, uint32_t begin,
                       uint32_t end, int8_t *trits)
{
    const uint32_t size = r->grid->group;
    bool legal = true;
    while (begin < end) {
        uint32_t stop = begin + (end - begin) / size * size;
        if (begin % size != 0 || stop == begin) {
            stop = (uint32_t)min_u64(end, (uint64_t)begin / size * size + size);
            if (!unpack_part(r, block, row, begin, stop, trits)) legal = false;
        } else {
            const uint32_t n = (stop - begin) / size;
            if (!r->decode(r->grid, r->packed, block, row, begin / size, n, trits)) legal = false;
        }
        trits += stop - begin;
        begin = stop;
    }
    return legal;
}

/* What the range wants of one row in tiles [tile, tile + n); `block` is the first tile's. */
static bool unpack_tiles(const struct range *r, uint64_t row, uint64_t tile, uint64_t n,
                         uint64_t block)
{
    const struct bc_tl_grid *const g = r->grid;
    const uint64_t blocks_of_tile = g->tile_rows / g->block_rows;
    uint64_t at = row * g->cols + g->first_col + tile * g->tile_cols; /* flat index of the tile */
    const uint32_t r_row = (uint32_t)(row % g->block_rows);
    bool legal = true;
    for (uint64_t i = 0; i < n; i++, at += g->tile_cols) {
        const uint64_t begin = at < r->first ? r->first - at : 0;
        const uint64_t end = at < r->end ? min_u64(r->end - at, g->tile_cols) : 0;
        const uint64_t b = block + i * blocks_of_tile;
        if (begin >= end) continue;
        int8_t *const dst = r->trits + (at + begin - r->first);
        const bool whole = end - begin == g->tile_cols;
        if (whole ? !r->decode(g, r->packed, b, r_row, 0, g->tile_cols / g->group, dst)
                  : !unpack_row(r, b, r_row, (uint32_t)begin, (uint32_t)end, dst))
            legal = false;
    }
    return legal;
}

bool bc_tl_unpack(const struct bc_tl_grid *grid, bc_tl_decode decode, const uint8_t *packed,
                  uint64_t first, uint64_t n, int8_t *trits)
{
    const struct range r = {grid, decode, packed, first, first + n, trits};
    const uint64_t step = tiles_at_once(grid);
    const uint64_t end_row = n == 0 ? 0 : (r.end - 1) / grid->cols + 1;
    bool legal = true;
    for (uint64_t row = first / grid->cols; row < end_row;) {
        const uint64_t end_of_block = row - row % grid->block_rows + grid->block_rows;
        const uint64_t stop = min_u64(end_row, end_of_block);
        for (uint64_t tile = 0; tile < grid->n_tiles; tile += step) {
            const uint64_t n_tiles = min_u64(step, grid->n_tiles - tile);
            const uint64_t block = bc_tl_block_of(grid, row, tile);
            for (uint64_t i = row; i < stop; i++) {
                if (!unpack_tiles(&r, i, tile, n_tiles, block)) legal = false;
            }
        }
        row = stop;
    }
    return legal;
}
