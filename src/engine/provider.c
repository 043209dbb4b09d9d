/* SPDX-License-Identifier: MIT
 * What the providers of weights have in common. */
#include "engine/provider.h"

#include <inttypes.h>

float bc_tensor_scale(const struct bc_tensor *t, uint64_t row)
{
    return t->scales[t->n_scales == 1 ? 0 : row / t->rows];
}

uint64_t bc_tensor_rows(const struct bc_tensor *t)
{
    return t->rows * t->slices;
}

enum bitconv_status bc_provider_find(struct bc_provider *p, const char *name, struct bc_tensor *out,
                                     bool *found, struct bitconv_error *err)
{
    *out = (struct bc_tensor){.provider = p};
    BC_TRY(p->ops->find(p, name, out, found, err));
    out->provider = p;
    return BITCONV_OK;
}

static enum bitconv_status check_rows(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                      struct bitconv_error *err)
{
    const uint64_t all = bc_tensor_rows(t);
    if (row <= all && n_rows <= all - row) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_BUG,
                   "%s: %s: rows %" PRIu64 " to %" PRIu64 " were asked for, there are %" PRIu64,
                   t->provider->path, t->name, row, row + n_rows, all);
}

enum bitconv_status bc_tensor_trits(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                    int8_t *dst, struct bitconv_error *err)
{
    BC_TRY(check_rows(t, row, n_rows, err));
    return t->provider->ops->trits(t, row, n_rows, dst, err);
}

enum bitconv_status bc_tensor_floats(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                     int8_t *scratch, float *dst, struct bitconv_error *err)
{
    BC_TRY(check_rows(t, row, n_rows, err));
    if (!t->ternary) return t->provider->ops->floats(t, row, n_rows, dst, err);
    BC_TRY(t->provider->ops->trits(t, row, n_rows, scratch, err));
    for (uint64_t r = 0; r < n_rows; r++)
        t->provider->kernels->trits_to_f32(scratch + r * t->cols, (size_t)t->cols,
                                           bc_tensor_scale(t, row + r), dst + r * t->cols);
    return BITCONV_OK;
}

void bc_provider_free(struct bc_provider *p)
{
    if (p != NULL) p->ops->free(p);
}
