/* SPDX-License-Identifier: MIT
 * Decoding of GGUF blocks: the table against the table of types, known blocks, formulas written
 * differently, any bytes between guard pages. */
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
#include "base/digest.h"
#include "base/json.h"
#include "base/mem.h"
#include "formats/dequant.h"
#include "io/gguf_types.h"
#include "support/guard.h"
#include "support/rng.h"

static const struct bc_dequant *row_of(const char *name)
{
    const struct bc_dequant *d = bc_dequant_find(name);
    if (d == NULL) fail_msg("no decoder for %s", name);
    return d;
}

/* Every block type of a GGUF is decoded, with the block that io/ reckons with, or refused with a
 * reason. */
static void test_every_type(void **state)
{
    (void)state;
    const struct bc_type *type;
    for (size_t i = 0; (type = bc_type_row(i)) != NULL; i++) {
        const struct bc_dequant *d = bc_dequant_find(type->name);
        const char *refusal = bc_dequant_refusal(type->name);
        if (type->layout == BC_LAYOUT_I2_S || type->layout == BC_LAYOUT_TL2) {
            assert_null(d);
            assert_null(refusal);
        } else if (d == NULL) {
            if (refusal == NULL) fail_msg("%s is neither decoded nor refused", type->name);
        } else {
            assert_null(refusal);
            assert_string_equal(d->type_name, type->name);
            assert_true(d->block <= BC_DEQUANT_MAX_BLOCK);
            assert_int_equal(d->block, type->block);
            assert_int_equal(d->block_size, type->block_size);
        }
    }
    assert_null(bc_dequant_find("q4_0"));
    assert_null(bc_dequant_find("I2_S"));
    assert_non_null(strstr(bc_dequant_refusal("PTQ1_0"), "Hadamard"));
    assert_null(bc_dequant_refusal("Q4_0"));
    assert_null(bc_dequant_refusal("no such type"));
}

/* ---- known blocks ---- */

/* An entry of fixtures/dequant/blocks.txt. */
struct entry {
    char type[32];
    uint8_t bytes[1024];
    size_t n_bytes;
    uint32_t first[8];
};

static void add_hex(struct entry *e, const char *hex)
{
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        assert_true(e->n_bytes < sizeof e->bytes);
        e->bytes[e->n_bytes++] = (uint8_t)byte;
    }
}

static void check_entry(const struct entry *e, const char *sha256)
{
    const struct bc_dequant *d = row_of(e->type);
    const size_t n_blocks = e->n_bytes / d->block_size, n = n_blocks * d->block;
    float values[4 * BC_DEQUANT_MAX_BLOCK];
    uint8_t bytes[sizeof values];
    char hex[65];
    assert_true(e->n_bytes % d->block_size == 0 && n_blocks == 2);
    d->rows(e->bytes, n_blocks, values);
    for (size_t i = 0; i < 8; i++) {
        if (bc_f32_bits(values[i]) != e->first[i])
            fail_msg("%s: value %zu is %.9g, expected %.9g", e->type, i, (double)values[i],
                     (double)bc_f32_from_bits(e->first[i]));
    }
    for (size_t i = 0; i < n; i++)
        bc_put_f32(bytes + 4 * i, values[i]);
    bc_sha256_hex(bytes, 4 * n, hex);
    if (strcmp(hex, sha256) != 0) fail_msg("%s: the values hash to %s", e->type, hex);
}

static void test_known_blocks(void **state)
{
    (void)state;
    struct bc_buf text = {0};
    struct bitconv_error err = {0};
    if (bc_text_load(BITCONV_SOURCE_DIR "/fixtures/dequant/blocks.txt", &text, &err) != BITCONV_OK)
        fail_msg("%s", err.text);
    struct entry e = {.n_bytes = 0};
    unsigned n_checked = 0;
    char *rest = NULL;
    for (char *line = strtok_r((char *)text.data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "type %31s", e.type) == 1) e.n_bytes = 0;
        if (strncmp(line, "hex ", 4) == 0) add_hex(&e, line + 4);
        if (strncmp(line, "values ", 7) == 0)
            assert_int_equal(sscanf(line, "values %x %x %x %x %x %x %x %x", &e.first[0],
                                    &e.first[1], &e.first[2], &e.first[3], &e.first[4], &e.first[5],
                                    &e.first[6], &e.first[7]),
                             8);
        if (strncmp(line, "sha256 ", 7) == 0) {
            check_entry(&e, line + 7);
            n_checked++;
        }
    }
    bc_buf_release(&text);
    assert_int_equal(n_checked, 29); /* every type with blocks of more than one value */
}

/* ---- numbers ---- */

