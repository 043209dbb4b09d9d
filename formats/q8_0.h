/* SPDX-License-Identifier: MIT
 * Q8_0 (q8_0.md): any floats as 32 bytes and a float16 scale. Not a ternary pack. */
#ifndef BC_FORMATS_Q8_0_H
#define BC_FORMATS_Q8_0_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant/kernels.h"

enum {
    BC_Q8_0_BLOCK = 32,     /* values */
    BC_Q8_0_BLOCK_SIZE = 34 /* bytes */
};

/* Can rows of `cols` values be stored so? If not, writes the reason into why. */
bool bc_q8_0_check(uint64_t cols, char *why, size_t why_size);

/* Quantizes 32 * n_blocks floats as mainline's reference quantizer does, bit for bit. They should
 * be finite: a block with a NaN or an infinity gets a scale of that kind and codes of no meaning.
 */
void bc_q8_0_from_floats(const struct bc_kernels *k, const float *src, uint64_t n_blocks,
                         uint8_t *dst);

#endif
