/* Sockets of a network namespace by NETLINK_SOCK_DIAG: what a socket inode is, in which state, to which peer.
 *
 * Order matters. Read the descriptors of all processes first (fdkinds_read), then sockets_want for each, then
 * sockets_count: a socket opened after the table was read has no row either, and would look like a leaked one. Per sweep:
 *     sockets_stale(s);                                          // rows of the last sweep are not used again
 *     sockets_want(s, pid_dirfd, &err);                          // dumps that process's namespace once per sweep
 *     sockets_count(s, pid_dirfd, &list, v, &doubt);             // METRIC_CONNECTIONS ... METRIC_UNIX_SOCKETS
 *
 * A socket with a row: TCP (v4 and v6, in any state that a descriptor can have; TIME_WAIT and half-open requests belong to
 * no process), UDP, unix. SOCKETS_NO_ROW: an IP socket (TCP, UDP or MPTCP, v4 or v6) without a row. That it is one is not
 * guessed from the missing row, since netlink, packet, vsock, raw and other families have none either: the kernel's own name
 * of the socket (xattr system.sockprotoname of what is held by O_PATH) is asked, once per inode, after its link was read, so
 * that a number closed and reused meanwhile is not mistaken. A socket that closed meanwhile counts nowhere. Asking is dear
 * (6 us and more), so it has a budget of CPU time per process: the names not asked for are taken to be like those that were.
 * MPTCP sockets share their inode with their first TCP subflow, so they are in the TCP table.
 *
 * Inode numbers of sockets are unique on a machine, so all namespaces share one table.
 *
 * Other network namespaces: the netlink socket is opened inside the target's namespace (setns, and back before anything else
 * is done; when going back fails the process ends at once, since every later read would be of the wrong machine) and kept,
 * one per namespace. Needs CAP_SYS_ADMIN; without it, or without sock_diag in the kernel, /proc/PID/net/{tcp,udp,unix} is
 * parsed instead, at about twice the cost per socket.
 */
#ifndef LT_SOURCE_SOCKETS_H
#define LT_SOURCE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/metric.h"
#include "source/fdkinds.h"
#include "source/tally.h"

struct sockets;

enum socket_proto { SOCKET_TCP = 1, SOCKET_UDP, SOCKET_UNIX };

/* TCP states as the kernel numbers them (include/net/tcp_states.h). */
enum socket_state {
    SOCKET_ESTABLISHED = 1, SOCKET_SYN_SENT, SOCKET_SYN_RECV, SOCKET_FIN_WAIT1, SOCKET_FIN_WAIT2, SOCKET_TIME_WAIT,
    SOCKET_CLOSE, SOCKET_CLOSE_WAIT, SOCKET_LAST_ACK, SOCKET_LISTEN, SOCKET_CLOSING
};

struct socket_row {
    enum socket_proto proto;
    enum socket_state state;
    uint8_t peer[16];     /* IPv6, or IPv4 as ::ffff:a.b.c.d; all zero without a peer */
    uint16_t peer_port;   /* host order, 0 without a peer */
    uint16_t local_port;  /* host order */
};

#define SOCKETS_MAX_ROWS (1u << 20)  /* most rows kept; above, counts are METRIC_NA and sockets_want says LT_ELIMIT */
#define SOCKETS_MAX_NETNS 64         /* most namespaces with a kept netlink socket; the one not used longest is dropped */

int sockets_new(struct sockets **ret, size_t max_rows, struct err *err); /* 0: SOCKETS_MAX_ROWS */
void sockets_free(struct sockets *s);

void sockets_stale(struct sockets *s);
/* Makes sure that the rows of this process's network namespace are in the table. 0, LT_GONE, LT_EPERM, LT_ELIMIT, LT_EIO,
 * LT_ENOMEM. Cheap (one readlink) when they are. */
int sockets_want(struct sockets *s, int pid_dirfd, struct err *err);
bool sockets_find(const struct sockets *s, uint64_t inode, struct socket_row *ret);

#define SOCKETS_BUDGET_NS (2 * INT64_C(1000000))

/* The sockets of one process. */
struct socket_list {
    const struct fd_socket *items;
    size_t n;
    double scale;         /* fd_kinds.scale: sockets each one stands for */
    bool kept;            /* read in an earlier sweep: of those without a row it is looked whether they still are open */
    int64_t budget_ns;    /* CPU time for asking names, 0: SOCKETS_BUDGET_NS */
};

struct socket_doubt {
    size_t gone;          /* listed ones that were found closed */
    int64_t err;          /* 90 % half-width of SOCKETS_NO_ROW when not all names were asked for, as in fdkinds.h; else 0 */
};

/* Puts CONNECTIONS, TCP_ESTABLISHED, TCP_CLOSE_WAIT, TCP_LISTEN, TCP_OTHER, SOCKETS_NO_ROW and UNIX_SOCKETS of the sockets
 * in the list into v, each times its scale. CONNECTIONS: TCP rows with a peer, in any state; TCP_OTHER: TCP rows in none of
 * the three states named. When this process's namespace could not be read all are METRIC_NA; when the kernel would not name a
 * socket without a row (no permission), SOCKETS_NO_ROW alone is. */
void sockets_count(struct sockets *s, int pid_dirfd, const struct socket_list *list, int64_t v[METRIC_N], struct socket_doubt *ret);

/* Histogram of the peers of the TCP sockets in list, "10.0.0.7:443 CLOSE_WAIT", "[2001:db8::1]:443 ESTABLISHED"; v4-mapped
 * addresses as IPv4. A listener counts its clients one by one, since each client has its own port: those are folded to
 * "10.0.0.9:* ESTABLISHED" when our own port is one that is listened on. Cleared first; the caller scales. */
void sockets_peers(const struct sockets *s, const struct fd_socket *list, size_t n, struct tally *ret);

/* Inodes of the TCP sockets that listen on `port` in our own network namespace (and of bound, unconnected UDP sockets when
 * no TCP socket does), each once. Fills inodes[0..max), *ret_n is how many there are (may be above max). */
int sockets_listeners(struct sockets *s, uint16_t port, uint64_t *inodes, size_t max, size_t *ret_n, struct err *err);

struct sockets_stats {
    size_t rows, namespaces;
    uint64_t dumps, rows_read, names_asked;  /* ever */
    bool fallback;                           /* the last dump was parsed from /proc/PID/net */
};
void sockets_stats(const struct sockets *s, struct sockets_stats *ret);

const char *socket_state_name(enum socket_state state); /* "CLOSE_WAIT" */

/* One line of /proc/net/tcp{,6} or udp{,6} (proto is the caller's), or /proc/net/unix; header lines and garbage are false. */
bool sockets_parse_inet(const char *line, size_t len, struct socket_row *ret, uint64_t *ret_inode);
bool sockets_parse_unix(const char *line, size_t len, uint64_t *ret_inode);

#endif
