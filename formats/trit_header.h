/* SPDX-License-Identifier: MIT
 * The part that BITCOS and T5 payloads have in common: a header of 64 bytes, then the scales of a
 * stack. Described in bitcos.md. */
#ifndef BC_FORMATS_TRIT_HEADER_H
#define BC_FORMATS_TRIT_HEADER_H

#include "base/error.h"
#include "formats/format.h"

/* Where the header's fields stand; all are little-endian. */
enum {
    BC_TRIT_MAGIC = 0,
    BC_TRIT_VERSION = 4,
    BC_TRIT_FLAGS = 6,
    BC_TRIT_N_DIMS = 8,
    BC_TRIT_SUPERBLOCK = 12,
    BC_TRIT_DIMS = 16,
    BC_TRIT_N_NONZERO = 48,
    BC_TRIT_SCALE = 56,
    BC_TRIT_N_SCALES = 60,
    BC_TRIT_HEADER_BYTES = 64
};

/* What tells one payload pack from the other. */
struct bc_trit_kind {
    const char *title; /* begins every reason: "BITCOS" */
    char magic[4];
    uint32_t superblock; /* weights per entry of the rank table; 0: there is none */
};

/* Offset of the first byte behind header and scales, a multiple of 8. */
uint64_t bc_trit_body(const struct bc_pack_shape *shape);

/* Can a header describe the shape? If not, writes the reason into why. */
bool bc_trit_shape_fits(const struct bc_trit_kind *kind, const struct bc_pack_shape *shape,
                        char *why, size_t why_size);

/* Writes the bytes [0, bc_trit_body(shape)). One scale for a stack counts for every slice. */
void bc_trit_header_put(const struct bc_trit_kind *kind, const struct bc_pack_shape *shape,
                        const float *scales, uint32_t n_scales, uint8_t *packed);

/* The scale of a slice. */
float bc_trit_header_scale(const struct bc_pack_shape *shape, const uint8_t *packed,
                           uint64_t slice);

/* Reads header and scales of `size` bytes: false, with the reason in why, when a field is not what
 * the version defines, the scales do not fit into `size`, or the dimensions are not those of
 * `expected` (NULL: any; n_dims 0 there: any). Fills *shape, which then fits the kind. */
bool bc_trit_header_read(const struct bc_trit_kind *kind, const struct bc_pack_shape *expected,
                         const uint8_t *bytes, uint64_t size, struct bc_pack_shape *shape,
                         char *why, size_t why_size);

/* snprintf into why that answers false: refusals are one line. */
bool bc_trit_refuse(const struct bc_trit_kind *kind, char *why, size_t why_size, const char *format,
                    ...) BC_PRINTF(4, 5);

#endif
