#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/sockets.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static uint64_t inode_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

static int open_self(void)
{
    int fd = fd_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0);

    assert_true(fd >= 0);
    return fd;
}

/* A listener on the loopback, a free port. */
static int listen_on(int family, int protocol, uint16_t *ret_port)
{
    struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, protocol);
    socklen_t len = family == AF_INET ? sizeof a4 : sizeof a6;
    struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;

    if (fd < 0)
        return -1;
    assert_int_equal(bind(fd, a, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, a, &len), 0);
    *ret_port = ntohs(family == AF_INET ? a4.sin_port : a6.sin6_port);
    return fd;
}

static int connect_to(int family, uint16_t port)
{
    struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port) };
    struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) }, .sin_port = htons(port) };
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6,
                             family == AF_INET ? sizeof a4 : sizeof a6), 0);
    return fd;
}

static void put(struct vec *list, int fd)
{
    struct fd_socket s = { .inode = inode_of(fd), .fd = fd };

    assert_int_equal(vec_append(list, &s), 0);
}

static void close_all(struct vec *list)
{
    VEC_EACH(const struct fd_socket, s, list)
        close(s->fd);
    vec_release(list);
}

static void just_count(struct sockets *s, int dir, const struct fd_socket *list, size_t n, double scale, int64_t v[METRIC_N])
{
    struct socket_doubt doubt;

    sockets_count(s, dir, &(struct socket_list){ list, n, scale, false, INT64_MAX / 2 }, v, &doubt);
    assert_int_equal(doubt.err, 0);
}

static void count(struct sockets *s, int dir, const struct vec *list, double scale, int64_t v[METRIC_N])
{
    sockets_stale(s);
    assert_int_equal(sockets_want(s, dir, NULL), 0);
    just_count(s, dir, list->items, list->n, scale, v);
}

/* The peer closed its end: the state reaches CLOSE_WAIT at once on the loopback, but not within the same instant. */
static void wait_for_state(struct sockets *s, int dir, uint64_t inode, enum socket_state state)
{
    struct socket_row row;

    for (int i = 0; i < 1000; i++) {
        sockets_stale(s);
        assert_int_equal(sockets_want(s, dir, NULL), 0);
        if (sockets_find(s, inode, &row) && row.state == state)
            return;
        usleep(10000);
    }
    fail_msg("socket did not reach %s", socket_state_name(state));
}

static void check_family(int family)
{
    struct sockets *s;
    struct vec list;
    struct socket_row row;
    int64_t v[METRIC_N];
    uint16_t port = 0;
    int dir = open_self();

    vec_init(&list, sizeof(struct fd_socket), 100);
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    int listener = listen_on(family, 0, &port), client = connect_to(family, port);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC), fresh = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int left = connect_to(family, port), right = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(right);
    wait_for_state(s, dir, inode_of(left), SOCKET_CLOSE_WAIT);
    put(&list, listener);
    put(&list, client);
    put(&list, server);
    put(&list, fresh);
    put(&list, left);
    count(s, dir, &list, 1, v);
    assert_int_equal(v[METRIC_CONNECTIONS], 3);
    assert_int_equal(v[METRIC_TCP_ESTABLISHED], 2);
    assert_int_equal(v[METRIC_TCP_CLOSE_WAIT], 1);
    assert_int_equal(v[METRIC_TCP_LISTEN], 1);
    assert_int_equal(v[METRIC_TCP_OTHER], 0);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 1);
    assert_int_equal(v[METRIC_UNIX_SOCKETS], 0);
    count(s, dir, &list, 10, v); /* a sample of a tenth */
    assert_int_equal(v[METRIC_CONNECTIONS], 30);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 10);
    assert_true(sockets_find(s, inode_of(client), &row));
    assert_int_equal(row.peer_port, port);
    assert_true(sockets_find(s, inode_of(listener), &row));
    assert_int_equal(row.local_port, port);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

static void test_states_v4(void **state)
{
    (void)state;
    check_family(AF_INET);
}

static bool have_ipv6(void)
{
    uint16_t port;
    struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0;

    (void)port;
    fd_close(fd);
    return ok;
}

static void test_states_v6(void **state)
{
    (void)state;
    if (!have_ipv6())
        skip();
    check_family(AF_INET6);
}

