/* SPDX-License-Identifier: MIT
 * RoPE frequencies: linear, llama3 and longrope divide them, yarn mixes two sets. */
#include "engine/rotation.h"

#include <math.h>

static const double two_pi = 2.0 * 3.14159265358979323846;

void bc_rotation_plain(uint32_t dims, float theta, float *frequencies)
{
    for (uint32_t i = 0; i < dims / 2; i++) {
        const float exponent = (float)(2 * i) / (float)dims;
        frequencies[i] = 1.0f / (float)pow((double)theta, (double)exponent);
    }
}

/* The (fractional) dimension that turns `rotations` times within the original context. */
static double yarn_dimension(const struct bc_hparams *hp, double rotations)
{
    return (double)hp->rope_dims * log((double)hp->rope_orig_ctx / (rotations * two_pi)) /
           (2.0 * log((double)hp->rope_theta));
}

static void scale_yarn(const struct bc_hparams *hp, struct bc_rotation *rotation)
{
    const double fast = hp->rope_beta_fast > 0 ? (double)hp->rope_beta_fast : 32.0;
    const double slow = hp->rope_beta_slow > 0 ? (double)hp->rope_beta_slow : 1.0;
    double low = floor(yarn_dimension(hp, fast));
    double high = ceil(yarn_dimension(hp, slow));
    if (low < 0) low = 0;
    if (high > (double)hp->rope_dims - 1) high = (double)hp->rope_dims - 1;
    if (low == high) high += 0.001;
    for (uint32_t i = 0; i < rotation->dims / 2; i++) {
        double ramp = ((double)i - low) / (high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        const float kept = 1.0f - (float)ramp;
        const float plain = rotation->frequencies[i];
        rotation->frequencies[i] = plain / hp->rope_factor * (1.0f - kept) + plain * kept;
    }
    rotation->magnitude = 1.0f;
    if (hp->rope_attn_factor > 0)
        rotation->magnitude = hp->rope_attn_factor;
    else if (hp->rope_factor > 1)
        rotation->magnitude = (float)(0.1 * log((double)hp->rope_factor) + 1.0);
}

void bc_rotation_scale(const struct bc_hparams *hp, const float *divisors,
                       struct bc_rotation *rotation)
{
    rotation->magnitude = 1.0f;
    for (uint32_t i = 0; i < rotation->dims / 2; i++) {
        if (divisors != NULL) rotation->frequencies[i] /= divisors[i];
        if (hp->rope_scaling == BC_ROPE_LINEAR) rotation->frequencies[i] /= hp->rope_factor;
    }
    if (hp->rope_scaling == BC_ROPE_YARN) scale_yarn(hp, rotation);
    if (hp->rope_scaling == BC_ROPE_LONGROPE && hp->rope_attn_factor > 0)
        rotation->magnitude = hp->rope_attn_factor;
}

void bc_rotation_angles(const struct bc_rotation *rotation, uint64_t position, float *cosines,
                        float *sines)
{
    for (uint32_t i = 0; i < rotation->dims / 2; i++) {
        const float angle = (float)position * rotation->frequencies[i];
        cosines[i] = cosf(angle) * rotation->magnitude;
        sines[i] = sinf(angle) * rotation->magnitude;
    }
}
