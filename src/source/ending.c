#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "source/engine.h"

#define STATUS_UNKNOWN INT64_C(-1)
#define OOM_LOG_TRIES 5           /* milliseconds the kernel's log gets to name a kill that its counter shows already ... */
#define OOM_LOG_PAUSE_NS (100 * NS_PER_MS) /* ... in such a time, however many died in it: a thousand killed at once are no reason to stop sampling */

/* ---- what it was ------------------------------------------------------------------------------------------------- */

static int64_t group_kills(const struct target *t)
{
    struct cgroup_memory memory;

    if (!t->cgroup.version || cgroup_memory(&t->cgroup, &memory, NULL) < 0)
        return METRIC_NA;
    return memory.oom_kills;
}

/* Waits a millisecond, unless that was done often enough lately. */
static bool wait_for_log(struct watch *w)
{
    int64_t now = clock_mono_ns();

    if (!w->oom_wait_ns || now - w->oom_wait_ns > OOM_LOG_PAUSE_NS) {
        w->oom_wait_ns = now;
        w->oom_tries = 0;
    }
    if (w->oom_tries == OOM_LOG_TRIES)
        return false;
    w->oom_tries++;
    w->stats.oom_waits++;
    nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
    return true;
}

/* Killed by the kernel for memory? Its log names the pid. Where the log cannot be read, or has never named any, the group's
 * counter tells that somebody was: the counter moves before the signal is sent, the log line comes after. */
static bool was_oom(struct watch *w, struct target *t, int32_t pid)
{
    int64_t kills = group_kills(t);
    bool moved = kills != METRIC_NA && t->oom_seen != METRIC_NA && kills > t->oom_seen;
    bool named = oomlog_took(&w->oomlog, pid);

    while (moved && !named && w->oomlog.fd >= 0 && wait_for_log(w))
        named = oomlog_took(&w->oomlog, pid);
    if (named || (moved && !w->oomlog.told)) {
        t->oom_seen += moved;
        return true;
    }
    return false;
}

static struct life_end describe(struct watch *w, const struct member *m, int64_t status, int64_t mono_ns)
{
    struct life_end end = { .wall_ns = clock_wall_ns() - clock_mono_ns() + mono_ns, .cause = LIFE_VANISHED };
    int s = (int)status;

    if (status == STATUS_UNKNOWN)
        return end;
    if (WIFSIGNALED(s)) {
        end.signal = WTERMSIG(s);
        end.cause = end.signal == 9 && was_oom(w, target_of(w, m), m->key.pid) ? LIFE_OOM : LIFE_SIGNALED;
    } else {
        end.cause = LIFE_EXITED;
        end.exit_code = WEXITSTATUS(s);
    }
    return end;
}

/* ---- whether it ended, and its wait status ------------------------------------------------------------------------ */

enum pulse { ALIVE, LEADER_DEAD, ZOMBIE, REAPED };

/* A process that was never opened is looked at by number: one that started after `mono_ns` is another. */
static enum pulse take_pulse(struct watch *w, const struct member *m, int64_t mono_ns, struct proc_stat *st)
{
    int r = reading_stat(w, m, st);
    int64_t tick = NS_PER_S / w->hz;

    if (r == LT_GONE)
        return REAPED;
    if (r < 0)
        return ALIVE; /* cannot tell: the next sweep will */
    if (m->key.start && st->start != m->key.start)
        return REAPED;
    if (!m->key.start && (int64_t)st->start * tick > mono_ns + clock_boot_ns() - clock_mono_ns() + 2 * tick)
        return REAPED;
    if (st->state == 'X')
        return REAPED;
    if (st->state != 'Z')
        return ALIVE;
    return st->threads > 1 ? LEADER_DEAD : ZOMBIE;
}

static int64_t find_status(const struct member *m, enum pulse pulse, const struct proc_stat *st)
{
    uint32_t status;

    if (m->lost_status != STATUS_UNKNOWN && !m->lost_weak)
        return m->lost_status;
    if (pulse == ZOMBIE && m->permitted && st->exit_code >= 0)
        return st->exit_code;
    if (m->pidfd >= 0 && pidfd_exit_status(m->pidfd, &status) == 0)
        return status;
    return m->lost_status;
}

/* ---- ending a life ------------------------------------------------------------------------------------------------ */

/* One that died by a signal before it was ever read is worth a life without samples. What is known when it is gone: its
 * start, to a tick, from the fork event. */
