/* SPDX-License-Identifier: MIT
 * One GGUF file taken apart: header, metadata keys, tensor infos (ggml docs/gguf.md, versions 2,
 * 3).
 *
 * Every count is compared with the bytes that are left before anything is allocated for it, so the
 * memory used is bounded by the size of the file. Arrays of arrays are refused: no recursion. */
#include "io/gguf_impl.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct bitconv_gguf *g;
    struct bc_gguf_shard *s;
    struct bc_cursor c;
    struct bitconv_error *err;
};

static uint32_t swap_u32(uint32_t v)
{
    return v >> 24 | (v >> 8 & 0xff00u) | (v << 8 & 0xff0000u) | v << 24;
}

static enum bitconv_status refuse_magic(const struct parser *p)
{
    char guess[160];
    const char *what = bc_file_guess(p->s->data, p->s->size, guess, sizeof guess);
    if (what != NULL) {
        return bc_fail(p->err, BITCONV_E_CORRUPT, "%s: not a GGUF file, but %s", p->s->path, what);
    }
    return bc_fail(p->err, BITCONV_E_CORRUPT,
                   "%s: not a GGUF file: it does not start with the bytes \"GGUF\"", p->s->path);
}

static enum bitconv_status check_version(const struct parser *p, uint32_t version)
{
    if (version == 2 || version == 3) return BITCONV_OK;
    /* the low half of a byte-swapped small number is zero */
    if (version != 0 && (version & 0xffffu) == 0) {
        return bc_fail_at(p->err, BITCONV_E_UNSUPPORTED, 4,
                          "%s: big-endian GGUF (version %" PRIu32
                          "): only little-endian files are read, convert it on its own machine",
                          p->s->path, swap_u32(version));
    }
    return bc_fail_at(p->err, BITCONV_E_UNSUPPORTED, 4,
                      "%s: GGUF version %" PRIu32 ", only versions 2 and 3 are read%s", p->s->path,
                      version, version == 1 ? ": convert the model again from its checkpoint" : "");
}

static enum bitconv_status read_header(struct parser *p)
{
    struct bc_gguf_shard *s = p->s;
    if (s->size < 4 || memcmp(s->data, "GGUF", 4) != 0) return refuse_magic(p);
    bc_cursor_take(&p->c, 4);
    s->version = bc_cursor_u32(&p->c);
    if (!p->c.overrun) BC_TRY(check_version(p, s->version));
    const uint64_t n_tensors = bc_cursor_u64(&p->c);
    const uint64_t n_keys = bc_cursor_u64(&p->c);
    if (p->c.overrun) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, s->size,
                          "%s: cut off inside the header: %" PRIu64 " bytes, the header has %d",
                          s->path, s->size, (int)BC_GGUF_HEADER_BYTES);
    }
    const uint64_t left = bc_cursor_left(&p->c);
    if (n_keys > left / BC_GGUF_MIN_KEY_BYTES) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, 16,
                          "%s: the header promises %" PRIu64 " keys, at most %" PRIu64
                          " fit into the file",
                          s->path, n_keys, left / BC_GGUF_MIN_KEY_BYTES);
    }
    if (n_tensors > (left - n_keys * BC_GGUF_MIN_KEY_BYTES) / BC_GGUF_MIN_INFO_BYTES) {
        return bc_fail_at(
            p->err, BITCONV_E_CORRUPT, 8,
            "%s: the header promises %" PRIu64 " tensors, at most %" PRIu64 " fit into the file",
            s->path, n_tensors, (left - n_keys * BC_GGUF_MIN_KEY_BYTES) / BC_GGUF_MIN_INFO_BYTES);
    }
    s->n_keys = (size_t)n_keys;
    s->n_tensors = (size_t)n_tensors;
    return BITCONV_OK;
}

/* A u64 length and that many bytes. For messages: `what` it is, with the name of `key` behind it
 * when that is not NULL. */
static enum bitconv_status read_string(struct parser *p, const char *what,
                                       const struct bitconv_gguf_key *key, const char **out,
                                       uint64_t *out_len)
{
    const uint64_t start = p->c.pos;
    const uint64_t len = bc_cursor_u64(&p->c);
    const uint64_t left = bc_cursor_left(&p->c);
    const bool cut = p->c.overrun;
    const uint8_t *bytes = bc_cursor_take(&p->c, len);
    if (bytes != NULL) {
        *out = (const char *)bytes;
        *out_len = len;
        return BITCONV_OK;
    }
    const struct bc_gguf_label l = key != NULL ? bc_gguf_key_label(key) : bc_gguf_label("", 0);
    if (cut) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, start,
                          "%s: the file ends inside the length of %s%s", p->s->path, what, l.text);
    }
    return bc_fail_at(p->err, BITCONV_E_CORRUPT, start,
                      "%s: %s%s has a length of %" PRIu64 " bytes, %" PRIu64
                      " are left in the file",
                      p->s->path, what, l.text, len, left);
}

