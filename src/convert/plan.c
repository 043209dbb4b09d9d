/* SPDX-License-Identifier: MIT
 * Types, sizes and misfits of shape of every tensor of the output. */
#include "convert/plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "convert/auto_pack.h"
#include "convert/plan_blocks.h"
#include "convert/plan_types.h"
#include "formats/q8_0.h"
#include "io/gguf_types.h"

enum {
    WHY_SIZE = 256,
    X86_BLOCK = 128 /* row lengths that bitnet.cpp's x86 kernels compute right: multiples */
};

bool bc_plan_has_trits(const struct bc_plan_tensor *t)
{
    return t->ternary || t->by_block;
}

bool bc_plan_has_fingerprint(const struct bc_plan_tensor *t)
{
    return t->type.pack != NULL && (t->block_scales == NULL || t->n_block_scales != 0);
}

double bc_plan_zeros(const struct bc_plan_tensor *t)
{
    const uint64_t n = t->counts[0] + t->counts[1] + t->counts[2];
    if (!bc_plan_has_trits(t) || n == 0) return -1.0;
    return (double)t->counts[1] / (double)n;
}

double bc_plan_relative_error(const struct bc_plan_tensor *t)
{
    if (!bc_plan_has_trits(t)) return -1.0;
    if (t->loss.lost == 0.0) return 0.0;
    return t->loss.total > 0.0 ? sqrt(t->loss.lost / t->loss.total) : 1.0;
}

uint64_t bc_plan_size(const struct bc_plan *plan)
{
    uint64_t size = 0;
    for (size_t i = 0; i < plan->n_tensors; i++)
        size += plan->tensors[i].size;
    return size;
}

void bc_plan_release(struct bc_plan *plan)
{
    for (size_t i = 0; i < plan->n_tensors; i++) {
        bc_ternary_release(&plan->tensors[i].decision);
        bc_free(plan->tensors[i].block_scales);
    }
    bc_free(plan->tensors);
    bc_arena_release(&plan->arena);
    *plan = (struct bc_plan){.tensors = NULL};
}

static struct bc_pack_shape shape_of(const struct bc_weight *w, uint64_t n)
{
    struct bc_pack_shape s = {.cols = w->ne[0], .rows = 1, .n = n, .n_dims = w->n_dims};
    if (w->n_dims >= 2) s.rows = w->ne[1];
    s.slices = n / (s.cols * s.rows);
    return s;
}

/* Bytes of a tensor in a float type; false on overflow. */
static bool float_size(const struct bc_plan_tensor *t, uint64_t *out)
{
    const struct bc_type *type = bc_type_find(t->type.type_id, BITCONV_DIALECT_BITNET);
    return type != NULL && bc_type_bytes(type, t->weight->n_dims, t->weight->ne, out);
}

uint32_t bc_plan_file_shape(const struct bc_plan_tensor *t, uint64_t ne[4])
{
    const bool payload = t->type.pack != NULL && t->type.pack->open_payload != NULL;
    for (size_t i = 0; i < 4; i++)
        ne[i] = payload ? 1 : t->weight->ne[i];
    if (payload) ne[0] = t->size;
    return payload ? 1 : t->weight->n_dims;
}

bool bc_plan_is_copy(const struct bc_plan_tensor *t)
{
    return t->origin != NULL && t->origin->bytes != NULL;
}

bool bc_plan_is_whole(const struct bc_plan_tensor *t)
{
    return t->type.pack != NULL && t->type.pack->granule == 0;
}

enum bitconv_status bc_plan_set_size(struct bc_plan_tensor *t, struct bitconv_error *err)
{
    if (t->type.pack != NULL) {
        t->size = t->type.pack->size(&t->shape);
        return BITCONV_OK;
    }
    if (float_size(t, &t->size)) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_LIMIT, "%s: its size as %s exceeds 63 bits", t->weight->name,
                   t->type.type_name);
}

bool bc_plan_fits(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                  size_t why_size)
{
    if (t->type.pack != NULL)
        return bc_format_fit(t->type.pack, &setup->tilings, &t->shape, why, why_size);
    return t->type.type_id != BC_TYPE_Q8_0 || bc_q8_0_check(t->shape.cols, why, why_size);
}

