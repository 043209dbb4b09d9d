/* SPDX-License-Identifier: MIT
 * The tensor table of inspect, with statistics and digests where asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/fingerprint.h"
#include "verify/inspector.h"
#include "verify/pack_sizes.h"

enum { WHY_BYTES = 256 };

static void list_gguf(struct bc_inspector *in, size_t index, struct bitconv_inspected_tensor *out)
{
    const struct bitconv_gguf *file = in->data->container.gguf;
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(file, index);
    out->name = t->name;
    out->name_len = t->name_len;
    out->type = t->type_name;
    out->type_id = (int64_t)t->type;
    out->n_dims = t->n_dims;
    memcpy(out->ne, t->ne, sizeof out->ne);
    out->n_elements = t->n_elements;
    out->offset = t->offset;
    out->size = bc_gguf_tensor_bytes(t);
    out->file = bitconv_gguf_shard_path(file, t->shard);
}

static void list_safetensors(struct bc_inspector *in, size_t index,
                             struct bitconv_inspected_tensor *out)
{
    const struct bitconv_tensor *t = bc_container_tensor(&in->data->container, index);
    out->name = t->name;
    out->name_len = strlen(t->name);
    out->type = bitconv_dtype_name(t->dtype);
    out->type_id = -1;
    out->n_dims = bc_tensor_ggml_shape(t, out->ne);
    out->n_elements = t->n_elements;
    /* The data section begins behind the header and its length. */
    out->offset = t->file_offset - bc_container_data_offset(&in->data->container, t->file);
    out->size = t->size;
    out->file = t->file;
}

static const uint8_t *bytes_of(const struct bc_inspector *in, size_t index)
{
    const struct bc_container *c = &in->data->container;
    return c->gguf != NULL ? bitconv_gguf_tensor_at(c->gguf, index)->data
                           : bc_container_tensor(c, index)->data;
}

static void warn_one_code(struct bc_inspector *in, const char *name, int trit)
{
    bc_inspect_warn(in, "%s: every trit is %s", name,
                    trit < 0   ? "-1: a zero-filled hole in a file looks like this"
                    : trit > 0 ? "+1"
                               : "0");
}

/* Without a scan: packed bytes that are all alike decode to one trit when their first granule does.
 * Stops at the first byte that differs, so ordinary tensors cost nothing. */
static void look_for_one_code(struct bc_inspector *in, const char *name, const struct bc_packed *p)
{
    const struct bc_format *f = p->format;
    const uint64_t bytes = f->trit_bytes(&p->shape);
    int8_t trits[1024];
    if (!f->row_major || f->granule == 0 || f->granule > sizeof trits) return;
    for (uint64_t i = 1; i < bytes; i++)
        if (p->data[i] != p->data[0]) return;
    const uint64_t n = p->shape.n < f->granule ? p->shape.n : f->granule;
    bc_packed_read(p, 0, n, trits);
    for (uint64_t i = 1; i < n; i++)
        if (trits[i] != trits[0]) return;
    if (trits[0] != BC_TRIT_ILLEGAL) warn_one_code(in, name, trits[0]);
}

/* What the tensor would take in every pack. */
static enum bitconv_status measure_sizes(struct bc_inspector *in, const struct bc_packed *p,
                                         const struct bc_pack_scan *scan,
                                         struct bitconv_tensor_stats *stats,
                                         struct bitconv_error *err)
{
    struct bc_pack_shape shape = p->shape;
    size_t n = 0;
    shape.n_nonzero = scan->minus + scan->plus;
    while (bc_format_at(n) != NULL)
        n++;
    struct bitconv_pack_size *sizes = bc_arena_alloc(&in->data->arena, n, sizeof *sizes);
    if (sizes == NULL) return bc_fail_nomem(err, "sizes in packs");
    for (size_t i = 0; i < n; i++) {
        sizes[i].pack = bc_format_at(i)->name;
        sizes[i].bytes = bc_pack_size_of(bc_format_at(i), p->format, &shape);
    }
    stats->sizes = sizes;
    stats->n_sizes = n;
    return BITCONV_OK;
}

