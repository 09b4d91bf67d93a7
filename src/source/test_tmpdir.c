#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/tmpdir.h"

static const char *in_tmp(const char *path)
{
    static char full[4][1024];
    static int turn;

    turn = (turn + 1) % 4;
    str_fmt(full[turn], sizeof full[0], "%s/%s", harness_tmpdir(), path);
    return full[turn];
}

static void put(const char *path, size_t size)
{
    static const char zeros[65536] = { 1 };
    int fd = fd_open(AT_FDCWD, in_tmp(path), O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, zeros, size), 0);
    fsync(fd); /* so that its blocks are allocated, on file systems that wait */
    close(fd);
}

static void make(const char *path)
{
    assert_int_equal(mkdir(in_tmp(path), 0700), 0);
}

static int open_self(void)
{
    int fd = fd_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0);

    assert_true(fd >= 0);
    return fd;
}

static int64_t blocks_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(in_tmp(path), &st), 0);
    return (int64_t)st.st_blocks * 512;
}

/* One whole look with a new reader. */
static struct tmpdir_count look(const char *const *paths, size_t n)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    struct err err = { 0 };
    int self = open_self();

    assert_int_equal(tmpdirs_new(&t, 60 * NS_PER_S), 0);
    tmpdirs_round(t);
    int r = tmpdirs_count(t, self, paths, n, &c, &err);
    if (r)
        fail_msg("%s", err.text);
    tmpdirs_free(t);
    close(self);
    return c;
}

static struct tmpdir_count look_at(const char *path)
{
    return look(&path, 1);
}

static void test_counts_and_bytes(void **state)
{
    (void)state;
    make("t");
    make("t/sub");
    make("t/sub/deep");
    make("t/empty");
    put("t/a", 10000);
    put("t/sub/b", 1);
    put("t/sub/deep/c", 60000);
    put("outside", 60000);
    struct tmpdir_count c = look_at(in_tmp("t"));
    assert_int_equal(c.files, 4); /* three files and the empty folder */
    assert_int_equal(c.bytes, blocks_of("t/a") + blocks_of("t/sub/b") + blocks_of("t/sub/deep/c") + blocks_of("t/empty"));
    assert_false(c.partial || c.at_least);
    assert_int_equal(look_at(in_tmp("none")).files, 0);
    assert_int_equal(look_at(in_tmp("t/empty")).files, 0); /* the folder itself is not in it */
}

static void test_sparse_file_counts_what_is_allocated(void **state)
{
    (void)state;
    make("t");
    put("t/sparse", 1);
    assert_int_equal(truncate(in_tmp("t/sparse"), 1 << 30), 0);
    assert_true(look_at(in_tmp("t")).bytes < 1 << 20);
}

static void test_never_leaves_the_folder(void **state)
{
    (void)state;
    make("t");
    make("other");
    put("other/x", 50000);
    put("other/y", 50000);
    assert_int_equal(symlink("../other", in_tmp("t/link")), 0);
    assert_int_equal(symlink("/", in_tmp("t/root")), 0);
    assert_int_equal(symlink("loop", in_tmp("t/loop")), 0);
    assert_int_equal(symlink("other/x", in_tmp("t/dangling")), 0);
    struct tmpdir_count c = look_at(in_tmp("t"));
    assert_int_equal(c.files, 4); /* the links themselves */
    assert_true(c.bytes < 40000);
    assert_false(c.partial);
}

static void test_hard_links_and_odd_files(void **state)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    (void)state;
    make("t");
    make("t/sub");
    put("t/a", 30000);
    assert_int_equal(link(in_tmp("t/a"), in_tmp("t/sub/again")), 0);
    assert_int_equal(mkfifo(in_tmp("t/fifo"), 0600), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    str_copy(a.sun_path, sizeof a.sun_path, in_tmp("t/s"));
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    struct tmpdir_count c = look_at(in_tmp("t"));
    assert_int_equal(c.files, 3); /* one file of two names, the FIFO (not opened: that would hang), the socket */
    assert_int_equal(c.bytes, blocks_of("t/a"));
    close(fd);
}

