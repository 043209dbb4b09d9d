/* SPDX-License-Identifier: MIT
 * Reads values of planned tensors. */
#include "convert/plan_values.h"

#include "base/mem.h"

enum { COUNTED_PIECE = 32768 };

enum bitconv_status bc_plan_trits_at(const struct bc_setup *setup, const struct bc_model *model,
                                     const struct bc_plan_tensor *t, uint64_t first, uint64_t n,
                                     int8_t *dst, struct bc_trit_loss *loss,
                                     struct bitconv_error *err)
{
    const struct bc_origin *origin = t->origin;
    if (origin != NULL) return origin->trits(origin->ctx, setup->kernels, first, n, dst, err);
    return bc_weight_trits_at(model, t->weight, &t->decision, &setup->weights, setup->kernels,
                              first, n, dst, loss, err);
}

enum bitconv_status bc_plan_f32_at(const struct bc_setup *setup, const struct bc_model *model,
                                   const struct bc_plan_tensor *t, uint64_t first, uint64_t n,
                                   float *dst, struct bitconv_error *err)
{
    const struct bc_origin *origin = t->origin;
    if (origin != NULL) return origin->floats(origin->ctx, setup->kernels, first, n, dst, err);
    return bc_weight_f32_at(model, t->weight, &setup->weights, setup->kernels, first, n, dst, err);
}

/* Counting on all threads. */
struct lane {
    uint64_t n_nonzero;
    struct bitconv_error err; /* of the lane's first failure */
};

struct counter {
    const struct bc_setup *setup;
    const struct bc_model *model;
    const struct bc_plan_tensor *t;
    struct lane *lanes; /* one per thread */
};

static void count_piece(void *ctx, size_t index, unsigned worker)
{
    const struct counter *c = ctx;
    struct lane *lane = &c->lanes[worker];
    const uint64_t first = (uint64_t)index * COUNTED_PIECE;
    const uint64_t left = c->t->n - first;
    const uint64_t n = left < COUNTED_PIECE ? left : COUNTED_PIECE;
    int8_t trits[COUNTED_PIECE];
    uint64_t counts[4] = {0};
    if (lane->err.status != BITCONV_OK ||
        bc_plan_trits_at(c->setup, c->model, c->t, first, n, trits, NULL, &lane->err) != BITCONV_OK)
        return;
    c->setup->kernels->count_trits(trits, (size_t)n, counts);
    lane->n_nonzero += counts[0] + counts[2];
}

enum bitconv_status bc_plan_count_nonzero(const struct bc_setup *setup,
                                          const struct bc_model *model, struct bc_pool *pool,
                                          struct bc_plan_tensor *t, struct bitconv_error *err)
{
    const unsigned n_lanes = bc_pool_threads(pool);
    struct counter c = {
        .setup = setup, .model = model, .t = t, .lanes = bc_alloc_array(n_lanes, sizeof *c.lanes)};
    enum bitconv_status status = BITCONV_OK;
    if (c.lanes == NULL) return bc_fail_nomem(err, "count of the non-zero weights");
    bc_pool_run(pool, (size_t)(t->n / COUNTED_PIECE + (t->n % COUNTED_PIECE != 0)), count_piece,
                &c);
    t->shape.n_nonzero = 0;
    for (unsigned i = 0; i < n_lanes; i++) {
        t->shape.n_nonzero += c.lanes[i].n_nonzero;
        if (status == BITCONV_OK && c.lanes[i].err.status != BITCONV_OK)
            status = bc_fail(err, c.lanes[i].err.status, "%s", c.lanes[i].err.text);
    }
    bc_free(c.lanes);
    return status;
}
