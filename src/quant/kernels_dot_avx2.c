/* SPDX-License-Identifier: MIT
 * Dot products for x86-64 with AVX2: floats, activations, trits and the planes of I2_S.
 *
 * Integers: codes (trit + 1, unsigned) times activations (signed) is what one instruction adds in
 * pairs to 16 bits; the sum of the activations, once per vector, takes the offset out again. A pair
 * is at most 3 * 128 * 2 = 768 in magnitude, so 42 of them fit; FLUSH go to 32 bits together. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "quant/kernels_dot.h"
#include "quant/kernels_dot_avx2.h"

/* ---- floats ---- */

/* The 16 partial sums: number j in lane j of the first eight or lane j - 8 of the others. */
struct lanes {
    __m256 low, high;
};

AVX2_DOT static inline struct lanes no_lanes(void)
{
    return (struct lanes){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

AVX2_DOT static inline struct lanes add_products(struct lanes s, struct lanes w, struct lanes x)
{
    s.low = _mm256_add_ps(s.low, _mm256_mul_ps(w.low, x.low));
    s.high = _mm256_add_ps(s.high, _mm256_mul_ps(w.high, x.high));
    return s;
}

AVX2_DOT static inline struct lanes load_lanes(const float *p)
{
    return (struct lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

/* Missing values are +0: partial sums are never -0, so that adding their products changes none. */
AVX2_DOT static inline struct lanes load_rest(const float *p, size_t n)
{
    float padded[16] = {0};
    memcpy(padded, p, n * sizeof *p);
    return load_lanes(padded);
}

AVX2_DOT static inline float fold(struct lanes s)
{
    const __m256 eight = _mm256_add_ps(s.low, s.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

AVX2_DOT float bc_avx2_dot_f32(const float *a, const float *b, size_t n)
{
    struct lanes s = no_lanes();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        s = add_products(s, load_lanes(a + i), load_lanes(b + i));
    if (i < n) s = add_products(s, load_rest(a + i, n - i), load_rest(b + i, n - i));
    return fold(s);
}

/* Two rows with two vectors: each load serves two products. */
AVX2_DOT static void dots_2x2(const struct bc_f32_dots *d, const float *w, const float *x,
                              float *out)
{
    const float *const w1 = w + d->w_stride, *const x1 = x + d->x_stride;
    struct lanes s00 = no_lanes(), s01 = s00, s10 = s00, s11 = s00;
    size_t i = 0;
    for (; i + 16 <= d->n; i += 16) {
        const struct lanes a = load_lanes(w + i), b = load_lanes(w1 + i);
        const struct lanes p = load_lanes(x + i), q = load_lanes(x1 + i);
        s00 = add_products(s00, a, p);
        s01 = add_products(s01, a, q);
        s10 = add_products(s10, b, p);
        s11 = add_products(s11, b, q);
    }
    if (i < d->n) {
        const size_t rest = d->n - i;
        const struct lanes a = load_rest(w + i, rest), b = load_rest(w1 + i, rest);
        const struct lanes p = load_rest(x + i, rest), q = load_rest(x1 + i, rest);
        s00 = add_products(s00, a, p);
        s01 = add_products(s01, a, q);
        s10 = add_products(s10, b, p);
        s11 = add_products(s11, b, q);
    }
    out[0] = fold(s00);
    out[1] = fold(s10);
    out[d->out_stride] = fold(s01);
    out[d->out_stride + 1] = fold(s11);
}

AVX2_DOT void bc_avx2_dots_f32(const struct bc_f32_dots *d)
{
    for (size_t r = 0; r < d->n_rows; r += 2) {
        const float *w = d->w + r * d->w_stride;
        for (size_t v = 0; v < d->n_x; v += 2) {
            const float *x = d->x + v * d->x_stride;
            float *out = d->out + v * d->out_stride + r;
            if (r + 1 < d->n_rows && v + 1 < d->n_x) {
                dots_2x2(d, w, x, out);
                continue;
            }
            out[0] = bc_avx2_dot_f32(w, x, d->n);
            if (r + 1 < d->n_rows) out[1] = bc_avx2_dot_f32(w + d->w_stride, x, d->n);
            if (v + 1 < d->n_x) out[d->out_stride] = bc_avx2_dot_f32(w, x + d->x_stride, d->n);
        }
    }
}

/* Sixteen float16 widened. */
AVX2_DOT static inline struct lanes widen_lanes(const uint8_t *p)
{
    return (struct lanes){_mm256_cvtph_ps(bc_load_16(p)), _mm256_cvtph_ps(bc_load_16(p + 16))};
}

AVX2_DOT static inline struct lanes widen_rest(const uint8_t *p, size_t n)
{
    uint8_t padded[32] = {0};
    memcpy(padded, p, 2 * n);
    return widen_lanes(padded);
}

/* Four rows with one vector: a load of the vector serves all. */
AVX2_DOT static void dots_f16_4(const uint8_t *const w[4], const float *x, size_t n, float out[4])
{
    struct lanes s0 = no_lanes(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const struct lanes p = load_lanes(x + i);
        s0 = add_products(s0, widen_lanes(w[0] + 2 * i), p);
        s1 = add_products(s1, widen_lanes(w[1] + 2 * i), p);
        s2 = add_products(s2, widen_lanes(w[2] + 2 * i), p);
        s3 = add_products(s3, widen_lanes(w[3] + 2 * i), p);
    }
    if (i < n) {
        const struct lanes p = load_rest(x + i, n - i);
        s0 = add_products(s0, widen_rest(w[0] + 2 * i, n - i), p);
        s1 = add_products(s1, widen_rest(w[1] + 2 * i, n - i), p);
        s2 = add_products(s2, widen_rest(w[2] + 2 * i, n - i), p);
        s3 = add_products(s3, widen_rest(w[3] + 2 * i, n - i), p);
    }
    out[0] = fold(s0);
    out[1] = fold(s1);
    out[2] = fold(s2);
    out[3] = fold(s3);
}

/* Rows r, r + step, r + 2 * step and r + 3 * step with every vector. */
AVX2_DOT static void dots_f16_rows(const uint8_t *w, const struct bc_f32_dots *d, size_t r,
                                   size_t step)
{
    const uint8_t *rows[4];
    float dots[4];
    for (size_t i = 0; i < 4; i++)
        rows[i] = w + 2 * d->w_stride * (r + i * step);
    for (size_t v = 0; v < d->n_x; v++) {
        float *out = d->out + v * d->out_stride + r;
        dots_f16_4(rows, d->x + v * d->x_stride, d->n, dots);
        for (size_t i = 0; i < 4; i++)
            out[i * step] = dots[i];
    }
}

/* Four places of memory are read side by side, each onwards: prefetchers follow that better than one
 * place. */
AVX2_DOT void bc_avx2_dots_f16(const uint8_t *w, const struct bc_f32_dots *d)
{
    const size_t step = d->n_rows / 4;
    for (size_t r = 0; r < step; r++)
        dots_f16_rows(w, d, r, step);
    for (size_t r = 4 * step; r < d->n_rows; r++)
        dots_f16_rows(w, d, r, 0);
}

AVX2_DOT void bc_avx2_axpy(float factor, const float *x, size_t n, float *y)
{
    const __m256 f = _mm256_set1_ps(factor);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_mul_ps(f, _mm256_loadu_ps(x + i))));
    bc_scalar_axpy(factor, x + i, n - i, y + i);
}

AVX2_DOT static inline __m256 add_product(__m256 sum, __m256 factor, const float *x)
{
    return _mm256_add_ps(sum, _mm256_mul_ps(factor, _mm256_loadu_ps(x)));
}

/* 32 columns of one sum, in registers from beginning to end. */
AVX2_DOT static void sum_32(const float *f, const float *x, size_t x_stride, size_t n, float *out)
{
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    for (size_t i = 0; i < n; i++, x += x_stride) {
        const __m256 factor = _mm256_broadcast_ss(f + i);
        a = add_product(a, factor, x);
        b = add_product(b, factor, x + 8);
        c = add_product(c, factor, x + 16);
        d = add_product(d, factor, x + 24);
    }
    _mm256_storeu_ps(out, a);
    _mm256_storeu_ps(out + 8, b);
    _mm256_storeu_ps(out + 16, c);
    _mm256_storeu_ps(out + 24, d);
}

/* Two sums of 16 columns: each load serves two products. */
AVX2_DOT static void sums_2x16(const struct bc_f32_sums *s, const float *f, const float *x,
                               float *out)
{
    const float *const g = f + s->f_stride;
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    for (size_t i = 0; i < s->n; i++, x += s->x_stride) {
        const __m256 first = _mm256_broadcast_ss(f + i), second = _mm256_broadcast_ss(g + i);
        a = add_product(a, first, x);
        b = add_product(b, first, x + 8);
        c = add_product(c, second, x);
        d = add_product(d, second, x + 8);
    }
    _mm256_storeu_ps(out, a);
    _mm256_storeu_ps(out + 8, b);
    _mm256_storeu_ps(out + s->out_stride, c);
    _mm256_storeu_ps(out + s->out_stride + 8, d);
}

void bc_avx2_sums_f32(const struct bc_f32_sums *s)
{
    size_t c = 0;
    for (; c + 32 <= s->width; c += 32) {
        for (size_t v = 0; v < s->n_sums; v++) {
            const float *f = s->f + v * s->f_stride;
            float *out = s->out + v * s->out_stride + c;
            if (v + 1 < s->n_sums) {
                sums_2x16(s, f, s->x + c, out);
                sums_2x16(s, f, s->x + c + 16, out + 16);
                v++;
            } else {
                sum_32(f, s->x + c, s->x_stride, s->n, out);
            }
        }
    }
    struct bc_f32_sums rest = *s;
    rest.x += c;
    rest.width -= c;
    rest.out += c;
    if (rest.width > 0) bc_scalar_sums_f32(&rest);
}

/* ---- activations ---- */

/* Eight rounded and clipped products; the conversion rounds half to even. NaN becomes 0. */
AVX2_DOT static inline __m256i codes_8(const float *src, __m256 a)
{
    const __m256 product = _mm256_mul_ps(_mm256_loadu_ps(src), a);
    const __m256 ordered = _mm256_and_ps(product, _mm256_cmp_ps(product, product, _CMP_ORD_Q));
    const __m256 clipped =
        _mm256_max_ps(_mm256_min_ps(ordered, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-128.0f));
    return _mm256_cvtps_epi32(clipped);
}

AVX2_DOT float bc_avx2_quantize_i8(const float *src, size_t n, int8_t *dst)
{
    const float a = bc_activation_factor(bc_avx2_max_abs_bits(src, n));
    const __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i low =
            _mm256_packs_epi32(codes_8(src + i, factor), codes_8(src + i + 8, factor));
        const __m256i high =
            _mm256_packs_epi32(codes_8(src + i + 16, factor), codes_8(src + i + 24, factor));
        /* Two packs within 128-bit halves leave groups of four in the order 0 2 4 6 1 3 5 7. */
        const __m256i bytes = _mm256_permutevar8x32_epi32(
            _mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        bc_store_32(dst + i, bytes);
    }
    bc_scalar_activation_codes(src + i, n - i, a, dst + i);
    return a;
}

/* ---- integers ---- */

AVX2_DOT int32_t bc_avx2_sum_i8(const int8_t *x, size_t n)
{
    const __m256i ones = _mm256_set1_epi8(1);
    __m256i sum = _mm256_setzero_si256();
    size_t i = 0;
    while (n - i >= 32) {
        __m256i pairs = _mm256_setzero_si256();
        for (size_t step = 0; step < BC_DOT_FLUSH && n - i >= 32; step++, i += 32)
            pairs = bc_add_pairs(pairs, ones, x + i);
        sum = bc_flush(sum, pairs);
    }
    int32_t rest = bc_sum_of_8(sum);
    for (; i < n; i++)
        rest += x[i];
    return rest;
}

/* One thing for each of four vectors. */
struct four {
    __m256i a, b, c, d;
};

AVX2_DOT static inline struct four no_four(void)
{
    const __m256i zero = _mm256_setzero_si256();
    return (struct four){zero, zero, zero, zero};
}

AVX2_DOT static inline struct four add_pairs_4(struct four s, __m256i codes, const int8_t *x,
                                               size_t stride)
{
    s.a = bc_add_pairs(s.a, codes, x);
    s.b = bc_add_pairs(s.b, codes, x + stride);
    s.c = bc_add_pairs(s.c, codes, x + 2 * stride);
    s.d = bc_add_pairs(s.d, codes, x + 3 * stride);
    return s;
}

AVX2_DOT static inline struct four flush_4(struct four sum, struct four pairs)
{
    sum.a = bc_flush(sum.a, pairs.a);
    sum.b = bc_flush(sum.b, pairs.b);
    sum.c = bc_flush(sum.c, pairs.c);
    sum.d = bc_flush(sum.d, pairs.d);
    return sum;
}

/* The sums of four vectors of eight. */
AVX2_DOT static inline __m128i fold_4(struct four s)
{
    return bc_sums_of_4(s.a, s.b, s.c, s.d);
}

AVX2_DOT static inline __m256i load_codes(const uint8_t *trits)
{
    return _mm256_add_epi8(bc_load_32(trits), _mm256_set1_epi8(1));
}

/* Products of codes of one row, without what is behind the last 32. */
AVX2_DOT static int32_t trit_codes_1(const uint8_t *w, size_t n, const int8_t *x)
{
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i + 32 <= n;) {
        __m256i pairs = _mm256_setzero_si256();
        for (size_t step = 0; step < BC_DOT_FLUSH && i + 32 <= n; step++, i += 32)
            pairs = bc_add_pairs(pairs, load_codes(w + i), x + i);
        sum = bc_flush(sum, pairs);
    }
    return bc_sum_of_8(sum);
}

AVX2_DOT static __m128i trit_codes_4(const uint8_t *w, size_t n, const int8_t *x, size_t stride)
{
    struct four sum = no_four();
    for (size_t i = 0; i + 32 <= n;) {
        struct four pairs = no_four();
        for (size_t step = 0; step < BC_DOT_FLUSH && i + 32 <= n; step++, i += 32)
            pairs = add_pairs_4(pairs, load_codes(w + i), x + i, stride);
        sum = flush_4(sum, pairs);
    }
    return fold_4(sum);
}

/* The codes of one block's quarter: 32 trits of the planes, `shift` apart. */
AVX2_DOT static inline __m256i plane(__m256i bytes, int shift)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, shift), _mm256_set1_epi8(3));
}

