/* SPDX-License-Identifier: MIT
 * precompiled_charsmap of SentencePiece: a Darts double array (s-yata/darts-clone, darts.h), whose
 * units are read from bytes and checked at every step: they come from a file. */
#include "tokenizer/charsmap.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

struct bc_charsmap {
    size_t n_units;
    const uint8_t *units;
    const char *texts;
    size_t n_texts; /* bytes; the last one is NUL */
    uint8_t blob[];
};

enum bitconv_status bc_charsmap_open(const uint8_t *blob, size_t size, struct bc_charsmap **out,
                                     struct bitconv_error *err)
{
    *out = NULL;
    if (size == 0) return BITCONV_OK;
    const size_t trie_size = size < 4 ? 0 : bc_get_u32(blob);
    if (size < 4 || trie_size % 4 != 0 || trie_size > size - 4 || trie_size == 0 ||
        (size > 4 + trie_size && blob[size - 1] != 0))
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "precompiled_charsmap: %zu bytes that are not a trie and its replacements",
                       size);
    struct bc_charsmap *const map = bc_alloc_array(1, sizeof *map + size);
    if (map == NULL) return bc_fail_nomem(err, "charsmap");
    memcpy(map->blob, blob, size);
    map->units = map->blob + 4;
    map->n_units = trie_size / 4;
    map->texts = (const char *)map->blob + 4 + trie_size;
    map->n_texts = size - 4 - trie_size;
    *out = map;
    return BITCONV_OK;
}

void bc_charsmap_close(struct bc_charsmap *map)
{
    bc_free(map);
}

static uint32_t unit_at(const struct bc_charsmap *map, uint32_t index)
{
    return index < map->n_units ? bc_get_u32(map->units + 4 * (size_t)index) : 0x80000000u;
}

/* The fields of a unit: offset to its children, label it must be reached by, whether a key ends. */
static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 0x200u) >> 6);
}

static uint32_t label_of(uint32_t unit)
{
    return unit & 0x800000ffu;
}

static bool ends_key(uint32_t unit)
{
    return (unit >> 8 & 1u) != 0;
}

size_t bc_charsmap_find(const struct bc_charsmap *map, const char *s, size_t len, bool longest,
                        const char **to, size_t *n_to)
{
    size_t found = 0;
    if (map == NULL) return 0;
    uint32_t node = offset_of(unit_at(map, 0));
    for (size_t i = 0; i < len; i++) {
        const uint8_t byte = (uint8_t)s[i];
        if (byte == 0) break;
        node ^= byte;
        const uint32_t unit = unit_at(map, node);
        if (label_of(unit) != byte) break;
        node ^= offset_of(unit);
        if (!ends_key(unit)) continue;
        const uint32_t at = unit_at(map, node) & 0x7fffffffu;
        if (at >= map->n_texts) break;
        *to = map->texts + at;
        *n_to = strlen(*to); /* the last byte of the texts is NUL */
        found = i + 1;
        if (!longest) break;
    }
    return found;
}