static void test_same_folder_by_two_names(void **state)
{
    (void)state;
    make("t");
    make("t/sub");
    put("t/a", 100);
    put("t/sub/b", 100);
    assert_int_equal(symlink("t", in_tmp("alias")), 0);
    const char *paths[] = { in_tmp("t"), in_tmp("alias"), in_tmp("t/sub"), in_tmp("t/") };
    assert_int_equal(look(paths, 4).files, 2);
}

static void test_too_deep_is_said(void **state)
{
    char path[1024] = "t";

    (void)state;
    make("t");
    for (int i = 0; i < TMPDIR_DEPTH + 2; i++) {
        str_fmt(path + strlen(path), sizeof path - strlen(path), "/d");
        make(path);
    }
    put("t/file", 10);
    struct tmpdir_count c = look_at(in_tmp("t"));
    assert_true(c.partial);
    assert_true(c.files >= 1);
}

/* A walk with next to no time a round: it ends after some rounds, and until then says "at least"; then, while the folder
 * changes, the last whole result stands. */
static void test_walk_goes_on_over_rounds(void **state)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    int self = open_self(), rounds = 0;
    const int files = 1000;
    const char *path;

    (void)state;
    make("t");
    for (int i = 0; i < files; i++) {
        char name[32];
        str_fmt(name, sizeof name, "t/f%d", i);
        int fd = fd_open(AT_FDCWD, in_tmp(name), O_CREAT | O_WRONLY, 0600);
        close(fd);
    }
    path = in_tmp("t");
    assert_int_equal(tmpdirs_new(&t, 1), 0);
    do {
        tmpdirs_round(t);
        assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0);
        assert_true(c.files <= files);
        rounds++;
    } while (c.at_least && rounds < 1000);
    assert_false(c.at_least);
    assert_true(rounds > 1);
    assert_int_equal(c.files, files);
    assert_int_equal(unlink(in_tmp("t/f0")), 0);
    tmpdirs_round(t);
    assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0);
    assert_int_equal(c.files, files); /* a new walk is under way */
    assert_true(c.age_ns > 0);
    for (int i = 0; i < 1000 && c.files == files; i++) {
        tmpdirs_round(t);
        assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0);
    }
    assert_int_equal(c.files, files - 1);
    tmpdirs_free(t);
    close(self);
}

static void test_walked_once_a_round_and_dropped(void **state)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    int self = open_self();
    const char *path;

    (void)state;
    make("t");
    put("t/a", 10);
    path = in_tmp("t");
    assert_int_equal(tmpdirs_new(&t, 60 * NS_PER_S), 0);
    tmpdirs_round(t);
    assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0);
    put("t/b", 10);
    assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0); /* another target, the same round */
    assert_int_equal(c.files, 1);
    tmpdirs_round(t);
    assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0);
    assert_int_equal(c.files, 2);
    uint64_t allocs = mem_total_allocs();
    tmpdirs_round(t);
    assert_int_equal(tmpdirs_count(t, self, &path, 1, &c, NULL), 0);
    assert_int_equal(mem_total_allocs(), allocs);
    tmpdirs_round(t);
    int64_t live = mem_live_blocks();
    tmpdirs_round(t); /* nobody asked: forgotten */
    assert_int_equal(mem_live_blocks(), live - 1);
    tmpdirs_free(t);
    close(self);
}

static void test_too_many_folders(void **state)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    struct err err = { 0 };
    int self = open_self(), r = 0;

    (void)state;
    assert_int_equal(tmpdirs_new(&t, 0), 0);
    for (int i = 0; i <= TMPDIR_FOLDERS; i++) {
        char name[32];
        str_fmt(name, sizeof name, "t%d", i);
        make(name);
        const char *path = in_tmp(name);
        assert_int_equal(r, 0);
        r = tmpdirs_count(t, self, &path, 1, &c, &err);
    }
    assert_int_equal(r, LT_ELIMIT);
    tmpdirs_free(t);
    close(self);
}

