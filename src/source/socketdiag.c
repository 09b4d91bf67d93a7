#include "source/socketdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "source/lines.h"
#include "source/namespace.h"

/* Sockets in TIME_WAIT, and requests not yet accepted (NEW_SYN_RECV 12), have no descriptor. */
#define STATES_WITH_FD (~((1u << SOCKET_TIME_WAIT) | (1u << 12)))
#define STATES_LISTEN (1u << SOCKET_LISTEN)
#define RECV_TIMEOUT_S 5

/* What there is to dump. */
static const struct table {
    uint8_t family, protocol;
    enum socket_proto proto;
    const char *file;        /* below /proc/PID */
} tables[] = {
    { AF_INET, IPPROTO_TCP, SOCKET_TCP, "net/tcp" },   { AF_INET6, IPPROTO_TCP, SOCKET_TCP, "net/tcp6" },
    { AF_INET, IPPROTO_UDP, SOCKET_UDP, "net/udp" },   { AF_INET6, IPPROTO_UDP, SOCKET_UDP, "net/udp6" },
    { AF_UNIX, 0, SOCKET_UNIX, "net/unix" },
};

/* One dump under way. */
struct pass {
    const struct table *t;
    const struct socketdiag_sink *sink;
    int stopped;             /* what the sink returned */
};

/* ---- netlink ---------------------------------------------------------------------------------------------------- */

static int open_here(void *ctx)
{
    struct socketdiag *d = ctx;
    struct timeval patience = { .tv_sec = RECV_TIMEOUT_S };

    d->nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
    if (!d->nl)
        return LT_EUNSUPPORTED;
    if (mnl_socket_bind(d->nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
        setsockopt(mnl_socket_get_fd(d->nl), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0) {
        socketdiag_close(d);
        return LT_EUNSUPPORTED;
    }
    return 0;
}

void socketdiag_close(struct socketdiag *d)
{
    if (d->nl)
        mnl_socket_close(d->nl);
    d->nl = NULL;
}

static void put_address(uint8_t out[16], uint8_t family, const uint32_t src[4])
{
    if (family == AF_INET6) {
        memcpy(out, src, 16);
        return;
    }
    memset(out, 0, 10);
    out[10] = out[11] = 0xff;
    memcpy(out + 12, src, 4);
}

static int on_inet(const struct nlmsghdr *h, void *ctx)
{
    struct pass *p = ctx;

    if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || mnl_nlmsg_get_payload_len(h) < sizeof(struct inet_diag_msg))
        return MNL_CB_OK;
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(h);
    if (m->idiag_inode == 0)
        return MNL_CB_OK;
    struct socket_row row = { .proto = p->t->proto, .state = (enum socket_state)m->idiag_state,
                              .peer_port = ntohs(m->id.idiag_dport), .local_port = ntohs(m->id.idiag_sport) };
    if (row.peer_port)
        put_address(row.peer, m->idiag_family, m->id.idiag_dst);
    p->stopped = p->sink->fn(p->sink->ctx, m->idiag_inode, &row);
    return p->stopped ? MNL_CB_STOP : MNL_CB_OK;
}

static int on_unix(const struct nlmsghdr *h, void *ctx)
{
    struct pass *p = ctx;

    if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || mnl_nlmsg_get_payload_len(h) < sizeof(struct unix_diag_msg))
        return MNL_CB_OK;
    const struct unix_diag_msg *m = mnl_nlmsg_get_payload(h);
    if (m->udiag_ino == 0)
        return MNL_CB_OK;
    struct socket_row row = { .proto = SOCKET_UNIX, .state = (enum socket_state)m->udiag_state };
    p->stopped = p->sink->fn(p->sink->ctx, m->udiag_ino, &row);
    return p->stopped ? MNL_CB_STOP : MNL_CB_OK;
}

