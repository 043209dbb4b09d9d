/* SPDX-License-Identifier: MIT
 * Block scales, scale tensors and misfits of values, worked out from the checkpoint. */
#include "verify/source_blocks.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "model/scale_tensor.h"
#include "verify/block_scan.h"

enum { CHUNK = 4096 };

bool bc_source_is_by_block(const struct bc_verifier *v, const struct bc_weight *w,
                           const struct bc_packed *packed)
{
    return v->source->weight_options.mode == BC_QUANT_BLOCK && w->n_sources > 0 &&
           w->sources[0].scale == NULL && bc_block_pack_of(packed->format) != NULL;
}

bool bc_source_is_ternary_by_block(const struct bc_verifier *v, const struct bc_weight *w,
                                   const struct bc_packed *packed)
{
    const struct bc_source_state *s = v->source;
    const struct bc_block_pack *bp = bc_block_pack_of(packed->format);
    return bp != NULL && bp->holds_zeros && packed->scales == NULL &&
           bc_weight_is_ternary_by_block(s->model, w, &s->weight_options, v->kernels, bp->block);
}

bool bc_source_looks_by_block(const struct bc_verifier *v)
{
    size_t n_packed = 0, n_many = 0;
    for (size_t i = 0; i < v->stated.n; i++)
        if (v->stated.tensors[i].fingerprint_len == 0) return true;
    if (v->stated.present) return false;
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        n_packed += v->tensors[i].scanned;
        n_many +=
            v->tensors[i].scanned && v->tensors[i].scan.blocks.form == BC_SCALES_IN_MANY_BLOCKS;
    }
    return 2 * n_many > n_packed;
}

/* ---- scales ---- */

static float decided_scale(const struct bc_ternary *d, uint64_t slice)
{
    return d->scales[d->n_scales == 1 ? 0 : slice];
}

/* The tensor beside the weight, value by value. */
static bool compare_scale_tensor(struct bc_verifier *v, struct bitconv_proof *proof,
                                 const struct bc_weight *w, size_t index,
                                 const struct bc_ternary *d)
{
    const struct bc_packed *p = &v->tensors[index].packed;
    const struct bitconv_gguf_tensor *scale =
        bc_scale_tensor_of(v->container.gguf, bitconv_gguf_tensor_at(v->container.gguf, index));
    for (uint64_t i = 0; scale != NULL && i < p->shape.slices; i++) {
        const float found = bc_packed_scale_beside(p, i), wanted = decided_scale(d, i);
        if (bc_f32_bits(found) == bc_f32_bits(wanted)) continue;
        bc_problem(v, proof, bc_tensor_index(v, scale->name),
                   "%s: the scale of slice %" PRIu64 " of %s is %.9g (0x%08" PRIx32
                   "), the checkpoint gives %.9g (0x%08" PRIx32 ")",
                   scale->name, i, w->name, (double)found, bc_f32_bits(found), (double)wanted,
                   bc_f32_bits(wanted));
        return false;
    }
    return true;
}

/* Does any tensor of the file have its scales beside it? Then a block scale of 1 means that the
 * tensor of scales is missing or damaged. */
static bool has_scale_tensors(const struct bc_verifier *v)
{
    for (size_t i = 0; i < v->result->n_tensors; i++)
        if (v->tensors[i].packed.scales != NULL) return true;
    return false;
}

static void report_block(struct bc_verifier *v, struct bitconv_proof *proof, size_t index,
                         const struct bc_weight *w, uint64_t block, float found, float wanted)
{
    struct bc_buf name = {0};
    const bool beside = v->tensors[index].packed.scales != NULL;
    if (!beside && found == 1.0f && has_scale_tensors(v) && bc_scale_tensor_name(&name, w->name))
        bc_problem(v, proof, index,
                   "%s: its block scales are 1, but %s, which should hold the scale, is missing or "
                   "cannot be it",
                   w->name, bc_buf_str(&name));
    else
        bc_problem(v, proof, index, "%s: the scale of block %" PRIu64 " is %.9g, %s %.9g%s",
                   w->name, block, (double)found,
                   beside ? "beside a tensor of scales it should be" : "the checkpoint gives",
                   (double)wanted, beside ? "" : " (as float16)");
    bc_buf_release(&name);
}

void bc_compare_block_scales(struct bc_verifier *v, struct bitconv_proof *proof,
                             const struct bc_weight *w, size_t index,
                             const struct bc_ternary *decision)
{
    const struct bc_packed *p = &v->tensors[index].packed;
    const struct bc_block_pack *bp = bc_block_pack_of(p->format);
    const uint64_t n_blocks = p->shape.n / bp->block;
    const uint64_t per_slice = n_blocks / p->shape.slices;
    if (!compare_scale_tensor(v, proof, w, index, decision)) return;
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint8_t *block = p->data + i * bp->block_size;
        const float found = bc_block_scale(bp, block);
        const float wanted = p->scales != NULL
                                 ? 1.0f
                                 : bc_block_rounded_scale(decided_scale(decision, i / per_slice));
        if (bc_f32_bits(found) == bc_f32_bits(wanted) || bp->is_zero(block)) continue;
        report_block(v, proof, index, w, i, found, wanted);
        return;
    }
}

/* ---- misfits ---- */

static bool has_zero(const struct bc_verifier *v, const struct bc_weight *w,
                     const struct bc_ternary *d)
{
    const struct bc_source_state *s = v->source;
    const uint64_t total = bc_weight_count(w);
    int8_t trits[CHUNK];
    for (uint64_t at = 0; at < total; at += CHUNK) {
        const uint64_t n = total - at < CHUNK ? total - at : CHUNK;
        uint64_t counts[4] = {0};
        if (bc_weight_trits_at(s->model, w, d, &s->weight_options, v->kernels, at, n, trits, NULL,
                               NULL) != BITCONV_OK)
            return false;
        v->kernels->count_trits(trits, (size_t)n, counts);
        if (counts[1] != 0) return true;
    }
    return false;
}

bool bc_source_is_block_misfit(struct bc_verifier *v, const struct bc_weight *w,
                               const struct bc_format *format)
{
    const struct bc_source_state *s = v->source;
    const struct bc_block_pack *bp = bc_block_pack_of(format);
    struct bc_ternary d;
    bool misfit = false;
    if (bp == NULL || bc_ternary_decide(s->model, w, &s->weight_options, v->kernels, v->pool, NULL,
                                        &d, NULL) != BITCONV_OK)
        return false;
    for (uint32_t i = 0; i < d.n_scales && !misfit; i++)
        misfit = !bc_block_scale_fits(d.scales[i]);
    if (!bp->holds_zeros && !misfit) misfit = has_zero(v, w, &d);
    bc_ternary_release(&d);
    return misfit;
}
