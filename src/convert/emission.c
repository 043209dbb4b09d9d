/* SPDX-License-Identifier: MIT
 * Writes the outputs of a plan and describes them.
 *
 * The metadata in front of the values holds fingerprints that are known only behind them: their size
 * is fixed, so the header is written with room for them and once more at the end. */
#include "convert/emission.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "bitconv/support.h"
#include "convert/bitconv_keys.h"
#include "convert/stream.h"
#include "convert/whole.h"

/* What the caller gets, with its memory. */
struct result {
    struct bitconv_conversion public;
    struct bc_arena arena;
};

/* Outtype auto: the packs that were asked for, so that a reader can tell that each tensor has the
 * smallest of them. */
static enum bitconv_status set_auto(const struct bc_setup *setup, struct bitconv_gguf_writer *w,
                                    struct bitconv_error *err)
{
    struct bc_buf list = {0};
    for (size_t i = 0; i < setup->n_autos; i++)
        bc_buf_printf(&list, "%s%s", i > 0 ? "," : "", setup->autos[i].name);
    if (setup->n_autos > 0) bitconv_gguf_set_string(w, "bitconv.auto", bc_buf_str(&list));
    const bool failed = list.failed;
    bc_buf_release(&list);
    return failed ? bc_fail_nomem(err, "metadata") : BITCONV_OK;
}

enum bitconv_status bc_emit_keys(struct bc_emission *e, struct bitconv_gguf_writer *w,
                                 struct bitconv_error *err)
{
    if (e->setup->options->plain) return BITCONV_OK;
    BC_TRY(bc_bitconv_keys(e->plan, e->source, w, err));
    e->has_keys = bitconv_gguf_writer_has(w, "bitconv.tensor.name");
    return set_auto(e->setup, w, err);
}

static enum bitconv_status stream(const struct bc_emission *e, bool write,
                                  struct bitconv_error *err)
{
    struct bc_out **files = bc_alloc_array(e->outputs->n_files, sizeof *files);
    if (files == NULL) return bc_fail_nomem(err, "list of outputs");
    for (uint32_t i = 0; i < e->outputs->n_files; i++)
        files[i] = e->outputs->files[i].out;
    const struct bc_stream_job job = {.setup = e->setup,
                                      .model = e->model,
                                      .plan = e->plan,
                                      .pool = e->pool,
                                      .sink = e->sink,
                                      .files = write ? files : NULL,
                                      .places = e->outputs->places,
                                      .what = write ? "writing" : "computing"};
    const enum bitconv_status status = bc_stream_run(&job, err);
    bc_free((void *)files);
    return status;
}

/* Puts the results of the pass over the values into the metadata. */
static enum bitconv_status refresh_keys(const struct bc_emission *e, bool rewrite,
                                        struct bitconv_error *err)
{
    if (!e->has_keys) return BITCONV_OK;
    BC_TRY(bc_bitconv_keys(e->plan, e->source, e->outputs->files[0].writer, err));
    return bc_outputs_update(e->outputs, rewrite, err);
}

