/* A watcher killed at any moment loses at most the sweep it was putting: what it acknowledged through a pipe is there. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/random.h"
#include "store/test_kit.h"

static struct err err;
#define LIVES 130 /* so many that a block is sealed over several commits */
#define ROUNDS 120

/* Small enough a budget and short enough a memory that sealing, thinning and trimming are killed in the middle as well. */
static const struct store_config config = {.raw_keep_ns = INT64_C(6) * 3600 * NS_PER_S, .disk_budget_bytes = 8 << 20, .interval_ns = STEP};

/* The watcher: goes on where the store ends, says i after sweep i was committed, until it is killed. */
static void watch_until_killed(const char *path, int out)
{
    struct store *s;
    struct err e;
    int64_t target, ids[LIVES], last;
    if (store_open(&s, path, STORE_WATCH, &config, &e) || store_target(s, "api", "pid:1", &target, &e) ||
        store_last_sweep(s, &last, &e))
        _exit(1);
    for (int32_t k = 0; k < LIVES; k++) {
        struct life_info info = test_life(target, 100 + k);
        if (store_life_begin(s, &info, &ids[k], &e) || ids[k] != k + 1)
            _exit(2);
    }
    for (int64_t i = last == CLOCK_INVALID ? 0 : (last - T0) / STEP + 1;; i++) {
        if (put_sweep_at(s, ids, LIVES, i, &e) || store_commit(s, &e))
            _exit(3);
        if (write(out, &i, sizeof i) != sizeof i)
            _exit(4);
    }
}

/* Runs it until it acknowledged so many sweeps, and ns more; returns the last it acknowledged, -1 when none. */
static int64_t run_and_kill(const char *path, uint64_t sweeps, int64_t ns)
{
    int fds[2], status;
    int64_t acked = -1, i;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        close(fds[0]);
        watch_until_killed(path, fds[1]);
    }
    close(fds[1]);
    while (sweeps-- && read(fds[0], &i, sizeof i) == sizeof i)
        acked = i;
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
    kill(pid, SIGKILL);
    while (read(fds[0], &i, sizeof i) == sizeof i)
        acked = i;
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        fail_msg("the watcher ended by itself: %d", WEXITSTATUS(status));
    return acked;
}

struct seen { int64_t next, raw; };

/* Every sample is in one point, in order, and raw ones are true. */
static int see_point(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    struct seen *s = ctx;
    int64_t from = p->ts_ns < T0 ? 0 : (p->ts_ns - T0 + STEP - 1) / STEP;
    assert_int_equal(from, s->next);
    s->next = from + p->n;
    if (p->bin_ns)
        return 0;
    s->raw++;
    for (int m = 0; m < METRIC_N; m++)
        assert_int_equal(v[m].last, truth(2, m, from));
    return 0;
}

static void test_killed_at_any_moment(void **state)
{
    char path[700];
    struct random r = {5};
    int64_t acked = -1;
    (void)state;
    str_copy(path, sizeof path, test_path("a.db"));
    for (int round = 0; round < ROUNDS; round++) {
        int64_t now = run_and_kill(path, random_below(&r, 8), (int64_t)random_below(&r, (round % 2 ? 1 : 15) * 1000000));
        acked = MAX(acked, now);
        struct store *s;
        if (acked < 0)
            continue;
        OK(store_open(&s, path, STORE_READ, NULL, &err));
        struct seen seen = {0};
        OK(store_each_point(s, 2, INT64_MIN, INT64_MAX, 0, see_point, &seen, &err));
        assert_in_range(seen.next, acked + 1, acked + 2); /* and perhaps the one that was written but not yet acknowledged */
        acked = seen.next - 1;
        if (round % 10 == 9)
            OK(store_verify(s, print_line, NULL, &err));
        assert_null(store_damage(s));
        OK(store_close(s, &err));
    }
    assert_true(acked > 240); /* or nothing was ever sealed */
}

HARNESS_MAIN(CASE(test_killed_at_any_moment))
