/* SPDX-License-Identifier: MIT
 * The table of GGUF tensor types and the byte sizes that follow from it.
 *
 * Block sizes are those of ggml's block structures (ggml-common.h); the ternary types of the BitNet
 * runtime are described in formats/gguf.md. Types that ggml has removed stay in the table: their
 * sizes help to tell the dialects apart. */
#include "io/gguf_types.h"

#include "base/bytes.h"

#include <strings.h>

enum {
    UPSTREAM = 1u << BITCONV_DIALECT_UPSTREAM,
    BITNET = 1u << BITCONV_DIALECT_BITNET,
    REBASED = 1u << BITCONV_DIALECT_BITNET_REBASED,
    PRISM = 1u << BITCONV_DIALECT_PRISM,
    EVERYWHERE = UPSTREAM | BITNET | REBASED | PRISM
};

/* Sorted by id; within an id in the order of enum bitconv_dialect. */
static const struct bc_type types[] = {
    {0, "F32", 1, 4, BC_LAYOUT_BLOCK, EVERYWHERE},
    {1, "F16", 1, 2, BC_LAYOUT_BLOCK, EVERYWHERE},
    {2, "Q4_0", 32, 18, BC_LAYOUT_BLOCK, EVERYWHERE},
    {3, "Q4_1", 32, 20, BC_LAYOUT_BLOCK, EVERYWHERE},
    {4, "Q4_2", 0, 0, BC_LAYOUT_UNKNOWN, EVERYWHERE},
    {5, "Q4_3", 0, 0, BC_LAYOUT_UNKNOWN, EVERYWHERE},
    {6, "Q5_0", 32, 22, BC_LAYOUT_BLOCK, EVERYWHERE},
    {7, "Q5_1", 32, 24, BC_LAYOUT_BLOCK, EVERYWHERE},
    {8, "Q8_0", 32, 34, BC_LAYOUT_BLOCK, EVERYWHERE},
    {9, "Q8_1", 32, 36, BC_LAYOUT_BLOCK, EVERYWHERE},
    {10, "Q2_K", 256, 84, BC_LAYOUT_BLOCK, EVERYWHERE},
    {11, "Q3_K", 256, 110, BC_LAYOUT_BLOCK, EVERYWHERE},
    {12, "Q4_K", 256, 144, BC_LAYOUT_BLOCK, EVERYWHERE},
    {13, "Q5_K", 256, 176, BC_LAYOUT_BLOCK, EVERYWHERE},
    {14, "Q6_K", 256, 210, BC_LAYOUT_BLOCK, EVERYWHERE},
    {15, "Q8_K", 256, 292, BC_LAYOUT_BLOCK, EVERYWHERE},
    {16, "IQ2_XXS", 256, 66, BC_LAYOUT_BLOCK, EVERYWHERE},
    {17, "IQ2_XS", 256, 74, BC_LAYOUT_BLOCK, EVERYWHERE},
    {18, "IQ3_XXS", 256, 98, BC_LAYOUT_BLOCK, EVERYWHERE},
    {19, "IQ1_S", 256, 50, BC_LAYOUT_BLOCK, EVERYWHERE},
    {20, "IQ4_NL", 32, 18, BC_LAYOUT_BLOCK, EVERYWHERE},
    {21, "IQ3_S", 256, 110, BC_LAYOUT_BLOCK, EVERYWHERE},
    {22, "IQ2_S", 256, 82, BC_LAYOUT_BLOCK, EVERYWHERE},
    {23, "IQ4_XS", 256, 136, BC_LAYOUT_BLOCK, EVERYWHERE},
    {24, "I8", 1, 1, BC_LAYOUT_BLOCK, EVERYWHERE},
    {25, "I16", 1, 2, BC_LAYOUT_BLOCK, EVERYWHERE},
    {26, "I32", 1, 4, BC_LAYOUT_BLOCK, EVERYWHERE},
    {27, "I64", 1, 8, BC_LAYOUT_BLOCK, EVERYWHERE},
    {28, "F64", 1, 8, BC_LAYOUT_BLOCK, EVERYWHERE},
    {29, "IQ1_M", 256, 56, BC_LAYOUT_BLOCK, EVERYWHERE},
    {30, "BF16", 1, 2, BC_LAYOUT_BLOCK, EVERYWHERE},
    {31, "Q4_0_4_4", 32, 18, BC_LAYOUT_BLOCK, EVERYWHERE},
    {32, "Q4_0_4_8", 32, 18, BC_LAYOUT_BLOCK, EVERYWHERE},
    {33, "Q4_0_8_8", 32, 18, BC_LAYOUT_BLOCK, EVERYWHERE},
    {34, "TQ1_0", 256, 54, BC_LAYOUT_BLOCK, EVERYWHERE},
    {35, "TQ2_0", 256, 66, BC_LAYOUT_BLOCK, EVERYWHERE},
    {36, "IQ4_NL_4_4", 32, 18, BC_LAYOUT_BLOCK, UPSTREAM},
    {36, "I2_S", 64, 16, BC_LAYOUT_I2_S, BITNET | REBASED},
    {37, "IQ4_NL_4_8", 32, 18, BC_LAYOUT_BLOCK, UPSTREAM},
    {37, "I8_S", 1, 1, BC_LAYOUT_BLOCK, BITNET | REBASED},
    {38, "IQ4_NL_8_8", 32, 18, BC_LAYOUT_BLOCK, UPSTREAM},
    {38, "TL1", 128, 32, BC_LAYOUT_I2_S, BITNET | REBASED},
    {39, "MXFP4", 32, 17, BC_LAYOUT_BLOCK, UPSTREAM | REBASED | PRISM},
    {39, "TL2", 0, 0, BC_LAYOUT_TL2, BITNET},
    {40, "NVFP4", 64, 36, BC_LAYOUT_BLOCK, UPSTREAM | REBASED},
    {40, "Q1_0_G32", 32, 6, BC_LAYOUT_BLOCK, PRISM},
    {41, "Q1_0", 128, 18, BC_LAYOUT_BLOCK, UPSTREAM | REBASED | PRISM},
    {42, "Q2_0", 64, 18, BC_LAYOUT_BLOCK, UPSTREAM},
    {42, "TL2", 0, 0, BC_LAYOUT_TL2, REBASED},
    {42, "Q2_0_G128", 128, 34, BC_LAYOUT_BLOCK, PRISM},
    {142, "PQ2_0", 128, 34, BC_LAYOUT_BLOCK, PRISM},
    {143, "PTQ1_0", 128, 28, BC_LAYOUT_BLOCK, PRISM},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

const struct bc_type *bc_type_row(size_t i)
{
    return i < N_TYPES ? &types[i] : NULL;
}

/* Index of the first row whose id is not below `id`; N_TYPES when there is none. */
static size_t first_row(uint32_t id)
{
    size_t low = 0, high = N_TYPES;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (types[mid].id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

const struct bc_type *bc_type_find(uint32_t id, enum bitconv_dialect dialect)
{
    const struct bc_type *found = NULL;
    for (size_t i = first_row(id); i < N_TYPES && types[i].id == id; i++) {
        if (dialect != BITCONV_DIALECT_AMBIGUOUS) {
            if (types[i].dialects & 1u << dialect) return &types[i];
        } else {
            if (found != NULL) return NULL;
            found = &types[i];
        }
    }
    return found;
}

const struct bc_type *bc_type_by_name(const char *name, enum bitconv_dialect dialect)
{
    const struct bc_type *found = NULL;
    for (size_t i = 0; i < N_TYPES; i++) {
        if (strcasecmp(types[i].name, name) != 0) continue;
        if (dialect != BITCONV_DIALECT_AMBIGUOUS) {
            if (types[i].dialects & 1u << dialect) return &types[i];
        } else {
            if (found != NULL) return NULL;
            found = &types[i];
        }
    }
    return found;
}

bool bc_type_is_disputed(uint32_t id)
{
    const size_t i = first_row(id);
    return i < N_TYPES && types[i].id == id && types[i].dialects != EVERYWHERE;
}

/* TL2, formats/gguf.md: F = (K-256)*M/3*5/8 + 256*M/2*4/8 in integer arithmetic from left to right,
 * rounded up to 32, and the 32-byte scale block. */
static bool tl2_bytes(uint64_t cols, uint64_t rows, uint64_t *out)
{
    uint64_t triples, pairs, sum;
    if (cols < 256) return false;
    if (!bc_mul_u64(cols - 256, rows, &triples) || !bc_mul_u64(triples / 3, 5, &triples)) {
        return false;
    }
    if (!bc_mul_u64(256, rows, &pairs) || !bc_mul_u64(pairs / 2, 4, &pairs)) return false;
    if (!bc_add_u64(triples / 8, pairs / 8, &sum) || sum > INT64_MAX - 64) return false;
    *out = bc_round_up(sum, 32) + 32;
    return true;
}

bool bc_type_bytes(const struct bc_type *type, uint32_t n_dims, const uint64_t *ne, uint64_t *out)
{
    uint64_t n = 1, bytes = 0;
    for (uint32_t d = 0; d < n_dims; d++) {
        if (!bc_mul_u64(n, ne[d], &n)) return false;
    }
    const uint64_t cols = n_dims > 0 ? ne[0] : 1;
    switch (type->layout) {
    case BC_LAYOUT_BLOCK:
        if (cols % type->block != 0) return false;
        if (!bc_mul_u64(n / type->block, type->block_size, &bytes)) return false;
        break;
    case BC_LAYOUT_I2_S:
        if (n % type->block != 0) return false;
        bytes = n / type->block * type->block_size + 32;
        break;
    case BC_LAYOUT_TL2:
        if (n_dims < 2 || n != cols * ne[1] || !tl2_bytes(cols, ne[1], &bytes)) return false;
        break;
    case BC_LAYOUT_UNKNOWN:
    default:
        return false;
    }
    if (bytes > INT64_MAX) return false;
    *out = bytes;
    return true;
}
