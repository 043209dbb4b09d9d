/* SPDX-License-Identifier: MIT
 * GGUF: a zero-copy reader (versions 2 and 3, split sets) and a writer that plans every offset
 * before a byte is written. Format: ggml-org/ggml docs/gguf.md; the exact list of what the reader
 * rejects is in formats/gguf.md. */
#ifndef BITCONV_GGUF_H
#define BITCONV_GGUF_H

#include "bitconv/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum bitconv_gguf_type {
    BITCONV_GGUF_UINT8 = 0,
    BITCONV_GGUF_INT8 = 1,
    BITCONV_GGUF_UINT16 = 2,
    BITCONV_GGUF_INT16 = 3,
    BITCONV_GGUF_UINT32 = 4,
    BITCONV_GGUF_INT32 = 5,
    BITCONV_GGUF_FLOAT32 = 6,
    BITCONV_GGUF_BOOL = 7,
    BITCONV_GGUF_STRING = 8,
    BITCONV_GGUF_ARRAY = 9,
    BITCONV_GGUF_UINT64 = 10,
    BITCONV_GGUF_INT64 = 11,
    BITCONV_GGUF_FLOAT64 = 12
};
BITCONV_API const char *bitconv_gguf_type_name(enum bitconv_gguf_type type); /* "UINT32", ... */

#define BITCONV_GGUF_MAX_DIMS 8 /* read; the format itself allows 4, more is a finding */

/* Whose meaning of the tensor type ids a file follows (ids 36-42 differ between forks). */
enum bitconv_dialect {
    BITCONV_DIALECT_AMBIGUOUS, /* several fit, or none: the evidence says which */
    BITCONV_DIALECT_UPSTREAM,
    BITCONV_DIALECT_BITNET,
    BITCONV_DIALECT_BITNET_REBASED,
    BITCONV_DIALECT_PRISM,
    BITCONV_N_DIALECTS
};
/* "ambiguous", "upstream", "bitnet", "bitnet-rebased", "prism". */
BITCONV_API const char *bitconv_dialect_name(enum bitconv_dialect dialect);
/* False when the name is none of those (or "ambiguous"). */
BITCONV_API bool bitconv_dialect_from_name(const char *name, enum bitconv_dialect *out);

/* A metadata value. Everything points into the map.
 * scalars: data = the value's bytes (little-endian), size = its width, count = 1.
 * STRING: data/size = the bytes (not NUL-terminated). ARRAY: `elem` type, `count` elements,
 * data/size = payload behind type and count (strings: u64 length + bytes each). Nested arrays are
 * refused. */
struct bitconv_gguf_value {
    enum bitconv_gguf_type type;
    enum bitconv_gguf_type elem;
    uint64_t count;
    const uint8_t *data;
    uint64_t size;
};

struct bitconv_gguf_key {
    const char *name; /* NUL-terminated copy; may hold any other byte */
    size_t name_len;
    struct bitconv_gguf_value value;
};

struct bitconv_gguf_tensor {
    const char *name; /* NUL-terminated copy */
    size_t name_len;
    uint32_t type; /* raw ggml type id */
    uint32_t n_dims;
    uint64_t ne[BITCONV_GGUF_MAX_DIMS]; /* ggml order: ne[0] = columns; unused = 1 */
    uint64_t n_elements;
    uint64_t offset;      /* within the data section of its file */
    uint64_t file_offset; /* absolute, in its file */
    uint64_t span;        /* bytes up to the next tensor's offset, or to the end of the file */
    uint64_t size;       /* bytes the type needs in the file's dialect, all of them in the file, but
                          * possibly beyond span (an error finding); 0 when the type is unknown or
                          * the shape does not fit it */
    const uint8_t *data; /* span bytes */
    uint32_t shard;      /* index of the file of a split set, 0 for single files */
    const char *type_name; /* in the file's dialect: "I2_S", "F16", ... or "type 142" */
};

