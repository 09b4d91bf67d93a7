/* What the watch sees of forks, execs and exits, and how soon: a tree of known behaviour is watched through source/source.h.
 *
 *     bench-events STORM EXITS [CGROUP]     one line of JSON
 *
 * STORM forks and as many fork+execs at full speed are counted; then EXITS children end one at a time with status 7, and the
 * time from just before _exit to the watch's word of it is taken; with CGROUP (a folder with a memory limit set) twenty
 * children outgrow the limit, and the time from the end of waitpid to the watch's word of it is taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "argument.h"
#include "base/clock.h"
#include "source/source.h"

#define EXITS_MAX 1000
#define OOM_KILLS 20
#define STORM_MAX 1000000
#define CHILD_US 100000 /* a child that is to die lives so long: one sweep sees it */

static struct order { int storm, exits; const char *cgroup; } orders;

static struct shared { _Atomic int64_t died_ns; } *shared; /* of the tree and of us */

static struct seen {
    int64_t ids;
    unsigned ends;
    struct life_end last;
    int64_t last_ns;
} seen;

/* ---- the tree: commands on a pipe, one byte each, answered by the same byte ------------------------------------ */

static void tree_storm(int n, int run)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (!pid) {
            if (run)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

static void child_exit(void)
{
    usleep(CHILD_US);
    atomic_store(&shared->died_ns, clock_mono_ns());
    _exit(7);
}

static void child_grow(void)
{
    usleep(CHILD_US);
    for (;;) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            _exit(1);
        memset(p, 1, 1 << 20);
    }
}

static void tree_one(void (*child)(void))
{
    pid_t pid = fork();

    if (!pid)
        child();
    waitpid(pid, NULL, 0);
    if (child == child_grow)
        atomic_store(&shared->died_ns, clock_mono_ns());
}

static void join_cgroup(const char *cgroup)
{
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        fprintf(stderr, "bench-events: %s: %s\n", path, strerror(errno));
    close(fd);
}

static void tree_main(int commands, int answers)
{
    char c;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (orders.cgroup)
        join_cgroup(orders.cgroup);
    while (read(commands, &c, 1) == 1) {
        if (c == 's' || c == 'x')
            tree_storm(orders.storm, c == 'x');
        else
            tree_one(c == 'e' ? child_exit : child_grow);
        if (write(answers, &c, 1) != 1)
            break;
    }
    _exit(0);
}

/* ---- the watch ------------------------------------------------------------------------------------------------ */

static int on_begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    (void)ctx;
    (void)info;
    *ret_life_id = ++seen.ids;
    return 0;
}

static void on_end(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N])
{
    (void)ctx;
    (void)life_id;
    (void)last;
    seen.ends++;
    seen.last = *end;
    seen.last_ns = clock_mono_ns();
}

static void on_note(void *ctx, const char *target, const char *kind, const char *text)
{
    (void)ctx;
    fprintf(stderr, "bench-events: %s: %s: %s\n", target, kind, text);
}

static void on_histogram(void *ctx, int64_t life_id, const char *what, const char *key, int64_t count)
{
    (void)ctx;
    (void)life_id;
    (void)what;
    (void)key;
    (void)count;
}

/* Handles events until the answer has come and nothing more follows for quiet_ms, or until timeout_ms. */
static void handle_events(struct watch *w, int answers, int quiet_ms, int timeout_ms)
{
    struct pollfd fds[2] = { { watch_event_fd(w), POLLIN, 0 }, { answers, POLLIN, 0 } };
    int64_t until = clock_mono_ns() + timeout_ms * NS_PER_MS;
    bool answered = false;
    char c;

    while (clock_mono_ns() < until) {
        int n = poll(fds, answered ? 1 : 2, answered ? quiet_ms : 100);
        if (n == 0 && answered)
            return;
        if (fds[0].revents & POLLIN)
            watch_events(w, NULL);
        if (!answered && (fds[1].revents & POLLIN))
            answered = read(answers, &c, 1) == 1;
    }
}

static void order(int commands, char c)
{
    if (write(commands, &c, 1) != 1)
        exit(3);
}

