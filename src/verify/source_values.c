/* SPDX-License-Identifier: MIT
 * Trits, scales and numbers of one tensor against the checkpoint, piece by piece on all threads. */
#include "verify/source_values.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "formats/dequant.h"
#include "formats/q8_0.h"
#include "io/gguf_types.h"
#include "verify/source_blocks.h"
#include "verify/tensor_stats.h"

enum { PIECE_VALUES = 16384, BATCH_PIECES = 1024 };

/* Numbers of the file, in units of `block` values and `size` bytes. */
struct numbers {
    uint32_t type_id;
    const uint8_t *data;
    uint32_t block, size;
};

/* What a thread needs; `diff` and `failed` are the lowest indices it met. */
struct lane {
    float values[PIECE_VALUES];
    int8_t wanted[PIECE_VALUES], found[PIECE_VALUES];
    uint8_t bytes[PIECE_VALUES * sizeof(float)];
    uint64_t diff, failed;
    struct bitconv_error err;     /* of the piece at work */
    struct bitconv_error failure; /* of `failed` */
};

struct comparison {
    const struct bc_verifier *v;
    const struct bc_weight *w;
    const struct bc_ternary *decision; /* NULL: stored values */
    const struct bc_packed *packed;    /* NULL: numbers */
    /* Numbers that were quantized block by block (--quant block); else NULL. */
    const struct bc_block_pack *blocks;
    struct numbers numbers; /* the file's, when not packed */
    uint64_t first_piece, n;
    struct lane *lanes;
};

static enum bitconv_status source_trits(const struct comparison *c, uint64_t first, uint64_t n,
                                        struct lane *lane)
{
    const struct bc_source_state *s = c->v->source;
    return bc_weight_trits_at(s->model, c->w, c->decision, &s->weight_options, c->v->kernels, first,
                              n, lane->wanted, NULL, &lane->err);
}

static enum bitconv_status compare_trits(const struct comparison *c, uint64_t first, uint64_t n,
                                         struct lane *lane, uint64_t *diff)
{
    BC_TRY(source_trits(c, first, n, lane));
    const uint64_t illegal = bc_packed_read(c->packed, first, n, lane->found);
    for (uint64_t i = 0; illegal != 0 && c->v->options->lenient && i < n; i++)
        if (lane->found[i] == BC_TRIT_ILLEGAL) lane->found[i] = 0;
    *diff = 0;
    if (memcmp(lane->wanted, lane->found, n) == 0) *diff = n;
    while (*diff < n && lane->wanted[*diff] == lane->found[*diff])
        ++*diff;
    return BITCONV_OK;
}

/* trit * scale, each slice with its own scale. */
static enum bitconv_status ternary_values(const struct comparison *c, uint64_t first, uint64_t n,
                                          struct lane *lane)
{
    const uint64_t per_scale = bc_weight_count(c->w) / c->decision->n_scales;
    BC_TRY(source_trits(c, first, n, lane));
    for (uint64_t done = 0; done < n;) {
        const uint64_t scale = (first + done) / per_scale;
        const uint64_t left = (scale + 1) * per_scale - (first + done);
        const uint64_t m = n - done < left ? n - done : left;
        c->v->kernels->trits_to_f32(lane->wanted + done, (size_t)m, c->decision->scales[scale],
                                    lane->values + done);
        done += m;
    }
    return BITCONV_OK;
}

static void round_to(const struct comparison *c, uint64_t n, struct lane *lane)
{
    if (c->blocks != NULL) {
        bc_block_from_floats(c->blocks, c->v->kernels, lane->values, n / c->blocks->block,
                             lane->bytes);
        return;
    }
    switch (c->numbers.type_id) {
    case BC_TYPE_F16:
        c->v->kernels->narrow_f16(lane->values, (size_t)n, lane->bytes);
        break;
    case BC_TYPE_BF16:
        c->v->kernels->narrow_bf16(lane->values, (size_t)n, lane->bytes);
        break;
    case BC_TYPE_Q8_0:
        bc_q8_0_from_floats(c->v->kernels, lane->values, n / BC_Q8_0_BLOCK, lane->bytes);
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            bc_put_f32(lane->bytes + 4 * i, lane->values[i]);
        break;
    }
}

/* `first` and n are whole units; *diff is the first value of one that differs. */
static enum bitconv_status compare_numbers(const struct comparison *c, uint64_t first, uint64_t n,
                                           struct lane *lane, uint64_t *diff)
{
    const struct bc_source_state *s = c->v->source;
    const uint64_t block = c->numbers.block;
    const size_t size = c->numbers.size;
    const uint64_t n_units = n / block;
    const uint8_t *found = c->numbers.data + first / block * size;
    if (c->decision != NULL)
        BC_TRY(ternary_values(c, first, n, lane));
    else
        BC_TRY(bc_weight_f32_at(s->model, c->w, &s->weight_options, c->v->kernels, first, n,
                                lane->values, &lane->err));
    round_to(c, n, lane);
    uint64_t unit = 0;
    if (memcmp(lane->bytes, found, n_units * size) == 0) unit = n_units;
    while (unit < n_units && memcmp(lane->bytes + unit * size, found + unit * size, size) == 0)
        unit++;
    *diff = unit * block;
    return BITCONV_OK;
}

