/* SPDX-License-Identifier: MIT
 * Tests of the decision whose tensor type ids a GGUF uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "io/gguf_impl.h"
#include "support/gguf_builder.h"

static struct bitconv_gguf *build(struct gguf_builder *b, struct bc_buf *file)
{
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    gguf_builder_bytes(b, file);
    assert_false(file->failed);
    if (bc_gguf_parse(file->data, file->size, "t.gguf", &g, &err) != BITCONV_OK)
        fail_msg("refused: %s", err.text);
    return g;
}

static struct gguf_builder start(const char *architecture)
{
    struct gguf_builder b = {0};
    gguf_builder_string(&b, "general.architecture", architecture);
    return b;
}

static void add(struct gguf_builder *b, const char *name, uint32_t type, uint64_t cols,
                uint64_t rows, uint64_t size)
{
    gguf_builder_tensor(b, name, type, 2, (const uint64_t[]){cols, rows}, size);
}

/* Builds, compares, and releases. `type_name` is that of the last tensor. */
static void expect(struct gguf_builder *b, enum bitconv_dialect dialect, const char *type_name,
                   const char *evidence)
{
    struct bc_buf file = {0};
    struct bitconv_gguf *g = build(b, &file);
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(g, bitconv_gguf_n_tensors(g) - 1);
    const char *said = bitconv_gguf_dialect_evidence(g);
    if (bitconv_gguf_dialect(g) != dialect || strstr(said, evidence) == NULL)
        fail_msg("%s: %s", bitconv_dialect_name(bitconv_gguf_dialect(g)), said);
    assert_string_equal(t->type_name, type_name);
    assert_true(t->size <= t->span);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

static void test_names(void **state)
{
    (void)state;
    enum bitconv_dialect d;
    for (int i = BITCONV_DIALECT_UPSTREAM; i < BITCONV_N_DIALECTS; i++) {
        assert_true(bitconv_dialect_from_name(bitconv_dialect_name((enum bitconv_dialect)i), &d));
        assert_int_equal(d, i);
    }
    assert_string_equal(bitconv_dialect_name(BITCONV_DIALECT_BITNET_REBASED), "bitnet-rebased");
    assert_false(bitconv_dialect_from_name("ambiguous", &d));
    assert_false(bitconv_dialect_from_name("Bitnet", &d));
    assert_false(bitconv_dialect_from_name(NULL, &d));
}

static void test_nothing_disputed(void **state)
{
    (void)state;
    struct gguf_builder b = start("bitnet-b1.58");
    add(&b, "a", 35, 256, 4, 264);
    expect(&b, BITCONV_DIALECT_UPSTREAM, "TQ2_0", "no tensor has a type that the dialects dispute");
}

static void test_spans_decide(void **state)
{
    (void)state;
    /* the architecture points the other way each time: it is not asked */
    struct gguf_builder b = start("llama");
    add(&b, "a", 36, 256, 64, 4128);
    expect(&b, BITCONV_DIALECT_BITNET, "I2_S", "1 x I2_S (36), as in: bitnet, bitnet-rebased");
    b = start("bitnet-b1.58");
    add(&b, "a", 36, 256, 64, 9216);
    expect(&b, BITCONV_DIALECT_UPSTREAM, "IQ4_NL_4_4", "1 x IQ4_NL_4_4 (36), as in: upstream");
    b = start("llama");
    add(&b, "a", 39, 512, 64, 7552);
    expect(&b, BITCONV_DIALECT_BITNET, "TL2", "1 x TL2 (39), as in: bitnet");
    b = start("bitnet-b1.58");
    add(&b, "a", 39, 512, 64, 17408);
    expect(&b, BITCONV_DIALECT_UPSTREAM, "MXFP4", "upstream, bitnet-rebased, prism");
    b = start("bitnet-b1.58");
    add(&b, "a", 42, 512, 64, 9216);
    expect(&b, BITCONV_DIALECT_UPSTREAM, "Q2_0", "1 x Q2_0 (42), as in: upstream");
    b = start("llama");
    add(&b, "a", 42, 512, 64, 7552);
    expect(&b, BITCONV_DIALECT_BITNET_REBASED, "TL2", "1 x TL2 (42), as in: bitnet-rebased");
    b = start("llama");
    add(&b, "a", 42, 512, 64, 8704);
    expect(&b, BITCONV_DIALECT_PRISM, "Q2_0_G128", "1 x Q2_0_G128 (42), as in: prism");
    b = start("qwen3");
    add(&b, "a", 40, 512, 64, 18432);
    expect(&b, BITCONV_DIALECT_UPSTREAM, "NVFP4", "as in: upstream, bitnet-rebased");
    b = start("qwen3");
    add(&b, "a", 40, 512, 64, 6144);
    expect(&b, BITCONV_DIALECT_PRISM, "Q1_0_G32", "as in: prism");
    b = start("qwen3");
    add(&b, "a", 142, 512, 64, 8704);
    expect(&b, BITCONV_DIALECT_PRISM, "PQ2_0", "as in: prism");
}

/* One tensor alone would fit both bitnet dialects; the other settles it. */
static void test_all_tensors_count(void **state)
{
    (void)state;
    struct gguf_builder b = start("llama");
    add(&b, "a", 36, 512, 64, 8224);
    add(&b, "b", 39, 512, 64, 17408);
    expect(&b, BITCONV_DIALECT_BITNET_REBASED, "MXFP4", "1 x I2_S (36), 1 x MXFP4 (39)");
    b = start("llama");
    add(&b, "a", 36, 512, 64, 8224);
    add(&b, "b", 39, 512, 64, 7552);
    expect(&b, BITCONV_DIALECT_BITNET, "TL2", "1 x I2_S (36), 1 x TL2 (39)");
}

/* With one row of 128, Q2_0 in blocks of 64 and of 128 both end up in 64 bytes. */
static void test_hints_decide_between_possible(void **state)
{
    (void)state;
    struct gguf_builder b = start("llama");
    add(&b, "a", 42, 128, 1, 34);
    expect(&b, BITCONV_DIALECT_AMBIGUOUS, "type 42 (ambiguous: Q2_0 / TL2 / Q2_0_G128)",
           "the byte spans fit several dialects, which disagree: upstream, prism");
    b = start("llama");
    gguf_builder_u32(&b, "prism.version", 1);
    add(&b, "a", 42, 128, 1, 34);
    expect(&b, BITCONV_DIALECT_PRISM, "Q2_0_G128", "the prism.* keys decides");
    /* 4096-byte alignment makes all meanings of a small tensor fit */
    static const struct {
        const char *arch;
        uint32_t file_type;
        const char *tensor;
        enum bitconv_dialect dialect;
        const char *type_name;
        const char *evidence;
    } cases[] = {
        {"llama", 1, "a", BITCONV_DIALECT_AMBIGUOUS, "type 42 (ambiguous: Q2_0 / TL2 / Q2_0_G128)",
         "upstream, bitnet-rebased, prism"},
        {"llama", 42, "a", BITCONV_DIALECT_BITNET_REBASED, "TL2", "general.file_type"},
        {"bitnet-b1.58", 1, "a", BITCONV_DIALECT_BITNET_REBASED, "TL2", "general.architecture"},
        {"bitnet", 1, "a", BITCONV_DIALECT_BITNET_REBASED, "TL2", "general.architecture"},
        {"qwen3", 1, "blk.0.attn_q_norm_in.weight", BITCONV_DIALECT_BITNET_REBASED, "TL2",
         "the *_norm_in tensors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        b = start(cases[i].arch);
        b.alignment = 4096;
        gguf_builder_u32(&b, "general.alignment", 4096);
        gguf_builder_u32(&b, "general.file_type", cases[i].file_type);
        add(&b, cases[i].tensor, 42, 256, 4, 544);
        expect(&b, cases[i].dialect, cases[i].type_name, cases[i].evidence);
    }
}

static void test_damage_is_not_a_dialect(void **state)
{
    (void)state;
    struct gguf_builder b = start("llama");
    add(&b, "a", 36, 512, 64, 8224);
    add(&b, "b", 36, 512, 64, 8224);
    add(&b, "c", 36, 512, 64, 8224 + 64);
    expect(
        &b, BITCONV_DIALECT_BITNET, "I2_S",
        "2 out of 3 tensors fit 3 x I2_S (36), as in bitnet, and no other meaning; not so tensor "
        "c (type 36, 8288 bytes): IQ4_NL_4_4 needs 18432, I2_S needs 8224");
    /* an id that one of the agreeing dialects does not know, on a tensor that fits nowhere */
    b = start("llama");
    add(&b, "a", 36, 512, 64, 8224);
    add(&b, "b", 40, 512, 64, 8224);
    expect(&b, BITCONV_DIALECT_BITNET, "type 40 (ambiguous: NVFP4 / Q1_0_G32)",
           "1 out of 2 tensors fit 1 x I2_S (36), as in bitnet");
    /* all have bytes to spare: a second witness is wanted */
    b = start("llama");
    add(&b, "a", 36, 512, 64, 8224 + 64);
    expect(&b, BITCONV_DIALECT_AMBIGUOUS, "type 36 (ambiguous: IQ4_NL_4_4 / I2_S)",
           "no dialect fits the byte spans: tensor a (type 36, 8288 bytes)");
    b = start("bitnet");
    add(&b, "a", 36, 512, 64, 8224 + 64);
    expect(&b, BITCONV_DIALECT_BITNET, "I2_S", "general.architecture confirms bitnet");
    /* too small for any meaning */
    b = start("bitnet");
    add(&b, "a", 36, 512, 64, 4096);
    expect(&b, BITCONV_DIALECT_AMBIGUOUS, "type 36 (ambiguous: IQ4_NL_4_4 / I2_S)",
           "no dialect fits");
    /* a shape that no meaning can have */
    b = start("bitnet");
    add(&b, "a", 36, 100, 3, 107);
    expect(&b, BITCONV_DIALECT_AMBIGUOUS, "type 36 (ambiguous: IQ4_NL_4_4 / I2_S)",
           "IQ4_NL_4_4 cannot have this shape, I2_S cannot have this shape");
    /* witnesses that contradict each other */
    b = start("bitnet");
    add(&b, "a", 42, 512, 64, 9216);
    add(&b, "b", 42, 512, 64, 7552);
    expect(&b, BITCONV_DIALECT_AMBIGUOUS, "type 42 (ambiguous: Q2_0 / TL2 / Q2_0_G128)",
           "contradict each other: 1 out of 2 tensors fit upstream, 1 out of 2 tensors fit "
           "bitnet-rebased, tensor b");
}

/* When other tensors tell the dialect, one that ends with the file and is too short is cut off. */
static void test_cut_off_in_a_known_dialect(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct bitconv_gguf *g = NULL;
    struct bitconv_error err = {0};
    struct gguf_builder b = start("bitnet");
    add(&b, "a", 36, 512, 64, 8224);
    add(&b, "b", 36, 512, 64, 4096);
    gguf_builder_bytes(&b, &file);
    assert_int_equal(bc_gguf_parse(file.data, file.size, "t.gguf", &g, &err), BITCONV_E_CORRUPT);
    assert_non_null(strstr(err.text, "tensor b: data cut off, short by 4128 of 8224 bytes"));
    assert_null(g);
    bc_buf_release(&file);
}

static void test_set_dialect(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct bitconv_error err = {0};
    struct gguf_builder b = start("llama");
    add(&b, "a", 42, 512, 64, 9216);
    struct bitconv_gguf *g = build(&b, &file);
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(g, 0);
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    assert_int_equal(bitconv_gguf_set_dialect(g, BITCONV_DIALECT_BITNET_REBASED, &err), BITCONV_OK);
    assert_string_equal(t->type_name, "TL2");
    assert_int_equal(t->size, 7552);
    assert_int_equal(bitconv_gguf_dialect(g), BITCONV_DIALECT_BITNET_REBASED);
    assert_string_equal(bitconv_gguf_dialect_evidence(g), "set by the caller");
    assert_int_equal(bitconv_gguf_n_findings(g), 1); /* unused bytes at the end */
    assert_int_equal(bitconv_gguf_set_dialect(g, BITCONV_DIALECT_UPSTREAM, &err), BITCONV_OK);
    assert_string_equal(t->type_name, "Q2_0");
    assert_int_equal(bitconv_gguf_n_findings(g), 0);
    assert_int_equal(bitconv_gguf_set_dialect(g, BITCONV_DIALECT_BITNET, &err), BITCONV_OK);
    assert_string_equal(t->type_name, "type 42 (ambiguous: Q2_0 / TL2 / Q2_0_G128)");
    assert_int_equal(t->size, 0);
    assert_int_equal(bitconv_gguf_set_dialect(g, BITCONV_DIALECT_AMBIGUOUS, &err), BITCONV_E_ARG);
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

/* A dialect in which a tensor would not fit into the file is refused, and changes nothing. */
static void test_set_dialect_refused(void **state)
{
    (void)state;
    struct bc_buf file = {0};
    struct bitconv_error err = {0};
    struct gguf_builder b = start("llama");
    add(&b, "a", 42, 512, 64, 7552);
    struct bitconv_gguf *g = build(&b, &file);
    assert_int_equal(bitconv_gguf_set_dialect(g, BITCONV_DIALECT_UPSTREAM, &err),
                     BITCONV_E_CORRUPT);
    assert_non_null(strstr(err.text, "tensor a: data cut off, short by 1664 of 9216 bytes"));
    assert_int_equal(bitconv_gguf_dialect(g), BITCONV_DIALECT_BITNET_REBASED);
    assert_int_equal(bitconv_gguf_tensor_at(g, 0)->size, 7552);
    assert_string_equal(bitconv_gguf_tensor_at(g, 0)->type_name, "TL2");
    bitconv_gguf_close(g);
    bc_buf_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_nothing_disputed),
        cmocka_unit_test(test_spans_decide),
        cmocka_unit_test(test_all_tensors_count),
        cmocka_unit_test(test_hints_decide_between_possible),
        cmocka_unit_test(test_damage_is_not_a_dialect),
        cmocka_unit_test(test_cut_off_in_a_known_dialect),
        cmocka_unit_test(test_set_dialect),
        cmocka_unit_test(test_set_dialect_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
