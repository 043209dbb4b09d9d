/* SPDX-License-Identifier: MIT
 * The packs with a float16 scale per block (TQ1_0, TQ2_0, Q2_0, Q1_0) and Q8_0: packers against
 * independent readers and decoders, scales, quantizing from floats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "formats/q8_0.h"
#include "support/rng.h"
#include "support/spec_example.h"

static struct bc_pack_shape shape_of(uint64_t cols, uint64_t rows, uint64_t slices)
{
    return (struct bc_pack_shape){
        .cols = cols, .rows = rows, .slices = slices, .n = cols * rows * slices};
}

/* Uniform trits (no zeros for a pack that holds none), with whole blocks of zeros in between. */
static int8_t *trits_new(const struct bc_block_pack *bp, uint64_t n, uint64_t seed)
{
    int8_t *trits = malloc(n);
    assert_non_null(trits);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = rng_next(&seed);
        if (!bp->holds_zeros)
            trits[i] = (int8_t)(2 * (int)(r & 1) - 1);
        else
            trits[i] = (int8_t)(i / bp->block % 5 == 3 ? 0 : (int)(r % 3) - 1);
    }
    return trits;
}

static bool block_is_zero(const int8_t *trits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (trits[i] != 0) return false;
    }
    return true;
}

static uint8_t *pack_new(const struct bc_block_pack *bp, const struct bc_kernels *k,
                         const struct bc_pack_shape *shape, const int8_t *trits)
{
    const struct bc_format *f = bp->format;
    uint8_t *packed = malloc(f->size(shape));
    assert_non_null(packed);
    memset(packed, 0xee, f->size(shape)); /* the pack owns every byte */
    f->pack(k, shape, trits, 0, shape->n, packed);
    return packed;
}

/* ---- trits ---- */

static void check_reader(const struct bc_format *f, const struct bc_pack_shape *shape,
                         const uint8_t *packed, const int8_t *trits)
{
    uint64_t i = 0;
    for (uint64_t s = 0; s < shape->slices; s++) {
        for (uint64_t r = 0; r < shape->rows; r++) {
            for (uint64_t c = 0; c < shape->cols; c++, i++) {
                if (f->trit_at(shape, packed, s, r, c) != trits[i])
                    fail_msg("%s: trit %llu is read as %d, packed as %d", f->name,
                             (unsigned long long)i, f->trit_at(shape, packed, s, r, c), trits[i]);
            }
        }
    }
}

/* Decoded to floats, which shares no code with the packer: trit times the scale of the block. */
static void check_values(const struct bc_block_pack *bp, const uint8_t *packed, uint64_t n,
                         const int8_t *trits, float scale)
{
    const struct bc_dequant *d = bc_dequant_find(bp->format->type_name);
    float values[BC_DEQUANT_MAX_BLOCK];
    assert_non_null(d);
    assert_int_equal(d->block, bp->block);
    assert_int_equal(d->block_size, bp->block_size);
    for (uint64_t b = 0; b < n / bp->block; b++) {
        const int8_t *t = trits + b * bp->block;
        const float expected = block_is_zero(t, bp->block) ? 0.0f : scale;
        d->rows(packed + b * bp->block_size, 1, values);
        for (size_t i = 0; i < bp->block; i++)
            assert_true(values[i] == (float)t[i] * expected);
    }
}

/* Ranges of random numbers of blocks, last one first, give the bytes and trits of one call. */
static void check_pieces(const struct bc_block_pack *bp, const struct bc_kernels *k,
                         const struct bc_pack_shape *shape, const uint8_t *packed,
                         const int8_t *trits, uint64_t seed)
{
    const struct bc_format *f = bp->format;
    uint8_t *again = malloc(f->size(shape));
    int8_t *back = malloc(shape->n);
    assert_true(again != NULL && back != NULL);
    for (uint64_t end = shape->n; end > 0;) {
        uint64_t n = f->granule * (1 + rng_below(&seed, 40));
        if (n > end) n = end;
        f->pack(k, shape, trits + end - n, end - n, n, again);
        assert_true(f->unpack(k, shape, packed, end - n, n, back + end - n));
        end -= n;
    }
    assert_memory_equal(again, packed, f->size(shape));
    assert_memory_equal(back, trits, shape->n);
    free(again);
    free(back);
}

