/* SPDX-License-Identifier: MIT
 * A predictor in a GGUF of its own: general.architecture "sparse-ffn", its keys, two tensors a layer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "io/gguf_types.h"
#include "sparse/predictor.h"

#define ARCHITECTURE "sparse-ffn"
#define KEY(name)    ARCHITECTURE "." name

enum { NAME_SIZE = 40, CHUNK = 4096 };
static const char *const parts[] = {"u", "v"};

static void tensor_name(char name[NAME_SIZE], uint32_t layer, size_t part)
{
    snprintf(name, NAME_SIZE, "blk.%" PRIu32 ".ffn_pred_%s.weight", layer, parts[part]);
}

/* Columns and rows of U or V in ggml's order. */
static void shape_of(const struct bc_predictor *p, size_t part, uint64_t ne[2])
{
    ne[0] = part == 0 ? p->model.n_embd : p->rank;
    ne[1] = part == 0 ? p->rank : p->model.n_ff;
}

/* Value i of the tensor in the file: of V, row i / rank is a neuron. */
static float *value_at(const struct bc_predictor *p, uint32_t layer, size_t part, size_t i)
{
    if (part == 0) return p->layers[layer].u + i;
    return p->layers[layer].v + i % p->rank * p->model.n_ff + i / p->rank;
}

/* ---- writing ---- */

static void set_keys(struct bitconv_gguf_writer *w, const struct bc_predictor *p, bool f16)
{
    uint8_t number[8];
    bitconv_gguf_set_string(w, "general.architecture", ARCHITECTURE);
    bitconv_gguf_set_string(w, "general.type", "predictor");
    bitconv_gguf_set_u32(w, "general.file_type", f16 ? 1 : 0);
    bitconv_gguf_set_string(w, KEY("base_model.family"), p->model.family);
    bitconv_gguf_set_string(w, KEY("base_model.fingerprint"), p->model.fingerprint);
    bitconv_gguf_set_u32(w, KEY("block_count"), p->model.n_layers);
    bitconv_gguf_set_u32(w, KEY("embedding_length"), p->model.n_embd);
    bitconv_gguf_set_u32(w, KEY("feed_forward_length"), p->model.n_ff);
    bitconv_gguf_set_u32(w, KEY("rank"), p->rank);
    bitconv_gguf_set_string(w, KEY("rule"), p->rule.by_threshold ? "threshold" : "top_k");
    if (p->rule.by_threshold)
        bitconv_gguf_set_f32(w, KEY("threshold"), p->rule.threshold);
    else
        bitconv_gguf_set_u32(w, KEY("top_k"), p->rule.top_k);
    bitconv_gguf_set_f32(w, KEY("ridge"), (float)p->ridge);
    bc_put_u64(number, p->n_samples);
    bitconv_gguf_set_scalar(w, KEY("samples"), BITCONV_GGUF_UINT64, number);
}

static void add_tensors(struct bitconv_gguf_writer *w, const struct bc_predictor *p, bool f16)
{
    const uint32_t type = f16 ? BC_TYPE_F16 : BC_TYPE_F32;
    char name[NAME_SIZE];
    uint64_t ne[2];
    for (uint32_t i = 0; i < p->model.n_layers; i++)
        for (size_t part = 0; part < 2; part++) {
            tensor_name(name, i, part);
            shape_of(p, part, ne);
            bitconv_gguf_add_tensor(w, name, type, 2, ne, ne[0] * ne[1] * (f16 ? 2 : 4));
        }
}

