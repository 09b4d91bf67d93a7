/* Something to watch: one parent and N children that hold descriptors and wait.
 *
 *     bench-load PROCESSES FDS [WAKE_MS]  "ready PID" when all stand; then commands on stdin, one a line:
 *         storm N     fork N children that exit at once, and reap them        -> "storm N"
 *         exec N      the same, each running /bin/true                        -> "exec N"
 *     end of stdin: all children are killed and reaped.
 *
 * With WAKE_MS each child wakes so often and takes some pages or gives them back, so that no two samples of it are alike.
 * A child's descriptors: its three standard ones, then sockets, pipes, eventfds and files in turn up to FDS.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "argument.h"

#define CHILDREN_MAX 20000
#define FDS_MAX 1000000

static pid_t children[CHILDREN_MAX];

static void die(const char *what)
{
    fprintf(stderr, "bench-load: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void raise_fd_limit(int fds)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        die("getrlimit");
    if (r.rlim_cur >= (rlim_t)fds)
        return;
    r.rlim_cur = (rlim_t)fds;
    if (r.rlim_max < r.rlim_cur)
        r.rlim_max = r.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &r) < 0)
        die("setrlimit(RLIMIT_NOFILE)");
}

/* Opens one or two descriptors of the given kind, returns how many. */
static int open_kind(int kind)
{
    int pair[2];

    switch (kind % 4) {
    case 0:
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            die("socketpair");
        return 2;
    case 1:
        if (pipe2(pair, O_CLOEXEC) < 0)
            die("pipe2");
        return 2;
    case 2:
        if (eventfd(0, EFD_CLOEXEC) < 0)
            die("eventfd");
        return 1;
    default:
        if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0)
            die("/etc/passwd");
        return 1;
    }
}

static void hold_fds(int fds)
{
    int have = 4; /* the standard ones and `ready` */

    for (int kind = 0; have + 2 <= fds; kind++)
        have += open_kind(kind);
    if (have < fds)
        open_kind(3);
}

/* Between 0 and PAGES pages, a few more or fewer each time. */
static void breathe(int wake_ms)
{
    enum { PAGES = 256, PAGE = 4096, STEP = 16 };
    struct timespec wake = { wake_ms / 1000, wake_ms % 1000 * 1000000L };
    char *block = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned x = (unsigned)getpid();

    if (block == MAP_FAILED)
        die("mmap");
    for (;;) {
        nanosleep(&wake, NULL);
        x = x * 1664525u + 1013904223u;
        char *at = block + (x >> 8) % (PAGES - STEP) * PAGE;
        if (x >> 31)
            madvise(at, (x >> 24) % STEP * PAGE, MADV_DONTNEED);
        else
            memset(at, 1, (x >> 24) % STEP * PAGE);
    }
}

static pid_t start_child(int fds, int wake_ms, const int ready[2])
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ready[0]);
    hold_fds(fds);
    if (write(ready[1], "r", 1) != 1)
        _exit(1);
    if (wake_ms)
        breathe(wake_ms);
    for (;;)
        pause();
}

static void start_children(int n, int fds, int wake_ms)
{
    int ready[2];
    char c;

    for (int i = 0; i < n; i++) {
        if (pipe2(ready, O_CLOEXEC) < 0)
            die("pipe2");
        children[i] = start_child(fds, wake_ms, ready);
        close(ready[1]);
        if (read(ready[0], &c, 1) != 1) {
            fprintf(stderr, "bench-load: a child did not come up\n");
            _exit(1);
        }
        close(ready[0]);
    }
}

static void storm(int n, int run)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (!pid) {
            if (run)
                execl("/bin/true", "true", (char *)NULL);
            _exit(run);
        }
        if (waitpid(pid, NULL, 0) != pid)
            die("waitpid");
    }
    printf("%s %d\n", run ? "exec" : "storm", n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[64];
    int n, fds, wake_ms = 0, count;

    if (argc < 3 || argc > 4 || (n = argument_int(argv[1], 0, CHILDREN_MAX)) < 0 || (fds = argument_int(argv[2], 4, FDS_MAX)) < 0 ||
        (argc > 3 && (wake_ms = argument_int(argv[3], 1, 3600000)) < 0)) {
        fprintf(stderr, "usage: bench-load PROCESSES FDS [WAKE_MS]\n");
        return 2;
    }
    raise_fd_limit(fds);
    start_children(n, fds, wake_ms);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "storm %d", &count) == 1)
            storm(count, 0);
        else if (sscanf(line, "exec %d", &count) == 1)
            storm(count, 1);
    }
    for (int i = 0; i < n; i++)
        kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    return 0;
}
