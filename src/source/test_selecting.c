/* Selectors on real processes. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "source/test_witness.h"

static void test_forms(void **state)
{
    static const char *const good[] = { "1", "pid:1", "port:65535", "cmd:^a+(b|c)$", "unit:nginx", "cgroup:/a/b", "pidfile:/x" };
    static const char *const bad[] = { "", "pid:", "pid:0", "pid:-1", "pid:x", "pid:99999999999", "port:0", "port:65536", "port:http",
                                       "cmd:(", "cmd:", "unit:", "unit:a/b", "nginx", "name:x", "12x", "pid:1 " };
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(selector_check(good[i], &err), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        err.text[0] = '\0';
        assert_int_equal(selector_check(bad[i], &err), LT_EUSAGE);
        assert_true(err.text[0] && !strchr(err.text, '\n'));
    }
}

static pid_t run_shell(const char *script)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        close_range(3, ~0u, 0);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void end_all(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Sweeps until the target has n rows of processes; false after 20 s. */
static bool grows_to(struct witness *t, size_t n)
{
    int64_t until = clock_mono_ns() + 20 * NS_PER_S;

    while (clock_mono_ns() < until) {
        witness_sweep(t);
        if (t->sweep.n == n)
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 5 * NS_PER_MS }, NULL);
        witness_events(t);
    }
    return false;
}

/* The outer shell matches, the inner one as well (its parent matches: no root of its own), sleep does not: all three belong. */
#define TREE "sh -c 'sleep 100; : lowtide-%s' & wait; : lowtide-%s"

static void test_cmd_follows_restarts(void **state)
{
    struct witness *t = witness_open(NULL);
    char script[256], selector[64], tag[32];
    pid_t first, second;

    (void)state;
    str_fmt(tag, sizeof tag, "%d-x", (int)getpid());
    str_fmt(script, sizeof script, TREE, tag, tag);
    str_fmt(selector, sizeof selector, "cmd:lowtide-%d-(x|y)$", (int)getpid());
    witness_add(t, selector);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    assert_true(witness_noted(t, "waiting"));
    first = run_shell(script);
    assert_true(grows_to(t, 4));
    assert_non_null(witness_row(t, first));
    assert_int_equal(witness_row(t, first)[METRIC_CHILDREN], 1);
    /* The master is killed: its workers are left over, and stand in for it until a new one comes. */
    end_all(first);
    assert_true(grows_to(t, 3));
    witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 0);
    second = run_shell(script);
    assert_true(grows_to(t, 6));
    assert_non_null(witness_row(t, second));
    witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 1);
    for (size_t i = 0; i < t->nlives; i++)
        if (t->lives[i].info.key.pid && t->lives[i].info.key.pid != first && t->lives[i].info.key.pid != second)
            kill(t->lives[i].info.key.pid, SIGKILL);
    end_all(second);
    for (int i = 0; i < 5; i++)
        witness_sweep(t);
    assert_int_equal(witness_notes(t, "found"), 1);
    witness_close(t);
}

static void test_cmd_never_ourselves(void **state)
{
    struct witness *t = witness_open(NULL);

    (void)state;
    witness_add(t, "cmd:test_selecting"); /* this program, and the runner that names it */
    witness_sweep(t);
    witness_sweep(t);
    assert_null(witness_life(t, getpid()));
    assert_null(witness_life(t, getppid()));
    witness_close(t);
}

static void write_pidfile(const char *path, const char *text)
{
    int fd = fd_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    fd_close(fd);
}

static void test_pidfile(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet a = puppet_start(), b = puppet_start();
    char path[512], selector[600], text[32];

    (void)state;
    str_fmt(path, sizeof path, "%s/x.pid", harness_tmpdir());
    str_fmt(selector, sizeof selector, "pidfile:%s", path);
    witness_add(t, selector);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* opened, it would hold us up for ever */
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    assert_int_equal(unlink(path), 0);
    write_pidfile(path, "garbage\n");
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    str_fmt(text, sizeof text, " %d \n", (int)a.pid);
    write_pidfile(path, text);
    witness_sweep(t);
    assert_non_null(witness_row(t, a.pid));
    puppet_end(&a);
    witness_sweep(t);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    /* Shorter or longer, so that it differs although the clock of the file system is coarse. */
    str_fmt(text, sizeof text, "%d", (int)b.pid);
    write_pidfile(path, text);
    witness_sweep(t);
    assert_non_null(witness_row(t, b.pid));
    witness_close(t);
    puppet_end(&b);
}

