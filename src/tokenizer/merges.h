/* SPDX-License-Identifier: MIT
 * Byte-pair encoding: symbols, merges by priority, and the table of merges. */
#ifndef BC_TOKENIZER_MERGES_H
#define BC_TOKENIZER_MERGES_H

#include "base/error.h"

/* (left id, right id) -> rank and id of the result, in a hash table. Zero-initialise. */
struct bc_merges {
    struct bc_merge_slot *slots;
    size_t n_slots, n;
};
/* A pair that is there gets the new rank and result, as in the tokenizers library. */
enum bitconv_status bc_merges_put(struct bc_merges *merges, uint32_t left, uint32_t right,
                                  uint32_t rank, uint32_t result, struct bitconv_error *err);
bool bc_merges_get(const struct bc_merges *merges, uint32_t left, uint32_t right, uint32_t *rank,
                   uint32_t *result);
void bc_merges_release(struct bc_merges *merges);

/* A stretch of the text while it is merged; a list over an array. */
struct bc_symbol {
    size_t start;
    size_t len; /* 0: merged into another one */
    uint32_t id;
    bool frozen;        /* takes no part in merges */
    int64_t prev, next; /* -1: none */
};

struct bc_candidate; /* two neighbours that may be merged */

struct bc_symbols {
    const char *text;
    struct bc_symbol *items;
    size_t n, cap;
    struct bc_candidate *heap; /* smallest (priority, place) first */
    size_t n_heap, cap_heap;
    uint32_t *left_lens; /* NULL, or by id of a result: bytes of the left one of the last pair that
                          * was found to make it; owned */
};

/* Empties the list, keeping its memory, for a text (borrowed); then add its symbols in order, bytes
 * [start, start + len) each; frozen ones are not merged. */
void bc_symbols_clear(struct bc_symbols *symbols, const char *text);
enum bitconv_status bc_symbols_add(struct bc_symbols *symbols, size_t start, size_t len,
                                   uint32_t id, bool frozen, struct bitconv_error *err);
void bc_symbols_release(struct bc_symbols *symbols);

/* May two neighbours be merged, at which priority (smaller first), and into which id? */
typedef bool bc_pair_fn(const void *ctx, const struct bc_symbols *symbols,
                        const struct bc_symbol *left, const struct bc_symbol *right,
                        uint32_t *priority, uint32_t *result);

/* Merges until no pair is left: always the one of best priority, of equal ones the leftmost.
 * O(n log n): a heap of candidates, in which those that a merge has overtaken are passed over. */
enum bitconv_status bc_symbols_merge(struct bc_symbols *symbols, bc_pair_fn *pair, const void *ctx,
                                     struct bitconv_error *err);

#endif
