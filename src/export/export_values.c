/* SPDX-License-Identifier: MIT
 * Reads values of the file's tensors and makes the checkpoint's bytes of them.
 *
 * Everything goes by rows of the checkpoint: a row is contiguous in the file as well, wherever it
 * stands there. Flat packs are unpacked from the granule in front of a row to the one behind it,
 * payloads from the run in front; tiled packs have no such pieces and are unpacked whole. */
#include "export/export_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/block_pack.h"
#include "verify/block_scan.h"

enum { PIECE_BYTES = 1 << 20, MAX_WHY = 256 };

void bc_export_scratch_release(struct bc_export_scratch *s)
{
    bc_free(s->trits.data);
    bc_free(s->values.data);
    bc_free(s->out.data);
}

/* Room for n bytes; the content does not matter. NULL when out of memory. */
static void *room(struct bc_export_room *r, uint64_t n)
{
    if (n > SIZE_MAX) return NULL;
    if (r->size >= n) return r->data;
    void *grown = bc_realloc_array(r->data, (size_t)n, 1);
    if (grown == NULL) return NULL;
    r->data = grown;
    r->size = n;
    return grown;
}

/* ---- what a tensor holds ---- */

enum bitconv_status bc_export_decode(struct bc_exporter *e, const struct bitconv_gguf_tensor *t,
                                     struct bc_decoded *out, struct bitconv_error *err)
{
    char why[MAX_WHY] = "";
    struct bc_packed packed;
    const size_t index = (size_t)(t - bitconv_gguf_tensor_at(e->file, 0));
    if (!bc_packed_open_in(e->file, t, &e->stated, &packed, why, sizeof why))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: %s", e->path, t->name, why);
    const enum bitconv_status status =
        bc_decoded_open(&e->container, index, &e->stated, out, why, sizeof why);
    if (status != BITCONV_OK) return bc_fail(err, status, "%s: %s: %s", e->path, t->name, why);
    out->packed = packed; /* block packs are both: a pack, and blocks */
    if (packed.format != NULL && packed.format->check_payload != NULL &&
        !packed.format->check_payload(NULL, packed.data, packed.size, why, sizeof why))
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s: %s", e->path, t->name, why);
    const bool numbers = packed.format == NULL && out->blocks == NULL;
    if (numbers && !bitconv_dtype_is_float(out->numbers.dtype))
        return bc_fail(err, BITCONV_E_UNSUPPORTED, "%s: %s: %s: wanted floats or a ternary pack",
                       e->path, t->name, t->type_name);
    return BITCONV_OK;
}

/* Blocks carry a scale each; those of a slice must agree to be one. */
static enum bitconv_status block_scales(const struct bc_exporter *e,
                                        const struct bitconv_gguf_tensor *t,
                                        const struct bc_packed *p, float *scales,
                                        struct bitconv_error *err)
{
    struct bc_block_scan scan;
    bc_block_scan(p, scales, &scan);
    if (scan.form == BC_SCALES_IN_MANY_BLOCKS)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: %s: its blocks have different scales (block %" PRIu64
                       " differs from those before): a packed checkpoint has one for the "
                       "tensor (--dtype f32, f16 or bf16 decodes it)",
                       e->path, t->name, scan.other);
    return BITCONV_OK;
}

enum bitconv_status bc_export_scales(struct bc_exporter *e, const struct bitconv_gguf_tensor *t,
                                     const struct bc_packed *p, float *scales,
                                     struct bitconv_error *err)
{
    const bool in_blocks = bc_block_pack_of(p->format) != NULL;
    if (in_blocks) BC_TRY(block_scales(e, t, p, scales, err));
    for (uint64_t i = 0; i < p->shape.slices; i++) {
        if (!in_blocks) scales[i] = p->format->get_scale(&p->shape, p->data, i);
        if (!isfinite(scales[i]) || scales[i] <= 0)
            return bc_fail(err, BITCONV_E_CORRUPT,
                           "%s: %s: the scale is %g, wanted a positive number", e->path, t->name,
                           (double)scales[i]);
    }
    return BITCONV_OK;
}

/* ---- trits ---- */

static enum bitconv_status bad_code(const struct bc_exporter *e, const struct bc_export_tensor *t,
                                    struct bitconv_error *err)
{
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: %s: a code that %s does not define (bitconv verify says where)", e->path,
                   t->source->name, t->values->packed.format->name);
}