static void begin_late(struct watch *w, struct member *m, enum pulse pulse, const struct proc_stat *seen)
{
    struct proc_stat st = { .ppid = m->ppid };
    const struct member *parent = member_find(w, m->ppid);

    if (pulse == ZOMBIE) {
        st = *seen;
    } else {
        int64_t boot_ns = m->since_mono_ns + clock_boot_ns() - clock_mono_ns();

        st.start = (uint64_t)(boot_ns / (NS_PER_S / w->hz));
        str_copy(st.comm, sizeof st.comm, parent && !m->exec_seen ? parent->comm : "?");
    }
    if (!m->key.start)
        member_begin_unread(w, m, &st);
}

static void end_life(struct watch *w, struct member *m, const struct life_end *end)
{
    struct target *t = target_of(w, m);

    if (m->life_id == NO_LIFE)
        return;
    w->sink.end(w->sink.ctx, m->life_id, end, m->v);
    if (t->shm)
        shm_life_ended(t->shm, m->key.pid);
    member_unorder(w, m);
    m->life_id = NO_LIFE;
}

static void count_exit(struct watch *w, const struct member *m, int64_t mono_ns)
{
    struct target *t = target_of(w, m);

    if (mono_ns < t->since_mono_ns)
        return; /* E5 */
    t->exits++;
    w->stats.exits++;
}

/* The process has ended for good. */
static void has_ended(struct watch *w, struct member *m, int64_t mono_ns, enum pulse pulse, const struct proc_stat *st)
{
    int64_t status = find_status(m, pulse, st);
    struct life_end end = { .cause = LIFE_VANISHED };

    if (m->life_id != NO_LIFE || m->state == MEMBER_NEW)
        end = describe(w, m, status, mono_ns);
    if (m->state != MEMBER_ZOMBIE)
        count_exit(w, m, mono_ns);
    if (m->state == MEMBER_NEW && (end.cause == LIFE_SIGNALED || end.cause == LIFE_OOM))
        begin_late(w, m, pulse, st);
    w->someone_died = true;
    if (pulse == REAPED) {
        end_life(w, m, &end);
        member_drop(w, m);
        return;
    }
    if (status != STATUS_UNKNOWN || m->pidfd < 0 || !w->stats.has_pidfd_exit)
        end_life(w, m, &end);
    else
        events_await_reaping(w->events, m->pidfd, member_cookie(w, m)); /* its parent's wait will tell us too */
    member_is_zombie(w, m);
}

