/* SPDX-License-Identifier: MIT
 * The pipeline from a checkpoint folder to a GGUF.
 *
 * Everything that can speak against a conversion is found out before the first byte of the output:
 * open, understand, plan types and sizes, read the values once for statistics. Then the values are
 * read a second time, made into bytes and written (emission.c). */
#include "bitconv/convert.h"

#include <string.h>

#include "base/mem.h"
#include "convert/emission.h"
#include "convert/metadata.h"
#include "convert/plan_types.h"

/* All that lives during one conversion. Zero-initialise. */
struct run {
    struct bc_setup setup;
    const struct bitconv_sink *sink;
    struct bc_checkpoint *ckpt;
    struct bc_model *model;
    struct bc_pool *pool;
    struct bc_plan plan;
    struct bc_outputs outputs;
    struct bc_emission emission;
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
    return bc_emit_keys(&r->emission, *out, err);
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
    char *path = NULL;
    BC_TRY(bc_outputs_path(&r->setup, name, &r->outputs.arena, &path, err));
    if (o->split_max_size == 0)
        BC_TRY(bc_outputs_probe(&r->setup, &r->outputs, path, bc_plan_size(&r->plan), err));
    r->emission = (struct bc_emission){.setup = &r->setup,
                                       .model = r->model,
                                       .pool = r->pool,
                                       .sink = r->sink,
                                       .plan = &r->plan,
                                       .outputs = &r->outputs,
                                       .path = path,
                                       .source = r->ckpt->base_name};
    struct bitconv_gguf_writer *w = NULL;
    const enum bitconv_status status = examine(r, name, &w, err);
    if (status != BITCONV_OK) {
        bitconv_gguf_writer_free(w);
        return status;
    }
    return bc_outputs_layout(&r->setup, &r->plan, w, path, r->sink, &r->outputs, err);
}

/* ---- what the values turned out to be ---- */

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
    }
    bc_emit_warn(&r->emission);
    note_references(r);
}

static enum bitconv_status run_all(struct run *r, struct bitconv_conversion **out,
                                   struct bitconv_error *err)
{
    BC_TRY(load(r, err));
    BC_TRY(prepare(r, err));
    BC_TRY(bc_emit(&r->emission, err));
    look_back(r);
    return bc_emit_describe(&r->emission,
                            r->model->target == BC_TARGET_BITNET ? "bitnet" : "llama.cpp",
                            r->model->arch_name, out, err);
}

enum bitconv_status bitconv_convert(const char *dir, const struct bitconv_convert_options *options,
                                    const struct bitconv_sink *sink,
                                    struct bitconv_conversion **out, struct bitconv_error *err)
{
    struct run r = {.sink = sink};
    *out = NULL;
    enum bitconv_status status = bc_setup_make(dir, options, &r.setup, err);
    if (status == BITCONV_OK) status = run_all(&r, out, err);
    release_run(&r);
    return status;
}