/* ---- port: ---------------------------------------------------------------------------------------------------------- */

static int64_t listen_on(const struct puppet *p, uint16_t port)
{
    struct { char what; uint8_t port[2]; } __attribute__((packed)) order = { .what = 'p' };

    memcpy(order.port, &port, 2);
    assert_int_equal(write(p->to, &order, sizeof order), sizeof order);
    return puppet_answer(p);
}

static int add_port(struct witness *t, int64_t port, struct err *err)
{
    char selector[32];

    str_fmt(selector, sizeof selector, "port:%lld", (long long)port);
    return watch_add(t->w, "web", selector, 1, err);
}

static void test_port(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t port = puppet_does(&p, 'l'), child = puppet_does(&p, 'f'); /* the child has the socket too */
    struct err err;

    (void)state;
    assert_int_equal(add_port(t, port, &err), 0);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 3);
    assert_int_equal(witness_row(t, p.pid)[METRIC_TCP_LISTEN], 1);
    assert_non_null(witness_row(t, (pid_t)child));
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 1);
    puppet_end(&p);
    witness_sweep(t);
    witness_sweep(t);
    /* Restarted on the same port: found again. */
    p = puppet_start();
    assert_int_equal(listen_on(&p, (uint16_t)port), port);
    assert_true(grows_to(t, 2));
    assert_non_null(witness_row(t, p.pid));
    witness_close(t);
    puppet_end(&p);
}

static void test_port_of_nobody(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t port = puppet_does(&p, 'l');
    struct err err;

    (void)state;
    puppet_end(&p);
    assert_int_equal(add_port(t, port, &err), 0);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    assert_true(witness_noted(t, "waiting"));
    witness_close(t);
}

/* Two programs on one port. (The two puppets are forks of this test with the same command line and one parent: as workers of
 * one master are. So one is started as another program.) */
static void test_port_ambiguous(void **state)
{
    static const char script[] = "import os,socket,sys,time\ns=socket.socket()\ns.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEPORT,1)\n"
                                 "s.bind(('127.0.0.1',int(sys.argv[1])))\ns.listen()\nos.write(1,b'k')\ntime.sleep(100)\n";
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t port = puppet_does(&p, 'l');
    char number[16], ok[1], own[32];
    struct err err;
    int ready[2];
    pid_t other;

    (void)state;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    str_fmt(number, sizeof number, "%d", (int)port);
    other = fork();
    if (!other) {
        dup2(ready[1], 1);
        execlp("python3", "python3", "-c", script, number, (char *)NULL);
        _exit(127);
    }
    close(ready[1]);
    assert_true(read(ready[0], ok, sizeof ok) > 0);
    close(ready[0]);
    assert_int_equal(add_port(t, port, &err), LT_EAMBIG);
    str_fmt(own, sizeof own, "%d (", (int)p.pid);
    assert_non_null(strstr(err.text, own));
    str_fmt(own, sizeof own, "%d (python3)", (int)other);
    assert_non_null(strstr(err.text, own));
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    witness_close(t);
    end_all(other);
    puppet_end(&p);
}

/* SO_REUSEPORT workers with a socket each, forked from one master that has none: the master is the root. */
static void test_port_workers(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t port = puppet_does(&p, 'L');
    struct err err;

    (void)state;
    assert_true(port > 0);
    assert_int_equal(add_port(t, port, &err), 0);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 4);
    assert_non_null(witness_row(t, p.pid));
    assert_int_equal(witness_row(t, p.pid)[METRIC_TCP_LISTEN], 0);
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 2);
    witness_close(t);
    puppet_end(&p);
}

/* ---- unit:, cgroup: ------------------------------------------------------------------------------------------------- */

static char group[256];

