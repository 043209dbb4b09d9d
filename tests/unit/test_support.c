/* SPDX-License-Identifier: MIT
 * The tables of formats and families against the registries, the reader and the converter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "bitconv/convert.h"
#include "bitconv/support.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "io/gguf_types.h"
#include "model/arch.h"

static bool find(const char *name, struct bitconv_format_info *out)
{
    for (size_t i = 0; bitconv_format_info_at(i, out); i++)
        if (strcmp(out->name, name) == 0) return true;
    return false;
}

static void expect(const char *name, struct bitconv_format_info *out)
{
    if (!find(name, out)) fail_msg("no format %s", name);
}

/* Names occur once; everything has an id that the type table knows. */
static void every_row(void **state)
{
    (void)state;
    struct bitconv_format_info f, g;
    size_t n = 0;
    for (; bitconv_format_info_at(n, &f); n++) {
        bool known = false;
        const struct bc_type *type;
        for (size_t i = 0; i < n; i++) {
            assert_true(bitconv_format_info_at(i, &g));
            if (strcmp(f.name, g.name) == 0) fail_msg("%s twice", f.name);
        }
        for (size_t i = 0; (type = bc_type_row(i)) != NULL; i++)
            known = known || (type->id == f.type_id && strcmp(type->name, f.type_name) == 0);
        if (!known) fail_msg("%s: id %u is not %s", f.name, f.type_id, f.type_name);
        assert_true(strlen(f.name) > 0 && strlen(f.dialects) > 0);
        if (f.decodes == (f.refusal != NULL)) fail_msg("%s: read and refused, or neither", f.name);
        if (f.ternary) assert_true(strlen(f.title) > 0 && f.bits_per_weight >= 1);
    }
    assert_true(n > 45);
    assert_false(bitconv_format_info_at(n, &f));
    assert_false(bitconv_format_info_at(SIZE_MAX, &f));
}

/* No type and no pack is left out. */
static void nothing_is_missing(void **state)
{
    (void)state;
    struct bitconv_format_info f;
    const struct bc_type *type;
    for (size_t i = 0; (type = bc_type_row(i)) != NULL; i++) {
        bool found = false;
        for (size_t j = 0; !found && bitconv_format_info_at(j, &f); j++)
            found = strcmp(f.type_name, type->name) == 0;
        if (!found) fail_msg("%s is missing", type->name);
    }
    for (size_t i = 0; bc_format_at(i) != NULL; i++) {
        expect(bc_format_at(i)->name, &f);
        assert_true(f.ternary && f.decodes && f.writes);
    }
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++) {
        expect(bc_block_pack_at(i)->format->name, &f);
        assert_int_equal(f.kind, BITCONV_FORMAT_BLOCKS);
        assert_int_equal(f.block, bc_block_pack_at(i)->block);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum bitconv_format_kind kind;
        double low, high; /* bits per weight */
    } cases[] = {
        {"i2_s", BITCONV_FORMAT_PACK, 2.0, 2.001},
        {"tl1", BITCONV_FORMAT_PACK, 2.0, 2.001},
        {"tl2", BITCONV_FORMAT_PACK, 1.66, 1.70},
        {"t5", BITCONV_FORMAT_PACK, 1.6, 1.601},
        {"bitcos", BITCONV_FORMAT_PACK, 1.67, 1.69},
        {"tq1_0", BITCONV_FORMAT_BLOCKS, 1.6875, 1.6875},
        {"q1_0", BITCONV_FORMAT_BLOCKS, 1.125, 1.125},
        {"q4_k", BITCONV_FORMAT_BLOCKS, 4.5, 4.5},
        {"f16", BITCONV_FORMAT_NUMBERS, 16, 16},
        {"q4_2", BITCONV_FORMAT_BLOCKS, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bitconv_format_info f;
        expect(cases[i].name, &f);
        assert_int_equal(f.kind, cases[i].kind);
        if (f.bits_per_weight < cases[i].low || f.bits_per_weight > cases[i].high)
            fail_msg("%s: %g bits", f.name, f.bits_per_weight);
    }
}

static void dialects(void **state)
{
    (void)state;
    struct bitconv_format_info f;
    expect("f32", &f);
    assert_string_equal(f.dialects, "all");
    expect("i2_s", &f);
    assert_string_equal(f.dialects, "bitnet, bitnet-rebased");
    expect("tl2", &f);
    assert_string_equal(f.dialects, "bitnet, bitnet-rebased");
    assert_int_equal(f.type_id, 39);
    assert_int_equal(f.type_id_rebased, 42);
    expect("pq2_0", &f);
    assert_string_equal(f.dialects, "prism");
    assert_false(f.decodes);
    assert_non_null(strstr(f.refusal, "Hadamard"));
}

/* What the table says is written is what convert accepts. */
static void written_is_accepted(void **state)
{
    (void)state;
    struct bitconv_format_info f;
    for (size_t i = 0; bitconv_format_info_at(i, &f); i++) {
        struct bitconv_conversion *conversion = NULL;
        struct bitconv_error err = {0};
        const struct bitconv_convert_options options = {.outtype = f.name, .dry_run = true};
        (void)bitconv_convert(BITCONV_SOURCE_DIR "/fixtures/models/bitnet", &options, NULL,
                              &conversion, &err);
        const bool unknown = strstr(err.text, "cannot be written") != NULL;
        if (unknown == f.writes) fail_msg("%s: %s", f.name, err.text);
        bitconv_conversion_free(conversion);
    }
}

static void families(void **state)
{
    (void)state;
    struct bitconv_arch_info a;
    size_t n = 0;
    for (; bitconv_arch_info_at(n, &a); n++) {
        assert_string_equal(a.name, bc_arch_at(n)->name);
        assert_non_null(a.classes[0]);
        assert_non_null(a.activations[0]);
        for (size_t i = 0; i < BITCONV_MAX_ARCH_NAMES && a.classes[i] != NULL; i++)
            assert_ptr_equal(bc_arch_by_class(a.classes[i], NULL), bc_arch_at(n));
        if (a.gguf_bitnet != NULL) assert_true(bc_arch_has_gguf_name(bc_arch_at(n), a.gguf_bitnet));
        if (strcmp(a.name, "bitnet") == 0) assert_true(a.ternary_class && !a.norm_plus_one);
        if (strcmp(a.name, "gemma3") == 0) assert_true(a.norm_plus_one && a.sliding_window);
        if (strcmp(a.name, "llama") == 0) assert_true(a.permutes_qk && !a.ternary_class);
        if (strcmp(a.name, "bert") == 0) assert_true(a.encoder && !a.sliding_window);
        if (strcmp(a.name, "lfm2") == 0) assert_true(a.conv_layers && !a.encoder);
        if (strcmp(a.name, "phi3") == 0) assert_true(a.longrope && !a.permutes_qk);
    }
    assert_null(bc_arch_at(n));
    assert_true(n >= 10);
    assert_false(bitconv_arch_info_at(SIZE_MAX, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(nothing_is_missing),
        cmocka_unit_test(sizes),
        cmocka_unit_test(dialects),
        cmocka_unit_test(written_is_accepted),
        cmocka_unit_test(families),
    };
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
