/* SPDX-License-Identifier: MIT
 * Decoded values of one tensor, for inspect --tensor. */
#include <string.h>

#include "base/nearest.h"
#include "model/scale_tensor.h"
#include "verify/block_scan.h"
#include "verify/inspector.h"

enum { WHY_BYTES = 512 };

static enum bitconv_status read_integers(struct bc_inspector *in, const struct bc_values *numbers,
                                         struct bitconv_inspected_values *out,
                                         struct bitconv_error *err)
{
    int64_t *integers = bc_arena_alloc(&in->data->arena, (size_t)out->n, sizeof *integers);
    if (out->n != 0 && integers == NULL) return bc_fail_nomem(err, "decoded values");
    for (uint64_t i = 0; i < out->n; i++)
        integers[i] = bc_read_integer(numbers, i);
    out->integers = integers;
    out->is_unsigned = numbers->dtype == BITCONV_U64;
    return BITCONV_OK;
}

/* The tensor beside a tensor of blocks that bc_packed_open_in has found the scales of. */
static const char *name_of_scales(const struct bc_inspector *in, size_t index)
{
    const struct bitconv_gguf *file = in->data->container.gguf;
    return bc_scale_tensor_of(file, bitconv_gguf_tensor_at(file, index))->name;
}

static enum bitconv_status unknown_name(const struct bc_inspector *in, struct bitconv_error *err)
{
    struct bc_nearest nearest = {.word = in->options->tensor};
    char hint[BC_NEAREST_HINT_SIZE];
    for (size_t i = 0; i < in->out->n_tensors; i++)
        bc_nearest_offer(&nearest, in->out->tensors[i].name);
    return bc_fail(err, BITCONV_E_ARG, "%s: no tensor is called '%s' (--tensors lists them)%s",
                   in->path, nearest.word, bc_nearest_hint(&nearest, "", hint, sizeof hint));
}

static enum bitconv_status read_values(struct bc_inspector *in, const struct bc_decoded *d,
                                       struct bitconv_inspected_values *out,
                                       struct bitconv_error *err)
{
    const uint64_t head = in->options->head;
    out->n = head != 0 && head < d->n ? head : d->n;
    double *reals = bc_arena_alloc(&in->data->arena, (size_t)out->n, sizeof *reals);
    if (out->n != 0 && reals == NULL) return bc_fail_nomem(err, "decoded values");
    bc_decoded_read(in->kernels, d, 0, (size_t)out->n, reals);
    out->reals = reals;
    if (d->packed.format != NULL && d->packed.scales != NULL) {
        out->scale = bc_packed_scale_beside(&d->packed, 0);
        out->scale_tensor = name_of_scales(in, out->tensor);
    } else if (d->packed.format != NULL && d->blocks == NULL) {
        out->is_ternary = true;
        out->scale = d->packed.format->get_scale(&d->packed.shape, d->packed.data, 0);
    } else if (d->blocks == NULL && !bitconv_dtype_is_float(d->numbers.dtype)) {
        return read_integers(in, &d->numbers, out, err);
    }
    return BITCONV_OK;
}

enum bitconv_status bc_inspect_values(struct bc_inspector *in, struct bitconv_error *err)
{
    const char *name = in->options->tensor;
    struct bitconv_inspected_values *out = bc_arena_alloc(&in->data->arena, 1, sizeof *out);
    struct bc_decoded decoded;
    char why[WHY_BYTES] = "";
    if (out == NULL) return bc_fail_nomem(err, "decoded values");
    while (out->tensor < in->out->n_tensors &&
           strcmp(in->out->tensors[out->tensor].name, name) != 0)
        out->tensor++;
    if (out->tensor == in->out->n_tensors) return unknown_name(in, err);
    const enum bitconv_status status =
        bc_decoded_open(&in->data->container, out->tensor, &in->stated, &decoded, why, sizeof why);
    if (status != BITCONV_OK) return bc_fail(err, status, "%s: %s: %s", in->path, name, why);
    out->n_total = decoded.n;
    const uint64_t *ne = in->out->tensors[out->tensor].ne;
    out->cols = decoded.packed.format != NULL ? decoded.packed.shape.cols : ne[0];
    in->out->values = out;
    return read_values(in, &decoded, out, err);
}
