/* SPDX-License-Identifier: MIT
 * What values a run holds: the first NaN or Inf, the largest magnitude, how many magnitudes. */
#include "base/bytes.h"
#include "base/mem.h"
#include "quant/quantize.h"

#define INFINITY_BITS 0x7f800000u
#define BLOCK_VALUES  1024
/* A run is scanned in at most so many parts: enough for the threads of today's machines, few enough
 * for their results to live on the stack. */
#define MAX_PARTS 256

#define SEVERAL UINT32_MAX

/* Findings about a part of a run. Magnitudes are float32 bits, which order as the numbers do. */
struct census {
    uint64_t n_zero;
    uint64_t nonfinite; /* index of the first NaN or Inf, or BC_NO_INDEX */
    uint32_t max_bits;  /* largest finite magnitude */
    uint32_t only_bits; /* the one finite magnitude besides 0; 0 when there is none, or SEVERAL */
};

struct scan {
    const struct bc_kernels *k;
    const struct bc_values *v;
    uint64_t part_values;
    bool only_max; /* n_zero and only_bits are not asked for */
    struct census parts[MAX_PARTS];
};

static const struct census nothing_seen = {0, BC_NO_INDEX, 0, 0};

/* What is the one magnitude of two parts, given theirs? */
static uint32_t merge_only(uint32_t a, uint32_t b)
{
    if (a == 0 || a == b) return b;
    return b == 0 ? a : SEVERAL;
}

static void census_add(struct census *sum, const struct census *part)
{
    sum->n_zero += part->n_zero;
    sum->only_bits = merge_only(sum->only_bits, part->only_bits);
    if (part->nonfinite < sum->nonfinite) sum->nonfinite = part->nonfinite;
    if (part->max_bits > sum->max_bits) sum->max_bits = part->max_bits;
}

static uint32_t magnitude_bits(float value)
{
    return bc_f32_bits(value) & 0x7fffffffu;
}

/* The definition; for blocks that are short or hold a NaN or Inf. `first` is the index of
 * values[0]. */
static struct census census_of_any(const float *values, size_t n, uint64_t first)
{
    struct census c = nothing_seen;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = magnitude_bits(values[i]);
        if (bits >= INFINITY_BITS) {
            if (c.nonfinite == BC_NO_INDEX) c.nonfinite = first + i;
            continue;
        }
        if (bits == 0) c.n_zero++;
        c.only_bits = merge_only(c.only_bits, bits);
        if (bits > c.max_bits) c.max_bits = bits;
    }
    return c;
}

/* How many values of a block have this magnitude. The constant length lets compilers use vector
 * code. */
static uint64_t count_in_block(const float values[BLOCK_VALUES], uint32_t magnitude)
{
    int32_t n = 0;
    for (size_t i = 0; i < BLOCK_VALUES; i++)
        n += magnitude_bits(values[i]) == magnitude;
    return (uint64_t)n;
}

/* The same census, by comparing a whole finite block with 0 and with its largest magnitude. */
static struct census census_of(const float *values, size_t n, uint64_t first, uint32_t max_bits)
{
    if (max_bits >= INFINITY_BITS || n < BLOCK_VALUES) return census_of_any(values, n, first);
    if (max_bits == 0) return (struct census){n, BC_NO_INDEX, 0, 0};
    const uint64_t n_zero = count_in_block(values, 0);
    const bool only = n_zero + count_in_block(values, max_bits) == n;
    return (struct census){n_zero, BC_NO_INDEX, max_bits, only ? max_bits : SEVERAL};
}

static void scan_part(void *ctx, size_t i, unsigned worker)
{
    struct scan *scan = ctx;
    const uint64_t begin = i * scan->part_values;
    const uint64_t left = scan->v->n - begin;
    const uint64_t end = begin + (left < scan->part_values ? left : scan->part_values);
    struct census sum = nothing_seen;
    (void)worker;

    for (uint64_t first = begin; first < end; first += BLOCK_VALUES) {
        float values[BLOCK_VALUES];
        const size_t n = end - first < BLOCK_VALUES ? (size_t)(end - first) : BLOCK_VALUES;
        bc_widen(scan->k, scan->v, first, n, values);
        struct census block = nothing_seen;
        block.max_bits = scan->k->max_abs_bits(values, n);
        if (!scan->only_max || block.max_bits >= INFINITY_BITS)
            block = census_of(values, n, first, block.max_bits);
        census_add(&sum, &block);
    }
    scan->parts[i] = sum;
}

