/* SPDX-License-Identifier: MIT
 * The computation of a model: its tensors bound to the places where they are used. There is one
 * graph for all families; which of its optional parts a model has follows from the tensors that its
 * family's table names and from those that are there. */
#ifndef BC_ENGINE_GRAPH_H
#define BC_ENGINE_GRAPH_H

#include "engine/ops.h"
#include "engine/product.h"
#include "engine/rotation.h"

/* RMSNorm or LayerNorm (hp.layer_norm). weight NULL: there is none. */
struct bc_norm {
    float *weight;
    float *bias; /* or NULL */
    uint64_t n;
};

/* One layer, in the order of computation:
 *   y = mixer(attn_norm(x)); x = attn_out_norm(x + post_attn_norm(y));
 *   y = ffn(ffn_norm(x));    x = layer_out_norm(x + post_ffn_norm(y));
 * norms that are absent do nothing. The mixer is attention, or a short convolution where `conv` is
 * there; the feed-forward block is dense, or a mixture of experts where `router` is there. */
struct bc_layer {
    bool local; /* attends within the sliding window only */
    struct bc_norm attn_norm, post_attn_norm, attn_out_norm;
    struct bc_norm q_norm, k_norm; /* per head, before the rotation */
    struct bc_norm attn_sub_norm;  /* before o */
    struct bc_linear q, k, v, qkv, o;
    struct bc_linear conv_in, conv_out;
    float *conv; /* n_embd filters of hp.conv_l_cache taps */
    struct bc_norm ffn_norm, post_ffn_norm, layer_out_norm;
    struct bc_norm ffn_sub_norm;     /* before down */
    struct bc_linear gate, up, down; /* of dense layers; without gate: down(act(up)) */
    bool fused_gate;                 /* up holds the rows of gate, then its own */
    struct bc_linear router;
    struct bc_linear gate_experts, up_experts, down_experts;
};

struct bc_graph {
    const struct bc_arch *arch;
    struct bc_hparams hp; /* strings and arrays borrow from the caller's */
    struct bc_provider *provider;
    struct bc_tensor embedding;
    float embedding_scale;
    float *positions;  /* n_positions rows of n_embd learned positions, or NULL */
    float *token_type; /* row 0 of token_types, or NULL */
    uint64_t n_positions;
    struct bc_norm embedding_norm, final_norm;
    struct bc_linear output; /* of tied models the embedding */
    const struct bc_activation *act;
    struct bc_layer *layers; /* hp.n_layers */
    /* Does any layer have ...? Buffers of what no tensor confirms the sizes of are not made. */
    bool has_attention, has_fused_qkv, has_conv, has_experts;
    /* rotation: dims 0 when there is none. long_rotation: what longrope has instead in contexts
     * beyond hp.rope_orig_ctx; dims 0 otherwise. local_rotation: of local layers (dims 0: as the
     * others). */
    struct bc_rotation rotation, long_rotation, local_rotation;
    bool neighbours;   /* pairs are (2i, 2i+1): rows of q and k are permuted so (llama files) */
    float attn_scale;  /* of the scores */
    uint64_t max_cols; /* the widest input of a product */
    struct bc_arena arena;
};

/* Looks up and checks every tensor of the graph. `provider`, and what hp points to, are borrowed.
 * Refused, naming the tensor: one that the family's table requires and that is missing, one of
 * another shape; and an activation that bitconv does not compute. Tensors that nothing uses are said
 * through the sink. Vectors (norms, biases) are read into memory, matrices stay where they are. */
enum bitconv_status bc_graph_build(struct bc_provider *provider, const struct bc_arch *arch,
                                   const struct bc_hparams *hp, const struct bitconv_sink *sink,
                                   struct bc_graph **out, struct bitconv_error *err);
void bc_graph_free(struct bc_graph *graph); /* NULL is fine */

/* Does the layer have this one? */
static inline bool bc_linear_is(const struct bc_linear *l)
{
    return l->w.provider != NULL;
}

/* y = norm(x) for n_rows rows of norm->n values; copies when the norm is absent (then n_values are
 * the row's). y may be x. */
void bc_norm_apply(const struct bc_graph *g, const struct bc_norm *norm, const float *x,
                   size_t n_rows, float *y);

#endif
