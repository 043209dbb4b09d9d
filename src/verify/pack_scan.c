/* SPDX-License-Identifier: MIT
 * The pass over a packed tensor: trits through the independent reader, packed again, compared.
 *
 * A flat pack (row-major order, trits first, scale behind them) is handled in pieces: a run of
 * trits that starts and ends at the pack's granule packs to the same bytes as a tensor of its own
 * would, so neither the trits nor the packed bytes are ever held as a whole. A payload is decoded in
 * pieces and packed run by run behind one another. Other packs are decoded and packed whole. */
#include "verify/pack_scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "formats/block_pack.h"
#include "formats/fingerprint.h"
#include "model/scale_tensor.h"
#include "quant/quantize.h"
#include "verify/block_scan.h"

enum { PIECE_TRITS = 65536, BATCH_PIECES = 64, MAX_GRANULE = 4096 };

enum mode { MODE_FLAT, MODE_RUNS, MODE_WHOLE };

struct piece {
    uint64_t counts[3];
    uint64_t illegal, first_illegal, mismatch;
};

struct scanner {
    const struct bc_packed *p;
    const struct bc_kernels *k;
    enum mode mode;
    uint64_t piece_n;     /* trits of a piece */
    uint64_t first, n;    /* the batch: trits [first, first + n) */
    int8_t *trits;        /* of the batch */
    struct piece *pieces; /* of the batch */
    uint8_t *scratch;     /* flat: one piece per worker; else the whole packed tensor */
    size_t scratch_size;  /* bytes of one worker's part */
    struct bc_fingerprint fingerprint;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A run of n trits as a tensor of its own. */
static struct bc_pack_shape run_shape(uint64_t n)
{
    const struct bc_pack_shape shape = {.cols = n, .rows = 1, .slices = 1, .n = n};
    return shape;
}

static bool is_flat(const struct bc_format *f)
{
    const bool own_scales = f->max_scales == 1 || bc_block_pack_of(f) != NULL;
    return f->row_major && own_scales && f->granule != 0 && f->granule <= MAX_GRANULE;
}

static enum mode mode_of(const struct bc_format *f)
{
    if (is_flat(f)) return MODE_FLAT;
    return f->run != 0 && f->run <= PIECE_TRITS ? MODE_RUNS : MODE_WHOLE;
}

static uint64_t offset_of(const struct bc_packed *p, uint64_t first)
{
    const struct bc_pack_shape shape = run_shape(first);
    return p->format->trit_bytes(&shape);
}

uint64_t bc_packed_read(const struct bc_packed *p, uint64_t first, uint64_t n, int8_t *dst)
{
    const struct bc_pack_shape *shape = &p->shape;
    uint64_t col = first % shape->cols;
    uint64_t row = first / shape->cols % shape->rows;
    uint64_t slice = first / shape->cols / shape->rows;
    uint64_t illegal = 0;
    if (p->format->trits_at != NULL) {
        p->format->trits_at(shape, p->data, first, n, dst);
        for (uint64_t i = 0; i < n; i++)
            illegal += dst[i] == BC_TRIT_ILLEGAL;
        return illegal;
    }
    for (uint64_t i = 0; i < n; i++) {
        const int trit = p->format->trit_at(shape, p->data, slice, row, col);
        dst[i] = (int8_t)trit;
        illegal += trit == BC_TRIT_ILLEGAL;
        if (++col < shape->cols) continue;
        col = 0;
        if (++row < shape->rows) continue;
        row = 0;
        slice++;
    }
    return illegal;
}

uint64_t bc_packed_byte_of(const struct bc_packed *p, uint64_t index)
{
    const struct bc_format *f = p->format;
    if (!is_flat(f)) return UINT64_MAX;
    const uint64_t start = index / f->granule * f->granule;
    const struct bc_pack_shape shape = run_shape(min_u64(f->granule, p->shape.n - start));
    const uint64_t bytes = f->trit_bytes(&shape);
    const uint64_t offset = offset_of(p, start);
    uint8_t probe[MAX_GRANULE];
    if (bytes > sizeof probe) return UINT64_MAX;
    memcpy(probe, p->data + offset, bytes);
    const int before = f->trit_at(&shape, probe, 0, 0, index - start);
    /* The byte whose complement changes what the reader sees is the one that holds the trit. */
    for (uint64_t i = 0; i < bytes; i++) {
        probe[i] ^= 0xff;
        const int after = f->trit_at(&shape, probe, 0, 0, index - start);
        probe[i] ^= 0xff;
        if (after != before) return offset + i;
    }
    return UINT64_MAX;
}

/* Reads a piece and counts; illegal codes become zeros, so that the packer only sees trits. */
static void decode_piece(const struct scanner *s, uint64_t first, uint64_t n, int8_t *trits,
                         struct piece *piece)
{
    memset(piece, 0, sizeof *piece);
    piece->first_illegal = BC_NO_INDEX;
    piece->mismatch = BC_NO_INDEX;
    piece->illegal = bc_packed_read(s->p, first, n, trits);
    for (uint64_t i = 0; piece->illegal != 0 && i < n; i++) {
        if (trits[i] != BC_TRIT_ILLEGAL) continue;
        if (piece->first_illegal == BC_NO_INDEX) piece->first_illegal = first + i;
        trits[i] = 0;
    }
    uint64_t counts[4] = {0};
    s->k->count_trits(trits, (size_t)n, counts);
    memcpy(piece->counts, counts, sizeof piece->counts);
    piece->counts[1] -= piece->illegal;
}

/* A granule with an illegal code cannot re-pack to its own bytes, and is reported for that code. */
static bool granule_is_illegal(const struct bc_packed *p, uint64_t first, uint64_t n)
{
    int8_t trits[MAX_GRANULE];
    return bc_packed_read(p, first, n, trits) != 0;
}

static void repack_piece(const struct scanner *s, uint64_t first, uint64_t n, const int8_t *trits,
                         uint8_t *scratch, struct piece *piece)
{
    const struct bc_format *f = s->p->format;
    const struct bc_pack_shape shape = run_shape(n);
    const uint64_t bytes = f->trit_bytes(&shape);
    const uint64_t offset = offset_of(s->p, first);
    const struct bc_block_pack *bp = bc_block_pack_of(f);
    f->pack(s->k, &shape, trits, 0, n, scratch);
    /* The scales of blocks are judged by themselves. */
    if (bp != NULL) bc_block_copy_scales(bp, s->p->data + offset, n / bp->block, scratch);
    if (memcmp(scratch, s->p->data + offset, bytes) == 0) return;
    const struct bc_pack_shape granule = run_shape(f->granule);
    const uint64_t step = f->trit_bytes(&granule);
    for (uint64_t i = 0; i < bytes; i++) {
        if (scratch[i] == s->p->data[offset + i]) continue;
        const uint64_t start = i / step * f->granule;
        if (piece->illegal != 0 &&
            granule_is_illegal(s->p, first + start, min_u64(f->granule, n - start)))
            continue;
        piece->mismatch = offset + i;
        return;
    }
}

static void scan_piece(void *context, size_t index, unsigned worker)
{
    struct scanner *s = context;
    const uint64_t start = index * s->piece_n;
    const uint64_t n = min_u64(s->piece_n, s->n - start);
    int8_t *trits = s->trits + start;
    decode_piece(s, s->first + start, n, trits, &s->pieces[index]);
    if (s->mode == MODE_FLAT)
        repack_piece(s, s->first + start, n, trits, s->scratch + worker * s->scratch_size,
                     &s->pieces[index]);
}

static void add_piece(struct bc_pack_scan *out, const struct piece *piece)
{
    out->minus += piece->counts[0];
    out->zero += piece->counts[1];
    out->plus += piece->counts[2];
    out->illegal += piece->illegal;
    if (out->first_illegal == BC_NO_INDEX) out->first_illegal = piece->first_illegal;
    if (out->mismatch == BC_NO_INDEX) out->mismatch = piece->mismatch;
}

/* Compares what the trits of the whole tensor pack to. Payloads have been packed batch by batch,
 * their scales stand in front; other packs are packed here, and their scales are not looked at. */
static void compare_whole(const struct scanner *s, const float *scales, uint32_t n_scales,
                          struct bc_pack_scan *out)
{
    const struct bc_packed *p = s->p;
    const uint64_t bytes = p->format->trit_bytes(&p->shape);
    if (out->illegal != 0 || out->payload[0] != '\0') return;
    if (s->mode == MODE_RUNS)
        p->format->put_scales(&p->shape, scales, n_scales, s->scratch);
    else
        p->format->pack(s->k, &p->shape, s->trits, 0, p->shape.n, s->scratch);
    for (uint64_t i = 0; i < bytes && out->mismatch == BC_NO_INDEX; i++)
        if (s->scratch[i] != p->data[i]) out->mismatch = i;
}

/* Compares what stands behind the trits with what put_scales writes there; *scratch has room for
 * the packed shape. */
static void check_tail(const struct scanner *s, const float *scales, uint32_t n_scales,
                       struct bc_pack_scan *out)
{
    const struct bc_packed *p = s->p;
    const struct bc_pack_shape shape =
        s->mode == MODE_FLAT ? run_shape(min_u64(p->format->granule, p->shape.n)) : p->shape;
    const uint64_t begin = p->format->trit_bytes(&shape);
    const uint64_t end = p->format->size(&shape);
    const uint64_t offset = p->format->trit_bytes(&p->shape);
    p->format->put_scales(&shape, scales, n_scales, s->scratch);
    for (uint64_t i = begin; i < end && out->junk == BC_NO_INDEX; i++)
        if (s->scratch[i] != p->data[offset + (i - begin)]) out->junk = offset + (i - begin);
}

static void check_scales(const float *scales, uint32_t n_scales, struct bc_pack_scan *out)
{
    out->scale = scales[0];
    for (uint32_t i = 0; i < n_scales; i++) {
        if (isfinite(scales[i]) && scales[i] > 0) continue;
        out->bad_scale = i;
        out->bad_scale_value = scales[i];
        return;
    }
}

/* The canonical scale of an all-zero tensor stands at the head of the fingerprint's stream, so this
 * must be known first. Ends at the first trit that is not zero. */
static bool all_zero(const struct bc_packed *p, bool lenient)
{
    int8_t trits[MAX_GRANULE];
    for (uint64_t at = 0; at < p->shape.n;) {
        const uint64_t n = min_u64(sizeof trits, p->shape.n - at);
        bc_packed_read(p, at, n, trits);
        for (uint64_t i = 0; i < n; i++)
            if (trits[i] != 0 && !(lenient && trits[i] == BC_TRIT_ILLEGAL)) return false;
        at += n;
    }
    return true;
}

static enum bitconv_status scan_batches(struct scanner *s, bool lenient, struct bc_pool *pool,
                                        const struct bitconv_sink *sink, struct bc_pack_scan *out,
                                        struct bitconv_error *err)
{
    const uint64_t total = s->p->shape.n;
    const uint64_t batch = s->mode != MODE_WHOLE ? s->piece_n * BATCH_PIECES : total;
    for (s->first = 0; s->first < total; s->first += s->n) {
        if (bc_canceled(sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        s->n = min_u64(batch, total - s->first);
        const size_t n_pieces = (size_t)((s->n + s->piece_n - 1) / s->piece_n);
        bc_pool_run(pool, n_pieces, scan_piece, s);
        for (size_t i = 0; i < n_pieces; i++)
            add_piece(out, &s->pieces[i]);
        out->has_fingerprint = out->payload[0] == '\0' && (out->illegal == 0 || lenient);
        if (s->mode == MODE_RUNS)
            s->p->format->pack(s->k, &s->p->shape, s->trits, s->first, s->n, s->scratch);
        if (out->has_fingerprint) bc_fingerprint_trits(&s->fingerprint, s->trits, s->n);
    }
    return BITCONV_OK;
}

/* Several scales in a slice are good, but none of them is the tensor's. */
static void scan_block_scales(const struct bc_packed *p, float *scales, struct bc_pack_scan *out)
{
    const struct bc_block_pack *bp = bc_block_pack_of(p->format);
    bc_block_scan(p, scales, &out->blocks);
    if (out->blocks.junk != BC_NO_INDEX)
        out->junk = out->blocks.junk * bp->block_size + bp->scale_offset;
    if (out->blocks.form != BC_SCALES_IN_MANY_BLOCKS)
        check_scales(scales, (uint32_t)p->shape.slices, out);
    else
        out->scale = NAN;
}

static enum bitconv_status scan_with(struct scanner *s, bool lenient, struct bc_pool *pool,
                                     const struct bitconv_sink *sink, float *scales,
                                     uint32_t n_scales, struct bc_pack_scan *out,
                                     struct bitconv_error *err)
{
    const struct bc_packed *p = s->p;
    if (bc_block_pack_of(p->format) != NULL) {
        scan_block_scales(p, scales, out);
    } else {
        for (uint32_t i = 0; i < n_scales; i++)
            scales[i] = p->format->get_scale(&p->shape, p->data, i);
        check_scales(scales, n_scales, out);
    }
    const bool many = out->blocks.form == BC_SCALES_IN_MANY_BLOCKS;
    if (p->format->check_payload != NULL &&
        !p->format->check_payload(NULL, p->data, p->size, out->payload, sizeof out->payload) &&
        out->payload[0] == '\0')
        return bc_fail(err, BITCONV_E_BUG, "a payload of %s is refused without a reason",
                       p->format->name);
    BC_TRY(bc_fingerprint_begin(&s->fingerprint, p->n_dims, p->ne, scales, n_scales,
                                all_zero(p, lenient), err));
    const enum bitconv_status status = scan_batches(s, lenient, pool, sink, out, err);
    if (status != BITCONV_OK) {
        bc_fingerprint_cancel(&s->fingerprint);
        return status;
    }
    out->fingerprint = bc_fingerprint_end(&s->fingerprint);
    out->has_fingerprint = out->has_fingerprint && !many;
    if (s->mode != MODE_FLAT) compare_whole(s, scales, n_scales, out);
    if (s->mode != MODE_RUNS && out->blocks.form == BC_SCALES_OF_TENSOR)
        check_tail(s, scales, n_scales, out);
    return BITCONV_OK;
}

enum bitconv_status bc_pack_scan(const struct bc_packed *p, bool lenient,
                                 const struct bc_kernels *k, struct bc_pool *pool,
                                 const struct bitconv_sink *sink, struct bc_pack_scan *out,
                                 struct bitconv_error *err)
{
    const struct bc_format *f = p->format;
    memset(out, 0, sizeof *out);
    out->first_illegal = out->mismatch = out->junk = out->bad_scale = BC_NO_INDEX;
    out->blocks.other = out->blocks.bad = out->blocks.junk = BC_NO_INDEX;
    out->blocks.first_vanishing = BC_NO_INDEX;
    struct scanner s = {.p = p, .k = k, .mode = mode_of(f), .piece_n = PIECE_TRITS};
    if (s.mode == MODE_FLAT) s.piece_n -= PIECE_TRITS % f->granule;
    if (s.mode == MODE_RUNS) s.piece_n -= PIECE_TRITS % f->run;
    const uint64_t batch =
        min_u64(s.mode != MODE_WHOLE ? s.piece_n * BATCH_PIECES : p->shape.n, p->shape.n);
    const struct bc_pack_shape piece = run_shape(s.piece_n);
    const uint32_t n_scales = f->max_scales == 1 ? 1 : (uint32_t)p->shape.slices;
    const bool flat = s.mode == MODE_FLAT;
    const size_t n_scratch = flat ? bc_pool_threads(pool) : 1;
    s.scratch_size = (size_t)(flat ? f->size(&piece) : p->size);

    s.trits = bc_alloc_array((size_t)batch, 1);
    s.pieces = bc_alloc_array((size_t)(batch / s.piece_n + 1), sizeof *s.pieces);
    s.scratch = bc_alloc_array(n_scratch, s.scratch_size);
    float *scales = bc_alloc_array(n_scales, sizeof *scales);
    enum bitconv_status status = BITCONV_OK;
    if (s.trits == NULL || s.pieces == NULL || s.scratch == NULL || scales == NULL)
        status = bc_fail_nomem(err, "buffers of the re-pack proof");
    else
        status = scan_with(&s, lenient, pool, sink, scales, n_scales, out, err);
    bc_free(s.trits);
    bc_free(s.pieces);
    bc_free(s.scratch);
    bc_free(scales);
    return status;
}

float bc_zero_share(uint64_t zero, uint64_t n)
{
    return n == 0 ? 0.0f : (float)((double)zero / (double)n);
}
