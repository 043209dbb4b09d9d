/* SPDX-License-Identifier: MIT
 * The safetensors reader. Section numbers are those of formats/safetensors.md. */
#include "bitconv/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "io/dtype.h"
#include "io/safetensors_internal.h"

enum { LENGTH_SIZE = 8 }; /* the header's length, in front of it */

/* Names of tensors in messages are cut: a header may hold megabytes of them. */
#define NAME "%.200s"

struct metadata_pair {
    const char *key, *value;
};

struct bitconv_safetensors {
    struct bc_file map; /* zero when the bytes belong to the caller */
    const uint8_t *data;
    uint64_t size;
    const char *path;
    uint64_t header_size; /* of the JSON text */
    struct bitconv_tensor *tensors;
    size_t n_tensors;
    struct metadata_pair *metadata;
    size_t n_metadata;
    struct bc_arena arena; /* owns all of the above but the bytes */
};

static uint64_t data_start(const struct bitconv_safetensors *st)
{
    return LENGTH_SIZE + st->header_size;
}

/* Section 2: fills in st->header_size and returns true, or says in `fault` which rule is broken. */
static bool read_header_size(struct bitconv_safetensors *st, char *fault, size_t fault_size)
{
    if (st->size < LENGTH_SIZE) {
        (void)snprintf(fault, fault_size,
                       "%" PRIu64 " bytes are too few for the 8 bytes of the header's length",
                       st->size);
        return false;
    }
    st->header_size = bc_get_u64(st->data);
    if (st->header_size > st->size - LENGTH_SIZE) {
        (void)snprintf(fault, fault_size,
                       "a header of %" PRIu64 " bytes does not fit the file's %" PRIu64
                       " bytes: cut off, or not a safetensors file",
                       st->header_size, st->size);
        return false;
    }
    if (st->header_size < 2 || st->data[LENGTH_SIZE] != '{') {
        (void)snprintf(fault, fault_size, "the header (%" PRIu64 " bytes) does not start with '{'",
                       st->header_size);
        return false;
    }
    return true;
}

static enum bitconv_status check_container(struct bitconv_safetensors *st,
                                           struct bitconv_error *err)
{
    char fault[160];
    if (!read_header_size(st, fault, sizeof fault)) {
        char buf[160];
        const char *const guess = bc_file_guess(st->data, st->size, buf, sizeof buf);
        if (guess != NULL) return bc_fail(err, BITCONV_E_CORRUPT, "%s: is %s", st->path, guess);
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s", st->path, fault);
    }
    if (st->header_size > BC_SAFETENSORS_MAX_HEADER)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "%s: a header of %" PRIu64 " bytes, at most %u are allowed", st->path,
                       st->header_size, BC_SAFETENSORS_MAX_HEADER);
    return BITCONV_OK;
}

/* Section 3: numbers of a header are plain digits. The JSON tree cannot tell 2 from 2.0 or 2e0, nor
 * 0 from -0, so the text (known to be well-formed JSON) is asked. */
static enum bitconv_status check_numbers(const struct bitconv_safetensors *st,
                                         struct bitconv_error *err)
{
    const uint8_t *const text = st->data + LENGTH_SIZE;
    bool in_string = false;
    for (uint64_t i = 0; i < st->header_size; i++) {
        const uint8_t c = text[i];
        if (in_string && c == '\\') {
            i++;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string) {
            const bool after_digit = i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9';
            if (c == '-' || c == '.' || (after_digit && (c == 'e' || c == 'E')))
                return bc_fail_at(err, BITCONV_E_CORRUPT, LENGTH_SIZE + i,
                                  "%s: a number at byte %" PRIu64
                                  " of the header is not a plain non-negative integer",
                                  st->path, i);
        }
    }
    return BITCONV_OK;
}

