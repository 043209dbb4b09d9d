/* SPDX-License-Identifier: MIT
 * The values of an output tensor, read from its sources piece by piece: as float32, or as trits and
 * a scale. convert writes from here, verify compares against it. */
#ifndef BC_MODEL_WEIGHTS_H
#define BC_MODEL_WEIGHTS_H

#include "model/model.h"
#include "quant/quantize.h"

/* How the trits of a linear weight were obtained. */
enum bc_how {
    BC_HOW_FLOAT,     /* not ternary: float rows only */
    BC_HOW_ONLINE,    /* absmean */
    BC_HOW_OFFLINE,   /* uint8 or unpacked trits with weight_scale */
    BC_HOW_MAGNITUDE, /* one non-zero magnitude: sign, scale = it */
    BC_HOW_ZERO,      /* all zero: scale 1e-5 */
    BC_HOW_FORCED,    /* --quant absmean on weights that nothing declares ternary */
    BC_HOW_BLOCKS     /* each block by its own largest magnitude: a pack with block scales */
};
/* "absmean", "offline", "magnitude", "all zero", "forced absmean", "by block"; "float" for
 * BC_HOW_FLOAT. */
const char *bc_how_name(enum bc_how how);

/* BLOCK: no tensor is decided as a whole; block packs quantize the stored values themselves. */
enum bc_quant_mode { BC_QUANT_AUTO, BC_QUANT_ABSMEAN, BC_QUANT_BAKED, BC_QUANT_BLOCK };

struct bc_weight_options {
    enum bc_quant_mode mode;
    bool zero_nonfinite; /* --allow-nonfinite zero */
};

/* The decision for one weight. scales: one per slice. */
struct bc_ternary {
    enum bc_how how;
    float *scales;     /* n_scales values, the effective multipliers; owned */
    float *stored;     /* what the checkpoint stores (weight_scale), NULL when computed; owned */
    uint32_t n_scales; /* 1, or n_sources for stacks */
    bool scales_differ;
    float magnitude; /* absmean was applied although slice 0 holds this one magnitude only; else 0
                      */
};

/* Decides trits and scales of a LINEAR weight; reads it once (statistics pass). Refused, by name:
 * not ternary and nothing declares ternary training ("N distinct magnitudes"), NaN/Inf, code 3
 * (offset, row, column), bad weight_scale (zero, negative, NaN, Inf, not one value). Warnings
 * through the sink: already ternary under online training, forced absmean. The caller releases *out
 * (also after a failure, where it is empty). */
enum bitconv_status bc_ternary_decide(const struct bc_model *model, const struct bc_weight *w,
                                      const struct bc_weight_options *options,
                                      const struct bc_kernels *k, struct bc_pool *pool,
                                      const struct bitconv_sink *sink, struct bc_ternary *out,
                                      struct bitconv_error *err);
void bc_ternary_release(struct bc_ternary *t);

/* Whether a weight that bc_ternary_decide refuses as not ternary is so block by block: nothing says
 * that its values are made ternary on load, no scale stands beside it, and every run of `block`
 * values of a row has one non-zero magnitude at most. A pack with block scales holds it as it is.
 * `block` divides the rows. */
bool bc_weight_is_ternary_by_block(const struct bc_model *model, const struct bc_weight *w,
                                   const struct bc_weight_options *options,
                                   const struct bc_kernels *k, uint64_t block);

/* What a run of values loses by becoming trits; sums over any number of calls of bc_weight_trits_at
 * (zero-initialise). Both sums stay 0 where trits are exact (offline, magnitude, all zero). */
struct bc_trit_loss {
    double lost;            /* sum of (w - trit * scale)^2 */
    double total;           /* sum of w^2 */
    bool wants_minus_zeros; /* set by the caller: count them */
    uint64_t n_minus_zero;  /* zero trits of stored weights with the sign bit set: a product in the
                              reference's arithmetic would be -0 */
};

