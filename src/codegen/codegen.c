/* SPDX-License-Identifier: MIT
 * bitconv_codegen: shapes, a tile for each in each pack, the texts, the files. */
#include "bitconv/codegen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "codegen/emit.h"
#include "codegen/shapes.h"
#include "formats/format.h"
#include "model/findings.h"

enum { WHY_SIZE = 512 };

static const char header_name[] = "bitconv_tl_kernels.h";

/* What the caller gets, with its memory. */
struct result {
    struct bitconv_codegen_result public;
    struct bc_arena arena;
};

/* All that lives during one call. */
struct run {
    const struct bitconv_codegen_options *options;
    const struct bitconv_sink *sink;
    bool wanted[BC_CODEGEN_PACKS];
    struct bc_codegen_shapes shapes;
    struct bc_tilings config;
    struct bc_findings misfits;
    struct result *result;
    const char *dir; /* where the files are written: options->dir, or its hidden name meanwhile */
    size_t first[BC_CODEGEN_PACKS + 1]; /* of a pack among the kernels; then their number */
};

/* ---- options ---- */

static enum bitconv_status check_options(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_codegen_options *o = r->options;
    const char *pack = o->pack != NULL ? o->pack : "both";
    const bool both = strcmp(pack, "both") == 0;
    for (size_t i = 0; i < BC_CODEGEN_PACKS; i++)
        r->wanted[i] = both || strcmp(pack, bc_codegen_packs[i].name) == 0;
    if (!r->wanted[BC_TILED_TL1] && !r->wanted[BC_TILED_TL2])
        return bc_fail(err, BITCONV_E_ARG, "the pack is '%s', tl1, tl2 or both was expected", pack);
    if (o->model != NULL && o->n_shapes > 0)
        return bc_fail(err, BITCONV_E_ARG,
                       "both a model and shapes were given, kernels are made for one or the other");
    if (o->model == NULL && o->n_shapes == 0 && o->kernel_config == NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       "nothing to make kernels for: a model, shapes or a kernel configuration was "
                       "expected");
    if (o->n_tiles > 0 && o->kernel_config != NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: tiles were given as well, one or the other was expected",
                       o->kernel_config);
    if (o->ini != NULL && both)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: a configuration serves one pack: say which, tl1 or tl2, or name a "
                       "folder instead",
                       o->ini);
    if (o->ini != NULL && o->header != NULL && bc_out_same(o->ini, o->header))
        return bc_fail(err, BITCONV_E_ARG, "%s: the same file for configuration and header",
                       o->ini);
    if (o->dir != NULL && (o->ini != NULL || o->header != NULL))
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: a folder and the names of files were given, one or the other was "
                       "expected",
                       o->dir);
    return BITCONV_OK;
}

/* ---- shapes ---- */

static enum bitconv_status find_shapes(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_codegen_options *o = r->options;
    struct bc_codegen_shape *unused;
    if (o->kernel_config != NULL) BC_TRY(bc_tilings_load(o->kernel_config, &r->config, err));
    if (o->model != NULL) return bc_codegen_model_shapes(o->model, r->sink, &r->shapes, err);
    for (size_t i = 0; i < o->n_shapes; i++)
        BC_TRY(bc_codegen_shape(&r->shapes, o->shapes[i].rows, o->shapes[i].cols, 1, &unused, err));
    for (size_t i = 0; o->n_shapes == 0 && i < r->config.n; i++)
        BC_TRY(bc_codegen_shape(&r->shapes, r->config.items[i].rows, r->config.items[i].cols, 1,
                                &unused, err));
    return BITCONV_OK;
}

