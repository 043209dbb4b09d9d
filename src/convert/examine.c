/* SPDX-License-Identifier: MIT
 * The statistics pass: every source tensor is looked at before a byte is written, so that whatever
 * speaks against a conversion is known, and told, while the old output is still untouched. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/mem.h"
#include "convert/plan_blocks.h"
#include "convert/plan_pack.h"
#include "formats/block_pack.h"
#include "io/gguf_types.h"

enum { CHUNK = 1024, COUNTED_PIECE = 32768, WHY_SIZE = 256, N_WARNINGS_SHOWN = 3 };

struct examiner {
    const struct bc_setup *setup;
    const struct bc_model *model;
    struct bc_pool *pool;
    struct bc_findings refusals;
    uint64_t done, total; /* source bytes, for progress */
};

/* ---- float values ---- */

/* The first value of a source that is infinite in the type, 1 added before where the file has it
 * so. */
static uint64_t first_beyond(const struct examiner *e, const struct bc_values *v, bool add_one,
                             float limit, float *out_value)
{
    for (uint64_t at = 0; at < v->n; at += CHUNK) {
        float values[CHUNK];
        const size_t n = v->n - at < CHUNK ? (size_t)(v->n - at) : CHUNK;
        bc_widen(e->setup->kernels, v, at, n, values);
        for (size_t i = 0; i < n; i++) {
            const float value = add_one ? values[i] + 1.0f : values[i];
            if (!isfinite(value) || fabsf(value) < limit) continue;
            *out_value = value;
            return at + i;
        }
    }
    return BC_NO_INDEX;
}

static void report_nonfinite(struct examiner *e, const struct bc_weight *w,
                             const struct bitconv_tensor *t, uint64_t index)
{
    const struct bc_values v = bc_tensor_values(t);
    float value;
    bc_widen(e->setup->kernels, &v, index, 1, &value);
    bc_finding(&e->refusals, BITCONV_E_UNSUPPORTED,
               "%s: %s: value %" PRIu64 " (row %" PRIu64 ", column %" PRIu64
               ") is %s, finite values were expected (--allow-nonfinite zero stores 0 instead)",
               t->file, t->name, index, index / w->ne[0], index % w->ne[0],
               isnan(value) ? "NaN" : "infinite");
}

/* Looks at the stored values of one source of a float tensor. */
static void examine_source(struct examiner *e, struct bc_plan_tensor *t,
                           const struct bitconv_tensor *source, const struct bitconv_sink *sink)
{
    const struct bc_weight *w = t->weight;
    const struct bc_values v = bc_tensor_values(source);
    const float limit = bc_type_limit(&t->type);
    float max, value;
    const uint64_t nonfinite = bc_first_nonfinite(e->setup->kernels, e->pool, &v, &max);
    if (nonfinite != BC_NO_INDEX) {
        t->has_nonfinite = true;
        if (!e->setup->weights.zero_nonfinite) {
            report_nonfinite(e, w, source, nonfinite);
            return;
        }
        bc_say(sink, BITCONV_WARNING, "%s: %s: holds NaN or Inf, stored as 0", source->file,
               source->name);
    }
    if (max + (w->add_one ? 1.0f : 0.0f) < limit) return;
    const uint64_t index = first_beyond(e, &v, w->add_one, limit, &value);
    if (index == BC_NO_INDEX) return;
    bc_finding(&e->refusals, BITCONV_E_UNSUPPORTED,
               "%s: %s: value %" PRIu64 " (row %" PRIu64 ", column %" PRIu64
               ") is %g, beyond the range of %s: %s",
               source->file, source->name, index, index / w->ne[0], index % w->ne[0], (double)value,
               t->type.type_name, bc_range_hint(w, &t->type));
}

/* ---- ternary tensors ---- */

/* What is refused as one tensor of trits may be one block by block. */
static bool is_ternary_by_block(const struct examiner *e, const struct bc_plan_tensor *t)
{
    const struct bc_block_pack *bp = t->type.pack != NULL ? bc_block_pack_of(t->type.pack) : NULL;
    return bp != NULL && bp->holds_zeros && e->setup->n_autos == 0 &&
           !e->setup->options->scale_tensor &&
           bc_weight_is_ternary_by_block(e->model, t->weight, &e->setup->weights, e->setup->kernels,
                                         bp->block);
}