static void compare_piece(void *context, size_t index, unsigned worker)
{
    const struct comparison *c = context;
    struct lane *lane = &c->lanes[worker];
    const uint64_t first = (c->first_piece + index) * PIECE_VALUES;
    const uint64_t n = c->n - first < PIECE_VALUES ? c->n - first : PIECE_VALUES;
    uint64_t diff = n;
    if (lane->failed < first || lane->diff < first) return; /* an earlier one decides */
    memset(&lane->err, 0, sizeof lane->err);
    const enum bitconv_status status = c->packed != NULL
                                           ? compare_trits(c, first, n, lane, &diff)
                                           : compare_numbers(c, first, n, lane, &diff);
    if (status != BITCONV_OK) {
        lane->failed = first;
        lane->failure = lane->err;
    } else if (diff < n) {
        lane->diff = first + diff;
    }
}

/* The lowest difference over all threads, or the lowest failure, whichever comes first. */
static const struct lane *first_lane(const struct comparison *c, uint64_t *diff, bool *failed)
{
    const struct lane *lane = NULL;
    *diff = UINT64_MAX;
    for (unsigned i = 0; i < bc_pool_threads(c->v->pool); i++) {
        if (c->lanes[i].diff < *diff) {
            lane = &c->lanes[i];
            *diff = lane->diff;
            *failed = false;
        }
        if (c->lanes[i].failed < *diff) {
            lane = &c->lanes[i];
            *diff = lane->failed;
            *failed = true;
        }
    }
    return lane;
}

static void describe(struct bc_verifier *v, struct bitconv_proof *proof, const struct comparison *c,
                     size_t index, uint64_t at)
{
    struct lane *lane = c->lanes;
    const uint64_t cols = c->w->ne[0];
    uint64_t diff = 0;
    if (c->packed != NULL) {
        (void)compare_trits(c, at, 1, lane, &diff);
        bc_problem(v, proof, index,
                   "%s: the trit in row %" PRIu64 ", column %" PRIu64
                   " is %d, the checkpoint gives %d",
                   c->w->name, at / cols, at % cols, lane->found[0], lane->wanted[0]);
        return;
    }
    const char *type = v->result->tensors[index].type;
    struct bc_values values;
    double found = 0;
    if (c->blocks != NULL || !bc_container_values(&v->container, index, &values)) {
        bc_problem(v, proof, index,
                   "%s: the block of %" PRIu32 " values from %" PRIu64
                   " on is not what %s makes of the checkpoint's",
                   c->w->name, c->numbers.block, at, type);
        return;
    }
    bc_read_doubles(v->kernels, &values, at, 1, &found);
    (void)compare_numbers(c, at, 1, lane, &diff);
    bc_problem(v, proof, index, "%s: value %" PRIu64 " is %.9g, the checkpoint gives %.9g (as %s)",
               c->w->name, at, found, (double)lane->values[0], type);
}

static enum bitconv_status run(struct bc_verifier *v, struct bitconv_proof *proof,
                               struct comparison *c, size_t index, struct bitconv_error *err)
{
    const uint64_t n_pieces = c->n / PIECE_VALUES + (c->n % PIECE_VALUES != 0 ? 1u : 0u);
    const unsigned n_lanes = bc_pool_threads(v->pool);
    uint64_t at = UINT64_MAX;
    bool failed = false;
    c->lanes = bc_alloc_array(n_lanes, sizeof *c->lanes);
    if (c->lanes == NULL) return bc_fail_nomem(err, "buffers of the source proof");
    for (unsigned i = 0; i < n_lanes; i++)
        c->lanes[i].diff = c->lanes[i].failed = UINT64_MAX;
    const struct lane *lane = NULL;
    enum bitconv_status status = BITCONV_OK;
    for (c->first_piece = 0; c->first_piece < n_pieces && lane == NULL;
         c->first_piece += BATCH_PIECES) {
        const uint64_t left = n_pieces - c->first_piece;
        bc_pool_run(v->pool, left < BATCH_PIECES ? (size_t)left : BATCH_PIECES, compare_piece, c);
        lane = first_lane(c, &at, &failed);
        if (bc_canceled(v->sink)) status = bc_fail(err, BITCONV_E_CANCELED, "canceled");
        if (status != BITCONV_OK) break;
    }
    if (status == BITCONV_OK && lane != NULL) {
        if (failed)
            bc_problem(v, proof, index, "%s: %s", c->w->name, lane->failure.text);
        else
            describe(v, proof, c, index, at);
    }
    bc_free(c->lanes);
    return status;
}

