/* The store as its users see it: what was put comes back, sealed or not, after closing and opening again. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/test_kit.h"

static struct err err;

static void open_watch(struct store **s, const char *path) { OK(store_open(s, path, STORE_WATCH, NULL, &err)); }

static void expect_points(struct store *s, int64_t id, int64_t from, int64_t n)
{
    struct check c = {.id = id, .next = from};
    OK(store_each_point(s, id, INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
    assert_int_equal(c.n, n);
}

/* ---- samples ---- */

static void test_samples_come_back(void **state)
{
    struct store *s;
    int64_t target, ids[3];
    const char *path = test_path("a.db");
    (void)state;
    open_watch(&s, path);
    OK(store_target(s, "api", "port:8000", &target, &err));
    for (int k = 0; k < 3; k++) {
        struct life_info info = test_life(target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
        assert_int_equal(ids[k], k + 1);
    }
    for (int64_t i = 0; i < 500; i++) {
        OK(put_sweep_at(s, ids, 3, i, &err));
        OK(store_commit(s, &err));
    }
    for (int k = 0; k < 3; k++)
        expect_points(s, ids[k], 0, 500);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));

    struct store_info info;
    OK(store_open(&s, path, STORE_READ, NULL, &err));
    for (int k = 0; k < 3; k++)
        expect_points(s, ids[k], 0, 500);
    OK(store_info(s, &info, &err));
    assert_int_equal(info.sweeps, 20);
    assert_int_equal(info.tier[0].chunks, 12);
    assert_int_equal(info.tier[0].samples, 1440);
    assert_int_equal(info.tier[0].from_ns, T0);
    assert_int_equal(info.watcher_pid, 0);
    OK(store_verify(s, print_line, NULL, &err));
    assert_null(store_damage(s));
    OK(store_close(s, &err));
}

struct lives { int n; struct life_row row[8]; };
static int count_life(void *ctx, const struct life_row *row)
{
    int64_t *v = ctx;
    v[0]++;
    v[1] += (int64_t)row->samples;
    return 0;
}

/* With many lives a block is sealed over several commits: at every moment all is there, once. */
static void test_half_sealed(void **state)
{
    struct store *s, *reader;
    int64_t target, ids[200];
    const char *path = test_path("half.db");
    (void)state;
    open_watch(&s, path);
    OK(store_target(s, "api", "port:8000", &target, &err));
    for (int k = 0; k < 200; k++) {
        struct life_info info = test_life(target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
    }
    for (int64_t i = 0; i < 130; i++) {
        OK(put_sweep_at(s, ids, 200, i, &err));
        OK(store_commit(s, &err));
        if (i < 118)
            continue;
        struct store_info info;
        OK(store_info(s, &info, &err));
        if (i == 120)
            assert_true(info.tier[0].chunks > 0 && info.sweeps > 120); /* in the middle of it */
        OK(store_open(&reader, path, STORE_READ, NULL, &err));
        for (int k = 0; k < 200; k += 33) {
            expect_points(s, ids[k], 0, i + 1);
            expect_points(reader, ids[k], 0, i + 1);
        }
        int64_t sum[2] = {0};
        OK(store_each_life(reader, target, INT64_MIN, INT64_MAX, count_life, sum, &err));
        assert_true(sum[0] == 200 && sum[1] == 200 * (i + 1));
        OK(store_verify(reader, print_line, NULL, &err));
        OK(store_close(reader, &err));
        if (i == 121) { /* closed and opened again half way */
            OK(store_close(s, &err));
            open_watch(&s, path);
            for (int k = 0; k < 200; k++) {
                struct life_info life = test_life(target, 100 + k);
                OK(store_life_begin(s, &life, &ids[k], &err));
            }
        }
    }
    OK(store_close(s, &err));
}

static int only_fds(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    int64_t *n = ctx;
    int64_t i = (p->ts_ns - T0) / STEP;
    for (int m = 0; m < METRIC_N; m++)
        assert_int_equal(v[m].last, m == METRIC_FDS || m == METRIC_RSS_FILE ? truth(1, m, i) : METRIC_NA);
    ++*n;
    return i == 129 ? 7 : 0;
}

static void test_window_and_columns(void **state)
{
    struct store *s;
    int64_t target, id, n = 0;
    (void)state;
    open_watch(&s, test_path("b.db"));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 1);
    OK(store_life_begin(s, &info, &id, &err));
    for (int64_t i = 0; i < 130; i++)
        OK(put_sweep_at(s, &id, 1, i, &err));
    OK(store_commit(s, &err));
    uint64_t want = UINT64_C(1) << METRIC_FDS | UINT64_C(1) << METRIC_RSS_FILE;
    OK(store_each_point(s, id, T0 + 100 * STEP, T0 + 125 * STEP, want, only_fds, &n, &err));
    assert_int_equal(n, 26);
    assert_int_equal(store_each_point(s, id, T0, INT64_MAX, want, only_fds, &n, &err), 7); /* the callback's own value */
    OK(store_close(s, &err));
}

