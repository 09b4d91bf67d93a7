#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/fdkinds.h"

/* A child that holds what `open_all` opens, until it is killed. */
struct child {
    pid_t pid;
    int dir; /* its /proc/PID */
};

static struct child child_start(void (*open_all)(void))
{
    int ready[2];
    char path[64], byte;
    struct child c;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        struct rlimit rl;
        getrlimit(RLIMIT_NOFILE, &rl);
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
        open_all();
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        close(ready[0]);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* it closed both ends: the set is final */
    close(ready[0]);
    str_fmt(path, sizeof path, "/proc/%d", (int)c.pid);
    c.dir = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    assert_true(c.dir >= 0);
    return c;
}

static void child_stop(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    c->dir = fd_close(c->dir);
}

/* Closes everything, then opens a known set: 3 sockets, 4 pipe ends, 2 files of which 1 deleted, 1 folder, 1 device,
 * 1 memfd (deleted too), 1 epoll, 1 eventfd. */
#define SET_FDS 14

static void close_above(int keep_from)
{
    for (int fd = 0; fd < keep_from; fd++)
        close(fd);
}

static void check(bool ok)
{
    if (!ok)
        _exit(9);
}

#define PLENTY (600 * NS_PER_S) /* a budget that reads everything */

static char set_dir[256];

static void open_set(void)
{
    int p[2];
    char path[300];

    close_above(3);
    check(open("/dev/null", O_RDWR) >= 0);
    for (int i = 0; i < 3; i++)
        check(socket(i == 0 ? AF_UNIX : AF_INET, SOCK_STREAM, 0) >= 0);
    check(pipe(p) == 0);
    check(pipe(p) == 0);
    str_fmt(path, sizeof path, "%s/job-12.wav", set_dir);
    check(open(path, O_CREAT | O_RDWR, 0600) >= 0);
    str_fmt(path, sizeof path, "%s/job-13.wav", set_dir);
    check(open(path, O_CREAT | O_RDWR, 0600) >= 0 && unlink(path) == 0);
    check(open(set_dir, O_RDONLY | O_DIRECTORY) >= 0);
    check(memfd_create("scratch", 0) >= 0);
    check(epoll_create1(0) >= 0 && eventfd(0, 0) >= 0);
}

static int64_t count_by_kind(const struct vec *socks, uint64_t inode)
{
    int64_t n = 0;

    VEC_EACH(const struct fd_socket, s, socks)
        n += s->inode == inode;
    return n;
}

static void open_nothing(void)
{
    close_above(3);
}

static void test_exact_kinds(void **state)
{
    struct fdkinds *r;
    struct fd_kinds base, k;
    struct vec socks;
    int64_t v[METRIC_N];

    (void)state;
    str_copy(set_dir, sizeof set_dir, harness_tmpdir());
    assert_int_equal(fdkinds_new(&r), 0);
    vec_init(&socks, sizeof(struct fd_socket), 100);
    struct child none = child_start(open_nothing); /* what it inherits from the test program, the next one inherits too */
    assert_int_equal(fdkinds_read(r, none.dir, -1, PLENTY, &base, NULL, NULL, NULL), 0);
    child_stop(&none);
    struct child c = child_start(open_set);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &k, &socks, NULL, NULL), 0);
    assert_true(k.exact);
    assert_int_equal(k.err, 0);
    assert_int_equal(k.fds - base.fds, SET_FDS);
    assert_int_equal(k.sockets - base.sockets, 3);
    assert_int_equal(k.pipes - base.pipes, 4);
    assert_int_equal(k.files - base.files, 5);
    assert_int_equal(k.deleted - base.deleted, 2);
    assert_int_equal(k.anon - base.anon, 2);
    assert_int_equal(k.sockets + k.pipes + k.files + k.anon, k.fds);
    assert_int_equal(socks.n, k.sockets);
    VEC_EACH(const struct fd_socket, s, &socks) {
        assert_true(s->inode > 0);
        assert_int_equal(count_by_kind(&socks, s->inode), 1);
    }
    fdkinds_metrics(&k, v);
    assert_int_equal(v[METRIC_SOCKETS], k.sockets);
    assert_int_equal(v[METRIC_FD_KINDS_ERR], 0);
    child_stop(&c);
    vec_release(&socks);
    fdkinds_free(r);
}

