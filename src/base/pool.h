/* SPDX-License-Identifier: MIT
 * A fixed pool of threads that runs index ranges. Results must not depend on who ran what. */
#ifndef BC_BASE_POOL_H
#define BC_BASE_POOL_H

#include "base/error.h"

struct bc_pool;
/* n_threads = 0: online processors. Where fewer can be started (memory, ulimit -u), fewer it is. One
 * thread means that everything runs on the caller. */
enum bitconv_status bc_pool_new(unsigned n_threads, struct bc_pool **out,
                                struct bitconv_error *err);
unsigned bc_pool_threads(const struct bc_pool *pool); /* NULL: 1 */
/* Runs fn(ctx, i, worker) for i in [0, n), worker in [0, threads); returns when all are done. The
 * caller's thread is worker 0. pool = NULL runs them in order on the caller. */
void bc_pool_run(struct bc_pool *pool, size_t n, void (*fn)(void *ctx, size_t i, unsigned worker),
                 void *ctx);
void bc_pool_free(struct bc_pool *pool);

/* One function on a thread of its own: fn(ctx) starts at once and has returned when bc_task_join
 * does. Join frees the task; NULL is fine. Where no thread can be started fn runs before bc_task_start
 * returns, and *out is NULL. */
struct bc_task;
enum bitconv_status bc_task_start(void (*fn)(void *ctx), void *ctx, struct bc_task **out,
                                  struct bitconv_error *err);
void bc_task_join(struct bc_task *task);

#endif
