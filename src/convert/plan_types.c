/* SPDX-License-Identifier: MIT
 * The table of tensor types by family, target, asked type and role. */
#include "convert/plan_types.h"

#include <string.h>

#include "base/bytes.h"
#include "io/gguf_types.h"

/* Families that the converters treat alike. */
enum group { GROUP_EMBEDDING, GROUP_BITNET, GROUP_LLAMA, GROUP_ANY };
/* Kinds of asked types. Q8_0 has the rows of BF16: what is not quantized is F32. */
enum kind { KIND_F32, KIND_F16, KIND_BF16, KIND_PACK };
/* What a cell of the table says. */
enum cell { SAME, F32, F16 };

/* A row: the types of everything that is not a linear weight (those get the asked type). `kept` are
 * linear weights that the config or the user keeps float. */
struct type_row {
    enum bc_target target;
    enum group group;
    enum kind kind;
    enum cell embed, output, norm, router, kept;
};

static const struct type_row rows[] = {
    /* target             group            kind       embed output norm router kept */
    {BC_TARGET_BITNET, GROUP_EMBEDDING, KIND_F32, SAME, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_EMBEDDING, KIND_F16, SAME, SAME, F16, F16, SAME},
    {BC_TARGET_BITNET, GROUP_EMBEDDING, KIND_BF16, SAME, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_EMBEDDING, KIND_PACK, F16, F16, F16, F16, F16},
    {BC_TARGET_BITNET, GROUP_BITNET, KIND_F32, F32, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_BITNET, KIND_F16, F32, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_BITNET, KIND_BF16, F32, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_BITNET, KIND_PACK, F16, F16, F32, F16, F16},
    {BC_TARGET_BITNET, GROUP_LLAMA, KIND_F32, F32, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_LLAMA, KIND_F16, F32, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_LLAMA, KIND_BF16, F32, SAME, F32, F32, SAME},
    {BC_TARGET_BITNET, GROUP_LLAMA, KIND_PACK, F16, F16, F32, F16, F16},
    {BC_TARGET_LLAMA_CPP, GROUP_ANY, KIND_F32, SAME, SAME, F32, F32, SAME},
    {BC_TARGET_LLAMA_CPP, GROUP_ANY, KIND_F16, SAME, SAME, F32, F32, SAME},
    {BC_TARGET_LLAMA_CPP, GROUP_ANY, KIND_BF16, SAME, SAME, F32, F32, SAME},
    {BC_TARGET_LLAMA_CPP, GROUP_ANY, KIND_PACK, F16, F16, F32, F32, F16},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static enum group group_of(const struct bc_model *model)
{
    if (model->arch->traits.ternary_class) return GROUP_BITNET;
    return model->arch->traits.embedding_family ? GROUP_EMBEDDING : GROUP_LLAMA;
}

static enum kind kind_of(const struct bc_outtype *type)
{
    if (type->pack != NULL) return KIND_PACK;
    if (strcmp(type->name, "f32") == 0) return KIND_F32;
    return strcmp(type->name, "f16") == 0 ? KIND_F16 : KIND_BF16;
}

/* The row that applies; the table has one for every combination. */
static const struct type_row *find_row(const struct bc_setup *setup, const struct bc_model *model)
{
    const enum group group = group_of(model);
    const enum kind kind = kind_of(&setup->out);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].target == model->target && rows[i].kind == kind &&
            (rows[i].group == group || rows[i].group == GROUP_ANY))
            return &rows[i];
    }
    return &rows[0];
}

static enum cell cell_of(const struct type_row *row, const struct bc_weight *w)
{
    switch (w->role) {
    case BC_ROLE_LINEAR:
        return w->keep ? row->kept : SAME;
    case BC_ROLE_EMBED:
        return row->embed;
    case BC_ROLE_OUTPUT:
        return row->output;
    case BC_ROLE_ROUTER:
        return row->router;
    case BC_ROLE_ROPE:
        return F32;
    default:
        return row->norm;
    }
}

