/* SPDX-License-Identifier: MIT
 * The GGUF writer: collects keys and tensor announcements, fixes every offset, and gives the
 * header.
 *
 * What comes out (formats/gguf.md): version 3, alignment 32, keys and tensors in the order in which
 * they were set, every tensor padded with zeros, the last one too. The data are the caller's
 * business: it writes them behind the header, tensor by tensor. */
#include "bitconv/gguf.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "io/gguf_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct writer_key {
    char *name;
    size_t name_len;
    struct bc_buf value; /* u32 type and the value, as in the file */
};

struct writer_tensor {
    char *name;
    size_t name_len;
    uint32_t type;
    uint32_t n_dims;
    uint64_t ne[BC_GGUF_FORMAT_DIMS];
    uint64_t size;
    uint64_t offset; /* after _plan */
};

struct bitconv_gguf_writer {
    struct bc_arena arena; /* names */
    struct writer_key *keys;
    size_t n_keys, cap_keys;
    struct writer_tensor *tensors;
    size_t n_tensors, cap_tensors;
    struct bc_buf header;
    struct bitconv_error fault; /* the first one, reported by _plan */
};

struct bitconv_gguf_writer *bitconv_gguf_writer_new(void)
{
    return bc_alloc_array(1, sizeof(struct bitconv_gguf_writer));
}

void bitconv_gguf_writer_free(struct bitconv_gguf_writer *w)
{
    if (w == NULL) return;
    for (size_t i = 0; i < w->n_keys; i++)
        bc_buf_release(&w->keys[i].value);
    bc_free(w->keys);
    bc_free(w->tensors);
    bc_buf_release(&w->header);
    bc_arena_release(&w->arena);
    bc_free(w);
}

static struct writer_key *find_key(const struct bitconv_gguf_writer *w, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < w->n_keys; i++) {
        if (w->keys[i].name_len == len && memcmp(w->keys[i].name, name, len) == 0) {
            return &w->keys[i];
        }
    }
    return NULL;
}

static struct writer_key *add_key(struct bitconv_gguf_writer *w, const char *name)
{
    void *items = w->keys;
    if (!bc_grow(&items, &w->cap_keys, w->n_keys, sizeof *w->keys)) return NULL;
    w->keys = items;
    struct writer_key *key = &w->keys[w->n_keys];
    memset(key, 0, sizeof *key);
    key->name_len = strlen(name);
    key->name = bc_arena_strdup(&w->arena, name);
    if (key->name == NULL) return NULL;
    w->n_keys++;
    return key;
}

/* The value buffer of a key, emptied and with the type in it; NULL when there was a fault. */
static struct bc_buf *begin_value(struct bitconv_gguf_writer *w, const char *name,
                                  enum bitconv_gguf_type type)
{
    const size_t len = strlen(name);
    if (len == 0 || len > BC_GGUF_MAX_KEY || !bc_utf8_valid(name, len)) {
        (void)bc_fail(&w->fault, BITCONV_E_ARG,
                      "GGUF key %s: a name of 1 to %d bytes of UTF-8 is wanted",
                      bc_gguf_label(name, len).text, (int)BC_GGUF_MAX_KEY);
        return NULL;
    }
    struct writer_key *key = find_key(w, name);
    if (key == NULL) key = add_key(w, name);
    if (key == NULL) {
        (void)bc_fail_nomem(&w->fault, "GGUF metadata");
        return NULL;
    }
    bc_buf_clear(&key->value);
    bc_buf_u32(&key->value, (uint32_t)type);
    return &key->value;
}

static void end_value(struct bitconv_gguf_writer *w, const struct bc_buf *value)
{
    if (value->failed) (void)bc_fail_nomem(&w->fault, "GGUF metadata");
}

void bitconv_gguf_set_scalar(struct bitconv_gguf_writer *w, const char *key,
                             enum bitconv_gguf_type type, const void *data)
{
    const uint64_t size = bc_gguf_scalar_size((uint32_t)type);
    if (size == 0) {
        (void)bc_fail(&w->fault, BITCONV_E_ARG, "GGUF key %s: %s is not a scalar type",
                      bc_gguf_label(key, strlen(key)).text, bitconv_gguf_type_name(type));
        return;
    }
    struct bc_buf *value = begin_value(w, key, type);
    if (value == NULL) return;
    bc_buf_append(value, data, (size_t)size);
    end_value(w, value);
}

void bitconv_gguf_set_u32(struct bitconv_gguf_writer *w, const char *key, uint32_t v)
{
    uint8_t bytes[4];
    bc_put_u32(bytes, v);
    bitconv_gguf_set_scalar(w, key, BITCONV_GGUF_UINT32, bytes);
}

void bitconv_gguf_set_f32(struct bitconv_gguf_writer *w, const char *key, float v)
{
    uint8_t bytes[4];
    bc_put_f32(bytes, v);
    bitconv_gguf_set_scalar(w, key, BITCONV_GGUF_FLOAT32, bytes);
}

