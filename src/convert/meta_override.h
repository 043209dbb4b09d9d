/* SPDX-License-Identifier: MIT
 * --meta KEY=TYPE:VALUE: metadata set by the user. */
#ifndef BC_CONVERT_META_OVERRIDE_H
#define BC_CONVERT_META_OVERRIDE_H

#include "base/error.h"
#include "bitconv/gguf.h"

/* Sets one key per item "KEY=TYPE:VALUE", types u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool str.
 * Refused: malformed items, values out of range, a key given twice, keys that describe the file
 * itself (general.alignment, general.architecture, general.file_type, split.*, bitconv.*), and a
 * type other than the one that the key has in the writer already. Each override is a NOTE to the
 * sink. */
enum bitconv_status bc_meta_override(const char *const *items, size_t n,
                                     const struct bitconv_sink *sink, struct bitconv_gguf_writer *w,
                                     struct bitconv_error *err);

#endif