AVX2_DOT static int32_t planes_32_1(const uint8_t *w, size_t n_blocks, const int8_t *x)
{
    __m256i sum = _mm256_setzero_si256();
    while (n_blocks > 0) {
        size_t batch = n_blocks < BC_DOT_FLUSH / 4 ? n_blocks : BC_DOT_FLUSH / 4;
        __m256i pairs = _mm256_setzero_si256(), others = pairs;
        n_blocks -= batch;
        for (; batch > 0; batch--, w += 32, x += 128) {
            const __m256i bytes = bc_load_32(w);
            pairs = bc_add_pairs(pairs, plane(bytes, 6), x);
            others = bc_add_pairs(others, plane(bytes, 4), x + 32);
            pairs = bc_add_pairs(pairs, plane(bytes, 2), x + 64);
            others = bc_add_pairs(others, plane(bytes, 0), x + 96);
        }
        sum = bc_flush(sum, _mm256_add_epi16(pairs, others));
    }
    return bc_sum_of_8(sum);
}

AVX2_DOT static inline __m256i add_planes(__m256i pairs, const uint8_t *w, const int8_t *x)
{
    const __m256i bytes = bc_load_32(w);
    pairs = bc_add_pairs(pairs, plane(bytes, 6), x);
    pairs = bc_add_pairs(pairs, plane(bytes, 4), x + 32);
    pairs = bc_add_pairs(pairs, plane(bytes, 2), x + 64);
    return bc_add_pairs(pairs, plane(bytes, 0), x + 96);
}

