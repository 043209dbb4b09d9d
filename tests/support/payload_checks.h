/* SPDX-License-Identifier: MIT
 * What holds for every payload pack (BITCOS, T5), checked for the one given. Failures end the
 * running cmocka test. */
#ifndef BC_TESTS_PAYLOAD_CHECKS_H
#define BC_TESTS_PAYLOAD_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/format.h"

/* A tensor and its payload, each in a block of exactly its size, so that AddressSanitizer sees a
 * byte too far. */
struct payload {
    const struct bc_format *f;
    struct bc_pack_shape shape; /* n_nonzero filled in */
    float *scales;              /* one per slice, all different */
    int8_t *trits;
    uint8_t *bytes;
    uint64_t size;
};

/* dims in ggml's order, n_dims of them; `zeros` per mille of the weights are zero (exactly, as far
 * as that goes), at random places. Free with payload_free. */
struct payload payload_new(const struct bc_format *f, uint32_t n_dims, const uint64_t *dims,
                           unsigned zeros, uint64_t seed);
void payload_free(struct payload *p);
/* The trits packed by a row of kernels, as a block of p->size bytes to be freed. */
uint8_t *payload_pack(const struct payload *p, const struct bc_kernels *k);
/* Is the payload refused by check_payload, with a reason that contains `part`? Else fails. */
void payload_expect_refusal(const struct payload *p, const char *part);

/* Awkward and random shapes at seven shares of zeros: every row of kernels gives the same bytes;
 * they pass all checks; independent readers, unpackers and scales give back what went in, in one
 * piece and in runs; packing that again gives the same bytes. */
void payload_check_shapes(const struct bc_format *f);
/* Every bit of several payloads flipped: found by check_payload, or the tensor is another one. */
void payload_check_flips(const struct bc_format *f);
/* Payloads cut short, extended, and with random bytes in random places: refused or read, and
 * nothing is read outside of them. */
void payload_check_damage(const struct bc_format *f);
/* Each field of the header and each byte of padding that is not as it should be: the reason names
 * it. */
void payload_check_header_reasons(const struct bc_format *f);
/* The blocks "stack" and "stackhex" of the description. */
void payload_check_stack_example(const struct bc_format *f);

#endif
