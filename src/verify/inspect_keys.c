/* SPDX-License-Identifier: MIT
 * Metadata for inspect: keys of a GGUF, pairs of a safetensors file, leaves of a config.json. */
#include <string.h>

#include "base/bytes.h"
#include "verify/inspector.h"

struct key_list {
    struct bc_inspector *in;
    struct bitconv_inspected_key *keys;
    size_t n, cap;
};

static const char *type_text(struct bc_inspector *in, const struct bitconv_gguf_value *v)
{
    if (v->type != BITCONV_GGUF_ARRAY) return bitconv_gguf_type_name(v->type);
    return bc_arena_printf(&in->data->arena, "ARRAY[%s]", bitconv_gguf_type_name(v->elem));
}

static enum bitconv_status add_key(struct key_list *list, const char *name, size_t name_len,
                                   const struct bitconv_gguf_value *value,
                                   struct bitconv_error *err)
{
    if (!bc_grow((void **)&list->keys, &list->cap, list->n, sizeof *list->keys))
        return bc_fail_nomem(err, "metadata");
    struct bitconv_inspected_key *key = &list->keys[list->n];
    key->name = name;
    key->name_len = name_len;
    key->value = *value;
    key->type = type_text(list->in, value);
    if (name == NULL || key->type == NULL) return bc_fail_nomem(err, "metadata");
    list->n++;
    return BITCONV_OK;
}

static enum bitconv_status add_string(struct key_list *list, const char *name, const char *text,
                                      struct bitconv_error *err)
{
    const size_t len = strlen(text);
    const struct bitconv_gguf_value value = {BITCONV_GGUF_STRING, BITCONV_GGUF_STRING, 1,
                                             (const uint8_t *)text, len};
    return add_key(list, name, name != NULL ? strlen(name) : 0, &value, err);
}

static enum bitconv_status gguf_keys(struct key_list *list, struct bitconv_error *err)
{
    const struct bitconv_gguf *file = list->in->data->container.gguf;
    for (size_t i = 0; i < bitconv_gguf_n_keys(file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(file, i);
        BC_TRY(add_key(list, key->name, key->name_len, &key->value, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status safetensors_keys(struct key_list *list, struct bitconv_error *err)
{
    const struct bitconv_safetensors *file = list->in->data->container.safetensors;
    const char *key = NULL;
    const char *value = NULL;
    for (size_t i = 0; bitconv_safetensors_metadata_at(file, i, &key, &value); i++)
        BC_TRY(add_string(list, key, value, err));
    return BITCONV_OK;
}

/* ---- config.json ---- */

/* The value of a JSON scalar, its bytes in the arena. */
static enum bitconv_status scalar(struct bc_arena *arena, const struct bc_json *node,
                                  struct bitconv_gguf_value *out, struct bitconv_error *err)
{
    uint8_t *bytes = bc_arena_alloc(arena, 8, 1);
    int64_t integer = 0;
    double real = 0;
    bool flag = false;
    if (bytes == NULL) return bc_fail_nomem(err, "metadata");
    memset(out, 0, sizeof *out);
    out->count = 1;
    out->data = bytes;
    if (bc_json_i64(node, &integer)) {
        out->type = BITCONV_GGUF_INT64;
        out->size = 8;
        bc_put_u64(bytes, (uint64_t)integer);
    } else if (bc_json_f64(node, &real)) {
        out->type = BITCONV_GGUF_FLOAT64;
        out->size = 8;
        bc_put_f64(bytes, real);
    } else if (bc_json_bool(node, &flag)) {
        out->type = BITCONV_GGUF_BOOL;
        out->size = 1;
        bytes[0] = flag;
    } else {
        const char *text = bc_json_string(node); /* NULL: a JSON null */
        out->type = BITCONV_GGUF_STRING;
        out->data = text != NULL ? (const uint8_t *)text : bytes;
        out->size = text != NULL ? strlen(text) : 0;
    }
    return BITCONV_OK;
}

static bool is_leaf(const struct bc_json *node)
{
    return bc_json_type(node) != BC_JSON_OBJECT && bc_json_type(node) != BC_JSON_ARRAY;
}

/* A list of scalars of one kind is one ARRAY; *done false: it is something else. */
static enum bitconv_status add_array(struct key_list *list, const char *name,
                                     const struct bc_json *node, bool *done,
                                     struct bitconv_error *err)
{
    struct bc_arena *arena = &list->in->data->arena;
    struct bitconv_gguf_value array = {.type = BITCONV_GGUF_ARRAY};
    struct bc_buf payload = {0};
    enum bitconv_status status = BITCONV_OK;
    *done = true;
    for (const struct bc_json *e = bc_json_first(node); e != NULL; e = bc_json_next(e)) {
        struct bitconv_gguf_value v;
        *done = is_leaf(e);
        if (*done) status = scalar(arena, e, &v, err);
        if (!*done || status != BITCONV_OK) break;
        if (array.count == 0) array.elem = v.type;
        *done = v.type == array.elem;
        if (!*done) break;
        array.count++;
        if (v.type == BITCONV_GGUF_STRING) bc_buf_u64(&payload, v.size);
        bc_buf_append(&payload, v.data, (size_t)v.size);
    }
    if (status == BITCONV_OK && *done) {
        uint8_t *bytes = bc_arena_alloc(arena, payload.size + 1, 1);
        array.data = bytes;
        array.size = payload.size;
        if (payload.failed || bytes == NULL)
            status = bc_fail_nomem(err, "metadata");
        else if (payload.size != 0)
            memcpy(bytes, payload.data, payload.size);
        if (status == BITCONV_OK) status = add_key(list, name, strlen(name), &array, err);
    }
    bc_buf_release(&payload);
    return status;
}

/* Members and elements of a container that is no list of like scalars; bc_json bounds the depth. */
static enum bitconv_status add_node(struct key_list *list, const char *name,
                                    const struct bc_json *node, struct bitconv_error *err)
{
    struct bitconv_gguf_value value;
    bool done = false;
    size_t index = 0;
    if (name == NULL) return bc_fail_nomem(err, "metadata");
    if (is_leaf(node)) {
        BC_TRY(scalar(&list->in->data->arena, node, &value, err));
        return add_key(list, name, strlen(name), &value, err);
    }
    if (bc_json_is(node, BC_JSON_ARRAY)) BC_TRY(add_array(list, name, node, &done, err));
    for (const struct bc_json *e = bc_json_first(node); !done && e != NULL; e = bc_json_next(e)) {
        const char *key = bc_json_key(e);
        const char *dot = name[0] != '\0' ? "." : "";
        const char *path =
            key != NULL ? bc_arena_printf(&list->in->data->arena, "%s%s%s", name, dot, key)
                        : bc_arena_printf(&list->in->data->arena, "%s%s%zu", name, dot, index);
        BC_TRY(add_node(list, path, e, err));
        index++;
    }
    return BITCONV_OK;
}

enum bitconv_status bc_inspect_keys(struct bc_inspector *in, struct bitconv_error *err)
{
    struct key_list list = {.in = in};
    const struct bc_container *c = &in->data->container;
    enum bitconv_status status;
    if (c->gguf != NULL)
        status = gguf_keys(&list, err);
    else if (c->safetensors != NULL)
        status = safetensors_keys(&list, err);
    else
        status = add_node(&list, "", c->checkpoint->config, err);
    in->out->keys = list.keys; /* freed with the inspection, also after a failure */
    in->out->n_keys = list.n;
    return status;
}
