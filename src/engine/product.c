/* SPDX-License-Identifier: MIT
 * Products in two steps: the inputs are normed and quantized, then blocks of rows are multiplied. */
#include "engine/product.h"

#include <string.h>

#include "base/bytes.h"
#include "engine/ops.h"

enum {
    BLOCK_ROWS = 64, /* rows a thread takes at once; the result does not depend on it */
    FLOAT_ROWS = 4,  /* of which so many are decoded to float32 at once */
    HALF_TOKENS = 2  /* up to so many tokens are multiplied with float16 rows as they are */
};

/* What a thread needs for a block of rows. */
struct bc_worker {
    float *rows;     /* FLOAT_ROWS * max_cols */
    int8_t *trits;   /* BLOCK_ROWS * max_cols */
    int32_t *sums;   /* BLOCK_ROWS * max_tokens */
    float *products; /* likewise */
    uint64_t failed; /* index of the job that failed, UINT64_MAX: none */
    struct bitconv_error err;
};

enum bitconv_status bc_compute_init(struct bc_compute *c, const struct bc_kernels *kernels,
                                    struct bc_pool *pool, enum bc_mode mode, uint64_t max_cols,
                                    struct bitconv_error *err)
{
    uint64_t block;
    *c = (struct bc_compute){.kernels = kernels, .pool = pool, .mode = mode, .max_cols = max_cols};
    if (!bc_mul_u64(max_cols, BLOCK_ROWS, &block) || block > SIZE_MAX)
        return bc_fail_nomem(err, "rows of weights");
    c->workers = bc_alloc_array(bc_pool_threads(pool), sizeof *c->workers);
    if (c->workers == NULL) return bc_fail_nomem(err, "rows of weights");
    c->n_workers = bc_pool_threads(pool);
    for (unsigned i = 0; i < c->n_workers; i++) {
        c->workers[i].rows =
            bc_alloc_array((size_t)max_cols, FLOAT_ROWS * sizeof *c->workers[i].rows);
        c->workers[i].trits = bc_alloc_array((size_t)block, 1);
        if (c->workers[i].rows == NULL || c->workers[i].trits == NULL)
            return bc_fail_nomem(err, "rows of weights");
    }
    return BITCONV_OK;
}

enum bitconv_status bc_compute_reserve(struct bc_compute *c, size_t n_tokens,
                                       struct bitconv_error *err)
{
    uint64_t values;
    if (n_tokens <= c->max_tokens) return BITCONV_OK;
    if (!bc_mul_u64(c->max_cols * BC_MAX_PRODUCTS, n_tokens, &values) || values > SIZE_MAX)
        return bc_fail_nomem(err, "activations");
    bc_free(c->normed);
    bc_free(c->codes);
    bc_free(c->factors);
    c->max_tokens = 0;
    c->normed = bc_alloc_array((size_t)values, sizeof *c->normed);
    c->codes = bc_alloc_lines((size_t)values, sizeof *c->codes);
    c->factors = bc_alloc_array(n_tokens, BC_MAX_PRODUCTS * sizeof *c->factors);
    if (c->normed == NULL || c->codes == NULL || c->factors == NULL)
        return bc_fail_nomem(err, "activations");
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct bc_worker *w = &c->workers[i];
        bc_free(w->sums);
        bc_free(w->products);
        w->sums = bc_alloc_array(n_tokens, BLOCK_ROWS * sizeof *w->sums);
        w->products = bc_alloc_array(n_tokens, BLOCK_ROWS * sizeof *w->products);
        if (w->sums == NULL || w->products == NULL) return bc_fail_nomem(err, "activations");
    }
    c->max_tokens = n_tokens;
    return BITCONV_OK;
}

void bc_compute_release(struct bc_compute *c)
{
    for (unsigned i = 0; i < c->n_workers; i++) {
        bc_free(c->workers[i].rows);
        bc_free(c->workers[i].trits);
        bc_free(c->workers[i].sums);
        bc_free(c->workers[i].products);
    }
    bc_free(c->workers);
    bc_free(c->normed);
    bc_free(c->codes);
    bc_free(c->factors);
    *c = (struct bc_compute){.kernels = NULL};
}

/* ---- step 1: inputs ---- */

