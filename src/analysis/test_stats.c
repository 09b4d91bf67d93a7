/* The small statistics against known values and brute force. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/random.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void test_quantile_is_that_of_a_sort(void **state)
{
    struct random r = { 7 };

    (void)state;
    for (size_t round = 0; round < 3000; round++) {
        double v[40], sorted[40], q = (double)random_below(&r, 101) / 100;
        size_t n = 1 + random_below(&r, 40);

        for (size_t i = 0; i < n; i++)
            v[i] = (double)random_below(&r, round % 3 ? 5 : 1000);
        memcpy(sorted, v, sizeof v);
        qsort(sorted, n, sizeof *sorted, by_value);
        assert_true(stats_quantile(v, n, q) == sorted[(size_t)(q * (double)(n - 1))]);
        assert_true(fabs(stats_median(v, n) - (sorted[n / 2] + sorted[(n - 1) / 2]) / 2) < 1e-9);
    }
    assert_true(isnan(stats_median(NULL, 0)));
}

/* Of 200,000 values, in orders that make bad pivots quadratic. */
static void test_selection_survives_bad_orders(void **state)
{
    enum { N = 20000 };
    _cleanup_mem_ double *v = mem_alloc(N * sizeof *v);

    (void)state;
    assert_non_null(v);
    for (int order = 0; order < 4; order++) {
        for (int i = 0; i < N; i++)
            v[i] = order == 0 ? i : order == 1 ? N - 1 - i : order == 2 ? (i < N / 2 ? i : N - 1 - i) : i % 2;
        double want = order < 2 ? (N - 1) / 2 : order == 2 ? (N / 2 - 1) / 2 : 0;

        assert_true(fabs(stats_quantile(v, N, 0.5) - want) <= 1);
    }
}

static void test_student_t(void **state)
{
    static const struct { double df, t; } table[] = { { 1, 6.314 }, { 2, 2.920 }, { 5, 2.015 }, { 10, 1.812 }, { 20, 1.725 }, { 30, 1.697 }, { 120, 1.658 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_true(fabs(stats_t95(table[i].df) - table[i].t) < 0.005 * table[i].t);
}

static void test_kendall(void **state)
{
    double tau, p;

    (void)state;
    stats_kendall((const double[]){ 1, 2, 3, 4 }, 4, &tau, &p);
    assert_true(tau == 1 && fabs(p - 1.0 / 24) < 1e-12);
    stats_kendall((const double[]){ 4, 3, 2, 1 }, 4, &tau, &p);
    assert_true(tau == -1 && fabs(p - 1) < 1e-12);
    stats_kendall((const double[]){ 1, 3, 2, 4, 5 }, 5, &tau, &p);
    assert_true(fabs(tau - 0.8) < 1e-12 && fabs(p - 5.0 / 120) < 1e-12);
    stats_kendall((const double[]){ 1, 1, 2, 3, 4, 5 }, 6, &tau, &p);
    assert_true(tau > 0.9 && fabs(p - 6.0 / 720) < 1e-12); /* as with one inversion */
    stats_kendall((const double[]){ 2, 2, 2, 2 }, 4, &tau, &p);
    assert_true(tau == 0 && p == 1);
    stats_kendall((const double[]){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, 12, &tau, &p);
    assert_true(tau == 1 && p < 1e-5);
}

static void test_theil_sen(void **state)
{
    double slope, lo;

    (void)state;
    stats_theil_sen((const double[]){ 0, 1, 2, 3, 4, 5 }, (const double[]){ 1, 3, 5, 7, 9, 1000 }, 6, &slope, &lo);
    assert_true(slope == 2 && lo <= 2);
    stats_theil_sen((const double[]){ 0, 1 }, (const double[]){ 1, 3 }, 2, &slope, &lo);
    assert_true(isnan(slope) && isnan(lo));
}

static void test_line_skips_what_is_missing(void **state)
{
    double x[] = { 0, 1, 2, 3, 4 }, y[] = { 1, 3, NAN, 7, 9 };
    struct line l = stats_line(x, y, 5);

    (void)state;
    assert_int_equal(l.n, 4);
    assert_true(fabs(l.slope - 2) < 1e-12 && fabs(l.at0 - 1) < 1e-12 && l.sse < 1e-20);
    assert_true(isnan(stats_line(x, y, 1).slope));
    assert_true(isnan(stats_line((double[]){ 1, 1, 1 }, y, 2).slope));
}

HARNESS_MAIN(CASE(test_quantile_is_that_of_a_sort), CASE(test_selection_survives_bad_orders), CASE(test_student_t), CASE(test_kendall),
             CASE(test_theil_sen), CASE(test_line_skips_what_is_missing))
