/* SPDX-License-Identifier: MIT
 * What a synthetic model of each family typically looks like: one row per kind of checkpoint. What
 * tensors and config keys a family has is in src/model/archs; here are proportions only. */
#ifndef BC_DUMMY_KINDS_H
#define BC_DUMMY_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bc_dummy_tokenizer {
    BC_DUMMY_LLAMA3, /* byte-level BPE, Llama 3's splitting */
    BC_DUMMY_QWEN,   /* byte-level BPE, Qwen's splitting and NFC */
    BC_DUMMY_LLAMA2, /* SentencePiece-style BPE with byte fallback, a space put in front */
    BC_DUMMY_GEMMA,  /* the same without that space */
    BC_DUMMY_BERT    /* WordPiece */
};

struct bc_dummy_kind {
    const char *name;       /* --arch */
    const char *class_name; /* of transformers */
    unsigned generation;    /* which of the two names a tensor has (bc_arch_tensor.hf) */
    bool norm_in;           /* an RMSNorm in front of every projection (BitNet embeddings) */
    bool tied;
    enum bc_dummy_tokenizer tokenizer;
    uint32_t vocab, context;
    float ff_ratio;                   /* width of the feed-forward block, in hidden sizes */
    uint32_t head_dim, group;         /* group: query heads per key/value head */
    uint32_t n_expert, n_expert_used; /* 0: dense */
    const char *config;               /* more members of config.json, each with a comma in front */
    const char *pooling;              /* flag of 1_Pooling/config.json; NULL: no embedding model */
};

/* A published shape that --size names. */
struct bc_dummy_published {
    const char *kind, *size;
    uint32_t n_layers, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab;
};

/* The i-th kind, NULL behind the last. */
const struct bc_dummy_kind *bc_dummy_kind_at(size_t index);
/* By name; NULL: unknown. */
const struct bc_dummy_kind *bc_dummy_kind_find(const char *name);
/* By kind and size, whatever the case of the letters; NULL: no published shape of that name. */
const struct bc_dummy_published *bc_dummy_published_find(const char *kind, const char *size);

#endif
