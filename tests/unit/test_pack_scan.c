/* SPDX-License-Identifier: MIT
 * The pass over packed tensors: histogram, fingerprint, re-pack proof, illegal codes, the bytes around the
 * scale; flat packs in pieces and other packs as a whole give the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "formats/fingerprint.h"
#include "quant/quantize.h"
#include "support/rng.h"
#include "verify/pack_scan.h"

/* More than one batch of pieces, and an end inside a piece. */
enum { COLS = 1280, ROWS = 3520, SLICES = 1 };
#define N ((uint64_t)COLS * ROWS * SLICES)

struct sample {
    int8_t *trits;
    uint8_t *packed;
    struct bc_packed p;
};

static void make(struct sample *s, const struct bc_format *f, float scale)
{
    const struct bc_block_pack *bp = bc_block_pack_of(f);
    const bool holds_zeros = bp == NULL || bp->holds_zeros;
    uint64_t seed = 7;
    char why[256] = "";
    memset(s, 0, sizeof *s);
    s->p.format = f;
    s->p.shape = (struct bc_pack_shape){.cols = COLS, .rows = ROWS, .slices = SLICES, .n = N};
    s->p.n_dims = 2;
    s->p.ne[0] = COLS;
    s->p.ne[1] = ROWS;
    for (size_t i = 2; i < BITCONV_GGUF_MAX_DIMS; i++)
        s->p.ne[i] = 1;
    s->trits = bc_alloc_array(N, 1);
    assert_non_null(s->trits);
    for (uint64_t i = 0; i < N; i++) {
        s->trits[i] = holds_zeros ? (int8_t)((int)rng_below(&seed, 3) - 1)
                                  : (int8_t)(2 * (int)rng_below(&seed, 2) - 1);
        s->p.shape.n_nonzero += s->trits[i] != 0;
    }
    if (!bc_format_fit(f, NULL, &s->p.shape, why, sizeof why)) fail_msg("%s", why);
    s->p.size = f->size(&s->p.shape);
    s->packed = bc_alloc_array(s->p.size, 1);
    assert_non_null(s->packed);
    f->pack(bc_kernels_best(), &s->p.shape, s->trits, 0, N, s->packed);
    f->put_scales(&s->p.shape, &scale, 1, s->packed);
    s->p.data = s->packed;
}

static void drop(struct sample *s)
{
    bc_free(s->trits);
    bc_free(s->packed);
}

