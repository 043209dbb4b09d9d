/* SPDX-License-Identifier: MIT
 * Sorts the tensors of a GGUF into packs, floats that may hold trits, and the rest. */
#include "repack/repack_input.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/dequant.h"
#include "io/gguf_impl.h"
#include "model/arch.h"
#include "model/scale_tensor.h"

enum {
    WHY_SIZE = 256,
    MAX_WEIGHT_DIMS = 3, /* a stack of matrices */
    MAX_EXPERTS = 65536, /* of a stack of floats; a larger third dimension is no stack */
    MAX_UNIT = 4096      /* the largest granule or run of a pack: BITCOS */
};

/* ---- reading trits ---- */

/* Where the pack's fast reader can start and stop, beside the ends of the tensor. */
static uint64_t unit_of(const struct bc_format *f)
{
    if (f->run != 0) return f->run;
    return f->granule != 0 ? f->granule : 1; /* tiled packs are read in any range */
}

/* Trits [first, first + n) that lie within one unit. */
static bool unpack_part(const struct bc_packed *p, const struct bc_kernels *k, uint64_t unit,
                        uint64_t first, uint64_t n, int8_t *dst)
{
    int8_t whole[MAX_UNIT];
    const uint64_t start = first / unit * unit;
    const uint64_t have = p->shape.n - start < unit ? p->shape.n - start : unit;
    const bool legal = p->format->unpack(k, &p->shape, p->data, start, have, whole);
    memcpy(dst, whole + (first - start), (size_t)n);
    return legal;
}

/* Trits through the pack's fast reader: whole units straight away, what is cut at either end through
 * a unit of its own. */
static enum bitconv_status pack_trits(const void *ctx, const struct bc_kernels *k, uint64_t first,
                                      uint64_t n, int8_t *dst, struct bitconv_error *err)
{
    const struct bc_input_tensor *t = ctx;
    const struct bc_packed *p = &t->packed;
    const uint64_t unit = unit_of(p->format);
    const uint64_t end = first + n;
    bool legal = true;
    while (first < end) {
        const uint64_t to_boundary = unit - first % unit;
        uint64_t part = end - first;
        if (to_boundary < unit || (part < unit && end < p->shape.n)) {
            part = part < to_boundary ? part : to_boundary;
            legal = unpack_part(p, k, unit, first, part, dst) && legal;
        } else {
            if (end < p->shape.n) part -= part % unit;
            legal = p->format->unpack(k, &p->shape, p->data, first, part, dst) && legal;
        }
        first += part;
        dst += part;
    }
    if (legal) return BITCONV_OK;
    return bc_fail(err, BITCONV_E_BUG, "%s: codes of %s that the scan had not seen", t->gguf->name,
                   p->format->name);
}

static enum bitconv_status float_trits(const void *ctx, const struct bc_kernels *k, uint64_t first,
                                       uint64_t n, int8_t *dst, struct bitconv_error *err)
{
    static const struct bc_weight_options options = {.mode = BC_QUANT_AUTO};
    const struct bc_input_tensor *t = ctx;
    return bc_weight_trits_at(NULL, &t->floats, &t->decision, &options, k, first, n, dst, NULL,
                              err);
}

static enum bitconv_status float_floats(const void *ctx, const struct bc_kernels *k, uint64_t first,
                                        uint64_t n, float *dst, struct bitconv_error *err)
{
    static const struct bc_weight_options options = {.mode = BC_QUANT_AUTO};
    const struct bc_input_tensor *t = ctx;
    return bc_weight_f32_at(NULL, &t->floats, &options, k, first, n, dst, err);
}

static enum bitconv_status block_floats(const void *ctx, const struct bc_kernels *k, uint64_t first,
                                        uint64_t n, float *dst, struct bitconv_error *err)
{
    const struct bc_input_tensor *t = ctx;
    (void)k;
    (void)err;
    bc_dequant_values(bc_dequant_find(t->packed.format->type_name), t->packed.data, first, n, dst);
    return BITCONV_OK;
}

static void drop_pages(const void *ctx)
{
    const struct bc_input_tensor *t = ctx;
    bc_file_done_with(t->file, t->gguf->file_offset, t->gguf->size);
}

/* ---- sorting ---- */

/* Is it a matrix that BitNet-style training makes ternary? Any family's table may say so: files name
 * architectures in many ways, the tensors of a block in one. */
static bool is_linear(const char *name)
{
    static const char ending[] = ".weight";
    const size_t len = strlen(name);
    const size_t base = len - (sizeof ending - 1);
    if (len < sizeof ending || strcmp(name + base, ending) != 0) return false;
    for (size_t i = 0; bc_arch_at(i) != NULL; i++) {
        for (const struct bc_arch_tensor *row = bc_arch_at(i)->tensors; row->hf[0] != NULL; row++) {
            uint32_t layer, expert;
            if (row->role != BC_ROLE_LINEAR && row->role != BC_ROLE_EXPERT) continue;
            if (bc_pattern_match(row->gguf, name, base, &layer, &expert)) return true;
        }
    }
    return false;
}

