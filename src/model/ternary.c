/* SPDX-License-Identifier: MIT
 * Decides what the trits and the scale of a linear weight are: the statistics pass.
 *
 * The rule is that the file holds what the model's own runtime computes: a
 * runtime that applies absmean at every load gets absmean, packed weights keep their stored scale,
 * and weights that are multiplied as they are must already be one magnitude times trits. */
#include "model/weights.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

enum {
    CHUNK = 1024, /* values widened at once */
    MAX_PARTS = 64
};

struct decide {
    const struct bc_model *model;
    const struct bc_weight *w;
    const struct bc_weight_options *options;
    const struct bc_kernels *k;
    struct bc_pool *pool;
    const struct bitconv_sink *sink;
};

/* What is known about one slice. */
struct verdict {
    enum bc_how how;
    float scale;
    float stored;    /* offline only */
    float magnitude; /* > 0: all non-zero values have this magnitude */
};

const char *bc_how_name(enum bc_how how)
{
    switch (how) {
    case BC_HOW_ONLINE:
        return "absmean";
    case BC_HOW_OFFLINE:
        return "offline";
    case BC_HOW_MAGNITUDE:
        return "magnitude";
    case BC_HOW_ZERO:
        return "all zero";
    case BC_HOW_FORCED:
        return "forced absmean";
    case BC_HOW_BLOCKS:
        return "by block";
    case BC_HOW_FLOAT:
    default:
        return "float";
    }
}

void bc_ternary_release(struct bc_ternary *t)
{
    bc_free(t->scales);
    bc_free(t->stored);
    *t = (struct bc_ternary){.how = BC_HOW_FLOAT};
}

/* ---- is it one magnitude? ---- */

/* Whether all of values[0, n) are 0 or +-magnitude. NaN is no magnitude. */
static bool only_magnitude(const float *values, size_t n, float magnitude)
{
    const uint32_t wanted = bc_f32_bits(magnitude);
    uint32_t other = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = bc_f32_bits(values[i]) & 0x7fffffffu;
        other |= (uint32_t)(bits != 0) & (uint32_t)(bits != wanted);
    }
    return other == 0;
}

/* The same for 16-bit floats as stored, four in a word: adding 0x7fff carries into the top bit of a
 * lane exactly when the lane is not 0, so a lane is bad when both its magnitude and the difference
 * from the wanted one carry. */
static bool only_magnitude_16(const uint8_t *values, size_t n, uint16_t magnitude)
{
    const uint64_t ones = UINT64_C(0x0001000100010001);
    const uint64_t mask = 0x7fff * ones;
    uint64_t other = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t word;
        memcpy(&word, values + 2 * i, sizeof word);
        const uint64_t bits = word & mask;
        other |= (bits + mask) & ((bits ^ magnitude * ones) + mask);
    }
    for (; i < n; i++) {
        const uint16_t bits = bc_get_u16(values + 2 * i) & 0x7fff;
        if (bits != 0 && bits != magnitude) return false;
    }
    return (other & 0x8000 * ones) == 0;
}

struct magnitude_job {
    const struct decide *d;
    const struct bc_values *v;
    float magnitude;
    uint64_t part_values;
    bool parts[MAX_PARTS];
};

static bool chunk_is_magnitude(const struct magnitude_job *job, uint64_t at, size_t n)
{
    const struct bc_values *v = job->v;
    float values[CHUNK];
    if (v->dtype == BITCONV_BF16)
        return only_magnitude_16(v->data + 2 * at, n, bc_f32_to_bf16(job->magnitude));
    if (v->dtype == BITCONV_F16)
        return only_magnitude_16(v->data + 2 * at, n, bc_f32_to_f16(job->magnitude));
    bc_widen(job->d->k, v, at, n, values);
    return only_magnitude(values, n, job->magnitude);
}

static void check_part(void *ctx, size_t i, unsigned worker)
{
    struct magnitude_job *job = ctx;
    const uint64_t begin = i * job->part_values;
    const uint64_t left = job->v->n - begin;
    const uint64_t end = begin + (left < job->part_values ? left : job->part_values);
    bool only = true;
    (void)worker;
    for (uint64_t at = begin; at < end && only; at += CHUNK)
        only = chunk_is_magnitude(job, at, end - at < CHUNK ? (size_t)(end - at) : CHUNK);
    job->parts[i] = only;
}

