/* SPDX-License-Identifier: MIT
 * What this version supports: the formats of tensors and the families of models, as tables. */
#ifndef BITCONV_SUPPORT_H
#define BITCONV_SUPPORT_H

#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum bitconv_format_kind {
    BITCONV_FORMAT_PACK,    /* trits with one scale a tensor, or one a slice */
    BITCONV_FORMAT_BLOCKS,  /* blocks of values with scales of their own (ternary or not) */
    BITCONV_FORMAT_NUMBERS, /* one number a value */
    BITCONV_N_FORMAT_KINDS
};
/* "pack", "blocks", "numbers". */
BITCONV_API const char *bitconv_format_kind_name(enum bitconv_format_kind kind);

/* One way to store a tensor in a GGUF. What pointers point to is static. */
struct bitconv_format_info {
    char name[24];         /* "i2_s", "q4_k": as options and JSON name it */
    const char *title;     /* one line for people; NULL where the type name says all */
    const char *type_name; /* "I2_S", "Q4_K" */
    uint32_t type_id;      /* in the dialect that bitconv writes, else in the first that has it */
    uint32_t type_id_rebased; /* id in dialect bitnet-rebased where that differs, else 0 */
    char dialects[64];        /* those with this meaning of the id: "all" or "upstream, prism" */
    enum bitconv_format_kind kind;
    bool ternary;        /* values are trits times scales */
    uint32_t block;      /* values of a block; 0: not made of blocks */
    uint32_t block_size; /* bytes of a block; 0: as block */
    /* Blocks and numbers: exact. Packs: of a 4096 x 4096 matrix with a third of zeros, scale and
     * header included. 0: not known. */
    double bits_per_weight;
    bool writes;         /* convert --outtype NAME */
    bool decodes;        /* values can be read (inspect --tensor, diff, verify) */
    const char *refusal; /* why they cannot, or NULL */
};

/* The index-th format, packs first; false behind the last. */
BITCONV_API bool bitconv_format_info_at(size_t index, struct bitconv_format_info *out);

#define BITCONV_MAX_ARCH_NAMES 4

/* One family of models. All strings are static; lists end with NULL unless full. */
struct bitconv_arch_info {
    const char *name;                                /* for people */
    const char *classes[BITCONV_MAX_ARCH_NAMES];     /* of transformers: "Qwen3Model" */
    bool backbone[BITCONV_MAX_ARCH_NAMES];           /* that class has no language-model head */
    const char *model_types[BITCONV_MAX_ARCH_NAMES]; /* of the class, or NULL */
    const char *gguf_bitnet;    /* general.architecture with --target bitnet; NULL: not written */
    const char *gguf_llama_cpp; /* likewise llama.cpp */
    const char *gguf_bidirectional; /* for backbones that attend in both directions, or NULL */
    const char *gguf_aliases[BITCONV_MAX_ARCH_NAMES]; /* more names it is read under */
    const char *activations[BITCONV_MAX_ARCH_NAMES];
    bool ternary_class;    /* linear weights are ternary by the definition of the class */
    bool embedding_family; /* norms in front of the projections make it an embedding model */
    bool permutes_qk;      /* rows of q and k change their order in the file */
    bool norm_plus_one;    /* norms are stored with 1 added */
    bool sliding_window;   /* layers may attend to a window only */
    bool encoder;          /* attends in both directions: embeddings, no text */
    bool conv_layers;      /* short convolutions in place of attention in some layers */
    bool longrope;         /* RoPE scaling by lists of divisors, which become tensors */
};

/* The index-th family; false behind the last. */
BITCONV_API bool bitconv_arch_info_at(size_t index, struct bitconv_arch_info *out);

/* Bits a weight that no lossless pack of independent trits goes below on average, at a share z of
 * zeros and as many +1 as -1: H(z) = -z log2 z - (1 - z) log2((1 - z) / 2), 0 log2 0 being 0. */
BITCONV_API double bitconv_entropy_bound(double zeros);

#ifdef __cplusplus
}
#endif
#endif