/* A structural remark found while reading. Errors make verify fail; inspect shows both. */
struct bitconv_gguf_finding {
    bool is_error;
    const char *text;
};

struct bitconv_gguf;

/* Opens a GGUF; given any file of a split set (NAME-00001-of-00003.gguf) opens the whole set: keys
 * of the first file, tensors of all. Fails on what cannot be read at all (wrong magic, version
 * other than 2 or 3, big-endian, lengths beyond the file, duplicate keys, illegal alignment, data
 * cut off); lesser faults become findings. Memory used is proportional to the number of keys and
 * tensors that really are in the file. */
BITCONV_API enum bitconv_status bitconv_gguf_open(const char *path, struct bitconv_gguf **out,
                                                  struct bitconv_error *err);
BITCONV_API void bitconv_gguf_close(struct bitconv_gguf *file); /* NULL is fine */

/* What the file says of itself. */
BITCONV_API uint32_t bitconv_gguf_version(const struct bitconv_gguf *file);
BITCONV_API uint64_t bitconv_gguf_alignment(const struct bitconv_gguf *file);
BITCONV_API uint64_t bitconv_gguf_data_offset(const struct bitconv_gguf *file); /* of shard 0 */
BITCONV_API uint64_t bitconv_gguf_file_size(const struct bitconv_gguf *file);   /* all shards */
BITCONV_API uint32_t bitconv_gguf_n_shards(const struct bitconv_gguf *file);
BITCONV_API const char *bitconv_gguf_shard_path(const struct bitconv_gguf *file, uint32_t shard);

/* Keys (of shard 0), tensors of all shards and findings, in file order. All are borrowed and live as
 * long as the file is open; NULL: an index behind the last, a name that is not there. */
BITCONV_API size_t bitconv_gguf_n_keys(const struct bitconv_gguf *file);
BITCONV_API const struct bitconv_gguf_key *bitconv_gguf_key_at(const struct bitconv_gguf *file,
                                                               size_t index);
BITCONV_API const struct bitconv_gguf_value *bitconv_gguf_find_key(const struct bitconv_gguf *file,
                                                                   const char *name);
BITCONV_API size_t bitconv_gguf_n_tensors(const struct bitconv_gguf *file);
BITCONV_API const struct bitconv_gguf_tensor *
bitconv_gguf_tensor_at(const struct bitconv_gguf *file, size_t index);
BITCONV_API const struct bitconv_gguf_tensor *
bitconv_gguf_find_tensor(const struct bitconv_gguf *file, const char *name);
BITCONV_API size_t bitconv_gguf_n_findings(const struct bitconv_gguf *file);
BITCONV_API const struct bitconv_gguf_finding *
bitconv_gguf_finding_at(const struct bitconv_gguf *file, size_t index);

/* The dialect, decided from evidence (byte spans against what each candidate type needs, then
 * architecture and file type, formats/gguf.md), and that evidence as a sentence. */
BITCONV_API enum bitconv_dialect bitconv_gguf_dialect(const struct bitconv_gguf *file);
BITCONV_API const char *bitconv_gguf_dialect_evidence(const struct bitconv_gguf *file);
/* Overrides the decision (sizes and type names of all tensors follow). */
BITCONV_API enum bitconv_status bitconv_gguf_set_dialect(struct bitconv_gguf *file,
                                                         enum bitconv_dialect dialect,
                                                         struct bitconv_error *err);

/* Typed access to values; false when the value is NULL or of another kind. Integers of any width
 * are accepted by u64/i64 when they fit, FLOAT32 and FLOAT64 by f64. */
