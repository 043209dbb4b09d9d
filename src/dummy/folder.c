/* SPDX-License-Identifier: MIT
 * Writes synthetic checkpoint folders.
 *
 * The tensors are cut into pieces of a fixed number of elements; a batch is N_PIECES of them. Two
 * batches alternate: while one task writes the pieces of the last batch in order, the other tasks
 * fill those of the next one. */
#include "dummy/folder.h"

#include <inttypes.h>
#include <string.h>

#include "io/safetensors_write.h"

enum { N_PIECES = 16, PIECE = 256 * BC_DUMMY_CHUNK, SLOT = 4 * PIECE };

struct piece {
    const struct bc_dummy_stored *tensor;
    uint32_t shard;
    uint64_t first;
    size_t n;
    uint8_t *slot;
};

struct batch {
    struct piece pieces[N_PIECES];
    size_t n;
};

struct job {
    const struct bc_dummy_shards *shards;
    const struct bc_kernels *k;
    const struct bitconv_sink *sink;
    const char *dir; /* the hidden folder */
    uint64_t total;  /* bytes of all tensors */
    struct batch batches[2], *filling, *writing;
    size_t tensor; /* where the next piece starts */
    uint64_t first;
    /* The end that writes: one task at a time. */
    struct bc_out *out;
    uint32_t n_opened; /* files */
    uint64_t n_written;
    enum bitconv_status status;
    struct bitconv_error err;
};

uint64_t bc_dummy_folder_memory(void)
{
    return 2 * (uint64_t)N_PIECES * SLOT + sizeof(struct job);
}

/* ---- names ---- */

bool bc_dummy_is_ours(const char *name)
{
    static const char *const names[] = {
        "config.json",       "generation_config.json", "modules.json",
        "1_Pooling/",        "1_Pooling/config.json",  "deployment_info.json",
        "tokenizer.json",    "tokenizer_config.json",  "vocab.txt",
        BC_SAFETENSORS_INDEX};
    static const char ending[] = ".safetensors";
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return strncmp(name, "model", 5) == 0 && len > strlen(ending) &&
           strcmp(name + len - strlen(ending), ending) == 0 && strchr(name, '/') == NULL;
}

/* ---- files ---- */

static enum bitconv_status write_text(const char *dir, const char *name, const struct bc_buf *text,
                                      struct bitconv_error *err)
{
    char *path = bc_path_join(dir, name);
    if (path == NULL || text->failed) {
        bc_free(path);
        return bc_fail_nomem(err, "files of the checkpoint");
    }
    const enum bitconv_status status = bc_file_write(path, text->data, text->size, false, err);
    bc_free(path);
    return status;
}

enum bitconv_status bc_dummy_write_texts(struct bc_out_folder *folder,
                                         const struct bc_dummy_texts *texts,
                                         struct bitconv_error *err)
{
    for (size_t i = 0; i < texts->n; i++) {
        const struct bc_dummy_text *file = &texts->files[i];
        const char *slash = strchr(file->name, '/');
        char inner[32] = {0};
        if (slash != NULL && (size_t)(slash - file->name) < sizeof inner) {
            memcpy(inner, file->name, (size_t)(slash - file->name));
            BC_TRY(bc_out_folder_mkdir(folder, inner, err));
        }
        BC_TRY(write_text(bc_out_folder_path(folder), file->name, &file->text, err));
    }
    return BITCONV_OK;
}

static enum bitconv_status write_index(const struct job *job, struct bitconv_error *err)
{
    const struct bc_dummy_shards *shards = job->shards;
    struct bc_buf text = {0};
    struct bc_safetensors_index index =
        bc_safetensors_index_begin(&text, job->total, shards->n_shards);
    for (size_t i = 0; i < shards->n; i++)
        bc_safetensors_index_add(&index, shards->tensors[i]->view.name, shards->shard[i]);
    bc_safetensors_index_end(&index);
    const enum bitconv_status status = write_text(job->dir, BC_SAFETENSORS_INDEX, &text, err);
    bc_buf_release(&text);
    return status;
}

/* The header of a file, and *size: the bytes of header and data. */
static enum bitconv_status make_header(const struct job *job, uint32_t shard, struct bc_buf *out,
                                       uint64_t *size, struct bitconv_error *err)
{
    const struct bc_dummy_shards *shards = job->shards;
    struct bc_safetensors_header header = bc_safetensors_header_begin(out);
    for (size_t i = 0; i < shards->n; i++) {
        const struct bitconv_tensor *t = &shards->tensors[i]->view;
        if (shards->shard[i] != shard) continue;
        bc_safetensors_header_add(&header, t->name, t->dtype, t->shape, t->n_dims, t->size);
    }
    bc_safetensors_header_end(&header);
    *size = out->size + header.at;
    return out->failed ? bc_fail_nomem(err, "header of a safetensors file") : BITCONV_OK;
}

