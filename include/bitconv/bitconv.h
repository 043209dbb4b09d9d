/* SPDX-License-Identifier: MIT
 * bitconv: ternary language models from Hugging Face checkpoints to GGUF, and the proof that nothing
 * was lost. Umbrella header and the contracts that hold for every call:
 *
 * Errors: calls that can fail return enum bitconv_status and fill a caller-owned struct bitconv_error
 *   (may be NULL). The library never prints, exits or aborts, and holds no state between calls.
 * Ownership: what `open` or `new` returns, the matching `close` or `free` releases; NULL is fine there.
 *   Views (tensors, values, names) borrow from the opened object.
 * Threads: an object may be read by several threads at once; calls that change it may not overlap.
 * Determinism: the same input and options give the same bytes, whatever the machine, the instruction
 *   set and the number of threads. */
#ifndef BITCONV_BITCONV_H
#define BITCONV_BITCONV_H

#define BITCONV_VERSION_MAJOR  0
#define BITCONV_VERSION_MINOR  1
#define BITCONV_VERSION_PATCH  0
#define BITCONV_VERSION_STRING "0.1.0"

#include "bitconv/bench.h"
#include "bitconv/codegen.h"
#include "bitconv/convert.h"
#include "bitconv/diff.h"
#include "bitconv/dummy.h"
#include "bitconv/engine.h"
#include "bitconv/export.h"
#include "bitconv/generate.h"
#include "bitconv/gguf.h"
#include "bitconv/inspect.h"
#include "bitconv/repack.h"
#include "bitconv/safetensors.h"
#include "bitconv/sparse.h"
#include "bitconv/status.h"
#include "bitconv/support.h"
#include "bitconv/tensor.h"
#include "bitconv/tokenize.h"
#include "bitconv/verify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library at run time ("0.1.0"). */
BITCONV_API const char *bitconv_version(void);

#ifdef __cplusplus
}
#endif
#endif