/* Four rows, `stride` bytes apart, with one vector. */
AVX2_DOT static __m128i planes_32_rows(const uint8_t *w, size_t stride, size_t n_blocks,
                                       const int8_t *x)
{
    struct four sum = no_four();
    while (n_blocks > 0) {
        size_t batch = n_blocks < BC_DOT_FLUSH / 4 ? n_blocks : BC_DOT_FLUSH / 4;
        struct four pairs = no_four();
        n_blocks -= batch;
        for (; batch > 0; batch--, w += 32, x += 128) {
            pairs.a = add_planes(pairs.a, w, x);
            pairs.b = add_planes(pairs.b, w + stride, x);
            pairs.c = add_planes(pairs.c, w + 2 * stride, x);
            pairs.d = add_planes(pairs.d, w + 3 * stride, x);
        }
        sum = flush_4(sum, pairs);
    }
    return fold_4(sum);
}

AVX2_DOT static __m128i planes_32_4(const uint8_t *w, size_t n_blocks, const int8_t *x,
                                    size_t stride)
{
    struct four sum = no_four();
    while (n_blocks > 0) {
        size_t batch = n_blocks < BC_DOT_FLUSH / 4 ? n_blocks : BC_DOT_FLUSH / 4;
        struct four pairs = no_four();
        n_blocks -= batch;
        for (; batch > 0; batch--, w += 32, x += 128) {
            const __m256i bytes = bc_load_32(w);
            pairs = add_pairs_4(pairs, plane(bytes, 6), x, stride);
            pairs = add_pairs_4(pairs, plane(bytes, 4), x + 32, stride);
            pairs = add_pairs_4(pairs, plane(bytes, 2), x + 64, stride);
            pairs = add_pairs_4(pairs, plane(bytes, 0), x + 96, stride);
        }
        sum = flush_4(sum, pairs);
    }
    return fold_4(sum);
}

