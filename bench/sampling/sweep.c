/* CPU time of the sampler per process and sweep, and the least it could be.
 *
 *     sweep [-n PROCESSES] [-f FDS] [-s SWEEPS] [-w SWEEPS] [-i INTERVAL_MS] [-a | -p PID]
 *
 * Starts PROCESSES (1,000) sleeping processes with FDS (20) descriptors each under one parent, watches that parent, and
 * measures the process's own CPU clock over each of -s (60) sweeps, INTERVAL_MS (200) apart, after -w (90) to warm up: until
 * then what does not change is looked at more often. Everything of a sweep is in it: statm, CPU clock, stat and descriptor
 * count when due, kinds, sockets and status at their default rates, tree, target rows; not the histograms of paths and peers.
 *
 * The floor, half an interval after each sweep: for each process only the cheapest system calls that can tell what changes
 * from sweep to sweep, on descriptors held open: CPU clock and statm; with -a also fstat of its folders fd and task.
 *
 *   -a  every process wakes once per interval and writes to a page, so none can be skipped as idle
 *
 *   -p  starts nothing, watches the tree of PID instead
 *
 * Prints: us per process-sample: mean over all sweeps (the amortised cost), min, median, max of single sweeps; the floor.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "source/source.h"

#define MAX_SWEEPS 10000
#define MAX_PROCESSES 32768

struct options { int processes, fds, sweeps, warm_up, interval_ms, pid; bool active; };

static struct held { clockid_t clock; int statm, fd, task; } held[MAX_PROCESSES];
static int nheld;

static void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * NS_PER_MS }, NULL);
}

static _Noreturn void child(const struct options *o)
{
    static volatile char page[4096];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 3; fd < 1024; fd++)
        fd_close(fd);
    for (int i = 3; i < o->fds; i++)
        if (open("/dev/null", O_RDONLY) < 0)
            _exit(1);
    while (o->active) {
        page[0]++;
        sleep_ms(o->interval_ms);
    }
    for (;;)
        pause();
}

static _Noreturn void parent(const struct options *o, int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < o->processes; i++) {
        pid_t pid = fork();

        if (pid < 0)
            _exit(1);
        if (!pid)
            child(o);
    }
    sleep_ms(500);
    if (write(ready, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static pid_t start(const struct options *o)
{
    int ready[2];
    char byte;
    pid_t pid;

    if (pipe(ready) < 0 || (pid = fork()) < 0)
        return -1;
    if (!pid)
        parent(o, ready[1]);
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        return -1;
    close(ready[0]);
    return pid;
}

static void hold(int pid)
{
    struct held *h = &held[nheld];
    char path[64];

    if (pid <= 0 || nheld == MAX_PROCESSES || clock_getcpuclockid(pid, &h->clock))
        return;
    str_fmt(path, sizeof path, "/proc/%d/statm", pid);
    h->statm = open(path, O_RDONLY | O_CLOEXEC);
    str_fmt(path, sizeof path, "/proc/%d/fd", pid);
    h->fd = open(path, O_PATH | O_CLOEXEC);
    str_fmt(path, sizeof path, "/proc/%d/task", pid);
    h->task = open(path, O_PATH | O_CLOEXEC);
    nheld += h->task >= 0;
}

/* us per process: what no sampler by /proc can do without. */
static double floor_us(bool active)
{
    int64_t before = clock_cpu_ns();
    struct timespec ts;
    struct stat st;
    char text[256];

    for (int i = 0; i < nheld; i++) {
        clock_gettime(held[i].clock, &ts);
        if (active && (fstat(held[i].fd, &st) < 0 || fstat(held[i].task, &st) < 0))
            exit(3);
        if (pread(held[i].statm, text, sizeof text, 0) <= 0)
            exit(3);
    }
    return (double)(clock_cpu_ns() - before) / 1e3 / nheld;
}

static int begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    hold(info->key.pid);
    *ret_life_id = ++*(int64_t *)ctx;
    return 0;
}

