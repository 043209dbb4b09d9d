/* SPDX-License-Identifier: MIT
 * Tokens from logits: greedy, or drawn from the likeliest. Probabilities are in double, and
 * candidates are put in order only as far as they are needed. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bitconv/generate.h"

struct bitconv_sampler {
    struct bitconv_sampling how;
    uint64_t state;
    uint32_t n_vocab;
    uint32_t *heap;  /* ids; the likeliest in front */
    uint32_t *taken; /* ids out of the heap, in falling order */
    double *weights; /* exp((logit - largest) / temperature), by id */
};

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In [0, 1), a multiple of 2^-53. */
static double next_uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

/* ---- order ---- */

static float key_of(const float *logits, uint32_t id)
{
    return isnan(logits[id]) ? -INFINITY : logits[id];
}

/* Whether a comes before b; a total order. */
static bool before(const float *logits, uint32_t a, uint32_t b)
{
    const float x = key_of(logits, a), y = key_of(logits, b);
    return x > y || (x == y && a < b);
}

static void sift_down(uint32_t *heap, size_t n, size_t at, const float *logits)
{
    for (;;) {
        size_t first = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (before(logits, heap[child], heap[first])) first = child;
        if (first == at) return;
        const uint32_t swap = heap[at];
        heap[at] = heap[first];
        heap[first] = swap;
        at = first;
    }
}

static void make_heap(uint32_t *heap, uint32_t n, const float *logits)
{
    for (uint32_t i = 0; i < n; i++)
        heap[i] = i;
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i, logits);
}

/* Takes the front of a heap of *n ids. */
static uint32_t pop(uint32_t *heap, size_t *n, const float *logits)
{
    const uint32_t front = heap[0];
    heap[0] = heap[--*n];
    sift_down(heap, *n, 0, logits);
    return front;
}

static uint32_t likeliest(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (before(logits, i, best)) best = i;
    return best;
}

/* exp((logit - largest) / temperature) of every id; the sum. Infinite logits count as equals. */
static double weigh(const float *logits, uint32_t n, double temperature, double *weights)
{
    const double largest = key_of(logits, likeliest(logits, n));
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double key = key_of(logits, i);
        weights[i] = key == largest ? 1.0 : exp((key - largest) / temperature);
        sum += weights[i];
    }
    return sum;
}

/* ---- drawing ---- */

/* The first of n ids (in the order of `ids`, or 0, 1, 2... when NULL) at which the running sum of
 * weights exceeds a random share of `sum`. */
static uint32_t draw(struct bitconv_sampler *s, const uint32_t *ids, size_t n, double sum)
{
    const double wanted = next_uniform(&s->state) * sum;
    double reached = 0;
    uint32_t last = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = ids != NULL ? ids[i] : (uint32_t)i;
        if (s->weights[id] == 0) continue;
        reached += s->weights[id];
        last = id;
        if (reached > wanted) break;
    }
    return last;
}

/* The ids that top_k, and of these top_p, leave, in falling order, into s->taken; *sum of their
 * weights. `all` is the sum of all weights. */
static size_t take_likeliest(struct bitconv_sampler *s, const float *logits, double all,
                             double *sum)
{
    const bool by_k = s->how.top_k > 0 && s->how.top_k < s->n_vocab;
    const bool by_p = s->how.top_p > 0 && s->how.top_p < 1;
    const size_t limit = by_k ? s->how.top_k : s->n_vocab;
    size_t left = s->n_vocab, n_taken = 0, n = 0;
    make_heap(s->heap, s->n_vocab, logits);
    if (by_k) {
        all = 0;
        while (n_taken < limit) {
            s->taken[n_taken] = pop(s->heap, &left, logits);
            all += s->weights[s->taken[n_taken++]];
        }
    }
    *sum = 0;
    while (n < limit && (n == 0 || !by_p || *sum < s->how.top_p * all)) {
        if (n == n_taken) s->taken[n_taken++] = pop(s->heap, &left, logits);
        *sum += s->weights[s->taken[n++]];
    }
    return n;
}

uint32_t bitconv_sampler_next(struct bitconv_sampler *sampler, const float *logits)
{
    struct bitconv_sampler *s = sampler;
    if (s->how.temperature == 0) return likeliest(logits, s->n_vocab);
    double sum = weigh(logits, s->n_vocab, s->how.temperature, s->weights);
    const bool all = (s->how.top_k == 0 || s->how.top_k >= s->n_vocab) &&
                     (s->how.top_p == 0 || s->how.top_p == 1);
    if (all) return draw(s, NULL, s->n_vocab, sum);
    const size_t n = take_likeliest(s, logits, sum, &sum);
    return draw(s, s->taken, n, sum);
}

size_t bitconv_top_candidates(const float *logits, uint32_t n_vocab, size_t n,
                              struct bitconv_candidate *out)
{
    uint32_t *heap = bc_alloc_array(n_vocab, sizeof *heap);
    double *weights = bc_alloc_array(n_vocab, sizeof *weights);
    size_t left = n_vocab;
    if (n > n_vocab) n = n_vocab;
    if (heap == NULL || weights == NULL) n = 0;
    const double sum = n > 0 ? weigh(logits, n_vocab, 1.0, weights) : 1.0;
    if (n > 0) make_heap(heap, n_vocab, logits);
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = pop(heap, &left, logits);
        out[i] = (struct bitconv_candidate){id, logits[id], weights[id] / sum};
    }
    bc_free(heap);
    bc_free(weights);
    return n;
}

/* ---- set-up ---- */

enum bitconv_status bitconv_sampler_new(const struct bitconv_sampling *sampling, uint32_t n_vocab,
                                        struct bitconv_sampler **out, struct bitconv_error *err)
{
    *out = NULL;
    if (!(sampling->temperature >= 0 && isfinite(sampling->temperature)))
        return bc_fail(err, BITCONV_E_ARG,
                       "a temperature of %g was asked for, it is 0 (the likeliest token) or more",
                       sampling->temperature);
    if (!(sampling->top_p >= 0 && sampling->top_p <= 1))
        return bc_fail(err, BITCONV_E_ARG, "top-p of %g was asked for, it is a share from 0 to 1",
                       sampling->top_p);
    if (n_vocab == 0) return bc_fail(err, BITCONV_E_ARG, "a vocabulary of no tokens");
    struct bitconv_sampler *s = bc_alloc_array(1, sizeof *s);
    if (s == NULL) return bc_fail_nomem(err, "a sampler");
    s->how = *sampling;
    s->state = sampling->seed;
    s->n_vocab = n_vocab;
    s->heap = bc_alloc_array(n_vocab, sizeof *s->heap);
    s->taken = bc_alloc_array(n_vocab, sizeof *s->taken);
    s->weights = bc_alloc_array(n_vocab, sizeof *s->weights);
    if (s->heap == NULL || s->taken == NULL || s->weights == NULL) {
        bitconv_sampler_free(s);
        return bc_fail_nomem(err, "a sampler");
    }
    *out = s;
    return BITCONV_OK;
}

void bitconv_sampler_free(struct bitconv_sampler *sampler)
{
    if (sampler == NULL) return;
    bc_free(sampler->heap);
    bc_free(sampler->taken);
    bc_free(sampler->weights);
    bc_free(sampler);
}
