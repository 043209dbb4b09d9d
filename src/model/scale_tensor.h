/* SPDX-License-Identifier: MIT
 * Tensors that hold the scales of others: NAME.scale beside NAME.weight, where the blocks of a block
 * pack have the scale 1.0 (--scale-tensor; mainline's bitnet graph multiplies by it). */
#ifndef BC_MODEL_SCALE_TENSOR_H
#define BC_MODEL_SCALE_TENSOR_H

#include "base/mem.h"
#include "bitconv/gguf.h"

/* The tensor of the scales of `weight`: F32, one value or one per slice, `weight` of a type with a
 * scale per block. NULL: there is none, or what is called so cannot be it. */
const struct bitconv_gguf_tensor *bc_scale_tensor_of(const struct bitconv_gguf *file,
                                                     const struct bitconv_gguf_tensor *weight);
/* The tensor whose scales `scale` holds, in the sense of bc_scale_tensor_of; NULL: it is no such
 * tensor. */
const struct bitconv_gguf_tensor *bc_scale_owner(const struct bitconv_gguf *file,
                                                 const struct bitconv_gguf_tensor *scale);
/* The same by the names and the type of the weight alone, whatever `scale` is. */
const struct bitconv_gguf_tensor *bc_scale_named_owner(const struct bitconv_gguf *file,
                                                       const struct bitconv_gguf_tensor *scale);
/* "NAME.scale" for "NAME.weight"; false when the name is not of that kind. */
bool bc_scale_tensor_name(struct bc_buf *out, const char *weight);

#endif
