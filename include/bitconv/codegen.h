/* SPDX-License-Identifier: MIT
 * Kernel configurations and look-up-table kernels for the tiled packs TL1 and TL2. */
#ifndef BITCONV_CODEGEN_H
#define BITCONV_CODEGEN_H

#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix that kernels are made for: M = rows = ne[1], K = cols = ne[0]. */
struct bitconv_codegen_shape {
    uint64_t rows;
    uint64_t cols;
};

/* Zero-initialise: zero and NULL mean the default. Strings and arrays are borrowed for the call. */
struct bitconv_codegen_options {
    /* Where the shapes come from: a checkpoint folder or a GGUF (its linear tensors), or a list.
     * With neither, those of kernel_config. Shapes that come twice count once. */
    const char *model;
    const struct bitconv_codegen_shape *shapes;
    size_t n_shapes;
    /* The tile (BM, BK, bm) of each shape, in the order of the shapes; NULL: the section of
     * kernel_config, else the tile that a GGUF states for its own tensor, else the published
     * configuration, else the largest legal one, as bitconv_convert chooses. */
    const uint32_t (*tiles)[3];
    size_t n_tiles;
    const char *kernel_config; /* path of a kernel configuration (INI) */
    const char *pack;          /* "tl1", "tl2" or "both" (default) */
    /* The outputs. dir (default "."): kernel_config-tl1.ini, kernel_config-tl2.ini and
     * bitconv_tl_kernels.h in that folder, which is made where it is missing. ini (one pack only)
     * and header name the files instead; when only one of them is given, only that one is
     * written. */
    const char *dir, *ini, *header;
    bool
        skip_misfits; /* leave out shapes that a pack cannot hold, with a warning, if any is left */
    bool force;       /* replace existing files */
};

/* A shape in a pack. */
struct bitconv_codegen_kernel {
    const char *pack; /* "tl1" or "tl2" */
    uint64_t rows, cols;
    uint32_t tile[3];    /* BM, BK, bm */
    const char *source;  /* of the tile: "given", "file", "stated", "published" or "largest" */
    uint64_t size;       /* bytes of the packed tensor */
    uint64_t n_tensors;  /* of the model that have this shape; 0: no model */
    const char *example; /* name of the first of them, or NULL */
};

struct bitconv_codegen_result {
    struct bitconv_codegen_kernel
        *kernels; /* TL1 first; within a pack in the order of the shapes */
    size_t n_kernels;
    const char *files[3]; /* written, in this order: configurations, header */
    size_t n_files;
    void *internal;
};

/* Writes kernel configurations, in the form that --kernel-config reads, and one C header with GEMV
 * kernels for exactly these shapes; the header documents itself. The same arguments give the same
 * bytes. Files appear complete or not at all. Every shape that does not fit is sent to the sink as
 * a FINDING that names the rule and the numbers, then the call fails with BITCONV_E_UNSUPPORTED.
 * BITCONV_E_ARG: no shapes, lists of different lengths, two tiles for one shape. The caller releases
 * *out with bitconv_codegen_free. */
BITCONV_API enum bitconv_status bitconv_codegen(const struct bitconv_codegen_options *options,
                                                const struct bitconv_sink *sink,
                                                struct bitconv_codegen_result **out,
                                                struct bitconv_error *err);
BITCONV_API void bitconv_codegen_free(struct bitconv_codegen_result *result);

#ifdef __cplusplus
}
#endif
#endif
