/* SPDX-License-Identifier: MIT
 * Lists of steps. */
#include "tokenizer/steps.h"

struct bc_step *bc_steps_add(struct bc_steps *steps, bc_step_fn *run)
{
    if (!bc_grow((void **)&steps->items, &steps->cap, steps->n, sizeof *steps->items)) return NULL;
    struct bc_step *const step = &steps->items[steps->n++];
    *step = (struct bc_step){.run = run};
    return step;
}

void bc_steps_release(struct bc_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        bc_pattern_free(steps->items[i].pattern);
        bc_buf_release(&steps->items[i].text);
        bc_charsmap_close(steps->items[i].map);
    }
    bc_free(steps->items);
    *steps = (struct bc_steps){0};
}

enum bitconv_status bc_steps_run(const struct bc_steps *steps, struct bc_pieces *pieces,
                                 struct bc_pieces *spare, struct bitconv_error *err)
{
    for (size_t i = 0; i < steps->n; i++) {
        bc_pieces_clear(spare);
        spare->at_start = pieces->at_start;
        BC_TRY(steps->items[i].run(&steps->items[i], pieces, spare, err));
        const struct bc_pieces swap = *pieces;
        *pieces = *spare;
        *spare = swap;
    }
    return BITCONV_OK;
}
