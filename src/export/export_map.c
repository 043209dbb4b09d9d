/* SPDX-License-Identifier: MIT
 * Every tensor of the file by the family's table, read backwards: which tensors of the checkpoint it
 * becomes, and in what form. */
#include <inttypes.h>
#include <string.h>

#include "export/export_values.h"
#include "model/findings.h"
#include "model/scale_tensor.h"

#define NORM_IN_SUFFIX "_norm_in.weight"

/* A tensor of the file, recognised. */
struct found {
    const struct bitconv_gguf_tensor *tensor;
    struct bc_match match; /* row NULL: not of the table */
    struct bc_decoded *values;
    uint64_t ne[BITCONV_GGUF_MAX_DIMS]; /* logical */
    float *scales;                      /* of trits: one a slice; NULL: no trits */
};

struct mapping {
    struct bc_exporter *e;
    struct bc_findings findings;
    struct found *found;
    size_t n_found;
};

/* ---- names ---- */

/* True when the name is `base_len` bytes and then `suffix`; sets base_len. */
static bool ends_in(const char *name, const char *suffix, size_t *base_len)
{
    const size_t len = strlen(name), n = strlen(suffix);
    if (len <= n || strcmp(name + len - n, suffix) != 0) return false;
    *base_len = len - n;
    return true;
}

static bool match_base(const struct bc_arch *arch, const char *name, size_t base_len,
                       enum bc_match_part part, struct bc_match *out)
{
    for (const struct bc_arch_tensor *row = arch->tensors; row->role != BC_ROLE_NONE; row++) {
        struct bc_match match = {.row = row, .part = part};
        const bool allowed = part == BC_MATCH_WEIGHT || row->role == BC_ROLE_LINEAR ||
                             (part == BC_MATCH_BIAS && row->role == BC_ROLE_LAYER_NORM);
        if (row->gguf == NULL || !allowed) continue;
        if (!bc_pattern_match(row->gguf, name, base_len, &match.layer, &match.expert)) continue;
        match.has_layer = strchr(row->gguf, '{') != NULL;
        *out = match;
        return true;
    }
    return false;
}

static bool match_name(const struct bc_arch *arch, const char *name, struct bc_match *out)
{
    static const struct {
        const char *suffix;
        enum bc_match_part part;
    } parts[] = {
        {NORM_IN_SUFFIX, BC_MATCH_NORM_IN}, {".weight", BC_MATCH_WEIGHT}, {".bias", BC_MATCH_BIAS}};
    size_t base_len = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (ends_in(name, parts[i].suffix, &base_len) &&
            match_base(arch, name, base_len, parts[i].part, out))
            return true;
    return false;
}

/* The checkpoint's name: the backbone of a class with a head is its member "model". */
static const char *hf_name(struct bc_exporter *e, const struct bc_match *match, uint32_t expert)
{
    static const char *const suffixes[] = {[BC_MATCH_WEIGHT] = ".weight",
                                           [BC_MATCH_BIAS] = ".bias",
                                           [BC_MATCH_NORM_IN] = ".norm.weight",
                                           [BC_MATCH_SCALE] = ".weight_scale"};
    const char *suffix = suffixes[match->part];
    /* transformers' own BitLinear calls its norm so; the BitNet embedding models' code does not */
    if (match->part == BC_MATCH_NORM_IN && e->packed) suffix = ".rms_norm.weight";
    const char *bare = bc_pattern_fill(&e->arena, match->row->hf[0], match->layer, expert, suffix);
    const bool prefixed = match->row->role != BC_ROLE_OUTPUT && !e->class_row->backbone;
    return bare == NULL || !prefixed ? bare : bc_arena_printf(&e->arena, "model.%s", bare);
}

/* ---- recognising ---- */

static bool is_linear(const struct bc_match *match)
{
    return match->part == BC_MATCH_WEIGHT &&
           (match->row->role == BC_ROLE_LINEAR || match->row->role == BC_ROLE_EXPERT);
}

