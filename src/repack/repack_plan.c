/* SPDX-License-Identifier: MIT
 * Reads the input once and plans the output.
 *
 * The pass that decides is the one that `verify` makes: the independent reader, the re-pack to the
 * same bytes, the fingerprint. The values that are written come through the fast readers, in a second
 * pass, and their fingerprint must be the first one's. */
#include "repack/repack_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "convert/auto_pack.h"
#include "convert/plan_blocks.h"
#include "convert/plan_pack.h"
#include "convert/plan_values.h"
#include "formats/block_pack.h"
#include "model/scale_tensor.h"
#include "verify/block_scan.h"

enum { WHY_SIZE = 256, CHUNK = 4096 };

struct planner {
    const struct bc_setup *setup;
    struct bc_repack_input *in;
    struct bc_pool *pool;
    const struct bitconv_sink *sink;
    struct bc_findings findings;
};

/* ---- scales ---- */

/* Are all trits under a scale, the index-th of n_scales, zero? */
static bool part_is_zero(const struct bc_packed *p, uint32_t index, uint32_t n_scales)
{
    const uint64_t n = p->shape.n / n_scales;
    int8_t trits[CHUNK];
    for (uint64_t done = 0; done < n; done += CHUNK) {
        const uint64_t part = n - done < CHUNK ? n - done : CHUNK;
        bc_packed_read(p, index * n + done, part, trits);
        for (uint64_t i = 0; i < part; i++)
            if (trits[i] != 0) return false;
    }
    return true;
}

/* The scales, one or one per slice. Other writers store any number, 0 and NaN too, for zeros:
 * that becomes what a checkpoint's zeros get. Beside non-zero trits it is a finding. */
static void judge_scales(struct planner *pl, const struct bc_packed *p, struct bc_plan_tensor *t)
{
    struct bc_ternary *d = &t->decision;
    for (uint32_t i = 0; i < d->n_scales; i++) {
        const float scale = d->scales[i];
        if (!(isfinite(scale) && scale > 0.0f)) {
            if (!part_is_zero(p, i, d->n_scales))
                bc_finding(&pl->findings, BITCONV_E_CORRUPT,
                           "%s: %s: scale %" PRIu32 " is %g beside non-zero trits, a "
                           "finite positive number was expected",
                           pl->in->path, t->weight->name, i, (double)scale);
            d->scales[i] = BC_ABSMEAN_MIN;
        }
        if (bc_f32_bits(d->scales[i]) != bc_f32_bits(d->scales[0])) d->scales_differ = true;
    }
}

static enum bitconv_status take_scales(struct planner *pl, const struct bc_packed *p,
                                       struct bc_plan_tensor *t, struct bitconv_error *err)
{
    struct bc_ternary *d = &t->decision;
    struct bc_block_scan blocks;
    if (p->shape.slices > UINT32_MAX)
        return bc_fail(err, BITCONV_E_LIMIT, "%s: %" PRIu64 " slices, at most 2^32 - 1 have scales",
                       t->weight->name, p->shape.slices);
    /* Trits and scale as they are stored. The scale of zeros is nobody's: nothing is lost of it. */
    d->how = t->shape.n_nonzero != 0 ? BC_HOW_OFFLINE : BC_HOW_ZERO;
    d->n_scales = p->format->max_scales == 1 ? 1 : (uint32_t)p->shape.slices;
    d->scales = bc_alloc_array(d->n_scales, sizeof *d->scales);
    if (d->scales == NULL) return bc_fail_nomem(err, "scales of a tensor");
    if (bc_block_pack_of(p->format) != NULL)
        bc_block_scan(p, d->scales, &blocks); /* its pack has room for a scale per slice */
    else
        for (uint32_t i = 0; i < d->n_scales; i++)
            d->scales[i] = p->format->get_scale(&p->shape, p->data, i);
    judge_scales(pl, p, t);
    return BITCONV_OK;
}

/* ---- packs ---- */

/* What the file states of the tensor itself. */
static void compare_stated(struct planner *pl, const struct bc_input_tensor *t,
                           const struct bc_pack_scan *scan)
{
    const struct bc_stated_tensor *stated =
        bc_stated_find(&pl->in->stated, t->gguf->name, t->gguf->name_len);
    char hex[33];
    if (stated == NULL || stated->fingerprint_len == 0 || !scan->has_fingerprint) return;
    bc_hash128_hex(scan->fingerprint, hex);
    if (stated->fingerprint_len == strlen(hex) &&
        memcmp(stated->fingerprint, hex, strlen(hex)) == 0)
        return;
    bc_finding(
        &pl->findings, BITCONV_E_CORRUPT,
        "%s: %s: its trits and scale have the fingerprint %s, the file states another: it is "
        "damaged (`verify` tells more)",
        pl->in->path, t->gguf->name, hex);
}

