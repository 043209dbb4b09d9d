/* SPDX-License-Identifier: MIT
 * Header and scales of BITCOS and T5 payloads, written and checked. */
#include "formats/trit_header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { VERSION = 1, MAX_DIMS = 4 };

bool bc_trit_refuse(const struct bc_trit_kind *kind, char *why, size_t why_size, const char *format,
                    ...)
{
    va_list args;
    const int n = snprintf(why, why_size, "%s: ", kind->title);
    if (n < 0 || (size_t)n >= why_size) return false;
    va_start(args, format);
    vsnprintf(why + n, why_size - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* ---- scales ---- */

/* One scale stands in the header; a stack has a table behind it, padded to whole words. */
static uint64_t table_bytes(uint64_t slices)
{
    return slices > 1 ? bc_round_up(4 * slices, 8) : 0;
}

uint64_t bc_trit_body(const struct bc_pack_shape *shape)
{
    return BC_TRIT_HEADER_BYTES + table_bytes(shape->slices);
}

float bc_trit_header_scale(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice)
{
    if (shape->slices == 1) return bc_get_f32(packed + BC_TRIT_SCALE);
    return bc_get_f32(packed + BC_TRIT_HEADER_BYTES + 4 * slice);
}

/* ---- writing ---- */

bool bc_trit_shape_fits(const struct bc_trit_kind *kind, const struct bc_pack_shape *shape,
                        char *why, size_t why_size)
{
    if (shape->n == 0) return bc_trit_refuse(kind, why, why_size, "the tensor has no values");
    if (shape->slices > UINT32_MAX)
        return bc_trit_refuse(kind, why, why_size,
                              "%" PRIu64 " slices, the header's count of scales ends at %" PRIu32,
                              shape->slices, UINT32_MAX);
    if (shape->n_dims > MAX_DIMS)
        return bc_trit_refuse(kind, why, why_size,
                              "%" PRIu32 " dimensions, the header has room for %d", shape->n_dims,
                              MAX_DIMS);
    return true;
}

static uint32_t n_dims_of(const struct bc_pack_shape *shape)
{
    if (shape->n_dims != 0) return shape->n_dims;
    return shape->slices > 1 ? 3 : 2;
}

void bc_trit_header_put(const struct bc_trit_kind *kind, const struct bc_pack_shape *shape,
                        const float *scales, uint32_t n_scales, uint8_t *packed)
{
    const uint64_t dims[MAX_DIMS] = {shape->cols, shape->rows, shape->slices, 1};
    const bool has_table = shape->slices > 1;
    memset(packed, 0, (size_t)bc_trit_body(shape));
    memcpy(packed + BC_TRIT_MAGIC, kind->magic, sizeof kind->magic);
    bc_put_u16(packed + BC_TRIT_VERSION, VERSION);
    bc_put_u32(packed + BC_TRIT_N_DIMS, n_dims_of(shape));
    bc_put_u32(packed + BC_TRIT_SUPERBLOCK, kind->superblock);
    for (size_t i = 0; i < MAX_DIMS; i++)
        bc_put_u64(packed + BC_TRIT_DIMS + 8 * i, dims[i]);
    bc_put_u64(packed + BC_TRIT_N_NONZERO, shape->n_nonzero);
    bc_put_u32(packed + BC_TRIT_N_SCALES, (uint32_t)shape->slices);
    if (!has_table) bc_put_f32(packed + BC_TRIT_SCALE, scales[0]);
    for (uint64_t i = 0; has_table && i < shape->slices; i++)
        bc_put_f32(packed + BC_TRIT_HEADER_BYTES + 4 * i, scales[n_scales == 1 ? 0 : i]);
}

/* ---- reading ---- */

struct reader {
    const struct bc_trit_kind *kind;
    const uint8_t *bytes;
    char *why;
    size_t why_size;
};

static bool check_identity(const struct reader *r)
{
    const uint8_t *b = r->bytes;
    if (memcmp(b, r->kind->magic, sizeof r->kind->magic) != 0)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "begins with %02x %02x %02x %02x, not with the magic %.4s", b[0],
                              b[1], b[2], b[3], r->kind->magic);
    const unsigned version = bc_get_u16(b + BC_TRIT_VERSION);
    if (version != VERSION)
        return bc_trit_refuse(r->kind, r->why, r->why_size, "version %u, only version %d is known",
                              version, VERSION);
    const unsigned flags = bc_get_u16(b + BC_TRIT_FLAGS);
    if (flags != 0)
        return bc_trit_refuse(r->kind, r->why, r->why_size, "flags 0x%04x, wanted 0", flags);
    const uint32_t superblock = bc_get_u32(b + BC_TRIT_SUPERBLOCK);
    if (superblock != r->kind->superblock)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "superblocks of %" PRIu32 " weights, wanted %" PRIu32, superblock,
                              r->kind->superblock);
    return true;
}

