/* SPDX-License-Identifier: MIT
 * Statistics and values of single tensors, for inspect. */
#ifndef BC_VERIFY_TENSOR_STATS_H
#define BC_VERIFY_TENSOR_STATS_H

#include "base/pool.h"
#include "bitconv/inspect.h"
#include "quant/quantize.h"
#include "verify/container.h"
#include "verify/pack_scan.h"

/* The values of tensor `index` as a run of numbers; false when its type is not one plain number per
 * element (F64, F32, F16, BF16, F8, integers). */
bool bc_container_values(const struct bc_container *c, size_t index, struct bc_values *out);

/* Values [first, first + n) as float64: exact but for 64-bit integers beyond 2^53. */
void bc_read_doubles(const struct bc_kernels *k, const struct bc_values *v, uint64_t first,
                     size_t n, double *dst);
/* Value `index` of an integer run; U64 as its bit pattern. */
int64_t bc_read_integer(const struct bc_values *v, uint64_t index);

/* Fills `out` for a run of numbers. Sums are taken over fixed pieces and merged in order, so the
 * result does not depend on the number of threads. Memory: 40 bytes per 65536 values, and 512 KiB a
 * thread. */
enum bitconv_status bc_number_stats(const struct bc_values *v, const struct bc_kernels *k,
                                    struct bc_pool *pool, const struct bitconv_sink *sink,
                                    struct bitconv_tensor_stats *out, struct bitconv_error *err);
/* The same for a packed tensor that has been scanned. */
void bc_ternary_stats(const struct bc_pack_scan *scan, struct bitconv_tensor_stats *out);
/* The same for offline weights of a checkpoint: a U8 tensor of four two-bit codes a byte (code = trit + 1,
 * quantize.md section 3) and the tensor that holds its scale (a float; value 0 is shown). */
void bc_offline_stats(const struct bitconv_tensor *t, const struct bitconv_tensor *scale,
                      const struct bc_kernels *k, struct bitconv_tensor_stats *out);

#endif
