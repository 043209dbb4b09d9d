/* SPDX-License-Identifier: MIT
 * Statistics of tensors: histogram and entropy of trits; range, mean, deviation and outliers of
 * numbers. */
#include "verify/tensor_stats.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

enum { PIECE_VALUES = 65536, CHUNK = 1024 };
#define OUTLIER_SIGMAS 6.0 /* bitconv_tensor_stats.outliers */

/* GGUF types that hold one number per element. */
static const struct plain_type {
    const char *name;
    enum bitconv_dtype dtype;
} plain_types[] = {
    {"F32", BITCONV_F32}, {"F16", BITCONV_F16}, {"BF16", BITCONV_BF16}, {"F64", BITCONV_F64},
    {"I8", BITCONV_I8},   {"I16", BITCONV_I16}, {"I32", BITCONV_I32},   {"I64", BITCONV_I64},
};

static bool gguf_values(const struct bitconv_gguf_tensor *t, struct bc_values *out)
{
    for (size_t i = 0; i < sizeof plain_types / sizeof plain_types[0]; i++) {
        if (strcmp(plain_types[i].name, t->type_name) != 0) continue;
        out->dtype = plain_types[i].dtype;
        out->data = t->data;
        out->n = t->n_elements;
        return t->size == t->n_elements * bitconv_dtype_size(out->dtype);
    }
    return false;
}

bool bc_container_values(const struct bc_container *c, size_t index, struct bc_values *out)
{
    if (c->gguf != NULL) return gguf_values(bitconv_gguf_tensor_at(c->gguf, index), out);
    const struct bitconv_tensor *t = bc_container_tensor(c, index);
    out->dtype = t->dtype;
    out->data = t->data;
    out->n = t->n_elements;
    return true;
}

int64_t bc_read_integer(const struct bc_values *v, uint64_t index)
{
    const uint8_t *p = v->data + index * bitconv_dtype_size(v->dtype);
    switch (v->dtype) {
    case BITCONV_BOOL:
    case BITCONV_U8:
        return p[0];
    case BITCONV_I8:
        return (int8_t)p[0];
    case BITCONV_I16:
        return (int16_t)bc_get_u16(p);
    case BITCONV_U16:
        return bc_get_u16(p);
    case BITCONV_I32:
        return (int32_t)bc_get_u32(p);
    case BITCONV_U32:
        return bc_get_u32(p);
    case BITCONV_I64:
    case BITCONV_U64:
        return (int64_t)bc_get_u64(p);
    default:
        return 0; /* the caller asks for integer types only */
    }
}

void bc_read_doubles(const struct bc_kernels *k, const struct bc_values *v, uint64_t first,
                     size_t n, double *dst)
{
    if (v->dtype == BITCONV_F64) {
        for (size_t i = 0; i < n; i++)
            dst[i] = bc_get_f64(v->data + 8 * (first + i));
        return;
    }
    if (!bitconv_dtype_is_float(v->dtype)) {
        for (size_t i = 0; i < n; i++) {
            const int64_t integer = bc_read_integer(v, first + i);
            dst[i] = v->dtype == BITCONV_U64 ? (double)(uint64_t)integer : (double)integer;
        }
        return;
    }
    float floats[CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t m = n - done < CHUNK ? n - done : CHUNK;
        bc_widen(k, v, first + done, m, floats);
        for (size_t i = 0; i < m; i++)
            dst[done + i] = (double)floats[i];
    }
}

/* What one piece contributes; the moments are merged in order afterwards. */
struct piece {
    uint64_t n, zero, nonfinite, outliers;
    double min, max, mean, m2; /* m2: sum of squared deviations from the piece's mean */
};

struct counting {
    const struct bc_values *v;
    const struct bc_kernels *k;
    struct piece *pieces;
    double *buffers;    /* PIECE_VALUES per worker */
    double mean, limit; /* second pass: an outlier is further than limit from mean */
};

static size_t load_piece(const struct counting *c, size_t index, double *buffer)
{
    const uint64_t first = (uint64_t)index * PIECE_VALUES;
    const uint64_t left = c->v->n - first;
    const size_t n = left < PIECE_VALUES ? (size_t)left : PIECE_VALUES;
    bc_read_doubles(c->k, c->v, first, n, buffer);
    return n;
}

static void measure_piece(void *context, size_t index, unsigned worker)
{
    const struct counting *c = context;
    double *x = c->buffers + (size_t)worker * PIECE_VALUES;
    const size_t n = load_piece(c, index, x);
    struct piece p = {.min = INFINITY, .max = -INFINITY};
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            p.nonfinite++;
            continue;
        }
        p.n++;
        p.zero += x[i] == 0;
        if (x[i] < p.min) p.min = x[i];
        if (x[i] > p.max) p.max = x[i];
        sum += x[i];
    }
    p.mean = p.n != 0 ? sum / (double)p.n : 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) p.m2 += (x[i] - p.mean) * (x[i] - p.mean);
    c->pieces[index] = p;
}

