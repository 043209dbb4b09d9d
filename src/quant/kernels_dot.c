/* SPDX-License-Identifier: MIT
 * The scalar dot products, which define every result. Integer products are exact, so only those of
 * floats have an order to keep. */
#include "quant/kernels_dot.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/kernels_rows.h"

/* ---- floats ---- */

enum { LANES = 16 };

float bc_scalar_dot_f32(const float *a, const float *b, size_t n)
{
    float s[LANES] = {0};
    for (size_t i = 0; i < n; i++)
        s[i % LANES] += a[i] * b[i];
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++)
            s[j] += s[j + half];
    }
    return s[0];
}

void bc_scalar_dots_f32(const struct bc_f32_dots *d)
{
    for (size_t v = 0; v < d->n_x; v++) {
        for (size_t r = 0; r < d->n_rows; r++)
            d->out[v * d->out_stride + r] =
                bc_scalar_dot_f32(d->w + r * d->w_stride, d->x + v * d->x_stride, d->n);
    }
}

void bc_scalar_axpy(float factor, const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

/* ---- activations ---- */

/* Adding 1.5 * 2^23 leaves no bits for a fraction: the sum is rounded half to even. Values that
 * this does not hold for are clipped first. */
static int8_t round_to_i8(float x)
{
    const float magic = 12582912.0f;
    if (!(x > -128.0f)) return (int8_t)(x <= -128.0f ? -128 : 0);
    if (x > 127.0f) return 127;
    const float rounded = (x + magic) - magic;
    return (int8_t)rounded;
}

float bc_scalar_quantize_i8(const float *src, size_t n, int8_t *dst)
{
    const float max = bc_f32_from_bits(bc_scalar_max_abs_bits(src, n));
    const float a = 127.0f / (max < 1e-5f ? 1e-5f : max);
    for (size_t i = 0; i < n; i++)
        dst[i] = round_to_i8(src[i] * a);
    return a;
}

/* ---- trits ---- */

static int32_t trit_dot(const uint8_t *trits, const int8_t *x, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int8_t)trits[i] * x[i];
    return sum;
}

void bc_scalar_trit_dots(const struct bc_i8_dots *d)
{
    for (size_t v = 0; v < d->n_x; v++) {
        for (size_t r = 0; r < d->n_rows; r++)
            d->out[v * d->out_stride + r] +=
                trit_dot(d->w + r * d->w_stride, d->x + v * d->x_stride, d->n);
    }
}
