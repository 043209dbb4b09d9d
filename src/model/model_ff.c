/* SPDX-License-Identifier: MIT
 * The width of the feed-forward block where the config states the number that it follows from. */
#include <math.h>

#include "model/model_internal.h"

/* A member that the rule needs; absent: the class's default, which published configs leave out. */
static double number_or(struct bc_loading *load, const char *key, double fallback)
{
    const struct bc_json *node = bc_config_get(load->ckpt, key);
    double value = fallback;
    if (node != NULL && (!bc_json_f64(node, &value) || !isfinite(value) || value <= 0)) {
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: wanted a positive number",
                   load->config_path, key);
        return fallback;
    }
    return value;
}

/* transformers' Lfm2MLP: two thirds, times the multiplier, rounded up to a multiple; each step
 * rounds down to an integer. A multiplier of null skips the last two. */
static void two_thirds(struct bc_loading *load)
{
    static const char multiplier_key[] = "block_ffn_dim_multiplier";
    struct bc_hparams *hp = &load->model->hp;
    const struct bc_json *flag = bc_config_get(load->ckpt, "block_auto_adjust_ff_dim");
    const struct bc_json *stated = bc_json_get(load->ckpt->text, multiplier_key);
    const double multiplier = number_or(load, multiplier_key, 1);
    const double multiple = floor(number_or(load, "block_multiple_of", 256));
    bool adjust = true;
    if (flag != NULL && !bc_json_bool(flag, &adjust))
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: block_auto_adjust_ff_dim: wanted true or false", load->config_path);
    if (!adjust || hp->n_ff == 0) return;
    double width = floor(2 * (double)hp->n_ff / 3);
    if (!bc_json_is(stated, BC_JSON_NULL)) {
        width = floor(multiplier * width);
        if (multiple >= 1) width = multiple * ceil(width / multiple);
    }
    if (width < 1 || width > UINT32_MAX)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: block_ff_dim %u with %s %g and block_multiple_of %g gives no width of a "
                   "feed-forward block",
                   load->config_path, (unsigned)hp->n_ff, multiplier_key, multiplier, multiple);
    else
        hp->n_ff = (uint32_t)width;
}

void bc_model_adjust_ff(struct bc_loading *load)
{
    switch (load->model->arch->traits.ff_rule) {
    case BC_FF_STATED:
        break;
    case BC_FF_TWO_THIRDS:
        two_thirds(load);
        break;
    }
}
