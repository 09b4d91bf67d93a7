#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/oomlog.h"
#include "source/procfs.h"
#include "source/proctab.h"
#include "source/role.h"

static const char stat_line[] =
    "4711 (a) b (c\n) S 12 34 56 0 -1 4194560 812 9 3 1 150 50 0 0 20 0 7 0 123456789 8192 300 18446744073709551615 94 95 96 0 0 0 "
    "0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 256\n";

static void test_stat(void **state)
{
    struct proc_stat s;

    (void)state;
    assert_int_equal(procfs_parse_stat(stat_line, sizeof stat_line - 1, &s), 0);
    assert_string_equal(s.comm, "a) b (c\n");
    assert_int_equal(s.pid, 4711);
    assert_int_equal(s.state, 'S');
    assert_int_equal(s.ppid, 12);
    assert_int_equal(s.pgrp, 34);
    assert_int_equal(s.sid, 56);
    assert_int_equal(s.minflt, 812);
    assert_int_equal(s.majflt, 3);
    assert_int_equal(s.cpu_ticks, 200);
    assert_int_equal(s.threads, 7);
    assert_int_equal(s.start, 123456789);
    assert_int_equal(s.exit_code, 256);
    assert_true(s.permitted);
}

/* Cut anywhere: either refused, or right in all that identifies it. */
static void test_stat_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof stat_line - 1; n++) {
        char *copy = mem_alloc(n);
        struct proc_stat s;

        memcpy(copy, stat_line, n);
        if (procfs_parse_stat(copy, n, &s) == 0) {
            assert_int_equal(s.start, 123456789);
            assert_int_equal(s.ppid, 12);
            assert_true(s.exit_code == 256 || s.exit_code == -1);
        }
        mem_free(copy);
    }
}

static void test_stat_garbage(void **state)
{
    static const char *const bad[] = {
        "", "\n", "()", "1 ()", "1 (x) ", ")(", "x (y) S 1", "1 (x S 1 2 3", "1 (x) S 1 2 3\n",
        "99999999999 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n",
        "1 (x) S 99999999999999999999999 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n",
    };
    struct proc_stat s;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(procfs_parse_stat(bad[i], strlen(bad[i]), &s), LT_EPARSE);
}

static void test_statm(void **state)
{
    static const char *const bad[] = { "", "1", "1 2", "1 2 3", "a b c\n", "1 -2 3\n", "9999999999999999999999 1 1\n" };
    struct proc_statm m;

    (void)state;
    assert_int_equal(procfs_parse_statm("2048 300 200 1 0 90 0\n", 22, &m), 0);
    assert_int_equal(m.size, 2048);
    assert_int_equal(m.resident, 300);
    assert_int_equal(m.shared, 200);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(procfs_parse_statm(bad[i], strlen(bad[i]), &m), LT_EPARSE);
}

static void test_status(void **state)
{
    static const char text[] = "Name:\tx\\ny\nUmask:\t0022\nNSpid:\t4711\t12\t1\nVmSwap:\t      8 kB\nRssShmem:\t    1024 kB\nThreads:\t1\n";
    struct proc_status s;

    (void)state;
    assert_int_equal(procfs_parse_status(text, sizeof text - 1, &s), 0);
    assert_int_equal(s.rss_shmem, 1 << 20);
    assert_int_equal(s.swap, 8192);
    assert_int_equal(s.ns_depth, 3);
    assert_int_equal(s.ns_pid, 1);
    assert_int_equal(procfs_parse_status("Name:\tkthreadd\n", 15, &s), 0);
    assert_int_equal(s.rss_shmem, METRIC_NA);
    assert_int_equal(s.swap, METRIC_NA);
    assert_int_equal(procfs_parse_status("Name:\tx\nVmSwap:\t99999999999999999999 kB\n", 41, &s), 0);
    assert_int_equal(s.swap, METRIC_NA);
    assert_int_equal(procfs_parse_status("garbage\n", 8, &s), LT_EPARSE);
    assert_int_equal(procfs_parse_status("", 0, &s), LT_EPARSE);
}

static int open_proc(void)
{
    int fd = fd_open(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);

    assert_true(fd >= 0);
    return fd;
}

