#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "lib/harness.h"

static void test_live_and_total(void **state)
{
    int64_t live = mem_live_blocks();
    uint64_t total = mem_total_allocs();
    char *a = mem_alloc(10), *b = mem_zalloc(3, 7), *c = mem_strdup("abc");

    (void)state;
    assert_int_equal(mem_live_blocks(), live + 3);
    assert_int_equal(mem_total_allocs(), total + 3);
    for (size_t i = 0; i < 21; i++)
        assert_int_equal(b[i], 0);
    assert_string_equal(c, "abc");
    a = mem_realloc(a, 1000);
    assert_int_equal(mem_live_blocks(), live + 3);
    assert_int_equal(mem_total_allocs(), total + 4);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(NULL);
    assert_int_equal(mem_live_blocks(), live);
}

static void test_sizes_at_the_edge(void **state)
{
    void *a = mem_alloc(0), *b = mem_zalloc(0, 8), *c = mem_realloc(NULL, 0);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    c = mem_realloc(c, 0);
    assert_non_null(c);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    assert_null(mem_zalloc(SIZE_MAX / 2, 3));
}

static void test_strndup(void **state)
{
    static const char raw[4] = { 'a', 'b', 'c', 'd' }; /* no NUL: must not be read past n */
    char *cut = mem_strndup(raw, 4), *whole = mem_strndup("xy", 100);

    (void)state;
    assert_int_equal(strlen(cut), 4);
    assert_memory_equal(cut, raw, 4);
    assert_string_equal(whole, "xy");
    mem_free(cut);
    mem_free(whole);
}

static void test_fail_nth(void **state)
{
    void *a, *b, *c;

    (void)state;
    mem_fail_nth(2);
    assert_false(mem_failed());
    a = mem_alloc(1);
    b = mem_alloc(1);
    assert_true(mem_failed());
    c = mem_alloc(1);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    mem_fail_nth(1);
    assert_false(mem_failed());
    assert_null(mem_realloc(a, 100)); /* a is intact */
    *(char *)a = 1;
    mem_fail_nth(1);
    assert_null(mem_zalloc(1, 1));
    mem_fail_nth(1);
    assert_null(mem_strdup("x"));
    mem_fail_nth(5);
    mem_fail_nth(0);
    for (int i = 0; i < 10; i++) {
        void *p = mem_alloc(1);

        assert_non_null(p);
        mem_free(p);
    }
    mem_free(a);
    mem_free(c);
}

static void test_cleanup_and_take(void **state)
{
    int64_t live = mem_live_blocks();
    char *kept;

    (void)state;
    {
        _cleanup_mem_ char *dropped = mem_strdup("a");
        _cleanup_mem_ char *taken = mem_strdup("b");

        assert_non_null(dropped);
        kept = TAKE_PTR(taken);
        assert_null(taken);
    }
    assert_int_equal(mem_live_blocks(), live + 1);
    mem_free(kept);
}

static void *churn(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++)
        mem_free(mem_alloc(16));
    return NULL;
}

static void test_counters_hold_with_threads(void **state)
{
    int64_t live = mem_live_blocks();
    uint64_t total = mem_total_allocs();
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(mem_live_blocks(), live);
    assert_int_equal(mem_total_allocs() - total, 40000);
}

static void test_min_max(void **state)
{
    int i = 0;

    (void)state;
    assert_int_equal(MIN(3, MAX(1, MIN(9, 2))), 2);
    assert_int_equal(MAX(i++, 0), 0);
    assert_int_equal(i, 1);
    assert_int_equal(ARRAY_SIZE(((int[]){ 1, 2, 3 })), 3);
}

HARNESS_MAIN(CASE(test_live_and_total), CASE(test_sizes_at_the_edge), CASE(test_strndup), CASE(test_fail_nth),
             CASE(test_cleanup_and_take), CASE(test_counters_hold_with_threads), CASE(test_min_max))