/* The dimensions, and how many values they make. */
static bool read_dims(const struct reader *r, struct bc_pack_shape *shape)
{
    uint64_t dims[MAX_DIMS];
    const uint32_t n_dims = bc_get_u32(r->bytes + BC_TRIT_N_DIMS);
    uint64_t n = 1;
    if (n_dims < 1 || n_dims > MAX_DIMS)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "%" PRIu32 " dimensions, wanted 1 to %d", n_dims, MAX_DIMS);
    for (uint32_t i = 0; i < MAX_DIMS; i++) {
        dims[i] = bc_get_u64(r->bytes + BC_TRIT_DIMS + 8 * (size_t)i);
        if (dims[i] != 1 && (i >= n_dims || i == 3))
            return bc_trit_refuse(r->kind, r->why, r->why_size,
                                  "dims[%" PRIu32 "] is %" PRIu64 ", wanted 1%s", i, dims[i],
                                  i >= n_dims ? " behind the last dimension" : "");
        if (dims[i] == 0 || !bc_mul_u64(n, dims[i], &n))
            return bc_trit_refuse(
                r->kind, r->why, r->why_size, "dims[%" PRIu32 "] is %" PRIu64 ": %s", i, dims[i],
                dims[i] == 0 ? "the tensor has no values" : "the number of values exceeds 64 bits");
    }
    *shape = (struct bc_pack_shape){
        .cols = dims[0], .rows = dims[1], .slices = dims[2], .n = n, .n_dims = n_dims};
    return true;
}

static bool read_counts(const struct reader *r, struct bc_pack_shape *shape)
{
    const uint32_t n_scales = bc_get_u32(r->bytes + BC_TRIT_N_SCALES);
    shape->n_nonzero = bc_get_u64(r->bytes + BC_TRIT_N_NONZERO);
    if (shape->n_nonzero > shape->n)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "%" PRIu64 " non-zero weights of %" PRIu64, shape->n_nonzero,
                              shape->n);
    if (n_scales != shape->slices)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "%" PRIu32 " scales, wanted one per slice: %" PRIu64, n_scales,
                              shape->slices);
    return true;
}

/* The table of a stack, of which read_counts has seen that it has at most 2^32 - 1 entries. */
static bool check_table(const struct reader *r, uint64_t size, const struct bc_pack_shape *shape)
{
    const uint64_t body = bc_trit_body(shape);
    if (shape->slices == 1) return true;
    if (size < body)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "%" PRIu64 " bytes, header and %" PRIu64
                              " scales alone have %" PRIu64,
                              size, shape->slices, body);
    const uint32_t scale = bc_get_u32(r->bytes + BC_TRIT_SCALE);
    if (scale != 0)
        return bc_trit_refuse(r->kind, r->why, r->why_size,
                              "the header's scale has the bits 0x%08" PRIx32
                              ", wanted 0 beside a table of scales",
                              scale);
    for (uint64_t i = BC_TRIT_HEADER_BYTES + 4 * shape->slices; i < body; i++)
        if (r->bytes[i] != 0)
            return bc_trit_refuse(
                r->kind, r->why, r->why_size,
                "byte %" PRIu64 ", padding behind the scales, is 0x%02x, wanted 0", i, r->bytes[i]);
    return true;
}

static bool matches(const struct reader *r, const struct bc_pack_shape *found,
                    const struct bc_pack_shape *wanted)
{
    if (wanted == NULL) return true;
    if (found->cols == wanted->cols && found->rows == wanted->rows &&
        found->slices == wanted->slices && (wanted->n_dims == 0 || found->n_dims == wanted->n_dims))
        return true;
    const bool same_dims = wanted->n_dims == 0 || found->n_dims == wanted->n_dims;
    return bc_trit_refuse(r->kind, r->why, r->why_size,
                          "holds %" PRIu64 " x %" PRIu64 " x %" PRIu64 " in %" PRIu32
                          " dimensions, wanted %" PRIu64 " x %" PRIu64 " x %" PRIu64 " in %" PRIu32,
                          found->cols, found->rows, found->slices, found->n_dims, wanted->cols,
                          wanted->rows, wanted->slices, same_dims ? found->n_dims : wanted->n_dims);
}

bool bc_trit_header_read(const struct bc_trit_kind *kind, const struct bc_pack_shape *expected,
                         const uint8_t *bytes, uint64_t size, struct bc_pack_shape *shape,
                         char *why, size_t why_size)
{
    const struct reader r = {kind, bytes, why, why_size};
    if (size < BC_TRIT_HEADER_BYTES)
        return bc_trit_refuse(kind, why, why_size, "%" PRIu64 " bytes, the header alone has %d",
                              size, BC_TRIT_HEADER_BYTES);
    return check_identity(&r) && read_dims(&r, shape) && read_counts(&r, shape) &&
           check_table(&r, size, shape) && matches(&r, shape, expected);
}
