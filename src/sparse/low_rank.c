/* SPDX-License-Identifier: MIT
 * Cholesky, Jacobi, and block iteration for the best map of low rank. */
#include "sparse/low_rank.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

enum {
    LANES = 8,
    MAX_ITERATIONS = 8,
    MAX_SWEEPS = 60,
    COLUMNS = 64,
    PANEL = 64,
    ROWS = 4,
    EXTRA = 8
};

double bc_dot_f64(const double *a, const double *b, size_t n)
{
    double sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sums[j] += a[i + j] * b[i + j];
    for (size_t j = 0; i + j < n; j++)
        sums[j] += a[i + j] * b[i + j];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
           ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

static void add_scaled(double factor, const double *restrict x, size_t n, double *restrict y)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) /* a shape that compilers make vectors of */
        for (size_t j = 0; j < LANES; j++)
            y[i + j] += factor * x[i + j];
    for (; i < n; i++)
        y[i] += factor * x[i];
}

/* ---- triangles ---- */

/* Row i of L, its columns [from, to); the rows above and the columns in front are complete. False
 * where the diagonal is reached and not positive. */
static bool cholesky_row(double *a, size_t n, size_t i, size_t from, size_t to)
{
    double *row = a + i * n;
    for (size_t j = from; j < to && j <= i; j++) {
        const double *pivot = a + j * n;
        const double rest = row[j] - bc_dot_f64(row, pivot, j);
        if (j == i && (!(rest > 0) || !isfinite(rest))) return false;
        row[j] = j == i ? sqrt(rest) : rest / pivot[j];
    }
    return true;
}

struct columns {
    double *a;
    size_t n, from, to;
};

static void cholesky_below(void *ctx, size_t i, unsigned worker)
{
    const struct columns *c = ctx;
    (void)worker;
    (void)cholesky_row(c->a, c->n, c->to + i, c->from, c->to); /* below the diagonal */
}

/* Panels of columns: the rows that cross the diagonal in order, then all below them at once. */
bool bc_cholesky(struct bc_pool *pool, double *a, size_t n)
{
    for (size_t from = 0; from < n; from += COLUMNS) {
        const size_t to = n - from < COLUMNS ? n : from + COLUMNS;
        for (size_t i = from; i < to; i++)
            if (!cholesky_row(a, n, i, from, to)) return false;
        struct columns c = {a, n, from, to};
        bc_pool_run(pool, n - to, cholesky_below, &c);
    }
    return true;
}

void bc_solve_lower(const double *l, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (x[i] - bc_dot_f64(l + i * n, x, i)) / l[i * n + i];
}

void bc_solve_lower_transposed(const double *l, size_t n, double *x)
{
    for (size_t i = n; i-- > 0;) {
        x[i] /= l[i * n + i];
        add_scaled(-x[i], l + i * n, i, x);
    }
}

/* ---- Jacobi ---- */

static void rotate(double *a, double *b, size_t n, double c, double s)
{
    for (size_t i = 0; i < n; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* Makes two rows orthogonal; false when they are so already. */
static bool orthogonalise(double *z, size_t m, double *t, size_t k, size_t p, size_t q)
{
    double *zp = z + p * m, *zq = z + q * m;
    const double alpha = bc_dot_f64(zp, zp, m), beta = bc_dot_f64(zq, zq, m);
    const double gamma = bc_dot_f64(zp, zq, m);
    if (fabs(gamma) <= 1e-13 * sqrt(alpha) * sqrt(beta)) return false;
    const double zeta = (beta - alpha) / (2 * gamma);
    const double tangent = (zeta < 0 ? -1.0 : 1.0) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    const double cosine = 1 / sqrt(1 + tangent * tangent);
    rotate(zp, zq, m, cosine, cosine * tangent);
    rotate(t + p * k, t + q * k, k, cosine, cosine * tangent);
    return true;
}

static void swap_rows(double *a, size_t width, size_t p, size_t q)
{
    for (size_t i = 0; i < width; i++) {
        const double x = a[p * width + i];
        a[p * width + i] = a[q * width + i];
        a[q * width + i] = x;
    }
}

/* Selection sort: n is small, and rows are moved once at most. */
static void sort_rows(double *z, size_t n, size_t m, double *t, size_t k, double *norms)
{
    for (size_t i = 0; i < n; i++)
        norms[i] = sqrt(bc_dot_f64(z + i * m, z + i * m, m));
    for (size_t i = 0; i < n; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < n; j++)
            if (norms[j] > norms[best]) best = j;
        if (best == i) continue;
        swap_rows(z, m, i, best);
        swap_rows(t, k, i, best);
        swap_rows(norms, 1, i, best);
    }
}

bool bc_jacobi_rows(double *z, size_t n, size_t m, double *t, size_t k, double *norms)
{
    bool rotated = true;
    for (size_t sweep = 0; rotated && sweep < MAX_SWEEPS; sweep++) {
        rotated = false;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++)
                if (orthogonalise(z, m, t, k, p, q)) rotated = true;
    }
    sort_rows(z, n, m, t, k, norms);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(norms[i])) return false;
    return !rotated;
}

