/* SPDX-License-Identifier: MIT
 * The pass over the values.
 *
 * All tensors are cut into pieces of a fixed number of values, so what a piece holds does not
 * depend on the threads. A batch is N_PIECES pieces, across tensors where these are small. Two
 * batches alternate: while one task writes the pieces of the last batch in order (and feeds
 * fingerprints, which are sequential), the other tasks fill those of the next one. */
#include "convert/stream.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "convert/piece.h"
#include "convert/whole.h"
#include "formats/fingerprint.h"

enum { N_PIECES = 16 };

struct batch {
    struct bc_piece pieces[N_PIECES];
    size_t n;
};

/* The end that writes: one task at a time works on it, in the order of the file. */
struct writer {
    struct bc_fingerprint fingerprint; /* of the tensor at hand, when packed */
    struct bc_whole whole;             /* the same, when packed as a whole */
    uint64_t n_written;                /* bytes, for progress */
    enum bitconv_status status;
    struct bitconv_error err;
};

struct stream {
    const struct bc_stream_job *job;
    struct writer writer;
    struct batch batches[2];
    struct batch *filling, *writing;
    /* Where the next piece starts. */
    size_t tensor;
    uint64_t first;
};

uint64_t bc_stream_memory(const struct bc_plan *plan)
{
    return 2 * (uint64_t)N_PIECES * BC_PIECE_SLOT + sizeof(struct stream) + bc_whole_memory(plan);
}

enum bitconv_status bc_pad_to(struct bc_out *out, uint64_t offset, struct bitconv_error *err)
{
    static const uint8_t zeros[64] = {0};
    while (bc_out_tell(out) < offset) {
        const uint64_t left = offset - bc_out_tell(out);
        BC_TRY(bc_out_write(out, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros, err));
    }
    return BITCONV_OK;
}

/* Hands a failure met on another thread to the caller's record. */
static enum bitconv_status pass_on(const struct bitconv_error *failure, struct bitconv_error *err)
{
    if (err != NULL && err->status == BITCONV_OK) *err = *failure;
    return failure->status;
}

/* ---- writing ---- */

/* Tells the kernel that the sources of a finished tensor will not be read again. */
static void drop_sources(const struct bc_model *model, const struct bc_plan_tensor *t)
{
    const struct bc_weight *w = t->weight;
    if (t->origin != NULL) t->origin->done(t->origin->ctx);
    for (uint32_t i = 0; i < w->n_sources; i++) {
        const struct bitconv_tensor *source = w->sources[i].tensor;
        const struct bc_file *file = bc_checkpoint_file_of(model->ckpt, source);
        if (file != NULL) bc_file_done_with(file, source->file_offset, source->size);
    }
}

static enum bitconv_status begin_fingerprint(struct writer *w, const struct bc_plan_tensor *t,
                                             bool all_zero)
{
    const bool blocks = t->block_scales != NULL;
    return bc_fingerprint_begin(&w->fingerprint, t->weight->n_dims, t->weight->ne,
                                blocks ? t->block_scales : t->decision.scales,
                                blocks ? t->n_block_scales : t->decision.n_scales, all_zero,
                                &w->err);
}

/* The canonical scale of an all-zero tensor stands in front of its trits, but that all of them are
 * zero shows only at the end (packed weights may store any scale): then it is computed anew. */
static enum bitconv_status fingerprint_zeros(struct writer *w, struct bc_plan_tensor *t)
{
    static const int8_t zeros[4096] = {0};
    bc_fingerprint_cancel(&w->fingerprint);
    BC_TRY(begin_fingerprint(w, t, true));
    for (uint64_t done = 0; done < t->n; done += sizeof zeros)
        bc_fingerprint_trits(&w->fingerprint, zeros,
                             t->n - done < sizeof zeros ? t->n - done : sizeof zeros);
    return BITCONV_OK;
}

static enum bitconv_status begin_tensor(struct stream *s, const struct bc_piece *p)
{
    const struct bc_stream_job *job = s->job;
    struct bc_plan_tensor *t = p->tensor;
    memset(t->counts, 0, sizeof t->counts);
    t->loss = (struct bc_trit_loss){.lost = 0.0};
    t->n_flushed = 0;
    if (bc_plan_has_fingerprint(t)) BC_TRY(begin_fingerprint(&s->writer, t, false));
    if (job->files == NULL) return BITCONV_OK;
    const struct bc_place *place = &job->places[t - job->plan->tensors];
    return bc_pad_to(job->files[place->file], place->offset, &s->writer.err);
}

static enum bitconv_status end_tensor(struct stream *s, const struct bc_piece *p)
{
    struct bc_plan_tensor *t = p->tensor;
    struct writer *w = &s->writer;
    if (bc_plan_has_fingerprint(t)) {
        if (t->counts[0] + t->counts[2] == 0) BC_TRY(fingerprint_zeros(w, t));
        t->fingerprint = bc_fingerprint_end(&w->fingerprint);
    }
    drop_sources(s->job->model, t);
    return BITCONV_OK;
}

