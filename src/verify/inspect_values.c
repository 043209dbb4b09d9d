/* SPDX-License-Identifier: MIT
 * Decoded values of one tensor, for inspect --tensor. */
#include <math.h>
#include <string.h>

#include "verify/inspector.h"

struct value_arrays {
    double *reals;
    int64_t *integers;
};

static enum bitconv_status allocate(struct bc_inspector *in, uint64_t n, bool integers,
                                    struct value_arrays *out, struct bitconv_error *err)
{
    out->reals = bc_arena_alloc(&in->data->arena, (size_t)n, sizeof *out->reals);
    if (integers)
        out->integers = bc_arena_alloc(&in->data->arena, (size_t)n, sizeof *out->integers);
    if (n != 0 && (out->reals == NULL || (integers && out->integers == NULL)))
        return bc_fail_nomem(err, "decoded values");
    return BITCONV_OK;
}

static enum bitconv_status read_packed(struct bc_inspector *in, const struct bc_packed *p,
                                       struct bitconv_inspected_values *out,
                                       struct bitconv_error *err)
{
    struct value_arrays arrays = {0};
    const uint64_t slice_n = p->shape.cols * p->shape.rows;
    BC_TRY(allocate(in, out->n, false, &arrays, err));
    out->scale = p->format->get_scale(&p->shape, p->data, 0);
    for (uint64_t i = 0; i < out->n; i++) {
        int8_t trit = 0;
        const float scale = p->format->get_scale(&p->shape, p->data, i / slice_n);
        bc_packed_read(p, i, 1, &trit);
        arrays.reals[i] = trit == BC_TRIT_ILLEGAL ? (double)NAN : (double)((float)trit * scale);
        if (trit == 0) arrays.reals[i] = 0.0;
    }
    out->reals = arrays.reals;
    return BITCONV_OK;
}

static enum bitconv_status read_numbers(struct bc_inspector *in, const struct bc_values *values,
                                        struct bitconv_inspected_values *out,
                                        struct bitconv_error *err)
{
    struct value_arrays arrays = {0};
    const bool integers = !bitconv_dtype_is_float(values->dtype);
    BC_TRY(allocate(in, out->n, integers, &arrays, err));
    bc_read_doubles(in->kernels, values, 0, (size_t)out->n, arrays.reals);
    for (uint64_t i = 0; integers && i < out->n; i++)
        arrays.integers[i] = bc_read_integer(values, i);
    out->reals = arrays.reals;
    out->integers = arrays.integers;
    out->is_unsigned = values->dtype == BITCONV_U64;
    return BITCONV_OK;
}

enum bitconv_status bc_inspect_values(struct bc_inspector *in, struct bitconv_error *err)
{
    const struct bc_container *c = &in->data->container;
    const char *name = in->options->tensor;
    struct bitconv_inspected_values *out = bc_arena_alloc(&in->data->arena, 1, sizeof *out);
    struct bc_packed packed = {0};
    struct bc_values values;
    char why[256] = "";
    if (out == NULL) return bc_fail_nomem(err, "decoded values");
    while (out->tensor < in->out->n_tensors &&
           strcmp(in->out->tensors[out->tensor].name, name) != 0)
        out->tensor++;
    if (out->tensor == in->out->n_tensors)
        return bc_fail(err, BITCONV_E_ARG, "%s: no tensor is called '%s'", in->path, name);
    const struct bitconv_inspected_tensor *t = &in->out->tensors[out->tensor];
    out->n = t->n_elements;
    if (in->options->head != 0 && in->options->head < out->n) out->n = in->options->head;
    if (c->gguf != NULL && !bc_packed_open(bitconv_gguf_tensor_at(c->gguf, out->tensor),
                                           &in->stated, &packed, why, sizeof why))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: %s", in->path, name, why);
    in->out->values = out;
    if (packed.format != NULL) return read_packed(in, &packed, out, err);
    if (bc_container_values(c, out->tensor, &values)) return read_numbers(in, &values, out, err);
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "%s: %s: cannot decode type %s yet, only F32, F16, BF16, F64, integers and I2_S",
                   in->path, name, t->type);
}
