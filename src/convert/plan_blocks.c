/* SPDX-License-Identifier: MIT
 * Scales of block packs: decided, rounded, judged, and put into tensors of their own. */
#include "convert/plan_blocks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "convert/plan_values.h"
#include "formats/block_pack.h"
#include "formats/fingerprint.h"
#include "io/gguf_types.h"

/* Values looked at at once: whole blocks of every pack, on the stack. */
enum { PIECE = 4096, MAX_PIECE_BYTES = PIECE, WHY_SIZE = 256 };

/* What is known of the blocks of one slice. */
struct slice {
    bool nonzero, many;
    float scale; /* of its blocks with a non-zero trit; quantizing by block only */
};

struct lane {
    struct slice *slices;
    uint64_t first_zero; /* flat index of the first zero trit, UINT64_MAX: none */
    struct bitconv_error err;
};

/* A pass over the values of one tensor. */
struct survey {
    const struct bc_setup *setup;
    const struct bc_model *model;
    const struct bc_plan_tensor *t;
    const struct bc_block_pack *bp;
    struct lane *lanes; /* one per thread */
};

/* ---- one piece ---- */

static void merge(struct slice *a, const struct slice *b)
{
    if (!b->nonzero) return;
    a->many = a->many || b->many || (a->nonzero && bc_f32_bits(a->scale) != bc_f32_bits(b->scale));
    if (!a->nonzero) a->scale = b->scale;
    a->nonzero = true;
}

/* Values [first, first + n) of one slice, made into blocks. */
static enum bitconv_status survey_floats(const struct survey *s, uint64_t first, uint64_t n,
                                         struct slice *out, struct bitconv_error *err)
{
    const struct bc_kernels *k = s->setup->kernels;
    float values[PIECE];
    uint8_t packed[MAX_PIECE_BYTES];
    uint64_t other;
    BC_TRY(bc_plan_f32_at(s->setup, s->model, s->t, first, n, values, err));
    bc_block_from_floats(s->bp, k, values, n / s->bp->block, packed);
    const enum bc_block_scales found =
        bc_block_common_scale(s->bp, packed, n / s->bp->block, &out->scale, &other);
    out->nonzero = found != BC_BLOCKS_ALL_ZERO;
    out->many = found == BC_BLOCKS_MANY_SCALES;
    return BITCONV_OK;
}

static enum bitconv_status survey_trits(const struct survey *s, uint64_t first, uint64_t n,
                                        struct slice *out, uint64_t *first_zero,
                                        struct bitconv_error *err)
{
    const struct bc_kernels *k = s->setup->kernels;
    int8_t trits[PIECE];
    uint64_t counts[4] = {0};
    BC_TRY(bc_plan_trits_at(s->setup, s->model, s->t, first, n, trits, NULL, err));
    k->count_trits(trits, (size_t)n, counts);
    out->nonzero = counts[0] + counts[2] != 0;
    const uint64_t misfit = bc_block_first_misfit(s->bp, trits, n);
    if (misfit != UINT64_MAX && first + misfit < *first_zero) *first_zero = first + misfit;
    return BITCONV_OK;
}

static void survey_piece(void *ctx, size_t index, unsigned worker)
{
    const struct survey *s = ctx;
    const struct bc_pack_shape *shape = &s->t->shape;
    const uint64_t slice_values = shape->n / shape->slices;
    struct lane *lane = &s->lanes[worker];
    const uint64_t begin = (uint64_t)index * PIECE;
    const uint64_t end = shape->n - begin < PIECE ? shape->n : begin + PIECE;
    uint64_t n;
    if (lane->err.status != BITCONV_OK) return;
    for (uint64_t at = begin; at < end; at += n) {
        struct slice part = {.scale = 0.0f};
        const uint64_t left = slice_values - at % slice_values;
        n = end - at < left ? end - at : left;
        const enum bitconv_status status =
            s->t->by_block ? survey_floats(s, at, n, &part, &lane->err)
                           : survey_trits(s, at, n, &part, &lane->first_zero, &lane->err);
        if (status != BITCONV_OK) return;
        merge(&lane->slices[at / slice_values], &part);
    }
}

