/* SPDX-License-Identifier: MIT
 * The generators of golden/packs/expect.json; z is an output of splitmix64. */
#include "support/trits.h"

#include <stdlib.h>
#include <string.h>

#include "support/rng.h"

static int8_t mod3(uint64_t z)
{
    return (int8_t)((int)(z % 3) - 1);
}

static int8_t nozeros(uint64_t z)
{
    return (int8_t)(2 * (int)(z & 1) - 1);
}

static int8_t zeros90(uint64_t z)
{
    return (int8_t)((z >> 32) % 10 == 0 ? nozeros(z) : 0);
}

static int8_t allzero(uint64_t z)
{
    (void)z;
    return 0;
}

static int8_t allneg(uint64_t z)
{
    (void)z;
    return -1;
}

int8_t *trits_generate(const char *generator, uint64_t seed, uint64_t n)
{
    static const struct {
        const char *name;
        int8_t (*trit)(uint64_t z);
    } generators[] = {{"mod3", mod3},
                      {"nozeros", nozeros},
                      {"zeros90", zeros90},
                      {"allzero", allzero},
                      {"allneg", allneg}};
    for (size_t g = 0; g < sizeof generators / sizeof generators[0]; g++) {
        if (strcmp(generators[g].name, generator) != 0) continue;
        int8_t *const trits = malloc(n);
        for (uint64_t i = 0; trits != NULL && i < n; i++)
            trits[i] = generators[g].trit(rng_next(&seed));
        return trits;
    }
    return NULL;
}
