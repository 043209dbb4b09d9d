/* SPDX-License-Identifier: MIT
 * One table of kernels under test, one loop over lengths, places and contents. */
#include "support/kernel_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/kernels_rows.h"
#include "support/guard.h"
#include "support/rng.h"

#define MAX_SHORT 257
#define CANARY    0xa5

enum element { FLOATS, HALVES, TRITS, BYTES };
enum content { RANDOM_BITS, SPECIAL, ORDINARY, N_CONTENTS };
enum place { AT_END, AT_START, AT_ODD, N_PLACES };

/* A kernel under a common signature: n is in units of `unit_in` elements read and `unit_out` bytes
 * written; what the kernel returns is widened to 64 bits. */
struct subject {
    const char *name;
    enum element element;
    size_t unit_in;
    size_t unit_out;
    uint64_t (*run)(const struct bc_kernels *k, const void *src, size_t n, void *dst);
};

static uint64_t run_widen_bf16(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->widen_bf16(src, n, dst);
    return 0;
}

static uint64_t run_widen_f16(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->widen_f16(src, n, dst);
    return 0;
}

static uint64_t run_narrow_bf16(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->narrow_bf16(src, n, dst);
    return 0;
}

static uint64_t run_narrow_f16(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->narrow_f16(src, n, dst);
    return 0;
}

static uint64_t run_bf16_to_f16(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->bf16_to_f16(src, n, dst);
    return 0;
}

static uint64_t run_max_abs_bits(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    (void)dst;
    return k->max_abs_bits(src, n);
}

/* Which of several NaNs a sum hands on is not promised. */
static uint64_t sum_bits(float sum)
{
    return isnan(sum) ? 0x7fc00000u : bc_f32_bits(sum);
}

static uint64_t run_abs_sum_block(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    (void)dst;
    return sum_bits(k->abs_sum_block(src, n < 128 ? n : 128));
}

static uint64_t run_ternarize(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->ternarize(src, n, 1.0f, dst);
    return 0;
}

/* A factor with a full mantissa, so that products are rounded. */
static uint64_t run_ternarize_inexact(const struct bc_kernels *k, const void *src, size_t n,
                                      void *dst)
{
    k->ternarize(src, n, 0.7071068f, dst);
    return 0;
}

static uint64_t run_sign(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->sign(src, n, dst);
    return 0;
}

static uint64_t run_trits_to_f32(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->trits_to_f32(src, n, -0.1f, dst);
    return 0;
}

/* 0 * infinity would be NaN: zero trits must not be multiplied. */
static uint64_t run_trits_to_inf(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->trits_to_f32(src, n, INFINITY, dst);
    return 0;
}

static uint64_t run_hf_unpack_0(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    return k->hf_unpack(src, n, 0, dst);
}

static uint64_t run_hf_unpack_2(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    return k->hf_unpack(src, n, 2, dst);
}

static uint64_t run_hf_unpack_4(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    return k->hf_unpack(src, n, 4, dst);
}

static uint64_t run_hf_unpack_6(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    return k->hf_unpack(src, n, 6, dst);
}

static uint64_t run_count_trits(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    uint64_t counts[4] = {1, 20, 300, 4000}; /* counts are added to what is there */
    (void)dst;
    k->count_trits(src, n, counts);
    return counts[0] ^ counts[1] << 16 ^ counts[2] << 32 ^ counts[3] << 48;
}

static uint64_t run_pack_128(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->pack_planes(src, n, 32, dst);
    return 0;
}

static uint64_t run_pack_64(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    k->pack_planes(src, n, 16, dst);
    return 0;
}

static uint64_t run_unpack_128(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    return k->unpack_planes(src, n, 32, dst);
}

static uint64_t run_unpack_64(const struct bc_kernels *k, const void *src, size_t n, void *dst)
{
    return k->unpack_planes(src, n, 16, dst);
}

static const struct subject subjects[] = {
    {"widen_bf16", HALVES, 1, 4, run_widen_bf16},
    {"widen_f16", HALVES, 1, 4, run_widen_f16},
    {"narrow_bf16", FLOATS, 1, 2, run_narrow_bf16},
    {"narrow_f16", FLOATS, 1, 2, run_narrow_f16},
    {"bf16_to_f16", HALVES, 1, 2, run_bf16_to_f16},
    {"max_abs_bits", FLOATS, 1, 0, run_max_abs_bits},
    {"abs_sum_block", FLOATS, 1, 0, run_abs_sum_block},
    {"ternarize by 1", FLOATS, 1, 1, run_ternarize},
    {"ternarize by 0.7", FLOATS, 1, 1, run_ternarize_inexact},
    {"sign", FLOATS, 1, 1, run_sign},
    {"trits_to_f32", TRITS, 1, 4, run_trits_to_f32},
    {"trits_to_f32 by infinity", TRITS, 1, 4, run_trits_to_inf},
    {"hf_unpack shift 0", BYTES, 1, 1, run_hf_unpack_0},
    {"hf_unpack shift 2", BYTES, 1, 1, run_hf_unpack_2},
    {"hf_unpack shift 4", BYTES, 1, 1, run_hf_unpack_4},
    {"hf_unpack shift 6", BYTES, 1, 1, run_hf_unpack_6},
    {"count_trits", TRITS, 1, 0, run_count_trits},
    {"pack_planes 32", TRITS, 128, 32, run_pack_128},
    {"pack_planes 16", TRITS, 64, 16, run_pack_64},
    {"unpack_planes 32", BYTES, 32, 128, run_unpack_128},
    {"unpack_planes 16", BYTES, 16, 64, run_unpack_64},
};

