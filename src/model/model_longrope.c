/* SPDX-License-Identifier: MIT
 * LongRoPE's lists of frequency divisors and its attention factor (Ding et al. 2024; the formula of
 * the factor is that of transformers and of llama.cpp's converter). */
#include <math.h>

#include "model/model_internal.h"

/* A list of rope_dims / 2 positive numbers as float32; NULL and a finding when it is none. */
static enum bitconv_status read_list(struct bc_loading *load, const struct bc_json *list,
                                     const float **out, struct bitconv_error *err)
{
    const uint32_t n = load->model->hp.rope_dims / 2;
    uint32_t i = 0;
    *out = NULL;
    if (list == NULL) return BITCONV_OK; /* a finding already */
    if (!bc_json_is(list, BC_JSON_ARRAY) || bc_json_size(list) != n) {
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: rope_scaling.%s: wanted a list of %u numbers, half the rotated dimensions "
                   "of a head",
                   load->config_path, bc_json_key(list), (unsigned)n);
        return BITCONV_OK;
    }
    /* as long as the config's own list */
    float *values = bc_arena_alloc(&load->model->arena, n, sizeof *values);
    if (values == NULL) return bc_fail_nomem(err, "rope factors");
    for (const struct bc_json *node = bc_json_first(list); node != NULL;
         node = bc_json_next(node), i++) {
        double value = 0;
        if (bc_json_f64(node, &value)) values[i] = (float)value;
        if (isfinite(values[i]) && values[i] > 0) continue;
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: rope_scaling.%s[%u]: wanted a positive number", load->config_path,
                   bc_json_key(list), (unsigned)i);
        return BITCONV_OK;
    }
    *out = values;
    return BITCONV_OK;
}

float bc_rope_attention_factor(uint32_t n_ctx, uint32_t orig_ctx)
{
    const double scale = (double)n_ctx / (double)orig_ctx;
    return scale > 1 ? (float)sqrt(1 + log(scale) / log((double)orig_ctx)) : 1;
}

enum bitconv_status bc_model_read_longrope(struct bc_loading *load, const struct bc_json *long_list,
                                           const struct bc_json *short_list,
                                           double attention_factor, struct bitconv_error *err)
{
    struct bc_hparams *hp = &load->model->hp;
    BC_TRY(read_list(load, long_list, &hp->rope_long_factors, err));
    BC_TRY(read_list(load, short_list, &hp->rope_short_factors, err));
    hp->rope_attn_factor = attention_factor > 0
                               ? (float)attention_factor
                               : bc_rope_attention_factor(hp->n_ctx, hp->rope_orig_ctx);
    return BITCONV_OK;
}
