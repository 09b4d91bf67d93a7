/* The sampler where things are missing, hostile, or go away while it looks. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "source/test_witness.h"

/* ---- in a process of its own: what it returns is an exit code, 0 for right, else the line that was wrong ------------------ */

#define EXPECT(x) do { if (!(x)) return __LINE__ % 250 + 1; } while (0)

/* A sink without asserts, which only work in the test's own process. */
struct plain { int64_t ids, notes_permission, ends, end_signal; int32_t pids[256]; };

static int plain_begin(void *ctx, const struct life_info *info, int64_t *ret)
{
    struct plain *p = ctx;

    if (p->ids == 255)
        return LT_ELIMIT;
    p->pids[++p->ids] = info->key.pid;
    *ret = p->ids;
    return 0;
}

static void plain_end(void *ctx, int64_t id, const struct life_end *end, const int64_t last[METRIC_N])
{
    struct plain *p = ctx;

    (void)id, (void)last;
    p->ends++;
    p->end_signal = end->signal;
}

static void plain_note(void *ctx, const char *target, const char *kind, const char *text)
{
    (void)target, (void)text;
    ((struct plain *)ctx)->notes_permission += str_eq(kind, "permission");
}

static const int64_t *plain_row(const struct plain *p, const struct sweep *s, pid_t pid)
{
    for (size_t i = 0; i < s->n; i++)
        if (p->pids[s->rows[i].life_id] == pid)
            return s->rows[i].v;
    return NULL;
}

static int open_plain(struct plain *p, pid_t pid, struct watch **w)
{
    struct watch_config config = { 0 };
    struct watch_sink sink = { .ctx = p, .begin = plain_begin, .end = plain_end, .note = plain_note };
    char selector[32];

    str_fmt(selector, sizeof selector, "pid:%d", (int)pid);
    EXPECT(watch_open(w, &config, &sink, NULL) == 0);
    EXPECT(watch_add(*w, "x", selector, 1, NULL) == 0);
    return 0;
}

static void run_apart(int (*fn)(pid_t target), pid_t target)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid)
        _exit(fn(target));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status))
        fail_msg("failed near a line n with n %% 250 + 1 == %d", WEXITSTATUS(status));
}

