/* SPDX-License-Identifier: MIT
 * Weights of a checkpoint, made into what a file would hold: quantized, permuted, rounded. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "engine/provider.h"
#include "formats/dequant.h"
#include "formats/q8_0.h"

enum { CHUNK = 1024 }; /* values rounded at once; a multiple of Q8_0's block */

struct source_provider {
    struct bc_provider base;
    const struct bc_model *model;
    struct bc_weight_options options;
    bc_carry_fn *carry;
    const void *user;
    struct bc_map by_name;
    struct decided *decided; /* list of decisions to release */
};

/* What a bc_tensor of a checkpoint points to. */
struct decided {
    const struct bc_weight *weight;
    struct bc_carry carry;
    struct bc_ternary ternary; /* when carry.ternary */
    struct decided *next;
};

/* ---- how tensors are carried ---- */

struct bc_carry bc_carry_as_runtime(const void *user, const struct bc_model *model,
                                    const struct bc_weight *weight)
{
    const bool ternary = bc_weight_is_ternary_at_runtime(model, weight);
    (void)user;
    return (struct bc_carry){.ternary = ternary, .packed = ternary};
}

static enum bc_rounding rounding_of(const char *type_name)
{
    static const struct {
        const char *name;
        enum bc_rounding rounding;
    } table[] = {{"F16", BC_ROUND_F16}, {"BF16", BC_ROUND_BF16}, {"Q8_0", BC_ROUND_Q8_0}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(type_name, table[i].name) == 0) return table[i].rounding;
    return BC_ROUND_NONE;
}

struct bc_carry_file bc_carry_file_of(const struct bitconv_gguf *file,
                                      const struct bc_stated *stated)
{
    struct bc_carry_file f = {.file = file, .stated = stated};
    struct bc_packed packed;
    char why[1];
    for (size_t i = 0; i < bitconv_gguf_n_tensors(file) && !f.has_packs; i++)
        f.has_packs =
            bc_packed_open(bitconv_gguf_tensor_at(file, i), stated, &packed, why, sizeof why) &&
            packed.format != NULL;
    return f;
}

/* A tensor in a pack. Blocks of several scales were quantized from floats. */
static struct bc_carry carry_as_pack(const struct bc_packed *p)
{
    struct bc_carry carry = {.ternary = true, .packed = true};
    const struct bc_block_pack *bp = bc_block_pack_of(p->format);
    if (bp == NULL || p->scales != NULL) return carry;
    carry.scale_f16 = true;
    const uint64_t n_blocks = p->shape.n / bp->block;
    const uint64_t slice_blocks = n_blocks / p->shape.slices;
    for (uint64_t at = 0; at < n_blocks; at += slice_blocks) {
        float scale;
        uint64_t other;
        if (bc_block_common_scale(bp, p->data + at * bp->block_size, slice_blocks, &scale,
                                  &other) == BC_BLOCKS_MANY_SCALES)
            return (struct bc_carry){.blocks = bp};
    }
    return carry;
}

struct bc_carry bc_carry_as_file(const void *user, const struct bc_model *model,
                                 const struct bc_weight *weight)
{
    const struct bc_carry_file *f = user;
    const struct bitconv_gguf_tensor *t = bitconv_gguf_find_tensor(f->file, weight->name);
    struct bc_carry carry = {.ternary = bc_weight_is_ternary_at_runtime(model, weight)};
    struct bc_packed packed;
    char why[1];
    if (t == NULL) return carry;
    if (bc_packed_open_in(f->file, t, f->stated, &packed, why, sizeof why) && packed.format != NULL)
        return carry_as_pack(&packed);
    /* a misfit beside packs holds trit * scale like the others */
    if (weight->role == BC_ROLE_LINEAR && !weight->keep && weight->n_sources > 0 && !carry.ternary)
        carry.ternary = f->has_packs;
    carry.rounding = rounding_of(t->type_name);
    return carry;
}

/* ---- finding ---- */

