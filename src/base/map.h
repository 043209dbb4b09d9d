/* SPDX-License-Identifier: MIT
 * A hash map from byte strings to 64-bit values, for names (tensors, tokens, keys). */
#ifndef BC_BASE_MAP_H
#define BC_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise. Keys are borrowed: they must live as long as the map. Not thread-safe for
 * writers; any number of readers is fine. Iteration order is not defined: do not depend on it. */
struct bc_map {
    struct bc_map_slot *slots;
    size_t n_slots;
    size_t n_used;
};

enum bc_map_result { BC_MAP_NEW, BC_MAP_EXISTS, BC_MAP_NOMEM };

/* Adds key -> value. EXISTS leaves the old value in place (and stores it in *old when not NULL). */
enum bc_map_result bc_map_put(struct bc_map *map, const char *key, size_t len, uint64_t value,
                              uint64_t *old);
/* Finds a key; false when it is not there. */
bool bc_map_get(const struct bc_map *map, const char *key, size_t len, uint64_t *value);
void bc_map_release(struct bc_map *map);

#endif