/* Finishes the file at hand and opens the next one. The first answers for the space of all. */
static enum bitconv_status next_file(struct job *job, struct bitconv_error *err)
{
    const uint32_t shard = job->n_opened++;
    char name[BC_SAFETENSORS_NAME];
    struct bc_buf header = {0};
    struct bc_out_options options = {.force = false};
    struct bc_out *finished = job->out;
    job->out = NULL;
    if (finished != NULL) BC_TRY(bc_out_commit(finished, err));
    bc_safetensors_shard_name(shard, job->shards->n_shards, name);
    char *path = bc_path_join(job->dir, name);
    enum bitconv_status status = path == NULL ? bc_fail_nomem(err, "path") : BITCONV_OK;
    if (status == BITCONV_OK) status = make_header(job, shard, &header, &options.size, err);
    if (shard == 0) options.size = header.size + job->total;
    if (status == BITCONV_OK) status = bc_out_open(path, &options, &job->out, err);
    if (status == BITCONV_OK) status = bc_out_write(job->out, header.data, header.size, err);
    bc_free(path);
    bc_buf_release(&header);
    return status;
}

/* ---- the stream ---- */

static void fill_piece(const struct job *job, const struct piece *p)
{
    const size_t width = bitconv_dtype_size(p->tensor->view.dtype);
    for (size_t done = 0; done < p->n; done += BC_DUMMY_CHUNK) {
        const size_t n = p->n - done < BC_DUMMY_CHUNK ? p->n - done : BC_DUMMY_CHUNK;
        bc_dummy_stored_bytes(p->tensor, job->k, p->first + done, n, p->slot + done * width);
    }
}

static void write_batch(struct job *job)
{
    for (size_t i = 0; i < job->writing->n && job->status == BITCONV_OK; i++) {
        const struct piece *p = &job->writing->pieces[i];
        const size_t size = p->n * bitconv_dtype_size(p->tensor->view.dtype);
        if (p->shard >= job->n_opened) job->status = next_file(job, &job->err);
        if (job->status == BITCONV_OK)
            job->status = bc_out_write(job->out, p->slot, size, &job->err);
        job->n_written += size;
    }
}

/* Cuts the next pieces; an empty batch when there are none left. */
static void cut_batch(struct job *job, struct batch *b)
{
    const struct bc_dummy_shards *shards = job->shards;
    for (b->n = 0; b->n < N_PIECES && job->tensor < shards->n; b->n++) {
        struct piece *p = &b->pieces[b->n];
        p->tensor = shards->tensors[job->tensor];
        p->shard = shards->shard[job->tensor];
        const uint64_t left = p->tensor->view.n_elements - job->first;
        p->first = job->first;
        p->n = left < PIECE ? (size_t)left : PIECE;
        job->first += p->n;
        if (p->n < left) continue;
        job->tensor++;
        job->first = 0;
    }
}

/* Task 0 writes, the others fill one piece each. */
static void run_task(void *ctx, size_t i, unsigned worker)
{
    struct job *job = ctx;
    (void)worker;
    if (i == 0)
        write_batch(job);
    else
        fill_piece(job, &job->filling->pieces[i - 1]);
}

static enum bitconv_status run_batches(struct job *job, struct bc_pool *pool,
                                       struct bitconv_error *err)
{
    job->filling = &job->batches[0];
    job->writing = &job->batches[1];
    do {
        if (bc_canceled(job->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        cut_batch(job, job->filling);
        bc_pool_run(pool, 1 + job->filling->n, run_task, job);
        if (job->status != BITCONV_OK) {
            if (err != NULL && err->status == BITCONV_OK) *err = job->err;
            return job->status;
        }
        bc_progress(job->sink, "writing", job->n_written, job->total);
        struct batch *filled = job->filling;
        job->filling = job->writing;
        job->writing = filled;
    } while (job->writing->n > 0);
    struct bc_out *last = job->out;
    job->out = NULL;
    return bc_out_commit(last, err);
}

static enum bitconv_status write_weights(struct job *job, struct bc_pool *pool,
                                         struct bitconv_error *err)
{
    uint8_t *memory = bc_alloc_array(2 * (size_t)N_PIECES, SLOT);
    if (memory == NULL) return bc_fail_nomem(err, "buffers of the checkpoint");
    for (size_t i = 0; i < 2 * (size_t)N_PIECES; i++)
        job->batches[i / N_PIECES].pieces[i % N_PIECES].slot = memory + i * SLOT;
    const enum bitconv_status status = run_batches(job, pool, err);
    bc_out_abort(job->out);
    bc_free(memory);
    BC_TRY(status);
    return job->shards->n_shards > 1 ? write_index(job, err) : BITCONV_OK;
}

enum bitconv_status bc_dummy_folder(const char *dir, bool force, const struct bc_dummy_texts *texts,
                                    const struct bc_dummy_shards *shards,
                                    const struct bc_kernels *k, struct bc_pool *pool,
                                    const struct bitconv_sink *sink, struct bitconv_error *err)
{
    const struct bc_out_folder_options options = {.force = force, .replaceable = bc_dummy_is_ours};
    struct bc_out_folder *folder = NULL;
    struct job *job = bc_alloc_array(1, sizeof *job);
    if (job == NULL) return bc_fail_nomem(err, "buffers of the checkpoint");
    *job = (struct job){.shards = shards, .k = k, .sink = sink};
    for (size_t i = 0; i < shards->n; i++)
        job->total += shards->tensors[i]->view.size;
    enum bitconv_status status = bc_out_folder_open(dir, &options, &folder, err);
    if (status == BITCONV_OK) {
        job->dir = bc_out_folder_path(folder);
        status = write_weights(job, pool, err);
    }
    if (status == BITCONV_OK) status = bc_dummy_write_texts(folder, texts, err);
    bc_free(job);
    if (status == BITCONV_OK) return bc_out_folder_commit(folder, err);
    bc_out_folder_abort(folder);
    return status;
}
