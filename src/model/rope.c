/* SPDX-License-Identifier: MIT
 * Llama 3's RoPE scaling as frequency divisors: long wavelengths are divided by `factor`, short
 * ones kept, those between interpolated (Llama 3.1; transformers' modeling_rope_utils). */
#include <math.h>

#include "model/model_internal.h"

/* float32 at every step, as the reference computes; only the power goes through double, which gives
 * the correctly rounded float32 and does not depend on the C library. */
void bc_rope_llama3_factors(const struct bc_hparams *hp, float *out)
{
    const float two_pi = (float)(2.0 * 3.14159265358979323846);
    const float orig = (float)hp->rope_orig_ctx;
    const float low = hp->rope_low_freq_factor, high = hp->rope_high_freq_factor;
    const float low_wavelength = orig / low, high_wavelength = orig / high;
    for (uint32_t i = 0; i < hp->rope_dims / 2; i++) {
        const float exponent = (float)(2 * i) / (float)hp->rope_dims;
        const float frequency = 1.0f / (float)pow((double)hp->rope_theta, (double)exponent);
        const float wavelength = two_pi / frequency;
        if (wavelength < high_wavelength) {
            out[i] = 1.0f;
        } else if (wavelength > low_wavelength) {
            out[i] = hp->rope_factor;
        } else {
            const float ratio = orig / wavelength;
            const float smooth = (ratio - low) / (high - low);
            const float kept = (1.0f - smooth) / hp->rope_factor;
            const float divisor = kept + smooth;
            out[i] = 1.0f / divisor;
        }
    }
}
