/* SPDX-License-Identifier: MIT
 * What a mistyped word was probably meant to be. */
#ifndef BC_BASE_NEAREST_H
#define BC_BASE_NEAREST_H

#include <stddef.h>

enum { BC_NEAREST_HINT_SIZE = 96 }; /* bytes that every hint fits into */

/* The nearest of the words offered so far. Initialise with the word that was given; the rest zero. */
struct bc_nearest {
    const char *word;
    const char *best; /* NULL while nothing is near; borrowed from the caller of bc_nearest_offer */
    size_t distance;  /* of `best` */
};

/* Offers a word that would have been understood. Near is what up to three changes, about
 * one in three letters, turn into it: letters left out, put in, replaced, or exchanged with their
 * neighbour (optimal string alignment; Damerau 1964); a capital is its letter. The first of equally near
 * ones is kept; words of more than 63 bytes are near to nothing. */
void bc_nearest_offer(struct bc_nearest *nearest, const char *candidate);

/* "" where nothing is near, else ": did you mean PREFIX and the word?", in `buf`, which is returned.
 * For the middle or the end of an error line. */
const char *bc_nearest_hint(const struct bc_nearest *nearest, const char *prefix, char *buf,
                            size_t size);

#endif
