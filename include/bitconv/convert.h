/* SPDX-License-Identifier: MIT
 * Checkpoint folder -> GGUF. */
#ifndef BITCONV_CONVERT_H
#define BITCONV_CONVERT_H

#include "bitconv/gguf.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_convert_options {
    /* "f32", "f16", "bf16", "q8_0", a pack: "i2_s", "tl1", ..., or "auto": per tensor the smallest
     * of auto_packs (required) */
    const char *outtype;
    const char *auto_packs;    /* for outtype "auto": "bitcos,t5" unless set */
    const char *outfile;       /* NULL: DIR/NAME-T.gguf */
    const char *target;        /* "auto", "bitnet", "llama.cpp" */
    const char *dialect;       /* "bitnet" or "bitnet-rebased" */
    const char *arch_name;     /* general.architecture where readers differ */
    const char *name;          /* general.name */
    const char *pre;           /* tokenizer.ggml.pre */
    const char *chat_template; /* path of a template file */
    const char *quant;         /* "auto", "absmean", "baked", "block" (tq1_0, tq2_0, q2_0, q1_0) */
    const char *on_misfit;     /* "fail", or a float type for tensors that do not fit the pack */
    const char *embd_type;     /* type of token_embd */
    const char *output_type;   /* type of output */
    const char *scale_convention; /* "auto", "multiply", "divide" */
    const char *i2s_layout;       /* "128" or "64" */
    const char *kernel_config;    /* path of a kernel configuration (INI) for tl1 and tl2 */
    const char *quantize_regex;   /* tensors to pack as well */
    const char *keep_regex;       /* tensors to leave float */
    const char *const *meta;      /* n_meta strings KEY=TYPE:VALUE */
    size_t n_meta;
    uint64_t split_max_size; /* bytes; 0: one file */
    bool trim_vocab;
    bool allow_nonfinite_zero;
    /* tq1_0, tq2_0, q2_0, q1_0: block scales 1.0, and each tensor's exact scale in an F32 tensor
     * NAME.scale beside NAME.weight (one value; of stacks of experts one per slice). */
    bool scale_tensor;
    bool plain;         /* no bitconv.* metadata */
    bool force;         /* overwrite */
    bool dry_run;       /* plan only: nothing is written */
    bool vocab_only;    /* metadata and tokenizer, no tensors */
    unsigned n_threads; /* 0: online processors */
    const char *cpu;    /* "scalar", "avx2", "avx512", "neon"; NULL: best */
};

/* One tensor of the output (and of the plan). */
struct bitconv_converted_tensor {
    const char *name, *source; /* GGUF name; HF name (the first of a stack) */
    const char *type;          /* GGUF type name; of bitcos and t5 I8 */
    const char *pack;          /* ternary pack or NULL */
    const char *how;           /* how the trits were obtained, or NULL */
    uint32_t n_dims;
    uint64_t ne[4];
    uint64_t parameters, size;
    double zeros;          /* share of zero trits; -1: not ternary */
    double entropy_bound;  /* bits a weight that no lossless pack goes below at that share; -1 */
    float scale;           /* the effective multiplier (slice 0); 0 where blocks have several */
    float stored_scale;    /* as in the checkpoint; 0 when computed */
    double relative_error; /* |W - trit*scale| / |W| (Frobenius), 0 when exact; -1: not ternary */
    /* What rounding the scale loses, |stored - scale| / scale, the largest of the slices: to float16
     * in the blocks of packs, and as the magnitude of all weights in F16, BF16 and Q8_0. 0 when
     * nothing, and wherever the scale is not rounded. */
    double scale_error;
    char fingerprint[33];   /* "" when not ternary, or when its blocks have several scales */
    bool reference_differs; /* a reference converter would write something else here */
    bool misfit;            /* stored as --on-misfit's type */
};

struct bitconv_conversion {
    const char *output, *outtype, *target, *architecture;
    struct bitconv_converted_tensor *tensors;
    size_t n_tensors;
    uint64_t file_size;
    uint64_t peak_memory;   /* estimate of anonymous memory, bytes (without the tokenizer's JSON) */
    uint64_t tensor_memory; /* of which for the largest packed tensor; 0: all are streamed */
    uint32_t n_files;
    char fingerprint[33]; /* of the model; "" when nothing is ternary or a tensor has none */
    void *internal;
};

/* Converts. The output appears under its name only when it is complete. Warnings and findings go to
 * the sink. The caller releases *out with bitconv_conversion_free, also after a dry run. */
BITCONV_API enum bitconv_status bitconv_convert(const char *dir,
                                                const struct bitconv_convert_options *options,
                                                const struct bitconv_sink *sink,
                                                struct bitconv_conversion **out,
                                                struct bitconv_error *err);
BITCONV_API void bitconv_conversion_free(struct bitconv_conversion *conversion);

#ifdef __cplusplus
}
#endif
#endif
