/* SPDX-License-Identifier: MIT
 * Finds the tensors that hold the scales of others, by name and shape. */
#include "model/scale_tensor.h"

#include <string.h>

#include "formats/block_pack.h"
#include "io/gguf_types.h"

static const char weight_ending[] = ".weight", scale_ending[] = ".scale";

static bool is_block_type(const char *type_name)
{
    for (size_t i = 0; bc_block_pack_at(i) != NULL; i++)
        if (strcmp(bc_block_pack_at(i)->format->type_name, type_name) == 0) return true;
    return false;
}

/* The name with one ending for another; false when it does not end so. */
static bool swap_ending(struct bc_buf *out, const char *name, const char *from, const char *to)
{
    const size_t len = strlen(name), from_len = strlen(from);
    if (len < from_len || strcmp(name + len - from_len, from) != 0) return false;
    bc_buf_clear(out);
    bc_buf_printf(out, "%.*s%s", (int)(len - from_len), name, to);
    return !out->failed;
}

bool bc_scale_tensor_name(struct bc_buf *out, const char *weight)
{
    return swap_ending(out, weight, weight_ending, scale_ending);
}

static const struct bitconv_gguf_tensor *
find_other(const struct bitconv_gguf *file, const char *name, const char *from, const char *to)
{
    struct bc_buf other = {0};
    const bool swapped = swap_ending(&other, name, from, to);
    const struct bitconv_gguf_tensor *found =
        swapped ? bitconv_gguf_find_tensor(file, bc_buf_str(&other)) : NULL;
    bc_buf_release(&other);
    return found;
}

static bool belong_together(const struct bitconv_gguf_tensor *weight,
                            const struct bitconv_gguf_tensor *scale)
{
    const uint64_t slice_n = weight->ne[0] * weight->ne[1]; /* the reader has checked the product */
    return is_block_type(weight->type_name) && scale->type == BC_TYPE_F32 && slice_n != 0 &&
           scale->n_dims == 1 && scale->size == 4 * scale->n_elements &&
           scale->size <= scale->span &&
           (scale->n_elements == 1 || scale->n_elements == weight->n_elements / slice_n);
}

const struct bitconv_gguf_tensor *bc_scale_tensor_of(const struct bitconv_gguf *file,
                                                     const struct bitconv_gguf_tensor *weight)
{
    const struct bitconv_gguf_tensor *scale =
        find_other(file, weight->name, weight_ending, scale_ending);
    return scale != NULL && belong_together(weight, scale) ? scale : NULL;
}

const struct bitconv_gguf_tensor *bc_scale_named_owner(const struct bitconv_gguf *file,
                                                       const struct bitconv_gguf_tensor *scale)
{
    const struct bitconv_gguf_tensor *weight =
        find_other(file, scale->name, scale_ending, weight_ending);
    return weight != NULL && is_block_type(weight->type_name) ? weight : NULL;
}

const struct bitconv_gguf_tensor *bc_scale_owner(const struct bitconv_gguf *file,
                                                 const struct bitconv_gguf_tensor *scale)
{
    const struct bitconv_gguf_tensor *weight = bc_scale_named_owner(file, scale);
    return weight != NULL && belong_together(weight, scale) ? weight : NULL;
}
