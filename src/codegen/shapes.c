/* SPDX-License-Identifier: MIT
 * Collects shapes from checkpoints and GGUFs. */
#include "codegen/shapes.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "model/model.h"
#include "model/stated.h"

enum { MAX_SHAPES = 1000 };

const struct bc_codegen_pack bc_codegen_packs[BC_CODEGEN_PACKS] = {
    {"tl1", "TL1", "kernel_config-tl1.ini"},
    {"tl2", "TL2", "kernel_config-tl2.ini"},
};

enum bitconv_status bc_codegen_shape(struct bc_codegen_shapes *shapes, uint64_t rows, uint64_t cols,
                                     uint64_t slices, struct bc_codegen_shape **out,
                                     struct bitconv_error *err)
{
    for (size_t i = 0; i < shapes->n; i++) {
        struct bc_codegen_shape *s = &shapes->items[i];
        if (s->rows != rows || s->cols != cols || s->slices != slices) continue;
        *out = s;
        return BITCONV_OK;
    }
    if (shapes->n == MAX_SHAPES)
        return bc_fail(err, BITCONV_E_LIMIT, "more than %d shapes, models have a dozen",
                       MAX_SHAPES);
    if (!bc_grow((void **)&shapes->items, &shapes->cap, shapes->n, sizeof *shapes->items))
        return bc_fail_nomem(err, "list of shapes");
    *out = &shapes->items[shapes->n++];
    **out = (struct bc_codegen_shape){.rows = rows, .cols = cols, .slices = slices};
    return BITCONV_OK;
}

enum bitconv_status bc_codegen_put_tile(const struct bc_codegen_shape *shape, uint32_t dst[3],
                                        const uint32_t tile[3], const char *what,
                                        struct bitconv_error *err)
{
    if (dst[0] != 0 && memcmp(dst, tile, 3 * sizeof *dst) != 0)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: two tiles for %" PRIu64 " x %" PRIu64 ": %" PRIu32 ", %" PRIu32
                       ", %" PRIu32 " and %" PRIu32 ", %" PRIu32 ", %" PRIu32
                       ", one was expected, since kernels are found by shape",
                       what, shape->rows, shape->cols, dst[0], dst[1], dst[2], tile[0], tile[1],
                       tile[2]);
    memcpy(dst, tile, 3 * sizeof *dst);
    return BITCONV_OK;
}

/* Counts a tensor of the model; *out gets its shape. */
static enum bitconv_status add_tensor(struct bc_codegen_shapes *shapes, const char *name,
                                      const uint64_t *ne, struct bc_codegen_shape **out,
                                      struct bitconv_error *err)
{
    BC_TRY(bc_codegen_shape(shapes, ne[1], ne[0], ne[2], out, err));
    if ((*out)->n_tensors++ > 0) return BITCONV_OK;
    (*out)->example = bc_arena_strdup(&shapes->arena, name);
    return (*out)->example != NULL ? BITCONV_OK : bc_fail_nomem(err, "name of a tensor");
}

/* ---- checkpoints ---- */

