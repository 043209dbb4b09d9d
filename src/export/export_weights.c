/* SPDX-License-Identifier: MIT
 * Deals the tensors to files and writes these (safetensors, formats/safetensors.md). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "export/export_folder.h"
#include "export/export_values.h"
#include "io/safetensors_write.h"

#define DEFAULT_SHARD_SIZE (UINT64_C(5) << 30)
#define MAX_SHARDS         99999 /* what the names have digits for */

/* ---- which file ---- */

static int by_key(const void *a, const void *b)
{
    const struct bc_export_tensor *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order != 0) return order;
    return strcmp(x->name, y->name);
}

/* In a file: the widest elements first, so that all are aligned; then by name. */
static int by_place(const void *a, const void *b)
{
    const struct bc_export_tensor *x = a, *y = b;
    const size_t wx = bitconv_dtype_size(x->dtype), wy = bitconv_dtype_size(y->dtype);
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    if (wx != wy) return wx > wy ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* convert meets the tensors file by file, by name within each. So the order of a GGUF that came from
 * several files shows where these began: where names stop ascending. Orders of other kinds (layer by
 * layer, as other programs write) would take a file for every few tensors; they are not kept. */
static bool order_is_kept(const struct bc_exporter *e)
{
    enum { TENSORS_A_FILE = 8 };
    size_t descents = 0;
    for (size_t i = 1; i < e->n_tensors; i++)
        descents += strcmp(e->tensors[i].key, e->tensors[i - 1].key) < 0;
    return descents <= e->n_tensors / TENSORS_A_FILE;
}

enum bitconv_status bc_export_deal(struct bc_exporter *e, struct bitconv_error *err)
{
    const uint64_t limit =
        e->options->max_shard_size != 0 ? e->options->max_shard_size : DEFAULT_SHARD_SIZE;
    if (!order_is_kept(e)) qsort(e->tensors, e->n_tensors, sizeof *e->tensors, by_key);
    uint64_t filled = 0;
    for (size_t i = 0, end; i < e->n_tensors; i = end) {
        /* what has one key stays together: a weight and its scale, the experts of a layer */
        uint64_t size = 0;
        for (end = i; end < e->n_tensors && strcmp(e->tensors[end].key, e->tensors[i].key) == 0;
             end++)
            size += e->tensors[end].size;
        const bool descends = i > 0 && strcmp(e->tensors[i].key, e->tensors[i - 1].key) < 0;
        if (i > 0 && (descends || size > limit || filled > limit - size)) {
            e->n_shards++;
            filled = 0;
        }
        filled += size;
        for (size_t j = i; j < end; j++)
            e->tensors[j].shard = e->n_shards;
    }
    e->n_shards++;
    if (e->n_shards > MAX_SHARDS)
        return bc_fail(err, BITCONV_E_LIMIT,
                       "--max-shard-size: %u files would be needed, at most %d",
                       (unsigned)e->n_shards, MAX_SHARDS);
    qsort(e->tensors, e->n_tensors, sizeof *e->tensors, by_place);
    for (size_t i = 1; i < e->n_tensors; i++)
        if (e->tensors[i].shard == e->tensors[i - 1].shard &&
            strcmp(e->tensors[i].name, e->tensors[i - 1].name) == 0)
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: two tensors would become %s", e->path,
                           e->tensors[i].name);
    return BITCONV_OK;
}

/* ---- writing ---- */

static enum bitconv_status make_header(const struct bc_export_tensor *tensors, size_t n,
                                       struct bc_buf *out, struct bitconv_error *err)
{
    struct bc_safetensors_header header = bc_safetensors_header_begin(out);
    for (size_t i = 0; i < n; i++)
        bc_safetensors_header_add(&header, tensors[i].name, tensors[i].dtype, tensors[i].shape,
                                  tensors[i].n_dims, tensors[i].size);
    bc_safetensors_header_end(&header);
    return out->failed ? bc_fail_nomem(err, "header of a safetensors file") : BITCONV_OK;
}

/* A file being written. */
struct writing {
    const struct bc_exporter *e;
    struct bc_out *out;
    uint64_t done, total; /* over all files */
};

