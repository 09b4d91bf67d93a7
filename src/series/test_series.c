/* Rows to arrays: the grid, sums over a tree, roots, epochs, requests; and the store's rows through series_load. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lib/harness.h"
#include "series/series.h"

#define T0 (INT64_C(1790000000) * NS_PER_S)
#define AT(s) (T0 + (int64_t)(s) * NS_PER_S)

static void add_life_of(struct series *s, int32_t pid, int32_t ppid, int64_t from, int64_t to, enum life_end_cause cause)
{
    struct life_row row = { .id = pid, .first_ns = from, .last_ns = to, .samples = 10, .end = { .wall_ns = to, .cause = cause } };

    row.info.key.pid = pid;
    row.info.key.start = (uint64_t)from;
    row.info.ppid = ppid;
    row.info.start_wall_ns = from;
    for (int m = 0; m < METRIC_N; m++)
        row.first[m] = row.last[m] = METRIC_NA;
    assert_int_equal(series_life(s, &row), 0);
}

static void add_life(struct series *s, int32_t pid, int32_t ppid, int64_t from, int64_t to)
{
    add_life_of(s, pid, ppid, from, to, LIFE_RUNNING);
}

static void add_ended_life(struct series *s, int32_t pid, int32_t ppid, int64_t from, int64_t to)
{
    add_life_of(s, pid, ppid, from, to, LIFE_EXITED);
}

static void add_point(struct series *s, size_t life, int64_t ts, enum metric_id m, int64_t value)
{
    struct point p = { ts, 1, 0 };
    struct point_values v[METRIC_N];

    for (int k = 0; k < METRIC_N; k++) {
        int64_t x = k == (int)m ? value : METRIC_NA;

        v[k] = (struct point_values){ x, x, x, x, x };
    }
    assert_int_equal(series_point(s, life, &p, v), 0);
}

static struct series *blank(void)
{
    struct series *s;

    assert_int_equal(series_new(&s, "api", 0, INT64_MAX), 0);
    return s;
}

static void add_times(struct series *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(series_time(s, AT(i)), 0);
}

static void test_sum_over_a_tree(void **state)
{
    struct series *s = blank();
    const struct column *c;

    (void)state;
    add_life(s, 10, 1, AT(0), AT(99));
    add_life(s, 11, 10, AT(20), AT(99)); /* lasts: counts */
    add_life(s, 12, 10, AT(50), AT(52)); /* passes: does not */
    add_times(s, 100);
    assert_int_equal(series_plan(s), 0);
    for (int i = 0; i < 100; i++)
        if (i != 30)
            add_point(s, 0, AT(i), METRIC_FDS, 100);
    for (int i = 20; i < 100; i++)
        if (i != 60)
            add_point(s, 1, AT(i), METRIC_FDS, 7);
    for (int i = 50; i < 53; i++)
        add_point(s, 2, AT(i), METRIC_FDS, 1000);
    assert_int_equal(series_finish(s), 0);
    c = &s->sum.col[METRIC_FDS];
    assert_int_equal(s->sum.n, 100);
    assert_true(c->floor == c->mid && c->mid == c->max);
    assert_true(c->mid[5] == 100 && c->mid[25] == 107 && c->mid[51] == 107);
    assert_true(isnan(c->mid[30])); /* the root was not read: no dip */
    assert_true(c->mid[60] == 107); /* the child was not read: its last value stands in */
    assert_true(series_life_at(s, 0)->root && !series_life_at(s, 1)->root);
    assert_int_equal(s->epochs.n, 1);
    assert_true(s->interval_s == 1);
    series_free(s);
}

static void test_restarts_make_epochs(void **state)
{
    struct series *s = blank();

    (void)state;
    add_life(s, 10, 1, AT(0), AT(39));
    add_life(s, 20, 1, AT(42), AT(99));
    add_life(s, 30, 1, AT(60), AT(63)); /* a root that passes within another's life is no restart */
    add_times(s, 100);
    assert_int_equal(series_plan(s), 0);
    assert_int_equal(s->epochs.n, 2);
    assert_int_equal(series_epoch_at(s, 0)->from, 0);
    assert_int_equal(series_epoch_at(s, 0)->to, 40);
    assert_int_equal(series_epoch_at(s, 1)->from, 42);
    assert_int_equal(series_epoch_at(s, 1)->to, 100);
    assert_int_equal(series_finish(s), 0);
    assert_non_null(series_life_at(s, 0)->own);
    series_free(s);
}

