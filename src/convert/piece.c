/* SPDX-License-Identifier: MIT
 * Makes pieces of tensors into the bytes of the file. */
#include "convert/piece.h"

#include <string.h>

#include "base/bytes.h"
#include "convert/plan_values.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "formats/q8_0.h"
#include "io/gguf_types.h"

enum { CHUNK = 4096 }; /* values on the stack at once */

struct filler {
    const struct bc_setup *setup;
    const struct bc_model *model;
    const struct bc_kernels *k;
    struct bc_piece *p;
};

/* ---- packs ---- */

/* The scale of each slice that the piece has a part of; a slice is whole blocks. */
static void put_block_scales(const struct filler *f)
{
    const struct bc_piece *p = f->p;
    const struct bc_plan_tensor *t = p->tensor;
    const struct bc_format *pack = t->type.pack;
    const uint64_t slice_values = t->n / t->n_block_scales;
    uint8_t *packed = p->slot;
    uint64_t n;
    for (size_t done = 0; done < p->n; done += (size_t)n) {
        const uint64_t slice = (p->first + done) / slice_values;
        n = (slice + 1) * slice_values - (p->first + done);
        if (p->n - done < n) n = p->n - done;
        const struct bc_pack_shape part = {.cols = n, .rows = 1, .slices = 1, .n = n};
        bc_pack_finish(pack, &part, &t->block_scales[slice], 1, f->setup->options->scale_tensor,
                       packed);
        packed += pack->size(&part);
    }
}

/* Each block by its own largest magnitude. The trits come out of the blocks: they are counted, and
 * have a fingerprint where all blocks have one scale. */
static enum bitconv_status fill_blocks(const struct filler *f)
{
    struct bc_piece *p = f->p;
    const struct bc_plan_tensor *t = p->tensor;
    const struct bc_block_pack *bp = bc_block_pack_of(t->type.pack);
    const struct bc_dequant *decoder = bc_dequant_find(t->type.type_name);
    const struct bc_pack_shape shape = {.cols = p->n, .rows = 1, .slices = 1, .n = p->n};
    int8_t *trits = (int8_t *)(p->slot + 2 * BC_PIECE_VALUES);
    uint8_t *packed = p->slot;
    size_t n;
    for (size_t done = 0; done < p->n; done += n) {
        float values[BC_LOSS_VALUES], kept[BC_LOSS_VALUES]; /* whole blocks of every pack */
        n = p->n - done < BC_LOSS_VALUES ? p->n - done : BC_LOSS_VALUES;
        BC_TRY(bc_plan_f32_at(f->setup, f->model, t, p->first + done, n, values, &p->err));
        bc_block_from_floats(bp, f->k, values, n / bp->block, packed);
        decoder->rows(packed, n / bp->block, kept);
        bc_trit_loss_add(&p->loss, values, kept, n);
        packed += n / bp->block * bp->block_size;
    }
    (void)t->type.pack->unpack(f->k, &shape, p->slot, 0, p->n, trits);
    f->k->count_trits(trits, p->n, p->counts);
    p->trits = trits;
    p->data = p->slot;
    p->size = (size_t)(packed - p->slot);
    return BITCONV_OK;
}

/* A pack that can start and stop at its granule is its granules one after the other, with what
 * belongs to the whole tensor behind them. So a piece is packed as if it were a tensor of its own,
 * and only the last one keeps what is behind. Of other packs a piece has the trits only. */
static enum bitconv_status fill_packed(const struct filler *f)
{
    struct bc_piece *p = f->p;
    const struct bc_plan_tensor *t = p->tensor;
    const struct bc_format *pack = t->type.pack;
    if (t->by_block) return fill_blocks(f);
    const struct bc_pack_shape shape = {.cols = p->n, .rows = 1, .slices = 1, .n = p->n};
    int8_t *trits = (int8_t *)(p->slot + 2 * BC_PIECE_VALUES);
    BC_TRY(bc_plan_trits_at(f->setup, f->model, t, p->first, p->n, trits, &p->loss, &p->err));
    f->k->count_trits(trits, p->n, p->counts);
    p->trits = trits;
    if (bc_plan_is_whole(t)) return BITCONV_OK;
    pack->pack(f->k, &shape, trits, 0, p->n, p->slot);
    if (t->block_scales == NULL)
        pack->put_scales(&shape, t->decision.scales, 1, p->slot);
    else
        put_block_scales(f);
    p->data = p->slot;
    p->size = (size_t)(p->ends ? pack->size(&shape) : pack->trit_bytes(&shape));
    return BITCONV_OK;
}

/* ---- floats ---- */

/* How many of n 16-bit floats are not zero (either sign). Four at a time: adding 0x7fff to a
 * magnitude carries into the top bit of its lane exactly when it is not 0. A lane counts up to
 * 65535, and a piece has fewer words than that. */
static uint64_t count_nonzero_16(const uint8_t *values, size_t n)
{
    const uint64_t magnitude = UINT64_C(0x7fff7fff7fff7fff);
    uint64_t lanes = 0, count = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t word;
        memcpy(&word, values + 2 * i, sizeof word);
        lanes += ((word & magnitude) + magnitude) >> 15 & UINT64_C(0x0001000100010001);
    }
    for (; i < n; i++)
        count += (bc_get_u16(values + 2 * i) & 0x7fff) != 0;
    return count + (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) +
           (lanes >> 48);
}

static uint64_t count_nonzero_32(const float *values, size_t n)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += values[i] != 0.0f;
    return count;
}

/* Bytes of n values of a float type, whole blocks of them. */
static size_t float_bytes(uint32_t type_id, size_t n)
{
    if (type_id == BC_TYPE_Q8_0) return n / BC_Q8_0_BLOCK * BC_Q8_0_BLOCK_SIZE;
    return type_id == BC_TYPE_F32 ? 4 * n : 2 * n;
}

