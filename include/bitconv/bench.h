/* SPDX-License-Identifier: MIT
 * Measuring: how fast models run on this machine, and ternary packs are packed, unpacked and
 * multiplied. */
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

/* Rates of models. Lists may be NULL: then the defaults stand behind them. A length of 0 leaves that
 * measurement out. */
struct bitconv_bench_models_options {
    const char *const *paths; /* GGUF files or checkpoint folders */
    size_t n_paths;
    const unsigned *prompts; /* tokens of a prompt that is run at once; 128, 512 */
    size_t n_prompts;
    const unsigned *generates; /* tokens that are run one by one, behind nothing; 32 */
    size_t n_generates;
    const unsigned *threads; /* all of it once with each number; the online processors */
    size_t n_threads;
    unsigned repetitions; /* 3 */
    const char *mode;     /* as in struct bitconv_engine_options; "int8" */
    const char *cpu;
};

/* Of the repetitions. */
struct bitconv_measured {
    double mean, deviation; /* deviation of the sample: 0 for one repetition */
    double best;
};

struct bitconv_benched_model {
    const char *path, *family, *mode; /* path borrowed from the options, the others static */
    uint64_t weight_bytes;            /* that one token reads; 0: not known */
};

struct bitconv_model_rate {
    size_t model;   /* index into models */
    size_t threads; /* index into bandwidths */
    bool is_prompt;
    unsigned n_tokens;
    struct bitconv_measured rate; /* tokens per second */
    /* What the mean rate of generation is of the bound by memory, bandwidth / weight_bytes: every
     * token reads all weights once. 0 for prompts, whose tokens share what is read, and where
     * weight_bytes is not known. */
    double bound_share;
};

struct bitconv_read_bandwidth {
    unsigned n_threads;
    struct bitconv_measured bytes_per_second; /* of a buffer far larger than the caches */
};

struct bitconv_model_bench {
    const char *cpu; /* static */
    unsigned repetitions;
    struct bitconv_benched_model *models;
    size_t n_models;
    struct bitconv_read_bandwidth *bandwidths;
    size_t n_bandwidths;
    struct bitconv_model_rate *rates; /* by threads, then models, prompts in front */
    size_t n_rates;
};

/* Measures in turns, so that a busy machine hurts all alike: the read bandwidth, then every
 * measurement of every model, then again. A short run in front brings the weights into memory. *out is
 * to be freed with bitconv_model_bench_free. */
BITCONV_API enum bitconv_status
bitconv_bench_models(const struct bitconv_bench_models_options *options,
                     const struct bitconv_sink *sink, struct bitconv_model_bench **out,
                     struct bitconv_error *err);
BITCONV_API void bitconv_model_bench_free(struct bitconv_model_bench *bench);

#ifdef __cplusplus
}
#endif
#endif
