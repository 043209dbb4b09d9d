/* SPDX-License-Identifier: MIT
 * Copies of the committed tiny checkpoints with something changed. Failures end the test. */
#ifndef TESTS_SUPPORT_MODEL_COPY_H
#define TESTS_SUPPORT_MODEL_COPY_H

#include "bitconv/tensor.h"

/* One change to model.safetensors: the tensor of that name gets other content, or goes. A name
 * that the file does not have is added. */
struct model_edit {
    const char *name;
    bool drop;
    enum bitconv_dtype dtype;
    uint32_t n_dims;
    uint64_t shape[3];
    const float *values; /* stored as F32, F16 or BF16; NULL: `bytes` */
    const void *bytes;
    size_t size;
};

/* Copies fixtures/models/NAME into the empty folder `dir`; with edits, the tensors are written
 * anew (fixtures with a single weight file only). */
void model_copy(const char *name, const char *dir, const struct model_edit *edits, size_t n);
/* Replaces the first occurrence of `from` in DIR/config.json, which must be there. */
void model_copy_config(const char *dir, const char *from, const char *to);
/* Path of the committed fixture; free() it. */
char *model_copy_source(const char *name);

#endif
