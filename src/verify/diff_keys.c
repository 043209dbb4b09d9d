/* SPDX-License-Identifier: MIT
 * Metadata of two containers side by side: what was added, removed, changed, and whether that says
 * something of the model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "verify/differ.h"

enum { TEXT_BYTES = 60 }; /* of a string that is shown */

/* The files of a checkpoint besides weights and config.json that make up the model. */
static const char *const files[] = {
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "modules.json",
    "1_Pooling/config.json",
};
#define N_FILES (sizeof files / sizeof files[0])

static bool begins_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

static bool counts(enum bitconv_container container, const char *name)
{
    static const char *const about_file[] = {"bitconv.", "split.", "quantize.", "general."};
    static const char *const config[] = {"transformers_version", "_name_or_path", "torch_dtype",
                                         "dtype"};
    if (container == BITCONV_CONTAINER_SAFETENSORS) return false;
    if (container == BITCONV_CONTAINER_CHECKPOINT) {
        const char *dot = strrchr(name, '.');
        const char *last = dot != NULL ? dot + 1 : name;
        for (size_t i = 0; i < sizeof config / sizeof config[0]; i++)
            if (strcmp(last, config[i]) == 0) return false;
        return true;
    }
    if (strcmp(name, "general.architecture") == 0) return true;
    for (size_t i = 0; i < sizeof about_file / sizeof about_file[0]; i++)
        if (begins_with(name, about_file[i])) return false;
    return true;
}

/* ---- values as texts ---- */

static void string_text(struct bc_buf *out, const char *s, size_t len)
{
    bc_buf_putc(out, '"');
    bc_buf_append(out, s, len < TEXT_BYTES ? len : TEXT_BYTES);
    bc_buf_puts(out, len < TEXT_BYTES ? "\"" : "\"..");
}

static void scalar_text(struct bc_buf *out, const struct bitconv_gguf_value *v)
{
    const char *s = NULL;
    size_t len = 0;
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    if (bitconv_gguf_value_string(v, &s, &len))
        string_text(out, s, len);
    else if (bitconv_gguf_value_bool(v, &b))
        bc_buf_puts(out, b ? "true" : "false");
    else if (bitconv_gguf_value_u64(v, &u))
        bc_buf_printf(out, "%" PRIu64, u);
    else if (bitconv_gguf_value_i64(v, &i))
        bc_buf_printf(out, "%" PRId64, i);
    else if (bitconv_gguf_value_f64(v, &f))
        bc_buf_printf(out, "%.*g", v->type == BITCONV_GGUF_FLOAT32 ? 9 : 17, f);
}

static void element_text(struct bc_buf *out, const struct bitconv_gguf_value *v, uint64_t index)
{
    struct bitconv_gguf_value element;
    const char *s = NULL;
    size_t len = 0;
    uint64_t pos = 0;
    if (bitconv_gguf_array_at(v, index, &element)) {
        scalar_text(out, &element);
        return;
    }
    for (uint64_t i = 0; i <= index; i++)
        if (!bitconv_gguf_array_next_string(v, &pos, &s, &len)) return;
    string_text(out, s, len);
}

/* Index of the first element of two arrays of one type that differs; the length of the shorter one
 * when it is the beginning of the other. */
static uint64_t first_difference(const struct bitconv_gguf_value *a,
                                 const struct bitconv_gguf_value *b)
{
    const uint64_t n = a->count < b->count ? a->count : b->count;
    if (a->elem != BITCONV_GGUF_STRING) {
        const uint64_t width = a->count != 0 ? a->size / a->count : 1;
        for (uint64_t i = 0; i < n; i++)
            if (memcmp(a->data + i * width, b->data + i * width, (size_t)width) != 0) return i;
        return n;
    }
    uint64_t pos_a = 0, pos_b = 0;
    for (uint64_t i = 0; i < n; i++) {
        const char *s = NULL, *t = NULL;
        size_t s_len = 0, t_len = 0;
        (void)bitconv_gguf_array_next_string(a, &pos_a, &s, &s_len);
        (void)bitconv_gguf_array_next_string(b, &pos_b, &t, &t_len);
        if (s_len != t_len || memcmp(s, t, s_len) != 0) return i;
    }
    return n;
}

