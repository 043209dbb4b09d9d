/* SPDX-License-Identifier: MIT
 * The ternary fingerprint: what two files agree on exactly when they carry the same model. */
#ifndef BC_FORMATS_FINGERPRINT_H
#define BC_FORMATS_FINGERPRINT_H

#include "base/digest.h"
#include "base/error.h"

/* The canonical scale of a tensor (or of a slice of a block pack) without a non-zero trit. */
#define BC_ZERO_SCALE 1e-5f

/* Streams one tensor: begin with its shape (ggml order) and scales, feed all trits in flat order in
 * pieces of any length, end. Canonical stream: formats/fingerprint.md. */
struct bc_fingerprint {
    struct bc_digest *digest;
    uint8_t pending; /* trits of an unfinished byte */
    unsigned n_pending;
};
/* n_scales: 1, or one per slice of a 3-D tensor (a single scale counts for every slice).
 * `all_zero`: the canonical scale of an all-zero tensor, 1e-5, replaces the scales. n_dims and ne
 * as in the GGUF. */
enum bitconv_status bc_fingerprint_begin(struct bc_fingerprint *fp, uint32_t n_dims,
                                         const uint64_t *ne, const float *scales, uint32_t n_scales,
                                         bool all_zero, struct bitconv_error *err);
void bc_fingerprint_trits(struct bc_fingerprint *fp, const int8_t *trits, uint64_t n);
struct bc_hash128 bc_fingerprint_end(struct bc_fingerprint *fp); /* releases fp */
void bc_fingerprint_cancel(struct bc_fingerprint *fp);

/* The model's fingerprint over (name, fingerprint) pairs: lines "name hex\n" sorted bytewise. */
struct bc_named_hash {
    const char *name;
    struct bc_hash128 hash;
};
enum bitconv_status bc_fingerprint_model(const struct bc_named_hash *tensors, size_t n,
                                         struct bc_hash128 *out, struct bitconv_error *err);

#endif
