/* SPDX-License-Identifier: MIT
 * The headers of safetensors files to be written, and the index of a set (formats/safetensors.md). */
#ifndef BC_IO_SAFETENSORS_WRITE_H
#define BC_IO_SAFETENSORS_WRITE_H

#include "base/json.h"
#include "bitconv/tensor.h"

/* What stands in front of the data of a file: length, JSON on one line, blanks up to a multiple of
 * 8. Begin with an empty buffer, add the tensors in the order of their data, which follow each other
 * without gaps, and end. out->failed tells that memory ran out. */
struct bc_safetensors_header {
    struct bc_buf *out;
    uint64_t at; /* bytes of data so far */
};
struct bc_safetensors_header bc_safetensors_header_begin(struct bc_buf *out);
/* `shape` in the order of the checkpoint, n_dims numbers; `size` in bytes. */
void bc_safetensors_header_add(struct bc_safetensors_header *header, const char *name,
                               enum bitconv_dtype dtype, const uint64_t *shape, uint32_t n_dims,
                               uint64_t size);
void bc_safetensors_header_end(struct bc_safetensors_header *header);

/* The name of file `index` of a set of n: "model.safetensors" alone, else
 * "model-00001-of-00003.safetensors". */
enum { BC_SAFETENSORS_NAME = 48 };
void bc_safetensors_shard_name(uint32_t index, uint32_t n, char out[BC_SAFETENSORS_NAME]);

/* The index of a set: which tensor is in which file. Begin with an empty buffer and the bytes of all
 * tensors, add the tensors, and end. */
#define BC_SAFETENSORS_INDEX "model.safetensors.index.json"
struct bc_safetensors_index {
    struct bc_jw json;
    uint32_t n_files;
};
struct bc_safetensors_index bc_safetensors_index_begin(struct bc_buf *out, uint64_t total_size,
                                                       uint32_t n_files);
void bc_safetensors_index_add(struct bc_safetensors_index *index, const char *name, uint32_t file);
void bc_safetensors_index_end(struct bc_safetensors_index *index);

#endif
