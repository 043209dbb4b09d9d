/* SPDX-License-Identifier: MIT
 * Parses and applies --meta items. */
#include "convert/meta_override.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { MAX_KEY = 256 };

/* The scalar types of --meta; integers with their width, range and signedness. */
struct meta_type {
    const char *name;
    enum bitconv_gguf_type type;
    unsigned bits; /* of integers; 0: not an integer */
    bool is_signed;
};

static const struct meta_type types[] = {
    {"u8", BITCONV_GGUF_UINT8, 8, false},    {"i8", BITCONV_GGUF_INT8, 8, true},
    {"u16", BITCONV_GGUF_UINT16, 16, false}, {"i16", BITCONV_GGUF_INT16, 16, true},
    {"u32", BITCONV_GGUF_UINT32, 32, false}, {"i32", BITCONV_GGUF_INT32, 32, true},
    {"u64", BITCONV_GGUF_UINT64, 64, false}, {"i64", BITCONV_GGUF_INT64, 64, true},
    {"f32", BITCONV_GGUF_FLOAT32, 0, false}, {"f64", BITCONV_GGUF_FLOAT64, 0, false},
    {"bool", BITCONV_GGUF_BOOL, 0, false},   {"str", BITCONV_GGUF_STRING, 0, false},
};
#define N_TYPES (sizeof types / sizeof types[0])

/* Keys that say how the file is laid out or what it is; a trailing '.' stands for all below. */
static const char *const reserved[] = {"general.alignment", "general.architecture",
                                       "general.file_type", "split.", "bitconv."};
#define N_RESERVED (sizeof reserved / sizeof reserved[0])

/* An item taken apart; all point into it. */
struct item {
    const char *text;
    size_t key_len;
    const struct meta_type *type;
    const char *value;
};

static const struct meta_type *find_type(const char *name, size_t len)
{
    for (size_t i = 0; i < N_TYPES; i++)
        if (strlen(types[i].name) == len && memcmp(types[i].name, name, len) == 0) return &types[i];
    return NULL;
}

