/* SPDX-License-Identifier: MIT
 * Where the tensors of a GGUF lie: spans, sizes, and whether they are inside the file, aligned,
 * apart from each other and without holes. */
#include "io/gguf_impl.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    const struct bitconv_gguf_tensor *x = *(struct bitconv_gguf_tensor *const *)a;
    const struct bitconv_gguf_tensor *y = *(struct bitconv_gguf_tensor *const *)b;
    const size_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
    const int order = memcmp(x->name, y->name, n);
    if (order != 0) return order;
    return x->name_len < y->name_len ? -1 : x->name_len > y->name_len;
}

/* Both pointers are into one array, so their order is the order of the tensor infos. */
static int compare_offsets(const void *a, const void *b)
{
    const struct bitconv_gguf_tensor *x = *(struct bitconv_gguf_tensor *const *)a;
    const struct bitconv_gguf_tensor *y = *(struct bitconv_gguf_tensor *const *)b;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* One array of tensors for all shards; a single shard's own array is taken over as it is. */
static enum bitconv_status gather(struct bitconv_gguf *g, struct bitconv_error *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < g->n_shards; i++)
        total += g->shards[i].n_tensors;
    if (g->n_shards == 1) {
        g->tensors = g->shards[0].tensors;
        g->shards[0].tensors = NULL;
    } else {
        g->tensors = bc_alloc_array(total, sizeof *g->tensors);
    }
    g->by_name = bc_alloc_array(total, sizeof *g->by_name);
    g->by_offset = bc_alloc_array(total, sizeof *g->by_offset);
    if (g->tensors == NULL || g->by_name == NULL || g->by_offset == NULL) {
        return bc_fail_nomem(err, "GGUF tensor infos");
    }
    for (uint32_t i = 0; i < g->n_shards && g->n_shards > 1; i++) {
        struct bc_gguf_shard *s = &g->shards[i];
        if (s->n_tensors > 0) {
            memcpy(g->tensors + g->n_tensors, s->tensors, s->n_tensors * sizeof *s->tensors);
        }
        for (size_t k = 0; k < s->n_tensors; k++)
            g->tensors[g->n_tensors + k].shard = i;
        g->n_tensors += s->n_tensors;
        bc_free(s->tensors);
        s->tensors = NULL;
    }
    g->n_tensors = total;
    return BITCONV_OK;
}

static enum bitconv_status index_names(struct bitconv_gguf *g, struct bitconv_error *err)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        g->by_name[i] = &g->tensors[i];
    if (g->n_tensors > 0) qsort(g->by_name, g->n_tensors, sizeof *g->by_name, compare_names);
    for (size_t i = 1; i < g->n_tensors; i++) {
        if (compare_names(&g->by_name[i - 1], &g->by_name[i]) != 0) continue;
        const struct bitconv_gguf_tensor *a = g->by_name[i - 1], *b = g->by_name[i];
        if (a->shard == b->shard) {
            return bc_fail(err, BITCONV_E_CORRUPT, "%s: tensor %s occurs twice",
                           g->shards[a->shard].path, bc_gguf_tensor_label(a).text);
        }
        return bc_fail(err, BITCONV_E_CORRUPT, "%s: tensor %s occurs in %s as well",
                       g->shards[b->shard].path, bc_gguf_tensor_label(a).text,
                       g->shards[a->shard].path);
    }
    return BITCONV_OK;
}

static enum bitconv_status refuse_short(const struct bitconv_gguf *g,
                                        const struct bitconv_gguf_tensor *t, uint64_t need,
                                        struct bitconv_error *err)
{
    const struct bc_gguf_shard *s = &g->shards[t->shard];
    const uint64_t there = s->size - t->file_offset;
    return bc_fail_at(err, BITCONV_E_CORRUPT, s->size,
                      "%s: tensor %s: data cut off, short by %" PRIu64 " of %" PRIu64
                      " bytes: the file is incomplete, fetch or convert it again",
                      s->path, bc_gguf_tensor_label(t).text, need - there, need);
}

/* Where the data begin in the file; fails when that is behind its end. Types whose meaning no
 * dialect disputes must have all their bytes; the others have to wait for the dialect. */
