/* SPDX-License-Identifier: MIT
 * Typed access to GGUF metadata values. */
#include "io/gguf_impl.h"

#include "base/bytes.h"
#include "base/cursor.h"

enum { N_TYPES = BITCONV_GGUF_FLOAT64 + 1 };

static const struct {
    const char *name;
    uint8_t size; /* 0: not a scalar */
} value_types[N_TYPES] = {
    {"UINT8", 1},  {"INT8", 1},    {"UINT16", 2},  {"INT16", 2},  {"UINT32", 4},
    {"INT32", 4},  {"FLOAT32", 4}, {"BOOL", 1},    {"STRING", 0}, {"ARRAY", 0},
    {"UINT64", 8}, {"INT64", 8},   {"FLOAT64", 8},
};

const char *bitconv_gguf_type_name(enum bitconv_gguf_type type)
{
    return (unsigned)type < N_TYPES ? value_types[type].name : "?";
}

uint64_t bc_gguf_scalar_size(uint32_t type)
{
    return type < N_TYPES ? value_types[type].size : 0;
}

/* Splits an integer into sign and magnitude, so that both 64-bit ranges fit. */
static bool integer_parts(const struct bitconv_gguf_value *value, bool *negative,
                          uint64_t *magnitude)
{
    int64_t v;
    if (value == NULL) return false;
    switch (value->type) {
    case BITCONV_GGUF_UINT8:
        v = value->data[0];
        break;
    case BITCONV_GGUF_INT8:
        v = (int8_t)value->data[0];
        break;
    case BITCONV_GGUF_UINT16:
        v = bc_get_u16(value->data);
        break;
    case BITCONV_GGUF_INT16:
        v = (int16_t)bc_get_u16(value->data);
        break;
    case BITCONV_GGUF_UINT32:
        v = bc_get_u32(value->data);
        break;
    case BITCONV_GGUF_INT32:
        v = (int32_t)bc_get_u32(value->data);
        break;
    case BITCONV_GGUF_INT64:
        v = (int64_t)bc_get_u64(value->data);
        break;
    case BITCONV_GGUF_UINT64:
        *negative = false;
        *magnitude = bc_get_u64(value->data);
        return true;
    default:
        return false;
    }
    *negative = v < 0;
    *magnitude = v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v;
    return true;
}

bool bitconv_gguf_value_u64(const struct bitconv_gguf_value *value, uint64_t *out)
{
    bool negative;
    uint64_t magnitude;
    if (!integer_parts(value, &negative, &magnitude) || negative) return false;
    *out = magnitude;
    return true;
}

bool bitconv_gguf_value_i64(const struct bitconv_gguf_value *value, int64_t *out)
{
    bool negative;
    uint64_t magnitude;
    if (!integer_parts(value, &negative, &magnitude)) return false;
    if (!negative && magnitude > INT64_MAX) return false;
    /* -1 - (m - 1) reaches INT64_MIN without overflow */
    *out = negative ? -1 - (int64_t)(magnitude - 1) : (int64_t)magnitude;
    return true;
}

bool bitconv_gguf_value_f64(const struct bitconv_gguf_value *value, double *out)
{
    if (value == NULL) return false;
    if (value->type == BITCONV_GGUF_FLOAT32) {
        *out = (double)bc_get_f32(value->data);
        return true;
    }
    if (value->type == BITCONV_GGUF_FLOAT64) {
        *out = bc_get_f64(value->data);
        return true;
    }
    return false;
}

bool bitconv_gguf_value_bool(const struct bitconv_gguf_value *value, bool *out)
{
    if (value == NULL || value->type != BITCONV_GGUF_BOOL) return false;
    *out = value->data[0] != 0;
    return true;
}

bool bitconv_gguf_value_string(const struct bitconv_gguf_value *value, const char **out,
                               size_t *out_len)
{
    if (value == NULL || value->type != BITCONV_GGUF_STRING) return false;
    *out = (const char *)value->data;
    *out_len = (size_t)value->size;
    return true;
}

bool bitconv_gguf_array_next_string(const struct bitconv_gguf_value *value, uint64_t *pos,
                                    const char **out, size_t *out_len)
{
    if (value == NULL || value->type != BITCONV_GGUF_ARRAY || value->elem != BITCONV_GGUF_STRING ||
        *pos >= value->size) {
        return false;
    }
    struct bc_cursor c = bc_cursor_make(value->data, value->size);
    c.pos = *pos;
    const uint64_t len = bc_cursor_u64(&c);
    const uint8_t *text = bc_cursor_take(&c, len);
    if (text == NULL) return false;
    *pos = c.pos;
    *out = (const char *)text;
    *out_len = (size_t)len;
    return true;
}

bool bitconv_gguf_array_at(const struct bitconv_gguf_value *value, uint64_t index,
                           struct bitconv_gguf_value *out)
{
    if (value == NULL || value->type != BITCONV_GGUF_ARRAY || index >= value->count) return false;
    const uint64_t size = bc_gguf_scalar_size(value->elem);
    if (size == 0) return false;
    out->type = value->elem;
    out->elem = value->elem;
    out->count = 1;
    out->data = value->data + index * size;
    out->size = size;
    return true;
}
