/* SPDX-License-Identifier: MIT
 * The inner loops as rows of functions, one row per instruction set. The scalar row defines every
 * result; the others must equal it bit for bit (floating-point order included). */
#ifndef BC_QUANT_KERNELS_H
#define BC_QUANT_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Dot products of n_rows rows with n_x vectors, n elements each. Row r begins at w + r * w_stride,
 * vector v at x + v * x_stride, and their product goes to out[v * out_stride + r]; strides count
 * what the pointer points to. */
struct bc_f32_dots {
    const float *w;
    size_t w_stride, n_rows;
    const float *x;
    size_t x_stride, n_x;
    size_t n;
    float *out;
    size_t out_stride;
};
/* Sums of n vectors of `width` floats, vector i at x + i * x_stride, each times its factor: sum s takes
 * the factors at f + s * f_stride and goes to out + s * out_stride. */
struct bc_f32_sums {
    const float *f;
    size_t f_stride, n_sums;
    const float *x;
    size_t x_stride, n;
    size_t width;
    float *out;
    size_t out_stride;
};
struct bc_i8_dots {
    const uint8_t *w; /* packed bytes, or trits as bytes */
    size_t w_stride, n_rows;
    const int8_t *x; /* any values; n * 128 fits an int32 */
    size_t x_stride, n_x;
    size_t n;
    int32_t *out; /* the products are added to what is there */
    size_t out_stride;
};

/* Tables of pair_tables and triple_tables: 16 entries of 16 bits, apart in low and high bytes: those
 * of two pairs (low bytes of both, high bytes of both), of a triple. */
enum { BC_PAIR_TABLE = 64, BC_TRIPLE_TABLE = 32 };

/* Floats need the alignment of a float, bytes none. Sources and destinations do not overlap. n may
 * be 0. */
struct bc_kernels {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */

    /* Little-endian 16-bit floats to float32, exact. */
    void (*widen_bf16)(const uint8_t *src, size_t n, float *dst);
    void (*widen_f16)(const uint8_t *src, size_t n, float *dst);
    /* float32 to little-endian 16-bit floats, nearest even. NaN stays NaN. */
    void (*narrow_bf16)(const float *src, size_t n, uint8_t *dst);
    void (*narrow_f16)(const float *src, size_t n, uint8_t *dst);
    /* bfloat16 straight to float16, as widen_bf16 then narrow_f16. */
    void (*bf16_to_f16)(const uint8_t *src, size_t n, uint8_t *dst);
    /* Largest |x| as bits with the sign cleared: above 0x7f800000 there is a NaN, equal there is an
     * Inf. (One pass answers finite?, range of F16?.) 0 for n = 0. */
    uint32_t (*max_abs_bits)(const float *src, size_t n);

    /* Sum of |x| of at most 128 values, NumPy's unrolled loop: 8 accumulators over stride 8,
     * combined ((r0+r1)+(r2+r3))+((r4+r5)+(r6+r7)), then the n % 8 rest one by one; n < 8 one by one
     * from -0. */
    float (*abs_sum_block)(const float *src, size_t n);

    /* trit = clip(round_half_even(w * inv), -1, 1), the product rounded to float32 first. NaN gives
     * 0. */
    void (*ternarize)(const float *src, size_t n, float inv, int8_t *dst);
    /* -1, 0, +1 by sign; +-0 gives 0. */
    void (*sign)(const float *src, size_t n, int8_t *dst);
    /* trit * scale as float32; zero trits give +0. */
    void (*trits_to_f32)(const int8_t *src, size_t n, float scale, float *dst);

    /* Hugging Face packed rows: ((byte >> shift) & 3) - 1; returns false when a code is 3 (stored
     * as 2). */
    bool (*hf_unpack)(const uint8_t *src, size_t n, unsigned shift, int8_t *dst);

    /* Counts of -1, 0, +1 added to counts[0..2]; other values to counts[3]. */
    void (*count_trits)(const int8_t *src, size_t n, uint64_t counts[4]);

    /* I2_S planes: n_blocks blocks of 4 * width trits to width bytes each (width 32 or 16): byte j
     * of a block holds trits j, width+j, 2*width+j, 3*width+j in bits 7-6 .. 1-0, code = trit + 1.
     */
    void (*pack_planes)(const int8_t *src, size_t n_blocks, size_t width, uint8_t *dst);
    bool (*unpack_planes)(const uint8_t *src, size_t n_blocks, size_t width, int8_t *dst);

    /* BITCOS (formats/bitcos.md), n trits: bit i % 64 of little-endian word i / 64 of the bitmap is
     * set where trit i is not 0 (8 * ceil(n / 64) bytes, spare bits 0); and a bit for each of
     * those, set where it is negative, goes to the stream of n_words words `signs`, from bit `rank`
     * on. Returns the rank behind the last one. Of the words from rank / 64 to (result) / 64, as
     * far as the stream has them, the bits below `rank` are kept and those that got no sign are 0;
     * other words are not touched, and signs behind the last word are dropped. */
    uint64_t (*bitcos_pack)(const int8_t *src, size_t n, uint8_t *bitmap, uint8_t *signs,
                            size_t n_words, uint64_t rank);
    /* The inverse, from a stream of n_signs bits in whole words. A weight whose sign would be at or
     * behind n_signs becomes 2, and the result is then above n_signs. */
    uint64_t (*bitcos_unpack)(const uint8_t *bitmap, size_t n, const uint8_t *signs,
                              uint64_t n_signs, uint64_t rank, int8_t *dst);

