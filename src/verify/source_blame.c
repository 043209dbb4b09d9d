/* SPDX-License-Identifier: MIT
 * Which tensor info of an unreadable GGUF is damaged.
 *
 * A wrong length or number of dimensions throws the reader off, and what it then complains about
 * need not be the culprit. With the checkpoint at hand the infos that should be there are known:
 * the one whose bytes are not found is it. */
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
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

/* Infos follow each other closely: behind the last one found only a stretch as long as a few names
 * has to be searched, so that a file full of other infos costs no more than one pass. */
static const char *first_missing(const struct header *h, const struct bc_model *model,
                                 size_t *n_missing, struct bitconv_error *err)
{
    struct bc_buf info = {0};
    const char *missing = NULL;
    uint64_t from = 0;
    struct header stretch = *h;
    *n_missing = 0;
    for (size_t i = 0; i < model->n_weights; i++) {
        put_info(&info, &model->weights[i]);
        if (info.failed) {
            (void)bc_fail_nomem(err, "tensor infos");
            break;
        }
        uint64_t at = find_info(&stretch, from, &info);
        if (at == stretch.size && model->weights[i].role == BC_ROLE_LINEAR) {
            put_payload_info(&info, &model->weights[i]);
            at = find_info(&stretch, from, &info);
        }
        if (at < stretch.size) {
            from = at + info.size;
            stretch.size = h->size - from > STRETCH ? from + STRETCH : h->size;
            continue;
        }
        if (missing == NULL) missing = model->weights[i].name;
        ++*n_missing;
    }
    bc_buf_release(&info);
    return missing;
}

/* The name of the one damaged info, in `arena`; NULL when the damage is elsewhere or everywhere. */
static const char *find_culprit(struct bc_verifier *v, const struct header *h,
                                const struct bc_checkpoint *ckpt)
{
    static const enum bc_target targets[] = {BC_TARGET_BITNET, BC_TARGET_LLAMA_CPP};
    const char *culprit = NULL;
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const struct bc_model_options options = {.target = targets[i]};
        struct bitconv_error quiet = {0};
        struct bc_model *model = NULL;
        size_t n_missing = 0;
        if (bc_model_load(ckpt, &options, NULL, &model, &quiet) != BITCONV_OK) continue;
        const char *name = first_missing(h, model, &n_missing, &quiet);
        if (quiet.status == BITCONV_OK && n_missing < fewest) {
            fewest = n_missing;
            culprit = NULL;
            /* Many missing ones: another model, or one file of a split set. */
            if (name != NULL && 2 * n_missing <= model->n_weights)
                culprit = bc_arena_strdup(&v->data->arena, name);
        }
        bc_model_free(model);
    }
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