static enum bitconv_status refuse_value(const struct parser *p, const struct bitconv_gguf_key *key,
                                        const char *what)
{
    return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos, "%s: key %s: %s", p->s->path,
                      bc_gguf_key_label(key).text, what);
}

static enum bitconv_status read_string_array(struct parser *p, struct bitconv_gguf_key *key)
{
    struct bitconv_gguf_value *v = &key->value;
    const uint64_t start = p->c.pos;
    for (uint64_t i = 0; i < v->count; i++) {
        const char *text;
        uint64_t len;
        BC_TRY(read_string(p, "a string in key ", key, &text, &len));
    }
    v->data = p->s->data + start;
    v->size = p->c.pos - start;
    return BITCONV_OK;
}

static enum bitconv_status read_array(struct parser *p, struct bitconv_gguf_key *key)
{
    struct bitconv_gguf_value *v = &key->value;
    const uint32_t elem = bc_cursor_u32(&p->c);
    const uint64_t count = bc_cursor_u64(&p->c);
    if (p->c.overrun) return refuse_value(p, key, "the file ends inside an array");
    if (elem == BITCONV_GGUF_ARRAY) {
        return bc_fail_at(p->err, BITCONV_E_UNSUPPORTED, p->c.pos,
                          "%s: key %s: an array of arrays, which no known key uses, is not read",
                          p->s->path, bc_gguf_key_label(key).text);
    }
    const uint64_t min_size = elem == BITCONV_GGUF_STRING ? 8 : bc_gguf_scalar_size(elem);
    if (min_size == 0) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos,
                          "%s: key %s: array of unknown value type %" PRIu32
                          ", 0 to 12 are defined",
                          p->s->path, bc_gguf_key_label(key).text, elem);
    }
    const uint64_t left = bc_cursor_left(&p->c);
    if (count > left / min_size) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos,
                          "%s: key %s: array of %" PRIu64 " %s, at most %" PRIu64
                          " fit into the rest of the file",
                          p->s->path, bc_gguf_key_label(key).text, count,
                          bitconv_gguf_type_name(elem), left / min_size);
    }
    v->elem = (enum bitconv_gguf_type)elem;
    v->count = count;
    if (elem == BITCONV_GGUF_STRING) return read_string_array(p, key);
    v->size = count * min_size;
    v->data = bc_cursor_take(&p->c, v->size);
    return BITCONV_OK;
}

static enum bitconv_status read_value(struct parser *p, struct bitconv_gguf_key *key)
{
    struct bitconv_gguf_value *v = &key->value;
    const uint32_t type = bc_cursor_u32(&p->c);
    if (p->c.overrun) return refuse_value(p, key, "the file ends before its type");
    if (type > BITCONV_GGUF_FLOAT64) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos - 4,
                          "%s: key %s: unknown value type %" PRIu32 ", 0 to 12 are defined",
                          p->s->path, bc_gguf_key_label(key).text, type);
    }
    v->type = (enum bitconv_gguf_type)type;
    v->elem = v->type;
    v->count = 1;
    if (type == BITCONV_GGUF_ARRAY) return read_array(p, key);
    if (type == BITCONV_GGUF_STRING) {
        const char *text;
        BC_TRY(read_string(p, "the value of key ", key, &text, &v->size));
        v->data = (const uint8_t *)text;
        return BITCONV_OK;
    }
    v->size = bc_gguf_scalar_size(type);
    v->data = bc_cursor_take(&p->c, v->size);
    if (v->data == NULL) return refuse_value(p, key, "the file ends inside its value");
    return BITCONV_OK;
}

/* Findings about a key name or tensor name; `what` is "key" or "tensor". */
static void check_name(struct parser *p, const char *what, const char *name, size_t len)
{
    if (len == 0) bc_gguf_note(p->g, &p->g->findings, true, "a %s has an empty name", what);
    if (!bc_utf8_valid(name, len)) {
        bc_gguf_note(p->g, &p->g->findings, true, "%s %s: its name is not UTF-8", what,
                     bc_gguf_label(name, len).text);
    }
    if (memchr(name, '\0', len) != NULL) {
        bc_gguf_note(p->g, &p->g->findings, true, "%s %s: its name contains a NUL byte", what,
                     bc_gguf_label(name, len).text);
    }
}