/* ---- the pass ---- */

/* Puts what all threads found into the first lane; the first failure. */
static enum bitconv_status gather(struct survey *s, unsigned n_lanes, struct bitconv_error *err)
{
    struct lane *all = &s->lanes[0];
    for (unsigned i = 0; i < n_lanes; i++) {
        struct lane *lane = &s->lanes[i];
        if (lane->err.status != BITCONV_OK)
            return bc_fail(err, lane->err.status, "%s", lane->err.text);
        if (lane->first_zero < all->first_zero) all->first_zero = lane->first_zero;
        for (uint64_t j = 0; i > 0 && j < s->t->shape.slices; j++)
            merge(&all->slices[j], &lane->slices[j]);
    }
    return BITCONV_OK;
}

/* Allocates the lanes; their slices are one array, which belongs to the first. */
static bool reserve(struct survey *s, unsigned n_lanes)
{
    const uint64_t slices = s->t->shape.slices;
    struct slice *memory = NULL;
    s->lanes = bc_alloc_array(n_lanes, sizeof *s->lanes);
    if (s->lanes != NULL && slices <= SIZE_MAX / n_lanes)
        memory = bc_alloc_array((size_t)slices * n_lanes, sizeof *memory);
    for (unsigned i = 0; memory != NULL && i < n_lanes; i++)
        s->lanes[i] = (struct lane){.slices = memory + i * slices, .first_zero = UINT64_MAX};
    return memory != NULL;
}

static enum bitconv_status run(struct survey *s, struct bc_pool *pool, struct bitconv_error *err)
{
    const uint64_t n = s->t->shape.n;
    bc_pool_run(pool, (size_t)(n / PIECE + (n % PIECE != 0)), survey_piece, s);
    return gather(s, bc_pool_threads(pool), err);
}

static void release(struct survey *s)
{
    if (s->lanes != NULL) bc_free(s->lanes[0].slices);
    bc_free(s->lanes);
}

/* ---- scales ---- */

static float decided_scale(const struct bc_plan_tensor *t, uint64_t slice)
{
    const struct bc_ternary *d = &t->decision;
    return d->scales[d->n_scales == 1 ? 0 : slice];
}

/* Rounds the decided scales, unless they go into a tensor of their own. `slices` tells which slices
 * are zero (NULL: nothing is known, there is one slice). */
static void round_scales(struct bc_plan_tensor *t, bool separate, const struct slice *slices)
{
    for (uint64_t i = 0; i < t->shape.slices; i++) {
        const float scale = decided_scale(t, i);
        const bool zero = slices != NULL && !slices[i].nonzero;
        t->block_scales[i] = scale;
        if (separate) continue;
        t->block_scales[i] = zero ? BC_ZERO_SCALE : bc_block_rounded_scale(scale);
        const double error = fabs((double)t->block_scales[i] - (double)scale) / (double)scale;
        if (!zero && error > t->scale_error) t->scale_error = error;
    }
    if (t->decision.how == BC_HOW_ZERO) t->scale_error = 0.0;
}

/* Takes the scales that quantizing by block has given; several in a slice leave none. */
static void take_scales(struct bc_plan_tensor *t, const struct slice *slices)
{
    bool many = false;
    for (uint64_t i = 0; i < t->shape.slices; i++) {
        t->block_scales[i] = slices[i].nonzero ? slices[i].scale : BC_ZERO_SCALE;
        many = many || slices[i].many;
    }
    if (many) t->n_block_scales = 0;
}

/* ---- misfits ---- */