/* Of a pack: a pointer to trits [first, first + n) of the whole tensor, valid until the next call. */
static enum bitconv_status unpack_trits(const struct bc_exporter *e,
                                        const struct bc_export_tensor *t,
                                        struct bc_export_scratch *s, uint64_t first, uint64_t n,
                                        const int8_t **out, struct bitconv_error *err)
{
    const struct bc_packed *p = &t->values->packed;
    const uint64_t step = p->format->granule != 0 ? p->format->granule : p->format->run;
    const uint64_t from = step != 0 ? first - first % step : 0;
    uint64_t to = step != 0 ? first + n : p->shape.n;
    if (p->format->granule != 0 && to % step != 0)
        to = p->shape.n - to < step - to % step ? p->shape.n : to + (step - to % step);
    if (step != 0 || s->whole != t->source) {
        int8_t *trits = room(&s->trits, to - from);
        s->whole = NULL;
        if (trits == NULL) return bc_fail_nomem(err, "trits");
        if (!p->format->unpack(e->kernels, &p->shape, p->data, from, to - from, trits))
            return bad_code(e, t, err);
        if (step == 0) s->whole = t->source;
    }
    *out = (const int8_t *)s->trits.data + (first - from);
    return BITCONV_OK;
}

/* Values [first, first + n) of the file's tensor. */
static enum bitconv_status read_floats(const struct bc_exporter *e,
                                       const struct bc_export_tensor *t,
                                       struct bc_export_scratch *s, uint64_t first, uint64_t n,
                                       float *dst, struct bitconv_error *err)
{
    const struct bc_decoded *d = t->values;
    const int8_t *trits = NULL;
    if (d->packed.format == NULL && d->blocks != NULL) {
        bc_dequant_values(d->blocks, d->data, first, n, dst);
        for (uint64_t i = 0; d->packed.scales != NULL && i < n; i++)
            dst[i] *= bc_packed_scale_beside(&d->packed, t->slice);
        return BITCONV_OK;
    }
    if (d->packed.format == NULL) {
        bc_widen(e->kernels, &d->numbers, first, (size_t)n, dst);
        return BITCONV_OK;
    }
    BC_TRY(unpack_trits(e, t, s, first, n, &trits, err));
    for (uint64_t i = 0; i < n; i++)
        dst[i] = trits[i] == 0 ? 0.0f : (float)trits[i] * t->scale;
    return BITCONV_OK;
}

/* A pointer to trits [first, first + n), valid until the next call: of a pack, or of floats that are
 * trit * scale (bc_export_one_magnitude). */
static enum bitconv_status read_trits(const struct bc_exporter *e, const struct bc_export_tensor *t,
                                      struct bc_export_scratch *s, uint64_t first, uint64_t n,
                                      const int8_t **out, struct bitconv_error *err)
{
    if (t->values->packed.format != NULL) return unpack_trits(e, t, s, first, n, out, err);
    float *values = room(&s->values, n * sizeof *values);
    int8_t *trits = room(&s->trits, n);
    s->whole = NULL;
    if (values == NULL || trits == NULL) return bc_fail_nomem(err, "trits");
    BC_TRY(read_floats(e, t, s, first, n, values, err));
    for (uint64_t i = 0; i < n; i++)
        trits[i] = (int8_t)((values[i] > 0) - (values[i] < 0));
    *out = trits;
    return BITCONV_OK;
}

/* ---- rows ---- */

/* Where row r of the checkpoint stands in the file: ggml's "normal" RoPE rotates neighbours, so
 * files hold the two halves of a head interleaved. */
static uint64_t stored_row(const struct bc_export_tensor *t, uint64_t row)
{
    if (t->permute_heads == 0) return row;
    const uint64_t head_rows = t->rows / t->permute_heads;
    const uint64_t r = row % head_rows;
    return row - r + r % (head_rows / 2) * 2 + r / (head_rows / 2);
}

/* Index of the first value of a row in the file's tensor. */
static uint64_t flat_of(const struct bc_export_tensor *t, uint64_t row)
{
    return t->slice * t->rows * t->cols + stored_row(t, row) * t->cols;
}

/* How many rows one piece takes: contiguous ones only where they are so in the file too. */
static uint64_t piece_rows(const struct bc_export_tensor *t, uint64_t row, uint64_t bytes_per_row)
{
    uint64_t n = bytes_per_row >= PIECE_BYTES ? 1 : PIECE_BYTES / bytes_per_row;
    return n < t->rows - row ? n : t->rows - row;
}

/* The next run of a row of `cols` values: memory must not depend on its length. */
static uint64_t piece_cols(uint64_t cols, uint64_t col)
{
    enum { COLS = PIECE_BYTES / 4 };
    return cols - col < COLS ? cols - col : COLS;
}

