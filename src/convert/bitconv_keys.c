/* SPDX-License-Identifier: MIT
 * Writes bitconv.* metadata. */
#include "convert/bitconv_keys.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "bitconv/bitconv.h"
#include "formats/fingerprint.h"

/* The parallel arrays under construction, one entry per packed tensor. */
struct arrays {
    struct bc_buf name, pack, fingerprint, zeros, tile;
    uint64_t n;
};

static void put_string(struct bc_buf *buf, const char *s)
{
    const size_t len = strlen(s);
    bc_buf_u64(buf, len);
    bc_buf_append(buf, s, len);
}

static void add_tensor(struct arrays *a, const struct bc_plan_tensor *t)
{
    char hex[33] = "";
    if (bc_plan_has_fingerprint(t)) bc_hash128_hex(t->fingerprint, hex);
    put_string(&a->name, t->weight->name);
    put_string(&a->pack, t->type.pack->name);
    put_string(&a->fingerprint, hex);
    bc_buf_f32(&a->zeros, (float)bc_plan_zeros(t));
    for (size_t i = 0; i < 3; i++)
        bc_buf_u32(&a->tile, t->shape.tile[i]);
    a->n++;
}

static void set_array(struct bitconv_gguf_writer *w, const char *key, enum bitconv_gguf_type type,
                      uint64_t n, const struct bc_buf *payload)
{
    bitconv_gguf_set_array(w, key, type, n, payload->data, payload->size);
}

static enum bitconv_status set_arrays(const struct arrays *a, struct bitconv_gguf_writer *w,
                                      struct bitconv_error *err)
{
    if (a->name.failed || a->pack.failed || a->fingerprint.failed || a->zeros.failed ||
        a->tile.failed)
        return bc_fail_nomem(err, "metadata of packed tensors");
    set_array(w, "bitconv.tensor.name", BITCONV_GGUF_STRING, a->n, &a->name);
    set_array(w, "bitconv.tensor.pack", BITCONV_GGUF_STRING, a->n, &a->pack);
    set_array(w, "bitconv.tensor.fingerprint", BITCONV_GGUF_STRING, a->n, &a->fingerprint);
    set_array(w, "bitconv.tensor.zeros", BITCONV_GGUF_FLOAT32, a->n, &a->zeros);
    set_array(w, "bitconv.tensor.tile", BITCONV_GGUF_UINT32, 3 * a->n, &a->tile);
    return BITCONV_OK;
}

enum bitconv_status bc_plan_fingerprint(const struct bc_plan *plan, char out[33],
                                        struct bitconv_error *err)
{
    struct bc_named_hash *named = bc_alloc_array(plan->n_tensors, sizeof *named);
    struct bc_hash128 hash;
    size_t n = 0;
    bool complete = true;
    out[0] = '\0';
    if (named == NULL) return bc_fail_nomem(err, "fingerprint of the model");
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct bc_plan_tensor *t = &plan->tensors[i];
        if (t->type.pack == NULL) continue;
        complete = complete && bc_plan_has_fingerprint(t);
        named[n++] = (struct bc_named_hash){t->weight->name, t->fingerprint};
    }
    enum bitconv_status status = BITCONV_OK;
    if (n > 0 && complete) {
        status = bc_fingerprint_model(named, n, &hash, err);
        if (status == BITCONV_OK) bc_hash128_hex(hash, out);
    }
    bc_free(named);
    return status;
}

/* Folder names are any bytes, GGUF strings UTF-8: other bytes are written as \xNN. */
static void set_source(struct bitconv_gguf_writer *w, const char *source)
{
    struct bc_buf text = {0};
    if (!bc_utf8_valid(source, strlen(source))) {
        bc_utf8_mask(&text, source, strlen(source), 0);
        source = bc_buf_str(&text);
    }
    bitconv_gguf_set_string(w, "bitconv.source", source);
    bc_buf_release(&text);
}

enum bitconv_status bc_bitconv_keys(const struct bc_plan *plan, const char *source,
                                    struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    struct arrays a = {.n = 0};
    char fingerprint[33];
    bitconv_gguf_set_string(w, "bitconv.version", bitconv_version());
    set_source(w, source);
    BC_TRY(bc_plan_fingerprint(plan, fingerprint, err));
    for (size_t i = 0; i < plan->n_tensors; i++)
        if (plan->tensors[i].type.pack != NULL) add_tensor(&a, &plan->tensors[i]);
    if (a.n == 0) return BITCONV_OK;
    if (fingerprint[0] != '\0') bitconv_gguf_set_string(w, "bitconv.fingerprint", fingerprint);
    const enum bitconv_status status = set_arrays(&a, w, err);
    bc_buf_release(&a.name);
    bc_buf_release(&a.pack);
    bc_buf_release(&a.fingerprint);
    bc_buf_release(&a.zeros);
    bc_buf_release(&a.tile);
    return status;
}
