/* SPDX-License-Identifier: MIT
 * The absmean of BitNet b1.58 ("The Era of 1-bit LLMs", Ma et al. 2024, section 2) in the float32
 * arithmetic of the reference converter: NumPy's pairwise summation.
 *
 * That sum is a binary tree fixed by n alone: S(n) is one unrolled loop for n <= 128, else
 * S(h) + S(n - h) with h = n/2 rounded down to a multiple of 8. So the top of the tree is cut into
 * subtrees, the threads sum these, and one thread folds their results along the same tree: whoever
 * computed what, every addition has the operands it has in NumPy. */
#include <math.h>

#include "base/mem.h"
#include "quant/quantize.h"

#define LEAF_VALUES 128
/* Subtrees above this size are split. Small enough to balance the threads, large enough that
 * handing one out (microseconds) does not count. */
#define TASK_VALUES (UINT64_C(1) << 17)

/* A subtree: the values [first, first + n) and their sum. */
struct subtree {
    uint64_t first;
    uint64_t n;
    float sum;
};

struct sum_job {
    const struct bc_kernels *k;
    const struct bc_values *v;
    bool zero_nonfinite;
    struct subtree *subtrees;
};

/* How many of n > LEAF_VALUES values go to the left child. */
static uint64_t left_size(uint64_t n)
{
    const uint64_t half = n / 2;
    return half - half % 8;
}

static float sum_leaf(const struct sum_job *job, uint64_t first, size_t n)
{
    float values[LEAF_VALUES];
    bc_widen(job->k, job->v, first, n, values);
    if (job->zero_nonfinite) {
        for (size_t i = 0; i < n; i++) {
            if (!isfinite(values[i])) values[i] = 0.0f;
        }
    }
    return job->k->abs_sum_block(values, n);
}

static float sum_tree(const struct sum_job *job, uint64_t first, uint64_t n)
{
    if (n <= LEAF_VALUES) return sum_leaf(job, first, (size_t)n);
    const uint64_t left = left_size(n);
    const float left_sum = sum_tree(job, first, left);
    return left_sum + sum_tree(job, first + left, n - left);
}

static size_t count_subtrees(uint64_t n)
{
    if (n <= TASK_VALUES) return 1;
    const uint64_t left = left_size(n);
    return count_subtrees(left) + count_subtrees(n - left);
}

/* Lists the subtrees from left to right; returns the place behind the last one written. */
static struct subtree *list_subtrees(uint64_t first, uint64_t n, struct subtree *out)
{
    if (n <= TASK_VALUES) {
        *out = (struct subtree){first, n, 0.0f};
        return out + 1;
    }
    const uint64_t left = left_size(n);
    out = list_subtrees(first, left, out);
    return list_subtrees(first + left, n - left, out);
}

/* Adds the sums up along the tree that list_subtrees cut; *next walks the list. */
static float fold_subtrees(uint64_t n, const struct subtree **next)
{
    if (n <= TASK_VALUES) return (*next)++->sum;
    const uint64_t left = left_size(n);
    const float left_sum = fold_subtrees(left, next);
    return left_sum + fold_subtrees(n - left, next);
}

static void sum_subtree(void *ctx, size_t i, unsigned worker)
{
    const struct sum_job *job = ctx;
    struct subtree *t = &job->subtrees[i];
    (void)worker;
    t->sum = sum_tree(job, t->first, t->n);
}

static enum bitconv_status pairwise_abs_sum(const struct bc_kernels *k, struct bc_pool *pool,
                                            const struct bc_values *v, bool zero_nonfinite,
                                            float *out_sum, struct bitconv_error *err)
{
    const size_t n_subtrees = count_subtrees(v->n);
    struct sum_job job = {k, v, zero_nonfinite, NULL};
    job.subtrees = bc_alloc_array(n_subtrees, sizeof *job.subtrees);
    if (job.subtrees == NULL) return bc_fail_nomem(err, "partial sums of a tensor");

    list_subtrees(0, v->n, job.subtrees);
    bc_pool_run(pool, n_subtrees, sum_subtree, &job);
    const struct subtree *next = job.subtrees;
    *out_sum = fold_subtrees(v->n, &next);
    bc_free(job.subtrees);
    return BITCONV_OK;
}

enum bitconv_status bc_absmean(const struct bc_kernels *k, struct bc_pool *pool,
                               const struct bc_values *v, bool zero_nonfinite, float *out_mean,
                               uint64_t *out_nonfinite, struct bitconv_error *err)
{
    float sum;
    *out_nonfinite = BC_NO_INDEX;
    *out_mean = BC_ABSMEAN_MIN;
    if (v->n == 0) return BITCONV_OK;
    BC_TRY(pairwise_abs_sum(k, pool, v, false, &sum, err));

    /* Magnitudes do not cancel: a NaN or Inf anywhere always shows in the sum. */
    if (!isfinite(sum)) {
        float max;
        *out_nonfinite = bc_first_nonfinite(k, pool, v, &max);
        if (*out_nonfinite != BC_NO_INDEX && zero_nonfinite)
            BC_TRY(pairwise_abs_sum(k, pool, v, true, &sum, err));
        if (!isfinite(sum) && (zero_nonfinite || *out_nonfinite == BC_NO_INDEX))
            return bc_fail(
                err, BITCONV_E_UNSUPPORTED,
                "the magnitudes of %llu weights (largest %g) add up to more than float32 "
                "holds, so they have no absmean scale: the weights look damaged",
                (unsigned long long)v->n, (double)max);
    }
    const float mean = sum / (float)v->n;
    if (!(mean < BC_ABSMEAN_MIN)) *out_mean = mean;
    return BITCONV_OK;
}