static void value_text(struct bc_buf *out, const struct bitconv_gguf_value *v,
                       const struct bitconv_gguf_value *other)
{
    if (v->type != BITCONV_GGUF_ARRAY) {
        scalar_text(out, v);
        return;
    }
    const bool alike = other != NULL && other->type == v->type && other->elem == v->elem;
    const uint64_t at = alike ? first_difference(v, other) : v->count;
    if (at >= v->count) {
        bc_buf_printf(out, "%" PRIu64 " element%s", v->count, v->count == 1 ? "" : "s");
        return;
    }
    bc_buf_printf(out, "[%" PRIu64 "] of %" PRIu64 ": ", at, v->count);
    element_text(out, v, at);
}

static bool same_value(const struct bitconv_gguf_value *a, const struct bitconv_gguf_value *b)
{
    return a->type == b->type && (a->type != BITCONV_GGUF_ARRAY || a->elem == b->elem) &&
           a->count == b->count && a->size == b->size &&
           (a->size == 0 || memcmp(a->data, b->data, (size_t)a->size) == 0);
}

/* ---- keys ---- */

static enum bitconv_status add(struct bc_differ *d, const struct bitconv_diff_key *key, size_t *cap,
                               struct bitconv_error *err)
{
    struct bitconv_diff *out = d->out;
    if (!bc_grow((void **)&out->keys, cap, out->n_keys, sizeof *out->keys))
        return bc_fail_nomem(err, "the keys that differ");
    out->keys[out->n_keys++] = *key;
    out->n_different_keys += key->counts || d->options->strict;
    return BITCONV_OK;
}

static enum bitconv_status text_of(struct bc_differ *d, const struct bitconv_inspected_key *key,
                                   const struct bitconv_inspected_key *other, const char **text,
                                   const char **type, struct bitconv_error *err)
{
    struct bc_buf buf = {0};
    if (key == NULL) return BITCONV_OK;
    value_text(&buf, &key->value, other != NULL ? &other->value : NULL);
    *text = bc_arena_strndup(&d->data->arena, bc_buf_str(&buf), buf.size);
    *type = key->type;
    const bool failed = buf.failed || *text == NULL;
    bc_buf_release(&buf);
    return failed ? bc_fail_nomem(err, "the keys that differ") : BITCONV_OK;
}

/* One key; a or b is NULL where it is missing. */
static enum bitconv_status compare_key(struct bc_differ *d, const struct bitconv_inspected_key *a,
                                       const struct bitconv_inspected_key *b, size_t *cap,
                                       struct bitconv_error *err)
{
    struct bitconv_diff_key key = {.name = a != NULL ? a->name : b->name};
    if (a != NULL && b != NULL && same_value(&a->value, &b->value)) {
        d->out->n_same_keys++;
        return BITCONV_OK;
    }
    key.verdict = b == NULL   ? BITCONV_DIFF_ONLY_A
                  : a == NULL ? BITCONV_DIFF_ONLY_B
                              : BITCONV_DIFF_CHANGED;
    key.counts = counts(d->side[0].it->container, key.name);
    BC_TRY(text_of(d, a, b, &key.a, &key.type_a, err));
    BC_TRY(text_of(d, b, a, &key.b, &key.type_b, err));
    return add(d, &key, cap, err);
}

static enum bitconv_status index_keys(const struct bitconv_inspection *it, struct bc_map *map,
                                      struct bitconv_error *err)
{
    for (size_t i = 0; i < it->n_keys; i++)
        if (bc_map_put(map, it->keys[i].name, it->keys[i].name_len, i, NULL) == BC_MAP_NOMEM)
            return bc_fail_nomem(err, "the names of keys");
    return BITCONV_OK;
}

static enum bitconv_status compare_keys(struct bc_differ *d, struct bc_map *in_a,
                                        struct bc_map *in_b, size_t *cap, struct bitconv_error *err)
{
    const struct bitconv_inspection *a = d->side[0].it, *b = d->side[1].it;
    uint64_t at = 0;
    BC_TRY(index_keys(a, in_a, err));
    BC_TRY(index_keys(b, in_b, err));
    for (size_t i = 0; i < a->n_keys; i++) {
        const struct bitconv_inspected_key *key = &a->keys[i];
        const bool both = bc_map_get(in_b, key->name, key->name_len, &at);
        BC_TRY(compare_key(d, key, both ? &b->keys[at] : NULL, cap, err));
    }
    for (size_t i = 0; i < b->n_keys; i++) {
        const struct bitconv_inspected_key *key = &b->keys[i];
        if (!bc_map_get(in_a, key->name, key->name_len, &at))
            BC_TRY(compare_key(d, NULL, key, cap, err));
    }
    return BITCONV_OK;
}

