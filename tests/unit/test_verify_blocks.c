/* SPDX-License-Identifier: MIT
 * Files of others with packs of block scales: what verify and inspect make of scales of all kinds,
 * of tensors that are called like scales, and of the forks' types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bitconv/inspect.h"
#include "formats/block_pack.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/verify_run.h"

enum { COLS = 512, ROWS = 6, N = COLS * ROWS, F32 = 0, F16 = 1 };

struct fixture {
    char *dir;
    const struct bc_block_pack *bp;
    uint8_t packed[N];
    uint64_t size;
    struct gguf_builder extra; /* further keys and tensors of the next file */
    struct verify_run run;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return 1;
    f->dir = temp_dir_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    verify_run_release(&f->run);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

/* Floats as mainline would quantize them: no magnitude twice, a block of zeros at the end. */
static void make_blocks(struct fixture *f, const char *pack)
{
    float values[N];
    uint64_t rng = 3;
    f->bp = bc_block_pack_find(pack);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)((int)rng_below(&rng, 20001) - 10000) / 16384.0f;
    for (size_t i = N - f->bp->block; i < N && f->bp->holds_zeros; i++)
        values[i] = 0.0f;
    bc_block_from_floats(f->bp, bc_kernels_best(), values, N / f->bp->block, f->packed);
    f->size = N / f->bp->block * f->bp->block_size;
}

static void put_scale(struct fixture *f, uint64_t block, uint16_t bits)
{
    bc_put_u16(f->packed + block * f->bp->block_size + f->bp->scale_offset, bits);
}

static char *write_file(struct fixture *f, bool ours)
{
    struct gguf_builder b = f->extra;
    f->extra = (struct gguf_builder){.version = 0};
    gguf_builder_string(&b, "general.architecture", "test");
    if (ours) gguf_builder_string(&b, "bitconv.version", "1");
    gguf_builder_data(&b, "a.weight", f->bp->format->type_id, 2, (const uint64_t[]){COLS, ROWS},
                      f->packed, (size_t)f->size);
    return gguf_builder_write(&b, f->dir, "t.gguf");
}

static void verify_file(struct fixture *f, bool ours)
{
    const struct bitconv_verify_options options = {.n_threads = 2};
    char *path = write_file(f, ours);
    verify_run(&f->run, path, &options);
    free(path);
}

static const struct bitconv_verified_tensor *packed_tensor(const struct fixture *f)
{
    for (size_t i = 0; i < f->run.result->n_tensors; i++)
        if (strcmp(f->run.result->tensors[i].name, "a.weight") == 0)
            return &f->run.result->tensors[i];
    fail();
    return NULL;
}

static void blocks_with_scales_of_their_own(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        const char *pack = bc_block_pack_at(i)->format->name;
        make_blocks(f, pack);
        verify_file(f, false);
        if (!verify_run_ok(&f->run)) fail_msg("%s", bc_buf_str(&f->run.problems));
        assert_int_equal(verify_run_proof(&f->run, "packs")->verdict, BITCONV_PASSED);
        assert_non_null(strstr(verify_run_proof(&f->run, "packs")->detail, "differing) of 1"));
        assert_int_equal(verify_run_proof(&f->run, "fingerprints")->verdict, BITCONV_NOT_RUN);
        const struct bitconv_verified_tensor *t = packed_tensor(f);
        assert_string_equal(t->pack, pack);
        assert_string_equal(t->scale_form, "differing blocks");
        assert_string_equal(t->fingerprint, "");
        assert_true(isnan(t->scale));
    }
}

static void inspected(void **state)
{
    struct fixture *f = *state;
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    const struct bitconv_inspect_options options = {.stats = true, .hash = true};
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        make_blocks(f, bc_block_pack_at(i)->format->name);
        char *path = write_file(f, false);
        assert_int_equal(bitconv_inspect(path, &options, NULL, &it, &err), BITCONV_OK);
        assert_string_equal(it->dialect, "upstream");
        assert_string_equal(it->tensors[0].pack, f->bp->format->name);
        assert_string_equal(it->tensors[0].fingerprint, "");
        assert_string_equal(it->fingerprint, "");
        assert_true(isnan(it->tensors[0].stats.scale));
        assert_int_equal(it->tensors[0].stats.kind, BITCONV_STATS_TERNARY);
        assert_int_equal(it->n_warnings, 0);
        bitconv_inspection_free(it);
        free(path);
    }
}

