/* The table of sockets: inode to row, filled by sock_diag dumps (socketdiag.c), and what is read off it. */
#include "source/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "source/namespace.h"
#include "source/socketdiag.h"

#define FIRST_ROWS 2048
#define MAX_NAMES 16384          /* sockets without a row whose name is remembered */
#define NAMES_A_LOOK 8           /* system calls' worth of names between two looks at the clock */
#define UNIX_INDEX UINT32_MAX    /* map value of unix sockets: they need no row */

enum name_class { NAME_GONE, NAME_IP, NAME_OTHER, NAME_DENIED };

struct netns {
    uint64_t inode;
    struct socketdiag diag;
    bool fresh;                  /* its rows are in the table */
    bool wanted;                 /* in this round */
    int code;                    /* what its dump returned */
};

struct sockets {
    struct map index;            /* inode to index in rows */
    struct vec rows;
    struct map names;            /* inode to enum name_class, of those without a row */
    size_t max_rows;
    bool overflow;
    size_t n;
    struct netns netns[SOCKETS_MAX_NETNS];
    uint64_t listening[65536 / 64]; /* local ports somebody listens on */
    struct sockets_stats stats;
    char buffer[SOCKETDIAG_BUFFER];
};

int sockets_new(struct sockets **ret, size_t max_rows, struct err *err)
{
    struct sockets *s = mem_zalloc(1, sizeof *s);

    if (!s)
        return err_set(err, LT_ENOMEM, "sockets: out of memory");
    s->max_rows = max_rows ? max_rows : SOCKETS_MAX_ROWS;
    map_init(&s->index, s->max_rows);
    map_init(&s->names, MAX_NAMES);
    vec_init(&s->rows, sizeof(struct socket_row), s->max_rows);
    size_t first = MIN(s->max_rows, (size_t)FIRST_ROWS);
    if (map_reserve(&s->index, first) || map_reserve(&s->names, FIRST_ROWS) || vec_reserve(&s->rows, first)) {
        sockets_free(s);
        return err_set(err, LT_ENOMEM, "sockets: out of memory");
    }
    *ret = s;
    return 0;
}

static void drop_netns(struct sockets *s, size_t i)
{
    socketdiag_close(&s->netns[i].diag);
    s->netns[i] = s->netns[--s->n];
}

void sockets_free(struct sockets *s)
{
    if (!s)
        return;
    while (s->n)
        drop_netns(s, s->n - 1);
    map_release(&s->index);
    map_release(&s->names);
    vec_release(&s->rows);
    mem_free(s);
}

/* A kept netlink socket keeps its namespace alive: one nobody asked for since the last call is let go. */
void sockets_stale(struct sockets *s)
{
    for (size_t i = s->n; i-- > 0;) {
        if (!s->netns[i].wanted) {
            drop_netns(s, i);
            continue;
        }
        s->netns[i].fresh = s->netns[i].wanted = false;
    }
    map_clear(&s->index);
    vec_clear(&s->rows);
    memset(s->listening, 0, sizeof s->listening);
    s->overflow = false;
}

/* ---- filling ---------------------------------------------------------------------------------------------------- */

static int add_row(void *ctx, uint64_t inode, const struct socket_row *row)
{
    struct sockets *s = ctx;
    uint64_t at = UNIX_INDEX;

    s->stats.rows_read++;
    if (row->proto != SOCKET_UNIX) {
        if (row->proto == SOCKET_TCP && row->state == SOCKET_LISTEN)
            s->listening[row->local_port / 64] |= UINT64_C(1) << (row->local_port % 64);
        if (map_get(&s->index, inode, &at))
            return 0; /* a further subflow of one MPTCP socket */
        at = s->rows.n;
        int r = vec_append(&s->rows, row);
        if (r)
            return r;
    }
    return map_put(&s->index, inode, at);
}

static struct netns *find_netns(struct sockets *s, uint64_t inode)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->netns[i].inode == inode)
            return &s->netns[i];
    return NULL;
}

