/* SPDX-License-Identifier: MIT
 * The headers of safetensors files to be written, and the index of a set (formats/safetensors.md). */
#ifndef BC_IO_SAFETENSORS_WRITE_H
#define BC_IO_SAFETENSORS_WRITE_H

#include "base/json.h"
#include "bitconv/tensor.h"

/* Appends what stands in front of the data of a file: length, JSON, blanks up to a multiple of 8.
 * The tensors' data follow each other in the given order, without gaps; dtype, name and shape of
 * their views count. out->failed tells that memory ran out. */
void bc_safetensors_header(const struct bitconv_tensor *const *tensors, size_t n,
                           struct bc_buf *out);

/* The name of file `index` of a set of n: "model.safetensors" alone, else
 * "model-00001-of-00003.safetensors". */
enum { BC_SAFETENSORS_NAME = 48 };
void bc_safetensors_shard_name(uint32_t index, uint32_t n, char out[BC_SAFETENSORS_NAME]);

#endif