static float plain(const char *type, uint64_t bits)
{
    uint8_t bytes[8];
    float value;
    bc_put_u64(bytes, bits);
    row_of(type)->rows(bytes, 1, &value);
    return value;
}

static void test_plain_numbers(void **state)
{
    (void)state;
    assert_true(plain("F32", 0x40490fdb) == 3.14159274f);
    assert_true(plain("F16", 0x3555) == 0.333251953125f);
    assert_true(plain("F16", 0x0001) == 0x1p-24f);
    assert_true(isnan(plain("F16", 0x7e00)) && isinf(plain("F16", 0xfc00)));
    assert_true(plain("BF16", 0x4049) == 3.140625f);
    assert_true(plain("I8", 0x80) == -128.0f);
    assert_true(plain("I16", 0x8000) == -32768.0f && plain("I16", 0x7fff) == 32767.0f);
    assert_true(plain("I32", 0x80000000) == -2147483648.0f);
    assert_true(plain("I32", 16777217) == 16777216.0f); /* a tie: to even */
    assert_true(plain("I32", 16777219) == 16777220.0f);
    assert_true(plain("I64", UINT64_C(1) << 63) == -0x1p63f);
    assert_true(plain("I64", UINT64_MAX) == -1.0f);
    assert_true(plain("I64", (UINT64_C(1) << 40) + 1) == 0x1p40f);
    assert_true(plain("F64", UINT64_C(0x400921fb54442d18)) == 3.14159274f);
    assert_true(plain("F64", UINT64_C(0x47efffffe0000000)) == 0x1.fffffep127f);
    assert_true(plain("F64", UINT64_C(0x47efffffefffffff)) == 0x1.fffffep127f);
    assert_true(plain("F64", UINT64_C(0x47effffff0000000)) == (float)INFINITY);
    assert_true(plain("F64", UINT64_C(0xc7effffff0000000)) == -(float)INFINITY);
    assert_true(plain("F64", UINT64_C(0xfff0000000000000)) == -(float)INFINITY);
    assert_true(isnan(plain("F64", UINT64_C(0x7ff8000000000000))));
    assert_true(plain("F64", UINT64_C(0x36a0000000000000)) == 0x1p-149f);
    assert_true(signbit(plain("F64", UINT64_C(1) << 63)) != 0);
}

/* ---- scales and codes by their definitions ---- */

/* OCP MX: the scale is 2^(e - 127); the codes are sign, exponent (bias 1), one bit of mantissa. */
static double e2m1(unsigned code)
{
    const double sign = (code & 8) != 0 ? -1.0 : 1.0;
    const unsigned exponent = code >> 1 & 3, mantissa = code & 1;
    if (exponent == 0) return sign * 0.5 * mantissa;
    return sign * ldexp(1.0 + 0.5 * mantissa, (int)exponent - 1);
}

static void test_mxfp4(void **state)
{
    (void)state;
    for (unsigned e = 0; e < 253; e++) { /* above, 6 * 2^(e - 127) is no float32 */
        uint8_t block[17] = {(uint8_t)e};
        float values[32];
        for (unsigned i = 0; i < 16; i++)
            block[1 + i] = (uint8_t)(i | (15 - i) << 4);
        row_of("MXFP4")->rows(block, 1, values);
        for (unsigned i = 0; i < 16; i++) {
            assert_true((double)values[i] == ldexp(e2m1(i), (int)e - 127));
            assert_true((double)values[16 + i] == ldexp(e2m1(15 - i), (int)e - 127));
        }
        assert_int_equal(bc_f32_bits(values[8]), 0); /* code 8 is +0 here, not -0 */
    }
}

/* Unsigned E4M3: bias 7, subnormals; the code of NaN counts as 0, the top bit not at all. */
static void test_nvfp4(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        const unsigned exponent = byte >> 3 & 15, mantissa = byte & 7;
        double scale =
            exponent == 0 ? ldexp(mantissa, -9) : ldexp(1.0 + mantissa / 8.0, (int)exponent - 7);
        if (byte == 0x7f) scale = 0.0;
        uint8_t block[36] = {0x38, (uint8_t)byte, 0, 0x38}; /* 0x38: 1 */
        float values[64];
        for (unsigned i = 0; i < 8; i++) {
            block[4 + i] = 0x02; /* 1, 0 */
            block[12 + i] = (uint8_t)(i | (15 - i) << 4);
            block[28 + i] = 0x50; /* 0, 3 */
        }
        row_of("NVFP4")->rows(block, 1, values);
        for (unsigned i = 0; i < 8; i++) {
            assert_true(values[i] == 1.0f && values[8 + i] == 0.0f);
            assert_true((double)values[16 + i] == scale * e2m1(i));
            assert_true((double)values[24 + i] == scale * e2m1(15 - i));
            assert_true(values[48 + i] == 0.0f && values[56 + i] == 3.0f);
        }
    }
}

