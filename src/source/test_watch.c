/* The sampler on real processes: trees, values, rows. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/procfs.h"
#include "source/test_witness.h"

static void test_values(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    const int64_t *v;
    struct proc_statm m;
    int dirfd;

    (void)state;
    assert_int_equal(puppet_does(&p, 'm'), 8 << 20);
    assert_int_equal(puppet_does(&p, 'o'), 30);
    assert_int_equal(puppet_does(&p, 's'), 5);
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    v = witness_row(t, p.pid);
    assert_non_null(v);
    dirfd = fd_open(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);
    assert_true(dirfd >= 0);
    int pid_dirfd = procfs_open_pid(dirfd, p.pid);
    assert_int_equal(procfs_statm(pid_dirfd, &m), 0);
    assert_int_equal(v[METRIC_RSS], m.resident * sysconf(_SC_PAGESIZE));
    assert_int_equal(v[METRIC_RSS_ANON], (m.resident - m.shared) * sysconf(_SC_PAGESIZE));
    assert_true(v[METRIC_RSS_ANON] >= 8 << 20);
    assert_int_equal(v[METRIC_RSS_FILE] + v[METRIC_RSS_SHMEM] + v[METRIC_RSS_ANON], v[METRIC_RSS]);
    assert_int_equal(v[METRIC_SOCKETS], 5);
    assert_int_equal(v[METRIC_UNIX_SOCKETS], 5);
    assert_int_equal(v[METRIC_FDS], v[METRIC_SOCKETS] + v[METRIC_PIPES] + v[METRIC_FILES] + v[METRIC_ANON_INODES]);
    assert_true(v[METRIC_FILES] >= 30);
    assert_int_equal(v[METRIC_THREADS], 1);
    assert_int_equal(v[METRIC_CHILDREN], 0);
    assert_int_equal(v[METRIC_ZOMBIES], 0);
    assert_true(v[METRIC_CPU_NS] > 0 && v[METRIC_MINFLT] > 2000);
    assert_int_equal(v[METRIC_SWAP], 0);
    assert_int_equal(v[METRIC_ORPHANS], METRIC_NA); /* the target's, not a process's */
    assert_non_null(strstr(t->paths, "path /dev/null"));
    fd_close(pid_dirfd);
    fd_close(dirfd);
    witness_close(t);
    puppet_end(&p);
}

/* What changed in a process that ran shows in the next sweep; what did not run is read no worse for being read less. */
static void test_follows_changes(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t fds, sockets, anon, children[3];

    (void)state;
    puppet_does(&p, 'w'); /* it stands: what it inherited is closed */
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    witness_sweep(t);
    fds = witness_row(t, p.pid)[METRIC_FDS];
    sockets = witness_row(t, p.pid)[METRIC_SOCKETS];
    anon = witness_row(t, p.pid)[METRIC_RSS_ANON];
    for (int i = 0; i < 12; i++) {
        witness_sweep(t);
        assert_int_equal(witness_row(t, p.pid)[METRIC_FDS], fds);
    }
    puppet_does(&p, 's');
    witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_FDS], fds + 5);
    assert_int_equal(witness_row(t, p.pid)[METRIC_SOCKETS], sockets + 5);
    puppet_does(&p, 'm');
    for (int i = 0; i < 3; i++)
        children[i] = puppet_does(&p, 'f');
    witness_sweep(t);
    assert_true(witness_row(t, p.pid)[METRIC_RSS_ANON] >= anon + (8 << 20));
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 3);
    for (int i = 0; i < 3; i++) {
        assert_non_null(witness_row(t, (pid_t)children[i]));
        assert_int_equal(witness_life(t, (pid_t)children[i])->info.ppid, p.pid);
    }
    witness_close(t);
    puppet_end(&p);
}

/* subprocess.Popen in a worker thread: the child stands under that thread in task/TID/children, and moves when it ends. */
static void test_child_of_another_thread(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t child = puppet_does(&p, 't'), later;

    (void)state;
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 1);
    assert_non_null(witness_row(t, (pid_t)child));
    later = puppet_does(&p, 't');
    witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 2);
    assert_non_null(witness_row(t, (pid_t)later));
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 0);
    witness_close(t);
    kill((pid_t)child, SIGKILL);
    kill((pid_t)later, SIGKILL);
    puppet_end(&p);
    kill_and_see_gone((pid_t)child);
    kill_and_see_gone((pid_t)later);
}

