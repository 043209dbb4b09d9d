/* SPDX-License-Identifier: MIT
 * The pipeline from a checkpoint folder to a GGUF.
 *
 * Everything that can speak against a conversion is found out before the first byte of the output:
 * open, understand, plan types and sizes, read the values once for statistics. Then the values are
 * read a second time, made into bytes and written. The metadata in front of them holds fingerprints
 * that are known only behind them: their size is fixed, so the header is written with room for them
 * and once more at the end. An output that cannot be written twice (a pipe) is computed twice. */
#include "bitconv/convert.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "convert/bitconv_keys.h"
#include "convert/metadata.h"
#include "convert/outputs.h"
#include "convert/plan.h"
#include "convert/plan_types.h"
#include "convert/stream.h"
#include "convert/whole.h"

/* All that lives during one conversion. Zero-initialise. */
struct run {
    struct bc_setup setup;
    const struct bitconv_sink *sink;
    struct bc_checkpoint *ckpt;
    struct bc_model *model;
    struct bc_pool *pool;
    struct bc_plan plan;
    struct bc_outputs outputs;
    char *path;    /* of the output; in the outputs' arena */
    bool has_keys; /* bitconv.* metadata depends on the values */
};

/* What the caller gets, with its memory. */
struct result {
    struct bitconv_conversion public;
    struct bc_arena arena;
};

static void release_run(struct run *r)
{
    bc_outputs_release(&r->outputs);
    bc_plan_release(&r->plan);
    bc_pool_free(r->pool);
    bc_model_free(r->model);
    bc_checkpoint_close(r->ckpt);
    bc_setup_release(&r->setup);
}

/* ---- the steps ---- */

static enum bitconv_status load(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_convert_options *o = r->setup.options;
    BC_TRY(bc_checkpoint_open(r->setup.dir, !o->vocab_only, r->sink, &r->ckpt, err));
    BC_TRY(bc_model_load(r->ckpt, &r->setup.model, r->sink, &r->model, err));
    BC_TRY(bc_pool_new(o->n_threads, &r->pool, err));
    return bc_plan_make(&r->setup, r->model, r->sink, &r->plan, err);
}

/* Metadata and statistics, side by side. *out gets the writer with all keys. */
static enum bitconv_status examine(struct run *r, const char *name,
                                   struct bitconv_gguf_writer **out, struct bitconv_error *err)
{
    struct bc_metadata m = {.setup = NULL};
    struct bitconv_error failure = {.status = BITCONV_OK};
    /* One thread means that everything runs on the caller; without tensors there is nothing else
     * to do meanwhile. */
    const bool wait = bc_pool_threads(r->pool) == 1 || r->plan.n_tensors == 0;
    BC_TRY(bc_metadata_start(&m, &r->setup, r->ckpt, r->model, name, wait, err));
    const enum bitconv_status status =
        bc_plan_examine(&r->setup, r->model, r->pool, r->sink, &m.failed, &r->plan, &failure);
    BC_TRY(bc_metadata_finish(&m, r->sink, out, err));
    if (status != BITCONV_OK && err != NULL && err->status == BITCONV_OK) *err = failure;
    BC_TRY(status);
    BC_TRY(bc_plan_settle(&r->setup, &r->plan, r->sink, err));
    if (r->setup.options->plain) return BITCONV_OK;
    BC_TRY(bc_bitconv_keys(&r->plan, r->ckpt->base_name, *out, err));
    r->has_keys = bitconv_gguf_writer_has(*out, "bitconv.tensor.name");
    return BITCONV_OK;
}

/* llama.cpp multiplies by NAME.scale tensors where the graph of a family says so. */
static void warn_scale_tensors(const struct run *r)
{
    if (!r->setup.options->scale_tensor || r->model->arch->traits.ternary_class) return;
    bc_say(
        r->sink, BITCONV_WARNING,
        "--scale-tensor: llama.cpp's bitnet graph multiplies by the NAME.scale tensors; versions "
        "whose %s graph does not know them refuse the file or compute with scales of 1",
        r->model->arch_name);
}

