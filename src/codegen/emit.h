/* SPDX-License-Identifier: MIT
 * The texts that codegen writes. Both depend on their arguments alone. */
#ifndef BC_CODEGEN_EMIT_H
#define BC_CODEGEN_EMIT_H

#include "base/mem.h"
#include "bitconv/codegen.h"

/* Appends a kernel configuration (tiling.md, "Configuration files") with a section for each of the
 * n kernels, in their order, as bitnet.cpp's code generators write it. */
void bc_codegen_ini(const struct bitconv_codegen_kernel *kernels, size_t n, struct bc_buf *out);

/* Appends the C header with the kernels, TL1 first. Every tile is legal, and K is at most
 * BC_CODEGEN_MAX_COLS. */
void bc_codegen_header(const struct bitconv_codegen_kernel *kernels, size_t n, struct bc_buf *out);

/* The sum of so many trits times activations of at most 128 fits int32. */
#define BC_CODEGEN_MAX_COLS ((UINT64_C(1) << 24) - 1)

#endif
