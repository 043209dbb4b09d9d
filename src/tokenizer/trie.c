/* SPDX-License-Identifier: MIT
 * A trie over byte strings: which of many strings start here in a text. */
#include "tokenizer/trie.h"

#include "base/mem.h"

struct bc_trie_edge {
    uint64_t key;   /* node << 8 | byte, plus one; 0: free */
    uint32_t child; /* never 0: that is the root */
};

/* The slot of an edge, or the free one where it belongs. */
static struct bc_trie_edge *find(const struct bc_trie *trie, uint64_t key)
{
    const size_t mask = trie->n_slots - 1;
    const uint64_t mixed = key * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(mixed >> 32) & mask;; i = (i + 1) & mask) {
        struct bc_trie_edge *const edge = &trie->edges[i];
        if (edge->key == 0 || edge->key == key) return edge;
    }
}

static bool grow(struct bc_trie *trie)
{
    if (trie->n_slots > UINT32_MAX / 2) return false;
    struct bc_trie bigger = *trie;
    bigger.n_slots = trie->n_slots == 0 ? 64 : 2 * trie->n_slots;
    bigger.edges = bc_alloc_array(bigger.n_slots, sizeof *bigger.edges);
    if (bigger.edges == NULL) return false;
    for (size_t i = 0; i < trie->n_slots; i++)
        if (trie->edges[i].key != 0) *find(&bigger, trie->edges[i].key) = trie->edges[i];
    bc_free(trie->edges);
    *trie = bigger;
    return true;
}

static bool new_node(struct bc_trie *trie)
{
    if (!bc_grow((void **)&trie->values, &trie->cap_nodes, trie->n_nodes, sizeof *trie->values))
        return false;
    trie->values[trie->n_nodes++] = BC_TRIE_NONE;
    return true;
}

static uint64_t key_of(uint32_t node, uint8_t byte)
{
    return ((uint64_t)node << 8 | byte) + 1;
}

bool bc_trie_put(struct bc_trie *trie, const char *s, size_t len, uint32_t value)
{
    uint32_t node = 0;
    if (trie->n_nodes == 0 && !new_node(trie)) return false;
    for (size_t i = 0; i < len; i++) {
        if (trie->n_edges >= trie->n_slots / 2 && !grow(trie)) return false;
        const uint64_t key = key_of(node, (uint8_t)s[i]);
        struct bc_trie_edge *const edge = find(trie, key);
        if (edge->key == 0) {
            if (!new_node(trie)) return false;
            *edge = (struct bc_trie_edge){key, (uint32_t)(trie->n_nodes - 1)};
            trie->n_edges++;
        }
        node = edge->child;
    }
    if (trie->values[node] == BC_TRIE_NONE) trie->values[node] = value;
    return true;
}

bool bc_trie_step(const struct bc_trie *trie, uint32_t *node, uint8_t byte, uint32_t *value)
{
    if (trie->n_slots == 0) return false;
    const struct bc_trie_edge *const edge = find(trie, key_of(*node, byte));
    if (edge->key == 0) return false;
    *node = edge->child;
    *value = trie->values[edge->child];
    return true;
}

size_t bc_trie_longest(const struct bc_trie *trie, const char *s, size_t len, uint32_t *value)
{
    uint32_t node = 0;
    uint32_t here = BC_TRIE_NONE;
    size_t longest = 0;
    for (size_t i = 0; i < len && bc_trie_step(trie, &node, (uint8_t)s[i], &here); i++) {
        if (here == BC_TRIE_NONE) continue;
        *value = here;
        longest = i + 1;
    }
    return longest;
}

void bc_trie_release(struct bc_trie *trie)
{
    bc_free(trie->edges);
    bc_free(trie->values);
    *trie = (struct bc_trie){0};
}
