/* One member, one sweep: memory, counts, CPU time; shared and swapped pages at a lower rate. */
#include <sys/sysinfo.h>

#include "source/engine.h"

#define THREADS_EVERY 6         /* sweeps between two counts of threads while the address space keeps its size */

/* When the CPU clock of a process has not moved, no thread of it ran: its descriptors, threads and faults are as they were,
 * and only statm, which others can change (reclaim), is read. Descriptors shared with another process (CLONE_FILES) are the
 * exception: the count is refreshed with stat, at the lower rate. */
static bool ran_since(const struct watch *w, const struct member *m, int64_t *ret_cpu_ns)
{
    *ret_cpu_ns = w->own_proc ? procfs_cpu_clock_ns(m->key.pid) : -1;
    return *ret_cpu_ns < 0 || m->cpu_seen_ns < 0 || *ret_cpu_ns != m->cpu_seen_ns;
}

/* stat: parent and end when there is a reason; faults, which only grow and judge nothing, at the lower rate. */
static bool stat_due(const struct watch *w, const struct member *m, bool ran)
{
    return m->stat_due || m->alone || !w->own_proc || watch_turn(w, m, watch_every(w, ran ? 3 : 6));
}

/* A directory fd of the member: the kept one, or one for now (*temp, the caller's) whose start is checked (E1). */
static int member_dir(const struct watch *w, const struct member *m, int *temp)
{
    struct proc_stat st;
    int r;

    if (m->dirfd >= 0)
        return m->dirfd;
    *temp = procfs_open_pid(w->proc_fd, m->key.pid);
    if (*temp < 0)
        return *temp;
    r = procfs_stat(*temp, &st);
    if (r < 0)
        return r;
    return st.start == m->key.start ? *temp : LT_GONE;
}

int reading_window(const struct watch *w, const struct member *m, int *temp)
{
    _cleanup_fd_ int own_temp = -1;
    int own;

    if (!m->alone)
        return member_dir(w, m, temp);
    own = member_dir(w, m, &own_temp);
    if (own < 0)
        return own;
    *temp = procfs_open_thread(own, m->key.pid);
    return *temp;
}

int reading_stat(struct watch *w, const struct member *m, struct proc_stat *ret)
{
    int r;

    if (m->dirfd >= 0)
        return procfs_stat(m->dirfd, ret);
    r = procfs_stat_of(w->proc_fd, m->key.pid, ret);
    if (r < 0)
        return r;
    return !m->key.start || ret->start == m->key.start ? 0 : LT_GONE;
}

static void put_memory(const struct watch *w, struct member *m, const struct proc_statm *s)
{
    int64_t shared = MIN(s->shared, s->resident);

    m->size_moved |= s->size != m->size;
    m->size = s->size;
    m->pages = s->resident;
    m->pages_shared = shared;
    m->v[METRIC_RSS] = s->resident * w->page;
    m->v[METRIC_RSS_ANON] = (s->resident - shared) * w->page;
    m->v[METRIC_RSS_FILE] = shared * w->page;
    /* shared = file + shmem; shmem is read at the lower rate and carried in between. */
    if (m->v[METRIC_RSS_SHMEM] != METRIC_NA) {
        m->v[METRIC_RSS_SHMEM] = MIN(m->v[METRIC_RSS_SHMEM], m->v[METRIC_RSS_FILE]);
        m->v[METRIC_RSS_FILE] -= m->v[METRIC_RSS_SHMEM];
    }
}

static int read_memory(const struct watch *w, struct member *m, int dirfd)
{
    struct proc_statm s;
    int r = m->statm_fd >= 0 && !m->alone ? procfs_statm_kept(m->statm_fd, &s) : procfs_statm(dirfd, &s);

    if (r == LT_GONE)
        return r;
    if (r < 0) {
        m->v[METRIC_RSS] = m->v[METRIC_RSS_ANON] = m->v[METRIC_RSS_FILE] = METRIC_NA;
        return 0;
    }
    m->no_memory = !s.size && !m->kernel_thread;
    put_memory(w, m, &s);
    return 0;
}

