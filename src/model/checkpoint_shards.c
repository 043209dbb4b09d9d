/* SPDX-License-Identifier: MIT
 * Opening the weight files of a checkpoint, and holding them against each other and the index. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "model/checkpoint_files.h"

/* What the functions of this file work on. */
struct opening {
    struct bc_checkpoint *ckpt;
    const struct bc_folder *folder;
    struct bc_shard_list *list;
    struct bc_findings *findings;
};

/* A shard that cannot be opened because there is no file of that name. */
static void report_missing(const struct opening *o, const struct bc_shard *shard)
{
    const char *why = "";
    if (bc_folder_has_incomplete(o->folder, shard->name))
        why = " (its download, .incomplete, did not finish)";
    else if (bc_folder_has(o->folder, shard->name))
        why = " (a symbolic link that leads nowhere)";
    bc_finding(o->findings, BITCONV_E_CORRUPT,
               "%s/%.200s: missing%s, %zu tensors are indexed there", o->folder->dir, shard->name,
               why, shard->n_indexed);
}

/* Opens one file and appends it to the checkpoint; a fault becomes a finding. */
static enum bitconv_status open_shard(const struct opening *o, struct bc_shard *shard,
                                      struct bitconv_error *err)
{
    struct bc_checkpoint *const ckpt = o->ckpt;
    if (!bc_stays_inside(shard->name)) {
        bc_finding(o->findings, BITCONV_E_CORRUPT,
                   "%s/" BC_SAFETENSORS_INDEX ": '%.200s' is not a file name within the folder",
                   o->folder->dir, shard->name);
        return BITCONV_OK;
    }
    char *const path = bc_path_join(o->folder->dir, shard->name);
    if (path == NULL) return bc_fail_nomem(err, "path");
    if (bc_path_kind(path) == BC_PATH_NONE) {
        report_missing(o, shard);
        bc_free(path);
        return BITCONV_OK;
    }
    struct bitconv_error fault = {BITCONV_OK, 0, 0, ""};
    if (bitconv_safetensors_open(path, &shard->file, &fault) != BITCONV_OK) {
        bc_free(path);
        if (fault.status == BITCONV_E_NOMEM) return bc_fail(err, fault.status, "%s", fault.text);
        bc_finding(o->findings, fault.status, "%s", fault.text);
        return BITCONV_OK;
    }
    ckpt->shards[ckpt->n_shards] = shard->file;
    ckpt->shard_paths[ckpt->n_shards++] = path;
    return BITCONV_OK;
}

static enum bitconv_status open_all(const struct opening *o, struct bitconv_error *err)
{
    o->ckpt->shards = bc_alloc_array(o->list->n, sizeof *o->ckpt->shards);
    o->ckpt->shard_paths = bc_alloc_array(o->list->n, sizeof *o->ckpt->shard_paths);
    if (o->ckpt->shards == NULL || o->ckpt->shard_paths == NULL)
        return bc_fail_nomem(err, "list of weight files");
    for (size_t i = 0; i < o->list->n; i++)
        BC_TRY(open_shard(o, &o->list->shards[i], err));
    return BITCONV_OK;
}

/* One list of all tensors; a name met twice becomes a finding. */
static enum bitconv_status merge_tensors(const struct opening *o, struct bitconv_error *err)
{
    struct bc_checkpoint *const ckpt = o->ckpt;
    struct bc_finding_kind twice = {"tensors in two files", 0};
    size_t n = 0;
    for (size_t i = 0; i < ckpt->n_shards; i++)
        n += bitconv_safetensors_count(ckpt->shards[i]);
    ckpt->tensors = bc_alloc_array(n, sizeof *ckpt->tensors);
    if (ckpt->tensors == NULL) return bc_fail_nomem(err, "list of tensors");
    for (size_t i = 0; i < ckpt->n_shards; i++) {
        for (size_t k = 0; k < bitconv_safetensors_count(ckpt->shards[i]); k++) {
            const struct bitconv_tensor *const t = bitconv_safetensors_at(ckpt->shards[i], k);
            uint64_t other = ckpt->n_tensors;
            const enum bc_map_result result =
                bc_map_put(&ckpt->by_name, t->name, strlen(t->name), other, &other);
            if (result == BC_MAP_NOMEM) return bc_fail_nomem(err, "list of tensors");
            if (result == BC_MAP_NEW)
                ckpt->tensors[ckpt->n_tensors++] = t;
            else if (bc_finding_wanted(&twice))
                bc_finding(o->findings, BITCONV_E_CORRUPT, "%s: %.200s: is also in %s", t->file,
                           t->name, ckpt->tensors[other]->file);
        }
    }
    bc_finding_rest(o->findings, &twice);
    return BITCONV_OK;
}

/* Every indexed tensor is in the file that the index names. Those of files that could not be opened
 * are covered by that finding. */
