/* Verdicts on runs of known truth: every leak with its clean twin, hundreds of healthy runs, bad input. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lib/harness.h"
#include "lib/synth.h"
#include "verdict/verdict.h"

struct outcome { struct series *s; struct analysis *a; struct verdict *v; };

static void outcome_release(struct outcome *o)
{
    verdict_free(o->v);
    analysis_free(o->a);
    series_free(o->s);
}

static struct outcome judge_series(struct series *s, bool steady)
{
    struct analysis_options o = { .steady = steady };
    struct outcome out = { .s = s };

    assert_int_equal(analysis_run(&out.a, out.s, &o), 0);
    assert_int_equal(verdict_decide(&out.v, out.a), 0);
    return out;
}

static struct outcome judge(const struct synth *c, bool steady)
{
    return judge_series(synth_series(c), steady);
}

static const struct series_verdict *series_of(const struct outcome *o, enum metric_id m)
{
    for (size_t i = 0; i < o->v->n; i++)
        if (o->v->series[i].finding->metric == m)
            return &o->v->series[i];
    fail_msg("%s was not judged", metrics[m].name);
    return NULL;
}

static void print_all(const struct outcome *o)
{
    for (size_t i = 0; i < o->v->n; i++)
        printf("    %-14s %-12s %s\n", metrics[o->v->series[i].finding->metric].name, verdict_name(o->v->series[i].verdict), o->v->series[i].reason);
}

static void expect(const struct synth *c, bool steady, enum verdict_id want)
{
    struct outcome o = judge(c, steady);

    if (o.v->verdict != want)
        print_all(&o);
    assert_string_equal(verdict_name(o.v->verdict), verdict_name(want));
    assert_true(o.v->reason[0] != '\0');
    outcome_release(&o);
}

static void expect_series(const struct synth *c, bool steady, enum metric_id m, enum verdict_id want)
{
    struct outcome o = judge(c, steady);

    if (series_of(&o, m)->verdict != want)
        print_all(&o);
    assert_string_equal(verdict_name(series_of(&o, m)->verdict), verdict_name(want));
    outcome_release(&o);
}

/* A run with the usual habits: warm-up, a connection pool, a thread pool, some noise. */
static struct synth usual(uint64_t seed)
{
    struct synth c = synth_plain(seed);

    c.warm = 8e6;
    c.warm_requests = 300;
    c.noise = 60e3;
    c.rho = 0.9;
    c.pool = 15;
    c.pool_requests = 400;
    c.thread_pool = 40;
    return c;
}

/* ---- counts --------------------------------------------------------------------------------------------------- */

static void set_leak(struct synth *c, enum metric_id m, double per_request)
{
    switch (m) {
    case METRIC_FILES: c->fd_leak = per_request; break;
    case METRIC_CONNECTIONS: c->socket_leak = per_request; break;
    case METRIC_THREADS: c->thread_leak = per_request; break;
    case METRIC_CHILDREN: c->child_leak = per_request; break;
    case METRIC_ZOMBIES: c->zombie_leak = per_request; break;
    case METRIC_TMPFILES: c->tmp_leak = per_request; break;
    case METRIC_SHM_SEGMENTS: c->shm_leak = per_request; break;
    default: fail();
    }
}

static bool is_pooled(enum metric_id m)
{
    return m == METRIC_CONNECTIONS || m == METRIC_THREADS;
}

