/* SPDX-License-Identifier: MIT
 * Measuring: how fast ternary packs are packed, unpacked and multiplied on this machine. */
#ifndef BITCONV_BENCH_H
#define BITCONV_BENCH_H

#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All members may be zero: the defaults stand behind them. */
struct bitconv_bench_packs_options {
    const char *const *packs; /* names as `bitconv formats --packs` lists them; NULL: all */
    size_t n_packs;
    uint64_t rows, cols;  /* of the matrix; 4096 each */
    bool has_zeros;       /* zeros counts; else a third */
    double zeros;         /* share of zero weights, 0 to 1; packs without zeros get none */
    unsigned repetitions; /* the median counts; 5 */
    unsigned n_threads;   /* each works on a matrix of its own; 1 */
    const char *cpu;      /* "scalar", "avx2", "avx512", "neon"; NULL: the best there is */
};

/* Weights per second, of all threads together. As a weight unpacked is a byte, these are also bytes
 * per second, and can be compared with memcpy's. */
struct bitconv_pack_rate {
    const char *name;       /* static */
    char misfit[256];       /* why the pack cannot hold the matrix; then all numbers are 0 */
    double bits_per_weight; /* scale and header included */
    double pack;            /* trits (a byte each) to packed bytes, scale included */
    double unpack;          /* and back */
    double gemv;            /* packed rows times one vector of int8 activations */
};

struct bitconv_pack_bench {
    const char *cpu; /* the row of kernels that ran; static */
    unsigned n_threads, repetitions;
    uint64_t rows, cols;
    double zeros;
    double memcpy_rate; /* bytes per second, of copies of the unpacked trits in the same run */
    struct bitconv_pack_rate *rates;
    size_t n_rates;
};

/* Measures in turns: a copy and each operation of every pack, then again. What was unpacked and
 * multiplied is compared with the trits (BITCONV_E_BUG where it differs). Needs about four bytes a
 * weight and thread. *out is to be freed with bitconv_pack_bench_free. */
BITCONV_API enum bitconv_status
bitconv_bench_packs(const struct bitconv_bench_packs_options *options,
                    const struct bitconv_sink *sink, struct bitconv_pack_bench **out,
                    struct bitconv_error *err);
BITCONV_API void bitconv_pack_bench_free(struct bitconv_pack_bench *bench);

#ifdef __cplusplus
}
#endif
#endif