static enum bitconv_status read_metadata(struct bitconv_safetensors *st, const struct bc_json *node,
                                         struct bitconv_error *err)
{
    if (bc_json_is(node, BC_JSON_NULL)) return BITCONV_OK;
    if (!bc_json_is(node, BC_JSON_OBJECT))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: __metadata__ is not an object", st->path);
    st->metadata = bc_arena_alloc(&st->arena, bc_json_size(node), sizeof *st->metadata);
    if (st->metadata == NULL) return bc_fail_nomem(err, "safetensors metadata");
    for (node = bc_json_first(node); node != NULL; node = bc_json_next(node)) {
        const char *const key = bc_json_key(node);
        if (!bc_json_is(node, BC_JSON_STRING))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: __metadata__: the value of '" NAME "' is not a string", st->path,
                           key);
        struct metadata_pair *const pair = &st->metadata[st->n_metadata++];
        pair->key = bc_arena_strdup(&st->arena, key);
        pair->value = bc_arena_strdup(&st->arena, bc_json_string(node));
        if (pair->key == NULL || pair->value == NULL)
            return bc_fail_nomem(err, "safetensors metadata");
    }
    return BITCONV_OK;
}

static enum bitconv_status read_dtype(const struct bitconv_safetensors *st,
                                      const struct bc_json *info, struct bitconv_tensor *t,
                                      struct bitconv_error *err)
{
    const char *const name = bc_json_string(bc_json_get(info, "dtype"));
    if (name == NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: " NAME ": dtype is missing or not a string",
                       st->path, t->name);
    if (bc_dtype_from_name(name, &t->dtype)) return BITCONV_OK;
    if (bc_dtype_is_foreign(name))
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: " NAME ": dtype %s is not supported, store the tensor in a wider type",
                       st->path, t->name, name);
    return bc_fail(err, BITCONV_E_CORRUPT, "%s: " NAME ": dtype '%.40s' is not known to the format",
                   st->path, t->name, name);
}

/* The dimensions and their product. */
static enum bitconv_status read_shape(struct bitconv_safetensors *st, const struct bc_json *info,
                                      struct bitconv_tensor *t, struct bitconv_error *err)
{
    const struct bc_json *const array = bc_json_get(info, "shape");
    if (!bc_json_is(array, BC_JSON_ARRAY))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: " NAME ": shape is missing or not an array",
                       st->path, t->name);
    /* Fits: each dimension takes at least one byte of a header of at most 100 MB. */
    t->n_dims = (uint32_t)bc_json_size(array);
    uint64_t *const shape = bc_arena_alloc(&st->arena, t->n_dims, sizeof *shape);
    if (shape == NULL) return bc_fail_nomem(err, "safetensors shape");
    t->shape = shape;
    t->n_elements = 1;
    size_t i = 0;
    for (const struct bc_json *e = bc_json_first(array); e != NULL; e = bc_json_next(e), i++) {
        if (!bc_json_u64(e, &shape[i]))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: " NAME
                           ": element %zu of shape is not an integer from 0 to 2^53 - 1",
                           st->path, t->name, i);
        if (!bc_mul_u64(t->n_elements, shape[i], &t->n_elements))
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: " NAME ": the number of elements overflows 64 bits", st->path,
                           t->name);
    }
    if (!bc_mul_u64(t->n_elements, bitconv_dtype_size(t->dtype), &t->size))
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: " NAME ": the number of bytes overflows 64 bits", st->path, t->name);
    return BITCONV_OK;
}

/* Where the data is; the size must be what dtype and shape say (t->size). */
static enum bitconv_status read_offsets(const struct bitconv_safetensors *st,
                                        const struct bc_json *info, struct bitconv_tensor *t,
                                        struct bitconv_error *err)
{
    const struct bc_json *const array = bc_json_get(info, "data_offsets");
    const struct bc_json *const first = bc_json_first(array);
    uint64_t begin, end;
    if (!bc_json_is(array, BC_JSON_ARRAY) || bc_json_size(array) != 2 ||
        !bc_json_u64(first, &begin) || !bc_json_u64(bc_json_next(first), &end))
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: " NAME ": data_offsets is not an array of two integers from 0 to "
                       "2^53 - 1",
                       st->path, t->name);
    if (begin > end)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: " NAME ": data_offsets are reversed (%" PRIu64 ", %" PRIu64 ")",
                       st->path, t->name, begin, end);
    if (end - begin != t->size)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: " NAME ": %" PRIu64 " elements of %s need %" PRIu64
                       " bytes, data_offsets give %" PRIu64,
                       st->path, t->name, t->n_elements, bitconv_dtype_name(t->dtype), t->size,
                       end - begin);
    t->file_offset = data_start(st) + begin;
    return BITCONV_OK;
}

