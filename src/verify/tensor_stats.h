/* SPDX-License-Identifier: MIT
 * Statistics of single tensors, for inspect. */
#ifndef BC_VERIFY_TENSOR_STATS_H
#define BC_VERIFY_TENSOR_STATS_H

#include "base/pool.h"
#include "bitconv/inspect.h"
#include "verify/decoded.h"

/* Fills `out` for a tensor of numbers, plain or in blocks. Sums are taken over fixed pieces and
 * merged in order, so the result does not depend on the number of threads. Memory: 40 bytes per 65536
 * values, and 512 KiB a thread. */
enum bitconv_status bc_number_stats(const struct bc_decoded *d, const struct bc_kernels *k,
                                    struct bc_pool *pool, const struct bitconv_sink *sink,
                                    struct bitconv_tensor_stats *out, struct bitconv_error *err);
/* The same for a packed tensor that has been scanned. */
void bc_ternary_stats(const struct bc_pack_scan *scan, struct bitconv_tensor_stats *out);
/* The same for offline weights of a checkpoint: a U8 tensor of four two-bit codes a byte (code =
 * trit + 1) and the tensor that holds its scale (a float; value 0 is shown). */
void bc_offline_stats(const struct bitconv_tensor *t, const struct bitconv_tensor *scale,
                      const struct bc_kernels *k, struct bitconv_tensor_stats *out);

#endif