/* 6,000 descriptors, every third a socket, every third a pipe end; half as many numbers again are free, scattered. */
#define MANY 6000

static void open_many(void)
{
    for (int i = 0; i < MANY / 3; i++) {
        int p[2];
        check(socket(AF_INET, SOCK_DGRAM, 0) >= 0 && pipe(p) == 0);
    }
    for (int fd = 100; fd < MANY; fd += 7)
        close(fd);
}

static bool can_have(rlim_t n)
{
    struct rlimit rl;

    return getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_max >= n;
}

static void assert_near(int64_t estimate, int64_t truth, int64_t err)
{
    /* err is 1.645 sigma: 4 times that is 6.6 sigma, so a correct estimator practically never fails here. */
    if (estimate < truth - 4 * err || estimate > truth + 4 * err)
        fail_msg("estimate %lld, truth %lld, stated error %lld", (long long)estimate, (long long)truth, (long long)err);
}

static void test_estimate_states_its_error(void **state)
{
    struct fdkinds *r;
    struct fd_kinds truth, k;
    struct vec socks;
    int within = 0, tries = 40;

    (void)state;
    if (!can_have(MANY + 100))
        skip();
    assert_int_equal(fdkinds_new(&r), 0);
    vec_init(&socks, sizeof(struct fd_socket), 10000);
    struct child c = child_start(open_many);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &truth, NULL, NULL, NULL), 0);
    assert_true(truth.exact);
    for (int i = 0; i < tries; i++) {
        vec_clear(&socks);
        assert_int_equal(fdkinds_read(r, c.dir, truth.fds, 100000, &k, &socks, NULL, NULL), 0);
        assert_false(k.exact);
        assert_true(k.err > 0 && k.seen > 0 && k.seen < truth.fds);
        assert_int_equal(k.fds, truth.fds);
        assert_near(k.sockets, truth.sockets, k.err);
        assert_near(k.pipes, truth.pipes, k.err);
        assert_near(k.files, truth.files, k.err);
        assert_int_equal(socks.n, (size_t)((double)k.sockets / k.scale + 0.5));
        within += llabs(k.sockets - truth.sockets) <= k.err;
    }
    assert_true(within >= tries / 2); /* stated as 90 %; below half by chance: 1e-11 */
    child_stop(&c);
    vec_release(&socks);
    fdkinds_free(r);
}

/* Few enough to be listed, too little time to read them all: a sample of the list, none twice. */
#define SOME 900

static void open_some(void)
{
    for (int i = 0; i < SOME / 3; i++) {
        int p[2];
        check(socket(AF_INET, SOCK_DGRAM, 0) >= 0 && pipe(p) == 0);
    }
}

static void test_sample_of_a_list(void **state)
{
    struct fdkinds *r;
    struct fd_kinds truth, k;
    struct vec socks;

    (void)state;
    if (!can_have(SOME + 100))
        skip();
    assert_int_equal(fdkinds_new(&r), 0);
    vec_init(&socks, sizeof(struct fd_socket), 10000);
    struct child c = child_start(open_some);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &truth, NULL, NULL, NULL), 0);
    assert_true(truth.exact && truth.fds >= SOME);
    for (int i = 0; i < 40; i++) {
        vec_clear(&socks);
        assert_int_equal(fdkinds_read(r, c.dir, -1, 1, &k, &socks, NULL, NULL), 0);
        assert_false(k.exact);
        assert_int_equal(k.fds, truth.fds);
        assert_near(k.sockets, truth.sockets, k.err);
        assert_near(k.pipes, truth.pipes, k.err);
        VEC_EACH(const struct fd_socket, s, &socks)
            assert_int_equal(count_by_kind(&socks, s->inode), 1);
    }
    child_stop(&c);
    vec_release(&socks);
    fdkinds_free(r);
}

