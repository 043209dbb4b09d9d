/* SPDX-License-Identifier: MIT
 * TL2: triples of columns as a magnitude (nibble) and a sign (bit), the last columns as pairs, in
 * the order in which the look-up-table kernel of its shape walks the matrix. The spec is tl2.md. */
#include <stdio.h>

#include "formats/dot.h"
#include "formats/rows.h"
#include "formats/tiling.h"
#include "formats/tl2_ref.h"
#include "formats/tl_blocks.h"
#include "quant/kernels.h"

enum {
    TYPE_ID = 39,
    TYPE_ID_REBASED = 42, /* 39 is MXFP4 there */
    FILE_TYPE = 39,
    TAIL_BYTES = 32,
    BLOCK_ROWS = 32,
    HALF_BLOCK = BLOCK_ROWS / 2,
    TRIPLES = 8, /* that share a word of signs: a group of 24 columns */
    TRIPLE_GROUP = 3 * TRIPLES,
    PAIR_TILE = 32, /* columns */
    PAIR_GROUP = 4
};

static bool check(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    if (shape->slices == 1)
        return bc_tiling_check(BC_TILED_TL2, shape->rows, shape->cols, shape->tile, why, why_size);
    snprintf(why, why_size, "TL2 holds matrices only, not stacks of them");
    return false;
}

static bool choose_tile(const struct bc_tilings *config, const struct bc_pack_shape *shape,
                        uint32_t tile[3], char *why, size_t why_size)
{
    return bc_tiling_choose(config, BC_TILED_TL2, shape->rows, shape->cols, tile, NULL, why,
                            why_size);
}

static uint64_t trit_bytes(const struct bc_pack_shape *shape)
{
    return bc_tl2_used(shape->rows, shape->cols, shape->tile[1]);
}

/* The scale stands where the runtime looks for it, whatever the sections really take. */
static uint64_t scale_offset(const struct bc_pack_shape *shape)
{
    return bc_round_up(bc_tl2_formula(shape->rows, shape->cols), 32);
}

static uint64_t size(const struct bc_pack_shape *shape)
{
    return scale_offset(shape) + TAIL_BYTES;
}

static struct bc_tl_grid triple_grid(const struct bc_kernels *k, const struct bc_pack_shape *shape)
{
    return (struct bc_tl_grid){.cols = shape->cols,
                               .rows = shape->rows,
                               .first_col = 0,
                               .n_tiles = shape->cols / shape->tile[1],
                               .tile_rows = shape->tile[0],
                               .tile_cols = shape->tile[1],
                               .block_rows = BLOCK_ROWS,
                               .group = TRIPLE_GROUP,
                               .kernels = k};
}

static struct bc_tl_grid pair_grid(const struct bc_pack_shape *shape)
{
    const uint64_t two_cols = shape->cols % shape->tile[1];
    return (struct bc_tl_grid){.cols = shape->cols,
                               .rows = shape->rows,
                               .first_col = shape->cols - two_cols,
                               .n_tiles = two_cols / PAIR_TILE,
                               .tile_rows = shape->tile[0],
                               .tile_cols = PAIR_TILE,
                               .block_rows = BLOCK_ROWS,
                               .group = PAIR_GROUP};
}

static uint64_t magnitude_bytes(const struct bc_tl_grid *g)
{
    return g->n_tiles * g->tile_cols * g->rows / 6;
}

static uint64_t sign_bytes(const struct bc_tl_grid *g)
{
    return g->n_tiles * g->tile_cols * g->rows / 24;
}

/* Place of a row of a block among the bytes of its columns: the middle quarters of the block change
 * places, since AVX2 widens bytes to 16 bits within its 128-bit halves. */
static uint32_t slot_of(uint32_t row)
{
    const uint32_t quarter = row / 8;
    if (quarter == 1) return row + 8;
    if (quarter == 2) return row - 8;
    return row;
}