static void test_every_count_leak_and_its_twin(void **state)
{
    static const enum metric_id counts[] = { METRIC_FILES, METRIC_CONNECTIONS, METRIC_THREADS, METRIC_CHILDREN, METRIC_ZOMBIES, METRIC_TMPFILES,
                                             METRIC_SHM_SEGMENTS };
    static const double rates[] = { 1, 0.1, 0.01 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        for (size_t k = 0; k < ARRAY_SIZE(rates); k++) {
            struct synth c = usual(100 * i + k);
            struct outcome o;

            set_leak(&c, counts[i], rates[k]);
            o = judge(&c, true);
            if (series_of(&o, counts[i])->verdict != VERDICT_LEAK)
                print_all(&o);
            assert_int_equal(series_of(&o, counts[i])->verdict, VERDICT_LEAK);
            assert_int_equal(series_of(&o, counts[i])->class, CLASS_COUNT);
            assert_int_equal(o.v->verdict, VERDICT_LEAK);
            /* The reason speaks of the series that tells most, not of fds. */
            assert_int_equal(o.v->series[o.v->named].finding->metric, counts[i]);
            assert_true(fabs(series_of(&o, counts[i])->finding->per_kreq.value - 1000 * rates[k]) < (rates[k] < 0.1 ? 500 : 150) * rates[k]);
            outcome_release(&o);
            set_leak(&c, counts[i], 0);
            expect_series(&c, true, counts[i], is_pooled(counts[i]) ? VERDICT_BOUNDED : VERDICT_OK);
            expect(&c, true, VERDICT_BOUNDED);
        }
}

static void test_a_rare_leak_is_a_suspect(void **state)
{
    struct synth c = usual(31);

    (void)state;
    c.zombie_leak = 0.0011; /* seven or so in all */
    c.seconds = 420;
    expect_series(&c, true, METRIC_ZOMBIES, VERDICT_SUSPECT);
}

static void test_traffic_that_ends_settles_it(void **state)
{
    struct synth c = usual(32);

    (void)state;
    c.tail_s = 60;
    c.socket_leak = 0.5;
    expect_series(&c, true, METRIC_CONNECTIONS, VERDICT_LEAK);
    /* Growing in flight while the rate trebles, and gone when it ends: not a leak. */
    c.socket_leak = 0;
    c.pool = 0;
    c.latency_s = 3;
    c.ramp = 3;
    expect_series(&c, true, METRIC_CONNECTIONS, VERDICT_OK);
    /* The same without an end: it cannot be told. */
    c.tail_s = 0;
    expect_series(&c, true, METRIC_CONNECTIONS, VERDICT_SUSPECT);
}

static void test_a_lone_late_descriptor_is_nothing(void **state)
{
    struct synth c = usual(33);

    (void)state;
    c.latency_s = 0;
    c.late_fd_s = 380;
    expect_series(&c, true, METRIC_FDS, VERDICT_OK + (c.pool > 0));
}

static void test_without_request_counts(void **state)
{
    struct synth c = usual(34);

    (void)state;
    c.no_requests = true;
    c.fd_leak = 0.2;
    expect_series(&c, true, METRIC_FILES, VERDICT_LEAK);
    c.no_cpu = true;
    expect_series(&c, true, METRIC_FILES, VERDICT_LEAK);
    c.fd_leak = 0;
    expect(&c, true, VERDICT_BOUNDED);
}

/* Without --steady the counts are decided all the same; memory is not. */
static void test_counts_need_no_days(void **state)
{
    struct synth c = usual(35);

    (void)state;
    c.fd_leak = 1;
    expect(&c, false, VERDICT_LEAK);
    c.fd_leak = 0;
    expect(&c, false, VERDICT_INSUFFICIENT);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void test_memory_leak_and_its_twins(void **state)
{
    struct synth c = usual(41);

    (void)state;
    c.mem_leak = 4000;
    expect(&c, true, VERDICT_LEAK);
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_LEAK);
    expect_series(&c, false, METRIC_RSS_ANON, VERDICT_SUSPECT); /* seven minutes, not steady: no more than that */
    c.mem_leak = 0;
    expect(&c, true, VERDICT_BOUNDED);
    c.cache = 30e6;
    c.cache_requests = 2500;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_BOUNDED);
    c.collect = 3e6;
    c.collect_requests = 150;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_BOUNDED);
    c.chunk = 1 << 20;
    c.inflight = 200e3;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_BOUNDED);
}

static void test_memory_that_slows_down_is_no_leak(void **state)
{
    struct synth c = usual(42);

    (void)state;
    c.warm = 60e6;
    c.warm_requests = 4000; /* half of the run and more */
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_SUSPECT);
}

static void test_memory_jump_is_a_step(void **state)
{
    struct synth c = usual(43);

    (void)state;
    c.spike = 30e6;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_STEP);
}

static void test_changing_load_is_refused(void **state)
{
    struct synth c = usual(44);

    (void)state;
    c.ramp = 5;
    c.mem_leak = 4000;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_INSUFFICIENT);
}

/* Growth in a few big jumps says nothing: fewer than ten quanta. */
static void test_few_jumps_are_not_enough(void **state)
{
    struct synth c = usual(45);

    (void)state;
    c.warm = 0;
    c.mem_leak = 4000;
    c.chunk = 6 << 20;
    c.noise = 0;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_INSUFFICIENT);
}