/* The logical shape against what the metadata say; a finding when they differ. */
static void check_shape(struct mapping *m, const struct found *f)
{
    const struct bc_hparams *hp = &m->e->hp;
    const struct bc_arch_tensor *row = f->match.row;
    const bool vector = f->match.part != BC_MATCH_WEIGHT || row->shape[1] == BC_N_NONE;
    const uint64_t rows =
        bc_dim_size(hp, f->match.part == BC_MATCH_NORM_IN ? row->shape[1] : row->shape[0]);
    const uint64_t wanted[3] = {vector ? rows : bc_dim_size(hp, row->shape[1]), vector ? 1 : rows,
                                row->role == BC_ROLE_EXPERT ? hp->n_expert : 1};
    bool ok = true;
    for (size_t d = 0; d < BITCONV_GGUF_MAX_DIMS; d++)
        ok = ok && f->ne[d] == (d < 3 ? wanted[d] : 1);
    if (!ok)
        bc_finding(&m->findings, BITCONV_E_CORRUPT,
                   "%s: %s: shape [%" PRIu64 ", %" PRIu64 ", %" PRIu64
                   "], the metadata want [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]",
                   m->e->path, f->tensor->name, f->ne[0], f->ne[1], f->ne[2], wanted[0], wanted[1],
                   wanted[2]);
}

static enum bitconv_status open_values(struct mapping *m, struct found *f,
                                       struct bitconv_error *err)
{
    struct bc_exporter *e = m->e;
    struct bitconv_error problem = {.status = BITCONV_OK};
    f->values = bc_arena_alloc(&e->arena, 1, sizeof *f->values);
    if (f->values == NULL) return bc_fail_nomem(err, "list of tensors");
    const enum bitconv_status status = bc_export_decode(e, f->tensor, f->values, &problem);
    if (status != BITCONV_OK) {
        bc_finding(&m->findings, status, "%s", problem.text);
        f->match.row = NULL;
        return BITCONV_OK;
    }
    const struct bc_packed *p = &f->values->packed;
    memcpy(f->ne, p->format != NULL ? p->ne : f->tensor->ne, sizeof f->ne);
    check_shape(m, f);
    if (p->format == NULL) return BITCONV_OK;
    f->scales = bc_arena_alloc(&e->arena, (size_t)p->shape.slices, sizeof *f->scales);
    if (f->scales == NULL) return bc_fail_nomem(err, "scales");
    const enum bitconv_status scaled = bc_export_scales(e, f->tensor, p, f->scales, &problem);
    if (scaled == BITCONV_E_UNSUPPORTED && e->decode && f->values->blocks != NULL) {
        f->values->packed.format = NULL; /* decoded block by block then */
        f->scales = NULL;
    } else if (scaled != BITCONV_OK)
        bc_finding(&m->findings, scaled, "%s", problem.text);
    return BITCONV_OK;
}

/* True when the values are floats as a checkpoint stores them. */
static bool is_plain_float(const struct bc_decoded *d)
{
    return d->packed.format == NULL && d->blocks == NULL &&
           (d->numbers.dtype == BITCONV_F32 || d->numbers.dtype == BITCONV_F16 ||
            d->numbers.dtype == BITCONV_BF16);
}

/* Is it a tensor that belongs to others, whose values are looked at with theirs? */
static bool is_read_elsewhere(const struct bc_exporter *e, const struct bitconv_gguf_tensor *t)
{
    return bc_export_is_rope(e, t->name) || bc_scale_owner(e->file, t) != NULL;
}

/* The row of the table for a tensor; a finding when there is none, or not in that layer. */
static bool find_row(struct mapping *m, const struct bitconv_gguf_tensor *t,
                     struct bc_finding_kind *unknown, struct bc_match *out)
{
    const struct bc_exporter *e = m->e;
    const bool named = strlen(t->name) == t->name_len && match_name(e->arch, t->name, out);
    if (named && !out->has_layer) return true;
    if (named && out->layer < e->hp.n_layers &&
        bc_layer_is_one_of(&e->hp, bc_pattern_layers(out->row->gguf), out->layer))
        return true;
    if (bc_finding_wanted(unknown))
        bc_finding(&m->findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: not a tensor that the %s family has%s", e->path, t->name, e->arch->name,
                   named ? " in that layer" : "");
    return false;
}

static enum bitconv_status recognise(struct mapping *m, struct bitconv_error *err)
{
    struct bc_finding_kind unknown = {.what = "tensors that the family does not have"};
    struct bc_exporter *e = m->e;
    for (size_t i = 0; i < bitconv_gguf_n_tensors(e->file); i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(e->file, i);
        struct found *f = &m->found[m->n_found];
        if (is_read_elsewhere(e, t) || !find_row(m, t, &unknown, &f->match)) continue;
        f->tensor = t;
        BC_TRY(open_values(m, f, err));
        if (f->match.row == NULL) continue;
        m->n_found++;
        if (f->match.part == BC_MATCH_NORM_IN) e->has_norm_in = true;
        if (f->values->packed.format != NULL && is_linear(&f->match) && !e->decode)
            e->packed = true;
    }
    bc_finding_rest(&m->findings, &unknown);
    return BITCONV_OK;
}

