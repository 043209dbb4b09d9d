/* SPDX-License-Identifier: MIT
 * Lists and generates the tensors of synthetic checkpoints. */
#include "dummy/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static const float norm_spread = 0.1f, bias_spread = 0.02f;
static const double scale_variation = 0.2; /* scales of tensors differ by up to that, either way */

struct building {
    const struct bc_dummy_model *model;
    const struct bc_dummy_storage *storage;
    struct bc_dummy_tensors *out;
    size_t cap;
};

void bc_dummy_tensors_release(struct bc_dummy_tensors *tensors)
{
    bc_free(tensors->items);
    bc_arena_release(&tensors->arena);
    *tensors = (struct bc_dummy_tensors){.n = 0};
}

/* ---- names ---- */

/* The name without suffix; the head and backbone classes stand outside of "model.". */
static char *base_name(struct building *b, const struct bc_dummy_item *item, uint32_t expert)
{
    const unsigned generation =
        item->row->hf[b->model->kind->generation] != NULL ? b->model->kind->generation : 0;
    const bool bare = b->model->class_row->backbone || item->row->role == BC_ROLE_OUTPUT;
    char *name =
        bc_pattern_fill(&b->out->arena, item->row->hf[generation], item->layer, expert, "");
    if (name == NULL || bare) return name;
    return bc_arena_printf(&b->out->arena, "model.%s", name);
}

/* ---- values ---- */

/* A number from 0 to 1 that depends on the seed and a name. */
static double fraction(uint64_t seed, const char *name)
{
    return (double)(bc_dummy_key(seed, name, strlen(name)) >> 11) / 9007199254740992.0;
}

/* The scale of a linear weight. */
static float scale_of(const struct bc_dummy_storage *s, const char *base, uint64_t cols)
{
    const double others = 1.0 - (double)s->n_zero / 65536.0;
    const double typical = 1.0 / sqrt(others * (double)cols);
    const double factor = 1.0 + scale_variation * (2.0 * fraction(s->seed, base) - 1.0);
    return bc_bf16_to_f32(bc_f32_to_bf16((float)(typical * factor)));
}

/* Half the width of a uniform distribution with standard deviation 1 / sqrt(n). */
static float spread_of(uint64_t n)
{
    return (float)sqrt(3.0 / (double)n);
}

static void set_floats(const struct bc_dummy_model *model, const struct bc_dummy_item *item,
                       struct bc_dummy_values *v)
{
    const bool norm = item->part == BC_MATCH_NORM_IN || item->row->role == BC_ROLE_NORM ||
                      item->row->role == BC_ROLE_LAYER_NORM;
    if (item->part == BC_MATCH_BIAS) {
        v->spread = bias_spread;
    } else if (norm) {
        const bool plus_one = model->arch->traits.norm_plus_one && item->part == BC_MATCH_WEIGHT;
        v->centre = plus_one ? 0.0f : 1.0f;
        v->spread = norm_spread;
    } else {
        v->spread = spread_of(item->row->role == BC_ROLE_CONV ? item->cols : model->hp.n_embd);
    }
}

/* ---- the list ---- */

static struct bc_dummy_stored *append(struct building *b, const char *base, const char *suffix)
{
    void *items = b->out->items;
    if (!bc_grow(&items, &b->cap, b->out->n, sizeof *b->out->items)) return NULL;
    b->out->items = items;
    struct bc_dummy_stored *t = &b->out->items[b->out->n];
    *t = (struct bc_dummy_stored){.view = {.file = b->storage->file}};
    t->view.name = bc_arena_printf(&b->out->arena, "%s%s", base, suffix);
    if (t->view.name == NULL) return NULL;
    t->values.key = bc_dummy_key(b->storage->seed, t->view.name, strlen(t->view.name));
    t->values.n_zero = b->storage->n_zero;
    b->out->n++;
    return t;
}