/* Another user's process without capabilities: what cannot be seen is METRIC_NA, said once; what can be is right. */
static int as_nobody(pid_t target)
{
    struct plain p = { 0 };
    struct sweep s;
    struct watch *w;
    const int64_t *v;

    EXPECT(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    EXPECT(open_plain(&p, target, &w) == 0);
    for (int i = 0; i < 12; i++)
        EXPECT(watch_sweep(w, clock_wall_ns(), &s, NULL) == 0);
    v = plain_row(&p, &s, target);
    EXPECT(v);
    EXPECT(v[METRIC_RSS] > 0 && v[METRIC_RSS_ANON] > 0 && v[METRIC_THREADS] == 1 && v[METRIC_CPU_NS] >= 0);
    for (int i = METRIC_SOCKETS; i <= METRIC_UNIX_SOCKETS; i++)
        EXPECT(v[i] == METRIC_NA);
    struct watch_stats stats;
    watch_stats(w, &stats);
    EXPECT(p.notes_permission == (stats.has_connector ? 1 : 2));
    if (stats.fd_count_by_stat)
        EXPECT(v[METRIC_FDS] > 30);
    watch_close(w);
    EXPECT(p.ends == p.ids);
    return 0;
}

static void test_without_permission(void **state)
{
    struct puppet p;

    (void)state;
    if (geteuid() != 0)
        skip();
    p = puppet_start();
    puppet_does(&p, 'o');
    run_apart(as_nobody, p.pid);
    puppet_end(&p);
}

/* Without the connector: exits by pidfd. As nobody, watching a child of our own. */
static int exits_as_nobody(pid_t unused)
{
    struct plain p = { 0 };
    struct sweep s;
    struct watch *w;
    struct watch_stats stats;
    pid_t child;

    (void)unused;
    EXPECT(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    prctl(PR_SET_DUMPABLE, 1);
    child = fork();
    if (!child)
        for (;;)
            pause();
    EXPECT(open_plain(&p, child, &w) == 0);
    EXPECT(watch_sweep(w, clock_wall_ns(), &s, NULL) == 0);
    EXPECT(plain_row(&p, &s, child));
    watch_stats(w, &stats);
    if (!stats.has_connector)
        EXPECT(plain_row(&p, &s, 0)[METRIC_FORKS] == METRIC_NA && plain_row(&p, &s, 0)[METRIC_EXITS] == METRIC_NA);
    kill(child, SIGUSR1);
    for (int i = 0; i < 5000 && !p.ends; i++) {
        EXPECT(watch_events(w, NULL) == 0);
        nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
    }
    EXPECT(p.ends == 1 && p.end_signal == SIGUSR1);
    waitpid(child, NULL, 0);
    watch_close(w);
    EXPECT(p.ends == 2);
    return 0;
}

static void test_exits_without_connector(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    run_apart(exits_as_nobody, 0);
}

/* Fewer descriptors than processes: those without a kept folder are read by number, their start checked. */
static int with_few_descriptors(pid_t unused)
{
    struct rlimit few = { 300, 300 };
    struct plain p = { 0 };
    struct sweep s;
    struct watch *w;
    pid_t root;
    int ready[2];
    char byte;

    (void)unused;
    EXPECT(pipe(ready) == 0);
    root = fork();
    if (!root) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 100; i++)
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                    pause();
            }
        (void)!write(ready[1], "r", 1);
        for (;;)
            pause();
    }
    EXPECT(read(ready[0], &byte, 1) == 1);
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    EXPECT(open_plain(&p, root, &w) == 0);
    for (int i = 0; i < 12; i++) {
        EXPECT(watch_sweep(w, clock_wall_ns(), &s, NULL) == 0);
        EXPECT(s.n == 102);
        EXPECT(plain_row(&p, &s, root)[METRIC_CHILDREN] == 100);
        for (size_t k = 0; k < s.n; k++)
            if (p.pids[s.rows[k].life_id])
                EXPECT(s.rows[k].v[METRIC_RSS] > 0 && s.rows[k].v[METRIC_FDS] > 0 && s.rows[k].v[METRIC_FILES] >= 0);
    }
    kill(p.pids[102], SIGKILL); /* the youngest: certainly without a kept folder */
    kill(root, SIGKILL);
    waitpid(root, NULL, 0);
    for (int i = 0; i < 3; i++)
        EXPECT(watch_sweep(w, clock_wall_ns(), &s, NULL) == 0);
    watch_close(w);
    EXPECT(p.ends == p.ids);
    return 0;
}

static void test_few_descriptors(void **state)
{
    (void)state;
    run_apart(with_few_descriptors, 0);
}

/* ---- processes that come and go while they are read ------------------------------------------------------------------------ */

static pid_t churn(void)
{
    pid_t root = fork();

    if (root)
        return root;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        pid_t pid = fork();

        if (!pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            nanosleep(&(struct timespec){ .tv_nsec = (i * 37 % 20) * NS_PER_MS / 4 }, NULL);
            if (i % 3 == 0)
                kill(getpid(), SIGKILL);
            _exit((int)(i % 5));
        }
        while (waitpid(-1, NULL, i % 16 ? WNOHANG : 0) > 0 && i % 16)
            ;
    }
}

static void test_never_half_a_row(void **state)
{
    struct witness *t = witness_open(NULL);
    pid_t root = churn();
    size_t rows = 0;

    (void)state;
    witness_add_pid(t, root);
    for (int i = 0; i < 300 && t->nlives < WITNESS_LIVES - 600; i++) {
        witness_sweep(t);
        for (size_t k = 0; k < t->sweep.n; k++) {
            const struct sample *s = &t->sweep.rows[k];

            if (!t->lives[s->life_id - 1].info.key.pid)
                continue;
            rows++;
            assert_int_equal(t->lives[s->life_id - 1].ends, 0);
            assert_true(s->v[METRIC_RSS] > 0 && s->v[METRIC_RSS_ANON] >= 0 && s->v[METRIC_RSS_ANON] <= s->v[METRIC_RSS]);
            assert_true(s->v[METRIC_THREADS] == 1 && s->v[METRIC_CPU_NS] >= 0);
            assert_true(s->v[METRIC_FDS] >= 0 && s->v[METRIC_FILES] >= 0 && s->v[METRIC_SWAP] >= 0);
        }
    }
    kill(root, SIGKILL);
    waitpid(root, NULL, 0);
    for (int i = 0; i < 3; i++)
        witness_sweep(t);
    assert_true(rows > 300);
    print_message("%zu rows, %llu gone while they were read\n", rows, (unsigned long long)witness_stats(t).gone_mid_read);
    if (witness_stats(t).has_connector)
        for (size_t i = 0; i < t->nlives; i++)
            if (t->lives[i].info.key.pid && t->lives[i].ends)
                assert_int_not_equal(t->lives[i].end.cause, LIFE_VANISHED);
    witness_close(t);
}