/* Section 4: one entry of the header. t->data is set later, once it is known to be in the file. */
static enum bitconv_status read_tensor(struct bitconv_safetensors *st, const struct bc_json *info,
                                       struct bitconv_tensor *t, struct bitconv_error *err)
{
    t->name = bc_arena_strdup(&st->arena, bc_json_key(info));
    if (t->name == NULL) return bc_fail_nomem(err, "safetensors tensor name");
    t->file = st->path;
    if (!bc_json_is(info, BC_JSON_OBJECT))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: " NAME ": the entry is not an object", st->path,
                       t->name);
    BC_TRY(read_dtype(st, info, t, err));
    BC_TRY(read_shape(st, info, t, err));
    return read_offsets(st, info, t, err);
}

static int compare_names(const void *a, const void *b)
{
    const struct bitconv_tensor *const ta = a, *const tb = b;
    return strcmp(ta->name, tb->name);
}

/* By place, then size (empty tensors in front of what starts at the same byte), then name, which
 * makes messages the same everywhere. */
static int compare_places(const void *a, const void *b)
{
    const struct bitconv_tensor *const ta = a, *const tb = b;
    if (ta->file_offset != tb->file_offset) return ta->file_offset < tb->file_offset ? -1 : 1;
    if (ta->size != tb->size) return ta->size < tb->size ? -1 : 1;
    return compare_names(a, b);
}

/* Section 5, second half: what the tensors need (`end` bytes, without holes) is what the file has.
 */
static enum bitconv_status check_data_size(const struct bitconv_safetensors *st, uint64_t end,
                                           struct bitconv_error *err)
{
    const uint64_t found = st->size - data_start(st);
    if (end > found)
        return bc_fail_at(err, BITCONV_E_CORRUPT, st->size,
                          "%s: short by %" PRIu64 " of %" PRIu64
                          " data bytes: the file is cut off, fetch it again",
                          st->path, end - found, end);
    if (end < found)
        return bc_fail_at(err, BITCONV_E_CORRUPT, data_start(st) + end,
                          "%s: %" PRIu64 " bytes behind the %" PRIu64
                          " data bytes that the header describes",
                          st->path, found - end, end);
    return BITCONV_OK;
}

/* Section 5: the ranges tile the data section. */
static enum bitconv_status check_layout(struct bitconv_safetensors *st, struct bitconv_error *err)
{
    qsort(st->tensors, st->n_tensors, sizeof *st->tensors, compare_places);
    uint64_t end = 0;
    for (size_t i = 0; i < st->n_tensors; i++) {
        const struct bitconv_tensor *const t = &st->tensors[i];
        const uint64_t begin = t->file_offset - data_start(st);
        if (begin > end)
            return bc_fail_at(err, BITCONV_E_CORRUPT, data_start(st) + end,
                              "%s: " NAME ": data starts at %" PRIu64 ", %" PRIu64
                              " bytes in front of it belong to no tensor",
                              st->path, t->name, begin, begin - end);
        if (begin < end) /* so there is a tensor before this one */
            return bc_fail_at(err, BITCONV_E_CORRUPT, t->file_offset,
                              "%s: " NAME ": data starts at %" PRIu64 " and overlaps that of " NAME
                              ", which ends at %" PRIu64,
                              st->path, t->name, begin, st->tensors[i - 1].name, end);
        end = begin + t->size; /* both below 2^53 */
    }
    return check_data_size(st, end, err);
}

/* Fills in tensors and metadata from the header's tree. */
static enum bitconv_status read_entries(struct bitconv_safetensors *st, const struct bc_json *root,
                                        struct bitconv_error *err)
{
    const size_t n = bc_json_size(root);
    st->tensors = bc_arena_alloc(&st->arena, n, sizeof *st->tensors);
    if (st->tensors == NULL) return bc_fail_nomem(err, "safetensors tensors");
    for (const struct bc_json *e = bc_json_first(root); e != NULL; e = bc_json_next(e)) {
        if (strcmp(bc_json_key(e), "__metadata__") == 0)
            BC_TRY(read_metadata(st, e, err));
        else
            BC_TRY(read_tensor(st, e, &st->tensors[st->n_tensors++], err));
    }
    BC_TRY(check_layout(st, err));
    for (size_t i = 0; i < st->n_tensors; i++)
        st->tensors[i].data = st->data + st->tensors[i].file_offset;
    qsort(st->tensors, st->n_tensors, sizeof *st->tensors, compare_names);
    return BITCONV_OK;
}