static struct synth week(uint64_t seed, double days)
{
    struct synth c = usual(seed);

    c.seconds = days * 86400;
    c.interval_s = 120;
    c.rps = 2;
    c.warm_requests = 5000;
    c.pool_requests = 5000;
    c.day_low = 0.05;
    c.inflight = 2e6;
    c.latency_s = 1;
    return c;
}

static void test_days_of_memory(void **state)
{
    struct synth c = week(51, 4.1);

    (void)state;
    c.mem_leak = 100;
    expect_series(&c, false, METRIC_RSS_ANON, VERDICT_LEAK);
    c.mem_leak = 0;
    expect(&c, false, VERDICT_BOUNDED);
    c.seconds = 2.1 * 86400;
    expect(&c, false, VERDICT_BOUNDED);
    c.mem_leak = 100;
    expect_series(&c, false, METRIC_RSS_ANON, VERDICT_LEAK); /* the second of two days that agree */
    c.seconds = 1.6 * 86400;
    expect_series(&c, false, METRIC_RSS_ANON, VERDICT_SUSPECT); /* one day says so; two must */
}

/* Leaks of 8 to 200 % a week in services with the habits of healthy ones: how many are called so. */
static void test_leaks_over_days_are_found(void **state)
{
    size_t found = 0, excused = 0, n = 200;

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct synth c = synth_healthy_days(seed + 700000);
        struct random r = { seed * 77 + 5 };
        struct outcome o;

        c.mem_leak = exp(synth_between(&r, log(8), log(200))) / 100 * c.base / (c.rps * 0.5 * 7 * 86400);
        o = judge(&c, false);
        found += o.v->verdict == VERDICT_LEAK;
        excused += verdict_exit_status(o.v->verdict) == 0;
        outcome_release(&o);
    }
    print_message("of %zu leaks over days: %zu called leak, %zu called harmless\n", n, found, excused);
    assert_true(found >= n * 4 / 10);
}

/* Unless the sum over days shows it, a daily cycle hides a slow leak of counts. */
static void test_days_of_counts(void **state)
{
    struct synth c = week(52, 5.1);

    (void)state;
    c.latency_s = 10;
    c.fd_leak = 0.0005;
    expect_series(&c, false, METRIC_FILES, VERDICT_LEAK);
    c.fd_leak = 0;
    expect(&c, false, VERDICT_BOUNDED);
    /* Ever more traffic excuses what is in use, which grows with it, not what grows faster. */
    c.seconds = 5.1 * 86400;
    c.ramp = 5;
    c.latency_s = 25;
    c.fd_leak = 0;
    expect_series(&c, false, METRIC_FDS, VERDICT_BOUNDED);
    c.latency_s = 5;
    c.ramp = 3;
    expect_series(&c, false, METRIC_FILES, VERDICT_OK);
    c.fd_leak = 0.0005;
    expect_series(&c, false, METRIC_FILES, VERDICT_LEAK);
}

/* The rates shown are those that were put in. */
static void test_rates_over_days(void **state)
{
    struct synth c = week(54, 6.1);
    const struct series_verdict *sv;
    struct outcome o;

    (void)state;
    c.mem_leak = 200;
    o = judge(&c, false);
    sv = series_of(&o, METRIC_RSS_ANON);
    assert_int_equal(sv->verdict, VERDICT_LEAK);
    assert_true(fabs(sv->per_kreq.value - 200e3) < 30e3);
    assert_true(sv->per_kreq.lo < sv->per_kreq.value && sv->per_kreq.value < sv->per_kreq.hi);
    assert_true(fabs(sv->per_hour.value - sv->per_kreq.value * o.s->requests / 1000 / (6.1 * 24)) < 0.1 * sv->per_hour.value);
    outcome_release(&o);
}