static enum bitconv_status place_tensor(const struct bitconv_gguf *g, struct bitconv_gguf_tensor *t,
                                        struct bitconv_error *err)
{
    const struct bc_gguf_shard *s = &g->shards[t->shard];
    uint64_t at, need;
    const bool inside = bc_add_u64(s->data_offset, t->offset, &at) && at <= s->size;
    if (!inside || (at == s->size && t->n_elements > 0)) {
        return bc_fail(err, BITCONV_E_CORRUPT,
                       "%s: tensor %s: its data begin at offset %" PRIu64
                       " of the data section, which has %" PRIu64
                       " bytes: the file is incomplete or damaged",
                       s->path, bc_gguf_tensor_label(t).text, t->offset,
                       s->size > s->data_offset ? s->size - s->data_offset : 0);
    }
    t->file_offset = at;
    t->data = s->data + at;
    const struct bc_type *type = bc_type_find(t->type, BITCONV_DIALECT_UPSTREAM);
    if (type == NULL || type->block == 0 || bc_type_is_disputed(t->type)) return BITCONV_OK;
    if (bc_type_bytes(type, t->n_dims, t->ne, &need)) {
        return need > s->size - at ? refuse_short(g, t, need, err) : BITCONV_OK;
    }
    if (t->ne[0] % type->block != 0) return BITCONV_OK; /* a finding, later */
    return bc_fail(err, BITCONV_E_CORRUPT,
                   "%s: tensor %s: %" PRIu64 " elements of type %s are more "
                   "bytes than 2^63 - 1",
                   s->path, bc_gguf_tensor_label(t).text, t->n_elements, type->name);
}

enum bitconv_status bc_gguf_place(struct bitconv_gguf *g, struct bitconv_error *err)
{
    BC_TRY(gather(g, err));
    BC_TRY(index_names(g, err));
    for (size_t i = 0; i < g->n_tensors; i++)
        g->by_offset[i] = &g->tensors[i];
    if (g->n_tensors > 0) qsort(g->by_offset, g->n_tensors, sizeof *g->by_offset, compare_offsets);
    for (size_t i = 0; i < g->n_tensors; i++)
        BC_TRY(place_tensor(g, g->by_offset[i], err));
    /* from the back, so that tensors with one offset share the span up to the next higher one */
    for (size_t i = g->n_tensors; i-- > 0;) {
        struct bitconv_gguf_tensor *t = g->by_offset[i];
        const struct bitconv_gguf_tensor *next = i + 1 < g->n_tensors ? g->by_offset[i + 1] : NULL;
        if (next == NULL || next->shard != t->shard) {
            t->span = g->shards[t->shard].size - t->file_offset;
        } else if (next->offset == t->offset) {
            t->span = next->span;
        } else {
            t->span = next->offset - t->offset;
        }
    }
    return BITCONV_OK;
}

/* Names of unresolved types already made; no two disputed ids share a slot. */
enum { N_CACHED = 16 };
struct name_cache {
    uint32_t id;
    const char *name;
};

/* "type 42 (ambiguous: TL2 / Q2_0 / Q2_0_G128)", "type 142 (PQ2_0)" or "type 200". */
static const char *unresolved_name(struct bitconv_gguf *g, uint32_t id)
{
    struct bc_buf buf = {0};
    const struct bc_type *row;
    unsigned n = 0;
    if (!bc_type_is_disputed(id)) return bc_arena_printf(&g->arena, "type %" PRIu32, id);
    for (size_t i = 0; (row = bc_type_row(i)) != NULL; i++) {
        if (row->id != id) continue;
        bc_buf_printf(&buf, "%s%s", n == 0 ? "" : " / ", row->name);
        n++;
    }
    const char *name = bc_arena_printf(&g->arena, "type %" PRIu32 " (%s%s)", id,
                                       n > 1 ? "ambiguous: " : "", bc_buf_str(&buf));
    if (buf.failed) name = NULL;
    bc_buf_release(&buf);
    return name;
}

/* Size and type name of a tensor whose type the dialect knows. */
static enum bitconv_status size_known(struct bitconv_gguf *g, struct bitconv_gguf_tensor *t,
                                      const struct bc_type *type, struct bitconv_error *err)
{
    uint64_t need;
    t->type_name = type->name;
    t->size = 0;
    if (bc_type_bytes(type, t->n_dims, t->ne, &need)) {
        const uint64_t there = g->shards[t->shard].size - t->file_offset;
        if (need > there) return refuse_short(g, t, need, err);
        t->size = need;
        return BITCONV_OK;
    }
    if (type->layout == BC_LAYOUT_UNKNOWN) {
        bc_gguf_note(g, &g->layout_findings, true,
                     "tensor %s: type %s was removed from ggml, its bytes cannot be checked",
                     bc_gguf_tensor_label(t).text, type->name);
    } else if (type->layout == BC_LAYOUT_TL2) {
        bc_gguf_note(g, &g->layout_findings, true,
                     "tensor %s: %s needs a matrix of at least 256 columns, this one has %" PRIu64
                     " in %" PRIu32 " dimensions",
                     bc_gguf_tensor_label(t).text, type->name, t->ne[0], t->n_dims);
    } else if (type->layout == BC_LAYOUT_I2_S) {
        bc_gguf_note(g, &g->layout_findings, true,
                     "tensor %s: %" PRIu64 " elements are not a multiple of %" PRIu32
                     ", the block of %s",
                     bc_gguf_tensor_label(t).text, t->n_elements, type->block, type->name);
    } else {
        bc_gguf_note(g, &g->layout_findings, true,
                     "tensor %s: rows of %" PRIu64 " are not a multiple of %" PRIu32
                     ", the block of %s",
                     bc_gguf_tensor_label(t).text, t->ne[0], type->block, type->name);
    }
    return BITCONV_OK;
}