static struct bc_pack_scan scan(const struct bc_packed *p, bool lenient, struct bc_pool *pool)
{
    struct bc_pack_scan out;
    struct bitconv_error err = {0};
    if (bc_pack_scan(p, lenient, bc_kernels_best(), pool, NULL, &out, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    return out;
}

static struct bc_hash128 fingerprint_of(const struct sample *s, float scale)
{
    struct bc_fingerprint fp;
    assert_int_equal(bc_fingerprint_begin(&fp, 2, s->p.ne, &scale, 1, false, NULL), BITCONV_OK);
    bc_fingerprint_trits(&fp, s->trits, N);
    return bc_fingerprint_end(&fp);
}

static void check_good(const struct sample *s, const struct bc_pack_scan *out, float scale)
{
    uint64_t counts[3] = {0};
    for (uint64_t i = 0; i < N; i++)
        counts[s->trits[i] + 1]++;
    const struct bc_hash128 wanted = fingerprint_of(s, scale);
    assert_int_equal(out->minus, counts[0]);
    assert_int_equal(out->zero, counts[1]);
    assert_int_equal(out->plus, counts[2]);
    assert_int_equal(out->illegal, 0);
    assert_true(out->mismatch == BC_NO_INDEX);
    assert_true(out->junk == BC_NO_INDEX);
    assert_true(out->bad_scale == BC_NO_INDEX);
    assert_true(out->scale == scale);
    assert_true(out->has_fingerprint);
    assert_int_equal(out->fingerprint.high, wanted.high);
    assert_int_equal(out->fingerprint.low, wanted.low);
}

static void every_pack_and_thread_count(void **state)
{
    (void)state;
    const struct bc_format *f;
    for (size_t i = 0; (f = bc_format_at(i)) != NULL; i++) {
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            struct sample s;
            struct bc_pool *pool = NULL;
            make(&s, f, 0.75f);
            assert_int_equal(bc_pool_new(threads, &pool, NULL), BITCONV_OK);
            const struct bc_pack_scan out = scan(&s.p, false, pool);
            check_good(&s, &out, 0.75f);
            bc_pool_free(pool);
            drop(&s);
        }
    }
}

/* The same pack, declared to be one that can only be handled as a whole. */
static void whole_tensor_path(void **state)
{
    (void)state;
    struct bc_format whole = *bc_format_find("i2_s");
    struct sample s;
    whole.row_major = false;
    make(&s, &whole, 2.0f);
    struct bc_pack_scan out = scan(&s.p, false, NULL);
    check_good(&s, &out, 2.0f);
    s.packed[N / 4 + 31] = 1;
    out = scan(&s.p, false, NULL);
    assert_int_equal(out.junk, N / 4 + 31);
    drop(&s);
}

/* A packer that disagrees with the independent reader about one trit. */
static void wrong_pack(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                       const int8_t *trits, uint64_t first, uint64_t n, uint8_t *packed)
{
    bc_format_find("i2_s")->pack(k, shape, trits, first, n, packed);
    packed[first / 4 + n / 4 - 5] ^= 0x40;
}

static void disagreement_is_found(void **state)
{
    (void)state;
    struct bc_format wrong = *bc_format_find("i2_s");
    struct sample s;
    make(&s, &wrong, 1.0f);
    wrong.pack = wrong_pack;
    assert_int_equal(scan(&s.p, false, NULL).mismatch, 65536 / 4 - 5);
    wrong.row_major = false;
    assert_int_equal(scan(&s.p, false, NULL).mismatch, N / 4 - 5);
    drop(&s);
}

static void illegal_codes(void **state)
{
    (void)state;
    static const char *const names[] = {"i2_s", "i2_s_64"};
    for (size_t i = 0; i < 2; i++) {
        struct sample s;
        make(&s, bc_format_find(names[i]), 1.0f);
        const uint64_t byte = N / 4 - 7; /* in the last block */
        s.packed[byte] |= 0x0c;          /* its third value: code 3 */
        const uint64_t width = i == 0 ? 32 : 16;
        const uint64_t index = byte / width * 4 * width + 2 * width + byte % width;
        struct bc_pack_scan out = scan(&s.p, false, NULL);
        assert_int_equal(out.illegal, 1);
        assert_int_equal(out.first_illegal, index);
        assert_int_equal(bc_packed_byte_of(&s.p, index), byte);
        assert_false(out.has_fingerprint);
        assert_true(out.mismatch == BC_NO_INDEX);
        assert_int_equal(out.minus + out.zero + out.plus, N - 1);

        /* Lenient: the code is a zero, and the fingerprint is that of a zero there. */
        s.trits[index] = 0;
        const struct bc_hash128 wanted = fingerprint_of(&s, 1.0f);
        out = scan(&s.p, true, NULL);
        assert_true(out.has_fingerprint);
        assert_int_equal(out.fingerprint.low, wanted.low);
        drop(&s);
    }
}

/* A payload's own checks: the ranks of BITCOS, a byte above 242 in T5. */
static void damaged_payloads(void **state)
{
    (void)state;
    static const char *const names[] = {"bitcos", "t5"};
    for (size_t i = 0; i < 2; i++) {
        struct sample s;
        make(&s, bc_format_find(names[i]), 1.0f);
        const uint64_t byte = i == 0 ? 64 + N / 8 + 4 * 100 : 64 + N / 10;
        const uint8_t intact = s.packed[byte];
        s.packed[byte] = i == 0 ? (uint8_t)(intact ^ 1) : 243;
        struct bc_pack_scan out = scan(&s.p, false, NULL);
        assert_string_not_equal(out.payload, "");
        assert_non_null(strstr(out.payload, i == 0 ? "rank 100 is" : "is 243, above 242"));
        assert_false(out.has_fingerprint);
        assert_true(out.mismatch == BC_NO_INDEX);
        s.packed[byte] = intact;
        out = scan(&s.p, false, NULL);
        assert_string_equal(out.payload, "");
        assert_true(out.has_fingerprint);
        drop(&s);
    }
}

static void scales(void **state)
{
    (void)state;
    static const float bad[] = {0.0f, -0.0f, -1.0f, INFINITY, -INFINITY, NAN};
    struct sample s;
    make(&s, bc_format_find("i2_s"), 1.0f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bc_put_f32(s.packed + N / 4, bad[i]);
        assert_int_equal(scan(&s.p, false, NULL).bad_scale, 0);
    }
    bc_put_f32(s.packed + N / 4, 1e-38f);
    assert_true(scan(&s.p, false, NULL).bad_scale == BC_NO_INDEX);
    for (uint64_t i = 4; i < 32; i++) {
        s.packed[N / 4 + i] = 0x80;
        assert_int_equal(scan(&s.p, false, NULL).junk, N / 4 + i);
        s.packed[N / 4 + i] = 0;
    }
    drop(&s);
}

/* All zeros: the canonical scale, whatever is stored. */
static void all_zero_is_canonical(void **state)
{
    (void)state;
    struct sample s;
    struct bc_fingerprint fp;
    const float canonical = 1e-5f;
    make(&s, bc_format_find("i2_s"), 3.0f);
    memset(s.trits, 0, N);
    memset(s.packed, 0x55, N / 4);
    assert_int_equal(bc_fingerprint_begin(&fp, 2, s.p.ne, &canonical, 1, false, NULL), BITCONV_OK);
    bc_fingerprint_trits(&fp, s.trits, N);
    const struct bc_hash128 wanted = bc_fingerprint_end(&fp);
    const struct bc_pack_scan out = scan(&s.p, false, NULL);
    assert_int_equal(out.zero, N);
    assert_int_equal(out.fingerprint.high, wanted.high);
    assert_int_equal(out.fingerprint.low, wanted.low);
    drop(&s);
}

static void reads_ranges(void **state)
{
    (void)state;
    struct sample s;
    int8_t some[700];
    make(&s, bc_format_find("i2_s"), 1.0f);
    for (uint64_t first = 0; first + sizeof some <= N; first += N / 13) {
        assert_int_equal(bc_packed_read(&s.p, first, sizeof some, some), 0);
        assert_memory_equal(some, s.trits + first, sizeof some);
    }
    drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pack_and_thread_count),
        cmocka_unit_test(whole_tensor_path),
        cmocka_unit_test(disagreement_is_found),
        cmocka_unit_test(illegal_codes),
        cmocka_unit_test(damaged_payloads),
        cmocka_unit_test(scales),
        cmocka_unit_test(all_zero_is_canonical),
        cmocka_unit_test(reads_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