static enum bitconv_status copy_rows(const struct bc_export_tensor *t, struct bc_export_scratch *s,
                                     bc_export_take *take, void *user, struct bitconv_error *err)
{
    const size_t width = bitconv_dtype_size(t->dtype);
    const uint64_t row_bytes = t->cols * width;
    if (t->permute_heads == 0) {
        const uint8_t *at = t->values->numbers.data + flat_of(t, 0) * width;
        for (uint64_t done = 0; done < t->size; done += PIECE_BYTES) {
            const uint64_t n = t->size - done < PIECE_BYTES ? t->size - done : PIECE_BYTES;
            BC_TRY(take(user, at + done, (size_t)n, err));
        }
        return BITCONV_OK;
    }
    for (uint64_t row = 0, n; row < t->rows; row += n) {
        n = piece_rows(t, row, row_bytes);
        uint8_t *out = room(&s->out, n * row_bytes);
        if (out == NULL) return bc_fail_nomem(err, "rows");
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + i * row_bytes, t->values->numbers.data + flat_of(t, row + i) * width,
                   (size_t)row_bytes);
        BC_TRY(take(user, out, (size_t)(n * row_bytes), err));
    }
    return BITCONV_OK;
}

/* ---- packed rows ---- */

/* Adds the codes of one row of trits at bits 2 * lane. */
static void add_codes(uint8_t *bytes, const int8_t *trits, uint64_t n, unsigned lane)
{
    for (uint64_t i = 0; i < n; i++)
        bytes[i] |= (uint8_t)((unsigned)(trits[i] + 1) << (2 * lane));
}

/* Byte row r holds the codes of rows r, r + R, r + 2R, r + 3R where there are such rows
 * (transformers' pack_weights). */
static enum bitconv_status pack_rows(const struct bc_exporter *e, const struct bc_export_tensor *t,
                                     struct bc_export_scratch *s, bc_export_take *take, void *user,
                                     struct bitconv_error *err)
{
    const uint64_t byte_rows = t->shape[0];
    for (uint64_t r = 0; r < byte_rows; r++) {
        for (uint64_t col = 0, n; col < t->cols; col += n) {
            n = piece_cols(t->cols, col);
            uint8_t *out = room(&s->out, n);
            if (out == NULL) return bc_fail_nomem(err, "rows");
            memset(out, 0, (size_t)n);
            for (unsigned lane = 0; lane < 4; lane++) {
                const uint64_t row = r + lane * byte_rows;
                const int8_t *trits = NULL;
                if (row >= t->rows) break;
                BC_TRY(read_trits(e, t, s, flat_of(t, row) + col, n, &trits, err));
                add_codes(out, trits, n, lane);
            }
            BC_TRY(take(user, out, (size_t)n, err));
        }
    }
    return BITCONV_OK;
}

/* ---- decoded rows ---- */

enum bitconv_status bc_export_one_magnitude(const struct bc_exporter *e,
                                            const struct bc_export_tensor *t, float *out,
                                            struct bitconv_error *err)
{
    enum { CHUNK = 1024 };
    struct bc_export_scratch scratch = {.whole = NULL};
    enum bitconv_status status = BITCONV_OK;
    const uint64_t first = t->slice * t->rows * t->cols, n = t->rows * t->cols;
    float values[CHUNK], magnitude = 0;
    bool one = true;
    for (uint64_t at = 0; at < n && one && status == BITCONV_OK; at += CHUNK) {
        const uint64_t count = n - at < CHUNK ? n - at : CHUNK;
        status = read_floats(e, t, &scratch, first + at, count, values, err);
        for (uint64_t i = 0; i < count && status == BITCONV_OK; i++) {
            if (values[i] == 0) continue;
            if (magnitude == 0) magnitude = fabsf(values[i]);
            one = one && isfinite(magnitude) && fabsf(values[i]) == magnitude;
        }
    }
    bc_export_scratch_release(&scratch);
    *out = !one ? 0 : magnitude == 0 ? BC_ABSMEAN_MIN : magnitude;
    return status;
}

/* Narrows to the tensor's dtype; false at a finite value that becomes infinite (*at). */
static bool narrow(struct bc_export_tensor *t, const float *src, uint64_t n, uint8_t *dst,
                   uint64_t *at)
{
    for (uint64_t i = 0; i < n; i++) {
        float back = src[i];
        if (t->dtype == BITCONV_F16) {
            const uint16_t h = bc_f32_to_f16(src[i]);
            bc_put_u16(dst + 2 * i, h);
            back = bc_f16_to_f32(h);
        } else if (t->dtype == BITCONV_BF16) {
            const uint16_t h = bc_f32_to_bf16(src[i]);
            bc_put_u16(dst + 2 * i, h);
            back = bc_bf16_to_f32(h);
        } else {
            bc_put_f32(dst + 4 * i, src[i]);
        }
        if (isfinite(src[i]) && !isfinite(back)) {
            *at = i;
            return false;
        }
        if (back != src[i] && !isnan(src[i])) t->n_inexact++;
    }
    return true;
}