static size_t element_size(enum element element)
{
    return element == FLOATS ? 4 : element == HALVES ? 2 : 1;
}

static uint32_t float_bits(enum content content, uint64_t *rng)
{
    /* +-0, subnormals, 0.5 and 1.5 with their neighbours, the bounds and ties of binary16,
     * infinities, NaNs. */
    static const uint32_t special[] = {
        0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x3f000000, 0xbf000000, 0x3f000001,
        0x3effffff, 0xbf000001, 0xbeffffff, 0x3fc00000, 0xbfc00000, 0x3f800000, 0x7f7fffff,
        0xff7fffff, 0x477fe000, 0x477fefff, 0x477ff000, 0xc77ff000, 0x33000000, 0x33000001,
        0x33800000, 0x387fc000, 0x38800000, 0x387fe000, 0x7f800000, 0xff800000, 0x7fc00000,
        0xffc00001, 0x7f800001, 0xffbfffff, 0x7fffffff, 0x3f808000, 0x3f818000, 0x3f80c000};
    const uint64_t r = rng_next(rng);
    if (content == RANDOM_BITS) return (uint32_t)r;
    if (content == SPECIAL) return special[(r >> 8) % (sizeof special / sizeof special[0])];
    return bc_f32_bits((float)((double)(r >> 40) / 0x1p22 - 2.0)); /* 24 bits in [-2, 2) */
}

static void put_element(uint8_t *p, enum element element, enum content content, uint64_t *rng)
{
    const uint32_t bits = float_bits(content, rng);
    const uint64_t r = rng_next(rng);
    switch (element) {
    case FLOATS:
        bc_put_f32(p, bc_f32_from_bits(bits));
        break;
    case HALVES:
        bc_put_u16(p, (uint16_t)(content == RANDOM_BITS ? bits : bits >> 16));
        break;
    case TRITS:
        *p = (uint8_t)(content == RANDOM_BITS ? r : r % 3 - 1);
        break;
    case BYTES: /* four codes; ordinary ones are legal */
        *p = (uint8_t)(content == RANDOM_BITS
                           ? r
                           : r % 3 | (r >> 8) % 3 << 2 | (r >> 16) % 3 << 4 | (r >> 24) % 3 << 6);
        break;
    }
}

static void fill(uint8_t *p, enum element element, size_t n, enum content content, uint64_t *rng)
{
    const size_t size = element_size(element);
    for (size_t i = 0; i < n; i++)
        put_element(p + i * size, element, content, rng);
}

struct buffers {
    struct guard src, expected, actual;
};

/* Floats keep the alignment of their type; bytes go to odd addresses too. */
static uint8_t *place_of(const struct guard *g, size_t size, enum place place, size_t alignment)
{
    if (place == AT_END) return guard_end(g, size);
    return g->start + (place == AT_START ? 0 : 5 * alignment);
}

static bool compare_once(const struct bc_kernels *row, const struct subject *s, struct buffers *b,
                         size_t n, enum place place, enum content content, uint64_t *rng)
{
    const struct bc_kernels *scalar = &bc_kernels_scalar;
    const size_t n_in = n * s->unit_in, in_size = n_in * element_size(s->element);
    const size_t out_size = n * s->unit_out;
    const size_t out_alignment = s->unit_out == 4 ? 4 : 1;
    uint8_t *src = place_of(&b->src, in_size, place, s->element == FLOATS ? 4 : 1);
    fill(src, s->element, n_in, content, rng);

    /* Whole buffers are compared, so a stray write shows although it hits no unmapped page. */
    memset(b->expected.start, CANARY, b->expected.room);
    memset(b->actual.start, CANARY, b->actual.room);
    const uint64_t expected =
        s->run(scalar, src, n, place_of(&b->expected, out_size, place, out_alignment));
    const uint64_t actual =
        s->run(row, src, n, place_of(&b->actual, out_size, place, out_alignment));
    return expected == actual && memcmp(b->expected.start, b->actual.start, b->actual.room) == 0;
}

