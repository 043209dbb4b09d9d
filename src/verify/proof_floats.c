/* SPDX-License-Identifier: MIT
 * The floats proof: no tensor stored as floating-point numbers holds a NaN or an infinity. */
#include <inttypes.h>
#include <math.h>

#include "base/bytes.h"
#include "quant/quantize.h"
#include "verify/proofs.h"
#include "verify/tensor_stats.h"

/* Index of the first non-finite value. 64-bit numbers are looked at by their own exponent: narrowed
 * to float32 a large one would look infinite. */
static uint64_t first_nonfinite(const struct bc_verifier *v, const struct bc_values *values)
{
    float max = 0.0f;
    if (values->dtype != BITCONV_F64) return bc_first_nonfinite(v->kernels, v->pool, values, &max);
    for (uint64_t i = 0; i < values->n; i++)
        if (!isfinite(bc_get_f64(values->data + 8 * i))) return i;
    return BC_NO_INDEX;
}

static double value_at(const struct bc_verifier *v, const struct bc_values *values, uint64_t index)
{
    float f = 0.0f;
    if (values->dtype == BITCONV_F64) return bc_get_f64(values->data + 8 * index);
    bc_widen(v->kernels, values, index, 1, &f);
    return (double)f;
}

enum bitconv_status bc_prove_floats(struct bc_verifier *v, struct bitconv_proof *proof,
                                    struct bitconv_error *err)
{
    uint64_t n = 0;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        struct bc_values values;
        if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        if (!bc_container_values(&v->container, i, &values) ||
            !bitconv_dtype_is_float(values.dtype)) {
            proof->skipped++;
            continue;
        }
        proof->checked++;
        n += values.n;
        const uint64_t at = first_nonfinite(v, &values);
        if (at != BC_NO_INDEX)
            bc_problem(v, proof, i, "%s: value %" PRIu64 " is %g", v->result->tensors[i].name, at,
                       value_at(v, &values, at));
    }
    if (proof->checked == 0)
        bc_not_run(v, proof, "the file holds no floating-point tensors");
    else
        bc_conclude(v, proof, "%" PRIu64 " tensors, %" PRIu64 " values, all finite", proof->checked,
                    n);
    return BITCONV_OK;
}
