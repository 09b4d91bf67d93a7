/* Thinning, retention and the disk budget. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/test_kit.h"

static struct err err;
#define BIN1 (300 * NS_PER_S)
#define HOUR (3600 * NS_PER_S)

/* A host of n lives, `samples` sweeps committed `every` at a time. */
static struct store *make(const char *path, const struct store_config *config, int64_t n, int64_t samples, int64_t every, int64_t *ret_target)
{
    struct store *s;
    int64_t ids[64];
    OK(store_open(&s, path, STORE_WATCH, config, &err));
    OK(store_target(s, "api", "port:8000", ret_target, &err));
    for (int32_t k = 0; k < n; k++) {
        struct life_info info = test_life(*ret_target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
    }
    for (int64_t i = 0; i < samples; i++) {
        OK(put_sweep_at(s, ids, (size_t)n, i, &err));
        if (i % every == every - 1)
            OK(store_commit(s, &err));
    }
    OK(store_commit(s, &err));
    return s;
}

/* Every point against the truth: raw as it is, bins computed anew from the samples they stand for. */
struct bins { int64_t id, samples, next_ns, end_ns, n[3]; };

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int check_bin(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    struct bins *b = ctx;
    int tier = p->bin_ns == 0 ? 0 : p->bin_ns == BIN1 ? 1 : 2;
    b->n[tier]++;
    int64_t from = p->ts_ns < T0 ? 0 : (p->ts_ns - T0 + STEP - 1) / STEP, to = (p->ts_ns + MAX(p->bin_ns, 1) - T0 + STEP - 1) / STEP;
    to = b->samples ? MIN(to, b->samples) : to;
    assert_int_equal(from, b->next_ns); /* every sample is in one point, in order */
    assert_int_equal(p->n, to - from);
    b->next_ns = to;
    for (int m = 0; m < METRIC_N; m++) {
        int64_t x[200], first = METRIC_NA, last = METRIC_NA;
        size_t n = 0;
        for (int64_t i = from; i < to; i++)
            if (truth(b->id, m, i) != METRIC_NA) {
                x[n] = last = truth(b->id, m, i);
                first = n++ ? first : last;
            }
        qsort(x, n, sizeof *x, by_value);
        assert_int_equal(v[m].first, first);
        assert_int_equal(v[m].last, last);
        assert_int_equal(v[m].min, n ? x[0] : METRIC_NA);
        assert_int_equal(v[m].p10, n ? x[(n + 9) / 10 - 1] : METRIC_NA);
        assert_int_equal(v[m].max, n ? x[n - 1] : METRIC_NA);
    }
    return 0;
}

static void test_bins_are_exact(void **state)
{
    struct store_config config = {.raw_keep_ns = 24 * HOUR, .tier1_keep_ns = 40 * HOUR};
    int64_t target, samples = 4 * 2880;
    struct store_info info;
    (void)state;
    struct store *s = make(test_path("a.db"), &config, 2, samples, 60, &target);
    for (int64_t id = 1; id <= 2; id++) {
        struct bins b = {.id = id};
        OK(store_each_point(s, id, INT64_MIN, INT64_MAX, 0, check_bin, &b, &err));
        assert_int_equal(b.next_ns, samples);
        for (int t = 0; t < 3; t++)
            assert_true(b.n[t] > 0);
        assert_in_range(b.n[0], 2880, 2880 + 1500); /* a day, up to ten hours more, what is not sealed */
    }
    OK(store_info(s, &info, &err));
    assert_true(info.tier[1].samples > 0 && info.tier[2].samples > 0);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

/* ---- requests and histograms grow old ---- */

static int sum_requests(void *ctx, const struct request_row *r)
{
    int64_t *v = ctx; /* rows, total, rows off the 5 min grid */
    v[0]++;
    v[1] += r->n;
    v[2] += r->ts_ns % BIN1 != 0;
    return 0;
}

static int count_hist(void *ctx, int64_t life, int64_t ts, const char *what, const char *key, int64_t count)
{
    (void)life, (void)ts, (void)what, (void)key, (void)count;
    ++*(int64_t *)ctx;
    return 0;
}

static void test_counts_are_folded(void **state)
{
    struct store_config config = {.raw_keep_ns = 12 * HOUR};
    int64_t target, v[3] = {0}, hists = 0, now = T0 + 5 * 2880 * STEP, id = 1;
    (void)state;
    struct store *s = make(test_path("b.db"), &config, 1, 10, 10, &target);
    OK(store_begin(s, &err));
    for (int64_t i = 0; i < 2880 * 5; i++) {
        struct request_row r = {T0 + i * STEP, i % 2 ? "/a" : "/b", "", "ok", 0, 0, 3};
        OK(store_put_request(s, target, &r, false, &err));
        if (i % 100 == 0) {
            r.endpoint = "/imported";
            OK(store_put_request(s, target, &r, true, &err));
        }
    }
    OK(store_end(s, true, &err));
    for (int64_t i = 0; i < 5 * 144; i++) /* every ten minutes, never the same twice */
        OK(store_put_histogram(s, id, T0 + i * 600 * NS_PER_S, "path", "/tmp/#", i, &err));
    struct sample row;
    for (int64_t i = 0; i < 200; i++) { /* enough commits for a pass */
        truth_row(&row, id, i);
        OK(store_put_sweep(s, &(struct sweep){now + i * STEP, 1, &row}, &err));
        OK(store_commit(s, &err));
    }
    OK(store_each_request(s, target, INT64_MIN, INT64_MAX, sum_requests, v, &err));
    assert_int_equal(v[1], 3 * (2880 * 5 + 144));
    assert_in_range(v[0], 2880 / 2, 5000);
    assert_true(v[2] >= 100); /* young rows and imported ones keep their times */
    OK(store_each_histogram(s, id, INT64_MIN, INT64_MAX, count_hist, &hists, &err));
    assert_in_range(hists, 270, 2 * 144 + 6); /* two days as they were (passes moved on by up to two hours); before, one a day */
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

/* ---- the budget ---- */

static int64_t on_disk(const char *path)
{
    int64_t sum = 0;
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
        char name[700];
        struct stat st;
        str_fmt(name, sizeof name, "%s%s", path, suffix[i]);
        if (stat(name, &st) == 0)
            sum += st.st_size;
    }
    return sum;
}

static int count_points(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    struct bins *b = ctx;
    (void)v;
    b->n[p->bin_ns == 0 ? 0 : p->bin_ns == BIN1 ? 1 : 2]++;
    if (b->next_ns)
        assert_true(p->ts_ns >= b->next_ns);
    b->next_ns = p->ts_ns + p->bin_ns;
    if (!b->end_ns)
        b->end_ns = p->ts_ns; /* the first */
    return 0;
}

static void test_budget_holds(void **state)
{
    const int64_t budget = 4 << 20;
    struct store_config config = {.disk_budget_bytes = budget};
    struct store *s;
    int64_t target, ids[40], most = 0;
    const char *path = test_path("c.db");
    (void)state;
    OK(store_open(&s, path, STORE_WATCH, &config, &err));
    OK(store_target(s, "api", "port:8000", &target, &err));
    for (int32_t k = 0; k < 40; k++) {
        struct life_info info = test_life(target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
    }
    for (int64_t i = 0; i < 4800; i++) {
        OK(put_sweep_at(s, ids, 40, i, &err));
        if (i % 10 == 9) {
            OK(store_commit(s, &err));
            most = MAX(most, on_disk(path));
        }
    }
    assert_true(most <= budget);
    assert_true(most > budget / 2);
    struct bins b = {.id = 1};
    OK(store_each_point(s, ids[0], INT64_MIN, INT64_MAX, 0, count_points, &b, &err));
    assert_true(b.n[0] > 0 && b.n[1] > 0);   /* the newest raw is there, and bins of what went */
    assert_true(b.end_ns <= T0 + BIN1);      /* back to the beginning */
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
    assert_true(on_disk(path) <= budget);
}

/* A short writer keeps to the budget of the watch, not to its own preset, and a large import is trimmed when it ends. */
static void test_import_keeps_the_budget(void **state)
{
    struct store_config config = {.disk_budget_bytes = 4 << 20};
    const char *path = test_path("d.db");
    struct store *s;
    struct store_info info;
    int64_t target;
    static struct sample rows[1000];
    static int64_t ts[1000];
    (void)state;
    OK(store_open(&s, path, STORE_WATCH, &config, &err));
    OK(store_close(s, &err));
    OK(store_open(&s, path, STORE_WRITE, NULL, &err));
    OK(store_info(s, &info, &err));
    assert_int_equal(info.budget_bytes, 4 << 20);
    OK(store_target(s, "api", "", &target, &err));
    for (int32_t k = 0; k < 12; k++) {
        struct life_info life = test_life(target, 100 + k);
        int64_t id;
        OK(store_import_life(s, &life, &id, &err));
        OK(store_begin(s, &err));
        for (int64_t i = 0; i < 10000; i++) {
            ts[i % 1000] = T0 + i * STEP;
            truth_row(&rows[i % 1000], id, i);
            if (i % 1000 == 999)
                OK(store_import_samples(s, id, ts, rows, 1000, &err));
        }
        OK(store_end(s, true, &err));
    }
    assert_true(on_disk(path) > 4 << 20);
    OK(store_close(s, &err));
    assert_true(on_disk(path) <= 4 << 20);
    OK(store_open(&s, path, STORE_READ, NULL, &err));
    struct bins b = {.id = -1, .samples = 10000};
    OK(store_each_point(s, -1, INT64_MIN, INT64_MAX, 0, check_bin, &b, &err));
    assert_int_equal(b.next_ns, 10000);
    assert_true(b.n[1] > 0);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

HARNESS_MAIN(CASE(test_import_keeps_the_budget), CASE(test_bins_are_exact), CASE(test_counts_are_folded), CASE(test_budget_holds))
