/* Dumps of one network namespace's sockets: by NETLINK_SOCK_DIAG, or from the text of /proc/PID/net where that is refused.
 * The inside of sockets.c. */
#ifndef LT_SOURCE_SOCKETDIAG_H
#define LT_SOURCE_SOCKETDIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "source/sockets.h"

#define SOCKETDIAG_BUFFER (32 * 1024) /* the most the kernel puts in one dump message */

struct mnl_socket;

struct socketdiag {
    struct mnl_socket *nl;  /* open in the namespace; NULL until the first dump */
    uint32_t seq;
    bool refused;           /* it cannot be had: text is parsed */
};

struct socketdiag_sink {
    /* Each socket that a descriptor can belong to (inode not 0). Anything but 0 stops the dump. */
    int (*fn)(void *ctx, uint64_t inode, const struct socket_row *row);
    void *ctx;
    char *buffer;           /* SOCKETDIAG_BUFFER bytes */
};

/* TCP, UDP and unix sockets of the process's network namespace. *ret_parsed: whether any came from text. 0, LT_GONE, LT_EPERM,
 * LT_EIO, or what fn returned. */
int socketdiag_dump(struct socketdiag *d, int pid_dirfd, const struct socketdiag_sink *sink, bool *ret_parsed, struct err *err);
void socketdiag_close(struct socketdiag *d);

/* Our own namespace: listening TCP sockets, or all UDP sockets. */
int socketdiag_listeners(enum socket_proto proto, const struct socketdiag_sink *sink, struct err *err);

#endif