static int enter_group(void *ctx)
{
    char path[512];
    int fd;

    (void)ctx;
    str_fmt(path, sizeof path, "%s/cgroup.procs", group);
    fd = fd_open(AT_FDCWD, path, O_WRONLY, 0);
    return fd >= 0 && write(fd, "0", 1) == 1 ? 0 : 1;
}

static bool make_group(const char *name)
{
    static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        str_fmt(group, sizeof group, "%s/%s", roots[i], name);
        if (mkdir(group, 0755) == 0)
            return true;
    }
    print_message("no cgroup can be made here\n");
    return false;
}

static void test_cgroup(void **state)
{
    struct witness *t;
    struct puppet p, q;
    char name[64], selector[300];
    int64_t child, orphan;

    (void)state;
    str_fmt(name, sizeof name, "lowtide-test-%d.service", (int)getpid());
    if (!make_group(name))
        skip();
    p = puppet_start_in(enter_group, NULL);
    puppet_does(&p, 'w');
    orphan = puppet_does(&p, 'd');
    child = puppet_does(&p, 'f');
    t = witness_open(NULL);
    str_fmt(selector, sizeof selector, "cgroup:%s", group);
    witness_add(t, selector);
    witness_sweep(t);
    assert_non_null(witness_row(t, p.pid));
    assert_non_null(witness_row(t, (pid_t)child));
    assert_int_equal(t->sweep.n, 4);
    assert_non_null(witness_row(t, (pid_t)orphan));
    assert_true(witness_target(t, 1)[METRIC_CGROUP_BYTES] > 0);
    kill_and_see_gone((pid_t)orphan);
    /* A second main process, say after a restart. */
    puppet_end(&p);
    q = puppet_start_in(enter_group, NULL);
    puppet_does(&q, 'w');
    assert_true(grows_to(t, 2));
    assert_non_null(witness_row(t, q.pid));
    witness_close(t);
    puppet_end(&q);
    for (int i = 0; i < 1000 && rmdir(group) < 0; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 5 * NS_PER_MS }, NULL);
    assert_int_not_equal(access(group, F_OK), 0);
}

/* Another selector, the same group: what left the tree before the watch is found in it. */
static void test_orphan_by_cgroup(void **state)
{
    struct witness *t;
    struct puppet p;
    char name[64];
    int64_t orphan;

    (void)state;
    str_fmt(name, sizeof name, "lowtide-test-%d.scope", (int)getpid());
    if (!make_group(name))
        skip();
    p = puppet_start_in(enter_group, NULL);
    puppet_does(&p, 'w');
    nanosleep(&(struct timespec){ .tv_nsec = 30 * NS_PER_MS }, NULL); /* younger by a tick at least */
    orphan = puppet_does(&p, 'd');
    t = witness_open(NULL);
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    for (int i = 0; i < 25; i++)
        witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_ORPHANS], 1);
    assert_non_null(witness_row(t, (pid_t)orphan));
    witness_close(t);
    kill_and_see_gone((pid_t)orphan);
    puppet_end(&p);
    for (int i = 0; i < 1000 && rmdir(group) < 0; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 5 * NS_PER_MS }, NULL);
    assert_int_not_equal(access(group, F_OK), 0);
}

static void test_two_targets_one_process(void **state)
{
    struct witness *t = witness_open(NULL);
    struct puppet p = puppet_start();
    int64_t child = puppet_does(&p, 'f');

    (void)state;
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    witness_add_pid(t, (pid_t)child); /* a member of t1 by now */
    witness_sweep(t);
    assert_int_equal(witness_notes(t, "ambiguous"), 1);
    assert_int_equal(t->sweep.n, 3);
    witness_close(t);
    puppet_end(&p);
}

HARNESS_MAIN(CASE(test_forms), CASE(test_cmd_follows_restarts), CASE(test_cmd_never_ourselves), CASE(test_pidfile), CASE(test_port),
             CASE(test_port_of_nobody), CASE(test_port_ambiguous), CASE(test_port_workers), CASE(test_cgroup),
             CASE(test_orphan_by_cgroup), CASE(test_two_targets_one_process))
