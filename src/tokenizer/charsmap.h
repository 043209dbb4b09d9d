/* SPDX-License-Identifier: MIT
 * precompiled_charsmap of SentencePiece: which characters are replaced by which before tokenizing.
 */
#ifndef BC_TOKENIZER_CHARSMAP_H
#define BC_TOKENIZER_CHARSMAP_H

#include "base/error.h"

struct bc_charsmap;

/* The blob of a normalizer_spec (google/sentencepiece, src/normalizer.cc): u32 size of a Darts
 * double array, its u32 units, then NUL-terminated replacements. It is copied. CORRUPT when sizes do
 * not fit. An empty blob gives *out = NULL. */
enum bitconv_status bc_charsmap_open(const uint8_t *blob, size_t size, struct bc_charsmap **out,
                                     struct bitconv_error *err);
void bc_charsmap_close(struct bc_charsmap *map);

/* The replacement of the longest (or shortest) key at the start of s: length of the key, 0 when no
 * key starts here; *to, *n_to borrow from the map. map may be NULL. */
size_t bc_charsmap_find(const struct bc_charsmap *map, const char *s, size_t len, bool longest,
                        const char **to, size_t *n_to);

#endif
