#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "lib/harness.h"

struct item {
    int a;
    char b[12];
};

static void test_push_zeroes(void **state)
{
    _cleanup_vec_ struct vec v;
    struct item *it;

    (void)state;
    vec_init(&v, sizeof *it, 100);
    for (int i = 0; i < 2; i++) {
        it = vec_push(&v);
        for (size_t k = 0; k < sizeof *it; k++)
            assert_int_equal(((char *)it)[k], 0);
        memset(it, 0xff, sizeof *it);
        vec_clear(&v);
    }
}

static void test_bound(void **state)
{
    _cleanup_vec_ struct vec v;
    int x = 5;

    (void)state;
    vec_init(&v, sizeof x, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(vec_append(&v, &x), 0);
    assert_int_equal(vec_append(&v, &x), LT_ELIMIT);
    assert_null(vec_push(&v));
    assert_int_equal(v.n, 3);
    assert_int_equal(vec_reserve(&v, 4), LT_ELIMIT);
    assert_int_equal(vec_reserve(&v, 3), 0);
}

static void test_no_room_at_all(void **state)
{
    _cleanup_vec_ struct vec none, huge;

    (void)state;
    vec_init(&none, 8, 0);
    assert_null(vec_push(&none));
    assert_int_equal(vec_reserve(&none, 0), 0);
    vec_init(&huge, 1024, SIZE_MAX);
    assert_int_equal(vec_reserve(&huge, SIZE_MAX / 2), LT_ENOMEM);
}

static void test_order_and_each(void **state)
{
    _cleanup_vec_ struct vec v;
    int n = 0;

    (void)state;
    vec_init(&v, sizeof(int), 1000);
    VEC_EACH(int, it, &v)
        fail_msg("an empty vector has no item %d", *it);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vec_append(&v, &i), 0);
    VEC_EACH(int, it, &v)
        assert_int_equal(*it, n++);
    assert_int_equal(n, 1000);
    assert_int_equal(*(int *)vec_at(&v, 999), 999);
}

static void test_remove_unordered(void **state)
{
    _cleanup_vec_ struct vec v;

    (void)state;
    vec_init(&v, sizeof(int), 10);
    for (int i = 0; i < 3; i++)
        vec_append(&v, &i);
    vec_remove_unordered(&v, 0);
    assert_int_equal(v.n, 2);
    assert_int_equal(*(int *)vec_at(&v, 0), 2);
    assert_int_equal(*(int *)vec_at(&v, 1), 1);
    vec_remove_unordered(&v, 1);
    vec_remove_unordered(&v, 0);
    assert_int_equal(v.n, 0);
}

static int fill(void *ctx)
{
    _cleanup_vec_ struct vec v;

    (void)ctx;
    vec_init(&v, sizeof(int), 500);
    for (int i = 0; i < 500; i++) {
        int r = vec_append(&v, &i);

        if (r < 0) {
            assert_int_equal(v.n, i);
            return r;
        }
    }
    return 0;
}

static void test_no_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(fill, NULL);
}

HARNESS_MAIN(CASE(test_push_zeroes), CASE(test_bound), CASE(test_no_room_at_all), CASE(test_order_and_each),
             CASE(test_remove_unordered), CASE(test_no_memory))