static void check_shape(const struct bc_block_pack *bp, const struct bc_pack_shape *shape,
                        uint64_t seed)
{
    const struct bc_format *f = bp->format;
    char why[256] = "";
    assert_true(f->check(shape, why, sizeof why));
    assert_int_equal(f->size(shape), shape->n / bp->block * bp->block_size);
    assert_int_equal(f->trit_bytes(shape), f->size(shape));
    int8_t *trits = trits_new(bp, shape->n, seed);
    uint8_t *reference = pack_new(bp, bc_kernels_at(0), shape, trits);
    check_reader(f, shape, reference, trits);
    check_values(bp, reference, shape->n, trits, 1.0f);
    for (size_t i = 0; bc_kernels_at(i) != NULL; i++) {
        uint8_t *packed = pack_new(bp, bc_kernels_at(i), shape, trits);
        assert_memory_equal(packed, reference, f->size(shape));
        check_pieces(bp, bc_kernels_at(i), shape, packed, trits, seed);
        free(packed);
    }
    const float scale = 0.1f;
    f->put_scales(shape, &scale, 1, reference);
    check_reader(f, shape, reference, trits);
    check_values(bp, reference, shape->n, trits, bc_f16_to_f32(bc_f32_to_f16(0.1f)));
    free(reference);
    free(trits);
}

static void test_pack_and_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        uint64_t rng = i;
        struct bc_pack_shape shape = shape_of(bp->block, 1, 1);
        check_shape(bp, &shape, 1);
        for (unsigned trial = 0; trial < 40; trial++) {
            shape = shape_of(bp->block * (1 + rng_below(&rng, 9)), 1 + rng_below(&rng, 12),
                             1 + rng_below(&rng, 3));
            check_shape(bp, &shape, rng);
        }
    }
}

static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type_name;
        uint32_t type_id, file_type;
    } known[] = {{"tq1_0", "TQ1_0", 34, 36},
                 {"tq2_0", "TQ2_0", 35, 37},
                 {"q2_0", "Q2_0", 42, 41},
                 {"q1_0", "Q1_0", 41, 40}};
    for (size_t i = 0; i < 4; i++) {
        const struct bc_block_pack *bp = bc_block_pack_find(known[i].name);
        assert_non_null(bp);
        assert_string_equal(bp->format->name, known[i].name);
        assert_string_equal(bp->format->type_name, known[i].type_name);
        assert_int_equal(bp->format->type_id, known[i].type_id);
        assert_int_equal(bp->format->file_type, known[i].file_type);
        assert_int_equal(bp->format->granule, bp->block);
        assert_ptr_equal(bc_block_pack_of(bp->format), bp);
        assert_ptr_equal(bc_block_pack_at(i), bp);
    }
    assert_null(bc_block_pack_at(4));
    assert_null(bc_block_pack_find("i2_s"));
    assert_null(bc_block_pack_of(bc_format_find("i2_s")));
}

static void test_examples_of_the_descriptions(void **state)
{
    (void)state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        const struct bc_format *f = bp->format;
        struct spec_example e;
        spec_example_read(f->name, &e);
        assert_int_equal(e.n_bytes, f->size(&e.shape));
        uint8_t *packed = pack_new(bp, bc_kernels_best(), &e.shape, e.trits);
        f->put_scales(&e.shape, &e.scale, 1, packed);
        assert_memory_equal(packed, e.bytes, e.n_bytes);
        check_reader(f, &e.shape, e.bytes, e.trits);
        check_values(bp, e.bytes, e.shape.n, e.trits, e.scale);
        assert_true(f->get_scale(&e.shape, e.bytes, 0) == e.scale);
        free(packed);
    }
}

static void test_misfits(void **state)
{
    (void)state;
    char why[256];
    struct bc_pack_shape shape = shape_of(640, 4, 1);
    assert_false(bc_block_pack_find("tq2_0")->format->check(&shape, why, sizeof why));
    assert_string_equal(why, "TQ2_0 packs each row in blocks of 256 values; a row of 640 is no "
                             "multiple of 256, 128 are left over");
    assert_true(bc_block_pack_find("q2_0")->format->check(&shape, why, sizeof why));
    assert_true(bc_block_pack_find("q1_0")->format->check(&shape, why, sizeof why));
    shape = shape_of(64, 4, 1); /* 256 values, but no row is a block */
    assert_false(bc_block_pack_find("tq1_0")->format->check(&shape, why, sizeof why));
    assert_non_null(strstr(why, "a row of 64 is no multiple of 256"));
    shape = shape_of(0, 4, 1);
    assert_false(bc_block_pack_find("q2_0")->format->check(&shape, why, sizeof why));
    assert_string_equal(why, "Q2_0: the tensor has no values");
}

