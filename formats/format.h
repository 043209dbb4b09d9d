/* SPDX-License-Identifier: MIT
 * The contract of a ternary pack: one row of functions per pack, one file and one spec each.
 *
 * How to add a pack: 1. formats/NAME.md, the normative spec with an index formula and a worked hex
 * example (the tests read it). 2. formats/NAME.c, check/size/pack/unpack. 3. formats/NAME_ref.c,
 * only trit_at, written from the spec alone. 4. one line in formats/registry.c, one in
 * CMakeLists.txt. Everything else (tests, command line, verifier) walks the table. */
#ifndef BC_FORMATS_FORMAT_H
#define BC_FORMATS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bc_kernels;

/* The tensor being packed, in ggml order: cols = ne[0], rows = ne[1], slices = ne[2] (experts; 1
 * for matrices). n = cols * rows * slices is known not to overflow. tile: BM, BK, bm for tiled
 * layouts. */
struct bc_pack_shape {
    uint64_t cols;
    uint64_t rows;
    uint64_t slices;
    uint64_t n;
    uint32_t tile[3];
};

#define BC_TRIT_ILLEGAL                                                                            \
    2 /* trit_at's and unpack's answer for a code that the pack does not define */

struct bc_format {
    const char *name;      /* "i2_s": command line, metadata, --json */
    const char *title;     /* one line for people */
    const char *type_name; /* name of the GGUF tensor type, as in io/gguf_types.c */
    uint32_t type_id;      /* GGUF tensor type in dialect bitnet */
    uint32_t file_type;    /* general.file_type of a file packed so */
    uint64_t granule;      /* trits that pack/unpack can start and stop at; 0: whole tensor only */
    bool row_major;        /* packs flat row-major order, so row groups can be streamed */
    uint32_t max_scales;   /* per-tensor packs 1; UINT32_MAX: one per slice */

    /* Can the shape be packed? If not, writes the reason (which number does not divide what) into
     * why. Everything below wants a shape that passed, and trits that are -1, 0 or +1. */
    bool (*check)(const struct bc_pack_shape *shape, char *why, size_t why_size);
    /* Bytes of the packed tensor, tail and padding included. */
    uint64_t (*size)(const struct bc_pack_shape *shape);
    /* Packs trits [first, first + n) of the flat order; first is a multiple of granule, and so is n
     * unless the range ends the tensor. `packed` is the start of the whole packed tensor. */
    void (*pack)(const struct bc_kernels *k, const struct bc_pack_shape *shape, const int8_t *trits,
                 uint64_t first, uint64_t n, uint8_t *packed);
    /* The inverse. An illegal code is stored as BC_TRIT_ILLEGAL and makes the result false. */
    bool (*unpack)(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                   const uint8_t *packed, uint64_t first, uint64_t n, int8_t *trits);
    /* Writes / reads the scale and everything around it that is not a trit (padding, spare bytes).
     */
    void (*put_scales)(const struct bc_pack_shape *shape, const float *scales, uint32_t n_scales,
                       uint8_t *packed);
    float (*get_scale)(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice);
    /* Offset of the first byte behind the trits (what the re-pack proof compares up to). */
    uint64_t (*trit_bytes)(const struct bc_pack_shape *shape);

    /* The independent reader (NAME_ref.c): trit at (slice, row, col), -1, 0, +1 or BC_TRIT_ILLEGAL.
     */
    int (*trit_at)(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t slice,
                   uint64_t row, uint64_t col);
};

const struct bc_format *bc_format_find(const char *name); /* NULL: unknown */
const struct bc_format *
bc_format_by_type(uint32_t type_id); /* default layout of that GGUF type in dialect bitnet */
const struct bc_format *bc_format_at(size_t index); /* NULL behind the last */

#endif