static void count_outliers(void *context, size_t index, unsigned worker)
{
    const struct counting *c = context;
    double *x = c->buffers + (size_t)worker * PIECE_VALUES;
    const size_t n = load_piece(c, index, x);
    uint64_t outliers = 0;
    for (size_t i = 0; i < n; i++)
        outliers += isfinite(x[i]) && fabs(x[i] - c->mean) > c->limit;
    c->pieces[index].outliers = outliers;
}

/* Chan, Golub and LeVeque's update: the moments of two runs from those of each. */
static void merge(struct piece *a, const struct piece *b)
{
    a->zero += b->zero;
    a->nonfinite += b->nonfinite;
    if (b->n == 0) return;
    if (b->min < a->min) a->min = b->min;
    if (b->max > a->max) a->max = b->max;
    const double n = (double)a->n + (double)b->n;
    const double delta = b->mean - a->mean;
    a->m2 += b->m2 + delta * delta * ((double)a->n * (double)b->n / n);
    a->mean += delta * ((double)b->n / n);
    a->n += b->n;
}

static enum bitconv_status count(struct counting *c, struct bc_pool *pool,
                                 const struct bitconv_sink *sink, size_t n_pieces,
                                 struct bitconv_tensor_stats *out, struct bitconv_error *err)
{
    struct piece all = {.min = INFINITY, .max = -INFINITY};
    bc_pool_run(pool, n_pieces, measure_piece, c);
    if (bc_canceled(sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    for (size_t i = 0; i < n_pieces; i++)
        merge(&all, &c->pieces[i]);
    out->kind = BITCONV_STATS_NUMBERS;
    out->zero = all.zero;
    out->nonfinite = all.nonfinite;
    out->zeros = c->v->n != 0 ? (double)all.zero / (double)c->v->n : 0;
    if (all.n == 0) return BITCONV_OK;
    out->min = all.min;
    out->max = all.max;
    out->mean = all.mean;
    out->stddev = sqrt(all.m2 / (double)all.n);
    c->mean = all.mean;
    c->limit = OUTLIER_SIGMAS * out->stddev;
    bc_pool_run(pool, n_pieces, count_outliers, c);
    for (size_t i = 0; i < n_pieces; i++)
        out->outliers += c->pieces[i].outliers;
    return BITCONV_OK;
}

enum bitconv_status bc_number_stats(const struct bc_values *v, const struct bc_kernels *k,
                                    struct bc_pool *pool, const struct bitconv_sink *sink,
                                    struct bitconv_tensor_stats *out, struct bitconv_error *err)
{
    memset(out, 0, sizeof *out);
    const size_t n_pieces = (size_t)(v->n / PIECE_VALUES + (v->n % PIECE_VALUES != 0 ? 1u : 0u));
    struct counting c = {.v = v, .k = k};
    c.pieces = bc_alloc_array(n_pieces, sizeof *c.pieces);
    c.buffers = bc_alloc_array((size_t)bc_pool_threads(pool) * PIECE_VALUES, sizeof *c.buffers);
    enum bitconv_status status = BITCONV_OK;
    if (c.pieces == NULL || c.buffers == NULL)
        status = bc_fail_nomem(err, "statistics");
    else
        status = count(&c, pool, sink, n_pieces, out, err);
    bc_free(c.pieces);
    bc_free(c.buffers);
    return status;
}

static double entropy_term(uint64_t part, uint64_t n)
{
    const double p = (double)part / (double)n;
    return part == 0 ? 0 : -p * log2(p);
}

void bc_ternary_stats(const struct bc_pack_scan *scan, struct bitconv_tensor_stats *out)
{
    memset(out, 0, sizeof *out);
    const uint64_t trits = scan->minus + scan->zero + scan->plus;
    const uint64_t n = trits + scan->illegal;
    out->kind = BITCONV_STATS_TERNARY;
    out->minus = scan->minus;
    out->zero = scan->zero;
    out->plus = scan->plus;
    out->illegal = scan->illegal;
    out->scale = scan->scale;
    if (n == 0) return;
    out->zeros = (double)scan->zero / (double)n;
    out->one_code = scan->minus == n || scan->zero == n || scan->plus == n;
    if (trits != 0)
        out->entropy = entropy_term(scan->minus, trits) + entropy_term(scan->zero, trits) +
                       entropy_term(scan->plus, trits);
}

void bc_offline_stats(const struct bitconv_tensor *t, const struct bitconv_tensor *scale,
                      const struct bc_kernels *k, struct bitconv_tensor_stats *out)
{
    struct bc_pack_scan scan = {.minus = 0};
    const struct bc_values scales = {scale->dtype, scale->data, scale->n_elements};
    int8_t trits[CHUNK];
    uint64_t counts[4] = {0};
    for (uint64_t done = 0; done < t->size; done += CHUNK) {
        const size_t n = t->size - done < CHUNK ? (size_t)(t->size - done) : CHUNK;
        for (unsigned shift = 0; shift < 8; shift += 2) {
            (void)k->hf_unpack(t->data + done, n, shift, trits);
            k->count_trits(trits, n, counts);
        }
    }
    scan.minus = counts[0];
    scan.zero = counts[1];
    scan.plus = counts[2];
    scan.illegal = counts[3];
    if (scales.n > 0) bc_widen(k, &scales, 0, 1, &scan.scale);
    bc_ternary_stats(&scan, out);
}
