/* SPDX-License-Identifier: MIT
 * Reading safetensors files: mapped, checked completely before anything is handed out.
 * The rules enforced are in formats/safetensors.md. */
#ifndef BITCONV_SAFETENSORS_H
#define BITCONV_SAFETENSORS_H

#include "bitconv/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bitconv_safetensors;

/* Opens and checks a file: header length against the file (at most 100 MB), strict JSON, known dtypes,
 * shape times element size equal to the byte range, ranges without hole, overlap or trailing bytes, no
 * name twice, __metadata__ a map of strings. Git LFS pointers, HTML pages and other impostors are
 * named in the message. On success the caller closes *out. */
BITCONV_API enum bitconv_status bitconv_safetensors_open(const char *path,
                                                         struct bitconv_safetensors **out,
                                                         struct bitconv_error *err);
BITCONV_API void bitconv_safetensors_close(struct bitconv_safetensors *file); /* NULL is fine */

/* Tensors sorted by name, bytewise (not in header order): the order converters see. */
BITCONV_API size_t bitconv_safetensors_count(const struct bitconv_safetensors *file);
BITCONV_API const struct bitconv_tensor *
bitconv_safetensors_at(const struct bitconv_safetensors *file, size_t index);
/* NULL when there is none of that name. */
BITCONV_API const struct bitconv_tensor *
bitconv_safetensors_find(const struct bitconv_safetensors *file, const char *name);

/* Pairs of __metadata__, in file order. */
BITCONV_API size_t bitconv_safetensors_metadata_count(const struct bitconv_safetensors *file);
BITCONV_API bool bitconv_safetensors_metadata_at(const struct bitconv_safetensors *file,
                                                 size_t index, const char **key,
                                                 const char **value);
BITCONV_API uint64_t bitconv_safetensors_header_size(const struct bitconv_safetensors *file);
BITCONV_API uint64_t bitconv_safetensors_file_size(const struct bitconv_safetensors *file);

#ifdef __cplusplus
}
#endif
#endif
