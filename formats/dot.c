/* SPDX-License-Identifier: MIT
 * Dot products by decoding panels of rows. */
#include "formats/dot.h"

#include <string.h>

#include "quant/kernels.h"

enum {
    PANEL = 65536,      /* trits: a part of a second-level cache */
    LARGEST_STEP = 4096 /* of where unpacking may start: BITCOS's superblock */
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Where unpacking may start and stop. */
static uint64_t step_of(const struct bc_format *format)
{
    if (format->run > 0) return format->run;
    return format->granule > 0 ? format->granule : 1;
}

/* Unpacks trits [first, first + n) and what lies around them up to places where unpacking may start
 * and stop. Returns where the first one is. */
static const int8_t *unpack_around(const struct bc_format *format, const struct bc_kernels *k,
                                   const struct bc_pack_shape *shape, const uint8_t *packed,
                                   uint64_t first, uint64_t n, int8_t *panel)
{
    const uint64_t step = step_of(format);
    const uint64_t before = first % step;
    uint64_t wanted = before + n;
    if (format->granule > 0)
        wanted = min_u64(shape->n - (first - before), (wanted + step - 1) / step * step);
    (void)format->unpack(k, shape, packed, first - before, wanted, panel);
    return panel + before;
}

void bc_dot_decoded(const struct bc_format *format, const struct bc_kernels *k,
                    const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t row,
                    uint64_t n_rows, const int8_t *x, uint64_t x_stride, uint32_t n_x, int32_t *out)
{
    int8_t panel[LARGEST_STEP + PANEL + LARGEST_STEP];
    const uint64_t width = min_u64(shape->cols, PANEL); /* whole rows, or a part of one */
    const uint64_t height = width < shape->cols ? 1 : PANEL / width;
    memset(out, 0, (size_t)(n_rows * n_x) * sizeof *out);
    for (uint64_t r = 0; r < n_rows; r += height) {
        for (uint64_t col = 0; col < shape->cols; col += width) {
            const uint64_t n_panel_rows = min_u64(height, n_rows - r);
            const uint64_t n = min_u64(width, shape->cols - col);
            const int8_t *trits =
                unpack_around(format, k, shape, packed, (row + r) * shape->cols + col,
                              (n_panel_rows - 1) * shape->cols + n, panel);
            const struct bc_i8_dots dots = {.w = (const uint8_t *)trits,
                                            .w_stride = (size_t)shape->cols,
                                            .n_rows = (size_t)n_panel_rows,
                                            .x = x + col,
                                            .x_stride = (size_t)x_stride,
                                            .n_x = n_x,
                                            .n = (size_t)n,
                                            .out = out + r,
                                            .out_stride = (size_t)n_rows};
            k->trit_dots(&dots);
        }
    }
}