/* Sets dtype, shape (rows x cols, cols 0: a vector) and size. */
static enum bitconv_status finish(struct building *b, struct bc_dummy_stored *t,
                                  enum bitconv_dtype dtype, uint64_t rows, uint64_t cols,
                                  struct bitconv_error *err)
{
    struct bitconv_tensor *view = &t->view;
    view->dtype = dtype;
    view->n_dims = cols == 0 ? 1 : 2;
    t->shape[0] = rows;
    t->shape[1] = cols;
    if (bc_mul_u64(rows, cols == 0 ? 1 : cols, &view->n_elements) &&
        bc_mul_u64(view->n_elements, bitconv_dtype_size(dtype), &view->size) &&
        bc_add_u64(b->out->size, view->size, &b->out->size))
        return BITCONV_OK;
    return bc_fail(err, BITCONV_E_LIMIT, "%s: its size exceeds 64 bits", view->name);
}

static enum bitconv_status add_linear(struct building *b, const struct bc_dummy_item *item,
                                      const char *base, struct bitconv_error *err)
{
    static const enum bc_dummy_content contents[] = {[BITCONV_DUMMY_MASTERS] = BC_DUMMY_MASTER,
                                                     [BITCONV_DUMMY_BAKED] = BC_DUMMY_BAKED,
                                                     [BITCONV_DUMMY_PACKED] = BC_DUMMY_PACKED};
    const struct bc_dummy_storage *s = b->storage;
    const bool packed = s->form == BITCONV_DUMMY_PACKED;
    const char *stack = base_name(b, item, 0);
    struct bc_dummy_stored *t = append(b, base, ".weight");
    if (t == NULL || stack == NULL) return bc_fail_nomem(err, "list of tensors");
    const float scale = scale_of(s, stack, item->cols);
    t->content = contents[s->form];
    t->values.scale = scale;
    t->n_rows = item->rows;
    t->n_cols = item->cols;
    if (!packed) return finish(b, t, s->dtype, item->rows, item->cols, err);
    BC_TRY(finish(b, t, BITCONV_U8, (item->rows + 3) / 4, item->cols, err));
    t = append(b, base, ".weight_scale");
    if (t == NULL) return bc_fail_nomem(err, "list of tensors");
    t->content = BC_DUMMY_SCALE;
    bc_put_f32(t->scale, scale);
    return finish(b, t, BITCONV_F32, 1, 0, err);
}

static enum bitconv_status add_item(void *ctx, const struct bc_dummy_item *item,
                                    struct bitconv_error *err)
{
    static const char *const suffixes[] = {[BC_MATCH_WEIGHT] = ".weight",
                                           [BC_MATCH_BIAS] = ".bias",
                                           [BC_MATCH_NORM_IN] = ".norm.weight"};
    struct building *b = ctx;
    const bool linear = item->row->role == BC_ROLE_LINEAR || item->row->role == BC_ROLE_EXPERT;
    const char *base = base_name(b, item, item->expert);
    if (base == NULL) return bc_fail_nomem(err, "list of tensors");
    if (linear && item->part == BC_MATCH_WEIGHT) return add_linear(b, item, base, err);
    struct bc_dummy_stored *t = append(b, base, suffixes[item->part]);
    if (t == NULL) return bc_fail_nomem(err, "list of tensors");
    t->content = BC_DUMMY_FLOATS;
    set_floats(b->model, item, &t->values);
    BC_TRY(finish(b, t, b->storage->dtype, item->rows, item->cols, err));
    if (item->row->role != BC_ROLE_CONV) return BITCONV_OK;
    t->view.n_dims = 3; /* one input channel a filter: [channels, 1, length] */
    t->shape[2] = t->shape[1];
    t->shape[1] = 1;
    return BITCONV_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct bc_dummy_stored *x = a, *y = b;
    return strcmp(x->view.name, y->view.name);
}

enum bitconv_status bc_dummy_tensors_make(const struct bc_dummy_model *model,
                                          const struct bc_dummy_storage *storage,
                                          struct bc_dummy_tensors *out, struct bitconv_error *err)
{
    struct building b = {.model = model, .storage = storage, .out = out};
    float *units = bc_arena_alloc(&out->arena, BC_DUMMY_NUMBERS, sizeof *units);
    if (units == NULL) return bc_fail_nomem(err, "values of the weights");
    bc_dummy_units(storage->n_zero, units);
    BC_TRY(bc_dummy_each(model, add_item, &b, err));
    qsort(out->items, out->n, sizeof *out->items, by_name);
    for (size_t i = 0; i < out->n; i++) {
        struct bc_dummy_stored *t = &out->items[i]; /* no more moves: its parts may be pointed to */
        t->view.shape = t->shape;
        t->values.units = units;
        if (t->content == BC_DUMMY_SCALE) t->view.data = t->scale;
    }
    return BITCONV_OK;
}