static void test_a_recycled_pid_is_no_parent(void **state)
{
    struct series *s = blank();

    (void)state;
    add_life(s, 10, 1, AT(0), AT(10));
    add_life(s, 11, 10, AT(500), AT(599)); /* its parent's pid belonged to a life that ended long before */
    add_times(s, 600);
    assert_int_equal(series_plan(s), 0);
    assert_true(series_life_at(s, 1)->root);
    assert_int_equal(series_finish(s), 0);
    series_free(s);
}

/* More moments than the grid holds: bins with p10, median and maximum. */
static void test_bins(void **state)
{
    struct series *s = blank();
    const int n = SERIES_POINTS_MAX * 5 + 3;
    const struct column *c;

    (void)state;
    add_life(s, 10, 1, AT(0), AT(n));
    add_times(s, n);
    assert_int_equal(series_plan(s), 0);
    assert_true(s->sum.n <= SERIES_POINTS_MAX && s->grid_step == 6);
    for (int i = 0; i < n; i++)
        add_point(s, 0, AT(i), METRIC_FDS, i % 6);
    assert_int_equal(series_finish(s), 0);
    c = &s->sum.col[METRIC_FDS];
    assert_true(c->floor[10] == 0 && c->mid[10] == 3 && c->max[10] == 5);
    assert_int_equal(s->samples, n);
    series_free(s);
}

static void test_requests_are_cumulative(void **state)
{
    struct series *s = blank();

    (void)state;
    add_life(s, 10, 1, AT(0), AT(99));
    add_times(s, 100);
    for (int i = 0; i < 10; i++) /* bins of ten seconds, two endpoints each */
        for (int k = 0; k < 2; k++)
            assert_int_equal(series_request(s, AT(10 * (9 - i)), 50), 0); /* out of order */
    assert_int_equal(series_plan(s), 0);
    for (int i = 0; i < 100; i++)
        add_point(s, 0, AT(i), METRIC_FDS, 5);
    assert_int_equal(series_finish(s), 0);
    assert_true(s->request_bin_s == 10);
    assert_true(fabs(s->requests - 990) < 1e-6);
    assert_true(fabs(s->sum.req[35] - 350) < 1e-6);
    assert_true(fabs(series_requests_between(&s->sum, 20, 41) - 200) < 1e-6);
    series_free(s);
}

static void test_requests_without_end(void **state)
{
    struct series *s = blank();

    (void)state;
    add_life(s, 10, 1, AT(0), AT(99));
    add_times(s, 100);
    for (int i = 20; i < 50; i++)
        assert_int_equal(series_request(s, AT(i), 3), 0);
    assert_int_equal(series_request(s, AT(30), 0), 0);
    assert_int_equal(series_request(s, AT(30), -5), 0);
    assert_int_equal(series_plan(s), 0);
    add_point(s, 0, AT(1), METRIC_FDS, 5);
    assert_int_equal(series_finish(s), 0);
    assert_true(s->sum.req[20] == 0 && s->sum.req[50] == 90 && s->sum.req[99] == 90);
    series_free(s);
}

static void test_nothing_at_all(void **state)
{
    struct series *s = blank();

    (void)state;
    assert_int_equal(series_plan(s), LT_ENODATA);
    series_free(s);
}

/* ---- from a store --------------------------------------------------------------------------------------------- */

static void put_sweeps(struct store *store, int64_t target, int64_t *ret_life)
{
    struct life_info info = { .key = { .pid = 77, .start = 5 }, .ppid = 1, .target_id = target, .start_wall_ns = AT(-5), .comm = "api" };
    struct life_info whole = { .target_id = target, .start_wall_ns = AT(-5) };
    struct err err = { 0 };
    int64_t whole_id;

    assert_int_equal(store_life_begin(store, &info, ret_life, &err), 0);
    assert_int_equal(store_life_begin(store, &whole, &whole_id, &err), 0);
    for (int i = 0; i < 300; i++) {
        struct sample rows[2];
        struct sweep sweep = { AT(i), 2, rows };

        for (int k = 0; k < 2; k++)
            sample_blank(&rows[k]);
        rows[0].life_id = MIN(*ret_life, whole_id);
        rows[1].life_id = MAX(*ret_life, whole_id);
        rows[*ret_life > whole_id].v[METRIC_FDS] = 20 + i;
        rows[*ret_life > whole_id].v[METRIC_RSS_ANON] = 4096 * (1000 + i);
        rows[*ret_life < whole_id].v[METRIC_TMPFILES] = i / 10;
        assert_int_equal(store_put_sweep(store, &sweep, &err), 0);
        assert_int_equal(store_commit(store, &err), 0);
    }
}

