#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/events.h"

struct seen { pid_t parent; int forks, exits, lost, with_code; uint64_t cookie; bool reaped; int pidfds; };

static void see(void *ctx, const struct event *e)
{
    struct seen *s = ctx;

    s->forks += e->kind == EVENT_FORK && e->ppid == s->parent;
    s->exits += e->kind == EVENT_EXIT;
    s->with_code += e->kind == EVENT_EXIT && WIFEXITED((int)e->status) && WEXITSTATUS((int)e->status) == 41;
    s->lost += e->kind == EVENT_LOST;
    if (e->kind == EVENT_PIDFD) {
        s->pidfds++;
        s->cookie = e->cookie;
        s->reaped = e->reaped;
    }
}

static struct events *open_or_skip(int buffer)
{
    struct events *e;
    struct err err;

    if (events_open(&e, true, buffer, &err) < 0)
        fail_msg("%s", err.text);
    if (!events_connector(e)) {
        events_close(e);
        print_message("no process connector here (CAP_NET_ADMIN, initial pid namespace)\n");
        skip();
    }
    return e;
}

static void storm(int n)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (!pid)
            _exit(41);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

static void test_all_of_a_storm(void **state)
{
    struct events *e = open_or_skip(0);
    struct seen s = { .parent = getpid() };
    struct pollfd p = { events_fd(e), POLLIN, 0 };
    struct err err;

    (void)state;
    storm(2000); /* undrained: they wait in the buffer */
    assert_int_equal(poll(&p, 1, 10000), 1);
    for (int i = 0; i < 100 && s.with_code < 2000; i++) {
        assert_int_equal(events_drain(e, see, &s, &err), 0);
        poll(&p, 1, 100);
    }
    assert_int_equal(s.forks, 2000);
    assert_int_equal(s.with_code, 2000);
    assert_int_equal(s.lost, 0);
    events_close(e);
}

static void test_overflow_is_told(void **state)
{
    struct events *e = open_or_skip(4096);
    struct seen s = { .parent = getpid() };
    struct err err;

    (void)state;
    storm(300);
    for (int i = 0; i < 100 && !s.lost; i++)
        assert_int_equal(events_drain(e, see, &s, &err), 0);
    assert_true(s.lost > 0);
    assert_true(s.forks < 300);
    events_close(e);
}

static void *idle(void *unused)
{
    return unused;
}

/* Threads make the same events; they are dropped in the kernel. */
static void test_threads_are_no_forks(void **state)
{
    struct events *e = open_or_skip(0);
    struct seen s = { .parent = getpid() };
    struct err err;

    (void)state;
    for (int i = 0; i < 50; i++) {
        pthread_t t;

        assert_int_equal(pthread_create(&t, NULL, idle, NULL), 0);
        pthread_join(t, NULL);
    }
    assert_int_equal(events_drain(e, see, &s, &err), 0);
    assert_int_equal(s.forks, 0);
    events_close(e);
}

static void test_pidfd(void **state)
{
    struct events *e;
    struct seen s = { 0 };
    struct err err;
    uint32_t status = 0;
    pid_t pid = fork();

    (void)state;
    if (!pid) {
        for (;;)
            pause();
    }
    assert_int_equal(events_open(&e, false, 0, &err), 0);
    assert_false(events_connector(e));
    int fd = events_add_pid(e, pid, 77);
    if (fd < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        events_close(e);
        skip();
    }
    assert_int_equal(events_drain(e, see, &s, &err), 0);
    assert_int_equal(s.pidfds, 0);
    kill(pid, SIGTERM);
    struct pollfd p = { events_fd(e), POLLIN, 0 };
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(events_drain(e, see, &s, &err), 0);
    assert_int_equal(s.pidfds, 1);
    assert_int_equal(s.cookie, 77);
    assert_false(s.reaped);
    assert_int_equal(events_drain(e, see, &s, &err), 0);
    assert_int_equal(s.pidfds, 1); /* told once */
    events_await_reaping(e, fd, 78);
    assert_int_equal(pidfd_exit_status(fd, &status), LT_EUNSUPPORTED); /* a zombie shows nothing yet */
    waitpid(pid, NULL, 0);
    if (pidfd_tells_exit()) {
        assert_int_equal(poll(&p, 1, 10000), 1);
        assert_int_equal(events_drain(e, see, &s, &err), 0);
        assert_int_equal(s.cookie, 78);
        assert_true(s.reaped);
        assert_int_equal(pidfd_exit_status(fd, &status), 0);
        assert_true(WIFSIGNALED((int)status));
        assert_int_equal(WTERMSIG((int)status), SIGTERM);
    }
    assert_int_equal(events_add_pid(e, pid, 1), LT_GONE);
    fd_close(fd);
    events_close(e);
}

static int open_close(void *ctx)
{
    struct events *e;
    int r = events_open(&e, true, 0, NULL);

    (void)ctx;
    if (r == 0)
        events_close(e);
    return r;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(open_close, NULL);
}

HARNESS_MAIN(CASE(test_all_of_a_storm), CASE(test_overflow_is_told), CASE(test_threads_are_no_forks), CASE(test_pidfd),
             CASE(test_out_of_memory))
