/* SPDX-License-Identifier: MIT
 * I2_S in both layouts: two-bit codes in four planes, blocks over the flat row-major order, one
 * float32 scale in a 32-byte tail. The specs are i2_s.md (blocks of 128) and i2_s_64.md (blocks of
 * 64). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/dot.h"
#include "formats/i2_s_ref.h"
#include "formats/rows.h"
#include "quant/kernels.h"

enum {
    TYPE_ID = 36,
    FILE_TYPE = 40, /* "mostly I2_S" in bitnet.cpp */
    TAIL_BYTES = 32,
    WIDTH_128 = 32, /* bytes of a block: four values each */
    WIDTH_64 = 16
};

static void explain_rest(const struct bc_pack_shape *shape, unsigned block, const char *layout,
                         char *why, size_t why_size)
{
    char slices[32] = "";
    if (shape->slices > 1) snprintf(slices, sizeof slices, " x %" PRIu64, shape->slices);
    snprintf(why, why_size,
             "I2_S%s packs blocks of %u values; %" PRIu64 " x %" PRIu64 "%s = %" PRIu64
             " values are no multiple of %u, %" PRIu64 " are left over",
             layout, block, shape->cols, shape->rows, slices, shape->n, block, shape->n % block);
}

static bool check_block(const struct bc_pack_shape *shape, unsigned block, const char *layout,
                        char *why, size_t why_size)
{
    if (shape->n == 0) {
        snprintf(why, why_size, "I2_S%s: the tensor has no values", layout);
        return false;
    }
    if (shape->n % block == 0) return true;
    explain_rest(shape, block, layout, why, why_size);
    return false;
}

static bool check_128(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    return check_block(shape, 4 * WIDTH_128, "", why, why_size);
}

static bool check_64(const struct bc_pack_shape *shape, char *why, size_t why_size)
{
    return check_block(shape, 4 * WIDTH_64, " (64 layout)", why, why_size);
}

static uint64_t trit_bytes(const struct bc_pack_shape *shape)
{
    return shape->n / 4;
}

static uint64_t size(const struct bc_pack_shape *shape)
{
    return trit_bytes(shape) + TAIL_BYTES;
}

static void pack_128(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                     const int8_t *trits, uint64_t first, uint64_t n, uint8_t *packed)
{
    (void)shape;
    k->pack_planes(trits, (size_t)(n / 4 / WIDTH_128), WIDTH_128, packed + first / 4);
}

static void pack_64(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                    const int8_t *trits, uint64_t first, uint64_t n, uint8_t *packed)
{
    (void)shape;
    k->pack_planes(trits, (size_t)(n / 4 / WIDTH_64), WIDTH_64, packed + first / 4);
}

static bool unpack_128(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                       const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    (void)shape;
    return k->unpack_planes(packed + first / 4, (size_t)(n / 4 / WIDTH_128), WIDTH_128, trits);
}

static bool unpack_64(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                      const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits)
{
    (void)shape;
    return k->unpack_planes(packed + first / 4, (size_t)(n / 4 / WIDTH_64), WIDTH_64, trits);
}

static void put_scales(const struct bc_pack_shape *shape, const float *scales, uint32_t n_scales,
                       uint8_t *packed)
{
    uint8_t *tail = packed + trit_bytes(shape);
    (void)n_scales; /* there is room for one: the caller has refused slices whose scales differ */
    memset(tail, 0, TAIL_BYTES);
    bc_put_f32(tail, scales[0]);
}

static float get_scale(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice)
{
    (void)slice;
    return bc_get_f32(packed + trit_bytes(shape));
}

static void plane_rows(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                       const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                       uint64_t x_stride, uint32_t n_x, int32_t *out, size_t width)
{
    const struct bc_i8_dots dots = {.w = packed + row * (shape->cols / 4),
                                    .w_stride = (size_t)(shape->cols / 4),
                                    .n_rows = (size_t)n_rows,
                                    .x = x,
                                    .x_stride = (size_t)x_stride,
                                    .n_x = n_x,
                                    .n = (size_t)shape->cols,
                                    .out = out,
                                    .out_stride = (size_t)n_rows};
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    k->plane_dots(&dots, width);
}

/* Blocks that go on in the next row have no kernel of their own. */
static void dot_rows_128(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                         const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                         uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    if (shape->cols % (4 * WIDTH_128) == 0)
        plane_rows(k, shape, packed, row, n_rows, x, x_stride, n_x, out, WIDTH_128);
    else
        bc_dot_decoded(&bc_format_i2_s, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
}

static void dot_rows_64(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                        const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                        uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    if (shape->cols % (4 * WIDTH_64) == 0)
        plane_rows(k, shape, packed, row, n_rows, x, x_stride, n_x, out, WIDTH_64);
    else
        bc_dot_decoded(&bc_format_i2_s_64, k, shape, packed, row, n_rows, x, x_stride, n_x, out);
}

const struct bc_format bc_format_i2_s = {
    .name = "i2_s",
    .title = "two bits a weight in blocks of 128, as bitnet.cpp reads it on x86",
    .type_name = "I2_S",
    .type_id = TYPE_ID,
    .file_type = FILE_TYPE,
    .granule = 4 * WIDTH_128,
    .row_major = true,
    .max_scales = 1,
    .check = check_128,
    .size = size,
    .pack = pack_128,
    .unpack = unpack_128,
    .put_scales = put_scales,
    .get_scale = get_scale,
    .trit_bytes = trit_bytes,
    .trit_at = bc_i2_s_trit_at,
    .dot_rows = dot_rows_128,
};

const struct bc_format bc_format_i2_s_64 = {
    .name = "i2_s_64",
    .title = "two bits a weight in blocks of 64, as bitnet.cpp reads it on ARM",
    .type_name = "I2_S",
    .type_id = TYPE_ID,
    .file_type = FILE_TYPE,
    .granule = 4 * WIDTH_64,
    .row_major = true,
    .max_scales = 1,
    .check = check_64,
    .size = size,
    .pack = pack_64,
    .unpack = unpack_64,
    .put_scales = put_scales,
    .get_scale = get_scale,
    .trit_bytes = trit_bytes,
    .trit_at = bc_i2_s_64_trit_at,
    .dot_rows = dot_rows_64,
};