/* Hands the given tiles to their shapes. */
static enum bitconv_status give_tiles(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_codegen_options *o = r->options;
    const size_t wanted = o->model != NULL ? r->shapes.n : o->n_shapes;
    if (o->n_tiles == 0) return BITCONV_OK;
    if (o->n_tiles != wanted)
        return bc_fail(err, BITCONV_E_ARG, "%zu tiles (BM, BK, bm) for %zu shapes%s", o->n_tiles,
                       wanted, o->model != NULL ? " of the model, one each was expected" : "");
    for (size_t i = 0; i < o->n_tiles; i++) {
        struct bc_codegen_shape *s = &r->shapes.items[i];
        if (o->model == NULL)
            BC_TRY(bc_codegen_shape(&r->shapes, o->shapes[i].rows, o->shapes[i].cols, 1, &s, err));
        if (o->tiles[i][0] == 0 || o->tiles[i][1] == 0 || o->tiles[i][2] == 0)
            return bc_fail(err, BITCONV_E_ARG, "BM, BK and bm must not be 0");
        BC_TRY(bc_codegen_put_tile(s, s->given, o->tiles[i], "the lists of tiles", err));
    }
    return BITCONV_OK;
}

/* ---- kernels ---- */

/* The tile of a shape, and where it comes from; NULL with the reason in why when there is none. */
static const char *choose(const struct run *r, const struct bc_codegen_shape *s,
                          enum bc_tiled_pack pack, uint32_t tile[3], char why[WHY_SIZE])
{
    static const char *const sources[] = {"file", "published", "largest"};
    enum bc_tiling_source source;
    const bool given = s->given[0] != 0;
    if (s->slices > 1) {
        snprintf(why, WHY_SIZE, "%s holds matrices only, not stacks of %" PRIu64,
                 pack == BC_TILED_TL1 ? "TL1" : "TL2", s->slices);
        return NULL;
    }
    if (s->cols > BC_CODEGEN_MAX_COLS) {
        snprintf(why, WHY_SIZE,
                 "K = %" PRIu64 " columns are more than %" PRIu64
                 ", the most whose sums fit 32 bits",
                 s->cols, BC_CODEGEN_MAX_COLS);
        return NULL;
    }
    if (given || (r->config.n == 0 && s->stated[pack][0] != 0)) {
        memcpy(tile, given ? s->given : s->stated[pack], 3 * sizeof *tile);
        if (!bc_tiling_check(pack, s->rows, s->cols, tile, why, WHY_SIZE)) return NULL;
        return given ? "given" : "stated";
    }
    if (!bc_tiling_choose(&r->config, pack, s->rows, s->cols, tile, &source, why, WHY_SIZE))
        return NULL;
    if (s->unstated[pack] && source != BC_TILING_FILE)
        bc_say(r->sink, BITCONV_WARNING,
               "%s: does not state the tile of its %s tensors of %" PRIu64 " x %" PRIu64
               " (%s): %" PRIu32 ", %" PRIu32 ", %" PRIu32
               " is taken, which is right only if they were packed so (--kernel-config says how)",
               r->options->model, pack == BC_TILED_TL1 ? "TL1" : "TL2", s->rows, s->cols,
               s->example, tile[0], tile[1], tile[2]);
    return sources[source];
}

/* A shape that the pack cannot hold. */
static void report_misfit(struct run *r, const struct bc_codegen_shape *s, const char *why)
{
    const bool both = r->wanted[BC_TILED_TL1] && r->wanted[BC_TILED_TL2];
    if (r->options->skip_misfits)
        bc_say(r->sink, BITCONV_WARNING, "%" PRIu64 " x %" PRIu64 "%s%s: left out: %s", s->rows,
               s->cols, s->example != NULL ? ", " : "", s->example != NULL ? s->example : "", why);
    else
        bc_finding(&r->misfits, BITCONV_E_UNSUPPORTED, "%" PRIu64 " x %" PRIu64 "%s%s: %s%s",
                   s->rows, s->cols, s->example != NULL ? ", " : "",
                   s->example != NULL ? s->example : "", why,
                   both ? " (the other pack alone: --pack)" : "");
}