static void test_restarts_hide_a_leak(void **state)
{
    struct synth c = usual(53);

    (void)state;
    c.seconds = 2390;
    c.restart_s = 400;
    c.mem_leak = 5000;
    c.warm = 0;
    c.no_cpu = true;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_LEAK);
    c.mem_leak = 0;
    c.warm = 8e6;
    expect_series(&c, true, METRIC_RSS_ANON, VERDICT_BOUNDED);
    /* Descriptors likewise; a pool that every life fills anew is none. */
    c.fd_leak = 0.05;
    expect_series(&c, true, METRIC_FILES, VERDICT_LEAK);
    c.fd_leak = 0;
    c.pool = 40;
    c.pool_requests = 3000;
    expect_series(&c, true, METRIC_CONNECTIONS, VERDICT_BOUNDED);
    /* What outlives every restart is outside the process. */
    c.shm_leak = 0.01;
    expect_series(&c, true, METRIC_SHM_SEGMENTS, VERDICT_EXTERNAL);
    expect(&c, true, VERDICT_EXTERNAL);
    c.seldom_s = 90; /* not once in the first tenth of most lives */
    expect_series(&c, true, METRIC_SHM_SEGMENTS, VERDICT_EXTERNAL);
    expect_series(&c, true, METRIC_SHM_BYTES, VERDICT_EXTERNAL);
    c.shm_leak = 0;
    expect_series(&c, true, METRIC_SHM_SEGMENTS, VERDICT_OK);
}

/* ---- hundreds of healthy ones --------------------------------------------------------------------------------- */

#define HEALTHY 600

static void tally_healthy(struct synth (*draw)(uint64_t), bool steady, size_t tally[VERDICT_N])
{
    for (uint64_t seed = 1; seed <= HEALTHY; seed++) {
        struct synth c = draw(seed);
        struct outcome o = judge(&c, steady);

        tally[o.v->verdict]++;
        if (verdict_exit_status(o.v->verdict) == 1) {
            printf("seed %d\n", (int)seed);
            print_all(&o);
        }
        outcome_release(&o);
    }
}

static void print_tally(const char *what, const size_t tally[VERDICT_N])
{
    printf("%s:", what);
    for (int i = 0; i < VERDICT_N; i++)
        printf(" %s %zu", verdict_name((enum verdict_id)i), tally[i]);
    printf("\n");
}

static void test_healthy_runs_are_left_in_peace(void **state)
{
    size_t tally[VERDICT_N] = { 0 };

    (void)state;
    tally_healthy(synth_healthy, true, tally);
    print_tally("healthy runs under constant load", tally);
    assert_int_equal(tally[VERDICT_LEAK] + tally[VERDICT_EXTERNAL], 0);
    assert_true(tally[VERDICT_SUSPECT] <= HEALTHY / 50);
    assert_true(tally[VERDICT_OK] + tally[VERDICT_BOUNDED] >= HEALTHY * 8 / 10);
}

static void test_healthy_days_are_left_in_peace(void **state)
{
    size_t tally[VERDICT_N] = { 0 };

    (void)state;
    tally_healthy(synth_healthy_days, false, tally);
    print_tally("healthy days", tally);
    assert_true(tally[VERDICT_LEAK] == 0);
    assert_true(tally[VERDICT_EXTERNAL] <= HEALTHY / 200);
    assert_true(tally[VERDICT_SUSPECT] <= HEALTHY / 30);
}

/* The same runs with a leak in them. */
static void test_clear_leaks_are_found(void **state)
{
    size_t found_count = 0, found_memory = 0, n = 200;

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct synth c = synth_healthy(seed + 5000);
        double total = c.rps * (c.seconds - c.head_s - c.tail_s);
        struct outcome o;

        c.socket_leak = 300 / total;
        c.mem_leak = 0.5 * c.base / total;
        o = judge(&c, true);
        found_count += series_of(&o, METRIC_CONNECTIONS)->verdict == VERDICT_LEAK;
        found_memory += series_of(&o, METRIC_RSS_ANON)->verdict == VERDICT_LEAK;
        outcome_release(&o);
    }
    printf("of %zu: %zu leaks of 300 connections found, %zu of half the memory\n", n, found_count, found_memory);
    assert_true(found_count >= n * 94 / 100);
    assert_true(found_memory >= n * 90 / 100);
}

/* ---- bad input ------------------------------------------------------------------------------------------------ */

static void test_too_little_is_insufficient(void **state)
{
    struct synth c = synth_plain(61);

    (void)state;
    for (double n = 1; n <= 7; n++) {
        c.seconds = n;
        expect(&c, true, VERDICT_INSUFFICIENT);
        expect(&c, false, VERDICT_INSUFFICIENT);
    }
    c.seconds = 14;
    expect(&c, true, VERDICT_INSUFFICIENT);
}