/* Numbers far apart: one socket in every 500. */
static void open_sparse(void)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    for (int fd = 500; fd < 15000; fd += 500)
        check(dup2(s, fd) == fd);
}

static void test_sparse_numbers(void **state)
{
    struct fdkinds *r;
    struct fd_kinds truth, k;

    (void)state;
    if (!can_have(15100))
        skip();
    assert_int_equal(fdkinds_new(&r), 0);
    struct child c = child_start(open_sparse);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &truth, NULL, NULL, NULL), 0);
    /* A budget of 1 ns forces the sample even for so few. */
    int res = fdkinds_read(r, c.dir, truth.fds, 1, &k, NULL, NULL, NULL);
    if (res == 0)
        assert_near(k.sockets, truth.sockets, k.err);
    else
        assert_int_equal(res, LT_GONE); /* no probe hit: said, not made up */
    child_stop(&c);
    fdkinds_free(r);
}

static void open_with_gaps(void)
{
    static const int numbers[] = { 3, 5, 6, 9, 40, 41, 300, 999 };
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    check(dup2(s, 900) == 900);
    close(s);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        check(dup2(i % 2 ? 900 : 0, numbers[i]) == numbers[i]);
}

/* Few descriptors of a known count are read by number: gaps hide none, and neither does a count that is too high or too low. */
static void test_gaps(void **state)
{
    struct fdkinds *r;
    struct fd_kinds truth, k;

    (void)state;
    assert_int_equal(fdkinds_new(&r), 0);
    struct child c = child_start(open_with_gaps);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &truth, NULL, NULL, NULL), 0);
    assert_int_equal(truth.sockets, 5);
    for (int64_t known = truth.fds - 1; known <= truth.fds + 5; known++) {
        assert_int_equal(fdkinds_read(r, c.dir, known, PLENTY, &k, NULL, NULL, NULL), 0);
        assert_true(k.exact);
        assert_int_equal(k.err, 0);
        assert_int_equal(k.fds, MIN(known, truth.fds));
        if (known >= truth.fds)
            assert_memory_equal(&k, &truth, sizeof k);
    }
    child_stop(&c);
    fdkinds_free(r);
}

static void test_full_list_says_what_is_lost(void **state)
{
    struct fdkinds *r;
    struct fd_kinds k;
    struct vec socks;
    size_t lost = 0;

    (void)state;
    assert_int_equal(fdkinds_new(&r), 0);
    str_copy(set_dir, sizeof set_dir, harness_tmpdir());
    vec_init(&socks, sizeof(struct fd_socket), 1);
    struct child c = child_start(open_set);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &k, &socks, &lost, NULL), 0);
    assert_int_equal(lost, k.sockets - 1);
    child_stop(&c);
    vec_release(&socks);
    fdkinds_free(r);
}

static void test_gone(void **state)
{
    struct fdkinds *r;
    struct fd_kinds k;
    struct err err = { 0 };

    (void)state;
    assert_int_equal(fdkinds_new(&r), 0);
    struct child c = child_start(open_nothing);
    kill(c.pid, SIGKILL);
    waitpid(c.pid, NULL, 0);
    assert_int_equal(fdkinds_read(r, c.dir, 10, 0, &k, NULL, NULL, &err), LT_GONE);
    assert_true(err.text[0] != '\0');
    c.dir = fd_close(c.dir);
    fdkinds_free(r);
}

