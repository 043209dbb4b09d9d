/* SPDX-License-Identifier: MIT
 * Which tile a matrix is packed in, and why a tile or a shape does not fit TL1 or TL2. */
#include "formats/tiling.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    BM_STEP = 32,       /* every legal BM is a multiple */
    BM_BOUND = 320,     /* the largest BM of a published model */
    BK_BOUND = 256,     /* 256 activations of at most 127 sum up to less than 2^15 */
    TRIPLE_STEP = 24,   /* TL2: eight triples, whose signs share a 16-bit word */
    PAIR_TILE = 32,     /* TL2: columns of a tile of pairs */
    FORMULA_PAIRS = 256 /* TL2: columns that F counts as pairs; it is made for K >= 256 */
};

/* Above these, F is not computable in signed 64 bits, which is what the runtime has. */
static const uint64_t max_values = UINT64_C(1) << 61;
static const uint64_t max_rows = UINT64_C(1) << 48;

BC_PRINTF(3, 4)
static bool refuse(char *why, size_t why_size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, why_size, fmt, ap);
    va_end(ap);
    return false;
}

static const char *name_of(enum bc_tiled_pack pack)
{
    return pack == BC_TILED_TL1 ? "TL1" : "TL2";
}

/* ---- the size of TL2 ---- */

uint64_t bc_tl2_formula(uint64_t rows, uint64_t cols)
{
    const int64_t m = (int64_t)rows;
    const int64_t k = (int64_t)cols;
    return (uint64_t)((k - FORMULA_PAIRS) * m / 3 * 5 / 8 + FORMULA_PAIRS * m / 2 * 4 / 8);
}

uint64_t bc_tl2_used(uint64_t rows, uint64_t cols, uint32_t bk)
{
    const uint64_t two_cols = cols % bk;
    const uint64_t three_cols = cols - two_cols;
    return three_cols * rows / 6 + three_cols * rows / 24 + two_cols * rows / 4;
}

static bool check_tl2_size(uint64_t rows, uint64_t cols, uint32_t bk, char *why, size_t why_size)
{
    const uint64_t formula = bc_tl2_formula(rows, cols);
    const uint64_t used = bc_tl2_used(rows, cols, bk);
    if (used > formula)
        return refuse(why, why_size,
                      "TL2: K %% BK is above %d: K = %" PRIu64 " columns, BK = %" PRIu32
                      " leave %" PRIu64 " for pairs, so that the trits take %" PRIu64
                      " bytes of the %" PRIu64 " that every runtime reckons with",
                      FORMULA_PAIRS, cols, bk, cols % bk, used, formula);
    return true;
}

/* ---- one tile ---- */

/* The configuration by itself. */
static bool check_tile(enum bc_tiled_pack pack, const uint32_t tile[3], char *why, size_t why_size)
{
    const uint32_t bm = tile[2];
    if (pack == BC_TILED_TL1 && bm != 32 && bm != 64)
        return refuse(why, why_size, "TL1: bm = %" PRIu32 ", it must be 32 or 64", bm);
    if (pack == BC_TILED_TL2 && bm != 32)
        return refuse(why, why_size, "TL2: bm = %" PRIu32 ", it must be 32", bm);
    if (tile[0] % bm != 0)
        return refuse(why, why_size,
                      "%s: BM %% bm is not 0: BM = %" PRIu32 ", bm = %" PRIu32 ", %" PRIu32
                      " left over",
                      name_of(pack), tile[0], bm, tile[0] % bm);
    const uint32_t step = pack == BC_TILED_TL1 ? 256 / bm : TRIPLE_STEP;
    if (tile[1] % step != 0)
        return refuse(why, why_size, "%s: BK = %" PRIu32 " is no multiple of %" PRIu32 "%s",
                      name_of(pack), tile[1], step,
                      pack == BC_TILED_TL1 ? " (256 / bm)" : " (eight triples)");
    return true;
}

static bool check_columns(enum bc_tiled_pack pack, uint64_t cols, uint32_t bk, char *why,
                          size_t why_size)
{
    const uint64_t rest = cols % bk;
    if (pack == BC_TILED_TL1 && rest != 0)
        return refuse(why, why_size,
                      "TL1: K %% BK is not 0: K = %" PRIu64 " columns, BK = %" PRIu32 ", %" PRIu64
                      " left over",
                      cols, bk, rest);
    if (pack == BC_TILED_TL2 && rest % PAIR_TILE != 0)
        return refuse(why, why_size,
                      "TL2: K %% BK is no multiple of %d: K = %" PRIu64 " columns, BK = %" PRIu32
                      ", a tail of %" PRIu64,
                      PAIR_TILE, cols, bk, rest);
    return true;
}

static bool check_extent(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, char *why,
                         size_t why_size)
{
    if (rows == 0 || cols == 0)
        return refuse(why, why_size, "%s: the tensor has no values", name_of(pack));
    if (rows > max_rows || cols > max_values / rows)
        return refuse(why, why_size, "%s: %" PRIu64 " x %" PRIu64 " values are too many",
                      name_of(pack), rows, cols);
    return true;
}

