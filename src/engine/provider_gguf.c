/* SPDX-License-Identifier: MIT
 * Weights of a GGUF, used in place from its map. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "engine/provider.h"
#include "formats/dequant.h"

/* Trits that are unpacked at once where a range does not begin or end where the pack can: a
 * multiple of every pack's granule and run. */
enum { CHUNK = 4096 * 5, WHY = 256 };

struct gguf_provider {
    struct bc_provider base;
    const struct bitconv_gguf *file;
    const struct bc_stated *stated;
};

/* Types that the kernels widen; the others go through formats/dequant.h. */
enum widening { WIDEN_OTHER, WIDEN_F16, WIDEN_BF16 };

/* What a bc_tensor of a GGUF points to. */
struct stored {
    const struct bitconv_gguf_tensor *tensor;
    const struct bc_dequant *dequant; /* floats */
    enum widening widen;
};

/* ---- finding ---- */

static enum bitconv_status refuse(const struct bc_tensor *t, const struct bc_provider *p,
                                  enum bitconv_status status, const char *why,
                                  struct bitconv_error *err)
{
    return bc_fail(err, status, "%s: %s: %s", p->path, t->name, why);
}

/* A tensor of block packs: ternary when each slice has one scale. The scales of a tensor beside it
 * are multiplied in. */
static enum bitconv_status open_blocks(struct gguf_provider *p, const struct bc_block_pack *bp,
                                       struct bc_tensor *t, struct bitconv_error *err)
{
    uint64_t other = 0;
    float *scales = bc_arena_alloc(&p->base.arena, (size_t)t->slices, sizeof *scales);
    if (scales == NULL) return bc_fail_nomem(err, "scales of a tensor");
    if (bc_block_slice_scales(bp, &t->packed.shape, t->packed.data, scales, &other) ==
        BC_BLOCKS_MANY_SCALES) {
        t->blocks = bp;
        if (t->packed.scales == NULL) return BITCONV_OK; /* not ternary: floats */
        return refuse(t, &p->base, BITCONV_E_UNSUPPORTED,
                      "blocks of several scales and a tensor of scales beside them", err);
    }
    for (uint64_t s = 0; s < t->slices && t->packed.scales != NULL; s++)
        scales[s] *= bc_get_f32(t->packed.scales + 4 * (t->packed.n_scales == 1 ? 0 : s));
    t->ternary = true;
    t->scales = scales;
    t->n_scales = (uint32_t)t->slices;
    return BITCONV_OK;
}

static enum bitconv_status open_packed(struct gguf_provider *p, struct bc_tensor *t,
                                       struct bitconv_error *err)
{
    const struct bc_format *f = t->packed.format;
    t->n_dims = t->packed.n_dims;
    t->cols = t->packed.shape.cols;
    t->rows = t->packed.shape.rows;
    t->slices = t->packed.shape.slices;
    const struct bc_block_pack *bp = bc_block_pack_of(f);
    if (t->slices > UINT32_MAX)
        return refuse(t, &p->base, BITCONV_E_LIMIT, "more than 2^32 - 1 slices", err);
    if (bp != NULL) return open_blocks(p, bp, t, err);
    const uint32_t n = f->max_scales == 1 ? 1 : (uint32_t)t->slices;
    float *scales = bc_arena_alloc(&p->base.arena, n, sizeof *scales);
    if (scales == NULL) return bc_fail_nomem(err, "scales of a tensor");
    for (uint32_t i = 0; i < n; i++)
        scales[i] = f->get_scale(&t->packed.shape, t->packed.data, i);
    t->ternary = true;
    t->scales = scales;
    t->n_scales = n;
    return BITCONV_OK;
}

static enum bitconv_status open_floats(struct gguf_provider *p, struct stored *s,
                                       struct bc_tensor *t, struct bitconv_error *err)
{
    const char *why = bc_dequant_refusal(s->tensor->type_name);
    s->dequant = bc_dequant_find(s->tensor->type_name);
    if (s->dequant == NULL)
        return bc_fail(err, BITCONV_E_UNSUPPORTED, "%s: %s: type %s: %s", p->base.path, t->name,
                       s->tensor->type_name, why != NULL ? why : "bitconv does not decode it");
    if (s->tensor->size == 0 || s->tensor->size > s->tensor->span)
        return refuse(t, &p->base, BITCONV_E_CORRUPT, "its bytes are not all in the file", err);
    if (strcmp(s->tensor->type_name, "F16") == 0) {
        s->widen = WIDEN_F16;
        t->halves = s->tensor->data;
    }
    if (strcmp(s->tensor->type_name, "BF16") == 0) s->widen = WIDEN_BF16;
    return BITCONV_OK;
}

