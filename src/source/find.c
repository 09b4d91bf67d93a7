#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "source/engine.h"
#include "source/listeners.h"

#define CMDLINE_MAX 4096

/* ---- roots ------------------------------------------------------------------------------------------------------- */

static void make_root(struct target *t, struct member *m, bool promoted)
{
    m->root = true;
    m->promoted = promoted;
    m->orphan = false;
    t->roots++;
}

/* A left-over that stood in for a gone root is one again when a real root comes. */
static void demote(struct watch *w, size_t target)
{
    VEC_EACH (struct member, m, &w->members)
        if (m->state != MEMBER_FREE && m->state != MEMBER_ZOMBIE && m->target == target && m->promoted) {
            m->root = m->promoted = false;
            m->orphan = true;
            target_at(w, target)->roots--;
        }
}

static void say_taken(struct watch *w, struct target *t, const struct member *m)
{
    if (t->said_ambiguous)
        return;
    t->said_ambiguous = true;
    watch_note(w, t, "ambiguous", "process %d is one of target %s already; it is counted there only", (int)m->key.pid,
               target_of(w, m)->name);
}

/* A member that the selector names: it was found as a descendant before. pid: and pidfile: name the one main process; others
 * take it as root only when there is none (its master went, or was a launcher). */
static bool root_of_member(struct watch *w, size_t target, struct member *m)
{
    struct target *t = target_at(w, target);

    if (m->target != target) {
        say_taken(w, t, m);
        return false;
    }
    if (m->state == MEMBER_ZOMBIE)
        return false;
    if (!m->root && (t->sel.kind == SELECT_PID || t->sel.kind == SELECT_PIDFILE))
        make_root(t, m, false);
    else if (!m->root && !t->roots)
        make_root(t, m, true);
    return true;
}

bool find_joins_root(struct watch *w, size_t target, int32_t pid)
{
    struct member *m = member_find(w, pid);
    struct proc_stat st;

    if (m)
        return root_of_member(w, target, m);
    if (procfs_stat_of(w->proc_fd, pid, &st) < 0 || (st.state == 'Z' && st.threads <= 1))
        return false;
    m = member_join(w, target, pid, st.ppid, clock_mono_ns());
    if (!m)
        return false;
    m->key.start = st.start;
    demote(w, target);
    make_root(target_at(w, target), m, false);
    w->rescan = true; /* for the children it has */
    return true;
}

void find_descendants(struct watch *w)
{
    const struct proctab_entry *e = w->tab.now.items;
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < w->tab.now.n; i++) {
            struct member *parent = member_find(w, e[i].ppid), *m;

            if (!parent || parent->state == MEMBER_ZOMBIE || e[i].pid == w->self || member_find(w, e[i].pid))
                continue;
            m = member_join(w, parent->target, e[i].pid, e[i].ppid, clock_mono_ns());
            if (!m)
                continue;
            m->key.start = e[i].start;
            more = true;
        }
    }
}

/* ---- pid:, pidfile: ------------------------------------------------------------------------------------------------ */

static void find_pid(struct watch *w, size_t target)
{
    struct target *t = target_at(w, target);

    if (t->roots || t->spent)
        return;
    /* The process it named has ended: whoever has its number now is another. */
    if (t->since_mono_ns)
        t->spent = true;
    else
        find_joins_root(w, target, t->sel.pid);
}

/* `held`: by O_PATH. What lies there is another user's doing: only a regular file is opened, since a FIFO would make us wait. */
static int32_t read_pidfile(int held)
{
    char text[64], path[40];
    struct slice s = { text, 0 }, line;
    int64_t pid;
    ssize_t n;

    str_fmt(path, sizeof path, "/proc/self/fd/%d", held);
    n = fd_read_at(AT_FDCWD, path, text, sizeof text);
    s.len = n > 0 ? (size_t)n : 0;
    if (n <= 0 || !slice_next(&s, '\n', &line))
        return 0;
    line = slice_trim(line);
    return units_int(line.p, line.len, &pid) == 0 && pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
}

/* The file is believed anew whenever it changes. Unchanged after its process ended it names nobody: the number may be
 * another's by now. */