static void test_q1_0_holds_no_zeros(void **state)
{
    (void)state;
    const struct bc_block_pack *q1_0 = bc_block_pack_find("q1_0");
    int8_t trits[300];
    memset(trits, -1, sizeof trits);
    assert_true(bc_block_first_misfit(q1_0, trits, sizeof trits) == UINT64_MAX);
    assert_true(bc_block_first_misfit(q1_0, trits, 0) == UINT64_MAX);
    trits[299] = 0;
    assert_int_equal(bc_block_first_misfit(q1_0, trits, sizeof trits), 299);
    trits[7] = 0;
    assert_int_equal(bc_block_first_misfit(q1_0, trits, sizeof trits), 7);
    assert_true(bc_block_first_misfit(bc_block_pack_find("tq1_0"), trits, 300) == UINT64_MAX);
}

/* Code 3 at any place is reported and stored as such, and the neighbours are still read. */
static void test_illegal_codes(void **state)
{
    (void)state;
    static const char *const names[] = {"tq2_0", "q2_0"};
    for (size_t f = 0; f < 2; f++) {
        const struct bc_block_pack *bp = bc_block_pack_find(names[f]);
        const struct bc_format *format = bp->format;
        const struct bc_pack_shape shape = shape_of(512, 1, 1);
        int8_t *trits = trits_new(bp, shape.n, 3), back[512];
        for (size_t bit = 0; bit < 8 * (size_t)format->size(&shape); bit += 2) {
            const size_t in_block = bit / 8 % bp->block_size;
            if (in_block == bp->scale_offset || in_block == bp->scale_offset + 1) continue;
            uint8_t *packed = pack_new(bp, bc_kernels_best(), &shape, trits);
            packed[bit / 8] |= (uint8_t)(3u << bit % 8);
            for (size_t k = 0; bc_kernels_at(k) != NULL; k++) {
                assert_false(format->unpack(bc_kernels_at(k), &shape, packed, 0, shape.n, back));
                size_t n_illegal = 0;
                for (uint64_t i = 0; i < shape.n; i++) {
                    assert_int_equal(format->trit_at(&shape, packed, 0, 0, i), back[i]);
                    if (back[i] == BC_TRIT_ILLEGAL)
                        n_illegal++;
                    else
                        assert_int_equal(back[i], trits[i]);
                }
                assert_int_equal(n_illegal, 1);
            }
            free(packed);
        }
        free(trits);
    }
}

/* Every byte of TQ1_0: reader and unpacker agree also on those that no trits pack to. */
static void test_tq1_0_bytes(void **state)
{
    (void)state;
    static const uint8_t never_written[] = {0x01, 0x14, 0x28, 0x3c, 0x4f, 0x63, 0x77,
                                            0x8a, 0x9e, 0xb2, 0xc5, 0xd9, 0xed};
    const struct bc_block_pack *bp = bc_block_pack_find("tq1_0");
    const struct bc_pack_shape shape = shape_of(256, 1, 1);
    unsigned n_foreign = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t block[54], again[54];
        int8_t trits[256];
        memset(block, (int)byte, sizeof block);
        assert_true(bp->format->unpack(bc_kernels_best(), &shape, block, 0, 256, trits));
        check_reader(bp->format, &shape, block, trits);
        assert_int_equal(bp->is_zero(block), block_is_zero(trits, 256));
        bp->format->pack(bc_kernels_best(), &shape, trits, 0, 256, again);
        if (again[0] != byte) {
            assert_true(n_foreign < sizeof never_written);
            assert_int_equal(never_written[n_foreign++], byte);
        }
    }
    assert_int_equal(n_foreign, sizeof never_written);
}