/* The first slice with a non-zero trit whose scale float16 does not hold; slices->n: none. */
static uint64_t unfit_slice(const struct bc_plan_tensor *t, const struct slice *slices)
{
    uint64_t i = 0;
    while (i < t->shape.slices &&
           ((slices != NULL && !slices[i].nonzero) || bc_block_scale_fits(decided_scale(t, i))))
        i++;
    return i;
}

/* Why the tensor does not fit for its values; false when it does. */
static bool find_misfit(const struct bc_plan_tensor *t, bool separate, const struct slice *slices,
                        uint64_t first_zero, char *why, size_t why_size)
{
    const char *type = t->type.type_name;
    const uint64_t cols = t->shape.cols;
    if (t->by_block) return false;
    if (first_zero != UINT64_MAX) {
        (void)snprintf(why, why_size,
                       "%s holds no zeros, the trit in row %" PRIu64 ", column %" PRIu64
                       " is the first of them",
                       type, first_zero / cols, first_zero % cols);
        return true;
    }
    const uint64_t slice = separate ? t->shape.slices : unfit_slice(t, slices);
    if (slice == t->shape.slices) return false;
    const float scale = decided_scale(t, slice);
    (void)snprintf(why, why_size,
                   "its scale %g is %s as a float16, which %s has in each block (--scale-tensor "
                   "holds it exactly)",
                   (double)scale, scale > 1.0f ? "infinite" : "0", type);
    return true;
}

static enum bitconv_status settle(const struct bc_setup *setup, struct bc_plan_tensor *t,
                                  const struct lane *found, struct bc_findings *findings,
                                  struct bitconv_error *err)
{
    const bool separate = setup->options->scale_tensor;
    const struct slice *slices = found != NULL ? found->slices : NULL;
    char why[WHY_SIZE];
    if (find_misfit(t, separate, slices, found != NULL ? found->first_zero : UINT64_MAX, why,
                    sizeof why))
        return bc_plan_misfit(setup, t, why, findings, err);
    t->block_scales = bc_alloc_array((size_t)t->shape.slices, sizeof *t->block_scales);
    if (t->block_scales == NULL) return bc_fail_nomem(err, "scales of a tensor");
    t->n_block_scales = (uint32_t)t->shape.slices;
    if (t->by_block)
        take_scales(t, slices);
    else
        round_scales(t, separate, slices);
    return BITCONV_OK;
}

enum bitconv_status bc_plan_block_scales(const struct bc_setup *setup, const struct bc_model *model,
                                         struct bc_pool *pool, struct bc_plan_tensor *t,
                                         struct bc_findings *findings, struct bitconv_error *err)
{
    struct survey s = {.setup = setup, .model = model, .t = t};
    s.bp = bc_block_pack_of(t->type.pack);
    if (t->shape.slices > UINT32_MAX)
        return bc_fail(err, BITCONV_E_LIMIT, "%s: %" PRIu64 " slices, at most 2^32 - 1 have scales",
                       t->weight->name, t->shape.slices);
    if (!t->by_block && s.bp->holds_zeros && t->shape.slices == 1)
        return settle(setup, t, NULL, findings, err);
    enum bitconv_status status = reserve(&s, bc_pool_threads(pool))
                                     ? run(&s, pool, err)
                                     : bc_fail_nomem(err, "scales of a tensor");
    if (status == BITCONV_OK) status = settle(setup, t, &s.lanes[0], findings, err);
    release(&s);
    return status;
}

/* ---- tensors of scales ---- */

static bool has_scale_tensor(const struct bc_plan_tensor *t)
{
    return t->type.pack != NULL && bc_block_pack_of(t->type.pack) != NULL;
}

/* NAME.scale for NAME.weight. */
static char *scale_name(struct bc_arena *arena, const char *name)
{
    static const char ending[] = ".weight";
    size_t len = strlen(name);
    if (len >= strlen(ending) && strcmp(name + len - strlen(ending), ending) == 0)
        len -= strlen(ending);
    return bc_arena_printf(arena, "%.*s.scale", (int)len, name);
}