static enum bitconv_status read_key(struct parser *p, struct bitconv_gguf_key *key)
{
    const char *name;
    uint64_t len;
    BC_TRY(read_string(p, "the name of a key", NULL, &name, &len));
    key->name = bc_arena_strndup(&p->g->arena, name, (size_t)len);
    key->name_len = (size_t)len;
    if (key->name == NULL) return bc_fail_nomem(p->err, "GGUF keys");
    check_name(p, "key", name, key->name_len);
    if (len > BC_GGUF_MAX_KEY) {
        bc_gguf_note(p->g, &p->g->findings, true,
                     "key %s: its name has %" PRIu64 " bytes, %d are allowed",
                     bc_gguf_key_label(key).text, len, (int)BC_GGUF_MAX_KEY);
    }
    return read_value(p, key);
}

static int compare_keys(const void *a, const void *b)
{
    const struct bitconv_gguf_key *x = *(const struct bitconv_gguf_key *const *)a;
    const struct bitconv_gguf_key *y = *(const struct bitconv_gguf_key *const *)b;
    const size_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
    const int order = memcmp(x->name, y->name, n);
    if (order != 0) return order;
    return x->name_len < y->name_len ? -1 : x->name_len > y->name_len;
}

static enum bitconv_status index_keys(struct parser *p)
{
    struct bc_gguf_shard *s = p->s;
    for (size_t i = 0; i < s->n_keys; i++)
        s->key_index[i] = &s->keys[i];
    if (s->n_keys > 0) qsort(s->key_index, s->n_keys, sizeof *s->key_index, compare_keys);
    for (size_t i = 1; i < s->n_keys; i++) {
        if (compare_keys(&s->key_index[i - 1], &s->key_index[i]) != 0) continue;
        const struct bitconv_gguf_key *k = s->key_index[i];
        return bc_fail(p->err, BITCONV_E_CORRUPT, "%s: key %s occurs twice", s->path,
                       bc_gguf_key_label(k).text);
    }
    return BITCONV_OK;
}

static enum bitconv_status read_keys(struct parser *p)
{
    struct bc_gguf_shard *s = p->s;
    s->keys = bc_alloc_array(s->n_keys, sizeof *s->keys);
    s->key_index = bc_alloc_array(s->n_keys, sizeof *s->key_index);
    if (s->keys == NULL || s->key_index == NULL) return bc_fail_nomem(p->err, "GGUF keys");
    for (size_t i = 0; i < s->n_keys; i++)
        BC_TRY(read_key(p, &s->keys[i]));
    return index_keys(p);
}

const struct bitconv_gguf_value *bc_gguf_shard_key(const struct bc_gguf_shard *s, const char *name)
{
    const struct bitconv_gguf_key wanted = {name, strlen(name), {0}};
    const struct bitconv_gguf_key *key = &wanted;
    if (s->n_keys == 0) return NULL;
    const struct bitconv_gguf_key *const *found =
        bsearch(&key, s->key_index, s->n_keys, sizeof *s->key_index, compare_keys);
    return found != NULL ? &(*found)->value : NULL;
}

static enum bitconv_status read_alignment(struct parser *p)
{
    const struct bitconv_gguf_value *v = bc_gguf_shard_key(p->s, "general.alignment");
    p->s->alignment = BC_GGUF_DEFAULT_ALIGNMENT;
    if (v == NULL) return BITCONV_OK;
    if (v->type != BITCONV_GGUF_UINT32) {
        return bc_fail(p->err, BITCONV_E_CORRUPT, "%s: general.alignment is of type %s, not UINT32",
                       p->s->path, bitconv_gguf_type_name(v->type));
    }
    const uint32_t alignment = bc_get_u32(v->data);
    if (alignment < BC_GGUF_MIN_ALIGNMENT || alignment > BC_GGUF_MAX_ALIGNMENT ||
        (alignment & (alignment - 1)) != 0) {
        return bc_fail(p->err, BITCONV_E_CORRUPT,
                       "%s: general.alignment is %" PRIu32 ", not a power of two from %d to %d",
                       p->s->path, alignment, (int)BC_GGUF_MIN_ALIGNMENT,
                       (int)BC_GGUF_MAX_ALIGNMENT);
    }
    p->s->alignment = alignment;
    return BITCONV_OK;
}

/* Dimensions: each at most INT64_MAX, and their product too, with zeros counted as ones, so that
 * any partial product is safe for whoever uses them. */