/* The first non-zero magnitude; 0 when there is none. */
static float first_magnitude(const struct bc_kernels *k, const struct bc_values *v)
{
    for (uint64_t at = 0; at < v->n; at += CHUNK) {
        float values[CHUNK];
        const size_t n = v->n - at < CHUNK ? (size_t)(v->n - at) : CHUNK;
        bc_widen(k, v, at, n, values);
        for (size_t i = 0; i < n; i++)
            if (values[i] != 0.0f) return fabsf(values[i]);
    }
    return 0.0f;
}

/* Whether a run holds one non-zero magnitude (*magnitude) or none (*magnitude 0). Gives up within
 * the first kilobytes of weights that are not ternary. */
static bool is_one_magnitude(const struct decide *d, const struct bc_values *v, float *magnitude)
{
    struct magnitude_job job = {.d = d, .v = v, .magnitude = first_magnitude(d->k, v)};
    *magnitude = job.magnitude;
    if (job.magnitude == 0.0f) return true;
    if (!isfinite(job.magnitude)) return false;
    job.part_values = bc_round_up(v->n / MAX_PARTS + 1, CHUNK);
    const size_t n_parts = (size_t)((v->n + job.part_values - 1) / job.part_values);
    bc_pool_run(d->pool, n_parts, check_part, &job);
    for (size_t i = 0; i < n_parts; i++)
        if (!job.parts[i]) return false;
    return true;
}

/* Whether every run of `length` values is one magnitude: a scale per row or per block. */
static bool runs_are_ternary(const struct decide *d, const struct bc_values *v, uint64_t length)
{
    const size_t size = bitconv_dtype_size(v->dtype);
    if (length < 2 || v->n % length != 0) return false;
    for (uint64_t at = 0; at < v->n; at += length) {
        const struct bc_values run = {v->dtype, v->data + at * size, length};
        const struct decide here = {.k = d->k};
        float magnitude;
        if (!is_one_magnitude(&here, &run, &magnitude)) return false;
    }
    return true;
}

bool bc_weight_is_ternary_by_block(const struct bc_model *model, const struct bc_weight *w,
                                   const struct bc_weight_options *options,
                                   const struct bc_kernels *k, uint64_t block)
{
    const struct decide d = {.model = model, .w = w, .options = options, .k = k};
    if (model->training != BC_TRAINING_NONE || options->mode != BC_QUANT_AUTO) return false;
    for (uint32_t i = 0; i < w->n_sources; i++) {
        const struct bc_values v = bc_tensor_values(w->sources[i].tensor);
        if (w->sources[i].scale != NULL || !runs_are_ternary(&d, &v, block)) return false;
    }
    return w->n_sources > 0;
}

/* ---- refusals ---- */

static enum bitconv_status refuse_nonfinite(const struct decide *d, const struct bitconv_tensor *t,
                                            uint64_t index, struct bitconv_error *err)
{
    const struct bc_values v = bc_tensor_values(t);
    const uint64_t cols = d->w->ne[0];
    float value;
    bc_widen(d->k, &v, index, 1, &value);
    return bc_fail(
        err, BITCONV_E_UNSUPPORTED,
        "%s: %s: value %" PRIu64 " (row %" PRIu64 ", column %" PRIu64
        ") is %s, finite weights were expected (--allow-nonfinite zero stores 0 instead)",
        t->file, t->name, index, index / cols, index % cols, isnan(value) ? "NaN" : "infinite");
}

/* What to say about weights that are several magnitudes although they are multiplied as they are.
 */
