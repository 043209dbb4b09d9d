/* SPDX-License-Identifier: MIT
 * Decoding the blocks of every GGUF tensor type to float32 (dequant.md), as a table by type name.
 * Ternary packs with one scale per tensor (I2_S, TL1, TL2) are no block types: format.h reads them.
 */
#ifndef BC_FORMATS_DEQUANT_H
#define BC_FORMATS_DEQUANT_H

#include <stdint.h>

/* Values of the largest block. */
#define BC_DEQUANT_MAX_BLOCK 256

struct bc_dequant {
    const char *type_name; /* as in io/gguf_types.c, which knows the ids */
    uint32_t block;        /* values of a block: 1 for the plain number types */
    uint32_t block_size;   /* bytes of a block */
    /* Decodes n_blocks consecutive blocks. `blocks` needs no alignment; `dst` takes n_blocks *
     * block floats. Every byte pattern decodes to something: reserved codes as dequant.md says,
     * scales that are NaN or infinite give NaN or infinite values. */
    void (*rows)(const uint8_t *blocks, uint64_t n_blocks, float *dst);
};

/* The row of a type; NULL when the type cannot be decoded (then see the refusal) or is unknown. */
const struct bc_dequant *bc_dequant_find(const char *type_name);
/* Why a known type has no row, as the end of a sentence; NULL for other names. */
const char *bc_dequant_refusal(const char *type_name);

/* Values [first, first + n) of a tensor in flat order, from any place, also within a block. `data`
 * is the start of the tensor; the caller knows that it holds the blocks these values lie in (rows
 * are whole blocks, so blocks follow the flat order). */
void bc_dequant_values(const struct bc_dequant *d, const uint8_t *data, uint64_t first, uint64_t n,
                       float *dst);

#endif