static void take_stat(struct watch *w, struct member *m, const struct proc_stat *st, int64_t cpu_ns)
{
    m->stat_sweep = w->sweep;
    m->stat_due = false;
    if (cpu_ns < 0)
        cpu_ns = (int64_t)st->cpu_ticks * (NS_PER_S / w->hz);
    /* Never backwards within a life, also when the clock gives way to ticks. */
    m->v[METRIC_CPU_NS] = MAX(m->v[METRIC_CPU_NS], cpu_ns);
    m->v[METRIC_MINFLT] = (int64_t)st->minflt;
    m->v[METRIC_MAJFLT] = (int64_t)st->majflt;
    m->v[METRIC_THREADS] = st->threads;
    m->threads_owed = false;
    m->pgrp = st->pgrp;
    m->sid = st->sid;
    if (st->ppid != m->ppid)
        tree_parent_changed(w, m, st->ppid);
}

static void blank_stat(struct member *m)
{
    m->v[METRIC_THREADS] = m->v[METRIC_MINFLT] = m->v[METRIC_MAJFLT] = m->v[METRIC_CPU_NS] = METRIC_NA;
    m->stat_due = true;
}

/* 0, LT_GONE also for a zombie. */
static int read_stat(struct watch *w, struct member *m, int64_t cpu_ns)
{
    struct proc_stat st;
    int r = reading_stat(w, m, &st);

    if (r == LT_GONE || (r == 0 && st.start != m->key.start))
        return LT_GONE;
    if (r < 0) {
        blank_stat(m);
        return 0;
    }
    m->alone = st.state == 'Z' && st.threads > 1;
    if ((st.state == 'Z' && !m->alone) || st.state == 'X')
        return LT_GONE;
    take_stat(w, m, &st, cpu_ns);
    return 0;
}

/* What changes only while the process runs. */
static int read_counts(const struct watch *w, struct member *m, int dirfd, int64_t cpu_ns)
{
    int r = m->fd_fd >= 0 && !m->alone ? procfs_fd_count_kept(m->fd_fd, &m->v[METRIC_FDS])
                          : procfs_fd_count(dirfd, w->fd_by_size, &m->v[METRIC_FDS]);

    if (r == LT_GONE)
        return r;
    if (r < 0)
        m->v[METRIC_FDS] = METRIC_NA;
    m->v[METRIC_CPU_NS] = MAX(m->v[METRIC_CPU_NS], cpu_ns);
    return 0;
}

/* A new thread needs a stack: the address space grows, unless one of an ended thread is used again. */
static bool threads_due(const struct watch *w, const struct member *m)
{
    return m->threads_owed && (m->size_moved || w->config.kinds_every == 1 || watch_turn(w, m, THREADS_EVERY));
}

static int read_threads(struct member *m, int dirfd)
{
    int r = procfs_threads(dirfd, m->task_fd, &m->v[METRIC_THREADS]);

    if (r < 0)
        m->v[METRIC_THREADS] = METRIC_NA;
    m->threads_owed = m->size_moved = false;
    return r == LT_GONE ? r : 0;
}

/* Through the folder that shows it; memory last: a process that ends gives its memory up first, then its descriptors. So
 * when there still is memory, all that was read before was of a living process (E4). */
static int read_through(struct watch *w, struct member *m, bool ran, int64_t cpu_ns)
{
    _cleanup_fd_ int temp = -1;
    int r = m->stat_due ? read_stat(w, m, cpu_ns) : 0, dirfd;

    if (r < 0)
        return r;
    dirfd = reading_window(w, m, &temp);
    if (dirfd < 0)
        return dirfd;
    r = ran ? read_counts(w, m, dirfd, cpu_ns) : 0;
    if (r == 0 && threads_due(w, m))
        r = read_threads(m, dirfd);
    return r == 0 ? read_memory(w, m, dirfd) : r;
}

