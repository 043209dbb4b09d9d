/* SPDX-License-Identifier: MIT
 * What the proofs of verify share: the opened file, the result being filled in, and the ways to
 * record a difference. One proof a file; verify.c runs them in order. */
#ifndef BC_VERIFY_PROOFS_H
#define BC_VERIFY_PROOFS_H

#include "base/mem.h"
#include "base/pool.h"
#include "bitconv/gguf.h"
#include "bitconv/verify.h"
#include "quant/kernels.h"
#include "verify/container.h"
#include "verify/pack_scan.h"
#include "verify/result.h"

#define BC_NO_TENSOR SIZE_MAX

/* What the packs proof learned of one tensor, for the proofs behind it. */
struct bc_tensor_proof {
    struct bc_packed packed; /* format NULL: not a ternary pack, or a misfit */
    const char *misfit;      /* why a tensor of a packed type cannot be one, or NULL */
    struct bc_pack_scan scan;
    bool scanned; /* scan is filled in */
};

struct bc_forward;
struct bc_source_state;

/* One run of verify. Everything that the result points to lives in `data`, with the result. */
struct bc_verifier {
    const char *path;
    const struct bitconv_verify_options *options;
    const struct bitconv_sink *sink;
    const struct bc_kernels *kernels;
    struct bc_pool *pool;
    struct bc_container container;   /* borrowed from data */
    bool ours;                       /* a GGUF with bitconv.* keys */
    struct bc_stated stated;         /* what the file says of its packed tensors */
    struct bc_tensor_proof *tensors; /* parallel to result->tensors; NULL unless a GGUF */
    struct bc_source_state *source;  /* proof_source.c; NULL without --source */
    struct bc_forward *forward;      /* proof_forward.c; NULL without --forward */
    struct bitconv_verification *result;
    struct bc_verification_data *data; /* result->internal */
    uint64_t n_problems;               /* of the proof that is running */
};

/* A proof fills in `proof` (verdict, detail, checked, skipped; it arrives as PASSED with all zero)
 * and records differences with bc_problem. It returns an error only when it could not be carried
 * out. */
typedef enum bitconv_status bc_prove(struct bc_verifier *v, struct bitconv_proof *proof,
                                     struct bitconv_error *err);

bc_prove bc_prove_structure;       /* findings of the reader, unknown types, padding */
bc_prove bc_prove_metadata;        /* the architecture's keys, counts against tensors, file_type */
bc_prove bc_prove_packs;           /* independent decode, re-pack to the same bytes, scales */
bc_prove bc_prove_fingerprints;    /* recomputed; equal to those the file states */
bc_prove bc_prove_floats;          /* no NaN, no Inf */
bc_prove bc_prove_source;          /* the checkpoint's trits, scales, values, names and types */
bc_prove bc_prove_source_metadata; /* the keys that the checkpoint gives */
bc_prove bc_prove_manifest;        /* equal to a manifest written earlier */
bc_prove bc_prove_forward;         /* the model run: equal to the checkpoint's computation */
bc_prove bc_prove_kernels;         /* integer products of every packed row */
bc_prove bc_prove_unquantized;     /* distance from the checkpoint as stored */

/* Releases what bc_prove_source opened. */
void bc_source_close(struct bc_verifier *v);
/* Releases what bc_prove_forward keeps, before the source is closed. */
void bc_forward_close(struct bc_verifier *v);

/* Records a difference: the proof has failed, its detail is the first one's text, the tensor (index
 * into result->tensors, or BC_NO_TENSOR) is not ok; the text goes to the sink as a FINDING. Texts
 * name their tensor or key themselves. */
void bc_problem(struct bc_verifier *v, struct bitconv_proof *proof, size_t tensor, const char *fmt,
                ...) BC_PRINTF(4, 5);
/* Sets the detail of a proof that has found nothing; with problems it appends how many there were.
 */
void bc_conclude(struct bc_verifier *v, struct bitconv_proof *proof, const char *fmt, ...)
    BC_PRINTF(3, 4);
/* The proof was not run, for that reason. */
void bc_not_run(struct bc_verifier *v, struct bitconv_proof *proof, const char *fmt, ...)
    BC_PRINTF(3, 4);

/* The index of a GGUF tensor by name; BC_NO_TENSOR when there is none. */
size_t bc_tensor_index(const struct bc_verifier *v, const char *name);
/* Index of the tensor that a remark is about ("tensor NAME: ..."; of several names that fit the
 * longest), so that it is marked in the table; BC_NO_TENSOR for other remarks. */
size_t bc_subject(const struct bc_verifier *v, const char *text);

#endif