/* Everything in front of the output; one that cannot be written is noticed before the long part. */
static enum bitconv_status prepare(struct run *r, struct bitconv_error *err)
{
    const struct bitconv_convert_options *o = r->setup.options;
    const char *name = o->name != NULL ? o->name : bc_model_name(r->model, r->ckpt);
    if (name == NULL) return bc_fail_nomem(err, "name of the model");
    if (o->plain && o->i2s_layout != NULL && strcmp(o->i2s_layout, "64") == 0)
        bc_say(r->sink, BITCONV_WARNING,
               "a plain file does not tell its I2_S layout of 64: readers must be told "
               "(verify --i2s-layout 64)");
    warn_scale_tensors(r);
    BC_TRY(bc_outputs_begin(&r->setup, r->ckpt, &r->outputs, err));
    BC_TRY(bc_outputs_path(&r->setup, name, &r->outputs.arena, &r->path, err));
    if (o->split_max_size == 0)
        BC_TRY(bc_outputs_probe(&r->setup, &r->outputs, r->path, bc_plan_size(&r->plan), err));
    struct bitconv_gguf_writer *w = NULL;
    const enum bitconv_status status = examine(r, name, &w, err);
    if (status != BITCONV_OK) {
        bitconv_gguf_writer_free(w);
        return status;
    }
    return bc_outputs_layout(&r->setup, &r->plan, w, r->path, r->sink, &r->outputs, err);
}

static enum bitconv_status stream(struct run *r, bool write, struct bitconv_error *err)
{
    struct bc_out **files = bc_alloc_array(r->outputs.n_files, sizeof *files);
    if (files == NULL) return bc_fail_nomem(err, "list of outputs");
    for (uint32_t i = 0; i < r->outputs.n_files; i++)
        files[i] = r->outputs.files[i].out;
    const struct bc_stream_job job = {.setup = &r->setup,
                                      .model = r->model,
                                      .plan = &r->plan,
                                      .pool = r->pool,
                                      .sink = r->sink,
                                      .files = write ? files : NULL,
                                      .places = r->outputs.places,
                                      .what = write ? "writing" : "computing"};
    const enum bitconv_status status = bc_stream_run(&job, err);
    bc_free((void *)files);
    return status;
}

/* Puts the results of the pass over the values into the metadata. */
static enum bitconv_status refresh_keys(struct run *r, bool rewrite, struct bitconv_error *err)
{
    if (!r->has_keys) return BITCONV_OK;
    BC_TRY(bc_bitconv_keys(&r->plan, r->ckpt->base_name, r->outputs.files[0].writer, err));
    return bc_outputs_update(&r->outputs, rewrite, err);
}

