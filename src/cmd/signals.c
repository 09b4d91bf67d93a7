/* Stop requests. A handler sets a flag and makes an eventfd readable, so loops may ask either. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cmd.h"

static volatile sig_atomic_t stopped;
static int stop_fd = -1;

static void on_stop(int signo)
{
    int saved = errno;
    const uint64_t one = 1;
    (void)signo;
    stopped = 1;
    if (stop_fd >= 0 && write(stop_fd, &one, sizeof one) < 0)
        errno = saved; /* the counter is full: it is readable all the more */
    errno = saved;
}

static void take_over(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    static bool taken;
    if (taken)
        return;
    taken = true;
    stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action = { .sa_handler = on_stop };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct sigaction now;
        /* nohup's SIGHUP and a background shell's SIGINT stay ignored. */
        if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool cmd_stopped(void)
{
    take_over();
    return stopped;
}

int cmd_signal_fd(void)
{
    take_over();
    return stop_fd;
}

int cmd_wait_until(int64_t mono_ns)
{
    struct pollfd p = { .fd = cmd_signal_fd(), .events = POLLIN };
    for (;;) {
        int64_t left = mono_ns - clock_mono_ns();
        if (stopped)
            return LT_EINTR;
        if (left <= 0)
            return 0;
        struct timespec ts = { left / NS_PER_S, left % NS_PER_S };
        ppoll(&p, 1, &ts, NULL);
    }
}
