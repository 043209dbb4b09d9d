/* SPDX-License-Identifier: MIT
 * Manifests: what a file held when it was known to be good, written as JSON and compared later.
 *
 * {"bitconv_manifest": 1, "file", "size", "metadata": {"keys", "xxh3"}, "fingerprint",
 *  "tensors": [{"name", "type", "shape", "xxh3", "fingerprint"}]}; shape in ggml order. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "verify/proofs.h"

#define MANIFEST_KEY "bitconv_manifest"
enum { MANIFEST_VERSION = 1 };

/* ---- writing ---- */

static void write_tensor(struct bc_jw *w, const struct bitconv_verification *v, size_t index)
{
    const struct bitconv_verified_tensor *t = &v->tensors[index];
    uint64_t ne[BITCONV_GGUF_MAX_DIMS];
    const uint32_t n_dims = bc_result_shape(v->internal, index, ne);
    bc_jw_begin_object(w);
    bc_jw_key(w, "name");
    bc_jw_string(w, t->name);
    bc_jw_key(w, "type");
    bc_jw_string(w, t->type);
    bc_jw_key_u64s(w, "shape", ne, n_dims);
    bc_jw_key(w, "xxh3");
    bc_jw_string(w, t->xxh3);
    bc_jw_key(w, "fingerprint");
    bc_jw_string(w, t->fingerprint[0] != '\0' ? t->fingerprint : NULL);
    bc_jw_end_object(w);
}

static void write_manifest(struct bc_jw *w, const struct bitconv_verification *v)
{
    const struct bc_verification_data *data = v->internal;
    char hex[33];
    bc_hash128_hex(data->metadata, hex);
    bc_jw_begin_object(w);
    bc_jw_key(w, MANIFEST_KEY);
    bc_jw_u64(w, MANIFEST_VERSION);
    bc_jw_key(w, "file");
    bc_jw_string(w, data->base_name);
    bc_jw_key(w, "size");
    bc_jw_u64(w, data->size);
    bc_jw_key(w, "metadata");
    bc_jw_begin_object(w);
    bc_jw_key(w, "keys");
    bc_jw_u64(w, data->n_keys);
    bc_jw_key(w, "xxh3");
    bc_jw_string(w, hex);
    bc_jw_end_object(w);
    bc_jw_key(w, "fingerprint");
    bc_jw_string(w, v->fingerprint[0] != '\0' ? v->fingerprint : NULL);
    bc_jw_key(w, "tensors");
    bc_jw_begin_array(w);
    for (size_t i = 0; i < v->n_tensors; i++)
        write_tensor(w, v, i);
    bc_jw_end_array(w);
    bc_jw_end_object(w);
}

/* Of what --force may replace: an earlier manifest, or nothing yet. */
static bool is_replaceable(const char *path)
{
    struct bc_file file;
    struct bitconv_error quiet = {0};
    struct bc_json *root = NULL;
    if (bc_file_open(path, &file, &quiet) != BITCONV_OK) return false;
    bool yes = file.size == 0;
    if (!yes && bc_json_parse((const char *)file.data, (size_t)file.size, path, &root, &quiet) ==
                    BITCONV_OK)
        yes = bc_json_get(root, MANIFEST_KEY) != NULL;
    bc_json_free(root);
    bc_file_close(&file);
    return yes;
}

enum bitconv_status bitconv_manifest_check_target(const char *path, bool force,
                                                  struct bitconv_error *err)
{
    const struct bc_out_options options = {.force = force};
    BC_TRY(bc_out_probe(path, &options, err));
    if (bc_path_kind(path) == BC_PATH_FILE && !is_replaceable(path))
        return bc_fail(err, BITCONV_E_ARG,
                       "%s: exists and is no manifest of bitconv, so --force does not replace it: "
                       "give the manifest another name",
                       path);
    return BITCONV_OK;
}

enum bitconv_status bitconv_manifest_write(const struct bitconv_verification *v, const char *path,
                                           bool force, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    struct bc_jw w = {.buf = &text, .first = true};
    BC_TRY(bitconv_manifest_check_target(path, force, err));
    write_manifest(&w, v);
    bc_buf_putc(&text, '\n');
    const enum bitconv_status status = text.failed
                                           ? bc_fail_nomem(err, "the manifest")
                                           : bc_file_write(path, text.data, text.size, force, err);
    bc_buf_release(&text);
    return status;
}

/* ---- comparing ---- */

struct comparison {
    struct bc_verifier *v;
    struct bitconv_proof *proof;
    const char *path;
    bool *seen; /* by tensor of the file */
};

static bool is_text(const struct bc_json *node, const char *wanted)
{
    const char *text = bc_json_string(node);
    return wanted[0] == '\0' ? text == NULL : text != NULL && strcmp(text, wanted) == 0;
}

static bool is_shape(const struct bc_json *node, const uint64_t *ne, uint32_t n_dims)
{
    uint32_t i = 0;
    for (const struct bc_json *d = bc_json_first(node); d != NULL; d = bc_json_next(d), i++) {
        uint64_t dim = 0;
        if (i == n_dims || !bc_json_u64(d, &dim) || dim != ne[i]) return false;
    }
    return i == n_dims;
}