/* A product made ready: what its rows are multiplied by. */
struct prepared {
    const struct bc_product *product;
    const float *x;      /* float path */
    const int8_t *codes; /* integer path, else NULL */
    const float *factors;
    bool shared; /* input and codes are those of the product before it */
    uint64_t first_block, n_blocks;
};

struct preparing {
    struct bc_compute *c;
    struct prepared *items;
    size_t n, n_tokens;
};

static bool is_integer(const struct bc_compute *c, const struct bc_linear *l)
{
    return c->mode == BC_MODE_INT8 && (l->w.ternary || l->w.blocks != NULL);
}

/* Token i % n_tokens of product i / n_tokens. */
static void prepare_token(void *ctx, size_t i, unsigned worker)
{
    const struct preparing *job = ctx;
    struct bc_compute *c = job->c;
    const size_t p = i / job->n_tokens, t = i % job->n_tokens;
    const struct bc_linear *l = job->items[p].product->linear;
    const size_t cols = (size_t)l->w.cols;
    const size_t area = p * c->max_tokens * (size_t)c->max_cols;
    const float *x = job->items[p].product->x + t * cols;
    (void)worker;
    if (job->items[p].shared) return;
    if (l->norm_in != NULL) {
        float *normed = c->normed + area + t * cols;
        bc_rms_norm(x, l->norm_in, l->norm_in_eps, cols, normed);
        x = normed;
    }
    if (is_integer(c, l))
        c->factors[p * c->max_tokens + t] =
            c->kernels->quantize_i8(x, cols, c->codes + area + t * cols);
}

/* q, k and v, or gate and up, without norms of their own read the same codes. */
static bool shares_input(const struct bc_compute *c, const struct bc_product *a,
                         const struct bc_product *b)
{
    return a->x == b->x && a->linear->norm_in == NULL && b->linear->norm_in == NULL &&
           is_integer(c, a->linear) && is_integer(c, b->linear) &&
           a->linear->w.cols == b->linear->w.cols;
}

