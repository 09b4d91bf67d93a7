/* Word to the service manager: one datagram to the socket it names (sd_notify(3)), no library needed. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/watch/watching.h"

static int connect_to(const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    size_t len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len >= sizeof addr.sun_path)
        return -1;
    memcpy(addr.sun_path, path, len);
    if (path[0] == '@')
        addr.sun_path[0] = '\0'; /* the abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, size))
        return fd_close(fd);
    return fd;
}

/* Half of WATCHDOG_USEC, when it is meant for this process. */
static int64_t watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us, who;
    if (!usec || units_int(usec, strlen(usec), &us) || us <= 0 || us > INT64_MAX / NS_PER_US)
        return 0;
    if (pid && (units_int(pid, strlen(pid), &who) || who != getpid()))
        return 0;
    return us * NS_PER_US / 2;
}

void notify_open(struct notify *n)
{
    const char *path = getenv("NOTIFY_SOCKET");
    *n = (struct notify){ .fd = -1 };
    if (!path || !*path)
        return;
    n->fd = connect_to(path);
    if (n->fd < 0)
        log_warn("NOTIFY_SOCKET=%s cannot be reached; the service manager will not hear that the watch runs", path);
    else
        n->watchdog_ns = watchdog();
}

void notify_send(const struct notify *n, const char *state)
{
    if (n->fd >= 0 && send(n->fd, state, strlen(state), MSG_NOSIGNAL) < 0)
        log_debug("the service manager did not take \"%s\"", state);
}

void notify_close(struct notify *n)
{
    n->fd = fd_close(n->fd);
}