static enum bitconv_status add_weights(const struct bc_model *model,
                                       struct bc_codegen_shapes *shapes, struct bitconv_error *err)
{
    struct bc_codegen_shape *unused;
    for (size_t i = 0; i < model->n_weights; i++) {
        const struct bc_weight *w = &model->weights[i];
        if (w->role != BC_ROLE_LINEAR || w->keep || w->n_sources == 0) continue;
        BC_TRY(add_tensor(shapes, w->name, w->ne, &unused, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status add_checkpoint(const char *dir, const struct bitconv_sink *sink,
                                          struct bc_codegen_shapes *shapes,
                                          struct bitconv_error *err)
{
    const struct bc_model_options options = {.ternary_outtype = true};
    struct bc_checkpoint *ckpt = NULL;
    struct bc_model *model = NULL;
    BC_TRY(bc_checkpoint_open(dir, true, sink, &ckpt, err));
    enum bitconv_status status = bc_model_load(ckpt, &options, sink, &model, err);
    if (status == BITCONV_OK) status = add_weights(model, shapes, err);
    bc_model_free(model);
    bc_checkpoint_close(ckpt);
    return status;
}

/* ---- GGUFs ---- */

/* BASE.weight with BASE a linear tensor, or a stack of them, of some family. */
static bool is_linear(const struct bitconv_gguf_tensor *t)
{
    static const char suffix[] = ".weight";
    const size_t suffix_len = sizeof suffix - 1;
    const struct bc_arch *arch;
    uint32_t layer, expert;
    if (t->name_len <= suffix_len || t->n_dims < 2 || t->n_dims > 3 ||
        strcmp(t->name + t->name_len - suffix_len, suffix) != 0)
        return false;
    for (size_t i = 0; (arch = bc_arch_at(i)) != NULL; i++) {
        for (const struct bc_arch_tensor *row = arch->tensors; row->hf[0] != NULL; row++) {
            if (row->role != BC_ROLE_LINEAR && row->role != BC_ROLE_EXPERT) continue;
            if (bc_pattern_match(row->gguf, t->name, t->name_len - suffix_len, &layer, &expert))
                return true;
        }
    }
    return false;
}

static bool names_pack(const struct bc_stated_tensor *s, const char *name)
{
    return s->pack_len == strlen(name) && memcmp(s->pack, name, s->pack_len) == 0;
}

/* The tile that the file states for one of its TL1 or TL2 tensors. */
static enum bitconv_status add_stated(const struct bc_stated *stated, const char *path,
                                      const struct bitconv_gguf_tensor *t,
                                      struct bc_codegen_shape *shape, struct bitconv_error *err)
{
    const struct bc_stated_tensor *s = bc_stated_find(stated, t->name, t->name_len);
    for (size_t i = 0; i < BC_CODEGEN_PACKS; i++) {
        if (s != NULL && s->tile[0] != 0 && names_pack(s, bc_codegen_packs[i].name))
            BC_TRY(bc_codegen_put_tile(shape, shape->stated[i], s->tile, path, err));
        else if (strcmp(t->type_name, bc_codegen_packs[i].type_name) == 0)
            shape->unstated[i] = true;
    }
    return BITCONV_OK;
}

static enum bitconv_status add_tensors(const struct bitconv_gguf *file, const char *path,
                                       const struct bc_stated *stated,
                                       struct bc_codegen_shapes *shapes, struct bitconv_error *err)
{
    for (size_t i = 0; i < bitconv_gguf_n_tensors(file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(file, i);
        struct bc_codegen_shape *shape = NULL;
        if (!is_linear(t)) continue;
        BC_TRY(add_tensor(shapes, t->name, t->ne, &shape, err));
        BC_TRY(add_stated(stated, path, t, shape, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status add_gguf(const char *path, struct bc_codegen_shapes *shapes,
                                    struct bitconv_error *err)
{
    struct bitconv_gguf *file = NULL;
    struct bc_stated stated = {0};
    BC_TRY(bitconv_gguf_open(path, &file, err));
    enum bitconv_status status = bc_stated_read(file, &shapes->arena, &stated, err);
    if (status == BITCONV_OK) status = add_tensors(file, path, &stated, shapes, err);
    bc_stated_release(&stated);
    bitconv_gguf_close(file);
    return status;
}

enum bitconv_status bc_codegen_model_shapes(const char *model, const struct bitconv_sink *sink,
                                            struct bc_codegen_shapes *shapes,
                                            struct bitconv_error *err)
{
    if (bc_path_kind(model) == BC_PATH_DIR)
        BC_TRY(add_checkpoint(model, sink, shapes, err));
    else
        BC_TRY(add_gguf(model, shapes, err));
    if (shapes->n == 0)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: no linear tensor of a known family, whose shapes kernels could be made "
                       "for (--shapes names shapes)",
                       model);
    return BITCONV_OK;
}

void bc_codegen_shapes_release(struct bc_codegen_shapes *shapes)
{
    bc_free(shapes->items);
    bc_arena_release(&shapes->arena);
    *shapes = (struct bc_codegen_shapes){0};
}
