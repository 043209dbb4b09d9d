/* SPDX-License-Identifier: MIT
 * Byte-pair encoding: symbols, merges by priority, and the table of merges. */
#include "tokenizer/merges.h"

#include "base/mem.h"

struct bc_merge_slot {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank;
    uint32_t result; /* EMPTY: the slot is free */
};
#define EMPTY UINT32_MAX

static struct bc_merge_slot *find(const struct bc_merges *merges, uint64_t pair)
{
    const size_t mask = merges->n_slots - 1;
    const uint64_t mixed = (pair ^ pair >> 29) * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(mixed >> 32) & mask;; i = (i + 1) & mask) {
        struct bc_merge_slot *const slot = &merges->slots[i];
        if (slot->result == EMPTY || slot->pair == pair) return slot;
    }
}

static bool grow(struct bc_merges *merges)
{
    if (merges->n_slots > SIZE_MAX / 4) return false;
    struct bc_merges bigger = *merges;
    bigger.n_slots = merges->n_slots == 0 ? 256 : 2 * merges->n_slots;
    bigger.slots = bc_alloc_array(bigger.n_slots, sizeof *bigger.slots);
    if (bigger.slots == NULL) return false;
    for (size_t i = 0; i < bigger.n_slots; i++)
        bigger.slots[i].result = EMPTY;
    for (size_t i = 0; i < merges->n_slots; i++)
        if (merges->slots[i].result != EMPTY)
            *find(&bigger, merges->slots[i].pair) = merges->slots[i];
    bc_free(merges->slots);
    *merges = bigger;
    return true;
}

enum bitconv_status bc_merges_put(struct bc_merges *merges, uint32_t left, uint32_t right,
                                  uint32_t rank, uint32_t result, struct bitconv_error *err)
{
    if (merges->n >= merges->n_slots / 2 && !grow(merges)) return bc_fail_nomem(err, "merges");
    const uint64_t pair = (uint64_t)left << 32 | right;
    struct bc_merge_slot *const slot = find(merges, pair);
    if (slot->result == EMPTY) merges->n++;
    *slot = (struct bc_merge_slot){pair, rank, result};
    return BITCONV_OK;
}

bool bc_merges_get(const struct bc_merges *merges, uint32_t left, uint32_t right, uint32_t *rank,
                   uint32_t *result)
{
    if (merges->n_slots == 0) return false;
    const struct bc_merge_slot *const slot = find(merges, (uint64_t)left << 32 | right);
    if (slot->result == EMPTY) return false;
    *rank = slot->rank;
    *result = slot->result;
    return true;
}

void bc_merges_release(struct bc_merges *merges)
{
    bc_free(merges->slots);
    *merges = (struct bc_merges){0};
}

struct bc_candidate {
    uint32_t priority;
    uint32_t result;
    size_t left; /* index of the symbol */
};

void bc_symbols_clear(struct bc_symbols *symbols, const char *text)
{
    symbols->text = text;
    symbols->n = 0;
    symbols->n_heap = 0;
}

enum bitconv_status bc_symbols_add(struct bc_symbols *symbols, size_t start, size_t len,
                                   uint32_t id, bool frozen, struct bitconv_error *err)
{
    if (!bc_grow((void **)&symbols->items, &symbols->cap, symbols->n, sizeof *symbols->items))
        return bc_fail_nomem(err, "text to tokenize");
    const int64_t prev = (int64_t)symbols->n - 1;
    if (prev >= 0) symbols->items[prev].next = (int64_t)symbols->n;
    symbols->items[symbols->n++] = (struct bc_symbol){start, len, id, frozen, prev, -1};
    return BITCONV_OK;
}

void bc_symbols_release(struct bc_symbols *symbols)
{
    bc_free(symbols->items);
    bc_free(symbols->heap);
    bc_free(symbols->left_lens);
    *symbols = (struct bc_symbols){0};
}

static bool before(const struct bc_candidate *a, const struct bc_candidate *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->left < b->left;
}

static enum bitconv_status push(struct bc_symbols *s, struct bc_candidate candidate,
                                struct bitconv_error *err)
{
    if (!bc_grow((void **)&s->heap, &s->cap_heap, s->n_heap, sizeof *s->heap))
        return bc_fail_nomem(err, "text to tokenize");
    size_t at = s->n_heap++;
    while (at > 0) {
        const size_t parent = (at - 1) / 2;
        if (!before(&candidate, &s->heap[parent])) break;
        s->heap[at] = s->heap[parent];
        at = parent;
    }
    s->heap[at] = candidate;
    return BITCONV_OK;
}

static struct bc_candidate pop(struct bc_symbols *s)
{
    const struct bc_candidate best = s->heap[0];
    const struct bc_candidate last = s->heap[--s->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->n_heap) break;
        if (child + 1 < s->n_heap && before(&s->heap[child + 1], &s->heap[child])) child++;
        if (!before(&s->heap[child], &last)) break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return best;
}

/* Puts symbol `left` and the one behind it among the candidates, if they may be merged. */
static enum bitconv_status consider(struct bc_symbols *s, int64_t left, bc_pair_fn *pair,
                                    const void *ctx, struct bitconv_error *err)
{
    if (left < 0 || s->items[left].next < 0) return BITCONV_OK;
    const struct bc_symbol *const a = &s->items[left];
    const struct bc_symbol *const b = &s->items[a->next];
    struct bc_candidate candidate = {.left = (size_t)left};
    if (a->frozen || b->frozen || !pair(ctx, s, a, b, &candidate.priority, &candidate.result))
        return BITCONV_OK;
    if (s->left_lens != NULL) s->left_lens[candidate.result] = (uint32_t)a->len;
    return push(s, candidate, err);
}

/* A candidate whose symbols have changed since is void, unless they still make the same. */
static bool still_valid(const struct bc_symbols *s, const struct bc_candidate *candidate,
                        bc_pair_fn *pair, const void *ctx)
{
    const struct bc_symbol *const a = &s->items[candidate->left];
    if (a->len == 0 || a->next < 0) return false;
    uint32_t priority;
    uint32_t result;
    return pair(ctx, s, a, &s->items[a->next], &priority, &result) && result == candidate->result;
}

enum bitconv_status bc_symbols_merge(struct bc_symbols *s, bc_pair_fn *pair, const void *ctx,
                                     struct bitconv_error *err)
{
    for (size_t i = 0; i + 1 < s->n; i++)
        BC_TRY(consider(s, (int64_t)i, pair, ctx, err));
    while (s->n_heap > 0) {
        const struct bc_candidate best = pop(s);
        if (!still_valid(s, &best, pair, ctx)) continue;
        struct bc_symbol *const a = &s->items[best.left];
        struct bc_symbol *const b = &s->items[a->next];
        a->len += b->len;
        a->id = best.result;
        a->next = b->next;
        b->len = 0;
        if (a->next >= 0) s->items[a->next].prev = (int64_t)best.left;
        BC_TRY(consider(s, a->prev, pair, ctx, err));
        BC_TRY(consider(s, (int64_t)best.left, pair, ctx, err));
    }
    return BITCONV_OK;
}
