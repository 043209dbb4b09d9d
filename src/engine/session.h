/* SPDX-License-Identifier: MIT
 * An open model and its sessions, as the parts of the engine see them. The public calls are in
 * bitconv/engine.h; code within the library may also open an engine over a file or a checkpoint that
 * it has open already. */
#ifndef BC_ENGINE_SESSION_H
#define BC_ENGINE_SESSION_H

#include "bitconv/engine.h"
#include "engine/graph.h"

/* The neurons of a feed-forward block that are computed for one token, in place of all (sparse FFN).
 * `x` is what gate and up read (n_embd values). Writes ascending indices below n_ff to `neurons` (room
 * for n_ff) and returns how many. Runs on the thread of the session. */
typedef size_t bc_select_fn(void *user, uint32_t layer, const float *x, uint32_t *neurons);

struct bitconv_engine {
    struct bc_graph *graph;
    struct bc_provider *provider;
    const struct bc_kernels *kernels;
    struct bc_pool *pool;
    bool owns_pool;
    enum bc_mode mode;
    uint32_t n_ctx;
    /* longrope: rotate as contexts on the other side of the original one do. For proofs, which look
     * at the factors that their text does not use. */
    bool other_rotation;
    bool check;
    bitconv_observe_fn *observe;
    void *user;
    bc_select_fn *select; /* dense gated layers only; NULL: all neurons */
    void *select_user;
    bool *expert_ran; /* [layer][expert]: set for those that a token chose; NULL: not asked for */
    uint64_t weight_bytes;
    struct bc_engine_opened *opened; /* what bitconv_engine_open has opened, or NULL */
    struct bc_arena arena;           /* of hyper-parameters read from a file */
};

/* Over an open file (the file path); `file` and `stated` are borrowed. */
enum bitconv_status bc_engine_open_gguf(const struct bitconv_gguf *file,
                                        const struct bc_stated *stated, struct bc_pool *pool,
                                        const struct bitconv_engine_options *options,
                                        const struct bitconv_sink *sink,
                                        struct bitconv_engine **out, struct bitconv_error *err);
/* Over a loaded checkpoint (the source path), carried as `carry` says (engine/provider.h). `model`,
 * `carry_user` and what they point to are borrowed. */
enum bitconv_status
bc_engine_open_model(const struct bc_model *model, const struct bc_weight_options *weights,
                     bc_carry_fn *carry, const void *carry_user, struct bc_pool *pool,
                     const struct bitconv_engine_options *options, const struct bitconv_sink *sink,
                     struct bitconv_engine **out, struct bitconv_error *err);

/* One text. Activations are rows of floats, one row a token of the batch being computed. */
struct bitconv_session {
    struct bitconv_engine *engine;
    const struct bc_graph *g;
    struct bc_compute compute;
    uint64_t n_past; /* tokens in the cache */
    uint64_t n_new;  /* tokens of the batch */
    size_t room;     /* tokens that the buffers below have room for */
    float *x;        /* residual stream, n_embd wide; so are h and y */
    float *h, *y;
    float *q, *heads;       /* queries; outputs of the heads (n_head * head_dim_v) */
    float *fused;           /* q, k and v, or the gates of a convolution, below each other */
    float *gate, *up;       /* n_ff wide (up: twice, where the gate is in it) */
    float *gathered, *part; /* MoE: inputs and outputs of one expert */
    float *router;          /* MoE: n_expert wide */
    float *cosines, *sines; /* rotations: two sets of rope_dims / 2 each, [set][token] */
    float *scores;          /* per thread: a row of n_ctx for each head that reads the same keys */
    size_t scores_size;     /* of a thread */
    float *keys, *values;   /* [layer][n_ctx][width] */
    float *conv_state;      /* [layer][l_cache - 1][n_embd]: the last inputs of convolutions */
    uint32_t *neurons;      /* sparse layers: n_ff */
    float *hidden, *pre_norm, *logits; /* results */
    size_t result_room, logits_room;   /* rows */
};

/* The steps of a layer, each from its input rows to its output rows (n_embd wide, n_new rows). */
enum bitconv_status bc_attention(struct bitconv_session *s, uint32_t layer, const float *h,
                                 float *y, struct bitconv_error *err);
enum bitconv_status bc_short_convolution(struct bitconv_session *s, uint32_t layer, const float *h,
                                         float *y, struct bitconv_error *err);
enum bitconv_status bc_feed_forward(struct bitconv_session *s, uint32_t layer, const float *h,
                                    float *y, struct bitconv_error *err);

/* Shows a result to the observer and looks for NaN and infinities, as the options say. `what` is
 * behind "blk.N.", or the whole name when layer is UINT32_MAX. */
enum bitconv_status bc_session_note(const struct bitconv_session *s, uint32_t layer,
                                    const char *what, const float *values, size_t n_tokens,
                                    size_t width, struct bitconv_error *err);
#define BC_NO_LAYER UINT32_MAX

/* Runs fn(ctx, token, worker) for every token of the batch. */
void bc_for_tokens(const struct bitconv_session *s,
                   void (*fn)(void *ctx, size_t token, unsigned worker), void *ctx);
/* norm over the rows of the batch, `groups` norms to a row (heads). */
void bc_session_norm(const struct bitconv_session *s, const struct bc_norm *norm, size_t groups,
                     const float *x, float *y);

#endif
