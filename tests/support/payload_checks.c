/* SPDX-License-Identifier: MIT
 * Tensors of all shapes through a payload pack and back, and payloads that are not in order. */
#include "support/payload_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "quant/kernels.h"
#include "support/rng.h"
#include "support/spec_example.h"

/* ---- tensors ---- */

static void *block(uint64_t size)
{
    void *p = malloc(size > 0 ? (size_t)size : 1);
    assert_non_null(p);
    return p;
}

/* The first n_zeros are zero; then each is exchanged with one at random. */
static void fill_trits(int8_t *trits, uint64_t n, uint64_t n_zeros, uint64_t *rng)
{
    for (uint64_t i = 0; i < n; i++)
        trits[i] = (int8_t)(i < n_zeros ? 0 : 2 * (int)(rng_next(rng) & 1) - 1);
    for (uint64_t i = n; i > 1; i--) {
        const uint64_t j = rng_below(rng, i);
        const int8_t trit = trits[i - 1];
        trits[i - 1] = trits[j];
        trits[j] = trit;
    }
}

uint8_t *payload_pack(const struct payload *p, const struct bc_kernels *k)
{
    uint8_t *bytes = block(p->size);
    memset(bytes, 0xee, (size_t)p->size); /* the pack owns every byte: none may keep this */
    p->f->pack(k, &p->shape, p->trits, 0, p->shape.n, bytes);
    p->f->put_scales(&p->shape, p->scales, (uint32_t)p->shape.slices, bytes);
    return bytes;
}

static void finish(struct payload *p)
{
    char why[256] = "";
    p->shape.n_nonzero = 0;
    for (uint64_t i = 0; i < p->shape.n; i++)
        p->shape.n_nonzero += p->trits[i] != 0;
    if (!p->f->check(&p->shape, why, sizeof why)) fail_msg("%s", why);
    p->size = p->f->size(&p->shape);
    p->bytes = payload_pack(p, bc_kernels_at(0));
}

struct payload payload_new(const struct bc_format *f, uint32_t n_dims, const uint64_t *dims,
                           unsigned zeros, uint64_t seed)
{
    struct payload p = {.f = f, .shape = {.n_dims = n_dims}};
    p.shape.cols = dims[0];
    p.shape.rows = n_dims > 1 ? dims[1] : 1;
    p.shape.slices = n_dims > 2 ? dims[2] : 1;
    p.shape.n = p.shape.cols * p.shape.rows * p.shape.slices;
    p.trits = block(p.shape.n);
    fill_trits(p.trits, p.shape.n, (p.shape.n * zeros + 500) / 1000, &seed);
    p.scales = block(p.shape.slices * sizeof *p.scales);
    for (uint64_t i = 0; i < p.shape.slices; i++)
        p.scales[i] = 0.1f + (float)i;
    finish(&p);
    return p;
}

void payload_free(struct payload *p)
{
    free(p->trits);
    free(p->scales);
    free(p->bytes);
}

static int read_at(const struct bc_format *f, const struct bc_pack_shape *shape,
                   const uint8_t *bytes, uint64_t i)
{
    const uint64_t row = i / shape->cols;
    return f->trit_at(shape, bytes, row / shape->rows, row % shape->rows, i % shape->cols);
}

/* ---- in order ---- */

static bool same_shape(const struct bc_pack_shape *a, const struct bc_pack_shape *b)
{
    return a->cols == b->cols && a->rows == b->rows && a->slices == b->slices && a->n == b->n &&
           a->n_dims == b->n_dims && a->n_nonzero == b->n_nonzero;
}

static void check_opens(const struct payload *p)
{
    struct bc_pack_shape shape = {.n = 0};
    char why[256] = "";
    if (!p->f->open_payload(NULL, p->bytes, p->size, &shape, why, sizeof why)) fail_msg("%s", why);
    assert_true(same_shape(&shape, &p->shape));
    if (!p->f->open_payload(&p->shape, p->bytes, p->size, &shape, why, sizeof why))
        fail_msg("%s", why);
    if (!p->f->check_payload(NULL, p->bytes, p->size, why, sizeof why)) fail_msg("%s", why);
    if (!p->f->check_payload(&p->shape, p->bytes, p->size, why, sizeof why)) fail_msg("%s", why);
    assert_string_equal(why, "");
    for (uint64_t i = 0; i < p->shape.slices; i++)
        assert_true(p->f->get_scale(&p->shape, p->bytes, i) == p->scales[i]);
}

