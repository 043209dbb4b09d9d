/* SPDX-License-Identifier: MIT
 * What a verification keeps behind its public struct, and the table of its tensors. */
#ifndef BC_VERIFY_RESULT_H
#define BC_VERIFY_RESULT_H

#include "base/digest.h"
#include "verify/container.h"

struct bc_verifier;

/* bitconv_verification.internal. The container stays open: names and shapes borrow from it. */
struct bc_verification_data {
    struct bc_arena arena;
    struct bc_container container;
    const char *base_name;      /* of the file, for the manifest */
    uint64_t size;              /* bytes of all its files */
    struct bc_hash128 metadata; /* digest of all keys and values in file order */
    uint64_t n_keys;
};

/* Shape of tensor `index` in ggml order, whatever the container. Returns the number of dimensions.
 */
uint32_t bc_result_shape(const struct bc_verification_data *data, size_t index,
                         uint64_t ne[BITCONV_GGUF_MAX_DIMS]);

/* Fills result->tensors (name, type, pack, xxh3; ok), v->tensors and the facts of the manifest.
 * Reads every byte of every tensor once. */
enum bitconv_status bc_result_list_tensors(struct bc_verifier *v, struct bitconv_error *err);

#endif
