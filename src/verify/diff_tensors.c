/* SPDX-License-Identifier: MIT
 * Tensors of two containers side by side. Bytes first, where the type is the same; ternary packs by
 * their fingerprints; everything else value by value, in pieces that threads share. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/scale_tensor.h"
#include "verify/block_scan.h"
#include "verify/decoded.h"
#include "verify/differ.h"

enum { PIECE_VALUES = 16384, BATCH_PIECES = 1024, WHY_BYTES = 512 };

/* One side of a pair. */
struct operand {
    const struct bitconv_inspected_tensor *t;
    const uint8_t *bytes;
    struct bc_decoded d;
    bool decodes;
    enum bitconv_status status; /* when it does not */
    char why[WHY_BYTES];
};

/* ---- scales beside a tensor of blocks ---- */

/* A tensor that is only the scale of another one, and so part of that one's values. */
static bool is_scale_of_another(const struct bc_diff_side *side, size_t index)
{
    const struct bitconv_gguf *file = side->container->gguf;
    return file != NULL && bc_scale_owner(file, bitconv_gguf_tensor_at(file, index)) != NULL;
}

/* ---- by value ---- */

struct tally {
    uint64_t n_different, first;
    double max_difference, largest;
};

struct comparison {
    const struct bc_kernels *k;
    const struct operand *a, *b;
    uint64_t n;
    size_t first_piece;
    double *buffers;       /* 2 * PIECE_VALUES a worker */
    struct tally *tallies; /* by worker: sums and extremes do not depend on who counted what */
};