/* Where a block's magnitudes and signs begin. */
static uint64_t magnitudes_of(const struct bc_tl_grid *g, uint64_t block)
{
    return block * (g->tile_cols / 6) * BLOCK_ROWS;
}

static uint64_t signs_of(const struct bc_tl_grid *g, uint64_t block)
{
    return magnitude_bytes(g) + block * (g->tile_cols / TRIPLE_GROUP) * BLOCK_ROWS;
}

static void encode_triple_row(const struct bc_tl_grid *g, const int8_t *trits, uint64_t block,
                              uint32_t row, uint8_t *packed)
{
    g->kernels->tl2_pack_row(trits, g->tile_cols / TRIPLE_GROUP, row / HALF_BLOCK,
                             packed + magnitudes_of(g, block) + slot_of(row),
                             packed + signs_of(g, block) + row % HALF_BLOCK * 2);
}

static bool decode_triples(const struct bc_tl_grid *g, const uint8_t *packed, uint64_t block,
                           uint32_t row, uint32_t first, uint32_t n, int8_t *trits)
{
    const uint8_t *magnitudes = packed + magnitudes_of(g, block) + slot_of(row);
    const uint8_t *words = packed + signs_of(g, block) + row % HALF_BLOCK * 2;
    return g->kernels->tl2_unpack_row(magnitudes + (size_t)first * 4 * BLOCK_ROWS,
                                      words + (size_t)first * BLOCK_ROWS, row / HALF_BLOCK, n,
                                      trits);
}

static void encode_pair_row(const struct bc_tl_grid *g, const int8_t *trits, uint64_t block,
                            uint32_t row, uint8_t *packed)
{
    uint8_t *dst = packed + block * (BLOCK_ROWS * PAIR_TILE / 4) + slot_of(row);
    for (uint32_t col = 0; col < g->tile_cols; col += 2 * PAIR_GROUP) {
        bc_tl_put_pair_bytes(bc_tl_codes(trits + col), dst, dst + BLOCK_ROWS);
        dst += 2 * BLOCK_ROWS;
    }
}

static bool decode_pairs(const struct bc_tl_grid *g, const uint8_t *packed, uint64_t block,
                         uint32_t row, uint32_t first, uint32_t n, int8_t *trits)
{
    const uint8_t *const src = packed + block * (BLOCK_ROWS * PAIR_TILE / 4) + slot_of(row);
    uint64_t seen = 0;
    (void)g;
    for (uint32_t i = first; i < first + n; i++, trits += PAIR_GROUP)
        seen |= bc_tl_get_pairs(src[(size_t)i * BLOCK_ROWS], trits);
    return seen >> 32 == 0;
}

static void pack(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed)
{
    const struct bc_tl_grid three = triple_grid(k, shape), two = pair_grid(shape);
    (void)first; /* the whole tensor: granule is 0 */
    (void)n;
    bc_tl_pack(&three, encode_triple_row, trits, packed);
    bc_tl_pack(&two, encode_pair_row, trits, packed + magnitude_bytes(&three) + sign_bytes(&three));
}

static bool unpack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    const struct bc_tl_grid three = triple_grid(k, shape), two = pair_grid(shape);
    const uint8_t *const pairs = packed + magnitude_bytes(&three) + sign_bytes(&three);
    const bool triples_legal = bc_tl_unpack(&three, decode_triples, packed, first, n, trits);
    return bc_tl_unpack(&two, decode_pairs, pairs, first, n, trits) && triples_legal;
}

static void put_scales(const struct bc_pack_shape *shape, const float *scales, uint32_t n_scales,
                       uint8_t *packed)
{
    const uint64_t end_of_trits = trit_bytes(shape);
    (void)n_scales;
    memset(packed + end_of_trits, 0, (size_t)(size(shape) - end_of_trits));
    bc_put_f32(packed + scale_offset(shape), scales[0]);
}

static float get_scale(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice)
{
    (void)slice;
    return bc_get_f32(packed + scale_offset(shape));
}

