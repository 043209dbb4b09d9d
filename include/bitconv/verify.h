/* SPDX-License-Identifier: MIT
 * The proofs: what a GGUF (or safetensors) file holds, and that it is what the checkpoint says. */
#ifndef BITCONV_VERIFY_H
#define BITCONV_VERIFY_H

#include "bitconv/convert.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bitconv_verify_options {
    const char *source;  /* checkpoint folder, or NULL; a GGUF only, as is forward: BITCONV_E_ARG */
    const char *against; /* manifest to compare with, or NULL */
    const char *dialect; /* overrides the dialect decision, or NULL */
    /* Kernel configuration (INI) by which TL1 and TL2 tensors were packed that do not state their
     * tile themselves, or NULL: the published and the largest tiles. */
    const char *kernel_config;
    /* "64" for I2_S as AArch64 builds of bitnet.cpp pack it, where the file does not say; NULL: 128. */
    const char *i2s_layout;
    bool lenient; /* code 3 of I2_S counts as 0, with a warning */
    unsigned n_threads;
    const char *cpu;
    /* With source: what convert was told where that was not the default (target, quant, pre, meta, ...),
     * so that the checkpoint is read the same way. NULL: nothing. What it writes and how is ignored. */
    const struct bitconv_convert_options *conversion;
    /* Run the model too: the proofs "forward", "kernels" and, with source, "unquantized". Takes as long
     * as computing the tokens two to six times; memory beside the mapped files: keys and values of all
     * tokens (4 bytes * layers * tokens * their width, for one or two runs at a time) and the
     * activations of at most 128 tokens (all, where the model attends in both directions). */
    bool forward;
    /* What is run: ids, or a text for the file's own tokenizer; neither: a fixed sentence (fixed ids
     * where the file has no tokenizer), repeated until it is longer than sliding windows of up to 632
     * tokens. */
    const int32_t *tokens;
    size_t n_tokens;
    const char *prompt;
    /* "unquantized" fails where the largest absolute difference is above the tolerance. */
    bool has_tolerance;
    double tolerance;
};

enum bitconv_verdict { BITCONV_PASSED, BITCONV_FAILED, BITCONV_NOT_RUN };

/* One proof: what it covered, or why it was not run. */
struct bitconv_proof {
    const char *name; /* "structure", "metadata", "packs", "fingerprints", "floats", "source",
                         "source-metadata", "manifest", "forward", "kernels", "unquantized": always
                         all of them, in this order */
    enum bitconv_verdict verdict;
    const char *detail; /* one sentence: what was proven, the first difference, or why not run */
    /* Tensors; keys for source-metadata, intermediate results for forward, tokens for unquantized. */
    uint64_t checked, skipped;
};

struct bitconv_verified_tensor {
    const char *name, *type, *pack; /* pack NULL when not ternary */
    bool ok;
    uint32_t n_dims;
    uint64_t ne
        [BITCONV_GGUF_MAX_DIMS]; /* ggml order; of BITCOS and T5 payloads the shape of what they hold */
    uint64_t parameters, size; /* values; bytes */
    float scale;               /* NaN where blocks have several */
    /* Where it stands: "tensor" (in the tensor itself), "blocks" (one value in all of them),
     * "differing blocks", "scale tensor" (beside it); NULL when not ternary. */
    const char *scale_form;
    double zeros;
    char fingerprint[33]; /* "" when not ternary, or when blocks have several scales */
    char xxh3[33];        /* XXH3-128 of the tensor's bytes */
    const char *problem;  /* first difference, NULL when ok */
};

/* How far the file's results (float activations) are from those of the checkpoint as it is stored, in
 * float32 and without making weights ternary. */
struct bitconv_distance {
    bool measured;  /* else everything else is 0 */
    bool embedding; /* of pooled vectors of unit length, else of the logits of all tokens */
    uint64_t n_tokens;
    double max_difference; /* absolute */
    double cosine;         /* over all values together */
    double divergence;     /* logits: Kullback-Leibler divergence of the distribution behind the
                                   * last token from the checkpoint's, in nats */
    uint64_t n_same_top1, n_top1; /* logits: tokens whose largest one is the same, of how many */
};

struct bitconv_verification {
    bool ok; /* no proof failed */
    struct bitconv_proof *proofs;
    size_t n_proofs;
    struct bitconv_verified_tensor *tensors;
    size_t n_tensors;
    char fingerprint[33];
    struct bitconv_distance distance; /* the proof "unquantized" */
    void *internal;
};

/* Runs every proof that applies, on a GGUF (any file of a split set), a safetensors file or a checkpoint
 * folder. BITCONV_OK: the result is complete and says ok or not; every single difference went to the sink as
 * a FINDING, everything that may surprise as a WARNING. An input that cannot be read at all fails
 * instead; with `source` the message then says which tensor info is damaged, where that can be told. The
 * caller releases *out with bitconv_verification_free. */
BITCONV_API enum bitconv_status bitconv_verify(const char *path,
                                               const struct bitconv_verify_options *options,
                                               const struct bitconv_sink *sink,
                                               struct bitconv_verification **out,
                                               struct bitconv_error *err);
BITCONV_API void bitconv_verification_free(struct bitconv_verification *verification);
/* Whether a manifest may be written there, for callers that want to know before the proofs. Refuses
 * (BITCONV_E_ARG) a path that holds a file already, with `force` one that holds anything but an earlier
 * manifest or nothing: neither the verified file nor a part of its checkpoint may get lost that way. */
BITCONV_API enum bitconv_status bitconv_manifest_check_target(const char *path, bool force,
                                                              struct bitconv_error *err);
/* Writes a manifest (JSON: file, size, metadata digest, tensors with type, shape, xxh3, fingerprint). Where
 * bitconv_manifest_check_target refuses, it does too. */
BITCONV_API enum bitconv_status bitconv_manifest_write(const struct bitconv_verification *v,
                                                       const char *path, bool force,
                                                       struct bitconv_error *err);

#ifdef __cplusplus
}
#endif
#endif