static bool compare_lengths(const struct bc_kernels *row, const struct subject *s, char *why,
                            size_t why_size)
{
    /* Blocks are long: a third of the lengths, as there is no rest within a block. */
    const size_t max = s->unit_in == 1 ? MAX_SHORT : MAX_SHORT / 3;
    struct buffers b;
    uint64_t rng = 1;
    bool equal = true;
    if (!guard_open(&b.src, max * s->unit_in * 4 + 64) ||
        !guard_open(&b.expected, max * s->unit_out + 64) ||
        !guard_open(&b.actual, max * s->unit_out + 64)) {
        snprintf(why, why_size, "no memory for guarded buffers");
        return false;
    }
    for (size_t n = 0; n <= max && equal; n++) {
        for (unsigned i = 0; i < N_PLACES * N_CONTENTS && equal; i++) {
            equal = compare_once(row, s, &b, n, i % N_PLACES, i / N_PLACES, &rng);
            if (!equal)
                snprintf(why, why_size,
                         "%s of row %s differs from scalar: n %zu, place %u, content %u", s->name,
                         row->name, n, i % N_PLACES, i / N_PLACES);
        }
    }
    guard_close(&b.src);
    guard_close(&b.expected);
    guard_close(&b.actual);
    return equal;
}

/* Counters of one byte a lane would overflow after 255 vectors of one value. */
static bool compare_long_counts(const struct bc_kernels *row, char *why, size_t why_size)
{
    static const size_t lengths[] = {4080, 4096, 8160, 8192, 16320, 16321, 16384, 50000};
    int8_t *trits = malloc(50000);
    bool equal = trits != NULL;
    for (int value = -1; value <= 2 && equal; value++) {
        memset(trits, value, 50000);
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && equal; i++) {
            uint64_t counts[4] = {0, 0, 0, 0};
            row->count_trits(trits, lengths[i], counts);
            for (int slot = 0; slot < 4; slot++)
                equal = equal && counts[slot] == (slot == value + 1 ? lengths[i] : 0);
        }
    }
    free(trits);
    if (!equal) snprintf(why, why_size, "count_trits of row %s is wrong on a long run", row->name);
    return equal;
}

bool kernel_row_equals_scalar(const struct bc_kernels *row, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (!compare_lengths(row, &subjects[i], why, why_size)) return false;
    }
    return compare_long_counts(row, why, why_size);
}

/* Long enough for vectors to be used, short enough to name the culprit. */
#define GROUP 64

static bool compare_groups(const struct bc_kernels *row, const struct subject *s,
                           const uint8_t *src, size_t n, char *why, size_t why_size)
{
    const size_t size = element_size(s->element);
    for (size_t i = 0; i < n; i += GROUP) {
        const size_t left = n - i < GROUP ? n - i : GROUP;
        float expected[GROUP], actual[GROUP]; /* floats for their alignment; halves fit too */
        s->run(&bc_kernels_scalar, src + i * size, left, expected);
        s->run(row, src + i * size, left, actual);
        if (memcmp(expected, actual, left * s->unit_out) == 0) continue;
        snprintf(why, why_size, "%s of row %s differs from scalar in values %zu to %zu", s->name,
                 row->name, i, i + left - 1);
        return false;
    }
    return true;
}

/* Around the half h and around the midpoint of h and h + 1: one step down, the value, one step up.
 */
static size_t put_neighbours(const struct bc_kernels *scalar, bool bf16, uint32_t h, uint8_t *dst)
{
    float value[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t half[2];
        bc_put_u16(half, (uint16_t)(h + i));
        (bf16 ? scalar->widen_bf16 : scalar->widen_f16)(half, 1, &value[i]);
    }
    const uint32_t low = bc_f32_bits(value[0]), high = bc_f32_bits(value[1]);
    const uint32_t centres[2] = {low, low + (high - low) / 2};
    size_t n = 0;
    for (size_t c = 0; c < 2; c++) {
        for (uint32_t step = 0; step < 3; step++)
            bc_put_u32(dst + 4 * n++, centres[c] + step - 1);
    }
    return n;
}

bool kernel_halves_equal_scalar(const struct bc_kernels *row, char *why, size_t why_size)
{
    const struct bc_kernels *scalar = &bc_kernels_scalar;
    const size_t n_floats = 2 * 6 * 65536;
    uint8_t *halves = malloc(2 * 65536);
    float *floats = malloc(n_floats * sizeof *floats);
    uint8_t *float_bytes = (uint8_t *)floats;
    bool equal = halves != NULL && floats != NULL;
    if (!equal) snprintf(why, why_size, "out of memory");

    size_t n = 0;
    for (uint32_t h = 0; h < 65536 && equal; h++) {
        bc_put_u16(halves + 2 * h, (uint16_t)h);
        n += put_neighbours(scalar, false, h, float_bytes + 4 * n);
        n += put_neighbours(scalar, true, h, float_bytes + 4 * n);
    }
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] && equal; i++) {
        const struct subject *s = &subjects[i];
        if (s->element == HALVES) equal = compare_groups(row, s, halves, 65536, why, why_size);
        if (s->run == run_narrow_bf16 || s->run == run_narrow_f16)
            equal = compare_groups(row, s, float_bytes, n, why, why_size);
    }
    free(halves);
    free(floats);
    return equal;
}
