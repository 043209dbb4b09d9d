/* SPDX-License-Identifier: MIT
 * The shapes that kernels are wanted for: each once, in the order of their first appearance. */
#ifndef BC_CODEGEN_SHAPES_H
#define BC_CODEGEN_SHAPES_H

#include "base/mem.h"
#include "bitconv/codegen.h"
#include "formats/tiling.h"

/* The packs that kernels are made for, by enum bc_tiled_pack. */
enum { BC_CODEGEN_PACKS = 2 };
struct bc_codegen_pack {
    const char *name, *type_name;
    const char *ini_name; /* of the configuration that is written */
};
extern const struct bc_codegen_pack bc_codegen_packs[BC_CODEGEN_PACKS];

struct bc_codegen_shape {
    uint64_t rows, cols;
    uint64_t slices;     /* experts of a stack, which no tiled pack holds; else 1 */
    uint64_t n_tensors;  /* of the model; 0 when the shape was given */
    const char *example; /* the first of them; in the arena */
    /* The tile that the user gave, and the one that a GGUF states for its own tensors by pack; a
     * BM of 0 means none. */
    uint32_t given[3];
    uint32_t stated[BC_CODEGEN_PACKS][3];
    bool unstated[BC_CODEGEN_PACKS]; /* a GGUF has such a tensor and does not state its tile */
};

/* Zero-initialise, release. */
struct bc_codegen_shapes {
    struct bc_codegen_shape *items;
    size_t n, cap;
    struct bc_arena arena;
};

/* *out gets the shape, added to the list if it is not yet there; valid until the next call. LIMIT
 * beyond 1000 shapes: no model has so many. */
enum bitconv_status bc_codegen_shape(struct bc_codegen_shapes *shapes, uint64_t rows, uint64_t cols,
                                     uint64_t slices, struct bc_codegen_shape **out,
                                     struct bitconv_error *err);
/* The linear tensors of a checkpoint folder or a GGUF, by the tables of families: those that a
 * conversion to a ternary pack packs. A GGUF's names are looked up in the tables of all families.
 * CORRUPT when the file states two tiles for tensors of one shape, UNSUPPORTED when there is no
 * linear tensor. */
enum bitconv_status bc_codegen_model_shapes(const char *model, const struct bitconv_sink *sink,
                                            struct bc_codegen_shapes *shapes,
                                            struct bitconv_error *err);
void bc_codegen_shapes_release(struct bc_codegen_shapes *shapes);

/* Puts `tile` into a tile of a shape that may be set already: ARG when the two differ. `what` names
 * where they stand. */
enum bitconv_status bc_codegen_put_tile(const struct bc_codegen_shape *shape, uint32_t dst[3],
                                        const uint32_t tile[3], const char *what,
                                        struct bitconv_error *err);

#endif
