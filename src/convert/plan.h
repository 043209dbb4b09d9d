/* SPDX-License-Identifier: MIT
 * The plan of a conversion: type, values and size of every tensor, before anything is written. */
#ifndef BC_CONVERT_PLAN_H
#define BC_CONVERT_PLAN_H

#include <stdatomic.h>

#include "base/digest.h"
#include "base/mem.h"
#include "convert/origin.h"
#include "convert/setup.h"
#include "model/findings.h"

/* One tensor of the output. */
struct bc_plan_tensor {
    const struct bc_weight *weight;
    /* Where the values come from instead of the weight's own sources, or NULL; borrowed. The weight
     * then gives name, role and shape. */
    const struct bc_origin *origin;
    struct bc_outtype type;
    bool ternary; /* values are trit * scale, from `decision`; else the stored values */
    struct bc_ternary decision; /* empty unless ternary; owned */
    /* Block packs: each block gets its own largest magnitude as its scale; `ternary` is false, the
     * stored values count. */
    bool by_block;
    /* Block packs, from the statistics pass: the scales as the file gives them, one per slice (1e-5
     * where its trits are all zero), rounded to float16 unless --scale-tensor holds them; owned.
     * n_block_scales is 0 where the blocks of a slice have several: no fingerprint then. */
    float *block_scales;
    uint32_t n_block_scales;
    /* The largest relative error of that rounding, or of storing trit * scale as floats. */
    double scale_error;
    struct bc_pack_shape shape; /* tile included, in tiled packs */
    uint64_t n;                 /* values */
    /* Bytes in the file, without padding; of payload packs a lower bound until the statistics pass
     * has counted the non-zero weights. */
    uint64_t size;
    bool misfit;            /* stored as --on-misfit's type */
    bool has_float_values;  /* its values, packed or not, are those of a float file of the model */
    bool has_nonfinite;     /* NaN or Inf among the stored values, to be stored as 0 */
    bool reference_differs; /* a reference converter would write something else here */

    /* Filled in by the pass over the values (stream.h). */
    uint64_t counts[3]; /* of the trits -1, 0, +1 */
    struct bc_trit_loss loss;
    uint64_t n_flushed;            /* non-zero values that became 0 in F16 */
    struct bc_hash128 fingerprint; /* packed tensors */
};

struct bc_plan {
    struct bc_plan_tensor *tensors; /* in file order; owned */
    size_t n_tensors;
    uint64_t source_bytes; /* of all source tensors read */
    struct bc_arena arena; /* tensors that only the output has: names and weights */
};

/* Chooses the type of every tensor by target, family, outtype and role (plan_types.h), --embd-type,
 * --output-type and --on-misfit, and finds the misfits of shape. Misfits go to the sink as FINDINGs,
 * all of them, and then the call fails; so does a plan in which no tensor has the asked type, unless
 * that is a type of mainline's converter and all tensors are misfits. The model and the setup are
 * borrowed. Release with bc_plan_release in either case. */
enum bitconv_status bc_plan_make(const struct bc_setup *setup, const struct bc_model *model,
                                 const struct bitconv_sink *sink, struct bc_plan *out,
                                 struct bitconv_error *err);
void bc_plan_release(struct bc_plan *plan);

/* The statistics pass (examine.c): decides trits and scales, finds the misfits that only the scales
 * show (stacked experts), and looks at every float value for NaN, Inf and the range of its type.
 * All reasons for a refusal are sent to the sink as FINDINGs first. */
enum bitconv_status bc_plan_examine(const struct bc_setup *setup, const struct bc_model *model,
                                    struct bc_pool *pool, const struct bitconv_sink *sink,
                                    atomic_bool *stop, struct bc_plan *plan,
                                    struct bitconv_error *err);

/* Behind bc_plan_examine: warns about misfits that were stored otherwise and about rows that a
 * runtime computes wrong, and refuses a plan in which no tensor has the asked type any more. */
enum bitconv_status bc_plan_settle(const struct bc_setup *setup, const struct bc_plan *plan,
                                   const struct bitconv_sink *sink, struct bitconv_error *err);

/* Can a tensor of its shape have its type? Tiled packs: chooses the tile. If not, the reason goes to
 * why. */
bool bc_plan_fits(const struct bc_setup *setup, struct bc_plan_tensor *t, char *why,
                  size_t why_size);

/* Stores a tensor that does not fit its pack, `why` says the reason, as --on-misfit's type, or
 * reports it as a finding when there is none. */
enum bitconv_status bc_plan_misfit(const struct bc_setup *setup, struct bc_plan_tensor *t,
                                   const char *why, struct bc_findings *findings,
                                   struct bitconv_error *err);

/* Sets t->size from type, shape and count of non-zero weights. */
enum bitconv_status bc_plan_set_size(struct bc_plan_tensor *t, struct bitconv_error *err);
/* The tensor's shape in the file (ggml order): that of the weight, or for payload packs one
 * dimension of bytes. Returns the number of dimensions. */
uint32_t bc_plan_file_shape(const struct bc_plan_tensor *t, uint64_t ne[4]);
/* Is the tensor copied byte for byte? Its pieces (stream.h) are then counted in bytes. */
bool bc_plan_is_copy(const struct bc_plan_tensor *t);
/* Must the tensor be packed as a whole, behind its last trit (whole.h)? */
bool bc_plan_is_whole(const struct bc_plan_tensor *t);

/* Bytes of all tensors, without padding. */
uint64_t bc_plan_size(const struct bc_plan *plan);
/* Does the tensor hold trits, or trits times a scale? */
bool bc_plan_has_trits(const struct bc_plan_tensor *t);
/* Does a packed tensor have a ternary fingerprint? */
bool bc_plan_has_fingerprint(const struct bc_plan_tensor *t);
/* Share of zero trits, or -1 when the tensor is not ternary. */
double bc_plan_zeros(const struct bc_plan_tensor *t);
/* |W - trit * scale| / |W| (Frobenius norms): 0 when exact, -1 when the tensor is not ternary. */
double bc_plan_relative_error(const struct bc_plan_tensor *t);

#endif
