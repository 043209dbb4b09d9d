/* SPDX-License-Identifier: MIT
 * Reads values of an output tensor from its sources.
 *
 * An output tensor is cut into spans: runs that are contiguous in the source as well. What breaks a
 * run is a new slice (the next source), a permuted row, and in packed tensors the next of the four
 * row groups that share their bytes. Everything else works on spans. */
#include "model/weights.h"

#include <inttypes.h>
#include <math.h>

#include "base/bytes.h"

/* Values widened at once: fits the first-level cache, lives on the stack. */
enum { CHUNK = BC_LOSS_VALUES };

uint64_t bc_weight_count(const struct bc_weight *w)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < w->n_dims; d++)
        n *= w->ne[d];
    return n;
}

struct bc_values bc_tensor_values(const struct bitconv_tensor *tensor)
{
    return (struct bc_values){tensor->dtype, tensor->data, tensor->n_elements};
}

bool bc_weight_is_plain_copy(const struct bc_weight *w)
{
    return w->generated == NULL && !w->packed && !w->add_one && w->permute_heads == 0 &&
           w->n_sources > 0 && w->sources[0].scale == NULL;
}

/* Where row r of a permuted slice comes from. Llama's q and k are stored in halves per head, and
 * ggml's "normal" RoPE rotates neighbours: row r of a head is row (r % 2) * half + r / 2 of it. */
static uint64_t permuted_row(uint64_t row, uint64_t n_rows, uint32_t n_heads)
{
    const uint64_t head_rows = n_rows / n_heads;
    const uint64_t r = row % head_rows;
    return row - r + r % 2 * (head_rows / 2) + r / 2;
}

struct bc_span bc_weight_span(const struct bc_weight *w, uint64_t flat, uint64_t end)
{
    const uint64_t slice_values = bc_weight_count(w) / w->n_sources;
    /* A permuted vector (a bias of q) is a column: its rows are single values. */
    const uint64_t cols = w->n_dims == 1 && w->permute_heads > 0 ? 1 : w->ne[0];
    const uint64_t n_rows = slice_values / cols;
    const uint64_t at = flat % slice_values;
    const uint64_t col = at % cols;
    uint64_t row = at / cols;
    struct bc_span s = {.slice = (uint32_t)(flat / slice_values)};
    s.source = &w->sources[s.slice];
    s.n = slice_values - at;
    if (w->permute_heads > 0) {
        row = permuted_row(row, n_rows, w->permute_heads);
        s.n = cols - col;
    }
    if (w->packed) {
        const uint64_t byte_rows = (n_rows + 3) / 4;
        s.shift = (unsigned)(2 * (row / byte_rows));
        row %= byte_rows;
        const uint64_t group = (byte_rows - row) * cols - col;
        if (group < s.n) s.n = group;
    }
    s.index = row * cols + col;
    if (end - flat < s.n) s.n = end - flat;
    return s;
}

enum bitconv_status bc_weight_check(const struct bc_weight *w, struct bitconv_error *err)
{
    const uint64_t count = bc_weight_count(w);
    if (w->generated != NULL) return BITCONV_OK;
    if (w->n_sources == 0 || count == 0 || count % w->n_sources != 0)
        return bc_fail(err, BITCONV_E_BUG,
                       "%s: %" PRIu64 " values cannot come from %u source tensors", w->name, count,
                       w->n_sources);
    const uint64_t slice_values = count / w->n_sources;
    const uint64_t cols = w->n_dims == 1 && w->permute_heads > 0 ? 1 : w->ne[0];
    const uint64_t n_rows = slice_values / cols;
    const uint64_t wanted = w->packed ? (n_rows + 3) / 4 * cols : slice_values;
    for (uint32_t i = 0; i < w->n_sources; i++) {
        const struct bitconv_tensor *t = w->sources[i].tensor;
        if (t->n_elements != wanted)
            return bc_fail(err, BITCONV_E_BUG,
                           "%s: %s: %" PRIu64 " elements, the shape of %s needs %" PRIu64, t->file,
                           t->name, t->n_elements, w->name, wanted);
    }
    if (w->permute_heads > 0 && n_rows % (2 * (uint64_t)w->permute_heads) != 0)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: %" PRIu64 " rows do not divide into %u heads of an even size", w->name,
                       n_rows, w->permute_heads);
    return BITCONV_OK;
}

bool bc_weight_is_ternary_at_runtime(const struct bc_model *model, const struct bc_weight *w)
{
    const struct bc_arch_traits *traits = &model->arch->traits;
    if (w->role != BC_ROLE_LINEAR || w->n_sources == 0) return false;
    if (w->sources[0].scale != NULL) return true;
    if (w->keep) return false;
    return traits->ternary_class ||
           (model->training == BC_TRAINING_ONLINE && !traits->embedding_family);
}