/* Everything about a packed tensor that forbids to write it again. */
static void judge_scan(struct planner *pl, const struct bc_input_tensor *t,
                       const struct bc_pack_scan *scan)
{
    const char *name = t->gguf->name;
    const char *format = t->packed.format->name;
    if (scan->payload[0] != '\0') {
        bc_finding(&pl->findings, BITCONV_E_CORRUPT, "%s: %s: %s", pl->in->path, name,
                   scan->payload);
        return;
    }
    if (scan->illegal != 0) {
        bc_finding(&pl->findings, BITCONV_E_CORRUPT,
                   "%s: %s: %" PRIu64
                   " codes that %s does not define, the first for weight %" PRIu64 " (row %" PRIu64
                   ", column %" PRIu64 ")",
                   pl->in->path, name, scan->illegal, format, scan->first_illegal,
                   scan->first_illegal / t->weight.ne[0], scan->first_illegal % t->weight.ne[0]);
        return;
    }
    if (scan->mismatch != BC_NO_INDEX)
        bc_say(pl->sink, BITCONV_WARNING,
               "%s: %s: the byte at offset %" PRIu64
               " of the tensor is not what its trits pack to: "
               "the trits are taken, what else the bytes say is lost",
               pl->in->path, name, scan->mismatch);
    if (scan->junk != BC_NO_INDEX)
        bc_say(pl->sink, BITCONV_NOTE,
               "%s: %s: the spare bytes behind the scale are not zero, they will be", pl->in->path,
               name);
    compare_stated(pl, t, scan);
}

static enum bitconv_status examine_pack(struct planner *pl, struct bc_input_tensor *in,
                                        struct bc_plan_tensor *t, struct bitconv_error *err)
{
    struct bc_pack_scan scan;
    BC_TRY(bc_pack_scan(&in->packed, false, pl->setup->kernels, pl->pool, pl->sink, &scan, err));
    judge_scan(pl, in, &scan);
    in->has_fingerprint = scan.has_fingerprint;
    in->fingerprint = scan.fingerprint;
    t->shape.n_nonzero = scan.minus + scan.plus;
    t->ternary = scan.blocks.form != BC_SCALES_IN_MANY_BLOCKS;
    if (scan.blocks.form != BC_SCALES_OF_TENSOR && scan.blocks.bad != BC_NO_INDEX)
        bc_finding(&pl->findings, BITCONV_E_CORRUPT,
                   "%s: %s: the scale of block %" PRIu64 " is %g, a finite positive number was "
                   "expected",
                   pl->in->path, t->weight->name, scan.blocks.bad, (double)scan.blocks.bad_value);
    if (!t->ternary) return BITCONV_OK;
    return take_scales(pl, &in->packed, t, err);
}

/* ---- floats ---- */

/* Floats of one magnitude are trits; all others stay what they are. */
static enum bitconv_status examine_floats(const struct planner *pl, struct bc_input_tensor *in,
                                          struct bc_plan_tensor *t, struct bitconv_error *err)
{
    const struct bc_model model = {.training = BC_TRAINING_NONE};
    struct bitconv_error inner = {.status = BITCONV_OK};
    const enum bitconv_status status =
        bc_ternary_decide(&model, &in->floats, &pl->setup->weights, pl->setup->kernels, pl->pool,
                          NULL, &t->decision, &inner);
    if (status == BITCONV_E_NOMEM || status == BITCONV_E_BUG)
        return bc_fail(err, status, "%s", inner.text);
    if (status != BITCONV_OK) {
        bc_input_copy(in);
        bc_say(pl->sink, BITCONV_NOTE, "%s: kept as %s: %s", t->weight->name, in->gguf->type_name,
               inner.text);
        return BITCONV_OK;
    }
    in->decision = t->decision;
    t->ternary = true;
    return BITCONV_OK;
}

/* ---- types and sizes ---- */

/* A type id means one thing in a file: a copied tensor must not get a new meaning by the packs beside
 * it. */
