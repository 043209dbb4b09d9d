/* SPDX-License-Identifier: MIT
 * Generates the values of synthetic tensors. */
#include "dummy/values.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/mem.h"

enum { NUMBERS = BC_DUMMY_NUMBERS, LANES = 4 };
static const uint64_t ones = UINT64_C(0x0001000100010001); /* a 1 in every lane of a word */
static const uint64_t golden_gamma = UINT64_C(0x9e3779b97f4a7c15);

/* Bounds of the magnitudes of master weights, in scales. */
static const float zero_max = 0.45f, other_min = 0.6f;

/* The finaliser of SplitMix64 (variant 13 of Stafford's mixers). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t bc_dummy_key(uint64_t seed, const char *name, size_t len)
{
    uint8_t head[16];
    bc_put_u64(head, seed);
    bc_put_u64(head + 8, bc_hash64(name, len));
    return bc_hash64(head, sizeof head);
}

uint32_t bc_dummy_n_zero(double zeros)
{
    return (uint32_t)lround(zeros * NUMBERS);
}

/* Word j of a stream. */
static uint64_t word_at(uint64_t key, uint64_t j)
{
    return mix(key + (j + 1) * golden_gamma);
}

/* Numbers [first, first + n); n is at most BC_DUMMY_CHUNK. Whole words go to a buffer, from which
 * the asked ones are copied. */
static void numbers(uint64_t key, uint64_t first, size_t n, uint16_t *dst)
{
    uint16_t all[BC_DUMMY_CHUNK + 2 * LANES];
    const uint64_t word = first / LANES;
    const size_t skip = (size_t)(first % LANES);
    const size_t n_words = (skip + n + LANES - 1) / LANES;
    for (size_t i = 0; i < n_words; i++) {
        const uint64_t z = word_at(key, word + i);
        all[LANES * i] = (uint16_t)z;
        all[LANES * i + 1] = (uint16_t)(z >> 16);
        all[LANES * i + 2] = (uint16_t)(z >> 32);
        all[LANES * i + 3] = (uint16_t)(z >> 48);
    }
    memcpy(dst, all + skip, n * sizeof *dst);
}

/* ---- trits ---- */

/* The trits + 1 of the four numbers of a word, a byte each, first in the lowest: without unpacking
 * them. `zero` is n_zero in every lane (n_zero < 65536). A lane is >= n_zero when its top bit is set
 * and that of n_zero is not, or both agree and the rest, subtracted below a guard bit, does not
 * borrow; the lowest bit of a difference is that of the exclusive or. */
static uint32_t codes_of(uint64_t word, uint64_t zero)
{
    const uint64_t top = ones << 15;
    const uint64_t rest = (word | top) - (zero & ~top);
    const uint64_t other = ((word & ~zero) | (~(word ^ zero) & rest)) >> 15 & ones;
    const uint64_t sign = (word ^ zero) & other;
    uint64_t codes = ones + other - 2 * sign;
    codes = (codes | codes >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(codes | codes >> 16);
}

void bc_dummy_codes(const struct bc_dummy_values *v, uint64_t first, size_t n, uint8_t *dst)
{
    const uint64_t zero = v->n_zero * ones;
    uint64_t word = first / LANES;
    const size_t skip = (size_t)(first % LANES);
    uint8_t bytes[LANES];
    if (skip > 0) { /* the rest of a word that starts before */
        const size_t part = LANES - skip < n ? LANES - skip : n;
        bc_put_u32(bytes, codes_of(word_at(v->key, word++), zero));
        memcpy(dst, bytes + skip, part);
        dst += part;
        n -= part;
    }
    for (; n >= LANES; n -= LANES, dst += LANES)
        bc_put_u32(dst, codes_of(word_at(v->key, word++), zero));
    if (n == 0) return;
    bc_put_u32(bytes, codes_of(word_at(v->key, word), zero));
    memcpy(dst, bytes, n);
}

/* Codes to trits in place: subtracts 1 from every byte, eight at a time. Adding 0x7f stays within the
 * byte, and 0x80 is what is then too much. */
static void codes_to_trits(uint8_t *bytes, size_t n)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        word = (word + 0x7f * each) ^ 0x80 * each;
        memcpy(bytes + i, &word, sizeof word);
    }
    for (; i < n; i++)
        bytes[i] = (uint8_t)(bytes[i] - 1);
}

void bc_dummy_trits(const struct bc_dummy_values *v, uint64_t first, size_t n, int8_t *dst)
{
    bc_dummy_codes(v, first, n, (uint8_t *)dst);
    codes_to_trits((uint8_t *)dst, n);
}

/* ---- floats ---- */

void bc_dummy_units(uint32_t n_zero, float *dst)
{
    const double z = (double)n_zero / NUMBERS;
    /* mean magnitude 1 = z * zero_max / 2 + (1 - z) * mean of the others */
    const double mean = (1.0 - z * (double)zero_max / 2.0) / (1.0 - z);
    const double low = (double)other_min, width = 2.0 * (mean - low);
    for (uint32_t u = 0; u < n_zero; u++)
        dst[u] = (float)((double)zero_max * ((2.0 * u + 1.0) / n_zero - 1.0));
    for (uint32_t u = n_zero; u < NUMBERS; u++) {
        const uint32_t rank = u - n_zero;
        const double magnitude = low + width * (rank + 0.5) / (NUMBERS - n_zero);
        dst[u] = (float)(rank % 2 == 0 ? magnitude : -magnitude);
    }
}

void bc_dummy_masters(const struct bc_dummy_values *v, uint64_t first, size_t n, float *dst)
{
    uint16_t u[BC_DUMMY_CHUNK];
    numbers(v->key, first, n, u);
    for (size_t i = 0; i < n; i++)
        dst[i] = v->scale * v->units[u[i]];
}

void bc_dummy_floats(const struct bc_dummy_values *v, uint64_t first, size_t n, float *dst)
{
    const float step = v->spread / (NUMBERS / 2);
    const float low = -v->spread + step / 2.0f;
    uint16_t u[BC_DUMMY_CHUNK];
    numbers(v->key, first, n, u);
    for (size_t i = 0; i < n; i++)
        dst[i] = v->centre + (low + step * (float)u[i]);
}