static void test_tq1_0_zeros_of_foreign_writers(void **state)
{
    (void)state;
    const struct bc_block_pack *bp = bc_block_pack_find("tq1_0");
    const struct bc_pack_shape shape = shape_of(256, 1, 1);
    for (unsigned at = 0; at < 52; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t block[54];
            int8_t trits[256] = {0};
            bp->format->pack(bc_kernels_best(), &shape, trits, 0, 256, block);
            block[at] = (uint8_t)byte;
            bp->format->unpack(bc_kernels_best(), &shape, block, 0, 256, trits);
            assert_int_equal(bp->is_zero(block), block_is_zero(trits, 256));
        }
    }
}

/* ---- scales ---- */

static void test_scales_of_slices(void **state)
{
    (void)state;
    static const float scales[3] = {0.5f, 0.1f, 2.0f};
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        const struct bc_format *f = bp->format;
        const struct bc_pack_shape shape = shape_of(bp->block, 5, 3);
        int8_t *trits = trits_new(bp, shape.n, i);
        uint8_t *packed = pack_new(bp, bc_kernels_best(), &shape, trits);
        for (uint64_t s = 0; s < 3; s++)
            assert_true(f->get_scale(&shape, packed, s) == 1.0f);
        f->put_scales(&shape, scales, 3, packed);
        for (uint64_t s = 0; s < 3; s++)
            assert_true(f->get_scale(&shape, packed, s) == bc_f16_to_f32(bc_f32_to_f16(scales[s])));
        for (uint64_t b = 0; b < 15; b++) {
            const bool zero = block_is_zero(trits + b * bp->block, bp->block);
            const float expected = zero ? 0.0f : bc_f16_to_f32(bc_f32_to_f16(scales[b / 5]));
            assert_true(bc_block_scale(bp, packed + b * bp->block_size) == expected);
        }
        check_reader(f, &shape, packed, trits);
        /* The same blocks with their scales copied are the same bytes. */
        uint8_t *again = pack_new(bp, bc_kernels_best(), &shape, trits);
        bc_block_copy_scales(bp, packed, 15, again);
        assert_memory_equal(again, packed, f->size(&shape));
        free(again);
        free(packed);
        free(trits);
    }
}

static void test_common_scale(void **state)
{
    (void)state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        const struct bc_pack_shape shape = shape_of(bp->block, 7, 1);
        int8_t *trits = trits_new(bp, shape.n, i); /* block 3 is zero where the pack has zeros */
        uint8_t *packed = pack_new(bp, bc_kernels_best(), &shape, trits);
        float scale;
        uint64_t other;
        bc_block_put_scale(bp, 0.75f, 7, packed);
        assert_int_equal(bc_block_common_scale(bp, packed, 7, &scale, &other), BC_BLOCKS_ONE_SCALE);
        assert_true(scale == 0.75f && other == UINT64_MAX);
        if (bp->holds_zeros) { /* its scale does not count, nor when it stands first */
            bc_put_u16(packed + 3 * bp->block_size + bp->scale_offset, 0x7c00);
            assert_int_equal(bc_block_common_scale(bp, packed, 7, &scale, &other),
                             BC_BLOCKS_ONE_SCALE);
            assert_int_equal(
                bc_block_common_scale(bp, packed + 3 * bp->block_size, 4, &scale, &other),
                BC_BLOCKS_ONE_SCALE);
            assert_true(scale == 0.75f);
            assert_int_equal(
                bc_block_common_scale(bp, packed + 3 * bp->block_size, 1, &scale, &other),
                BC_BLOCKS_ALL_ZERO);
            assert_true(scale == 0.0f && other == UINT64_MAX);
        }
        bc_put_u16(packed + 6 * bp->block_size + bp->scale_offset, 0x3a01);
        assert_int_equal(bc_block_common_scale(bp, packed, 7, &scale, &other),
                         BC_BLOCKS_MANY_SCALES);
        assert_true(scale == 0.75f);
        assert_int_equal(other, 6);
        assert_int_equal(bc_block_common_scale(bp, packed, 6, &scale, &other), BC_BLOCKS_ONE_SCALE);
        free(packed);
        free(trits);
    }
}

/* ---- floats ---- */