/* Its values are those of t->block_scales, which the plan owns. */
static enum bitconv_status make_scale_tensor(struct bc_arena *arena, const struct bc_plan_tensor *t,
                                             struct bc_plan_tensor *out, struct bitconv_error *err)
{
    struct bc_weight *w = bc_arena_alloc(arena, 1, sizeof *w);
    if (w == NULL) return bc_fail_nomem(err, "tensors of scales");
    *w = (struct bc_weight){.name = scale_name(arena, t->weight->name),
                            .role = BC_ROLE_BIAS,
                            .n_dims = 1,
                            .ne = {t->n_block_scales, 1, 1, 1},
                            .generated = t->block_scales};
    if (w->name == NULL) return bc_fail_nomem(err, "tensors of scales");
    *out = (struct bc_plan_tensor){.weight = w, .n = t->n_block_scales};
    out->shape = (struct bc_pack_shape){
        .cols = out->n, .rows = 1, .slices = 1, .n = out->n, .n_dims = w->n_dims};
    (void)bc_outtype_find("f32", &out->type);
    return bc_plan_set_size(out, err);
}

enum bitconv_status bc_plan_add_scale_tensors(const struct bc_setup *setup, struct bc_plan *plan,
                                              struct bitconv_error *err)
{
    size_t n = plan->n_tensors;
    if (!setup->options->scale_tensor) return BITCONV_OK;
    for (size_t i = 0; i < plan->n_tensors; i++)
        n += has_scale_tensor(&plan->tensors[i]);
    struct bc_plan_tensor *all = bc_alloc_array(n, sizeof *all);
    if (all == NULL) return bc_fail_nomem(err, "tensors of scales");
    enum bitconv_status status = BITCONV_OK;
    size_t at = 0;
    for (size_t i = 0; i < plan->n_tensors && status == BITCONV_OK; i++) {
        all[at++] = plan->tensors[i];
        if (has_scale_tensor(&plan->tensors[i]))
            status = make_scale_tensor(&plan->arena, &plan->tensors[i], &all[at++], err);
    }
    if (status != BITCONV_OK) {
        bc_free(all); /* the plan still owns its tensors */
        return status;
    }
    bc_free(plan->tensors);
    plan->tensors = all;
    plan->n_tensors = at;
    return BITCONV_OK;
}

/* ---- what was lost ---- */

/* Tensors whose scale was rounded. */
struct rounded {
    size_t n, n_all;
    const struct bc_plan_tensor *worst;
};

static void count_rounded(struct rounded *r, const struct bc_plan_tensor *t)
{
    r->n_all++;
    if (t->scale_error == 0.0) return;
    if (r->n++ == 0 || t->scale_error > r->worst->scale_error) r->worst = t;
}

void bc_plan_warn_rounding(const struct bc_plan *plan, const struct bitconv_sink *sink)
{
    struct rounded blocks = {0}, floats = {0};
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        if (t->block_scales != NULL && !t->by_block) count_rounded(&blocks, t);
        if (t->type.pack == NULL && t->ternary) count_rounded(&floats, t);
    }
    if (blocks.n > 0)
        bc_say(sink, BITCONV_WARNING,
               "the scales of %zu out of %zu packed tensors were rounded to float16: the largest "
               "relative error is %.3g, in %s; --scale-tensor keeps them exact",
               blocks.n, blocks.n_all, blocks.worst->scale_error, blocks.worst->weight->name);
    if (floats.n > 0)
        bc_say(sink, BITCONV_WARNING,
               "the weights of %zu out of %zu ternary tensors stored as floats were rounded: the "
               "largest relative error is %.3g, in %s (%s); F32 and the packs keep them exact",
               floats.n, floats.n_all, floats.worst->scale_error, floats.worst->weight->name,
               floats.worst->type.type_name);
}
