/* SPDX-License-Identifier: MIT
 * GGUF -> GGUF: the ternary tensors of a file in another pack, everything else as it is. */
#ifndef BITCONV_REPACK_H
#define BITCONV_REPACK_H

#include "bitconv/convert.h"
#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise: zero and NULL mean the default. Strings are borrowed for the call. */
struct bitconv_repack_options {
    const char *outtype;    /* a pack, a float type or "auto", as of bitconv_convert (required) */
    const char *auto_packs; /* for outtype "auto": "bitcos,t5" unless set */
    const char *outfile;    /* required */
    const char *dialect;    /* of the output: "bitnet" or "bitnet-rebased" */
    const char *on_misfit;  /* "fail", or a float type for tensors that do not fit the pack */
    /* Layout of I2_S: of the output when that is I2_S, else of an input that does not state its own
     * as if it was input_i2s_layout. "128" or "64". */
    const char *i2s_layout;
    const char *kernel_config;       /* tiles of tl1 and tl2 by shape (INI) */
    const char *input_dialect;       /* reads type ids so: "upstream", "bitnet", ... */
    const char *input_i2s_layout;    /* of input tensors that do not state theirs */
    const char *input_kernel_config; /* the same for tiles; kernel_config unless set */
    uint64_t split_max_size;         /* bytes; 0: one file */
    bool scale_tensor;               /* as of bitconv_convert: block packs with exact scales */
    bool plain;                      /* no bitconv.* metadata */
    bool force;                      /* overwrite */
    bool dry_run;                    /* everything but writing */
    unsigned n_threads;              /* 0: online processors */
    const char *cpu;                 /* "scalar", "avx2", "avx512", "neon"; NULL: best */
};

/* Writes the model of the GGUF (any file of a split set) at `path` with its ternary tensors in the
 * asked pack: those that are in a pack already, and F32, F16 and BF16 tensors of linear weights whose
 * values have one magnitude. Trits and scales are kept bit for bit, but that block packs (tq1_0, ...)
 * without scale_tensor hold float16 scales, and F16, BF16 and Q8_0 round the weights:
 * bitconv_converted_tensor.scale_error tells what that loses. Blocks with scales of their own are kept
 * in block packs. Before a byte is written every such tensor is read through its pack's independent reader, and refused, by name, when its bytes are
 * not what the pack defines or not what the file states of itself; behind the writing the
 * fingerprints are compared. All other tensors and all metadata stay as they are, but for
 * general.file_type, general.alignment, split.* and bitconv.*. The output appears under its name only
 * when it is complete. bitconv_conversion.target is NULL: the file's conventions are not changed. */
BITCONV_API enum bitconv_status bitconv_repack(const char *path,
                                               const struct bitconv_repack_options *options,
                                               const struct bitconv_sink *sink,
                                               struct bitconv_conversion **out,
                                               struct bitconv_error *err);

#ifdef __cplusplus
}
#endif
#endif
