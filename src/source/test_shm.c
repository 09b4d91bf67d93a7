#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/shm.h"

#define SEGMENT 65536
#define OTHER_UID 54321

/* ---- a target in IPC and mount namespaces of its own, that does what it is told, one byte an order ------------------- */

struct target {
    pid_t pid;
    int dir;
    int orders, answers;
    struct shm *shm;
};

static int posix_segment(const char *name, uid_t owner)
{
    static char data[SEGMENT];
    int fd = shm_open(name, O_CREAT | O_RDWR, 0600);

    memset(data, 1, sizeof data);
    if (fd < 0 || write(fd, data, sizeof data) != sizeof data || fchown(fd, owner, (gid_t)-1))
        return -1;
    return fd;
}

static int sysv_segment(void)
{
    int id = shmget(IPC_PRIVATE, SEGMENT, IPC_CREAT | 0600);
    char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

    if (p == (char *)-1)
        return -1;
    memset(p, 1, SEGMENT);
    return id;
}

/* A process that makes a segment of each sort and is killed: nothing removes them (sglang#28089). */
static void killed_maker(uid_t uid)
{
    static int n;
    char name[32];
    int status;
    pid_t pid;

    str_fmt(name, sizeof name, "/psm_%d", n++);
    pid = fork();
    if (pid == 0) {
        if (uid && setresuid(uid, uid, uid))
            _exit(1);
        if (posix_segment(name, (uid_t)-1) < 0 || sysv_segment() < 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status))
        _exit(1);
}

static void obey(char order)
{
    static int last_sysv = -1, open_fd = -1, n;
    char name[32];

    str_fmt(name, sizeof name, "/own_%d", n++);
    switch (order) {
    case 'k': killed_maker(0); break;
    case 'K': killed_maker(OTHER_UID); break;
    case 's': last_sysv = sysv_segment(); break;
    case 'r': shmctl(last_sysv, IPC_RMID, NULL); break; /* stays while attached */
    case 'p': close(posix_segment(name, (uid_t)-1)); break;
    case 'o': open_fd = posix_segment(name, OTHER_UID); break;
    case 'c': close(open_fd); break;
    default: _exit(2);
    }
}

static int isolate(void)
{
    return unshare(CLONE_NEWNS | CLONE_NEWIPC) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
           mount("none", "/dev/shm", "tmpfs", 0, "size=16m,mode=1777");
}

