/* SPDX-License-Identifier: MIT
 * The worked examples of the descriptions in formats/, as tests read them. Failures end the running
 * cmocka test. */
#ifndef BC_TESTS_SPEC_EXAMPLE_H
#define BC_TESTS_SPEC_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/format.h"

/* The blocks "trits" and "hex" of a pack's description. */
struct spec_example {
    struct bc_pack_shape shape;
    float scale;
    int8_t trits[4096];
    uint8_t bytes[4096];
    size_t n_bytes;
};

/* Reads formats/NAME.md. */
void spec_example_read(const char *name, struct spec_example *e);
/* Its text; bc_free it. And what follows the first `mark` in it. */
char *spec_text(const char *name);
const char *spec_after(const char *text, const char *mark);
/* The bytes of the first hex block of formats/NAME.md; returns how many (at most max). */
size_t spec_hex_read(const char *name, uint8_t *bytes, size_t max);

#endif
