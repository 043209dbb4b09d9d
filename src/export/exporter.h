/* SPDX-License-Identifier: MIT
 * What the steps of an export share. Internal to src/export. */
#ifndef BC_EXPORT_EXPORTER_H
#define BC_EXPORT_EXPORTER_H

#include "base/mem.h"
#include "bitconv/export.h"
#include "model/arch.h"
#include "model/stated.h"
#include "model/tokenizer_special.h"
#include "quant/kernels.h"
#include "verify/container.h"
#include "verify/decoded.h"

/* How the values of a tensor are written. */
enum bc_export_form {
    BC_EXPORT_COPY,      /* the stored numbers, byte for byte (rows put back in place) */
    BC_EXPORT_MINUS_ONE, /* norms that a file holds plus 1: float32 */
    BC_EXPORT_TRITS,     /* uint8, four rows to a byte */
    BC_EXPORT_SCALE,     /* the float32 that belongs to such a tensor */
    BC_EXPORT_DECODED    /* floats of a chosen type */
};

/* The values of one tensor of the GGUF, and what one matrix of it becomes. */
struct bc_export_tensor {
    const char *name; /* in the checkpoint */
    const char *key;  /* the name by which convert orders it: of experts, the layer's last one */
    const struct bitconv_gguf_tensor *source; /* borrowed */
    const struct bc_decoded *values;          /* of the whole source; arena-owned */
    enum bc_export_form form;
    enum bitconv_dtype dtype;
    bool is_linear;      /* a weight that ternary models pack */
    uint32_t slice;      /* of a stack of experts, else 0 */
    uint64_t rows, cols; /* logical; a vector has cols 1 where its rows are permuted, else rows 1 */
    uint32_t permute_heads; /* > 0: the rows of each of that many heads are interleaved */
    uint32_t n_dims;
    uint64_t shape[4]; /* as stored */
    uint64_t size;
    float scale; /* ternary packs: the multiplier of the slice */
    uint32_t shard;
    uint64_t n_inexact; /* set while writing */
};

/* What a checkpoint's small files say of special tokens, so that convert finds the ids in the order
 * of the file: the first file that names one decides its place. Files in the order in which convert
 * reads them. */
enum bc_export_says { BC_SAYS_CONFIG, BC_SAYS_MAP, BC_SAYS_GENERATION, BC_SAYS_MODEL, BC_N_SAYS };
struct bc_export_specials {
    int64_t id[BC_N_SPECIALS]; /* -1: none */
    enum bc_export_says from[BC_N_SPECIALS];
    bool end_known;                       /* the tokenizer's template ends every text with eos */
    int bos, eos, sep;                    /* add_*_token: 1, 0, -1 when the file does not say */
    const struct bitconv_gguf_value *eog; /* array of ids that end generation, or NULL */
};

struct bc_exporter {
    const struct bitconv_export_options *options;
    const struct bitconv_sink *sink;
    const struct bc_kernels *kernels;
    const char *path; /* of the GGUF, for messages */
    struct bc_container container;
    struct bitconv_gguf *file; /* the container's */
    struct bc_stated stated;
    const struct bc_arch *arch;
    const struct bc_arch_class *class_row;
    const char *arch_name;
    enum bc_target target; /* whose conventions the file follows */
    struct bc_hparams hp;
    const char *name; /* general.name, or NULL */
    bool complete;    /* the file states what other writers leave to defaults: bitconv wrote it */
    bool has_norm_in;
    bool packed;                      /* uint8 weights with scales are written */
    bool baked;                       /* floats that are trit * scale */
    bool decode;                      /* what is no plain number becomes `dtype` */
    enum bitconv_dtype dtype;         /* of decoded values */
    enum bitconv_dtype main_dtype;    /* what the model computes in: widest of its matrices */
    struct bc_export_tensor *tensors; /* in the order of the files */
    size_t n_tensors, cap_tensors;
    const char **kept; /* linear modules that stay float among packed ones */
    size_t n_kept, cap_kept;
    uint32_t n_shards;
    struct bc_export_specials specials;
    struct bc_arena arena;
};

/* Opens the file and reads what it says of the model: family, class, target, hyper-parameters. */
enum bitconv_status bc_export_open(struct bc_exporter *e, const char *path,
                                   struct bitconv_error *err);
void bc_export_close(struct bc_exporter *e);

/* What the tensors of rotary positions say, into e->hp: parameters of Llama 3's scaling where they are
 * not stated, longrope's lists. */
enum bitconv_status bc_export_read_rope(struct bc_exporter *e, struct bitconv_error *err);
/* True for tensors that bc_export_read_rope has read: a config says them. */
bool bc_export_is_rope(const struct bc_exporter *e, const char *name);

/* e->tensors: every tensor of the file by the family's table. All that does not fit becomes a
 * finding through the sink, then the call fails. */
enum bitconv_status bc_export_map(struct bc_exporter *e, struct bitconv_error *err);
/* Orders the tensors and deals them to files, so that convert meets them in the file's order. */
enum bitconv_status bc_export_deal(struct bc_exporter *e, struct bitconv_error *err);

/* How a tensor's values are decoded; fails with the tensor's name. */
enum bitconv_status bc_export_decode(struct bc_exporter *e, const struct bitconv_gguf_tensor *t,
                                     struct bc_decoded *out, struct bitconv_error *err);
/* The multiplier of each slice of a ternary pack (room for p->shape.slices), those of a tensor of
 * scales beside it applied. UNSUPPORTED when blocks of one slice have several, CORRUPT when one is
 * not finite and positive. */
enum bitconv_status bc_export_scales(struct bc_exporter *e, const struct bitconv_gguf_tensor *t,
                                     const struct bc_packed *p, float *scales,
                                     struct bitconv_error *err);

/* e->specials, from the keys of the file. */
enum bitconv_status bc_export_find_specials(struct bc_exporter *e, struct bitconv_error *err);
/* Refuses hyper-parameters that no config of the family can say, and completes those that readers
 * take from elsewhere. */
enum bitconv_status bc_export_check_config(struct bc_exporter *e, struct bitconv_error *err);

/* Where files go while the folder is being made. */
struct bc_export_folder;
/* One complete small file of the folder; `name` may have one folder in front ("1_Pooling/x"). */
enum bitconv_status bc_export_put(struct bc_export_folder *folder, const char *name,
                                  const struct bc_buf *text, struct bitconv_error *err);
/* config.json, generation_config.json, deployment_info.json, and the modules of an embedding model. */
enum bitconv_status bc_export_config(struct bc_exporter *e, struct bc_export_folder *folder,
                                     struct bitconv_error *err);
/* Tokenizer files. */
enum bitconv_status bc_export_tokenizer(struct bc_exporter *e, struct bc_export_folder *folder,
                                        struct bitconv_error *err);
/* model.safetensors, or the shards and their index. */
enum bitconv_status bc_export_weights(struct bc_exporter *e, struct bc_export_folder *folder,
                                      struct bitconv_error *err);

#endif