static void find_pidfile(struct watch *w, size_t target)
{
    struct target *t = target_at(w, target);
    struct pidfile_stamp now = { 0 }, *was = &t->pidfile;
    _cleanup_fd_ int held = fd_open(AT_FDCWD, t->sel.name, O_PATH, 0);
    struct stat st;

    if (held < 0 || fstat(held, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    now.mtime_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
    now.ino = st.st_ino;
    now.size = st.st_size;
    if (was->pid && now.mtime_ns == was->mtime_ns && now.ino == was->ino && now.size == was->size)
        return;
    now.pid = read_pidfile(held);
    if (!now.pid)
        return; /* empty or half written */
    *was = now;
    find_joins_root(w, target, now.pid);
}

/* ---- cmd: --------------------------------------------------------------------------------------------------------- */

static bool cmdline_matches(const struct watch *w, const struct target *t, int32_t pid)
{
    char cmdline[CMDLINE_MAX];
    size_t len;

    return pid > 0 && procfs_cmdline_of(w->proc_fd, pid, cmdline, sizeof cmdline, &len) == 0 &&
           selector_matches(&t->sel, cmdline, len);
}

/* lowtide's own command line, and those of the shell, sudo or timeout that started it, hold the expression too. */
static bool is_ourselves(const struct watch *w, int32_t pid)
{
    char path[64];
    struct stat st;

    for (size_t i = 0; i < w->own_line.n; i++)
        if (*(int32_t *)vec_at(&w->own_line, i) == pid)
            return true;
    str_fmt(path, sizeof path, "%d/exe", (int)pid);
    return w->exe_ino && fstatat(w->proc_fd, path, &st, 0) == 0 && st.st_ino == w->exe_ino && st.st_dev == w->exe_dev;
}

static void try_cmd(struct watch *w, size_t target, int32_t pid, int32_t ppid)
{
    struct target *t = target_at(w, target);
    const struct member *m = member_find(w, pid);

    if (m && m->target == target && (m->root || t->roots))
        return;
    if (!cmdline_matches(w, t, pid) || is_ourselves(w, pid) || cmdline_matches(w, t, ppid))
        return;
    find_joins_root(w, target, pid);
}

/* The root is gone and processes of it are left: the first that matches takes its place. (It may have been started by the
 * root to take over, as daemons do.) */
static void find_stand_in(struct watch *w, size_t target)
{
    const struct target *t = target_at(w, target);

    if (!t->members || t->roots)
        return;
    for (size_t i = 0; i < w->members.n && !t->roots; i++) {
        const struct member *m = member_at(w, i);

        if (m->state == MEMBER_LIVE && m->target == target)
            try_cmd(w, target, m->key.pid, m->ppid);
    }
}

/* Without exec events a process is looked at twice: the first time it may not have called exec yet. */
static void find_cmd(struct watch *w, size_t target, bool thorough)
{
    const struct proctab_entry *e = w->tab.now.items;
    unsigned looks = events_connector(w->events) ? 1 : 2;

    find_stand_in(w, target);
    for (size_t i = 0; i < w->tab.now.n; i++)
        if ((thorough || e[i].looks < looks) && !e[i].zombie)
            try_cmd(w, target, e[i].pid, e[i].ppid);
}

void find_by_exec(struct watch *w, int32_t pid)
{
    struct proc_stat st;
    bool read = false;

    for (size_t i = 0; i < w->targets.n; i++) {
        if (target_at(w, i)->sel.kind != SELECT_CMD)
            continue;
        if (!read && procfs_stat_of(w->proc_fd, pid, &st) < 0)
            return;
        read = true;
        try_cmd(w, i, pid, st.ppid);
    }
}

/* ---- unit:, cgroup: ------------------------------------------------------------------------------------------------ */

static bool in_list(const struct vec *pids, int32_t pid)
{
    VEC_EACH (int32_t, p, pids)
        if (*p == pid)
            return true;
    return false;
}

static int older_first(const void *a, const void *b)
{
    uint64_t x = ((const struct proctab_entry *)a)->start, y = ((const struct proctab_entry *)b)->start;

    return (x > y) - (x < y);
}

/* Those of the group that are not known and whose parent is not in it (the others come as descendants), oldest first. */
static int list_tops(struct watch *w)
{
    vec_clear(&w->tops);
    VEC_EACH (int32_t, pid, &w->pids) {
        struct proctab_entry e = { .pid = *pid };
        struct proc_stat st;

        if (*pid == w->self || member_find(w, *pid) || procfs_stat_of(w->proc_fd, *pid, &st) < 0 || st.state == 'Z' ||
            in_list(&w->pids, st.ppid))
            continue;
        e.start = st.start;
        e.ppid = st.ppid;
        e.pgrp = st.pgrp;
        e.sid = st.sid;
        if (vec_append(&w->tops, &e) < 0)
            return LT_ENOMEM;
    }
    if (w->tops.n > 1)
        qsort(w->tops.items, w->tops.n, sizeof(struct proctab_entry), older_first);
    return 0;
}

/* A main process of the group, or one that left the tree: the oldest is the root that the others are measured against. */
static void take_top(struct watch *w, size_t target, const struct proctab_entry *e)
{
    if (tree_is_left_over(w, target, e))
        tree_take_left_over(w, target, e);
    else
        find_joins_root(w, target, e->pid);
}

static int find_group(struct watch *w, size_t target, bool thorough, struct err *err)
{
    struct target *t = target_at(w, target);
    struct cgroup g;
    int r = LT_ENOENT;

    if (t->roots && !thorough && !watch_due(w, w->config.kinds_every))
        return 0;
    if (w->has_mounts)
        r = t->sel.kind == SELECT_UNIT ? cgroup_unit(&w->mounts, t->sel.name, &g, err)
                                       : cgroup_at(&w->mounts, t->sel.name, &g, err);
    if (r == LT_EAMBIG)
        return r;
    vec_clear(&w->pids);
    if (r < 0 || cgroup_pids(&g, true, &w->pids, NULL) == LT_ENOMEM || list_tops(w) < 0)
        return 0;
    VEC_EACH (struct proctab_entry, e, &w->tops)
        take_top(w, target, e);
    return 0;
}

/* ---- port: --------------------------------------------------------------------------------------------------------- */

/* Whether the sockets are those of the last search, whose holders are known then. */
static bool same_sockets(struct target *t, const uint64_t *inodes, size_t n)
{
    uint64_t sum = n;

    for (size_t i = 0; i < n; i++)
        sum += inodes[i] * UINT64_C(0x9e3779b97f4a7c15);
    if (t->sockets_sum == sum)
        return true;
    t->sockets_sum = sum;
    return false;
}

static void say_hidden(struct watch *w, struct target *t, size_t hidden)
{
    if (w->said_permission_fd)
        return;
    w->said_permission_fd = true;
    watch_note(w, t, "permission", "somebody listens on port %u, but the descriptors of %zu processes cannot be looked at; run as "
               "the service's user, or with CAP_SYS_PTRACE", (unsigned)t->sel.port, hidden);
}

static int find_port(struct watch *w, size_t target, struct err *err)
{
    struct target *t = target_at(w, target);
    uint64_t inodes[LISTENERS_MAX];
    size_t n = 0, hidden = 0;
    int r = w->sockets ? sockets_listeners(w->sockets, t->sel.port, inodes, LISTENERS_MAX, &n, NULL) : LT_EUNSUPPORTED;

    if (r < 0 || !n)
        return 0;
    n = MIN(n, (size_t)LISTENERS_MAX);
    if (same_sockets(t, inodes, n) && t->roots)
        return 0;
    vec_clear(&w->holders);
    vec_clear(&w->pids);
    r = listeners_holders(&w->tab, inodes, n, &w->holders, &hidden, err);
    if (r == 0)
        r = listeners_roots(&w->tab, t->sel.port, &w->holders, &w->pids, err);
    if (r < 0)
        return r;
    if (!w->pids.n && hidden)
        say_hidden(w, t, hidden);
    VEC_EACH (int32_t, pid, &w->pids)
        find_joins_root(w, target, *pid);
    return 0;
}

int find_roots(struct watch *w, size_t target, bool thorough, struct err *err)
{
    struct target *t = target_at(w, target);

    switch (t->sel.kind) {
    case SELECT_PID:
        find_pid(w, target);
        return 0;
    case SELECT_PIDFILE:
        find_pidfile(w, target);
        return 0;
    case SELECT_CMD:
        find_cmd(w, target, thorough);
        return 0;
    case SELECT_UNIT:
    case SELECT_CGROUP:
        return find_group(w, target, thorough, err);
    case SELECT_PORT:
        /* Present: only now and then, for a second master (a restart without a gap). */
        return t->roots && !thorough ? 0 : find_port(w, target, err);
    }
    return 0;
}