static enum bitconv_status pad_to(struct bc_out *out, uint64_t offset, struct bitconv_error *err)
{
    static const uint8_t zeros[32];
    while (bc_out_tell(out) < offset) {
        const uint64_t left = offset - bc_out_tell(out);
        BC_TRY(bc_out_write(out, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status write_values(struct bc_out *out, const struct bc_predictor *p,
                                        uint32_t layer, size_t part, bool f16,
                                        struct bitconv_error *err)
{
    uint8_t bytes[4 * CHUNK];
    uint64_t ne[2];
    shape_of(p, part, ne);
    const size_t n = (size_t)(ne[0] * ne[1]);
    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t m = n - at < CHUNK ? n - at : CHUNK;
        for (size_t i = 0; i < m; i++) {
            const float value = *value_at(p, layer, part, at + i);
            if (f16)
                bc_put_u16(bytes + 2 * i, bc_f32_to_f16(value));
            else
                bc_put_f32(bytes + 4 * i, value);
        }
        BC_TRY(bc_out_write(out, bytes, m * (f16 ? 2 : 4), err));
    }
    return BITCONV_OK;
}

static enum bitconv_status write_all(const struct bitconv_gguf_writer *w,
                                     const struct bc_predictor *p, bool f16, const uint8_t *header,
                                     uint64_t header_size, uint64_t file_size, struct bc_out *out,
                                     struct bitconv_error *err)
{
    BC_TRY(bc_out_write(out, header, (size_t)header_size, err));
    for (uint32_t i = 0; i < p->model.n_layers; i++)
        for (size_t part = 0; part < 2; part++) {
            BC_TRY(pad_to(out,
                          header_size + bitconv_gguf_writer_tensor_offset(w, 2 * (size_t)i + part),
                          err));
            BC_TRY(write_values(out, p, i, part, f16, err));
        }
    return pad_to(out, file_size, err);
}

static enum bitconv_status write_with(struct bitconv_gguf_writer *w, const struct bc_predictor *p,
                                      const char *path, bool f16, bool force,
                                      struct bitconv_error *err)
{
    const uint8_t *header;
    uint64_t header_size, file_size;
    struct bc_out *out;
    set_keys(w, p, f16);
    add_tensors(w, p, f16);
    BC_TRY(bitconv_gguf_writer_plan(w, &header, &header_size, &file_size, err));
    const struct bc_out_options options = {.force = force, .size = file_size};
    BC_TRY(bc_out_open(path, &options, &out, err));
    const enum bitconv_status status =
        write_all(w, p, f16, header, header_size, file_size, out, err);
    if (status == BITCONV_OK) return bc_out_commit(out, err);
    bc_out_abort(out);
    return status;
}

enum bitconv_status bc_predictor_write(const struct bc_predictor *p, const char *path, bool f16,
                                       bool force, struct bitconv_error *err)
{
    struct bitconv_gguf_writer *w = bitconv_gguf_writer_new();
    if (w == NULL) return bc_fail_nomem(err, "GGUF header");
    const enum bitconv_status status = write_with(w, p, path, f16, force, err);
    bitconv_gguf_writer_free(w);
    return status;
}

/* ---- reading ---- */

static bool string_is(const struct bitconv_gguf *file, const char *key, const char *wanted)
{
    const char *text;
    size_t len;
    return bitconv_gguf_value_string(bitconv_gguf_find_key(file, key), &text, &len) &&
           len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

static enum bitconv_status read_u32(const struct bitconv_gguf *file, const char *path,
                                    const char *key, uint32_t *out, struct bitconv_error *err)
{
    uint64_t value;
    if (!bitconv_gguf_value_u64(bitconv_gguf_find_key(file, key), &value) || value > UINT32_MAX)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s is missing or no number below 2^32", path,
                       key);
    *out = (uint32_t)value;
    return BITCONV_OK;
}

/* A size that the model has too. */
static enum bitconv_status check_size(const struct bitconv_gguf *file, const char *path,
                                      const char *key, uint32_t wanted, struct bitconv_error *err)
{
    uint32_t found = 0;
    BC_TRY(read_u32(file, path, key, &found, err));
    if (found != wanted)
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: %s is %" PRIu32 ", the model has %" PRIu32
                       ": the predictor is for another model",
                       path, key, found, wanted);
    return BITCONV_OK;
}

static enum bitconv_status check_model(const struct bitconv_gguf *file, const char *path,
                                       const struct bc_sparse_model *model,
                                       struct bitconv_error *err)
{
    if (!string_is(file, "general.architecture", ARCHITECTURE))
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: no predictor: general.architecture is not " ARCHITECTURE
                       " (sparse calibrate makes one)",
                       path);
    if (!string_is(file, KEY("base_model.family"), model->family))
        return bc_fail(err, BITCONV_E_ARG, "%s: the predictor is not for models of the family %s",
                       path, model->family);
    BC_TRY(check_size(file, path, KEY("block_count"), model->n_layers, err));
    BC_TRY(check_size(file, path, KEY("embedding_length"), model->n_embd, err));
    BC_TRY(check_size(file, path, KEY("feed_forward_length"), model->n_ff, err));
    if (!string_is(file, KEY("base_model.fingerprint"), model->fingerprint))
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: the predictor is for another model: its fingerprint is not %s: "
                       "calibrate one for this model",
                       path, model->fingerprint);
    return BITCONV_OK;
}

static enum bitconv_status read_rule(const struct bitconv_gguf *file, const char *path,
                                     struct bc_predictor *p, struct bitconv_error *err)
{
    struct bitconv_error why = {.status = BITCONV_OK};
    double number;
    p->rule.by_threshold = string_is(file, KEY("rule"), "threshold");
    if (!p->rule.by_threshold && !string_is(file, KEY("rule"), "top_k"))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: " KEY("rule") " is neither top_k nor threshold",
                       path);
    if (!p->rule.by_threshold) {
        BC_TRY(read_u32(file, path, KEY("top_k"), &p->rule.top_k, err));
    } else {
        if (!bitconv_gguf_value_f64(bitconv_gguf_find_key(file, KEY("threshold")), &number))
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: " KEY("threshold") " is missing", path);
        p->rule.threshold = (float)number;
    }
    if (bc_sparse_check_rule(&p->rule, p->model.n_ff, &why) != BITCONV_OK)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s", path, why.text);
    if (bitconv_gguf_value_f64(bitconv_gguf_find_key(file, KEY("ridge")), &number))
        p->ridge = number;
    (void)bitconv_gguf_value_u64(bitconv_gguf_find_key(file, KEY("samples")), &p->n_samples);
    return BITCONV_OK;
}