/* Two planes of 16 bytes each: the upper one in the low half. */
AVX2_DOT static inline __m256i two_planes(__m256i bytes_twice, __m256i shifts)
{
    return _mm256_and_si256(_mm256_srlv_epi64(bytes_twice, shifts), _mm256_set1_epi8(3));
}

AVX2_DOT static int32_t planes_16_1(const uint8_t *w, size_t n_blocks, const int8_t *x)
{
    const __m256i upper = _mm256_setr_epi64x(6, 6, 4, 4), lower = _mm256_setr_epi64x(2, 2, 0, 0);
    __m256i sum = _mm256_setzero_si256();
    while (n_blocks > 0) {
        size_t batch = n_blocks < BC_DOT_FLUSH / 2 ? n_blocks : BC_DOT_FLUSH / 2;
        __m256i pairs = _mm256_setzero_si256(), others = pairs;
        n_blocks -= batch;
        for (; batch > 0; batch--, w += 16, x += 64) {
            const __m256i bytes = _mm256_broadcastsi128_si256(bc_load_16(w));
            pairs = bc_add_pairs(pairs, two_planes(bytes, upper), x);
            others = bc_add_pairs(others, two_planes(bytes, lower), x + 32);
        }
        sum = bc_flush(sum, _mm256_add_epi16(pairs, others));
    }
    return bc_sum_of_8(sum);
}