static enum bitconv_status make_kernels(struct run *r, enum bc_tiled_pack pack,
                                        struct bitconv_error *err)
{
    struct bitconv_codegen_result *const result = &r->result->public;
    const struct bc_format *format = bc_format_find(bc_codegen_packs[pack].name);
    for (size_t i = 0; i < r->shapes.n; i++) {
        const struct bc_codegen_shape *s = &r->shapes.items[i];
        struct bitconv_codegen_kernel k = {.pack = bc_codegen_packs[pack].name,
                                           .rows = s->rows,
                                           .cols = s->cols,
                                           .n_tensors = s->n_tensors};
        char why[WHY_SIZE] = "";
        k.source = choose(r, s, pack, k.tile, why);
        if (k.source == NULL) {
            report_misfit(r, s, why);
            continue;
        }
        struct bc_pack_shape shape = {
            .cols = s->cols, .rows = s->rows, .slices = 1, .n = s->rows * s->cols};
        memcpy(shape.tile, k.tile, sizeof shape.tile);
        k.size = format->size(&shape);
        if (s->example != NULL) {
            k.example = bc_arena_strdup(&r->result->arena, s->example);
            if (k.example == NULL) return bc_fail_nomem(err, "name of a tensor");
        }
        result->kernels[result->n_kernels++] = k;
    }
    return BITCONV_OK;
}

static enum bitconv_status plan(struct run *r, struct bitconv_error *err)
{
    struct bitconv_codegen_result *const result = &r->result->public;
    r->misfits = (struct bc_findings){.sink = r->sink, .subject = "kernels"};
    if (r->options->model != NULL) r->misfits.subject = r->options->model;
    result->kernels =
        bc_arena_alloc(&r->result->arena, BC_CODEGEN_PACKS * r->shapes.n, sizeof *result->kernels);
    if (result->kernels == NULL) return bc_fail_nomem(err, "list of kernels");
    for (size_t pack = 0; pack < BC_CODEGEN_PACKS; pack++) {
        r->first[pack] = result->n_kernels;
        if (r->wanted[pack]) BC_TRY(make_kernels(r, (enum bc_tiled_pack)pack, err));
    }
    r->first[BC_CODEGEN_PACKS] = result->n_kernels;
    BC_TRY(bc_findings_result(&r->misfits, "shapes that do not fit", err));
    if (result->n_kernels > 0) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_UNSUPPORTED, "%s: no shape fits", r->misfits.subject);
}

/* ---- files ---- */

/* An output: its text and where it goes. */
struct output {
    struct bc_buf text;
    struct bc_out *file;
};

/* The path of an output in the arena: as named, else NAME in the folder. */
static const char *path_of(const struct run *r, const char *dir, const char *named,
                           const char *name)
{
    if (named != NULL) return bc_arena_strdup(&r->result->arena, named);
    if (dir == NULL || *dir == '\0') return bc_arena_strdup(&r->result->arena, name);
    return bc_arena_printf(&r->result->arena, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/",
                           name);
}

static enum bitconv_status write_output(struct run *r, struct output *o, const char *named,
                                        const char *name, struct bitconv_error *err)
{
    struct bitconv_codegen_result *const result = &r->result->public;
    const char *const inputs[] = {r->options->model, r->options->kernel_config};
    const struct bc_out_options options = {.force = r->options->force,
                                           .size = o->text.size,
                                           .input_paths = inputs,
                                           .n_input_paths = 2};
    const char *const path = path_of(r, r->options->dir, named, name);
    const char *const meanwhile = path_of(r, r->dir, named, name);
    if (path == NULL || meanwhile == NULL) return bc_fail_nomem(err, "name of a file");
    if (o->text.failed) return bc_fail_nomem(err, "text of a file");
    BC_TRY(bc_out_open(meanwhile, &options, &o->file, err));
    BC_TRY(bc_out_write(o->file, o->text.data, o->text.size, err));
    BC_TRY(bc_out_sync(o->file, err));
    result->files[result->n_files++] = path;
    return BITCONV_OK;
}