static bool float_dtype(const char *type_name, enum bitconv_dtype *out)
{
    static const struct {
        const char *name;
        enum bitconv_dtype dtype;
    } types[] = {{"F32", BITCONV_F32}, {"F16", BITCONV_F16}, {"BF16", BITCONV_BF16}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, type_name) != 0) continue;
        *out = types[i].dtype;
        return true;
    }
    return false;
}

/* Describes the tensor as a weight of a checkpoint, with a source for each matrix of a stack. */
static enum bitconv_status make_floats(struct bc_repack_input *in, struct bc_input_tensor *t,
                                       enum bitconv_dtype dtype, struct bitconv_error *err)
{
    const struct bitconv_gguf_tensor *g = t->gguf;
    const uint32_t n = (uint32_t)(t->weight.n_dims > 2 ? t->weight.ne[2] : 1);
    const uint64_t values = g->n_elements / n;
    const uint64_t size = values * bitconv_dtype_size(dtype);
    struct bitconv_tensor *views = bc_arena_alloc(&in->arena, n, sizeof *views);
    struct bc_source *sources = bc_arena_alloc(&in->arena, n, sizeof *sources);
    if (views == NULL || sources == NULL) return bc_fail_nomem(err, "tensors of the input");
    for (uint32_t i = 0; i < n; i++) {
        views[i] = (struct bitconv_tensor){.name = g->name,
                                           .dtype = dtype,
                                           .n_elements = values,
                                           .data = g->data + i * size,
                                           .size = size,
                                           .file = in->path,
                                           .file_offset = g->file_offset + i * size};
        sources[i].tensor = &views[i];
    }
    t->floats = t->weight;
    t->floats.sources = sources;
    t->floats.n_sources = n;
    return BITCONV_OK;
}

void bc_input_copy(struct bc_input_tensor *t)
{
    t->kind = BC_INPUT_COPY;
    t->weight.role = BC_ROLE_NONE;
    t->origin = (struct bc_origin){.bytes = t->gguf->data, .done = drop_pages, .ctx = t};
}

static void set_shape(struct bc_input_tensor *t, uint32_t n_dims, const uint64_t *ne)
{
    t->weight.n_dims = n_dims;
    for (size_t i = 0; i < 4; i++)
        t->weight.ne[i] = ne[i];
}

/* May the tensor be floats of a linear weight? */
static bool is_float_weight(const struct bitconv_gguf_tensor *g, enum bitconv_dtype *dtype)
{
    return g->n_dims >= 2 && g->n_dims <= MAX_WEIGHT_DIMS && g->n_elements != 0 &&
           g->ne[2] <= MAX_EXPERTS && is_linear(g->name) && float_dtype(g->type_name, dtype);
}

/* A tensor that is in a pack, or of an unknown type: read, or a finding. */
static void sort_typed(const struct bc_repack_input *in, struct bc_input_tensor *t,
                       struct bc_findings *findings)
{
    const struct bitconv_gguf_tensor *g = t->gguf;
    if (t->packed.format == NULL || t->packed.n_dims > MAX_WEIGHT_DIMS) {
        bc_finding(findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: %s of %" PRIu32
                   " dimensions cannot be read (--input-dialect names another dialect than %s)",
                   in->path, g->name, g->type_name, g->n_dims,
                   bitconv_dialect_name(bitconv_gguf_dialect(in->gguf)));
        return;
    }
    set_shape(t, t->packed.n_dims, t->packed.ne);
    t->kind = BC_INPUT_PACK;
    t->weight.role = BC_ROLE_LINEAR;
    t->origin = (struct bc_origin){.how = t->packed.format->name,
                                   .trits = pack_trits,
                                   .floats = block_floats, /* asked of block packs only */
                                   .done = drop_pages,
                                   .ctx = t};
}

static enum bitconv_status sort_tensor(struct bc_repack_input *in, struct bc_input_tensor *t,
                                       struct bc_findings *findings, struct bitconv_error *err)
{
    const struct bitconv_gguf_tensor *g = t->gguf;
    enum bitconv_dtype dtype;
    char why[WHY_SIZE];
    t->weight.name = g->name;
    set_shape(t, g->n_dims, g->ne);
    bc_input_copy(t);
    if (strlen(g->name) != g->name_len || g->n_dims > 4) {
        bc_finding(findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: %" PRIu32 " dimensions, or a name with NUL bytes: such a tensor cannot "
                   "be written again",
                   in->path, g->name, g->n_dims);
        return BITCONV_OK;
    }
    if (bc_scale_owner(in->gguf, g) != NULL) {
        t->kind = BC_INPUT_DROP;
        return BITCONV_OK;
    }
    if (!bc_packed_open_in(in->gguf, g, &in->stated, &t->packed, why, sizeof why)) {
        bc_finding(findings, BITCONV_E_CORRUPT, "%s: %s: %s", in->path, g->name, why);
        return BITCONV_OK;
    }
    if (t->packed.format != NULL || (g->size == 0 && g->n_elements != 0)) {
        sort_typed(in, t, findings);
        return BITCONV_OK;
    }
    if (!is_float_weight(g, &dtype)) return BITCONV_OK;
    t->kind = BC_INPUT_FLOATS;
    t->weight.role = BC_ROLE_LINEAR;
    t->origin = (struct bc_origin){.how = "magnitude",
                                   .trits = float_trits,
                                   .floats = float_floats,
                                   .done = drop_pages,
                                   .ctx = t};
    return make_floats(in, t, dtype, err);
}

