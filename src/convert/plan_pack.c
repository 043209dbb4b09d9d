/* SPDX-License-Identifier: MIT
 * Settles the type of ternary tensors. */
#include "convert/plan_pack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/bytes.h"
#include "convert/auto_pack.h"
#include "convert/plan_blocks.h"
#include "convert/plan_values.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "formats/q8_0.h"
#include "io/gguf_types.h"

enum { WHY_SIZE = 256 };

/* Smallest magnitudes that round to infinity: halfway between the largest finite value and the next
 * power of two, which a tie to even takes up. */
static const float f16_limit = 65520.0f;
#define BF16_LIMIT_BITS 0x7f7f8000u
/* The largest magnitude of a block of Q8_0 is this many times its scale. */
#define Q8_0_CODES 127.0f

float bc_type_limit(const struct bc_outtype *type)
{
    /* A pack quantized by block has float16 scales. */
    if (type->type_id == BC_TYPE_F16 || type->pack != NULL) return f16_limit;
    if (type->type_id == BC_TYPE_Q8_0) return Q8_0_CODES * f16_limit; /* a float16 block scale */
    return type->type_id == BC_TYPE_BF16 ? bc_f32_from_bits(BF16_LIMIT_BITS) : INFINITY;
}

const char *bc_range_hint(const struct bc_weight *w, const struct bc_outtype *type)
{
    const bool half = type->type_id == BC_TYPE_F16;
    switch (w->role) {
    case BC_ROLE_EMBED:
        return half ? "--embd-type bf16 (or f32) holds it" : "--embd-type f32 holds it";
    case BC_ROLE_OUTPUT:
        return half ? "--output-type bf16 (or f32) holds it" : "--output-type f32 holds it";
    default:
        return half ? "--outtype bf16 (or f32) holds it" : "--outtype f32 holds it";
    }
}

/* A scale that a float file cannot hold would make all weights Inf or 0. */
static void check_scale_range(const struct bc_plan_tensor *t, struct bc_findings *findings)
{
    for (uint32_t i = 0; i < t->decision.n_scales; i++) {
        const float scale = t->decision.scales[i];
        const bool in_f16 = t->type.type_id == BC_TYPE_F16 || t->type.type_id == BC_TYPE_Q8_0;
        const float stored = t->type.type_id == BC_TYPE_Q8_0 ? scale / Q8_0_CODES : scale;
        const bool vanishes = in_f16 && bc_f16_to_f32(bc_f32_to_f16(stored)) == 0.0f;
        if (scale < bc_type_limit(&t->type) && !vanishes) continue;
        bc_finding(findings, BITCONV_E_UNSUPPORTED,
                   "%s: its scale %g is beyond the range of %s: %s", t->weight->name, (double)scale,
                   t->type.type_name, bc_range_hint(t->weight, &t->type));
        return;
    }
}

/* What a value of the magnitude `scale` is read back as. */
static float read_back(const struct bc_setup *setup, const struct bc_outtype *type, float scale)
{
    const float block[BC_Q8_0_BLOCK] = {scale};
    uint8_t bytes[BC_Q8_0_BLOCK_SIZE];
    float value = scale;
    if (type->type_id == BC_TYPE_F16) return bc_f16_to_f32(bc_f32_to_f16(scale));
    if (type->type_id == BC_TYPE_BF16) return bc_bf16_to_f32(bc_f32_to_bf16(scale));
    if (type->type_id != BC_TYPE_Q8_0) return scale;
    bc_q8_0_from_floats(setup->kernels, block, 1, bytes);
    bc_dequant_values(bc_dequant_find(type->type_name), bytes, 0, 1, &value);
    return value;
}

/* Values of one magnitude lose in a float type what that magnitude does, but for zeros. */
static void measure_rounding(const struct bc_setup *setup, struct bc_plan_tensor *t)
{
    if (t->decision.how == BC_HOW_ZERO) return;
    for (uint32_t i = 0; i < t->decision.n_scales; i++) {
        const double scale = (double)t->decision.scales[i];
        const double stored = (double)read_back(setup, &t->type, t->decision.scales[i]);
        const double error = fabs(stored - scale) / scale;
        if (isfinite(error) && error > t->scale_error) t->scale_error = error;
    }
}

/* Does the pack want to know how many trits are not zero, or is it chosen by that? */
static bool wants_count(const struct bc_setup *setup, const struct bc_plan_tensor *t)
{
    const bool unknown = t->shape.n_nonzero == 0;
    return unknown && (setup->n_autos > 0 || t->type.pack->open_payload != NULL);
}

/* Why the pack cannot hold the tensor; false when it can. Outtype auto: chooses the pack. */
static bool is_misfit(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                      size_t why_size)
{
    const struct bc_format *pack = t->type.pack;
    if (setup->n_autos > 0) return !bc_auto_choose(setup, t, why, why_size);
    if (t->decision.scales_differ && t->decision.n_scales > pack->max_scales) {
        (void)snprintf(why, why_size,
                       "its %" PRIu32
                       " experts have different scales (%g, ...), %s has room for one",
                       t->decision.n_scales, (double)t->decision.scales[0], pack->type_name);
        return true;
    }
    return !pack->check(&t->shape, why, why_size);
}

enum bitconv_status bc_plan_pack(const struct bc_setup *setup, const struct bc_model *model,
                                 struct bc_pool *pool, struct bc_plan_tensor *t,
                                 struct bc_findings *findings, struct bitconv_error *err)
{
    char why[WHY_SIZE];
    if (t->type.pack != NULL && wants_count(setup, t))
        BC_TRY(bc_plan_count_nonzero(setup, model, pool, t, err));
    if (t->type.pack != NULL && is_misfit(setup, t, why, sizeof why))
        BC_TRY(bc_plan_misfit(setup, t, why, findings, err));
    if (t->type.pack != NULL && bc_block_pack_of(t->type.pack) != NULL)
        BC_TRY(bc_plan_block_scales(setup, model, pool, t, findings, err));
    if (t->type.pack == NULL) {
        check_scale_range(t, findings);
        measure_rounding(setup, t);
    }
    return bc_plan_set_size(t, err);
}