/* One process and one column, as the values say; METRIC_NA where they are. */
static struct series *by_hand(const int64_t *ts, const int64_t *v, size_t n, enum metric_id m)
{
    struct life_row life = { .id = 1, .info = { .key = { .pid = 7, .start = 1 } }, .first_ns = ts[0], .last_ns = ts[0] };
    struct series *s;

    assert_int_equal(series_new(&s, "api", 0, INT64_MAX), 0);
    for (size_t i = 0; i < n; i++) {
        life.first_ns = MIN(life.first_ns, ts[i]);
        life.last_ns = MAX(life.last_ns, ts[i]);
        assert_int_equal(series_time(s, ts[i]), 0);
    }
    for (int k = 0; k < METRIC_N; k++)
        life.first[k] = life.last[k] = METRIC_NA;
    assert_int_equal(series_life(s, &life), 0);
    assert_int_equal(series_plan(s), 0);
    for (size_t i = 0; i < n; i++) {
        struct point p = { ts[i], 1, 0 };
        struct point_values pv[METRIC_N];

        for (int k = 0; k < METRIC_N; k++) {
            int64_t x = k == (int)m ? v[i] : METRIC_NA;

            pv[k] = (struct point_values){ x, x, x, x, x };
        }
        assert_int_equal(series_point(s, 0, &p, pv), 0);
    }
    assert_int_equal(series_finish(s), 0);
    return s;
}

/* Processes by hand: seconds from and to; `rise` things a second on top of ten. pid 0: the target's own row. */
struct process { int32_t pid, ppid; int64_t from, to; double rise; };

static void add_process(struct series *s, const struct process *k, int64_t end)
{
    struct life_row row = { .id = k->pid + 1, .first_ns = k->from * NS_PER_S, .last_ns = (k->to - 1) * NS_PER_S, .samples = 100,
                            .end = { .wall_ns = k->to * NS_PER_S, .cause = k->to == end ? LIFE_RUNNING : LIFE_EXITED } };

    row.info.key = (struct life_key){ .pid = k->pid, .start = (uint64_t)k->from + 1 };
    row.info.ppid = k->ppid;
    row.info.start_wall_ns = row.first_ns;
    for (int m = 0; m < METRIC_N; m++)
        row.first[m] = row.last[m] = METRIC_NA;
    assert_int_equal(series_life(s, &row), 0);
}

static void feed_process(struct series *s, size_t life, const struct process *k, enum metric_id metric,
                         int64_t (*value)(const struct process *, int64_t t))
{
    for (int64_t t = k->from; t < k->to; t++) {
        struct point p = { t * NS_PER_S, 1, 0 };
        struct point_values pv[METRIC_N];

        for (int m = 0; m < METRIC_N; m++) {
            int64_t x = m == (int)metric ? value(k, t) : METRIC_NA;

            pv[m] = (struct point_values){ x, x, x, x, x };
        }
        assert_int_equal(series_point(s, life, &p, pv), 0);
    }
}

/* Twenty requests a second up to `busy`; the target's own row, if any, is fed with `metric` and `value`. */
static struct series *of_processes(const struct process *k, size_t n, int64_t busy, int64_t end, enum metric_id metric,
                                   int64_t (*value)(const struct process *, int64_t t), int64_t (*own)(const struct process *, int64_t t),
                                   enum metric_id own_metric)
{
    struct series *s;

    assert_int_equal(series_new(&s, "api", 0, INT64_MAX), 0);
    for (size_t i = 0; i < n; i++)
        add_process(s, &k[i], end);
    for (int64_t t = 0; t < end; t++) {
        assert_int_equal(series_time(s, t * NS_PER_S), 0);
        if (t < busy)
            assert_int_equal(series_request(s, t * NS_PER_S, 20), 0);
    }
    assert_int_equal(series_plan(s), 0);
    for (size_t i = 0; i < n; i++)
        feed_process(s, i, &k[i], k[i].pid ? own_metric : metric, k[i].pid ? own : value);
    assert_int_equal(series_finish(s), 0);
    return s;
}

static int64_t rising(const struct process *k, int64_t t)
{
    return 10 + (int64_t)(k->rise * (double)(t - k->from));
}

/* A master and workers one after the other. The last is replaced as the traffic ends, and the sum falls: it did not come back,
 * it was thrown away. */
