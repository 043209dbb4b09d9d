/* SPDX-License-Identifier: MIT
 * Finding the weight files of a checkpoint folder. */
#include "model/checkpoint_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INCOMPLETE_SUFFIX ".incomplete"

/* What the functions of this file work on. */
struct search {
    const struct bc_folder *folder;
    struct bc_findings *findings;
    struct bc_shard_list *list;
};

bool bc_stays_inside(const char *path)
{
    for (;;) {
        const size_t len = strcspn(path, "/");
        if (len == 0) return false;
        if (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.'))) return false;
        if (path[len] == '\0') return true;
        path += len + 1;
    }
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *s, const char *suffix)
{
    const size_t len = strlen(s), suffix_len = strlen(suffix);
    return len >= suffix_len && strcmp(s + len - suffix_len, suffix) == 0;
}

bool bc_folder_has(const struct bc_folder *folder, const char *name)
{
    for (size_t i = 0; i < folder->n_entries; i++) {
        if (strcmp(folder->entries[i], name) == 0) return true;
    }
    return false;
}

bool bc_folder_has_incomplete(const struct bc_folder *folder, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < folder->n_entries; i++) {
        if (starts_with(folder->entries[i], name) &&
            strcmp(folder->entries[i] + len, INCOMPLETE_SUFFIX) == 0)
            return true;
    }
    return false;
}

static int compare_shards(const void *a, const void *b)
{
    const struct bc_shard *const sa = a, *const sb = b;
    return strcmp(sa->name, sb->name);
}

const struct bc_shard *bc_shard_list_get(const struct bc_shard_list *list, const char *name)
{
    const struct bc_shard key = {.name = name};
    return list->n > 0 ? bsearch(&key, list->shards, list->n, sizeof key, compare_shards) : NULL;
}

void bc_shard_list_release(struct bc_shard_list *list)
{
    bc_json_free(list->index);
    bc_arena_release(&list->arena);
    memset(list, 0, sizeof *list);
}

static enum bitconv_status make_room(struct bc_shard_list *list, size_t n,
                                     struct bitconv_error *err)
{
    list->shards = bc_arena_alloc(&list->arena, n, sizeof *list->shards);
    return list->shards != NULL ? BITCONV_OK : bc_fail_nomem(err, "list of weight files");
}

/* Appends a file; make_room has been called for enough. */
static enum bitconv_status add_shard(struct bc_shard_list *list, const char *name,
                                     struct bitconv_error *err)
{
    struct bc_shard *const shard = &list->shards[list->n];
    shard->name = bc_arena_strdup(&list->arena, name);
    if (shard->name == NULL) return bc_fail_nomem(err, "list of weight files");
    list->n++;
    return BITCONV_OK;
}

/* Lists every file name of the weight map once and counts its tensors. */
static enum bitconv_status count_indexed(const struct search *s, struct bc_map *seen,
                                         struct bitconv_error *err)
{
    struct bc_shard_list *const list = s->list;
    struct bc_finding_kind nameless = {"tensors of the index without a file name", 0};
    const struct bc_json *e = bc_json_first(list->weight_map);
    for (; e != NULL; e = bc_json_next(e)) {
        const char *const name = bc_json_string(e);
        if (name == NULL) {
            if (bc_finding_wanted(&nameless))
                bc_finding(s->findings, BITCONV_E_CORRUPT,
                           "%s/" BC_SAFETENSORS_INDEX ": %.200s: its value is not a file name",
                           s->folder->dir, bc_json_key(e));
            continue;
        }
        uint64_t i = list->n;
        const enum bc_map_result result = bc_map_put(seen, name, strlen(name), i, &i);
        if (result == BC_MAP_NOMEM) return bc_fail_nomem(err, "list of weight files");
        if (result == BC_MAP_NEW) BC_TRY(add_shard(list, name, err));
        list->shards[i].n_indexed++;
    }
    bc_finding_rest(s->findings, &nameless);
    return BITCONV_OK;
}

/* The files that the index names. */
static enum bitconv_status list_indexed(const struct search *s, struct bitconv_error *err)
{
    struct bc_shard_list *const list = s->list;
    list->weight_map = bc_json_get(list->index, "weight_map");
    const size_t n = bc_json_size(list->weight_map);
    if (!bc_json_is(list->weight_map, BC_JSON_OBJECT) || n == 0)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s/" BC_SAFETENSORS_INDEX ": weight_map is missing, empty or not an object",
                       s->folder->dir);
    BC_TRY(make_room(list, n, err));
    struct bc_map seen = {NULL, 0, 0};
    const enum bitconv_status status = count_indexed(s, &seen, err);
    bc_map_release(&seen);
    BC_TRY(status);
    qsort(list->shards, list->n, sizeof *list->shards, compare_shards);
    return BITCONV_OK;
}