/* ---- the fit ---- */

/* Vectors of the block are rows: q and t [block, d], z [block, m]. */
struct fit {
    const struct bc_low_rank *p;
    struct bc_pool *pool;
    size_t block;
    double *l; /* [d, d] */
    double *q, *t, *z, *norms;
};

static size_t block_size(uint64_t d, uint64_t m, uint64_t rank)
{
    const uint64_t least = d < m ? d : m, wanted = rank + rank / 2 + EXTRA;
    return (size_t)(wanted < least ? wanted : least);
}

uint64_t bc_low_rank_memory(uint64_t d, uint64_t m, uint64_t rank)
{
    const uint64_t block = rank + rank / 2 + EXTRA;
    uint64_t square, vectors, sum;
    if (!bc_add_u64(d, m, &sum) || !bc_mul_u64(d, d, &square) ||
        !bc_mul_u64(sum, 4 * block, &vectors) || !bc_add_u64(square, vectors, &sum) ||
        !bc_mul_u64(sum, sizeof(double), &sum))
        return UINT64_MAX;
    return sum;
}

static void release(struct fit *f)
{
    bc_free(f->l);
    bc_free(f->q);
    bc_free(f->t);
    bc_free(f->z);
    bc_free(f->norms);
}

/* t = L^-T q, one vector. */
static void solve_vector(void *ctx, size_t v, unsigned worker)
{
    const struct fit *f = ctx;
    const size_t d = f->p->d;
    (void)worker;
    memcpy(f->t + v * d, f->q + v * d, d * sizeof *f->t);
    bc_solve_lower_transposed(f->l, d, f->t + v * d);
}

/* z = t cross, a panel of its columns. */
static void cross_panel(void *ctx, size_t panel, unsigned worker)
{
    const struct fit *f = ctx;
    const size_t m = f->p->m, d = f->p->d, at = panel * PANEL;
    const size_t n = m - at < PANEL ? m - at : PANEL;
    (void)worker;
    for (size_t v = 0; v < f->block; v++)
        memset(f->z + v * m + at, 0, n * sizeof *f->z);
    for (size_t r = 0; r < d; r += ROWS) /* a few rows: each stays in the cache for all vectors */
        for (size_t v = 0; v < f->block; v++)
            for (size_t i = r; i < d && i < r + ROWS; i++)
                add_scaled(f->t[v * d + i], f->p->cross + i * m + at, n, f->z + v * m + at);
}

/* q = cross z^T, a few coordinates of all vectors. */
static void cross_rows(void *ctx, size_t i, unsigned worker)
{
    const struct fit *f = ctx;
    const size_t m = f->p->m, d = f->p->d;
    (void)worker;
    for (size_t v = 0; v < f->block; v++)
        for (size_t r = i * ROWS; r < d && r < (i + 1) * ROWS; r++)
            f->q[v * d + r] = bc_dot_f64(f->p->cross + r * m, f->z + v * m, m);
}

static void solve_back(void *ctx, size_t v, unsigned worker)
{
    const struct fit *f = ctx;
    (void)worker;
    bc_solve_lower(f->l, f->p->d, f->q + v * f->p->d);
}

/* Orthonormal rows by modified Gram-Schmidt, twice ("twice is enough": Giraud et al. 2005). What
 * is left of a dependent row is noise: it becomes 0. */
static void orthonormal_rows(double *q, size_t n, size_t d)
{
    for (size_t i = 0; i < n; i++) {
        double *row = q + i * d;
        const double before = sqrt(bc_dot_f64(row, row, d));
        for (int pass = 0; pass < 2; pass++)
            for (size_t j = 0; j < i; j++)
                add_scaled(-bc_dot_f64(row, q + j * d, d), q + j * d, d, row);
        const double after = sqrt(bc_dot_f64(row, row, d));
        const double factor = after > 1e-11 * before ? 1 / after : 0;
        for (size_t c = 0; c < d; c++)
            row[c] *= factor;
    }
}

