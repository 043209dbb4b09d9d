/* SPDX-License-Identifier: MIT
 * Looking into a GGUF, a safetensors file or a checkpoint folder: everything `bitconv inspect`
 * shows. */
#ifndef BITCONV_INSPECT_H
#define BITCONV_INSPECT_H

#include "bitconv/gguf.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_inspect_options {
    const char *dialect; /* overrides the dialect decision of a GGUF ("bitnet", ...), or NULL */
    /* Kernel configuration (INI) by which TL1 and TL2 tensors were packed that do not state their
     * tile themselves, or NULL: the published and the largest tiles. */
    const char *kernel_config;
    /* "64" for I2_S as AArch64 builds of bitnet.cpp pack it, where the file does not say; NULL: 128. */
    const char *i2s_layout;
    const char *tensor; /* decode values of the tensor of this name, or NULL */
    uint64_t head;      /* how many of its values; 0: all */
    bool stats;         /* fill bitconv_inspected_tensor.stats: reads every tensor */
    bool hash;          /* fill the digests and fingerprints: reads every tensor */
    unsigned n_threads; /* 0: online processors */
    const char *cpu;    /* "scalar", "avx2", "avx512", "neon"; NULL: best */
};

enum bitconv_container {
    BITCONV_CONTAINER_GGUF,
    BITCONV_CONTAINER_SAFETENSORS,
    BITCONV_CONTAINER_CHECKPOINT /* a folder: config.json and its weight files */
};
/* "gguf", "safetensors", "checkpoint". */
BITCONV_API const char *bitconv_container_name(enum bitconv_container container);

/* One metadata entry: a key of a GGUF, a pair of a safetensors file's __metadata__ (STRING), or a
 * leaf of config.json ("rope_scaling.factor"; numbers as INT64 or FLOAT64, JSON null as an empty
 * STRING). */
struct bitconv_inspected_key {
    const char *name; /* NUL-terminated; may hold any other byte */
    size_t name_len;
    const char *type; /* "UINT32", "STRING", "ARRAY[STRING]", ... */
    struct bitconv_gguf_value value;
};

/* Statistics of one tensor. What was computed depends on `kind`. */
enum bitconv_stats_kind {
    BITCONV_STATS_NONE,    /* not asked for, or a type whose values are not decoded */
    BITCONV_STATS_TERNARY, /* minus, zero, plus, illegal, zeros, entropy.., sizes, scale */
    BITCONV_STATS_NUMBERS  /* zero, nonfinite, zeros, min .. outliers */
};
/* What a ternary tensor would take in a pack. */
struct bitconv_pack_size {
    const char *pack;
    uint64_t bytes; /* 0: the pack cannot hold it */
};
struct bitconv_tensor_stats {
    enum bitconv_stats_kind kind;
    uint64_t minus, zero, plus; /* how many values are -1, 0, +1 (numbers: only `zero`) */
    uint64_t illegal;           /* codes that the pack does not define */
    double zeros;               /* share of zeros, 0 to 1; 0 for an empty tensor */
    double entropy;             /* bits per trit of the three-symbol histogram */
    double entropy_bound; /* the same for signs that are equally frequent: a function of zeros */
    const struct bitconv_pack_size *sizes; /* by pack, each of `n_sizes`; NULL unless in a pack */
    size_t n_sizes;
    float scale;        /* of slice 0; NaN where blocks have several */
    bool one_code;      /* every trit is the same one (as in a zero-filled hole) */
    uint64_t nonfinite; /* NaN and Inf; the numbers below leave them out */
    double min, max, mean, stddev;
    uint64_t outliers; /* values further than 6 standard deviations from the mean */
};