static void check_type_id(struct planner *pl, const struct bc_plan_tensor *t)
{
    const struct bc_setup *setup = pl->setup;
    const struct bc_outtype *types = setup->n_autos > 0 ? setup->autos : &setup->out;
    const size_t n = setup->n_autos > 0 ? setup->n_autos : 1;
    for (size_t i = 0; i < n; i++) {
        if (types[i].type_id != t->type.type_id ||
            strcmp(types[i].type_name, t->type.type_name) == 0)
            continue;
        bc_finding(
            &pl->findings, BITCONV_E_UNSUPPORTED,
            "%s: %s: its type has the id %" PRIu32 " for %s, which would stand for %s in the "
            "output",
            pl->in->path, t->weight->name, t->type.type_id, t->type.type_name, types[i].type_name);
    }
}

/* Whether every `block` values of the tensor have one magnitude, as each block of it has. */
static enum bitconv_status blocks_have_one_magnitude(const struct planner *pl,
                                                     const struct bc_plan_tensor *t, uint32_t block,
                                                     bool *out, struct bitconv_error *err)
{
    float values[CHUNK]; /* whole blocks of every pack */
    *out = true;
    for (uint64_t done = 0; done < t->n && *out; done += CHUNK) {
        const uint64_t n = t->n - done < CHUNK ? t->n - done : CHUNK;
        BC_TRY(bc_plan_f32_at(pl->setup, NULL, t, done, n, values, err));
        float magnitude = 0.0f;
        for (uint64_t i = 0; i < n; i++) {
            if (i % block == 0) magnitude = 0.0f;
            if (magnitude == 0.0f) magnitude = fabsf(values[i]);
            *out = *out && (values[i] == 0.0f || fabsf(values[i]) == magnitude);
        }
    }
    return BITCONV_OK;
}

/* A tensor whose blocks have scales of their own: another block pack holds it when its blocks lie
 * within those, or have equal neighbours; of floats every type does. */
static enum bitconv_status plan_blocks(struct planner *pl, const struct bc_input_tensor *in,
                                       struct bc_plan_tensor *t, struct bitconv_error *err)
{
    const struct bc_setup *setup = pl->setup;
    const struct bc_block_pack *bp = t->type.pack != NULL ? bc_block_pack_of(t->type.pack) : NULL;
    char why[WHY_SIZE];
    bool holds = bp != NULL && in->packed.scales == NULL && !setup->options->scale_tensor &&
                 (bp->holds_zeros || t->shape.n_nonzero == t->n);
    if (t->type.pack == NULL) return bc_plan_set_size(t, err);
    if (holds) BC_TRY(blocks_have_one_magnitude(pl, t, bp->block, &holds, err));
    if (!holds) {
        (void)snprintf(
            why, sizeof why,
            "its blocks have scales of their own, which only a pack with blocks as small "
            "as those of %s holds",
            in->packed.format->type_name);
        return bc_plan_misfit(setup, t, why, &pl->findings, err);
    }
    t->by_block = true;
    BC_TRY(bc_plan_block_scales(setup, NULL, pl->pool, t, &pl->findings, err));
    return bc_plan_set_size(t, err);
}

/* A tensor NAME.scale that is copied must not become the scales of NAME.weight, which it is beside
 * the blocks of a block pack, nor stand beside the one that --scale-tensor adds. */
static enum bitconv_status check_scale_name(struct planner *pl, const struct bc_plan_tensor *t,
                                            struct bitconv_error *err)
{
    const struct bitconv_gguf_tensor *other = NULL;
    struct bc_buf name = {0};
    if (t->type.pack == NULL || bc_block_pack_of(t->type.pack) == NULL) return BITCONV_OK;
    if (bc_scale_tensor_name(&name, t->weight->name))
        other = bitconv_gguf_find_tensor(pl->in->gguf, bc_buf_str(&name));
    if (other != NULL && bc_scale_owner(pl->in->gguf, other) == NULL)
        bc_finding(&pl->findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: beside %s, readers take the file's tensor %s for its scales, which it "
                   "is not here: use a pack without block scales (i2_s, t5, bitcos)",
                   pl->in->path, t->weight->name, t->type.type_name, other->name);
    const bool failed = name.failed;
    bc_buf_release(&name);
    return failed ? bc_fail_nomem(err, "tensors of scales") : BITCONV_OK;
}

/* Gives an examined tensor the asked type. */
static enum bitconv_status plan_values(struct planner *pl, const struct bc_input_tensor *in,
                                       struct bc_plan_tensor *t, struct bitconv_error *err)
{
    const struct bc_setup *setup = pl->setup;
    char why[WHY_SIZE];
    t->type = setup->out;
    const bool fits = setup->n_autos > 0 ? bc_auto_first(setup, t, why, sizeof why)
                                         : bc_plan_fits(setup, t, why, sizeof why);
    if (!fits) return bc_plan_misfit(setup, t, why, &pl->findings, err);
    if (!t->ternary) return plan_blocks(pl, in, t, err);
    return bc_plan_pack(setup, NULL, pl->pool, t, &pl->findings, err);
}

