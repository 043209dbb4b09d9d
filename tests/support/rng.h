/* SPDX-License-Identifier: MIT
 * Reproducible numbers for tests: splitmix64 (Steele, Lea and Flood 2014). */
#ifndef BC_TESTS_RNG_H
#define BC_TESTS_RNG_H

#include <stdint.h>

/* The state is the seed; every call advances it. */
static inline uint64_t rng_next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Uniform enough in [0, n) for tests. */
static inline uint64_t rng_below(uint64_t *state, uint64_t n)
{
    return (rng_next(state) >> 11) % n;
}

#endif