enum bitconv_status bc_plan_misfit(const struct bc_setup *setup, struct bc_plan_tensor *t,
                                   const char *why, struct bc_findings *findings,
                                   struct bitconv_error *err)
{
    char as_well[WHY_SIZE];
    if (setup->misfit.name == NULL) {
        bc_finding(findings, BITCONV_E_UNSUPPORTED,
                   "%s: misfit: %s (--on-misfit f16 stores such tensors as F16)", t->weight->name,
                   why);
        return BITCONV_OK;
    }
    t->misfit = true;
    t->by_block = false;
    t->type = setup->misfit;
    if (!bc_plan_fits(setup, t, as_well, sizeof as_well)) {
        bc_finding(findings, BITCONV_E_UNSUPPORTED, "%s: misfit: %s; and --on-misfit %s: %s",
                   t->weight->name, why, setup->misfit.name, as_well);
        return BITCONV_OK;
    }
    return bc_plan_set_size(t, err);
}

/* Whether trit * scale of a linear weight is what a float file holds: for other weights it is made only
 * where packs stand beside it. */
static bool has_float_values(const struct bc_setup *setup, const struct bc_model *model,
                             const struct bc_weight *w)
{
    if (bc_weight_is_ternary_at_runtime(model, w)) return true;
    /* the only magnitude is kept, so trit * scale is what is stored */
    return setup->weights.mode == BC_QUANT_BAKED ||
           (setup->weights.mode == BC_QUANT_AUTO && model->training != BC_TRAINING_ONLINE);
}

static enum bitconv_status plan_tensor(const struct bc_setup *setup, const struct bc_model *model,
                                       const struct bc_weight *w, struct bc_plan_tensor *t,
                                       struct bc_findings *findings, struct bitconv_error *err)
{
    char why[WHY_SIZE];
    BC_TRY(bc_weight_check(w, err));
    *t = (struct bc_plan_tensor){.weight = w, .n = bc_weight_count(w)};
    t->shape = shape_of(w, t->n);
    bc_plan_type(setup, model, w, &t->type, &t->ternary);
    /* Weights that come with a scale are trits whatever is asked for. */
    if (setup->weights.mode == BC_QUANT_BLOCK && t->ternary && w->sources[0].scale == NULL) {
        t->by_block = t->type.pack != NULL;
        t->ternary = false;
    }
    t->has_float_values = !t->ternary || has_float_values(setup, model, w);
    const bool fits = t->type.pack != NULL && setup->n_autos > 0
                          ? bc_auto_first(setup, t, why, sizeof why)
                          : bc_plan_fits(setup, t, why, sizeof why);
    if (!fits) return bc_plan_misfit(setup, t, why, findings, err);
    return bc_plan_set_size(t, err);
}

/* ---- summaries ---- */

/* Tensors that are read wrong by one known runtime although the file is right: one warning. */
static void warn_row_lengths(const struct bc_plan *plan, const struct bitconv_sink *sink)
{
    const struct bc_plan_tensor *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        if (t->type.type_id != BC_TYPE_I2_S || t->shape.cols % X86_BLOCK == 0) continue;
        if (n++ == 0) first = t;
    }
    if (n == 0) return;
    bc_say(sink, BITCONV_WARNING,
           "%s: rows of %" PRIu64 " values, no multiple of %d (%zu such tensors): bitnet.cpp's x86 "
           "kernels compute them wrong",
           first->weight->name, first->shape.cols, X86_BLOCK, n);
}

/* Without the metadata a reader has to work out the tiles as it would for a file of others. */
static void warn_lost_tiles(const struct bc_setup *setup, const struct bc_plan *plan,
                            const struct bitconv_sink *sink)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < plan->n_tensors && setup->options->plain; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        struct bc_pack_shape shape = t->shape;
        char why[WHY_SIZE];
        if (t->type.pack == NULL || t->type.pack->choose_tile == NULL) continue;
        if (bc_format_fit(t->type.pack, NULL, &shape, why, sizeof why) &&
            memcmp(shape.tile, t->shape.tile, sizeof shape.tile) == 0)
            continue;
        if (n++ == 0) first = t->weight->name;
    }
    if (n > 0)
        bc_say(sink, BITCONV_WARNING,
               "%s: --plain leaves out the tile, and it is not the one that readers assume (%zu "
               "such tensors): they need %s to read the file (--kernel-config)",
               first, n, setup->options->kernel_config);
}

/* Mainline's converter stores what does not fit these types as F16, were it everything, and keeps the
 * file's type. */