static struct census scan_run(const struct bc_kernels *k, struct bc_pool *pool,
                              const struct bc_values *v, bool only_max)
{
    struct scan scan = {.k = k, .v = v, .only_max = only_max};
    scan.part_values = bc_round_up(v->n / MAX_PARTS + 1, BLOCK_VALUES);
    const size_t n_parts = (size_t)(v->n / scan.part_values + (v->n % scan.part_values != 0));
    bc_pool_run(pool, n_parts, scan_part, &scan);

    struct census sum = nothing_seen;
    for (size_t i = 0; i < n_parts; i++)
        census_add(&sum, &scan.parts[i]);
    return sum;
}

uint64_t bc_first_nonfinite(const struct bc_kernels *k, struct bc_pool *pool,
                            const struct bc_values *v, float *out_max)
{
    const struct census c = scan_run(k, pool, v, true);
    *out_max = bc_f32_from_bits(c.max_bits);
    return c.nonfinite;
}

/* Distinct finite magnitudes of a 16-bit float type: there are at most 32767, each its own number.
 */
static uint64_t count_distinct_halves(const struct bc_values *v)
{
    const uint32_t infinity = v->dtype == BITCONV_BF16 ? INFINITY_BITS >> 16 : 0x7c00u;
    uint8_t seen[0x8000] = {0};
    for (uint64_t i = 0; i < v->n; i++)
        seen[bc_get_u16(v->data + 2 * i) & 0x7fffu] = 1;
    uint64_t n = 0;
    for (uint32_t bits = 1; bits < infinity; bits++)
        n += seen[bits];
    return n;
}

/* A set of magnitudes: open addressing with linear probing, half full at most. 0 marks a free slot
 * (the magnitude 0 is never put in). */
struct magnitude_set {
    uint32_t *slots;
    uint32_t n_used;
};
#define SET_SLOTS (2 * BC_MAX_DISTINCT)

static void set_insert(struct magnitude_set *set, uint32_t bits)
{
    /* Fibonacci hashing: the upper bits of the product depend on all bits of the key. */
    uint32_t slot = (bits * 0x9e3779b1u) >> 15;
    while (set->slots[slot] != 0) {
        if (set->slots[slot] == bits) return;
        slot = (slot + 1) % SET_SLOTS;
    }
    set->slots[slot] = bits;
    set->n_used++;
}

/* Distinct finite magnitudes other than 0, counted up to BC_MAX_DISTINCT. */
static enum bitconv_status count_distinct(const struct bc_kernels *k, const struct bc_values *v,
                                          uint64_t *out, struct bitconv_error *err)
{
    struct magnitude_set set = {bc_alloc_array(SET_SLOTS, sizeof *set.slots), 0};
    if (set.slots == NULL) return bc_fail_nomem(err, "the distinct magnitudes of a tensor");

    uint32_t last = 0; /* neighbours are often equal */
    for (uint64_t first = 0; first < v->n && set.n_used < BC_MAX_DISTINCT; first += BLOCK_VALUES) {
        float values[BLOCK_VALUES];
        const size_t n = v->n - first < BLOCK_VALUES ? (size_t)(v->n - first) : BLOCK_VALUES;
        bc_widen(k, v, first, n, values);
        for (size_t i = 0; i < n && set.n_used < BC_MAX_DISTINCT; i++) {
            const uint32_t bits = magnitude_bits(values[i]);
            if (bits == 0 || bits == last || bits >= INFINITY_BITS) continue;
            set_insert(&set, bits);
            last = bits;
        }
    }
    *out = set.n_used;
    bc_free(set.slots);
    return BITCONV_OK;
}

enum bitconv_status bc_magnitudes(const struct bc_kernels *k, struct bc_pool *pool,
                                  const struct bc_values *v, struct bc_magnitudes *out,
                                  struct bitconv_error *err)
{
    const struct census c = scan_run(k, pool, v, false);
    *out = (struct bc_magnitudes){
        .n_zero = c.n_zero, .max = bc_f32_from_bits(c.max_bits), .nonfinite = c.nonfinite};
    if (c.max_bits == 0) return BITCONV_OK;
    if (c.only_bits != SEVERAL) {
        out->n_distinct = 1;
        out->magnitude = out->max;
        return BITCONV_OK;
    }
    if (v->dtype == BITCONV_BF16 || v->dtype == BITCONV_F16) {
        out->n_distinct = count_distinct_halves(v);
        return BITCONV_OK;
    }
    return count_distinct(k, v, &out->n_distinct, err);
}
