/* SPDX-License-Identifier: MIT
 * Sparse feed-forward blocks: down(act(gate x) * up x) over the neurons that a predictor of low rank
 * expects to be active (Liu et al. 2023; Song et al. 2023). Calibrating fits the predictor to the
 * magnitudes |act(gate x) * up x| of sample texts; every result comes with what it costs against the
 * dense model. For dense gated blocks: mixtures of experts and blocks without a gate are refused. */
#ifndef BITCONV_SPARSE_H
#define BITCONV_SPARSE_H

#include "bitconv/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which neurons are computed; zero-initialise: all zero means the default. At most one is set. */
struct bitconv_sparse_rule {
    uint32_t top_k;     /* the largest scores of every token */
    double share;       /* the same, as a share of all: k = ceil(share * n_ff), at least 1 */
    bool has_threshold; /* scores not below `threshold` */
    double threshold;
};

struct bitconv_sparse_text {
    const int32_t *tokens;
    size_t n; /* at least 1 */
};

/* Zero-initialise. Strings and arrays are borrowed for the call. */
struct bitconv_sparse_options {
    unsigned n_threads;              /* 0: online processors */
    const char *cpu;                 /* as for the engine */
    const char *mode;                /* "float" (default), "int8" */
    struct bitconv_sparse_rule rule; /* calibrate: default share 0.3; run: the predictor's */
    /* ---- calibrate ---- */
    const struct bitconv_sparse_text *texts; /* calibration samples */
    size_t n_texts;
    const struct bitconv_sparse_text *eval; /* held-out texts, for the report */
    size_t n_eval;
    uint32_t rank; /* 0: 32, or the smaller side of the block when that is less */
    double ridge;  /* times the mean square of the inputs; 0: 0.01 */
    uint64_t
        memory; /* bytes for sums over the samples; 0: 2 GiB. Layers that do not fit at once are
                      * fitted in further passes over the texts */
    bool f32;   /* store F32, not F16 */
    const char *outfile;
    bool force; /* replace an existing file */
    /* ---- run ---- */
    const char *predictor;
    struct bitconv_sparse_text prompt;
    size_t n_generate; /* greedy; fewer where the end of the text is generated */
};

/* Sparse against dense, of one layer or of all. All are ratios over the tokens compared. */
struct bitconv_sparse_layer {
    double recall;    /* of the k truly largest magnitudes, those that were active, where k were */
    double mass;      /* share of the sum of magnitudes that active neurons have */
    double sparsity;  /* share of the neurons that were not computed */
    double error;     /* |sparse - dense| / |dense| (Euclidean) of the block's output; the layers in
                      * front are sparse too */
    double explained; /* calibrating: 1 - (|M - X U V|^2 + ridge |U V|^2) / |M|^2 of the samples */
};

struct bitconv_sparse_quality {
    struct bitconv_sparse_layer *layers, total; /* total.error: mean over the layers */
    uint64_t n_tokens;
    double hidden_error; /* relative, behind the final norm */
    double cosine;       /* mean over the tokens, or over the texts of an embedding model */
    bool has_logits;     /* false for embedding models */
    double logits_error; /* relative */
    double top1;         /* share of the tokens with the same most likely next token */
};

/* One token after the other, the same tokens, alternating between dense and sparse. */
struct bitconv_sparse_speed {
    uint64_t n_tokens;
    double dense_seconds, sparse_seconds;
};

struct bitconv_sparse_report {
    const char *family, *fingerprint, *mode;
    uint32_t n_layers, n_embd, n_ff, rank;
    bool by_threshold;
    uint32_t top_k;
    double threshold;
    double ridge;                            /* as for the options */
    uint64_t n_samples;                      /* tokens that the predictor was fitted to */
    struct bitconv_sparse_quality *samples;  /* on the calibration texts; NULL: run */
    struct bitconv_sparse_quality *held_out; /* on eval; run: on prompt and generated text */
    struct bitconv_sparse_speed speed;
    int32_t *generated; /* run */
    size_t n_generated;
    float *embedding; /* run, embedding models: n_embd values, pooled and L2-normalised */
};

/* Fits a predictor to a model (a GGUF, or the folder of a checkpoint) and writes it to outfile. The
 * map from inputs to magnitudes is ridge regression of reduced rank, in double precision; the file is
 * the same for any number of threads. LIMIT where a single layer needs more than options->memory, with
 * the amount. Free the report with bitconv_sparse_report_free. */
BITCONV_API enum bitconv_status
bitconv_sparse_calibrate(const char *path, const struct bitconv_sparse_options *options,
                         const struct bitconv_sink *sink, struct bitconv_sparse_report **out,
                         struct bitconv_error *err);
/* Runs the prompt, and generates, with sparse blocks; then compares with the dense model on the same
 * tokens. ARG where the predictor is for another model. */
BITCONV_API enum bitconv_status bitconv_sparse_run(const char *path,
                                                   const struct bitconv_sparse_options *options,
                                                   const struct bitconv_sink *sink,
                                                   struct bitconv_sparse_report **out,
                                                   struct bitconv_error *err);
BITCONV_API void
bitconv_sparse_report_free(struct bitconv_sparse_report *report); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
