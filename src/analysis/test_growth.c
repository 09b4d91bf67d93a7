/* Growth, its intervals, the load, steps, the end of traffic, floors by day: on series of known truth. */
#include <math.h>
#include <stdio.h>

#include "analysis/analysis.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/synth.h"

struct look { struct series *s; struct analysis *a; const struct finding *f; };

static struct look look_at(const struct synth *c, bool steady, enum metric_id m)
{
    struct analysis_options o = { .steady = steady };
    struct look l = { .s = synth_series(c) };

    assert_int_equal(analysis_run(&l.a, l.s, &o), 0);
    l.f = analysis_find(l.a, m);
    assert_non_null(l.f);
    return l;
}

static void look_release(struct look *l)
{
    analysis_free(l->a);
    series_free(l->s);
}

/* The share of runs whose 90 % interval holds the true growth per 1,000 requests. */
static double coverage(double rho, double *ret_mean_width)
{
    const double truth = 4000 * 1000;
    size_t held = 0, n = 400;

    *ret_mean_width = 0;
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct synth c = synth_plain(seed * 31 + 5);
        struct look l;

        c.seconds = 900;
        c.mem_leak = 4000;
        c.noise = 400e3;
        c.rho = rho;
        l = look_at(&c, true, METRIC_RSS_ANON);
        held += l.f->per_kreq.lo <= truth && truth <= l.f->per_kreq.hi;
        *ret_mean_width += (l.f->per_kreq.hi - l.f->per_kreq.lo) / (double)n;
        look_release(&l);
    }
    return (double)held / (double)n;
}

/* methods.md: nominal 90 % intervals hold the truth in 85 to 95 %, whatever the autocorrelation. */
static void test_intervals_hold_the_truth(void **state)
{
    static const double rhos[] = { 0.0, 0.74, 0.93, 0.97, 0.99 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rhos); i++) {
        double width, share = coverage(rhos[i], &width);

        printf("rho %.2f: %.1f %% of the 90 %% intervals hold the truth (mean width %.0f bytes per 1,000 requests)\n", rhos[i], 100 * share, width);
        assert_true(share >= 0.85 && share <= 0.97);
    }
}

static void test_counts_are_exact(void **state)
{
    struct synth c = synth_plain(3);
    struct look l;

    (void)state;
    c.fd_leak = 1;
    c.latency_s = 0;
    l = look_at(&c, true, METRIC_FILES);
    assert_true(fabs(l.f->per_kreq.value - 1000) < 2);
    assert_true(l.f->per_kreq.lo > 990 && l.f->per_kreq.hi < 1010);
    assert_true(l.f->growth.halves_agree && l.f->growth.quanta >= 10);
    look_release(&l);
}

static void test_load_and_its_ends(void **state)
{
    struct synth c = synth_plain(4);
    struct look l;

    (void)state;
    c.head_s = 40;
    c.tail_s = 80;
    l = look_at(&c, true, METRIC_FDS);
    assert_int_equal(l.f->load.source, LOAD_REQUESTS);
    assert_true(l.f->load.constant);
    assert_true(fabs(l.f->load.head_s - 40) < 5 && fabs(l.f->load.tail_s - 80) < 5);
    assert_true(fabs(l.f->load.per_s - 20) < 2);
    assert_true(l.f->ebb.known);
    look_release(&l);

    c.no_requests = true;
    l = look_at(&c, true, METRIC_FDS);
    assert_int_equal(l.f->load.source, LOAD_CPU);
    assert_true(fabs(l.f->load.tail_s - 80) < 15);
    look_release(&l);

    c = synth_plain(4);
    c.ramp = 4;
    l = look_at(&c, true, METRIC_FDS);
    assert_false(l.f->load.constant);
    look_release(&l);
}

static void test_warmup_is_cut(void **state)
{
    struct synth c = synth_plain(5);
    struct look l;

    (void)state;
    c.warm = 60e6;
    c.warm_requests = 800;
    l = look_at(&c, true, METRIC_RSS_ANON);
    assert_true(l.f->warmup.settled);
    assert_true(l.f->warmup.requests > 2000 && l.f->warmup.share <= 0.5);
    assert_true(fabs(l.f->growth.rise) < 2e6);
    look_release(&l);
}

static void test_a_jump_is_found(void **state)
{
    struct synth c = synth_plain(6);
    struct look l;

    (void)state;
    c.spike = 30e6;
    c.noise = 100e3;
    c.rho = 0.9;
    l = look_at(&c, true, METRIC_RSS_ANON);
    assert_int_equal(l.f->nsteps, 1);
    assert_true(fabs(l.f->steps[0].delta - 30e6) < 1e6);
    assert_true(fabs((double)(l.f->steps[0].at_ns - l.s->from_ns) / 1e9 - 210) < 20);
    assert_true(fabs(l.f->beside_steps) < 1e6);
    look_release(&l);
}

static void test_days_and_low_windows(void **state)
{
    struct synth c = synth_plain(7);
    struct look l;

    (void)state;
    c.seconds = 4 * 86400;
    c.interval_s = 120;
    c.rps = 2;
    c.day_low = 0.02;
    c.mem_leak_s = 100e6 / 86400;
    l = look_at(&c, false, METRIC_RSS_ANON);
    assert_int_equal(l.f->days.n, 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(l.f->days.day[i].usable);
        assert_true(fabs(l.f->days.day[i].floor - l.f->days.day[i - 1].floor - 100e6) < 5e6);
    }
    assert_true(l.f->days.low_usable && l.f->days.low_n >= 3);
    look_release(&l);

    c.hole_at_s = 3.2 * 86400;
    c.hole_s = 0.5 * 86400;
    l = look_at(&c, false, METRIC_RSS_ANON);
    assert_false(l.f->days.day[3].usable);
    look_release(&l);
}

static void test_start_values(void **state)
{
    struct synth c = synth_plain(8);
    struct look l;

    (void)state;
    c.seconds = 1790;
    c.restart_s = 300;
    c.mem_leak = 5000;
    l = look_at(&c, true, METRIC_RSS_ANON);
    assert_int_equal(l.a->restarts, 5);
    assert_int_equal(l.a->starts.n, 6);
    assert_false(l.a->starts.rising);
    assert_true(l.f->within.lives >= 5 && l.f->within.rising >= 5);
    look_release(&l);
}

static int run_once(void *ctx)
{
    struct analysis *a = NULL;
    struct analysis_options o = { .steady = true };
    int r = analysis_run(&a, ctx, &o);

    analysis_free(a);
    return r;
}

static void test_out_of_memory(void **state)
{
    struct synth c = synth_plain(9);
    struct series *s = synth_series(&c);

    (void)state;
    harness_sweep_allocs(run_once, s);
    series_free(s);
}

HARNESS_MAIN(CASE(test_intervals_hold_the_truth), CASE(test_counts_are_exact), CASE(test_load_and_its_ends), CASE(test_warmup_is_cut),
             CASE(test_a_jump_is_found), CASE(test_days_and_low_windows), CASE(test_start_values), CASE(test_out_of_memory))
