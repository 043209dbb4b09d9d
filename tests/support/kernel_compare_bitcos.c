/* SPDX-License-Identifier: MIT
 * One loop over lengths, ranks, stream lengths and contents for BITCOS, one over lengths and
 * contents for T5. */
#include "support/kernel_compare_bitcos.h"

#include <stdio.h>
#include <string.h>

#include "quant/kernels_bitcos.h"
#include "support/guard.h"
#include "support/rng.h"

enum { MAX_N = 4000, MAX_RANK = 200, CANARY = 0xa5 };

enum content { ALL_ZERO, ALL_PLUS, ALL_MINUS, MOSTLY_ZERO, UNIFORM, ANY_BYTE, N_CONTENTS };

struct buffers {
    struct guard src, signs, expected, expected_signs, actual, actual_signs;
};

static bool buffers_open(struct buffers *b)
{
    return guard_open(&b->src, MAX_N) && guard_open(&b->signs, MAX_N) &&
           guard_open(&b->expected, MAX_N) && guard_open(&b->expected_signs, MAX_N) &&
           guard_open(&b->actual, MAX_N) && guard_open(&b->actual_signs, MAX_N);
}

static void buffers_close(struct buffers *b)
{
    guard_close(&b->src);
    guard_close(&b->signs);
    guard_close(&b->expected);
    guard_close(&b->expected_signs);
    guard_close(&b->actual);
    guard_close(&b->actual_signs);
}

static uint8_t value_of(enum content content, uint64_t r)
{
    static const uint8_t trits[3] = {0xff, 0, 1};
    switch (content) {
    case ALL_ZERO:
        return 0;
    case ALL_PLUS:
        return 1;
    case ALL_MINUS:
        return 0xff;
    case MOSTLY_ZERO:
        return r % 50 == 0 ? trits[(r >> 32) % 3] : 0;
    case UNIFORM:
        return trits[r % 3];
    default:
        return (uint8_t)r;
    }
}

static void fill(uint8_t *p, size_t n, enum content content, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = value_of(content, rng_next(rng));
}

static void clear_outputs(struct buffers *b)
{
    memset(b->expected.start, CANARY, b->expected.room);
    memset(b->actual.start, CANARY, b->actual.room);
    fill(b->expected_signs.start, b->expected_signs.room, ANY_BYTE, &(uint64_t){7});
    memcpy(b->actual_signs.start, b->expected_signs.start, b->expected_signs.room);
}

/* Whole buffers, so a stray write shows although it hits no unmapped page. */
static bool outputs_equal(const struct buffers *b)
{
    return memcmp(b->expected.start, b->actual.start, b->actual.room) == 0 &&
           memcmp(b->expected_signs.start, b->actual_signs.start, b->actual_signs.room) == 0;
}

/* n_words counts from the stream's start. */
static bool compare_pack(const struct bc_kernels *row, struct buffers *b, size_t n, uint64_t rank,
                         size_t n_words)
{
    const size_t bitmap_size = (n + 63) / 64 * 8;
    const int8_t *src = (const int8_t *)guard_end(&b->src, n);
    clear_outputs(b);
    const uint64_t expected =
        bc_scalar_bitcos_pack(src, n, guard_end(&b->expected, bitmap_size),
                              guard_end(&b->expected_signs, 8 * n_words), n_words, rank);
    const uint64_t actual =
        row->bitcos_pack(src, n, guard_end(&b->actual, bitmap_size),
                         guard_end(&b->actual_signs, 8 * n_words), n_words, rank);
    return expected == actual && outputs_equal(b);
}

/* The bitmap of the trits that compare_pack has packed; n_signs counts from the stream's start. */
static bool compare_unpack(const struct bc_kernels *row, struct buffers *b, size_t n, uint64_t rank,
                           uint64_t n_signs, uint64_t *rng)
{
    const size_t bitmap_size = (n + 63) / 64 * 8, signs_size = (size_t)(n_signs + 63) / 64 * 8;
    const uint8_t *signs = guard_end(&b->signs, signs_size);
    uint8_t *bitmap = guard_end(&b->src, bitmap_size);
    memcpy(bitmap, guard_end(&b->expected, bitmap_size), bitmap_size);
    fill(guard_end(&b->signs, signs_size), signs_size, ANY_BYTE, rng);
    clear_outputs(b);
    const uint64_t expected = bc_scalar_bitcos_unpack(bitmap, n, signs, n_signs, rank,
                                                      (int8_t *)guard_end(&b->expected, n));
    const uint64_t actual =
        row->bitcos_unpack(bitmap, n, signs, n_signs, rank, (int8_t *)guard_end(&b->actual, n));
    return expected == actual && outputs_equal(b);
}

