/* SPDX-License-Identifier: MIT
 * Inflating mapped gzip files: internal to base/text.c and base/json.c. */
#ifndef BC_BASE_TEXT_H
#define BC_BASE_TEXT_H

#include "base/file.h"
#include "base/mem.h"

/* True when the bytes start with the gzip magic. */
bool bc_text_is_gzip(const uint8_t *data, uint64_t size);

/* Appends the inflated content of all members of a gzip file to `buf`. CORRUPT when it is cut off,
 * damaged (each member's CRC-32 and length are checked) or followed by something else; LIMIT as
 * bc_json_load says. */
enum bitconv_status bc_text_inflate(const struct bc_file *file, struct bc_buf *buf,
                                    struct bitconv_error *err);

#endif
