/* SPDX-License-Identifier: MIT
 * Statistics of tensors: histogram and entropy of trits; range, mean, deviation and outliers of
 * numbers. */
#include "verify/tensor_stats.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bitconv/support.h"

enum { PIECE_VALUES = 65536, CHUNK = 1024 };
#define OUTLIER_SIGMAS 6.0 /* bitconv_tensor_stats.outliers */

/* What one piece contributes; the moments are merged in order afterwards. */
struct piece {
    uint64_t n, zero, nonfinite, outliers;
    double min, max, mean, m2; /* m2: sum of squared deviations from the piece's mean */
};

struct counting {
    const struct bc_decoded *d;
    const struct bc_kernels *k;
    struct piece *pieces;
    double *buffers;    /* PIECE_VALUES per worker */
    double mean, limit; /* second pass: an outlier is further than limit from mean */
};

static size_t load_piece(const struct counting *c, size_t index, double *buffer)
{
    const uint64_t first = (uint64_t)index * PIECE_VALUES;
    const uint64_t left = c->d->n - first;
    const size_t n = left < PIECE_VALUES ? (size_t)left : PIECE_VALUES;
    bc_decoded_read(c->k, c->d, first, n, buffer);
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
    out->zeros = c->d->n != 0 ? (double)all.zero / (double)c->d->n : 0;
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

enum bitconv_status bc_number_stats(const struct bc_decoded *d, const struct bc_kernels *k,
                                    struct bc_pool *pool, const struct bitconv_sink *sink,
                                    struct bitconv_tensor_stats *out, struct bitconv_error *err)
{
    memset(out, 0, sizeof *out);
    const size_t n_pieces = (size_t)(d->n / PIECE_VALUES + (d->n % PIECE_VALUES != 0 ? 1u : 0u));
    struct counting c = {.d = d, .k = k};
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
    out->entropy_bound = bitconv_entropy_bound(out->zeros);
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
