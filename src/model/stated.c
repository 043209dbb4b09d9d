/* SPDX-License-Identifier: MIT
 * Reads bitconv.tensor.name, .pack, .fingerprint, .zeros and .tile (formats/gguf.md). */
#include "model/stated.h"

#include <string.h>

#include "base/bytes.h"

enum { TILE_VALUES = 3 };

struct reader {
    const struct bitconv_gguf *file;
    struct bc_arena *arena;
    struct bc_stated *out;
};

static void complain(struct reader *r, const char *key, const char *what)
{
    if (r->out->problem == NULL)
        r->out->problem = bc_arena_printf(r->arena, "bitconv.tensor.%s %s", key, what);
}

/* The array of that key with `count` elements of type `elem`, or NULL and a complaint. */
static const struct bitconv_gguf_value *array(struct reader *r, const char *key,
                                              enum bitconv_gguf_type elem, uint64_t count)
{
    char name[64];
    strcpy(name, "bitconv.tensor.");
    strncat(name, key, sizeof name - strlen(name) - 1);
    const struct bitconv_gguf_value *v = bitconv_gguf_find_key(r->file, name);
    if (v == NULL)
        complain(r, key, "is missing");
    else if (v->type != BITCONV_GGUF_ARRAY || v->elem != elem)
        complain(r, key, "is of the wrong type");
    else if (v->count != count)
        complain(r, key, "has another length than bitconv.tensor.name");
    else
        return v;
    return NULL;
}

static void read_strings(struct reader *r, const struct bitconv_gguf_value *names,
                         const struct bitconv_gguf_value *packs,
                         const struct bitconv_gguf_value *fingerprints)
{
    uint64_t at_name = 0;
    uint64_t at_pack = 0;
    uint64_t at_fingerprint = 0;
    for (size_t i = 0; i < r->out->n; i++) {
        struct bc_stated_tensor *t = &r->out->tensors[i];
        if (!bitconv_gguf_array_next_string(names, &at_name, &t->name, &t->name_len) ||
            !bitconv_gguf_array_next_string(packs, &at_pack, &t->pack, &t->pack_len) ||
            !bitconv_gguf_array_next_string(fingerprints, &at_fingerprint, &t->fingerprint,
                                            &t->fingerprint_len)) {
            complain(r, "name", "ends early");
            return;
        }
    }
}

static enum bitconv_status index_names(struct reader *r, struct bitconv_error *err)
{
    for (size_t i = 0; i < r->out->n && r->out->problem == NULL; i++) {
        const struct bc_stated_tensor *t = &r->out->tensors[i];
        const enum bc_map_result result =
            bc_map_put(&r->out->by_name, t->name, t->name_len, i, NULL);
        if (result == BC_MAP_NOMEM) return bc_fail_nomem(err, "names of packed tensors");
        if (result == BC_MAP_EXISTS) complain(r, "name", "holds a name twice");
    }
    return BITCONV_OK;
}

enum bitconv_status bc_stated_read(const struct bitconv_gguf *file, struct bc_arena *arena,
                                   struct bc_stated *out, struct bitconv_error *err)
{
    memset(out, 0, sizeof *out);
    struct reader r = {file, arena, out};
    const struct bitconv_gguf_value *names = bitconv_gguf_find_key(file, "bitconv.tensor.name");
    if (names == NULL) return BITCONV_OK;
    out->present = true;
    names = array(&r, "name", BITCONV_GGUF_STRING, names->count);
    const uint64_t n = names != NULL ? names->count : 0;
    const struct bitconv_gguf_value *packs = array(&r, "pack", BITCONV_GGUF_STRING, n);
    const struct bitconv_gguf_value *prints = array(&r, "fingerprint", BITCONV_GGUF_STRING, n);
    const struct bitconv_gguf_value *zeros = array(&r, "zeros", BITCONV_GGUF_FLOAT32, n);
    /* n is bounded by the file's size, so it cannot overflow. */
    const struct bitconv_gguf_value *tiles =
        array(&r, "tile", BITCONV_GGUF_UINT32, n * TILE_VALUES);
    if (names == NULL || packs == NULL || prints == NULL || zeros == NULL || tiles == NULL)
        return out->problem != NULL ? BITCONV_OK : bc_fail_nomem(err, "bitconv.tensor arrays");

    out->tensors = bc_arena_alloc(arena, (size_t)n, sizeof *out->tensors);
    if (out->tensors == NULL && n != 0) return bc_fail_nomem(err, "bitconv.tensor arrays");
    out->n = (size_t)n;
    for (size_t i = 0; i < out->n; i++) {
        out->tensors[i].zeros = bc_get_f32(zeros->data + 4 * i);
        for (size_t j = 0; j < TILE_VALUES; j++)
            out->tensors[i].tile[j] = bc_get_u32(tiles->data + 4 * (TILE_VALUES * i + j));
    }
    read_strings(&r, names, packs, prints);
    BC_TRY(index_names(&r, err));
    if (out->problem != NULL) out->n = 0;
    return BITCONV_OK;
}

enum bitconv_status bc_stated_config(struct bc_stated *stated, const char *path,
                                     const char *i2s_layout, struct bitconv_error *err)
{
    if (i2s_layout != NULL && strcmp(i2s_layout, "64") == 0)
        stated->i2s_pack = "i2_s_64";
    else if (i2s_layout != NULL && strcmp(i2s_layout, "128") != 0)
        return bc_fail(err, BITCONV_E_ARG, "--i2s-layout: '%s' is not known, wanted 128 or 64",
                       i2s_layout);
    return path != NULL ? bc_tilings_load(path, &stated->config, err) : BITCONV_OK;
}

void bc_stated_release(struct bc_stated *stated)
{
    bc_tilings_release(&stated->config);
    bc_map_release(&stated->by_name);
}

const struct bc_stated_tensor *bc_stated_find(const struct bc_stated *stated, const char *name,
                                              size_t name_len)
{
    uint64_t index = 0;
    if (stated->n == 0 || !bc_map_get(&stated->by_name, name, name_len, &index)) return NULL;
    return &stated->tensors[index];
}