/* What is assumed where the file says nothing: a wrong tile gives legal trits in a wrong order. */
static void warn_assumptions(const struct bc_repack_input *in, const struct bitconv_sink *sink)
{
    size_t n_tiles = 0, n_layouts = 0;
    for (size_t i = 0; i < in->n_tensors; i++) {
        const struct bc_input_tensor *t = &in->tensors[i];
        if (t->kind != BC_INPUT_PACK ||
            bc_stated_find(&in->stated, t->gguf->name, t->gguf->name_len) != NULL)
            continue;
        n_tiles += t->packed.format->choose_tile != NULL;
        n_layouts += strcmp(t->gguf->type_name, "I2_S") == 0;
    }
    if (n_tiles > 0 && in->stated.config.n == 0)
        bc_say(sink, BITCONV_WARNING,
               "%s: does not state the tiles of its %zu tiled tensors: read with the published or "
               "the largest ones (--input-kernel-config FILE names them)",
               in->path, n_tiles);
    if (n_layouts > 0 && in->stated.i2s_pack == NULL)
        bc_say(sink, BITCONV_NOTE,
               "%s: does not state the layout of its %zu I2_S tensors: read in blocks of 128 "
               "(--input-i2s-layout 64 for files of ARM builds)",
               in->path, n_layouts);
}

static void pass_on_findings(const struct bc_repack_input *in, const struct bitconv_sink *sink)
{
    for (size_t i = 0; i < bitconv_gguf_n_findings(in->gguf); i++) {
        const struct bitconv_gguf_finding *f = bitconv_gguf_finding_at(in->gguf, i);
        bc_say(sink, f->is_error ? BITCONV_WARNING : BITCONV_NOTE, "%s: %s", in->path, f->text);
    }
}

static enum bitconv_status open_file(struct bc_repack_input *in, const struct bc_input_hints *hints,
                                     struct bitconv_error *err)
{
    enum bitconv_dialect dialect = BITCONV_DIALECT_AMBIGUOUS;
    if (hints->dialect != NULL && !bitconv_dialect_from_name(hints->dialect, &dialect))
        return bc_fail(err, BITCONV_E_ARG,
                       "--input-dialect: '%s' is not one of: upstream, bitnet, bitnet-rebased, "
                       "prism",
                       hints->dialect);
    BC_TRY(bitconv_gguf_open(in->path, &in->gguf, err));
    if (hints->dialect != NULL) BC_TRY(bitconv_gguf_set_dialect(in->gguf, dialect, err));
    BC_TRY(bc_stated_read(in->gguf, &in->arena, &in->stated, err));
    if (in->stated.problem != NULL)
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: %s", in->path, in->stated.problem);
    return bc_stated_config(&in->stated, hints->kernel_config, hints->i2s_layout, err);
}

enum bitconv_status bc_repack_open(const char *path, const struct bc_input_hints *hints,
                                   const struct bitconv_sink *sink, struct bc_repack_input *out,
                                   struct bitconv_error *err)
{
    struct bc_findings findings = {.sink = sink, .subject = path};
    out->path = path;
    BC_TRY(open_file(out, hints, err));
    const size_t n = bitconv_gguf_n_tensors(out->gguf);
    out->tensors = bc_arena_alloc(&out->arena, n, sizeof *out->tensors);
    if (out->tensors == NULL) return bc_fail_nomem(err, "tensors of the input");
    pass_on_findings(out, sink);
    for (; out->n_tensors < n; out->n_tensors++) {
        struct bc_input_tensor *t = &out->tensors[out->n_tensors];
        t->gguf = bitconv_gguf_tensor_at(out->gguf, out->n_tensors);
        t->file = &out->gguf->shards[t->gguf->shard].file;
        BC_TRY(sort_tensor(out, t, &findings, err));
    }
    BC_TRY(bc_findings_result(&findings, "tensors that cannot be read", err));
    warn_assumptions(out, sink);
    return BITCONV_OK;
}

void bc_repack_close(struct bc_repack_input *in)
{
    bc_stated_release(&in->stated);
    bitconv_gguf_close(in->gguf);
    bc_arena_release(&in->arena);
}