/* ---- products ---- */

enum {
    TRIPLE_COLUMNS = BC_TL_TABLES / BC_TRIPLE_TABLE / TRIPLES * TRIPLE_GROUP,
    MANY_VECTORS = 64 /* with so many, decoding once is cheaper than looking up so often */
};

static void make_triple_tables(const struct bc_kernels *k, const int8_t *x, uint32_t n_cols,
                               uint8_t *tables)
{
    k->triple_tables(x, n_cols / 3, tables);
}

static void add_up_triples(const struct bc_kernels *k, const struct bc_tl_grid *g,
                           const uint8_t *packed, uint64_t block, uint32_t row, uint32_t col,
                           uint32_t n_cols, const uint8_t *tables, int32_t sums[BC_TL_ROWS])
{
    const uint32_t group = col / TRIPLE_GROUP;
    (void)row; /* 0: a block is BC_TL_ROWS rows */
    k->triple_sums(packed + magnitudes_of(g, block) + (size_t)group * 4 * BLOCK_ROWS,
                   packed + signs_of(g, block) + (size_t)group * BLOCK_ROWS, n_cols / TRIPLE_GROUP,
                   tables, sums);
}

static void make_pair_tables(const struct bc_kernels *k, const int8_t *x, uint32_t n_cols,
                             uint8_t *tables)
{
    k->pair_tables(x, n_cols / PAIR_GROUP, tables);
}

/* The bytes of 16 rows that stand together are those of two quarters of a block. */
static void add_up_pairs(const struct bc_kernels *k, const struct bc_tl_grid *g,
                         const uint8_t *packed, uint64_t block, uint32_t row, uint32_t col,
                         uint32_t n_cols, const uint8_t *tables, int32_t sums[BC_TL_ROWS])
{
    const uint8_t *src = packed + block * (BLOCK_ROWS * PAIR_TILE / 4) + col / 4 * BLOCK_ROWS;
    int32_t by_slot[BLOCK_ROWS] = {0};
    (void)g;
    (void)row;
    for (uint32_t half = 0; half < BLOCK_ROWS; half += HALF_BLOCK)
        k->pair_sums(src + half, BLOCK_ROWS, n_cols / PAIR_GROUP, tables, BC_PAIR_TABLE,
                     by_slot + half);
    for (uint32_t r = 0; r < BLOCK_ROWS; r++)
        sums[r] += by_slot[slot_of(r)];
}

static const struct bc_tl_product triple_product = {
    .columns = TRIPLE_COLUMNS, .make_tables = make_triple_tables, .add_up = add_up_triples};
static const struct bc_tl_product pair_product = {
    .columns = PAIR_TILE, .make_tables = make_pair_tables, .add_up = add_up_pairs};

static void dot_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                     const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                     uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    const struct bc_tl_grid three = triple_grid(k, shape), two = pair_grid(shape);
    const uint8_t *const pairs = packed + magnitude_bytes(&three) + sign_bytes(&three);
    if (n_x >= MANY_VECTORS) {
        bc_dot_decoded(&bc_format_tl2, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
        return;
    }
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    bc_tl_dot_rows(&three, &triple_product, k, packed, row, n_rows, x, x_stride, n_x, out);
    bc_tl_dot_rows(&two, &pair_product, k, pairs, row, n_rows, x, x_stride, n_x, out);
}

const struct bc_format bc_format_tl2 = {
    .name = "tl2",
    .title = "triples of weights in the order of bitnet.cpp's look-up-table kernels for x86",
    .type_name = "TL2",
    .type_id = TYPE_ID,
    .type_id_rebased = TYPE_ID_REBASED,
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
    .trit_at = bc_tl2_trit_at,
    .dot_rows = dot_rows,
    .row_step = BC_TL_ROWS,
    .trits_at = bc_tl2_trits_at,
    .choose_tile = choose_tile,
};