bool bc_tiling_check(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, const uint32_t tile[3],
                     char *why, size_t why_size)
{
    if (!check_extent(pack, rows, cols, why, why_size)) return false;
    if (tile[0] == 0 || tile[1] == 0 || tile[2] == 0)
        return refuse(why, why_size,
                      "%s: the kernel configuration (BM, BK, bm) of this tensor of %" PRIu64
                      " x %" PRIu64 " is not known, and the order of its bytes depends on it",
                      name_of(pack), rows, cols);
    if (!check_tile(pack, tile, why, why_size)) return false;
    if (rows % tile[0] != 0)
        return refuse(why, why_size,
                      "%s: M %% BM is not 0: M = %" PRIu64 " rows, BM = %" PRIu32 ", %" PRIu64
                      " left over",
                      name_of(pack), rows, tile[0], rows % tile[0]);
    if (!check_columns(pack, cols, tile[1], why, why_size)) return false;
    return pack == BC_TILED_TL1 || check_tl2_size(rows, cols, tile[1], why, why_size);
}

/* ---- the choice ---- */

/* What makes a shape illegal whatever the tile: tiling.md has the proof that nothing else does. */
static bool check_shape(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, char *why,
                        size_t why_size)
{
    const char *const name = name_of(pack);
    if (!check_extent(pack, rows, cols, why, why_size)) return false;
    if (rows % BM_STEP != 0)
        return refuse(why, why_size,
                      "%s: no BM fits: M = %" PRIu64 " rows are no multiple of %d, %" PRIu64
                      " left over",
                      name, rows, BM_STEP, rows % BM_STEP);
    if (pack == BC_TILED_TL2 && cols < FORMULA_PAIRS)
        return refuse(why, why_size,
                      "TL2: K = %" PRIu64 " columns are fewer than %d, for which the size formula "
                      "of the runtimes is made",
                      cols, FORMULA_PAIRS);
    const uint64_t step = pack == BC_TILED_TL1 && rows % 64 == 0 ? 4 : 8;
    if (cols % step != 0)
        return refuse(why, why_size,
                      "%s: no BK fits: K = %" PRIu64 " columns are no multiple of %" PRIu64
                      ", %" PRIu64 " left over",
                      name, cols, step, cols % step);
    return true;
}

/* The greatest legal bm for this BM and BK into tile; false when there is none. */
static bool try_tile(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, uint32_t bm_rows,
                     uint32_t bk, uint32_t tile[3])
{
    tile[0] = bm_rows;
    tile[1] = bk;
    for (tile[2] = 64; tile[2] >= 32; tile[2] -= 32) {
        if (bc_tiling_check(pack, rows, cols, tile, NULL, 0)) return true;
    }
    return false;
}

static bool try_columns(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, uint32_t bm_rows,
                        uint32_t tile[3])
{
    const uint32_t step = pack == BC_TILED_TL1 ? 4 : TRIPLE_STEP;
    const uint32_t bound = BK_BOUND / step * step;
    for (uint32_t bk = bound; bk > 0; bk -= step) {
        if (try_tile(pack, rows, cols, bm_rows, bk, tile)) return true;
    }
    if (pack == BC_TILED_TL1) return false;
    /* One multiple of 24 in four or so leaves a tail of whole 32s, so this ends soon. */
    for (uint64_t bk = bound + step; bk <= cols && bk <= UINT32_MAX; bk += step) {
        if (try_tile(pack, rows, cols, bm_rows, (uint32_t)bk, tile)) return true;
    }
    return false;
}

static bool choose_largest(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, uint32_t tile[3],
                           char *why, size_t why_size)
{
    if (!check_shape(pack, rows, cols, why, why_size)) return false;
    for (uint32_t bm_rows = BM_BOUND; bm_rows > 0; bm_rows -= BM_STEP) {
        if (rows % bm_rows == 0 && try_columns(pack, rows, cols, bm_rows, tile)) return true;
    }
    return refuse(why, why_size, "%s: no tile fits %" PRIu64 " x %" PRIu64, name_of(pack), rows,
                  cols);
}

static const struct bc_tiling *find_section(const struct bc_tilings *config, uint64_t rows,
                                            uint64_t cols)
{
    for (size_t i = 0; config != NULL && i < config->n; i++) {
        if (config->items[i].rows == rows && config->items[i].cols == cols)
            return &config->items[i];
    }
    return NULL;
}

static const struct bc_tiling *find_published(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols)
{
    const struct bc_tiling *t;
    for (size_t i = 0; (t = bc_tiling_published(pack, i)) != NULL; i++) {
        if (t->rows == rows && t->cols == cols) return t;
    }
    return NULL;
}

static void copy_tile(uint32_t dst[3], const uint32_t src[3])
{
    for (size_t i = 0; i < 3; i++)
        dst[i] = src[i];
}

bool bc_tiling_choose(const struct bc_tilings *config, enum bc_tiled_pack pack, uint64_t rows,
                      uint64_t cols, uint32_t tile[3], enum bc_tiling_source *source, char *why,
                      size_t why_size)
{
    enum bc_tiling_source dummy;
    enum bc_tiling_source *const from = source != NULL ? source : &dummy;
    const struct bc_tiling *found = find_section(config, rows, cols);
    if (found != NULL) {
        char reason[400] = "";
        *from = BC_TILING_FILE;
        copy_tile(tile, found->tile);
        if (bc_tiling_check(pack, rows, cols, tile, reason, sizeof reason)) return true;
        return refuse(why, why_size, "%s (%s, the section at line %" PRIu32 ")", reason,
                      config->path, found->line);
    }
    found = find_published(pack, rows, cols);
    if (found != NULL) {
        *from = BC_TILING_PUBLISHED;
        copy_tile(tile, found->tile);
        return true;
    }
    *from = BC_TILING_LARGEST;
    return choose_largest(pack, rows, cols, tile, why, why_size);
}
