/* SPDX-License-Identifier: MIT
 * Generates the values of synthetic tensors. */
#include "dummy/values.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/mem.h"

enum { NUMBERS = 65536, LANES = 4 };
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

/* Numbers [first, first + n); n is at most BC_DUMMY_CHUNK. Whole words go to a buffer, from which
 * the asked ones are copied. */
static void numbers(uint64_t key, uint64_t first, size_t n, uint16_t *dst)
{
    uint16_t all[BC_DUMMY_CHUNK + 2 * LANES];
    const uint64_t word = first / LANES;
    const size_t skip = (size_t)(first % LANES);
    const size_t n_words = (skip + n + LANES - 1) / LANES;
    uint64_t state = key + word * golden_gamma;
    for (size_t i = 0; i < n_words; i++) {
        state += golden_gamma;
        const uint64_t z = mix(state);
        all[LANES * i] = (uint16_t)z;
        all[LANES * i + 1] = (uint16_t)(z >> 16);
        all[LANES * i + 2] = (uint16_t)(z >> 32);
        all[LANES * i + 3] = (uint16_t)(z >> 48);
    }
    memcpy(dst, all + skip, n * sizeof *dst);
}

/* The trit of a number, without branches: 0, or 1 - 2 * sign. */
static int8_t trit_of(uint32_t number, uint32_t n_zero)
{
    const uint32_t other = number >= n_zero;
    const uint32_t sign = (number - n_zero) & other;
    return (int8_t)((int32_t)other - 2 * (int32_t)sign);
}

void bc_dummy_trits(const struct bc_dummy_values *v, uint64_t first, size_t n, int8_t *dst)
{
    size_t done = 0;
    while (done < n) {
        uint16_t u[BC_DUMMY_CHUNK];
        const size_t part = n - done < BC_DUMMY_CHUNK ? n - done : BC_DUMMY_CHUNK;
        numbers(v->key, first + done, part, u);
        for (size_t i = 0; i < part; i++)
            dst[done + i] = trit_of(u[i], v->n_zero);
        done += part;
    }
}

/* The ranges of master weights for a share of zeros: value = sign * scale * (low + step * k), k the
 * rank of the number among those of its trit. */
struct ranges {
    float zero_low, zero_step;   /* over -zero_max to zero_max */
    float other_low, other_step; /* over other_min to its upper end, k counting both signs */
};

static struct ranges make_ranges(const struct bc_dummy_values *v)
{
    const double z = (double)v->n_zero / NUMBERS;
    const double n_other = NUMBERS - (double)v->n_zero;
    /* mean magnitude 1 = z * zero_max / 2 + (1 - z) * mean of the others */
    const double mean = (1.0 - z * (double)zero_max / 2.0) / (1.0 - z);
    const double width = 2.0 * (mean - (double)other_min);
    const double zero_width = v->n_zero > 0 ? 2.0 * (double)zero_max / (double)v->n_zero : 0.0;
    return (struct ranges){
        .zero_low = (float)(-(double)zero_max + zero_width / 2.0),
        .zero_step = (float)zero_width,
        .other_low = (float)((double)other_min + width / (2.0 * n_other)),
        .other_step = (float)(width / n_other),
    };
}

void bc_dummy_masters(const struct bc_dummy_values *v, uint64_t first, size_t n, float *dst)
{
    const struct ranges r = make_ranges(v);
    uint16_t u[BC_DUMMY_CHUNK];
    numbers(v->key, first, n, u);
    for (size_t i = 0; i < n; i++) {
        const int32_t number = u[i];
        const int32_t rank = number - (int32_t)v->n_zero;
        const float trit = (float)trit_of(u[i], v->n_zero);
        const float zero = r.zero_low + r.zero_step * (float)number;
        const float other = trit * (r.other_low + r.other_step * (float)rank);
        dst[i] = v->scale * (rank < 0 ? zero : other);
    }
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