BITCONV_API bool bitconv_gguf_value_u64(const struct bitconv_gguf_value *value, uint64_t *out);
BITCONV_API bool bitconv_gguf_value_i64(const struct bitconv_gguf_value *value, int64_t *out);
BITCONV_API bool bitconv_gguf_value_f64(const struct bitconv_gguf_value *value, double *out);
BITCONV_API bool bitconv_gguf_value_bool(const struct bitconv_gguf_value *value, bool *out);
BITCONV_API bool bitconv_gguf_value_string(const struct bitconv_gguf_value *value, const char **out,
                                           size_t *out_len);
/* Walks the strings of an ARRAY of STRING: start with *pos = 0; false at the end. */
BITCONV_API bool bitconv_gguf_array_next_string(const struct bitconv_gguf_value *value,
                                                uint64_t *pos, const char **out, size_t *out_len);
/* Element `index` of an array of scalars as a scalar value; false when out of range or strings. */
BITCONV_API bool bitconv_gguf_array_at(const struct bitconv_gguf_value *value, uint64_t index,
                                       struct bitconv_gguf_value *out);

/* The writer. Keys keep the order of their first setting; setting one again replaces its value.
 * Allocation failures are remembered and reported by _plan. */
struct bitconv_gguf_writer;
BITCONV_API struct bitconv_gguf_writer *bitconv_gguf_writer_new(void); /* NULL: out of memory */
BITCONV_API void bitconv_gguf_writer_free(struct bitconv_gguf_writer *w);
BITCONV_API void bitconv_gguf_set_u32(struct bitconv_gguf_writer *w, const char *key, uint32_t v);
BITCONV_API void bitconv_gguf_set_f32(struct bitconv_gguf_writer *w, const char *key, float v);
BITCONV_API void bitconv_gguf_set_bool(struct bitconv_gguf_writer *w, const char *key, bool v);
BITCONV_API void bitconv_gguf_set_string(struct bitconv_gguf_writer *w, const char *key,
                                         const char *v);
BITCONV_API void bitconv_gguf_set_string_n(struct bitconv_gguf_writer *w, const char *key,
                                           const char *v, size_t len);
/* Any scalar type: `data` holds the value little-endian in the type's width. */
BITCONV_API void bitconv_gguf_set_scalar(struct bitconv_gguf_writer *w, const char *key,
                                         enum bitconv_gguf_type type, const void *data);
/* `payload` as in bitconv_gguf_value for arrays. */
BITCONV_API void bitconv_gguf_set_array(struct bitconv_gguf_writer *w, const char *key,
                                        enum bitconv_gguf_type elem, uint64_t count,
                                        const void *payload, size_t payload_size);
BITCONV_API bool bitconv_gguf_writer_has(const struct bitconv_gguf_writer *w, const char *key);
/* The type of a key's value; false when the key is not set. */
BITCONV_API bool bitconv_gguf_writer_type(const struct bitconv_gguf_writer *w, const char *key,
                                          enum bitconv_gguf_type *type);
BITCONV_API void bitconv_gguf_unset(struct bitconv_gguf_writer *w, const char *key);
/* Announces a tensor; data must later be written in the same order. `ne` in ggml order. */
BITCONV_API void bitconv_gguf_add_tensor(struct bitconv_gguf_writer *w, const char *name,
                                         uint32_t type, uint32_t n_dims, const uint64_t *ne,
                                         uint64_t size);
/* Fixes all offsets (alignment 32, every tensor padded). Gives the header bytes (owned by the
 * writer, up to and including the padding in front of the data section) and the size of the whole
 * file. Duplicate tensor names, empty keys and sizes that overflow fail here. */
BITCONV_API enum bitconv_status bitconv_gguf_writer_plan(struct bitconv_gguf_writer *w,
                                                         const uint8_t **header,
                                                         uint64_t *header_size, uint64_t *file_size,
                                                         struct bitconv_error *err);
/* Offset of tensor `index` (order of announcement) in the data section; after _plan. */
BITCONV_API uint64_t bitconv_gguf_writer_tensor_offset(const struct bitconv_gguf_writer *w,
                                                       size_t index);

#ifdef __cplusplus
}
#endif
#endif
