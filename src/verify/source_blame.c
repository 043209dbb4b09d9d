/* SPDX-License-Identifier: MIT
 * Which tensor info of an unreadable GGUF is damaged.
 *
 * A wrong length or number of dimensions throws the reader off, and what it then complains about
 * need not be the culprit. With the checkpoint at hand the infos that should be there are known:
 * the one whose bytes are not found is it. */
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "model/scale_tensor.h"
#include "verify/source_state.h"

enum {
    STRETCH = 4096,        /* how far behind one info the next is looked for */
    MAX_HEADER = 256 << 20 /* how far into the file infos are looked for at all */
};

/* Where in the file to look. */
struct header {
    const uint8_t *data;
    uint64_t size;
};

/* The part of a tensor info that the model decides: length, name, dimensions. */
static void put_info(struct bc_buf *buf, const struct bc_weight *w)
{
    const size_t len = strlen(w->name);
    bc_buf_clear(buf);
    bc_buf_u64(buf, len);
    bc_buf_append(buf, w->name, len);
    bc_buf_u32(buf, w->n_dims);
    for (uint32_t d = 0; d < w->n_dims; d++)
        bc_buf_u64(buf, w->ne[d]);
}

/* The same for a tensor that is stored as a payload: its one dimension depends on the values. */
static void put_payload_info(struct bc_buf *buf, const struct bc_weight *w)
{
    const size_t len = strlen(w->name);
    bc_buf_clear(buf);
    bc_buf_u64(buf, len);
    bc_buf_append(buf, w->name, len);
    bc_buf_u32(buf, 1);
}

/* The same for the tensor of a packed weight's scales (--scale-tensor). False: it has none. */
static bool put_scale_info(struct bc_buf *buf, const struct bc_weight *w)
{
    struct bc_buf name = {0};
    const bool named = w->role == BC_ROLE_LINEAR && bc_scale_tensor_name(&name, w->name);
    bc_buf_clear(buf);
    bc_buf_u64(buf, name.size);
    bc_buf_append(buf, name.data, name.size);
    bc_buf_u32(buf, 1);
    bc_buf_u64(buf, w->n_dims > 2 ? w->ne[2] : 1);
    bc_buf_release(&name);
    return named;
}

/* First place of the info at or behind `from`; size when there is none. */
static uint64_t find_info(const struct header *h, uint64_t from, const struct bc_buf *info)
{
    for (uint64_t at = from; info->size <= h->size && at <= h->size - info->size; at++) {
        const uint8_t *hit = memchr(h->data + at, info->data[0], h->size - info->size - at + 1);
        if (hit == NULL) break;
        at = (uint64_t)(hit - h->data);
        if (memcmp(hit, info->data, info->size) == 0) return at;
    }
    return h->size;
}

/* Infos looked for so far, of weights and of the tensors of their scales: a file has the latter for
 * all packed weights, or for none. */
struct tally {
    size_t n_missing, n_scales_found, n_scales_missing;
    const struct bc_weight *missing, *scale_missing; /* the first ones */
};

static void note_scale(struct tally *t, const struct bc_weight *w, bool found)
{
    t->n_scales_found += found;
    t->n_scales_missing += !found;
    if (!found && t->scale_missing == NULL) t->scale_missing = w;
}

/* Infos follow each other closely: behind the last one found only a stretch as long as a few names
 * has to be searched, so that a file full of other infos costs no more than one pass. */
static bool count_infos(const struct header *h, const struct bc_model *model, struct tally *tally)
{
    struct bc_buf info = {0};
    uint64_t from = 0;
    struct header stretch = *h;
    for (size_t i = 0; i < model->n_weights; i++) {
        const struct bc_weight *w = &model->weights[i];
        put_info(&info, w);
        if (info.failed) break;
        uint64_t at = find_info(&stretch, from, &info);
        if (at == stretch.size && w->role == BC_ROLE_LINEAR) {
            put_payload_info(&info, w);
            at = find_info(&stretch, from, &info);
        }
        if (at == stretch.size) {
            if (tally->n_missing++ == 0) tally->missing = w;
            continue;
        }
        from = at + info.size;
        stretch.size = h->size - from > STRETCH ? from + STRETCH : h->size;
        if (put_scale_info(&info, w))
            note_scale(tally, w, find_info(&stretch, from, &info) < stretch.size);
    }
    const bool failed = info.failed;
    bc_buf_release(&info);
    return !failed;
}

/* The name of the first info that is missing, in `out`, empty when none is. */
static bool first_missing(const struct header *h, const struct bc_model *model, size_t *n_missing,
                          struct bc_buf *out)
{
    struct tally tally = {.n_missing = 0};
    bc_buf_clear(out);
    if (!count_infos(h, model, &tally)) return false;
    *n_missing = tally.n_missing;
    if (tally.missing != NULL) {
        bc_buf_puts(out, tally.missing->name);
    } else if (tally.n_scales_found != 0 && tally.scale_missing != NULL) {
        *n_missing = tally.n_scales_missing;
        (void)bc_scale_tensor_name(out, tally.scale_missing->name);
    }
    return !out->failed;
}

/* The name of the one damaged info, in `arena`; NULL when the damage is elsewhere or everywhere. */
static const char *find_culprit(struct bc_verifier *v, const struct header *h,
                                const struct bc_checkpoint *ckpt)
{
    static const enum bc_target targets[] = {BC_TARGET_BITNET, BC_TARGET_LLAMA_CPP};
    const char *culprit = NULL;
    struct bc_buf name = {0};
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const struct bc_model_options options = {.target = targets[i]};
        struct bitconv_error quiet = {0};
        struct bc_model *model = NULL;
        size_t n_missing = 0;
        if (bc_model_load(ckpt, &options, NULL, &model, &quiet) != BITCONV_OK) continue;
        if (first_missing(h, model, &n_missing, &name) && n_missing < fewest) {
            fewest = n_missing;
            culprit = NULL;
            /* Many missing ones: another model, or one file of a split set. */
            if (name.size != 0 && 2 * n_missing <= model->n_weights)
                culprit = bc_arena_strdup(&v->data->arena, bc_buf_str(&name));
        }
        bc_model_free(model);
    }
    bc_buf_release(&name);
    return culprit;
}

void bc_source_blame(struct bc_verifier *v, struct bitconv_error *err)
{
    struct bitconv_error quiet = {0};
    struct bc_checkpoint *ckpt = NULL;
    struct bc_file file;
    if (v->options->source == NULL || err == NULL || err->status == BITCONV_E_NOMEM) return;
    if (bc_file_open(v->path, &file, &quiet) != BITCONV_OK) return;
    if (bc_checkpoint_open(v->options->source, true, NULL, &ckpt, &quiet) == BITCONV_OK) {
        const struct header header = {file.data, file.size < MAX_HEADER ? file.size : MAX_HEADER};
        const char *name = find_culprit(v, &header, ckpt);
        const struct bitconv_error reader = *err;
        if (name != NULL) {
            memset(err, 0, sizeof *err);
            (void)bc_fail_at(err, reader.status, reader.offset,
                             "%s; by the checkpoint, the tensor info of %s is damaged", reader.text,
                             name);
        }
    }
    bc_checkpoint_close(ckpt);
    bc_file_close(&file);
}
