/* SPDX-License-Identifier: MIT
 * Tests of base/pool.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/pool.h"

struct work {
    size_t n;
    unsigned n_workers;
    atomic_int *runs;     /* how often each index ran */
    atomic_int bad_calls; /* index or worker out of range */
    uint64_t *results;
};

static void square(void *ctx, size_t i, unsigned worker)
{
    struct work *const work = ctx;
    if (i >= work->n || worker >= work->n_workers) {
        atomic_fetch_add(&work->bad_calls, 1);
        return;
    }
    atomic_fetch_add(&work->runs[i], 1);
    work->results[i] = (uint64_t)i * i;
}

static void run_squares(struct bc_pool *pool, size_t n)
{
    struct work work = {.n = n, .n_workers = bc_pool_threads(pool)};
    work.runs = bc_alloc_array(n, sizeof *work.runs);
    work.results = bc_alloc_array(n, sizeof *work.results);
    assert_non_null(work.runs);
    assert_non_null(work.results);
    bc_pool_run(pool, n, square, &work);
    assert_int_equal(atomic_load(&work.bad_calls), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(atomic_load(&work.runs[i]), 1);
        assert_true(work.results[i] == (uint64_t)i * i);
    }
    bc_free(work.runs);
    bc_free(work.results);
}

static void test_every_index_once(void **state)
{
    (void)state;
    static const unsigned thread_counts[] = {1, 2, 3, 8, 33};
    for (size_t t = 0; t < sizeof thread_counts / sizeof thread_counts[0]; t++) {
        struct bitconv_error err = {0};
        struct bc_pool *pool;
        assert_int_equal(bc_pool_new(thread_counts[t], &pool, &err), BITCONV_OK);
        assert_int_equal(bc_pool_threads(pool), thread_counts[t]);
        static const size_t sizes[] = {0, 1, 2, 7, 1000, 20000};
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            run_squares(pool, sizes[s]);
        bc_pool_free(pool);
    }
}

/* Many short rounds: a worker that is late for one round must not disturb the next. */
static void test_many_rounds(void **state)
{
    (void)state;
    struct bc_pool *pool;
    assert_int_equal(bc_pool_new(4, &pool, NULL), BITCONV_OK);
    for (size_t round = 0; round < 5000; round++)
        run_squares(pool, round % 9);
    bc_pool_free(pool);
}

static void test_no_pool_and_defaults(void **state)
{
    (void)state;
    assert_int_equal(bc_pool_threads(NULL), 1);
    run_squares(NULL, 100);
    bc_pool_free(NULL);
    struct bc_pool *pool;
    assert_int_equal(bc_pool_new(0, &pool, NULL), BITCONV_OK);
    assert_true(bc_pool_threads(pool) >= 1);
    run_squares(pool, 100);
    bc_pool_free(pool);
}

struct order {
    size_t next;
    size_t n_out_of_order;
};

static void expect_next(void *ctx, size_t i, unsigned worker)
{
    struct order *const order = ctx;
    order->n_out_of_order += i != order->next || worker != 0;
    order->next = i + 1;
}

static void test_one_thread_runs_in_order(void **state)
{
    (void)state;
    struct bc_pool *pool;
    assert_int_equal(bc_pool_new(1, &pool, NULL), BITCONV_OK);
    struct order order = {0, 0};
    bc_pool_run(pool, 1000, expect_next, &order);
    assert_int_equal(order.next, 1000);
    assert_int_equal(order.n_out_of_order, 0);
    bc_pool_free(pool);
}

struct rendezvous {
    atomic_int arrived;
    int wanted;
};

static void wait_for_all(void *ctx, size_t i, unsigned worker)
{
    (void)i;
    (void)worker;
    struct rendezvous *const r = ctx;
    atomic_fetch_add(&r->arrived, 1);
    while (atomic_load(&r->arrived) < r->wanted)
        continue;
}

/* As many indices as threads, each of which waits for the others: ends only when all run at once.
 */
static void test_threads_run_at_once(void **state)
{
    (void)state;
    struct bc_pool *pool;
    assert_int_equal(bc_pool_new(3, &pool, NULL), BITCONV_OK);
    struct rendezvous r = {.wanted = 3};
    bc_pool_run(pool, 3, wait_for_all, &r);
    assert_int_equal(atomic_load(&r.arrived), 3);
    bc_pool_free(pool);
}

static void test_too_many_threads(void **state)
{
    (void)state;
    struct bitconv_error err = {0};
    struct bc_pool *pool;
    assert_int_equal(bc_pool_new(1000000, &pool, &err), BITCONV_E_ARG);
    assert_null(pool);
    assert_non_null(strstr(err.text, "1000000 threads"));
}

struct meeting {
    atomic_bool caller_there, task_there;
};

static void meet(void *ctx)
{
    struct meeting *const meeting = ctx;
    atomic_store(&meeting->task_there, true);
    while (!atomic_load(&meeting->caller_there))
        ;
}

static void test_a_task_runs_beside_its_caller(void **state)
{
    (void)state;
    struct meeting meeting;
    struct bc_task *task;
    atomic_init(&meeting.caller_there, false);
    atomic_init(&meeting.task_there, false);
    assert_int_equal(bc_task_start(meet, &meeting, &task, NULL), BITCONV_OK);
    while (!atomic_load(&meeting.task_there))
        ;
    atomic_store(&meeting.caller_there, true);
    bc_task_join(task);
    bc_task_join(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_many_rounds),
        cmocka_unit_test(test_no_pool_and_defaults),
        cmocka_unit_test(test_one_thread_runs_in_order),
        cmocka_unit_test(test_threads_run_at_once),
        cmocka_unit_test(test_too_many_threads),
        cmocka_unit_test(test_a_task_runs_beside_its_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