static enum bitconv_status examine_blocks(struct examiner *e, struct bc_plan_tensor *t,
                                          const struct bitconv_sink *sink,
                                          struct bitconv_error *err)
{
    const size_t n_refusals = e->refusals.n;
    t->by_block = true;
    t->ternary = false;
    for (uint32_t s = 0; s < t->weight->n_sources; s++)
        examine_source(e, t, t->weight->sources[s].tensor, sink);
    if (e->refusals.n > n_refusals) return BITCONV_OK;
    return bc_plan_block_scales(e->setup, e->model, e->pool, t, &e->refusals, err);
}

static enum bitconv_status examine_ternary(struct examiner *e, struct bc_plan_tensor *t,
                                           const struct bitconv_sink *sink,
                                           struct bitconv_error *err)
{
    struct bitconv_error inner = {.status = BITCONV_OK};
    const enum bitconv_status status =
        bc_ternary_decide(e->model, t->weight, &e->setup->weights, e->setup->kernels, e->pool, sink,
                          &t->decision, &inner);
    if (status == BITCONV_E_NOMEM || status == BITCONV_E_BUG)
        return bc_fail(err, status, "%s", inner.text);
    if (status == BITCONV_E_UNSUPPORTED && is_ternary_by_block(e, t))
        return examine_blocks(e, t, sink, err);
    if (status != BITCONV_OK) {
        bc_finding(&e->refusals, status, "%s", inner.text);
        return BITCONV_OK;
    }
    return bc_plan_pack(e->setup, e->model, e->pool, t, &e->refusals, err);
}

/* ---- warnings that come once per tensor ---- */

/* Passes the first few on and turns the rest into notes: a model has hundreds of tensors. */
struct fold {
    const struct bitconv_sink *sink;
    size_t n;
};

static void fold_message(void *user, enum bitconv_severity severity, const char *text)
{
    struct fold *fold = user;
    if (severity == BITCONV_WARNING && ++fold->n > N_WARNINGS_SHOWN) severity = BITCONV_NOTE;
    bc_say(fold->sink, severity, "%s", text);
}

static void fold_end(const struct fold *fold)
{
    if (fold->n > N_WARNINGS_SHOWN)
        bc_say(fold->sink, BITCONV_WARNING, "%zu more warnings of that kind (shown as notes)",
               fold->n - N_WARNINGS_SHOWN);
}

/* ---- the pass ---- */

/* Progress, and the pages go: the next pass reads them from the page cache again. */
static void finish_tensor(struct examiner *e, const struct bc_weight *w,
                          const struct bitconv_sink *sink)
{
    for (uint32_t i = 0; i < w->n_sources; i++) {
        const struct bitconv_tensor *t = w->sources[i].tensor;
        const struct bc_file *file = bc_checkpoint_file_of(e->model->ckpt, t);
        if (file != NULL) bc_file_done_with(file, t->file_offset, t->size);
        e->done += t->size;
    }
    bc_progress(sink, "reading", e->done, e->total);
}

enum bitconv_status bc_plan_examine(const struct bc_setup *setup, const struct bc_model *model,
                                    struct bc_pool *pool, const struct bitconv_sink *sink,
                                    atomic_bool *stop, struct bc_plan *plan,
                                    struct bitconv_error *err)
{
    struct examiner e = {.setup = setup, .model = model, .pool = pool, .total = plan->source_bytes};
    struct fold fold = {.sink = sink};
    const struct bitconv_sink folding = {.message = fold_message, .user = &fold};
    e.refusals.sink = sink;
    e.refusals.subject = setup->dir;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        struct bc_plan_tensor *t = &plan->tensors[i];
        if (bc_canceled(sink) || atomic_load(stop))
            return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        if (t->by_block)
            BC_TRY(examine_blocks(&e, t, &folding, err));
        else if (t->ternary)
            BC_TRY(examine_ternary(&e, t, &folding, err));
        else
            for (uint32_t s = 0; s < t->weight->n_sources; s++)
                examine_source(&e, t, t->weight->sources[s].tensor, &folding);
        finish_tensor(&e, t->weight, sink);
    }
    fold_end(&fold);
    BC_TRY(bc_findings_result(&e.refusals, "reasons against the conversion", err));
    return bc_plan_add_scale_tensors(setup, plan, err);
}
