/* SPDX-License-Identifier: MIT
 * Tests of the GGUF type table: against the table in formats/gguf.md, and sizes worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/gguf_types.h"

struct spec_row {
    unsigned id;
    char name[24];
    char block[12];
    char bytes[24];
    char dialects[80];
};

/* Rows of the table under "## Tensor types": | id | name | values per block | bytes | dialects |.
 */
static bool next_spec_row(FILE *spec, struct spec_row *row)
{
    static const char format[] = "| %u | `%23[^`]` | %11[^ |] | %23[^|] | %79[^|] |";
    char line[256];
    while (fgets(line, sizeof line, spec) != NULL) {
        if (sscanf(line, format, &row->id, row->name, row->block, row->bytes, row->dialects) == 5)
            return true;
    }
    return false;
}

/* "all", or names with commas between them. Takes `text` apart. */
static unsigned dialects_of(char *text)
{
    unsigned set = 0;
    for (const char *name = strtok(text, ", "); name != NULL; name = strtok(NULL, ", ")) {
        enum bitconv_dialect dialect;
        if (strcmp(name, "all") == 0) return 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4;
        assert_true(bitconv_dialect_from_name(name, &dialect));
        set |= 1u << dialect;
    }
    return set;
}

static void test_table_equals_spec(void **state)
{
    (void)state;
    FILE *const spec = fopen(BITCONV_SOURCE_DIR "/formats/gguf.md", "r");
    assert_non_null(spec);
    struct spec_row row;
    size_t n = 0;
    for (; next_spec_row(spec, &row); n++) {
        const struct bc_type *const type = bc_type_row(n);
        if (type == NULL) fail_msg("the table ends before the spec's %s", row.name);
        assert_int_equal(type->id, row.id);
        assert_string_equal(type->name, row.name);
        assert_int_equal(type->dialects, dialects_of(row.dialects));
        if (type->layout != BC_LAYOUT_BLOCK) continue;
        assert_int_equal(type->block, strtoul(row.block, NULL, 10));
        assert_int_equal(type->block_size, strtoul(row.bytes, NULL, 10));
    }
    fclose(spec);
    assert_true(n > 40);
    assert_null(bc_type_row(n));
}

static void test_every_id_has_one_meaning_a_dialect(void **state)
{
    (void)state;
    const struct bc_type *row, *other;
    for (size_t i = 0; (row = bc_type_row(i)) != NULL; i++) {
        assert_int_not_equal(row->dialects, 0);
        for (size_t k = 0; k < i; k++) {
            other = bc_type_row(k);
            assert_true(other->id <= row->id);
            if (other->id == row->id) assert_int_equal(other->dialects & row->dialects, 0);
        }
        for (int d = BITCONV_DIALECT_UPSTREAM; d < BITCONV_N_DIALECTS; d++) {
            if (!(row->dialects & 1u << d)) continue;
            assert_ptr_equal(bc_type_find(row->id, (enum bitconv_dialect)d), row);
            assert_ptr_equal(bc_type_by_name(row->name, (enum bitconv_dialect)d), row);
        }
    }
}

static void test_look_up(void **state)
{
    (void)state;
    assert_null(bc_type_find(36, BITCONV_DIALECT_AMBIGUOUS));
    assert_null(bc_type_find(36, BITCONV_DIALECT_PRISM));
    assert_null(bc_type_find(200, BITCONV_DIALECT_UPSTREAM));
    assert_string_equal(bc_type_find(8, BITCONV_DIALECT_AMBIGUOUS)->name, "Q8_0");
    assert_string_equal(bc_type_find(36, BITCONV_DIALECT_BITNET)->name, "I2_S");
    assert_string_equal(bc_type_find(39, BITCONV_DIALECT_BITNET)->name, "TL2");
    assert_string_equal(bc_type_find(39, BITCONV_DIALECT_BITNET_REBASED)->name, "MXFP4");
    assert_int_equal(bc_type_by_name("tl2", BITCONV_DIALECT_BITNET)->id, 39);
    assert_int_equal(bc_type_by_name("tl2", BITCONV_DIALECT_BITNET_REBASED)->id, 42);
    assert_null(bc_type_by_name("tl2", BITCONV_DIALECT_AMBIGUOUS));
    assert_null(bc_type_by_name("tl2", BITCONV_DIALECT_UPSTREAM));
    assert_int_equal(bc_type_by_name("f16", BITCONV_DIALECT_AMBIGUOUS)->id, BC_TYPE_F16);
    assert_false(bc_type_is_disputed(34));
    assert_true(bc_type_is_disputed(41));
    assert_true(bc_type_is_disputed(142));
    assert_false(bc_type_is_disputed(200));
}

struct size_case {
    const char *name;
    enum bitconv_dialect dialect;
    uint32_t n_dims;
    uint64_t ne[4];
    bool fits;
    uint64_t bytes;
};

static void test_sizes(void **state)
{
    (void)state;
    static const uint64_t huge = UINT64_C(1) << 62;
    const enum bitconv_dialect bitnet = BITCONV_DIALECT_BITNET, up = BITCONV_DIALECT_UPSTREAM;
    const struct size_case cases[] = {
        {"F32", up, 0, {0}, true, 4},
        {"F32", up, 1, {7}, true, 28},
        {"F32", up, 1, {huge}, false, 0},
        {"I8", up, 2, {huge, 2}, false, 0},
        {"I8", up, 2, {huge, 4}, false, 0},
        {"Q8_0", up, 2, {64, 3}, true, 204},
        {"Q8_0", up, 2, {48, 4}, false, 0},
        {"Q6_K", up, 3, {256, 2, 2}, true, 840},
        {"Q2_0", up, 2, {128, 3}, true, 108},
        {"Q4_2", up, 1, {32}, false, 0},
        {"F16", up, 2, {0, 5}, true, 0},
        {"I2_S", bitnet, 2, {128, 1}, true, 64},
        {"I2_S", bitnet, 2, {2560, 6912}, true, 4423712},
        {"I2_S", bitnet, 2, {64, 6}, true, 128},
        {"I2_S", bitnet, 2, {64, 3}, true, 80},
        {"I2_S", bitnet, 2, {32, 3}, false, 0},
        {"TL1", bitnet, 2, {64, 3}, false, 0},
        {"I2_S", bitnet, 2, {100, 3}, false, 0},
        {"TL1", bitnet, 2, {256, 256}, true, 16416},
        /* 1344*640/3*5/8 = 179200 and 256*640/2*4/8 = 40960 */
        {"TL2", bitnet, 2, {1600, 640}, true, 220192},
        /* 64*128/3 = 2730, *5/8 = 1706, and 8192: 9898, up to 9920 */
        {"TL2", bitnet, 2, {320, 128}, true, 9952},
        {"TL2", bitnet, 2, {128, 128}, false, 0},
        {"TL2", bitnet, 1, {512}, false, 0},
        {"TL2", bitnet, 3, {512, 128, 2}, false, 0},
        {"TL2", bitnet, 2, {UINT64_C(1) << 40, UINT64_C(3) << 22}, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct size_case *const c = &cases[i];
        uint64_t bytes = 0;
        const struct bc_type *const type = bc_type_by_name(c->name, c->dialect);
        assert_non_null(type);
        if (bc_type_bytes(type, c->n_dims, c->ne, &bytes) != c->fits || bytes != c->bytes)
            fail_msg("%s, case %zu: %llu bytes", c->name, i, (unsigned long long)bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_equals_spec),
        cmocka_unit_test(test_every_id_has_one_meaning_a_dialect),
        cmocka_unit_test(test_look_up),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