void bc_plan_type(const struct bc_setup *setup, const struct bc_model *model,
                  const struct bc_weight *w, struct bc_outtype *type, bool *ternary)
{
    const enum cell cell = cell_of(find_row(setup, model), w);
    *type = setup->out;
    if (cell != SAME) (void)bc_outtype_find(cell == F32 ? "f32" : "f16", type);
    if (w->role == BC_ROLE_EMBED && setup->embd.name != NULL) *type = setup->embd;
    if (w->role == BC_ROLE_OUTPUT && setup->output.name != NULL) *type = setup->output;
    *ternary = w->role == BC_ROLE_LINEAR && w->n_sources > 0 &&
               (type->pack != NULL || bc_weight_is_ternary_at_runtime(model, w));
}

/* ---- reference converters ---- */

static float narrowed(const struct bc_outtype *type, float v)
{
    switch (kind_of(type)) {
    case KIND_F16:
        return bc_f16_to_f32(bc_f32_to_f16(v));
    case KIND_BF16:
        return bc_bf16_to_f32(bc_f32_to_bf16(v));
    default:
        return v;
    }
}

static bool is_tiled(const struct bc_outtype *type)
{
    return type->pack != NULL && type->pack->choose_tile != NULL;
}

/* Does one of the scripts write the pack at all? */
static bool reference_packs(const struct bc_outtype *type)
{
    return is_tiled(type) || type->type_id == BC_TYPE_I2_S;
}

/* The multiplier that BitNet's general script ends up with. Packed weights: it divides by the
 * stored scale for float files and multiplies by it for I2_S, whatever the model does; its TL1 and
 * TL2 files get the largest magnitude of what it has at that point, which is that quotient for its
 * Llama class and 1 for its BitNet class. Master weights: it computes 1 / (1 / mean), in float16
 * when the checkpoint is. */
static float reference_scale(const struct bc_model *model, const struct bc_weight *w,
                             const struct bc_outtype *type, const struct bc_ternary *d,
                             uint32_t slice)
{
    if (d->stored != NULL && is_tiled(type) && group_of(model) == GROUP_BITNET) return 1.0f;
    if (d->stored != NULL) {
        const float stored = d->stored[slice];
        const bool multiplies = type->pack != NULL && !is_tiled(type);
        return narrowed(type, multiplies ? stored : 1.0f / stored);
    }
    const float twice = 1.0f / (1.0f / d->scales[slice]);
    if (w->sources[slice].tensor->dtype == BITCONV_F16)
        return narrowed(type, bc_f16_to_f32(bc_f32_to_f16(twice)));
    return narrowed(type, twice);
}

bool bc_reference_differs(const struct bc_setup *setup, const struct bc_model *model,
                          const struct bc_weight *w, const struct bc_outtype *type,
                          const struct bc_ternary *decision, uint64_t n_minus_zero)
{
    const enum group group = group_of(model);
    if (model->target != BC_TARGET_BITNET) return false;
    if (w->role == BC_ROLE_ROPE) return true; /* rope_freqs: that step of the script never runs */
    if (group == GROUP_EMBEDDING || setup->out.type_id == BC_TYPE_Q8_0) return false;
    if (setup->out.pack != NULL && !reference_packs(&setup->out)) return false;
    /* The script makes an lm_head of its BitNet class ternary by its first magnitude. */
    if (w->role == BC_ROLE_OUTPUT) return group == GROUP_BITNET && setup->out.pack != NULL;
    if (decision->n_scales == 0) return false;
    /* Its Llama class has no I2_S: such tensors come out as F16. Of float weights it takes the signs
     * and the largest magnitude for TL1 and TL2. */
    if (group == GROUP_LLAMA && type->pack != NULL) {
        if (!is_tiled(type)) return true;
        if (decision->stored == NULL) return decision->how != BC_HOW_MAGNITUDE;
    }
    if (type->pack == NULL && decision->stored == NULL && n_minus_zero > 0) return true;
    /* Nothing but zeros: the largest magnitude, 0, becomes the scale of TL1 and TL2. */
    if (decision->how == BC_HOW_ZERO) return is_tiled(type);
    for (uint32_t i = 0; i < decision->n_scales; i++) {
        const float ours = narrowed(type, decision->scales[i]);
        const float theirs = reference_scale(model, w, type, decision, i);
        if (bc_f32_bits(theirs) != bc_f32_bits(ours)) return true;
    }
    return false;
}