static void test_zombies(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    siginfo_t info;

    (void)state;
    puppet_does(&p, 'z'); /* one before the watch, two during it */
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    puppet_does(&p, 'z');
    int64_t last = puppet_does(&p, 'z');
    for (int i = 0; i < 2000; i++) {
        witness_sweep(t);
        if (witness_row(t, p.pid)[METRIC_ZOMBIES] == 3)
            break;
    }
    assert_int_equal(witness_row(t, p.pid)[METRIC_ZOMBIES], 3);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 0);
    assert_null(witness_row(t, (pid_t)last)); /* dead: no row */
    assert_int_equal(puppet_does(&p, 'w'), 3);
    witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_ZOMBIES], 0);
    assert_int_equal(waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    witness_close(t);
    puppet_end(&p);
}

/* Double fork: the one between ends, so the last is nobody's child of the service any more. */
static void test_orphans(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t known, session;

    (void)state;
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 0);
    known = puppet_does(&p, 'd');
    session = puppet_does(&p, 'D');
    witness_sweep(t);
    if (!witness_stats(t).has_connector) {
        witness_close(t);
        puppet_end(&p);
        kill_and_see_gone((pid_t)known);
        kill_and_see_gone((pid_t)session);
        skip();
    }
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 2);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 0);
    assert_non_null(witness_row(t, (pid_t)known)); /* still the service's: its memory counts */
    kill_and_see_gone((pid_t)known);
    witness_events(t);
    witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 1);
    witness_close(t);
    kill_and_see_gone((pid_t)session);
    puppet_end(&p);
}

/* Left the tree before the watch began: found by its session, led by a process of the target. */
static int lead_session(void *ctx)
{
    (void)ctx;
    return setsid() < 0;
}

static void test_orphan_of_before(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start_in(lead_session, NULL);
    int64_t orphan = puppet_does(&p, 'd');

    (void)state;
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 1);
    assert_non_null(witness_row(t, (pid_t)orphan));
    witness_close(t);
    kill_and_see_gone((pid_t)orphan);
    puppet_end(&p);
}

/* Sessions whose leader is long dead do not keep later ones from being followed, however many there were. */
static void test_orphan_after_many_sessions(void **state)
{
    enum { MOST = 16 };
    struct watch_config config = { .max_lives = MOST, .slow_every = 1 };
    struct witness *t = witness_open(&config);
    struct puppet a = puppet_start(), b = puppet_start_in(lead_session, NULL);
    int64_t orphan = puppet_does(&b, 'd');

    (void)state;
    witness_add_pid(t, a.pid);
    for (int i = 0; i < 2 * MOST; i++) {
        int64_t leader = puppet_does(&a, 'S');

        witness_sweep(t);
        assert_non_null(witness_row(t, (pid_t)leader));
        assert_int_equal(kill((pid_t)leader, SIGKILL), 0);
        puppet_does(&a, 'w');
        witness_sweep(t);
    }
    witness_add_pid(t, b.pid);
    witness_sweep(t);
    witness_sweep(t);
    assert_non_null(witness_row(t, (pid_t)orphan));
    witness_close(t);
    kill_and_see_gone((pid_t)orphan);
    puppet_end(&a);
    puppet_end(&b);
}

static void test_first_thread_ended(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    const int64_t *v;

    (void)state;
    puppet_does(&p, 'm');
    puppet_does(&p, 'o');
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    puppet_does(&p, 'T');
    for (int i = 0; i < 20; i++) {
        witness_events(t);
        witness_sweep(t);
    }
    v = witness_row(t, p.pid);
    assert_non_null(v);
    assert_true(v[METRIC_RSS_ANON] >= 8 << 20);
    assert_true(v[METRIC_FDS] >= 30 && v[METRIC_FILES] >= 30);
    assert_int_equal(witness_life(t, p.pid)->ends, 0);
    kill(p.pid, SIGKILL);
    assert_true(witness_sees_end(t, p.pid));
    assert_int_equal(witness_life(t, p.pid)->end.cause, LIFE_SIGNALED);
    assert_int_equal(witness_life(t, p.pid)->end.signal, SIGKILL);
    puppet_end(&p);
    witness_close(t);
}

