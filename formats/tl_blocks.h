/* SPDX-License-Identifier: MIT
 * What the packers of TL1 and TL2 share: the walk over blocks of rows within tiles, and the byte of
 * two pairs. */
#ifndef BC_FORMATS_TL_BLOCKS_H
#define BC_FORMATS_TL_BLOCKS_H

#include "base/bytes.h"
#include "formats/format.h"

/* A run of columns of a matrix, cut into tiles of tile_rows x tile_cols. Tiles follow one another
 * by rows of tiles; a tile is its blocks of block_rows rows, each of them contiguous bytes. */
struct bc_tl_grid {
    uint64_t cols; /* of the whole matrix */
    uint64_t rows;
    uint64_t first_col; /* of the run */
    uint64_t n_tiles;   /* side by side in the run */
    uint32_t tile_rows; /* BM */
    uint32_t tile_cols;
    uint32_t block_rows; /* bm */
    uint32_t group;      /* columns that are decoded together: 4 or 24, divides tile_cols */
    const struct bc_kernels *kernels; /* for those who pack and unpack with them */
};

enum { BC_TL_MAX_GROUP = 24 };

/* Packs one row of a block (tile_cols trits). Rows of a block come in ascending order. */
typedef void (*bc_tl_encode)(const struct bc_tl_grid *grid, const int8_t *trits, uint64_t block,
                             uint32_t row, uint8_t *packed);
/* Unpacks n whole groups from group `first` on of one row of a block; false when one is illegal. */
typedef bool (*bc_tl_decode)(const struct bc_tl_grid *grid, const uint8_t *packed, uint64_t block,
                             uint32_t row, uint32_t first, uint32_t n, int8_t *trits);

/* Packs the whole run. */
void bc_tl_pack(const struct bc_tl_grid *grid, bc_tl_encode encode, const int8_t *trits,
                uint8_t *packed);
/* Unpacks what the run holds of trits [first, first + n) of the matrix's flat order. */
bool bc_tl_unpack(const struct bc_tl_grid *grid, bc_tl_decode decode, const uint8_t *packed,
                  uint64_t first, uint64_t n, int8_t *trits);

/* Number of the block that holds `row` in tile column `tile`. */
uint64_t bc_tl_block_of(const struct bc_tl_grid *grid, uint64_t row, uint64_t tile);

/* How a run's rows are multiplied, BC_TL_ROWS at a time, through tables made of a vector's part. */
enum { BC_TL_ROWS = 32, BC_TL_TABLES = 8192 };
struct bc_tl_product {
    uint32_t
        columns; /* whose tables fit BC_TL_TABLES bytes; a multiple of the grid's group and 8 */
    void (*make_tables)(const struct bc_kernels *k, const int8_t *x, uint32_t n_cols,
                        uint8_t *tables);
    /* Adds up rows [row, row + BC_TL_ROWS) of a block over columns [col, col + n_cols) of it. */
    void (*add_up)(const struct bc_kernels *k, const struct bc_tl_grid *grid, const uint8_t *packed,
                   uint64_t block, uint32_t row, uint32_t col, uint32_t n_cols,
                   const uint8_t *tables, int32_t sums[BC_TL_ROWS]);
};
/* Adds the run's part of dot_rows to out (formats/format.h). */
void bc_tl_dot_rows(const struct bc_tl_grid *grid, const struct bc_tl_product *product,
                    const struct bc_kernels *k, const uint8_t *packed, uint64_t row,
                    uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x,
                    int32_t *out);

/* Eight trits as codes trit + 1 in the bytes of a word, the first in the lowest. */
static inline uint64_t bc_tl_codes(const int8_t *trits)
{
    const uint64_t threes = UINT64_C(0x0303030303030303), ones = UINT64_C(0x0101010101010101);
    return ((bc_get_u64((const uint8_t *)trits) & threes) + ones) & threes; /* nothing carries */
}

/* Eight codes x as two bytes of two pairs each. A pair (a, b) of trits is 3a + b + 4 = 3 x0 + x1,
 * the first pair of a byte is its high nibble: 48 x0 + 16 x1 + 3 x2 + x3, which the product gives
 * in its bytes 3 and 7; all its bytes stay under 256, so nothing carries into them. */
static inline void bc_tl_put_pair_bytes(uint64_t codes, uint8_t *first, uint8_t *second)
{
    const uint64_t product = codes * 0x30100301u;
    *first = (uint8_t)(product >> 24);
    *second = (uint8_t)(product >> 56);
}

/* The four trits of a byte as bytes, the first lowest, BC_TRIT_ILLEGAL where a nibble is above 8 and
 * therefore no pair; then bit 32 is set. */
extern const uint64_t bc_tl_trits_of_byte[256];

/* The four trits of such a byte; returns its entry. */
static inline uint64_t bc_tl_get_pairs(uint8_t byte, int8_t trits[4])
{
    const uint64_t entry = bc_tl_trits_of_byte[byte];
    bc_put_u32((uint8_t *)trits, (uint32_t)entry);
    return entry;
}

#endif