static void serve(int orders, int answers)
{
    char order;

    if (isolate() || write(answers, "r", 1) != 1)
        _exit(1);
    while (read(orders, &order, 1) == 1) {
        obey(order);
        if (write(answers, "d", 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static bool target_start(struct target *t)
{
    int in[2], out[2];
    char byte, path[64];

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    t->pid = fork();
    if (t->pid == 0) {
        close(in[1]);
        close(out[0]);
        serve(in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    t->orders = in[1];
    t->answers = out[0];
    if (read(t->answers, &byte, 1) != 1) {
        close(in[1]);
        close(out[0]);
        waitpid(t->pid, NULL, 0);
        return false;
    }
    str_fmt(path, sizeof path, "/proc/%d", (int)t->pid);
    t->dir = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(shm_new(&t->shm), 0);
    assert_int_equal(shm_life(t->shm, t->pid, clock_wall_ns() - 10 * NS_PER_S), 0);
    assert_int_equal(shm_user(t->shm, t->dir, NULL), 0);
    return true;
}

static void target_stop(struct target *t)
{
    close(t->orders);
    close(t->answers);
    kill(t->pid, SIGKILL);
    waitpid(t->pid, NULL, 0);
    close(t->dir);
    shm_free(t->shm);
}

static void order(struct target *t, const char *orders)
{
    char byte;

    for (; *orders; orders++) {
        assert_int_equal(write(t->orders, orders, 1), 1);
        assert_int_equal(read(t->answers, &byte, 1), 1);
    }
}

static struct shm_count count(struct target *t)
{
    struct shm_count c;
    struct err err = { 0 };

    if (shm_count(t->shm, "/proc", t->dir, NULL, NULL, &c, &err))
        fail_msg("%s", err.text);
    assert_true(c.posix);
    assert_true(c.sysv);
    return c;
}

/* ---- the rules -------------------------------------------------------------------------------------------------- */

static void test_own_segments(void **state)
{
    struct target t;
    struct shm_count c;

    (void)state;
    if (!target_start(&t))
        skip();
    c = count(&t);
    assert_int_equal(c.segments, 0); /* of our namespace none shows */
    order(&t, "s");
    c = count(&t);
    assert_int_equal(c.segments, 1);
    assert_int_equal(c.by_owner, 0); /* S1 */
    assert_true(c.bytes >= SEGMENT);
    order(&t, "p");
    c = count(&t);
    assert_int_equal(c.segments, 2);
    assert_int_equal(c.by_owner, 1); /* P3 */
    assert_true(c.bytes >= 2 * SEGMENT);
    target_stop(&t);
}

/* The leak of sglang#28089: each killed server leaves its segments; each must show, before and after its maker is known dead. */
static void test_segments_outlive_their_makers(void **state)
{
    struct target t;

    (void)state;
    if (!target_start(&t))
        skip();
    for (int i = 1; i <= 4; i++) {
        order(&t, "k");
        struct shm_count c = count(&t);
        assert_int_equal(c.segments, 2 * i); /* S3 and P3 */
        assert_true(c.bytes >= (int64_t)2 * i * SEGMENT);
    }
    target_stop(&t);
}

static void test_segments_of_others_do_not_count(void **state)
{
    struct target t;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "KK");
    assert_int_equal(count(&t).segments, 0);
    target_stop(&t);
}

static bool all_foreign(void *ctx, int32_t pid, int64_t wall_s)
{
    ++*(int *)ctx;
    assert_true(pid > 0 && wall_s > 0);
    return true;
}

static void test_foreign_lives_are_left_out(void **state)
{
    struct target t;
    struct shm_count c;
    int asked = 0;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "ks");
    assert_int_equal(shm_count(t.shm, "/proc", t.dir, all_foreign, &asked, &c, NULL), 0);
    assert_int_equal(asked, 1);      /* its own segment needs no asking */
    assert_int_equal(c.segments, 2); /* its own, and the POSIX one */
    target_stop(&t);
}

/* Once counted, always counted: the life that made it is forgotten, its pid is another's. */
static void test_counted_stays_counted(void **state)
{
    struct target t;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "s");
    assert_int_equal(count(&t).segments, 1);
    assert_int_equal(shm_life(t.shm, t.pid, clock_wall_ns() + 1000 * NS_PER_S), 0); /* a later life of the same pid */
    struct shm_count c = count(&t);
    assert_int_equal(c.segments, 1);
    assert_int_equal(c.by_owner, 0);
    target_stop(&t);
}

static void test_life_that_ended_before_did_not_make_it(void **state)
{
    struct target t;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "s");
    /* The pid was a life of ours that ended long ago; the process that has it now (it runs) is not ours. */
    shm_free(t.shm);
    assert_int_equal(shm_new(&t.shm), 0);
    assert_int_equal(shm_life(t.shm, t.pid, clock_wall_ns() + 1000 * NS_PER_S), 0);
    assert_int_equal(shm_user(t.shm, t.dir, NULL), 0);
    assert_int_equal(count(&t).segments, 0);
    target_stop(&t);
}

static void test_removed_segments_go(void **state)
{
    struct target t;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "k");
    assert_int_equal(count(&t).segments, 2);
    struct shm_count c;
    char path[300];
    str_fmt(path, sizeof path, "/proc/%d/root/dev/shm/psm_0", (int)t.pid);
    assert_int_equal(unlink(path), 0);
    c = count(&t);
    assert_int_equal(c.segments, 1);
    target_stop(&t);
}

/* Owned by another user, but open in the target: counts, and still does when the descriptor is closed. */
static void test_open_files_of_another_owner(void **state)
{
    struct target t;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "o");
    assert_int_equal(count(&t).segments, 0);
    assert_int_equal(shm_open_files(t.shm, t.dir, 0, NULL), 0);
    struct shm_count c = count(&t);
    assert_int_equal(c.segments, 1); /* P1 */
    assert_int_equal(c.by_owner, 0);
    order(&t, "c");
    assert_int_equal(shm_open_files(t.shm, t.dir, 0, NULL), 0);
    assert_int_equal(count(&t).segments, 1); /* P2 */
    target_stop(&t);
}