static void prepare(struct bc_compute *c, const struct bc_product *products, size_t n,
                    size_t n_tokens, struct prepared *items)
{
    struct preparing job = {c, items, n, n_tokens};
    bool any = false;
    uint64_t first = 0;
    for (size_t p = 0; p < n; p++) {
        const struct bc_linear *l = products[p].linear;
        const size_t area = p * c->max_tokens * (size_t)c->max_cols;
        items[p] = (struct prepared){.product = &products[p], .first_block = first};
        items[p].x = l->norm_in != NULL ? c->normed + area : products[p].x;
        items[p].shared = p > 0 && shares_input(c, &products[p - 1], &products[p]);
        if (items[p].shared) {
            items[p].codes = items[p - 1].codes;
            items[p].factors = items[p - 1].factors;
        } else if (is_integer(c, l)) {
            items[p].codes = c->codes + area;
            items[p].factors = c->factors + p * c->max_tokens;
        }
        items[p].n_blocks = (l->w.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
        first += items[p].n_blocks;
        any = any || l->norm_in != NULL || is_integer(c, l);
    }
    if (any) bc_pool_run(n_tokens > 1 ? c->pool : NULL, n * n_tokens, prepare_token, &job);
}

/* ---- step 2: rows ---- */

/* A block of rows of one product, for one thread. */
struct block {
    struct bc_compute *c;
    struct bc_worker *w;
    const struct prepared *p;
    uint64_t row; /* counted over all slices */
    size_t n, n_tokens;
    float *out; /* of row and token 0; tokens are out_stride apart */
    size_t out_stride;
};

/* Exact sums of the rows for every token. */
static enum bitconv_status integer_sums(const struct block *b, const struct bc_tensor *t,
                                        struct bitconv_error *err)
{
    const size_t cols = (size_t)t->cols;
    const struct bc_kernels *k = b->c->kernels;
    if (t->packed.format != NULL) {
        t->packed.format->dot_rows(k, &t->packed.shape, t->packed.data, b->row, b->n, b->p->codes,
                                   cols, (uint32_t)b->n_tokens, b->w->sums);
        return BITCONV_OK;
    }
    BC_TRY(bc_tensor_trits(t, b->row, b->n, b->w->trits, err));
    memset(b->w->sums, 0, b->n * b->n_tokens * sizeof *b->w->sums);
    const struct bc_i8_dots dots = {.w = (const uint8_t *)b->w->trits,
                                    .w_stride = cols,
                                    .n_rows = b->n,
                                    .x = b->p->codes,
                                    .x_stride = cols,
                                    .n_x = b->n_tokens,
                                    .n = cols,
                                    .out = b->w->sums,
                                    .out_stride = b->n};
    k->trit_dots(&dots);
    return BITCONV_OK;
}

/* In eights, which compilers turn into vectors. */
static void scale_sums(const int32_t *sums, size_t n, float scale, float factor, float *out)
{
    enum { LANES = 8 };
    size_t r = 0;
    for (; r + LANES <= n; r += LANES)
        for (size_t j = 0; j < LANES; j++)
            out[r + j] = (float)sums[r + j] * scale / factor;
    for (; r < n; r++)
        out[r] = (float)sums[r] * scale / factor;
}

static enum bitconv_status integer_block(const struct block *b, struct bitconv_error *err)
{
    const struct bc_tensor *t = &b->p->product->linear->w;
    const float scale = bc_tensor_scale(t, b->row);
    BC_TRY(integer_sums(b, t, err));
    for (size_t v = 0; v < b->n_tokens; v++)
        scale_sums(b->w->sums + v * b->n, b->n, scale, b->p->factors[v],
                   b->out + v * b->out_stride);
    return BITCONV_OK;
}

/* The same for blocks with scales of their own. */
static void scaled_block(const struct block *b)
{
    const struct bc_tensor *t = &b->p->product->linear->w;
    bc_block_dot_rows(t->blocks, b->c->kernels, &t->packed.shape, t->packed.data, b->row, b->n,
                      b->p->codes, t->cols, (uint32_t)b->n_tokens, b->w->products);
    for (size_t v = 0; v < b->n_tokens; v++)
        for (size_t r = 0; r < b->n; r++)
            b->out[v * b->out_stride + r] = b->w->products[v * b->n + r] / b->p->factors[v];
}

/* float16 in place. For more tokens, rows that are widened once are faster. */
static void half_block(const struct block *b)
{
    const struct bc_tensor *t = &b->p->product->linear->w;
    const size_t cols = (size_t)t->cols;
    const struct bc_f32_dots dots = {.w_stride = cols,
                                     .n_rows = b->n,
                                     .x = b->p->x,
                                     .x_stride = cols,
                                     .n_x = b->n_tokens,
                                     .n = cols,
                                     .out = b->out,
                                     .out_stride = b->out_stride};
    b->c->kernels->dots_f16(t->halves + 2 * b->row * t->cols, &dots);
}

/* A few rows at a time: decoded ones are still in the cache when they are multiplied. */
static enum bitconv_status float_block(const struct block *b, struct bitconv_error *err)
{
    const struct bc_tensor *t = &b->p->product->linear->w;
    const size_t cols = (size_t)t->cols;
    for (size_t r = 0; r < b->n; r += FLOAT_ROWS) {
        const size_t n = b->n - r < FLOAT_ROWS ? b->n - r : FLOAT_ROWS;
        BC_TRY(bc_tensor_floats(t, b->row + r, n, b->w->trits, b->w->rows, err));
        const struct bc_f32_dots dots = {.w = b->w->rows,
                                         .w_stride = cols,
                                         .n_rows = n,
                                         .x = b->p->x,
                                         .x_stride = cols,
                                         .n_x = b->n_tokens,
                                         .n = cols,
                                         .out = b->out + r,
                                         .out_stride = b->out_stride};
        b->c->kernels->dots_f32(&dots);
    }
    return BITCONV_OK;
}

static enum bitconv_status multiply(const struct block *b, struct bitconv_error *err)
{
    const struct bc_linear *l = b->p->product->linear;
    if (b->p->codes == NULL && l->w.halves != NULL && b->n_tokens <= HALF_TOKENS)
        half_block(b);
    else if (b->p->codes == NULL)
        BC_TRY(float_block(b, err));
    else if (l->w.ternary)
        BC_TRY(integer_block(b, err));
    else
        scaled_block(b);
    for (size_t v = 0; v < b->n_tokens && l->bias != NULL; v++)
        bc_add(b->out + v * b->out_stride, l->bias + b->row % l->w.rows, b->n);
    return BITCONV_OK;
}

/* Keeps the failure of the lowest job of a thread. */
static void keep_failure(struct bc_worker *w, uint64_t job, const struct bitconv_error *err)
{
    if (job >= w->failed) return;
    w->failed = job;
    w->err = *err;
}

static void forget_failures(struct bc_compute *c)
{
    for (unsigned i = 0; i < c->n_workers; i++)
        c->workers[i].failed = UINT64_MAX;
}

/* The failure of the lowest job. */
static enum bitconv_status first_failure(const struct bc_compute *c, struct bitconv_error *err)
{
    const struct bc_worker *first = &c->workers[0];
    for (unsigned i = 1; i < c->n_workers; i++)
        if (c->workers[i].failed < first->failed) first = &c->workers[i];
    if (first->failed == UINT64_MAX) return BITCONV_OK;
    return bc_fail(err, first->err.status, "%s", first->err.text);
}

struct multiplying {
    struct bc_compute *c;
    const struct prepared *items;
    size_t n, n_tokens;
};

static void multiply_block(void *ctx, size_t i, unsigned worker)
{
    const struct multiplying *job = ctx;
    size_t p = 0;
    while (p + 1 < job->n && i >= job->items[p + 1].first_block)
        p++;
    const struct bc_product *product = job->items[p].product;
    const uint64_t rows = product->linear->w.rows;
    const uint64_t row = (i - job->items[p].first_block) * BLOCK_ROWS;
    const struct block b = {.c = job->c,
                            .w = &job->c->workers[worker],
                            .p = &job->items[p],
                            .row = product->slice * rows + row,
                            .n = rows - row < BLOCK_ROWS ? (size_t)(rows - row) : BLOCK_ROWS,
                            .n_tokens = job->n_tokens,
                            .out = product->y + row,
                            .out_stride = (size_t)rows};
    struct bitconv_error err = {.status = BITCONV_OK};
    if (multiply(&b, &err) != BITCONV_OK) keep_failure(b.w, i, &err);
}

enum bitconv_status bc_products(struct bc_compute *c, const struct bc_product *products, size_t n,
                                size_t n_tokens, struct bitconv_error *err)
{
    struct prepared items[BC_MAX_PRODUCTS];
    forget_failures(c);
    prepare(c, products, n, n_tokens, items);
    struct multiplying job = {c, items, n, n_tokens};
    const uint64_t n_blocks = items[n - 1].first_block + items[n - 1].n_blocks;
    bc_pool_run(c->pool, (size_t)n_blocks, multiply_block, &job);
    return first_failure(c, err);
}

/* ---- single rows ---- */

struct picking {
    struct bc_compute *c;
    const struct prepared *item;
    uint64_t first;
    const uint32_t *rows;
    size_t n;
    float *y;
};

static void pick_block(void *ctx, size_t i, unsigned worker)
{
    const struct picking *job = ctx;
    const uint32_t *rows = job->rows;
    const size_t end = job->n - i * BLOCK_ROWS < BLOCK_ROWS ? job->n : (i + 1) * BLOCK_ROWS;
    size_t run = 1; /* rows in a row */
    for (size_t at = i * BLOCK_ROWS; at < end; at += run, run = 1) {
        while (at + run < end && rows[at + run] == rows[at] + run)
            run++;
        const struct block b = {.c = job->c,
                                .w = &job->c->workers[worker],
                                .p = job->item,
                                .row = job->first + rows[at],
                                .n = run,
                                .n_tokens = 1,
                                .out = job->y + at,
                                .out_stride = run};
        struct bitconv_error err = {.status = BITCONV_OK};
        if (multiply(&b, &err) != BITCONV_OK) keep_failure(b.w, at, &err);
    }
}

enum bitconv_status bc_product_rows(struct bc_compute *c, const struct bc_linear *linear,
                                    uint64_t first, const uint32_t *rows, size_t n, const float *x,
                                    float *y, struct bitconv_error *err)
{
    const struct bc_product product = {linear, 0, x, y};
    struct prepared item;
    forget_failures(c);
    prepare(c, &product, 1, 1, &item);
    struct picking job = {c, &item, first, rows, n, y};
    bc_pool_run(c->pool, (n + BLOCK_ROWS - 1) / BLOCK_ROWS, pick_block, &job);
    return first_failure(c, err);
}