static void end(void *ctx, int64_t life_id, const struct life_end *e, const int64_t last[METRIC_N])
{
    (void)ctx, (void)life_id, (void)e, (void)last;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static long rss_kb(void)
{
    char text[128];
    long pages = 0;

    if (fd_read_at(AT_FDCWD, "/proc/self/statm", text, sizeof text) > 0)
        sscanf(text, "%*d %ld", &pages);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double mean(const double *v, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += v[i] / n;
    return sum;
}

struct result { double us[MAX_SWEEPS], least[MAX_SWEEPS]; size_t rows; uint64_t allocs; long rss; };

static int run(const struct options *o, struct watch *w, struct result *res, struct err *err)
{
    struct sweep sweep = { 0 };
    uint64_t allocs = 0;

    for (int i = -o->warm_up; i < o->sweeps; i++) {
        int64_t before = clock_cpu_ns();
        uint64_t allocs_before = mem_total_allocs();
        int r = watch_sweep(w, clock_wall_ns(), &sweep, err);
        double us = (double)(clock_cpu_ns() - before) / 1e3 / (double)sweep.n;

        if (r < 0)
            return r;
        sleep_ms(o->interval_ms / 2);
        if (i >= 0) {
            res->us[i] = us;
            res->least[i] = floor_us(o->active);
            allocs += mem_total_allocs() - allocs_before;
        }
        sleep_ms(o->interval_ms - o->interval_ms / 2);
    }
    res->rows = sweep.n;
    res->allocs = allocs;
    res->rss = rss_kb();
    return 0;
}

static int measure(const struct options *o, pid_t root, struct err *err)
{
    static struct result res;
    int64_t ids = 0;
    struct watch_sink sink = { .ctx = &ids, .begin = begin, .end = end };
    struct watch_config config = { 0 };
    struct watch_stats stats;
    struct watch *w;
    char selector[32];
    int r = watch_open(&w, &config, &sink, err), n = o->sweeps;

    if (r < 0)
        return r;
    str_fmt(selector, sizeof selector, "pid:%d", (int)root);
    r = watch_add(w, "bench", selector, 1, err);
    if (r == 0)
        r = run(o, w, &res, err);
    watch_stats(w, &stats);
    watch_close(w);
    if (r < 0)
        return r;
    qsort(res.us, (size_t)n, sizeof res.us[0], by_value);
    printf("%s%s: %zu rows: mean %.2f, min %.2f, median %.2f, max %.2f us per process-sample; floor %.2f us; own RSS %ld kB; "
           "%llu allocations in the loop\n", o->active ? "active" : "idle", stats.has_connector ? "" : ", no connector", res.rows,
           mean(res.us, n), res.us[0], res.us[n / 2], res.us[n - 1], mean(res.least, n), res.rss, (unsigned long long)res.allocs);
    return 0;
}

/* For the descriptors of the floor, beside those the sampler keeps. */
static void raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void parse(int argc, char **argv, struct options *o)
{
    int c;

    while ((c = getopt(argc, argv, "n:f:s:w:i:p:a")) != -1) {
        int64_t v = 0;

        if (c == 'a')
            o->active = true;
        else if (c == '?' || units_int(optarg, strlen(optarg), &v) < 0 || v < 1 || v > INT32_MAX)
            exit(2);
        if (c == 'n')
            o->processes = (int)v;
        else if (c == 'f')
            o->fds = (int)v;
        else if (c == 's')
            o->sweeps = (int)MIN(v, (int64_t)MAX_SWEEPS);
        else if (c == 'i')
            o->interval_ms = (int)v;
        else if (c == 'p')
            o->pid = (int)v;
    }
}

int main(int argc, char **argv)
{
    struct options o = { .processes = 1000, .fds = 20, .sweeps = 60, .warm_up = 90, .interval_ms = 200 };
    struct err err;
    pid_t root;
    int r;

    parse(argc, argv, &o);
    raise_fd_limit();
    root = o.pid ? o.pid : start(&o);
    if (root < 0) {
        fprintf(stderr, "sweep: cannot start the processes\n");
        return 3;
    }
    r = measure(&o, root, &err);
    if (r < 0)
        fprintf(stderr, "sweep: %s\n", err.text);
    if (!o.pid) {
        kill(root, SIGKILL);
        waitpid(root, NULL, 0);
    }
    return r < 0 ? 3 : 0;
}
