/* SPDX-License-Identifier: MIT
 * Strict JSON on top of cJSON: parsing after the check, and reading the tree. */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json_check.h"
#include "base/text.h"

_Static_assert(BC_JSON_MAX_DEPTH < CJSON_NESTING_LIMIT, "what the checker accepts, cJSON must too");

/* struct bc_json has no definition: a pointer to it is a pointer to a cJSON item. */
static const cJSON *item_of(const struct bc_json *node)
{
    return (const cJSON *)node;
}

static const struct bc_json *node_of(const cJSON *item)
{
    return (const struct bc_json *)item;
}

enum bitconv_status bc_json_parse(const char *text, size_t size, const char *where,
                                  struct bc_json **out, struct bitconv_error *err)
{
    *out = NULL;
    BC_TRY(bc_json_check(text, size, where, err));
    /* The check has accepted the text, so a lack of memory is the one reason left for NULL. */
    cJSON *const root = cJSON_ParseWithLengthOpts(text, size, NULL, 0);
    if (root == NULL)
        return bc_fail(err, BITCONV_E_NOMEM, "%s: out of memory (JSON tree of %zu bytes of text)",
                       where, size);
    *out = (struct bc_json *)root;
    return BITCONV_OK;
}

/* Parses the content of a file. A text that cannot even start a JSON object or array is named for
 * what it is when it is something known. */
static enum bitconv_status parse_content(const char *path, const uint8_t *data, uint64_t size,
                                         struct bc_json **out, struct bitconv_error *err)
{
    /* A byte order mark is the parser's to refuse. */
    size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < size && memchr(" \t\r\n", data[i], 4) != NULL)
        i++;
    if (i == size || (data[i] != '{' && data[i] != '[')) {
        char buf[160];
        const char *const guess = bc_file_guess(data, size, buf, sizeof buf);
        if (guess != NULL)
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: JSON was expected, but the file is %s",
                           path, guess);
    }
    return bc_json_parse((const char *)data, (size_t)size, path, out, err);
}

enum bitconv_status bc_json_load(const char *path, struct bc_json **out, struct bitconv_error *err)
{
    *out = NULL;
    struct bc_file file;
    BC_TRY(bc_file_open(path, &file, err));
    enum bitconv_status status;
    if (bc_text_is_gzip(file.data, file.size)) {
        struct bc_buf text = {NULL, 0, 0, false};
        status = bc_text_inflate(&file, &text, err);
        if (status == BITCONV_OK)
            status = parse_content(path, (const uint8_t *)bc_buf_str(&text), text.size, out, err);
        bc_buf_release(&text);
    } else {
        status = parse_content(path, file.data, file.size, out, err);
    }
    bc_file_close(&file);
    return status;
}

void bc_json_free(struct bc_json *root)
{
    cJSON_Delete((cJSON *)root);
}

enum bc_json_type bc_json_type(const struct bc_json *node)
{
    const cJSON *const item = item_of(node);
    if (cJSON_IsBool(item)) return BC_JSON_BOOL;
    if (cJSON_IsNumber(item)) return BC_JSON_NUMBER;
    if (cJSON_IsString(item)) return BC_JSON_STRING;
    if (cJSON_IsArray(item)) return BC_JSON_ARRAY;
    if (cJSON_IsObject(item)) return BC_JSON_OBJECT;
    return BC_JSON_NULL;
}

bool bc_json_is(const struct bc_json *node, enum bc_json_type type)
{
    return node != NULL && bc_json_type(node) == type;
}

const struct bc_json *bc_json_get(const struct bc_json *object, const char *key)
{
    if (!bc_json_is(object, BC_JSON_OBJECT)) return NULL;
    return node_of(cJSON_GetObjectItemCaseSensitive(item_of(object), key));
}

/* Member by a key of given length. */
static const struct bc_json *get_n(const struct bc_json *object, const char *key, size_t len)
{
    if (!bc_json_is(object, BC_JSON_OBJECT)) return NULL;
    const struct bc_json *node = bc_json_first(object);
    for (; node != NULL; node = bc_json_next(node)) {
        const char *const name = bc_json_key(node);
        if (strncmp(name, key, len) == 0 && name[len] == '\0') return node;
    }
    return NULL;
}

const struct bc_json *bc_json_path(const struct bc_json *root, const char *path)
{
    const struct bc_json *node = root;
    for (;;) {
        const size_t len = strcspn(path, ".");
        node = get_n(node, path, len);
        if (node == NULL || path[len] == '\0') return node;
        path += len + 1;
    }
}

const struct bc_json *bc_json_first(const struct bc_json *parent)
{
    return parent != NULL ? node_of(item_of(parent)->child) : NULL;
}

const struct bc_json *bc_json_next(const struct bc_json *node)
{
    return node != NULL ? node_of(item_of(node)->next) : NULL;
}

size_t bc_json_size(const struct bc_json *parent)
{
    size_t n = 0;
    for (const struct bc_json *node = bc_json_first(parent); node != NULL;
         node = bc_json_next(node))
        n++;
    return n;
}

const char *bc_json_key(const struct bc_json *node)
{
    return node != NULL ? item_of(node)->string : NULL;
}

const char *bc_json_string(const struct bc_json *node)
{
    return bc_json_is(node, BC_JSON_STRING) ? item_of(node)->valuestring : NULL;
}

bool bc_json_i64(const struct bc_json *node, int64_t *out)
{
    double v;
    if (!bc_json_f64(node, &v)) return false;
    /* 2^53 itself is out: the text may have said 2^53 + 1. */
    if (fabs(v) >= 9007199254740992.0 || floor(v) != v) return false;
    *out = (int64_t)v;
    return true;
}

bool bc_json_u64(const struct bc_json *node, uint64_t *out)
{
    int64_t v;
    if (!bc_json_i64(node, &v) || v < 0) return false;
    *out = (uint64_t)v;
    return true;
}

bool bc_json_f64(const struct bc_json *node, double *out)
{
    if (!bc_json_is(node, BC_JSON_NUMBER) || !isfinite(item_of(node)->valuedouble)) return false;
    *out = item_of(node)->valuedouble;
    return true;
}

bool bc_json_bool(const struct bc_json *node, bool *out)
{
    if (!bc_json_is(node, BC_JSON_BOOL)) return false;
    *out = cJSON_IsTrue(item_of(node)) != 0;
    return true;
}
