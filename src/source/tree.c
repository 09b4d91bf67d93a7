#include <string.h>

#include "source/engine.h"

void tree_count(struct watch *w)
{
    const uint32_t *order = w->order.items;

    for (size_t i = 0; i < w->order.n; i++) {
        struct member *m = member_at(w, order[i]);

        m->v[METRIC_CHILDREN] = m->v[METRIC_ZOMBIES] = 0;
    }
    VEC_EACH (struct member, m, &w->members) {
        struct member *parent;

        if (m->state == MEMBER_FREE)
            continue;
        parent = member_find(w, m->ppid);
        if (parent && parent->state == MEMBER_LIVE)
            parent->v[m->state == MEMBER_ZOMBIE ? METRIC_ZOMBIES : METRIC_CHILDREN]++;
    }
}

/* A parent changes for one reason: the old one ended first. Who then becomes the parent (init, a subreaper, the root of a
 * container) does not matter: nobody of the service waits for it. */
void tree_parent_changed(struct watch *w, struct member *m, int32_t ppid)
{
    (void)w;
    m->ppid = ppid;
    if (!m->root)
        m->orphan = true;
}

void tree_after_deaths(struct watch *w)
{
    const uint32_t *order = w->order.items;

    if (!w->someone_died)
        return;
    w->someone_died = false;
    for (size_t i = 0; i < w->order.n; i++) {
        struct member *m = member_at(w, order[i]);
        const struct member *parent = member_find(w, m->ppid);

        if (!parent || parent->state == MEMBER_ZOMBIE)
            m->stat_due = true;
    }
}

/* ---- left-overs: processes that left the tree ---------------------------------------------------------------------- */

static int status_of(const struct watch *w, int32_t pid, struct proc_status *ret)
{
    _cleanup_fd_ int dirfd = procfs_open_pid(w->proc_fd, pid);

    return dirfd < 0 ? dirfd : procfs_status(dirfd, ret);
}

/* A process put into a container from outside (docker exec) has a parent outside of its pid namespace; one that was
 * re-parented never has: namespaces have an init of their own. */
static bool entered_namespace(const struct watch *w, const struct proctab_entry *e)
{
    struct proc_status own, parent;

    return status_of(w, e->pid, &own) == 0 && status_of(w, e->ppid, &parent) == 0 && own.ns_depth > parent.ns_depth;
}

static bool same_group(const struct watch *w, int32_t a, int32_t b)
{
    _cleanup_fd_ int x = procfs_open_pid(w->proc_fd, a), y = procfs_open_pid(w->proc_fd, b);
    struct cgroup g, h;

    return x >= 0 && y >= 0 && cgroup_of(&w->mounts, x, &g, NULL) == 0 && cgroup_of(&w->mounts, y, &h, NULL) == 0 &&
           str_eq(g.path, h.path);
}

bool tree_is_left_over(struct watch *w, size_t target, const struct proctab_entry *e)
{
    VEC_EACH (struct member, m, &w->members)
        if (m->state != MEMBER_FREE && m->state != MEMBER_ZOMBIE && m->target == target && m->root &&
            m->key.start < e->start && (e->ppid == 1 || e->ppid == m->ppid) && same_group(w, m->key.pid, e->pid))
            return !entered_namespace(w, e);
    return false;
}

void tree_take_left_over(struct watch *w, size_t target, const struct proctab_entry *e)
{
    struct member *m = member_join(w, target, e->pid, e->ppid, clock_mono_ns());

    if (!m || m->state != MEMBER_NEW)
        return;
    m->key.start = e->start;
    m->orphan = true;
    w->rescan = true; /* for the children it has */
}

#define LEADER_SEEN (UINT64_C(1) << 32) /* beside the target, during forget_leaders */

static void mark_leader(struct watch *w, int32_t pid)
{
    uint64_t target;

    if (map_get(&w->leaders, (uint32_t)pid, &target))
        map_put(&w->leaders, (uint32_t)pid, target | LEADER_SEEN); /* it is there: cannot fail */
}

/* A number that no process bears as its session or group says nothing any more. Dead ones would fill the table in weeks. */
static void forget_leaders(struct watch *w)
{
    const struct proctab_entry *e = w->tab.now.items;
    struct map_entry *leader;

    for (size_t i = 0; i < w->tab.now.n; i++) {
        mark_leader(w, e[i].sid);
        mark_leader(w, e[i].pgrp);
    }
    for (size_t pos = 0; (leader = map_next(&w->leaders, &pos));) {
        if (leader->value & LEADER_SEEN)
            leader->value &= ~LEADER_SEEN;
        else
            map_remove(&w->leaders, leader->key);
    }
}

