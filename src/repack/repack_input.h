/* SPDX-License-Identifier: MIT
 * The file to be repacked: which of its tensors are ternary, and how each is read. */
#ifndef BC_REPACK_REPACK_INPUT_H
#define BC_REPACK_REPACK_INPUT_H

#include "base/file.h"
#include "convert/origin.h"
#include "model/findings.h"
#include "model/weights.h"
#include "verify/pack_scan.h"

/* How a tensor of the input becomes one of the output. */
enum bc_input_kind {
    BC_INPUT_COPY,  /* byte for byte */
    BC_INPUT_DROP,  /* not at all: the scales of another tensor, which are read with that */
    BC_INPUT_PACK,  /* trits of a ternary pack */
    BC_INPUT_FLOATS /* floats of a linear weight; trits when they have one magnitude */
};

struct bc_input_tensor {
    enum bc_input_kind kind;
    const struct bitconv_gguf_tensor *gguf;
    const struct bc_file *file; /* the shard that holds it */
    struct bc_weight weight;    /* name, role and shape for the plan; no sources */
    struct bc_origin origin;
    struct bc_packed packed;       /* PACK */
    struct bc_weight floats;       /* FLOATS: the tensor as a weight of a checkpoint would be */
    struct bc_ternary decision;    /* FLOATS: a copy of the plan's, whose arrays it borrows */
    struct bc_hash128 fingerprint; /* PACK, when the scan gave one */
    bool has_fingerprint;
};

struct bc_repack_input {
    const char *path;
    struct bitconv_gguf *gguf;
    struct bc_stated stated;
    struct bc_input_tensor *tensors; /* in file order */
    size_t n_tensors;
    struct bc_arena arena;
};

/* What the user says about the input where the file does not: see struct bitconv_repack_options. */
struct bc_input_hints {
    const char *dialect, *i2s_layout, *kernel_config;
};

/* Opens the file and sorts its tensors. Those that cannot be read are FINDINGs to the sink, all of
 * them, and then the call fails. Zero-initialise *out; release it in any case. */
enum bitconv_status bc_repack_open(const char *path, const struct bc_input_hints *hints,
                                   const struct bitconv_sink *sink, struct bc_repack_input *out,
                                   struct bitconv_error *err);
void bc_repack_close(struct bc_repack_input *in);

/* Decides that a tensor is copied after all. */
void bc_input_copy(struct bc_input_tensor *t);

#endif
