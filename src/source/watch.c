#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/engine.h"
#include "source/listeners.h"
#include "source/namespace.h"

#define MAX_LIVES 32768
#define MAX_TARGETS 1024
#define MAX_HOST 4194304        /* PID_MAX_LIMIT */
#define MAX_SOCKETS (1u << 20)

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void defaults(struct watch_config *c)
{
    c->proc_root = c->proc_root ? c->proc_root : "/proc";
    c->cgroup_root = c->cgroup_root ? c->cgroup_root : "/sys/fs/cgroup";
    c->max_lives = c->max_lives ? c->max_lives : MAX_LIVES;
    c->kinds_every = c->kinds_every ? c->kinds_every : 10;
    c->slow_every = c->slow_every ? c->slow_every : 20;
}

/* The soft limit is for programs that use select(2); we do not. */
static long raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = { limit.rlim_max, limit.rlim_max };

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (long)limit.rlim_cur;
}

/* An unfinished walk of a temp folder holds a descriptor for each level, and each target may see other folders by the same names. */
static void spare_fds(struct watch *w)
{
    size_t folders = MIN(w->config.ntmp * MAX(w->targets.n, (size_t)1), (size_t)TMPDIR_FOLDERS);

    w->fd_limit = w->fd_all - SPARE_FDS - (long)folders * TMPDIR_DEPTH;
}

static void init_containers(struct watch *w)
{
    size_t max = w->config.max_lives;

    vec_init(&w->targets, sizeof(struct target), MAX_TARGETS);
    vec_init(&w->members, sizeof(struct member), max);
    vec_init(&w->free_slots, sizeof(uint32_t), max + 16);
    vec_init(&w->order, sizeof(uint32_t), max);
    vec_init(&w->rows, sizeof(struct sample), max + MAX_TARGETS);
    socketpool_init(&w->socketpool, MAX_SOCKETS);
    vec_init(&w->pids, sizeof(int32_t), MAX_HOST);
    vec_init(&w->tops, sizeof(struct proctab_entry), MAX_HOST);
    vec_init(&w->holders, sizeof(struct holder), MAX_HOST);
    vec_init(&w->own_line, sizeof(int32_t), 64);
    map_init(&w->by_pid, max);
    map_init(&w->leaders, max);
}

static int self_in(int proc_fd)
{
    char text[32];
    ssize_t n = readlinkat(proc_fd, "self", text, sizeof text - 1);
    int64_t pid;

    return n > 0 && units_int(text, (size_t)n, &pid) == 0 ? (int)pid : 0;
}

/* Who we are in this /proc, so that we are never taken for a target: our pid and those above us. */
static int find_ourselves(struct watch *w)
{
    struct proc_stat st;
    struct stat exe;
    int32_t pid = self_in(w->proc_fd);

    w->self = w->config.watch_self ? 0 : pid;
    w->own_proc = pid == (int32_t)getpid() && procfs_cpu_clock_ns(pid) >= 0;
    if (fstatat(w->proc_fd, "self/exe", &exe, 0) == 0) {
        w->exe_ino = exe.st_ino;
        w->exe_dev = exe.st_dev;
    }
    while (pid > 1 && w->own_line.n < w->own_line.max) {
        if (vec_append(&w->own_line, &pid) < 0)
            return LT_ENOMEM;
        if (procfs_stat_of(w->proc_fd, pid, &st) < 0)
            break;
        pid = st.ppid;
    }
    return 0;
}

static void find_cgroups(struct watch *w)
{
    const char *mountinfo = str_eq(w->config.cgroup_root, "/sys/fs/cgroup") ? "/proc/self/mountinfo" : NULL;
    _cleanup_fd_ int self = fd_open(w->proc_fd, "self", O_RDONLY | O_DIRECTORY, 0);

    w->has_mounts = cgroup_mounts(&w->mounts, w->config.cgroup_root, mountinfo, NULL) == 0;
    w->has_own_cgroup = w->has_mounts && self >= 0 && cgroup_of(&w->mounts, self, &w->own_cgroup, NULL) == 0;
}

