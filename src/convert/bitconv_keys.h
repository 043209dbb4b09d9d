/* SPDX-License-Identifier: MIT
 * bitconv's own metadata (formats/gguf.md): nothing that another reader needs. */
#ifndef BC_CONVERT_BITCONV_KEYS_H
#define BC_CONVERT_BITCONV_KEYS_H

#include "bitconv/gguf.h"
#include "convert/plan.h"

/* Sets bitconv.version and bitconv.source (the model folder's base name), and where the plan has
 * packed tensors bitconv.fingerprint and the parallel arrays bitconv.tensor.*, from the results in
 * the plan. All values but the version and the source have a width that does not depend on the
 * results: calling it again when they are known does not change the size of the header. */
enum bitconv_status bc_bitconv_keys(const struct bc_plan *plan, const char *source,
                                    struct bitconv_gguf_writer *w, struct bitconv_error *err);

/* The model's fingerprint over its packed tensors as 32 hex digits; "" when there are none. */
enum bitconv_status bc_plan_fingerprint(const struct bc_plan *plan, char out[33],
                                        struct bitconv_error *err);

#endif
