/* SPDX-License-Identifier: MIT
 * The matrices of golden/packs/expect.json, from the names of their generators. */
#ifndef BC_TESTS_TRITS_H
#define BC_TESTS_TRITS_H

#include <stdint.h>

/* n trits in flat order, by "mod3" (all three alike), "zeros90" (nine in ten are zero), "nozeros",
 * "allzero" or "allneg"; free() them. NULL: unknown generator or out of memory. */
int8_t *trits_generate(const char *generator, uint64_t seed, uint64_t n);

#endif
