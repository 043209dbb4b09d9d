/* SPDX-License-Identifier: MIT
 * The element types of safetensors and a borrowed view of one tensor. */
#ifndef BITCONV_TENSOR_H
#define BITCONV_TENSOR_H

#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types as safetensors names them (huggingface/safetensors, README "Format"). */
enum bitconv_dtype {
    BITCONV_BOOL,
    BITCONV_U8,
    BITCONV_I8,
    BITCONV_F8_E5M2,
    BITCONV_F8_E4M3,
    BITCONV_F8_E8M0,
    BITCONV_I16,
    BITCONV_U16,
    BITCONV_F16,
    BITCONV_BF16,
    BITCONV_I32,
    BITCONV_U32,
    BITCONV_F32,
    BITCONV_F64,
    BITCONV_I64,
    BITCONV_U64,
    BITCONV_N_DTYPES
};

/* "BF16" and so on; "?" when out of range. */
BITCONV_API const char *bitconv_dtype_name(enum bitconv_dtype dtype);
/* Bytes of one element; 0 when out of range. */
BITCONV_API size_t bitconv_dtype_size(enum bitconv_dtype dtype);
/* True for every floating-point type. */
BITCONV_API bool bitconv_dtype_is_float(enum bitconv_dtype dtype);

/* A tensor of an open file: everything is borrowed and lives as long as that file is open. `shape` is
 * in the order of the file (Hugging Face order: outermost first, rows then columns). data is
 * little-endian, row-major, n_elements * element size = size bytes, not aligned in general. */
struct bitconv_tensor {
    const char *name;
    enum bitconv_dtype dtype;
    uint32_t n_dims;
    const uint64_t *shape;
    uint64_t n_elements; /* 1 for a scalar (n_dims 0) */
    const uint8_t *data;
    uint64_t size;
    const char *file;     /* path of the file, for messages */
    uint64_t file_offset; /* where data starts in it */
};

#ifdef __cplusplus
}
#endif
#endif