static void put_request(struct nlmsghdr *h, const struct table *t, uint32_t states, uint32_t seq)
{
    h->nlmsg_type = SOCK_DIAG_BY_FAMILY;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    h->nlmsg_seq = seq;
    if (t->family == AF_UNIX) {
        struct unix_diag_req *u = mnl_nlmsg_put_extra_header(h, sizeof *u);
        u->sdiag_family = AF_UNIX;
        u->udiag_states = UINT32_MAX;
        return;
    }
    struct inet_diag_req_v2 *q = mnl_nlmsg_put_extra_header(h, sizeof *q);
    q->sdiag_family = t->family;
    q->sdiag_protocol = t->protocol;
    q->idiag_states = states;
}

/* One table by netlink: 0, what the sink returned (in p->stopped), or -errno. */
static int dump_netlink(struct socketdiag *d, struct pass *p, uint32_t states)
{
    char request[256] __attribute__((aligned(8)));
    struct nlmsghdr *h = mnl_nlmsg_put_header(request);

    put_request(h, p->t, states, ++d->seq);
    if (mnl_socket_sendto(d->nl, h, h->nlmsg_len) < 0)
        return -errno;
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(d->nl, p->sink->buffer, SOCKETDIAG_BUFFER);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        int r = mnl_cb_run(p->sink->buffer, (size_t)n, d->seq, mnl_socket_get_portid(d->nl),
                           p->t->family == AF_UNIX ? on_unix : on_inet, p);
        if (r < 0)
            return -errno;
        if (r == MNL_CB_STOP)
            return 0;
    }
}

/* ---- text of /proc/PID/net -------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* Moves *p behind the next blank-separated word; false at the end. */
static bool next_word(const char **p, const char *end, const char **ret_word, size_t *ret_len)
{
    const char *from = skip_blanks(*p, end), *to = from;

    while (to < end && *to != ' ' && *to != '\n')
        to++;
    *p = to;
    *ret_word = from;
    *ret_len = (size_t)(to - from);
    return to > from;
}

static bool parse_number(const char *s, size_t len, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;

    if (len == 0 || len > 16)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
        if (d >= base)
            return false;
        v = v * base + d;
    }
    *ret = v;
    return true;
}

/* "0100007F:1F90" or 32 digits for IPv6: each 8 digits are one 32-bit word as the kernel holds it in memory. */
static bool parse_address(const char *s, size_t len, uint8_t out[16], uint16_t *ret_port)
{
    uint64_t v, port;
    size_t words = len == 13 ? 1 : len == 37 ? 4 : 0;
    uint32_t addr[4] = { 0 };

    if (!words || s[words * 8] != ':' || !parse_number(s + words * 8 + 1, 4, 16, &port))
        return false;
    for (size_t i = 0; i < words; i++) {
        if (!parse_number(s + i * 8, 8, 16, &v))
            return false;
        addr[i] = (uint32_t)v;
    }
    put_address(out, words == 4 ? AF_INET6 : AF_INET, addr);
    *ret_port = (uint16_t)port;
    return true;
}

/* "  0: LOCAL:PORT REMOTE:PORT STATE TX:RX TR:WHEN RETRANSMITS UID TIMEOUT INODE ..." */
bool sockets_parse_inet(const char *line, size_t len, struct socket_row *ret, uint64_t *ret_inode)
{
    struct socket_row row = { 0 };
    const char *p = line, *end = line + len, *word;
    uint64_t state = 0, inode = 0;
    uint8_t local[16];
    size_t n;

    for (int i = 0; i <= 9; i++) {
        if (!next_word(&p, end, &word, &n))
            return false;
        if ((i == 0 && word[n - 1] != ':') || (i == 1 && !parse_address(word, n, local, &row.local_port)) ||
            (i == 2 && !parse_address(word, n, row.peer, &row.peer_port)) || (i == 3 && !parse_number(word, n, 16, &state)) ||
            (i == 9 && !parse_number(word, n, 10, &inode)))
            return false;
    }
    if (state < SOCKET_ESTABLISHED || state > 12)
        return false;
    row.state = (enum socket_state)state;
    if (!row.peer_port)
        memset(row.peer, 0, sizeof row.peer);
    *ret = row;
    *ret_inode = inode;
    return true;
}