static void check_readers(const struct payload *p, int8_t *back, uint64_t seed)
{
    for (uint64_t i = 0; i < p->shape.n; i++)
        if (read_at(p->f, &p->shape, p->bytes, i) != p->trits[i])
            fail_msg("%s: trit %" PRIu64 " is read as %d, packed as %d", p->f->name, i,
                     read_at(p->f, &p->shape, p->bytes, i), p->trits[i]);
    if (p->f->trits_at == NULL) return;
    p->f->trits_at(&p->shape, p->bytes, 0, p->shape.n, back);
    assert_memory_equal(back, p->trits, p->shape.n);
    for (int i = 0; i < 20; i++) {
        const uint64_t first = rng_below(&seed, p->shape.n);
        const uint64_t n = rng_below(&seed, p->shape.n - first + 1);
        p->f->trits_at(&p->shape, p->bytes, first, n, back);
        assert_memory_equal(back, p->trits + first, n);
    }
}

/* Packing in ascending runs and unpacking in descending ones. */
static void check_runs(const struct payload *p, const struct bc_kernels *k, int8_t *back,
                       uint64_t seed)
{
    const uint64_t n = p->shape.n, run = p->f->run;
    uint8_t *again = block(p->size);
    uint64_t at, length;
    memset(again, 0x11, (size_t)p->size);
    p->f->put_scales(&p->shape, p->scales, (uint32_t)p->shape.slices, again);
    for (at = 0; at < n; at += length) {
        length = run * (1 + rng_below(&seed, 3));
        if (length > n - at) length = n - at;
        p->f->pack(k, &p->shape, p->trits + at, at, length, again);
    }
    assert_memory_equal(again, p->bytes, p->size);
    memset(back, 3, (size_t)n);
    for (at = n; at > 0; at -= length) {
        length = (at - 1) % run + 1 + run * rng_below(&seed, 3);
        if (length > at) length = at;
        assert_true(p->f->unpack(k, &p->shape, p->bytes, at - length, length, back + at - length));
    }
    assert_memory_equal(back, p->trits, n);
    free(again);
}

static void check_round_trip(const struct payload *p, uint64_t seed)
{
    int8_t *back = block(p->shape.n);
    check_opens(p);
    check_readers(p, back, seed);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        const struct bc_kernels *k = bc_kernels_at(i);
        uint8_t *again = payload_pack(p, k);
        assert_memory_equal(again, p->bytes, p->size);
        assert_true(p->f->unpack(k, &p->shape, again, 0, p->shape.n, back));
        assert_memory_equal(back, p->trits, p->shape.n);
        free(again);
        const struct payload repacked = {p->f, p->shape, p->scales, back, p->bytes, p->size};
        again = payload_pack(&repacked, k);
        assert_memory_equal(again, p->bytes, p->size);
        free(again);
        check_runs(p, k, back, seed);
    }
    free(back);
}