static void test_replaced_is_not_come_back(void **state)
{
    (void)state;
    for (int leaks = 0; leaks < 2; leaks++) {
        double r = leaks;
        const struct process k[] = { { 1, 0, 0, 600, 0 }, { 2, 1, 0, 100, r }, { 3, 1, 100, 200, r }, { 4, 1, 200, 300, r },
                                     { 5, 1, 300, 400, r }, { 6, 1, 400, 505, r }, { 7, 1, 505, 600, 0 } };
        struct outcome o = judge_series(of_processes(k, ARRAY_SIZE(k), 500, 600, METRIC_FDS, rising, rising, METRIC_FDS), true);
        enum verdict_id v = series_of(&o, METRIC_FDS)->verdict;

        if (leaks)
            assert_string_equal(verdict_name(v), "leak");
        else
            assert_int_equal(verdict_exit_status(v), 0);
        outcome_release(&o);
    }
}

static int64_t megabytes(const struct process *k, int64_t t)
{
    int64_t warm = k->pid == 1 ? 15 : MIN(t - k->from, INT64_C(15));

    return ((25 + warm) << 20) + (int64_t)(k->rise * 1e6 * (double)(t - k->from)) + t * 7919 % 5 * 4096;
}

/* Workers that are replaced, at first after pauses: the sum falls, and ends higher than it began. Each of them stays as it is; or
 * each of them grows. */
static void test_sums_that_jump(void **state)
{
    (void)state;
    for (int leaks = 0; leaks < 2; leaks++) {
        double r = leaks * 0.3;
        const struct process k[] = { { 1, 0, 0, 600, 0 }, { 2, 1, 0, 100, r }, { 3, 1, 123, 270, r }, { 4, 1, 275, 600, r },
                                     { 5, 1, 0, 230, r }, { 6, 1, 247, 326, r }, { 7, 1, 326, 432, r }, { 8, 1, 432, 600, r } };
        struct outcome o = judge_series(of_processes(k, ARRAY_SIZE(k), 600, 600, METRIC_RSS_ANON, megabytes, megabytes, METRIC_RSS_ANON), true);

        assert_string_equal(verdict_name(series_of(&o, METRIC_RSS_ANON)->verdict), leaks ? "leak" : "ok");
        outcome_release(&o);
    }
}

/* Every life leaves eight segments; they are counted every ten seconds, so that the first count may be from before the life. */
static int64_t left_behind(const struct process *k, int64_t t)
{
    static const int64_t starts[] = { 0, 63, 126, 190, 253, 316 };
    int64_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
        n += starts[i] <= t / 10 * 10;
    return k->rise > 0 ? 8 * n : 8;
}

static void test_what_is_counted_seldom(void **state)
{
    (void)state;
    for (int leaks = 0; leaks < 2; leaks++) {
        const struct process k[] = { { 1, 0, 0, 57, 0 }, { 2, 0, 63, 120, 0 }, { 3, 0, 126, 183, 0 }, { 4, 0, 190, 247, 0 },
                                     { 5, 0, 253, 310, 0 }, { 6, 0, 316, 373, 0 }, { 0, 0, 0, 373, leaks } };
        struct outcome o = judge_series(of_processes(k, ARRAY_SIZE(k), 373, 373, METRIC_SHM_SEGMENTS, left_behind, rising, METRIC_FDS), true);

        assert_string_equal(verdict_name(series_of(&o, METRIC_SHM_SEGMENTS)->verdict), leaks ? "external" : "ok");
        outcome_release(&o);
    }
}

static void expect_by_hand(const int64_t *ts, const int64_t *v, size_t n, enum metric_id m, bool steady, enum verdict_id want)
{
    struct outcome o = judge_series(by_hand(ts, v, n, m), steady);

    assert_string_equal(verdict_name(o.v->verdict), verdict_name(want));
    outcome_release(&o);
}