static void read_link(const char *path, char out[64])
{
    ssize_t n = readlink(path, out, 63);

    out[MAX(n, (ssize_t)0)] = '\0';
}

static void test_we_come_back(void **state)
{
    struct target t;
    char before[64], after[64];

    (void)state;
    if (!target_start(&t))
        skip();
    read_link("/proc/thread-self/ns/ipc", before);
    count(&t);
    read_link("/proc/thread-self/ns/ipc", after);
    assert_string_equal(before, after);
    target_stop(&t);
}

static void test_no_allocation_when_warm(void **state)
{
    struct target t;
    uint64_t allocs = 0;

    (void)state;
    if (!target_start(&t))
        skip();
    order(&t, "kkso");
    for (int i = 0; i < 10; i++) {
        if (i == 3)
            allocs = mem_total_allocs();
        assert_int_equal(shm_open_files(t.shm, t.dir, 0, NULL), 0);
        count(&t);
    }
    assert_int_equal(mem_total_allocs(), allocs);
    target_stop(&t);
}

static void test_gone(void **state)
{
    struct shm *s;
    struct shm_count c;
    struct err err = { 0 };
    char path[64];

    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    str_fmt(path, sizeof path, "/proc/%d", (int)pid);
    int dir = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(shm_new(&s), 0);
    assert_int_equal(shm_user(s, dir, NULL), LT_GONE);
    assert_int_equal(shm_count(s, "/proc", dir, NULL, NULL, &c, &err), LT_GONE);
    assert_int_equal(shm_open_files(s, dir, 0, NULL), LT_GONE);
    shm_free(s);
    close(dir);
}

static void test_many_lives(void **state)
{
    struct shm *s;

    (void)state;
    assert_int_equal(shm_new(&s), 0);
    for (int32_t pid = 1; pid < SHM_LIVES + 100; pid++) {
        assert_int_equal(shm_life(s, pid, pid * NS_PER_S), 0);
        shm_life_ended(s, pid);
    }
    shm_free(s);
}

static void test_parse(void **state)
{
    static const char line[] = "-123456789      32769  1600                 65536  4711     9      1   106   110  1000  1000 "
                               "1700000001 1700000005 1700000000                 61440                  4096";
    static const char header[] = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime "
                                 "     dtime      ctime                   rss                  swap";
    struct shm_row r;

    (void)state;
    assert_true(shm_parse(line, sizeof line - 1, &r));
    assert_int_equal(r.id, 32769);
    assert_int_equal(r.size, 65536);
    assert_int_equal(r.cpid, 4711);
    assert_int_equal(r.lpid, 9);
    assert_int_equal(r.uid, 106);
    assert_int_equal(r.cuid, 1000);
    assert_int_equal(r.used_s, 1700000005);
    assert_int_equal(r.ctime_s, 1700000000);
    assert_int_equal(r.rss, 61440);
    assert_int_equal(r.swap, 4096);
    assert_false(shm_parse(header, sizeof header - 1, &r));
    assert_false(shm_parse("", 0, &r));
    assert_false(shm_parse(line, sizeof line - 30, &r));
}

static int make(void *ctx)
{
    struct shm *s;
    struct shm_count c;
    int r = shm_new(&s);

    if (r)
        return r;
    if ((r = shm_life(s, 1, NS_PER_S)) == 0)
        r = shm_count(s, "/proc", *(int *)ctx, NULL, NULL, &c, NULL);
    shm_free(s);
    return r;
}

static void test_out_of_memory(void **state)
{
    int self = fd_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0);

    (void)state;
    harness_sweep_allocs(make, &self);
    close(self);
}

HARNESS_MAIN(CASE(test_own_segments), CASE(test_segments_outlive_their_makers), CASE(test_segments_of_others_do_not_count),
             CASE(test_foreign_lives_are_left_out), CASE(test_counted_stays_counted),
             CASE(test_life_that_ended_before_did_not_make_it), CASE(test_removed_segments_go),
             CASE(test_open_files_of_another_owner), CASE(test_we_come_back), CASE(test_no_allocation_when_warm), CASE(test_gone),
             CASE(test_many_lives), CASE(test_parse), CASE(test_out_of_memory))