static enum bitconv_status write_bytes(void *user, const uint8_t *bytes, size_t n,
                                       struct bitconv_error *err)
{
    struct writing *w = user;
    if (bc_canceled(w->e->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
    w->done += n;
    bc_progress(w->e->sink, "writing", w->done, w->total);
    return bc_out_write(w->out, bytes, n, err);
}

static enum bitconv_status write_tensors(struct writing *w, struct bc_export_tensor *tensors,
                                         size_t n, struct bitconv_error *err)
{
    struct bc_export_scratch scratch = {.whole = NULL};
    enum bitconv_status status = BITCONV_OK;
    for (size_t i = 0; i < n && status == BITCONV_OK; i++)
        status = bc_export_produce(w->e, &tensors[i], &scratch, write_bytes, w, err);
    bc_export_scratch_release(&scratch);
    return status;
}

static enum bitconv_status write_file(struct writing *w, const char *path,
                                      struct bc_export_tensor *tensors, size_t n,
                                      struct bitconv_error *err)
{
    struct bc_buf header = {0};
    struct bc_out_options options = {.force = false};
    enum bitconv_status status = make_header(tensors, n, &header, err);
    w->out = NULL;
    options.size = header.size;
    for (size_t i = 0; i < n; i++)
        options.size += tensors[i].size;
    if (status == BITCONV_OK) status = bc_out_open(path, &options, &w->out, err);
    if (status == BITCONV_OK) status = bc_out_write(w->out, header.data, header.size, err);
    bc_buf_release(&header);
    if (status == BITCONV_OK) status = write_tensors(w, tensors, n, err);
    if (status == BITCONV_OK) return bc_out_commit(w->out, err);
    bc_out_abort(w->out);
    return status;
}

static enum bitconv_status write_index(const struct bc_exporter *e, struct bc_export_folder *folder,
                                       uint64_t total, struct bitconv_error *err)
{
    struct bc_buf text = {0};
    struct bc_safetensors_index index = bc_safetensors_index_begin(&text, total, e->n_shards);
    for (size_t i = 0; i < e->n_tensors; i++)
        bc_safetensors_index_add(&index, e->tensors[i].name, e->tensors[i].shard);
    bc_safetensors_index_end(&index);
    const enum bitconv_status status = bc_export_put(folder, BC_SAFETENSORS_INDEX, &text, err);
    bc_buf_release(&text);
    return status;
}

/* What rounding did, by tensor. */
static void report_inexact(const struct bc_exporter *e)
{
    for (size_t i = 0; i < e->n_tensors; i++) {
        const struct bc_export_tensor *t = &e->tensors[i];
        if (t->n_inexact == 0) continue;
        if (t->form == BC_EXPORT_MINUS_ONE)
            bc_say(e->sink, BITCONV_WARNING,
                   "%s: %" PRIu64 " values are no sum of 1 and a float32; the nearest is written",
                   t->source->name, t->n_inexact);
        else
            bc_say(e->sink, BITCONV_NOTE, "%s: %" PRIu64 " values are rounded to %s",
                   t->source->name, t->n_inexact, bitconv_dtype_name(t->dtype));
    }
}

enum bitconv_status bc_export_weights(struct bc_exporter *e, struct bc_export_folder *folder,
                                      struct bitconv_error *err)
{
    struct writing w = {.e = e};
    for (size_t i = 0; i < e->n_tensors; i++)
        w.total += e->tensors[i].size;
    for (size_t i = 0, end; i < e->n_tensors; i = end) {
        char name[BC_SAFETENSORS_NAME];
        for (end = i; end < e->n_tensors && e->tensors[end].shard == e->tensors[i].shard;)
            end++;
        bc_safetensors_shard_name(e->tensors[i].shard, e->n_shards, name);
        char *path = bc_export_folder_add(folder, name);
        if (path == NULL) return bc_fail_nomem(err, "path");
        const enum bitconv_status status = write_file(&w, path, e->tensors + i, end - i, err);
        bc_free(path);
        BC_TRY(status);
    }
    report_inexact(e);
    return e->n_shards > 1 ? write_index(e, folder, w.total, err) : BITCONV_OK;
}
