/* SPDX-License-Identifier: MIT
 * Puts a packed tensor together in memory. */
#include "convert/whole.h"

#include <string.h>

#include "base/mem.h"

struct room {
    uint64_t packed, trits;
};

/* Payload packs take the trits as they come. */
static bool takes_runs(const struct bc_plan_tensor *t)
{
    return t->type.pack->run != 0;
}

static struct room room_of(const struct bc_plan *plan)
{
    struct room room = {0, 0};
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        if (!bc_plan_is_whole(t)) continue;
        if (t->size > room.packed) room.packed = t->size;
        if (!takes_runs(t) && t->n > room.trits) room.trits = t->n;
    }
    return room;
}

uint64_t bc_whole_memory(const struct bc_plan *plan)
{
    const struct room room = room_of(plan);
    return room.packed + room.trits;
}

enum bitconv_status bc_whole_begin(struct bc_whole *w, const struct bc_plan *plan,
                                   struct bitconv_error *err)
{
    const struct room room = room_of(plan);
    if (room.packed == 0) return BITCONV_OK;
    w->packed = bc_alloc_array((size_t)room.packed, 1);
    w->trits = bc_alloc_array((size_t)room.trits, 1);
    if (w->packed == NULL || w->trits == NULL)
        return bc_fail_nomem(err, "the largest packed tensor");
    return BITCONV_OK;
}

void bc_whole_add(struct bc_whole *w, const struct bc_kernels *k, const struct bc_plan_tensor *t,
                  uint64_t first, const int8_t *trits, size_t n)
{
    if (takes_runs(t))
        t->type.pack->pack(k, &t->shape, trits, first, n, w->packed);
    else
        memcpy(w->trits + first, trits, n);
}

const uint8_t *bc_whole_end(struct bc_whole *w, const struct bc_kernels *k,
                            const struct bc_plan_tensor *t)
{
    const struct bc_format *pack = t->type.pack;
    if (!takes_runs(t)) pack->pack(k, &t->shape, w->trits, 0, t->n, w->packed);
    pack->put_scales(&t->shape, t->decision.scales, t->decision.n_scales, w->packed);
    return w->packed;
}

void bc_whole_release(struct bc_whole *w)
{
    bc_free(w->packed);
    bc_free(w->trits);
    *w = (struct bc_whole){NULL, NULL};
}