static enum bitconv_status scan_packed(struct bc_inspector *in, const struct bc_packed *p,
                                       struct bitconv_inspected_tensor *t,
                                       struct bc_named_hash *hash, struct bitconv_error *err)
{
    struct bc_pack_scan scan;
    if (!in->options->stats && !in->options->hash) {
        look_for_one_code(in, t->name, p);
        return BITCONV_OK;
    }
    BC_TRY(bc_pack_scan(p, false, in->kernels, in->pool, in->sink, &scan, err));
    struct bitconv_tensor_stats stats;
    bc_ternary_stats(&scan, &stats);
    if (in->options->stats) {
        BC_TRY(measure_sizes(in, p, &scan, &stats, err));
        t->stats = stats;
    }
    if (stats.one_code) warn_one_code(in, t->name, scan.minus != 0 ? -1 : scan.plus != 0);
    if (scan.payload[0] != '\0') bc_inspect_warn(in, "%s: %s", t->name, scan.payload);
    if (scan.illegal != 0)
        bc_inspect_warn(in, "%s: %llu codes that %s does not define", t->name,
                        (unsigned long long)scan.illegal, p->format->name);
    if (scan.bad_scale != BC_NO_INDEX)
        bc_inspect_warn(in, "%s: the scale is %g", t->name, (double)scan.bad_scale_value);
    if (!in->options->hash) return BITCONV_OK;
    if (scan.has_fingerprint) bc_hash128_hex(scan.fingerprint, t->fingerprint);
    hash->name = t->name;
    hash->hash = scan.fingerprint;
    return BITCONV_OK;
}

/* A payload is a tensor of weights, not of the bytes that carry it. */
static void show_payload(const struct bc_packed *p, struct bitconv_inspected_tensor *t)
{
    t->n_dims = p->n_dims;
    memcpy(t->ne, p->ne, sizeof t->ne);
    t->n_elements = p->shape.n;
    t->bits_per_weight = 8.0 * (double)t->size / (double)t->n_elements;
}

/* The scale beside a packed weight of a checkpoint; NULL: it is no such weight. */
static const struct bitconv_tensor *offline_scale(const struct bc_inspector *in, size_t index)
{
    const struct bc_container *c = &in->data->container;
    char name[1024];
    if (c->checkpoint == NULL) return NULL;
    const struct bitconv_tensor *t = bc_container_tensor(c, index);
    if (t->dtype != BITCONV_U8 || strlen(t->name) + sizeof "_scale" > sizeof name) return NULL;
    snprintf(name, sizeof name, "%s_scale", t->name);
    const struct bitconv_tensor *scale = bc_checkpoint_find(c->checkpoint, name);
    return scale != NULL && bitconv_dtype_is_float(scale->dtype) ? scale : NULL;
}

static void measure_offline(struct bc_inspector *in, size_t index,
                            const struct bitconv_tensor *scale, struct bitconv_inspected_tensor *t)
{
    bc_offline_stats(bc_container_tensor(&in->data->container, index), scale, in->kernels,
                     &t->stats);
    if (t->stats.one_code)
        warn_one_code(in, t->name, t->stats.minus != 0 ? -1 : t->stats.plus != 0);
    if (t->stats.illegal != 0)
        bc_inspect_warn(in, "%s: %llu codes are 3, which is no trit", t->name,
                        (unsigned long long)t->stats.illegal);
}

static enum bitconv_status measure(struct bc_inspector *in, size_t index,
                                   struct bitconv_inspected_tensor *t, struct bc_named_hash *hash,
                                   struct bitconv_error *err)
{
    const struct bc_container *c = &in->data->container;
    struct bc_decoded values;
    char why[WHY_BYTES] = "";
    if (c->gguf != NULL) {
        struct bc_packed packed;
        if (!bc_packed_open_in(c->gguf, bitconv_gguf_tensor_at(c->gguf, index), &in->stated,
                               &packed, why, sizeof why))
            bc_inspect_warn(in, "%s: %s", t->name, why);
        if (packed.format != NULL) {
            t->pack = packed.format->name;
            if (packed.format->open_payload != NULL) show_payload(&packed, t);
            BC_TRY(scan_packed(in, &packed, t, hash, err));
        }
    }
    const struct bitconv_tensor *scale = offline_scale(in, index);
    if (in->options->stats && scale != NULL) {
        measure_offline(in, index, scale, t);
    } else if (in->options->stats && t->pack == NULL &&
               bc_decoded_open(c, index, &in->stated, &values, why, sizeof why) == BITCONV_OK) {
        BC_TRY(bc_number_stats(&values, in->kernels, in->pool, in->sink, &t->stats, err));
        if (t->stats.nonfinite != 0)
            bc_inspect_warn(in, "%s: %llu values are NaN or infinite", t->name,
                            (unsigned long long)t->stats.nonfinite);
    }
    if (in->options->hash)
        bc_hash128_hex(bc_hash128(bytes_of(in, index), (size_t)t->size), t->xxh3);
    return BITCONV_OK;
}