static enum bitconv_status check_range(const struct bc_weight *w, uint64_t first, uint64_t n,
                                       struct bitconv_error *err)
{
    const uint64_t count = bc_weight_count(w);
    if (first <= count && n <= count - first) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_BUG,
                   "%s: values %" PRIu64 " to %" PRIu64 " were asked for, there are %" PRIu64,
                   w->name, first, first + n, count);
}

enum bitconv_status bc_source_scale(const struct bc_model *model, const struct bc_kernels *k,
                                    const struct bc_source *source, float *stored, float *effective,
                                    struct bitconv_error *err)
{
    const struct bitconv_tensor *t = source->scale;
    const struct bc_values v = bc_tensor_values(t);
    if (t->n_elements != 1)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: %s: %" PRIu64 " scales, one was expected: a scale per row or block "
                       "needs a pack with block scales (tq1_0, tq2_0)",
                       t->file, t->name, t->n_elements);
    if (!bitconv_dtype_is_float(t->dtype))
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: %s: the scale has type %s, a float type was expected", t->file, t->name,
                       bitconv_dtype_name(t->dtype));
    bc_widen(k, &v, 0, 1, stored);
    *effective = model->scale_divides ? 1.0f / *stored : *stored;
    if (*stored > 0.0f && isfinite(*stored) && *effective > 0.0f && isfinite(*effective))
        return BITCONV_OK;
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: %s: the scale is %g, a positive number with a finite inverse was expected",
                   t->file, t->name, (double)*stored);
}

/* Sets NaN and Inf to 0. */
static void clear_nonfinite(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) values[i] = 0.0f;
}

/* Stored values of a span that is not packed. */
static void read_stored(const struct bc_kernels *k, const struct bc_weight_options *options,
                        const struct bc_span *s, uint64_t done, size_t n, float *dst)
{
    const struct bc_values v = bc_tensor_values(s->source->tensor);
    bc_widen(k, &v, s->index + done, n, dst);
    if (options->zero_nonfinite) clear_nonfinite(dst, n);
}

static enum bitconv_status read_codes(const struct bc_kernels *k, const struct bc_span *s,
                                      uint64_t done, size_t n, int8_t *dst,
                                      struct bitconv_error *err)
{
    const struct bitconv_tensor *t = s->source->tensor;
    if (k->hf_unpack(t->data + s->index + done, n, s->shift, dst)) return BITCONV_OK;
    return bc_fail_at(err, BITCONV_E_CORRUPT, t->file_offset + s->index + done,
                      "%s: %s: code 3 in the %zu bytes from offset %" PRIu64
                      ": packed weights have the codes 0, 1 and 2",
                      t->file, t->name, n, t->file_offset + s->index + done);
}

/* Trits of an offline source: packed codes, or floats that are -1, 0 and 1. */
static enum bitconv_status read_offline(const struct bc_weight *w,
                                        const struct bc_weight_options *options,
                                        const struct bc_kernels *k, const struct bc_span *s,
                                        uint64_t done, size_t n, int8_t *dst,
                                        struct bitconv_error *err)
{
    float values[CHUNK];
    if (w->packed) return read_codes(k, s, done, n, dst, err);
    read_stored(k, options, s, done, n, values);
    k->sign(values, n, dst);
    return BITCONV_OK;
}

/* The sum of eight lanes, in a fixed order. */
static double fold(const float lanes[8])
{
    return (((double)lanes[0] + (double)lanes[1]) + ((double)lanes[2] + (double)lanes[3])) +
           (((double)lanes[4] + (double)lanes[5]) + ((double)lanes[6] + (double)lanes[7]));
}

/* Adds the squares of up to CHUNK weights and of their differences from what the trits stand for.
 * Value i goes to lane i % 8: an order of summation that vectors can follow, and the same on every
 * machine. A lane holds at most CHUNK / 8 squares, for which float32 is good enough. */
void bc_trit_loss_add(struct bc_trit_loss *loss, const float *values, const float *kept, size_t n)
{
    float lost[8] = {0}, total[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            const float d = values[i + j] - kept[i + j];
            lost[j] += d * d;
            total[j] += values[i + j] * values[i + j];
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        const float d = values[i + j] - kept[i + j];
        lost[j] += d * d;
        total[j] += values[i + j] * values[i + j];
    }
    loss->lost += fold(lost);
    loss->total += fold(total);
}

static uint64_t count_minus_zeros(const float *values, const int8_t *trits, size_t n)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += (uint32_t)(trits[i] == 0) & bc_f32_bits(values[i]) >> 31;
    return count;
}

