/* The loop: sleeps until the next sweep is due, something was forked or ended, or a stop is asked for. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/watch/watching.h"

static bool line_shown;

void watching_clear_line(void)
{
    if (line_shown)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    line_shown = false;
}

static void show_line(const struct watching *w, const struct sweep *sweep)
{
    char bytes[UNITS_TEXT_MAX], text[160];
    int64_t anon = 0;
    struct watch_stats st;
    if (!w->progress)
        return;
    watch_stats(w->watch, &st);
    for (size_t i = 0; i < sweep->n; i++)
        anon += sweep->rows[i].v[METRIC_RSS_ANON] > 0 ? sweep->rows[i].v[METRIC_RSS_ANON] : 0;
    str_fmt(text, sizeof text, "%" PRIu64 " sweeps, %zu of %zu targets, %zu processes, %s anonymous; Ctrl-C ends", w->sweeps,
            st.targets_present, st.targets, st.lives, units_bytes((double)anon, bytes));
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
    line_shown = true;
}

static int sweep(struct watching *w, struct err *err)
{
    struct sweep_gap gap;
    struct sweep sw = { 0 };
    struct clock_reading now = clock_reading_now();
    bool behind = w->clock.behind;
    w->recorder.sweep_ns = sweep_clock_next(&w->clock, &now, &gap);
    int r = watch_sweep(w->watch, w->recorder.sweep_ns, &sw, err);
    if (r) { /* a watch that lasts weeks does not end for one bad sweep; --once does */
        recorder_failed(&w->recorder, r, err);
        w->failed++;
        return w->once ? r : 0;
    }
    if (gap.any) {
        w->gaps++;
        watching_clear_line();
        if (!behind || !w->clock.behind)
            log_warn("%s; verdicts will not trust that span", gap.why);
    }
    sw.wall_ns = w->recorder.sweep_ns;
    recorder_put(&w->recorder, &sw, &gap);
    if (!w->sweeps++)
        recorder_end_stale(&w->recorder);
    w->samples += sw.processes;
    show_line(w, &sw);
    return 0;
}

static int open_timer(const struct watching *w, int64_t first_boot_ns, struct err *err)
{
    int64_t every = w->clock.interval_ns;
    struct itimerspec when = {
        .it_value = { first_boot_ns / NS_PER_S, first_boot_ns % NS_PER_S },
        .it_interval = { every / NS_PER_S, every % NS_PER_S },
    };
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && !timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL))
        return fd;
    int r = cmd_errno(err, errno, "the sweep timer", "try another --interval");
    fd_close(fd);
    return r;
}

/* Where the loop stands. Times are of the boot clock. */
struct schedule {
    int timer;
    int64_t end_ns, watchdog_ns;
    struct notify notify;
    bool deaf;             /* events could not be taken: not asked for again before the next sweep */
};

static struct timespec time_left(const struct schedule *s, int64_t now)
{
    int64_t next = MIN(s->end_ns, s->notify.watchdog_ns ? s->watchdog_ns : INT64_MAX);
    int64_t left = MAX(MIN(next - now, 3600 * NS_PER_S), (int64_t)0);
    return (struct timespec){ left / NS_PER_S, left % NS_PER_S };
}

static int on_timer(struct watching *w, struct schedule *s, struct err *err)
{
    uint64_t ticks = 0;
    if (read(s->timer, &ticks, sizeof ticks) != sizeof ticks)
        return 0; /* woken for nothing */
    s->deaf = false;
    w->missed += ticks - 1;
    return sweep(w, err);
}

static void feed_watchdog(struct schedule *s, int64_t now)
{
    if (!s->notify.watchdog_ns || now < s->watchdog_ns)
        return;
    notify_send(&s->notify, "WATCHDOG=1");
    s->watchdog_ns = now + s->notify.watchdog_ns;
}

static int turn(struct watching *w, struct schedule *s, struct err *err)
{
    struct pollfd p[] = {
        { .fd = cmd_signal_fd(), .events = POLLIN },
        { .fd = s->timer, .events = POLLIN },
        { .fd = s->deaf ? -1 : watch_event_fd(w->watch), .events = POLLIN },
    };
    struct timespec left = time_left(s, clock_boot_ns());
    if (ppoll(p, ARRAY_SIZE(p), &left, NULL) < 0 && errno != EINTR)
        return cmd_errno(err, errno, "waiting for the next sweep", "start the watch again");
    int r = p[2].revents ? watch_events(w->watch, err) : 0;
    if (r) { /* as with a bad sweep */
        recorder_failed(&w->recorder, r, err);
        w->failed++;
        s->deaf = true;
    }
    r = p[1].revents ? on_timer(w, s, err) : 0;
    feed_watchdog(s, clock_boot_ns());
    return r;
}

static int run_schedule(struct watching *w, struct schedule *s, struct err *err)
{
    int64_t start = clock_boot_ns();
    s->end_ns = w->duration_ns ? start + w->duration_ns : INT64_MAX;
    s->timer = open_timer(w, start + w->clock.interval_ns, err);
    if (s->timer < 0)
        return s->timer;
    int r = sweep(w, err);
    notify_send(&s->notify, "READY=1");
    while (!r && !w->once && !cmd_stopped() && clock_boot_ns() < s->end_ns)
        r = turn(w, s, err);
    w->stopped = cmd_stopped();
    notify_send(&s->notify, "STOPPING=1");
    fd_close(s->timer);
    return r;
}

int watching_run(struct watching *w, struct err *err)
{
    struct schedule s = { .timer = -1 };
    notify_open(&s.notify);
    int r = run_schedule(w, &s, err);
    notify_close(&s.notify);
    watching_clear_line();
    return r;
}
