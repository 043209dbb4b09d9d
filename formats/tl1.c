/* SPDX-License-Identifier: MIT
 * TL1: pairs of columns as nibbles, two pairs a byte, in the order in which the look-up-table
 * kernel of its shape walks the matrix. The spec is tl1.md. */
#include <stdio.h>

#include "formats/dot.h"
#include "formats/rows.h"
#include "formats/tiling.h"
#include "formats/tl1_ref.h"
#include "formats/tl_blocks.h"
#include "quant/kernels.h"

enum {
    TYPE_ID = 38,
    FILE_TYPE = 38,
    TAIL_BYTES = 32,
    GROUP = 4,        /* columns of a byte */
    COLUMN_BLOCK = 64 /* bytes of bm rows by 256 / bm columns */
};

static bool check(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    if (shape->slices == 1)
        return bc_tiling_check(BC_TILED_TL1, shape->rows, shape->cols, shape->tile, why, why_size);
    snprintf(why, why_size, "TL1 holds matrices only, not stacks of them");
    return false;
}

static bool choose_tile(const struct bc_tilings *config, const struct bc_pack_shape *shape,
                        uint32_t tile[3], char *why, size_t why_size)
{
    return bc_tiling_choose(config, BC_TILED_TL1, shape->rows, shape->cols, tile, NULL, why,
                            why_size);
}

static uint64_t trit_bytes(const struct bc_pack_shape *shape)
{
    return shape->n / 4;
}

static uint64_t size(const struct bc_pack_shape *shape)
{
    return trit_bytes(shape) + TAIL_BYTES;
}

static struct bc_tl_grid grid_of(const struct bc_pack_shape *shape)
{
    return (struct bc_tl_grid){.cols = shape->cols,
                               .rows = shape->rows,
                               .first_col = 0,
                               .n_tiles = shape->cols / shape->tile[1],
                               .tile_rows = shape->tile[0],
                               .tile_cols = shape->tile[1],
                               .block_rows = shape->tile[2],
                               .group = GROUP};
}

static uint64_t block_bytes(const struct bc_tl_grid *g)
{
    return (uint64_t)g->block_rows * g->tile_cols / 4;
}

/* The bytes of a row come in twos. The first one of the row stands here in its block; the second
 * one of the two, and the first one of the next, stand so much behind it. A column block of 64 rows
 * has one byte of each, the next is in the next column block; one of 32 rows has both. */
static uint32_t place_of(const struct bc_tl_grid *g, uint32_t row)
{
    return g->block_rows == 64 ? row : row / 16 * 32 + row % 16;
}

static size_t second_of(const struct bc_tl_grid *g)
{
    return g->block_rows == 64 ? COLUMN_BLOCK : 16;
}

static size_t step_of(const struct bc_tl_grid *g)
{
    return g->block_rows == 64 ? 2 * COLUMN_BLOCK : COLUMN_BLOCK;
}

static void encode(const struct bc_tl_grid *g, const int8_t *trits, uint64_t block, uint32_t row,
                   uint8_t *packed)
{
    uint8_t *dst = packed + block * block_bytes(g) + place_of(g, row);
    const size_t second = second_of(g), step = step_of(g);
    uint32_t col = 0;
    for (; col + 2 * GROUP <= g->tile_cols; col += 2 * GROUP) {
        bc_tl_put_pair_bytes(bc_tl_codes(trits + col), dst, dst + second);
        dst += step;
    }
    if (col < g->tile_cols) { /* an odd number of column blocks of four */
        int8_t last[2 * GROUP] = {0};
        uint8_t unused;
        memcpy(last, trits + col, GROUP);
        bc_tl_put_pair_bytes(bc_tl_codes(last), dst, &unused);
    }
}

