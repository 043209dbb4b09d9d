/* SPDX-License-Identifier: MIT
 * Copies metadata from a GGUF to the header of another. */
#include "repack/repack_keys.h"

#include <string.h>

static bool begins_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

/* Keys that describe the file rather than the model. */
static bool is_about_file(const char *name)
{
    return strcmp(name, "general.alignment") == 0 || begins_with(name, "split.") ||
           begins_with(name, "bitconv.");
}

static void copy_value(const char *name, const struct bitconv_gguf_value *v,
                       struct bitconv_gguf_writer *w)
{
    if (v->type == BITCONV_GGUF_STRING)
        bitconv_gguf_set_string_n(w, name, (const char *)v->data, (size_t)v->size);
    else if (v->type == BITCONV_GGUF_ARRAY)
        bitconv_gguf_set_array(w, name, v->elem, v->count, v->data, (size_t)v->size);
    else
        bitconv_gguf_set_scalar(w, name, v->type, v->data);
}

enum bitconv_status bc_repack_keys(const struct bitconv_gguf *file, uint32_t file_type,
                                   struct bitconv_gguf_writer *w, struct bitconv_error *err)
{
    static const char file_type_key[] = "general.file_type";
    for (size_t i = 0; i < bitconv_gguf_n_keys(file); i++) {
        const struct bitconv_gguf_key *key = bitconv_gguf_key_at(file, i);
        if (strlen(key->name) != key->name_len)
            return bc_fail(err, BITCONV_E_UNSUPPORTED,
                           "%s: key %s: a name with NUL bytes cannot be written again",
                           bitconv_gguf_shard_path(file, 0), key->name);
        if (is_about_file(key->name)) continue;
        if (strcmp(key->name, file_type_key) == 0)
            bitconv_gguf_set_u32(w, file_type_key, file_type);
        else
            copy_value(key->name, &key->value, w);
    }
    bitconv_gguf_set_u32(w, file_type_key, file_type);
    return BITCONV_OK;
}