static enum bitconv_status write_outputs(struct run *r, struct bitconv_error *err)
{
    BC_TRY(bc_outputs_open(&r->setup, &r->outputs, err));
    const bool seekable = bc_outputs_seekable(&r->outputs);
    if (r->has_keys && !seekable) {
        BC_TRY(stream(r, false, err));
        BC_TRY(refresh_keys(r, false, err));
    }
    BC_TRY(bc_outputs_headers(&r->outputs, err));
    BC_TRY(stream(r, true, err));
    if (seekable) BC_TRY(refresh_keys(r, true, err));
    if (bc_canceled(r->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    return bc_outputs_commit(&r->outputs, err);
}

/* A dry run goes through everything but the writing. */
static enum bitconv_status rehearse(struct run *r, struct bitconv_error *err)
{
    for (uint32_t i = 0; i < r->outputs.n_files; i++)
        BC_TRY(bc_outputs_probe(
            &r->setup, &r->outputs, r->outputs.files[i].path,
            i == 0 ? bc_outputs_size(&r->outputs) : r->outputs.files[i].file_size, err));
    return stream(r, false, err);
}

/* ---- what the values turned out to be ---- */

static void warn_tensor(const struct run *r, const struct bc_plan_tensor *t)
{
    const char *name = t->weight->name;
    if (t->n_flushed > 0)
        bc_say(r->sink, BITCONV_NOTE, "%s: %" PRIu64 " values are too small for F16 and became 0",
               name, t->n_flushed);
    if (!bc_plan_has_trits(t) || t->n < 2) return;
    for (int i = 0; i < 3; i++) {
        if (t->counts[i] != t->n) continue;
        if (i == 1)
            bc_say(r->sink, BITCONV_WARNING,
                   "%s: all %" PRIu64 " weights are zero: damaged checkpoints look like this", name,
                   t->n);
        else
            bc_say(r->sink, BITCONV_WARNING,
                   "%s: all %" PRIu64 " weights are %+d: a hole in a packed file looks like this",
                   name, t->n, i - 1);
    }
}

static void note_references(const struct run *r)
{
    const struct bc_plan_tensor *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->plan.n_tensors; i++) {
        if (!r->plan.tensors[i].reference_differs) continue;
        if (n++ == 0) first = &r->plan.tensors[i];
    }
    if (n > 0)
        bc_say(
            r->sink, BITCONV_NOTE,
            "%s: BitNet's own converter would write something else here (%zu such tensors); this "
            "file holds what the model's runtime computes",
            first->weight->name, n);
}

static void look_back(struct run *r)
{
    for (size_t i = 0; i < r->plan.n_tensors; i++) {
        struct bc_plan_tensor *t = &r->plan.tensors[i];
        t->reference_differs = bc_reference_differs(&r->setup, r->model, t->weight, &t->type,
                                                    &t->decision, t->loss.n_minus_zero);
        warn_tensor(r, t);
    }
    note_references(r);
}

/* ---- the result ---- */

static void describe_tensor(struct bc_arena *arena, const struct bc_plan_tensor *t,
                            struct bitconv_converted_tensor *out)
{
    const struct bc_weight *w = t->weight;
    const struct bc_ternary *d = &t->decision;
    out->name = bc_arena_strdup(arena, w->name);
    out->source =
        w->n_sources > 0 ? bc_arena_strdup(arena, w->sources[0].tensor->name) : "(generated)";
    out->type = t->type.type_name;
    out->pack = t->type.pack != NULL ? t->type.pack->name : NULL;
    out->how = bc_plan_has_trits(t) ? bc_how_name(t->by_block ? BC_HOW_BLOCKS : d->how) : NULL;
    out->n_dims = w->n_dims;
    memcpy(out->ne, w->ne, sizeof out->ne);
    out->parameters = t->n;
    out->size = t->size;
    out->zeros = bc_plan_zeros(t);
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

static enum bitconv_status describe(const struct run *r, struct result *out,
                                    struct bitconv_error *err)
{
    struct bitconv_conversion *c = &out->public;
    struct bc_arena *arena = &out->arena;
    const bool split = r->outputs.n_files > 1;
    c->output = bc_arena_strdup(arena, split ? r->outputs.files[0].path : r->path);
    c->outtype = r->setup.out.name;
    c->target = r->model->target == BC_TARGET_BITNET ? "bitnet" : "llama.cpp";
    c->architecture = bc_arena_strdup(arena, r->model->arch_name);
    c->tensors = bc_arena_alloc(arena, r->plan.n_tensors, sizeof *c->tensors);
    if (c->output == NULL || c->architecture == NULL || c->tensors == NULL)
        return bc_fail_nomem(err, "result of the conversion");
    for (; c->n_tensors < r->plan.n_tensors; c->n_tensors++) {
        struct bitconv_converted_tensor *t = &c->tensors[c->n_tensors];
        describe_tensor(arena, &r->plan.tensors[c->n_tensors], t);
        if (t->name == NULL || t->source == NULL)
            return bc_fail_nomem(err, "result of the conversion");
    }
    c->n_files = r->outputs.n_files;
    c->file_size = bc_outputs_size(&r->outputs);
    /* A header is there twice: as values and as bytes. */
    c->peak_memory = bc_stream_memory(&r->plan) + 2 * bc_outputs_headers_size(&r->outputs) +
                     r->plan.n_tensors * sizeof *r->plan.tensors;
    c->tensor_memory = bc_whole_memory(&r->plan);
    return bc_plan_fingerprint(&r->plan, c->fingerprint, err);
}

static enum bitconv_status run_all(struct run *r, struct result *out, struct bitconv_error *err)
{
    BC_TRY(load(r, err));
    BC_TRY(prepare(r, err));
    if (r->setup.options->dry_run)
        BC_TRY(rehearse(r, err));
    else
        BC_TRY(write_outputs(r, err));
    look_back(r);
    return describe(r, out, err);
}

enum bitconv_status bitconv_convert(const char *dir, const struct bitconv_convert_options *options,
                                    const struct bitconv_sink *sink,
                                    struct bitconv_conversion **out, struct bitconv_error *err)
{
    struct run r = {.sink = sink};
    *out = NULL;
    struct result *result = bc_alloc_array(1, sizeof *result);
    if (result == NULL) return bc_fail_nomem(err, "result of the conversion");
    result->public.internal = result;
    enum bitconv_status status = bc_setup_make(dir, options, &r.setup, err);
    if (status == BITCONV_OK) status = run_all(&r, result, err);
    release_run(&r);
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
