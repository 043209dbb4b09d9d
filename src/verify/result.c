/* SPDX-License-Identifier: MIT
 * The table of tensors that the proofs fill in, and the facts that go into a manifest. */
#include "verify/result.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "verify/proofs.h"

enum { WHY_BYTES = 256 };

uint32_t bc_result_shape(const struct bc_verification_data *data, size_t index,
                         uint64_t ne[BITCONV_GGUF_MAX_DIMS])
{
    for (size_t i = 0; i < BITCONV_GGUF_MAX_DIMS; i++)
        ne[i] = 1;
    if (data->container.gguf != NULL) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(data->container.gguf, index);
        memcpy(ne, t->ne, sizeof t->ne);
        return t->n_dims;
    }
    return bc_tensor_ggml_shape(bc_container_tensor(&data->container, index), ne);
}

static void update_u64(struct bc_digest *digest, uint64_t v)
{
    uint8_t bytes[8];
    bc_put_u64(bytes, v);
    bc_digest_update(digest, bytes, sizeof bytes);
}

/* XXH3-128 over keys and values: per key u64 length, name, u32 type, u32 element type, u64 count,
 * u64 size, value bytes. */
static enum bitconv_status digest_metadata(const struct bitconv_gguf *file, struct bc_hash128 *out,
                                           struct bitconv_error *err)
{
    struct bc_digest *digest = bc_digest_new();
    if (digest == NULL) return bc_fail_nomem(err, "a digest");
    for (size_t i = 0; i < bitconv_gguf_n_keys(file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(file, i);
        const struct bitconv_gguf_value *v = &key->value;
        update_u64(digest, key->name_len);
        bc_digest_update(digest, key->name, key->name_len);
        update_u64(digest, (uint64_t)v->type << 32 | (uint64_t)v->elem);
        update_u64(digest, v->count);
        update_u64(digest, v->size);
        bc_digest_update(digest, v->data, (size_t)v->size);
    }
    *out = bc_digest_128(digest);
    bc_digest_free(digest);
    return BITCONV_OK;
}

struct hashing {
    const struct bc_verifier *v;
};

static void hash_tensor(void *context, size_t index, unsigned worker)
{
    const struct hashing *h = context;
    const uint8_t *data;
    uint64_t size;
    (void)worker;
    if (h->v->container.gguf != NULL) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(h->v->container.gguf, index);
        data = t->data;
        size = bc_gguf_tensor_bytes(t);
    } else {
        const struct bitconv_tensor *t = bc_container_tensor(&h->v->container, index);
        data = t->data;
        size = t->size;
    }
    bc_hash128_hex(bc_hash128(data, (size_t)size), h->v->result->tensors[index].xxh3);
}

/* Any key of ours will do: one of them may be damaged. */
static bool has_own_keys(const struct bitconv_gguf *file)
{
    static const char prefix[] = "bitconv.";
    for (size_t i = 0; i < bitconv_gguf_n_keys(file); i++)
        if (strncmp(bitconv_gguf_key_at(file, i)->name, prefix, sizeof prefix - 1) == 0)
            return true;
    return false;
}

/* What the tensor holds: of a payload of bytes, what its header says. */
static void note_shape(const struct bc_verifier *v, size_t index)
{
    struct bitconv_verified_tensor *t = &v->result->tensors[index];
    const struct bc_packed *packed = v->tensors != NULL ? &v->tensors[index].packed : NULL;
    if (packed != NULL && packed->format != NULL) {
        memcpy(t->ne, packed->ne, sizeof t->ne);
        t->n_dims = packed->n_dims;
        t->parameters = packed->shape.n;
        return;
    }
    t->n_dims = bc_result_shape(v->data, index, t->ne);
    t->parameters = 1;
    for (uint32_t d = 0; d < t->n_dims; d++)
        t->parameters *= t->ne[d];
}

static enum bitconv_status list_gguf(struct bc_verifier *v, struct bitconv_error *err)
{
    const struct bitconv_gguf *file = v->container.gguf;
    v->ours = has_own_keys(file);
    v->data->n_keys = bitconv_gguf_n_keys(file);
    v->data->size = bitconv_gguf_file_size(file);
    BC_TRY(digest_metadata(file, &v->data->metadata, err));
    BC_TRY(bc_stated_read(file, &v->data->arena, &v->stated, err));
    BC_TRY(bc_stated_config(&v->stated, v->options->kernel_config, v->options->i2s_layout, err));
    v->tensors = bc_arena_alloc(&v->data->arena, v->result->n_tensors, sizeof *v->tensors);
    if (v->tensors == NULL && v->result->n_tensors != 0)
        return bc_fail_nomem(err, "the table of tensors");
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const struct bitconv_gguf_tensor *t = bitconv_gguf_tensor_at(file, i);
        struct bc_tensor_proof *proof = &v->tensors[i];
        char why[WHY_BYTES] = "";
        if (!bc_packed_open_in(file, t, &v->stated, &proof->packed, why, sizeof why)) {
            proof->misfit = bc_arena_strdup(&v->data->arena, why);
            if (proof->misfit == NULL) return bc_fail_nomem(err, "the table of tensors");
        }
        v->result->tensors[i].name = t->name;
        v->result->tensors[i].type = t->type_name;
        v->result->tensors[i].size = bc_gguf_tensor_bytes(t);
        if (proof->packed.format != NULL) v->result->tensors[i].pack = proof->packed.format->name;
    }
    return BITCONV_OK;
}

static void list_safetensors(struct bc_verifier *v)
{
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        const struct bitconv_tensor *t = bc_container_tensor(&v->container, i);
        v->result->tensors[i].name = t->name;
        v->result->tensors[i].type = bitconv_dtype_name(t->dtype);
        v->result->tensors[i].size = t->size;
    }
    v->data->size = bc_container_size(&v->container);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

enum bitconv_status bc_result_list_tensors(struct bc_verifier *v, struct bitconv_error *err)
{
    struct bitconv_verification *result = v->result;
    v->data->base_name = bc_arena_strdup(&v->data->arena, base_name(v->path));
    result->n_tensors = v->container.gguf != NULL ? bitconv_gguf_n_tensors(v->container.gguf)
                                                  : bc_container_n_tensors(&v->container);
    result->tensors = bc_arena_alloc(&v->data->arena, result->n_tensors, sizeof *result->tensors);
    if (v->data->base_name == NULL || (result->tensors == NULL && result->n_tensors != 0))
        return bc_fail_nomem(err, "the table of tensors");
    for (size_t i = 0; i < result->n_tensors; i++)
        result->tensors[i].ok = true;
    if (v->container.gguf != NULL)
        BC_TRY(list_gguf(v, err));
    else
        list_safetensors(v);
    for (size_t i = 0; i < result->n_tensors; i++)
        note_shape(v, i);
    struct hashing hashing = {v};
    bc_pool_run(v->pool, result->n_tensors, hash_tensor, &hashing);
    return BITCONV_OK;
}