static struct netns *make_netns(struct sockets *s, uint64_t inode)
{
    if (s->n == SOCKETS_MAX_NETNS) {
        for (size_t i = s->n; i-- > 0 && s->n == SOCKETS_MAX_NETNS;)
            if (!s->netns[i].wanted)
                drop_netns(s, i);
        if (s->n == SOCKETS_MAX_NETNS)
            return NULL;
    }
    struct netns *ns = &s->netns[s->n++];
    *ns = (struct netns){ .inode = inode };
    return ns;
}

static int dump(struct sockets *s, struct netns *ns, int pid_dirfd, struct err *err)
{
    struct socketdiag_sink sink = { .fn = add_row, .ctx = s, .buffer = s->buffer };
    bool parsed = false;
    int r = socketdiag_dump(&ns->diag, pid_dirfd, &sink, &parsed, err);

    s->stats.dumps++;
    s->stats.fallback = parsed;
    ns->fresh = true;
    ns->code = r;
    if (r == LT_ELIMIT) {
        s->overflow = true;
        return err_set(err, LT_ELIMIT, "sockets: more than %zu on this machine; connections are not counted", s->max_rows);
    }
    return r;
}

int sockets_want(struct sockets *s, int pid_dirfd, struct err *err)
{
    uint64_t inode;
    int r = namespace_inode(pid_dirfd, "net", &inode, err);

    if (r)
        return r;
    struct netns *ns = find_netns(s, inode);
    if (!ns && !(ns = make_netns(s, inode)))
        return err_set(err, LT_ELIMIT, "sockets: more than %d network namespaces; the others are not read", SOCKETS_MAX_NETNS);
    ns->wanted = true;
    if (ns->fresh)
        return ns->code ? err_set(err, ns->code, "sockets: this namespace could not be read in this sweep") : 0;
    return dump(s, ns, pid_dirfd, err);
}

/* ---- reading off ------------------------------------------------------------------------------------------------ */

bool sockets_find(const struct sockets *s, uint64_t inode, struct socket_row *ret)
{
    uint64_t at;

    if (!map_get(&s->index, inode, &at))
        return false;
    if (at == UNIX_INDEX)
        *ret = (struct socket_row){ .proto = SOCKET_UNIX };
    else
        *ret = *(const struct socket_row *)vec_at(&s->rows, at);
    return true;
}

/* Names of struct proto of the families that have rows in the TCP and UDP tables (net/ipv4, net/ipv6, net/mptcp). */
static bool is_ip_name(const char *name)
{
    static const char *const names[] = { "TCP", "TCPv6", "UDP", "UDPv6", "MPTCP", "MPTCPv6" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_eq(name, names[i]))
            return true;
    return false;
}

static bool is_socket(int dirfd, const char *path, uint64_t inode)
{
    char want[48], link[48];

    str_fmt(want, sizeof want, "socket:[%llu]", (unsigned long long)inode);
    ssize_t n = readlinkat(dirfd, path, link, sizeof link - 1);
    if (n < 0)
        return false;
    link[n] = '\0';
    return str_eq(link, want);
}

/* What the descriptor is may change at any moment, to a file on a file system that never answers. So it is looked at before it
 * is followed; then it is held (O_PATH opens nothing and keeps nothing from closing) and looked at again, and only what is
 * held is asked. */
static enum name_class ask_name(struct sockets *s, int pid_dirfd, const struct fd_socket *fs)
{
    char path[48], name[64];

    s->stats.names_asked++;
    str_fmt(path, sizeof path, "fd/%d", fs->fd);
    if (!is_socket(pid_dirfd, path, fs->inode))
        return NAME_GONE;
    _cleanup_fd_ int held = fd_open(pid_dirfd, path, O_PATH, 0);
    if (held < 0)
        return held == -ENOENT ? NAME_GONE : NAME_DENIED;
    str_fmt(path, sizeof path, "/proc/self/fd/%d", held);
    if (!is_socket(AT_FDCWD, path, fs->inode))
        return NAME_GONE;
    ssize_t n = getxattr(path, "system.sockprotoname", name, sizeof name - 1);
    if (n < 0)
        return NAME_DENIED;
    name[n] = '\0';
    return is_ip_name(name) ? NAME_IP : NAME_OTHER;
}