void bitconv_gguf_set_bool(struct bitconv_gguf_writer *w, const char *key, bool v)
{
    const uint8_t byte = v ? 1 : 0;
    bitconv_gguf_set_scalar(w, key, BITCONV_GGUF_BOOL, &byte);
}

void bitconv_gguf_set_string(struct bitconv_gguf_writer *w, const char *key, const char *v)
{
    bitconv_gguf_set_string_n(w, key, v, strlen(v));
}

void bitconv_gguf_set_string_n(struct bitconv_gguf_writer *w, const char *key, const char *v,
                               size_t len)
{
    struct bc_buf *value = begin_value(w, key, BITCONV_GGUF_STRING);
    if (value == NULL) return;
    bc_buf_u64(value, len);
    bc_buf_append(value, v, len);
    end_value(w, value);
}

/* Does the payload hold exactly `count` elements? */
static bool payload_fits(enum bitconv_gguf_type elem, uint64_t count, const void *payload,
                         size_t payload_size)
{
    const uint64_t size = bc_gguf_scalar_size((uint32_t)elem);
    if (size > 0) return payload_size % size == 0 && payload_size / size == count;
    if (elem != BITCONV_GGUF_STRING) return false;
    struct bc_cursor c = bc_cursor_make(payload, payload_size);
    for (uint64_t i = 0; i < count && !c.overrun; i++)
        (void)bc_cursor_take(&c, bc_cursor_u64(&c));
    return !c.overrun && c.pos == payload_size;
}

void bitconv_gguf_set_array(struct bitconv_gguf_writer *w, const char *key,
                            enum bitconv_gguf_type elem, uint64_t count, const void *payload,
                            size_t payload_size)
{
    if (!payload_fits(elem, count, payload, payload_size)) {
        (void)bc_fail(&w->fault, BITCONV_E_ARG,
                      "GGUF key %s: %zu bytes are not an array of %" PRIu64 " %s",
                      bc_gguf_label(key, strlen(key)).text, payload_size, count,
                      bitconv_gguf_type_name(elem));
        return;
    }
    struct bc_buf *value = begin_value(w, key, BITCONV_GGUF_ARRAY);
    if (value == NULL) return;
    bc_buf_u32(value, (uint32_t)elem);
    bc_buf_u64(value, count);
    bc_buf_append(value, payload, payload_size);
    end_value(w, value);
}

bool bitconv_gguf_writer_has(const struct bitconv_gguf_writer *w, const char *key)
{
    return find_key(w, key) != NULL;
}

bool bitconv_gguf_writer_type(const struct bitconv_gguf_writer *w, const char *key,
                              enum bitconv_gguf_type *type)
{
    const struct writer_key *found = find_key(w, key);
    if (found == NULL || found->value.size < 4) return false;
    *type = (enum bitconv_gguf_type)bc_get_u32(found->value.data);
    return true;
}

void bitconv_gguf_unset(struct bitconv_gguf_writer *w, const char *key)
{
    struct writer_key *found = find_key(w, key);
    if (found == NULL) return;
    bc_buf_release(&found->value);
    const size_t index = (size_t)(found - w->keys);
    memmove(found, found + 1, (w->n_keys - index - 1) * sizeof *found);
    w->n_keys--;
}

void bitconv_gguf_add_tensor(struct bitconv_gguf_writer *w, const char *name, uint32_t type,
                             uint32_t n_dims, const uint64_t *ne, uint64_t size)
{
    const size_t len = strlen(name);
    if (len == 0 || len >= BC_GGUF_MAX_NAME || !bc_utf8_valid(name, len)) {
        (void)bc_fail(
            &w->fault, BITCONV_E_ARG,
            "GGUF tensor %s: a name of 1 to %d bytes of UTF-8 is wanted, this one has %zu",
            bc_gguf_label(name, len).text, (int)BC_GGUF_MAX_NAME - 1, len);
        return;
    }
    if (n_dims == 0 || n_dims > BC_GGUF_FORMAT_DIMS) {
        (void)bc_fail(&w->fault, BITCONV_E_ARG,
                      "GGUF tensor %s: %" PRIu32 " dimensions, 1 to %d can be written", name,
                      n_dims, (int)BC_GGUF_FORMAT_DIMS);
        return;
    }
    void *items = w->tensors;
    char *copy = bc_arena_strdup(&w->arena, name);
    if (copy == NULL || !bc_grow(&items, &w->cap_tensors, w->n_tensors, sizeof *w->tensors)) {
        (void)bc_fail_nomem(&w->fault, "GGUF tensor infos");
        return;
    }
    w->tensors = items;
    struct writer_tensor *t = &w->tensors[w->n_tensors++];
    memset(t, 0, sizeof *t);
    t->name = copy;
    t->name_len = len;
    t->type = type;
    t->n_dims = n_dims;
    for (uint32_t d = 0; d < n_dims; d++)
        t->ne[d] = ne[d];
    t->size = size;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum bitconv_status check_duplicates(const struct bitconv_gguf_writer *w,
                                            struct bitconv_error *err)
{
    enum bitconv_status status = BITCONV_OK;
    const char **sorted = bc_alloc_array(w->n_tensors, sizeof *sorted);
    if (sorted == NULL) return bc_fail_nomem(err, "GGUF tensor infos");
    for (size_t i = 0; i < w->n_tensors; i++)
        sorted[i] = w->tensors[i].name;
    if (w->n_tensors > 0) qsort(sorted, w->n_tensors, sizeof *sorted, compare_names);
    for (size_t i = 1; i < w->n_tensors && status == BITCONV_OK; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            status = bc_fail(err, BITCONV_E_ARG, "GGUF tensor %s: announced twice", sorted[i]);
        }
    }
    bc_free(sorted);
    return status;
}

