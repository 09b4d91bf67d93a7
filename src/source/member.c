#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "source/engine.h"
#include "source/role.h"

#define CMDLINE_MAX 4096

struct member *member_find(const struct watch *w, int32_t pid)
{
    uint64_t slot;

    return map_get(&w->by_pid, (uint32_t)pid, &slot) ? member_at(w, slot) : NULL;
}

uint64_t member_cookie(const struct watch *w, const struct member *m)
{
    size_t slot = (size_t)(m - (const struct member *)w->members.items);

    return (uint64_t)m->generation << 32 | (uint64_t)slot;
}

struct member *member_of_cookie(const struct watch *w, uint64_t cookie)
{
    size_t slot = cookie & UINT32_MAX;
    struct member *m = slot < w->members.n ? member_at(w, slot) : NULL;

    return m && m->state != MEMBER_FREE && m->generation == cookie >> 32 ? m : NULL;
}

static void say_limit(struct watch *w, size_t target, const char *what)
{
    if (w->said_limit)
        return;
    w->said_limit = true;
    watch_note(w, target_at(w, target), "limit", "%s; the processes beyond are not sampled", what);
}

/* A slot that is free, or a new one. */
static struct member *take_slot(struct watch *w)
{
    uint32_t slot, generation;
    struct member *m;

    if (w->free_slots.n) {
        slot = *(uint32_t *)vec_at(&w->free_slots, --w->free_slots.n);
    } else {
        /* Room to give the slot back, and to stand in the order, is made now: neither may fail later. */
        size_t room = MIN(w->free_slots.max, w->members.n + 8 + w->members.n / 2);

        if ((w->free_slots.cap <= w->members.n && vec_reserve(&w->free_slots, room) < 0) ||
            (w->order.cap <= w->members.n && vec_reserve(&w->order, MIN(w->order.max, room)) < 0) || !vec_push(&w->members))
            return NULL;
        slot = (uint32_t)(w->members.n - 1);
    }
    m = member_at(w, slot);
    generation = m->generation + 1;
    memset(m, 0, sizeof *m);
    m->generation = generation;
    return m;
}

static void give_back(struct watch *w, struct member *m)
{
    uint32_t slot = (uint32_t)(m - (struct member *)w->members.items);

    m->state = MEMBER_FREE;
    (void)!vec_append(&w->free_slots, &slot);
}

struct member *member_join(struct watch *w, size_t target, int32_t pid, int32_t ppid, int64_t mono_ns)
{
    struct member *m = member_find(w, pid);
    struct target *t = target_at(w, target);

    if (m || pid == w->self || pid <= 0)
        return m;
    m = take_slot(w);
    if (!m && w->members.n == w->members.max) {
        say_limit(w, target, "as many processes as the sampler may follow");
        return NULL;
    }
    if (!m || map_put(&w->by_pid, (uint32_t)pid, (uint64_t)(m - (struct member *)w->members.items)) < 0) {
        if (m)
            give_back(w, m);
        w->failure = LT_ENOMEM;
        return NULL;
    }
    m->state = MEMBER_NEW;
    m->target = (uint16_t)target;
    memcpy(m->key.boot_id, w->boot_id, sizeof m->key.boot_id);
    m->key.pid = pid;
    m->ppid = ppid;
    m->since_mono_ns = mono_ns;
    m->life_id = NO_LIFE;
    m->cpu_seen_ns = m->lost_status = m->kinds_fds = m->kinds_shm = m->status_pages = m->status_shared = -1;
    m->kinds_pace = 1;
    m->stat_due = true;
    m->shm_files = SHM_NEVER;
    m->dirfd = m->statm_fd = m->fd_fd = m->task_fd = m->pidfd = -1;
    for (int i = 0; i < METRIC_N; i++)
        m->v[i] = METRIC_NA;
    if (!t->since_mono_ns)
        t->since_mono_ns = mono_ns;
    t->members++;
    return m;
}

static void close_kept(struct watch *w, int *fd)
{
    if (*fd >= 0)
        w->fd_kept--;
    *fd = fd_close(*fd);
}

void member_drop(struct watch *w, struct member *m)
{
    struct target *t = target_of(w, m);

    if (m->state != MEMBER_ZOMBIE)
        t->members--;
    if (m->root && m->state != MEMBER_ZOMBIE)
        t->roots--;
    close_kept(w, &m->statm_fd);
    close_kept(w, &m->fd_fd);
    close_kept(w, &m->task_fd);
    close_kept(w, &m->pidfd);
    close_kept(w, &m->dirfd);
    socketpool_drop(&w->socketpool, &m->sockets);
    map_remove(&w->by_pid, (uint32_t)m->key.pid);
    give_back(w, m);
}

/* Keeps fd when there is room for it, else closes it: -1. */
static int keep(struct watch *w, int fd)
{
    if (fd < 0)
        return -1;
    if (w->fd_kept >= w->fd_limit)
        return fd_close(fd);
    w->fd_kept++;
    return fd;
}

static int keep_file(struct watch *w, const struct member *m, const char *path, int flags, long limit)
{
    if (w->fd_kept >= limit || m->dirfd < 0)
        return -1;
    return keep(w, fd_open(m->dirfd, path, flags, 0));
}

/* The folder first: it is the identity. The others only save time, so when descriptors are few the ones that save least
 * leave room for other processes. */
