/* SPDX-License-Identifier: MIT
 * The kernels proof: integer products through each pack's own kernels, on every instruction set of
 * this machine, equal the sums over the trits of the independent reader, for every row of the file. */
#include <inttypes.h>
#include <string.h>

#include "verify/proofs.h"

enum {
    ROWS = 32, /* that the engine multiplies at once, and a multiple of every pack's row_step */
    VECTORS = 3
};

/* Products of one tensor that a thread found to differ. */
struct wrong {
    uint64_t row; /* the lowest; UINT64_MAX: none */
    const char *kernels;
    int32_t found, wanted;
};

/* What the threads share. */
struct multiplying {
    const struct bc_packed *p;
    const int8_t *x;     /* VECTORS * cols */
    int8_t *trits;       /* by worker: ROWS * cols */
    struct wrong *wrong; /* by worker */
};

/* Activations of all int8 values, always the same (a linear congruential generator, constants of
 * Knuth's MMIX). */
static void fill(int8_t *x, uint64_t n)
{
    uint64_t state = 1;
    for (uint64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (int8_t)((int)(state >> 56) - 128);
    }
}

/* The definition. */
static int32_t sum(const int8_t *trits, const int8_t *x, uint64_t n)
{
    int32_t s = 0;
    for (uint64_t i = 0; i < n; i++)
        s += trits[i] * x[i];
    return s;
}

static void compare(struct wrong *wrong, const char *kernels, uint64_t row, uint64_t n_rows,
                    uint32_t n_x, const int32_t *found, const int32_t *wanted)
{
    for (uint64_t i = 0; i < n_rows * n_x; i++) {
        if (found[i] == wanted[i] || row + i % n_rows >= wrong->row) continue;
        *wrong = (struct wrong){row + i % n_rows, kernels, found[i], wanted[i]};
    }
}

/* A block of rows: one vector has kernels of its own in some packs, several share the unpacking. */
static void multiply_block(void *ctx, size_t index, unsigned worker)
{
    const struct multiplying *m = ctx;
    const struct bc_pack_shape *shape = &m->p->shape;
    const uint64_t all = shape->rows * shape->slices, cols = shape->cols;
    const uint64_t row = (uint64_t)index * ROWS;
    const uint64_t n = all - row < ROWS ? all - row : ROWS;
    int8_t *trits = m->trits + (size_t)worker * ROWS * cols;
    int32_t wanted[VECTORS * ROWS], found[VECTORS * ROWS];
    (void)bc_packed_read(m->p, row * cols, n * cols, trits);
    for (uint64_t i = 0; i < VECTORS * n; i++)
        wanted[i] = sum(trits + i % n * cols, m->x + i / n * cols, cols);
    for (size_t k = 0; bc_kernels_at(k) != NULL; k++) {
        const struct bc_kernels *kernels = bc_kernels_at(k);
        for (uint32_t n_x = 1; n_x <= VECTORS; n_x += VECTORS - 1) {
            m->p->format->dot_rows(kernels, shape, m->p->data, row, n, m->x, cols, n_x, found);
            compare(&m->wrong[worker], kernels->name, row, n, n_x, found, wanted);
        }
    }
}

static enum bitconv_status multiply(struct bc_verifier *v, struct bitconv_proof *proof,
                                    size_t index, struct multiplying *m, struct bitconv_error *err)
{
    const struct bc_pack_shape *shape = &m->p->shape;
    const unsigned n_workers = bc_pool_threads(v->pool);
    const uint64_t blocks = (shape->rows * shape->slices + ROWS - 1) / ROWS;
    int8_t *x = bc_alloc_array((size_t)shape->cols, VECTORS);
    m->trits = bc_alloc_array((size_t)shape->cols, (size_t)ROWS * n_workers);
    m->wrong = bc_alloc_array(n_workers, sizeof *m->wrong);
    m->x = x;
    enum bitconv_status status = BITCONV_OK;
    if (x == NULL || m->trits == NULL || m->wrong == NULL) {
        status = bc_fail_nomem(err, "rows of trits");
    } else {
        fill(x, VECTORS * shape->cols);
        for (unsigned i = 0; i < n_workers; i++)
            m->wrong[i].row = UINT64_MAX;
        bc_pool_run(v->pool, (size_t)blocks, multiply_block, m);
        const struct wrong *first = &m->wrong[0];
        for (unsigned i = 1; i < n_workers; i++)
            if (m->wrong[i].row < first->row) first = &m->wrong[i];
        if (first->row != UINT64_MAX)
            bc_problem(v, proof, index,
                       "%s: row %" PRIu64 " times the activations of the proof is %" PRId32
                       " by the %s kernels, %" PRId32 " over its trits",
                       v->result->tensors[index].name, first->row, first->found, first->kernels,
                       first->wanted);
    }
    bc_free(x);
    bc_free(m->trits);
    bc_free(m->wrong);
    return status;
}

/* Codes without a meaning have no product; sums of wider rows may not fit. */
static bool can_multiply(const struct bc_tensor_proof *tp)
{
    return tp->packed.format != NULL && tp->scanned && tp->scan.illegal == 0 &&
           tp->scan.payload[0] == '\0' && tp->packed.shape.cols <= INT32_MAX / 128;
}

static void conclude(struct bc_verifier *v, struct bitconv_proof *proof)
{
    struct bc_buf names = {0};
    for (size_t k = 0; bc_kernels_at(k) != NULL; k++)
        bc_buf_printf(&names, "%s%s", k > 0 ? ", " : "", bc_kernels_at(k)->name);
    bc_conclude(v, proof,
                "%" PRIu64 " tensors, every row times int8 activations by the packs' own kernels "
                "(%s): equal to the sums over their trits",
                proof->checked, bc_buf_str(&names));
    bc_buf_release(&names);
}

enum bitconv_status bc_prove_kernels(struct bc_verifier *v, struct bitconv_proof *proof,
                                     struct bitconv_error *err)
{
    const uint64_t total = bitconv_gguf_file_size(v->container.gguf);
    uint64_t done = 0;
    if (!v->options->forward) {
        bc_not_run(v, proof, "no --forward given");
        return BITCONV_OK;
    }
    for (size_t i = 0; i < v->result->n_tensors; i++) {
        struct multiplying m = {.p = &v->tensors[i].packed};
        if (bc_canceled(v->sink)) return bc_fail(err, BITCONV_E_CANCELED, "canceled");
        if (!can_multiply(&v->tensors[i])) {
            proof->skipped++;
            continue;
        }
        BC_TRY(multiply(v, proof, i, &m, err));
        proof->checked++;
        done += m.p->size;
        bc_progress(v->sink, "multiplying", done, total);
    }
    bc_progress(v->sink, "multiplying", total, total);
    if (proof->checked == 0)
        bc_not_run(v, proof, "the file holds no ternary pack that can be multiplied");
    else
        conclude(v, proof);
    return BITCONV_OK;
}