static enum bitconv_status read_dims(struct parser *p, struct bitconv_gguf_tensor *t)
{
    uint64_t product = 1;
    bool zero = false;
    for (uint32_t d = 0; d < BITCONV_GGUF_MAX_DIMS; d++)
        t->ne[d] = 1;
    for (uint32_t d = 0; d < t->n_dims; d++) {
        const uint64_t ne = bc_cursor_u64(&p->c);
        if (ne > INT64_MAX || !bc_mul_u64(product, ne == 0 ? 1 : ne, &product) ||
            product > INT64_MAX) {
            return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos,
                              "%s: tensor %s: dimension %" PRIu32 " of %" PRIu64
                              " makes more elements than 2^63 - 1",
                              p->s->path, bc_gguf_tensor_label(t).text, d, ne);
        }
        t->ne[d] = ne;
        zero = zero || ne == 0;
    }
    t->n_elements = zero ? 0 : product;
    if (p->c.overrun) return BITCONV_OK; /* the caller says so */
    if (zero) {
        bc_gguf_note(p->g, &p->g->findings, false, "tensor %s: a dimension is zero, it is empty",
                     bc_gguf_tensor_label(t).text);
    }
    if (t->n_dims > BC_GGUF_FORMAT_DIMS) {
        bc_gguf_note(p->g, &p->g->findings, true,
                     "tensor %s: %" PRIu32 " dimensions, the format has at most %d",
                     bc_gguf_tensor_label(t).text, t->n_dims, (int)BC_GGUF_FORMAT_DIMS);
    }
    return BITCONV_OK;
}

static void check_tensor_name(struct parser *p, const struct bitconv_gguf_tensor *t)
{
    check_name(p, "tensor", t->name, t->name_len);
    if (t->name_len < BC_GGUF_MAX_NAME) return;
    bc_gguf_note(p->g, &p->g->findings, t->name_len > BC_GGUF_MAX_NAME,
                 "tensor %s: its name has %zu bytes, %s", bc_gguf_tensor_label(t).text, t->name_len,
                 t->name_len > BC_GGUF_MAX_NAME ? "the format allows 64"
                                                : "ggml readers stop at 63");
}

static enum bitconv_status read_info(struct parser *p, struct bitconv_gguf_tensor *t)
{
    const char *name;
    uint64_t len;
    BC_TRY(read_string(p, "the name of a tensor", NULL, &name, &len));
    t->name = bc_arena_strndup(&p->g->arena, name, (size_t)len);
    t->name_len = (size_t)len;
    if (t->name == NULL) return bc_fail_nomem(p->err, "GGUF tensor infos");
    check_tensor_name(p, t);
    t->n_dims = bc_cursor_u32(&p->c);
    if (t->n_dims > BITCONV_GGUF_MAX_DIMS) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos,
                          "%s: tensor %s: %" PRIu32 " dimensions, at most %d are read", p->s->path,
                          bc_gguf_tensor_label(t).text, t->n_dims, (int)BITCONV_GGUF_MAX_DIMS);
    }
    BC_TRY(read_dims(p, t));
    t->type = bc_cursor_u32(&p->c);
    t->offset = bc_cursor_u64(&p->c);
    if (p->c.overrun) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->s->size,
                          "%s: tensor %s: the file ends inside its tensor info", p->s->path,
                          bc_gguf_tensor_label(t).text);
    }
    return BITCONV_OK;
}

static enum bitconv_status read_infos(struct parser *p)
{
    struct bc_gguf_shard *s = p->s;
    if (s->n_tensors > bc_cursor_left(&p->c) / BC_GGUF_MIN_INFO_BYTES) {
        return bc_fail_at(p->err, BITCONV_E_CORRUPT, p->c.pos,
                          "%s: the header promises %zu tensors, at most %" PRIu64
                          " fit behind the keys",
                          s->path, s->n_tensors, bc_cursor_left(&p->c) / BC_GGUF_MIN_INFO_BYTES);
    }
    s->tensors = bc_alloc_array(s->n_tensors, sizeof *s->tensors);
    if (s->tensors == NULL) return bc_fail_nomem(p->err, "GGUF tensor infos");
    for (size_t i = 0; i < s->n_tensors; i++)
        BC_TRY(read_info(p, &s->tensors[i]));
    s->data_offset = bc_round_up(p->c.pos, s->alignment);
    /* a file without tensors may end behind its keys */
    if (s->n_tensors == 0 && s->data_offset > s->size) s->data_offset = s->size;
    return BITCONV_OK;
}

enum bitconv_status bc_gguf_parse_shard(struct bitconv_gguf *g, struct bc_gguf_shard *s,
                                        struct bitconv_error *err)
{
    struct parser p = {g, s, bc_cursor_make(s->data, s->size), err};
    BC_TRY(read_header(&p));
    BC_TRY(read_keys(&p));
    BC_TRY(read_alignment(&p));
    return read_infos(&p);
}