/* Of a kept list the name may be known and the socket gone. */
static enum name_class known_name(int pid_dirfd, const struct fd_socket *fs, bool kept, enum name_class known)
{
    char path[48];

    str_fmt(path, sizeof path, "fd/%d", fs->fd);
    return !kept || is_socket(pid_dirfd, path, fs->inode) ? known : NAME_GONE;
}

static enum name_class name_of(struct sockets *s, int pid_dirfd, const struct fd_socket *fs, bool kept)
{
    uint64_t known;

    if (map_get(&s->names, fs->inode, &known))
        return known_name(pid_dirfd, fs, kept, (enum name_class)known);
    enum name_class c = ask_name(s, pid_dirfd, fs);
    if (c == NAME_IP || c == NAME_OTHER) {
        if (map_put(&s->names, fs->inode, c) == LT_ELIMIT) {
            map_clear(&s->names);
            map_put(&s->names, fs->inode, c); /* not kept: asked again next time */
        }
    }
    return c;
}

struct socket_counts {
    int64_t peer, established, close_wait, listen, other, no_row, unix_;
    int64_t rowless, named;      /* without a row; of these, those whose name was found out */
    size_t gone;
    bool denied;
};

static void count_row(struct socket_counts *c, const struct socket_row *row)
{
    if (row->proto == SOCKET_UNIX)
        c->unix_++;
    if (row->proto != SOCKET_TCP)
        return;
    c->peer += row->state != SOCKET_LISTEN && row->peer_port != 0;
    switch (row->state) {
    case SOCKET_ESTABLISHED: c->established++; break;
    case SOCKET_CLOSE_WAIT: c->close_wait++; break;
    case SOCKET_LISTEN: c->listen++; break;
    default: c->other++; break;
    }
}

static int64_t times(int64_t n, double scale)
{
    return llround((double)n * scale);
}

static bool readable(const struct sockets *s, int pid_dirfd)
{
    uint64_t inode;

    if (s->overflow || namespace_inode(pid_dirfd, "net", &inode, NULL))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->netns[i].inode == inode)
            return s->netns[i].fresh && s->netns[i].code == 0;
    return false;
}

/* The lists are in random order where they are long, so those named before the time is spent are a fair sample. */
static void count_list(struct sockets *s, int pid_dirfd, const struct socket_list *list, struct socket_counts *c)
{
    int64_t deadline = clock_cpu_ns() + (list->budget_ns > 0 ? list->budget_ns : SOCKETS_BUDGET_NS);
    bool spent = false;

    for (size_t i = 0; i < list->n; i++) {
        struct socket_row row;
        enum name_class name;

        if (sockets_find(s, list->items[i].inode, &row)) {
            count_row(c, &row);
            continue;
        }
        c->rowless++;
        spent = spent || (c->named && c->named % NAMES_A_LOOK == 0 && clock_cpu_ns() > deadline);
        if (spent)
            continue;
        name = name_of(s, pid_dirfd, &list->items[i], list->kept);
        c->named++;
        c->no_row += name == NAME_IP;
        c->gone += name == NAME_GONE;
        c->denied |= name == NAME_DENIED;
    }
}

/* SOCKETS_NO_ROW when only some of those without a row were named. */
static void estimate_no_row(struct socket_counts *c, double scale, struct socket_doubt *ret)
{
    if (c->named == c->rowless)
        return;
    ret->err = MAX((int64_t)ceil(fdkinds_half_width(c->no_row, c->named, (double)c->rowless * scale)), INT64_C(1));
    c->no_row = times(c->no_row, (double)c->rowless / (double)c->named);
}