/* ---- namespaces ------------------------------------------------------------------------------------------------------------ */

static int enter_namespaces(void *ctx)
{
    pid_t inner;
    int status;

    (void)ctx;
    if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0)
        return 77;
    inner = fork();
    if (inner < 0)
        return 77;
    if (inner) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(3, ~0u, 0); /* the pipes are the inner one's */
        waitpid(inner, &status, 0);
        _exit(0);
    }
    /* The loopback of a new network namespace is down; listening needs none. */
    return 0;
}

static void test_container(void **state)
{
    struct witness *t;
    struct puppet p = puppet_start_in(enter_namespaces, NULL);
    int64_t port = puppet_does(&p, 'l'), orphan;
    const int64_t *v = NULL;

    (void)state;
    if (port <= 0) {
        puppet_end(&p);
        print_message("namespaces are not permitted here\n");
        skip();
    }
    puppet_does(&p, 'o');
    t = witness_open(NULL);
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 3);
    for (size_t i = 0; i < t->sweep.n; i++)
        if (t->lives[t->sweep.rows[i].life_id - 1].info.ppid == p.pid)
            v = t->sweep.rows[i].v;
    assert_non_null(v);
    assert_int_equal(v[METRIC_TCP_LISTEN], 1);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 0);
    assert_true(v[METRIC_FILES] >= 30);
    assert_true(witness_target(t, 1)[METRIC_SHM_SEGMENTS] >= 0);
    /* Re-parented to the init of the namespace: a number of the inside, so only its row is looked for. */
    orphan = puppet_does(&p, 'd');
    assert_true(orphan > 0);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 4);
    if (witness_stats(t).has_connector)
        assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 1);
    puppet_end(&p); /* the inner one, init of its namespace, goes with it, and takes the orphan along */
    for (int i = 0; i < 2000 && t->sweep.n; i++)
        witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    witness_close(t);
}

/* ---- /proc as it should not be ---------------------------------------------------------------------------------------------- */

static void put(const char *name, const char *text, size_t len)
{
    char path[512];
    int fd;

    str_fmt(path, sizeof path, "%s/%s", harness_tmpdir(), name);
    fd = fd_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, len), 0);
    fd_close(fd);
}

static void make_folder(const char *name)
{
    char path[512];

    str_fmt(path, sizeof path, "%s/%s", harness_tmpdir(), name);
    assert_int_equal(mkdir(path, 0700), 0);
}

#define PUT(name, text) put(name, text, sizeof text - 1)

