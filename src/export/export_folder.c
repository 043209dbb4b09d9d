/* SPDX-License-Identifier: MIT
 * Files of the folder being made. */
#include "export/export_folder.h"

#include <string.h>

#include "export/exporter.h"
#include "io/safetensors_write.h"

/* True when `name` begins and ends like that. */
static bool is_like(const char *name, const char *begin, const char *end)
{
    const size_t len = strlen(name), n_begin = strlen(begin), n_end = strlen(end);
    return len >= n_begin + n_end && memcmp(name, begin, n_begin) == 0 &&
           strcmp(name + len - n_end, end) == 0;
}

/* All that an export may write; another file in a folder means that the folder is not its. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "deployment_info.json",
                                        "modules.json",
                                        "1_Pooling/config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "tokenizer.model",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.txt",
                                        BC_SAFETENSORS_INDEX,
                                        "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return is_like(name, "model-", ".safetensors");
}

enum bitconv_status bc_export_folder_open(struct bc_export_folder *folder, const char *dir,
                                          bool force, struct bc_arena *arena,
                                          struct bitconv_error *err)
{
    const struct bc_out_folder_options options = {.force = force, .replaceable = is_ours};
    *folder = (struct bc_export_folder){.arena = arena};
    return bc_out_folder_open(dir, &options, &folder->out, err);
}

enum bitconv_status bc_export_folder_commit(struct bc_export_folder *folder,
                                            struct bitconv_error *err)
{
    struct bc_out_folder *out = folder->out;
    folder->out = NULL;
    return bc_out_folder_commit(out, err);
}

void bc_export_folder_release(struct bc_export_folder *folder)
{
    bc_out_folder_abort(folder->out);
    folder->out = NULL;
    bc_free((void *)folder->files);
    folder->files = NULL;
}

char *bc_export_folder_add(struct bc_export_folder *folder, const char *name)
{
    void *items = (void *)folder->files;
    const char *copy = bc_arena_strdup(folder->arena, name);
    if (copy == NULL || !bc_grow(&items, &folder->cap_files, folder->n_files, sizeof(char *)))
        return NULL;
    folder->files = items;
    folder->files[folder->n_files++] = copy;
    return bc_path_join(bc_out_folder_path(folder->out), name);
}

enum bitconv_status bc_export_put(struct bc_export_folder *folder, const char *name,
                                  const struct bc_buf *text, struct bitconv_error *err)
{
    const char *slash = strchr(name, '/');
    if (text->failed) return bc_fail_nomem(err, name);
    if (slash != NULL) {
        const char *inner = bc_arena_strndup(folder->arena, name, (size_t)(slash - name));
        if (inner == NULL) return bc_fail_nomem(err, name);
        BC_TRY(bc_out_folder_mkdir(folder->out, inner, err));
    }
    char *path = bc_export_folder_add(folder, name);
    if (path == NULL) return bc_fail_nomem(err, name);
    const enum bitconv_status status = bc_file_write(path, text->data, text->size, false, err);
    bc_free(path);
    return status;
}