/* splitmix64 (Steele et al. 2014), as numbers in [-1, 1). */
static double next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-52 - 1.0;
}

static void start_vectors(struct fit *f)
{
    const size_t d = f->p->d;
    uint64_t state = 1;
    for (size_t i = 0; i < f->block * d; i++)
        f->q[i] = next_random(&state);
    orthonormal_rows(f->q, f->block, d);
}

/* From q to t and z; what the block captures of |B|^2. */
static double project(struct fit *f)
{
    const size_t m = f->p->m;
    double captured = 0;
    bc_pool_run(f->pool, f->block, solve_vector, f);
    bc_pool_run(f->pool, (m + PANEL - 1) / PANEL, cross_panel, f);
    for (size_t v = 0; v < f->block; v++)
        captured += bc_dot_f64(f->z + v * m, f->z + v * m, m);
    return captured;
}

static void iterate(struct fit *f)
{
    double before = 0, captured;
    start_vectors(f);
    captured = project(f);
    for (size_t i = 0; i < MAX_ITERATIONS && captured - before > 1e-3 * captured; i++) {
        before = captured;
        bc_pool_run(f->pool, (f->p->d + ROWS - 1) / ROWS, cross_rows, f);
        bc_pool_run(f->pool, f->block, solve_back, f);
        orthonormal_rows(f->q, f->block, f->p->d);
        captured = project(f);
    }
}

static double largest(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

/* The components asked for, balanced; those whose share is rounding noise are 0. */
static void take_components(const struct fit *f, double *ut, double *vt, double *captured)
{
    const struct bc_low_rank *p = f->p;
    *captured = 0;
    for (size_t r = 0; r < p->rank; r++) {
        const double *u = f->t + r * p->d, *v = f->z + r * p->m;
        const double u_max = largest(u, p->d), v_max = largest(v, p->m);
        const bool is = f->norms[r] > 1e-12 * f->norms[0] && u_max > 0 && v_max > 0;
        const double factor = is ? sqrt(v_max / u_max) : 0;
        for (size_t i = 0; i < p->d; i++)
            ut[r * p->d + i] = u[i] * factor;
        for (size_t i = 0; i < p->m; i++)
            vt[r * p->m + i] = is ? v[i] / factor : 0;
        *captured += is ? f->norms[r] * f->norms[r] : 0;
    }
}

static enum bitconv_status run(struct fit *f, double *ut, double *vt, double *captured,
                               struct bitconv_error *err)
{
    const struct bc_low_rank *p = f->p;
    const size_t d = p->d;
    f->l = bc_alloc_array(d, d * sizeof *f->l);
    f->q = bc_alloc_array(f->block, d * sizeof *f->q);
    f->t = bc_alloc_array(f->block, d * sizeof *f->t);
    f->z = bc_alloc_array(f->block, p->m * sizeof *f->z);
    f->norms = bc_alloc_array(f->block, sizeof *f->norms);
    if (f->l == NULL || f->q == NULL || f->t == NULL || f->z == NULL || f->norms == NULL)
        return bc_fail_nomem(err, "fitting a predictor");
    for (size_t i = 0; i < d; i++) {
        memcpy(f->l + i * d, p->gram + i * d, (i + 1) * sizeof *f->l);
        f->l[i * d + i] += p->ridge;
    }
    if (!bc_cholesky(f->pool, f->l, d))
        return bc_fail(err, BITCONV_E_ARG,
                       "the inputs of the samples do not determine a map: more samples or a larger "
                       "--ridge are needed");
    iterate(f);
    if (!bc_jacobi_rows(f->z, f->block, p->m, f->t, d, f->norms))
        return bc_fail(err, BITCONV_E_ARG, "the singular vectors of the map do not converge");
    take_components(f, ut, vt, captured);
    return BITCONV_OK;
}

enum bitconv_status bc_low_rank_fit(const struct bc_low_rank *problem, struct bc_pool *pool,
                                    double *ut, double *vt, double *captured,
                                    struct bitconv_error *err)
{
    struct fit f = {.p = problem, .pool = pool};
    f.block = block_size(problem->d, problem->m, problem->rank);
    const enum bitconv_status status = run(&f, ut, vt, captured, err);
    release(&f);
    return status;
}