static size_t count_nonzero(const uint8_t *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += p[i] != 0;
    return count;
}

/* Streams with room for everything, for all but the last words or bits, and for nothing. */
static bool compare_bitcos(const struct bc_kernels *row, struct buffers *b, size_t n,
                           enum content content, uint64_t rank, uint64_t *rng)
{
    fill(guard_end(&b->src, n), n, content, rng);
    const uint64_t end = rank + count_nonzero(guard_end(&b->src, n), n);
    const size_t n_words = (size_t)(end + 63) / 64;
    if (!compare_pack(row, b, n, rank, 0) || !compare_pack(row, b, n, rank, n_words / 2) ||
        !compare_pack(row, b, n, rank, n_words + 1) || !compare_pack(row, b, n, rank, n_words))
        return false;
    uint8_t bitmap[(MAX_N + 63) / 64 * 8];
    const size_t bitmap_size = (n + 63) / 64 * 8;
    memcpy(bitmap, guard_end(&b->expected, bitmap_size), bitmap_size);
    const uint64_t n_signs[] = {end, end + 1, end + 64, end + 65, end / 2, end > 0 ? end - 1 : 0,
                                0};
    for (size_t i = 0; i < sizeof n_signs / sizeof n_signs[0]; i++) {
        memcpy(guard_end(&b->expected, bitmap_size), bitmap, bitmap_size);
        if (!compare_unpack(row, b, n, rank, n_signs[i], rng)) return false;
    }
    return true;
}

/* T5 is defined for trits only; unpacking is for every byte. */
static bool compare_t5(const struct bc_kernels *row, struct buffers *b, size_t n,
                       enum content content, uint64_t *rng)
{
    const size_t size = (n + 4) / 5;
    const int8_t *trits = (const int8_t *)guard_end(&b->src, n);
    const uint8_t *bytes = guard_end(&b->signs, size);
    fill(guard_end(&b->src, n), n, content == ANY_BYTE ? UNIFORM : content, rng);
    clear_outputs(b);
    bc_scalar_t5_pack(trits, n, guard_end(&b->expected, size));
    row->t5_pack(trits, n, guard_end(&b->actual, size));
    if (!outputs_equal(b)) return false;

    memcpy(guard_end(&b->signs, size), guard_end(&b->expected, size), size);
    if (content == ANY_BYTE) fill(guard_end(&b->signs, size), size, ANY_BYTE, rng);
    if (content == UNIFORM && size > 0) /* one byte that is just too high, anywhere */
        guard_end(&b->signs, size)[rng_below(rng, size)] = 243;
    clear_outputs(b);
    const bool expected = bc_scalar_t5_unpack(bytes, n, (int8_t *)guard_end(&b->expected, n));
    const bool actual = row->t5_unpack(bytes, n, (int8_t *)guard_end(&b->actual, n));
    return expected == actual && outputs_equal(b);
}

static bool compare_length(const struct bc_kernels *row, struct buffers *b, size_t n, uint64_t *rng,
                           char *why, size_t why_size)
{
    static const uint64_t ranks[] = {0, 1, 63, 64, 131, MAX_RANK};
    for (int content = 0; content < N_CONTENTS; content++) {
        if (!compare_t5(row, b, n, (enum content)content, rng)) {
            snprintf(why, why_size, "t5 of row %s differs from its definition: n %zu, content %d",
                     row->name, n, content);
            return false;
        }
        for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
            if (compare_bitcos(row, b, n, (enum content)content, ranks[i], rng)) continue;
            snprintf(why, why_size,
                     "bitcos of row %s differs from its definition: n %zu, content %d, rank %d",
                     row->name, n, content, (int)ranks[i]);
            return false;
        }
    }
    return true;
}

bool kernel_bitcos_equals_definition(const struct bc_kernels *row, char *why, size_t why_size)
{
    static const size_t long_ones[] = {383, 384, 385, 639, 640, 1000, 1023, 2048, MAX_N};
    struct buffers b;
    uint64_t rng = 1;
    bool equal = true;
    if (!buffers_open(&b)) {
        snprintf(why, why_size, "no memory for guarded buffers");
        return false;
    }
    for (size_t n = 0; n <= 140 && equal; n++)
        equal = compare_length(row, &b, n, &rng, why, why_size);
    for (size_t i = 0; i < sizeof long_ones / sizeof long_ones[0] && equal; i++)
        equal = compare_length(row, &b, long_ones[i], &rng, why, why_size);
    buffers_close(&b);
    return equal;
}
