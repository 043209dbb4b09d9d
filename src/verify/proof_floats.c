/* SPDX-License-Identifier: MIT
 * The floats proof: no tensor stored as floating-point numbers holds a NaN or an infinity, and no
 * block of a quantized tensor decodes to one. (The scales of ternary packs belong to the packs
 * proof.) */
#include <inttypes.h>
#include <math.h>

#include "base/bytes.h"
#include "quant/quantize.h"
#include "verify/decoded.h"
#include "verify/proofs.h"

enum { PIECE_VALUES = 65536, CHUNK = 4096 };

/* A search through the blocks of one tensor. */
struct search {
    const struct bc_decoded *d;
    uint64_t *first; /* by worker: the lowest index found, BC_NO_INDEX */
};

static void search_piece(void *context, size_t index, unsigned worker)
{
    const struct search *s = context;
    const uint64_t begin = (uint64_t)index * PIECE_VALUES;
    const uint64_t end = s->d->n - begin < PIECE_VALUES ? s->d->n : begin + PIECE_VALUES;
    float values[CHUNK];
    for (uint64_t at = begin; at < end && at < s->first[worker]; at += CHUNK) {
        const uint64_t n = end - at < CHUNK ? end - at : CHUNK;
        bc_dequant_values(s->d->blocks, s->d->data, at, n, values);
        for (uint64_t i = 0; i < n; i++) {
            if (isfinite(values[i]) || at + i >= s->first[worker]) continue;
            s->first[worker] = at + i;
        }
    }
}

/* Index of the first value of a quantized tensor that decodes to NaN or infinity. */
static enum bitconv_status search_blocks(const struct bc_verifier *v, const struct bc_decoded *d,
                                         uint64_t *out, struct bitconv_error *err)
{
    const unsigned n_workers = bc_pool_threads(v->pool);
    struct search s = {d, bc_alloc_array(n_workers, sizeof *s.first)};
    if (s.first == NULL) return bc_fail_nomem(err, "the floats proof");
    for (unsigned i = 0; i < n_workers; i++)
        s.first[i] = BC_NO_INDEX;
    bc_pool_run(v->pool, (size_t)(d->n / PIECE_VALUES + (d->n % PIECE_VALUES != 0 ? 1u : 0u)),
                search_piece, &s);
    *out = BC_NO_INDEX;
    for (unsigned i = 0; i < n_workers; i++)
        if (s.first[i] < *out) *out = s.first[i];
    bc_free(s.first);
    return BITCONV_OK;
}

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

/* Whether a tensor is this proof's business, and how it is read. */
static bool is_float(const struct bc_verifier *v, size_t index, struct bc_decoded *d)
{
    char why[512];
    const enum bitconv_status status =
        bc_decoded_open(&v->container, index, &v->stated, d, why, sizeof why);
    /* What no proof looks into is not passed over in silence. */
    if (status == BITCONV_E_UNSUPPORTED)
        bc_say(v->sink, BITCONV_WARNING, "%s: its values are not checked: %s",
               v->result->tensors[index].name, why);
    if (status != BITCONV_OK) return false; /* the structure and packs proofs say why */
    if (d->packed.format != NULL) return false;
    return d->blocks != NULL || bitconv_dtype_is_float(d->numbers.dtype);
}

static void report(struct bc_verifier *v, struct bitconv_proof *proof, size_t index,
                   const struct bc_decoded *d, uint64_t at)
{
    const char *name = v->result->tensors[index].name;
    double value = 0;
    bc_decoded_read(v->kernels, d, at, 1, &value);
    if (d->blocks == NULL)
        bc_problem(v, proof, index, "%s: value %" PRIu64 " is %g", name, at, value);
    else
        bc_problem(v, proof, index, "%s: value %" PRIu64 " is %g (block %" PRIu64 " of type %s)",
                   name, at, value, at / d->blocks->block, d->blocks->type_name);
}

enum bitconv_status bc_prove_floats(struct bc_verifier *v, struct bitconv_proof *proof,
                                    struct bitconv_error *err)
{
    uint64_t n = 0;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        struct bc_decoded d;
        uint64_t at = BC_NO_INDEX;
        if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        if (!is_float(v, i, &d)) {
            proof->skipped++;
            continue;
        }
        proof->checked++;
        n += d.n;
        if (d.blocks != NULL)
            BC_TRY(search_blocks(v, &d, &at, err));
        else
            at = first_nonfinite(v, &d.numbers);
        if (at != BC_NO_INDEX) report(v, proof, i, &d, at);
    }
    if (proof->checked == 0)
        bc_not_run(v, proof, "the file holds no floating-point tensors");
    else
        bc_conclude(v, proof, "%" PRIu64 " tensors, %" PRIu64 " values, all finite", proof->checked,
                    n);
    return BITCONV_OK;
}