/* Looks, and ends it if it has ended. LEADER_DEAD: other threads run, or are about to end as well; its pidfd will tell. */
static void check(struct watch *w, struct member *m, int64_t mono_ns)
{
    struct proc_stat st = { 0 };
    enum pulse pulse = take_pulse(w, m, mono_ns, &st);

    if (pulse == ZOMBIE || pulse == REAPED) {
        has_ended(w, m, mono_ns, pulse, &st);
    } else if (pulse == LEADER_DEAD) {
        m->lost_weak = true;
        member_watch_exit(w, m);
    } else {
        m->lost_status = STATUS_UNKNOWN; /* a thread took its leader's place by exec, or the event was another's */
    }
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

/* A fork gives out a number that is a member's: either that one has ended, or it is this very process, found by a scan
 * while the event waited (the kernel shows a process a moment before it tells of it). */
static bool was_recycled(struct watch *w, struct member *m, const struct event *e)
{
    struct proc_stat st;

    return m->since_mono_ns < e->mono_ns && m->key.start && take_pulse(w, m, e->mono_ns, &st) == REAPED;
}

static void on_fork(struct watch *w, const struct event *e)
{
    struct member *parent = member_find(w, e->ppid), *m = member_find(w, e->pid);
    struct target *t;
    size_t target;

    if (m && was_recycled(w, m, e)) {
        has_ended(w, m, e->mono_ns, REAPED, NULL);
        parent = member_find(w, e->ppid);
        m = NULL;
    }
    if (!parent || parent->state == MEMBER_ZOMBIE)
        return;
    target = parent->target;
    t = target_at(w, target);
    if (!m)
        m = member_join(w, target, e->pid, e->ppid, e->mono_ns);
    if (!m || m->counted || m->target != target || e->mono_ns < t->since_mono_ns)
        return;
    m->counted = true;
    t->forks++;
    w->stats.forks++;
}

static void on_exec(struct watch *w, const struct event *e)
{
    struct member *m = member_find(w, e->pid);

    if (m) {
        m->exec_seen = true;
        w->stats.execs++;
    } else {
        find_by_exec(w, e->pid);
    }
}

static void on_overflow(struct watch *w)
{
    w->stats.overflows++;
    w->rescan = true;
    w->overflow_sweep = w->sweep;
    if (w->said_overflow)
        return;
    w->said_overflow = true;
    watch_note(w, NULL, "overflow", "the kernel dropped process events: forks and exits are counted short; all processes "
               "are looked at again");
}

void ending_event(void *ctx, const struct event *e)
{
    struct watch *w = ctx;
    struct member *m;

    switch (e->kind) {
    case EVENT_FORK:
        on_fork(w, e);
        break;
    case EVENT_EXEC:
        on_exec(w, e);
        break;
    case EVENT_EXIT:
        m = member_find(w, e->pid);
        if (m && m->state != MEMBER_ZOMBIE) {
            m->lost_status = e->status;
            m->lost_weak = false;
            check(w, m, e->mono_ns);
        }
        break;
    case EVENT_LOST:
        on_overflow(w);
        break;
    case EVENT_PIDFD:
        m = member_of_cookie(w, e->cookie);
        if (m)
            check(w, m, e->mono_ns);
        break;
    }
}

/* ---- what no event told -------------------------------------------------------------------------------------------- */

/* Whether an exit event that is missing may still come: not without the connector, nor when it has just dropped some. */
static bool may_be_told(const struct watch *w)
{
    return events_connector(w->events) && (!w->stats.overflows || w->sweep - w->overflow_sweep > 1);
}

/* NEW, but dead before it could be opened. Its exit event gets one sweep to come. A zombie whose fork we did not see was one
 * before we came. */
void ending_unopened(struct watch *w, struct member *m, bool zombie)
{
    struct proc_stat st = { 0 };

    if (zombie && !m->counted) {
        member_is_zombie(w, m);
    } else if (may_be_told(w) && !m->lost_sweep) {
        m->lost_sweep = w->sweep;
    } else {
        enum pulse pulse = take_pulse(w, m, clock_mono_ns(), &st);

        if (pulse == ZOMBIE || pulse == REAPED)
            has_ended(w, m, clock_mono_ns(), pulse, &st);
    }
}

void ending_lost(struct watch *w, struct member *m)
{
    w->stats.gone_mid_read += m->state == MEMBER_LIVE;
    if (m->state == MEMBER_LIVE) {
        m->state = MEMBER_LOST;
        m->lost_sweep = w->sweep;
    }
}

/* A LOST member is given one sweep for its exit event to come; pidfd and zombies tell at once. */
static void settle_lost(struct watch *w, struct member *m)
{
    struct proc_stat st = { 0 };
    int64_t now = clock_mono_ns();
    enum pulse pulse = take_pulse(w, m, now, &st);
    bool told = pulse != ALIVE && find_status(m, pulse, &st) != STATUS_UNKNOWN;

    if (pulse == ALIVE || pulse == LEADER_DEAD) {
        m->state = MEMBER_LIVE;
        m->stat_due = true;
        if (pulse == LEADER_DEAD)
            member_watch_exit(w, m);
    } else if (told || !may_be_told(w) || m->lost_sweep != w->sweep) {
        has_ended(w, m, now, pulse, &st);
    }
}

/* Zombies: reaped meanwhile, or given to another parent. */
static void settle_zombie(struct watch *w, struct member *m)
{
    struct proc_stat st = { 0 };
    enum pulse pulse = take_pulse(w, m, clock_mono_ns(), &st);

    if (pulse == REAPED)
        has_ended(w, m, clock_mono_ns(), pulse, &st);
    else if (st.ppid)
        m->ppid = st.ppid;
}

void ending_settle(struct watch *w)
{
    for (size_t i = 0; i < w->members.n; i++) {
        struct member *m = member_at(w, i);

        if (m->state == MEMBER_LOST)
            settle_lost(w, m);
        else if (m->state == MEMBER_ZOMBIE)
            settle_zombie(w, m);
    }
}

void ending_close(struct watch *w)
{
    int64_t now = clock_mono_ns();

    for (size_t i = 0; i < w->members.n; i++) {
        struct member *m = member_at(w, i);
        struct life_end end = { .wall_ns = clock_wall_ns(), .cause = LIFE_UNWATCHED };
        struct proc_stat st = { 0 };
        enum pulse pulse;

        if (m->state == MEMBER_FREE)
            continue;
        if (m->life_id != NO_LIFE) {
            pulse = take_pulse(w, m, now, &st);
            if (pulse == ZOMBIE || pulse == REAPED)
                end = describe(w, m, find_status(m, pulse, &st), now);
            end_life(w, m, &end);
        }
        member_drop(w, m);
    }
}