AVX2_DOT static __m128i planes_16_4(const uint8_t *w, size_t n_blocks, const int8_t *x,
                                    size_t stride)
{
    const __m256i upper = _mm256_setr_epi64x(6, 6, 4, 4), lower = _mm256_setr_epi64x(2, 2, 0, 0);
    struct four sum = no_four();
    while (n_blocks > 0) {
        size_t batch = n_blocks < BC_DOT_FLUSH / 2 ? n_blocks : BC_DOT_FLUSH / 2;
        struct four pairs = no_four();
        n_blocks -= batch;
        for (; batch > 0; batch--, w += 16, x += 64) {
            const __m256i bytes = _mm256_broadcastsi128_si256(bc_load_16(w));
            pairs = add_pairs_4(pairs, two_planes(bytes, upper), x, stride);
            pairs = add_pairs_4(pairs, two_planes(bytes, lower), x + 32, stride);
        }
        sum = flush_4(sum, pairs);
    }
    return fold_4(sum);
}

/* ---- rows and vectors ---- */

/* Products of one row's codes with one vector, or with four; of four rows with one vector (NULL: as
 * four times one). */
struct row_kernel {
    int32_t (*one)(const uint8_t *w, size_t n, const int8_t *x);
    __m128i (*four)(const uint8_t *w, size_t n, const int8_t *x, size_t stride);
    __m128i (*rows)(const uint8_t *w, size_t stride, size_t n, const int8_t *x);
};

/* The sums of four vectors of n activations, a multiple of 32, read side by side. */
AVX2_DOT static __m128i activation_sums_4(size_t n, const int8_t *x, size_t stride)
{
    const __m256i ones = _mm256_set1_epi8(1);
    struct four sum = no_four();
    for (size_t i = 0; i < n;) {
        struct four pairs = no_four();
        for (size_t step = 0; step < BC_DOT_FLUSH && i < n; step++, i += 32)
            pairs = add_pairs_4(pairs, ones, x + i, stride);
        sum = flush_4(sum, pairs);
    }
    return fold_4(sum);
}

