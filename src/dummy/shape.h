/* SPDX-License-Identifier: MIT
 * From a number of parameters to the shape of a model, and the list of tensors that a shape has. */
#ifndef BC_DUMMY_SHAPE_H
#define BC_DUMMY_SHAPE_H

#include "bitconv/dummy.h"
#include "dummy/kinds.h"
#include "model/arch.h"

enum { BC_DUMMY_MAX_LAYERS = 4096, BC_DUMMY_MIN_VOCAB = 512, BC_DUMMY_MAX_VOCAB = 480000 };

/* A model to be made up. */
struct bc_dummy_model {
    const struct bc_dummy_kind *kind;
    const struct bc_arch *arch;
    const struct bc_arch_class *class_row;
    struct bc_hparams hp; /* what tensors and config need; layer_is_conv in the arena */
    uint64_t parameters;  /* values of all tensors */
    struct bc_arena arena;
};

/* Chooses the shape: a published one, else depth and width by proportion so that the number of
 * parameters comes close to --size; members of `options` that are not 0 are taken as they are.
 * Zero-initialise *out; bc_dummy_model_release in any case. Refused, by option: unknown kinds and
 * sizes, shapes that no model can have. */
enum bitconv_status bc_dummy_model_make(const struct bitconv_dummy_options *options,
                                        struct bc_dummy_model *out, struct bitconv_error *err);
void bc_dummy_model_release(struct bc_dummy_model *model);

/* One tensor of the model as the family's table has it. */
struct bc_dummy_item {
    const struct bc_arch_tensor *row;
    enum bc_match_part part; /* WEIGHT, BIAS or NORM_IN; scales go with their weights */
    uint32_t layer, expert;
    uint64_t rows, cols; /* logical; cols 0: a vector */
};

/* Calls visit for every tensor, row by row of the table, until it fails. */
enum bitconv_status bc_dummy_each(const struct bc_dummy_model *model,
                                  enum bitconv_status (*visit)(void *ctx,
                                                               const struct bc_dummy_item *item,
                                                               struct bitconv_error *err),
                                  void *ctx, struct bitconv_error *err);

#endif