static bool misfits_may_be_all(const struct bc_outtype *type)
{
    static const char *const names[] = {"q8_0", "tq1_0", "tq2_0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(type->name, names[i]) == 0) return true;
    return false;
}

/* A file without a single tensor of the asked type is not what was asked for, unless the user has
 * said what to do with those that do not fit, and then it is a right float file. */
static enum bitconv_status check_asked_type(const struct bc_setup *setup,
                                            const struct bc_plan *plan, struct bitconv_error *err)
{
    if (setup->options->vocab_only) return BITCONV_OK;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_outtype *type = &plan->tensors[i].type;
        if (strcmp(type->name, setup->out.name) == 0) return BITCONV_OK;
        if (setup->n_autos > 0 && type->pack != NULL) return BITCONV_OK;
        const bool misfit = plan->tensors[i].misfit && plan->tensors[i].has_float_values;
        if (misfit && misfits_may_be_all(&setup->out)) return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "%s: none of its %zu tensors would be %s: choose another --outtype", setup->dir,
                   plan->n_tensors, setup->out.name);
}

static uint64_t source_bytes(const struct bc_weight *w)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < w->n_sources; i++)
        bytes += w->sources[i].tensor->size;
    return bytes;
}

enum bitconv_status bc_plan_make(const struct bc_setup *setup, const struct bc_model *model,
                                 const struct bitconv_sink *sink, struct bc_plan *out,
                                 struct bitconv_error *err)
{
    struct bc_findings findings = {.sink = sink, .subject = setup->dir};
    *out = (struct bc_plan){.tensors = NULL};
    out->tensors = bc_alloc_array(model->n_weights, sizeof *out->tensors);
    if (out->tensors == NULL) return bc_fail_nomem(err, "plan of a conversion");
    for (size_t i = 0; i < model->n_weights; i++) {
        struct bc_plan_tensor *t = &out->tensors[i];
        BC_TRY(plan_tensor(setup, model, &model->weights[i], t, &findings, err));
        out->n_tensors++;
        out->source_bytes += source_bytes(t->weight);
    }
    BC_TRY(bc_findings_result(&findings, "tensors that do not fit the asked pack", err));
    return check_asked_type(setup, out, err);
}

/* What the misfits cost, over all linear weights. */
static void report_misfits(const struct bc_setup *setup, const struct bc_plan *plan,
                           const struct bitconv_sink *sink)
{
    uint64_t n_all = 0, n_packed = 0, packed_size = 0, n_misfit = 0, misfit_size = 0;
    size_t n_tensors = 0;
    bool has_asked = setup->n_autos > 0; /* misfits of those are only some */
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        has_asked = has_asked || strcmp(t->type.name, setup->out.name) == 0;
        n_all += t->n;
        n_packed += t->type.pack != NULL ? t->n : 0;
        packed_size += t->type.pack != NULL ? t->size : 0;
        n_misfit += t->misfit ? t->n : 0;
        misfit_size += t->misfit ? t->size : 0;
        n_tensors += t->misfit;
    }
    if (n_tensors > 0 && !has_asked && misfits_may_be_all(&setup->out))
        bc_say(sink, BITCONV_WARNING, "none of the tensors fits %s: %zu are stored as %s",
               setup->out.name, n_tensors, setup->misfit.type_name);
    if (n_tensors == 0 || n_packed == 0) return;
    bc_say(sink, BITCONV_WARNING,
           "%zu tensors with %" PRIu64 " parameters (%.1f %% of all) do not fit %s and are stored "
           "as %s: the linear weights take %.2f bits each instead of %.2f",
           n_tensors, n_misfit, 100.0 * (double)n_misfit / (double)n_all, setup->out.name,
           setup->misfit.type_name,
           8.0 * (double)(packed_size + misfit_size) / (double)(n_packed + n_misfit),
           8.0 * (double)packed_size / (double)n_packed);
}

enum bitconv_status bc_plan_settle(const struct bc_setup *setup, const struct bc_plan *plan,
                                   const struct bitconv_sink *sink, struct bitconv_error *err)
{
    report_misfits(setup, plan, sink);
    warn_lost_tiles(setup, plan, sink);
    warn_row_lengths(plan, sink);
    bc_plan_warn_rounding(plan, sink);
    return check_asked_type(setup, plan, err);
}
