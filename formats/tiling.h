/* SPDX-License-Identifier: MIT
 * Kernel configurations of the tiled packs TL1 and TL2: which tile (BM, BK, bm) a matrix of a given
 * shape is packed in. The rules are those of tiling.md.
 *
 * M is the number of rows (ggml's ne[1]), K the number of columns (ne[0]). A tile is an array of
 * BM, BK, bm, as in struct bc_pack_shape and in the metadata bitconv.tensor.tile. */
#ifndef BC_FORMATS_TILING_H
#define BC_FORMATS_TILING_H

#include "base/error.h"

enum bc_tiled_pack { BC_TILED_TL1, BC_TILED_TL2 };

/* One configuration: matrices of rows x cols are packed in this tile. */
struct bc_tiling {
    uint64_t rows;
    uint64_t cols;
    uint32_t tile[3]; /* BM, BK, bm */
    uint32_t line;    /* of the section's head in its file, from 1; 0 for built-in ones */
};

/* The configurations of a file, in its order; they hold for both packs. Release it. */
struct bc_tilings {
    struct bc_tiling *items;
    size_t n;
    char *path; /* for messages */
};

/* Reads a kernel configuration in INI form, as bitnet.cpp's code generators write it: sections with
 * the keys m, k (the shape), bm (BM), bk (BK), bmm (bm). ARG/IO when the file cannot be read,
 * CORRUPT with the line when it breaks the rules of tiling.md, LIMIT above 1 MiB. Whether a tile
 * suits its shape and pack is asked only when it is chosen. On failure *out is zeroed. */
enum bitconv_status bc_tilings_load(const char *path, struct bc_tilings *out,
                                    struct bitconv_error *err);
/* The same from memory; `path` is for messages. */
enum bitconv_status bc_tilings_parse(const char *path, const uint8_t *text, uint64_t size,
                                     struct bc_tilings *out, struct bitconv_error *err);
void bc_tilings_release(struct bc_tilings *tilings); /* zeroed: nothing happens */

/* The i-th built-in configuration of a pack, those of the published models; NULL behind the last.
 */
const struct bc_tiling *bc_tiling_published(enum bc_tiled_pack pack, size_t index);

/* True when the pack can hold a rows x cols matrix in that tile. Else writes why not into `why`
 * (NULL with size 0: no text): which number does not divide what. */
bool bc_tiling_check(enum bc_tiled_pack pack, uint64_t rows, uint64_t cols, const uint32_t tile[3],
                     char *why, size_t why_size);

enum bc_tiling_source {
    BC_TILING_FILE,      /* a section of the configuration file */
    BC_TILING_PUBLISHED, /* the built-in table */
    BC_TILING_LARGEST    /* the largest legal tile */
};

/* The tile for a shape: the first section of `config` (NULL: no file) with that shape, else the
 * published one, else the largest legal one. False when there is none, with the reason in `why`.
 * The answer depends on the arguments alone. `source` may be NULL. */
bool bc_tiling_choose(const struct bc_tilings *config, enum bc_tiled_pack pack, uint64_t rows,
                      uint64_t cols, uint32_t tile[3], enum bc_tiling_source *source, char *why,
                      size_t why_size);

/* The two sizes of a TL2 matrix that decide whether a tile fits. Both want a shape that is small
 * enough for signed 64-bit arithmetic (bc_tiling_check sees to it). */

/* F = (K-256)*M/3*5/8 + 256*M/2*4/8, integer arithmetic from left to right as in C (towards zero):
 * the bytes which the runtime reserves for the trits, whatever the tile. */
uint64_t bc_tl2_formula(uint64_t rows, uint64_t cols);
/* The bytes which the trits really take with tiles of bk columns. */
uint64_t bc_tl2_used(uint64_t rows, uint64_t cols, uint32_t bk);

#endif
