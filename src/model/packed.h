/* SPDX-License-Identifier: MIT
 * Which ternary pack a tensor of a GGUF is, and in what shape. */
#ifndef BC_MODEL_PACKED_H
#define BC_MODEL_PACKED_H

#include "bitconv/gguf.h"
#include "formats/format.h"
#include "model/stated.h"

/* A packed tensor of an open file; borrows its bytes. */
struct bc_packed {
    const struct bc_format *format; /* NULL: not a ternary pack that this version reads */
    struct bc_pack_shape shape;
    uint32_t n_dims; /* logical: of payloads as their header says, else the tensor's */
    uint64_t ne[BITCONV_GGUF_MAX_DIMS];
    const uint8_t *data; /* format->size(&shape) bytes */
    uint64_t size;
    /* Block packs with a tensor of scales beside them (scale_tensor.h): its n_scales float32 values,
     * one or one per slice; else NULL. */
    const uint8_t *scales;
    uint64_t n_scales;
};

/* The pack of a tensor: what the file states for it (bitconv.tensor.pack) where that names a pack
 * of the tensor's type, else the default layout of the type; a one-dimensional I8 tensor is a
 * payload when the file states so or when it begins with the magic of one. The tile of a tiled pack:
 * what the file states, else that of stated->config or of the pack's own rules. out->format stays
 * NULL for other types. False when the type is a pack but the tensor cannot be one: the reason goes
 * to `why`. */
bool bc_packed_open(const struct bitconv_gguf_tensor *tensor, const struct bc_stated *stated,
                    struct bc_packed *out, char *why, size_t why_size);
/* The same with the scales beside it, where `file` (the tensor's own) holds such a tensor. */
bool bc_packed_open_in(const struct bitconv_gguf *file, const struct bitconv_gguf_tensor *tensor,
                       const struct bc_stated *stated, struct bc_packed *out, char *why,
                       size_t why_size);

#endif
