#include "source/test_witness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the witness ------------------------------------------------------------------------------------------------- */

static int begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    struct witness *t = ctx;

    if (t->nlives == WITNESS_LIVES)
        return LT_ELIMIT;
    t->lives[t->nlives++].info = *info;
    *ret_life_id = (int64_t)t->nlives;
    return 0;
}

static void end(void *ctx, int64_t life_id, const struct life_end *e, const int64_t last[METRIC_N])
{
    struct witness *t = ctx;
    struct witness_life *l;

    assert_in_range(life_id, 1, t->nlives);
    l = &t->lives[life_id - 1];
    l->ends++;
    l->end = *e;
    l->told_mono_ns = clock_mono_ns();
    memcpy(l->last, last, sizeof l->last);
}

static void note(void *ctx, const char *target, const char *kind, const char *text)
{
    struct witness *t = ctx;

    if (t->nnotes == WITNESS_NOTES)
        return;
    str_copy(t->notes[t->nnotes].target, sizeof t->notes[0].target, target);
    str_copy(t->notes[t->nnotes].kind, sizeof t->notes[0].kind, kind);
    str_copy(t->notes[t->nnotes].text, sizeof t->notes[0].text, text);
    t->nnotes++;
}

static void histogram(void *ctx, int64_t life_id, const char *what, const char *key, int64_t count)
{
    struct witness *t = ctx;
    size_t at = strlen(t->paths);

    (void)life_id;
    t->nhistogram++;
    str_fmt(t->paths + at, sizeof t->paths - at, "%s %s %lld\n", what, key, (long long)count);
}

struct witness *witness_open(const struct watch_config *config)
{
    struct watch_config defaults = { 0 };
    struct witness *t = mem_zalloc(1, sizeof *t);
    struct watch_sink sink = { t, begin, end, note, histogram };
    struct err err;

    assert_non_null(t);
    t->lives = mem_zalloc(WITNESS_LIVES, sizeof *t->lives);
    assert_non_null(t->lives);
    if (watch_open(&t->w, config ? config : &defaults, &sink, &err) < 0)
        fail_msg("%s", err.text);
    return t;
}

void witness_add(struct witness *t, const char *selector)
{
    struct watch_stats stats = witness_stats(t);
    struct err err;
    char name[32];

    str_fmt(name, sizeof name, "t%zu", stats.targets + 1);
    if (watch_add(t->w, name, selector, (int64_t)stats.targets + 1, &err) < 0)
        fail_msg("%s", err.text);
}

void witness_add_pid(struct witness *t, pid_t pid)
{
    char selector[32];

    str_fmt(selector, sizeof selector, "pid:%d", (int)pid);
    witness_add(t, selector);
}

void witness_sweep(struct witness *t)
{
    struct err err;

    if (watch_sweep(t->w, clock_wall_ns(), &t->sweep, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 1; i < t->sweep.n; i++)
        assert_true(t->sweep.rows[i - 1].life_id < t->sweep.rows[i].life_id);
}

void witness_events(struct witness *t)
{
    struct err err;

    if (watch_events(t->w, &err) < 0)
        fail_msg("%s", err.text);
}

void witness_stop(struct witness *t)
{
    watch_close(t->w);
    t->w = NULL;
    for (size_t i = 0; i < t->nlives; i++)
        assert_int_equal(t->lives[i].ends, 1);
}

void witness_close(struct witness *t)
{
    if (t->w)
        witness_stop(t);
    mem_free(t->lives);
    mem_free(t);
}

static const int64_t *row_of(const struct witness *t, const struct witness_life *l)
{
    for (size_t i = 0; l && i < t->sweep.n; i++)
        if (t->sweep.rows[i].life_id == l - t->lives + 1)
            return t->sweep.rows[i].v;
    return NULL;
}

const int64_t *witness_row(const struct witness *t, pid_t pid)
{
    return row_of(t, witness_life(t, pid));
}

const int64_t *witness_target(const struct witness *t, int64_t target_id)
{
    for (size_t i = 0; i < t->nlives; i++)
        if (t->lives[i].info.key.pid == 0 && t->lives[i].info.target_id == target_id)
            return row_of(t, &t->lives[i]);
    return NULL;
}

struct witness_life *witness_life(const struct witness *t, pid_t pid)
{
    for (size_t i = t->nlives; i-- > 0;)
        if (t->lives[i].info.key.pid == pid)
            return &t->lives[i];
    return NULL;
}

int witness_notes(const struct witness *t, const char *kind)
{
    int n = 0;

    for (size_t i = 0; i < t->nnotes; i++)
        n += str_eq(t->notes[i].kind, kind);
    return n;
}

bool witness_noted(const struct witness *t, const char *kind)
{
    return witness_notes(t, kind) > 0;
}

bool witness_sees_end(struct witness *t, pid_t pid)
{
    int64_t until = clock_mono_ns() + 20 * NS_PER_S;

    while (clock_mono_ns() < until) {
        struct pollfd p = { watch_event_fd(t->w), POLLIN, 0 };
        const struct witness_life *l = witness_life(t, pid);

        if (l && l->ends)
            return true;
        poll(&p, 1, 1000);
        witness_events(t);
    }
    return false;
}

struct watch_stats witness_stats(const struct witness *t)
{
    struct watch_stats s;

    watch_stats(t->w, &s);
    return s;
}

/* ---- the puppet -------------------------------------------------------------------------------------------------- */

/* Those that outlive their parent on purpose end by themselves should the test die before it kills them. */
static _Noreturn void sleep_alone(void)
{
    alarm(100);
    for (;;)
        pause();
}

static _Noreturn void sleep_for_good(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sleep_alone();
}

static pid_t fork_child(bool session, bool exits)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    if (session)
        setsid();
    if (exits)
        _exit(3);
    sleep_for_good();
}

