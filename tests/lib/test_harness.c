/* The harness has to see what a case leaves behind: each leak below is planted in a program of its own (a forked child
 * running harness_main), which must fail and name it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"

static void leak_fd(void **state)
{
    (void)state;
    assert_true(fd_open(AT_FDCWD, "/dev/null", O_RDONLY, 0) >= 0);
}

static void close_foreign_fd(void **state)
{
    (void)state;
    close(STDIN_FILENO);
}

static void leak_child(void **state)
{
    (void)state;
    if (fork() == 0) {
        sleep(30);
        _exit(0);
    }
}

static void leak_zombie(void **state)
{
    (void)state;
    if (fork() == 0)
        _exit(0);
}

static void *sleep_on(void *arg)
{
    sleep(30);
    return arg;
}

static void leak_thread(void **state)
{
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, sleep_on, NULL), 0);
}

static void *kept_block;

static void leak_heap(void **state)
{
    (void)state;
    kept_block = mem_alloc(10);
}

static void *end_now(void *arg)
{
    return arg;
}

/* Everything taken and given back: must pass, however long the kernel takes to forget the thread. */
static void tidy(void **state)
{
    pthread_t t;
    pid_t pid = fork();
    int fd = fd_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

    (void)state;
    if (pid == 0)
        _exit(0);
    assert_int_equal(pthread_create(&t, NULL, end_now, NULL), 0);
    pthread_join(t, NULL);
    waitpid(pid, NULL, 0);
    mem_free(mem_alloc(10));
    fd_close(fd);
}

static int leaky_on_failure(void *ctx)
{
    void *a = mem_alloc(1), *b = mem_alloc(1);

    (void)ctx;
    if (!b)
        return LT_ENOMEM; /* forgets a */
    mem_free(a);
    mem_free(b);
    return a ? 0 : LT_ENOMEM;
}

static int wrong_code(void *ctx)
{
    void *a = mem_alloc(1);

    (void)ctx;
    mem_free(a);
    return a ? 0 : LT_EIO;
}

static void sweep_leaky(void **state)
{
    (void)state;
    harness_sweep_allocs(leaky_on_failure, NULL);
}

static void sweep_wrong_code(void **state)
{
    (void)state;
    harness_sweep_allocs(wrong_code, NULL);
}

static void fails_with_tmpdir(void **state)
{
    (void)state;
    fprintf(stderr, "folder %s.\n", harness_tmpdir());
    fail();
}

static void skips(void **state)
{
    (void)state;
    skip();
}

static const struct harness_case planted[] = {
    CASE(leak_fd),     CASE(close_foreign_fd), CASE(leak_child),  CASE(leak_zombie),      CASE(leak_thread),
    CASE(leak_heap),   CASE(tidy),             CASE(sweep_leaky), CASE(sweep_wrong_code), CASE(fails_with_tmpdir),
    CASE(skips),
};

/* Runs the planted case in a process of its own: its exit status, and what it printed. */
static int run_planted(const char *name, char *out, size_t size)
{
    char program[] = "planted", pattern[64];
    char *argv[] = { program, pattern, NULL };
    _cleanup_fd_ int reader = -1;
    int ends[2], status;
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    str_copy(pattern, sizeof pattern, name);
    fflush(NULL);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int r;

        setpgid(0, 0);
        if (!str_eq(name, "tidy"))
            harness_settle_ns = 200 * NS_PER_MS; /* a planted leak does not go away: nothing to wait for */
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        r = harness_main(2, argv, planted, ARRAY_SIZE(planted));
        fflush(NULL);
        _exit(r);
    }
    fd_close(ends[1]);
    reader = ends[0];
    assert_int_equal(waitpid(pid, &status, 0), pid);
    kill(-pid, SIGKILL); /* the planted child, if any */
    while ((got = read(reader, out + n, size - 1 - n)) > 0)
        n += (size_t)got;
    out[n] = '\0';
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void must_fail_saying(const char *name, const char *text)
{
    char out[8192];

    assert_int_equal(run_planted(name, out, sizeof out), 1);
    if (!strstr(out, text) || !strstr(out, "harness: 0 passed, 1 failed, 0 skipped"))
        fail_msg("%s should have said \"%s\":\n%s", name, text, out);
}

static void test_catches_fds(void **state)
{
    (void)state;
    must_fail_saying("leak_fd", "(/dev/null)");
    must_fail_saying("close_foreign_fd", "fd 0 (closed, but not ours)");
}

static void test_catches_children(void **state)
{
    (void)state;
    must_fail_saying("leak_child", "left behind: child ");
    must_fail_saying("leak_zombie", "left behind: child ");
}

static void test_catches_threads(void **state)
{
    (void)state;
    must_fail_saying("leak_thread", "left behind: thread ");
}

static void test_catches_heap(void **state)
{
    (void)state;
    must_fail_saying("leak_heap", "left behind: +1 heap block");
}

static void test_passes_the_tidy(void **state)
{
    char out[8192];

    (void)state;
    assert_int_equal(run_planted("tidy", out, sizeof out), 0);
    assert_non_null(strstr(out, "harness: 1 passed, 0 failed, 0 skipped"));
}

static void test_skipped_is_not_passed(void **state)
{
    char out[8192];

    (void)state;
    assert_int_equal(run_planted("skips", out, sizeof out), 0);
    assert_non_null(strstr(out, "harness: 0 passed, 0 failed, 1 skipped"));
}

static void test_nothing_to_run_is_a_failure(void **state)
{
    char out[8192];

    (void)state;
    assert_int_equal(run_planted("no such case", out, sizeof out), 1);
    assert_non_null(strstr(out, "harness: no case to run"));
}

static void test_sweep_catches(void **state)
{
    (void)state;
    must_fail_saying("sweep_leaky", "allocation 2 failed, and 1 block(s) are left");
    must_fail_saying("sweep_wrong_code", "returned LT_EIO");
}

static void test_tmpdir_goes_even_after_a_failure(void **state)
{
    char out[8192], *begin, *end;
    struct stat st;

    (void)state;
    assert_int_equal(run_planted("fails_with_tmpdir", out, sizeof out), 1);
    begin = strstr(out, "folder ");
    assert_non_null(begin);
    begin += strlen("folder ");
    end = strstr(begin, ".\n");
    assert_non_null(end);
    *end = '\0';
    assert_int_equal(stat(begin, &st), -1);
}

static void test_tmpdir_is_emptied_of_all(void **state)
{
    char path[512];

    (void)state;
    str_fmt(path, sizeof path, "%s/a/b", harness_tmpdir());
    assert_int_equal(fd_mkdir_p(path, 0700), 0);
    str_fmt(path, sizeof path, "%s/a/link", harness_tmpdir());
    assert_int_equal(symlink("/", path), 0); /* must not be followed */
}

HARNESS_MAIN(CASE(test_catches_fds), CASE(test_catches_children), CASE(test_catches_threads), CASE(test_catches_heap),
             CASE(test_passes_the_tidy), CASE(test_skipped_is_not_passed), CASE(test_nothing_to_run_is_a_failure), CASE(test_sweep_catches),
             CASE(test_tmpdir_goes_even_after_a_failure), CASE(test_tmpdir_is_emptied_of_all))
