/* SPDX-License-Identifier: MIT
 * What the library's other parts and the tests need of a safetensors file beyond the public calls.
 */
#ifndef BC_IO_SAFETENSORS_INTERNAL_H
#define BC_IO_SAFETENSORS_INTERNAL_H

#include "base/file.h"
#include "bitconv/safetensors.h"

/* Longest header accepted, in bytes: the bound of the reference implementation. */
#define BC_SAFETENSORS_MAX_HEADER 100000000u

/* bitconv_safetensors_open on `size` bytes in memory, which must outlive *out. `path` (copied)
 * stands for the file in messages. */
enum bitconv_status bc_safetensors_parse(const uint8_t *data, uint64_t size, const char *path,
                                         struct bitconv_safetensors **out,
                                         struct bitconv_error *err);

/* The map behind an opened file, for advice about its pages and to tell inputs from outputs; all
 * zero for one parsed from memory. Borrowed. */
const struct bc_file *bc_safetensors_file(const struct bitconv_safetensors *file);

#endif