/* The alignment is fixed; a key that says otherwise, copied from another file, would lie. */
static enum bitconv_status check_alignment(const struct bitconv_gguf_writer *w,
                                           struct bitconv_error *err)
{
    static const uint8_t only[8] = {BITCONV_GGUF_UINT32,       0, 0, 0,
                                    BC_GGUF_DEFAULT_ALIGNMENT, 0, 0, 0};
    const struct writer_key *key = find_key(w, "general.alignment");
    if (key == NULL ||
        (key->value.size == sizeof only && memcmp(key->value.data, only, sizeof only) == 0)) {
        return BITCONV_OK;
    }
    return bc_fail(err, BITCONV_E_ARG,
                   "GGUF key general.alignment: only UINT32 %d can be written, unset the key",
                   (int)BC_GGUF_DEFAULT_ALIGNMENT);
}

static enum bitconv_status fix_offsets(struct bitconv_gguf_writer *w, uint64_t *out_data_size,
                                       struct bitconv_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < w->n_tensors; i++) {
        struct writer_tensor *t = &w->tensors[i];
        t->offset = at;
        if (!bc_add_u64(at, t->size, &at) || at > INT64_MAX / 2) {
            return bc_fail(err, BITCONV_E_LIMIT, "GGUF tensor %s: the file would exceed 2^62 bytes",
                           t->name);
        }
        at = bc_round_up(at, BC_GGUF_DEFAULT_ALIGNMENT);
    }
    *out_data_size = at;
    return BITCONV_OK;
}

static void put_header(struct bitconv_gguf_writer *w)
{
    static const uint8_t zeros[BC_GGUF_DEFAULT_ALIGNMENT] = {0};
    struct bc_buf *out = &w->header;
    bc_buf_clear(out);
    bc_buf_append(out, "GGUF", 4);
    bc_buf_u32(out, 3);
    bc_buf_u64(out, w->n_tensors);
    bc_buf_u64(out, w->n_keys);
    for (size_t i = 0; i < w->n_keys; i++) {
        bc_buf_u64(out, w->keys[i].name_len);
        bc_buf_append(out, w->keys[i].name, w->keys[i].name_len);
        bc_buf_append(out, w->keys[i].value.data, w->keys[i].value.size);
    }
    for (size_t i = 0; i < w->n_tensors; i++) {
        const struct writer_tensor *t = &w->tensors[i];
        bc_buf_u64(out, t->name_len);
        bc_buf_append(out, t->name, t->name_len);
        bc_buf_u32(out, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++)
            bc_buf_u64(out, t->ne[d]);
        bc_buf_u32(out, t->type);
        bc_buf_u64(out, t->offset);
    }
    const uint64_t size = out->size;
    bc_buf_append(out, zeros, (size_t)(bc_round_up(size, BC_GGUF_DEFAULT_ALIGNMENT) - size));
}

enum bitconv_status bitconv_gguf_writer_plan(struct bitconv_gguf_writer *w, const uint8_t **header,
                                             uint64_t *header_size, uint64_t *file_size,
                                             struct bitconv_error *err)
{
    uint64_t data_size = 0;
    if (w->fault.status != BITCONV_OK) {
        return bc_fail(err, w->fault.status, "%s", w->fault.text);
    }
    BC_TRY(check_alignment(w, err));
    BC_TRY(check_duplicates(w, err));
    BC_TRY(fix_offsets(w, &data_size, err));
    put_header(w);
    if (w->header.failed) return bc_fail_nomem(err, "GGUF header");
    *header = w->header.data;
    *header_size = w->header.size;
    *file_size = w->header.size + data_size;
    return BITCONV_OK;
}

uint64_t bitconv_gguf_writer_tensor_offset(const struct bitconv_gguf_writer *w, size_t index)
{
    return index < w->n_tensors ? w->tensors[index].offset : 0;
}