/* ---- lives ---- */

static int take_life(void *ctx, const struct life_row *row)
{
    struct lives *l = ctx;
    assert_true(l->n < 8);
    l->row[l->n++] = *row;
    return 0;
}

static void test_life_is_continued_and_ended(void **state)
{
    struct store *s;
    int64_t target, id, again, other;
    const char *path = test_path("c.db");
    (void)state;
    open_watch(&s, path);
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7), gone = test_life(target, 8);
    OK(store_life_begin(s, &info, &id, &err));
    OK(store_life_begin(s, &gone, &other, &err));
    int64_t ids[] = {id, other};
    for (int64_t i = 0; i < 10; i++)
        OK(put_sweep_at(s, ids, 2, i, &err));
    OK(store_close(s, &err)); /* as a watcher that is stopped without ending its lives */

    open_watch(&s, path);
    OK(store_life_begin(s, &info, &again, &err));
    assert_int_equal(again, id);
    for (int64_t i = 10; i < 150; i++)
        OK(put_sweep_at(s, &id, 1, i, &err));
    OK(store_end_stale(s, target, info.key.boot_id, &err));
    struct life_end end = {.wall_ns = T0 + 151 * STEP, .cause = LIFE_SIGNALED, .signal = 9};
    OK(store_commit(s, &err));
    OK(store_life_end(s, id, &end, NULL, &err));
    OK(store_commit(s, &err));

    struct lives l = {0};
    OK(store_each_life(s, target, INT64_MIN, INT64_MAX, take_life, &l, &err));
    assert_int_equal(l.n, 2);
    struct life_row *a = &l.row[0], *b = &l.row[1];
    assert_true(life_key_eq(&a->info.key, &info.key) && !strcmp(a->info.role, "uvicorn app:app") && !strcmp(a->info.comm, "python3"));
    assert_int_equal(a->info.start_wall_ns, info.start_wall_ns);
    assert_int_equal(a->samples, 150);
    assert_int_equal(a->first_ns, T0);
    assert_int_equal(a->last_ns, T0 + 149 * STEP);
    assert_int_equal(a->end.cause, LIFE_SIGNALED);
    assert_int_equal(a->end.signal, 9);
    assert_int_equal(a->end.wall_ns, end.wall_ns);
    assert_int_equal(a->first[METRIC_RSS_ANON], truth(id, METRIC_RSS_ANON, 0));
    assert_int_equal(a->last[METRIC_RSS_ANON], truth(id, METRIC_RSS_ANON, 149));
    assert_int_equal(b->end.cause, LIFE_VANISHED);
    assert_int_equal(b->end.wall_ns, T0 + 9 * STEP);
    assert_int_equal(b->samples, 10);
    expect_points(s, id, 0, 150);
    expect_points(s, other, 0, 10);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static int count_gap(void *ctx, const struct gap_row *row)
{
    struct gap_row *out = ctx;
    *out = *row;
    out->why = NULL;
    return 0;
}

static void test_restart_leaves_a_gap(void **state)
{
    struct store *s;
    int64_t target, id;
    struct gap_row gap = {0};
    const char *path = test_path("d.db");
    (void)state;
    open_watch(&s, path);
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    OK(put_sweep_at(s, &id, 1, 0, &err));
    OK(store_close(s, &err));
    struct store_config quick = {.interval_ns = STEP};
    OK(store_open(&s, path, STORE_WATCH, &quick, &err));
    OK(store_life_begin(s, &info, &id, &err));
    OK(put_sweep_at(s, &id, 1, 2, &err)); /* two intervals: no gap */
    OK(store_commit(s, &err));
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, count_gap, &gap, &err));
    assert_int_equal(gap.to_ns, 0);
    OK(store_close(s, &err));
    OK(store_open(&s, path, STORE_WATCH, &quick, &err));
    OK(store_life_begin(s, &info, &id, &err));
    OK(put_sweep_at(s, &id, 1, 9, &err));
    OK(store_commit(s, &err));
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, count_gap, &gap, &err));
    assert_int_equal(gap.from_ns, T0 + 2 * STEP);
    assert_int_equal(gap.to_ns, T0 + 9 * STEP);
    int64_t last;
    OK(store_last_sweep(s, &last, &err));
    assert_int_equal(last, T0 + 9 * STEP);
    OK(store_close(s, &err));
}