static enum bitconv_status write_outputs(const struct bc_emission *e, struct bitconv_error *err)
{
    BC_TRY(bc_outputs_open(e->setup, e->outputs, err));
    const bool seekable = bc_outputs_seekable(e->outputs);
    if (e->has_keys && !seekable) {
        BC_TRY(stream(e, false, err));
        BC_TRY(refresh_keys(e, false, err));
    }
    BC_TRY(bc_outputs_headers(e->outputs, err));
    BC_TRY(stream(e, true, err));
    if (seekable) BC_TRY(refresh_keys(e, true, err));
    if (bc_canceled(e->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    if (e->check != NULL) BC_TRY(e->check(e->check_ctx, err));
    return bc_outputs_commit(e->outputs, err);
}

/* A dry run goes through everything but the writing. */
static enum bitconv_status rehearse(const struct bc_emission *e, struct bitconv_error *err)
{
    for (uint32_t i = 0; i < e->outputs->n_files; i++)
        BC_TRY(bc_outputs_probe(
            e->setup, e->outputs, e->outputs->files[i].path,
            i == 0 ? bc_outputs_size(e->outputs) : e->outputs->files[i].file_size, err));
    return stream(e, false, err);
}

enum bitconv_status bc_emit(const struct bc_emission *e, struct bitconv_error *err)
{
    return e->setup->options->dry_run ? rehearse(e, err) : write_outputs(e, err);
}

/* ---- what the values turned out to be ---- */

static void warn_tensor(const struct bc_emission *e, const struct bc_plan_tensor *t)
{
    const char *name = t->weight->name;
    if (t->n_flushed > 0)
        bc_say(e->sink, BITCONV_NOTE, "%s: %" PRIu64 " values are too small for F16 and became 0",
               name, t->n_flushed);
    if (!bc_plan_has_trits(t) || t->n < 2) return;
    for (int i = 0; i < 3; i++) {
        if (t->counts[i] != t->n) continue;
        if (i == 1)
            bc_say(e->sink, BITCONV_WARNING,
                   "%s: all %" PRIu64 " weights are zero: damaged checkpoints look like this", name,
                   t->n);
        else
            bc_say(e->sink, BITCONV_WARNING,
                   "%s: all %" PRIu64 " weights are %+d: a hole in a packed file looks like this",
                   name, t->n, i - 1);
    }
}

void bc_emit_warn(const struct bc_emission *e)
{
    for (size_t i = 0; i < e->plan->n_tensors; i++)
        warn_tensor(e, &e->plan->tensors[i]);
}

/* ---- the result ---- */

static void describe_tensor(struct bc_arena *arena, const struct bc_plan_tensor *t,
                            struct bitconv_converted_tensor *out)
{
    const struct bc_weight *w = t->weight;
    const struct bc_ternary *d = &t->decision;
    out->name = bc_arena_strdup(arena, w->name);
    if (t->origin != NULL)
        out->source = out->name;
    else
        out->source =
            w->n_sources > 0 ? bc_arena_strdup(arena, w->sources[0].tensor->name) : "(generated)";
    out->type = bc_arena_strdup(arena, t->type.type_name);
    out->pack = t->type.pack != NULL ? t->type.pack->name : NULL;
    const char *how = t->origin != NULL ? t->origin->how : bc_how_name(d->how);
    if (t->by_block) how = bc_how_name(BC_HOW_BLOCKS);
    out->how = bc_plan_has_trits(t) ? how : NULL;
    out->n_dims = w->n_dims;
    memcpy(out->ne, w->ne, sizeof out->ne);
    out->parameters = t->n;
    out->size = t->size;
    out->zeros = bc_plan_zeros(t);
    out->entropy_bound = out->zeros >= 0.0 ? bitconv_entropy_bound(out->zeros) : -1.0;
    if (t->ternary)
        out->scale = d->scales[0];
    else if (t->n_block_scales > 0)
        out->scale = t->block_scales[0];
    if (t->counts[0] + t->counts[2] > 0) out->scale_error = t->scale_error;
    out->stored_scale = d->stored != NULL ? d->stored[0] : 0.0f;
    out->relative_error = bc_plan_relative_error(t);
    if (bc_plan_has_fingerprint(t)) bc_hash128_hex(t->fingerprint, out->fingerprint);
    out->reference_differs = t->reference_differs;
    out->misfit = t->misfit;
}

static enum bitconv_status describe(const struct bc_emission *e, const char *target,
                                    const char *architecture, struct result *out,
                                    struct bitconv_error *err)
{
    struct bitconv_conversion *c = &out->public;
    struct bc_arena *arena = &out->arena;
    const bool split = e->outputs->n_files > 1;
    c->output = bc_arena_strdup(arena, split ? e->outputs->files[0].path : e->path);
    c->outtype = e->setup->out.name;
    c->target = target;
    c->architecture = bc_arena_strdup(arena, architecture);
    c->tensors = bc_arena_alloc(arena, e->plan->n_tensors, sizeof *c->tensors);
    if (c->output == NULL || c->architecture == NULL || c->tensors == NULL)
        return bc_fail_nomem(err, "result of the conversion");
    for (; c->n_tensors < e->plan->n_tensors; c->n_tensors++) {
        struct bitconv_converted_tensor *t = &c->tensors[c->n_tensors];
        describe_tensor(arena, &e->plan->tensors[c->n_tensors], t);
        if (t->name == NULL || t->source == NULL || t->type == NULL)
            return bc_fail_nomem(err, "result of the conversion");
    }
    c->n_files = e->outputs->n_files;
    c->file_size = bc_outputs_size(e->outputs);
    /* A header is there twice: as values and as bytes. */
    c->peak_memory = bc_stream_memory(e->plan) + 2 * bc_outputs_headers_size(e->outputs) +
                     e->plan->n_tensors * sizeof *e->plan->tensors;
    c->tensor_memory = bc_whole_memory(e->plan);
    return bc_plan_fingerprint(e->plan, c->fingerprint, err);
}

enum bitconv_status bc_emit_describe(const struct bc_emission *e, const char *target,
                                     const char *architecture, struct bitconv_conversion **out,
                                     struct bitconv_error *err)
{
    struct result *result = bc_alloc_array(1, sizeof *result);
    *out = NULL;
    if (result == NULL) return bc_fail_nomem(err, "result of the conversion");
    result->public.internal = result;
    const enum bitconv_status status = describe(e, target, architecture, result, err);
    if (status == BITCONV_OK)
        *out = &result->public;
    else
        bitconv_conversion_free(&result->public);
    return status;
}

void bitconv_conversion_free(struct bitconv_conversion *conversion)
{
    if (conversion == NULL) return;
    struct result *result = conversion->internal;
    bc_arena_release(&result->arena);
    bc_free(result);
}
