#include "source/events.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define RECEIVE_BUFFER (8 << 20)
#define BATCH 64
#define MESSAGE_MAX 256
#define CONNECTOR_COOKIE UINT64_MAX

/* A datagram: nlmsghdr, cn_msg, proc_event, packed as the kernel sends it (the event is not aligned for its u64). */
#define AT_CN ((uint32_t)NLMSG_HDRLEN)
#define AT_EVENT (AT_CN + (uint32_t)sizeof(struct cn_msg))
#define AT_DATA (AT_EVENT + (uint32_t)offsetof(struct proc_event, event_data))

struct events {
    int epoll;
    int connector; /* -1: not to be had */
    struct mmsghdr headers[BATCH];
    struct iovec parts[BATCH];
    struct sockaddr_nl senders[BATCH];
    char bytes[BATCH][MESSAGE_MAX];
};

/* ---- the connector ---------------------------------------------------------------------------------------------- */

/* Lets through forks of processes, execs, exits of first threads, and answers to subscriptions. A filter loads words in
 * network order, so what it compares with is turned likewise. */
static int filter_threads(int fd)
{
    enum { ACCEPT = 13, REJECT = 14 };
#define TO(here, there) (uint8_t)((there) - (here) - 1)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_EVENT + offsetof(struct proc_event, what)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_NONE), TO(1, ACCEPT), 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), TO(2, ACCEPT), 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), TO(3, 5), 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(UINT32_C(0x80000000)), TO(4, 9), TO(4, REJECT)),
        /* 5: a fork */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_DATA + offsetof(struct fork_proc_event, child_pid)),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_DATA + offsetof(struct fork_proc_event, child_tgid)),
        BPF_JUMP(BPF_JMP | BPF_JA, TO(8, 12), 0, 0),
        /* 9: an exit */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_DATA + offsetof(struct exit_proc_event, process_pid)),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_DATA + offsetof(struct exit_proc_event, process_tgid)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, TO(12, ACCEPT), TO(12, REJECT)),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
#undef TO
    struct sock_fprog prog = { ARRAY_SIZE(code), code };

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog);
}

static int send_op(int fd, uint32_t op)
{
    char bytes[MESSAGE_MAX] = { 0 };
    uint32_t len = AT_EVENT + (uint32_t)sizeof op;
    struct nlmsghdr nl = { .nlmsg_len = len, .nlmsg_type = NLMSG_DONE };
    struct cn_msg cn = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .ack = (uint32_t)getpid(), .len = sizeof op };
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    ssize_t n;

    memcpy(bytes, &nl, sizeof nl);
    memcpy(bytes + AT_CN, &cn, sizeof cn);
    memcpy(bytes + AT_EVENT, &op, sizeof op);
    n = sendto(fd, bytes, len, MSG_DONTWAIT, (const struct sockaddr *)&kernel, sizeof kernel);
    return n == (ssize_t)len ? 0 : -1;
}

/* The event in a datagram of n bytes; false when it is none. */
static bool message_event(const char *bytes, size_t n, const struct sockaddr_nl *from, struct cn_msg *cn, struct proc_event *ret)
{
    size_t have = n > AT_EVENT ? n - AT_EVENT : 0;

    if (from->nl_pid != 0 || have < offsetof(struct proc_event, event_data) + 16)
        return false;
    memcpy(cn, bytes + AT_CN, sizeof *cn);
    memset(ret, 0, sizeof *ret);
    memcpy(ret, bytes + AT_EVENT, MIN(have, sizeof *ret));
    return cn->id.idx == CN_IDX_PROC && cn->id.val == CN_VAL_PROC;
}

/* The kernel answers a subscription at once, with an error or none; outside the initial namespaces it says nothing. */
static bool answered(struct events *e, int fd)
{
    for (;;) {
        struct sockaddr_nl from = { 0 };
        socklen_t size = sizeof from;
        struct proc_event ev;
        struct cn_msg cn;
        ssize_t n = recvfrom(fd, e->bytes[0], MESSAGE_MAX, MSG_DONTWAIT, (struct sockaddr *)&from, &size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (message_event(e->bytes[0], (size_t)n, &from, &cn, &ev) && ev.what == PROC_EVENT_NONE &&
            cn.ack == (uint32_t)getpid() + 1)
            return ev.event_data.ack.err == 0;
    }
}

static int open_connector(struct events *e, int size)
{
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };

    if (fd < 0 || filter_threads(fd) < 0)
        return -1;
    /* Beyond rmem_max for those who may. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (bind(fd, (const struct sockaddr *)&group, sizeof group) < 0 || send_op(fd, PROC_CN_MCAST_LISTEN) < 0 ||
        !answered(e, fd))
        return -1;
    return TAKE_FD(fd);
}

static void hand_over(const struct proc_event *ev, event_fn fn, void *ctx)
{
    struct event out = { .mono_ns = (int64_t)ev->timestamp_ns };

    switch ((uint32_t)ev->what) {
    case PROC_EVENT_FORK:
        out.kind = EVENT_FORK;
        out.pid = ev->event_data.fork.child_tgid;
        out.ppid = ev->event_data.fork.parent_tgid;
        break;
    case PROC_EVENT_EXEC:
        out.kind = EVENT_EXEC;
        out.pid = ev->event_data.exec.process_tgid;
        break;
    case UINT32_C(0x80000000): /* PROC_EVENT_EXIT, which is no int */
        out.kind = EVENT_EXIT;
        out.pid = ev->event_data.exit.process_tgid;
        out.status = ev->event_data.exit.exit_code;
        break;
    default:
        return;
    }
    fn(ctx, &out);
}