int reading_quick(struct watch *w, struct member *m)
{
    int64_t cpu_ns;
    bool ran = ran_since(w, m, &cpu_ns); /* before the rest: what runs in between shows at the next sweep */
    int r;

    m->stat_due = stat_due(w, m, ran);
    m->threads_owed |= ran;
    r = read_through(w, m, ran || m->stat_due, cpu_ns);
    if (r == 0 && m->no_memory && m->stat_sweep != w->sweep) {
        /* A zombie, or its first thread has ended while others run: stat tells. */
        m->stat_due = true;
        r = read_through(w, m, true, cpu_ns);
    }
    m->cpu_seen_ns = cpu_ns;
    return r == LT_GONE || m->no_memory ? LT_GONE : 0;
}

/* ---- the lower rate ---------------------------------------------------------------------------------------------- */

/* While free swap does not move nobody's pages are swapped out or given back (or as many of each). */
void reading_swap(struct watch *w)
{
    struct sysinfo si;

    w->free_swap = sysinfo(&si) == 0 ? si.freeswap * si.mem_unit : 0;
}

/* Shared and swapped pages. They are as they were, when the process slept and holds as many pages, or when it holds as many
 * shared ones and nothing was swapped on the host. (A mix that changes within the same sum shows within 6 * kinds_every sweeps.) */
static bool status_due(const struct watch *w, const struct member *m)
{
    bool asleep = m->cpu_seen_ns >= 0 && m->cpu_seen_ns == m->status_cpu_ns && m->pages == m->status_pages;
    bool same = w->own_proc && m->pages_shared == m->status_shared && w->free_swap == m->status_swap;

    return !m->status_sweep || watch_turn(w, m, watch_every(w, asleep || same ? 6 : 1));
}

static void read_status(const struct watch *w, struct member *m, int dirfd)
{
    struct proc_status s;

    m->status_sweep = w->sweep;
    m->status_cpu_ns = m->cpu_seen_ns;
    m->status_pages = m->pages;
    m->status_shared = m->pages_shared;
    m->status_swap = w->free_swap;
    if (procfs_status(dirfd, &s) < 0)
        s = (struct proc_status){ METRIC_NA, METRIC_NA, 0, 0 };
    if (m->v[METRIC_RSS_SHMEM] != METRIC_NA)
        m->v[METRIC_RSS_FILE] += m->v[METRIC_RSS_SHMEM]; /* file + shmem again, to be split anew */
    m->v[METRIC_RSS_SHMEM] = m->v[METRIC_RSS_FILE] == METRIC_NA ? METRIC_NA : s.rss_shmem;
    m->v[METRIC_SWAP] = s.swap;
    if (m->v[METRIC_RSS_SHMEM] == METRIC_NA)
        return;
    m->v[METRIC_RSS_SHMEM] = MIN(m->v[METRIC_RSS_SHMEM], m->v[METRIC_RSS_FILE]);
    m->v[METRIC_RSS_FILE] -= m->v[METRIC_RSS_SHMEM];
}

int reading_slow(struct watch *w, struct member *m)
{
    _cleanup_fd_ int temp = -1;
    bool kinds = handles_due(w, m), status = status_due(w, m);
    int dirfd, r;

    m->sockets_now = false;
    if (!kinds)
        handles_keep(w, m);
    if (!kinds && !status)
        return 0;
    dirfd = reading_window(w, m, &temp);
    if (dirfd < 0)
        return dirfd == LT_GONE ? dirfd : 0;
    if (status)
        read_status(w, m, dirfd);
    r = kinds ? handles_read(w, m, dirfd) : 0;
    if (r == 0)
        r = read_memory(w, m, dirfd);
    return r == LT_GONE || m->no_memory ? LT_GONE : 0;
}
