/* SPDX-License-Identifier: MIT
 * The contract of a ternary pack: one row of functions per pack, one file and one spec each.
 *
 * How to add one: formats/README.md. */
#ifndef BC_FORMATS_FORMAT_H
#define BC_FORMATS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bc_kernels;
struct bc_tilings;

/* The tensor being packed, in ggml order: cols = ne[0], rows = ne[1], slices = ne[2] (experts; 1
 * for matrices). n = cols * rows * slices is known not to overflow. tile: BM, BK, bm for tiled
 * layouts. */
struct bc_pack_shape {
    uint64_t cols;
    uint64_t rows;
    uint64_t slices;
    uint64_t n;
    uint32_t tile[3];
    /* Only payload packs (below) look at these two. */
    uint32_t n_dims;    /* as the tensor's; 0: 3 for a stack of slices, else 2 */
    uint64_t n_nonzero; /* how many of the n trits are not 0 */
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

    /* Exact integer products of packed rows with int8 activations: out[v * n_rows + r] = sum over
     * columns of trit * x[v * x_stride + col] for rows [row, row + n_rows), counted over all slices,
     * and v in [0, n_x). Any ranges. cols * 128 must fit int32 (the caller checks). Illegal codes
     * make some number. */
    void (*dot_rows)(const struct bc_kernels *k, const struct bc_pack_shape *shape,
                     const uint8_t *packed, uint64_t row, uint64_t n_rows, const int8_t *x,
                     uint64_t x_stride, uint32_t n_x, int32_t *out);
    /* dot_rows is fastest on ranges that begin and end at multiples of this; 0: no such number. */
    uint32_t row_step;

    /* Type and file type in dialect bitnet-rebased where they differ (TL2), else 0. */
    uint32_t type_id_rebased;

    /* Tiled packs (NULL in the others): the tile for a shape, from the sections of `config` (NULL:
     * no file) or the pack's own rules; false, with the reason in why, when there is none. The
     * caller puts it into shape->tile, without which nothing above works. */
    bool (*choose_tile)(const struct bc_tilings *config, const struct bc_pack_shape *shape,
                        uint32_t tile[3], char *why, size_t why_size);

    /* ---- Payload packs (BITCOS, T5): their bytes say themselves what they hold. 0 and NULL in the
     * others. In a GGUF such a tensor is of type I8 and has one dimension, the payload's size in
     * bytes; the metadata names the pack (it is never guessed from the type). size, put_scales and
     * pack want shape->n_nonzero. ---- */

    /* pack also takes runs that start at multiples of this, in ascending order, none left out;
     * unpack also takes any range that starts at one. (granule is 0: such runs are no tensors of
     * their own, and cannot be packed side by side.) */
    uint64_t run;
    /* The four bytes that a payload begins with, NUL-terminated. */
    const char *magic;
    /* Reads the header: false, with the reason in why, when the bytes cannot be a payload of this
     * pack, or `size` is not the size that follows from its header, or its dimensions are not those
     * of `expected` (NULL: any). Fills *shape, n_dims and n_nonzero included; with it nothing else
     * here reads outside of the payload, whatever the rest of the bytes holds. */
    bool (*open_payload)(const struct bc_pack_shape *expected, const uint8_t *bytes, uint64_t size,
                         struct bc_pack_shape *shape, char *why, size_t why_size);
    /* open_payload and everything else that can be wrong: ranks against the bitmap, the non-zero
     * count, spare bits, padding, bytes without a meaning. Reads the payload once. A payload that
     * passes is the one that packing its trits and scales gives, byte for byte. */
    bool (*check_payload)(const struct bc_pack_shape *expected, const uint8_t *bytes, uint64_t size,
                          char *why, size_t why_size);
    /* The independent reader for the n trits from `first` in flat order, where one by one would
     * cost too much (NULL: it does not). Gives what trit_at gives. */
    void (*trits_at)(const struct bc_pack_shape *shape, const uint8_t *packed, uint64_t first,
                     uint64_t n, int8_t *trits);
};

const struct bc_format *bc_format_find(const char *name); /* NULL: unknown */
/* The default layout of that GGUF type in dialect bitnet; payload packs are not found by type. */
const struct bc_format *bc_format_by_type(uint32_t type_id);
const struct bc_format *bc_format_at(size_t index); /* NULL behind the last */

/* Can the pack hold a tensor of that shape? Tiled packs: chooses shape->tile first, from `config`
 * (NULL: no file) or their own rules. False with the reason in why. */
bool bc_format_fit(const struct bc_format *format, const struct bc_tilings *config,
                   struct bc_pack_shape *shape, char *why, size_t why_size);

#endif