/* What is held belongs to the process for good: zombie, reaped, number forgotten. */
static void test_held(void **state)
{
    int proc_fd = open_proc(), dirfd, statm, fds;
    struct proc_statm m;
    struct proc_stat s;
    siginfo_t info;
    int64_t n;
    pid_t pid = fork();

    (void)state;
    if (!pid)
        for (;;)
            pause();
    dirfd = procfs_open_pid(proc_fd, pid);
    assert_true(dirfd >= 0);
    statm = fd_open(dirfd, "statm", O_RDONLY, 0);
    fds = fd_open(dirfd, "fd", O_PATH | O_DIRECTORY, 0);
    assert_int_equal(procfs_statm_kept(statm, &m), 0);
    assert_true(m.resident > 0 && m.shared <= m.resident);
    assert_int_equal(procfs_stat(dirfd, &s), 0);
    assert_int_equal(s.pid, pid);
    assert_int_equal(s.ppid, getpid());
    assert_int_equal(procfs_threads(dirfd, -1, &n), 0);
    assert_int_equal(n, 1);
    assert_true(procfs_cpu_clock_ns(pid) >= 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(procfs_statm_kept(statm, &m), 0);
    assert_int_equal(m.size, 0);
    assert_int_equal(procfs_stat(dirfd, &s), 0);
    assert_int_equal(s.state, 'Z');
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(procfs_statm_kept(statm, &m), LT_GONE);
    assert_int_equal(procfs_stat(dirfd, &s), LT_GONE);
    assert_int_equal(procfs_threads(dirfd, -1, &n), LT_GONE);
    assert_int_equal(procfs_fd_count(dirfd, false, &n), LT_GONE);
    assert_int_equal(procfs_fd_count(dirfd, true, &n), LT_GONE);
    assert_int_equal(procfs_fd_count_kept(fds, &n), LT_GONE);
    assert_int_equal(procfs_open_pid(proc_fd, pid), LT_GONE);
    assert_int_equal(procfs_cpu_clock_ns(pid), -1);
    fd_close(fds);
    fd_close(statm);
    fd_close(dirfd);
    fd_close(proc_fd);
}

static void test_fd_count(void **state)
{
    int proc_fd = open_proc(), self = fd_open(proc_fd, "self", O_RDONLY | O_DIRECTORY, 0), more[50];
    bool by_size = procfs_fd_size_works(proc_fd);
    int64_t before, after;

    (void)state;
    for (int way = 0; way < 1 + by_size; way++) {
        assert_int_equal(procfs_fd_count(self, way == 1, &before), 0);
        for (int i = 0; i < 50; i++)
            more[i] = dup(0);
        assert_int_equal(procfs_fd_count(self, way == 1, &after), 0);
        assert_int_equal(after, before + 50);
        for (int i = 0; i < 50; i++)
            close(more[i]);
    }
    fd_close(self);
    fd_close(proc_fd);
}

static void test_boot_id(void **state)
{
    int proc_fd = open_proc(), tmp = fd_open(AT_FDCWD, harness_tmpdir(), O_RDONLY | O_DIRECTORY, 0);
    uint8_t a[16], b[16], zero[16] = { 0 };

    (void)state;
    assert_int_equal(procfs_boot_id(proc_fd, a), 0);
    assert_int_equal(procfs_boot_id(proc_fd, b), 0);
    assert_memory_equal(a, b, 16);
    assert_memory_not_equal(a, zero, 16);
    assert_int_equal(procfs_boot_id(tmp, a), 0); /* no such file: the time of boot */
    assert_memory_not_equal(a, zero, 16);
    fd_close(tmp);
    fd_close(proc_fd);
}

/* ---- proctab ---------------------------------------------------------------------------------------------------------- */

static void put_process(int pid, int ppid, int start)
{
    char path[512], text[256];
    int fd;

    str_fmt(path, sizeof path, "%s/%d", harness_tmpdir(), pid);
    mkdir(path, 0700);
    str_fmt(path, sizeof path, "%s/%d/stat", harness_tmpdir(), pid);
    str_fmt(text, sizeof text, "%d (x) S %d %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 1\n", pid, ppid, pid, pid, start);
    fd = fd_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    fd_close(fd);
}

static void drop_process(int pid)
{
    char path[512];

    str_fmt(path, sizeof path, "%s/%d/stat", harness_tmpdir(), pid);
    unlink(path);
    str_fmt(path, sizeof path, "%s/%d", harness_tmpdir(), pid);
    assert_int_equal(rmdir(path), 0);
}

static bool knows_77(const void *ctx, int32_t pid)
{
    (void)ctx;
    return pid == 77;
}

static void test_proctab(void **state)
{
    static const int pids[] = { 900, 5, 77, 31, 4000 };
    int root = fd_open(AT_FDCWD, harness_tmpdir(), O_RDONLY | O_DIRECTORY, 0);
    struct proctab t;
    uint64_t reads;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        put_process(pids[i], 1, 100 + pids[i]);
    assert_int_equal(proctab_init(&t, root, 100, NULL), 0);
    assert_int_equal(proctab_scan(&t, false, NULL, NULL, NULL), 0);
    assert_int_equal(t.now.n, 5);
    for (size_t i = 1; i < 5; i++)
        assert_true(((struct proctab_entry *)t.now.items)[i - 1].pid < ((struct proctab_entry *)t.now.items)[i].pid);
    assert_int_equal(proctab_find(&t, 77)->start, 177);
    assert_int_equal(proctab_find(&t, 77)->looks, 0);
    assert_null(proctab_find(&t, 78));
    reads = t.stat_reads;
    assert_int_equal(proctab_scan(&t, false, NULL, NULL, NULL), 0);
    assert_int_equal(t.stat_reads, reads); /* all known */
    assert_int_equal(proctab_find(&t, 77)->looks, 1);
    put_process(77, 5, 177);
    put_process(31, 5, 131);
    assert_int_equal(proctab_scan(&t, true, knows_77, NULL, NULL), 0);
    assert_int_equal(t.stat_reads, reads + 4);
    assert_int_equal(proctab_find(&t, 31)->ppid, 5);
    assert_int_equal(proctab_find(&t, 77)->ppid, 1);
    /* A number given away: another inode, and it is read anew. (Both folders exist at once, so that the number of the old
     * inode is not used again by the file system.) */
    put_process(78, 1, 178);
    drop_process(900);
    drop_process(31);
    put_process(31, 9, 999);
    assert_int_equal(proctab_scan(&t, false, NULL, NULL, NULL), 0);
    assert_null(proctab_find(&t, 900));
    assert_non_null(proctab_find(&t, 78));
    proctab_release(&t);
    assert_int_equal(proctab_init(&t, root, 3, NULL), 0);
    assert_int_equal(proctab_scan(&t, false, NULL, NULL, NULL), LT_ELIMIT);
    assert_int_equal(t.now.n, 3);
    proctab_release(&t);
    fd_close(root);
}

/* The real /proc: a number given away has another inode. */
static void test_proctab_recycled(void **state)
{
    int proc_fd = open_proc();
    const struct proctab_entry *e;
    struct proctab t;
    uint64_t ino;
    pid_t pid = fork();

    (void)state;
    if (!pid)
        for (;;)
            pause();
    assert_int_equal(proctab_init(&t, proc_fd, 1 << 22, NULL), 0);
    assert_int_equal(proctab_scan(&t, false, NULL, NULL, NULL), 0);
    e = proctab_find(&t, pid);
    assert_non_null(e);
    assert_int_equal(e->ppid, getpid());
    ino = e->ino;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(proctab_scan(&t, false, NULL, NULL, NULL), 0);
    e = proctab_find(&t, pid);
    assert_true(!e || e->ino != ino);
    proctab_release(&t);
    fd_close(proc_fd);
}

/* ---- role, kernel log -------------------------------------------------------------------------------------------------- */

static void expect_role(const char *cmdline, size_t len, const char *role)
{
    char out[ROLE_MAX];

    role_of(cmdline, len, "comm", out);
    assert_string_equal(out, role);
}

#define EXPECT_ROLE(cmdline, role) expect_role(cmdline, sizeof cmdline, role)

static void test_role(void **state)
{
    (void)state;
    expect_role("", 0, "comm");
    EXPECT_ROLE("/usr/bin/uvicorn\0app.main:api\0--port\0" "8000", "uvicorn app.main:api");
    EXPECT_ROLE("/usr/bin/python3\0-m\0uvicorn\0app:api", "python3 uvicorn app:api");
    EXPECT_ROLE("python3.11\0-u\0/srv/app/server.py\0--workers\0" "4\0serve", "python3.11 server.py serve");
    EXPECT_ROLE("python3\0-c\0import os; secret = 'x'", "python3");
    EXPECT_ROLE("gunicorn: worker [app]", "gunicorn: worker [app]");
    EXPECT_ROLE("nginx: master process /usr/sbin/nginx -g daemon off;", "nginx: master process /usr/sbin/nginx");
    EXPECT_ROLE("celery\0worker\0--broker=redis://u:p@h/0\0redis://u:p@h/0", "celery worker");
    EXPECT_ROLE("x\0--token\0hunter2\0KEY=abc\0user@host\0run", "x run");
    EXPECT_ROLE("x\0sk1234567890abcdefghij1234\0go", "x go");
    EXPECT_ROLE("x\0eyJhbGciOiJIUzI1NiIs.eyJzdWIiOiIxMjM0NTY3ODkw.dozjgNryP4J3jVmN\0go", "x go");
    EXPECT_ROLE("bot\0" "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "bot");
    EXPECT_ROLE("http\0Authorization: Bearer k3y\0GET", "http GET");
    EXPECT_ROLE("x\0/srv/releases-2026/app1/main.d\0a.very.long.module2.name3", "x /srv/releases-2026/app1/main.d a.very.long.module2.name3");
    EXPECT_ROLE("x\0a\nb", "x a?b");
    EXPECT_ROLE("\0\0", "comm");
}

static void test_oom_line(void **state)
{
    static const struct { const char *text; int32_t pid; } cases[] = {
        { "Out of memory: Killed process 4711 (python3) total-vm:1kB", 4711 },
        { "Memory cgroup out of memory: Killed process 12, UID 0, (x) total-vm:1kB", 12 },
        { "Memory cgroup out of memory: Killed process 12", 0 },
        { "Killed process  (x)", 0 }, { "Killed process 99999999999 (x)", 0 }, { "oom_reaper: reaped process 4711 (x)", 0 }, { "", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(oomlog_parse(cases[i].text, strlen(cases[i].text)), cases[i].pid);
}

static void test_oom_log_file(void **state)
{
    struct oomlog o;
    char path[512];
    int fd;

    (void)state;
    str_fmt(path, sizeof path, "%s/kmsg", harness_tmpdir());
    assert_int_equal(mkfifo(path, 0600), 0);
    oomlog_open(&o, "/nonexistent");
    assert_false(oomlog_took(&o, 1));
    oomlog_close(&o);
    fd = fd_open(AT_FDCWD, path, O_RDWR, 0);
    oomlog_open(&o, path);
    oomlog_close(&o);
    o.fd = fd; /* a FIFO cannot be sought as the kernel's log can: hand it over */
    assert_true(o.fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fd_write_all(fd, "3,1,2,-;Out of memory: Killed process 55 (x)\n", 45), 0);
    assert_true(oomlog_took(&o, 55));
    assert_false(oomlog_took(&o, 55));
    /* Written by a program, not the kernel: facility 1 and above. */
    assert_int_equal(fd_write_all(fd, "12,1,2,-;Out of memory: Killed process 56 (x)\n", 46), 0);
    assert_false(oomlog_took(&o, 56));
    oomlog_close(&o);
}

HARNESS_MAIN(CASE(test_stat), CASE(test_stat_cut), CASE(test_stat_garbage), CASE(test_statm), CASE(test_status), CASE(test_held),
             CASE(test_fd_count), CASE(test_boot_id), CASE(test_proctab), CASE(test_proctab_recycled), CASE(test_role),
             CASE(test_oom_line), CASE(test_oom_log_file))