void payload_check_shapes(const struct bc_format *f)
{
    /* Around the borders of bytes of five, of words and of superblocks, and stacks. */
    static const uint64_t awkward[][3] = {
        {1, 1, 1},    {2, 1, 1},    {5, 1, 1},    {7, 9, 1},    {64, 1, 1},   {65, 1, 1},
        {128, 32, 1}, {4095, 1, 1}, {4097, 1, 1}, {64, 129, 1}, {1, 8192, 1}, {5, 7, 3},
        {64, 64, 2},  {1, 1, 5},    {100, 41, 4}, {3, 2731, 1}, {4096, 3, 1}};
    static const unsigned zeros[] = {0, 10, 333, 500, 900, 999, 1000};
    uint64_t rng = 5;
    for (size_t i = 0; i < 60; i++) {
        const uint64_t random[3] = {1 + rng_below(&rng, 150), 1 + rng_below(&rng, 90),
                                    1 + rng_below(&rng, 4)};
        const size_t n_awkward = sizeof awkward / sizeof awkward[0];
        const uint64_t *dims = i < n_awkward ? awkward[i] : random;
        uint32_t n_dims = 3;
        while (n_dims > 1 && dims[n_dims - 1] == 1 && rng_below(&rng, 3) != 0)
            n_dims--;
        for (size_t z = 0; z < sizeof zeros / sizeof zeros[0]; z++) {
            struct payload p = payload_new(f, n_dims, dims, zeros[z], rng_next(&rng));
            check_round_trip(&p, rng_next(&rng));
            payload_free(&p);
        }
    }
    /* Without a number of dimensions: 3 where there are slices, else 2. One scale for all. */
    for (uint64_t slices = 1; slices < 3; slices++) {
        const uint64_t dims[3] = {10, 10, slices};
        const float scale = 0.5f;
        struct payload p = payload_new(f, slices > 1 ? 3 : 2, dims, 300, 1);
        struct bc_pack_shape plain = p.shape;
        plain.n_dims = 0;
        for (uint64_t i = 0; i < slices; i++)
            p.scales[i] = scale;
        uint8_t *wanted = payload_pack(&p, bc_kernels_at(0));
        f->put_scales(&plain, &scale, 1, p.bytes);
        assert_memory_equal(p.bytes, wanted, p.size);
        free(wanted);
        payload_free(&p);
    }
}

/* ---- not in order ---- */

void payload_expect_refusal(const struct payload *p, const char *part)
{
    char why[400] = "";
    if (p->f->check_payload(NULL, p->bytes, p->size, why, sizeof why))
        fail_msg("%s: not refused, wanted: %s", p->f->name, part);
    if (strstr(why, part) == NULL) fail_msg("refused with: %s\nwanted: %s", why, part);
}

/* Reads everything that an opened payload lets one read; *equal: the tensor is the one packed. */
static void read_all(const struct payload *p, const struct bc_pack_shape *shape,
                     const uint8_t *bytes, bool *equal)
{
    int8_t *back = block(shape->n), *again = block(shape->n);
    const bool legal = p->f->unpack(bc_kernels_at(0), shape, bytes, 0, shape->n, back);
    bool any_illegal = false;
    for (uint64_t i = 0; i < shape->n; i++) {
        assert_int_equal(back[i], read_at(p->f, shape, bytes, i));
        any_illegal = any_illegal || back[i] == BC_TRIT_ILLEGAL;
    }
    assert_int_equal(legal, !any_illegal);
    for (size_t row = 0; bc_kernels_at(row) != NULL; row++) {
        assert_int_equal(p->f->unpack(bc_kernels_at(row), shape, bytes, 0, shape->n, again), legal);
        assert_memory_equal(again, back, shape->n);
    }
    if (p->f->trits_at != NULL) {
        p->f->trits_at(shape, bytes, 0, shape->n, again);
        assert_memory_equal(again, back, shape->n);
    }
    *equal = same_shape(shape, &p->shape) && memcmp(back, p->trits, (size_t)shape->n) == 0;
    for (uint64_t i = 0; i < shape->slices && i < p->shape.slices; i++)
        *equal =
            *equal && bc_f32_bits(p->f->get_scale(shape, bytes, i)) == bc_f32_bits(p->scales[i]);
    free(back);
    free(again);
}

