/* SPDX-License-Identifier: MIT
 * The metadata of a repacked file: that of the input. */
#ifndef BC_REPACK_REPACK_KEYS_H
#define BC_REPACK_REPACK_KEYS_H

#include "base/error.h"
#include "bitconv/gguf.h"

/* Sets every key of `file` in `w`, in order, as it is. Left out: general.alignment (outputs have the
 * default), split.* and bitconv.* (about the old file). general.file_type gets the value given, in
 * its old place, or behind all others where there was none. */
enum bitconv_status bc_repack_keys(const struct bitconv_gguf *file, uint32_t file_type,
                                   struct bitconv_gguf_writer *w, struct bitconv_error *err);

#endif