static enum bitconv_status span_trits(const struct bc_weight *w, const struct bc_ternary *t,
                                      const struct bc_weight_options *options,
                                      const struct bc_kernels *k, const struct bc_span *s,
                                      int8_t *dst, struct bc_trit_loss *loss,
                                      struct bitconv_error *err)
{
    const float scale = t->scales[t->n_scales == 1 ? 0 : s->slice];
    const bool absmean = t->how == BC_HOW_ONLINE || t->how == BC_HOW_FORCED;
    const float inverse = 1.0f / scale;
    for (uint64_t done = 0; done < s->n; done += CHUNK) {
        const size_t n = s->n - done < CHUNK ? (size_t)(s->n - done) : CHUNK;
        float values[CHUNK], kept[CHUNK];
        if (t->how == BC_HOW_OFFLINE) {
            BC_TRY(read_offline(w, options, k, s, done, n, dst + done, err));
            continue;
        }
        read_stored(k, options, s, done, n, values);
        if (absmean)
            k->ternarize(values, n, inverse, dst + done);
        else
            k->sign(values, n, dst + done);
        if (loss == NULL) continue;
        if (loss->wants_minus_zeros) loss->n_minus_zero += count_minus_zeros(values, dst + done, n);
        if (!absmean) continue; /* the magnitude is the scale */
        k->trits_to_f32(dst + done, n, scale, kept);
        bc_trit_loss_add(loss, values, kept, n);
    }
    return BITCONV_OK;
}

enum bitconv_status bc_weight_trits_at(const struct bc_model *model, const struct bc_weight *w,
                                       const struct bc_ternary *t,
                                       const struct bc_weight_options *options,
                                       const struct bc_kernels *k, uint64_t first, uint64_t n,
                                       int8_t *dst, struct bc_trit_loss *loss,
                                       struct bitconv_error *err)
{
    (void)model; /* the scale convention is in the decision */
    BC_TRY(check_range(w, first, n, err));
    const uint64_t end = first + n;
    while (first < end) {
        const struct bc_span s = bc_weight_span(w, first, end);
        BC_TRY(span_trits(w, t, options, k, &s, dst, loss, err));
        dst += s.n;
        first += s.n;
    }
    return BITCONV_OK;
}

static enum bitconv_status span_f32(const struct bc_model *model, const struct bc_weight *w,
                                    const struct bc_weight_options *options,
                                    const struct bc_kernels *k, const struct bc_span *s, float *dst,
                                    struct bitconv_error *err)
{
    float stored, scale = 1.0f;
    const bool offline = s->source->scale != NULL;
    if (offline) BC_TRY(bc_source_scale(model, k, s->source, &stored, &scale, err));
    for (uint64_t done = 0; done < s->n; done += CHUNK) {
        const size_t n = s->n - done < CHUNK ? (size_t)(s->n - done) : CHUNK;
        if (offline) {
            int8_t trits[CHUNK];
            BC_TRY(read_offline(w, options, k, s, done, n, trits, err));
            k->trits_to_f32(trits, n, scale, dst + done);
        } else {
            read_stored(k, options, s, done, n, dst + done);
        }
        for (size_t i = 0; w->add_one && i < n; i++)
            dst[done + i] += 1.0f;
    }
    return BITCONV_OK;
}

enum bitconv_status bc_weight_f32_at(const struct bc_model *model, const struct bc_weight *w,
                                     const struct bc_weight_options *options,
                                     const struct bc_kernels *k, uint64_t first, uint64_t n,
                                     float *dst, struct bitconv_error *err)
{
    BC_TRY(check_range(w, first, n, err));
    if (w->generated != NULL) {
        for (uint64_t i = 0; i < n; i++)
            dst[i] = w->generated[first + i];
        return BITCONV_OK;
    }
    const uint64_t end = first + n;
    while (first < end) {
        const struct bc_span s = bc_weight_span(w, first, end);
        BC_TRY(span_f32(model, w, options, k, &s, dst, err));
        dst += s.n;
        first += s.n;
    }
    return BITCONV_OK;
}

/* Row numbers to value numbers; a product beyond 64 bits is far outside any tensor. */
static enum bitconv_status rows_to_values(const struct bc_weight *w, uint64_t row, uint64_t n_rows,
                                          uint64_t *first, uint64_t *n, struct bitconv_error *err)
{
    if (bc_mul_u64(row, w->ne[0], first) && bc_mul_u64(n_rows, w->ne[0], n)) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_BUG, "%s: rows from %" PRIu64 " on do not exist", w->name, row);
}

enum bitconv_status bc_weight_trits(const struct bc_model *model, const struct bc_weight *w,
                                    const struct bc_ternary *t,
                                    const struct bc_weight_options *options,
                                    const struct bc_kernels *k, uint64_t row, uint64_t n_rows,
                                    int8_t *dst, struct bitconv_error *err)
{
    uint64_t first = 0, n = 0;
    BC_TRY(rows_to_values(w, row, n_rows, &first, &n, err));
    return bc_weight_trits_at(model, w, t, options, k, first, n, dst, NULL, err);
}