static bool is_reserved(const char *key, size_t len)
{
    for (size_t i = 0; i < N_RESERVED; i++) {
        const size_t n = strlen(reserved[i]);
        const bool prefix = reserved[i][n - 1] == '.';
        if (len >= n && memcmp(key, reserved[i], n) == 0 && (prefix || len == n)) return true;
    }
    return false;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static bool is_key(const char *key, size_t len)
{
    if (len == 0 || len > MAX_KEY || key[0] == '.' || key[len - 1] == '.') return false;
    for (size_t i = 0; i < len; i++)
        if (!is_key_char(key[i])) return false;
    return true;
}

static enum bitconv_status split_item(const char *text, struct item *out, struct bitconv_error *err)
{
    const char *equal = strchr(text, '=');
    const char *colon = equal != NULL ? strchr(equal, ':') : NULL;
    *out = (struct item){.text = text};
    if (colon == NULL)
        return bc_fail(err, BITCONV_E_ARG, "--meta '%s': KEY=TYPE:VALUE was expected", text);
    out->key_len = (size_t)(equal - text);
    out->value = colon + 1;
    out->type = find_type(equal + 1, (size_t)(colon - equal - 1));
    if (!is_key(text, out->key_len))
        return bc_fail(err, BITCONV_E_ARG,
                       "--meta '%s': a key of letters, digits, '_', '-' and '.' was expected",
                       text);
    if (out->type == NULL)
        return bc_fail(err, BITCONV_E_ARG,
                       "--meta '%s': the type is not one of: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 "
                       "bool str",
                       text);
    if (is_reserved(text, out->key_len))
        return bc_fail(err, BITCONV_E_ARG,
                       "--meta '%s': this key describes the file itself and cannot be set", text);
    return BITCONV_OK;
}

/* Decimal or 0x hexadecimal, in the type's range; two's complement in *out. */
static bool parse_integer(const char *s, const struct meta_type *type, uint64_t *out)
{
    const bool negative = s[0] == '-';
    const char *digits = negative ? s + 1 : s;
    const int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
    char *end;
    if (digits[0] < '0' || digits[0] > '9') return false;
    errno = 0;
    const unsigned long long magnitude = strtoull(digits, &end, base);
    if (errno != 0 || *end != '\0') return false;
    const uint64_t top = UINT64_C(1) << (type->bits - 1);
    if (negative && (!type->is_signed || magnitude > top)) return false;
    if (!negative && type->is_signed && magnitude >= top) return false;
    if (!negative && !type->is_signed && type->bits < 64 && magnitude >> type->bits != 0)
        return false;
    *out = negative ? (uint64_t)0 - magnitude : magnitude;
    return true;
}

static bool parse_real(const char *s, double *out)
{
    char *end;
    if (s[0] == '\0' || strspn(s, "+-.0123456789eExXpPaAbBcCdDfF") != strlen(s)) return false;
    *out = strtod(s, &end);
    return *end == '\0' && isfinite(*out);
}

/* The value's bytes, little-endian, for every type but str; false when it is not of the type. */
static bool encode(const struct item *item, uint8_t bytes[8])
{
    uint64_t integer;
    double real;
    if (item->type->bits > 0) {
        if (!parse_integer(item->value, item->type, &integer)) return false;
        bc_put_u64(bytes, integer);
        return true;
    }
    switch (item->type->type) {
    case BITCONV_GGUF_BOOL:
        bytes[0] = strcmp(item->value, "true") == 0;
        return bytes[0] == 1 || strcmp(item->value, "false") == 0;
    case BITCONV_GGUF_FLOAT32:
        if (!parse_real(item->value, &real) || !isfinite((float)real)) return false;
        bc_put_f32(bytes, (float)real);
        return true;
    default:
        if (!parse_real(item->value, &real)) return false;
        bc_put_f64(bytes, real);
        return true;
    }
}

static enum bitconv_status apply(const struct item *item, const char *key,
                                 struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    uint8_t bytes[8] = {0};
    enum bitconv_gguf_type present;
    if (bitconv_gguf_writer_type(w, key, &present) && present != item->type->type)
        return bc_fail(err, BITCONV_E_ARG,
                       "--meta '%s': %s is %s in this file, another type would make it unreadable",
                       item->text, key, bitconv_gguf_type_name(present));
    if (item->type->type == BITCONV_GGUF_STRING) {
        if (!bc_utf8_valid(item->value, strlen(item->value)))
            return bc_fail(err, BITCONV_E_ARG, "--meta '%s': the value is not UTF-8", item->text);
        bitconv_gguf_set_string(w, key, item->value);
        return BITCONV_OK;
    }
    if (!encode(item, bytes))
        return bc_fail(err, BITCONV_E_ARG, "--meta '%s': '%s' is not a value of type %s",
                       item->text, item->value, item->type->name);
    bitconv_gguf_set_scalar(w, key, item->type->type, bytes);
    return BITCONV_OK;
}

/* Whether an earlier item has the same key. */
static bool is_repeated(const char *const *items, size_t index, size_t key_len)
{
    for (size_t i = 0; i < index; i++)
        if (strncmp(items[i], items[index], key_len + 1) == 0) return true;
    return false;
}

enum bitconv_status bc_meta_override(const char *const *items, size_t n,
                                     const struct bitconv_sink *sink, struct bitconv_gguf_writer *w,
                                     struct bitconv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct item item;
        char key[MAX_KEY + 1];
        BC_TRY(split_item(items[i], &item, err));
        if (is_repeated(items, i, item.key_len))
            return bc_fail(err, BITCONV_E_ARG, "--meta '%s': this key is given twice", items[i]);
        memcpy(key, items[i], item.key_len);
        key[item.key_len] = '\0';
        BC_TRY(apply(&item, key, w, err));
        bc_say(sink, BITCONV_NOTE, "metadata set by the user: %s", items[i]);
    }
    return BITCONV_OK;
}
