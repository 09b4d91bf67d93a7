/* Forks, execs and exits as they happen: the kernel's process connector where it can be had, else exits by pidfd.
 *
 * Connector: every fork, exec and exit of the host, one datagram each, through a netlink socket with an 8 MiB receive
 * buffer; events of threads are dropped in the kernel by a socket filter. It needs CAP_NET_ADMIN (not on every kernel) and
 * the initial pid and user namespaces. Whether it works is known by its answer to the subscription.
 * When the buffer runs over the kernel drops events and says so (ENOBUFS): EVENT_LOST, after which the caller rescans.
 *
 * pidfd: readable when its process ends. Added one by one, for those the connector does not tell about.
 */
#ifndef LT_SOURCE_EVENTS_H
#define LT_SOURCE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum event_kind {
    EVENT_FORK,   /* pid was started by ppid */
    EVENT_EXEC,
    EVENT_EXIT,   /* the first thread of pid has ended, with wait status `status`; others may still run */
    EVENT_LOST,   /* events were dropped */
    EVENT_PIDFD,  /* the pidfd with this cookie: the process has ended */
};

struct event {
    enum event_kind kind;
    int32_t pid, ppid;
    uint32_t status;      /* as wait(2) gives it */
    bool reaped;          /* EVENT_PIDFD: its parent has waited for it */
    uint64_t cookie;
    int64_t mono_ns;      /* when */
};
typedef void (*event_fn)(void *ctx, const struct event *e);

struct events;

/* 0, LT_EIO, LT_ENOMEM; without the connector too (events_connector says). want_connector false: do not try. buffer_bytes
 * 0: 8 MiB. */
int events_open(struct events **ret, bool want_connector, int buffer_bytes, struct err *err);
void events_close(struct events *e);
bool events_connector(const struct events *e);
int events_fd(const struct events *e);        /* readable when there is something */

/* A pidfd of the process, watched with `cookie`: the pidfd (the caller's, closing it ends the watch), or an LT code. The
 * caller makes sure that the number still is the process it means. */
int events_add_pid(struct events *e, int32_t pid, uint64_t cookie);
/* After the end was seen but not how: report again only once it is reaped. */
void events_await_reaping(struct events *e, int pidfd, uint64_t cookie);

/* Hands all that has happened to fn. 0 or LT_EIO. */
int events_drain(struct events *e, event_fn fn, void *ctx, struct err *err);

/* How a reaped process ended, from its pidfd (Linux 6.15): 0, or LT_EUNSUPPORTED when the kernel does not tell. */
int pidfd_exit_status(int pidfd, uint32_t *ret_status);
/* Whether this kernel has it. */
bool pidfd_tells_exit(void);

#endif
