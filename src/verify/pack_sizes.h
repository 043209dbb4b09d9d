/* SPDX-License-Identifier: MIT
 * What a ternary tensor would take in each pack. */
#ifndef BC_VERIFY_PACK_SIZES_H
#define BC_VERIFY_PACK_SIZES_H

#include "formats/format.h"

/* Bytes of a tensor of that shape in a pack; shape->n_nonzero counts. 0 when the pack cannot hold it:
 * the shape does not fit, or it has zeros and the pack none. Tiled packs: with the tile of
 * `shape` when it has one and the pack is `own`, else with that of the pack's own rules. */
uint64_t bc_pack_size_of(const struct bc_format *pack, const struct bc_format *own,
                         const struct bc_pack_shape *shape);

#endif