static void scales_that_cannot_be(void **state)
{
    static const struct {
        uint16_t bits;
        const char *text;
    } cases[] = {{0x7c00, "the scale of block 1 is inf"},
                 {0x7e00, "the scale of block 1 is nan"},
                 {0xbc00, "the scale of block 1 is -1"}};
    struct fixture *f = *state;
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        for (size_t j = 0; j < sizeof cases / sizeof cases[0]; j++) {
            make_blocks(f, bc_block_pack_at(i)->format->name);
            put_scale(f, 1, cases[j].bits);
            verify_file(f, false);
            assert_false(verify_run_ok(&f->run));
            assert_true(verify_run_says(&f->run.problems, cases[j].text));
            assert_false(packed_tensor(f)->ok);
        }
    }
}

/* One scale of 0 among others: float16 was too coarse for that block. All of them: no scale. */
static void vanishing_scales(void **state)
{
    struct fixture *f = *state;
    make_blocks(f, "tq2_0");
    put_scale(f, 2, 0);
    verify_file(f, false);
    assert_true(verify_run_ok(&f->run));
    assert_true(verify_run_says(&f->run.warnings, "1 blocks with non-zero trits have the scale 0"));
    assert_true(verify_run_says(&f->run.warnings, "the first is block 2"));
    for (uint64_t i = 0; i < N / f->bp->block; i++)
        put_scale(f, i, 0);
    verify_file(f, false);
    assert_false(verify_run_ok(&f->run));
    assert_true(verify_run_says(&f->run.problems, "the scale of slice 0 is 0"));
}

static void scales_of_zeros(void **state)
{
    struct fixture *f = *state;
    make_blocks(f, "tq1_0");
    put_scale(f, N / f->bp->block - 1, 0x3c00);
    verify_file(f, false);
    assert_true(verify_run_ok(&f->run));
    assert_true(verify_run_says(&f->run.notes, "the scales of blocks of zeros are not zero"));
    verify_file(f, true);
    assert_true(verify_run_says(&f->run.problems, "the scale of a block of zeros at offset"));
}

/* Bytes that the packer does not write, and codes that do not exist. */
static void damaged_codes(void **state)
{
    static const struct {
        const char *pack;
        uint64_t at;
        uint8_t byte;
        const char *text;
    } cases[] = {{"tq2_0", 70, 0x57, "code 3 is reserved: offset"},
                 {"q2_0", 20, 0xc0, "code 3 is reserved: offset"},
                 {"tq1_0", 60, 0x01, "is not what its own trits pack to"}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_blocks(f, cases[i].pack);
        f->packed[cases[i].at] = cases[i].byte;
        verify_file(f, false);
        assert_false(verify_run_ok(&f->run));
        if (!verify_run_says(&f->run.problems, cases[i].text))
            fail_msg("%s", bc_buf_str(&f->run.problems));
    }
}

/* ---- tensors of scales ---- */

static void add_scales(struct fixture *f, uint32_t type, uint64_t n, float value)
{
    uint8_t bytes[32] = {0};
    for (uint64_t i = 0; i < n && i < 8; i++)
        bc_put_f32(bytes + 4 * i, value);
    gguf_builder_data(&f->extra, "a.scale", type, 1, &n, bytes, (size_t)(type == F32 ? 4 * n : 2));
}

