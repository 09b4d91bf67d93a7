/* Days taken apart: what was put into a series of known truth is found again, and nothing that was not. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/synth.h"

struct look { struct series *s; struct analysis *a; const struct decomposition *d; };

static struct look look_at(const struct synth *c)
{
    struct analysis_options o = { .metrics = UINT64_C(1) << METRIC_RSS_ANON };
    struct look l = { .s = synth_series(c) };

    assert_int_equal(analysis_run(&l.a, l.s, &o), 0);
    assert_int_equal(l.a->n, 1);
    l.d = &l.a->finding[0].parts;
    return l;
}

static void look_release(struct look *l)
{
    analysis_free(l->a);
    series_free(l->s);
}

/* A week of daily traffic; noise, no leak. */
static struct synth week(uint64_t seed)
{
    struct synth c = synth_plain(seed);

    c.seconds = 7 * 86400;
    c.interval_s = 60;
    c.rps = 5;
    c.day_low = 0.1;
    c.base = 800e6;
    c.warm = 0;
    c.latency_s = 2;
    c.inflight = 8e6;
    c.noise = 4e6;
    c.rho = 0.9;
    return c;
}

static double requests_a_day(const struct look *l)
{
    return l->s->requests / ((double)(l->s->to_ns - l->s->from_ns) / 8.64e13);
}

static void test_a_leak_by_request(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct synth c = week(seed);
        struct look l;
        double truth;

        c.mem_leak = 60;
        l = look_at(&c);
        truth = 60 * requests_a_day(&l);
        assert_true(l.d->usable && l.d->load_known && l.d->now.usable && l.d->day_before.usable);
        assert_true(l.d->now.score > 50);
        assert_true(fabs(l.d->now.per_request - 60) < 12);
        assert_true(fabs(l.d->now.per_day - truth) < 0.3 * truth);
        assert_true(fabs(l.d->now.gain_last - truth) < 0.3 * truth);
        assert_int_equal(l.d->lives, 1);
        assert_true(l.d->covered[0] > 0.9 && l.d->covered[2] > 0.9);
        look_release(&l);
    }
}

static void test_no_leak(void **state)
{
    double worst = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct synth c = week(seed + 100);
        struct look l = look_at(&c);

        worst = MAX(worst, l.d->now.score);
        assert_true(l.d->now.per_day < 0.004 * l.d->level);
        look_release(&l);
    }
    print_message("highest score of a healthy week: %.1f\n", worst);
}

/* One jump is a step of its size, at its time, and no leak. */
static void test_a_step(void **state)
{
    struct synth c = week(3);
    struct look l;

    (void)state;
    c.spike = 150e6;
    l = look_at(&c);
    assert_int_equal(l.d->nsteps, 1);
    assert_true(fabs(l.d->steps[0].delta - 150e6) < 15e6);
    assert_true(llabs(l.d->steps[0].at_ns - (l.s->from_ns + l.s->to_ns) / 2) < INT64_C(3600000000000));
    assert_false(l.d->staircase);
    assert_true(l.d->now.per_day < 0.004 * l.d->level);
    look_release(&l);
}

/* What fills and stops is an excuse, or has no gain in the last day. */
static void test_a_warm_up(void **state)
{
    struct synth c = week(4);
    struct look l;

    (void)state;
    c.warm = 200e6;
    c.warm_requests = 5 * 0.55 * 20 * 3600; /* twenty hours or so */
    l = look_at(&c);
    assert_true(l.d->now.excuse_part > 100e6);
    assert_true(!(l.d->now.gain_last > 0.5 * l.d->now.gain_fitted) || l.d->now.per_day < 0.004 * l.d->level);
    look_release(&l);
}

/* A leak inside lives of a day, each beginning where the first did. */
static void test_lives(void **state)
{
    struct synth c = week(5);
    struct look l;

    (void)state;
    c.restart_s = 86400;
    c.mem_leak = 300;
    l = look_at(&c);
    assert_int_equal(l.d->lives, 7);
    assert_true(l.d->now.score > 50);
    assert_true(fabs(l.d->now.per_request - 300) < 75);
    assert_true(l.d->now.late_in_life > 0.5);
    look_release(&l);
}

/* Without any count of work the hours of the day take its place. */
static void test_no_load(void **state)
{
    struct synth c = week(6);
    struct look l;
    double truth;

    (void)state;
    c.no_requests = c.no_cpu = true;
    c.mem_leak_s = 400;
    l = look_at(&c);
    truth = 400 * 86400;
    assert_false(l.d->load_known);
    assert_true(isnan(l.d->now.per_request));
    assert_true(fabs(l.d->now.per_day - truth) < 0.3 * truth);
    look_release(&l);
}

static void test_too_short(void **state)
{
    struct synth c = week(7);
    struct look l;

    (void)state;
    c.seconds = 6 * 3600;
    l = look_at(&c);
    assert_false(l.d->usable);
    look_release(&l);
}

static int run_once(void *ctx)
{
    struct analysis_options o = { .metrics = UINT64_C(1) << METRIC_RSS_ANON };
    _cleanup_analysis_ struct analysis *a = NULL;

    return analysis_run(&a, ctx, &o);
}

static void test_out_of_memory(void **state)
{
    struct synth c = week(8);
    _cleanup_series_ struct series *s = NULL;

    (void)state;
    c.seconds = 3 * 86400;
    s = synth_series(&c);
    harness_sweep_allocs(run_once, s);
}

HARNESS_MAIN(CASE(test_a_leak_by_request), CASE(test_no_leak), CASE(test_a_step), CASE(test_a_warm_up), CASE(test_lives), CASE(test_no_load),
             CASE(test_too_short), CASE(test_out_of_memory))