void sockets_count(struct sockets *s, int pid_dirfd, const struct socket_list *list, int64_t v[METRIC_N], struct socket_doubt *ret)
{
    struct socket_counts c = { 0 };
    bool ok = readable(s, pid_dirfd);
    double scale = list->scale;

    if (ok)
        count_list(s, pid_dirfd, list, &c);
    *ret = (struct socket_doubt){ .gone = c.gone };
    estimate_no_row(&c, scale, ret);
    v[METRIC_CONNECTIONS] = ok ? times(c.peer, scale) : METRIC_NA;
    v[METRIC_TCP_ESTABLISHED] = ok ? times(c.established, scale) : METRIC_NA;
    v[METRIC_TCP_CLOSE_WAIT] = ok ? times(c.close_wait, scale) : METRIC_NA;
    v[METRIC_TCP_LISTEN] = ok ? times(c.listen, scale) : METRIC_NA;
    v[METRIC_TCP_OTHER] = ok ? times(c.other, scale) : METRIC_NA;
    v[METRIC_UNIX_SOCKETS] = ok ? times(c.unix_, scale) : METRIC_NA;
    v[METRIC_SOCKETS_NO_ROW] = ok && !c.denied ? times(c.no_row, scale) : METRIC_NA;
}

static bool listened_on(const struct sockets *s, uint16_t port)
{
    return s->listening[port / 64] >> (port % 64) & 1;
}

static size_t peer_text(const struct sockets *s, const struct socket_row *row, char *out, size_t size)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    char addr[INET6_ADDRSTRLEN], port[8] = "*";
    bool v4 = !memcmp(row->peer, mapped, sizeof mapped);

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? row->peer + 12 : row->peer, addr, sizeof addr))
        return 0;
    if (!listened_on(s, row->local_port))
        str_fmt(port, sizeof port, "%u", row->peer_port);
    return str_fmt(out, size, v4 ? "%s:%s %s" : "[%s]:%s %s", addr, port, socket_state_name(row->state));
}

void sockets_peers(const struct sockets *s, const struct fd_socket *list, size_t n, struct tally *ret)
{
    tally_clear(ret);
    for (size_t i = 0; i < n; i++) {
        struct socket_row row;
        char text[TALLY_KEY_MAX];
        if (!sockets_find(s, list[i].inode, &row) || row.proto != SOCKET_TCP || row.state == SOCKET_LISTEN || !row.peer_port)
            continue;
        tally_add(ret, text, peer_text(s, &row, text, sizeof text), 1);
    }
}

/* ---- who listens on a port -------------------------------------------------------------------------------------- */

struct port_search {
    uint16_t port;
    uint64_t *inodes;
    size_t max, n;
};

static int match_port(void *ctx, uint64_t inode, const struct socket_row *row)
{
    struct port_search *p = ctx;

    if (row->local_port != p->port || (row->proto == SOCKET_TCP && row->state != SOCKET_LISTEN) || row->peer_port)
        return 0;
    for (size_t i = 0; i < MIN(p->n, p->max); i++)
        if (p->inodes[i] == inode)
            return 0;
    if (p->n < p->max)
        p->inodes[p->n] = inode;
    p->n++;
    return 0;
}

int sockets_listeners(struct sockets *s, uint16_t port, uint64_t *inodes, size_t max, size_t *ret_n, struct err *err)
{
    struct port_search p = { .port = port, .inodes = inodes, .max = max };
    struct socketdiag_sink sink = { .fn = match_port, .ctx = &p, .buffer = s->buffer };
    int r = socketdiag_listeners(SOCKET_TCP, &sink, err);

    if (r == 0 && p.n == 0)
        r = socketdiag_listeners(SOCKET_UDP, &sink, err);
    if (r)
        return r;
    *ret_n = p.n;
    return 0;
}

void sockets_stats(const struct sockets *s, struct sockets_stats *ret)
{
    *ret = s->stats;
    ret->rows = s->index.n;
    ret->namespaces = s->n;
}

const char *socket_state_name(enum socket_state state)
{
    static const char *const names[] = { "?", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT",
                                         "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING" };

    return (size_t)state < ARRAY_SIZE(names) ? names[state] : names[0];
}