/* Adds to the sums what n weights lose that are stored as `kept`. The order of summation is fixed;
 * n is at most BC_LOSS_VALUES. */
#define BC_LOSS_VALUES 1024
void bc_trit_loss_add(struct bc_trit_loss *loss, const float *values, const float *kept, size_t n);

/* Values [first, first + n) of the flat row-major order of the output tensor (rows permuted, slices
 * one after the other). No allocation: any number of threads may read one weight at once.
 * _trits_at: the decision must be from the same weight; `loss` may be NULL. _f32_at: the stored
 * values widened (offline weights: trit * effective scale), permuted, +1 applied. Non-finite values
 * are handed out as they are unless options->zero_nonfinite. Fails only on codes or scales that
 * bc_ternary_decide would have refused, and when the range leaves the tensor (BUG). */
enum bitconv_status bc_weight_trits_at(const struct bc_model *model, const struct bc_weight *w,
                                       const struct bc_ternary *t,
                                       const struct bc_weight_options *options,
                                       const struct bc_kernels *k, uint64_t first, uint64_t n,
                                       int8_t *dst, struct bc_trit_loss *loss,
                                       struct bitconv_error *err);
enum bitconv_status bc_weight_f32_at(const struct bc_model *model, const struct bc_weight *w,
                                     const struct bc_weight_options *options,
                                     const struct bc_kernels *k, uint64_t first, uint64_t n,
                                     float *dst, struct bitconv_error *err);

/* _trits_at by rows [row, row + n_rows), counted over all slices (0 .. ne[1] * ne[2]); a vector is
 * one row. `dst` has room for n_rows * ne[0] values. */
enum bitconv_status bc_weight_trits(const struct bc_model *model, const struct bc_weight *w,
                                    const struct bc_ternary *t,
                                    const struct bc_weight_options *options,
                                    const struct bc_kernels *k, uint64_t row, uint64_t n_rows,
                                    int8_t *dst, struct bitconv_error *err);

/* Part of a source that is contiguous in the output. */
struct bc_span {
    const struct bc_source *source;
    uint32_t slice;
    uint64_t index; /* of the first value in the source; of its byte when packed */
    unsigned shift; /* packed: position of the code in the byte */
    uint64_t n;
};

/* The span that starts at value `flat` of the output tensor and ends at `end` at the latest. */
struct bc_span bc_weight_span(const struct bc_weight *w, uint64_t flat, uint64_t end);

/* That the sources have exactly the values that the output's shape needs (the mapper has seen to
 * it: BUG otherwise), and that rows to be permuted divide into heads. Before any of the above. */
enum bitconv_status bc_weight_check(const struct bc_weight *w, struct bitconv_error *err);
/* Does the model's runtime multiply by trit * scale? Packed weights have no other values; the BitNet
 * classes, and llama classes that declare online training, quantize at every load; the embedding
 * families multiply what is stored. A float file holds such values too. */
bool bc_weight_is_ternary_at_runtime(const struct bc_model *model, const struct bc_weight *w);
/* Number of values of the output tensor: the product of ne (known not to overflow). */
uint64_t bc_weight_count(const struct bc_weight *w);
/* A tensor's values as a run for quant/quantize.h. */
struct bc_values bc_tensor_values(const struct bitconv_tensor *tensor);
/* The one value of source->scale as stored and as the multiplier that the model's runtime applies.
 * Refused by name: not one value, not a float, zero, negative, NaN, Inf. */
enum bitconv_status bc_source_scale(const struct bc_model *model, const struct bc_kernels *k,
                                    const struct bc_source *source, float *stored, float *effective,
                                    struct bitconv_error *err);

/* Stored bytes that are the output's bytes when the output has the same element type: one run per
 * source, whole and in order. False when a transform stands between (packed, scaled, permuted, +1,
 * generated). */
bool bc_weight_is_plain_copy(const struct bc_weight *w);

#endif