/* Random values of one of several kinds: normal-like, ternary, ties, tiny, one large. */
static void fill_floats(float *x, size_t n, unsigned kind, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = rng_next(&seed);
        const float u = (float)(r >> 40) * 0x1p-23f - 1.0f;
        switch (kind % 5) {
        case 0:
            x[i] = u * u * u;
            break;
        case 1:
            x[i] = (float)((int)(r % 3) - 1) * 0.03217f;
            break;
        case 2:
            x[i] = (float)((int)(r % 17) - 8) * 0.0625f; /* max 0.5: halves are common */
            break;
        case 3:
            x[i] = u * 1e-6f;
            break;
        default:
            x[i] = i == n / 2 ? -70000.0f : u;
            break;
        }
    }
}

/* The rule of the descriptions with the C library's rounding. */
static void check_trits_of_floats(const struct bc_block_pack *bp, const float *x,
                                  const uint8_t *block)
{
    const struct bc_pack_shape shape = shape_of(bp->block, 1, 1);
    float max = 0.0f;
    for (size_t i = 0; i < bp->block; i++)
        max = fmaxf(max, fabsf(x[i]));
    const float inverse = max == 0.0f ? 0.0f : 1.0f / max;
    for (size_t i = 0; i < bp->block; i++) {
        const float ratio = x[i] * inverse;
        assert_int_equal(bp->format->trit_at(&shape, block, 0, 0, i), lroundf(ratio));
    }
    assert_int_equal(bc_get_u16(block + bp->scale_offset), bc_f32_to_f16(max));
}

static void check_signs_of_floats(const struct bc_block_pack *bp, const float *x,
                                  const uint8_t *block)
{
    const struct bc_pack_shape shape = shape_of(bp->block, 1, 1);
    float sum = 0.0f;
    for (size_t i = 0; i < bp->block; i++) {
        sum = sum + fabsf(x[i]);
        assert_int_equal(bp->format->trit_at(&shape, block, 0, 0, i), x[i] >= 0.0f ? 1 : -1);
    }
    assert_int_equal(bc_get_u16(block + bp->scale_offset), bc_f32_to_f16(sum / 128.0f));
}

static void test_from_floats(void **state)
{
    (void)state;
    enum { N_BLOCKS = 3 };
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        for (unsigned kind = 0; kind < 100; kind++) {
            float x[N_BLOCKS * 256];
            uint8_t packed[N_BLOCKS * 66], again[N_BLOCKS * 66];
            fill_floats(x, N_BLOCKS * (size_t)bp->block, kind, kind);
            bc_block_from_floats(bp, bc_kernels_at(0), x, N_BLOCKS, packed);
            for (size_t b = 0; b < N_BLOCKS; b++) {
                const float *block_x = x + b * bp->block;
                if (bp->holds_zeros)
                    check_trits_of_floats(bp, block_x, packed + b * bp->block_size);
                else
                    check_signs_of_floats(bp, block_x, packed + b * bp->block_size);
            }
            for (size_t k = 1; bc_kernels_at(k) != NULL; k++) {
                bc_block_from_floats(bp, bc_kernels_at(k), x, N_BLOCKS, again);
                assert_memory_equal(again, packed, N_BLOCKS * bp->block_size);
            }
        }
    }
}

/* Trits times one scale quantize to what packing them with this scale gives. */
static void test_from_floats_is_exact_for_trits(void **state)
{
    (void)state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        const struct bc_pack_shape shape = shape_of(bp->block, 20, 1);
        const float scale = 0.0371234f;
        int8_t *trits = trits_new(bp, shape.n, i);
        float *x = malloc(shape.n * sizeof *x);
        uint8_t *packed = pack_new(bp, bc_kernels_best(), &shape, trits);
        uint8_t *again = malloc(bp->format->size(&shape));
        assert_true(x != NULL && again != NULL);
        bp->format->put_scales(&shape, &scale, 1, packed);
        bc_kernels_best()->trits_to_f32(trits, shape.n, scale, x);
        bc_block_from_floats(bp, bc_kernels_best(), x, 20, again);
        assert_memory_equal(again, packed, bp->format->size(&shape));
        free(x);
        free(again);
        free(packed);
        free(trits);
    }
}