static void check_flips_of(const struct payload *p)
{
    uint64_t n_found = 0;
    for (uint64_t bit = 0; bit < 8 * p->size; bit++) {
        struct bc_pack_shape shape;
        char why[400] = "";
        bool equal = false;
        p->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        const bool found = !p->f->check_payload(&p->shape, p->bytes, p->size, why, sizeof why);
        assert_int_equal(found, why[0] != '\0');
        if (p->f->open_payload(NULL, p->bytes, p->size, &shape, why, sizeof why))
            read_all(p, &shape, p->bytes, &equal);
        if (!found && equal)
            fail_msg("%s: bit %" PRIu64 " of byte %" PRIu64 " may be flipped unseen", p->f->name,
                     bit % 8, bit / 8);
        n_found += found;
        p->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(n_found > 8 * 50); /* the header at least, but for the scale */
}

void payload_check_flips(const struct bc_format *f)
{
    static const uint64_t dims[][3] = {{13, 11, 1}, {5, 5, 3}, {64, 65, 1}, {9, 1, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        for (unsigned zeros = 0; zeros <= 1000; zeros += 500) {
            struct payload p = payload_new(f, dims[i][2] > 1 ? 3 : 2, dims[i], zeros, i + 1);
            check_flips_of(&p);
            payload_free(&p);
        }
    }
}

static void check_cut(const struct payload *p)
{
    char why[400];
    struct bc_pack_shape shape;
    for (uint64_t size = 0; size < p->size; size++) {
        uint8_t *cut = block(size);
        memcpy(cut, p->bytes, (size_t)size);
        why[0] = '\0';
        assert_false(p->f->open_payload(NULL, cut, size, &shape, why, sizeof why));
        assert_true(strstr(why, "bytes") != NULL);
        assert_false(p->f->check_payload(&p->shape, cut, size, why, sizeof why));
        free(cut);
    }
    uint8_t *extended = block(p->size + 8);
    memcpy(extended, p->bytes, (size_t)p->size);
    memset(extended + p->size, 0, 8);
    assert_false(p->f->open_payload(NULL, extended, p->size + 8, &shape, why, sizeof why));
    free(extended);
}

/* Some bytes replaced, in the header more often than elsewhere. */
static void damage(const struct payload *p, uint8_t *bytes, uint64_t *rng)
{
    static const uint8_t likely[] = {0, 1, 2, 64, 127, 128, 255};
    memcpy(bytes, p->bytes, (size_t)p->size);
    for (uint64_t n = 1 + rng_below(rng, 4); n > 0; n--) {
        const uint64_t r = rng_next(rng);
        const uint64_t place = rng_below(rng, r % 2 == 0 && p->size > 64 ? 64 : p->size);
        bytes[place] = (uint8_t)(r % 3 == 0 ? r >> 32 : likely[(r >> 32) % sizeof likely]);
    }
}

void payload_check_damage(const struct bc_format *f)
{
    static const uint64_t dims[][3] = {{13, 11, 1}, {5, 5, 3}, {64, 65, 1}};
    uint64_t rng = 11;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        struct payload p = payload_new(f, dims[i][2] > 1 ? 3 : 2, dims[i], 400, i + 1);
        uint8_t *bytes = block(p.size);
        check_cut(&p);
        for (int round = 0; round < 4000; round++) {
            struct bc_pack_shape shape;
            char why[400];
            bool equal;
            damage(&p, bytes, &rng);
            if (f->open_payload(NULL, bytes, p.size, &shape, why, sizeof why))
                read_all(&p, &shape, bytes, &equal);
            f->check_payload(NULL, bytes, p.size, why, sizeof why);
        }
        free(bytes);
        payload_free(&p);
    }
}

static void expect_at(const struct payload *p, uint64_t at, unsigned width, uint64_t value,
                      const char *part)
{
    uint8_t before[8];
    memcpy(before, p->bytes + at, width);
    for (unsigned i = 0; i < width; i++)
        p->bytes[at + i] = (uint8_t)(value >> 8 * i);
    payload_expect_refusal(p, part);
    memcpy(p->bytes + at, before, width);
}

static void check_expected_shape(const struct payload *p)
{
    struct bc_pack_shape other = p->shape;
    char why[400];
    other.cols++;
    assert_false(p->f->check_payload(&other, p->bytes, p->size, why, sizeof why));
    assert_non_null(strstr(why, "holds 10 x 7 x 3 in 3 dimensions, wanted 11 x 7 x 3 in 3"));
    other = p->shape;
    other.n_dims = 4;
    assert_false(p->f->check_payload(&other, p->bytes, p->size, why, sizeof why));
    assert_non_null(strstr(why, "in 3 dimensions, wanted 10 x 7 x 3 in 4"));
    other.n_dims = 0;
    assert_true(p->f->check_payload(&other, p->bytes, p->size, why, sizeof why));
    other.slices = 2;
    assert_false(p->f->check_payload(&other, p->bytes, p->size, why, sizeof why));
    assert_false(p->f->check_payload(&other, p->bytes, p->size, why, 4)); /* filled, not overrun */
    assert_int_equal(strlen(why), 3);
}

void payload_check_header_reasons(const struct bc_format *f)
{
    static const uint64_t dims[] = {10, 7, 3};
    struct payload p = payload_new(f, 3, dims, 400, 1);
    expect_at(&p, 1, 1, 'x', "begins with 42 78 ");
    expect_at(&p, 4, 2, 2, "version 2, only version 1 is known");
    expect_at(&p, 6, 2, 0x8000, "flags 0x8000, wanted 0");
    expect_at(&p, 8, 4, 0, "0 dimensions, wanted 1 to 4");
    expect_at(&p, 8, 4, 5, "5 dimensions");
    expect_at(&p, 8, 4, 2, "dims[2] is 3, wanted 1 behind the last dimension");
    expect_at(&p, 12, 4, 64, "superblocks of 64 weights, wanted ");
    expect_at(&p, 16, 8, 0, "dims[0] is 0: the tensor has no values");
    expect_at(&p, 24, 8, UINT64_MAX / 2, "the number of values exceeds 64 bits");
    expect_at(&p, 24, 8, 70, "bytes, but 2100 weights");
    expect_at(&p, 32, 8, 2, "3 scales, wanted one per slice: 2");
    expect_at(&p, 40, 8, 2, "dims[3] is 2, wanted 1");
    expect_at(&p, 48, 8, 211, "211 non-zero weights of 210");
    expect_at(&p, 48, 8, 125, "counts 125 non-zero weights");
    expect_at(&p, 56, 4, 0x80000000, "the header's scale has the bits 0x80000000");
    expect_at(&p, 60, 4, 1, "1 scales, wanted one per slice: 3");
    expect_at(&p, 79, 1, 9, "byte 79, padding behind the scales, is 0x09, wanted 0");
    check_expected_shape(&p);
    p.bytes[8] = 4; /* a fourth dimension there may be, of length 1 */
    char why[200];
    assert_true(f->check_payload(NULL, p.bytes, p.size, why, sizeof why));
    expect_at(&p, 40, 8, 2, "dims[3] is 2, wanted 1");
    payload_free(&p);

    struct bc_pack_shape shape = {.cols = 4, .rows = 0, .slices = 1};
    assert_false(f->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "no values"));
    shape = (struct bc_pack_shape){.cols = 1, .rows = 1, .slices = UINT64_C(1) << 32};
    shape.n = shape.slices;
    assert_false(f->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "4294967296 slices"));
    shape = (struct bc_pack_shape){.cols = 1, .rows = 1, .slices = 1, .n = 1, .n_dims = 5};
    assert_false(f->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "5 dimensions"));
}

