/* SPDX-License-Identifier: MIT
 * The public face of the GGUF reader: open, close, look things up. */
#include "io/gguf_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_BYTES = 80 };

struct bc_gguf_label bc_gguf_label(const char *name, size_t len)
{
    struct bc_gguf_label l;
    const char *nul = memchr(name, '\0', len);
    const bool cut = nul == NULL && len > LABEL_BYTES;
    size_t n = nul != NULL ? (size_t)(nul - name) : len;
    if (n > LABEL_BYTES) n = LABEL_BYTES;
    /* not through the middle of a UTF-8 sequence */
    for (int back = 0; cut && back < 3 && ((unsigned char)name[n] & 0xc0u) == 0x80u; back++)
        n--;
    memcpy(l.text, name, n);
    memcpy(l.text + n, "...", 4);
    if (!cut) l.text[n] = '\0';
    return l;
}

struct bc_gguf_label bc_gguf_key_label(const struct bitconv_gguf_key *key)
{
    return bc_gguf_label(key->name, key->name_len);
}

struct bc_gguf_label bc_gguf_tensor_label(const struct bitconv_gguf_tensor *tensor)
{
    return bc_gguf_label(tensor->name, tensor->name_len);
}

void bc_gguf_note(struct bitconv_gguf *g, struct bc_gguf_findings *list, bool is_error,
                  const char *fmt, ...)
{
    char text[512];
    va_list ap;
    if (list->n >= BC_GGUF_MAX_FINDINGS) {
        list->n_dropped++;
        list->error_dropped = list->error_dropped || is_error;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *copy = bc_arena_strdup(&g->arena, text);
    void *items = list->items;
    if (copy == NULL || !bc_grow(&items, &list->cap, list->n, sizeof *list->items)) {
        list->failed = true;
        return;
    }
    list->items = items;
    list->items[list->n++] = (struct bitconv_gguf_finding){is_error, copy};
}

/* Steps 3 to 5 of gguf_impl.h. */
static enum bitconv_status finish(struct bitconv_gguf *g, struct bitconv_error *err)
{
    BC_TRY(bc_gguf_place(g, err));
    BC_TRY(bc_gguf_decide_dialect(g, err));
    bc_gguf_check_metadata(g);
    if (g->findings.failed) return bc_fail_nomem(err, "GGUF findings");
    return bc_gguf_apply_dialect(g, err);
}

enum bitconv_status bitconv_gguf_open(const char *path, struct bitconv_gguf **out,
                                      struct bitconv_error *err)
{
    struct bitconv_gguf *g = bc_alloc_array(1, sizeof *g);
    if (g == NULL) return bc_fail_nomem(err, "GGUF file");
    enum bitconv_status status = bc_gguf_load(g, path, err);
    if (status == BITCONV_OK) status = finish(g, err);
    if (status != BITCONV_OK) {
        bitconv_gguf_close(g);
        return status;
    }
    *out = g;
    return BITCONV_OK;
}

static enum bitconv_status load_memory(struct bitconv_gguf *g, const uint8_t *data, uint64_t size,
                                       const char *path, struct bitconv_error *err)
{
    g->shards = bc_alloc_array(1, sizeof *g->shards);
    if (g->shards == NULL) return bc_fail_nomem(err, "GGUF file");
    g->n_shards = 1;
    g->shards[0].data = data;
    g->shards[0].size = size;
    g->shards[0].path = path;
    return bc_gguf_parse_shard(g, &g->shards[0], err);
}

enum bitconv_status bc_gguf_parse(const uint8_t *data, uint64_t size, const char *path,
                                  struct bitconv_gguf **out, struct bitconv_error *err)
{
    struct bitconv_gguf *g = bc_alloc_array(1, sizeof *g);
    if (g == NULL) return bc_fail_nomem(err, "GGUF file");
    enum bitconv_status status = load_memory(g, data, size, path, err);
    if (status == BITCONV_OK) status = finish(g, err);
    if (status != BITCONV_OK) {
        bitconv_gguf_close(g);
        return status;
    }
    *out = g;
    return BITCONV_OK;
}

void bitconv_gguf_close(struct bitconv_gguf *file)
{
    if (file == NULL) return;
    for (uint32_t i = 0; i < file->n_shards; i++) {
        struct bc_gguf_shard *s = &file->shards[i];
        bc_free(s->keys);
        bc_free(s->key_index);
        bc_free(s->tensors);
        bc_file_close(&s->file);
    }
    bc_free(file->shards);
    bc_free(file->tensors);
    bc_free(file->by_name);
    bc_free(file->by_offset);
    bc_free(file->findings.items);
    bc_free(file->layout_findings.items);
    bc_arena_release(&file->arena);
    bc_free(file);
}

uint32_t bitconv_gguf_version(const struct bitconv_gguf *file)
{
    return file->shards[0].version;
}

uint64_t bitconv_gguf_alignment(const struct bitconv_gguf *file)
{
    return file->shards[0].alignment;
}

uint64_t bitconv_gguf_data_offset(const struct bitconv_gguf *file)
{
    return file->shards[0].data_offset;
}

uint64_t bitconv_gguf_file_size(const struct bitconv_gguf *file)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < file->n_shards; i++)
        total += file->shards[i].size;
    return total;
}

