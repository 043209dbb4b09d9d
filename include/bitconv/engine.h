/* SPDX-License-Identifier: MIT
 * Reference forward passes: runs a model from a GGUF or from a checkpoint folder. Made for proofs,
 * so equal weights give equal results bit for bit, whatever they are stored as, on any number of
 * threads and with any instruction set. */
#ifndef BITCONV_ENGINE_H
#define BITCONV_ENGINE_H

#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with every intermediate result, in order of computation, on the thread that runs. `name` is
 * the tensor that gave it ("blk.3.attn_q", "blk.3.attn_norm"), or what it is: "embedding", "blk.3.attn"
 * (the heads' outputs), "blk.3.ffn_in" (what the feed-forward block reads), "blk.3.ffn_gated"
 * (act(gate) * up), "blk.3.ffn_act" (what ffn_down reads), "blk.3.ffn_experts" (their sum),
 * "blk.3.out", "final_norm", "logits".
 * `values` has n_tokens rows of `width` floats and is valid during the call. A status other than
 * BITCONV_OK stops the run. */
typedef enum bitconv_status bitconv_observe_fn(void *user, const char *name, const float *values,
                                               size_t n_tokens, size_t width,
                                               struct bitconv_error *err);

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_engine_options {
    unsigned n_threads; /* 0: online processors */
    const char *cpu;    /* "scalar", "avx2", "avx512", "neon"; NULL: best */
    /* "float" (default): activations are not quantized. "int8": those that ternary weights multiply
     * are, as the deployed runtimes do (a = 127 / max|x| per token). */
    const char *mode;
    uint32_t n_ctx; /* tokens of a session; 0: the model's, at most 4096 */
    bool check;     /* look for NaN and infinities in every intermediate result: the first one ends
                      * the run with BITCONV_E_MISMATCH and is named */
    bool
        as_stored; /* checkpoints: linear weights as stored, not as the runtime makes them ternary */
    bool as_ternary; /* checkpoints: linear weights made ternary as for a file of packs */
    const char *kernel_config, *i2s_layout; /* GGUF: as for verify */
    bitconv_observe_fn *observe;
    void *user; /* handed to observe */
};

/* What there is to know about an open model. Strings live as long as the engine. */
struct bitconv_engine_info {
    const char *path, *family, *mode, *cpu;
    uint32_t n_embd, n_layers, n_vocab, n_ff;
    uint32_t n_ctx;       /* of sessions */
    uint32_t n_ctx_model; /* what the model states */
    unsigned n_threads;
    bool causal;                    /* else the whole text must be given in one run */
    int pooling;                    /* 0 none, 1 mean, 2 cls, 3 last; -1: no embedding model */
    int64_t bos_id, eos_id, pad_id; /* -1: not stated */
    uint64_t weight_bytes; /* stored bytes of all matrices that one token reads (of experts: those
                            * that are used); 0 for checkpoints */
};

struct bitconv_engine;

/* Opens a GGUF, or the checkpoint in a folder. The file stays mapped; weights are used in place.
 * Fails as reading the container or the checkpoint does, and where a tensor is missing or has another
 * shape, by name. */
BITCONV_API enum bitconv_status bitconv_engine_open(const char *path,
                                                    const struct bitconv_engine_options *options,
                                                    const struct bitconv_sink *sink,
                                                    struct bitconv_engine **out,
                                                    struct bitconv_error *err);
BITCONV_API void bitconv_engine_close(struct bitconv_engine *engine); /* NULL is fine */
BITCONV_API void bitconv_engine_info(const struct bitconv_engine *engine,
                                     struct bitconv_engine_info *out);

/* One text and its KV cache: 4 * layers * n_ctx * (key + value width) bytes. Sessions of an engine
 * must not run at the same time (they share its threads); close them before the engine. */
struct bitconv_session;
BITCONV_API enum bitconv_status bitconv_session_new(struct bitconv_engine *engine,
                                                    struct bitconv_session **out,
                                                    struct bitconv_error *err);
BITCONV_API void bitconv_session_free(struct bitconv_session *session); /* NULL is fine */
/* Forgets the text. */
BITCONV_API void bitconv_session_reset(struct bitconv_session *session);
/* Tokens so far. */
BITCONV_API uint64_t bitconv_session_length(const struct bitconv_session *session);

enum bitconv_logits { BITCONV_LOGITS_NONE, BITCONV_LOGITS_LAST, BITCONV_LOGITS_ALL };

/* What a run is to give, and what it gave. Results belong to the session and are valid until its
 * next call; they are the same whether tokens come one by one or together. */
struct bitconv_run {
    enum bitconv_logits want_logits;
    bool want_hidden;    /* behind the final norm */
    bool want_pre_norm;  /* in front of it */
    const float *logits; /* 1 or n rows of n_vocab, behind the final soft cap; NULL: not wanted */
    const float *hidden; /* n rows of n_embd */
    const float *pre_norm;
};

/* Appends n > 0 tokens to the text. ARG: an id outside of the vocabulary, or a second run of a model
 * that attends in both directions; LIMIT: more tokens than n_ctx. After a failure the session is as
 * before, but for models with short convolutions, which must be reset. */
BITCONV_API enum bitconv_status bitconv_session_run(struct bitconv_session *session,
                                                    const int32_t *tokens, size_t n,
                                                    struct bitconv_run *run,
                                                    struct bitconv_error *err);

/* The embedding of a text: resets the session, runs it, pools the hidden states behind the final norm
 * and normalises. `pooling` as in struct bitconv_engine_info, -1: the model's own (mean where it
 * states none). `normalize`: -1 none, 0 largest magnitude to 32760, 1 the sum of magnitudes, 2
 * Euclidean, p > 2 the p-norm. out: n_embd values; with pooling 0 n rows of them. */
BITCONV_API enum bitconv_status bitconv_session_embed(struct bitconv_session *session,
                                                      const int32_t *tokens, size_t n, int pooling,
                                                      int normalize, float *out,
                                                      struct bitconv_error *err);

#ifdef __cplusplus
}
#endif
#endif