static void check_loaded(struct store *store)
{
    _cleanup_series_ struct series *s = NULL;
    struct err err = { 0 };

    assert_int_equal(series_load(&s, store, "api", AT(0), AT(1000), &err), 0);
    assert_int_equal(s->sum.n, 300);
    assert_int_equal(s->lives.n, 2);
    assert_true(s->sum.col[METRIC_FDS].mid[299] == 319 && s->sum.col[METRIC_TMPFILES].mid[299] == 29);
    assert_int_equal(s->events.n, 1);
    assert_true(s->requests > 0);
    assert_int_equal(s->to_ns, AT(299));
}

/* As of a moment: nothing later is seen, and the life ran then. */
static void check_as_of(struct store *store)
{
    _cleanup_series_ struct series *s = NULL;
    struct err err = { 0 };

    assert_int_equal(series_load(&s, store, "api", AT(0), AT(99), &err), 0);
    assert_int_equal(s->sum.n, 100);
    assert_int_equal(s->events.n, 0);
    VEC_EACH(struct series_life, l, &s->lives) {
        assert_int_equal(l->end.cause, LIFE_RUNNING);
        assert_true(l->whole || l->last[METRIC_FDS] == 119);
    }
}

static void test_load(void **state)
{
    struct store *store;
    struct series *s = NULL;
    struct err err = { 0 };
    char path[512];
    int64_t target, life;
    struct life_end end = { AT(301), LIFE_EXITED, 0, 0 };

    (void)state;
    str_fmt(path, sizeof path, "%s/a.db", harness_tmpdir());
    assert_int_equal(store_open(&store, path, STORE_WATCH, NULL, &err), 0);
    assert_int_equal(store_target(store, "api", "pid:77", &target, &err), 0);
    put_sweeps(store, target, &life);
    assert_int_equal(store_life_end(store, life, &end, NULL, &err), 0);
    assert_int_equal(store_commit(store, &err), 0);
    assert_int_equal(store_put_event(store, target, AT(150), "deploy", "v2", &err), 0);
    for (int i = 0; i < 300; i++) {
        struct request_row row = { AT(i), "/chat", "", "ok", -1, 0, 4 };

        assert_int_equal(store_put_request(store, target, &row, false, &err), 0);
    }
    check_loaded(store);
    check_as_of(store);
    assert_int_equal(series_load(&s, store, "nobody", AT(0), AT(1), &err), LT_ENOENT);
    assert_int_equal(series_load(&s, store, "api", AT(5000), AT(6000), &err), LT_ENODATA);
    assert_true(strstr(err.text, "--since") != NULL);
    assert_int_equal(store_close(store, &err), 0);
}

static int build_once(void *ctx)
{
    struct series *s = NULL;
    int r = series_new(&s, "api", 0, INT64_MAX);
    struct life_row row = { .id = 1, .info = { .key = { .pid = 1 } }, .first_ns = AT(0), .last_ns = AT(59), .samples = 9 };
    struct point_values v[METRIC_N];

    (void)ctx;
    for (int m = 0; m < METRIC_N; m++)
        v[m] = (struct point_values){ 3, 3, 3, 3, 3 };
    for (int k = 0; k < 2 && !r; k++, row.info.key.pid++)
        r = series_life(s, &row);
    for (int i = 0; i < 60 && !r; i++)
        r = series_time(s, AT(i));
    if (!r)
        r = series_request(s, AT(0), 5);
    if (!r)
        r = series_plan(s);
    for (int i = 0; i < 120 && !r; i++)
        r = series_point(s, (size_t)i / 60, &(struct point){ AT(i % 60), 1, 0 }, v);
    if (!r)
        r = series_finish(s);
    series_free(s);
    return r;
}

/* The newest life is the one that matters, however many came and went before it. */
static void test_too_many_lives(void **state)
{
    struct series *s = blank();
    const struct series_life *last;

    (void)state;
    add_life(s, 1, 0, AT(0), AT(400000));
    for (int i = 0; i < SERIES_LIVES_MAX + 5000; i++)
        add_ended_life(s, 10 + i, 1, AT(i), AT(i + 1));
    add_life(s, 7, 1, AT(300000), AT(400000));
    assert_in_range(s->lives.n, 2, SERIES_LIVES_MAX);
    last = series_life_at(s, s->lives.n - 1);
    assert_int_equal(last->key.pid, 7);
    assert_int_equal(series_life_at(s, 0)->key.pid, 1); /* still running */
    series_free(s);
}