static void keep_files(struct watch *w, struct member *m, int dirfd)
{
    m->dirfd = keep(w, dirfd);
    m->statm_fd = keep_file(w, m, "statm", O_RDONLY, w->fd_limit / 4 * 3);
    m->fd_fd = w->fd_by_size ? keep_file(w, m, "fd", O_PATH | O_DIRECTORY, w->fd_limit / 2) : -1;
    m->task_fd = keep_file(w, m, "task", O_PATH | O_DIRECTORY, w->fd_limit / 2);
}

static int by_life(const struct watch *w, uint32_t a, int64_t life_id)
{
    int64_t id = member_at(w, a)->life_id;

    return (id > life_id) - (id < life_id);
}

/* Into its place by life id: nearly always the end. */
static int put_in_order(struct watch *w, const struct member *m)
{
    uint32_t slot = (uint32_t)(m - (const struct member *)w->members.items);
    size_t at = w->order.n;
    uint32_t *items;
    int r = vec_append(&w->order, &slot);

    items = w->order.items;
    while (r == 0 && at > 0 && by_life(w, items[at - 1], m->life_id) > 0) {
        items[at] = items[at - 1];
        items[--at] = slot;
    }
    return r;
}

static int begin_life(struct watch *w, struct member *m, const struct proc_stat *st, int dirfd)
{
    struct life_info info = { .key = m->key, .ppid = st->ppid, .target_id = target_of(w, m)->id };
    char cmdline[CMDLINE_MAX];
    size_t len = 0;
    int r;

    if (dirfd < 0 || procfs_cmdline(dirfd, cmdline, sizeof cmdline, &len) < 0)
        cmdline[len = 0] = '\0';
    info.start_wall_ns = clock_wall_ns() - clock_boot_ns() + (int64_t)(st->start * (uint64_t)(NS_PER_S / w->hz));
    str_copy(info.comm, sizeof info.comm, st->comm);
    str_printable(info.comm);
    role_of(cmdline, len, info.comm, info.role);
    r = w->sink.begin(w->sink.ctx, &info, &m->life_id);
    if (r < 0) {
        m->life_id = NO_LIFE;
        w->failure = r;
        return r;
    }
    if (target_of(w, m)->shm)
        shm_life(target_of(w, m)->shm, m->key.pid, info.start_wall_ns);
    return 0;
}

int member_begin_unread(struct watch *w, struct member *m, const struct proc_stat *st)
{
    m->key.start = st->start;
    return begin_life(w, m, st, -1);
}

/* The number is that of the member as long as it can be read through its folder, which the caller does after this. */
void member_watch_exit(struct watch *w, struct member *m)
{
    int fd;

    if (m->pidfd >= 0 || !w->own_proc || w->fd_kept >= w->fd_limit)
        return;
    fd = events_add_pid(w->events, m->key.pid, member_cookie(w, m));
    if (fd < 0)
        return;
    m->pidfd = fd;
    w->fd_kept++;
}

void member_is_zombie(struct watch *w, struct member *m)
{
    struct target *t = target_of(w, m);

    if (m->state == MEMBER_ZOMBIE)
        return;
    m->state = MEMBER_ZOMBIE;
    t->members--;
    t->roots -= m->root;
    close_kept(w, &m->statm_fd);
    close_kept(w, &m->fd_fd);
    close_kept(w, &m->task_fd);
}

void member_unorder(struct watch *w, const struct member *m)
{
    uint32_t slot = (uint32_t)(m - (const struct member *)w->members.items);
    uint32_t *items = w->order.items;

    for (size_t i = 0; i < w->order.n; i++)
        if (items[i] == slot) {
            memmove(items + i, items + i + 1, (w->order.n - i - 1) * sizeof *items);
            w->order.n--;
            return;
        }
}

/* Whether stat is of the process we were told of: not of a later one with its number. */
static bool is_expected(const struct watch *w, const struct member *m, const struct proc_stat *st)
{
    int64_t known_boot_ns = m->since_mono_ns + clock_boot_ns() - clock_mono_ns();
    int64_t tick = NS_PER_S / w->hz;

    if (m->key.start)
        return st->start == m->key.start;
    return (int64_t)st->start * tick <= known_boot_ns + 2 * tick;
}

static void take_stat(struct member *m, const struct proc_stat *st)
{
    m->key.start = st->start;
    m->permitted = st->permitted && st->state != 'Z';
    m->ppid = st->ppid;
    m->pgrp = st->pgrp;
    m->sid = st->sid;
    m->kernel_thread = st->kernel_thread;
    memcpy(m->comm, st->comm, sizeof m->comm);
}

int member_open(struct watch *w, struct member *m)
{
    _cleanup_fd_ int dirfd = procfs_open_pid(w->proc_fd, m->key.pid);
    struct proc_stat st;
    int r;

    if (dirfd < 0 && dirfd != LT_ELIMIT)
        return dirfd;
    r = dirfd < 0 ? procfs_stat_of(w->proc_fd, m->key.pid, &st) : procfs_stat(dirfd, &st);
    if (r < 0)
        return r;
    if (!is_expected(w, m, &st) || st.pid != m->key.pid)
        return LT_GONE;
    if (m->ppid && st.ppid != m->ppid)
        tree_parent_changed(w, m, st.ppid);
    take_stat(m, &st);
    if (st.state == 'Z' && st.threads <= 1) {
        m->dirfd = keep(w, TAKE_FD(dirfd));
        return LT_TORN; /* dead before it was read: the caller makes it a zombie */
    }
    r = begin_life(w, m, &st, dirfd);
    if (r < 0)
        return r;
    keep_files(w, m, TAKE_FD(dirfd));
    if (!events_connector(w->events))
        member_watch_exit(w, m);
    m->state = MEMBER_LIVE;
    return put_in_order(w, m);
}
