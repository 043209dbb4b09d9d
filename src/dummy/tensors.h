/* SPDX-License-Identifier: MIT
 * The tensors of a synthetic checkpoint, as they are stored, and where their values come from. */
#ifndef BC_DUMMY_TENSORS_H
#define BC_DUMMY_TENSORS_H

#include "bitconv/tensor.h"
#include "dummy/shape.h"
#include "dummy/values.h"

enum bc_dummy_content {
    BC_DUMMY_FLOATS, /* norms, embeddings and the like */
    BC_DUMMY_MASTER, /* linear weights in one of the three forms */
    BC_DUMMY_BAKED,
    BC_DUMMY_PACKED,
    BC_DUMMY_SCALE /* weight_scale, one F32 value */
};

struct bc_dummy_stored {
    struct bitconv_tensor view; /* as an open file would show it; no data, but of scales */
    uint64_t shape[3];
    enum bc_dummy_content content;
    struct bc_dummy_values values;
    uint64_t n_rows, n_cols; /* of linear weights, unpacked */
    uint8_t scale[4];        /* the data of a SCALE */
};

struct bc_dummy_tensors {
    struct bc_dummy_stored *items; /* sorted by name, bytewise */
    size_t n;
    uint64_t size; /* bytes of all */
    struct bc_arena arena;
};

/* How a checkpoint stores its tensors. */
struct bc_dummy_storage {
    enum bitconv_dummy_form form;
    enum bitconv_dtype dtype; /* of all but packed weights and their scales */
    uint32_t n_zero;          /* share of zero trits in 1/65536 */
    uint64_t seed;
    const char *file; /* what the tensors call their file in messages */
};

/* Lists the tensors of a model. The name of a linear weight's stream of numbers is that of the weight,
 * in all forms: they hold the same trits. Its scale, a bfloat16 value near
 * 1 / sqrt((1 - zeros) * columns), keeps the size of activations; experts of a stack share theirs.
 * Embeddings, output, routers and tables have a standard deviation of 1 / sqrt(hidden size), filters
 * of 1 / sqrt(length); norms are 1 +- 0.1, biases within +- 0.02. Zero-initialise *out;
 * bc_dummy_tensors_release in any case. */
enum bitconv_status bc_dummy_tensors_make(const struct bc_dummy_model *model,
                                          const struct bc_dummy_storage *storage,
                                          struct bc_dummy_tensors *out, struct bitconv_error *err);
void bc_dummy_tensors_release(struct bc_dummy_tensors *tensors);

/* Elements [first, first + n) of a tensor as the file holds them, n * element size bytes; n is at
 * most BC_DUMMY_CHUNK. */
void bc_dummy_stored_bytes(const struct bc_dummy_stored *t, const struct bc_kernels *k,
                           uint64_t first, size_t n, uint8_t *dst);
/* The same as float32 values; not for PACKED. */
void bc_dummy_stored_floats(const struct bc_dummy_stored *t, const struct bc_kernels *k,
                            uint64_t first, size_t n, float *dst);

#endif
