/* SPDX-License-Identifier: MIT
 * A trie over byte strings: which of many strings start here in a text. */
#ifndef BC_TOKENIZER_TRIE_H
#define BC_TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings that are looked for at every place of a text may not be longer: a search would cost that
 * much at each of them. Published vocabularies stay far below. */
#define BC_TRIE_MAX_LEN 4096

/* Zero-initialise. Its edges are in one hash table: (node, byte) -> node. */
struct bc_trie {
    struct bc_trie_edge *edges;
    size_t n_slots, n_edges;
    uint32_t *values; /* of nodes: BC_TRIE_NONE or what was put */
    size_t n_nodes, cap_nodes;
};
#define BC_TRIE_NONE UINT32_MAX

/* Adds a string of 1 to BC_TRIE_MAX_LEN bytes; a string that is there keeps its value. False when
 * out of memory. */
bool bc_trie_put(struct bc_trie *trie, const char *s, size_t len, uint32_t value);
/* Walks down: start with *node = 0; false when no string goes on with this byte. *value is that of
 * the string that ends here, or BC_TRIE_NONE. */
bool bc_trie_step(const struct bc_trie *trie, uint32_t *node, uint8_t byte, uint32_t *value);
/* The longest string at the start of s: its length, 0 when there is none. */
size_t bc_trie_longest(const struct bc_trie *trie, const char *s, size_t len, uint32_t *value);
void bc_trie_release(struct bc_trie *trie);

#endif