/* Families that have no row in any table, and are no IP sockets, must not look like leaked ones. */
static void test_other_families_are_not_no_row(void **state)
{
    static const int other[][3] = { { AF_NETLINK, SOCK_RAW, 0 }, { AF_PACKET, SOCK_RAW, 0 }, { AF_VSOCK, SOCK_STREAM, 0 },
                                    { AF_INET, SOCK_RAW, IPPROTO_UDP } };
    struct sockets *s;
    struct vec list;
    int64_t v[METRIC_N];
    int dir = open_self(), pair[2];

    (void)state;
    vec_init(&list, sizeof(struct fd_socket), 100);
    for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
        int fd = socket(other[i][0], other[i][1] | SOCK_CLOEXEC, other[i][2]);
        if (fd >= 0)
            put(&list, fd);
    }
    assert_true(list.n > 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    put(&list, pair[0]);
    put(&list, pair[1]);
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    put(&list, udp); /* never bound: no row */
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    count(s, dir, &list, 1, v);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 1);
    assert_int_equal(v[METRIC_UNIX_SOCKETS], 2);
    assert_int_equal(v[METRIC_CONNECTIONS], 0);
    struct sockets_stats st;
    sockets_stats(s, &st);
    uint64_t asked = st.names_asked;
    count(s, dir, &list, 1, v);
    sockets_stats(s, &st);
    assert_int_equal(st.names_asked, asked); /* once per inode */
    sockets_free(s);
    close_all(&list);
    close(dir);
}

/* A socket closed between the reading of the list and the count is nothing; its number reused neither. */
static void test_closed_meanwhile(void **state)
{
    enum { NUMBER = 200 }; /* one that nothing else takes */
    struct sockets *s;
    struct vec list;
    int64_t v[METRIC_N];
    int dir = open_self(), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    vec_init(&list, sizeof(struct fd_socket), 100);
    assert_int_equal(dup3(fd, NUMBER, O_CLOEXEC), NUMBER);
    close(fd);
    put(&list, NUMBER);
    close(NUMBER);
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    count(s, dir, &list, 1, v);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 0);
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(dup3(other, NUMBER, O_CLOEXEC), NUMBER);
    close(other);
    count(s, dir, &list, 1, v);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 0);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

static void test_mptcp(void **state)
{
    struct sockets *s;
    struct vec list;
    int64_t v[METRIC_N];
    uint16_t port;
    int dir = open_self(), listener = listen_on(AF_INET, IPPROTO_MPTCP, &port);

    (void)state;
    if (listener < 0) {
        close(dir);
        skip();
    }
    vec_init(&list, sizeof(struct fd_socket), 100);
    int client = connect_to(AF_INET, port), server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    put(&list, listener);
    put(&list, client);
    put(&list, server);
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    count(s, dir, &list, 1, v);
    assert_int_equal(v[METRIC_TCP_LISTEN], 1);
    assert_int_equal(v[METRIC_TCP_ESTABLISHED], 2);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 0);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

struct texts {
    char all[2048];
    int64_t sum;
};

static int join(void *ctx, const char *key, int64_t n)
{
    struct texts *t = ctx;
    size_t at = strlen(t->all);

    str_fmt(t->all + at, sizeof t->all - at, "%s=%lld;", key, (long long)n);
    t->sum += n;
    return 0;
}

static void test_peers(void **state)
{
    struct sockets *s;
    struct tally *t;
    struct vec mine, theirs;
    struct texts texts = { "", 0 };
    char want[128];
    uint16_t port;
    int dir = open_self(), listener = listen_on(AF_INET, 0, &port);

    (void)state;
    vec_init(&mine, sizeof(struct fd_socket), 100);
    vec_init(&theirs, sizeof(struct fd_socket), 100);
    put(&theirs, listener);
    for (int i = 0; i < 3; i++) {
        put(&mine, connect_to(AF_INET, port));
        put(&theirs, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    }
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    assert_int_equal(tally_new(&t), 0);
    sockets_stale(s);
    assert_int_equal(sockets_want(s, dir, NULL), 0);
    sockets_peers(s, mine.items, mine.n, t); /* three connections to one server */
    assert_int_equal(tally_each(t, 10, join, &texts), 0);
    str_fmt(want, sizeof want, "127.0.0.1:%u ESTABLISHED=3;", port);
    assert_string_equal(texts.all, want);
    texts = (struct texts){ "", 0 };
    sockets_peers(s, theirs.items, theirs.n, t); /* three clients of one listener, folded */
    assert_int_equal(tally_each(t, 10, join, &texts), 0);
    assert_string_equal(texts.all, "127.0.0.1:* ESTABLISHED=3;");
    tally_free(t);
    sockets_free(s);
    close_all(&mine);
    close_all(&theirs);
    close(dir);
}

static void test_v4_mapped_peer_is_ipv4(void **state)
{
    struct sockets *s;
    struct tally *t;
    struct vec list;
    struct texts texts = { "", 0 };
    struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
    char want[128];
    uint16_t port;
    int dir = open_self();

    (void)state;
    if (!have_ipv6()) {
        close(dir);
        skip();
    }
    vec_init(&list, sizeof(struct fd_socket), 100);
    int listener = listen_on(AF_INET, 0, &port), fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.sin6_addr), 1);
    a.sin6_port = htons(port);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    put(&list, fd);
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    assert_int_equal(tally_new(&t), 0);
    sockets_stale(s);
    assert_int_equal(sockets_want(s, dir, NULL), 0);
    sockets_peers(s, list.items, list.n, t);
    assert_int_equal(tally_each(t, 10, join, &texts), 0);
    str_fmt(want, sizeof want, "127.0.0.1:%u ESTABLISHED=1;", port);
    assert_string_equal(texts.all, want);
    close(listener);
    tally_free(t);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

