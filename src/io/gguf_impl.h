/* SPDX-License-Identifier: MIT
 * What the parts of the GGUF reader share: an open file, and the steps that make one.
 *
 * The steps, in order: gguf_parse.c takes one file's header, keys and tensor infos apart;
 * gguf_split.c finds the other files of a set; gguf_layout.c gives every tensor its bytes;
 * gguf_dialect.c decides whose type ids they are; gguf_check.c looks at the metadata. */
#ifndef BC_IO_GGUF_IMPL_H
#define BC_IO_GGUF_IMPL_H

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/gguf_types.h"

/* Limits of the reader; each has its paragraph in formats/gguf.md. */
enum {
    BC_GGUF_HEADER_BYTES = 24,           /* magic, version, two counts */
    BC_GGUF_MIN_KEY_BYTES = 13,          /* u64 length, u32 type, a value of one byte */
    BC_GGUF_MIN_INFO_BYTES = 24,         /* u64 length, u32 n_dims, u32 type, u64 offset */
    BC_GGUF_DEFAULT_ALIGNMENT = 32,      /* where general.alignment is absent */
    BC_GGUF_MIN_ALIGNMENT = 8,           /* gguf.md: a multiple of 8 */
    BC_GGUF_MAX_ALIGNMENT = 1024 * 1024, /* as in ggml's reader */
    BC_GGUF_FORMAT_DIMS = 4,             /* GGML_MAX_DIMS */
    BC_GGUF_MAX_KEY = 65535,             /* gguf.md */
    BC_GGUF_MAX_NAME = 64,               /* gguf.md; ggml itself stops at 63 */
    BC_GGUF_MAX_FINDINGS = 128
};

/* One file of a set, or the only one. */
struct bc_gguf_shard {
    struct bc_file file; /* zeroed when parsed from memory */
    const uint8_t *data;
    uint64_t size;
    const char *path; /* for messages */
    uint32_t version;
    uint64_t alignment;
    uint64_t data_offset;
    struct bitconv_gguf_key *keys;             /* in file order */
    const struct bitconv_gguf_key **key_index; /* sorted by name */
    size_t n_keys;
    struct bitconv_gguf_tensor *tensors; /* moved to struct bitconv_gguf in the end */
    size_t n_tensors;
};

struct bc_gguf_findings {
    struct bitconv_gguf_finding *items;
    size_t n;
    size_t cap;
    size_t n_dropped; /* beyond BC_GGUF_MAX_FINDINGS */
    bool error_dropped;
    bool failed; /* out of memory */
};

struct bitconv_gguf {
    struct bc_arena arena; /* names, findings, evidence */
    struct bc_gguf_shard *shards;
    uint32_t n_shards;
    struct bitconv_gguf_tensor *tensors; /* in file order, shard by shard */
    size_t n_tensors;
    struct bitconv_gguf_tensor **by_name;    /* sorted by name */
    struct bitconv_gguf_tensor **by_offset;  /* sorted by shard, then by offset */
    struct bc_gguf_findings findings;        /* of the parts that no dialect changes ... */
    struct bc_gguf_findings layout_findings; /* ... and of those that it does */
    enum bitconv_dialect dialect;
    const char *evidence;
};

/* A name from a file made fit for a message: at most 80 bytes of it, "..." when cut. */
struct bc_gguf_label {
    char text[88];
};
struct bc_gguf_label bc_gguf_label(const char *name, size_t len);
struct bc_gguf_label bc_gguf_key_label(const struct bitconv_gguf_key *key);
struct bc_gguf_label bc_gguf_tensor_label(const struct bitconv_gguf_tensor *tensor);

/* Adds a finding; running out of memory is remembered in list->failed. */
void bc_gguf_note(struct bitconv_gguf *g, struct bc_gguf_findings *list, bool is_error,
                  const char *fmt, ...) BC_PRINTF(4, 5);

/* gguf_value.c: bytes of one scalar; 0 for STRING, ARRAY and unknown types. */
uint64_t bc_gguf_scalar_size(uint32_t type);

/* gguf_parse.c: header, keys and tensor infos of s->data[0, s->size). Fills everything else of *s
 * (offsets, dims and names of the tensors; no spans yet). */
enum bitconv_status bc_gguf_parse_shard(struct bitconv_gguf *g, struct bc_gguf_shard *s,
                                        struct bitconv_error *err);
/* NULL when the shard has no such key. */
const struct bitconv_gguf_value *bc_gguf_shard_key(const struct bc_gguf_shard *s, const char *name);

/* gguf_split.c: maps and parses `path`, and where it belongs to a set all files of that set. */
enum bitconv_status bc_gguf_load(struct bitconv_gguf *g, const char *path,
                                 struct bitconv_error *err);

/* gguf_layout.c: gathers the tensors of all shards, sorts them, refuses duplicate names and data
 * outside the file, and computes spans. */
enum bitconv_status bc_gguf_place(struct bitconv_gguf *g, struct bitconv_error *err);
/* Sizes and type names under g->dialect, and the findings that depend on them. Fails when a tensor
 * of known type reaches beyond the end of its file. */
enum bitconv_status bc_gguf_apply_dialect(struct bitconv_gguf *g, struct bitconv_error *err);

/* gguf_dialect.c: fills g->dialect and g->evidence from the spans. */
enum bitconv_status bc_gguf_decide_dialect(struct bitconv_gguf *g, struct bitconv_error *err);

/* gguf_check.c: findings about the values of the first shard. */
void bc_gguf_check_metadata(struct bitconv_gguf *g);

/* gguf_read.c: a single file held in memory (tests, fuzzing); the bytes must outlive *out. */
enum bitconv_status bc_gguf_parse(const uint8_t *data, uint64_t size, const char *path,
                                  struct bitconv_gguf **out, struct bitconv_error *err);

#endif
