/* SPDX-License-Identifier: MIT
 * Sizes in packs, from shape and count. */
#include "verify/pack_sizes.h"

#include <string.h>

#include "formats/block_pack.h"

uint64_t bc_pack_size_of(const struct bc_format *pack, const struct bc_format *own,
                         const struct bc_pack_shape *shape)
{
    const struct bc_block_pack *blocks = bc_block_pack_of(pack);
    struct bc_pack_shape s = *shape;
    char why[256];
    if (blocks != NULL && !blocks->holds_zeros && s.n_nonzero != s.n) return 0;
    if (pack == own) return pack->size(&s);
    memset(s.tile, 0, sizeof s.tile);
    return bc_format_fit(pack, NULL, &s, why, sizeof why) ? pack->size(&s) : 0;
}
