/* SPDX-License-Identifier: MIT
 * The operations between matrix products, on rows of float32. Every sum runs in a fixed order, so
 * that a result depends neither on threads nor on how many tokens are computed at once. exp, tanh,
 * erf, sin and cos are the C library's: the same wherever the same library runs. */
#ifndef BC_ENGINE_OPS_H
#define BC_ENGINE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y = x * rsqrt(mean(x^2) + eps) * w (Zhang and Sennrich 2019). y may be x. */
void bc_rms_norm(const float *x, const float *w, float eps, size_t n, float *y);
/* y = (x - mean) / sqrt(variance + eps) * w + b (Ba et al. 2016); b may be NULL. y may be x. */
void bc_layer_norm(const float *x, const float *w, const float *b, float eps, size_t n, float *y);
/* Softmax of n > 0 scores in place: exp(x - max), summed in ascending order in double, divided by
 * the sum rounded to float32. */
void bc_softmax(float *x, size_t n);
/* y += x */
void bc_add(float *y, const float *x, size_t n);

/* An activation function by its name in a config (hidden_act). */
struct bc_activation {
    const char *name;
    /* gate[i] = f(gate[i]) for i in [0, n) */
    void (*apply)(float *gate, size_t n);
};
/* NULL: unknown. */
const struct bc_activation *bc_activation_find(const char *name);

/* Rotates `dims` values of one head in place (RoPE, Su et al. 2021). cos and sin have dims / 2
 * values. neighbours: pairs (x[2i], x[2i+1]), else halves (x[i], x[i + dims/2]). */
void bc_rotate(float *x, const float *cosines, const float *sines, uint32_t dims, bool neighbours);

/* Index of the first NaN or infinity among n values; n when there is none. */
size_t bc_find_nonfinite(const float *x, size_t n);

#endif
