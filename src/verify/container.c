/* SPDX-License-Identifier: MIT
 * Decides what a path names and opens it with the right reader. */
#include "verify/container.h"

#include <string.h>

#include "base/file.h"

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s);
    const size_t m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* The magic of a file that is too short, wrong or byte-swapped is the GGUF reader's business: it
 * has the better message. */
static enum bitconv_status looks_like_gguf(const char *path, bool *out, struct bitconv_error *err)
{
    struct bc_file file;
    BC_TRY(bc_file_open(path, &file, err));
    *out = ends_with(path, ".gguf");
    if (file.size >= 4)
        *out = *out || memcmp(file.data, "GGUF", 4) == 0 || memcmp(file.data, "FUGG", 4) == 0;
    bc_file_close(&file);
    return BITCONV_OK;
}

static enum bitconv_status open_gguf(const char *path, const char *dialect,
                                     struct bc_container *out, struct bitconv_error *err)
{
    enum bitconv_dialect wanted = BITCONV_DIALECT_AMBIGUOUS;
    if (dialect != NULL && !bitconv_dialect_from_name(dialect, &wanted))
        return bc_fail(err, BITCONV_E_ARG,
                       "unknown dialect '%s': wanted upstream, bitnet, bitnet-rebased or prism",
                       dialect);
    BC_TRY(bitconv_gguf_open(path, &out->gguf, err));
    if (dialect == NULL) return BITCONV_OK;
    const enum bitconv_status status = bitconv_gguf_set_dialect(out->gguf, wanted, err);
    if (status != BITCONV_OK) bc_container_close(out);
    return status;
}

enum bitconv_status bc_container_open(const char *path, const char *dialect,
                                      const struct bitconv_sink *sink, struct bc_container *out,
                                      struct bitconv_error *err)
{
    memset(out, 0, sizeof *out);
    if (bc_path_kind(path) == BC_PATH_DIR) {
        out->kind = BITCONV_CONTAINER_CHECKPOINT;
        return bc_checkpoint_open(path, true, sink, &out->checkpoint, err);
    }
    bool gguf = false;
    BC_TRY(looks_like_gguf(path, &gguf, err));
    if (gguf) {
        out->kind = BITCONV_CONTAINER_GGUF;
        return open_gguf(path, dialect, out, err);
    }
    out->kind = BITCONV_CONTAINER_SAFETENSORS;
    return bitconv_safetensors_open(path, &out->safetensors, err);
}

void bc_container_close(struct bc_container *c)
{
    bitconv_gguf_close(c->gguf);
    bitconv_safetensors_close(c->safetensors);
    bc_checkpoint_close(c->checkpoint);
    memset(c, 0, sizeof *c);
}

size_t bc_container_n_tensors(const struct bc_container *c)
{
    if (c->checkpoint != NULL) return c->checkpoint->n_tensors;
    return c->safetensors != NULL ? bitconv_safetensors_count(c->safetensors) : 0;
}

const struct bitconv_tensor *bc_container_tensor(const struct bc_container *c, size_t index)
{
    if (c->checkpoint != NULL) return c->checkpoint->tensors[index];
    return bitconv_safetensors_at(c->safetensors, index);
}

uint64_t bc_container_size(const struct bc_container *c)
{
    uint64_t size = 0;
    if (c->safetensors != NULL) return bitconv_safetensors_file_size(c->safetensors);
    for (size_t i = 0; c->checkpoint != NULL && i < c->checkpoint->n_shards; i++)
        size += bitconv_safetensors_file_size(c->checkpoint->shards[i]);
    return size;
}

uint64_t bc_container_data_offset(const struct bc_container *c, const char *file)
{
    const struct bitconv_safetensors *found = c->safetensors;
    for (size_t i = 0; c->checkpoint != NULL && i < c->checkpoint->n_shards; i++)
        if (strcmp(c->checkpoint->shard_paths[i], file) == 0) found = c->checkpoint->shards[i];
    return found != NULL ? 8 + bitconv_safetensors_header_size(found) : 0;
}

uint64_t bc_gguf_tensor_bytes(const struct bitconv_gguf_tensor *t)
{
    return t->size != 0 || t->n_elements == 0 ? t->size : t->span;
}

uint32_t bc_tensor_ggml_shape(const struct bitconv_tensor *t, uint64_t ne[BITCONV_GGUF_MAX_DIMS])
{
    const uint32_t n = t->n_dims < BITCONV_GGUF_MAX_DIMS ? t->n_dims : BITCONV_GGUF_MAX_DIMS;
    for (size_t i = 0; i < BITCONV_GGUF_MAX_DIMS; i++)
        ne[i] = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        const uint32_t at = i < n ? i : n - 1;
        ne[at] *= t->shape[t->n_dims - 1 - i]; /* the reader has checked the product */
    }
    return n;
}