/* ---- the second example ---- */

static void read_stack(const char *text, struct payload *p)
{
    static const char alphabet[] = "-0+";
    unsigned long long cols, rows, slices;
    int used = 0;
    const char *at = spec_after(text, "```stack ");
    assert_int_equal(
        sscanf(at, "cols=%llu rows=%llu slices=%llu scales=%n", &cols, &rows, &slices, &used), 3);
    assert_true(used > 0 && cols * rows * slices < 1000);
    p->shape = (struct bc_pack_shape){
        .cols = cols, .rows = rows, .slices = slices, .n = cols * rows * slices, .n_dims = 3};
    p->scales = block(slices * sizeof *p->scales);
    p->trits = block(p->shape.n);
    at += used;
    for (uint64_t i = 0; i < slices; i++) {
        char *end;
        p->scales[i] = strtof(at, &end);
        at = end + 1; /* comma or newline */
    }
    for (uint64_t i = 0; i < p->shape.n; at++) {
        if (*at == '\n') continue;
        assert_non_null(strchr(alphabet, *at));
        p->trits[i++] = (int8_t)(strchr(alphabet, *at) - alphabet - 1);
    }
}

void payload_check_stack_example(const struct bc_format *f)
{
    struct payload p = {.f = f};
    char *text = spec_text(f->name);
    read_stack(text, &p);
    finish(&p);
    const char *at = spec_after(text, "```stackhex");
    for (uint64_t i = 0; i < p.size; i++) {
        char *end;
        const unsigned long byte = strtoul(at, &end, 16);
        assert_ptr_not_equal(end, at);
        assert_int_equal(byte, p.bytes[i]);
        at = end;
    }
    assert_int_equal(*spec_after(at, "\n"), '`');
    check_round_trip(&p, 1);
    payload_free(&p);
    bc_free(text);
}