static void scale_tensors(void **state)
{
    struct fixture *f = *state;
    int8_t trits[N];
    uint64_t rng = 5;
    const struct bc_pack_shape shape = {.cols = COLS, .rows = ROWS, .slices = 1, .n = N};
    f->bp = bc_block_pack_find("tq2_0");
    for (size_t i = 0; i < N; i++)
        trits[i] = (int8_t)((int)rng_below(&rng, 3) - 1);
    f->bp->format->pack(bc_kernels_best(), &shape, trits, 0, N, f->packed);
    f->size = f->bp->format->size(&shape);

    add_scales(f, F32, 1, 0.1f);
    verify_file(f, false);
    assert_true(verify_run_ok(&f->run));
    assert_string_equal(packed_tensor(f)->scale_form, "scale tensor");
    assert_true(packed_tensor(f)->scale == 0.1f);
    char with[33];
    memcpy(with, packed_tensor(f)->fingerprint, sizeof with);

    verify_file(f, false); /* the same without it */
    assert_string_equal(packed_tensor(f)->scale_form, "blocks");
    assert_true(packed_tensor(f)->scale == 1.0f);
    assert_string_not_equal(packed_tensor(f)->fingerprint, with);

    add_scales(f, F32, 1, -0.5f);
    verify_file(f, false);
    assert_true(verify_run_says(&f->run.problems, "the scale of slice 0 is -0.5"));
    add_scales(f, F32, 2, 0.5f); /* not one per slice */
    verify_file(f, false);
    assert_true(verify_run_says(&f->run.problems, "a.scale: cannot hold the scales of a.weight"));
    add_scales(f, F16, 1, 0.5f);
    verify_file(f, false);
    assert_true(verify_run_says(&f->run.problems, "a.scale: cannot hold the scales of a.weight"));
}

/* A tensor of scales stands where its weight is packed: blocks whose weight is a misfit lack it. */
static void scales_of_some_blocks(void **state)
{
    struct fixture *f = *state;
    const uint64_t ne[2] = {COLS, ROWS}, one = 1;
    const uint8_t scale[4] = {0, 0, 0, 0x3f};
    for (int missing = 0; missing < 2; missing++) {
        struct gguf_builder b = {.version = 3};
        make_blocks(f, "q2_0");
        gguf_builder_string(&b, "general.architecture", "llama");
        gguf_builder_u32(&b, "llama.block_count", 2);
        gguf_builder_data(&b, "blk.0.ffn_up.weight", 42, 2, ne, f->packed, (size_t)f->size);
        gguf_builder_data(&b, "blk.0.ffn_up.scale", F32, 1, &one, scale, sizeof scale);
        gguf_builder_tensor(&b, "blk.1.ffn_down.weight", F16, 2, ne, 2 * N);
        if (!missing) gguf_builder_tensor(&b, "blk.1.ffn_up.weight", F16, 2, ne, 2 * N);
        char *path = gguf_builder_write(&b, f->dir, "t.gguf");
        verify_run(&f->run, path, NULL);
        assert_false(verify_run_says(&f->run.problems, "blk.1.ffn_up.scale is missing"));
        assert_int_equal(verify_run_says(&f->run.problems, "blk.1.ffn_up.weight is missing"),
                         missing);
        free(path);
    }
}

/* ---- the forks ---- */

/* Q2_0 with blocks of 128 shows itself by its size: decoded, no pack of ours. */
static void q2_0_of_128(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[32 * 34] = {0}; /* with 8 blocks both sizes of Q2_0 would fill the same span */
    struct gguf_builder b = {.version = 3};
    struct bitconv_inspection *it = NULL;
    struct bitconv_error err = {0};
    const struct bitconv_inspect_options options = {.tensor = "a.weight", .stats = true};
    for (size_t i = 0; i < 32; i++)
        bc_put_u16(bytes + 34 * i, 0x3800); /* 0.5, and codes of -1 */
    bytes[34 + 2] = 0x24;                   /* 0, 1, 2, 0: -1, 0, +1, -1 */
    gguf_builder_string(&b, "general.architecture", "llama");
    gguf_builder_data(&b, "a.weight", 42, 2, (const uint64_t[]){128, 32}, bytes, sizeof bytes);
    char *path = gguf_builder_write(&b, f->dir, "t.gguf");
    assert_int_equal(bitconv_inspect(path, &options, NULL, &it, &err), BITCONV_OK);
    assert_string_equal(it->dialect, "prism");
    assert_string_equal(it->tensors[0].type, "Q2_0_G128");
    assert_null(it->tensors[0].pack);
    assert_true(it->values->reals[0] == -0.5);
    assert_true(it->values->reals[128] == -0.5);
    assert_true(it->values->reals[129] == 0.0);
    assert_true(it->values->reals[130] == 0.5);
    bitconv_inspection_free(it);
    free(path);
}