static enum bitconv_status find(struct bc_provider *base, const char *name, struct bc_tensor *out,
                                bool *found, struct bitconv_error *err)
{
    struct gguf_provider *p = (struct gguf_provider *)base;
    const struct bitconv_gguf_tensor *tensor = bitconv_gguf_find_tensor(p->file, name);
    char why[WHY] = "";
    *found = tensor != NULL;
    if (tensor == NULL) return BITCONV_OK;
    struct stored *s = bc_arena_alloc(&base->arena, 1, sizeof *s);
    if (s == NULL) return bc_fail_nomem(err, "tensors");
    s->tensor = tensor;
    out->name = tensor->name;
    out->n_dims = tensor->n_dims;
    out->cols = tensor->ne[0];
    out->rows = tensor->ne[1];
    out->slices = 1;
    for (size_t i = 2; i < BITCONV_GGUF_MAX_DIMS; i++)
        out->slices *= tensor->ne[i]; /* the reader has checked the product */
    out->impl = s;
    if (!bc_packed_open_in(p->file, tensor, p->stated, &out->packed, why, sizeof why))
        return refuse(out, base, BITCONV_E_CORRUPT, why, err);
    if (out->packed.format != NULL) BC_TRY(open_packed(p, out, err));
    return out->ternary ? BITCONV_OK : open_floats(p, s, out, err);
}

/* ---- reading ---- */

static enum bitconv_status floats(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                  float *dst, struct bitconv_error *err)
{
    const struct stored *s = t->impl;
    const struct bc_kernels *k = t->provider->kernels;
    const uint64_t first = row * t->cols;
    const size_t n = (size_t)(n_rows * t->cols);
    (void)err;
    if (s->widen == WIDEN_F16)
        k->widen_f16(s->tensor->data + 2 * first, n, dst);
    else if (s->widen == WIDEN_BF16)
        k->widen_bf16(s->tensor->data + 2 * first, n, dst);
    else
        bc_dequant_values(s->dequant, s->tensor->data, first, n, dst);
    return BITCONV_OK;
}

/* Where packs can start and stop reading. */
static uint64_t step_of(const struct bc_format *f)
{
    const uint64_t step = f->granule != 0 ? f->granule : f->run;
    return step != 0 ? step : 1;
}

static enum bitconv_status trits(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                 int8_t *dst, struct bitconv_error *err)
{
    const struct bc_packed *p = &t->packed;
    const struct bc_kernels *k = t->provider->kernels;
    const uint64_t step = step_of(p->format);
    const uint64_t first = row * t->cols;
    const uint64_t end = first + n_rows * t->cols;
    int8_t chunk[CHUNK];
    bool legal = true;
    if (first % step == 0 && (end % step == 0 || end == p->shape.n)) {
        legal = p->format->unpack(k, &p->shape, p->data, first, end - first, dst);
    } else {
        for (uint64_t at = first - first % step; at < end; at += CHUNK) {
            const uint64_t left = p->shape.n - at;
            const uint64_t n = left < CHUNK ? left : CHUNK;
            const uint64_t from = at < first ? first : at;
            const uint64_t to = end < at + n ? end : at + n;
            legal = p->format->unpack(k, &p->shape, p->data, at, n, chunk) && legal;
            memcpy(dst + (from - first), chunk + (from - at), (size_t)(to - from));
        }
    }
    if (legal) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: %s: codes without a meaning in rows %" PRIu64 " to %" PRIu64
                   " (verify tells where)",
                   t->provider->path, t->name, row, row + n_rows - 1);
}

static const char *name_at(const struct bc_provider *base, size_t index)
{
    const struct gguf_provider *p = (const struct gguf_provider *)base;
    if (index >= bitconv_gguf_n_tensors(p->file)) return NULL;
    return bitconv_gguf_tensor_at(p->file, index)->name;
}

static void free_provider(struct bc_provider *p)
{
    bc_arena_release(&p->arena);
    bc_free(p);
}

static const struct bc_provider_ops ops = {find, floats, trits, name_at, free_provider};

enum bitconv_status bc_provider_gguf(const struct bitconv_gguf *file,
                                     const struct bc_stated *stated,
                                     const struct bc_kernels *kernels, struct bc_provider **out,
                                     struct bitconv_error *err)
{
    struct gguf_provider *p = bc_alloc_array(1, sizeof *p);
    *out = NULL;
    if (p == NULL) return bc_fail_nomem(err, "tensors");
    p->base.ops = &ops;
    p->base.path = bitconv_gguf_shard_path(file, 0);
    p->base.kernels = kernels;
    p->file = file;
    p->stated = stated;
    *out = &p->base;
    return BITCONV_OK;
}
