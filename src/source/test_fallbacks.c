/* The sampler without what it likes best: no process connector, too small a buffer, no kernel log. These look inside. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "source/engine.h"
#include "source/test_witness.h"

/* As for those who may not have the connector. */
static struct witness *open_with_events(bool connector, int buffer)
{
    struct witness *t = witness_open(NULL);
    struct err err;

    events_close(t->w->events);
    t->w->events = NULL;
    assert_int_equal(events_open(&t->w->events, connector, buffer, &err), 0);
    t->w->stats.has_connector = events_connector(t->w->events);
    return t;
}

static void test_no_connector(void **state)
{
    struct witness *t = open_with_events(false, 0);
    struct puppet p = puppet_start();
    int64_t child = puppet_does(&p, 'f'), later;

    (void)state;
    witness_add_pid(t, p.pid);
    assert_int_equal(witness_notes(t, "permission"), 1);
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 3);
    assert_int_equal(witness_target(t, 1)[METRIC_FORKS], METRIC_NA);
    assert_int_equal(witness_target(t, 1)[METRIC_EXITS], METRIC_NA);
    later = puppet_does(&p, 't');
    witness_sweep(t);
    assert_non_null(witness_row(t, (pid_t)later));
    assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], 2);
    /* A zombie tells how it ended; so does one that is reaped already, where the kernel keeps it with the pidfd. */
    kill((pid_t)child, SIGTERM);
    assert_true(witness_sees_end(t, (pid_t)child));
    assert_int_equal(witness_life(t, (pid_t)child)->end.cause, LIFE_SIGNALED);
    assert_int_equal(witness_life(t, (pid_t)child)->end.signal, SIGTERM);
    witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_ZOMBIES], 1);
    assert_int_equal(puppet_does(&p, 'w'), 1);
    witness_sweep(t);
    assert_int_equal(witness_row(t, p.pid)[METRIC_ZOMBIES], 0);
    kill((pid_t)later, SIGUSR2);
    puppet_tell(&p, 'q');
    puppet_wait(&p);
    assert_true(witness_sees_end(t, p.pid));
    assert_int_equal(witness_life(t, p.pid)->end.cause, witness_stats(t).has_pidfd_exit ? LIFE_EXITED : LIFE_VANISHED);
    if (witness_stats(t).has_pidfd_exit)
        assert_int_equal(witness_life(t, p.pid)->end.exit_code, 7);
    assert_true(witness_sees_end(t, (pid_t)later));
    witness_sweep(t);
    assert_int_equal(t->sweep.n, 0);
    assert_int_equal(witness_notes(t, "permission"), 1);
    witness_close(t);
}

/* Events dropped: said once, nothing is taken for granted afterwards. */
static void test_overflow(void **state)
{
    struct witness *t = open_with_events(true, 4096);
    struct puppet p = puppet_start();
    int64_t child;

    (void)state;
    if (!witness_stats(t).has_connector) {
        witness_close(t);
        puppet_end(&p);
        skip();
    }
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(puppet_does(&p, 'F'), 2000);
        child = puppet_does(&p, 'f'); /* its fork is among those not told */
        witness_sweep(t);
        assert_true(witness_stats(t).overflows > (uint64_t)i);
        assert_non_null(witness_row(t, (pid_t)child));
        assert_int_equal(witness_row(t, p.pid)[METRIC_CHILDREN], i + 1);
        assert_int_equal(witness_row(t, p.pid)[METRIC_ZOMBIES], 0);
    }
    assert_int_equal(witness_notes(t, "overflow"), 1);
    assert_true(witness_stats(t).forks < 4002);
    witness_close(t);
    puppet_end(&p);
}

/* ---- killed for memory, and no log to say so -------------------------------------------------------------------------------- */

static char group[256];