static void compare_tensor(struct comparison *c, const struct bc_json *entry, const char *name,
                           size_t index)
{
    const struct bitconv_verified_tensor *t = &c->v->result->tensors[index];
    uint64_t ne[BITCONV_GGUF_MAX_DIMS];
    const uint32_t n_dims = bc_result_shape(c->v->data, index, ne);
    const char *what = NULL;
    if (!is_text(bc_json_get(entry, "type"), t->type))
        what = "type";
    else if (!is_shape(bc_json_get(entry, "shape"), ne, n_dims))
        what = "shape";
    else if (!is_text(bc_json_get(entry, "fingerprint"), t->fingerprint))
        what = "fingerprint";
    else if (!is_text(bc_json_get(entry, "xxh3"), t->xxh3))
        what = "digest of its bytes";
    if (what != NULL)
        bc_problem(c->v, c->proof, index, "%s: its %s is not that of the manifest %s", name, what,
                   c->path);
}

/* Every tensor of the manifest must be in the file, and the other way round. */
static enum bitconv_status compare_tensors(struct comparison *c, const struct bc_json *tensors,
                                           struct bc_map *by_name, struct bitconv_error *err)
{
    const struct bitconv_verification *result = c->v->result;
    for (size_t i = 0; i < result->n_tensors; i++) {
        const char *name = result->tensors[i].name;
        if (bc_map_put(by_name, name, strlen(name), i, NULL) == BC_MAP_NOMEM)
            return bc_fail_nomem(err, "names of tensors");
    }
    for (const struct bc_json *e = bc_json_first(tensors); e != NULL; e = bc_json_next(e)) {
        const char *name = bc_json_string(bc_json_get(e, "name"));
        uint64_t index = 0;
        if (name == NULL)
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: a tensor without a name", c->path);
        if (!bc_map_get(by_name, name, strlen(name), &index)) {
            bc_problem(c->v, c->proof, BC_NO_TENSOR, "%s: in the manifest %s, not in the file",
                       name, c->path);
            continue;
        }
        if (c->seen[index])
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: tensor %s occurs twice", c->path, name);
        c->seen[index] = true;
        compare_tensor(c, e, name, (size_t)index);
    }
    for (size_t i = 0; i < result->n_tensors; i++)
        if (!c->seen[i])
            bc_problem(c->v, c->proof, i, "%s: in the file, not in the manifest %s",
                       result->tensors[i].name, c->path);
    return BITCONV_OK;
}

static void compare_file(struct comparison *c, const struct bc_json *root)
{
    const struct bc_verification_data *data = c->v->data;
    char hex[33];
    uint64_t size = 0;
    uint64_t n_keys = 0;
    bc_hash128_hex(data->metadata, hex);
    if (!bc_json_u64(bc_json_get(root, "size"), &size) || size != data->size)
        bc_problem(c->v, c->proof, BC_NO_TENSOR,
                   "%s: %" PRIu64 " bytes, the manifest %s says %" PRIu64, c->v->path, data->size,
                   c->path, size);
    if (!bc_json_u64(bc_json_path(root, "metadata.keys"), &n_keys) || n_keys != data->n_keys ||
        !is_text(bc_json_path(root, "metadata.xxh3"), hex))
        bc_problem(c->v, c->proof, BC_NO_TENSOR,
                   "%s: the metadata (%" PRIu64
                   " keys, digest %s) are not those of the manifest %s",
                   c->v->path, data->n_keys, hex, c->path);
    if (!is_text(bc_json_get(root, "fingerprint"), c->v->result->fingerprint))
        bc_problem(c->v, c->proof, BC_NO_TENSOR,
                   "%s: the model's fingerprint '%s' is not that of the manifest %s", c->v->path,
                   c->v->result->fingerprint, c->path);
    /* A renamed file is the same file. */
    if (!is_text(bc_json_get(root, "file"), data->base_name))
        bc_say(c->v->sink, BITCONV_NOTE, "the manifest %s was written for a file of another name",
               c->path);
}

static enum bitconv_status compare(struct comparison *c, const struct bc_json *root,
                                   struct bitconv_error *err)
{
    uint64_t version = 0;
    struct bc_map by_name = {0};
    if (!bc_json_u64(bc_json_get(root, MANIFEST_KEY), &version) || version != MANIFEST_VERSION ||
        !bc_json_is(bc_json_get(root, "tensors"), BC_JSON_ARRAY))
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: no manifest of bitconv (version %d): wanted \"" MANIFEST_KEY
                       "\" and \"tensors\"",
                       c->path, MANIFEST_VERSION);
    compare_file(c, root);
    const enum bitconv_status status =
        compare_tensors(c, bc_json_get(root, "tensors"), &by_name, err);
    bc_map_release(&by_name);
    return status;
}

enum bitconv_status bc_prove_manifest(struct bc_verifier *v, struct bitconv_proof *proof,
                                      struct bitconv_error *err)
{
    struct comparison c = {v, proof, v->options->against, NULL};
    struct bc_json *root = NULL;
    if (c.path == NULL) {
        bc_not_run(v, proof, "no --against MANIFEST given");
        return BITCONV_OK;
    }
    BC_TRY(bc_json_load(c.path, &root, err));
    c.seen = bc_alloc_array(v->result->n_tensors, sizeof *c.seen);
    const enum bitconv_status status =
        c.seen != NULL ? compare(&c, root, err) : bc_fail_nomem(err, "names of tensors");
    bc_free(c.seen);
    bc_json_free(root);
    proof->checked = v->result->n_tensors;
    bc_conclude(v, proof, "size, metadata and %zu tensors as in %s", v->result->n_tensors, c.path);
    return status;
}
