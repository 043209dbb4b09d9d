/* SPDX-License-Identifier: MIT
 * What a GGUF states about its own packed tensors: the parallel arrays bitconv.tensor.* . */
#ifndef BC_MODEL_STATED_H
#define BC_MODEL_STATED_H

#include "base/map.h"
#include "base/mem.h"
#include "bitconv/gguf.h"
#include "formats/tiling.h"

/* One entry. Strings borrow from the file and are not NUL-terminated. */
struct bc_stated_tensor {
    const char *name, *pack, *fingerprint;
    size_t name_len, pack_len, fingerprint_len;
    float zeros;
    uint32_t tile[3];
};

struct bc_stated {
    bool present;        /* the file has bitconv.tensor.name */
    const char *problem; /* why the arrays cannot be used, or NULL; then n is 0 */
    struct bc_stated_tensor *tensors;
    size_t n;
    struct bc_map by_name;
    /* Tiles of tensors for which the file states none: what the user says (--kernel-config); may be
     * empty. */
    struct bc_tilings config;
    /* Likewise the pack of I2_S tensors (--i2s-layout): "i2_s_64", or NULL for the usual one. */
    const char *i2s_pack;
};

/* Reads the arrays. A file without them gives an empty result; arrays of different lengths, of
 * wrong types or with a name twice set `problem`. Memory is proportional to the arrays. */
enum bitconv_status bc_stated_read(const struct bitconv_gguf *file, struct bc_arena *arena,
                                   struct bc_stated *out, struct bitconv_error *err);
/* Behind bc_stated_read: what the user says where the file does not. Loads the kernel configuration
 * at `path` (NULL: none); i2s_layout is "128", "64" or NULL. */
enum bitconv_status bc_stated_config(struct bc_stated *stated, const char *path,
                                     const char *i2s_layout, struct bitconv_error *err);
void bc_stated_release(struct bc_stated *stated);
/* NULL when the file states nothing about it. */
const struct bc_stated_tensor *bc_stated_find(const struct bc_stated *stated, const char *name,
                                              size_t name_len);

#endif