static int open_proc(struct watch *w, struct err *err)
{
    int fd = fd_open(AT_FDCWD, w->config.proc_root, O_RDONLY | O_DIRECTORY, 0);

    w->proc_fd = -1;
    if (fd < 0)
        return err_errno(err, LT_EIO, -fd, "%s: cannot open", w->config.proc_root);
    w->proc_fd = fd;
    w->hz = sysconf(_SC_CLK_TCK);
    w->page = sysconf(_SC_PAGESIZE);
    w->fd_by_size = procfs_fd_size_works(fd);
    w->stats.fd_count_by_stat = w->fd_by_size;
    return procfs_boot_id(fd, w->boot_id);
}

static int open_parts(struct watch *w, struct err *err)
{
    int r = events_open(&w->events, w->own_proc, 0, err);

    if (r < 0)
        return r;
    w->stats.has_connector = events_connector(w->events);
    w->stats.has_pidfd_exit = pidfd_tells_exit();
    /* Without sock_diag and /proc/net the socket metrics stay unknown; the rest goes on. */
    if (sockets_new(&w->sockets, 0, NULL) < 0)
        w->sockets = NULL;
    if (fdkinds_new(&w->kinds) < 0 || tmpdirs_new(&w->tmpdirs, 0) < 0 || tally_new(&w->tally) < 0)
        return err_set(err, LT_ENOMEM, "sampler: out of memory");
    return 0;
}

/* The kernel's log names pids of the initial pid namespace, whose inode number is fixed (PROC_PID_INIT_INO). In any other
 * the names would be of strangers: there the group's counter has to tell. */
static bool log_means_our_pids(void)
{
    uint64_t ino;

    return namespace_own_inode("pid", &ino, NULL) == 0 && ino == UINT64_C(0xeffffffc);
}

int watch_open(struct watch **ret, const struct watch_config *config, const struct watch_sink *sink, struct err *err)
{
    struct watch *w = mem_zalloc(1, sizeof *w);
    int r;

    if (!w)
        return err_set(err, LT_ENOMEM, "sampler: out of memory");
    w->config = *config;
    w->sink = *sink;
    defaults(&w->config);
    init_containers(w);
    oomlog_open(&w->oomlog, log_means_our_pids() ? "/dev/kmsg" : ""); /* "": none */
    w->tab.folder_fd = -1;
    w->fd_all = raise_fd_limit();
    spare_fds(w);
    w->rescan = true;
    r = open_proc(w, err);
    if (r == 0)
        r = proctab_init(&w->tab, w->proc_fd, MAX_HOST, err);
    if (r == 0)
        r = find_ourselves(w) < 0 ? err_set(err, LT_ENOMEM, "sampler: out of memory") : 0;
    if (r == 0)
        r = open_parts(w, err);
    if (r < 0) {
        watch_close(w);
        return r;
    }
    find_cgroups(w);
    *ret = w;
    return 0;
}

static void release_parts(struct watch *w)
{
    tally_free(w->tally);
    tmpdirs_free(w->tmpdirs);
    fdkinds_free(w->kinds);
    sockets_free(w->sockets);
    events_close(w->events);
    oomlog_close(&w->oomlog);
    proctab_release(&w->tab);
    fd_close(w->proc_fd);
}