/* "ADDRESS: REFS PROTOCOL FLAGS TYPE STATE INODE [PATH]" */
bool sockets_parse_unix(const char *line, size_t len, uint64_t *ret_inode)
{
    const char *p = line, *end = line + len, *word;
    size_t n;

    for (int i = 0; i <= 6; i++) {
        if (!next_word(&p, end, &word, &n) || (i == 0 && word[n - 1] != ':'))
            return false;
        if (i == 6)
            return parse_number(word, n, 10, ret_inode);
    }
    return false;
}

static bool take_line(void *ctx, const char *line, size_t len)
{
    struct pass *p = ctx;
    struct socket_row row = { .proto = SOCKET_UNIX };
    uint64_t inode;
    bool ok = p->t->family == AF_UNIX ? sockets_parse_unix(line, len, &inode) : sockets_parse_inet(line, len, &row, &inode);

    if (!ok || inode == 0)
        return true;
    row.proto = p->t->proto;
    p->stopped = p->sink->fn(p->sink->ctx, inode, &row);
    return p->stopped == 0;
}

/* One table from text: 0 (also when there is no such table: IPv6 switched off), -errno, or stopped by the sink. */
static int dump_text(int pid_dirfd, struct pass *p)
{
    _cleanup_fd_ int fd = fd_open(pid_dirfd, p->t->file, O_RDONLY, 0);

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    return lines_each(fd, p->sink->buffer, SOCKETDIAG_BUFFER, take_line, p);
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

static int dump_table(struct socketdiag *d, int pid_dirfd, struct pass *p, bool *ret_parsed)
{
    if (d->nl) {
        int r = dump_netlink(d, p, STATES_WITH_FD);
        if (r == 0 || p->stopped)
            return 0;
        if (r != -ENOENT) /* ENOENT: this family has no sock_diag; else answers may still be under way: start anew next time */
            socketdiag_close(d);
    }
    *ret_parsed = true;
    return dump_text(pid_dirfd, p);
}

/* A dump the sink stopped leaves unread messages: the socket is not used again. */
static int end_stopped(struct socketdiag *d, int code, struct err *err)
{
    socketdiag_close(d);
    return code < 0 ? err_set(err, code, "sockets: %s", err_sentence(code)) : code;
}

int socketdiag_dump(struct socketdiag *d, int pid_dirfd, const struct socketdiag_sink *sink, bool *ret_parsed, struct err *err)
{
    *ret_parsed = false;
    if (!d->nl && !d->refused) {
        int r = namespace_run(pid_dirfd, "net", open_here, d, NULL);
        if (r == LT_GONE)
            return err_set(err, LT_GONE, "sockets: the process is gone");
        d->refused = r != 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        struct pass p = { .t = &tables[i], .sink = sink };
        int r = dump_table(d, pid_dirfd, &p, ret_parsed);
        if (p.stopped)
            return end_stopped(d, p.stopped, err);
        if (r)
            return err_errno(err, LT_EIO, -r, "sockets: cannot read /proc/PID/%s", tables[i].file);
    }
    return 0;
}

int socketdiag_listeners(enum socket_proto proto, const struct socketdiag_sink *sink, struct err *err)
{
    struct socketdiag d = { 0 };
    bool ok = open_here(&d) == 0;
    _cleanup_fd_ int self = fd_open(AT_FDCWD, "/proc/thread-self", O_RDONLY | O_DIRECTORY, 0);
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables) && r == 0; i++) {
        struct pass p = { .t = &tables[i], .sink = sink };
        if (tables[i].proto != proto)
            continue;
        if (!ok || dump_netlink(&d, &p, proto == SOCKET_TCP ? STATES_LISTEN : UINT32_MAX) < 0)
            r = self < 0 ? self : dump_text(self, &p);
    }
    socketdiag_close(&d);
    return r ? err_errno(err, LT_EIO, -r, "sockets: cannot read who listens") : 0;
}