static bool equal(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare_piece(void *context, size_t index, unsigned worker)
{
    const struct comparison *c = context;
    const uint64_t first = (uint64_t)(c->first_piece + index) * PIECE_VALUES;
    const uint64_t left = c->n - first;
    const size_t n = left < PIECE_VALUES ? (size_t)left : PIECE_VALUES;
    double *a = c->buffers + (size_t)worker * 2 * PIECE_VALUES, *b = a + PIECE_VALUES;
    struct tally *t = &c->tallies[worker];
    bc_decoded_read(c->k, &c->a->d, first, n, a);
    bc_decoded_read(c->k, &c->b->d, first, n, b);
    for (size_t i = 0; i < n; i++) {
        const double difference = fabs(a[i] - b[i]);
        if (isfinite(a[i]) && fabs(a[i]) > t->largest) t->largest = fabs(a[i]);
        if (equal(a[i], b[i])) continue;
        t->n_different++;
        if (first + i < t->first) t->first = first + i;
        if (!(difference <= t->max_difference))
            t->max_difference = isnan(difference) ? (double)INFINITY : difference;
    }
}

static enum bitconv_status run_pieces(struct bc_differ *d, struct comparison *c,
                                      struct bitconv_error *err)
{
    const uint64_t n_pieces = c->n / PIECE_VALUES + (c->n % PIECE_VALUES != 0 ? 1u : 0u);
    for (uint64_t first = 0; first < n_pieces; first += BATCH_PIECES) {
        const uint64_t left = n_pieces - first;
        if (bc_canceled(d->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        c->first_piece = (size_t)first;
        bc_pool_run(d->pool, left < BATCH_PIECES ? (size_t)left : BATCH_PIECES, compare_piece, c);
    }
    return BITCONV_OK;
}

static enum bitconv_status compare_values(struct bc_differ *d, const struct operand *a,
                                          const struct operand *b, struct bitconv_diff_tensor *out,
                                          struct bitconv_error *err)
{
    const unsigned n_workers = bc_pool_threads(d->pool);
    struct comparison c = {.k = d->kernels, .a = a, .b = b, .n = a->d.n};
    c.buffers = bc_alloc_array((size_t)n_workers * 2 * PIECE_VALUES, sizeof *c.buffers);
    c.tallies = bc_alloc_array(n_workers, sizeof *c.tallies);
    enum bitconv_status status = BITCONV_OK;
    if (c.buffers == NULL || c.tallies == NULL)
        status = bc_fail_nomem(err, "buffers of the comparison");
    for (unsigned i = 0; i < n_workers && status == BITCONV_OK; i++)
        c.tallies[i].first = UINT64_MAX;
    if (status == BITCONV_OK) status = run_pieces(d, &c, err);
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; i < n_workers && status == BITCONV_OK; i++) {
        const struct tally *t = &c.tallies[i];
        out->n_different += t->n_different;
        if (t->first < first) first = t->first;
        out->max_difference = fmax(out->max_difference, t->max_difference);
        out->largest = fmax(out->largest, t->largest);
    }
    out->basis = BITCONV_DIFF_BY_VALUE;
    if (out->n_different != 0) {
        out->verdict = BITCONV_DIFF_CHANGED;
        out->first_different = first;
    }
    bc_free(c.buffers);
    bc_free(c.tallies);
    return status;
}

/* ---- one pair ---- */

static void open_operand(const struct bc_diff_side *side, size_t index, struct operand *o)
{
    const struct bc_container *c = side->container;
    memset(o, 0, sizeof *o);
    o->t = &side->it->tensors[index];
    o->bytes = c->gguf != NULL ? bitconv_gguf_tensor_at(c->gguf, index)->data
                               : bc_container_tensor(c, index)->data;
    o->status = bc_decoded_open(c, index, &side->stated, &o->d, o->why, sizeof o->why);
    o->decodes = o->status == BITCONV_OK;
}

/* The dimensions of the values: of a payload those that it states. */
static uint64_t dimension(const struct operand *o, uint32_t i)
{
    const struct bc_packed *p = &o->d.packed;
    if (o->decodes && p->format != NULL) return i < p->n_dims ? p->ne[i] : 1;
    return i < o->t->n_dims ? o->t->ne[i] : 1;
}

static bool same_shape(const struct operand *a, const struct operand *b)
{
    for (uint32_t i = 0; i < BITCONV_GGUF_MAX_DIMS; i++)
        if (dimension(a, i) != dimension(b, i)) return false;
    return !a->decodes || !b->decodes || a->d.n == b->d.n;
}

static void shape_text(const struct operand *o, struct bc_buf *out)
{
    uint32_t n = BITCONV_GGUF_MAX_DIMS;
    while (n > 1 && dimension(o, n - 1) == 1)
        n--;
    for (uint32_t i = 0; i < n; i++)
        bc_buf_printf(out, "%s%" PRIu64, i > 0 ? " x " : "", dimension(o, i));
}

static const char *differing_shapes(struct bc_differ *d, const struct operand *a,
                                    const struct operand *b)
{
    struct bc_buf text = {0};
    bc_buf_puts(&text, "the shapes differ: ");
    shape_text(a, &text);
    bc_buf_puts(&text, " and ");
    shape_text(b, &text);
    const char *copy = text.failed ? NULL : bc_arena_strdup(&d->data->arena, bc_buf_str(&text));
    bc_buf_release(&text);
    return copy;
}

/* Same type, read in the same way, same bytes: the same values. */
static bool same_bytes(const struct operand *a, const struct operand *b)
{
    const struct bc_packed *p = &a->d.packed, *q = &b->d.packed;
    return strcmp(a->t->type, b->t->type) == 0 && a->t->size == b->t->size &&
           p->format == q->format &&
           memcmp(p->shape.tile, q->shape.tile, sizeof p->shape.tile) == 0 && p->scales == NULL &&
           q->scales == NULL &&
           (a->t->size == 0 || memcmp(a->bytes, b->bytes, (size_t)a->t->size) == 0);
}

/* Fingerprints of two packs; left empty when one has none. */
static enum bitconv_status take_fingerprints(struct bc_differ *d, const struct operand *a,
                                             const struct operand *b,
                                             struct bitconv_diff_tensor *out,
                                             struct bitconv_error *err)
{
    struct bc_pack_scan x, y;
    BC_TRY(bc_pack_scan(&a->d.packed, false, d->kernels, d->pool, d->sink, &x, err));
    BC_TRY(bc_pack_scan(&b->d.packed, false, d->kernels, d->pool, d->sink, &y, err));
    if (!x.has_fingerprint || !y.has_fingerprint) return BITCONV_OK;
    bc_hash128_hex(x.fingerprint, out->fingerprint_a);
    bc_hash128_hex(y.fingerprint, out->fingerprint_b);
    return BITCONV_OK;
}

static enum bitconv_status compare_pair(struct bc_differ *d, const struct operand *a,
                                        const struct operand *b, struct bitconv_diff_tensor *out,
                                        struct bitconv_error *err)
{
    const bool bytes = same_bytes(a, b);
    if (!same_shape(a, b)) {
        out->verdict = BITCONV_DIFF_CHANGED;
        out->problem = differing_shapes(d, a, b);
        return out->problem == NULL ? bc_fail_nomem(err, "the comparison") : BITCONV_OK;
    }
    if (!a->decodes || !b->decodes) {
        out->basis = BITCONV_DIFF_BY_BYTES;
        out->verdict = bytes ? BITCONV_DIFF_SAME : BITCONV_DIFF_CHANGED;
        out->problem = bc_arena_strdup(&d->data->arena, a->decodes ? b->why : a->why);
        return out->problem == NULL ? bc_fail_nomem(err, "the comparison") : BITCONV_OK;
    }
    if (a->d.packed.format != NULL && b->d.packed.format != NULL) {
        BC_TRY(take_fingerprints(d, a, b, out, err));
        if (out->fingerprint_a[0] != '\0' && strcmp(out->fingerprint_a, out->fingerprint_b) == 0) {
            out->basis = BITCONV_DIFF_BY_FINGERPRINT;
            return BITCONV_OK;
        }
    } else if (bytes) {
        out->basis = BITCONV_DIFF_BY_BYTES;
        return BITCONV_OK;
    }
    return compare_values(d, a, b, out, err);
}

static const char *shown_type(const struct bitconv_inspected_tensor *t)
{
    return t->pack != NULL ? t->pack : t->type;
}

static void only_in(struct bc_differ *d, size_t side, size_t index)
{
    const struct bitconv_inspected_tensor *t = &d->side[side].it->tensors[index];
    struct bitconv_diff_tensor *out = &d->out->tensors[d->out->n_tensors];
    if (is_scale_of_another(&d->side[side], index)) return;
    out->name = t->name;
    out->n_values = t->n_elements;
    out->verdict = side == 0 ? BITCONV_DIFF_ONLY_A : BITCONV_DIFF_ONLY_B;
    if (side == 0)
        out->type_a = shown_type(t);
    else
        out->type_b = shown_type(t);
    d->out->n_tensors++;
}

static enum bitconv_status in_both(struct bc_differ *d, size_t index_a, size_t index_b,
                                   struct bitconv_error *err)
{
    struct bitconv_diff_tensor *out = &d->out->tensors[d->out->n_tensors];
    struct operand a, b;
    open_operand(&d->side[0], index_a, &a);
    open_operand(&d->side[1], index_b, &b);
    out->name = a.t->name;
    out->type_a = shown_type(a.t);
    out->type_b = shown_type(b.t);
    out->n_values = a.decodes ? a.d.n : a.t->n_elements;
    out->verdict = BITCONV_DIFF_SAME;
    d->out->n_tensors++;
    return compare_pair(d, &a, &b, out, err);
}

static void count_differences(struct bc_differ *d)
{
    for (size_t i = 0; i < d->out->n_tensors; i++) {
        const struct bitconv_diff_tensor *t = &d->out->tensors[i];
        d->out->n_different_tensors += t->verdict != BITCONV_DIFF_SAME ||
                                       (d->options->strict && strcmp(t->type_a, t->type_b) != 0);
    }
}

enum bitconv_status bc_diff_tensors(struct bc_differ *d, struct bitconv_error *err)
{
    const struct bitconv_inspection *a = d->side[0].it, *b = d->side[1].it;
    const size_t n = a->n_tensors + b->n_tensors;
    uint64_t done = 0, at = 0;
    d->out->tensors = bc_arena_alloc(&d->data->arena, n, sizeof *d->out->tensors);
    if (d->out->tensors == NULL && n != 0) return bc_fail_nomem(err, "the tensors");
    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct bitconv_inspected_tensor *t = &a->tensors[i];
        if (bc_canceled(d->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        bc_progress(d->sink, "comparing", done, a->file_size);
        done += t->size;
        if (bc_map_get(&d->side[1].tensors, t->name, t->name_len, &at))
            BC_TRY(in_both(d, i, (size_t)at, err));
        else
            only_in(d, 0, i);
    }
    for (size_t i = 0; i < b->n_tensors; i++)
        if (!bc_map_get(&d->side[0].tensors, b->tensors[i].name, b->tensors[i].name_len, &at))
            only_in(d, 1, i);
    bc_progress(d->sink, "comparing", a->file_size, a->file_size);
    count_differences(d);
    return BITCONV_OK;
}