static void test_texts_are_cut_to_text(void **state)
{
    struct series *s = blank();
    char text[200];

    (void)state;
    memset(text, 'x', sizeof text);
    str_copy(text + SERIES_TEXT_MAX - 2, sizeof text - SERIES_TEXT_MAX, "\xc3\xa9"); /* a character over the end */
    assert_int_equal(series_event(s, &(struct event_row){ 1, AT(0), "deploy", text }), 0);
    assert_string_equal(((struct series_event *)vec_at(&s->events, 0))->text + SERIES_TEXT_MAX - 4, "xx?");
    series_free(s);
}

/* Past what is kept the oldest events go, and gaps that lie close together become one: the newest of both are there. */
static void test_too_many_events_and_gaps(void **state)
{
    struct series *s = blank();
    const struct series_gap *g;
    const struct series_event *e;

    (void)state;
    for (int i = 0; i < 3 * SERIES_GAPS_MAX; i++) {
        int64_t at = AT(100 * i + (i % 2 ? -97 : 0)); /* in pairs, 1 s between two of them */

        assert_int_equal(series_gap(s, &(struct gap_row){ .from_ns = at, .to_ns = at + 2 * NS_PER_S }), 0);
        assert_int_equal(series_event(s, &(struct event_row){ 1, AT(i), "note", "x" }), 0);
    }
    assert_in_range(s->gaps.n, SERIES_GAPS_MAX / 4, SERIES_GAPS_MAX);
    assert_in_range(s->events.n, SERIES_EVENTS_MAX / 2, SERIES_EVENTS_MAX);
    g = s->gaps.items;
    assert_true(g[0].from_ns == AT(0));
    assert_true(g[s->gaps.n - 1].to_ns == AT(100 * (3 * SERIES_GAPS_MAX - 1) - 95));
    for (size_t i = 1; i < s->gaps.n; i++)
        assert_true(g[i].from_ns > g[i - 1].to_ns);
    e = s->events.items;
    assert_true(e[s->events.n - 1].ts_ns == AT(3 * SERIES_GAPS_MAX - 1));
    assert_true(e[0].ts_ns == AT(3 * SERIES_GAPS_MAX - (int)s->events.n)); /* none between is missing */
    series_free(s);
}

/* Gaps as far apart as can be, from a store that anybody may have made, still become fewer. */
static void test_gaps_of_all_times(void **state)
{
    struct series *s = blank();

    (void)state;
    for (int i = 0; i <= SERIES_GAPS_MAX; i++) {
        int64_t at = i % 2 ? INT64_MAX : INT64_MIN;

        assert_int_equal(series_gap(s, &(struct gap_row){ .from_ns = at, .to_ns = at }), 0);
    }
    assert_in_range(s->gaps.n, 1, SERIES_GAPS_MAX);
    series_free(s);
}

/* Samples are those of processes; the target's own row counts only where it is all there is. */
static void test_samples_are_of_processes(void **state)
{
    (void)state;
    for (int process = 0; process < 2; process++) {
        struct series *s = blank();

        add_life(s, 0, 0, AT(0), AT(59));
        if (process)
            add_life(s, 10, 1, AT(0), AT(59));
        add_times(s, 60);
        assert_int_equal(series_plan(s), 0);
        for (int i = 0; i < 60; i++)
            add_point(s, 0, AT(i), METRIC_TMPFILES, 5);
        for (int i = 0; i < 50 && process; i++)
            add_point(s, 1, AT(i), METRIC_FDS, 5);
        assert_int_equal(series_finish(s), 0);
        assert_int_equal(s->samples, process ? 50 : 60);
        series_free(s);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(build_once, NULL);
}

HARNESS_MAIN(CASE(test_sum_over_a_tree), CASE(test_restarts_make_epochs), CASE(test_a_recycled_pid_is_no_parent), CASE(test_bins),
             CASE(test_requests_are_cumulative), CASE(test_requests_without_end), CASE(test_nothing_at_all), CASE(test_load), CASE(test_too_many_lives),
             CASE(test_texts_are_cut_to_text),
             CASE(test_too_many_events_and_gaps), CASE(test_gaps_of_all_times), CASE(test_samples_are_of_processes),
             CASE(test_out_of_memory))