static enum bitconv_status measure_all(struct bc_inspector *in, struct bc_named_hash *hashes,
                                       struct bitconv_error *err)
{
    struct bitconv_inspection *out = in->out;
    size_t n_hashes = 0;
    uint64_t done = 0;
    bool complete = true;
    for (size_t i = 0; i < out->n_tensors; i++) {
        struct bitconv_inspected_tensor *t = &out->tensors[i];
        if (bc_canceled(in->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        if (in->options->stats || in->options->hash)
            bc_progress(in->sink, "reading", done, out->file_size);
        done += t->size;
        struct bc_named_hash hash = {0};
        BC_TRY(measure(in, i, t, &hash, err));
        if (t->pack != NULL) {
            complete = complete && t->fingerprint[0] != '\0';
            hashes[n_hashes++] = hash;
        }
    }
    if (in->options->stats || in->options->hash)
        bc_progress(in->sink, "reading", out->file_size, out->file_size);
    if (n_hashes == 0 || !complete) return BITCONV_OK;
    struct bc_hash128 model;
    BC_TRY(bc_fingerprint_model(hashes, n_hashes, &model, err));
    bc_hash128_hex(model, out->fingerprint);
    return BITCONV_OK;
}

static int compare_totals(const void *a, const void *b)
{
    const struct bitconv_type_total *x = a;
    const struct bitconv_type_total *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->type, y->type);
}

/* Packs that share a GGUF type with something else are named themselves. */
static const char *shown_type(const struct bitconv_inspected_tensor *t)
{
    const struct bc_format *f = t->pack != NULL ? bc_format_find(t->pack) : NULL;
    const bool shared = f != NULL && bc_format_by_type(f->type_id) != f;
    return shared ? t->pack : t->type;
}

static enum bitconv_status sum_types(struct bc_inspector *in, struct bitconv_error *err)
{
    struct bitconv_inspection *out = in->out;
    size_t cap = 0;
    for (size_t i = 0; i < out->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = &out->tensors[i];
        const char *name = shown_type(t);
        size_t at = 0;
        while (at < out->n_types && strcmp(out->types[at].type, name) != 0)
            at++;
        if (at == out->n_types) {
            if (!bc_grow((void **)&out->types, &cap, at, sizeof *out->types))
                return bc_fail_nomem(err, "the types");
            const struct bitconv_type_total empty = {name, 0, 0, 0};
            out->types[out->n_types++] = empty;
        }
        out->types[at].n_tensors++;
        out->types[at].parameters += t->n_elements;
        out->types[at].bytes += t->size;
        out->parameters += t->n_elements;
    }
    if (out->n_types > 1) qsort(out->types, out->n_types, sizeof *out->types, compare_totals);
    return BITCONV_OK;
}

enum bitconv_status bc_inspect_tensors(struct bc_inspector *in, struct bitconv_error *err)
{
    const struct bc_container *c = &in->data->container;
    struct bitconv_inspection *out = in->out;
    out->n_tensors = c->gguf != NULL ? bitconv_gguf_n_tensors(c->gguf) : bc_container_n_tensors(c);
    out->tensors = bc_arena_alloc(&in->data->arena, out->n_tensors, sizeof *out->tensors);
    if (out->tensors == NULL && out->n_tensors != 0) return bc_fail_nomem(err, "the tensor table");
    for (size_t i = 0; i < out->n_tensors; i++) {
        struct bitconv_inspected_tensor *t = &out->tensors[i];
        if (c->gguf != NULL)
            list_gguf(in, i, t);
        else
            list_safetensors(in, i, t);
        if (t->n_elements != 0) t->bits_per_weight = 8.0 * (double)t->size / (double)t->n_elements;
    }
    struct bc_named_hash *hashes = bc_alloc_array(out->n_tensors, sizeof *hashes);
    if (hashes == NULL) return bc_fail_nomem(err, "fingerprints");
    const enum bitconv_status status = measure_all(in, hashes, err);
    bc_free(hashes);
    return status == BITCONV_OK ? sum_types(in, err) : status;
}
