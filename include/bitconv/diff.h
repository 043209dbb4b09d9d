/* SPDX-License-Identifier: MIT
 * Comparing two GGUFs, or two checkpoints or safetensors files: metadata, and tensors by what they
 * decode to. */
#ifndef BITCONV_DIFF_H
#define BITCONV_DIFF_H

#include "bitconv/gguf.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_diff_options {
    const char *dialect; /* overrides the dialect decision of both GGUFs ("bitnet", ...), or NULL */
    /* Kernel configuration (INI) for TL1 and TL2 tensors that do not state their tile, or NULL. */
    const char *kernel_config;
    bool strict; /* what describes the file rather than the model counts as well: keys, types */
    unsigned n_threads; /* 0: online processors */
    const char *cpu;    /* "scalar", "avx2", "avx512", "neon"; NULL: best */
};

enum bitconv_diff_verdict {
    BITCONV_DIFF_SAME,
    BITCONV_DIFF_CHANGED,
    BITCONV_DIFF_ONLY_A,
    BITCONV_DIFF_ONLY_B,
    BITCONV_N_DIFF_VERDICTS
};
/* "same", "changed", "only_a", "only_b". */
BITCONV_API const char *bitconv_diff_verdict_name(enum bitconv_diff_verdict verdict);

/* A metadata key (of a checkpoint: a leaf of config.json, or a whole file beside it, type "FILE")
 * that is not the same in both. */
struct bitconv_diff_key {
    const char *name;
    enum bitconv_diff_verdict verdict;
    /* False for keys that say something of the file and not of what the model computes. GGUF:
     * bitconv.*, split.*, quantize.*, general.* except general.architecture. Checkpoint:
     * transformers_version, _name_or_path, torch_dtype, dtype. safetensors: all of __metadata__. */
    bool counts;
    const char *type_a, *type_b; /* "UINT32", ...; NULL where it is missing */
    /* Short texts of the values, of arrays the first element that differs ("[3] of 5: 1.25");
     * NULL where it is missing. */
    const char *a, *b;
};

/* What a tensor's verdict rests on. */
enum bitconv_diff_basis {
    BITCONV_DIFF_BY_NOTHING,     /* it is in one of them only, or the shapes differ */
    BITCONV_DIFF_BY_BYTES,       /* same type, same bytes; or bytes that cannot be decoded */
    BITCONV_DIFF_BY_FINGERPRINT, /* both are ternary packs with the same fingerprint */
    BITCONV_DIFF_BY_VALUE,       /* every value decoded and compared */
    BITCONV_N_DIFF_BASES
};
/* "none", "bytes", "fingerprint", "value". */
BITCONV_API const char *bitconv_diff_basis_name(enum bitconv_diff_basis basis);

struct bitconv_diff_tensor {
    const char *name;
    enum bitconv_diff_verdict verdict;
    enum bitconv_diff_basis basis;
    const char *type_a, *type_b; /* the ternary pack, else the type; NULL where it is missing */
    uint64_t n_values;           /* of A, or of B where A lacks it */
    /* By value. 0 and -0 are equal, a NaN equals a NaN; a NaN or an infinity against anything else
     * differs by infinity. */
    uint64_t n_different, first_different;     /* index in flat order */
    double max_difference;                     /* largest |a - b| */
    double largest;                            /* largest finite |a| */
    char fingerprint_a[33], fingerprint_b[33]; /* "" unless both are packs with a fingerprint */
    const char *problem;                       /* why the values could not be compared, or NULL */
};

struct bitconv_diff {
    bool equal;                    /* nothing that counts is different */
    const char *a, *b;             /* the paths as given */
    const char *keys_skipped;      /* why the metadata were not compared, or NULL */
    struct bitconv_diff_key *keys; /* those that differ: in the order of A, then those only in B */
    size_t n_keys, n_same_keys;
    struct bitconv_diff_tensor *tensors; /* all: in the order of A, then those only in B */
    size_t n_tensors;
    size_t n_different_keys, n_different_tensors; /* that count */
    void *internal;
};

/* Compares. BITCONV_OK: the result is complete and says equal or not. The scale that stands beside
 * a tensor of blocks with trits (BASE.scale beside BASE.weight) is multiplied in, and is then no
 * tensor of its own where the other file lacks it. Fails when one cannot be read, and with
 * BITCONV_E_ARG for a GGUF against a checkpoint, whose names differ (bitconv_verify compares those).
 * Memory: the metadata, and 256 KiB a thread; tiled packs as in bitconv_verify. The caller releases
 * *out with bitconv_diff_free. */
BITCONV_API enum bitconv_status bitconv_diff(const char *a, const char *b,
                                             const struct bitconv_diff_options *options,
                                             const struct bitconv_sink *sink,
                                             struct bitconv_diff **out, struct bitconv_error *err);
BITCONV_API void bitconv_diff_free(struct bitconv_diff *diff);

#ifdef __cplusplus
}
#endif
#endif