/* Scales as float16 holds them: of their own, because the exact ones decide about the trits. */
static const float *scales_as_f16(struct source_provider *p, const struct bc_ternary *t)
{
    float *scales = bc_arena_alloc(&p->base.arena, t->n_scales, sizeof *scales);
    for (uint32_t i = 0; i < t->n_scales && scales != NULL; i++)
        scales[i] = bc_f16_to_f32(bc_f32_to_f16(t->scales[i]));
    return scales;
}

static enum bitconv_status decide(struct source_provider *p, struct decided *d,
                                  struct bc_tensor *out, struct bitconv_error *err)
{
    if (!d->carry.ternary) return bc_weight_check(d->weight, err);
    BC_TRY(bc_ternary_decide(p->model, d->weight, &p->options, p->base.kernels, p->base.pool,
                             p->base.sink, &d->ternary, err));
    if (!d->carry.packed) return BITCONV_OK;
    out->ternary = true;
    out->scales = d->carry.scale_f16 ? scales_as_f16(p, &d->ternary) : d->ternary.scales;
    out->n_scales = d->ternary.n_scales;
    return out->scales != NULL ? BITCONV_OK : bc_fail_nomem(err, "scales of a tensor");
}

static enum bitconv_status find(struct bc_provider *base, const char *name, struct bc_tensor *out,
                                bool *found, struct bitconv_error *err)
{
    struct source_provider *p = (struct source_provider *)base;
    uint64_t index = 0;
    *found = bc_map_get(&p->by_name, name, strlen(name), &index);
    if (!*found) return BITCONV_OK;
    const struct bc_weight *w = &p->model->weights[index];
    struct decided *d = bc_arena_alloc(&base->arena, 1, sizeof *d);
    if (d == NULL) return bc_fail_nomem(err, "tensors");
    d->weight = w;
    d->carry = p->carry(p->user, p->model, w);
    d->next = p->decided;
    p->decided = d;
    out->name = w->name;
    out->n_dims = w->n_dims;
    out->cols = w->ne[0];
    out->rows = w->n_dims > 1 ? w->ne[1] : 1;
    out->slices = w->n_dims > 2 ? w->ne[2] : 1;
    out->impl = d;
    return decide(p, d, out, err);
}

/* ---- reading ---- */

static void round_q8_0(const struct bc_kernels *k, float *values, size_t n)
{
    uint8_t blocks[CHUNK / BC_Q8_0_BLOCK * BC_Q8_0_BLOCK_SIZE];
    const size_t n_blocks = n / BC_Q8_0_BLOCK;
    bc_q8_0_from_floats(k, values, n_blocks, blocks);
    bc_dequant_find("Q8_0")->rows(blocks, n_blocks, values);
}

/* Rounds values as a file of that type does, in place. */
static void round_values(const struct bc_kernels *k, enum bc_rounding rounding, float *values,
                         uint64_t n)
{
    uint8_t halves[2 * CHUNK];
    for (uint64_t at = 0; at < n && rounding != BC_ROUND_NONE; at += CHUNK) {
        const size_t m = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
        if (rounding == BC_ROUND_F16) {
            k->narrow_f16(values + at, m, halves);
            k->widen_f16(halves, m, values + at);
        } else if (rounding == BC_ROUND_BF16) {
            k->narrow_bf16(values + at, m, halves);
            k->widen_bf16(halves, m, values + at);
        } else {
            round_q8_0(k, values + at, m);
        }
    }
}

/* Quantizes values block by block and decodes them again, in place: n is a multiple of the block. */
static void round_blocks(const struct bc_kernels *k, const struct bc_block_pack *bp, float *values,
                         uint64_t n)
{
    uint8_t bytes[2 * BC_DEQUANT_MAX_BLOCK]; /* a block has fewer bytes than values */
    const struct bc_dequant *d = bc_dequant_find(bp->format->type_name);
    for (uint64_t at = 0; at + bp->block <= n; at += bp->block) {
        bc_block_from_floats(bp, k, values + at, 1, bytes);
        d->rows(bytes, 1, values + at);
    }
}

