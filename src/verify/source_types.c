/* SPDX-License-Identifier: MIT
 * Which type each tensor of a file should have, written down for the verifier without a look at
 * convert's table, so that the two can disagree. (What is ternary at run time is the model's to say,
 * for both.) */
#include "verify/source_state.h"

#include <string.h>

static const char *type_of_kind(enum bc_file_kind kind)
{
    switch (kind) {
    case BC_FILE_F32:
        return "F32";
    case BC_FILE_F16:
        return "F16";
    case BC_FILE_BF16:
        return "BF16";
    case BC_FILE_Q8_0:
        return "Q8_0";
    default:
        return BC_EXPECT_PACK;
    }
}

static const char *float_name(const char *option)
{
    static const char *const names[][2] = {
        {"f32", "F32"}, {"f16", "F16"}, {"bf16", "BF16"}, {"q8_0", "Q8_0"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], option) == 0) return names[i][1];
    return NULL;
}

/* Target llama.cpp: one-dimensional tensors and routers F32, everything else the file's type; next
 * to packs F16. */
static const char *type_llama_cpp(enum bc_role role, enum bc_file_kind kind)
{
    if (role != BC_ROLE_EMBED && role != BC_ROLE_OUTPUT && role != BC_ROLE_LINEAR) return "F32";
    return kind == BC_FILE_PACK ? "F16" : type_of_kind(kind);
}

/* Target bitnet, families of the embedding script: norms follow F16, nothing is kept in F32 but
 * what bfloat16 files cannot hold. */
static const char *type_embedding(enum bc_role role, enum bc_file_kind kind)
{
    if (role == BC_ROLE_EMBED || role == BC_ROLE_OUTPUT || role == BC_ROLE_LINEAR)
        return kind == BC_FILE_PACK ? "F16" : type_of_kind(kind);
    return kind == BC_FILE_F16 || kind == BC_FILE_PACK ? "F16" : "F32";
}

/* Target bitnet, BitNet and llama classes. */
static const char *type_causal(enum bc_role role, enum bc_file_kind kind)
{
    switch (role) {
    case BC_ROLE_EMBED:
    case BC_ROLE_ROUTER:
        return kind == BC_FILE_PACK ? "F16" : "F32";
    case BC_ROLE_OUTPUT:
    case BC_ROLE_LINEAR:
        return kind == BC_FILE_PACK ? "F16" : type_of_kind(kind);
    default:
        return "F32";
    }
}

const char *bc_expected_type(const struct bc_source_state *s, const struct bc_model *model,
                             const struct bc_weight *w)
{
    if (s->kind == BC_FILE_OTHER) return NULL;
    if (w->role == BC_ROLE_EMBED && s->conversion.embd_type != NULL)
        return float_name(s->conversion.embd_type);
    if (w->role == BC_ROLE_OUTPUT && s->conversion.output_type != NULL)
        return float_name(s->conversion.output_type);
    if (w->role == BC_ROLE_ROPE) return "F32";
    if (w->role == BC_ROLE_LINEAR && !w->keep) return type_of_kind(s->kind);
    if (model->target == BC_TARGET_LLAMA_CPP) return type_llama_cpp(w->role, s->kind);
    return model->arch->traits.embedding_family ? type_embedding(w->role, s->kind)
                                                : type_causal(w->role, s->kind);
}

bool bc_expects_ternary_values(const struct bc_source_state *s, const struct bc_weight *w)
{
    const struct bc_model *model = s->model;
    if (w->role != BC_ROLE_LINEAR || w->n_sources == 0) return false;
    if (w->sources[0].scale != NULL) return true; /* packed weights have no other values */
    if (w->keep) return false;
    if (s->weight_options.mode == BC_QUANT_BLOCK)
        return false;                         /* stored values, where blocks do not fit */
    if (s->kind == BC_FILE_PACK) return true; /* a misfit of the pack, as good as packed */
    return bc_weight_is_ternary_at_runtime(model, w);
}
