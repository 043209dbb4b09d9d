/* SPDX-License-Identifier: MIT
 * The table of ternary packs: adding one is adding its line here. */
#include <string.h>

#include "formats/rows.h"

/* Where two rows share a GGUF type, the default layout stands first. */
static const struct bc_format *const rows[] = {
    &bc_format_i2_s, &bc_format_i2_s_64, &bc_format_bitcos, &bc_format_t5,   &bc_format_tl1,
    &bc_format_tl2,  &bc_format_tq1_0,   &bc_format_tq2_0,  &bc_format_q2_0, &bc_format_q1_0,
};
#define N_ROWS (sizeof rows / sizeof rows[0])

const struct bc_format *bc_format_find(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i]->name, name) == 0) return rows[i];
    }
    return NULL;
}

const struct bc_format *bc_format_by_type(uint32_t type_id)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i]->type_id == type_id && rows[i]->open_payload == NULL) return rows[i];
    }
    return NULL;
}

const struct bc_format *bc_format_at(size_t index)
{
    return index < N_ROWS ? rows[index] : NULL;
}

bool bc_format_fit(const struct bc_format *format, const struct bc_tilings *config,
                   struct bc_pack_shape *shape, char *why, size_t why_size)
{
    /* A stack has no tile: check says why. */
    if (format->choose_tile != NULL && shape->slices == 1 &&
        !format->choose_tile(config, shape, shape->tile, why, why_size))
        return false;
    return format->check(shape, why, why_size);
}
