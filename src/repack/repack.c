/* SPDX-License-Identifier: MIT
 * The pipeline from a GGUF to another with its ternary tensors in another pack: open and sort, read
 * once and plan, write (convert/emission.h). */
#include "bitconv/repack.h"

#include <string.h>

#include "base/mem.h"
#include "convert/emission.h"
#include "io/gguf_types.h"
#include "repack/repack_keys.h"
#include "repack/repack_plan.h"

/* All that lives during one repacking. Zero-initialise. */
struct run {
    const struct bitconv_repack_options *options;
    struct bitconv_convert_options conversion; /* the output's side of them */
    const struct bitconv_sink *sink;
    struct bc_setup setup;
    struct bc_repack_input in;
    struct bc_pool *pool;
    struct bc_plan plan;
    struct bc_outputs outputs;
    struct bc_emission emission;
    char *source; /* bitconv.source; in the outputs' arena */
};

static void release(struct run *r)
{
    bc_outputs_release(&r->outputs);
    bc_plan_release(&r->plan);
    bc_pool_free(r->pool);
    bc_repack_close(&r->in);
    bc_setup_release(&r->setup);
}

/* ---- options ---- */

static bool is_i2s(const char *outtype)
{
    const struct bc_format *format = bc_format_find(outtype);
    return format != NULL && format->type_id == BC_TYPE_I2_S;
}

/* Whether the output may hold tiled tensors. */
static bool wants_tiles(const struct bitconv_repack_options *o)
{
    const char *list = strcmp(o->outtype, BC_OUTTYPE_AUTO) == 0 ? o->auto_packs : o->outtype;
    for (size_t i = 0; list != NULL && bc_format_at(i) != NULL; i++)
        if (bc_format_at(i)->choose_tile != NULL && strstr(list, bc_format_at(i)->name) != NULL)
            return true;
    return false;
}

/* Options that say something of either side: of the output where it is of their pack, else of the
 * input. */
static enum bitconv_status split_options(struct run *r, struct bc_input_hints *hints,
                                         struct bitconv_error *err)
{
    const struct bitconv_repack_options *o = r->options;
    if (o->outtype == NULL) return bc_fail(err, BITCONV_E_ARG, "--outtype is missing");
    if (o->outfile == NULL) return bc_fail(err, BITCONV_E_ARG, "the output file is missing (-o)");
    const bool i2s = is_i2s(o->outtype);
    r->conversion = (struct bitconv_convert_options){
        .outtype = o->outtype,
        .auto_packs = o->auto_packs,
        .outfile = o->outfile,
        .dialect = o->dialect,
        .on_misfit = o->on_misfit,
        .i2s_layout = i2s ? o->i2s_layout : NULL,
        .kernel_config = wants_tiles(o) ? o->kernel_config : NULL,
        .split_max_size = o->split_max_size,
        .scale_tensor = o->scale_tensor,
        .plain = o->plain,
        .force = o->force,
        .dry_run = o->dry_run,
        .n_threads = o->n_threads,
        .cpu = o->cpu,
    };
    *hints = (struct bc_input_hints){
        .dialect = o->input_dialect,
        .i2s_layout = o->input_i2s_layout == NULL && !i2s ? o->i2s_layout : o->input_i2s_layout,
        .kernel_config = o->input_kernel_config != NULL ? o->input_kernel_config : o->kernel_config,
    };
    return BITCONV_OK;
}

/* ---- the steps ---- */

/* bitconv.source: that of the input, else its file's name. */
static enum bitconv_status find_source(struct run *r, struct bitconv_error *err)
{
    const char *text;
    size_t len;
    if (bitconv_gguf_value_string(bitconv_gguf_find_key(r->in.gguf, "bitconv.source"), &text,
                                  &len)) {
        r->source = bc_arena_strndup(&r->outputs.arena, text, len);
    } else {
        r->source = bc_arena_strdup(&r->outputs.arena, bc_path_base(r->in.path));
    }
    return r->source != NULL ? BITCONV_OK : bc_fail_nomem(err, "metadata");
}

static enum bitconv_status compare(void *ctx, struct bitconv_error *err)
{
    const struct run *r = ctx;
    return bc_repack_compare(&r->in, &r->plan, err);
}

static enum bitconv_status set_keys(struct run *r, struct bitconv_gguf_writer *w,
                                    struct bitconv_error *err)
{
    BC_TRY(bc_repack_keys(r->in.gguf, r->setup.out.file_type, w, err));
    return bc_emit_keys(&r->emission, w, err);
}

static enum bitconv_status lay_out(struct run *r, struct bitconv_error *err)
{
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    if (w == NULL) return bc_fail_nomem(err, "GGUF header");
    const enum bitconv_status status = set_keys(r, w, err);
    if (status != BITCONV_OK) {
        bitconv_gguf_writer_free(w);
        return status;
    }
    return bc_outputs_layout(&r->setup, &r->plan, w, r->options->outfile, r->sink, &r->outputs,
                             err);
}

static enum bitconv_status prepare(struct run *r, const struct bc_input_hints *hints,
                                   struct bitconv_error *err)
{
    const struct bitconv_repack_options *o = r->options;
    BC_TRY(bc_repack_open(r->setup.dir, hints, r->sink, &r->in, err));
    BC_TRY(bc_pool_new(o->n_threads, &r->pool, err));
    BC_TRY(bc_outputs_begin_gguf(&r->setup, r->in.gguf, hints->kernel_config, &r->outputs, err));
    if (o->split_max_size == 0)
        BC_TRY(bc_outputs_probe(&r->setup, &r->outputs, o->outfile, 0, err));
    BC_TRY(find_source(r, err));
    BC_TRY(bc_repack_plan(&r->setup, &r->in, r->pool, r->sink, &r->plan, err));
    BC_TRY(bc_plan_settle(&r->setup, &r->plan, r->sink, err));
    r->emission = (struct bc_emission){.setup = &r->setup,
                                       .pool = r->pool,
                                       .sink = r->sink,
                                       .plan = &r->plan,
                                       .outputs = &r->outputs,
                                       .path = o->outfile,
                                       .source = r->source,
                                       .check = compare,
                                       .check_ctx = r};
    return lay_out(r, err);
}

/* general.architecture as far as it can be printed; "" when the file does not say. */
static char *architecture(struct run *r)
{
    const char *text = "";
    size_t len = 0;
    (void)bitconv_gguf_value_string(bitconv_gguf_find_key(r->in.gguf, "general.architecture"),
                                    &text, &len);
    return bc_arena_strndup(&r->outputs.arena, text, len);
}

static enum bitconv_status run_all(struct run *r, const char *path, struct bitconv_conversion **out,
                                   struct bitconv_error *err)
{
    struct bc_input_hints hints;
    BC_TRY(split_options(r, &hints, err));
    BC_TRY(bc_setup_make(path, &r->conversion, &r->setup, err));
    BC_TRY(prepare(r, &hints, err));
    BC_TRY(bc_emit(&r->emission, err));
    bc_emit_warn(&r->emission);
    const char *arch = architecture(r);
    if (arch == NULL) return bc_fail_nomem(err, "result of repacking");
    return bc_emit_describe(&r->emission, NULL, arch, out, err);
}

enum bitconv_status bitconv_repack(const char *path, const struct bitconv_repack_options *options,
                                   const struct bitconv_sink *sink, struct bitconv_conversion **out,
                                   struct bitconv_error *err)
{
    struct run r = {.options = options, .sink = sink};
    *out = NULL;
    const enum bitconv_status status = run_all(&r, path, out, err);
    release(&r);
    return status;
}
