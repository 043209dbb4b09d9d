/* SPDX-License-Identifier: MIT
 * Opens whatever a path names: a GGUF, a safetensors file, or a checkpoint folder. */
#ifndef BC_VERIFY_CONTAINER_H
#define BC_VERIFY_CONTAINER_H

#include "bitconv/gguf.h"
#include "bitconv/inspect.h"
#include "bitconv/safetensors.h"
#include "model/checkpoint.h"

/* Exactly one of the three is open. */
struct bc_container {
    enum bitconv_container kind;
    struct bitconv_gguf *gguf;
    struct bitconv_safetensors *safetensors;
    struct bc_checkpoint *checkpoint;
};

/* A folder is a checkpoint; a file that begins with the GGUF magic (in either byte order) or is
 * named *.gguf is a GGUF; everything else is read as safetensors, whose reader names impostors.
 * `dialect`: overrides a GGUF's dialect, or NULL. On failure nothing is open. */
enum bitconv_status bc_container_open(const char *path, const char *dialect,
                                      const struct bitconv_sink *sink, struct bc_container *out,
                                      struct bitconv_error *err);
void bc_container_close(struct bc_container *c); /* a zeroed one is fine */

/* Bytes of all files of a safetensors container (not of a GGUF). */
uint64_t bc_container_size(const struct bc_container *c);
/* Where the data section of one of those files (a path as in struct bitconv_tensor) begins. */
uint64_t bc_container_data_offset(const struct bc_container *c, const char *file);
/* Tensors of a safetensors file or of a checkpoint (not of a GGUF). */
size_t bc_container_n_tensors(const struct bc_container *c);
const struct bitconv_tensor *bc_container_tensor(const struct bc_container *c, size_t index);

/* Bytes of a GGUF tensor's values: its size, or where the type's size is not known its whole span.
 */
uint64_t bc_gguf_tensor_bytes(const struct bitconv_gguf_tensor *t);
/* The shape of a safetensors tensor in ggml order (columns first, unused = 1; dimensions beyond the
 * array are folded into the last). Returns the number of dimensions. */
uint32_t bc_tensor_ggml_shape(const struct bitconv_tensor *t, uint64_t ne[BITCONV_GGUF_MAX_DIMS]);

#endif