static enum bitconv_status write_texts(struct run *r, struct output *outputs,
                                       struct bitconv_error *err)
{
    const struct bitconv_codegen_options *o = r->options;
    const struct bitconv_codegen_result *const result = &r->result->public;
    const bool named = o->ini != NULL || o->header != NULL;
    for (size_t pack = 0; pack < BC_CODEGEN_PACKS; pack++) {
        const size_t n = r->first[pack + 1] - r->first[pack];
        if (n == 0 || (named && o->ini == NULL)) continue;
        bc_codegen_ini(result->kernels + r->first[pack], n, &outputs[pack].text);
        BC_TRY(write_output(r, &outputs[pack], o->ini, bc_codegen_packs[pack].ini_name, err));
    }
    if (named && o->header == NULL) return BITCONV_OK;
    struct output *header = &outputs[BC_CODEGEN_PACKS];
    bc_codegen_header(result->kernels, result->n_kernels, &header->text);
    return write_output(r, header, o->header, header_name, err);
}

/* All files are complete and on the disk before the first gets its name. */
static enum bitconv_status write_all(struct run *r, struct bitconv_error *err)
{
    struct output outputs[BC_CODEGEN_PACKS + 1] = {{{0}, NULL}};
    enum bitconv_status status = write_texts(r, outputs, err);
    for (size_t i = 0; i <= BC_CODEGEN_PACKS; i++) {
        if (status != BITCONV_OK)
            bc_out_abort(outputs[i].file);
        else if (outputs[i].file != NULL)
            status = bc_out_commit(outputs[i].file, err);
        bc_buf_release(&outputs[i].text);
    }
    return status;
}

/* A folder that is not there is made with the files in it, all at once. */
static enum bitconv_status write_files(struct run *r, struct bitconv_error *err)
{
    const char *const dir = r->options->dir;
    if (dir == NULL || bc_path_kind(dir) == BC_PATH_DIR) return write_all(r, err);
    const struct bc_out_folder_options options = {.force = false};
    struct bc_out_folder *folder = NULL;
    BC_TRY(bc_out_folder_open(dir, &options, &folder, err));
    r->dir = bc_out_folder_path(folder);
    const enum bitconv_status status = write_all(r, err);
    if (status == BITCONV_OK) return bc_out_folder_commit(folder, err);
    bc_out_folder_abort(folder);
    return status;
}

/* ---- the call ---- */

static enum bitconv_status generate(struct run *r, struct bitconv_error *err)
{
    BC_TRY(check_options(r, err));
    BC_TRY(find_shapes(r, err));
    BC_TRY(give_tiles(r, err));
    BC_TRY(plan(r, err));
    return write_files(r, err);
}

enum bitconv_status bitconv_codegen(const struct bitconv_codegen_options *options,
                                    const struct bitconv_sink *sink,
                                    struct bitconv_codegen_result **out, struct bitconv_error *err)
{
    struct bitconv_error local = {.status = BITCONV_OK};
    struct run r = {.options = options, .sink = sink, .dir = options->dir};
    *out = NULL;
    r.result = bc_alloc_array(1, sizeof *r.result);
    if (r.result == NULL) return bc_fail_nomem(err, "result");
    r.result->public.internal = r.result;
    const enum bitconv_status status = generate(&r, err != NULL ? err : &local);
    bc_codegen_shapes_release(&r.shapes);
    bc_tilings_release(&r.config);
    if (status == BITCONV_OK)
        *out = &r.result->public;
    else
        bitconv_codegen_free(&r.result->public);
    return status;
}

void bitconv_codegen_free(struct bitconv_codegen_result *result)
{
    if (result == NULL) return;
    struct result *r = result->internal;
    bc_arena_release(&r->arena);
    bc_free(r);
}