static void size_unknown(struct bitconv_gguf *g, struct bitconv_gguf_tensor *t, const char *name)
{
    t->type_name = name;
    t->size = 0;
    if (bc_type_is_disputed(t->type)) {
        bc_gguf_note(g, &g->layout_findings, true,
                     "tensor %s: %s: its %" PRIu64 " bytes do not tell what the type means",
                     bc_gguf_tensor_label(t).text, name, t->span);
    } else {
        bc_gguf_note(g, &g->layout_findings, true,
                     "tensor %s: %s is not known, its %" PRIu64 " bytes are only listed",
                     bc_gguf_tensor_label(t).text, name, t->span);
    }
}

/* Walks one shard's tensors by offset: alignment, overlaps, holes. `end` is the first byte behind
 * all data seen so far, of which `last` reaches furthest. */
struct walk {
    uint64_t end;
    const struct bitconv_gguf_tensor *last;
};

static void check_place(struct bitconv_gguf *g, struct walk *w, const struct bitconv_gguf_tensor *t)
{
    struct bc_gguf_findings *list = &g->layout_findings;
    const uint64_t alignment = g->shards[t->shard].alignment;
    const uint64_t size = t->size > 0 || t->n_elements == 0 ? t->size : t->span;
    if (t->offset % alignment != 0) {
        bc_gguf_note(g, list, true,
                     "tensor %s: offset %" PRIu64 " is not a multiple of the alignment %" PRIu64,
                     bc_gguf_tensor_label(t).text, t->offset, alignment);
    }
    if (w->last != NULL && t->file_offset < w->end && size > 0) {
        bc_gguf_note(g, list, true,
                     "tensor %s: overlaps tensor %s, which needs %" PRIu64
                     " bytes from offset %" PRIu64 "; this one begins at %" PRIu64,
                     bc_gguf_tensor_label(t).text, bc_gguf_tensor_label(w->last).text,
                     w->last->size, w->last->offset, t->offset);
    } else if (t->file_offset >= w->end && t->file_offset - w->end >= alignment) {
        bc_gguf_note(g, list, false, "%" PRIu64 " unused bytes in front of tensor %s%s%s",
                     t->file_offset - w->end, bc_gguf_tensor_label(t).text,
                     w->last != NULL ? ", behind tensor " : "",
                     w->last != NULL ? bc_gguf_tensor_label(w->last).text : "");
    }
    if (t->file_offset + size > w->end) {
        w->end = t->file_offset + size;
        w->last = t;
    }
}

static void check_end(struct bitconv_gguf *g, const struct bc_gguf_shard *s, const struct walk *w)
{
    if (s->size > w->end && s->size - w->end >= s->alignment) {
        bc_gguf_note(g, &g->layout_findings, false, "%s: %" PRIu64 " unused bytes at the end%s%s",
                     s->path, s->size - w->end, w->last != NULL ? ", behind tensor " : "",
                     w->last != NULL ? bc_gguf_tensor_label(w->last).text : "");
    }
}

static void check_places(struct bitconv_gguf *g)
{
    size_t k = 0;
    for (uint32_t i = 0; i < g->n_shards; i++) {
        struct walk w = {g->shards[i].data_offset, NULL};
        for (; k < g->n_tensors && g->by_offset[k]->shard == i; k++) {
            check_place(g, &w, g->by_offset[k]);
        }
        check_end(g, &g->shards[i], &w);
    }
}

enum bitconv_status bc_gguf_apply_dialect(struct bitconv_gguf *g, struct bitconv_error *err)
{
    struct bc_gguf_findings *list = &g->layout_findings;
    list->n = 0;
    list->n_dropped = 0;
    list->error_dropped = false;
    struct name_cache cache[N_CACHED] = {{0, NULL}};
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct bitconv_gguf_tensor *t = &g->tensors[i];
        const bool open = g->dialect == BITCONV_DIALECT_AMBIGUOUS && bc_type_is_disputed(t->type);
        const struct bc_type *type = open ? NULL : bc_type_find(t->type, g->dialect);
        if (type != NULL) {
            BC_TRY(size_known(g, t, type, err));
            continue;
        }
        struct name_cache *slot = &cache[t->type % N_CACHED];
        if (slot->name == NULL || slot->id != t->type) {
            slot->id = t->type;
            slot->name = unresolved_name(g, t->type);
            if (slot->name == NULL) return bc_fail_nomem(err, "GGUF tensor infos");
        }
        size_unknown(g, t, slot->name);
    }
    check_places(g);
    return list->failed ? bc_fail_nomem(err, "GGUF findings") : BITCONV_OK;
}