/* Notes who leads a session or process group, and forgets those whose number another process has now. (The kernel gives no
 * number out while a session or group bears it.) */
static void note_leaders(struct watch *w)
{
    const struct proctab_entry *e = w->tab.now.items;

    if (w->leaders.n > w->leaders.max / 2)
        forget_leaders(w);
    for (size_t i = 0; i < w->tab.now.n; i++) {
        const struct member *m = member_find(w, e[i].pid);

        if (!m)
            map_remove(&w->leaders, (uint32_t)e[i].pid);
        else if (e[i].sid == e[i].pid || e[i].pgrp == e[i].pid || m->sid == e[i].pid || m->pgrp == e[i].pid)
            (void)!map_put(&w->leaders, (uint32_t)e[i].pid, m->target); /* full: later ones are not followed */
    }
}

/* In a session or process group that a process of a target leads or led, its parent not in that session: which target. */
static bool left_session(const struct watch *w, const struct proctab_entry *e, size_t *ret_target)
{
    const struct proctab_entry *parent = proctab_find(&w->tab, e->ppid);
    uint64_t target;

    if (parent && parent->sid == e->sid)
        return false;
    if (!map_get(&w->leaders, (uint32_t)e->sid, &target) && !map_get(&w->leaders, (uint32_t)e->pgrp, &target))
        return false;
    *ret_target = target;
    return true;
}

/* The oldest root: what left its tree is younger. */
static const struct member *oldest_root(const struct watch *w, size_t target)
{
    const struct member *oldest = NULL;

    VEC_EACH (struct member, m, &w->members)
        if (m->state == MEMBER_LIVE && m->target == target && m->root && (!oldest || m->key.start < oldest->key.start))
            oldest = m;
    return oldest;
}

static bool is_above(const struct watch *w, int32_t pid, const struct member *root)
{
    const struct proctab_entry *e = proctab_find(&w->tab, root->key.pid);

    for (int depth = 0; e && depth < 1000; depth++) {
        if (e->ppid == pid)
            return true;
        e = proctab_find(&w->tab, e->ppid);
    }
    return false;
}

/* Whether ppid takes in processes whose parent ended: init, the init of a namespace, or a manager above the service. */
static bool is_reaper(const struct watch *w, int32_t ppid, const struct member *root, const struct vec *group)
{
    struct proc_status s;

    if (ppid == 1 || (status_of(w, ppid, &s) == 0 && s.ns_pid == 1))
        return true;
    VEC_EACH (int32_t, pid, group)
        if (*pid == ppid)
            return false;
    return is_above(w, ppid, root);
}

static void orphans_of_group(struct watch *w, size_t target)
{
    const struct target *t = target_at(w, target);
    const struct member *root = oldest_root(w, target);

    if (!root || !t->cgroup.version || t->cgroup_shared)
        return;
    vec_clear(&w->pids);
    if (cgroup_pids(&t->cgroup, false, &w->pids, NULL) == LT_ENOMEM)
        return;
    VEC_EACH (int32_t, pid, &w->pids) {
        const struct proctab_entry *e = proctab_find(&w->tab, *pid);

        if (e && !e->zombie && *pid != w->self && !member_find(w, *pid) && !member_find(w, e->ppid) &&
            e->start > root->key.start && !is_above(w, *pid, root) && is_reaper(w, e->ppid, root, &w->pids) &&
            !entered_namespace(w, e)) {
            tree_take_left_over(w, target, e);
            root = oldest_root(w, target); /* the table may have moved */
        }
    }
}

void tree_orphans(struct watch *w)
{
    const struct proctab_entry *e = w->tab.now.items;
    size_t target = 0;

    note_leaders(w);
    for (size_t i = 0; i < w->tab.now.n; i++)
        if (!e[i].zombie && e[i].pid != w->self && !member_find(w, e[i].pid) && !member_find(w, e[i].ppid) &&
            left_session(w, &e[i], &target))
            tree_take_left_over(w, target, &e[i]);
    for (size_t i = 0; i < w->targets.n; i++)
        orphans_of_group(w, i);
    find_descendants(w);
}
