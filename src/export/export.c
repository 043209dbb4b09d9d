/* SPDX-License-Identifier: MIT
 * The steps from a GGUF to a checkpoint folder. Everything that can speak against it is found out
 * before the folder is opened, but for the values themselves. */
#include <string.h>

#include "export/export_folder.h"
#include "export/exporter.h"

/* What the caller gets, with its memory. */
struct result {
    struct bitconv_export public;
    struct bc_arena arena;
};

static enum bitconv_status write_folder(struct bc_exporter *e, struct bc_export_folder *folder,
                                        struct bitconv_error *err)
{
    BC_TRY(bc_export_config(e, folder, err));
    BC_TRY(bc_export_tokenizer(e, folder, err));
    BC_TRY(bc_export_weights(e, folder, err));
    if (bc_canceled(e->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    return BITCONV_OK;
}

static const char *type_of(const struct bc_export_tensor *t)
{
    const struct bc_format *format = t->values->packed.format;
    return format != NULL ? format->name : t->source->type_name;
}

static enum bitconv_status describe_tensors(const struct bc_exporter *e, struct result *r,
                                            struct bitconv_error *err)
{
    struct bitconv_export *x = &r->public;
    x->tensors = bc_arena_alloc(&r->arena, e->n_tensors, sizeof *x->tensors);
    if (x->tensors == NULL) return bc_fail_nomem(err, "result of the export");
    for (size_t i = 0; i < e->n_tensors; i++) {
        const struct bc_export_tensor *t = &e->tensors[i];
        struct bitconv_exported_tensor *o = &x->tensors[x->n_tensors++];
        o->name = bc_arena_strdup(&r->arena, t->name);
        o->source = bc_arena_strdup(&r->arena, t->source->name);
        o->type = bc_arena_strdup(&r->arena, type_of(t));
        o->dtype = bitconv_dtype_name(t->dtype);
        o->n_dims = t->n_dims;
        memcpy(o->shape, t->shape, sizeof o->shape);
        o->size = t->size;
        o->n_inexact = t->n_inexact;
        x->size += t->size;
        if (o->name == NULL || o->source == NULL || o->type == NULL)
            return bc_fail_nomem(err, "result of the export");
    }
    return BITCONV_OK;
}

static enum bitconv_status describe(const struct bc_exporter *e,
                                    const struct bc_export_folder *folder, struct result *r,
                                    struct bitconv_error *err)
{
    struct bitconv_export *x = &r->public;
    const char **files = bc_arena_alloc(&r->arena, folder->n_files, sizeof *files);
    x->output = bc_arena_strdup(&r->arena, e->options->dir);
    x->dtype = e->packed ? "packed" : e->decode ? e->options->dtype : "as stored";
    x->dtype = bc_arena_strdup(&r->arena, x->dtype);
    x->class_name = e->class_row->name;
    x->n_shards = e->n_shards;
    x->files = files;
    if (files == NULL || x->output == NULL || x->dtype == NULL)
        return bc_fail_nomem(err, "result of the export");
    for (; x->n_files < folder->n_files; x->n_files++) {
        files[x->n_files] = bc_arena_strdup(&r->arena, folder->files[x->n_files]);
        if (files[x->n_files] == NULL) return bc_fail_nomem(err, "result of the export");
    }
    return describe_tensors(e, r, err);
}

static enum bitconv_status run(struct bc_exporter *e, const char *path, struct result *r,
                               struct bitconv_error *err)
{
    struct bc_export_folder folder = {.out = NULL};
    BC_TRY(bc_export_open(e, path, err));
    BC_TRY(bc_export_map(e, err));
    BC_TRY(bc_export_check_config(e, err));
    BC_TRY(bc_export_find_specials(e, err));
    BC_TRY(bc_export_deal(e, err));
    enum bitconv_status status =
        bc_export_folder_open(&folder, e->options->dir, e->options->force, &e->arena, err);
    if (status == BITCONV_OK) status = write_folder(e, &folder, err);
    if (status == BITCONV_OK) status = describe(e, &folder, r, err);
    if (status == BITCONV_OK) status = bc_export_folder_commit(&folder, err);
    bc_export_folder_release(&folder);
    return status;
}

enum bitconv_status bitconv_export(const char *file, const struct bitconv_export_options *options,
                                   const struct bitconv_sink *sink, struct bitconv_export **out,
                                   struct bitconv_error *err)
{
    struct bc_exporter e = {.options = options, .sink = sink};
    *out = NULL;
    struct result *r = bc_alloc_array(1, sizeof *r);
    if (r == NULL) return bc_fail_nomem(err, "result of the export");
    r->public.internal = r;
    const enum bitconv_status status = run(&e, file, r, err);
    bc_export_close(&e);
    if (status == BITCONV_OK)
        *out = &r->public;
    else
        bitconv_export_free(&r->public);
    return status;
}

void bitconv_export_free(struct bitconv_export *result)
{
    if (result == NULL) return;
    struct result *r = result->internal;
    bc_arena_release(&r->arena);
    bc_free(r);
}