/* trit * scale of a ternary weight that the file holds as floats. */
static enum bitconv_status ternary_floats(const struct source_provider *p, const struct decided *d,
                                          uint64_t first, uint64_t n, float *dst,
                                          struct bitconv_error *err)
{
    const uint64_t slice_n = bc_weight_count(d->weight) / d->ternary.n_scales;
    int8_t trits[CHUNK];
    for (uint64_t at = first; at < first + n;) {
        uint64_t m = first + n - at < CHUNK ? first + n - at : CHUNK;
        if (slice_n - at % slice_n < m) m = slice_n - at % slice_n;
        BC_TRY(bc_weight_trits_at(p->model, d->weight, &d->ternary, &p->options, p->base.kernels,
                                  at, m, trits, NULL, err));
        p->base.kernels->trits_to_f32(trits, (size_t)m, d->ternary.scales[at / slice_n],
                                      dst + (at - first));
        at += m;
    }
    return BITCONV_OK;
}

static enum bitconv_status floats(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                  float *dst, struct bitconv_error *err)
{
    const struct source_provider *p = (const struct source_provider *)t->provider;
    const struct decided *d = t->impl;
    const uint64_t first = row * t->cols, n = n_rows * t->cols;
    if (d->carry.ternary)
        BC_TRY(ternary_floats(p, d, first, n, dst, err));
    else
        BC_TRY(bc_weight_f32_at(p->model, d->weight, &p->options, p->base.kernels, first, n, dst,
                                err));
    if (d->carry.blocks != NULL)
        round_blocks(p->base.kernels, d->carry.blocks, dst, n);
    else
        round_values(p->base.kernels, d->carry.rounding, dst, n);
    return BITCONV_OK;
}

static enum bitconv_status trits(const struct bc_tensor *t, uint64_t row, uint64_t n_rows,
                                 int8_t *dst, struct bitconv_error *err)
{
    const struct source_provider *p = (const struct source_provider *)t->provider;
    const struct decided *d = t->impl;
    return bc_weight_trits(p->model, d->weight, &d->ternary, &p->options, p->base.kernels, row,
                           n_rows, dst, err);
}

static const char *name_at(const struct bc_provider *base, size_t index)
{
    const struct source_provider *p = (const struct source_provider *)base;
    return index < p->model->n_weights ? p->model->weights[index].name : NULL;
}

static void free_provider(struct bc_provider *base)
{
    struct source_provider *p = (struct source_provider *)base;
    for (struct decided *d = p->decided; d != NULL; d = d->next)
        bc_ternary_release(&d->ternary);
    bc_map_release(&p->by_name);
    bc_arena_release(&base->arena);
    bc_free(p);
}

static const struct bc_provider_ops ops = {find, floats, trits, name_at, free_provider};

static enum bitconv_status index_weights(struct source_provider *p, struct bitconv_error *err)
{
    for (size_t i = 0; i < p->model->n_weights; i++) {
        const char *name = p->model->weights[i].name;
        if (bc_map_put(&p->by_name, name, strlen(name), i, NULL) == BC_MAP_NOMEM)
            return bc_fail_nomem(err, "names of tensors");
    }
    return BITCONV_OK;
}

enum bitconv_status bc_provider_source(const struct bc_model *model,
                                       const struct bc_weight_options *options, bc_carry_fn *carry,
                                       const void *user, const struct bc_kernels *kernels,
                                       struct bc_pool *pool, const struct bitconv_sink *sink,
                                       struct bc_provider **out, struct bitconv_error *err)
{
    struct source_provider *p = bc_alloc_array(1, sizeof *p);
    *out = NULL;
    if (p == NULL) return bc_fail_nomem(err, "tensors");
    p->base.ops = &ops;
    p->base.path = model->ckpt->dir;
    p->base.kernels = kernels;
    p->base.pool = pool;
    p->base.sink = sink;
    p->model = model;
    p->options = *options;
    p->carry = carry;
    p->user = user;
    const enum bitconv_status status = index_weights(p, err);
    if (status == BITCONV_OK)
        *out = &p->base;
    else
        free_provider(&p->base);
    return status;
}