/* The value of the five decimal digits at s, or -1. */
static long five_digits(const char *s)
{
    long v = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return -1;
        v = 10 * v + (s[i] - '0');
    }
    return v;
}

/* Takes PREFIX-00001-of-00002.safetensors apart; false for any other name. */
static bool parse_numbered(const char *name, long *number, long *total)
{
    static const char pattern[] = "-00000-of-00000.safetensors";
    const size_t len = strlen(name), tail_len = sizeof pattern - 1;
    if (len <= tail_len || !ends_with(name, ".safetensors")) return false;
    const char *const tail = name + len - tail_len;
    if (tail[0] != '-' || strncmp(tail + 6, "-of-", 4) != 0) return false;
    *number = five_digits(tail + 1);
    *total = five_digits(tail + 10);
    return *number >= 0 && *total >= 0;
}

static bool is_model_part(const char *name)
{
    long number, total;
    return starts_with(name, "model-") &&
           strlen(name) == strlen("model-00000-of-00000.safetensors") &&
           parse_numbered(name, &number, &total);
}

/* Reports parts [first, end) of a set of `total` as missing. */
static void report_gap(const struct search *s, struct bc_finding_kind *gaps, long first, long end,
                       long total)
{
    for (long i = first; i < end; i++) {
        char name[64];
        if (!bc_finding_wanted(gaps)) continue;
        (void)snprintf(name, sizeof name, "model-%05ld-of-%05ld.safetensors", i, total);
        bc_finding(s->findings, BITCONV_E_CORRUPT, "%s/%s: missing%s", s->folder->dir, name,
                   bc_folder_has_incomplete(s->folder, name) ? " (its download, " INCOMPLETE_SUFFIX
                                                               ", did not finish)"
                                                             : "");
    }
}

/* Checks that the parts listed (sorted, at least one) are 1 to N of N. */
static void check_numbering(const struct search *s)
{
    const struct bc_shard_list *const list = s->list;
    struct bc_finding_kind strays = {"files of another numbering", 0};
    struct bc_finding_kind gaps = {"parts missing", 0};
    long number, total, n_parts = 0, expected = 1;
    (void)parse_numbered(list->shards[0].name, &number, &n_parts);
    for (size_t i = 0; i < list->n; i++) {
        (void)parse_numbered(list->shards[i].name, &number, &total);
        if (total != n_parts || number < expected || number > total) {
            if (bc_finding_wanted(&strays))
                bc_finding(s->findings, BITCONV_E_CORRUPT,
                           "%s/%s: does not belong to a set of %ld parts numbered from 1",
                           s->folder->dir, list->shards[i].name, n_parts);
            continue;
        }
        report_gap(s, &gaps, expected, number, n_parts);
        expected = number + 1;
    }
    report_gap(s, &gaps, expected, n_parts + 1, n_parts);
    bc_finding_rest(s->findings, &strays);
    bc_finding_rest(s->findings, &gaps);
}

/* A folder without safetensors files: says what is there instead. */
static enum bitconv_status refuse_no_weights(const struct bc_folder *folder,
                                             struct bitconv_error *err)
{
    static const struct {
        const char *prefix, *suffix, *what;
    } others[] = {
        {"pytorch_model", ".bin", "PyTorch weights: convert them to safetensors first"},
        {"", ".pth", "PyTorch weights: convert them to safetensors first"},
        {"", ".pt", "PyTorch weights: convert them to safetensors first"},
        {"", ".ckpt", "PyTorch weights: convert them to safetensors first"},
        {"", ".safetensors" INCOMPLETE_SUFFIX, "a download that did not finish: fetch it again"},
        {"", ".safetensors.gz", "compressed: unpack it first"},
        {"", ".safetensors.xz", "compressed: unpack it first"},
        {"", ".safetensors.zst", "compressed: unpack it first"},
        {"", ".h5", "Keras weights: convert them to safetensors first"},
        {"", ".msgpack", "Flax weights: convert them to safetensors first"},
        {"", ".gguf", "a GGUF already: `bitconv inspect` reads it"},
    };
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        for (size_t i = 0; i < folder->n_entries; i++) {
            const char *const name = folder->entries[i];
            if (starts_with(name, others[k].prefix) && ends_with(name, others[k].suffix))
                return bc_fail(err, BITCONV_E_UNSUPPORTED,
                               "%s: holds no safetensors files, and %s is %s", folder->dir, name,
                               others[k].what);
        }
    }
    return bc_fail(err, BITCONV_E_ARG, "%s: holds no weights (*.safetensors)", folder->dir);
}

