/* SPDX-License-Identifier: MIT
 * What the caller asked for, checked: names of types and modes resolved. */
#ifndef BC_CONVERT_SETUP_H
#define BC_CONVERT_SETUP_H

#include "bitconv/convert.h"
#include "formats/format.h"
#include "formats/tiling.h"
#include "model/weights.h"

/* A type that tensors of the output can have: a float type or a ternary pack. */
struct bc_outtype {
    const char *name;      /* as on the command line: "f16", "i2_s" */
    const char *type_name; /* GGUF type: "F16", "I2_S" */
    uint32_t type_id;
    uint32_t file_type;           /* general.file_type of a file of that type */
    const struct bc_format *pack; /* NULL: a float type */
};

/* Finds a type by name; false when neither the float table nor the registry of packs has it. */
bool bc_outtype_find(const char *name, struct bc_outtype *out);

/* The outtype that lets each tensor have the smallest of several packs. */
#define BC_OUTTYPE_AUTO "auto"
enum { BC_MAX_AUTOS = 16 };

struct bc_setup {
    const struct bitconv_convert_options *options;
    const char *dir;
    struct bc_outtype out;
    /* Outtype auto: the packs among which each tensor gets the smallest; `out` then has the name
     * "auto" and otherwise describes the first of them. Else n_autos is 0. */
    struct bc_outtype autos[BC_MAX_AUTOS];
    size_t n_autos;
    struct bc_outtype embd, output, misfit; /* name NULL: not given */
    struct bc_weight_options weights;
    struct bc_model_options model;
    const struct bc_kernels *kernels;
    struct bc_tilings tilings; /* of --kernel-config; empty without; owned */
};

/* Checks every option that can be judged without the checkpoint. `dir` and `options` are borrowed.
 * Release *out in any case. */
enum bitconv_status bc_setup_make(const char *dir, const struct bitconv_convert_options *options,
                                  struct bc_setup *out, struct bitconv_error *err);
void bc_setup_release(struct bc_setup *setup);

#endif