struct bitconv_inspected_tensor {
    const char *name; /* NUL-terminated; may hold any other byte */
    size_t name_len;
    const char *type; /* GGUF type name in the dialect ("I2_S", "type 142"), or safetensors dtype */
    int64_t type_id;  /* GGUF type id; -1 for safetensors */
    uint32_t n_dims;
    /* ggml order (columns first) whatever the container; of BITCOS and T5 payloads the shape that
     * their header gives, not that of the bytes */
    uint64_t ne[BITCONV_GGUF_MAX_DIMS];
    uint64_t n_elements;
    uint64_t offset; /* within the data section of its file */
    uint64_t size;   /* bytes of the values; of the span where the type's size is not known */
    double bits_per_weight; /* 8 * size / n_elements; 0 for an empty tensor */
    const char *pack;       /* ternary pack ("i2_s", "tl1", ...) or NULL */
    const char *file;       /* path of the file that holds it (a shard) */
    struct bitconv_tensor_stats stats;
    char fingerprint[33]; /* 32 hex digits, "" when not ternary or not asked for */
    char xxh3[33];        /* XXH3-128 of the `size` bytes, "" when not asked for */
};

/* Tensors by type, the type with the most bytes first. */
struct bitconv_type_total {
    const char *type;
    uint64_t n_tensors, parameters, bytes;
};

/* The model behind the container. Strings are NULL and numbers 0 where nothing says. */
struct bitconv_model_summary {
    const char *architecture, *name, *quantization, *rope_scaling, *hidden_act, *pooling;
    uint64_t hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, vocab_size,
        context_length, experts, experts_used, sliding_window;
    double rope_theta;
};

/* The first values of one tensor in flat order (row by row), decoded. Ternary packs with a scale
 * per tensor or slice are read through the pack's independent reader and multiplied by it; a code
 * that the pack does not define is NaN. Blocks of quantized types are decoded to float32 as
 * formats/dequant.md says, and multiplied by the scales that a tensor beside them holds
 * (convert's scale_tensor): the values that a runtime computes with. */
struct bitconv_inspected_values {
    size_t tensor;            /* index into tensors */
    uint64_t n;               /* values decoded */
    uint64_t n_total;         /* values the tensor holds */
    uint64_t cols;            /* values of a row */
    const double *reals;      /* n values: exact for every type but 64-bit integers */
    const int64_t *integers;  /* n values for integer types, else NULL; U64 as its bit pattern */
    bool is_unsigned;         /* integers hold uint64_t bit patterns */
    bool is_ternary;          /* trits times scales of the tensor or its slices */
    const char *scale_tensor; /* blocks times the scales in the tensor of this name, or NULL */
    float scale;              /* of slice 0 in either of these cases, else 0 */
};

struct bitconv_inspection {
    const char *file; /* the path as given */
    enum bitconv_container container;
    uint64_t file_size; /* bytes of all its weight files */
    uint32_t n_files;   /* shards */

    /* GGUF only, else 0 and NULL. */
    uint32_t version;
    uint64_t alignment;
    uint64_t data_offset;
    const char *dialect, *dialect_evidence;

    struct bitconv_model_summary model;
    struct bitconv_inspected_key *keys;
    size_t n_keys;
    struct bitconv_inspected_tensor *tensors; /* file order */
    size_t n_tensors;
    struct bitconv_type_total *types;
    size_t n_types;
    uint64_t parameters;         /* elements of all tensors */
    const char *const *warnings; /* complete sentences without a final full stop */
    size_t n_warnings;
    char fingerprint[33]; /* of the model; "" when not asked for or nothing is ternary */
    const struct bitconv_inspected_values *values; /* NULL unless options.tensor asked for them */
    void *internal;
};

/* Opens what `path` names and describes it. Types that cannot be decoded are listed all the same;
 * faults that leave the container readable become warnings. Fails on what cannot be read at all, on
 * an unknown dialect or cpu name, and when options.tensor names no tensor or one of a type that is
 * not known or cannot be decoded. The caller releases *out with bitconv_inspection_free. */
BITCONV_API enum bitconv_status bitconv_inspect(const char *path,
                                                const struct bitconv_inspect_options *options,
                                                const struct bitconv_sink *sink,
                                                struct bitconv_inspection **out,
                                                struct bitconv_error *err);
BITCONV_API void bitconv_inspection_free(struct bitconv_inspection *inspection);

#ifdef __cplusplus
}
#endif
#endif