static bool decode(const struct bc_tl_grid *g, const uint8_t *packed, uint64_t block, uint32_t row,
                   uint32_t first, uint32_t n, int8_t *trits)
{
    const size_t second = second_of(g), step = step_of(g);
    const uint8_t *src = packed + block * block_bytes(g) + place_of(g, row);
    uint64_t seen = 0;
    src += first / 2 * step;
    if (first % 2 != 0 && n > 0) {
        seen |= bc_tl_get_pairs(src[second], trits);
        src += step;
        trits += GROUP;
        n--;
    }
    for (; n >= 2; n -= 2) {
        const uint64_t low = bc_tl_trits_of_byte[src[0]], high = bc_tl_trits_of_byte[src[second]];
        bc_put_u64((uint8_t *)trits, (low & UINT32_MAX) | high << 32);
        seen |= low | high;
        src += step;
        trits += 2 * GROUP;
    }
    if (n > 0) seen |= bc_tl_get_pairs(src[0], trits);
    return seen >> 32 == 0;
}

static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    const struct bc_tl_grid grid = grid_of(shape);
    (void)k;
    (void)first; /* the whole tensor: granule is 0 */
    (void)n;
    bc_tl_pack(&grid, encode, trits, packed);
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const struct bc_tl_grid grid = grid_of(shape);
    (void)k;
    return bc_tl_unpack(&grid, decode, packed, first, n, trits);
}

static void put_scales(const struct bc_pack_shape *shape, const float *scales, uint32_t n_scales,
                       uint8_t *packed)
{
    uint8_t *tail = packed + trit_bytes(shape); /* legal tiles make this a multiple of 32 */
    (void)n_scales;
    memset(tail, 0, TAIL_BYTES);
    bc_put_f32(tail, scales[0]);
}

static float get_scale(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice)
{
    (void)slice;
    return bc_get_f32(packed + trit_bytes(shape));
}

/* ---- products ---- */

enum {
    TABLE_COLUMNS = BC_TL_TABLES / BC_PAIR_TABLE * GROUP,
    MANY_VECTORS = 64, /* with so many, decoding once is cheaper than looking up so often */
    SIXTEEN = 16       /* rows whose bytes stand together */
};

static void make_tables(const struct bc_kernels *k, const int8_t *x, uint32_t n_cols,
                        uint8_t *tables)
{
    k->pair_tables(x, n_cols / GROUP, tables);
}

/* Blocks of 32 rows have the bytes of even and of odd groups of four columns apart. */
static void add_up(const struct bc_kernels *k, const struct bc_tl_grid *g, const uint8_t *packed,
                   uint64_t block, uint32_t row, uint32_t col, uint32_t n_cols,
                   const uint8_t *tables, int32_t sums[BC_TL_ROWS])
{
    const uint8_t *src = packed + block * block_bytes(g) + col / (2 * GROUP) * step_of(g);
    const size_t n_even = (n_cols / GROUP + 1) / 2, n_odd = n_cols / GROUP / 2;
    for (uint32_t r = 0; r < BC_TL_ROWS; r += SIXTEEN) {
        const uint8_t *even = src + place_of(g, row + r);
        k->pair_sums(even, step_of(g), n_even, tables, 2 * BC_PAIR_TABLE, sums + r);
        k->pair_sums(even + second_of(g), step_of(g), n_odd, tables + BC_PAIR_TABLE,
                     2 * BC_PAIR_TABLE, sums + r);
    }
}

static const struct bc_tl_product product = {
    .columns = TABLE_COLUMNS, .make_tables = make_tables, .add_up = add_up};

static void dot_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                     const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                     uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    const struct bc_tl_grid grid = grid_of(shape);
    if (n_x >= MANY_VECTORS) {
        bc_dot_decoded(&bc_format_tl1, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
        return;
    }
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    bc_tl_dot_rows(&grid, &product, k, packed, row, n_rows, x, x_stride, n_x, out);
}

const struct bc_format bc_format_tl1 = {
    .name = "tl1",
    .title = "pairs of weights in the order of bitnet.cpp's look-up-table kernels for ARM",
    .type_name = "TL1",
    .type_id = TYPE_ID,
    .file_type = FILE_TYPE,
    .granule = 0,
    .row_major = false,
    .max_scales = 1,
    .check = check,
    .size = size,
    .pack = pack,
    .unpack = unpack,
    .put_scales = put_scales,
    .get_scale = get_scale,
    .trit_bytes = trit_bytes,
    .trit_at = bc_tl1_trit_at,
    .dot_rows = dot_rows,
    .row_step = BC_TL_ROWS,
    .trits_at = bc_tl1_trits_at,
    .choose_tile = choose_tile,
};