static enum bitconv_status find_tensor(const struct bitconv_gguf *file, const char *path,
                                       const char *name, uint32_t n_dims, const uint64_t ne[2],
                                       const struct bitconv_gguf_tensor **out,
                                       struct bitconv_error *err)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(file, name);
    if (t == NULL) return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s is missing", path, name);
    if (t->type != BC_TYPE_F32 && t->type != BC_TYPE_F16)
        return bc_fail(err, BITCONV_E_UNSUPPORTED, "%s: %s is %s, wanted F32 or F16", path, name,
                       t->type_name);
    if (t->n_dims != n_dims || t->ne[0] != ne[0] || t->ne[1] != ne[1])
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: %s is %" PRIu64 " x %" PRIu64 " (%" PRIu32
                       " dimensions), wanted %" PRIu64 " x %" PRIu64,
                       path, name, t->ne[0], t->ne[1], t->n_dims, ne[0], ne[1]);
    if (t->size == 0 || t->size > t->span)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s has %" PRIu64 " bytes, wanted %" PRIu64,
                       path, name, t->span, t->size);
    *out = t;
    return BITCONV_OK;
}

/* All tensors, before anything is allocated for them: then memory is bounded by the file. */
static enum bitconv_status check_tensors(const struct bitconv_gguf *file, const char *path,
                                         const struct bc_predictor *shape,
                                         struct bitconv_error *err)
{
    char name[NAME_SIZE];
    uint64_t ne[2];
    const struct bitconv_gguf_tensor *t;
    for (uint32_t i = 0; i < shape->model.n_layers; i++)
        for (size_t part = 0; part < 2; part++) {
            tensor_name(name, i, part);
            shape_of(shape, part, ne);
            BC_TRY(find_tensor(file, path, name, 2, ne, &t, err));
        }
    return BITCONV_OK;
}

static enum bitconv_status read_values(const struct bitconv_gguf *file, const char *path,
                                       const struct bc_predictor *p, uint32_t layer, size_t part,
                                       struct bitconv_error *err)
{
    char name[NAME_SIZE];
    const struct bitconv_gguf_tensor *t;
    uint64_t ne[2];
    tensor_name(name, layer, part);
    shape_of(p, part, ne);
    BC_TRY(find_tensor(file, path, name, 2, ne, &t, err));
    const size_t n = (size_t)(ne[0] * ne[1]);
    for (size_t i = 0; i < n; i++) {
        const float value = t->type == BC_TYPE_F16 ? bc_f16_to_f32(bc_get_u16(t->data + 2 * i))
                                                   : bc_get_f32(t->data + 4 * i);
        if (!isfinite(value))
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: value %zu is not finite", path, name,
                           i);
        *value_at(p, layer, part, i) = value;
    }
    return BITCONV_OK;
}

static enum bitconv_status read_from(const struct bitconv_gguf *file, const char *path,
                                     const struct bc_sparse_model *model, struct bc_predictor **out,
                                     struct bitconv_error *err)
{
    struct bc_predictor shape = {.model = *model};
    BC_TRY(check_model(file, path, model, err));
    BC_TRY(read_u32(file, path, KEY("rank"), &shape.rank, err));
    if (shape.rank == 0 || shape.rank > model->n_embd || shape.rank > model->n_ff)
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: " KEY("rank") " is %" PRIu32 ", wanted 1 to %" PRIu32, path, shape.rank,
                       model->n_embd < model->n_ff ? model->n_embd : model->n_ff);
    BC_TRY(check_tensors(file, path, &shape, err));
    BC_TRY(bc_predictor_new(model, shape.rank, out, err));
    BC_TRY(read_rule(file, path, *out, err));
    for (uint32_t i = 0; i < model->n_layers; i++)
        for (size_t part = 0; part < 2; part++)
            BC_TRY(read_values(file, path, *out, i, part, err));
    return BITCONV_OK;
}

enum bitconv_status bc_predictor_read(const char *path, const struct bc_sparse_model *model,
                                      struct bc_predictor **out, struct bitconv_error *err)
{
    struct bitconv_gguf *file;
    *out = NULL;
    BC_TRY(bitconv_gguf_open(path, &file, err));
    const enum bitconv_status status = read_from(file, path, model, out, err);
    bitconv_gguf_close(file);
    if (status == BITCONV_OK) return status;
    bc_predictor_free(*out);
    *out = NULL;
    return status;
}