/* Floats that are trit * scale among packed weights: convert stores so what does not fit the pack
 * that it is told. In a packed checkpoint they are trits as well, so that it does so again. */
static enum bitconv_status find_unpacked_trits(const struct mapping *m, struct found *f,
                                               struct bitconv_error *err)
{
    const struct bc_exporter *e = m->e;
    const uint64_t n = f->ne[2];
    if (!e->packed || !is_linear(&f->match) || !is_plain_float(f->values)) return BITCONV_OK;
    float *scales = bc_arena_alloc(&m->e->arena, (size_t)n, sizeof *scales);
    if (scales == NULL) return bc_fail_nomem(err, "scales");
    for (uint64_t i = 0; i < n; i++) {
        const struct bc_export_tensor slice = {.source = f->tensor,
                                               .values = f->values,
                                               .slice = (uint32_t)i,
                                               .rows = f->ne[1],
                                               .cols = f->ne[0]};
        BC_TRY(bc_export_one_magnitude(e, &slice, &scales[i], err));
        if (scales[i] == 0) return BITCONV_OK;
    }
    f->scales = scales;
    return BITCONV_OK;
}

/* What the family's models cannot do without. */
static void check_missing(struct mapping *m)
{
    struct bc_finding_kind missing = {.what = "tensors missing"};
    struct bc_exporter *e = m->e;
    struct bc_arena scratch = {NULL};
    for (const struct bc_arch_tensor *row = e->arch->tensors; row->role != BC_ROLE_NONE; row++) {
        const bool optional = row->gguf == NULL || row->role == BC_ROLE_OUTPUT;
        const bool layered = !optional && strchr(row->gguf, '{') != NULL;
        for (uint32_t l = 0; !optional && l < (layered ? e->hp.n_layers : 1); l++) {
            const char *name = bc_pattern_fill(&scratch, row->gguf, l, 0, ".weight");
            if (layered && !bc_layer_is_one_of(&e->hp, bc_pattern_layers(row->gguf), l)) continue;
            if (name == NULL || bitconv_gguf_find_tensor(e->file, name) != NULL) continue;
            if (bc_finding_wanted(&missing))
                bc_finding(&m->findings, BITCONV_E_CORRUPT, "%s: %s: missing", e->path, name);
        }
        bc_arena_release(&scratch);
    }
    bc_finding_rest(&m->findings, &missing);
}

/* ---- forms ---- */

/* Heads whose rows files of the family interleave: as the mapper of checkpoints has it. */
static uint32_t permuted_heads(const struct bc_exporter *e, const struct bc_match *match)
{
    const enum bc_dim rows = match->row->shape[0];
    if (!e->arch->traits.permute_qk || match->part == BC_MATCH_NORM_IN) return 0;
    return rows == BC_N_Q ? e->hp.n_head : rows == BC_N_K ? e->hp.n_head_kv : 0;
}

/* Packed weights go with floats of one type: transformers 5 computes them in the types that are
 * stored, and those of its products must agree. float32 is exact for all of them. */
static void choose_form(struct mapping *m, const struct found *f, struct bc_export_tensor *t)
{
    struct bc_exporter *e = m->e;
    const bool plus_one = f->match.row->role == BC_ROLE_NORM && f->match.part == BC_MATCH_WEIGHT &&
                          e->arch->traits.norm_plus_one;
    const bool plain = is_plain_float(f->values);
    t->dtype = BITCONV_F32;
    if (plus_one) {
        t->form = BC_EXPORT_MINUS_ONE;
    } else if (f->scales != NULL && is_linear(&f->match) && !e->decode) {
        t->form = BC_EXPORT_TRITS;
        t->dtype = BITCONV_U8;
    } else if (plain && (!e->packed || f->values->numbers.dtype == BITCONV_F32)) {
        t->form = BC_EXPORT_COPY;
        t->dtype = f->values->numbers.dtype;
    } else {
        t->form = BC_EXPORT_DECODED;
        if (e->decode) t->dtype = e->dtype;
        if (!e->decode && !e->packed)
            bc_finding(&m->findings, BITCONV_E_UNSUPPORTED,
                       "%s: %s: %s is no ternary pack: say what it is to be decoded to (--dtype "
                       "f32, f16 or bf16)",
                       e->path, f->tensor->name, f->tensor->type_name);
    }
}