/* Several files of which none is the obvious one. */
static enum bitconv_status refuse_ambiguous(const struct bc_folder *folder, size_t n,
                                            struct bitconv_error *err)
{
    struct bc_buf names = {NULL, 0, 0, false};
    size_t shown = 0;
    for (size_t i = 0; i < folder->n_entries && shown < 5; i++) {
        if (!ends_with(folder->entries[i], ".safetensors")) continue;
        bc_buf_printf(&names, "%s%s", shown++ > 0 ? ", " : "", folder->entries[i]);
    }
    if (n > shown) bc_buf_puts(&names, ", ...");
    const enum bitconv_status status =
        bc_fail(err, BITCONV_E_ARG,
                "%s: %zu safetensors files (%s), but neither " BC_SAFETENSORS_INDEX
                " nor model.safetensors says which are the model: keep the right ones only",
                folder->dir, n, bc_buf_str(&names));
    bc_buf_release(&names);
    return status;
}

/* The files of a folder without index. */
static enum bitconv_status list_unindexed(const struct search *s, struct bitconv_error *err)
{
    const struct bc_folder *const folder = s->folder;
    size_t n = 0, n_parts = 0;
    const char *only = NULL;
    for (size_t i = 0; i < folder->n_entries; i++) {
        if (!ends_with(folder->entries[i], ".safetensors")) continue;
        only = folder->entries[i];
        n++;
        n_parts += is_model_part(only);
    }
    if (n == 0) return refuse_no_weights(folder, err);
    BC_TRY(make_room(s->list, n, err));
    if (bc_folder_has(folder, "model.safetensors"))
        return add_shard(s->list, "model.safetensors", err);
    if (n_parts > 0) {
        for (size_t i = 0; i < folder->n_entries; i++) {
            if (is_model_part(folder->entries[i]))
                BC_TRY(add_shard(s->list, folder->entries[i], err));
        }
        check_numbering(s);
        return BITCONV_OK;
    }
    if (n > 1) return refuse_ambiguous(folder, n, err);
    BC_TRY(add_shard(s->list, only, err));
    long number, total;
    if (parse_numbered(only, &number, &total) && total != 1)
        bc_finding(s->findings, BITCONV_E_CORRUPT, "%s/%s: the only one of %ld parts", folder->dir,
                   only, total);
    return BITCONV_OK;
}

/* Tells of files that look like weights but are not read. */
static void note_ignored(const struct search *s)
{
    const struct bc_folder *const folder = s->folder;
    for (size_t i = 0; i < folder->n_entries; i++) {
        const char *const name = folder->entries[i];
        if (ends_with(name, INCOMPLETE_SUFFIX)) {
            bc_say(s->findings->sink, BITCONV_WARNING, "%s/%s: a download that did not finish",
                   folder->dir, name);
        } else if (ends_with(name, ".safetensors") && bc_shard_list_get(s->list, name) == NULL) {
            if (s->list->index != NULL)
                bc_say(s->findings->sink, BITCONV_NOTE,
                       "%s/%s: ignored, " BC_SAFETENSORS_INDEX " does not name it", folder->dir,
                       name);
            else /* without an index a second set of weights may be the one that was meant */
                bc_say(s->findings->sink, is_model_part(name) ? BITCONV_WARNING : BITCONV_NOTE,
                       "%s/%s: ignored, the weights are taken from %s", folder->dir, name,
                       s->list->shards[0].name);
        }
    }
}

enum bitconv_status bc_shard_list_find(const struct bc_folder *folder, struct bc_findings *findings,
                                       struct bc_shard_list *list, struct bitconv_error *err)
{
    const struct search s = {folder, findings, list};
    BC_TRY(bc_checkpoint_json(folder->dir, BC_SAFETENSORS_INDEX, &list->index, err));
    if (list->index != NULL)
        BC_TRY(list_indexed(&s, err));
    else
        BC_TRY(list_unindexed(&s, err));
    note_ignored(&s);
    return BITCONV_OK;
}
