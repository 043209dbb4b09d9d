/* SPDX-License-Identifier: MIT
 * A fixed pool of threads that runs index ranges. */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { MAX_THREADS = 1024 };

struct worker {
    struct bc_pool *pool;
    pthread_t thread;
    unsigned index; /* 1 and up: the caller is worker 0 */
};

struct bc_pool {
    unsigned n_threads;
    unsigned n_started; /* threads in workers[], at most n_threads - 1 */
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t work_ready;
    pthread_cond_t work_done;
    /* Under the lock: */
    uint64_t round;  /* counts calls of bc_pool_run; a change means work */
    unsigned n_busy; /* workers that have not finished this round */
    bool quit;
    /* Written before a round starts, read only during it: */
    void (*fn)(void *ctx, size_t i, unsigned worker);
    void *ctx;
    size_t n;
    atomic_size_t next; /* first index that nobody has taken */
};

static void run_share(struct bc_pool *pool, unsigned worker)
{
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= pool->n) return;
        pool->fn(pool->ctx, i, worker);
    }
}

static void *worker_main(void *arg)
{
    const struct worker *const self = arg;
    struct bc_pool *const pool = self->pool;
    uint64_t seen = 0;
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && pool->round == seen)
            (void)pthread_cond_wait(&pool->work_ready, &pool->lock);
        if (pool->quit) break;
        seen = pool->round;
        (void)pthread_mutex_unlock(&pool->lock);
        run_share(pool, self->index);
        (void)pthread_mutex_lock(&pool->lock);
        if (--pool->n_busy == 0) (void)pthread_cond_signal(&pool->work_done);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Signals that ask the program to stop belong to the threads of the caller: handlers run there, and
 * no system call of a worker is interrupted. Faults stay deliverable. */
static void signals_for_workers(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    (void)sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        (void)sigdelset(set, faults[i]);
}

/* Stacks of 1 MiB: nothing of ours needs more, and the usual 8 MiB of each of many threads do not fit
 * where the address space is limited (ulimit -v). Returns 0 or an error number. */
static int start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    enum { STACK_SIZE = 1 << 20 };
    sigset_t blocked, before;
    pthread_attr_t attributes;
    int failure = pthread_attr_init(&attributes);
    if (failure != 0) return failure;
    signals_for_workers(&blocked);
    failure = pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (failure == 0) failure = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (failure == 0) {
        failure = pthread_create(thread, &attributes, run, arg);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return failure;
}

/* As many as can be had: results do not depend on the number. */
static void start_workers(struct bc_pool *pool)
{
    while (pool->n_started + 1 < pool->n_threads) {
        struct worker *const worker = &pool->workers[pool->n_started];
        worker->pool = pool;
        worker->index = pool->n_started + 1;
        if (start_thread(&worker->thread, worker_main, worker) != 0) break;
        pool->n_started++;
    }
    pool->n_threads = pool->n_started + 1;
}

static int init_locks(struct bc_pool *pool)
{
    int failure = pthread_mutex_init(&pool->lock, NULL);
    if (failure != 0) return failure;
    failure = pthread_cond_init(&pool->work_ready, NULL);
    if (failure == 0) {
        failure = pthread_cond_init(&pool->work_done, NULL);
        if (failure == 0) return 0;
        (void)pthread_cond_destroy(&pool->work_ready);
    }
    (void)pthread_mutex_destroy(&pool->lock);
    return failure;
}

static unsigned online_processors(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1) return 1;
    return n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

enum bitconv_status bc_pool_new(unsigned n_threads, struct bc_pool **out, struct bitconv_error *err)
{
    *out = NULL;
    if (n_threads > MAX_THREADS)
        return bc_fail(err, BITCONV_E_ARG, "%u threads asked for: at most %d are possible",
                       n_threads, MAX_THREADS);
    struct bc_pool *const pool = bc_alloc_array(1, sizeof *pool);
    if (pool == NULL) return bc_fail_nomem(err, "thread pool");
    pool->n_threads = n_threads > 0 ? n_threads : online_processors();
    pool->workers = bc_alloc_array(pool->n_threads, sizeof *pool->workers);
    atomic_init(&pool->next, 0);
    const int lock_failure = pool->workers == NULL ? ENOMEM : init_locks(pool);
    if (lock_failure != 0) {
        bc_free(pool->workers);
        bc_free(pool);
        errno = lock_failure;
        return bc_fail_errno(err, "cannot set up a thread pool");
    }
    start_workers(pool);
    *out = pool;
    return BITCONV_OK;
}

unsigned bc_pool_threads(const struct bc_pool *pool)
{
    return pool != NULL ? pool->n_threads : 1;
}

void bc_pool_run(struct bc_pool *pool, size_t n, void (*fn)(void *ctx, size_t i, unsigned worker),
                 void *ctx)
{
    if (pool == NULL || pool->n_started == 0 || n <= 1) {
        for (size_t i = 0; i < n; i++)
            fn(ctx, i, 0);
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->ctx = ctx;
    pool->n = n;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->n_busy = pool->n_started;
    pool->round++;
    (void)pthread_cond_broadcast(&pool->work_ready);
    (void)pthread_mutex_unlock(&pool->lock);

    run_share(pool, 0);

    (void)pthread_mutex_lock(&pool->lock);
    while (pool->n_busy > 0)
        (void)pthread_cond_wait(&pool->work_done, &pool->lock);
    (void)pthread_mutex_unlock(&pool->lock);
}

void bc_pool_free(struct bc_pool *pool)
{
    if (pool == NULL) return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    (void)pthread_cond_broadcast(&pool->work_ready);
    (void)pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->n_started; i++)
        (void)pthread_join(pool->workers[i].thread, NULL);
    (void)pthread_cond_destroy(&pool->work_done);
    (void)pthread_cond_destroy(&pool->work_ready);
    (void)pthread_mutex_destroy(&pool->lock);
    bc_free(pool->workers);
    bc_free(pool);
}

struct bc_task {
    pthread_t thread;
    void (*fn)(void *ctx);
    void *ctx;
};

static void *task_main(void *arg)
{
    const struct bc_task *const task = arg;
    task->fn(task->ctx);
    return NULL;
}

enum bitconv_status bc_task_start(void (*fn)(void *ctx), void *ctx, struct bc_task **out,
                                  struct bitconv_error *err)
{
    *out = NULL;
    struct bc_task *const task = bc_alloc_array(1, sizeof *task);
    if (task == NULL) return bc_fail_nomem(err, "thread");
    task->fn = fn;
    task->ctx = ctx;
    if (start_thread(&task->thread, task_main, task) != 0) {
        bc_free(task); /* no thread to be had: the caller does the work itself, now */
        fn(ctx);
        return BITCONV_OK;
    }
    *out = task;
    return BITCONV_OK;
}

void bc_task_join(struct bc_task *task)
{
    if (task == NULL) return;
    (void)pthread_join(task->thread, NULL);
    bc_free(task);
}