static bool put(const char *file, const char *text)
{
    _cleanup_fd_ int fd = -1;
    char path[512];

    str_fmt(path, sizeof path, "%s/%s", group, file);
    fd = fd_open(AT_FDCWD, path, O_WRONLY, 0);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static int enter_group(void *ctx)
{
    (void)ctx;
    return put("cgroup.procs", "0") ? 0 : 1;
}

static bool make_group(void)
{
    static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        str_fmt(group, sizeof group, "%s/lowtide-fallback-%d", roots[i], (int)getpid());
        if (mkdir(group, 0755) < 0)
            continue;
        if (put("memory.limit_in_bytes", "20000000") || put("memory.max", "20000000")) {
            (void)(put("memory.memsw.limit_in_bytes", "20000000") || put("memory.swap.max", "0"));
            return true;
        }
        rmdir(group);
    }
    return false;
}

static void end_of(struct witness *t, struct puppet *p, enum life_end_cause expected)
{
    assert_true(witness_sees_end(t, p->pid));
    assert_int_equal(witness_life(t, p->pid)->end.cause, expected);
    assert_int_equal(witness_life(t, p->pid)->end.signal, SIGKILL);
    puppet_wait(p);
}

static void test_oom_by_counter(void **state)
{
    struct witness *t;
    struct puppet big, small;

    (void)state;
    if (!make_group()) {
        print_message("no memory cgroup can be made here\n");
        skip();
    }
    big = puppet_start_in(enter_group, NULL);
    small = puppet_start_in(enter_group, NULL);
    puppet_does(&big, 'w');
    puppet_does(&small, 'w');
    t = witness_open(NULL);
    oomlog_close(&t->w->oomlog);
    witness_add_pid(t, big.pid);
    witness_add_pid(t, small.pid);
    witness_sweep(t);
    for (int i = 0; i < 8; i++)
        puppet_tell(&big, 'm');
    end_of(t, &big, LIFE_OOM);
    /* The other one is killed by hand two sweeps later: the counter of the group has not moved since. */
    for (int i = 0; i < 3; i++)
        witness_sweep(t);
    assert_int_equal(witness_target(t, 2)[METRIC_OOM_KILLS], 1);
    kill(small.pid, SIGKILL);
    end_of(t, &small, LIFE_SIGNALED);
    witness_close(t);
    assert_int_equal(rmdir(group), 0);
}

#define MANY 20

/* Many die at once while the group's counter is ahead of a log that names none of them: the log is waited for as if one had. */
static void test_the_log_is_waited_for_once(void **state)
{
    struct witness *t;
    struct puppet p[MANY];
    int64_t begin;

    (void)state;
    if (!make_group()) {
        print_message("no memory cgroup can be made here\n");
        skip();
    }
    (void)(put("memory.memsw.limit_in_bytes", "1000000000") || put("memory.swap.max", "max")); /* this time nobody is to run out of it */
    assert_true(put("memory.limit_in_bytes", "1000000000") || put("memory.max", "1000000000"));
    t = witness_open(NULL);
    oomlog_close(&t->w->oomlog);
    t->w->oomlog.fd = fd_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);
    t->w->oomlog.told = true;
    for (int i = 0; i < MANY; i++) {
        p[i] = puppet_start_in(enter_group, NULL);
        puppet_does(&p[i], 'w');
        if (i == 0)
            witness_add_pid(t, p[0].pid);
        else
            assert_true(find_joins_root(t->w, 0, p[i].pid));
    }
    witness_sweep(t);
    ((struct target *)t->w->targets.items)->oom_seen = METRIC_NA - 1; /* the counter, 0, has moved since */
    begin = clock_mono_ns();
    for (int i = 0; i < MANY; i++)
        kill(p[i].pid, SIGKILL);
    for (int i = 0; i < MANY; i++) {
        assert_true(witness_sees_end(t, p[i].pid));
        assert_int_equal(witness_life(t, p[i].pid)->end.cause, LIFE_SIGNALED);
        puppet_wait(&p[i]);
    }
    assert_in_range(witness_stats(t).oom_waits, 1, 5 * (1 + (clock_mono_ns() - begin) / (100 * NS_PER_MS)));
    witness_close(t);
    assert_int_equal(rmdir(group), 0);
}

