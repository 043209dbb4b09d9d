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

static void add_to_lanes(const float *a, const float *b, size_t n, float s[LANES])
{
    for (size_t i = 0; i < n; i++)
        s[i % LANES] += a[i] * b[i];
}

static float fold_lanes(float s[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++)
            s[j] += s[j + half];
    }
    return s[0];
}

float bc_scalar_dot_f32(const float *a, const float *b, size_t n)
{
    float s[LANES] = {0};
    add_to_lanes(a, b, n, s);
    return fold_lanes(s);
}

void bc_scalar_dots_f32(const struct bc_f32_dots *d)
{
    for (size_t v = 0; v < d->n_x; v++) {
        for (size_t r = 0; r < d->n_rows; r++)
            d->out[v * d->out_stride + r] =
                bc_scalar_dot_f32(d->w + r * d->w_stride, d->x + v * d->x_stride, d->n);
    }
}

void bc_scalar_dots_f16(const uint8_t *w, const struct bc_f32_dots *d)
{
    enum { CHUNK = 16 * LANES };
    float row[CHUNK];
    for (size_t r = 0; r < d->n_rows; r++, w += 2 * d->w_stride) {
        for (size_t v = 0; v < d->n_x; v++) {
            const float *x = d->x + v * d->x_stride;
            float s[LANES] = {0};
            for (size_t at = 0; at < d->n; at += CHUNK) {
                const size_t n = d->n - at < CHUNK ? d->n - at : CHUNK;
                bc_scalar_widen_f16(w + 2 * at, n, row);
                add_to_lanes(row, x + at, n, s);
            }
            d->out[v * d->out_stride + r] = fold_lanes(s);
        }
    }
}

void bc_scalar_axpy(float factor, const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

void bc_scalar_sums_f32(const struct bc_f32_sums *s)
{
    for (size_t v = 0; v < s->n_sums; v++) {
        float *const out = s->out + v * s->out_stride;
        for (size_t c = 0; c < s->width; c++)
            out[c] = 0;
        for (size_t i = 0; i < s->n; i++)
            bc_scalar_axpy(s->f[v * s->f_stride + i], s->x + i * s->x_stride, s->width, out);
    }
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

float bc_activation_factor(uint32_t max_abs_bits)
{
    const float max = bc_f32_from_bits(max_abs_bits);
    return 127.0f / (max < 1e-5f ? 1e-5f : max);
}

void bc_scalar_activation_codes(const float *src, size_t n, float a, int8_t *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = round_to_i8(src[i] * a);
}

float bc_scalar_quantize_i8(const float *src, size_t n, int8_t *dst)
{
    const float a = bc_activation_factor(bc_scalar_max_abs_bits(src, n));
    bc_scalar_activation_codes(src, n, a, dst);
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

static int32_t plane_dot(const uint8_t *bytes, size_t n, size_t width, const int8_t *x)
{
    int32_t sum = 0;
    for (size_t b = 0; b < n / (4 * width); b++, bytes += width) {
        for (unsigned plane = 0; plane < 4; plane++, x += width) {
            for (size_t j = 0; j < width; j++)
                sum += ((bytes[j] >> (6 - 2 * plane) & 3) - 1) * x[j];
        }
    }
    return sum;
}

void bc_scalar_plane_dots(const struct bc_i8_dots *d, size_t width)
{
    for (size_t v = 0; v < d->n_x; v++) {
        for (size_t r = 0; r < d->n_rows; r++)
            d->out[v * d->out_stride + r] +=
                plane_dot(d->w + r * d->w_stride, d->n, width, d->x + v * d->x_stride);
    }
}

static int bit_at(const uint8_t *bits, uint64_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

uint64_t bc_scalar_bitcos_dot(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                              uint64_t n_signs, uint64_t rank, const int8_t *x, int32_t *dot)
{
    for (size_t i = 0; i < n; i++) {
        if (bit_at(bitmap, i) == 0) continue;
        if (rank < n_signs) *dot += bit_at(signs, rank) != 0 ? -x[i] : x[i];
        rank++;
    }
    return rank;
}

/* ---- blocks ---- */

enum { TQ1_0_BYTES = 54, TQ2_0_BYTES = 66, Q2_0_BYTES = 18, Q1_0_BYTES = 18 };

/* The sum of one of three groups of a TQ1_0 block: n_digits numbers from each of n_bytes bytes,
 * which are fractions of 256: times three, the integer part is the next digit. */
static int32_t tq1_0_group(const uint8_t *bytes, size_t n_bytes, size_t n_digits, const int8_t *x)
{
    int32_t sum = 0;
    for (size_t m = 0; m < n_bytes; m++) {
        unsigned fraction = bytes[m];
        for (size_t t = 0; t < n_digits; t++) {
            sum += (int)(3 * fraction >> 8) * x[t * n_bytes + m];
            fraction = 3 * fraction & 0xff;
        }
    }
    return sum;
}

void bc_scalar_tq1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots)
{
    for (size_t b = 0; b < n_blocks; b++, blocks += TQ1_0_BYTES, x += 256)
        dots[b] = tq1_0_group(blocks, 32, 5, x) + tq1_0_group(blocks + 32, 16, 5, x + 160) +
                  tq1_0_group(blocks + 48, 4, 4, x + 240);
}

void bc_scalar_tq2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots)
{
    for (size_t b = 0; b < n_blocks; b++, blocks += TQ2_0_BYTES, x += 256) {
        dots[b] = 0;
        for (size_t i = 0; i < 256; i++)
            dots[b] += (blocks[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) * x[i];
    }
}

void bc_scalar_q2_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots)
{
    for (size_t b = 0; b < n_blocks; b++, blocks += Q2_0_BYTES, x += 64) {
        dots[b] = 0;
        for (size_t i = 0; i < 64; i++)
            dots[b] += (blocks[2 + i / 4] >> i % 4 * 2 & 3) * x[i];
    }
}

void bc_scalar_q1_0_codes(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots)
{
    for (size_t b = 0; b < n_blocks; b++, blocks += Q1_0_BYTES, x += 128) {
        dots[b] = 0;
        for (size_t i = 0; i < 128; i++)
            dots[b] += 2 * bit_at(blocks + 2, i) * x[i];
    }
}

void bc_scalar_block_sums(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums)
{
    for (size_t b = 0; b < n_blocks; b++) {
        sums[b] = 0;
        for (size_t i = 0; i < block; i++)
            sums[b] += *x++;
    }
}