static enum bitconv_status refuse_plain(const struct decide *d, const struct bitconv_tensor *t,
                                        uint64_t n_distinct, struct bitconv_error *err)
{
    const struct bc_values v = bc_tensor_values(t);
    const char *const more = n_distinct >= BC_MAX_DISTINCT ? "more than " : "";
    const uint64_t shown = n_distinct >= BC_MAX_DISTINCT ? BC_MAX_DISTINCT - 1 : n_distinct;
    const char *unit = NULL;
    if (runs_are_ternary(d, &v, d->w->ne[0]))
        unit = "row";
    else if (runs_are_ternary(d, &v, 256) || runs_are_ternary(d, &v, 64))
        unit = "block";
    if (d->options->mode == BC_QUANT_BAKED)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: %s: %s%" PRIu64 " distinct magnitudes, --quant baked needs weights of "
                       "one magnitude",
                       t->file, t->name, more, shown);
    if (d->model->training == BC_TRAINING_BAKED)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: %s: %s%" PRIu64 " distinct magnitudes, but the checkpoint is marked as "
                       "baked, which means one (--quant absmean makes it ternary again)",
                       t->file, t->name, more, shown);
    if (unit != NULL)
        return bc_fail(
            err, BITCONV_E_UNSUPPORTED,
            "%s: %s: ternary with one scale per %s (%s%" PRIu64 " distinct magnitudes): "
            "only a pack whose blocks lie within those and have scales of their own holds that "
            "(tq1_0 and tq2_0: blocks of 256 values, q2_0: of 64)",
            t->file, t->name, unit, more, shown);
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "%s: %s: not ternary (%s%" PRIu64 " distinct magnitudes) and nothing declares "
                   "ternary training (--quant absmean forces it)",
                   t->file, t->name, more, shown);
}

/* ---- offline: weights that come with their scale ---- */

/* The first byte of a packed tensor with a code 3 that belongs to a row of the matrix. Rows beyond
 * the last one fill up the fourth group; what they hold is not looked at. */
struct code_job {
    const struct bitconv_tensor *t;
    uint64_t n_rows, byte_rows, cols;
    uint64_t part_rows;
    uint64_t found[MAX_PARTS];
};

static uint64_t find_code_3(const uint8_t *row, uint64_t cols, unsigned groups)
{
    for (uint64_t i = 0; i < cols; i++)
        if ((row[i] & row[i] >> 1 & groups) != 0) return i;
    return BC_NO_INDEX;
}

/* Whether a row has no code 3 in the groups (bit 2g stands for group g): eight bytes at a time. */
static bool row_is_legal(const uint8_t *row, uint64_t cols, unsigned groups)
{
    const uint64_t mask = groups * UINT64_C(0x0101010101010101);
    uint64_t bad = 0, i = 0;
    for (; i + 8 <= cols; i += 8) {
        uint64_t word;
        memcpy(&word, row + i, sizeof word);
        bad |= word & word >> 1 & mask;
    }
    for (; i < cols; i++)
        bad |= (uint64_t)(row[i] & row[i] >> 1 & groups);
    return bad == 0;
}

static void check_codes(void *ctx, size_t i, unsigned worker)
{
    struct code_job *job = ctx;
    const uint64_t begin = i * job->part_rows;
    const uint64_t left = job->byte_rows - begin;
    const uint64_t end = begin + (left < job->part_rows ? left : job->part_rows);
    (void)worker;
    job->found[i] = BC_NO_INDEX;
    for (uint64_t r = begin; r < end && job->found[i] == BC_NO_INDEX; r++) {
        unsigned groups = 0;
        for (unsigned g = 0; g < 4; g++)
            if (g * job->byte_rows + r < job->n_rows) groups |= 1u << 2 * g;
        const uint8_t *row = job->t->data + r * job->cols;
        if (!row_is_legal(row, job->cols, groups))
            job->found[i] = r * job->cols + find_code_3(row, job->cols, groups);
    }
}

static enum bitconv_status check_packed(const struct decide *d, const struct bitconv_tensor *t,
                                        struct bitconv_error *err)
{
    struct code_job job = {.t = t, .cols = d->w->ne[0]};
    job.n_rows = bc_weight_count(d->w) / d->w->n_sources / job.cols;
    job.byte_rows = (job.n_rows + 3) / 4;
    job.part_rows = job.byte_rows / MAX_PARTS + 1;
    const size_t n_parts = (size_t)((job.byte_rows + job.part_rows - 1) / job.part_rows);
    bc_pool_run(d->pool, n_parts, check_codes, &job);
    for (size_t i = 0; i < n_parts; i++) {
        const uint64_t at = job.found[i];
        if (at == BC_NO_INDEX) continue;
        const uint8_t byte = t->data[at];
        uint64_t row = at / job.cols;
        for (unsigned shift = 0; (byte >> shift & 3) != 3; shift += 2)
            row += job.byte_rows;
        return bc_fail_at(err, BITCONV_E_CORRUPT, t->file_offset + at,
                          "%s: %s: byte 0x%02x at offset %" PRIu64 " has code 3 for row %" PRIu64
                          ", column %" PRIu64 ": packed weights have the codes 0, 1 and 2",
                          t->file, t->name, byte, t->file_offset + at, row, at % job.cols);
    }
    return BITCONV_OK;
}

