/* SPDX-License-Identifier: MIT
 * Chooses the smallest pack of a tensor. */
#include "convert/auto_pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/block_pack.h"

enum { WHY_SIZE = 256 };

/* "none of bitcos, t5: REASON". */
static void explain(const struct bc_setup *setup, const char *reason, char *why, size_t why_size)
{
    size_t used = (size_t)snprintf(why, why_size, "none of ");
    for (size_t i = 0; i < setup->n_autos && used < why_size; i++)
        used += (size_t)snprintf(why + used, why_size - used, "%s%s", i > 0 ? ", " : "",
                                 setup->autos[i].name);
    if (used < why_size) (void)snprintf(why + used, why_size - used, " holds it: %s", reason);
}

bool bc_auto_first(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                   size_t why_size)
{
    char reason[WHY_SIZE] = "";
    for (size_t i = 0; i < setup->n_autos; i++) {
        t->type = setup->autos[i];
        if (bc_plan_fits(setup, t, reason, sizeof reason)) return true;
    }
    explain(setup, reason, why, why_size);
    return false;
}

/* Does the pack hold these trits and scales, whatever the shape? */
static bool holds(const struct bc_setup *setup, const struct bc_format *pack,
                  const struct bc_plan_tensor *t, char *why, size_t why_size)
{
    const struct bc_block_pack *blocks = bc_block_pack_of(pack);
    if (t->decision.scales_differ && t->decision.n_scales > pack->max_scales) {
        (void)snprintf(why, why_size, "its %" PRIu32 " experts have different scales",
                       t->decision.n_scales);
        return false;
    }
    for (uint32_t i = 0; blocks != NULL && i < t->decision.n_scales; i++) {
        if (setup->options->scale_tensor || bc_block_scale_fits(t->decision.scales[i])) continue;
        (void)snprintf(why, why_size, "float16 does not hold its scale %g",
                       (double)t->decision.scales[i]);
        return false;
    }
    if (blocks == NULL || blocks->holds_zeros || t->shape.n_nonzero == t->n) return true;
    (void)snprintf(why, why_size, "%" PRIu64 " of its weights are zero, %s has no code for them",
                   t->n - t->shape.n_nonzero, pack->type_name);
    return false;
}

bool bc_auto_choose(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                    size_t why_size)
{
    struct bc_plan_tensor best = *t;
    char reason[WHY_SIZE] = "";
    bool found = false;
    for (size_t i = 0; i < setup->n_autos; i++) {
        struct bc_plan_tensor candidate = *t;
        candidate.type = setup->autos[i];
        const struct bc_format *pack = candidate.type.pack;
        memset(candidate.shape.tile, 0, sizeof candidate.shape.tile);
        if (!holds(setup, pack, t, reason, sizeof reason) ||
            !bc_plan_fits(setup, &candidate, reason, sizeof reason))
            continue;
        candidate.size = pack->size(&candidate.shape);
        if (found && candidate.size >= best.size) continue;
        best = candidate;
        found = true;
    }
    if (found)
        *t = best;
    else
        explain(setup, reason, why, why_size);
    return found;
}
