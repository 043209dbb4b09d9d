/* SPDX-License-Identifier: MIT
 * LFM2's gated short convolution (Liquid AI, transformers' Lfm2ShortConv): in_proj gives B, C and x;
 * B * x runs through a causal filter of l_cache taps per channel; C times that goes to out_proj. */
#include <string.h>

#include "engine/session.h"

struct convolving {
    const struct bitconv_session *s;
    const float *filters; /* [n_embd][taps] */
    float *state;         /* [taps - 1][n_embd]: B * x of the tokens before the batch */
    float *out;
};

/* One channel over all tokens of the batch; B * x takes x's place. */
static void convolve_channel(void *ctx, size_t channel, unsigned worker)
{
    const struct convolving *c = ctx;
    const size_t d = c->s->g->hp.n_embd, taps = c->s->g->hp.conv_l_cache;
    const size_t n = (size_t)c->s->n_new;
    const float *filter = c->filters + channel * taps;
    float *rows = c->s->fused;
    (void)worker;
    for (size_t t = 0; t < n; t++) {
        float *row = rows + t * 3 * d + channel;
        row[2 * d] *= row[0];
        float sum = 0.0f;
        for (size_t j = 0; j < taps; j++) {
            const size_t back = taps - 1 - j; /* tokens before this one */
            const float value = back <= t ? rows[(t - back) * 3 * d + channel + 2 * d]
                                          : c->state[(t + j) * d + channel];
            sum += filter[j] * value;
        }
        c->out[t * d + channel] = row[d] * sum;
    }
    for (size_t j = 0; j + 1 < taps; j++) { /* the last taps - 1 inputs, oldest first */
        const size_t at = n + j;            /* among state, then batch */
        c->state[j * d + channel] = at < taps - 1
                                        ? c->state[at * d + channel]
                                        : rows[(at - (taps - 1)) * 3 * d + channel + 2 * d];
    }
}

enum bitconv_status bc_short_convolution(struct bitconv_session *s, uint32_t layer, const float *h,
                                         float *y, struct bitconv_error *err)
{
    const struct bc_layer *l = &s->g->layers[layer];
    const size_t d = s->g->hp.n_embd, n = (size_t)s->n_new;
    const struct bc_product in = {&l->conv_in, 0, h, s->fused};
    BC_TRY(bc_products(&s->compute, &in, 1, n, err));
    BC_TRY(bc_session_note(s, layer, "shortconv.in_proj", s->fused, n, 3 * d, err));
    struct convolving c = {.s = s, .filters = l->conv, .out = s->heads};
    c.state = s->conv_state + (size_t)layer * (s->g->hp.conv_l_cache - 1) * d;
    bc_pool_run(s->engine->pool, d, convolve_channel, &c);
    BC_TRY(bc_session_note(s, layer, "shortconv.conv", s->heads, n, d, err));
    const struct bc_product out = {&l->conv_out, 0, s->heads, y};
    BC_TRY(bc_products(&s->compute, &out, 1, n, err));
    return bc_session_note(s, layer, "shortconv.out_proj", y, n, d, err);
}
