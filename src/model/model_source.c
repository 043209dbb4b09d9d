/* SPDX-License-Identifier: MIT
 * One stored tensor against what the table says of it: shape, dtype, packing, scale. */
#include <string.h>

#include "model/model_internal.h"

enum { SHAPE_TEXT = 96 };

/* "[2048, 128]" */
static const char *shape_text(uint32_t n_dims, const uint64_t *shape, char *out)
{
    struct bc_buf buf = {0};
    bc_buf_putc(&buf, '[');
    for (uint32_t i = 0; i < n_dims && buf.size < SHAPE_TEXT / 2; i++)
        bc_buf_printf(&buf, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)shape[i]);
    bc_buf_puts(&buf, "]");
    const size_t n = buf.size < SHAPE_TEXT - 1 ? buf.size : SHAPE_TEXT - 1;
    memcpy(out, bc_buf_str(&buf), n);
    out[n] = '\0';
    bc_buf_release(&buf);
    return out;
}

/* Equal apart from dimensions of 1 (converters squeeze those away). */
static bool same_shape(const struct bitconv_tensor *t, uint32_t n_dims, const uint64_t *shape)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < t->n_dims && t->shape[i] == 1)
            i++;
        while (j < n_dims && shape[j] == 1)
            j++;
        if (i == t->n_dims || j == n_dims) return i == t->n_dims && j == n_dims;
        if (t->shape[i++] != shape[j++]) return false;
    }
}

static void check_shape(struct bc_loading *load, const struct bitconv_tensor *t, uint64_t rows,
                        uint64_t cols, bool packed)
{
    /* transformers packs row r with rows r + R, r + 2R, r + 3R, R = rows / 4 rounded up */
    const uint64_t stored[2] = {packed ? rows / 4 + (rows % 4 != 0) : rows, cols};
    const uint32_t n_dims = cols == 0 ? 1 : 2;
    char found[SHAPE_TEXT], wanted[SHAPE_TEXT], logical[SHAPE_TEXT];
    if (same_shape(t, n_dims, stored)) return;
    const uint64_t unpacked[2] = {rows, cols};
    shape_text(t->n_dims, t->shape, found);
    shape_text(n_dims, stored, wanted);
    if (packed)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: shape %s, wanted %s: uint8 holding four rows of %s", t->file, t->name,
                   found, wanted, shape_text(n_dims, unpacked, logical));
    else
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: shape %s, wanted %s by the config",
                   t->file, t->name, found, wanted);
}

bool bc_model_is_kept(const struct bc_loading *load, const char *tensor_name)
{
    const char *dot = strrchr(tensor_name, '.');
    const size_t len = dot != NULL ? (size_t)(dot - tensor_name) : strlen(tensor_name);
    for (const struct bc_json *node = bc_json_first(load->keep_modules); node != NULL;
         node = bc_json_next(node)) {
        const char *module = bc_json_string(node);
        const size_t n = module != NULL ? strlen(module) : 0;
        /* the name of the module, or of one around it, from any component on (transformers) */
        for (size_t at = 0; n != 0 && at + n <= len; at++) {
            const bool starts = at == 0 || tensor_name[at - 1] == '.';
            const bool ends = at + n == len || tensor_name[at + n] == '.';
            if (starts && ends && strncmp(tensor_name + at, module, n) == 0) return true;
        }
    }
    return false;
}

/* A linear weight and its scale: which combinations make sense. */
static void check_scale(struct bc_loading *load, const struct bitconv_tensor *t,
                        const struct bitconv_tensor *scale)
{
    const bool packed = t->dtype == BITCONV_U8;
    const bool kept = bc_model_is_kept(load, t->name);
    if (packed && kept)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: packed, but modules_to_not_convert names it", t->file, t->name);
    if (scale == NULL && packed)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: packed (uint8), but there is no %s_scale", t->file, t->name, t->name);
    else if (scale == NULL && !kept && load->model->training == BC_TRAINING_OFFLINE)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: there is no %s_scale, but other weights have theirs", t->file, t->name,
                   t->name);
    if (scale != NULL && kept && !packed)
        bc_finding(&load->findings, BITCONV_E_CORRUPT,
                   "%s: %s: has a weight_scale, but modules_to_not_convert names it", t->file,
                   t->name);
    if (scale != NULL && !bitconv_dtype_is_float(scale->dtype))
        bc_finding(&load->findings, BITCONV_E_CORRUPT, "%s: %s: dtype %s, wanted a float type",
                   scale->file, scale->name, bitconv_dtype_name(scale->dtype));
}

static const struct bitconv_tensor *find_scale(const struct bc_loading *load,
                                               const struct bitconv_tensor *t)
{
    struct bc_buf name = {0};
    bc_buf_printf(&name, "%s_scale", t->name);
    const struct bitconv_tensor *scale =
        name.failed ? NULL : bc_checkpoint_find(load->ckpt, bc_buf_str(&name));
    bc_buf_release(&name);
    return scale;
}

struct bc_source bc_model_source(struct bc_loading *load, size_t tensor_index, uint64_t rows,
                                 uint64_t cols, bool *packed)
{
    const struct bitconv_tensor *t = load->ckpt->tensors[tensor_index];
    const struct bc_match *match = &load->matches[tensor_index];
    const bool linear = match->part == BC_MATCH_WEIGHT &&
                        (match->row->role == BC_ROLE_LINEAR || match->row->role == BC_ROLE_EXPERT);
    struct bc_source source = {.tensor = t};
    *packed = linear && t->dtype == BITCONV_U8;
    if (linear) {
        source.scale = find_scale(load, t);
        check_scale(load, t, source.scale);
    }
    if (!*packed && !bitconv_dtype_is_float(t->dtype))
        bc_finding(&load->findings, BITCONV_E_UNSUPPORTED,
                   "%s: %s: dtype %s, wanted a float type%s", t->file, t->name,
                   bitconv_dtype_name(t->dtype), linear ? " or packed U8" : "");
    check_shape(load, t, rows, cols, *packed);
    return source;
}