static void test_no_allocation(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p[3];
    uint64_t allocs;

    (void)state;
    for (int i = 0; i < 3; i++) {
        p[i] = puppet_start();
        for (int k = 0; k < 5; k++)
            puppet_does(&p[i], 'f');
        puppet_does(&p[i], 'l');
        puppet_does(&p[i], 's');
        witness_add_pid(t, p[i].pid);
    }
    for (int i = 0; i < 3; i++)
        witness_sweep(t);
    assert_int_equal(t->sweep.n, 3 * 6 + 3);
    allocs = mem_total_allocs();
    for (int i = 0; i < 65; i++)
        witness_sweep(t);
    assert_int_equal(mem_total_allocs(), allocs);
    witness_close(t);
    for (int i = 0; i < 3; i++)
        puppet_end(&p[i]);
}

static void test_target_is_said(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    char selector[32];

    (void)state;
    witness_add(t, "pidfile:/nonexistent/lowtide.pid");
    str_fmt(selector, sizeof selector, "%d", (int)p.pid); /* a plain number is pid:N */
    witness_add(t, selector);
    for (int i = 0; i < 3; i++)
        witness_sweep(t);
    assert_int_equal(witness_notes(t, "waiting"), 1);
    assert_int_equal(witness_notes(t, "found"), 1);
    assert_null(witness_target(t, 1));
    assert_non_null(witness_target(t, 2));
    puppet_end(&p);
    for (int i = 0; i < 3; i++) {
        witness_events(t);
        witness_sweep(t);
    }
    assert_int_equal(witness_notes(t, "gone"), 1);
    assert_null(witness_target(t, 2));
    assert_int_equal(witness_stats(t).targets_present, 0);
    witness_close(t);
}

static int refuse(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    (void)ctx, (void)info, (void)ret_life_id;
    return LT_EFULL;
}

static void ignore_end(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N])
{
    (void)ctx, (void)life_id, (void)end, (void)last;
    fail_msg("a life that never began has no end");
}

static void test_owner_refuses(void **state)
{
    struct watch_config config = { 0 };
    struct watch_sink sink = { .begin = refuse, .end = ignore_end };
    struct puppet p = puppet_start();
    struct sweep sweep;
    struct watch *w;
    struct err err;
    char selector[32];

    (void)state;
    str_fmt(selector, sizeof selector, "pid:%d", (int)p.pid);
    assert_int_equal(watch_open(&w, &config, &sink, &err), 0);
    assert_int_equal(watch_add(w, "x", selector, 1, &err), 0);
    assert_int_equal(watch_sweep(w, clock_wall_ns(), &sweep, &err), LT_EFULL);
    assert_int_equal(watch_sweep(w, clock_wall_ns(), &sweep, &err), LT_EFULL);
    watch_close(w);
    puppet_end(&p);
}

static int count_begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    (void)info;
    *ret_life_id = ++*(int64_t *)ctx;
    return 0;
}

static void forget_end(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N])
{
    (void)ctx, (void)life_id, (void)end, (void)last;
}

static int open_and_sweep(void *ctx)
{
    struct watch_config config = { 0 };
    int64_t id = 0;
    struct watch_sink sink = { .ctx = &id, .begin = count_begin, .end = forget_end };
    struct watch *w;
    struct sweep sweep;
    int r = watch_open(&w, &config, &sink, NULL);

    if (r < 0)
        return r;
    r = watch_add(w, "x", ctx, 1, NULL);
    for (int i = 0; i < 2 && r == 0; i++)
        r = watch_sweep(w, clock_wall_ns(), &sweep, NULL);
    watch_close(w);
    return r;
}

static void test_out_of_memory(void **state)
{
    struct puppet p = puppet_start();
    char selector[32];

    (void)state;
    puppet_does(&p, 'f');
    puppet_does(&p, 's');
    str_fmt(selector, sizeof selector, "pid:%d", (int)p.pid);
    harness_sweep_allocs(open_and_sweep, selector);
    puppet_end(&p);
}

HARNESS_MAIN(CASE(test_values), CASE(test_follows_changes), CASE(test_child_of_another_thread), CASE(test_zombies),
             CASE(test_orphans), CASE(test_orphan_of_before), CASE(test_orphan_after_many_sessions),
             CASE(test_first_thread_ended), CASE(test_no_allocation),
             CASE(test_target_is_said), CASE(test_owner_refuses), CASE(test_out_of_memory))
