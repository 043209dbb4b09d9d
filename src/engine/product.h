/* SPDX-License-Identifier: MIT
 * Matrix products: rows of weights, in whatever form they are stored, times the activations of one
 * or many tokens. */
#ifndef BC_ENGINE_PRODUCT_H
#define BC_ENGINE_PRODUCT_H

#include "engine/provider.h"

/* Float mode: y = dot(x, row), the row decoded to float32 whatever it is stored as. Int8 mode, for
 * ternary weights (Ma et al. 2024): per token a = 127 / max(max|x|, 1e-5), q = round(x * a);
 * y = sum(q * trit) * scale / a with the sum in int32, by the pack's own kernel. */
enum bc_mode { BC_MODE_FLOAT, BC_MODE_INT8 };

/* A linear layer (or a stack of them). */
struct bc_linear {
    struct bc_tensor w; /* w.provider NULL: the model has no such layer */
    float *bias;        /* w.rows values added to the result, or NULL */
    float *norm_in;     /* BitLinear: w.cols weights of an RMSNorm of the input, or NULL */
    float norm_in_eps;
};

/* One product of a group: y[t] = linear(x[t]) for all tokens t; rows of x are w.cols floats apart,
 * those of y w.rows. */
struct bc_product {
    const struct bc_linear *linear;
    uint64_t slice; /* of a stack of experts; else 0 */
    const float *x;
    float *y;
};
enum { BC_MAX_PRODUCTS = 3 };

struct bc_worker;
/* Buffers for products; one thread of control uses it, the pool works inside. */
struct bc_compute {
    const struct bc_kernels *kernels;
    struct bc_pool *pool;
    enum bc_mode mode;
    uint64_t max_cols; /* the widest input */
    size_t max_tokens;
    struct bc_worker *workers; /* one per thread of the pool */
    unsigned n_workers;
    float *normed;  /* BC_MAX_PRODUCTS * max_tokens * max_cols: inputs behind norm_in */
    int8_t *codes;  /* likewise: quantized inputs */
    float *factors; /* BC_MAX_PRODUCTS * max_tokens: their a */
};

/* Allocates for inputs of up to max_cols values; max_tokens is 0 until _reserve. Release it in any
 * case. */
enum bitconv_status bc_compute_init(struct bc_compute *c, const struct bc_kernels *kernels,
                                    struct bc_pool *pool, enum bc_mode mode, uint64_t max_cols,
                                    struct bitconv_error *err);
/* Makes room for that many tokens at once. */
enum bitconv_status bc_compute_reserve(struct bc_compute *c, size_t n_tokens,
                                       struct bitconv_error *err);
void bc_compute_release(struct bc_compute *c);

/* Computes 1 to BC_MAX_PRODUCTS products of n_tokens <= max_tokens tokens, spread over the pool by
 * blocks of rows. Every value is computed by one thread in a fixed order. */
enum bitconv_status bc_products(struct bc_compute *c, const struct bc_product *products, size_t n,
                                size_t n_tokens, struct bitconv_error *err);

/* y[i] = row first + rows[i] of the linear layer times one token, for n rows below w.rows - first, in
 * any order; neighbours that follow each other are multiplied together. */
enum bitconv_status bc_product_rows(struct bc_compute *c, const struct bc_linear *linear,
                                    uint64_t first, const uint32_t *rows, size_t n, const float *x,
                                    float *y, struct bitconv_error *err);

#endif