/* The stored scales against the checkpoint's, bit for bit. */
static void compare_scales(struct bc_verifier *v, struct bitconv_proof *proof,
                           const struct comparison *c, size_t index)
{
    const struct bc_packed *p = c->packed;
    const struct bc_ternary *d = c->decision;
    if (bc_block_pack_of(p->format) != NULL) {
        bc_compare_block_scales(v, proof, c->w, index, d);
        return;
    }
    if (d->scales_differ && p->format->max_scales == 1) {
        bc_problem(v, proof, index,
                   "%s: the checkpoint gives %" PRIu32 " different scales, %s holds one",
                   c->w->name, d->n_scales, p->format->type_name);
        return;
    }
    for (uint32_t i = 0; i < d->n_scales; i++) {
        const float found = p->format->get_scale(&p->shape, p->data, i);
        if (bc_f32_bits(found) == bc_f32_bits(d->scales[i])) continue;
        bc_problem(v, proof, index,
                   "%s: the scale is %.9g (0x%08" PRIx32
                   "), the checkpoint gives %.9g (0x%08" PRIx32 ")",
                   c->w->name, (double)found, bc_f32_bits(found), (double)d->scales[i],
                   bc_f32_bits(d->scales[i]));
        return;
    }
}

/* Whether the file's numbers can be compared: what convert writes, in full length. */
static bool numbers_of(struct bc_verifier *v, struct bitconv_proof *proof, struct comparison *c,
                       size_t index)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(v->container.gguf, index);
    const struct bc_type *type = bc_type_find(t->type, BITCONV_DIALECT_UPSTREAM);
    const bool written = t->type == BC_TYPE_F32 || t->type == BC_TYPE_F16 ||
                         t->type == BC_TYPE_BF16 || t->type == BC_TYPE_Q8_0;
    if (written && type != NULL && t->size == t->n_elements / type->block * type->block_size) {
        c->numbers = (struct numbers){t->type, t->data, type->block, type->block_size};
        return true;
    }
    const char *refusal = bc_dequant_refusal(t->type_name);
    bc_problem(v, proof, index, "%s: type %s cannot be compared with a checkpoint%s%s", c->w->name,
               t->type_name, refusal != NULL ? ": " : ", bitconv does not write it",
               refusal != NULL ? refusal : "");
    return false;
}

/* A pack whose blocks hold what quantizing made of the stored values is compared like numbers. */
static void make_numbers_of_blocks(struct comparison *c)
{
    const struct bc_packed *p = c->packed;
    c->blocks = bc_block_pack_of(p->format);
    c->numbers =
        (struct numbers){p->format->type_id, p->data, c->blocks->block, c->blocks->block_size};
    c->packed = NULL;
}

enum bitconv_status bc_compare_values(struct bc_verifier *v, struct bitconv_proof *proof,
                                      const struct bc_weight *w, size_t index,
                                      struct bitconv_error *err)
{
    struct comparison c = {.v = v, .w = w, .n = bc_weight_count(w)};
    struct bc_ternary decision = {0};
    struct bitconv_error refusal = {0};
    if (v->tensors[index].packed.format != NULL) c.packed = &v->tensors[index].packed;
    if (c.packed != NULL && w->role == BC_ROLE_LINEAR && bc_source_is_by_block(v, w, c.packed))
        make_numbers_of_blocks(&c);
    else if (c.packed == NULL && !numbers_of(v, proof, &c, index))
        return BITCONV_OK;
    if (c.packed != NULL && (w->role != BC_ROLE_LINEAR || w->n_sources == 0)) return BITCONV_OK;
    if (c.packed != NULL || (c.blocks == NULL && bc_expects_ternary_values(v->source, w))) {
        const enum bitconv_status status =
            bc_ternary_decide(v->source->model, w, &v->source->weight_options, v->kernels, v->pool,
                              NULL, &decision, &refusal);
        if (status == BITCONV_E_NOMEM) return bc_fail_nomem(err, "the source proof");
        if (status != BITCONV_OK && c.packed != NULL &&
            bc_source_is_ternary_by_block(v, w, c.packed)) {
            make_numbers_of_blocks(&c);
            return run(v, proof, &c, index, err);
        }
        if (status != BITCONV_OK) {
            bc_problem(v, proof, index, "%s: %s", w->name, refusal.text);
            return BITCONV_OK;
        }
        c.decision = &decision;
        if (c.packed != NULL) compare_scales(v, proof, &c, index);
    }
    const enum bitconv_status status = run(v, proof, &c, index, err);
    bc_ternary_release(&decision);
    return status;
}