static void storm(struct watch *w, int commands, int answers, char c, int made)
{
    struct watch_stats a, b;

    watch_stats(w, &a);
    order(commands, c);
    handle_events(w, answers, 200, 60000);
    watch_stats(w, &b);
    printf("\"%s\":{\"made\":%d,\"forks\":%" PRIu64 ",\"execs\":%" PRIu64 ",\"exits\":%" PRIu64 ",\"overflows\":%" PRIu64 "},",
           c == 's' ? "storm" : "exec_storm", made, b.forks - a.forks, b.execs - a.execs, b.exits - a.exits,
           b.overflows - a.overflows);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* n deaths one at a time; how late the word of each comes, and whether it is the right word. */
static void deaths(struct watch *w, int commands, int answers, char c, int n)
{
    static double late_ms[EXITS_MAX];
    struct sweep sweep;
    int seen_n = 0, right = 0;

    for (int i = 0; i < n; i++) {
        unsigned before = seen.ends;
        order(commands, c);
        usleep(CHILD_US / 2);
        watch_events(w, NULL);
        watch_sweep(w, clock_wall_ns(), &sweep, NULL);
        handle_events(w, answers, 150, 5000);
        if (seen.ends == before)
            continue;
        late_ms[seen_n++] = (double)(seen.last_ns - atomic_load(&shared->died_ns)) / (double)NS_PER_MS;
        right += c == 'e' ? seen.last.cause == LIFE_EXITED && seen.last.exit_code == 7 : seen.last.cause == LIFE_OOM;
    }
    qsort(late_ms, (size_t)seen_n, sizeof late_ms[0], by_value);
    printf("\"%s\":{\"made\":%d,\"seen\":%d,\"right\":%d", c == 'e' ? "exit" : "oom", n, seen_n, right);
    if (seen_n)
        printf(",\"min_ms\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f", late_ms[0], late_ms[seen_n / 2],
               late_ms[(99 * seen_n + 99) / 100 - 1], late_ms[seen_n - 1]);
    printf("},");
}

static int measure(struct watch *w, pid_t tree, int commands, int answers)
{
    struct err err = { 0 };
    struct sweep sweep;
    struct watch_stats stats;
    char selector[32];

    snprintf(selector, sizeof selector, "pid:%d", (int)tree);
    if (watch_add(w, "tree", selector, 1, &err) < 0 || watch_sweep(w, clock_wall_ns(), &sweep, &err) < 0) {
        fprintf(stderr, "bench-events: %s\n", err.text);
        return 3;
    }
    if (watch_event_fd(w) < 0) {
        fprintf(stderr, "bench-events: no events here: CAP_NET_ADMIN or pidfd is needed\n");
        return 3;
    }
    printf("{");
    storm(w, commands, answers, 's', orders.storm);
    storm(w, commands, answers, 'x', orders.storm);
    deaths(w, commands, answers, 'e', orders.exits);
    if (orders.cgroup)
        deaths(w, commands, answers, 'g', OOM_KILLS);
    watch_stats(w, &stats);
    printf("\"connector\":%s}\n", stats.has_connector ? "true" : "false");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct watch_sink sink = { NULL, on_begin, on_end, on_note, on_histogram };
    struct watch_config config = { .proc_root = "/proc", .cgroup_root = "/sys/fs/cgroup" };
    struct err err = { 0 };
    struct watch *w;
    int commands[2], answers[2], status;
    pid_t tree;

    if (argc < 3 || argc > 4 || (orders.storm = argument_int(argv[1], 1, STORM_MAX)) < 0 ||
        (orders.exits = argument_int(argv[2], 1, EXITS_MAX)) < 0) {
        fprintf(stderr, "usage: bench-events STORM EXITS [CGROUP]\n");
        return 2;
    }
    orders.cgroup = argc > 3 ? argv[3] : NULL;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe2(commands, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
        return 3;
    tree = fork();
    if (!tree) {
        close(commands[1]);
        close(answers[0]);
        tree_main(commands[0], answers[1]);
    }
    usleep(100000);
    if (watch_open(&w, &config, &sink, &err) < 0) {
        fprintf(stderr, "bench-events: %s\n", err.text);
        return 3;
    }
    status = measure(w, tree, commands[1], answers[0]);
    watch_close(w);
    kill(tree, SIGKILL);
    waitpid(tree, NULL, 0);
    return status;
}
