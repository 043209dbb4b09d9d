/* SPDX-License-Identifier: MIT
 * A piece of an output tensor: some of its values, made into the bytes of the file. */
#ifndef BC_CONVERT_PIECE_H
#define BC_CONVERT_PIECE_H

#include "convert/plan.h"

/* Values of a piece: a multiple of every pack's granule and run. Fixed, because the sums in `loss`
 * are added up piece by piece: their order must not depend on the machine. */
#define BC_PIECE_VALUES ((size_t)30 * 4096)
/* Memory of a piece: float32 values, or packed bytes and trits, and what stands behind the last
 * packed byte. */
#define BC_PIECE_SLOT (4 * BC_PIECE_VALUES + 64)

struct bc_piece {
    struct bc_plan_tensor *tensor;
    uint64_t first; /* of the tensor's flat order; of copies (bc_plan_is_copy) in bytes, as n */
    size_t n;
    bool starts, ends; /* the tensor with this piece */
    uint8_t *slot;     /* BC_PIECE_SLOT bytes */

    /* Results of bc_piece_fill: */
    /* Bytes of the file: in the slot, or in the mapped source. None for packs that are put together
     * as a whole (whole.h). */
    const uint8_t *data;
    size_t size;
    const int8_t *trits; /* n of them, for packed tensors; else NULL */
    uint64_t counts[4];
    struct bc_trit_loss loss;
    uint64_t n_flushed;
    enum bitconv_status status;
    struct bitconv_error err;
};

/* Computes a piece whose first members (up to slot) are set. Thread-safe for different pieces. */
void bc_piece_fill(const struct bc_setup *setup, const struct bc_model *model, struct bc_piece *p);

#endif