uint32_t bitconv_gguf_n_shards(const struct bitconv_gguf *file)
{
    return file->n_shards;
}

const char *bitconv_gguf_shard_path(const struct bitconv_gguf *file, uint32_t shard)
{
    return shard < file->n_shards ? file->shards[shard].path : NULL;
}

size_t bitconv_gguf_n_keys(const struct bitconv_gguf *file)
{
    return file->shards[0].n_keys;
}

const struct bitconv_gguf_key *bitconv_gguf_key_at(const struct bitconv_gguf *file, size_t index)
{
    return index < file->shards[0].n_keys ? &file->shards[0].keys[index] : NULL;
}

const struct bitconv_gguf_value *bitconv_gguf_find_key(const struct bitconv_gguf *file,
                                                       const char *name)
{
    return bc_gguf_shard_key(&file->shards[0], name);
}

size_t bitconv_gguf_n_tensors(const struct bitconv_gguf *file)
{
    return file->n_tensors;
}

const struct bitconv_gguf_tensor *bitconv_gguf_tensor_at(const struct bitconv_gguf *file,
                                                         size_t index)
{
    return index < file->n_tensors ? &file->tensors[index] : NULL;
}

const struct bitconv_gguf_tensor *bitconv_gguf_find_tensor(const struct bitconv_gguf *file,
                                                           const char *name)
{
    const size_t len = strlen(name);
    size_t low = 0, high = file->n_tensors;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const struct bitconv_gguf_tensor *t = file->by_name[mid];
        const size_t n = t->name_len < len ? t->name_len : len;
        int order = memcmp(t->name, name, n);
        if (order == 0) order = t->name_len < len ? -1 : t->name_len > len;
        if (order == 0) return t;
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

/* Findings in the order: contents, layout, then one line for what was left out. */
static size_t n_listed(const struct bitconv_gguf *file)
{
    return file->findings.n + file->layout_findings.n;
}

size_t bitconv_gguf_n_findings(const struct bitconv_gguf *file)
{
    const bool dropped = file->findings.n_dropped + file->layout_findings.n_dropped > 0;
    return n_listed(file) + (dropped ? 1 : 0);
}

const struct bitconv_gguf_finding *bitconv_gguf_finding_at(const struct bitconv_gguf *file,
                                                           size_t index)
{
    static const struct bitconv_gguf_finding more[2] = {
        {false, "there are more findings than are listed"},
        {true, "there are more findings than are listed, errors among them"}};
    if (index < file->findings.n) return &file->findings.items[index];
    if (index < n_listed(file)) return &file->layout_findings.items[index - file->findings.n];
    if (index >= bitconv_gguf_n_findings(file)) return NULL;
    return &more[file->findings.error_dropped || file->layout_findings.error_dropped];
}

enum bitconv_dialect bitconv_gguf_dialect(const struct bitconv_gguf *file)
{
    return file->dialect;
}

const char *bitconv_gguf_dialect_evidence(const struct bitconv_gguf *file)
{
    return file->evidence;
}

enum bitconv_status bitconv_gguf_set_dialect(struct bitconv_gguf *file,
                                             enum bitconv_dialect dialect,
                                             struct bitconv_error *err)
{
    if (dialect <= BITCONV_DIALECT_AMBIGUOUS || dialect >= BITCONV_N_DIALECTS) {
        return bc_fail(err, BITCONV_E_ARG, "no dialect has the number %d", (int)dialect);
    }
    const enum bitconv_dialect before = file->dialect;
    file->dialect = dialect;
    const enum bitconv_status status = bc_gguf_apply_dialect(file, err);
    if (status != BITCONV_OK) {
        /* what fitted before fits again */
        file->dialect = before;
        (void)bc_gguf_apply_dialect(file, NULL);
        return status;
    }
    file->evidence = "set by the caller";
    return BITCONV_OK;
}