/* --allow-nonfinite zero is never silent. */
static void say_zeroed(const struct decide *d, const struct bitconv_tensor *t)
{
    bc_say(d->sink, BITCONV_WARNING, "%s: %s: holds NaN or Inf, counted as 0", t->file, t->name);
}

/* Unpacked weights beside a scale must be trits. */
static enum bitconv_status check_unpacked(const struct decide *d, const struct bitconv_tensor *t,
                                          struct bitconv_error *err)
{
    const struct bc_values v = bc_tensor_values(t);
    struct bc_magnitudes m;
    float magnitude;
    if (is_one_magnitude(d, &v, &magnitude) && (magnitude == 0.0f || magnitude == 1.0f))
        return BITCONV_OK;
    BC_TRY(bc_magnitudes(d->k, d->pool, &v, &m, err));
    if (m.nonfinite != BC_NO_INDEX && !d->options->zero_nonfinite)
        return refuse_nonfinite(d, t, m.nonfinite, err);
    if (m.nonfinite != BC_NO_INDEX) say_zeroed(d, t);
    if (m.n_distinct == 0 || (m.n_distinct == 1 && m.magnitude == 1.0f)) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_UNSUPPORTED,
                   "%s: %s: has a weight_scale, but its values are not only -1, 0 and 1 (largest "
                   "magnitude %g): packed uint8 or trits were expected",
                   t->file, t->name, (double)m.max);
}

static enum bitconv_status decide_offline(const struct decide *d, const struct bc_source *s,
                                          struct verdict *out, struct bitconv_error *err)
{
    out->how = BC_HOW_OFFLINE;
    BC_TRY(bc_source_scale(d->model, d->k, s, &out->stored, &out->scale, err));
    return d->w->packed ? check_packed(d, s->tensor, err) : check_unpacked(d, s->tensor, err);
}

/* ---- float weights ---- */

static enum bitconv_status decide_absmean(const struct decide *d, const struct bitconv_tensor *t,
                                          struct verdict *out, struct bitconv_error *err)
{
    const struct bc_values v = bc_tensor_values(t);
    struct bitconv_error inner = {.status = BITCONV_OK};
    uint64_t nonfinite;
    const enum bitconv_status status =
        bc_absmean(d->k, d->pool, &v, d->options->zero_nonfinite, &out->scale, &nonfinite, &inner);
    if (nonfinite != BC_NO_INDEX && !d->options->zero_nonfinite)
        return refuse_nonfinite(d, t, nonfinite, err);
    if (nonfinite != BC_NO_INDEX) say_zeroed(d, t);
    if (status == BITCONV_OK) return BITCONV_OK;
    return bc_fail(err, status, "%s: %s: %s", t->file, t->name, inner.text);
}

/* One magnitude: its sign and it. Weights with NaN or Inf among them count as such when those are
 * to become 0. */
static enum bitconv_status decide_magnitude(const struct decide *d, const struct bitconv_tensor *t,
                                            struct verdict *out, struct bitconv_error *err)
{
    const struct bc_values v = bc_tensor_values(t);
    float magnitude;
    if (!is_one_magnitude(d, &v, &magnitude)) {
        struct bc_magnitudes m;
        BC_TRY(bc_magnitudes(d->k, d->pool, &v, &m, err));
        if (m.nonfinite != BC_NO_INDEX && !d->options->zero_nonfinite)
            return refuse_nonfinite(d, t, m.nonfinite, err);
        if (m.n_distinct > 1) return refuse_plain(d, t, m.n_distinct, err);
        if (m.nonfinite != BC_NO_INDEX) say_zeroed(d, t);
        magnitude = m.n_distinct == 1 ? m.magnitude : 0.0f;
    }
    out->how = magnitude == 0.0f ? BC_HOW_ZERO : BC_HOW_MAGNITUDE;
    out->scale = magnitude == 0.0f ? BC_ABSMEAN_MIN : magnitude;
    return BITCONV_OK;
}