/* ---- files of checkpoints ---- */

/* The content of DIR/NAME, or of DIR/NAME.gz; *found is false when there is neither. */
static enum bitconv_status load(const char *dir, const char *name, struct bc_buf *content,
                                bool *found, struct bitconv_error *err)
{
    struct bc_buf path = {0};
    bc_buf_printf(&path, "%s/%s", dir, name);
    *found = !path.failed && bc_path_kind(bc_buf_str(&path)) == BC_PATH_FILE;
    if (!*found) {
        bc_buf_puts(&path, ".gz");
        *found = !path.failed && bc_path_kind(bc_buf_str(&path)) == BC_PATH_FILE;
    }
    enum bitconv_status status = BITCONV_OK;
    if (path.failed)
        status = bc_fail_nomem(err, "a path");
    else if (*found)
        status = bc_text_load(bc_buf_str(&path), content, err);
    bc_buf_release(&path);
    return status;
}

static enum bitconv_status size_text(struct bc_differ *d, uint64_t size, const char **text,
                                     const char **type, struct bitconv_error *err)
{
    *type = "FILE";
    *text = bc_arena_printf(&d->data->arena, "%" PRIu64 " bytes", size);
    return *text == NULL ? bc_fail_nomem(err, "the files that differ") : BITCONV_OK;
}

static enum bitconv_status judge_file(struct bc_differ *d, const char *name,
                                      const struct bc_buf content[2], const bool found[2],
                                      size_t *cap, struct bitconv_error *err)
{
    struct bitconv_diff_key key = {.name = name, .counts = true};
    if (!found[0] && !found[1]) return BITCONV_OK;
    if (found[0] && found[1] && content[0].size == content[1].size &&
        (content[0].size == 0 || memcmp(content[0].data, content[1].data, content[0].size) == 0)) {
        d->out->n_same_keys++;
        return BITCONV_OK;
    }
    key.verdict = !found[1]   ? BITCONV_DIFF_ONLY_A
                  : !found[0] ? BITCONV_DIFF_ONLY_B
                              : BITCONV_DIFF_CHANGED;
    if (found[0]) BC_TRY(size_text(d, content[0].size, &key.a, &key.type_a, err));
    if (found[1]) BC_TRY(size_text(d, content[1].size, &key.b, &key.type_b, err));
    return add(d, &key, cap, err);
}

static enum bitconv_status compare_files(struct bc_differ *d, size_t *cap,
                                         struct bitconv_error *err)
{
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < N_FILES && status == BITCONV_OK; i++) {
        struct bc_buf content[2] = {{0}, {0}};
        bool found[2] = {false, false};
        for (size_t k = 0; k < 2 && status == BITCONV_OK; k++)
            status = load(d->side[k].path, files[i], &content[k], &found[k], err);
        if (status == BITCONV_OK) status = judge_file(d, files[i], content, found, cap, err);
        bc_buf_release(&content[0]);
        bc_buf_release(&content[1]);
    }
    return status;
}

enum bitconv_status bc_diff_keys(struct bc_differ *d, struct bitconv_error *err)
{
    const enum bitconv_container kind = d->side[0].it->container;
    struct bc_map in_a = {0}, in_b = {0};
    size_t cap = 0;
    if (kind != d->side[1].it->container) {
        d->out->keys_skipped = "a safetensors file has none of a checkpoint's";
        return BITCONV_OK;
    }
    enum bitconv_status status = compare_keys(d, &in_a, &in_b, &cap, err);
    if (status == BITCONV_OK && kind == BITCONV_CONTAINER_CHECKPOINT)
        status = compare_files(d, &cap, err);
    bc_map_release(&in_a);
    bc_map_release(&in_b);
    return status;
}