/* ---- another root, mounts --------------------------------------------------------------------------------------- */

/* A child that runs `prepare`, says so, and waits. */
static pid_t child_start(int (*prepare)(void), int *ret_dir)
{
    int p[2];
    char byte, path[64];

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (prepare() || write(p[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(p[1]);
    bool ok = read(p[0], &byte, 1) == 1;
    close(p[0]);
    if (!ok) {
        waitpid(pid, NULL, 0);
        return -1;
    }
    str_fmt(path, sizeof path, "/proc/%d", (int)pid);
    *ret_dir = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    return pid;
}

static void child_stop(pid_t pid, int dir)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(dir);
}

static char root_path[1024];

static int go_into_root(void)
{
    return chroot(root_path) || chdir("/");
}

static void test_seen_from_the_targets_root(void **state)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    int dir = -1;
    const char *paths[] = { "/tmp/job", "/via-link", "/../../../../tmp/job/.." };

    (void)state;
    make("root");
    make("root/tmp");
    make("root/tmp/job");
    put("root/tmp/job/a", 10);
    put("root/tmp/job/b", 10);
    /* A link that would leave the root leads to the same path inside it. */
    assert_int_equal(symlink("/../../tmp/job", in_tmp("root/via-link")), 0);
    str_copy(root_path, sizeof root_path, in_tmp("root"));
    pid_t pid = child_start(go_into_root, &dir);
    if (pid < 0)
        skip();
    assert_int_equal(tmpdirs_new(&t, 60 * NS_PER_S), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tmpdirs_count(t, dir, &paths[i], 1, &c, NULL), 0);
        assert_int_equal(c.files, 2);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(tmpdirs_count(t, dir, paths, 1, &c, NULL), LT_GONE);
    close(dir);
    tmpdirs_free(t);
}

static int mount_inside(void)
{
    char at[1100], bind[1100];

    str_fmt(at, sizeof at, "%s/t/mnt", root_path);
    str_fmt(bind, sizeof bind, "%s/t/bind", root_path);
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", at, "tmpfs", 0, NULL) ||
        mount("/etc", bind, NULL, MS_BIND, NULL))
        return 1;
    str_fmt(at, sizeof at, "%s/t/mnt/x", root_path);
    return mkdir(at, 0700);
}

static void test_mounts_are_not_entered(void **state)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    int dir = -1;
    const char *path;

    (void)state;
    make("t");
    make("t/mnt");
    make("t/bind");
    put("t/a", 10);
    str_copy(root_path, sizeof root_path, harness_tmpdir());
    pid_t pid = child_start(mount_inside, &dir);
    if (pid < 0)
        skip();
    path = in_tmp("t");
    assert_int_equal(tmpdirs_new(&t, 60 * NS_PER_S), 0);
    assert_int_equal(tmpdirs_count(t, dir, &path, 1, &c, NULL), 0);
    assert_int_equal(c.files, 1);
    child_stop(pid, dir);
    tmpdirs_free(t);
}

static int look_once(void *ctx)
{
    struct tmpdirs *t;
    struct tmpdir_count c;
    int self = *(int *)ctx;
    const char *path = "/tmp";
    int r = tmpdirs_new(&t, 1);

    if (r)
        return r;
    r = tmpdirs_count(t, self, &path, 1, &c, NULL);
    tmpdirs_free(t);
    return r;
}

static void test_out_of_memory(void **state)
{
    int self = open_self();

    (void)state;
    harness_sweep_allocs(look_once, &self);
    close(self);
}

HARNESS_MAIN(CASE(test_counts_and_bytes), CASE(test_sparse_file_counts_what_is_allocated), CASE(test_never_leaves_the_folder),
             CASE(test_hard_links_and_odd_files), CASE(test_same_folder_by_two_names), CASE(test_too_deep_is_said),
             CASE(test_walk_goes_on_over_rounds), CASE(test_walked_once_a_round_and_dropped), CASE(test_too_many_folders),
             CASE(test_seen_from_the_targets_root), CASE(test_mounts_are_not_entered), CASE(test_out_of_memory))
