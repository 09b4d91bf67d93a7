#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "lib/harness.h"

static const char *in_tmp(const char *name)
{
    static char path[512];

    str_fmt(path, sizeof path, "%s/%s", harness_tmpdir(), name);
    return path;
}

static void test_open_is_cloexec(void **state)
{
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

    (void)state;
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fd_open(AT_FDCWD, "/nowhere/at/all", O_RDONLY, 0), -ENOENT);
}

static void test_close_and_take(void **state)
{
    int kept = -1;

    (void)state;
    errno = EXDEV;
    assert_int_equal(fd_close(-1), -1);
    assert_int_equal(fd_close(1 << 20), -1); /* EBADF inside; errno is the caller's */
    assert_int_equal(errno, EXDEV);
    {
        _cleanup_fd_ int fd = fd_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

        kept = TAKE_FD(fd);
        assert_int_equal(fd, -1);
    }
    assert_int_not_equal(fcntl(kept, F_GETFD), -1);
    fd_close(kept);
}

static void test_read_at(void **state)
{
    char buf[6];
    _cleanup_fd_ int dir = -1;

    (void)state;
    assert_int_equal(fd_write_file(in_tmp("f"), "12345", 5), 0);
    dir = fd_open(AT_FDCWD, harness_tmpdir(), O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(fd_read_at(dir, "f", buf, 6), 5);
    assert_string_equal(buf, "12345");
    assert_int_equal(fd_read_at(dir, "f", buf, 5), -EFBIG);
    assert_string_equal(buf, "1234");
    assert_int_equal(fd_read_at(dir, "f", buf, 1), -EFBIG);
    assert_string_equal(buf, "");
    assert_int_equal(fd_read_at(dir, "f", buf, 0), -EINVAL);
    assert_int_equal(fd_read_at(dir, "none", buf, sizeof buf), -ENOENT);
    assert_string_equal(buf, "");
    assert_int_equal(fd_read_at(dir, ".", buf, sizeof buf), -EISDIR);
}

static void test_pread0_again_and_again(void **state)
{
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, "/proc/self/stat", O_RDONLY, 0);
    char one[2048], two[2048], small[4];

    (void)state;
    assert_true(fd_pread0(fd, one, sizeof one) > 20);
    assert_true(fd_pread0(fd, two, sizeof two) > 20);
    assert_int_equal(memcmp(one, two, 4), 0);
    assert_int_equal(fd_pread0(fd, small, sizeof small), 3);
    assert_int_equal(small[3], 0);
    assert_int_equal(fd_pread0(fd, small, 0), -EINVAL);
    assert_int_equal(fd_pread0(-1, small, sizeof small), -EBADF);
}

static void test_pread0_of_the_dead(void **state)
{
    _cleanup_fd_ int fd = -1;
    char path[64], buf[64];
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        pause();
        _exit(0);
    }
    str_fmt(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = fd_open(AT_FDCWD, path, O_RDONLY, 0);
    assert_true(fd >= 0);
    assert_true(fd_pread0(fd, buf, sizeof buf) > 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(fd_pread0(fd, buf, sizeof buf), -ESRCH);
    assert_string_equal(buf, "");
}

/* More than a pipe holds: write() comes back short, and the reader sees all of it. */
static void test_write_all_through_a_pipe(void **state)
{
    static char data[300000];
    int ends[2];
    size_t got = 0;
    pid_t pid;
    int status;

    (void)state;
    memset(data, 'x', sizeof data);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0)
        _exit(fd_write_all(ends[1], data, sizeof data) == 0 ? 0 : 1);
    fd_close(ends[1]);
    for (;;) {
        char buf[1000];
        ssize_t n = read(ends[0], buf, sizeof buf);

        if (n <= 0)
            break;
        got += (size_t)n;
    }
    fd_close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(got, sizeof data);
    assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(fd_write_all(-1, "", 0), 0);
}

static void test_write_file(void **state)
{
    char buf[100], path[512];
    struct stat st;

    (void)state;
    str_copy(path, sizeof path, in_tmp("out"));
    assert_int_equal(fd_write_file(path, "old content", 11), 0);
    assert_int_equal(fd_write_file(path, "new", 3), 0);
    assert_int_equal(fd_read_at(AT_FDCWD, path, buf, sizeof buf), 3);
    assert_string_equal(buf, "new");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(harness_tmpdir(), &st), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(harness_tmpdir()), 0); /* no temp file beside it */
    assert_int_equal(mkdir(harness_tmpdir(), 0700), 0);
    assert_int_equal(fd_write_file(in_tmp("no/such/folder"), "x", 1), -ENOENT);
}

/* Whatever fails, the old content stays and no temp file does. */
static void test_write_file_failing(void **state)
{
    char path[512];

    (void)state;
    str_copy(path, sizeof path, in_tmp("folder"));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(in_tmp("folder/child"), 0700), 0);
    assert_true(fd_write_file(path, "x", 1) < 0);
    assert_int_equal(rmdir(in_tmp("folder/child")), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(harness_tmpdir()), 0);
    assert_int_equal(mkdir(harness_tmpdir(), 0700), 0);
}

static void test_mkdir_p(void **state)
{
    char path[512];
    struct stat st;

    (void)state;
    str_copy(path, sizeof path, in_tmp("a//b/c/"));
    assert_int_equal(fd_mkdir_p(path, 0700), 0);
    assert_int_equal(fd_mkdir_p(path, 0700), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(fd_mkdir_p("/", 0700), 0);
    assert_int_equal(fd_mkdir_p("", 0700), -ENOENT);
    assert_int_equal(fd_write_file(in_tmp("f"), "", 0), 0);
    assert_int_equal(fd_mkdir_p(in_tmp("f"), 0700), -ENOTDIR);
    assert_int_equal(fd_mkdir_p(in_tmp("f/g"), 0700), -ENOTDIR);
}

HARNESS_MAIN(CASE(test_open_is_cloexec), CASE(test_close_and_take), CASE(test_read_at), CASE(test_pread0_again_and_again),
             CASE(test_pread0_of_the_dead), CASE(test_write_all_through_a_pipe), CASE(test_write_file),
             CASE(test_write_file_failing), CASE(test_mkdir_p))
