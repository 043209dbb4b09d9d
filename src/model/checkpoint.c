/* SPDX-License-Identifier: MIT
 * Opening a Hugging Face checkpoint folder. */
#include "model/checkpoint.h"

#include <string.h>

#include "io/safetensors_internal.h"
#include "model/checkpoint_files.h"

enum bitconv_status bc_checkpoint_json(const char *dir, const char *name, struct bc_json **out,
                                       struct bitconv_error *err)
{
    *out = NULL;
    struct bc_buf path = {NULL, 0, 0, false};
    bc_buf_printf(&path, "%s%s%s", dir, dir[0] != '\0' && dir[strlen(dir) - 1] == '/' ? "" : "/",
                  name);
    if (!path.failed && bc_path_kind(bc_buf_str(&path)) == BC_PATH_NONE) bc_buf_puts(&path, ".gz");
    enum bitconv_status status = BITCONV_OK;
    if (path.failed)
        status = bc_fail_nomem(err, "path");
    else if (bc_path_kind(bc_buf_str(&path)) != BC_PATH_NONE)
        status = bc_json_load(bc_buf_str(&path), out, err);
    bc_buf_release(&path);
    return status;
}

/* bc_checkpoint_json that refuses a root of another type. */
static enum bitconv_status load_typed(const char *dir, const char *name, enum bc_json_type type,
                                      struct bc_json **out, struct bitconv_error *err)
{
    BC_TRY(bc_checkpoint_json(dir, name, out, err));
    if (*out == NULL || bc_json_is(*out, type)) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CORRUPT, "%s/%s: the JSON text is not %s", dir, name,
                   type == BC_JSON_OBJECT ? "an object" : "an array");
}

enum bitconv_status bc_checkpoint_object(const char *dir, const char *name, struct bc_json **out,
                                         struct bitconv_error *err)
{
    return load_typed(dir, name, BC_JSON_OBJECT, out, err);
}

static bool ends_with(const char *s, const char *suffix)
{
    const size_t len = strlen(s), suffix_len = strlen(suffix);
    return len >= suffix_len && strcmp(s + len - suffix_len, suffix) == 0;
}

/* The config of the first module whose type ends in "Pooling" (sentence-transformers). */
static enum bitconv_status load_pooling(struct bc_checkpoint *ckpt, const struct bitconv_sink *sink,
                                        struct bitconv_error *err)
{
    const struct bc_json *module = bc_json_first(ckpt->modules);
    for (; module != NULL; module = bc_json_next(module)) {
        const char *const type = bc_json_string(bc_json_get(module, "type"));
        if (type != NULL && ends_with(type, "Pooling")) break;
    }
    if (module == NULL) return BITCONV_OK;
    const char *const path = bc_json_string(bc_json_get(module, "path"));
    if (path == NULL || !bc_stays_inside(path))
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s/modules.json: the path of the pooling module is not a folder within the "
                       "checkpoint",
                       ckpt->dir);
    char *const name = bc_path_join(path, "config.json");
    if (name == NULL) return bc_fail_nomem(err, "path");
    const enum bitconv_status status =
        load_typed(ckpt->dir, name, BC_JSON_OBJECT, &ckpt->pooling, err);
    if (status == BITCONV_OK && ckpt->pooling == NULL)
        bc_say(sink, BITCONV_WARNING,
               "%s/%s: missing, though modules.json names it: how to pool is not known", ckpt->dir,
               name);
    bc_free(name);
    return status;
}

static enum bitconv_status load_json_files(struct bc_checkpoint *ckpt,
                                           const struct bitconv_sink *sink,
                                           struct bitconv_error *err)
{
    const char *const dir = ckpt->dir;
    BC_TRY(load_typed(dir, "config.json", BC_JSON_OBJECT, &ckpt->config, err));
    if (ckpt->config == NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: holds no config.json, so it is not a Hugging Face checkpoint folder",
                       dir);
    ckpt->text = bc_json_get(ckpt->config, "text_config");
    if (!bc_json_is(ckpt->text, BC_JSON_OBJECT)) ckpt->text = ckpt->config;
    BC_TRY(
        load_typed(dir, "generation_config.json", BC_JSON_OBJECT, &ckpt->generation_config, err));
    BC_TRY(load_typed(dir, "modules.json", BC_JSON_ARRAY, &ckpt->modules, err));
    return load_pooling(ckpt, sink, err);
}

