/* Cost of one process's descriptors: the count and the kinds, Lowtide's way and the usual way.
 *
 *     bench-fds PID      one line of JSON: lists of CPU times in us, the kinds' stated 90 % error and how often it held
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argument.h"
#include "base/clock.h"
#include "base/fd.h"
#include "source/fdkinds.h"
#include "source/procfs.h"

#define REPEAT 21

static double times[REPEAT];

static void print_times(const char *name, size_t n)
{
    printf("\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        printf("%s%.3f", i ? "," : "", times[i]);
    printf("],");
}

/* The count as the sampler takes it; 100 at a time, since one is close to the clock's own cost. */
static void time_count(int pid_fd, bool by_size)
{
    int64_t count = 0;

    for (size_t i = 0; i < REPEAT; i++) {
        int64_t begin = clock_cpu_ns();
        for (int k = 0; k < 100; k++)
            procfs_fd_count(pid_fd, by_size, &count);
        times[i] = (double)(clock_cpu_ns() - begin) / 100e3;
    }
    print_times("count_us", REPEAT);
    printf("\"count\":%" PRId64 ",", count);
}

/* Walks the folder; with `links` reads every link too, into sockets, pipes, files, anon. */
static double walk(int pid_fd, int links, int64_t kinds[4])
{
    char name[64];
    int64_t begin = clock_cpu_ns();
    int fd = fd_open(pid_fd, "fd", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    memset(kinds, 0, 4 * sizeof kinds[0]);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (*e->d_name == '.')
            continue;
        ssize_t n = links ? readlinkat(fd, e->d_name, name, sizeof name - 1) : 0;
        if (n > 0)
            kinds[name[0] == '/' ? 2 : name[0] == 's' ? 0 : name[0] == 'p' && name[1] == 'i' && name[2] == 'p' ? 1 : 3]++;
    }
    if (dir)
        closedir(dir);
    return (double)(clock_cpu_ns() - begin) / 1e3;
}

/* How many of the four counts lie within the stated error. */
static int within(const struct fd_kinds *k, const int64_t real[4])
{
    int64_t off[4] = { k->sockets - real[0], k->pipes - real[1], k->files - real[2], k->anon - real[3] };
    int n = 0;

    for (int i = 0; i < 4; i++)
        n += llabs(off[i]) <= k->err;
    return n;
}

static int time_kinds(int pid_fd, bool by_size, const int64_t real[4])
{
    struct fdkinds *r;
    struct fd_kinds k = { 0 };
    int64_t count, err = 0;
    int hits = 0;

    if (procfs_fd_count(pid_fd, by_size, &count) < 0 || fdkinds_new(&r) < 0)
        return 3;
    for (size_t i = 0; i < REPEAT; i++) {
        int64_t begin = clock_cpu_ns();
        if (fdkinds_read(r, pid_fd, count, 0, &k, NULL, NULL, NULL) < 0)
            return 3;
        times[i] = (double)(clock_cpu_ns() - begin) / 1e3;
        if (k.err > err)
            err = k.err;
        hits += within(&k, real);
    }
    fdkinds_free(r);
    print_times("kinds_us", REPEAT);
    printf("\"kinds_err\":%" PRId64 ",\"kinds_within\":%.3f,", err, hits / (4.0 * REPEAT));
    return 0;
}

int main(int argc, char **argv)
{
    char path[32];
    int64_t kinds[4];
    int pid, proc_fd, pid_fd, status;
    bool by_size;

    if (argc != 2 || (pid = argument_int(argv[1], 1, INT32_MAX)) < 0) {
        fprintf(stderr, "usage: bench-fds PID\n");
        return 2;
    }
    snprintf(path, sizeof path, "/proc/%d", pid);
    pid_fd = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (pid_fd < 0) {
        fprintf(stderr, "bench-fds: %s: %s\n", path, strerror(-pid_fd));
        return 3;
    }
    proc_fd = fd_open(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);
    by_size = procfs_fd_size_works(proc_fd);
    printf("{\"by_size\":%s,", by_size ? "true" : "false");
    time_count(pid_fd, by_size);
    for (size_t i = 0; i < 5; i++)
        times[i] = walk(pid_fd, 0, kinds);
    print_times("readdir_us", 5);
    for (size_t i = 0; i < 5; i++)
        times[i] = walk(pid_fd, 1, kinds);
    print_times("readlink_us", 5);
    status = time_kinds(pid_fd, by_size, kinds);
    printf("\"pid\":%d}\n", pid);
    return status;
}
