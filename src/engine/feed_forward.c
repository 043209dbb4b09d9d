/* SPDX-License-Identifier: MIT
 * Feed-forward blocks: gated (SwiGLU, Shazeer 2020, and its kin) or not, dense or a mixture of
 * experts as in Mixtral (Jiang et al. 2024). */
#include <string.h>

#include "engine/session.h"

/* act(gate) * up for the rows of a batch, into gate. */
struct gating {
    const struct bitconv_session *s;
    const struct bc_layer *layer;
    size_t n_ff;
};

static void gate_token(void *ctx, size_t t, unsigned worker)
{
    const struct gating *job = ctx;
    const struct bitconv_session *s = job->s;
    const size_t n = job->n_ff;
    const bool fused = job->layer->fused_gate;
    float *gate = s->gate + t * n;
    const float *up = s->up + t * n * (fused ? 2 : 1);
    (void)worker;
    if (fused) {
        memcpy(gate, up, n * sizeof *gate);
        up += n;
    }
    s->g->act->apply(gate, n);
    for (size_t i = 0; i < n; i++)
        gate[i] *= up[i];
}

/* Blocks without a gate: act(up). */
static void activate_token(void *ctx, size_t t, unsigned worker)
{
    const struct gating *job = ctx;
    (void)worker;
    job->s->g->act->apply(job->s->gate + t * job->n_ff, job->n_ff);
}

static enum bitconv_status dense(struct bitconv_session *s, uint32_t layer, const float *h,
                                 float *y, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t n = (size_t)s->n_new, n_ff = s->g->hp.n_ff;
    struct gating job = {s, l, n_ff};
    const bool gated = l->fused_gate || bc_linear_is(&l->gate);
    const struct bc_product both[] = {{&l->up, 0, h, gated ? s->up : s->gate},
                                      {&l->gate, 0, h, s->gate}};
    BC_TRY(bc_products(&s->compute, both, bc_linear_is(&l->gate) ? 2 : 1, n, err));
    if (bc_linear_is(&l->gate))
        BC_TRY(bc_session_note(s, layer, "ffn_gate", s->gate, n, n_ff, err));
    BC_TRY(bc_session_note(s, layer, "ffn_up", both[0].y, n, (size_t)l->up.w.rows, err));
    bc_for_tokens(s, gated ? gate_token : activate_token, &job);
    BC_TRY(bc_session_note(s, layer, "ffn_gated", s->gate, n, n_ff, err));
    bc_session_norm(s, &l->ffn_sub_norm, 1, s->gate, s->gate);
    BC_TRY(bc_session_note(s, layer, "ffn_act", s->gate, n, n_ff, err));
    const struct bc_product down = {&l->down, 0, s->gate, y};
    BC_TRY(bc_products(&s->compute, &down, 1, n, err));
    return bc_session_note(s, layer, "ffn_down", y, n, s->g->hp.n_embd, err);
}

/* ---- sparse: some neurons of a gated block ---- */

/* gate holds zeros where a neuron is not active, so the product with down is that over the active
 * ones: rows of down lie one behind the other in every pack, so reading them whole costs no more than
 * picking columns, and with all neurons active the result is the dense one to the bit. */
static enum bitconv_status sparse_token(struct bitconv_session *s, uint32_t layer, const float *x,
                                        float *gate, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t n_ff = s->g->hp.n_ff;
    const struct bc_linear *gate_rows = l->fused_gate ? &l->up : &l->gate;
    const size_t first_up = l->fused_gate ? n_ff : 0;
    const size_t n = s->engine->select(s->engine->select_user, layer, x, s->neurons);
    if (n > n_ff || (n > 0 && s->neurons[n - 1] >= n_ff))
        return bc_fail(err, BITCONV_E_BUG, "blk.%u: more neurons were selected than there are",
                       (unsigned)layer);
    memset(gate, 0, n_ff * sizeof *gate);
    if (n == 0) return BITCONV_OK;
    float *up = s->up + n_ff;
    BC_TRY(bc_product_rows(&s->compute, gate_rows, 0, s->neurons, n, x, s->up, err));
    s->g->act->apply(s->up, n);
    BC_TRY(bc_product_rows(&s->compute, &l->up, first_up, s->neurons, n, x, up, err));
    for (size_t i = 0; i < n; i++)
        gate[s->neurons[i]] = s->up[i] * up[i];
    return BITCONV_OK;
}