/* For every y: y = fl(w + 1) for some float32 w implies y = fl(fl(y - 1) + 1), or that one of the
 * two neighbours of fl(y - 1) is such a w.
 * - w in [-2, -1/2]: w + 1 is exact (Sterbenz), so y - 1 = w is exact too.
 * - w above -1/2: y >= 1/2. Up to 2, y - 1 is exact (Sterbenz); above, while y's last place is at
 *   most 1, y - 1 is a multiple of it and not larger than y, so exact. Either way fl(fl(y - 1) + 1)
 *   = fl(y) = y.
 * - w below -2: the last place of w + 1 is not above that of w, so where w's is at most 1, w + 1 is
 *   a multiple of w's last place and smaller, hence exact, and y - 1 = w.
 * - Last places above 1 (|w| >= 2^24): 1 is at most half a last place, so w is y or the neighbour
 *   below it, and so is fl(y - 1). */
float bc_export_minus_one(float y, bool *exact)
{
    const float w = y - 1.0f;
    const float tries[] = {w, nextafterf(w, -INFINITY), nextafterf(w, INFINITY)};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const float sum = tries[i] + 1.0f;
        *exact = bc_f32_bits(sum) == bc_f32_bits(y);
        if (*exact) return tries[i];
    }
    return w;
}

static enum bitconv_status float_piece(const struct bc_exporter *e, struct bc_export_tensor *t,
                                       struct bc_export_scratch *s, uint64_t row, uint64_t col,
                                       uint64_t n, bc_export_take *take, void *user,
                                       struct bitconv_error *err)
{
    const size_t width = bitconv_dtype_size(t->dtype);
    float *values = room(&s->values, n * sizeof *values);
    uint8_t *out = room(&s->out, n * width);
    uint64_t at = 0;
    enum bitconv_status status = values == NULL || out == NULL
                                     ? bc_fail_nomem(err, "rows")
                                     : read_floats(e, t, s, flat_of(t, row) + col, n, values, err);
    for (uint64_t i = 0; status == BITCONV_OK && t->form == BC_EXPORT_MINUS_ONE && i < n; i++) {
        bool exact = false;
        values[i] = bc_export_minus_one(values[i], &exact);
        t->n_inexact += !exact;
    }
    if (status == BITCONV_OK && !narrow(t, values, n, out, &at))
        status =
            bc_fail(err, BITCONV_E_LIMIT,
                    "%s: %s: value %" PRIu64 " is %g, beyond the range of %s (--dtype bf16 or f32 "
                    "holds it)",
                    e->path, t->source->name, flat_of(t, row) + col + at, (double)values[at],
                    bitconv_dtype_name(t->dtype));
    return status == BITCONV_OK ? take(user, out, (size_t)n * width, err) : status;
}

static enum bitconv_status float_rows(const struct bc_exporter *e, struct bc_export_tensor *t,
                                      struct bc_export_scratch *s, bc_export_take *take, void *user,
                                      struct bitconv_error *err)
{
    /* rows that stand in order are one long row */
    const bool flat = t->permute_heads == 0;
    const uint64_t cols = flat ? t->rows * t->cols : t->cols;
    for (uint64_t row = 0; row < (flat ? 1 : t->rows); row++)
        for (uint64_t col = 0, n; col < cols; col += n) {
            n = piece_cols(cols, col);
            BC_TRY(float_piece(e, t, s, row, col, n, take, user, err));
        }
    return BITCONV_OK;
}

enum bitconv_status bc_export_produce(const struct bc_exporter *e, struct bc_export_tensor *t,
                                      struct bc_export_scratch *s, bc_export_take *take, void *user,
                                      struct bitconv_error *err)
{
    uint8_t scale[4];
    switch (t->form) {
    case BC_EXPORT_COPY:
        return copy_rows(t, s, take, user, err);
    case BC_EXPORT_TRITS:
        return pack_rows(e, t, s, take, user, err);
    case BC_EXPORT_SCALE:
        bc_put_f32(scale, t->scale);
        return take(user, scale, sizeof scale, err);
    case BC_EXPORT_MINUS_ONE:
    case BC_EXPORT_DECODED:
        return float_rows(e, t, s, take, user, err);
    }
    return BITCONV_OK;
}
