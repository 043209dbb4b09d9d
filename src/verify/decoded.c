/* SPDX-License-Identifier: MIT
 * Decoding of tensors: chooses between plain numbers, blocks and ternary packs, and reads ranges. */
#include "verify/decoded.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "io/gguf_types.h"
#include "verify/block_scan.h"

enum { CHUNK = 1024 }; /* a multiple of every block */

/* GGUF types that hold one number per element. */
static const struct plain_type {
    const char *name;
    enum bitconv_dtype dtype;
} plain_types[] = {
    {"F32", BITCONV_F32}, {"F16", BITCONV_F16}, {"BF16", BITCONV_BF16}, {"F64", BITCONV_F64},
    {"I8", BITCONV_I8},   {"I16", BITCONV_I16}, {"I32", BITCONV_I32},   {"I64", BITCONV_I64},
};

static bool gguf_values(const struct bitconv_gguf_tensor *t, struct bc_values *out)
{
    for (size_t i = 0; i < sizeof plain_types / sizeof plain_types[0]; i++) {
        if (strcmp(plain_types[i].name, t->type_name) != 0) continue;
        out->dtype = plain_types[i].dtype;
        out->data = t->data;
        out->n = t->n_elements;
        return t->size == t->n_elements * bitconv_dtype_size(out->dtype);
    }
    return false;
}

bool bc_container_values(const struct bc_container *c, size_t index, struct bc_values *out)
{
    if (c->gguf != NULL) return gguf_values(bitconv_gguf_tensor_at(c->gguf, index), out);
    const struct bitconv_tensor *t = bc_container_tensor(c, index);
    out->dtype = t->dtype;
    out->data = t->data;
    out->n = t->n_elements;
    return true;
}

int64_t bc_read_integer(const struct bc_values *v, uint64_t index)
{
    const uint8_t *p = v->data + index * bitconv_dtype_size(v->dtype);
    switch (v->dtype) {
    case BITCONV_BOOL:
    case BITCONV_U8:
        return p[0];
    case BITCONV_I8:
        return (int8_t)p[0];
    case BITCONV_I16:
        return (int16_t)bc_get_u16(p);
    case BITCONV_U16:
        return bc_get_u16(p);
    case BITCONV_I32:
        return (int32_t)bc_get_u32(p);
    case BITCONV_U32:
        return bc_get_u32(p);
    case BITCONV_I64:
    case BITCONV_U64:
        return (int64_t)bc_get_u64(p);
    default:
        return 0; /* the caller asks for integer types only */
    }
}

void bc_read_doubles(const struct bc_kernels *k, const struct bc_values *v, uint64_t first,
                     size_t n, double *dst)
{
    if (v->dtype == BITCONV_F64) {
        for (size_t i = 0; i < n; i++)
            dst[i] = bc_get_f64(v->data + 8 * (first + i));
        return;
    }
    if (!bitconv_dtype_is_float(v->dtype)) {
        for (size_t i = 0; i < n; i++) {
            const int64_t integer = bc_read_integer(v, first + i);
            dst[i] = v->dtype == BITCONV_U64 ? (double)(uint64_t)integer : (double)integer;
        }
        return;
    }
    float floats[CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t m = n - done < CHUNK ? n - done : CHUNK;
        bc_widen(k, v, first + done, m, floats);
        for (size_t i = 0; i < m; i++)
            dst[done + i] = (double)floats[i];
    }
}

static enum bitconv_status open_blocks(const struct bitconv_gguf_tensor *t,
                                       const struct bc_dequant *d, struct bc_decoded *out,
                                       char *why, size_t why_size)
{
    if (t->n_elements % d->block != 0 || t->size != t->n_elements / d->block * d->block_size) {
        snprintf(why, why_size,
                 "rows of %" PRIu64 " values are no blocks of %" PRIu32 " of type %s", t->ne[0],
                 d->block, t->type_name);
        return BITCONV_E_CORRUPT;
    }
    out->blocks = d;
    out->data = t->data;
    return BITCONV_OK;
}