static enum bitconv_status decide_online(const struct decide *d, const struct bitconv_tensor *t,
                                         struct verdict *out, struct bitconv_error *err)
{
    const struct bc_values v = bc_tensor_values(t);
    float magnitude;
    out->how = BC_HOW_ONLINE;
    BC_TRY(decide_absmean(d, t, out, err));
    if (!is_one_magnitude(d, &v, &magnitude)) return BITCONV_OK;
    if (magnitude == 0.0f) out->how = BC_HOW_ZERO;
    out->magnitude = magnitude;
    if (magnitude != 0.0f && bc_f32_bits(magnitude) != bc_f32_bits(out->scale))
        bc_say(d->sink, BITCONV_WARNING,
               "%s: %s: already ternary with magnitude %.9g; the runtime applies absmean, which "
               "makes the scale %.9g (--quant baked keeps the magnitude)",
               t->file, t->name, (double)magnitude, (double)out->scale);
    return BITCONV_OK;
}

static enum bitconv_status decide_forced(const struct decide *d, const struct bitconv_tensor *t,
                                         struct verdict *out, struct bitconv_error *err)
{
    out->how = BC_HOW_FORCED;
    BC_TRY(decide_absmean(d, t, out, err));
    bc_say(d->sink, BITCONV_WARNING,
           "%s: %s: made ternary by absmean (scale %.9g) because --quant absmean asks for it: its "
           "own runtime multiplies the stored values",
           t->file, t->name, (double)out->scale);
    return BITCONV_OK;
}

static enum bitconv_status decide_slice(const struct decide *d, const struct bc_source *s,
                                        struct verdict *out, struct bitconv_error *err)
{
    const enum bc_quant_mode mode = d->options->mode;
    *out = (struct verdict){.how = BC_HOW_FLOAT};
    if (s->scale != NULL) return decide_offline(d, s, out, err);
    if (d->model->training == BC_TRAINING_ONLINE && mode != BC_QUANT_BAKED)
        return decide_online(d, s->tensor, out, err);
    if (mode == BC_QUANT_ABSMEAN) return decide_forced(d, s->tensor, out, err);
    return decide_magnitude(d, s->tensor, out, err);
}

/* ---- a whole weight ---- */

static enum bitconv_status reserve(struct bc_ternary *t, uint32_t n, bool offline,
                                   struct bitconv_error *err)
{
    t->n_scales = n;
    t->scales = bc_alloc_array(n, sizeof *t->scales);
    if (offline) t->stored = bc_alloc_array(n, sizeof *t->stored);
    if (t->scales == NULL || (offline && t->stored == NULL))
        return bc_fail_nomem(err, "scales of a tensor");
    return BITCONV_OK;
}

/* Adds slice i to the decision. A stack counts as all zero only when each slice is. */
static enum bitconv_status add_slice(const struct decide *d, uint32_t i, const struct verdict *v,
                                     struct bc_ternary *t, struct bitconv_error *err)
{
    const bool offline = v->how == BC_HOW_OFFLINE;
    if (i > 0 && offline != (t->how == BC_HOW_OFFLINE))
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: some of its experts come with a weight_scale and some without",
                       d->w->name);
    if (i == 0 || t->how == BC_HOW_ZERO) t->how = v->how;
    if (i == 0) t->magnitude = v->magnitude;
    t->scales[i] = v->scale;
    if (offline) t->stored[i] = v->stored;
    if (bc_f32_bits(v->scale) != bc_f32_bits(t->scales[0])) t->scales_differ = true;
    return BITCONV_OK;
}

enum bitconv_status bc_ternary_decide(const struct bc_model *model, const struct bc_weight *w,
                                      const struct bc_weight_options *options,
                                      const struct bc_kernels *k, struct bc_pool *pool,
                                      const struct bitconv_sink *sink, struct bc_ternary *out,
                                      struct bitconv_error *err)
{
    const struct decide d = {model, w, options, k, pool, sink};
    *out = (struct bc_ternary){.how = BC_HOW_FLOAT};
    BC_TRY(bc_weight_check(w, err));
    enum bitconv_status status = reserve(out, w->n_sources, w->sources[0].scale != NULL, err);
    for (uint32_t i = 0; i < w->n_sources && status == BITCONV_OK; i++) {
        struct verdict v;
        status = decide_slice(&d, &w->sources[i], &v, err);
        if (status == BITCONV_OK) status = add_slice(&d, i, &v, out, err);
    }
    if (status != BITCONV_OK) bc_ternary_release(out);
    return status;
}