/* ---- bytes ---- */

/* dst |= codes << shift, byte by byte; no code leaves its byte. Eight at a time: compilers of the
 * common flags do not do that by themselves. */
static void or_shifted(const uint8_t *codes, size_t n, unsigned shift, uint8_t *dst)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t code, byte;
        memcpy(&code, codes + i, sizeof code);
        memcpy(&byte, dst + i, sizeof byte);
        byte |= code << shift;
        memcpy(dst + i, &byte, sizeof byte);
    }
    for (; i < n; i++)
        dst[i] = (uint8_t)(dst[i] | (unsigned)codes[i] << shift);
}

/* Byte i holds rows r, r + R, r + 2R, r + 3R at one column, R = rows / 4 rounded up, lowest bits
 * first; rows that are not there have the code 0. */
static void pack_bytes(const struct bc_dummy_stored *t, uint64_t first, size_t n, uint8_t *dst)
{
    const uint64_t group = (t->n_rows + 3) / 4 * t->n_cols;
    const uint64_t total = t->n_rows * t->n_cols;
    uint8_t codes[BC_DUMMY_CHUNK];
    memset(dst, 0, n);
    for (unsigned g = 0; g < 4; g++) {
        const uint64_t at = g * group + first;
        if (at >= total) break;
        const size_t part = total - at < n ? (size_t)(total - at) : n;
        bc_dummy_codes(&t->values, at, part, codes);
        or_shifted(codes, part, 2 * g, dst);
    }
}

/* Values before they are rounded to the tensor's type. */
static void make_floats(const struct bc_dummy_stored *t, const struct bc_kernels *k, uint64_t first,
                        size_t n, float *dst)
{
    int8_t trits[BC_DUMMY_CHUNK];
    switch (t->content) {
    case BC_DUMMY_MASTER:
        bc_dummy_masters(&t->values, first, n, dst);
        break;
    case BC_DUMMY_BAKED:
        bc_dummy_trits(&t->values, first, n, trits);
        k->trits_to_f32(trits, n, t->values.scale, dst);
        break;
    case BC_DUMMY_FLOATS:
    case BC_DUMMY_PACKED:
    case BC_DUMMY_SCALE:
        bc_dummy_floats(&t->values, first, n, dst);
        break;
    }
}

void bc_dummy_stored_bytes(const struct bc_dummy_stored *t, const struct bc_kernels *k,
                           uint64_t first, size_t n, uint8_t *dst)
{
    float values[BC_DUMMY_CHUNK];
    if (t->content == BC_DUMMY_SCALE) {
        memcpy(dst, t->scale, sizeof t->scale);
        return;
    }
    if (t->content == BC_DUMMY_PACKED) {
        pack_bytes(t, first, n, dst);
        return;
    }
    make_floats(t, k, first, n, values);
    if (t->view.dtype == BITCONV_BF16)
        k->narrow_bf16(values, n, dst);
    else if (t->view.dtype == BITCONV_F16)
        k->narrow_f16(values, n, dst);
    else
        for (size_t i = 0; i < n; i++)
            bc_put_f32(dst + 4 * i, values[i]);
}

void bc_dummy_stored_floats(const struct bc_dummy_stored *t, const struct bc_kernels *k,
                            uint64_t first, size_t n, float *dst)
{
    uint8_t bytes[4 * BC_DUMMY_CHUNK];
    bc_dummy_stored_bytes(t, k, first, n, bytes);
    if (t->view.dtype == BITCONV_BF16)
        k->widen_bf16(bytes, n, dst);
    else if (t->view.dtype == BITCONV_F16)
        k->widen_f16(bytes, n, dst);
    else
        for (size_t i = 0; i < n; i++)
            dst[i] = bc_get_f32(bytes + 4 * i);
}