/* n <= CHUNK values as the bytes of a float type. */
static void put_floats(const struct filler *f, const float *values, size_t n, uint8_t *dst)
{
    switch (f->p->tensor->type.type_id) {
    case BC_TYPE_F16:
        f->k->narrow_f16(values, n, dst);
        f->p->n_flushed += count_nonzero_32(values, n) - count_nonzero_16(dst, n);
        break;
    case BC_TYPE_BF16:
        f->k->narrow_bf16(values, n, dst);
        break;
    case BC_TYPE_Q8_0:
        bc_q8_0_from_floats(f->k, values, n / BC_Q8_0_BLOCK, dst);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            bc_put_f32(dst + 4 * i, values[i]);
        break;
    }
}

/* Values [at, at + n) as trit * scale; they lie within one slice. */
static enum bitconv_status chunk_of_trits(const struct filler *f, uint64_t at, size_t n,
                                          float *values)
{
    struct bc_piece *p = f->p;
    const struct bc_plan_tensor *t = p->tensor;
    const struct bc_ternary *d = &t->decision;
    const uint64_t slice = at / (t->n / d->n_scales);
    int8_t trits[CHUNK];
    BC_TRY(bc_plan_trits_at(f->setup, f->model, t, at, n, trits, &p->loss, &p->err));
    f->k->count_trits(trits, n, p->counts);
    f->k->trits_to_f32(trits, n, d->scales[slice], values);
    return BITCONV_OK;
}

/* The general way: float32 values, chunk by chunk, narrowed to the type. Pieces, slices and chunks
 * are whole blocks of Q8_0, because the rows are. */
static enum bitconv_status fill_floats(const struct filler *f)
{
    struct bc_piece *p = f->p;
    const struct bc_plan_tensor *t = p->tensor;
    const uint32_t type_id = t->type.type_id;
    const uint64_t slice_values = t->ternary ? t->n / t->decision.n_scales : t->n;
    size_t n;
    for (size_t done = 0; done < p->n; done += n) {
        float values[CHUNK];
        const uint64_t at = p->first + done;
        const uint64_t slice_left = slice_values - at % slice_values;
        n = p->n - done < CHUNK ? p->n - done : CHUNK;
        if (slice_left < n) n = (size_t)slice_left;
        if (t->ternary)
            BC_TRY(chunk_of_trits(f, at, n, values));
        else
            BC_TRY(bc_plan_f32_at(f->setup, f->model, t, at, n, values, &p->err));
        put_floats(f, values, n, p->slot + float_bytes(type_id, done));
    }
    p->data = p->slot;
    p->size = float_bytes(type_id, p->n);
    return BITCONV_OK;
}

/* The stored bytes of the piece, where it lies within one source and no transform stands between;
 * else NULL. */
static const uint8_t *stored_bytes(const struct bc_piece *p, enum bitconv_dtype *dtype)
{
    const struct bc_plan_tensor *t = p->tensor;
    const struct bc_weight *w = t->weight;
    if (t->ternary || t->has_nonfinite || t->origin != NULL || !bc_weight_is_plain_copy(w))
        return NULL;
    const uint64_t slice_values = t->n / w->n_sources;
    const uint64_t slice = p->first / slice_values;
    const uint64_t at = p->first % slice_values;
    if (p->n > slice_values - at) return NULL;
    const struct bitconv_tensor *source = w->sources[slice].tensor;
    *dtype = source->dtype;
    return source->data + at * bitconv_dtype_size(source->dtype);
}

static bool is_same_type(enum bitconv_dtype dtype, uint32_t type_id)
{
    return (dtype == BITCONV_F32 && type_id == BC_TYPE_F32) ||
           (dtype == BITCONV_F16 && type_id == BC_TYPE_F16) ||
           (dtype == BITCONV_BF16 && type_id == BC_TYPE_BF16);
}

static enum bitconv_status fill(const struct filler *f)
{
    struct bc_piece *p = f->p;
    const uint32_t type_id = p->tensor->type.type_id;
    enum bitconv_dtype dtype = BITCONV_F32;
    if (bc_plan_is_copy(p->tensor)) {
        p->data = p->tensor->origin->bytes + p->first;
        p->size = p->n;
        return BITCONV_OK;
    }
    if (p->tensor->type.pack != NULL) return fill_packed(f);
    const uint8_t *stored = stored_bytes(p, &dtype);
    if (stored != NULL && is_same_type(dtype, type_id)) {
        p->data = stored;
        p->size = p->n * bitconv_dtype_size(dtype);
        return BITCONV_OK;
    }
    if (stored != NULL && dtype == BITCONV_BF16 && type_id == BC_TYPE_F16) {
        f->k->bf16_to_f16(stored, p->n, p->slot);
        const uint64_t n_kept = count_nonzero_16(p->slot, p->n);
        if (n_kept < p->n) p->n_flushed = count_nonzero_16(stored, p->n) - n_kept;
        p->data = p->slot;
        p->size = 2 * p->n;
        return BITCONV_OK;
    }
    return fill_floats(f);
}

void bc_piece_fill(const struct bc_setup *setup, const struct bc_model *model, struct bc_piece *p)
{
    const struct filler f = {setup, model, setup->kernels, p};
    p->data = NULL;
    p->size = 0;
    p->trits = NULL;
    memset(p->counts, 0, sizeof p->counts);
    /* A float file shows the sign of a zero, a pack does not. */
    p->loss = (struct bc_trit_loss){.wants_minus_zeros = p->tensor->type.pack == NULL};
    p->n_flushed = 0;
    p->err = (struct bitconv_error){.status = BITCONV_OK};
    p->status = fill(&f);
}