/* NaN and infinities do no harm; the scale shows them. */
static void test_from_floats_that_are_none(void **state)
{
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 1e-42f, 3e38f, 0x1p-149f};
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const struct bc_block_pack *bp = bc_block_pack_at(i);
        for (size_t j = 0; j < sizeof odd / sizeof odd[0]; j++) {
            float x[256] = {0};
            uint8_t block[66];
            x[5] = odd[j];
            bc_block_from_floats(bp, bc_kernels_best(), x, 1, block);
            assert_int_equal(isfinite(bc_block_scale(bp, block)) != 0, fabsf(odd[j]) < 65520.0f);
        }
    }
    for (size_t j = 0; j < sizeof odd / sizeof odd[0]; j++) {
        float x[32] = {0};
        uint8_t block[34];
        x[5] = odd[j];
        bc_q8_0_from_floats(bc_kernels_best(), x, 1, block);
        assert_int_equal(isfinite(bc_f16_to_f32(bc_get_u16(block))) != 0,
                         fabsf(odd[j]) < 65520.0f * 127.0f);
    }
}

static void test_q8_0(void **state)
{
    (void)state;
    char why[256];
    for (unsigned kind = 0; kind < 200; kind++) {
        float x[64];
        uint8_t packed[68];
        fill_floats(x, 64, kind, kind);
        for (size_t k = 0; bc_kernels_at(k) != NULL; k++) {
            bc_q8_0_from_floats(bc_kernels_at(k), x, 2, packed);
            for (size_t b = 0; b < 2; b++) {
                float max = 0.0f;
                for (size_t i = 0; i < 32; i++)
                    max = fmaxf(max, fabsf(x[32 * b + i]));
                const float d = max / 127.0f;
                const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
                assert_int_equal(bc_get_u16(packed + 34 * b), bc_f32_to_f16(d));
                for (size_t i = 0; i < 32; i++) {
                    const float product = x[32 * b + i] * inverse;
                    assert_int_equal((int8_t)packed[34 * b + 2 + i], lroundf(product));
                }
            }
        }
    }
    assert_true(bc_q8_0_check(64, why, sizeof why));
    assert_false(bc_q8_0_check(50, why, sizeof why));
    assert_string_equal(why, "Q8_0 stores each row in blocks of 32 values; a row of 50 is no "
                             "multiple of 32, 18 are left over");
    assert_false(bc_q8_0_check(0, why, sizeof why));
}

static void test_q8_0_example(void **state)
{
    (void)state;
    float x[32] = {0,     1,      -1,     0.5f,    -0.5f,       0.25f, 100, -127,
                   63.5f, -63.5f, 126.5f, -126.5f, 0.49999997f, 3.25f, 7,   -8};
    uint8_t bytes[34], packed[34];
    for (int i = 0; i < 16; i++)
        x[16 + i] = (float)i;
    assert_int_equal(spec_hex_read("q8_0", bytes, sizeof bytes), 34);
    bc_q8_0_from_floats(bc_kernels_best(), x, 1, packed);
    assert_memory_equal(packed, bytes, 34);
}

static void test_q4_0_example_of_dequant(void **state)
{
    (void)state;
    uint8_t bytes[18];
    float values[32];
    assert_int_equal(spec_hex_read("dequant", bytes, sizeof bytes), 18);
    bc_dequant_find("Q4_0")->rows(bytes, 1, values);
    for (int i = 0; i < 16; i++)
        assert_true(values[i] == (float)(i - 8) && values[16 + i] == (float)(7 - i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_pack_and_read_back),
        cmocka_unit_test(test_examples_of_the_descriptions),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_q1_0_holds_no_zeros),
        cmocka_unit_test(test_illegal_codes),
        cmocka_unit_test(test_tq1_0_bytes),
        cmocka_unit_test(test_tq1_0_zeros_of_foreign_writers),
        cmocka_unit_test(test_scales_of_slices),
        cmocka_unit_test(test_common_scale),
        cmocka_unit_test(test_from_floats),
        cmocka_unit_test(test_from_floats_is_exact_for_trits),
        cmocka_unit_test(test_from_floats_that_are_none),
        cmocka_unit_test(test_q8_0),
        cmocka_unit_test(test_q8_0_example),
        cmocka_unit_test(test_q4_0_example_of_dequant),
    };
    return cmocka_run_group_tests_name("block_packs", tests, NULL, NULL);
}
