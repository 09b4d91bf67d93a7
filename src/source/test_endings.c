/* How lives end, and that each is told once, soon, and rightly. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "source/test_witness.h"

static struct witness *watch_puppet(const struct puppet *p)
{
    struct witness *t = witness_open(NULL);

    witness_add_pid(t, p->pid);
    witness_sweep(t);
    assert_non_null(witness_row(t, p->pid));
    return t;
}

static void test_exit_code(void **state)
{
    struct puppet p = puppet_start();
    struct witness *t = watch_puppet(&p);
    struct witness_life *l = witness_life(t, p.pid);
    int64_t rss = witness_row(t, p.pid)[METRIC_RSS];

    (void)state;
    puppet_tell(&p, 'q');
    assert_true(witness_sees_end(t, p.pid)); /* before it is waited for, between two sweeps */
    assert_int_equal(l->end.cause, LIFE_EXITED);
    assert_int_equal(l->end.exit_code, 7);
    assert_int_equal(l->last[METRIC_RSS], rss);
    assert_in_range(l->end.wall_ns, clock_wall_ns() - 60 * NS_PER_S, clock_wall_ns());
    puppet_wait(&p);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    witness_close(t);
}

static void test_signal(void **state)
{
    struct puppet p = puppet_start();
    struct witness *t = watch_puppet(&p);

    (void)state;
    assert_int_equal(WTERMSIG(puppet_end(&p)), SIGKILL); /* reaped before we look */
    assert_true(witness_sees_end(t, p.pid));
    assert_int_equal(witness_life(t, p.pid)->end.cause, LIFE_SIGNALED);
    assert_int_equal(witness_life(t, p.pid)->end.signal, SIGKILL);
    witness_close(t);
}

static void test_close_ends_lives(void **state)
{
    struct puppet p = puppet_start();
    struct witness *t = watch_puppet(&p);

    (void)state;
    witness_stop(t);
    assert_int_equal(witness_life(t, p.pid)->end.cause, LIFE_UNWATCHED);
    witness_close(t);
    t = watch_puppet(&p);
    puppet_end(&p);
    witness_stop(t); /* gone since the last sweep, and no event was drained */
    assert_int_not_equal(witness_life(t, p.pid)->end.cause, LIFE_UNWATCHED);
    witness_close(t);
}

/* 2,000 of 2,000, whether the events are drained as they come or wait for the sweep. */
static void storm(bool drain)
{
    struct puppet p = puppet_start();
    struct witness *t = watch_puppet(&p);
    struct watch_stats s;

    if (!witness_stats(t).has_connector) {
        witness_close(t);
        puppet_end(&p);
        skip();
    }
    puppet_tell(&p, 'F');
    if (drain) {
        int64_t until = clock_mono_ns() + 60 * NS_PER_S;

        do {
            witness_events(t);
            s = witness_stats(t);
        } while (s.exits < 2000 && clock_mono_ns() < until);
    }
    assert_int_equal(puppet_answer(&p), 2000);
    witness_sweep(t);
    s = witness_stats(t);
    assert_int_equal(s.forks, 2000);
    assert_int_equal(s.exits, 2000);
    assert_int_equal(s.overflows, 0);
    assert_int_equal(witness_target(t, 1)[METRIC_FORKS], 2000);
    assert_int_equal(witness_target(t, 1)[METRIC_EXITS], 2000);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 0);
    assert_int_equal(witness_row(t, p.pid)[METRIC_ZOMBIES], 0);
    witness_close(t);
    puppet_end(&p);
}

static void test_storm_drained(void **state)
{
    (void)state;
    storm(true);
}

static void test_storm_at_sweep(void **state)
{
    (void)state;
    storm(false);
}

/* A child that came and died by a signal between two sweeps has a life without samples; one that exited has none. */
static void test_death_between_sweeps(void **state)
{
    struct puppet p = puppet_start();
    struct witness *t = watch_puppet(&p);
    int64_t killed, exited;
    const struct witness_life *l;

    (void)state;
    if (!witness_stats(t).has_connector) {
        witness_close(t);
        puppet_end(&p);
        skip();
    }
    killed = puppet_does(&p, 'f');
    kill((pid_t)killed, SIGTERM);
    exited = puppet_does(&p, 'z');
    while (puppet_does(&p, 'w') == 0 || kill((pid_t)killed, 0) == 0 || kill((pid_t)exited, 0) == 0)
        ;
    witness_sweep(t);
    l = witness_life(t, (pid_t)killed);
    assert_non_null(l);
    assert_int_equal(l->end.cause, LIFE_SIGNALED);
    assert_int_equal(l->end.signal, SIGTERM);
    assert_int_equal(l->last[METRIC_RSS], METRIC_NA);
    assert_true(l->info.key.start > 0);
    assert_int_equal(l->info.ppid, p.pid);
    assert_null(witness_life(t, (pid_t)exited));
    assert_int_equal(witness_target(t, 1)[METRIC_FORKS], 2);
    assert_int_equal(witness_target(t, 1)[METRIC_EXITS], 2);
    witness_close(t);
    puppet_end(&p);
}