void watch_close(struct watch *w)
{
    struct life_end end = { .wall_ns = clock_wall_ns(), .cause = LIFE_UNWATCHED };

    if (!w)
        return;
    if (w->events) {
        events_drain(w->events, ending_event, w, NULL);
        ending_close(w);
    }
    VEC_EACH (struct target, t, &w->targets) {
        if (t->life_id != NO_LIFE)
            w->sink.end(w->sink.ctx, t->life_id, &end, t->v);
        target_release(t);
    }
    release_parts(w);
    vec_release(&w->targets);
    vec_release(&w->members);
    vec_release(&w->free_slots);
    vec_release(&w->order);
    vec_release(&w->rows);
    socketpool_release(&w->socketpool);
    vec_release(&w->pids);
    vec_release(&w->tops);
    vec_release(&w->holders);
    vec_release(&w->own_line);
    map_release(&w->by_pid);
    map_release(&w->leaders);
    mem_free(w);
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static void say_no_connector(struct watch *w, const struct target *t)
{
    if (events_connector(w->events) || w->said_permission_events || !w->own_proc)
        return;
    w->said_permission_events = true;
    watch_note(w, t, "permission", "no process events: forks and exits between two sweeps are not counted; run with CAP_NET_ADMIN "
               "in the initial pid namespace");
}

int watch_add(struct watch *w, const char *name, const char *selector, int64_t target_id, struct err *err)
{
    struct target *t = vec_push(&w->targets);
    size_t index = w->targets.n - 1;
    int r;

    if (!t)
        return w->targets.n < MAX_TARGETS
                   ? err_set(err, LT_ENOMEM, "target %.80s: out of memory", name)
                   : err_set(err, LT_ELIMIT, "target %.80s: more than %d targets", name, MAX_TARGETS);
    r = target_init(t, name, selector, target_id, err);
    if (r < 0) {
        w->targets.n--;
        return r;
    }
    w->failure = 0;
    r = events_drain(w->events, ending_event, w, err);
    if (r == 0)
        r = proctab_scan(&w->tab, false, NULL, NULL, err);
    if (r == 0 || r == LT_ELIMIT)
        r = find_roots(w, index, true, err);
    if (r == 0 && w->failure)
        r = err_set(err, w->failure, "target %.80s: %s", name, err_sentence(w->failure));
    if (r < 0) {
        VEC_EACH (struct member, m, &w->members)
            if (m->state != MEMBER_FREE && m->target == index)
                member_drop(w, m);
        target_release(t);
        w->targets.n--;
        return r;
    }
    w->rescan = true;
    spare_fds(w);
    if (w->fd_limit < 0 && !w->said_limit_fd) {
        w->said_limit_fd = true;
        watch_note(w, NULL, "limit", "this program may open %ld files; %ld may be needed for the temp folders: raise its limit (ulimit -n, "
                   "LimitNOFILE)", w->fd_all, w->fd_all - w->fd_limit);
    }
    say_no_connector(w, target_at(w, index));
    return 0;
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

int watch_event_fd(const struct watch *w)
{
    return events_fd(w->events);
}

int watch_events(struct watch *w, struct err *err)
{
    int r = events_drain(w->events, ending_event, w, err);

    if (r == 0 && w->failure)
        r = err_set(err, w->failure, "sampler: a life could not be begun: %s", err_sentence(w->failure));
    return r;
}

void watch_stats(const struct watch *w, struct watch_stats *ret)
{
    *ret = w->stats;
    ret->targets = w->targets.n;
    ret->lives = w->order.n;
    ret->targets_present = 0;
    VEC_EACH (struct target, t, &w->targets)
        ret->targets_present += t->members > 0;
}

/* ---- single looks -------------------------------------------------------------------------------------------------- */

int life_of_pid(const char *proc_root, int32_t pid, struct life_key *ret, struct err *err)
{
    _cleanup_fd_ int proc_fd = fd_open(AT_FDCWD, proc_root ? proc_root : "/proc", O_RDONLY | O_DIRECTORY, 0);
    _cleanup_fd_ int dirfd = -1;
    struct life_key key = { .pid = pid };
    struct proc_stat st;
    int r;

    if (proc_fd < 0)
        return err_errno(err, LT_EIO, -proc_fd, "%s: cannot open", proc_root ? proc_root : "/proc");
    dirfd = procfs_open_pid(proc_fd, pid);
    r = dirfd < 0 ? dirfd : procfs_stat(dirfd, &st);
    if (r == LT_GONE)
        return err_set(err, LT_ENOENT, "process %d: there is none; see `ps -p %d`", (int)pid, (int)pid);
    if (r < 0)
        return err_set(err, r, "process %d: cannot be read: %s", (int)pid, err_sentence(r));
    procfs_boot_id(proc_fd, key.boot_id);
    key.start = st.start;
    *ret = key;
    return 0;
}