static enum bitconv_status append(struct bc_exporter *e, const struct bc_export_tensor *t,
                                  struct bitconv_error *err)
{
    void *items = e->tensors;
    if (!bc_grow(&items, &e->cap_tensors, e->n_tensors, sizeof *e->tensors))
        return bc_fail_nomem(err, "list of tensors");
    e->tensors = items;
    e->tensors[e->n_tensors++] = *t;
    return BITCONV_OK;
}

/* A linear module that stays float among packed ones. */
static enum bitconv_status keep_module(struct bc_exporter *e, const char *name,
                                       struct bitconv_error *err)
{
    void *items = (void *)e->kept;
    if (!bc_grow(&items, &e->cap_kept, e->n_kept, sizeof *e->kept))
        return bc_fail_nomem(err, "list of modules");
    e->kept = items;
    e->kept[e->n_kept] = bc_arena_strndup(&e->arena, name, strlen(name) - strlen(".weight"));
    if (e->kept[e->n_kept] == NULL) return bc_fail_nomem(err, "list of modules");
    e->n_kept++;
    return BITCONV_OK;
}

/* The stored shape, and the size that follows. Filters of convolutions have a dimension of one
 * input channel. */
static void set_shape(struct bc_export_tensor *t)
{
    const uint64_t rows = t->form == BC_EXPORT_TRITS ? t->rows / 4 + (t->rows % 4 != 0) : t->rows;
    t->shape[0] = t->shape[1] = t->shape[2] = t->shape[3] = 1;
    t->shape[0] = t->n_dims == 1 ? rows * t->cols : rows;
    if (t->n_dims > 1) t->shape[t->n_dims - 1] = t->cols;
    t->size = rows * t->cols * bitconv_dtype_size(t->dtype);
}

/* Where convert will meet a tensor: stacks of experts take the place of the layer's last matrix. */
static const char *order_key(struct bc_exporter *e, const struct found *f)
{
    const char *last = hf_name(e, &f->match, 0);
    if (f->match.row->role != BC_ROLE_EXPERT) return last;
    for (const struct bc_arch_tensor *row = e->arch->tensors; row->role != BC_ROLE_NONE; row++) {
        if (row->role != BC_ROLE_EXPERT) continue;
        struct bc_match match = f->match;
        match.row = row;
        for (uint32_t i = 0; i < e->hp.n_expert; i++) {
            const char *name = hf_name(e, &match, i);
            if (name == NULL) return NULL;
            if (last == NULL || strcmp(name, last) > 0) last = name;
        }
    }
    return last;
}

/* One matrix or vector of the checkpoint, and the scale that goes with it. */
static enum bitconv_status add_slice(struct mapping *m, const struct found *f, const char *key,
                                     uint32_t slice, struct bitconv_error *err)
{
    struct bc_exporter *e = m->e;
    const bool vector = f->match.part != BC_MATCH_WEIGHT || f->match.row->shape[1] == BC_N_NONE;
    struct bc_export_tensor t = {.key = key,
                                 .source = f->tensor,
                                 .values = f->values,
                                 .is_linear = is_linear(&f->match),
                                 .slice = slice,
                                 .n_dims = vector                               ? 1
                                           : f->match.row->role == BC_ROLE_CONV ? 3
                                                                                : 2,
                                 .permute_heads = permuted_heads(e, &f->match)};
    t.rows = vector ? (t.permute_heads > 0 ? f->ne[0] : 1) : f->ne[1];
    t.cols = vector ? (t.permute_heads > 0 ? 1 : f->ne[0]) : f->ne[0];
    t.name = hf_name(e, &f->match, slice);
    if (t.name == NULL) return bc_fail_nomem(err, "names of tensors");
    if (f->scales != NULL) t.scale = f->scales[slice];
    choose_form(m, f, &t);
    set_shape(&t);
    if (t.permute_heads > 0 && t.rows % (2 * (uint64_t)t.permute_heads) != 0)
        bc_finding(&m->findings, BITCONV_E_CORRUPT,
                   "%s: %s: %" PRIu64 " rows do not divide into %u heads of an even size", e->path,
                   f->tensor->name, t.rows, (unsigned)t.permute_heads);
    BC_TRY(append(e, &t, err));
    if (t.form != BC_EXPORT_TRITS)
        return e->packed && is_linear(&f->match) ? keep_module(e, t.name, err) : BITCONV_OK;
    t.form = BC_EXPORT_SCALE;
    t.dtype = BITCONV_F32;
    t.name = bc_arena_printf(&e->arena, "%s_scale", t.name);
    t.n_dims = 1;
    t.shape[0] = t.shape[1] = 1;
    t.size = 4;
    return t.name != NULL ? append(e, &t, err) : bc_fail_nomem(err, "names of tensors");
}