static void test_garbage(void **state)
{
    static char huge[300000];
    struct watch_config config = { .proc_root = harness_tmpdir(), .cgroup_root = harness_tmpdir() };
    struct witness *t;
    const int64_t *v;

    (void)state;
    make_folder("40");
    make_folder("40/fd");
    make_folder("40/fd/0");
    make_folder("40/task");
    make_folder("40/task/40");
    make_folder("40/task/41");
    PUT("40/stat", "40 (a) S) S 1 40 40 0 -1 0 5 0 0 0 3 4 0 0 20 0 2 0 1000 1 1\n");
    PUT("40/statm", "500 300 100 0 0 0 0\n");
    PUT("40/cmdline", "server\0run\0");
    t = witness_open(&config);
    witness_add(t, "cmd:^server run$");
    witness_sweep(t);
    v = witness_row(t, 40);
    assert_non_null(v);
    assert_string_equal(witness_life(t, 40)->info.comm, "a) S");
    assert_string_equal(witness_life(t, 40)->info.role, "server run");
    assert_int_equal(v[METRIC_RSS_ANON], 200 * sysconf(_SC_PAGESIZE));
    assert_int_equal(v[METRIC_THREADS], 2);
    assert_int_equal(v[METRIC_FDS], 1);
    assert_int_equal(v[METRIC_CPU_NS], 7 * NS_PER_S / sysconf(_SC_CLK_TCK));
    assert_int_equal(v[METRIC_SWAP], METRIC_NA); /* no status: not known, not 0 */
    /* Cut short, then huge, then garbage, then right again: never a wrong value, never an end. */
    PUT("40/statm", "500 30");
    witness_sweep(t);
    assert_int_equal(witness_row(t, 40)[METRIC_RSS], METRIC_NA);
    assert_int_equal(witness_row(t, 40)[METRIC_RSS_ANON], METRIC_NA);
    memset(huge, '7', sizeof huge);
    put("40/statm", huge, sizeof huge);
    put("40/status", huge, sizeof huge);
    put("40/cmdline", huge, sizeof huge);
    PUT("40/stat", "\377\376 garbage ((((\n");
    witness_sweep(t);
    assert_int_equal(witness_row(t, 40)[METRIC_RSS], METRIC_NA);
    assert_int_equal(witness_row(t, 40)[METRIC_MINFLT], METRIC_NA);
    PUT("40/stat", "40 (a) S 1 40 40 0 -1 0 5 0 0 0 3 4 0 0 20 0 2 0 1000 1 1\n");
    PUT("40/statm", "500 301 100 0 0 0 0\n");
    witness_sweep(t);
    assert_int_equal(witness_row(t, 40)[METRIC_RSS], 301 * sysconf(_SC_PAGESIZE));
    assert_int_equal(witness_row(t, 40)[METRIC_THREADS], 2);
    /* The same number, another start: another process. */
    PUT("40/stat", "40 (b) S 1 40 40 0 -1 0 5 0 0 0 3 4 0 0 20 0 2 0 2000 1 1\n");
    witness_sweep(t);
    assert_null(witness_row(t, 40));
    witness_sweep(t);
    assert_int_equal(witness_life(t, 40)->info.key.start, 1000);
    assert_int_equal(witness_life(t, 40)->end.cause, LIFE_VANISHED);
    witness_close(t);
}

/* The wall clock is the caller's; it may jump back. */
static void test_clock_jumps_back(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    struct sweep s;

    (void)state;
    witness_add_pid(t, p.pid);
    assert_int_equal(watch_sweep(t->w, 2000 * NS_PER_S, &s, NULL), 0);
    assert_int_equal(watch_sweep(t->w, 1000 * NS_PER_S, &s, NULL), 0);
    assert_int_equal(s.wall_ns, 1000 * NS_PER_S);
    assert_int_equal(s.n, 2);
    witness_close(t);
    puppet_end(&p);
}

static void test_most_lives(void **state)
{
    struct watch_config config = { .max_lives = 3 };
    struct witness *t = witness_open(&config);
    struct puppet p = puppet_start();

    (void)state;
    for (int i = 0; i < 6; i++)
        puppet_does(&p, 'f');
    witness_add_pid(t, p.pid);
    for (int i = 0; i < 3; i++)
        witness_sweep(t);
    assert_int_equal(t->sweep.n, 3 + 1);
    assert_int_equal(witness_notes(t, "limit"), 1);
    witness_close(t);
    puppet_end(&p);
}

static void test_life_of_pid(void **state)
{
    struct life_key a, b;
    struct err err;

    (void)state;
    assert_int_equal(life_of_pid("/proc", getpid(), &a, &err), 0);
    assert_int_equal(life_of_pid(NULL, getpid(), &b, &err), 0);
    assert_true(life_key_eq(&a, &b));
    assert_int_equal(life_of_pid("/proc", 0x7ffffff0, &a, &err), LT_ENOENT);
    assert_int_equal(life_of_pid("/nonexistent", 1, &a, &err), LT_EIO);
}

HARNESS_MAIN(CASE(test_without_permission), CASE(test_exits_without_connector), CASE(test_few_descriptors),
             CASE(test_never_half_a_row), CASE(test_container), CASE(test_garbage), CASE(test_clock_jumps_back),
             CASE(test_most_lives), CASE(test_life_of_pid))
