/* SPDX-License-Identifier: MIT
 * The frequencies of RoPE under the scalings that models use, and the angles of positions. */
#ifndef BC_ENGINE_ROTATION_H
#define BC_ENGINE_ROTATION_H

#include "model/hparams.h"

/* One set of frequencies: all layers' but for local ones of families with a second base. */
struct bc_rotation {
    uint32_t dims;      /* rotated dimensions of a head, even */
    float *frequencies; /* dims / 2, owned by who made the array */
    float magnitude;    /* cos and sin are multiplied by it (yarn, longrope); else 1 */
};

/* Fills frequencies (dims / 2 values) for the base theta without any scaling: theta^(-2i / dims),
 * float32 as transformers computes it. */
void bc_rotation_plain(uint32_t dims, float theta, float *frequencies);
/* Applies hp's scaling to plain frequencies of hp->rope_theta and sets the magnitude. `divisors`:
 * dims / 2 values that replace the scaling's own formula (rope_freqs of llama3, the factors of
 * longrope), or NULL. yarn: Peng et al. 2023; linear: Chen et al. 2023; longrope: Ding et al. 2024.
 */
void bc_rotation_scale(const struct bc_hparams *hp, const float *divisors,
                       struct bc_rotation *rotation);
/* cos and sin of position * frequency, times the magnitude: dims / 2 values each. */
void bc_rotation_angles(const struct bc_rotation *rotation, uint64_t position, float *cosines,
                        float *sines);

#endif