/* Reads until the queue is empty. */
static int drain_connector(struct events *e, event_fn fn, void *ctx, struct err *err)
{
    for (;;) {
        int n;

        for (int i = 0; i < BATCH; i++)
            e->headers[i].msg_hdr.msg_namelen = sizeof e->senders[i];
        n = recvmmsg(e->connector, e->headers, BATCH, MSG_DONTWAIT, NULL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) {
            fn(ctx, &(struct event){ .kind = EVENT_LOST, .mono_ns = clock_mono_ns() });
            continue;
        }
        if (n < 0)
            return errno == EAGAIN ? 0 : err_errno(err, LT_EIO, errno, "process connector: cannot read");
        for (int i = 0; i < n; i++) {
            struct proc_event ev;
            struct cn_msg cn;

            if (message_event(e->bytes[i], e->headers[i].msg_len, &e->senders[i], &cn, &ev))
                hand_over(&ev, fn, ctx);
        }
        if (n == 0)
            return 0;
    }
}

/* ---- pidfds ------------------------------------------------------------------------------------------------------ */

/* <linux/pidfd.h> of Linux 6.15; older headers lack it. */
struct pidfd_info_v0 {
    uint64_t mask;
    uint64_t cgroupid;
    uint32_t pid, tgid, ppid;
    uint32_t ids[8];
    int32_t exit_code;
};
#define PIDFD_GET_INFO_V0 _IOWR(0xFF, 11, struct pidfd_info_v0)
#define PIDFD_INFO_EXIT_BIT (UINT64_C(1) << 3)

static int open_pidfd(int32_t pid)
{
    long fd = syscall(SYS_pidfd_open, pid, 0);

    return fd < 0 ? -errno : (int)fd;
}

int pidfd_exit_status(int pidfd, uint32_t *ret_status)
{
    struct pidfd_info_v0 info = { .mask = PIDFD_INFO_EXIT_BIT };

    if (ioctl(pidfd, PIDFD_GET_INFO_V0, &info) < 0 || !(info.mask & PIDFD_INFO_EXIT_BIT))
        return LT_EUNSUPPORTED;
    *ret_status = (uint32_t)info.exit_code;
    return 0;
}

bool pidfd_tells_exit(void)
{
    _cleanup_fd_ int fd = open_pidfd((int32_t)getpid());
    struct pidfd_info_v0 info = { 0 };
    struct utsname u;
    unsigned long major, minor;
    char *end;

    if (fd < 0 || ioctl(fd, PIDFD_GET_INFO_V0, &info) < 0)
        return false;
    /* 6.13 has the call, 6.15 the exit status; of a running process it shows nothing, so the version must tell. */
    if (uname(&u) < 0)
        return false;
    major = strtoul(u.release, &end, 10);
    minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major > 6 || (major == 6 && minor >= 15);
}

int events_add_pid(struct events *e, int32_t pid, uint64_t cookie)
{
    _cleanup_fd_ int fd = open_pidfd(pid);
    struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = cookie };

    if (fd < 0)
        return fd == -ESRCH ? LT_GONE : fd == -EMFILE || fd == -ENFILE ? LT_ELIMIT : LT_EUNSUPPORTED;
    if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
        return LT_EIO;
    return TAKE_FD(fd);
}

void events_await_reaping(struct events *e, int pidfd, uint64_t cookie)
{
    struct epoll_event ev = { .events = EPOLLONESHOT, .data.u64 = cookie }; /* EPOLLHUP comes unasked */

    epoll_ctl(e->epoll, EPOLL_CTL_MOD, pidfd, &ev);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

int events_open(struct events **ret, bool want_connector, int buffer_bytes, struct err *err)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.u64 = CONNECTOR_COOKIE };
    struct events *e = mem_zalloc(1, sizeof *e);

    if (!e)
        return err_set(err, LT_ENOMEM, "events: out of memory");
    e->connector = -1;
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (e->epoll < 0) {
        int r = err_errno(err, LT_EIO, errno, "events: cannot make an epoll descriptor");

        mem_free(e);
        return r;
    }
    for (int i = 0; i < BATCH; i++) {
        e->parts[i] = (struct iovec){ e->bytes[i], MESSAGE_MAX };
        e->headers[i].msg_hdr = (struct msghdr){ .msg_name = &e->senders[i], .msg_iov = &e->parts[i], .msg_iovlen = 1 };
    }
    if (want_connector)
        e->connector = open_connector(e, buffer_bytes ? buffer_bytes : RECEIVE_BUFFER);
    if (e->connector >= 0 && epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->connector, &ev) < 0)
        e->connector = fd_close(e->connector);
    *ret = e;
    return 0;
}

void events_close(struct events *e)
{
    if (!e)
        return;
    /* Older kernels count listeners by these two messages alone. */
    if (e->connector >= 0)
        send_op(e->connector, PROC_CN_MCAST_IGNORE);
    fd_close(e->connector);
    fd_close(e->epoll);
    mem_free(e);
}

bool events_connector(const struct events *e)
{
    return e->connector >= 0;
}

int events_fd(const struct events *e)
{
    return e->epoll;
}

int events_drain(struct events *e, event_fn fn, void *ctx, struct err *err)
{
    struct epoll_event ready[BATCH];
    int n, r = 0;

    do {
        do {
            n = epoll_wait(e->epoll, ready, BATCH, 0);
        } while (n < 0 && errno == EINTR);
        for (int i = 0; i < n; i++)
            if (ready[i].data.u64 != CONNECTOR_COOKIE)
                fn(ctx, &(struct event){ .kind = EVENT_PIDFD, .cookie = ready[i].data.u64, .mono_ns = clock_mono_ns(),
                                         .reaped = ready[i].events & EPOLLHUP });
            else if (drain_connector(e, fn, ctx, err) < 0)
                r = LT_EIO;
    } while (n == BATCH);
    return r;
}