static void *fork_in_thread(void *ret)
{
    /* No PDEATHSIG: it would come when this thread ends. The test kills it. */
    pid_t pid = fork();

    if (!pid)
        sleep_alone();
    *(int64_t *)ret = pid;
    return NULL;
}

static int64_t in_thread(void)
{
    int64_t pid = -1;
    pthread_t thread;

    if (pthread_create(&thread, NULL, fork_in_thread, &pid) == 0)
        pthread_join(thread, NULL);
    return pid;
}

static int64_t fork_twice(bool session)
{
    int64_t pid = -1;
    pid_t between;
    int p[2];

    if (pipe(p) < 0)
        return -1;
    between = fork();
    if (!between) {
        if (session)
            setsid();
        pid = fork();
        if (!pid)
            sleep_alone();
        _exit(write(p[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
    }
    waitpid(between, NULL, 0);
    if (read(p[0], &pid, sizeof pid) != sizeof pid)
        pid = -1;
    close(p[0]);
    close(p[1]);
    return pid;
}

static int64_t storm(void)
{
    int64_t n = 0;

    for (int i = 0; i < 2000; i++) {
        pid_t pid = fork();

        if (!pid)
            _exit(3);
        n += pid > 0 && waitpid(pid, NULL, 0) == pid;
    }
    return n;
}

static int64_t listen_on_port(uint16_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof a;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
        listen(fd, 8) < 0 || getsockname(fd, (struct sockaddr *)&a, &size) < 0)
        return -errno;
    return ntohs(a.sin_port);
}

/* SO_REUSEPORT workers of a master that holds no socket. */
static int64_t workers(void)
{
    int64_t port = 0;
    int p[2];

    if (pipe(p) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();

        if (!pid) {
            port = listen_on_port((uint16_t)port);
            if (write(p[1], &port, sizeof port) == sizeof port)
                sleep_for_good();
            _exit(1);
        }
        if (pid < 0 || read(p[0], &port, sizeof port) != sizeof port)
            return -1;
    }
    close(p[0]);
    close(p[1]);
    return port;
}

static void *stay(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int64_t touch(void)
{
    static char *block;
    size_t size = 8 << 20;

    block = mem_alloc(size);
    if (block)
        memset(block, 1, size);
    return block ? (int64_t)size : -1;
}

static int64_t reap(void)
{
    int64_t n = 0;

    while (waitpid(-1, NULL, WNOHANG) > 0)
        n++;
    return n;
}

static int64_t open_many(bool sockets)
{
    int64_t n = 0;

    for (int i = 0; i < (sockets ? 5 : 30); i++)
        n += (sockets ? socket(AF_UNIX, SOCK_STREAM, 0) : open("/dev/null", O_RDONLY)) >= 0;
    return n;
}

static int one_file = -1;

static int64_t open_one(void)
{
    one_file = open("/dev/null", O_RDONLY);
    return one_file >= 0 ? 0 : -1;
}

static int64_t exchange_one(void)
{
    close(one_file);
    return eventfd(0, 0) == one_file ? 0 : -1;
}

static int client = -1, server = -1;

static int64_t connect_itself(void)
{
    static struct sockaddr_in a = { .sin_family = AF_INET };
    static int listener = -1;
    socklen_t size = sizeof a;

    if (listener < 0) {
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 8) < 0 ||
            getsockname(listener, (struct sockaddr *)&a, &size) < 0)
            return -errno;
    } else {
        close(client);
        close(server);
    }
    client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client, (struct sockaddr *)&a, sizeof a) < 0 || (server = accept(listener, NULL, NULL)) < 0)
        return -errno;
    return 0;
}