    /* T5 (formats/t5.md), ceil(n / 5) bytes: five base-3 digits trit + 1 each, the first the
     * lowest, missing ones 1. Defined for -1, 0, +1 only. */
    void (*t5_pack)(const int8_t *src, size_t n, uint8_t *dst);
    /* The inverse; trits of a byte above 242 become 2, and the result is then false. */
    bool (*t5_unpack)(const uint8_t *src, size_t n, int8_t *dst);

    /* TL2's triples (formats/tl2.md), n_groups times 24 columns of one row. A group has four bytes of
     * magnitudes, 32 apart, and every other bit of a word of signs; the next group's are 128 and 32
     * bytes further on. Rows of half 0 of a block write the word, those of half 1, which come
     * later, add to it. */
    void (*tl2_pack_row)(const int8_t *trits, size_t n_groups, unsigned half, uint8_t *magnitudes,
                         uint8_t *words);
    /* The inverse; trits of a code without a meaning become 2, and the result is then false. */
    bool (*tl2_unpack_row)(const uint8_t *magnitudes, const uint8_t *words, unsigned half,
                           size_t n_groups, int8_t *trits);

    /* ---- products of a forward pass ---- */

    /* Sum of a[i] * b[i] in 16 partial sums: number j takes the i with i % 16 == j, ascending, from
     * +0; products are rounded before they are added. Then 8 sums j and j + 8, 4 of those, 2 and 1.
     */
    float (*dot_f32)(const float *a, const float *b, size_t n);
    /* Each product is what dot_f32 gives. */
    void (*dots_f32)(const struct bc_f32_dots *d);
    /* The same with rows of little-endian float16, widened, at w + 2 * r * d->w_stride; d->w is not
     * looked at. */
    void (*dots_f16)(const uint8_t *w, const struct bc_f32_dots *d);
    /* y[i] += factor * x[i], the product rounded first. */
    void (*axpy)(float factor, const float *x, size_t n, float *y);
    /* What axpy gives with one vector after the other, from +0. */
    void (*sums_f32)(const struct bc_f32_sums *s);
    /* Activations as int8 (BitNet b1.58, Ma et al. 2024): returns a = 127 / max(max|x|, 1e-5) and
     * writes clip(round_half_even(x * a), -128, 127), the product rounded to float32 first. With a
     * NaN among the x, a is NaN and all codes are 0; with an infinity, a is 0 and so are they. */
    float (*quantize_i8)(const float *src, size_t n, int8_t *dst);
    /* Exact integer products; "trit" is what the unpacking kernel of the same bytes gives. w: trits
     * as bytes, 2 (an illegal code) included. */
    void (*trit_dots)(const struct bc_i8_dots *d);
    /* w: bytes of pack_planes; n is a multiple of 4 * width. */
    void (*plane_dots)(const struct bc_i8_dots *d, size_t width);
    /* n weights of bitcos_unpack, from rank `rank` on, added to *dot. Returns the rank behind them.
     * A weight without a sign makes *dot some number. */
    uint64_t (*bitcos_dot)(const uint8_t *bitmap, size_t n, const uint8_t *signs, uint64_t n_signs,
                           uint64_t rank, const int8_t *x, int32_t *dot);
    /* One number for each block of stock llama.cpp's packs (formats/NAME.md): the sum of
     * (trit + 1) * x. Scales are not looked at. */
    void (*tq1_0_codes)(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
    void (*tq2_0_codes)(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
    void (*q2_0_codes)(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
    void (*q1_0_codes)(const uint8_t *blocks, size_t n_blocks, const int8_t *x, int32_t *dots);
    /* T5: the sum of digit t (trit + 1) of byte m times planes[t][m]. Reads planes up to the next
     * multiple of 32 behind n_bytes, whatever stands there. */
    int32_t (*t5_codes)(const uint8_t *bytes, size_t n_bytes, const int8_t *const planes[5]);
    /* TL1 and the pairs of TL2 (formats/tl1.md): for each four columns, what the nine numbers of
     * either pair make of its activations: BC_PAIR_TABLE bytes. */
    void (*pair_tables)(const int8_t *x, size_t n_quads, uint8_t *tables);
    /* Adds up 16 rows: their bytes for the next four columns follow `stride` behind, their table
     * table_stride. */
    void (*pair_sums)(const uint8_t *bytes, size_t stride, size_t n_quads, const uint8_t *tables,
                      size_t table_stride, int32_t sums[16]);
    /* TL2 (formats/tl2.md): for each three columns, what the 14 magnitudes make of its activations:
     * BC_TRIPLE_TABLE bytes. */
    void (*triple_tables)(const int8_t *x, size_t n_triples, uint8_t *tables);
    /* Adds up the 32 rows of a block over groups of 24 columns: 128 bytes of magnitudes and 32 of
     * signs each. */
    void (*triple_sums)(const uint8_t *magnitudes, const uint8_t *signs, size_t n_groups,
                        const uint8_t *tables, int32_t sums[32]);
    /* Sums of n_blocks runs of `block` (a multiple of 32) activations: what to take off for + 1. */
    void (*block_sums)(const int8_t *x, size_t n_blocks, size_t block, int32_t *sums);
};

/* Fastest row this processor and operating system support. Never NULL. This and the other two
 * look-ups ask the processor each time (cpu.h): call them once and pass the row on. */
const struct bc_kernels *bc_kernels_best(void);
/* The row of that name; NULL when unknown or not supported here (*known tells which). */
const struct bc_kernels *bc_kernels_named(const char *name, bool *known);
/* Rows this machine supports, scalar first; NULL behind the last. For tests. */
const struct bc_kernels *bc_kernels_at(size_t index);

#endif