/* Bytes of the tensor at hand. */
static enum bitconv_status put_bytes(struct stream *s, const struct bc_plan_tensor *t,
                                     const uint8_t *data, uint64_t size)
{
    const struct bc_stream_job *job = s->job;
    struct writer *w = &s->writer;
    w->n_written += size;
    if (job->files == NULL) return BITCONV_OK;
    return bc_out_write(job->files[job->places[t - job->plan->tensors].file], data, (size_t)size,
                        &w->err);
}

/* The bytes come all at once, with the last piece. Where nothing is written there are none. */
static enum bitconv_status write_whole(struct stream *s, const struct bc_piece *p)
{
    const struct bc_kernels *k = s->job->setup->kernels;
    struct bc_whole *whole = &s->writer.whole;
    const uint8_t *bytes = NULL;
    if (s->job->files != NULL) bc_whole_add(whole, k, p->tensor, p->first, p->trits, p->n);
    if (!p->ends) return BITCONV_OK;
    if (s->job->files != NULL) bytes = bc_whole_end(whole, k, p->tensor);
    return put_bytes(s, p->tensor, bytes, p->tensor->size);
}

static enum bitconv_status write_piece(struct stream *s, const struct bc_piece *p)
{
    struct bc_plan_tensor *t = p->tensor;
    struct writer *w = &s->writer;
    if (p->status != BITCONV_OK) return pass_on(&p->err, &w->err);
    if (p->starts) BC_TRY(begin_tensor(s, p));
    for (size_t i = 0; i < 3; i++)
        t->counts[i] += p->counts[i];
    t->loss.lost += p->loss.lost;
    t->loss.total += p->loss.total;
    t->loss.n_minus_zero += p->loss.n_minus_zero;
    t->n_flushed += p->n_flushed;
    if (bc_plan_has_fingerprint(t)) bc_fingerprint_trits(&w->fingerprint, p->trits, p->n);
    BC_TRY(bc_plan_is_whole(t) ? write_whole(s, p) : put_bytes(s, t, p->data, p->size));
    return p->ends ? end_tensor(s, p) : BITCONV_OK;
}

static void write_batch(struct stream *s)
{
    struct writer *w = &s->writer;
    for (size_t i = 0; i < s->writing->n && w->status == BITCONV_OK; i++)
        w->status = write_piece(s, &s->writing->pieces[i]);
}

/* ---- batches ---- */

/* Cuts the next pieces; an empty batch when there are none left. */
static void cut_batch(struct stream *s, struct batch *b)
{
    struct bc_plan *plan = s->job->plan;
    for (b->n = 0; b->n < N_PIECES && s->tensor < plan->n_tensors; b->n++) {
        struct bc_piece *p = &b->pieces[b->n];
        struct bc_plan_tensor *t = &plan->tensors[s->tensor];
        const uint64_t left = (bc_plan_is_copy(t) ? t->size : t->n) - s->first;
        p->tensor = t;
        p->first = s->first;
        p->n = left < BC_PIECE_VALUES ? (size_t)left : BC_PIECE_VALUES;
        p->starts = s->first == 0;
        p->ends = p->n == left;
        s->first += p->n;
        if (p->ends) {
            s->tensor++;
            s->first = 0;
        }
    }
}

/* Task 0 writes, the others fill one piece each. */
static void run_task(void *ctx, size_t i, unsigned worker)
{
    struct stream *s = ctx;
    (void)worker;
    if (i == 0)
        write_batch(s);
    else
        bc_piece_fill(s->job->setup, s->job->model, &s->filling->pieces[i - 1]);
}

static enum bitconv_status run_batches(struct stream *s, struct bitconv_error *err)
{
    const struct bc_stream_job *job = s->job;
    const uint64_t total = bc_plan_size(job->plan);
    s->filling = &s->batches[0];
    s->writing = &s->batches[1];
    do {
        if (bc_canceled(job->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        cut_batch(s, s->filling);
        bc_pool_run(job->pool, 1 + s->filling->n, run_task, s);
        if (s->writer.status != BITCONV_OK) return pass_on(&s->writer.err, err);
        bc_progress(job->sink, job->what, s->writer.n_written, total);
        struct batch *filled = s->filling;
        s->filling = s->writing;
        s->writing = filled;
    } while (s->writing->n > 0);
    return BITCONV_OK;
}

enum bitconv_status bc_stream_run(const struct bc_stream_job *job, struct bitconv_error *err)
{
    struct stream *s = bc_alloc_array(1, sizeof *s);
    uint8_t *memory = bc_alloc_array(2 * (size_t)N_PIECES, BC_PIECE_SLOT);
    enum bitconv_status status = BITCONV_OK;
    if (s == NULL || memory == NULL) {
        status = bc_fail_nomem(err, "buffers of the conversion");
    } else if (job->files == NULL ||
               (status = bc_whole_begin(&s->writer.whole, job->plan, err)) == BITCONV_OK) {
        s->job = job;
        for (size_t i = 0; i < 2 * (size_t)N_PIECES; i++)
            s->batches[i / N_PIECES].pieces[i % N_PIECES].slot = memory + i * BC_PIECE_SLOT;
        status = run_batches(s, err);
        bc_fingerprint_cancel(&s->writer.fingerprint);
        bc_whole_release(&s->writer.whole);
    }
    bc_free(memory);
    bc_free(s);
    return status;
}