/* Walks of temp folders hold descriptors: they are spared for each folder that a target may see. */
static void test_spare_descriptors(void **state)
{
    static const char *const dirs[] = { "/nowhere/a", "/nowhere/b" };
    struct watch_config config = { .tmp_dirs = dirs, .ntmp = 2 };
    struct witness *t = witness_open(&config);
    struct puppet p[2] = { puppet_start(), puppet_start() };

    (void)state;
    assert_int_equal(t->w->fd_limit, t->w->fd_all - SPARE_FDS - 2 * TMPDIR_DEPTH);
    witness_add_pid(t, p[0].pid);
    assert_int_equal(witness_notes(t, "limit"), 0);
    t->w->fd_all = SPARE_FDS;
    witness_add_pid(t, p[1].pid);
    assert_int_equal(t->w->fd_limit, -4 * TMPDIR_DEPTH);
    assert_int_equal(witness_notes(t, "limit"), 1);
    witness_sweep(t); /* it works all the same */
    assert_non_null(witness_row(t, p[1].pid));
    witness_close(t);
    puppet_end(&p[0]);
    puppet_end(&p[1]);
}

#define FILES 200

/* A folder that one round does not suffice for has no count until it was walked whole: a part of it would look like growth. */
static void test_temp_files_are_counted_whole(void **state)
{
    char dir[256], path[300];
    const char *dirs[] = { dir };
    struct watch_config config = { .tmp_dirs = dirs, .ntmp = 1, .kinds_every = 1 };
    struct witness *t = witness_open(&config);
    struct puppet p = puppet_start();
    int64_t n = METRIC_NA;

    (void)state;
    str_copy(dir, sizeof dir, harness_tmpdir());
    for (int i = 0; i < FILES; i++) {
        str_fmt(path, sizeof path, "%s/%d", dir, i);
        close(fd_open(AT_FDCWD, path, O_CREAT | O_WRONLY, 0600));
    }
    tmpdirs_free(t->w->tmpdirs);
    assert_int_equal(tmpdirs_new(&t->w->tmpdirs, 1), 0); /* a nanosecond a round */
    witness_add_pid(t, p.pid);
    witness_sweep(t);
    assert_int_equal(witness_target(t, 1)[METRIC_TMPFILES], METRIC_NA);
    assert_int_equal(witness_target(t, 1)[METRIC_TMP_BYTES], METRIC_NA);
    for (int i = 0; i < FILES && n == METRIC_NA; i++) {
        witness_sweep(t);
        n = witness_target(t, 1)[METRIC_TMPFILES];
    }
    assert_int_equal(n, FILES);
    witness_close(t);
    puppet_end(&p);
}

/* What is not counted for good is not known, and said once. */
static void test_uncounted_is_said(void **state)
{
    static char names[TMPDIR_FOLDERS + 1][300];
    const char *dirs[TMPDIR_FOLDERS + 1];
    struct watch_config config = { .tmp_dirs = dirs, .ntmp = TMPDIR_FOLDERS + 1, .kinds_every = 1 };
    struct witness *t = witness_open(&config);
    struct puppet p = puppet_start();

    (void)state;
    for (int i = 0; i <= TMPDIR_FOLDERS; i++) {
        str_fmt(names[i], sizeof names[i], "%s/%d", harness_tmpdir(), i);
        assert_int_equal(mkdir(names[i], 0700), 0);
        dirs[i] = names[i];
    }
    witness_add_pid(t, p.pid);
    for (int i = 0; i < 3; i++) {
        witness_sweep(t);
        assert_int_equal(witness_target(t, 1)[METRIC_TMPFILES], METRIC_NA);
    }
    assert_int_equal(witness_notes(t, "limit"), 1);
    witness_close(t);
    puppet_end(&p);
}

HARNESS_MAIN(CASE(test_no_connector), CASE(test_overflow), CASE(test_oom_by_counter), CASE(test_the_log_is_waited_for_once),
             CASE(test_spare_descriptors), CASE(test_temp_files_are_counted_whole), CASE(test_uncounted_is_said))
