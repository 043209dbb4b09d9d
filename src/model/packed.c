/* SPDX-License-Identifier: MIT
 * Finds the pack of a tensor: by what the file states, by its type, by a payload's magic. */
#include "model/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/scale_tensor.h"

static bool begins_like(const struct bc_format *f, const struct bitconv_gguf_tensor *tensor)
{
    return tensor->n_dims == 1 && tensor->size >= 4 && memcmp(tensor->data, f->magic, 4) == 0;
}

/* `said`: the pack that the user names for types with several, where the file does not (or NULL). */
static const struct bc_format *pack_of(const struct bitconv_gguf_tensor *tensor,
                                       const struct bc_stated_tensor *entry, const char *said)
{
    const struct bc_format *fallback = NULL;
    const struct bc_format *f;
    for (size_t i = 0; (f = bc_format_at(i)) != NULL; i++) {
        if (strcmp(f->type_name, tensor->type_name) != 0) continue;
        if (entry != NULL && strlen(f->name) == entry->pack_len &&
            memcmp(f->name, entry->pack, entry->pack_len) == 0)
            return f;
        if (entry == NULL && said != NULL && strcmp(f->name, said) == 0) return f;
        if (fallback == NULL && (f->open_payload == NULL || begins_like(f, tensor))) fallback = f;
    }
    return fallback;
}

/* The shape, with its tile, of a tensor whose type is the pack's own. */
static bool open_typed(const struct bitconv_gguf_tensor *tensor, const struct bc_format *f,
                       const struct bc_stated_tensor *entry, const struct bc_tilings *config,
                       struct bc_packed *out, char *why, size_t why_size)
{
    static const uint32_t none[3] = {0, 0, 0};
    out->shape.cols = tensor->ne[0];
    out->shape.rows = tensor->ne[1];
    out->shape.slices = 1;
    for (size_t i = 2; i < BITCONV_GGUF_MAX_DIMS; i++)
        out->shape.slices *= tensor->ne[i]; /* the reader has checked the product */
    out->shape.n = tensor->n_elements;
    out->n_dims = tensor->n_dims;
    memcpy(out->ne, tensor->ne, sizeof out->ne);
    if (f->choose_tile == NULL || entry == NULL || memcmp(entry->tile, none, sizeof none) == 0)
        return bc_format_fit(f, config, &out->shape, why, why_size);
    memcpy(out->shape.tile, entry->tile, sizeof out->shape.tile);
    return f->check(&out->shape, why, why_size);
}

/* The shape that a payload gives itself. */
static bool open_payload(const struct bitconv_gguf_tensor *tensor, const struct bc_format *f,
                         struct bc_packed *out, char *why, size_t why_size)
{
    if (tensor->n_dims != 1) {
        snprintf(why, why_size, "a payload of %s has one dimension, this tensor has %" PRIu32,
                 f->name, tensor->n_dims);
        return false;
    }
    if (!f->open_payload(NULL, tensor->data,
                         tensor->size < tensor->span ? tensor->size : tensor->span, &out->shape,
                         why, why_size))
        return false;
    for (size_t i = 0; i < BITCONV_GGUF_MAX_DIMS; i++)
        out->ne[i] = 1;
    out->n_dims = out->shape.n_dims;
    out->ne[0] = out->shape.cols;
    out->ne[1] = out->shape.rows;
    out->ne[2] = out->shape.slices;
    return true;
}

bool bc_packed_open(const struct bitconv_gguf_tensor *tensor, const struct bc_stated *stated,
                    struct bc_packed *out, char *why, size_t why_size)
{
    memset(out, 0, sizeof *out);
    const struct bc_stated_tensor *entry =
        stated != NULL ? bc_stated_find(stated, tensor->name, tensor->name_len) : NULL;
    const struct bc_format *f = pack_of(tensor, entry, stated != NULL ? stated->i2s_pack : NULL);
    if (f == NULL) return true;
    if (f->open_payload != NULL) {
        if (!open_payload(tensor, f, out, why, why_size)) return false;
    } else if (!open_typed(tensor, f, entry, stated != NULL ? &stated->config : NULL, out, why,
                           why_size)) {
        return false;
    }
    out->size = f->size(&out->shape);
    if (out->size > tensor->span) {
        snprintf(why, why_size, "%s needs %" PRIu64 " bytes, %" PRIu64 " found", f->type_name,
                 out->size, tensor->span);
        return false;
    }
    out->data = tensor->data;
    out->format = f;
    return true;
}

bool bc_packed_open_in(const struct bitconv_gguf *file, const struct bitconv_gguf_tensor *tensor,
                       const struct bc_stated *stated, struct bc_packed *out, char *why,
                       size_t why_size)
{
    if (!bc_packed_open(tensor, stated, out, why, why_size)) return false;
    const struct bitconv_gguf_tensor *scale =
        out->format != NULL ? bc_scale_tensor_of(file, tensor) : NULL;
    if (scale == NULL) return true;
    out->scales = scale->data;
    out->n_scales = scale->n_elements;
    return true;
}