static void test_clock_goes_back(void **state)
{
    struct store *s;
    int64_t target, id;
    (void)state;
    open_watch(&s, test_path("e.db"));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    /* 0..99 and 200..299, then back to 50..249, where 50..99 and 200..249 are seen twice (with the same truth). */
    for (int64_t i = 0; i < 100; i++)
        OK(put_sweep_at(s, &id, 1, i, &err));
    for (int64_t i = 200; i < 300; i++)
        OK(put_sweep_at(s, &id, 1, i, &err));
    OK(store_commit(s, &err));
    for (int64_t i = 50; i < 250; i++) {
        OK(put_sweep_at(s, &id, 1, i, &err));
        OK(store_commit(s, &err));
    }
    expect_points(s, id, 0, 300);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static void test_unsorted_and_doubled_rows(void **state)
{
    struct store *s;
    int64_t target, id[4];
    struct sample rows[6];
    (void)state;
    open_watch(&s, test_path("f.db"));
    OK(store_target(s, "api", "pid:1", &target, &err));
    for (int k = 0; k < 4; k++) {
        struct life_info info = test_life(target, 7 + k);
        OK(store_life_begin(s, &info, &id[k], &err));
    }
    const int order[] = {2, 0, 3, 1, 0, 2};
    for (int k = 0; k < 6; k++)
        truth_row(&rows[k], id[order[k]], k < 4 ? 99 : 0); /* the last of a life counts */
    truth_row(&rows[2], id[3], 0);
    truth_row(&rows[3], id[1], 0);
    OK(store_put_sweep(s, &(struct sweep){T0, 6, rows}, &err));
    OK(store_commit(s, &err));
    for (int k = 0; k < 4; k++)
        expect_points(s, id[k], 0, 1);
    OK(store_close(s, &err));
}

/* ---- the rest ---- */

struct texts { int n; char text[1024]; };
static int take_request(void *ctx, const struct request_row *r)
{
    struct texts *t = ctx;
    t->n++;
    size_t at = strlen(t->text);
    str_fmt(t->text + at, sizeof t->text - at, "%lld %s %s %s %d %d %lld;", (long long)((r->ts_ns - T0) / NS_PER_S), r->endpoint,
            r->version, r->outcome, r->stream, r->pid, (long long)r->n);
    return 0;
}
static int take_event(void *ctx, const struct event_row *r)
{
    struct texts *t = ctx;
    size_t at = strlen(t->text);
    t->n++;
    str_fmt(t->text + at, sizeof t->text - at, "%lld %s %s;", (long long)((r->ts_ns - T0) / NS_PER_S), r->kind, r->text);
    return 0;
}
static int take_hist(void *ctx, int64_t life, int64_t ts, const char *what, const char *key, int64_t count)
{
    struct texts *t = ctx;
    size_t at = strlen(t->text);
    t->n++;
    str_fmt(t->text + at, sizeof t->text - at, "%lld %lld %s %s %lld;", (long long)life, (long long)((ts - T0) / NS_PER_S), what, key,
            (long long)count);
    return 0;
}

static void test_requests(void **state)
{
    struct store *s;
    int64_t target;
    (void)state;
    OK(store_open(&s, test_path("g.db"), STORE_WRITE, NULL, &err));
    OK(store_target(s, "api", "port:8000", &target, &err));
    struct request_row r = {T0, "/chat", "v1", "ok", 1, 42, 5};
    OK(store_put_request(s, target, &r, false, &err));
    OK(store_put_request(s, target, &r, false, &err));
    r.endpoint = "/health";
    OK(store_begin(s, &err));
    OK(store_put_request(s, target, &r, true, &err));
    OK(store_put_request(s, target, &r, true, &err));
    OK(store_end(s, true, &err));
    OK(store_begin(s, &err));
    r.endpoint = "/never";
    OK(store_put_request(s, target, &r, true, &err));
    OK(store_end(s, false, &err));
    r.endpoint = "/after";
    r.ts_ns += 30 * NS_PER_S;
    OK(store_put_request(s, target, &r, true, &err));
    struct texts t = {0};
    OK(store_each_request(s, target, INT64_MIN, INT64_MAX, take_request, &t, &err));
    assert_string_equal(t.text, "0 /chat v1 ok 1 42 10;0 /health v1 ok 1 42 5;30 /after v1 ok 1 42 5;");
    t = (struct texts){0};
    OK(store_each_request(s, target, T0 + NS_PER_MS, INT64_MAX, take_request, &t, &err));
    assert_int_equal(t.n, 1);
    assert_int_equal(store_begin(s, &err), 0);
    assert_int_equal(store_begin(s, &err), LT_EUSAGE);
    OK(store_end(s, true, &err));
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static void test_endpoints_are_bounded(void **state)
{
    struct store *s;
    int64_t target;
    char name[32];
    (void)state;
    OK(store_open(&s, test_path("h.db"), STORE_WRITE, NULL, &err));
    OK(store_target(s, "api", "port:8000", &target, &err));
    OK(store_begin(s, &err));
    for (int i = 0; i < 600; i++) {
        str_fmt(name, sizeof name, "/user/%d", i);
        struct request_row r = {T0, name, "", "ok", -1, 0, 1};
        OK(store_put_request(s, target, &r, false, &err));
    }
    OK(store_end(s, true, &err));
    static struct { struct texts t; } last;
    last.t = (struct texts){0};
    int n = 0;
    OK(store_each_request(s, target, INT64_MIN, INT64_MAX, take_request, &last.t, &err));
    n = last.t.n;
    assert_int_equal(n, 513); /* 512 names and one row of the others */
    OK(store_close(s, &err));
}

static void test_events_and_histograms(void **state)
{
    struct store *s;
    int64_t target, id;
    struct texts t = {0};
    (void)state;
    open_watch(&s, test_path("i.db"));
    OK(store_target(s, "api", "port:8000", &target, &err));
    for (int twice = 0; twice < 2; twice++) {
        OK(store_put_event(s, target, T0 + 60 * NS_PER_S, "deploy", "v2; 'quoted' \xff", &err));
        OK(store_put_event(s, target, T0, "note", "hello", &err));
    }
    OK(store_each_event(s, target, T0, INT64_MAX, take_event, &t, &err));
    assert_string_equal(t.text, "0 note hello;60 deploy v2; 'quoted' \xff;");
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    for (int k = 0; k < 3; k++) {
        int64_t at = T0 + k * 600 * NS_PER_S;
        OK(store_put_histogram(s, id, at, "path", "/tmp/#", 5, &err));
        OK(store_put_histogram(s, id, at, "path", "/var/log/x", k == 2 ? 9 : 2, &err));
        OK(store_put_histogram(s, id, at, "peer", "10.0.0.7:443 CLOSE_WAIT", 3, &err));
        OK(store_put_histogram(s, id, at, "path", "/tmp/#", 6, &err)); /* the same once more, after another kind */
        OK(store_commit(s, &err));
    }
    t = (struct texts){0};
    OK(store_each_histogram(s, id, INT64_MIN, INT64_MAX, take_hist, &t, &err));
    /* What did not change within the hour is not written again. */
    assert_string_equal(t.text, "1 0 path /tmp/# 6;1 0 path /var/log/x 2;1 0 peer 10.0.0.7:443 CLOSE_WAIT 3;"
                                "1 600 path /tmp/# 6;1 600 path /var/log/x 2;1 1200 path /tmp/# 6;1 1200 path /var/log/x 9;");
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static void test_import(void **state)
{
    struct store *s;
    int64_t target, id, again;
    static struct sample rows[1000];
    static int64_t ts[1000];
    struct lives l = {0};
    (void)state;
    OK(store_open(&s, test_path("j.db"), STORE_WRITE, NULL, &err));
    OK(store_target(s, "api", "", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_import_life(s, &info, &id, &err));
    assert_int_equal(id, -1);
    OK(store_import_life(s, &info, &again, &err));
    assert_int_equal(again, id);
    /* In three passes that interleave and overlap, the first backwards. */
    for (int pass = 0; pass < 3; pass++) {
        size_t n = 0;
        for (int64_t i = 0; i < 600; i++) {
            int64_t at = pass == 0 ? 599 - i : i;
            if (pass < 2 && at % 2 != pass)
                continue;
            ts[n] = T0 + at * STEP;
            truth_row(&rows[n++], id, at);
        }
        for (size_t k = 0; k < n; k += 50)
            OK(store_import_samples(s, id, ts + k, rows + k, MIN(n - k, (size_t)50), &err));
    }
    expect_points(s, id, 0, 600);
    OK(store_each_life(s, target, INT64_MIN, INT64_MAX, take_life, &l, &err));
    assert_int_equal(l.n, 1);
    assert_int_equal(l.row[0].samples, 600);
    assert_int_equal(l.row[0].end.cause, LIFE_IMPORTED);
    assert_int_equal(l.row[0].last_ns, T0 + 599 * STEP);
    assert_int_equal(l.row[0].last[METRIC_RSS_ANON], truth(id, METRIC_RSS_ANON, 599));
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static int one_target(void *ctx, const struct target_row *row)
{
    struct target_row *out = ctx;
    *out = *row;
    return 0;
}

static void test_targets(void **state)
{
    struct store *s;
    int64_t a, b, c;
    struct target_row row;
    (void)state;
    OK(store_open(&s, test_path("k.db"), STORE_WRITE, NULL, &err));
    OK(store_target(s, "api", "port:1", &a, &err));
    OK(store_target(s, "api", "port:2", &b, &err));
    assert_int_equal(a, b);
    OK(store_find_target(s, "api", &c, &err));
    assert_int_equal(a, c);
    assert_int_equal(store_find_target(s, "web", &c, &err), LT_ENOENT);
    assert_non_null(strstr(err.text, "it holds api"));
    OK(store_each_target(s, one_target, &row, &err));
    assert_int_equal(row.first_ns, CLOCK_INVALID);
    assert_int_equal(row.samples, 0);
    OK(store_close(s, &err));
}

/* ---- files ---- */

static void test_files_are_private(void **state)
{
    struct store *s;
    struct stat st;
    char path[700];
    int64_t target;
    static const char *const suffix[] = {"", "-wal", "-shm", "-watch"};
    (void)state;
    open_watch(&s, test_path("l.db"));
    OK(store_target(s, "api", "port:1", &target, &err));
    for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
        str_fmt(path, sizeof path, "%s%s", test_path("l.db"), suffix[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    OK(store_close(s, &err));
}

static void test_second_watcher_is_refused(void **state)
{
    struct store *s, *t;
    char pid[32];
    struct store_info info;
    (void)state;
    open_watch(&s, test_path("m.db"));
    assert_int_equal(store_open(&t, test_path("m.db"), STORE_WATCH, NULL, &err), LT_EBUSY);
    str_fmt(pid, sizeof pid, "process %d ", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    OK(store_open(&t, test_path("m.db"), STORE_WRITE, NULL, &err)); /* short writers are welcome */
    OK(store_info(t, &info, &err));
    assert_int_equal(info.watcher_pid, getpid());
    OK(store_close(t, &err));
    OK(store_close(s, &err));
    open_watch(&s, test_path("m.db"));
    OK(store_close(s, &err));
}

static void put_file(const char *path, const void *data, size_t n)
{
    assert_int_equal(fd_write_file(path, data, n), 0);
}

static void test_what_is_no_store(void **state)
{
    struct store *s;
    char path[700];
    static const char text[] = "this is a shell script, not a store; and it is longer than a hundred bytes, so that its header could be one of SQLite";
    (void)state;
    assert_int_equal(store_open(&s, test_path("none.db"), STORE_READ, NULL, &err), LT_ENOENT);
    str_copy(path, sizeof path, test_path("text.db"));
    put_file(path, text, sizeof text);
    for (int mode = STORE_READ; mode <= STORE_WATCH; mode++)
        assert_int_equal(store_open(&s, path, (enum store_mode)mode, NULL, &err), LT_EUSAGE);
    char back[sizeof text + 1];
    assert_int_equal(fd_read_at(AT_FDCWD, path, back, sizeof back), sizeof text);
    assert_memory_equal(back, text, sizeof text); /* untouched */
    put_file(path, "", 0);
    assert_int_equal(store_open(&s, path, STORE_READ, NULL, &err), LT_ENOENT);
    OK(store_open(&s, path, STORE_WRITE, NULL, &err)); /* an empty file becomes one */
    OK(store_close(s, &err));
    assert_int_equal(store_open(&s, harness_tmpdir(), STORE_WRITE, NULL, &err), LT_EUSAGE);
    str_fmt(path, sizeof path, "%s/no/such/folder.db", harness_tmpdir());
    assert_int_equal(store_open(&s, path, STORE_WRITE, NULL, &err), LT_EIO);
}

HARNESS_MAIN(CASE(test_samples_come_back), CASE(test_half_sealed), CASE(test_window_and_columns), CASE(test_life_is_continued_and_ended),
             CASE(test_restart_leaves_a_gap), CASE(test_clock_goes_back), CASE(test_unsorted_and_doubled_rows), CASE(test_requests),
             CASE(test_endpoints_are_bounded), CASE(test_events_and_histograms), CASE(test_import), CASE(test_targets),
             CASE(test_files_are_private), CASE(test_second_watcher_is_refused), CASE(test_what_is_no_store))
