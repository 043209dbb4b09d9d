/* SPDX-License-Identifier: MIT
 * Norms, softmax, activations, rotations. */
#include "engine/ops.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

static double fold(const double lanes[LANES])
{
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* Sum of squares in 8 lanes of double, element i in lane i % 8, the lanes added pairwise. */
static double sum_squares(const float *x, size_t n)
{
    double lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; i + j < n; j++)
        lanes[j] += (double)x[i + j] * (double)x[i + j];
    return fold(lanes);
}

static double sum(const float *x, size_t n)
{
    double lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] += (double)x[i + j];
    for (size_t j = 0; i + j < n; j++)
        lanes[j] += (double)x[i + j];
    return fold(lanes);
}

void bc_rms_norm(const float *x, const float *w, float eps, size_t n, float *y)
{
    const float mean = (float)(sum_squares(x, n) / (double)n);
    const float factor = 1.0f / sqrtf(mean + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor * w[i];
}

void bc_layer_norm(const float *x, const float *w, const float *b, float eps, size_t n, float *y)
{
    const float mean = (float)(sum(x, n) / (double)n);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
    const float variance = (float)(sum_squares(y, n) / (double)n);
    const float factor = 1.0f / sqrtf(variance + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] * factor * w[i] + (b != NULL ? b[i] : 0.0f);
}

void bc_softmax(float *x, size_t n)
{
    float max = x[0];
    double total = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > max) max = x[i];
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(x[i] - max);
        total += (double)x[i];
    }
    const float sum_of_all = (float)total;
    for (size_t i = 0; i < n; i++)
        x[i] /= sum_of_all;
}

void bc_add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void silu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] / (1.0f + expf(-x[i]));
}

/* NaN stays. */
static float positive(float x)
{
    return x <= 0.0f ? 0.0f : x;
}

static void relu(float *x, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            x[i + j] = positive(x[i + j]);
    for (; i < n; i++)
        x[i] = positive(x[i]);
}

/* relu(x)^2 (So et al. 2021, Primer) */
static void relu2(float *x, size_t n)
{
    relu(x, n);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            x[i + j] *= x[i + j];
    for (; i < n; i++)
        x[i] *= x[i];
}

/* x * Phi(x) (Hendrycks and Gimpel 2016) */
static void gelu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}

/* its approximation by tanh, ibid. */
static void gelu_tanh(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float inner = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        x[i] = 0.5f * x[i] * (1.0f + tanhf(inner));
    }
}

static const struct bc_activation activations[] = {
    {"silu", silu},         {"swish", silu}, {"relu", relu},
    {"relu2", relu2},       {"gelu", gelu},  {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_new", gelu_tanh}};

const struct bc_activation *bc_activation_find(const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (name != NULL && strcmp(activations[i].name, name) == 0) return &activations[i];
    return NULL;
}

void bc_rotate(float *x, const float *cosines, const float *sines, uint32_t dims, bool neighbours)
{
    const uint32_t half = dims / 2;
    for (uint32_t i = 0; i < half; i++) {
        float *a = neighbours ? &x[2 * i] : &x[i];
        float *b = neighbours ? &x[2 * i + 1] : &x[i + half];
        const float first = *a * cosines[i] - *b * sines[i];
        const float second = *b * cosines[i] + *a * sines[i];
        *a = first;
        *b = second;
    }
}

size_t bc_find_nonfinite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return i;
    return n;
}