static enum bitconv_status sparse(struct bitconv_session *s, uint32_t layer, const float *h,
                                  float *y, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t n = (size_t)s->n_new, n_ff = s->g->hp.n_ff, d = s->g->hp.n_embd;
    for (size_t t = 0; t < n; t++)
        BC_TRY(sparse_token(s, layer, h + t * d, s->gate + t * n_ff, err));
    BC_TRY(bc_session_note(s, layer, "ffn_gated", s->gate, n, n_ff, err));
    bc_session_norm(s, &l->ffn_sub_norm, 1, s->gate, s->gate);
    BC_TRY(bc_session_note(s, layer, "ffn_act", s->gate, n, n_ff, err));
    const struct bc_product down = {&l->down, 0, s->gate, y};
    BC_TRY(bc_products(&s->compute, &down, 1, n, err));
    return bc_session_note(s, layer, "ffn_down", y, n, d, err);
}

/* ---- mixture of experts ---- */

/* Leaves the share of each expert among those chosen for a token, 0 for the others: softmax over
 * all, the n_used largest (of equal ones the first), divided by their sum. */
static void choose_experts(void *ctx, size_t t, unsigned worker)
{
    const struct bitconv_session *s = ctx;
    const uint32_t n = s->g->hp.n_expert;
    float *shares = s->router + t * n;
    float *chosen = s->router + (s->room + t) * n;
    float total = 0.0f;
    (void)worker;
    bc_softmax(shares, n);
    memset(chosen, 0, n * sizeof *chosen);
    for (uint32_t k = 0; k < s->g->hp.n_expert_used; k++) {
        uint32_t best = 0;
        for (uint32_t e = 1; e < n; e++)
            if (shares[e] > shares[best]) best = e;
        chosen[best] = shares[best];
        total += shares[best];
        shares[best] = -1.0f;
    }
    for (uint32_t e = 0; e < n; e++)
        shares[e] = chosen[e] / total;
}

/* One expert for the tokens that chose it. */
static enum bitconv_status run_expert(struct bitconv_session *s, uint32_t layer, uint32_t expert,
                                      const float *h, float *y, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t d = s->g->hp.n_embd, n_ff = s->g->hp.n_ff;
    const uint32_t n_expert = s->g->hp.n_expert;
    size_t n = 0;
    for (size_t t = 0; t < s->n_new; t++)
        if (s->router[t * n_expert + expert] != 0) /* NaN counts: it must come out */
            memcpy(s->gathered + n++ * d, h + t * d, d * sizeof *h);
    if (n == 0) return BITCONV_OK;
    if (s->engine->expert_ran != NULL)
        s->engine->expert_ran[(size_t)layer * n_expert + expert] = true;
    const struct bc_product both[] = {{&l->gate_experts, expert, s->gathered, s->gate},
                                      {&l->up_experts, expert, s->gathered, s->up}};
    BC_TRY(bc_products(&s->compute, both, 2, n, err));
    s->g->act->apply(s->gate, n * n_ff);
    for (size_t i = 0; i < n * n_ff; i++)
        s->gate[i] *= s->up[i];
    const struct bc_product down = {&l->down_experts, expert, s->gate, s->part};
    BC_TRY(bc_products(&s->compute, &down, 1, n, err));
    n = 0;
    for (size_t t = 0; t < s->n_new; t++) {
        const float share = s->router[t * n_expert + expert];
        if (share != 0) s->engine->kernels->axpy(share, s->part + n++ * d, d, y + t * d);
    }
    return BITCONV_OK;
}

/* Experts in ascending order, so that a token's sum does not depend on the batch it is in. */
static enum bitconv_status mixture(struct bitconv_session *s, uint32_t layer, const float *h,
                                   float *y, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t n = (size_t)s->n_new, d = s->g->hp.n_embd;
    const struct bc_product router = {&l->router, 0, h, s->router};
    BC_TRY(bc_products(&s->compute, &router, 1, n, err));
    BC_TRY(bc_session_note(s, layer, "ffn_gate_inp", s->router, n, s->g->hp.n_expert, err));
    bc_for_tokens(s, choose_experts, s);
    memset(y, 0, n * d * sizeof *y);
    for (uint32_t e = 0; e < s->g->hp.n_expert; e++)
        BC_TRY(run_expert(s, layer, e, h, y, err));
    return bc_session_note(s, layer, "ffn_experts", y, n, d, err);
}

enum bitconv_status bc_feed_forward(struct bitconv_session *s, uint32_t layer, const float *h,
                                    float *y, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    BC_TRY(bc_session_note(s, layer, "ffn_in", h, (size_t)s->n_new, s->g->hp.n_embd, err));
    if (bc_linear_is(&l->router)) return mixture(s, layer, h, y, err);
    if (s->engine->select != NULL && (l->fused_gate || bc_linear_is(&l->gate)))
        return sparse(s, layer, h, y, err);
    return dense(s, layer, h, y, err);
}