static void plan_copy(struct planner *pl, const struct bc_input_tensor *in,
                      struct bc_plan_tensor *t)
{
    const struct bitconv_gguf_tensor *g = in->gguf;
    t->type =
        (struct bc_outtype){.name = g->type_name, .type_name = g->type_name, .type_id = g->type};
    t->size = g->size;
    check_type_id(pl, t);
}

static void begin_tensor(const struct bc_input_tensor *in, struct bc_plan_tensor *t)
{
    const struct bc_weight *w = &in->weight;
    *t = (struct bc_plan_tensor){
        .weight = w, .origin = &in->origin, .n = bc_weight_count(w), .has_float_values = true};
    t->shape = (struct bc_pack_shape){.cols = w->ne[0],
                                      .rows = w->n_dims > 1 ? w->ne[1] : 1,
                                      .slices = w->n_dims > 2 ? w->ne[2] : 1,
                                      .n = t->n,
                                      .n_dims = w->n_dims};
}

static enum bitconv_status plan_tensor(struct planner *pl, struct bc_input_tensor *in,
                                       struct bc_plan_tensor *t, struct bitconv_error *err)
{
    const size_t n_before = pl->findings.n;
    begin_tensor(in, t);
    if (in->kind == BC_INPUT_PACK) BC_TRY(examine_pack(pl, in, t, err));
    if (in->kind == BC_INPUT_FLOATS) BC_TRY(examine_floats(pl, in, t, err));
    if (in->kind == BC_INPUT_COPY)
        plan_copy(pl, in, t);
    else if (pl->findings.n == n_before)
        BC_TRY(plan_values(pl, in, t, err));
    BC_TRY(check_scale_name(pl, t, err));
    in->origin.done(in->origin.ctx);
    return BITCONV_OK;
}

/* ---- the whole ---- */

enum bitconv_status bc_repack_plan(const struct bc_setup *setup, struct bc_repack_input *in,
                                   struct bc_pool *pool, const struct bitconv_sink *sink,
                                   struct bc_plan *out, struct bitconv_error *err)
{
    struct planner pl = {.setup = setup, .in = in, .pool = pool, .sink = sink};
    uint64_t done = 0;
    pl.findings.sink = sink;
    pl.findings.subject = in->path;
    *out = (struct bc_plan){.tensors = bc_alloc_array(in->n_tensors, sizeof *out->tensors)};
    if (out->tensors == NULL) return bc_fail_nomem(err, "plan of the output");
    for (size_t i = 0; i < in->n_tensors; i++)
        out->source_bytes += in->tensors[i].gguf->size;
    for (size_t i = 0; i < in->n_tensors; i++) {
        struct bc_input_tensor *t = &in->tensors[i];
        if (t->kind == BC_INPUT_DROP) continue;
        if (bc_canceled(sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        BC_TRY(plan_tensor(&pl, t, &out->tensors[out->n_tensors++], err));
        done += t->gguf->size;
        bc_progress(sink, "reading", done, out->source_bytes);
    }
    BC_TRY(bc_findings_result(&pl.findings, "reasons against repacking", err));
    return bc_plan_add_scale_tensors(setup, out, err);
}

/* Whether the output has the scales of the input, bit for bit. */
static bool keeps_scales(const struct bc_plan_tensor *t)
{
    const struct bc_ternary *d = &t->decision;
    for (uint32_t i = 0; i < t->n_block_scales; i++)
        if (bc_f32_bits(t->block_scales[i]) != bc_f32_bits(d->scales[d->n_scales == 1 ? 0 : i]))
            return false;
    return true;
}

enum bitconv_status bc_repack_compare(const struct bc_repack_input *in, const struct bc_plan *plan,
                                      struct bitconv_error *err)
{
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        if (t->type.pack == NULL || t->origin == NULL) continue;
        const struct bc_input_tensor *source = t->origin->ctx;
        if (!source->has_fingerprint || !keeps_scales(t)) continue;
        if (memcmp(&t->fingerprint, &source->fingerprint, sizeof t->fingerprint) == 0) continue;
        return bc_fail(err, BITCONV_E_BUG,
                       "%s: %s: what was to be written has another fingerprint than what was read",
                       in->path, t->weight->name);
    }
    return BITCONV_OK;
}
