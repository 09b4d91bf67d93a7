/* What is bounded: texts by number, the queue, the gaps. Nobody's flood may push out what others need. */
#include <sqlite3.h>
#include <string.h>

#include "store/test_kit.h"

static struct err err;
#define HOUR (3600 * NS_PER_S)

/* ---- texts ---- */

struct role { char role[ROLE_MAX]; int n; };

static int take_role(void *ctx, const struct life_row *row)
{
    struct role *r = ctx;
    str_copy(r->role, sizeof r->role, row->info.role);
    r->n++;
    return 0;
}

/* Endpoints somebody makes up, in more targets than the table of words could hold: a life is told apart all the same. */
static void test_endpoints_leave_room_for_lives(void **state)
{
    struct role r = {0};
    struct store *s;
    int64_t target, id;
    char name[48];
    (void)state;
    OK(store_open(&s, test_path("words.db"), STORE_WATCH, NULL, &err));
    for (int t = 0; t < 130; t++) {
        str_fmt(name, sizeof name, "api-%d", t);
        OK(store_target(s, name, "pid:1", &target, &err));
        OK(store_begin(s, &err));
        for (int i = 0; i < 510; i++) {
            str_fmt(name, sizeof name, "/made/up/%d/%d", t, i);
            OK(store_put_request(s, target, &(struct request_row){T0, name, "", "ok", -1, 0, 1}, false, &err));
        }
        OK(store_end(s, true, &err));
    }
    struct life_info info = test_life(target, 7);
    str_copy(info.role, sizeof info.role, "a role nobody had before");
    OK(store_life_begin(s, &info, &id, &err));
    OK(store_commit(s, &err));
    OK(store_each_life(s, target, INT64_MIN, INT64_MAX, take_role, &r, &err));
    assert_int_equal(r.n, 1);
    assert_string_equal(r.role, "a role nobody had before");
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

struct keys { int64_t at_ns, n, other, sum; };

static int take_key(void *ctx, int64_t life, int64_t ts_ns, const char *what, const char *key, int64_t count)
{
    struct keys *k = ctx;
    (void)life, (void)what;
    if (ts_ns != k->at_ns)
        return 0;
    k->n++;
    k->sum += count;
    k->other += str_eq(key, "(other)") ? count : 0;
    return 0;
}

static void put_keys(struct store *s, int64_t id, int64_t at_ns, int from, int n)
{
    char key[32];
    for (int i = 0; i < n; i++) {
        str_fmt(key, sizeof key, "/tmp/%c%c%c", 'a' + (from + i) % 26, 'a' + (from + i) / 26 % 26, 'a' + (from + i) / 676);
        OK(store_put_histogram(s, id, at_ns, "path", key, 2, &err));
    }
    OK(store_commit(s, &err));
}

static struct keys keys_at(struct store *s, int64_t id, int64_t at_ns)
{
    struct keys k = {.at_ns = at_ns};
    OK(store_each_histogram(s, id, INT64_MIN, INT64_MAX, take_key, &k, &err));
    return k;
}

/* Too many keys become "(other)", whose counts add up; once no histogram names them there is room for new ones. */
static void test_keys_come_and_go(void **state)
{
    const struct store_config config = {.disk_budget_bytes = 8 << 20, .raw_keep_ns = 6 * HOUR, .tier1_keep_ns = 72 * HOUR};
    struct store *s;
    int64_t target, id;
    struct keys k;
    (void)state;
    OK(store_open(&s, test_path("keys.db"), STORE_WATCH, &config, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    for (int i = 0; i < 6; i++)
        put_keys(s, id, T0 + i * HOUR, i * 300, 300);
    k = keys_at(s, id, T0);
    assert_int_equal(k.n, 300);
    assert_int_equal(k.other, 0);
    k = keys_at(s, id, T0 + 5 * HOUR);
    assert_int_equal(k.sum, 600);
    assert_int_equal(k.other, 600); /* 1,024 keys are known by now */
    struct sample row;
    for (int64_t i = 0; i < 300; i++) { /* weeks later, many passes */
        truth_row(&row, id, i);
        OK(store_put_sweep(s, &(struct sweep){T0 + 400 * HOUR + i * HOUR, 1, &row}, &err));
        OK(store_commit(s, &err));
    }
    assert_int_equal(keys_at(s, id, T0).n, 0);
    put_keys(s, id, T0 + 701 * HOUR, 5000, 300);
    k = keys_at(s, id, T0 + 701 * HOUR);
    assert_int_equal(k.n, 300);
    assert_int_equal(k.other, 0);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

/* ---- the queue ---- */

struct found { int64_t n, from_ns, to_ns; char why[200]; };

static int take_gap(void *ctx, const struct gap_row *row)
{
    struct found *f = ctx;
    f->n++;
    f->from_ns = row->from_ns;
    f->to_ns = row->to_ns;
    str_copy(f->why, sizeof f->why, row->why);
    return 0;
}

static int count_life(void *ctx, const struct life_row *row)
{
    struct { int64_t n, running, ended; } *c = ctx;
    c->n++;
    *(row->end.cause == LIFE_RUNNING ? &c->running : &c->ended) += 1;
    return 0;
}

/* Nothing is written for so long that lives that come and go would fill the queue by themselves: those go, and are said;
 * the one that runs, and the end of one the store knows, stay; no sweep is refused. */
static void test_short_lives_do_not_fill_the_queue(void **state)
{
    const struct store_config config = {.queue_max_bytes = 64 << 10};
    const struct life_end end = {.cause = LIFE_EXITED, .wall_ns = T0 + STEP};
    struct { int64_t n, running, ended; } lives = {0};
    struct found gap = {0};
    struct store *s;
    int64_t target, known, runs, id;
    (void)state;
    OK(store_open(&s, test_path("queue.db"), STORE_WATCH, &config, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 1);
    OK(store_life_begin(s, &info, &known, &err));
    OK(store_commit(s, &err));
    info = test_life(target, 2);
    OK(store_life_begin(s, &info, &runs, &err));
    OK(store_life_end(s, known, &end, NULL, &err));
    for (int32_t pid = 10; pid < 3000; pid++) {
        struct life_end e = end;
        info = test_life(target, pid);
        OK(store_life_begin(s, &info, &id, &err));
        OK(put_sweep_at(s, (int64_t[]){runs, id}, 2, pid, &err));
        e.wall_ns = T0 + pid * STEP;
        OK(store_life_end(s, id, &e, NULL, &err));
        assert_true(store_queued_bytes(s) <= 64 << 10);
    }
    OK(store_commit(s, &err));
    OK(store_each_life(s, target, INT64_MIN, INT64_MAX, count_life, &lives, &err));
    assert_int_equal(lives.running, 1);
    assert_in_range(lives.ended, 10, 2000);
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, take_gap, &gap, &err));
    assert_int_equal(gap.n, 1);
    assert_non_null(strstr(gap.why, "short lives"));
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static int take_end(void *ctx, const struct life_row *row)
{
    struct life_row *out = ctx;
    *out = *row;
    return 0;
}

/* The first end stands, with the values it was given. */
static void test_ended_twice(void **state)
{
    struct store *s;
    struct life_row row;
    int64_t target, id, first[METRIC_N], second[METRIC_N];
    (void)state;
    for (int m = 0; m < METRIC_N; m++) {
        first[m] = 11 + m;
        second[m] = 99;
    }
    OK(store_open(&s, test_path("twice.db"), STORE_WATCH, NULL, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    for (int64_t i = 0; i < 5; i++)
        OK(put_sweep_at(s, &id, 1, i, &err));
    OK(store_life_end(s, id, &(struct life_end){.cause = LIFE_SIGNALED, .signal = 9, .wall_ns = T0 + 6 * STEP}, first, &err));
    OK(store_life_end(s, id, &(struct life_end){.cause = LIFE_VANISHED, .wall_ns = T0 + 9 * STEP}, second, &err));
    OK(store_commit(s, &err));
    OK(store_each_life(s, target, INT64_MIN, INT64_MAX, take_end, &row, &err));
    assert_int_equal(row.end.cause, LIFE_SIGNALED);
    assert_int_equal(row.end.wall_ns, T0 + 6 * STEP);
    assert_int_equal(row.samples, 5);
    assert_int_equal(row.last[METRIC_FDS], first[METRIC_FDS]);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

/* ---- gaps ---- */

/* A clock that is set back again and again within one span makes one gap, not thousands; apart, they stay apart. */
static void test_gaps_that_touch_are_one(void **state)
{
    struct store *s;
    struct found gap = {0};
    int64_t target, id;
    struct sample row;
    (void)state;
    OK(store_open(&s, test_path("gaps.db"), STORE_WATCH, NULL, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    struct life_info info = test_life(target, 7);
    OK(store_life_begin(s, &info, &id, &err));
    for (int64_t i = 0; i < 200; i++) {
        truth_row(&row, id, i);
        OK(store_put_sweep(s, &(struct sweep){T0 + (i % 2 ? 0 : 10) * STEP + i * NS_PER_S, 1, &row}, &err));
        OK(store_commit(s, &err));
    }
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, take_gap, &gap, &err));
    assert_int_equal(gap.n, 1);
    assert_in_range(gap.to_ns - gap.from_ns, 10 * STEP, 10 * STEP + 200 * NS_PER_S);
    for (int64_t i = 0; i < 2; i++) {
        truth_row(&row, id, i);
        OK(store_put_sweep(s, &(struct sweep){T0 + (5000 - 20 * i) * STEP, 1, &row}, &err));
        OK(store_commit(s, &err));
    }
    gap.n = 0;
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, take_gap, &gap, &err));
    assert_int_equal(gap.n, 2);
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

/* ---- memory ---- */

/* Sweeps up to `upto`; what SQLite holds afterwards. */
static int64_t memory_after(struct store *s, const int64_t *ids, size_t n, int64_t *i, int64_t upto)
{
    for (; *i < upto; ++*i) {
        OK(put_sweep_at(s, ids, n, *i, &err));
        OK(store_commit(s, &err));
    }
    return sqlite3_memory_used();
}

/* The watcher's floor comes back: SQLite keeps no more pages of a store of days than of one of hours. */
static void test_memory_does_not_follow_the_file(void **state)
{
    struct store *s;
    int64_t target, ids[8], i = 0;
    (void)state;
    OK(store_open(&s, test_path("memory.db"), STORE_WATCH, NULL, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    for (int k = 0; k < 8; k++) {
        struct life_info info = test_life(target, 7 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
    }
    int64_t hours = memory_after(s, ids, ARRAY_SIZE(ids), &i, 600);
    int64_t days = memory_after(s, ids, ARRAY_SIZE(ids), &i, 6000);
    assert_in_range((uintmax_t)MAX(days - hours, INT64_C(0)), 0, 16 << 10);
    OK(store_close(s, &err));
}

HARNESS_MAIN(CASE(test_endpoints_leave_room_for_lives), CASE(test_keys_come_and_go), CASE(test_short_lives_do_not_fill_the_queue),
             CASE(test_ended_twice), CASE(test_gaps_that_touch_are_one),
             CASE(test_memory_does_not_follow_the_file))
