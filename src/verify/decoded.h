/* SPDX-License-Identifier: MIT
 * The values of any tensor as numbers, whatever it is stored as: plain numbers, blocks, a ternary
 * pack. */
#ifndef BC_VERIFY_DECODED_H
#define BC_VERIFY_DECODED_H

#include "formats/dequant.h"
#include "quant/quantize.h"
#include "verify/container.h"
#include "verify/pack_scan.h"

/* A tensor of an open container that can be decoded; borrows its bytes. One of `numbers` (data not
 * NULL, or n = 0), `blocks` and `packed.format` says how; packs with a scale per block have both of
 * the latter, and are decoded as blocks, times the scales in a tensor beside it where there is one. */
struct bc_decoded {
    uint64_t n;                      /* values */
    struct bc_values numbers;        /* one plain number per value */
    const struct bc_dequant *blocks; /* blocks of several values (formats/dequant.md) */
    const uint8_t *data;             /* of those blocks */
    struct bc_packed packed;         /* trits times scale, through the independent reader */
};

/* How tensor `index` is decoded. On failure the reason, as the end of a sentence, goes to `why`:
 * BITCONV_E_CORRUPT when the tensor cannot be what its type says, BITCONV_E_UNSUPPORTED when the
 * type is not known or not decoded. */
enum bitconv_status bc_decoded_open(const struct bc_container *c, size_t index,
                                    const struct bc_stated *stated, struct bc_decoded *out,
                                    char *why, size_t why_size);
/* Values [first, first + n) of the flat order: exact but for 64-bit integers beyond 2^53. Blocks
 * give the float32 that formats/dequant.md defines; a code that a pack does not define gives NaN. */
void bc_decoded_read(const struct bc_kernels *k, const struct bc_decoded *d, uint64_t first,
                     size_t n, double *dst);

/* The values of tensor `index` as a run of numbers; false when its type is not one plain number per
 * element (F64, F32, F16, BF16, F8, integers). */
bool bc_container_values(const struct bc_container *c, size_t index, struct bc_values *out);
/* Values [first, first + n) as float64: exact but for 64-bit integers beyond 2^53. */
void bc_read_doubles(const struct bc_kernels *k, const struct bc_values *v, uint64_t first,
                     size_t n, double *dst);
/* Value `index` of an integer run; U64 as its bit pattern. */
int64_t bc_read_integer(const struct bc_values *v, uint64_t index);

#endif
