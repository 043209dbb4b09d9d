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
#include "formats/block_pack.h"
#include "io/gguf_types.h"

enum { CHUNK = 1024, COUNTED_PIECE = 32768, WHY_SIZE = 256, N_WARNINGS_SHOWN = 3 };

/* Smallest magnitudes that round to infinity: halfway between the largest finite value and the next
 * power of two, which a tie to even takes up. */
static const float f16_limit = 65520.0f;
#define BF16_LIMIT_BITS 0x7f7f8000u
/* The largest magnitude of a block of Q8_0 is this many times its scale. */
#define Q8_0_CODES 127.0f

struct examiner {
    const struct bc_setup *setup;
    const struct bc_model *model;
    struct bc_pool *pool;
    struct bc_findings refusals;
    uint64_t done, total; /* source bytes, for progress */
};

/* ---- float values ---- */

/* Magnitudes from here on become infinite in the type. */
static float limit_of(const struct bc_outtype *type)
{
    /* A pack quantized by block has float16 scales. */
    if (type->type_id == BC_TYPE_F16 || type->pack != NULL) return f16_limit;
    if (type->type_id == BC_TYPE_Q8_0) return Q8_0_CODES * f16_limit; /* a float16 block scale */
    return type->type_id == BC_TYPE_BF16 ? bc_f32_from_bits(BF16_LIMIT_BITS) : INFINITY;
}

/* What to do about a tensor whose values leave the range of its type. */
static const char *range_hint(const struct bc_weight *w, const struct bc_outtype *type)
{
    const bool half = type->type_id == BC_TYPE_F16;
    switch (w->role) {
    case BC_ROLE_EMBED:
        return half ? "--embd-type bf16 (or f32) holds it" : "--embd-type f32 holds it";
    case BC_ROLE_OUTPUT:
        return half ? "--output-type bf16 (or f32) holds it" : "--output-type f32 holds it";
    default:
        return half ? "--outtype bf16 (or f32) holds it" : "--outtype f32 holds it";
    }
}

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
    const float limit = limit_of(&t->type);
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
               t->type.type_name, range_hint(w, &t->type));
}

/* ---- ternary tensors ---- */

/* A scale that a float file cannot hold would make all weights Inf or 0. */
static void check_scale_range(struct examiner *e, const struct bc_plan_tensor *t)
{
    for (uint32_t i = 0; i < t->decision.n_scales; i++) {
        const float scale = t->decision.scales[i];
        const bool in_f16 = t->type.type_id == BC_TYPE_F16 || t->type.type_id == BC_TYPE_Q8_0;
        const float stored = t->type.type_id == BC_TYPE_Q8_0 ? scale / Q8_0_CODES : scale;
        const bool vanishes = in_f16 && bc_f16_to_f32(bc_f32_to_f16(stored)) == 0.0f;
        if (scale < limit_of(&t->type) && !vanishes) continue;
        bc_finding(&e->refusals, BITCONV_E_UNSUPPORTED,
                   "%s: its scale %g is beyond the range of %s: %s", t->weight->name, (double)scale,
                   t->type.type_name, range_hint(t->weight, &t->type));
        return;
    }
}

/* Counting non-zero weights on all threads. */
struct lane {
    uint64_t n_nonzero;
    struct bitconv_error err; /* of the lane's first failure */
};

struct counter {
    const struct examiner *e;
    const struct bc_plan_tensor *t;
    struct lane *lanes; /* one per thread */
};

static void count_piece(void *ctx, size_t index, unsigned worker)
{
    const struct counter *c = ctx;
    const struct bc_setup *setup = c->e->setup;
    struct lane *lane = &c->lanes[worker];
    const uint64_t first = (uint64_t)index * COUNTED_PIECE;
    const uint64_t left = c->t->n - first;
    const uint64_t n = left < COUNTED_PIECE ? left : COUNTED_PIECE;
    int8_t trits[COUNTED_PIECE];
    uint64_t counts[4] = {0};
    if (lane->err.status != BITCONV_OK ||
        bc_weight_trits_at(c->e->model, c->t->weight, &c->t->decision, &setup->weights,
                           setup->kernels, first, n, trits, NULL, &lane->err) != BITCONV_OK)
        return;
    setup->kernels->count_trits(trits, (size_t)n, counts);
    lane->n_nonzero += counts[0] + counts[2];
}

/* The size of a payload follows from its non-zero weights, which are counted here. */
static enum bitconv_status size_payload(struct examiner *e, struct bc_plan_tensor *t,
                                        struct bitconv_error *err)
{
    const unsigned n_lanes = bc_pool_threads(e->pool);
    struct counter c = {.e = e, .t = t, .lanes = bc_alloc_array(n_lanes, sizeof *c.lanes)};
    char why[WHY_SIZE];
    enum bitconv_status status = BITCONV_OK;
    if (c.lanes == NULL) return bc_fail_nomem(err, "count of the non-zero weights");
    bc_pool_run(e->pool, (size_t)(t->n / COUNTED_PIECE + (t->n % COUNTED_PIECE != 0)), count_piece,
                &c);
    t->shape.n_nonzero = 0;
    for (unsigned i = 0; i < n_lanes; i++) {
        t->shape.n_nonzero += c.lanes[i].n_nonzero;
        if (status == BITCONV_OK && c.lanes[i].err.status != BITCONV_OK)
            status = bc_fail(err, c.lanes[i].err.status, "%s", c.lanes[i].err.text);
    }
    bc_free(c.lanes);
    BC_TRY(status);
    if (!t->type.pack->check(&t->shape, why, sizeof why))
        return bc_plan_misfit(e->setup, t, why, &e->refusals, err);
    return bc_plan_set_size(t, err);
}

static bool has_block_scales(const struct bc_plan_tensor *t)
{
    return t->type.pack != NULL && bc_block_pack_of(t->type.pack) != NULL;
}

/* What is refused as one tensor of trits may be one block by block. */
static bool is_ternary_by_block(const struct examiner *e, const struct bc_plan_tensor *t)
{
    const struct bc_block_pack *bp = t->type.pack != NULL ? bc_block_pack_of(t->type.pack) : NULL;
    return bp != NULL && bp->holds_zeros && !e->setup->options->scale_tensor &&
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
    const struct bc_format *pack = t->type.pack;
    if (pack != NULL && t->decision.scales_differ && t->decision.n_scales > pack->max_scales) {
        char why[WHY_SIZE];
        (void)snprintf(why, sizeof why,
                       "its %" PRIu32
                       " experts have different scales (%g, ...), %s has room for one",
                       t->decision.n_scales, (double)t->decision.scales[0], pack->type_name);
        BC_TRY(bc_plan_misfit(e->setup, t, why, &e->refusals, err));
    }
    if (has_block_scales(t))
        BC_TRY(bc_plan_block_scales(e->setup, e->model, e->pool, t, &e->refusals, err));
    if (t->type.pack == NULL)
        check_scale_range(e, t);
    else if (t->type.pack->open_payload != NULL)
        return size_payload(e, t, err);
    return BITCONV_OK;
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
