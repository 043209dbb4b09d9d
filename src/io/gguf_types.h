/* SPDX-License-Identifier: MIT
 * The tensor types of GGUF files as a table: one row per type and dialect meaning. */
#ifndef BC_IO_GGUF_TYPES_H
#define BC_IO_GGUF_TYPES_H

#include "bitconv/gguf.h"

/* Type ids that bitconv itself writes. */
enum {
    BC_TYPE_F32 = 0,
    BC_TYPE_F16 = 1,
    BC_TYPE_Q8_0 = 8,
    BC_TYPE_I8 = 24,
    BC_TYPE_BF16 = 30,
    BC_TYPE_I2_S = 36
};

/* How the bytes of a tensor follow from its shape. */
enum bc_type_layout {
    BC_LAYOUT_BLOCK,  /* n / block * block_size */
    BC_LAYOUT_I2_S,   /* n / 4 + 32, n a multiple of 128 (I2_S, TL1) */
    BC_LAYOUT_TL2,    /* the parts of formats/tl2.md, rounded up to 32, and 32 */
    BC_LAYOUT_UNKNOWN /* listed by name, size not known (removed types) */
};

struct bc_type {
    uint32_t id;
    const char *name;
    uint32_t block;      /* values per block */
    uint32_t block_size; /* bytes per block */
    enum bc_type_layout layout;
    unsigned dialects; /* bit 1 << enum bitconv_dialect: where the id has this meaning */
};

/* The row for an id in a dialect; AMBIGUOUS finds the row only when one meaning exists. NULL:
 * unknown. */
const struct bc_type *bc_type_find(uint32_t id, enum bitconv_dialect dialect);
/* By name ("F16", "i2_s"; case ignored) in a dialect; NULL: unknown. */
const struct bc_type *bc_type_by_name(const char *name, enum bitconv_dialect dialect);
/* The i-th row, NULL behind the last: for walking every meaning. */
const struct bc_type *bc_type_row(size_t i);
/* True when the dialects do not all give the id one and the same meaning. Unknown ids: false. */
bool bc_type_is_disputed(uint32_t id);
/* Bytes of a tensor of that shape (ggml order); false when the shape does not fit the type (ne[0]
 * not a multiple of the block, TL2 with K < 256) or on overflow. */
bool bc_type_bytes(const struct bc_type *type, uint32_t n_dims, const uint64_t *ne, uint64_t *out);

#endif
