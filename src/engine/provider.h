/* SPDX-License-Identifier: MIT
 * Where the engine gets its weights from: one small interface over a GGUF (the file path) and over a
 * checkpoint (the source path). The graph asks by GGUF name and cannot tell which it has, so equal
 * weights give equal results bit for bit. */
#ifndef BC_ENGINE_PROVIDER_H
#define BC_ENGINE_PROVIDER_H

#include "base/pool.h"
#include "formats/block_pack.h"
#include "model/model.h"
#include "model/packed.h"
#include "model/weights.h"

struct bc_provider;

/* A tensor of a model, found by bc_provider_find. Strings, scales and bytes belong to the provider
 * and live as long as it does. ggml's order: cols = ne[0], rows = ne[1], slices = ne[2]. */
struct bc_tensor {
    const struct bc_provider *provider;
    const char *name;
    uint32_t n_dims;
    uint64_t cols, rows, slices;
    /* Trits times a scale: then the integer path may be taken. Else floats. */
    bool ternary;
    const float *scales; /* ternary: one, or one per slice */
    uint32_t n_scales;
    /* Ternary and in a pack: the bytes in place, for the pack's own kernels; format NULL: trits come
     * through bc_tensor_trits alone. */
    struct bc_packed packed;
    /* Not ternary because its blocks have several scales: the pack, for the integer path; or NULL. */
    const struct bc_block_pack *blocks;
    /* Floats that are rows of little-endian float16, in place; or NULL. */
    const uint8_t *halves;
    const void *impl; /* the provider's own */
};

/* One implementation. Rows are counted over all slices: [0, rows * slices). All functions but find
 * may be called from several threads at once. */
struct bc_provider_ops {
    /* Looks a tensor up by its GGUF name; *found is false when there is none. Fills *out but for
     * provider. */
    enum bitconv_status (*find)(struct bc_provider *p, const char *name, struct bc_tensor *out,
                                bool *found, struct bitconv_error *err);
    /* Values of rows [row, row + n_rows) of a tensor that is not ternary. */
    enum bitconv_status (*floats)(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                  float *dst, struct bitconv_error *err);
    /* Trits of rows [row, row + n_rows) of a ternary one. Fails on codes without a meaning. */
    enum bitconv_status (*trits)(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                 int8_t *dst, struct bitconv_error *err);
    /* Names in the order of the model, for telling which nothing asked for; NULL behind the last. */
    const char *(*name_at)(const struct bc_provider *p, size_t index);
    void (*free)(struct bc_provider *p);
};

/* What every implementation begins with. */
struct bc_provider {
    const struct bc_provider_ops *ops;
    const char *path; /* of the file or folder, for messages */
    const struct bc_kernels *kernels;
    struct bc_pool *pool; /* of the pass over a tensor that deciding about trits takes; or NULL */
    const struct bitconv_sink *sink;
    struct bc_arena arena;
};

/* The scale of row `row` (counted over all slices) of a ternary tensor. */
float bc_tensor_scale(const struct bc_tensor *t, uint64_t row);
/* Number of rows, counted over all slices. */
uint64_t bc_tensor_rows(const struct bc_tensor *t);

/* Looks a tensor up; *found tells whether there is one. */
enum bitconv_status bc_provider_find(struct bc_provider *p, const char *name, struct bc_tensor *out,
                                     bool *found, struct bitconv_error *err);
/* Trits of rows of a ternary tensor into n_rows * cols bytes. */
enum bitconv_status bc_tensor_trits(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                    int8_t *dst, struct bitconv_error *err);
/* float32 values of rows of any tensor into n_rows * cols floats. Ternary ones: trit * scale, zeros
 * +0, whatever the pack; they want `scratch`, n_rows * cols bytes (others: may be NULL). */
enum bitconv_status bc_tensor_floats(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                     int8_t *scratch, float *dst, struct bitconv_error *err);
void bc_provider_free(struct bc_provider *p); /* NULL is fine */

/* The file path: `file` and `stated` (what the file says about its packs) are borrowed. Packed
 * tensors are used in place. Block packs are ternary where a slice has one scale, with the tensor of
 * scales multiplied in where there is one; block packs with several scales, and all other types, are
 * floats by formats/dequant.h. */
enum bitconv_status bc_provider_gguf(const struct bitconv_gguf *file,
                                     const struct bc_stated *stated,
                                     const struct bc_kernels *kernels, struct bc_provider **out,
                                     struct bitconv_error *err);

/* How a file carries a float tensor: what that costs in precision. */
enum bc_rounding { BC_ROUND_NONE, BC_ROUND_F16, BC_ROUND_BF16, BC_ROUND_Q8_0 };

/* How the source path is to read a weight of the checkpoint. */
struct bc_carry {
    bool ternary;              /* linear weights: trit * scale instead of the stored values */
    bool packed;               /* ... as trits and scale (integer path); else as floats */
    bool scale_f16;            /* ... whose scale a file of block packs has rounded to float16 */
    enum bc_rounding rounding; /* of the values of what is not `packed` */
    /* Float values quantized by this pack, each block by its own largest magnitude; or NULL. */
    const struct bc_block_pack *blocks;
};

/* Asked once for each tensor. */
typedef struct bc_carry bc_carry_fn(const void *user, const struct bc_model *model,
                                    const struct bc_weight *weight);

/* As the model's own runtime has it: linear weights as trits and scale where it multiplies by such,
 * nothing rounded. `user` is not used. */
bc_carry_fn bc_carry_as_runtime;
/* Linear weights as stored, but for packed ones, which have no other values than trit * scale. */
bc_carry_fn bc_carry_as_stored;
/* As `user`, a struct bc_carry_file, carries the tensor of that name. */
bc_carry_fn bc_carry_as_file;
struct bc_carry_file {
    const struct bitconv_gguf *file;
    const struct bc_stated *stated;
    bool has_packs; /* then its misfits hold trit * scale, as the packs beside them */
};
/* Both are borrowed. Looks at the types of all tensors once. */
struct bc_carry_file bc_carry_file_of(const struct bitconv_gguf *file,
                                      const struct bc_stated *stated);

/* The source path over a loaded checkpoint; `model`, `user` and `pool` are borrowed. `options` says
 * how trits are decided. What there is to say about a weight goes to the sink when it is found. */
enum bitconv_status bc_provider_source(const struct bc_model *model,
                                       const struct bc_weight_options *options, bc_carry_fn *carry,
                                       const void *user, const struct bc_kernels *kernels,
                                       struct bc_pool *pool, const struct bitconv_sink *sink,
                                       struct bc_provider **out, struct bitconv_error *err);

#endif