/* Seven stored signs and the eighth that makes the number of minuses even. */
static void test_signs_of_seven_bits(void **state)
{
    (void)state;
    for (unsigned seven = 0; seven < 128; seven++) {
        uint8_t block[74] = {0x00, 0x3c};
        float values[256];
        bc_put_u16(block + 2, (uint16_t)(seven << 9)); /* grid entry 0: eight times 8 */
        row_of("IQ2_XS")->rows(block, 1, values);
        unsigned n_minus = 0;
        for (unsigned i = 0; i < 8; i++) {
            assert_true(fabsf(values[i]) == 1.0f); /* 8 * (0.5 + 0) / 4 */
            if (i < 7) assert_int_equal(values[i] < 0, seven >> i & 1);
            n_minus += values[i] < 0;
        }
        assert_int_equal(n_minus % 2, 0);
    }
}

/* Every byte of TQ1_0 in every place, by the fixed-point definition in rational arithmetic. */
static void test_tq1_0_bytes(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t block[54];
        float values[256];
        memset(block, (int)byte, sizeof block);
        bc_put_u16(block + 52, 0x4000); /* 2 */
        row_of("TQ1_0")->rows(block, 1, values);
        unsigned power = 1;
        for (unsigned t = 0; t < 5; t++, power *= 3) {
            const unsigned digit = byte * power * 3 / 256 % 3;
            const float expected = 2.0f * ((float)digit - 1.0f);
            for (unsigned m = 0; m < 32; m++)
                assert_true(values[t * 32 + m] == expected);
            for (unsigned m = 0; m < 16; m++)
                assert_true(values[160 + t * 16 + m] == expected);
            for (unsigned m = 0; m < 4 && t < 4; m++)
                assert_true(values[240 + t * 4 + m] == expected);
        }
    }
}

/* ---- any bytes ---- */

static bool same_float(float a, float b)
{
    return bc_f32_bits(a) == bc_f32_bits(b) || (isnan(a) && isnan(b));
}

/* Blocks of any bytes are decoded without a step outside; runs and single blocks agree; so do
 * values fetched from any place. */
static void check_any_bytes(const struct bc_dequant *d, struct guard *in, struct guard *out,
                            uint64_t seed)
{
    enum { N_BLOCKS = 5 };
    const size_t n = N_BLOCKS * (size_t)d->block;
    float whole[N_BLOCKS * BC_DEQUANT_MAX_BLOCK];
    uint8_t *data = guard_end(in, N_BLOCKS * d->block_size);
    float *dst = (float *)(void *)guard_end(out, n * sizeof(float));
    for (size_t i = 0; i < N_BLOCKS * d->block_size; i++)
        data[i] = (uint8_t)(rng_next(&seed) >> 40);
    d->rows(data, N_BLOCKS, dst);
    memcpy(whole, dst, n * sizeof *dst);
    for (size_t b = 0; b < N_BLOCKS; b++) {
        float one[BC_DEQUANT_MAX_BLOCK];
        d->rows(data + b * d->block_size, 1, one);
        for (size_t i = 0; i < d->block; i++)
            assert_true(same_float(one[i], whole[b * d->block + i]));
    }
    for (unsigned trial = 0; trial < 30; trial++) {
        const uint64_t first = rng_below(&seed, n), count = rng_below(&seed, n - first + 1);
        float *part = (float *)(void *)guard_end(out, (size_t)count * sizeof(float));
        bc_dequant_values(d, data, first, count, part);
        for (uint64_t i = 0; i < count; i++)
            assert_true(same_float(part[i], whole[first + i]));
    }
}

static void test_any_bytes(void **state)
{
    (void)state;
    struct guard in, out;
    assert_true(guard_open(&in, 8192) && guard_open(&out, 8192));
    for (size_t i = 0; bc_type_row(i) != NULL; i++) {
        const struct bc_dequant *d = bc_dequant_find(bc_type_row(i)->name);
        for (uint64_t seed = 0; d != NULL && seed < 40; seed++)
            check_any_bytes(d, &in, &out, 100 * i + seed);
    }
    guard_close(&in);
    guard_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),    cmocka_unit_test(test_known_blocks),
        cmocka_unit_test(test_plain_numbers), cmocka_unit_test(test_mxfp4),
        cmocka_unit_test(test_nvfp4),         cmocka_unit_test(test_signs_of_seven_bits),
        cmocka_unit_test(test_tq1_0_bytes),   cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests_name("dequant", tests, NULL, NULL);
}