/* Adds four rows' products with four vectors, a register a row, to out: a row of it a vector. */
AVX2_DOT static inline void add_4x4(__m128i a, __m128i b, __m128i c, __m128i d, int32_t *out,
                                    size_t stride)
{
    const __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    const __m128i ab2 = _mm_unpackhi_epi32(a, b), cd2 = _mm_unpackhi_epi32(c, d);
    const __m128i turned[4] = {_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd),
                               _mm_unpacklo_epi64(ab2, cd2), _mm_unpackhi_epi64(ab2, cd2)};
    for (size_t v = 0; v < 4; v++)
        bc_store_16(out + v * stride, _mm_add_epi32(bc_load_16(out + v * stride), turned[v]));
}

AVX2_DOT static void add_dots_4(const struct bc_i8_dots *d, const struct row_kernel *kernel,
                                size_t n, const int8_t *x, int32_t *out)
{
    const __m128i offsets = activation_sums_4(d->n, x, d->x_stride);
    __m128i rows[4];
    int32_t dots[4];
    size_t r = 0;
    for (; r + 4 <= d->n_rows; r += 4) {
        for (size_t i = 0; i < 4; i++)
            rows[i] = _mm_sub_epi32(kernel->four(d->w + (r + i) * d->w_stride, n, x, d->x_stride),
                                    offsets);
        add_4x4(rows[0], rows[1], rows[2], rows[3], out + r, d->out_stride);
    }
    for (; r < d->n_rows; r++) {
        const __m128i codes = kernel->four(d->w + r * d->w_stride, n, x, d->x_stride);
        bc_store_16(dots, _mm_sub_epi32(codes, offsets));
        for (size_t v = 0; v < 4; v++)
            out[v * d->out_stride + r] += dots[v];
    }
}

/* One vector. A generation's time is that of reading rows once: of each quarter of them one is read
 * side by side, which prefetchers follow better than one place of memory. */
AVX2_DOT static void add_dots_1(const struct bc_i8_dots *d, const struct row_kernel *kernel,
                                size_t n, const int8_t *x, int32_t *out)
{
    const int32_t offset = bc_avx2_sum_i8(x, d->n);
    const size_t step = kernel->rows != NULL ? d->n_rows / 4 : 0;
    int32_t dots[4];
    for (size_t r = 0; r < step; r++) {
        bc_store_16(dots, kernel->rows(d->w + r * d->w_stride, step * d->w_stride, n, x));
        for (size_t i = 0; i < 4; i++)
            out[r + i * step] += dots[i] - offset;
    }
    for (size_t r = 4 * step; r < d->n_rows; r++)
        out[r] += kernel->one(d->w + r * d->w_stride, n, x) - offset;
}

static void add_dots(const struct bc_i8_dots *d, const struct row_kernel *kernel, size_t n)
{
    size_t v = 0;
    for (; v + 4 <= d->n_x; v += 4)
        add_dots_4(d, kernel, n, d->x + v * d->x_stride, d->out + v * d->out_stride);
    for (; v < d->n_x; v++)
        add_dots_1(d, kernel, n, d->x + v * d->x_stride, d->out + v * d->out_stride);
}

void bc_avx2_trit_dots(const struct bc_i8_dots *d)
{
    static const struct row_kernel kernel = {trit_codes_1, trit_codes_4, NULL};
    struct bc_i8_dots whole = *d, rest = *d;
    whole.n = d->n / 32 * 32;
    add_dots(&whole, &kernel, whole.n);
    rest.w += whole.n;
    rest.x += whole.n;
    rest.n -= whole.n;
    if (rest.n > 0) bc_scalar_trit_dots(&rest);
}

void bc_avx2_plane_dots(const struct bc_i8_dots *d, size_t width)
{
    static const struct row_kernel wide = {planes_32_1, planes_32_4, planes_32_rows};
    static const struct row_kernel narrow = {planes_16_1, planes_16_4, NULL};
    add_dots(d, width == 32 ? &wide : &narrow, d->n / (4 * width));
}

#else
/* An ISO C file must declare something. */
typedef int bc_kernels_dot_avx2_is_for_x86_64;
#endif