static void test_dead_and_constant_sources(void **state)
{
    int64_t ts[400], v[400];

    (void)state;
    for (int i = 0; i < 400; i++) {
        ts[i] = (1790000000 + i * 1800) * NS_PER_S; /* eight days and more */
        v[i] = 0;
    }
    expect_by_hand(ts, v, 400, METRIC_RSS_ANON, false, VERDICT_INSUFFICIENT);
    expect_by_hand(ts, v, 400, METRIC_FDS, false, VERDICT_INSUFFICIENT);
    expect_by_hand(ts, v, 400, METRIC_ZOMBIES, false, VERDICT_OK);
    for (int i = 0; i < 400; i++)
        v[i] = METRIC_NA;
    expect_by_hand(ts, v, 400, METRIC_RSS_ANON, false, VERDICT_INSUFFICIENT);
    for (int i = 0; i < 400; i++)
        v[i] = 123456789;
    expect_by_hand(ts, v, 400, METRIC_RSS_ANON, false, VERDICT_OK);
    expect_by_hand(ts, v, 1, METRIC_RSS_ANON, false, VERDICT_INSUFFICIENT);
}

/* Every second row twice: nothing changes. (Order and duplicates across imports are the store's matter.) */
static void test_duplicates(void **state)
{
    int64_t ts[900], v[900];

    (void)state;
    for (int i = 0; i < 900; i++) {
        ts[i] = (1790000000 + i / 2) * NS_PER_S;
        v[i] = 20 + i / 8;
    }
    expect_by_hand(ts, v, 900, METRIC_FDS, true, VERDICT_LEAK);
    for (int i = 0; i < 900; i++)
        v[i] = 20;
    expect_by_hand(ts, v, 900, METRIC_FDS, true, VERDICT_OK);
}

/* A clock that jumps ahead by minutes leaves a hole, one that jumps back an overlap. */
static void test_clock_steps(void **state)
{
    int64_t ts[600], v[600];

    (void)state;
    for (int step = -200; step <= 200; step += 400) {
        for (int i = 0; i < 600; i++) {
            ts[i] = (1790000000 + i + (i >= 300 ? step : 0)) * NS_PER_S;
            v[i] = 40 + i % 3;
        }
        expect_by_hand(ts, v, 600, METRIC_THREADS, false, VERDICT_OK);
    }
}

static void test_half_of_it_missing(void **state)
{
    struct synth c = usual(62);

    (void)state;
    c.drop = 0.2;
    c.fd_leak = 0.1;
    expect(&c, true, VERDICT_LEAK);
    c.fd_leak = 0;
    c.drop = 0;
    c.hole_at_s = 100;
    c.hole_s = 250;
    expect(&c, true, VERDICT_INSUFFICIENT);
}

static void test_thousands_of_restarts(void **state)
{
    struct synth c = usual(63);
    struct outcome o;

    (void)state;
    c.seconds = 20000;
    c.interval_s = 2;
    c.restart_s = 4;
    o = judge(&c, false);
    assert_int_equal(o.v->verdict, VERDICT_INSUFFICIENT);
    assert_true(o.a->restarts > 4000 && o.a->ndense >= 1);
    outcome_release(&o);
}

static int decide_once(void *ctx)
{
    struct verdict *v = NULL;
    int r = verdict_decide(&v, ctx);

    verdict_free(v);
    return r;
}

static void test_out_of_memory(void **state)
{
    struct synth c = synth_plain(64);
    struct outcome o = judge(&c, true);

    (void)state;
    harness_sweep_allocs(decide_once, o.a);
    outcome_release(&o);
}

HARNESS_MAIN(CASE(test_every_count_leak_and_its_twin), CASE(test_a_rare_leak_is_a_suspect), CASE(test_traffic_that_ends_settles_it),
             CASE(test_a_lone_late_descriptor_is_nothing), CASE(test_without_request_counts), CASE(test_counts_need_no_days),
             CASE(test_memory_leak_and_its_twins), CASE(test_memory_that_slows_down_is_no_leak), CASE(test_memory_jump_is_a_step),
             CASE(test_changing_load_is_refused), CASE(test_few_jumps_are_not_enough), CASE(test_days_of_memory),
             CASE(test_leaks_over_days_are_found), CASE(test_replaced_is_not_come_back), CASE(test_what_is_counted_seldom), CASE(test_sums_that_jump),
             CASE(test_days_of_counts), CASE(test_rates_over_days),
             CASE(test_restarts_hide_a_leak), CASE(test_healthy_runs_are_left_in_peace), CASE(test_healthy_days_are_left_in_peace),
             CASE(test_clear_leaks_are_found), CASE(test_too_little_is_insufficient), CASE(test_dead_and_constant_sources),
             CASE(test_duplicates), CASE(test_clock_steps), CASE(test_half_of_it_missing), CASE(test_thousands_of_restarts),
             CASE(test_out_of_memory))