static enum bitconv_status open_weights(struct bc_checkpoint *ckpt, const struct bc_folder *folder,
                                        const struct bitconv_sink *sink, struct bitconv_error *err)
{
    struct bc_findings findings = {.sink = sink, .subject = ckpt->dir};
    struct bc_shard_list list = {.shards = NULL};
    enum bitconv_status status = bc_shard_list_find(folder, &findings, &list, err);
    if (status == BITCONV_OK)
        status = bc_checkpoint_open_shards(ckpt, folder, &list, &findings, err);
    if (status == BITCONV_OK)
        status = bc_findings_result(&findings, "faults in the weight files", err);
    bc_shard_list_release(&list);
    return status;
}

static enum bitconv_status open_folder(struct bc_checkpoint *ckpt, bool need_weights,
                                       const struct bitconv_sink *sink, struct bitconv_error *err)
{
    if (bc_path_kind(ckpt->dir) == BC_PATH_FILE)
        return bc_fail(
            err, BITCONV_E_ARG,
            "%s: is a file, a checkpoint folder (config.json, *.safetensors) was expected",
            ckpt->dir);
    struct bc_folder folder = {ckpt->dir, NULL, 0};
    BC_TRY(bc_dir_list(ckpt->dir, &folder.entries, &folder.n_entries, err));
    enum bitconv_status status = load_json_files(ckpt, sink, err);
    if (status == BITCONV_OK && need_weights) status = open_weights(ckpt, &folder, sink, err);
    for (size_t i = 0; i < folder.n_entries; i++)
        bc_free(folder.entries[i]);
    bc_free(folder.entries);
    return status;
}

enum bitconv_status bc_checkpoint_open(const char *dir, bool need_weights,
                                       const struct bitconv_sink *sink, struct bc_checkpoint **out,
                                       struct bitconv_error *err)
{
    *out = NULL;
    struct bc_checkpoint *const ckpt = bc_alloc_array(1, sizeof *ckpt);
    if (ckpt == NULL) return bc_fail_nomem(err, "checkpoint");
    ckpt->has_weights = need_weights;
    enum bitconv_status status;
    ckpt->dir = bc_alloc_array(strlen(dir) + 1, 1);
    if (ckpt->dir != NULL) {
        memcpy(ckpt->dir, dir, strlen(dir) + 1);
        status = open_folder(ckpt, need_weights, sink, err);
    } else {
        status = bc_fail_nomem(err, "path");
    }
    if (status == BITCONV_OK) {
        ckpt->base_name = bc_path_real_base(dir);
        if (ckpt->base_name == NULL) status = bc_fail_errno(err, "%s: cannot be resolved", dir);
    }
    if (status == BITCONV_OK)
        *out = ckpt;
    else
        bc_checkpoint_close(ckpt);
    return status;
}

void bc_checkpoint_close(struct bc_checkpoint *ckpt)
{
    if (ckpt == NULL) return;
    for (size_t i = 0; i < ckpt->n_shards; i++) {
        bitconv_safetensors_close(ckpt->shards[i]);
        bc_free(ckpt->shard_paths[i]);
    }
    bc_free(ckpt->shards);
    bc_free(ckpt->shard_paths);
    bc_free(ckpt->tensors);
    bc_map_release(&ckpt->by_name);
    bc_json_free(ckpt->config);
    bc_json_free(ckpt->generation_config);
    bc_json_free(ckpt->modules);
    bc_json_free(ckpt->pooling);
    bc_free(ckpt->dir);
    bc_free(ckpt->base_name);
    bc_free(ckpt);
}

const struct bitconv_tensor *bc_checkpoint_find(const struct bc_checkpoint *ckpt, const char *name)
{
    uint64_t index;
    if (!bc_map_get(&ckpt->by_name, name, strlen(name), &index)) return NULL;
    return ckpt->tensors[index];
}

const struct bc_file *bc_checkpoint_file_of(const struct bc_checkpoint *ckpt,
                                            const struct bitconv_tensor *tensor)
{
    for (size_t i = 0; i < ckpt->n_shards; i++) {
        /* All tensors of a shard share one path string. */
        const struct bitconv_tensor *const first = bitconv_safetensors_at(ckpt->shards[i], 0);
        if (first != NULL && first->file == tensor->file)
            return bc_safetensors_file(ckpt->shards[i]);
    }
    return NULL;
}
