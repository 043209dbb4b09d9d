/* SPDX-License-Identifier: MIT
 * The strict JSON checker that runs before cJSON: internal to base/json*.c. */
#ifndef BC_BASE_JSON_CHECK_H
#define BC_BASE_JSON_CHECK_H

#include <stddef.h>

#include "base/error.h"

/* Accepts exactly the texts that the head of base/json.h describes. On failure the message names
 * `where`, the line and the byte, and err->offset is the byte's offset in the text. CORRUPT for
 * what is not JSON, UNSUPPORTED for what cJSON could not represent, LIMIT for depth and size. */
enum bitconv_status bc_json_check(const char *text, size_t size, const char *where,
                                  struct bitconv_error *err);

#endif
