/* SPDX-License-Identifier: MIT
 * The checkpoint that a file is compared with, read as convert would have read it. */
#ifndef BC_VERIFY_SOURCE_STATE_H
#define BC_VERIFY_SOURCE_STATE_H

#include "model/weights.h"
#include "verify/proofs.h"

/* What the linear weights of the file are stored as, which decides the types of everything else. */
enum bc_file_kind {
    BC_FILE_F32,
    BC_FILE_F16,
    BC_FILE_BF16,
    BC_FILE_Q8_0,
    BC_FILE_PACK, /* a ternary pack */
    BC_FILE_OTHER /* a type that bitconv does not write: types are not judged */
};

struct bc_source_state {
    struct bc_checkpoint *checkpoint;
    struct bc_model *model;
    enum bc_file_kind kind;
    struct bc_weight_options weight_options;
    struct bitconv_convert_options conversion; /* what the caller says about the conversion */
};

/* Opens options->source and loads the model under the target (and architecture name) whose tensor
 * names, types and keys agree best with the file, unless conversion.target names one. Sets
 * v->source. */
enum bitconv_status bc_source_open(struct bc_verifier *v, struct bitconv_error *err);

/* For a GGUF that could not be opened: with options->source, adds to the error which tensor info is
 * damaged, where that can be told. */
void bc_source_blame(struct bc_verifier *v, struct bitconv_error *err);

/* The GGUF type that a tensor of this model should have in a file of that kind;
 * BC_EXPECT_PACK for linear weights of kind PACK; NULL: any (kind OTHER). Shares nothing with convert's
 * table. */
const char *bc_expected_type(const struct bc_source_state *s, const struct bc_model *model,
                             const struct bc_weight *w);
/* The answer of bc_expected_type for linear weights that should be packed. */
#define BC_EXPECT_PACK "a ternary pack"
/* True when a tensor stored as floats holds trit * scale rather than the stored values. */
bool bc_expects_ternary_values(const struct bc_source_state *s, const struct bc_weight *w);

/* How many keys of `model`'s own metadata (without the tokenizer's) the file lacks or has
 * otherwise. */
enum bitconv_status bc_source_count_key_differences(const struct bc_verifier *v,
                                                    const struct bc_source_state *s,
                                                    const struct bc_model *model, size_t *out,
                                                    struct bitconv_error *err);

/* For files with keys of a tokenizer that the checkpoint does not give: a problem where a text has
 * other ids by the file's keys than by those of `wanted`. Nothing where bitconv cannot run one. */
enum bitconv_status bc_source_compare_ids(struct bc_verifier *v, struct bitconv_proof *proof,
                                          const struct bitconv_gguf *wanted,
                                          struct bitconv_error *err);

#endif
