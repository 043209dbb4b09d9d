/* SPDX-License-Identifier: MIT
 * A hash map from byte strings to 64-bit values: open addressing with linear probing. */
#include "base/map.h"

#include <string.h>

#include "base/digest.h"
#include "base/mem.h"

struct bc_map_slot {
    const char *key; /* NULL: the slot is free */
    size_t len;
    uint64_t hash; /* kept, so that growing does not read the keys again */
    uint64_t value;
};

/* The slot that holds the key, or the free one where it belongs. n_slots is a power of two, and at
 * least one slot is free. */
static struct bc_map_slot *find(const struct bc_map *map, const char *key, size_t len,
                                uint64_t hash)
{
    const size_t mask = map->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        struct bc_map_slot *const slot = &map->slots[i];
        if (slot->key == NULL) return slot;
        if (slot->hash == hash && slot->len == len && memcmp(slot->key, key, len) == 0) return slot;
    }
}

/* Doubles the table. */
static bool grow(struct bc_map *map)
{
    if (map->n_slots > SIZE_MAX / 2) return false;
    struct bc_map bigger = {NULL, map->n_slots == 0 ? 16 : 2 * map->n_slots, map->n_used};
    bigger.slots = bc_alloc_array(bigger.n_slots, sizeof *bigger.slots);
    if (bigger.slots == NULL) return false;
    for (size_t i = 0; i < map->n_slots; i++) {
        const struct bc_map_slot *const slot = &map->slots[i];
        if (slot->key != NULL) *find(&bigger, slot->key, slot->len, slot->hash) = *slot;
    }
    bc_free(map->slots);
    *map = bigger;
    return true;
}

enum bc_map_result bc_map_put(struct bc_map *map, const char *key, size_t len, uint64_t value,
                              uint64_t *old)
{
    if (key == NULL) key = "";
    /* At most three quarters full: probe sequences stay short. */
    if (map->n_used >= map->n_slots / 4 * 3 && !grow(map)) return BC_MAP_NOMEM;
    const uint64_t hash = bc_hash64(key, len);
    struct bc_map_slot *const slot = find(map, key, len, hash);
    if (slot->key != NULL) {
        if (old != NULL) *old = slot->value;
        return BC_MAP_EXISTS;
    }
    *slot = (struct bc_map_slot){key, len, hash, value};
    map->n_used++;
    return BC_MAP_NEW;
}

bool bc_map_get(const struct bc_map *map, const char *key, size_t len, uint64_t *value)
{
    if (map->n_used == 0) return false;
    if (key == NULL) key = "";
    const struct bc_map_slot *const slot = find(map, key, len, bc_hash64(key, len));
    if (slot->key == NULL) return false;
    if (value != NULL) *value = slot->value;
    return true;
}

void bc_map_release(struct bc_map *map)
{
    bc_free(map->slots);
    *map = (struct bc_map){NULL, 0, 0};
}