static enum bitconv_status read_header(struct bitconv_safetensors *st, struct bitconv_error *err)
{
    BC_TRY(check_container(st, err));
    const char *const where = bc_arena_printf(&st->arena, "%s: header", st->path);
    if (where == NULL) return bc_fail_nomem(err, "path");
    struct bc_json *root;
    const bool first_failure = err != NULL && err->status == BITCONV_OK;
    enum bitconv_status status = bc_json_parse((const char *)st->data + LENGTH_SIZE,
                                               (size_t)st->header_size, where, &root, err);
    if (status != BITCONV_OK) {
        if (first_failure) err->offset += LENGTH_SIZE; /* it was counted from the text's start */
        return status;
    }
    status = check_numbers(st, err);
    if (status == BITCONV_OK) status = read_entries(st, root, err);
    bc_json_free(root);
    return status;
}

/* An object that knows its path and nothing else yet; NULL when out of memory. */
static struct bitconv_safetensors *new_object(const char *path)
{
    struct bitconv_safetensors *const st = bc_alloc_array(1, sizeof *st);
    if (st == NULL) return NULL;
    st->path = bc_arena_strdup(&st->arena, path);
    if (st->path != NULL) return st;
    bitconv_safetensors_close(st);
    return NULL;
}

/* Reads the bytes at st->data; closes `st` on failure. */
static enum bitconv_status finish(struct bitconv_safetensors *st, struct bitconv_safetensors **out,
                                  struct bitconv_error *err)
{
    const enum bitconv_status status = read_header(st, err);
    if (status == BITCONV_OK)
        *out = st;
    else
        bitconv_safetensors_close(st);
    return status;
}

enum bitconv_status bc_safetensors_parse(const uint8_t *data, uint64_t size, const char *path,
                                         struct bitconv_safetensors **out,
                                         struct bitconv_error *err)
{
    *out = NULL;
    struct bitconv_safetensors *const st = new_object(path);
    if (st == NULL) return bc_fail_nomem(err, "safetensors file");
    st->data = data;
    st->size = size;
    return finish(st, out, err);
}

enum bitconv_status bitconv_safetensors_open(const char *path, struct bitconv_safetensors **out,
                                             struct bitconv_error *err)
{
    *out = NULL;
    struct bitconv_safetensors *const st = new_object(path);
    if (st == NULL) return bc_fail_nomem(err, "safetensors file");
    const enum bitconv_status status = bc_file_open(path, &st->map, err);
    if (status != BITCONV_OK) {
        bitconv_safetensors_close(st);
        return status;
    }
    st->data = st->map.data;
    st->size = st->map.size;
    return finish(st, out, err);
}

void bitconv_safetensors_close(struct bitconv_safetensors *file)
{
    if (file == NULL) return;
    bc_file_close(&file->map);
    bc_arena_release(&file->arena);
    bc_free(file);
}

const struct bc_file *bc_safetensors_file(const struct bitconv_safetensors *file)
{
    return &file->map;
}

size_t bitconv_safetensors_count(const struct bitconv_safetensors *file)
{
    return file->n_tensors;
}

const struct bitconv_tensor *bitconv_safetensors_at(const struct bitconv_safetensors *file,
                                                    size_t index)
{
    return index < file->n_tensors ? &file->tensors[index] : NULL;
}

const struct bitconv_tensor *bitconv_safetensors_find(const struct bitconv_safetensors *file,
                                                      const char *name)
{
    const struct bitconv_tensor key = {.name = name};
    return bsearch(&key, file->tensors, file->n_tensors, sizeof key, compare_names);
}

size_t bitconv_safetensors_metadata_count(const struct bitconv_safetensors *file)
{
    return file->n_metadata;
}

bool bitconv_safetensors_metadata_at(const struct bitconv_safetensors *file, size_t index,
                                     const char **key, const char **value)
{
    if (index >= file->n_metadata) return false;
    *key = file->metadata[index].key;
    *value = file->metadata[index].value;
    return true;
}

uint64_t bitconv_safetensors_header_size(const struct bitconv_safetensors *file)
{
    return file->header_size;
}

uint64_t bitconv_safetensors_file_size(const struct bitconv_safetensors *file)
{
    return file->size;
}
