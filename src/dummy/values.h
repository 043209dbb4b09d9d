/* SPDX-License-Identifier: MIT
 * The values of synthetic tensors: each is a function of the seed, the tensor's name and its own
 * index, so nothing depends on threads, files or the order in which they are made.
 *
 * Numbers come from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014), which is a counter behind a mixing function: word j of a stream is the
 * mix of key + (j + 1) * 0x9e3779b97f4a7c15, without the words before it. The key of a tensor is
 * XXH3-64 of 16 bytes: the seed and XXH3-64 of the name, both little-endian. A word gives four
 * numbers of 16 bits, lowest first: element i has number i % 4 of word i / 4. */
#ifndef BC_DUMMY_VALUES_H
#define BC_DUMMY_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "quant/kernels.h"

/* Elements that the functions below work through at once on the stack. */
enum { BC_DUMMY_CHUNK = 1024 };
/* How many numbers there are. */
enum { BC_DUMMY_NUMBERS = 65536 };

/* What the 16-bit numbers of a tensor become. */
struct bc_dummy_values {
    uint64_t key;
    /* Linear weights: a number below `n_zero` is the trit 0, of the others the lowest bit of the
     * distance to n_zero is the sign. The share of zeros is n_zero / 65536. */
    uint32_t n_zero;
    float scale;        /* of the trits; a value of bfloat16 and of float16 alike */
    const float *units; /* of masters: what bc_dummy_units gives for n_zero */
    /* All others: uniform over centre - spread to centre + spread. */
    float centre, spread;
};

/* The key of a tensor; the name needs no NUL behind it. */
uint64_t bc_dummy_key(uint64_t seed, const char *name, size_t len);
/* Share of zero trits to n_zero: the nearest multiple of 1/65536. */
uint32_t bc_dummy_n_zero(double zeros);

/* Trits [first, first + n), and the same plus 1, as packed files hold them. */
void bc_dummy_trits(const struct bc_dummy_values *v, uint64_t first, size_t n, int8_t *dst);
void bc_dummy_codes(const struct bc_dummy_values *v, uint64_t first, size_t n, uint8_t *dst);

/* Master weights for every number, in scales; BC_DUMMY_NUMBERS of them. Their absmean quantization
 * gives the trits of the same numbers: magnitudes are uniform over 0 to 0.45 where the trit is 0, and
 * over 0.6 to 2 m - 0.6 elsewhere, with m chosen so that the mean magnitude is 1. The threshold is
 * half the mean, so rounding to 16 bits and the chance of a finite tensor (a mean between 0.9 and
 * 1.2) move no weight across it. */
void bc_dummy_units(uint32_t n_zero, float *dst);
/* Master weights [first, first + n): scale times unit. n is at most BC_DUMMY_CHUNK. */
void bc_dummy_masters(const struct bc_dummy_values *v, uint64_t first, size_t n, float *dst);

/* Values [first, first + n) of any other tensor; n is at most BC_DUMMY_CHUNK. */
void bc_dummy_floats(const struct bc_dummy_values *v, uint64_t first, size_t n, float *dst);

/* Largest share of zeros for which masters exist with room to either side of the threshold. */
#define BC_DUMMY_MAX_ZEROS 0.95

#endif