/* A tensor so small that both sizes of Q2_0 fill its span: our own files say which it is. */
static void small_q2_0_of_ours(void **state)
{
    static const char *const packs[] = {"q2_0"};
    struct fixture *f = *state;
    const uint8_t bytes[16 * 18] = {0};
    for (int ours = 0; ours < 2; ours++) {
        struct gguf_builder b = {.version = 3};
        struct bitconv_inspection *it = NULL;
        struct bitconv_error err = {0};
        gguf_builder_string(&b, "general.architecture", "llama");
        if (ours) gguf_builder_strings(&b, "bitconv.tensor.pack", packs, 1);
        gguf_builder_data(&b, "a.weight", 42, 2, (const uint64_t[]){128, 8}, bytes, sizeof bytes);
        char *path = gguf_builder_write(&b, f->dir, "t.gguf");
        assert_int_equal(bitconv_inspect(path, NULL, NULL, &it, &err), BITCONV_OK);
        assert_string_equal(it->dialect, ours ? "upstream" : "ambiguous");
        assert_int_equal(strstr(it->dialect_evidence, "bitconv.tensor.pack decides") != NULL, ours);
        bitconv_inspection_free(it);
        free(path);
    }
}

/* The rotated types are listed with their names; verify goes through everything that can be. */
static void rotated_types(void **state)
{
    static const struct {
        uint32_t id, size;
        const char *name;
    } cases[] = {{142, 34, "PQ2_0"}, {143, 28, "PTQ1_0"}};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct gguf_builder b = {.version = 3};
        struct bitconv_inspection *it = NULL;
        struct bitconv_error err = {0};
        const struct bitconv_verify_options options = {.n_threads = 1};
        const struct bitconv_inspect_options values = {.tensor = "a.weight"};
        gguf_builder_string(&b, "general.architecture", "test");
        gguf_builder_tensor(&b, "a.weight", cases[i].id, 2, (const uint64_t[]){128, 4},
                            4 * cases[i].size);
        char *path = gguf_builder_write(&b, f->dir, "t.gguf");
        assert_int_equal(bitconv_inspect(path, NULL, NULL, &it, &err), BITCONV_OK);
        assert_string_equal(it->dialect, "prism");
        assert_string_equal(it->tensors[0].type, cases[i].name);
        bitconv_inspection_free(it);
        assert_int_equal(bitconv_inspect(path, &values, NULL, &it, &err), BITCONV_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, cases[i].name));
        assert_non_null(strstr(err.text, "Hadamard"));
        verify_run(&f->run, path, &options);
        assert_true(verify_run_ok(&f->run));
        assert_int_equal(verify_run_proof(&f->run, "packs")->verdict, BITCONV_NOT_RUN);
        assert_true(verify_run_says(&f->run.warnings, "a.weight: its values are not checked"));
        assert_true(verify_run_says(&f->run.warnings, cases[i].name));
        free(path);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blocks_with_scales_of_their_own),
        TEST(inspected),
        TEST(scales_that_cannot_be),
        TEST(vanishing_scales),
        TEST(scales_of_zeros),
        TEST(damaged_codes),
        TEST(scale_tensors),
        TEST(scales_of_some_blocks),
        TEST(q2_0_of_128),
        TEST(small_q2_0_of_ours),
        TEST(rotated_types),
    };
    return cmocka_run_group_tests_name("verify_blocks", tests, NULL, NULL);
}
