/* SPDX-License-Identifier: MIT
 * Looks at every block's scale of a packed tensor. */
#include "verify/block_scan.h"

#include <math.h>

#include "base/bytes.h"
#include "formats/block_pack.h"

float bc_packed_scale_beside(const struct bc_packed *p, uint64_t slice)
{
    if (p->scales == NULL) return 1.0f;
    return bc_get_f32(p->scales + 4 * (p->n_scales == 1 ? 0 : slice));
}

static void scan_block(const struct bc_block_pack *bp, const uint8_t *block, uint64_t index,
                       struct bc_block_scan *out)
{
    const float scale = bc_block_scale(bp, block);
    if (bp->is_zero(block)) {
        if (bc_f32_bits(scale) != 0 && out->junk == BC_NO_INDEX) out->junk = index;
    } else if (!isfinite(scale) || signbit(scale)) {
        if (out->bad != BC_NO_INDEX) return;
        out->bad = index;
        out->bad_value = scale;
    } else if (scale == 0.0f) {
        if (out->vanishing++ == 0) out->first_vanishing = index;
    }
}

void bc_block_scan(const struct bc_packed *p, float *scales, struct bc_block_scan *out)
{
    const struct bc_block_pack *bp = bc_block_pack_of(p->format);
    const uint64_t n_blocks = p->shape.n / bp->block;
    *out =
        (struct bc_block_scan){.form = p->scales != NULL ? BC_SCALES_BESIDE : BC_SCALES_IN_BLOCKS};
    out->bad = out->first_vanishing = out->junk = BC_NO_INDEX;
    for (uint64_t i = 0; i < n_blocks; i++)
        scan_block(bp, p->data + i * bp->block_size, i, out);
    if (bc_block_slice_scales(bp, &p->shape, p->data, scales, &out->other) == BC_BLOCKS_MANY_SCALES)
        out->form = BC_SCALES_IN_MANY_BLOCKS;
    const uint64_t slice_blocks = n_blocks / p->shape.slices;
    for (uint64_t i = 0; p->scales != NULL && i < p->shape.slices; i++) {
        float common;
        uint64_t other;
        const uint8_t *blocks = p->data + i * slice_blocks * bp->block_size;
        const bool zero =
            bc_block_common_scale(bp, blocks, slice_blocks, &common, &other) == BC_BLOCKS_ALL_ZERO;
        scales[i] = (zero ? 1.0f : scales[i]) * bc_packed_scale_beside(p, i);
    }
}