static int64_t start_thread(void)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, stay, NULL);
}

static int64_t act(char what)
{
    switch (what) {
    case 'i': return start_thread();
    case 'k': return open_one();
    case 'x': return exchange_one();
    case 'c': return connect_itself();
    case 'h': return shutdown(server, SHUT_WR);
    case 'f': return fork_child(false, false);
    case 'S': return fork_child(true, false);
    case 'z': return fork_child(false, true);
    case 't': return in_thread();
    case 'd': return fork_twice(false);
    case 'D': return fork_twice(true);
    case 'o': return open_many(false);
    case 's': return open_many(true);
    case 'w': return reap();
    case 'F': return storm();
    case 'm': return touch();
    case 'l': return listen_on_port(0);
    case 'L': return workers();
    case 'q': _exit(7);
    default: return -1;
    }
}

_Noreturn void puppet_run(int in, int out)
{
    int64_t answer;
    char what;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(in, &what, 1) == 1) {
        pthread_t thread;

        if (what == 'T') {
            answer = pthread_create(&thread, NULL, stay, NULL);
            if (write(out, &answer, sizeof answer) == sizeof answer)
                syscall(SYS_exit, 0);
        }
        if (what == 'p') { /* the port follows */
            uint16_t port;

            answer = read(in, &port, sizeof port) == sizeof port ? listen_on_port(port) : -1;
        } else {
            answer = act(what);
        }
        if (write(out, &answer, sizeof answer) != sizeof answer)
            break;
    }
    _exit(0);
}

struct puppet puppet_start_in(int (*enter)(void *ctx), void *ctx)
{
    struct puppet p;
    int to[2], from[2];

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    p.pid = fork();
    assert_true(p.pid >= 0);
    if (!p.pid) {
        int r = enter ? enter(ctx) : 0;

        /* What the test has open is not its: it starts with 0, 1, 2, 3 and 4. */
        if (dup2(to[0], 100) < 0 || dup2(from[1], 101) < 0 || dup2(100, 3) < 0 || dup2(101, 4) < 0 ||
            close_range(5, ~0u, 0) < 0)
            _exit(1);
        to[0] = 3;
        from[1] = 4;
        if (r)
            _exit(r);
        puppet_run(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    p.to = to[1];
    p.from = from[0];
    return p;
}

struct puppet puppet_start(void)
{
    return puppet_start_in(NULL, NULL);
}

void puppet_tell(const struct puppet *p, char what)
{
    assert_int_equal(write(p->to, &what, 1), 1);
}

int64_t puppet_answer(const struct puppet *p)
{
    int64_t answer;

    return read(p->from, &answer, sizeof answer) == sizeof answer ? answer : -1;
}

int64_t puppet_does(const struct puppet *p, char what)
{
    puppet_tell(p, what);
    return puppet_answer(p);
}

int puppet_wait(struct puppet *p)
{
    int status = 0;

    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(p->to);
    close(p->from);
    return status;
}

int puppet_end(struct puppet *p)
{
    kill(p->pid, SIGKILL);
    return puppet_wait(p);
}

/* A zombie does not: not every pid 1 (of a container) waits for what it is given. */
static bool runs(pid_t pid)
{
    char path[64], text[512];

    str_fmt(path, sizeof path, "/proc/%d/stat", (int)pid);
    return fd_read_at(AT_FDCWD, path, text, sizeof text) > 0 && !strstr(text, ") Z ");
}

void kill_and_see_gone(pid_t pid)
{
    assert_true(pid > 0);
    kill(pid, SIGKILL);
    for (int i = 0; i < 20000 && runs(pid); i++)
        nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
    assert_false(runs(pid));
}