static void test_listeners(void **state)
{
    struct sockets *s;
    uint64_t inodes[4];
    uint16_t port;
    size_t n = 0;
    int listener = listen_on(AF_INET, 0, &port), client = connect_to(AF_INET, port);

    (void)state;
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    assert_int_equal(sockets_listeners(s, port, inodes, 4, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_true(inodes[0] == inode_of(listener));
    close(listener);
    close(client);
    assert_int_equal(sockets_listeners(s, port, inodes, 4, &n, NULL), 0);
    assert_int_equal(n, 0);
    sockets_free(s);
}

static void test_udp_listener(void **state)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof a;
    struct sockets *s;
    uint64_t inode;
    size_t n = 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    assert_int_equal(sockets_listeners(s, ntohs(a.sin_port), &inode, 1, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_true(inode == inode_of(fd));
    close(fd);
    sockets_free(s);
}

/* A child in its own network namespace with one listener; its port and inode come through a pipe. */
struct elsewhere {
    pid_t pid;
    int dir;
    uint64_t inode;
    int fd;
};

static void run_elsewhere(int out)
{
    struct ifreq ifr = { .ifr_name = "lo" };
    struct fd_socket told = { 0 };
    uint16_t port;
    int fd;

    if (unshare(CLONE_NEWNET) < 0)
        _exit(3);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifr.ifr_flags = IFF_UP;
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
        _exit(4);
    close(fd);
    fd = listen_on(AF_INET, 0, &port);
    told.inode = inode_of(fd);
    told.fd = fd;
    if (write(out, &told, sizeof told) != sizeof told)
        _exit(5);
    for (;;)
        pause();
}

static bool start_elsewhere(struct elsewhere *e)
{
    int p[2];
    char path[64];
    struct fd_socket told;

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    e->pid = fork();
    if (e->pid == 0)
        run_elsewhere(p[1]);
    close(p[1]);
    bool ok = read(p[0], &told, sizeof told) == sizeof told;
    close(p[0]);
    if (!ok) {
        waitpid(e->pid, NULL, 0);
        return false;
    }
    str_fmt(path, sizeof path, "/proc/%d", (int)e->pid);
    e->dir = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    e->inode = told.inode;
    e->fd = told.fd;
    return true;
}

static void stop_elsewhere(struct elsewhere *e)
{
    kill(e->pid, SIGKILL);
    waitpid(e->pid, NULL, 0);
    close(e->dir);
}

static void own_netns(char out[64])
{
    ssize_t n = readlink("/proc/thread-self/ns/net", out, 63);

    out[MAX(n, (ssize_t)0)] = '\0';
}

static void test_other_namespace(void **state)
{
    struct sockets *s;
    struct elsewhere e;
    struct socket_row row;
    struct sockets_stats st;
    char before[64], after[64];
    int64_t v[METRIC_N];
    int dir = open_self();

    (void)state;
    if (!start_elsewhere(&e)) {
        close(dir);
        skip();
    }
    own_netns(before);
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    sockets_stale(s);
    assert_int_equal(sockets_want(s, dir, NULL), 0);
    assert_false(sockets_find(s, e.inode, &row)); /* not of our namespace */
    assert_int_equal(sockets_want(s, e.dir, NULL), 0);
    own_netns(after);
    assert_string_equal(before, after);
    assert_true(sockets_find(s, e.inode, &row));
    assert_int_equal(row.state, SOCKET_LISTEN);
    struct fd_socket list = { .inode = e.inode, .fd = e.fd };
    just_count(s, e.dir, &list, 1, 1, v);
    assert_int_equal(v[METRIC_TCP_LISTEN], 1);
    sockets_stats(s, &st);
    assert_int_equal(st.namespaces, 2);
    sockets_stale(s);
    assert_int_equal(sockets_want(s, dir, NULL), 0);
    sockets_stale(s); /* nobody asked for the other one: it is let go */
    sockets_stats(s, &st);
    assert_int_equal(st.namespaces, 1);
    just_count(s, e.dir, &list, 1, 1, v);
    assert_int_equal(v[METRIC_TCP_LISTEN], METRIC_NA); /* not read in this sweep: not measured, not 0 */
    stop_elsewhere(&e);
    sockets_free(s);
    close(dir);
}

/* Without CAP_SYS_ADMIN the namespace cannot be entered: its text files are read instead. */
static void fallback_child(const struct elsewhere *e)
{
    struct sockets *s;
    struct socket_row row;
    struct sockets_stats st;
    /* Keep the right to look into the other process (CAP_SYS_PTRACE 19), drop the right to enter (CAP_SYS_ADMIN 21). */
    struct { uint32_t version; int pid; } header = { 0x20080522, 0 };
    struct { uint32_t effective, permitted, inheritable; } data[2] = { { 0 } };

    if (syscall(SYS_capget, &header, data) < 0)
        _exit(2);
    data[0].effective &= ~(1u << 21);
    data[0].permitted &= ~(1u << 21);
    if (syscall(SYS_capset, &header, data) < 0)
        _exit(3);
    if (sockets_new(&s, 0, NULL) || sockets_want(s, e->dir, NULL))
        _exit(4);
    sockets_stats(s, &st);
    if (!st.fallback)
        _exit(5);
    if (!sockets_find(s, e->inode, &row) || row.state != SOCKET_LISTEN || row.proto != SOCKET_TCP)
        _exit(6);
    sockets_free(s);
    _exit(0);
}

static void test_fallback_without_permission(void **state)
{
    struct elsewhere e;
    int status;

    (void)state;
    if (!start_elsewhere(&e))
        skip();
    pid_t pid = fork();
    if (pid == 0)
        fallback_child(&e);
    waitpid(pid, &status, 0);
    stop_elsewhere(&e);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_too_many_rows_is_not_a_count(void **state)
{
    struct sockets *s;
    struct vec list;
    struct err err = { 0 };
    int64_t v[METRIC_N];
    int dir = open_self();

    (void)state;
    vec_init(&list, sizeof(struct fd_socket), 100);
    for (int i = 0; i < 4; i++) {
        uint16_t port;
        put(&list, listen_on(AF_INET, 0, &port));
    }
    assert_int_equal(sockets_new(&s, 3, NULL), 0);
    assert_int_equal(sockets_want(s, dir, &err), LT_ELIMIT);
    assert_true(err.text[0] != '\0');
    just_count(s, dir, list.items, list.n, 1, v);
    assert_int_equal(v[METRIC_TCP_LISTEN], METRIC_NA);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], METRIC_NA);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

/* Names are asked for within a budget: the rest is taken to be alike, and it is said how far off that may be. */
static void test_names_have_a_budget(void **state)
{
    enum { N = 90 }; /* two in three are IP sockets */
    struct sockets *s;
    struct vec list;
    struct socket_doubt doubt;
    struct sockets_stats st;
    int64_t v[METRIC_N];
    int dir = open_self();

    (void)state;
    vec_init(&list, sizeof(struct fd_socket), N);
    for (int i = 0; i < N; i++)
        put(&list, i % 3 ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    assert_int_equal(sockets_want(s, dir, NULL), 0);
    sockets_count(s, dir, &(struct socket_list){ list.items, list.n, 2, false, 1 }, v, &doubt);
    sockets_stats(s, &st);
    assert_true(st.names_asked > 0 && st.names_asked < N / 2);
    assert_true(doubt.err > 0);
    assert_in_range(v[METRIC_SOCKETS_NO_ROW], MAX(2 * N * 2 / 3 - doubt.err, INT64_C(0)), 2 * N * 2 / 3 + doubt.err);
    just_count(s, dir, list.items, list.n, 2, v); /* time enough: exact */
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 2 * N * 2 / 3);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

/* Of a kept list, what is no more counts nowhere and is told, also when its name is known. */
static void test_kept_list(void **state)
{
    struct sockets *s;
    struct vec list;
    struct socket_doubt doubt;
    int64_t v[METRIC_N];
    int dir = open_self(), fds[4];

    (void)state;
    vec_init(&list, sizeof(struct fd_socket), ARRAY_SIZE(fds));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        put(&list, fds[i]);
    }
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    count(s, dir, &list, 1, v);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 4);
    close(fds[0]);
    sockets_count(s, dir, &(struct socket_list){ list.items, list.n, 1, true, 0 }, v, &doubt);
    assert_int_equal(doubt.gone, 1);
    assert_int_equal(v[METRIC_SOCKETS_NO_ROW], 3);
    sockets_free(s);
    vec_remove_unordered(&list, 0);
    close_all(&list);
    close(dir);
}

static void test_no_allocation_when_warm(void **state)
{
    struct sockets *s;
    struct vec list;
    int64_t v[METRIC_N];
    int dir = open_self();
    uint64_t before = 0;

    (void)state;
    vec_init(&list, sizeof(struct fd_socket), 100);
    put(&list, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    assert_int_equal(sockets_new(&s, 0, NULL), 0);
    for (int i = 0; i < 10; i++) {
        if (i == 2)
            before = mem_total_allocs();
        count(s, dir, &list, 1, v);
    }
    assert_int_equal(mem_total_allocs(), before);
    sockets_free(s);
    close_all(&list);
    close(dir);
}

static int make(void *ctx)
{
    struct sockets *s;
    int r = sockets_new(&s, 0, NULL);

    (void)ctx;
    if (r == 0)
        sockets_free(s);
    return r;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(make, NULL);
}

static void test_parse_text(void **state)
{
    static const char v4[] = "   1: 0100007F:1F90 0300000A:01BB 08 00000000:00000001 00:00000000 00000000  1000        0 4711 1 x";
    static const char v6[] = "   1: 00000000000000000000000001000000:0016 0000000000000000FFFF00000100007F:8AE6 01 00000000:00000000 "
                             "02:000A7D6B 00000000     0        0 12 2 x";
    static const char header[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
    struct socket_row row;
    uint64_t inode;

    (void)state;
    assert_true(sockets_parse_inet(v4, sizeof v4 - 1, &row, &inode));
    assert_int_equal(inode, 4711);
    assert_int_equal(row.state, SOCKET_CLOSE_WAIT);
    assert_int_equal(row.local_port, 8080);
    assert_int_equal(row.peer_port, 443);
    assert_int_equal(row.peer[11], 0xff);
    assert_int_equal(row.peer[12], 10);
    assert_int_equal(row.peer[15], 3);
    assert_true(sockets_parse_inet(v6, sizeof v6 - 1, &row, &inode));
    assert_int_equal(row.local_port, 22);
    assert_int_equal(row.peer[10], 0xff);
    assert_int_equal(row.peer[12], 127);
    assert_false(sockets_parse_inet(header, sizeof header - 1, &row, &inode));
    for (size_t cut = 0; cut < sizeof v4 - 1 - sizeof " 1 x" - 4; cut++) /* cut anywhere before the inode: no row */
        assert_false(sockets_parse_inet(v4, cut, &row, &inode));
    static const char un[] = "0000000000000000: 00000002 00000000 00010000 0001 01 21532 /run/x";
    assert_true(sockets_parse_unix(un, sizeof un - 1, &inode));
    assert_int_equal(inode, 21532);
    assert_false(sockets_parse_unix("Num       RefCount Protocol Flags    Type St Inode Path", 55, &inode));
}

HARNESS_MAIN(CASE(test_states_v4), CASE(test_states_v6), CASE(test_other_families_are_not_no_row), CASE(test_closed_meanwhile),
             CASE(test_mptcp), CASE(test_peers), CASE(test_v4_mapped_peer_is_ipv4), CASE(test_listeners),
             CASE(test_udp_listener), CASE(test_other_namespace), CASE(test_fallback_without_permission),
             CASE(test_too_many_rows_is_not_a_count), CASE(test_names_have_a_budget),
             CASE(test_kept_list), CASE(test_no_allocation_when_warm), CASE(test_out_of_memory),
             CASE(test_parse_text))