static enum bitconv_status check_indexed(const struct opening *o, struct bc_map *indexed,
                                         struct bitconv_error *err)
{
    struct bc_finding_kind absent = {"indexed tensors that are not where the index says", 0};
    const struct bc_json *e = bc_json_first(o->list->weight_map);
    for (; e != NULL; e = bc_json_next(e)) {
        const char *const name = bc_json_key(e);
        if (bc_map_put(indexed, name, strlen(name), 0, NULL) == BC_MAP_NOMEM)
            return bc_fail_nomem(err, "index of tensors");
        const char *const file_name = bc_json_string(e);
        if (file_name == NULL) continue; /* a finding already */
        const struct bc_shard *const shard = bc_shard_list_get(o->list, file_name);
        if (shard == NULL || shard->file == NULL) continue;
        if (bitconv_safetensors_find(shard->file, name) != NULL) continue;
        if (!bc_finding_wanted(&absent)) continue;
        const struct bitconv_tensor *const t = bc_checkpoint_find(o->ckpt, name);
        if (t != NULL)
            bc_finding(o->findings, BITCONV_E_CORRUPT,
                       "%s/%.200s: %.200s: indexed here, but it is in %s", o->folder->dir,
                       file_name, name, t->file);
        else
            bc_finding(o->findings, BITCONV_E_CORRUPT,
                       "%s/%.200s: %.200s: indexed here, but it is in no file", o->folder->dir,
                       file_name, name);
    }
    bc_finding_rest(o->findings, &absent);
    return BITCONV_OK;
}

/* Rotary frequencies are a function of the config: old exports carry them, and no index need list
 * them. */
static bool is_ignorable(const char *name)
{
    static const char suffix[] = "rotary_emb.inv_freq";
    const size_t len = strlen(name);
    return len >= sizeof suffix - 1 && strcmp(name + len - (sizeof suffix - 1), suffix) == 0;
}

/* Every tensor is indexed. */
static void check_unindexed(const struct opening *o, const struct bc_map *indexed)
{
    struct bc_finding_kind extra = {"tensors that are not in the index", 0};
    for (size_t i = 0; i < o->ckpt->n_tensors; i++) {
        const struct bitconv_tensor *const t = o->ckpt->tensors[i];
        uint64_t ignored;
        if (bc_map_get(indexed, t->name, strlen(t->name), &ignored)) continue;
        if (is_ignorable(t->name))
            bc_say(o->findings->sink, BITCONV_NOTE, "%s: %.200s: not in " BC_SAFETENSORS_INDEX,
                   t->file, t->name);
        else if (bc_finding_wanted(&extra))
            bc_finding(o->findings, BITCONV_E_CORRUPT, "%s: %.200s: not in " BC_SAFETENSORS_INDEX,
                       t->file, t->name);
    }
    bc_finding_rest(o->findings, &extra);
}

/* metadata.total_size is written by hand often enough to be wrong without harm: a warning. */
static void check_total_size(const struct opening *o)
{
    const struct bc_json *const node = bc_json_path(o->list->index, "metadata.total_size");
    uint64_t expected, found = 0;
    if (node == NULL || bc_json_is(node, BC_JSON_NULL)) return;
    if (!bc_json_u64(node, &expected)) {
        bc_say(o->findings->sink, BITCONV_WARNING,
               "%s/" BC_SAFETENSORS_INDEX ": metadata.total_size is not a number of bytes",
               o->folder->dir);
        return;
    }
    for (size_t i = 0; i < o->ckpt->n_tensors; i++) {
        /* Saturates: hard links can list the same large file many times. */
        if (!bc_add_u64(found, o->ckpt->tensors[i]->size, &found)) found = UINT64_MAX;
    }
    if (found != expected)
        bc_say(o->findings->sink, BITCONV_WARNING,
               "%s/" BC_SAFETENSORS_INDEX ": total_size is %" PRIu64 ", the tensors have %" PRIu64
               " bytes",
               o->folder->dir, expected, found);
}

enum bitconv_status bc_checkpoint_open_shards(struct bc_checkpoint *ckpt,
                                              const struct bc_folder *folder,
                                              struct bc_shard_list *list,
                                              struct bc_findings *findings,
                                              struct bitconv_error *err)
{
    const struct opening o = {ckpt, folder, list, findings};
    BC_TRY(open_all(&o, err));
    BC_TRY(merge_tensors(&o, err));
    if (list->index == NULL) return BITCONV_OK;
    struct bc_map indexed = {NULL, 0, 0};
    const enum bitconv_status status = check_indexed(&o, &indexed, err);
    if (status == BITCONV_OK) check_unindexed(&o, &indexed);
    bc_map_release(&indexed);
    /* The sum says something only about a complete set. */
    if (status == BITCONV_OK && findings->n == 0) check_total_size(&o);
    return status;
}