static void test_denied(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct child c = child_start(open_nothing); /* root's: user 65534 may not look */
    pid_t pid = fork();
    if (pid == 0) {
        struct fdkinds *r;
        struct fd_kinds k;
        if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) || fdkinds_new(&r))
            _exit(1);
        _exit(fdkinds_read(r, c.dir, 3, 0, &k, NULL, NULL, NULL) == LT_EPERM ? 0 : 2);
    }
    int status;
    waitpid(pid, &status, 0);
    child_stop(&c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

struct found {
    const char *want;
    int64_t count;
    int64_t total;
};

static int look_for(void *ctx, const char *key, int64_t count)
{
    struct found *f = ctx;
    size_t len = strlen(key), want = strlen(f->want);

    f->total += count;
    if (len >= want && str_eq(key + len - want, f->want))
        f->count += count;
    return 0;
}

static int64_t tally_of(struct tally *t, const char *suffix)
{
    struct found f = { .want = suffix };

    assert_int_equal(tally_each(t, TALLY_KEYS, look_for, &f), 0);
    return f.count;
}

static void test_paths_are_folded(void **state)
{
    struct fdkinds *r;
    struct tally *t;

    (void)state;
    str_copy(set_dir, sizeof set_dir, harness_tmpdir());
    assert_int_equal(fdkinds_new(&r), 0);
    assert_int_equal(tally_new(&t), 0);
    struct child c = child_start(open_set);
    assert_int_equal(fdkinds_paths(r, c.dir, -1, 0, t, NULL), 0);
    assert_int_equal(tally_of(t, "/job-#.wav"), 1);
    assert_int_equal(tally_of(t, "/job-#.wav (deleted)"), 1);
    assert_int_equal(tally_of(t, "/memfd:scratch (deleted)"), 1);
    assert_int_equal(tally_of(t, "anon_inode:[eventpoll]"), 1);
    assert_true(tally_of(t, "socket") >= 3);
    assert_true(tally_of(t, "pipe") >= 4);
    child_stop(&c);
    tally_free(t);
    fdkinds_free(r);
}

static void test_sampled_paths_are_scaled(void **state)
{
    struct fdkinds *r;
    struct tally *t;
    struct fd_kinds truth;

    (void)state;
    if (!can_have(MANY + 100))
        skip();
    assert_int_equal(fdkinds_new(&r), 0);
    assert_int_equal(tally_new(&t), 0);
    struct child c = child_start(open_many);
    assert_int_equal(fdkinds_read(r, c.dir, -1, PLENTY, &truth, NULL, NULL, NULL), 0);
    assert_int_equal(fdkinds_paths(r, c.dir, truth.fds, 200000, t, NULL), 0);
    assert_true(llabs(tally_total(t) - truth.fds) <= TALLY_KEYS);
    assert_true(llabs(tally_of(t, "socket") - truth.sockets) < truth.fds / 4);
    child_stop(&c);
    tally_free(t);
    fdkinds_free(r);
}

static void test_no_allocation_when_warm(void **state)
{
    struct fdkinds *r;
    struct tally *t;
    struct fd_kinds k;
    struct vec socks;

    (void)state;
    str_copy(set_dir, sizeof set_dir, harness_tmpdir());
    assert_int_equal(fdkinds_new(&r), 0);
    assert_int_equal(tally_new(&t), 0);
    vec_init(&socks, sizeof(struct fd_socket), 1000);
    struct child c = child_start(open_set);
    uint64_t before = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 1)
            before = mem_total_allocs();
        vec_clear(&socks);
        assert_int_equal(fdkinds_read(r, c.dir, i % 2 ? -1 : 20, 0, &k, &socks, NULL, NULL), 0);
        assert_int_equal(fdkinds_paths(r, c.dir, 20, 0, t, NULL), 0);
    }
    assert_int_equal(mem_total_allocs(), before);
    child_stop(&c);
    vec_release(&socks);
    tally_free(t);
    fdkinds_free(r);
}

HARNESS_MAIN(CASE(test_exact_kinds), CASE(test_estimate_states_its_error), CASE(test_sample_of_a_list), CASE(test_sparse_numbers), CASE(test_gaps),
             CASE(test_full_list_says_what_is_lost), CASE(test_gone), CASE(test_denied), CASE(test_paths_are_folded),
             CASE(test_sampled_paths_are_scaled), CASE(test_no_allocation_when_warm))