/* ---- a number given to another process ------------------------------------------------------------------------------ */

struct clone3_args { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size; };

/* A child with a given pid: it, or -1 when that is not permitted. */
static pid_t fork_as(pid_t pid)
{
    pid_t want[1] = { pid };
    struct clone3_args a = { .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)want, .set_tid_size = 1 };
    long r = syscall(SYS_clone3, &a, sizeof a);

    if (r == 0) {
        for (;;)
            pause();
    }
    return (pid_t)r;
}

static void recycle(bool fresh_look)
{
    struct puppet p = puppet_start();
    struct witness *t = watch_puppet(&p);
    uint64_t start = witness_life(t, p.pid)->info.key.start;
    pid_t again;

    puppet_end(&p);
    /* Ticks of start are 10 ms: the next one must differ for the test to see the difference. */
    nanosleep(&(struct timespec){ .tv_nsec = 30 * NS_PER_MS }, NULL);
    again = fork_as(p.pid);
    if (again != p.pid) {
        witness_close(t);
        print_message("cannot choose a pid here (CAP_CHECKPOINT_RESTORE)\n");
        skip();
    }
    if (fresh_look)
        witness_events(t);
    for (int i = 0; i < 3; i++)
        witness_sweep(t);
    assert_null(witness_row(t, again)); /* pid:N meant the process that is gone */
    assert_int_equal(witness_life(t, p.pid)->info.key.start, start);
    assert_int_equal(witness_life(t, p.pid)->ends, 1);
    assert_int_equal(witness_life(t, p.pid)->end.signal, SIGKILL);
    kill(again, SIGKILL);
    waitpid(again, NULL, 0);
    witness_close(t);
}

static void test_recycled_pid(void **state)
{
    (void)state;
    recycle(true);
    recycle(false);
}

/* ---- killed for memory ------------------------------------------------------------------------------------------------ */

static char group[256];

static bool put(const char *file, const char *text)
{
    _cleanup_fd_ int fd = -1;
    char path[512];

    str_fmt(path, sizeof path, "%s/%s", group, file);
    fd = fd_open(AT_FDCWD, path, O_WRONLY, 0);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static int enter_group(void *ctx)
{
    (void)ctx;
    return put("cgroup.procs", "0") ? 0 : 1;
}

static bool make_group(void)
{
    static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        str_fmt(group, sizeof group, "%s/lowtide-test-%d", roots[i], (int)getpid());
        if (mkdir(group, 0755) < 0)
            continue;
        if (put("memory.limit_in_bytes", "20000000") || put("memory.max", "20000000")) {
            (void)(put("memory.memsw.limit_in_bytes", "20000000") || put("memory.swap.max", "0"));
            return true;
        }
        rmdir(group);
    }
    return false;
}

static void test_oom(void **state)
{
    struct witness *t;
    struct puppet p;

    (void)state;
    if (!make_group()) {
        print_message("no memory cgroup can be made here\n");
        skip();
    }
    p = puppet_start_in(enter_group, NULL);
    puppet_does(&p, 'w'); /* it has entered */
    t = watch_puppet(&p);
    assert_true(witness_target(t, 1)[METRIC_CGROUP_BYTES] > 0);
    assert_in_range(witness_target(t, 1)[METRIC_CGROUP_LIMIT], 19000000, 20000000);
    assert_int_equal(witness_target(t, 1)[METRIC_OOM_KILLS], 0);
    for (int i = 0; i < 8; i++)
        puppet_tell(&p, 'm'); /* 64 MiB in all */
    assert_true(witness_sees_end(t, p.pid));
    assert_int_equal(witness_life(t, p.pid)->end.cause, LIFE_OOM);
    assert_int_equal(witness_life(t, p.pid)->end.signal, SIGKILL);
    assert_true(WIFSIGNALED(puppet_wait(&p)));
    witness_close(t);
    assert_int_equal(rmdir(group), 0);
}

HARNESS_MAIN(CASE(test_exit_code), CASE(test_signal), CASE(test_close_ends_lives), CASE(test_storm_drained),
             CASE(test_storm_at_sweep), CASE(test_death_between_sweeps), CASE(test_recycled_pid), CASE(test_oom))
