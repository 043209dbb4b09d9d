/* SPDX-License-Identifier: MIT
 * Synthetic models: checkpoint folders and GGUF files of any family and size. */
#ifndef BITCONV_DUMMY_H
#define BITCONV_DUMMY_H

#include "bitconv/convert.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the linear weights of a checkpoint are stored. */
enum bitconv_dummy_form {
    BITCONV_DUMMY_MASTERS, /* floats that absmean makes ternary */
    BITCONV_DUMMY_BAKED,   /* trit * scale */
    BITCONV_DUMMY_PACKED   /* uint8, four trits to a byte, with weight_scale */
};

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_dummy_options {
    const char *arch; /* a name that bitconv_dummy_arch lists (required) */
    /* Parameters: "125M", "1.5B", "700K", or a published shape ("2B-4T"). May be left out when
     * layers and hidden are given. */
    const char *size;
    uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, experts; /* 0: by size */
    const char *outfile; /* the folder, or with outtype the GGUF (required) */
    const char *name;    /* of the model: the last part of outfile, without .gguf, unless set */
    enum bitconv_dummy_form form;
    const char *dtype; /* "bf16" (default), "f16", "f32": of all tensors but packed weights */
    bool has_zeros;
    double zeros;            /* share of zero trits, 0 to 0.95; 1/3 unless has_zeros */
    uint64_t seed;           /* the same seed gives the same bytes */
    uint32_t shards;         /* safetensors files; 0: as max_shard_size says */
    uint64_t max_shard_size; /* bytes; 0: 5 GiB */
    /* Straight to GGUF: what converting the PACKED folder of the same name with these options would
     * give, byte for byte. NULL: a checkpoint folder. Of `conversion` these are read: auto_packs,
     * target, dialect, on_misfit, embd_type, output_type, i2s_layout, kernel_config, split_max_size,
     * scale_tensor, plain. */
    const char *outtype;
    struct bitconv_convert_options conversion;
    bool force;         /* replace what is there */
    bool dry_run;       /* plan only: nothing is written, no value is made */
    unsigned n_threads; /* 0: online processors */
    const char *cpu;    /* "scalar", "avx2", "avx512", "neon"; NULL: best */
};

/* A tensor of the output. */
struct bitconv_dummy_tensor {
    const char *name, *type; /* "BF16", "U8", ...; of GGUFs the GGUF type */
    uint32_t n_dims;
    uint64_t shape[4]; /* order of the file: outermost first in checkpoints, ggml's in GGUFs */
    uint64_t size;     /* bytes */
};

/* What was made, or would be. */
struct bitconv_dummy {
    const char *output, *arch, *class_name, *name;
    const char *outtype; /* NULL: a folder */
    const char *config;  /* text of config.json */
    enum bitconv_dummy_form form;
    uint64_t parameters; /* values of all tensors; scales do not count */
    uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, experts, context;
    bool tied;
    double zeros;
    uint64_t seed;
    struct bitconv_dummy_tensor *tensors; /* in file order */
    size_t n_tensors;
    uint32_t n_files;      /* with tensors */
    uint64_t size;         /* bytes of those files; of payload packs in a dry run as expected */
    uint64_t peak_memory;  /* estimate of anonymous memory, bytes */
    bool size_is_expected; /* a dry run of a pack whose size depends on the values */
    void *internal;
};

/* Names of the kinds of models: NULL behind the last. */
BITCONV_API const char *bitconv_dummy_arch(size_t index);

/* Makes a model up. The output appears under its name only when it is complete. The caller releases
 * *out with bitconv_dummy_free. */
BITCONV_API enum bitconv_status bitconv_dummy(const struct bitconv_dummy_options *options,
                                              const struct bitconv_sink *sink,
                                              struct bitconv_dummy **out,
                                              struct bitconv_error *err);
BITCONV_API void bitconv_dummy_free(struct bitconv_dummy *dummy);

#ifdef __cplusplus
}
#endif
#endif