static enum bitconv_status refuse(const struct bc_container *c, const struct bitconv_gguf_tensor *t,
                                  char *why, size_t why_size)
{
    const char *reason = bc_dequant_refusal(t->type_name);
    if (reason == NULL && bitconv_gguf_dialect(c->gguf) == BITCONV_DIALECT_AMBIGUOUS &&
        bc_type_is_disputed(t->type))
        reason = "its meaning differs between dialects, and the file does not show which it "
                 "follows: name one with --dialect";
    else if (reason == NULL)
        reason = "the type is not known";
    snprintf(why, why_size, "cannot decode %s: %s", t->type_name, reason);
    return BITCONV_E_UNSUPPORTED;
}

static enum bitconv_status open_gguf(const struct bc_container *c, size_t index,
                                     const struct bc_stated *stated, struct bc_decoded *out,
                                     char *why, size_t why_size)
{
    const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(c->gguf, index);
    const struct bc_dequant *d = bc_dequant_find(t->type_name);
    out->n = t->n_elements;
    if (d != NULL && d->block > 1) BC_TRY(open_blocks(t, d, out, why, why_size));
    if (!bc_packed_open_in(c->gguf, t, stated, &out->packed, why, why_size))
        return BITCONV_E_CORRUPT;
    if (out->blocks != NULL) return BITCONV_OK;
    if (out->packed.format != NULL) {
        out->n = out->packed.shape.n;
        return BITCONV_OK;
    }
    return gguf_values(t, &out->numbers) ? BITCONV_OK : refuse(c, t, why, why_size);
}

enum bitconv_status bc_decoded_open(const struct bc_container *c, size_t index,
                                    const struct bc_stated *stated, struct bc_decoded *out,
                                    char *why, size_t why_size)
{
    memset(out, 0, sizeof *out);
    if (c->gguf != NULL) return open_gguf(c, index, stated, out, why, why_size);
    (void)bc_container_values(c, index, &out->numbers); /* knows every type of safetensors */
    out->n = out->numbers.n;
    return BITCONV_OK;
}

static void read_trits(const struct bc_packed *p, uint64_t first, size_t n, double *dst)
{
    const uint64_t slice_n = p->shape.cols * p->shape.rows;
    int8_t trits[CHUNK];
    for (size_t done = 0; done < n;) {
        const uint64_t at = first + done;
        const uint64_t left_in_slice = slice_n - at % slice_n;
        size_t m = n - done < CHUNK ? n - done : CHUNK;
        if (left_in_slice < m) m = (size_t)left_in_slice;
        const float scale = p->format->get_scale(&p->shape, p->data, at / slice_n);
        bc_packed_read(p, at, m, trits);
        for (size_t i = 0; i < m; i++) {
            const double value = (double)((float)trits[i] * scale);
            dst[done + i] = trits[i] == 0 ? 0.0 : trits[i] == BC_TRIT_ILLEGAL ? (double)NAN : value;
        }
        done += m;
    }
}

/* Multiplies values of blocks by the scales beside them, in float32 as the engine does. */
static void apply_scales(const struct bc_packed *p, uint64_t first, size_t n, float *values)
{
    if (p->format == NULL || p->scales == NULL) return;
    const uint64_t slice_n = p->shape.cols * p->shape.rows;
    for (size_t i = 0; i < n; i++)
        values[i] *= bc_packed_scale_beside(p, (first + i) / slice_n);
}

static void read_blocks(const struct bc_decoded *d, uint64_t first, size_t n, double *dst)
{
    float floats[CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t m = n - done < CHUNK ? n - done : CHUNK;
        bc_dequant_values(d->blocks, d->data, first + done, m, floats);
        apply_scales(&d->packed, first + done, m, floats);
        for (size_t i = 0; i < m; i++)
            dst[done + i] = (double)floats[i];
    }
}

void bc_decoded_read(const struct bc_kernels *k, const struct bc_decoded *d, uint64_t first,
                     size_t n, double *dst)
{
    if (d->blocks != NULL)
        read_blocks(d, first, n, dst);
    else if (d->packed.format != NULL)
        read_trits(&d->packed, first, n, dst);
    else
        bc_read_doubles(k, &d->numbers, first, n, dst);
}
