/* SPDX-License-Identifier: MIT
 * Prompts, and the tokens that end a text. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "bitconv/generate.h"

static enum bitconv_status add_id(struct bitconv_ids *ids, uint64_t id, struct bitconv_error *err)
{
    if (id > UINT32_MAX) return BITCONV_OK; /* no id: it cannot come up */
    for (size_t i = 0; i < ids->n; i++)
        if (ids->ids[i] == id) return BITCONV_OK;
    if (!bc_grow((void **)&ids->ids, &ids->cap, ids->n, sizeof *ids->ids))
        return bc_fail_nomem(err, "token ids");
    ids->ids[ids->n++] = (uint32_t)id;
    return BITCONV_OK;
}

/* ---- a GGUF ---- */

static enum bitconv_status add_key(const struct bitconv_gguf *file, const char *name,
                                   struct bitconv_ids *ids, struct bitconv_error *err)
{
    const struct bitconv_gguf_value *const value = bitconv_gguf_find_key(file, name);
    struct bitconv_gguf_value item;
    uint64_t id;
    if (bitconv_gguf_value_u64(value, &id)) return add_id(ids, id, err);
    for (uint64_t i = 0; value != NULL && bitconv_gguf_array_at(value, i, &item); i++)
        if (bitconv_gguf_value_u64(&item, &id)) BC_TRY(add_id(ids, id, err));
    return BITCONV_OK;
}

static enum bitconv_status stops_of_file(const char *path, struct bitconv_ids *ids,
                                         struct bitconv_error *err)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id",
                                       "tokenizer.ggml.eog_token_ids"};
    struct bitconv_gguf *file = NULL;
    BC_TRY(bitconv_gguf_open(path, &file, err));
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && status == BITCONV_OK; i++)
        status = add_key(file, keys[i], ids, err);
    bitconv_gguf_close(file);
    return status;
}

/* ---- a folder ---- */

/* eos_token_id is a number or a list. */
static enum bitconv_status add_json(const struct bc_json *node, struct bitconv_ids *ids,
                                    struct bitconv_error *err)
{
    uint64_t id;
    if (bc_json_u64(node, &id)) return add_id(ids, id, err);
    if (bc_json_type(node) != BC_JSON_ARRAY) return BITCONV_OK;
    for (const struct bc_json *item = bc_json_first(node); item != NULL; item = bc_json_next(item))
        if (bc_json_u64(item, &id)) BC_TRY(add_id(ids, id, err));
    return BITCONV_OK;
}

static enum bitconv_status stops_of_folder(const char *path, struct bitconv_ids *ids,
                                           struct bitconv_error *err)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == BITCONV_OK; i++) {
        struct bc_json *json = NULL;
        char *file = bc_path_join(path, names[i]);
        if (file == NULL) return bc_fail_nomem(err, "a path");
        if (bc_path_kind(file) == BC_PATH_FILE) status = bc_json_load(file, &json, err);
        if (status == BITCONV_OK) status = add_json(bc_json_get(json, "eos_token_id"), ids, err);
        bc_json_free(json);
        bc_free(file);
    }
    return status;
}

enum bitconv_status bitconv_stop_ids(const char *path, const struct bitconv_tokenizer *tok,
                                     struct bitconv_ids *ids, struct bitconv_error *err)
{
    struct bitconv_tokenizer_info info;
    bitconv_tokenizer_info(tok, &info);
    if (info.eos >= 0) BC_TRY(add_id(ids, (uint64_t)info.eos, err));
    return bc_path_kind(path) == BC_PATH_DIR ? stops_of_folder(path, ids, err)
                                             : stops_of_file(path, ids, err);
}

/* ---- prompts ---- */

/* How many ids of `whole` end with `bare`, the ids of the text itself; all when they are not there. */
static size_t end_of_text(const uint32_t *whole, size_t n_whole, const struct bitconv_ids *bare)
{
    for (size_t front = 0; bare->n > 0 && front + bare->n <= n_whole; front++)
        if (memcmp(whole + front, bare->ids, bare->n * sizeof *bare->ids) == 0)
            return front + bare->n;
    return n_whole;
}

enum bitconv_status bitconv_prompt_encode(const struct bitconv_tokenizer *tok, const char *text,
                                          size_t len, struct bitconv_ids *ids,
                                          struct bitconv_error *err)
{
    struct bitconv_ids bare = {0};
    struct bitconv_tokenizer_info info;
    const size_t start = ids->n;
    bitconv_tokenizer_info(tok, &info);
    enum bitconv_status status = bitconv_tokenizer_encode(tok, text, len, true, ids, err);
    if (status == BITCONV_OK) status = bitconv_tokenizer_encode(tok, text, len, false, &bare, err);
    if (status == BITCONV_OK && bare.n > 0)
        ids->n = start + end_of_text(ids->ids + start, ids->n - start, &bare);
    else if (status == BITCONV_OK && ids->n > start) /* no text: bos at most */
        ids->n = start + (ids->ids[start] == info.bos ? 1 : 0);
    bitconv_ids_release(&bare);
    return status;
}
