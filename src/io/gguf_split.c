/* SPDX-License-Identifier: MIT
 * Split GGUF sets: NAME-00001-of-00003.gguf and its siblings, any of which opens the whole.
 *
 * The keys split.no (from 0), split.count and split.tensors.count are those of llama.cpp's
 * gguf-split; the file names are the only link between the parts. */
#include "io/gguf_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SUFFIX = sizeof "-00001-of-00003.gguf" - 1 };

struct set_name {
    size_t prefix_len; /* of the path, up to the dash in front of the number */
    uint32_t number;   /* from 1 */
    uint32_t count;
};

static bool five_digits(const char *s, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        *out = *out * 10 + (uint32_t)(s[i] - '0');
    }
    return true;
}

static bool parse_set_name(const char *path, struct set_name *out)
{
    const size_t len = strlen(path);
    if (len < SUFFIX) return false;
    const char *s = path + len - SUFFIX;
    out->prefix_len = len - SUFFIX;
    return s[0] == '-' && five_digits(s + 1, &out->number) && memcmp(s + 6, "-of-", 4) == 0 &&
           five_digits(s + 10, &out->count) && strcmp(s + 15, ".gguf") == 0;
}

static enum bitconv_status parse_file(struct bitconv_gguf *g, struct bc_gguf_shard *s,
                                      const char *path, struct bitconv_error *err)
{
    BC_TRY(bc_file_open(path, &s->file, err));
    s->data = s->file.data;
    s->size = s->file.size;
    s->path = s->file.path;
    return bc_gguf_parse_shard(g, s, err);
}

/* Absent and unreadable keys count as `otherwise`. */
static uint64_t split_key(const struct bc_gguf_shard *s, const char *name, uint64_t otherwise)
{
    uint64_t v = otherwise;
    (void)bitconv_gguf_value_u64(bc_gguf_shard_key(s, name), &v);
    return v;
}

/* The name must say what the keys say, since the siblings are found by name. */
static enum bitconv_status check_own_name(const struct bc_gguf_shard *s, struct set_name *name,
                                          struct bitconv_error *err)
{
    const uint64_t no = split_key(s, "split.no", UINT64_MAX);
    const uint64_t count = split_key(s, "split.count", 0);
    if (no >= count || count > 99999) {
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: split.no must be from 0 to split.count - 1 (%" PRIu64 ")", s->path,
                       count - 1);
    }
    if (!parse_set_name(s->path, name) || name->number != no + 1 || name->count != count) {
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: this is part %" PRIu64 " of %" PRIu64
                       " of a split model: the other parts are found by name, so it must be called "
                       "NAME-%05" PRIu64 "-of-%05" PRIu64 ".gguf",
                       s->path, no + 1, count, no + 1, count);
    }
    return BITCONV_OK;
}

static char *part_path(struct bitconv_gguf *g, const char *path, const struct set_name *name,
                       uint32_t number)
{
    return bc_arena_printf(&g->arena, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf",
                           (int)name->prefix_len, path, number, name->count);
}

static enum bitconv_status check_presence(struct bitconv_gguf *g, const char *path,
                                          const struct set_name *name, struct bitconv_error *err)
{
    for (uint32_t i = 1; i <= name->count; i++) {
        const char *part = part_path(g, path, name, i);
        if (part == NULL) return bc_fail_nomem(err, "split GGUF");
        if (bc_path_kind(part) == BC_PATH_NONE) {
            return bc_fail(err, BITCONV_E_IO,
                           "%s: missing: part %" PRIu32 " of %" PRIu32 " of the split model %s",
                           part, i, name->count, path);
        }
    }
    return BITCONV_OK;
}

static enum bitconv_status check_part(const struct bc_gguf_shard *s, uint32_t index, uint32_t count,
                                      struct bitconv_error *err)
{
    const uint64_t no = split_key(s, "split.no", UINT64_MAX);
    const uint64_t its_count = split_key(s, "split.count", 0);
    if (no == index && its_count == count) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: its keys split.no and split.count do not say part %" PRIu32 " of %" PRIu32
                   ", as its name does",
                   s->path, index + 1, count);
}

static enum bitconv_status load_set(struct bitconv_gguf *g, struct bitconv_error *err)
{
    struct set_name name;
    BC_TRY(check_own_name(&g->shards[0], &name, err));
    const char *path = bc_arena_strdup(&g->arena, g->shards[0].path);
    if (path == NULL) return bc_fail_nomem(err, "split GGUF");
    BC_TRY(check_presence(g, path, &name, err));

    struct bc_gguf_shard *shards = bc_alloc_array(name.count, sizeof *shards);
    if (shards == NULL) return bc_fail_nomem(err, "split GGUF");
    shards[name.number - 1] = g->shards[0];
    bc_free(g->shards);
    g->shards = shards;
    g->n_shards = name.count;
    uint64_t n_tensors = 0;
    for (uint32_t i = 0; i < name.count; i++) {
        if (i != name.number - 1) {
            const char *part = part_path(g, path, &name, i + 1);
            if (part == NULL) return bc_fail_nomem(err, "split GGUF");
            BC_TRY(parse_file(g, &shards[i], part, err));
            BC_TRY(check_part(&shards[i], i, name.count, err));
        }
        n_tensors += shards[i].n_tensors;
    }
    const uint64_t promised = split_key(&shards[0], "split.tensors.count", n_tensors);
    if (promised != n_tensors) {
        bc_gguf_note(g, &g->findings, true,
                     "the parts hold %" PRIu64 " tensors, split.tensors.count says %" PRIu64,
                     n_tensors, promised);
    }
    return BITCONV_OK;
}

enum bitconv_status bc_gguf_load(struct bitconv_gguf *g, const char *path,
                                 struct bitconv_error *err)
{
    struct set_name name;
    g->shards = bc_alloc_array(1, sizeof *g->shards);
    if (g->shards == NULL) return bc_fail_nomem(err, "GGUF file");
    g->n_shards = 1;
    BC_TRY(parse_file(g, &g->shards[0], path, err));
    if (split_key(&g->shards[0], "split.count", 0) > 1) return load_set(g, err);
    if (parse_set_name(path, &name) && name.count > 1) {
        bc_gguf_note(g, &g->findings, false,
                     "the file is named as part %" PRIu32 " of %" PRIu32
                     ", but has no key split.count: read alone",
                     name.number, name.count);
    }
    return BITCONV_OK;
}