/* The dtype that the model computes in: of packed weights nothing narrower than their scales will
 * do. */
static void choose_main_dtype(struct bc_exporter *e)
{
    e->main_dtype = e->packed ? BITCONV_F32 : BITCONV_F16;
    for (size_t i = 0; i < e->n_tensors; i++) {
        const struct bc_export_tensor *t = &e->tensors[i];
        if (t->n_dims < 2 || t->form == BC_EXPORT_TRITS) continue;
        if (t->dtype == BITCONV_F32) e->main_dtype = BITCONV_F32;
        if (t->dtype == BITCONV_BF16 && e->main_dtype == BITCONV_F16) e->main_dtype = BITCONV_BF16;
    }
}

/* --dtype is for what must be decoded; numbers stay what they are, which a user may not expect. */
static void note_kept_types(const struct bc_exporter *e)
{
    size_t n = 0;
    bool decoded = false;
    for (size_t i = 0; i < e->n_tensors && e->decode; i++) {
        const struct bc_export_tensor *t = &e->tensors[i];
        decoded = decoded || t->form == BC_EXPORT_DECODED;
        n += t->form == BC_EXPORT_COPY && t->n_dims > 1 && t->dtype != e->dtype;
    }
    if (n > 0)
        bc_say(e->sink, decoded ? BITCONV_NOTE : BITCONV_WARNING,
               "%s: %zu matrices are stored as plain numbers of another type than --dtype %s and "
               "keep it",
               e->path, n, e->options->dtype);
}

/* Packed weights that transformers has no module for. */
static void warn_of_limits(const struct bc_exporter *e)
{
    const struct bc_export_tensor *rows = NULL, *expert = NULL;
    for (size_t i = 0; i < e->n_tensors; i++) {
        const struct bc_export_tensor *t = &e->tensors[i];
        if (t->form != BC_EXPORT_TRITS) continue;
        if (rows == NULL && t->rows % 4 != 0) rows = t;
        if (expert == NULL && t->slice > 0) expert = t;
    }
    if (rows != NULL)
        bc_say(e->sink, BITCONV_WARNING,
               "%s: %" PRIu64 " rows are no multiple of 4: bitconv reads the packed tensor, "
               "transformers does not",
               rows->name, rows->rows);
    if (expert != NULL)
        bc_say(e->sink, BITCONV_WARNING,
               "%s: bitconv reads packed experts, transformers 5, which merges experts, does not "
               "(--dtype f32, f16 or bf16)",
               expert->name);
}

static enum bitconv_status map_all(struct mapping *m, struct bitconv_error *err)
{
    struct bc_exporter *e = m->e;
    BC_TRY(recognise(m, err));
    check_missing(m);
    if (m->findings.n == 0 && e->options->dtype != NULL && !e->decode && !e->packed)
        return bc_fail(err, BITCONV_E_UNSUPPORTED,
                       "%s: --dtype packed: no linear weight of the file is in a ternary pack",
                       e->path);
    BC_TRY(bc_findings_result(&m->findings, "faults in the tensors", err));
    for (size_t i = 0; i < m->n_found; i++) {
        struct found *f = &m->found[i];
        BC_TRY(find_unpacked_trits(m, f, err));
        const uint32_t n = f->match.row->role == BC_ROLE_EXPERT ? e->hp.n_expert : 1;
        const char *key = order_key(e, f);
        if (key == NULL) return bc_fail_nomem(err, "names of tensors");
        for (uint32_t s = 0; s < n; s++)
            BC_TRY(add_slice(m, f, key, s, err));
    }
    choose_main_dtype(e);
    note_kept_types(e);
    warn_of_limits(e);
    return bc_findings_result(&m->findings, "faults in the tensors", err);
}

enum bitconv_status bc_export_map(struct bc_exporter *e, struct bitconv_error *err)
{
    struct mapping m = {.e = e, .findings = {.sink = e->sink, .subject = e->path}};
    m.found = bc_alloc_array(bitconv_gguf_n_tensors(e->file) + 1, sizeof *m.found);
    if (m.found == NULL) return bc_fail_nomem(err, "list of tensors");
    const enum bitconv_status status = map_all(&m, err);
    bc_free(m.found);
    return status;
}
