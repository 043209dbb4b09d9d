/* SPDX-License-Identifier: MIT
 * The kernel configurations of the published BitNet models, one row per shape and pack. */
#include "formats/tiling.h"

/* Rows are M x K: BM, BK, bm. The sources are in tiling.md. */
static const struct bc_tiling tl1[] = {
    /* bitnet_b1_58-large */
    {1536, 4096, {256, 128, 32}, 0},
    {1536, 1536, {128, 64, 64}, 0},
    {4096, 1536, {256, 128, 32}, 0},
    /* bitnet_b1_58-3B */
    {3200, 8640, {160, 64, 32}, 0},
    {3200, 3200, {320, 128, 64}, 0},
    {8640, 3200, {320, 64, 32}, 0},
    /* Llama3-8B-1.58-100B-tokens; for 4096 x 4096 the configuration file beside the model says
     * bm = 32, but the shipped builds compile what the generator is called with: 64 */
    {14336, 4096, {256, 128, 64}, 0},
    {4096, 14336, {256, 128, 32}, 0},
    {1024, 4096, {128, 64, 64}, 0},
    {4096, 4096, {128, 64, 64}, 0},
    /* BitNet-b1.58-2B-4T */
    {2560, 2560, {160, 64, 32}, 0},
    {640, 2560, {160, 64, 32}, 0},
    {6912, 2560, {256, 128, 64}, 0},
    {2560, 6912, {320, 128, 64}, 0},
};

static const struct bc_tiling tl2[] = {
    /* bitnet_b1_58-large; for 4096 x 1536 the configuration file beside the model says bm = 64,
     * with which nothing can be packed, and the generator is called with 32 */
    {1536, 4096, {256, 96, 32}, 0},
    {1536, 1536, {128, 192, 32}, 0},
    {4096, 1536, {256, 96, 32}, 0},
    /* bitnet_b1_58-3B */
    {3200, 8640, {160, 96, 32}, 0},
    {3200, 3200, {320, 96, 32}, 0},
    {8640, 3200, {320, 96, 32}, 0},
    /* Llama3-8B-1.58-100B-tokens */
    {14336, 4096, {256, 96, 32}, 0},
    {4096, 14336, {128, 96, 32}, 0},
    {1024, 4096, {256, 96, 32}, 0},
    {4096, 4096, {128, 96, 32}, 0},
    /* BitNet-b1.58-2B-4T */
    {2560, 2560, {160, 96, 32}, 0},
    {640, 2560, {320, 96, 32}, 0},
    {6912, 2560, {256, 96, 32}, 0},
    {2560, 6912, {320, 96, 32}, 0},
};

const struct bc_tiling *bc_tiling_published(enum bc_tiled_pack pack, size_t index)
{
    if (pack == BC_TILED_TL1) return index < sizeof tl1 / sizeof tl1[0] ? &tl1[index] : NULL;
    return index < sizeof tl2 / sizeof tl2[0] ? &tl2[index] : NULL;
}
