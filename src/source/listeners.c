#include "source/listeners.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "source/folder.h"
#include "source/procfs.h"

#define CMDLINE_MAX 4096
#define DEPTH_MAX 1024       /* of a process tree; ends walks through a table that changed under us */

/* ---- holders ------------------------------------------------------------------------------------------------------ */

static bool wanted(const char *link, size_t len, const uint64_t *inodes, size_t n, uint64_t *ret)
{
    int64_t inode;

    if (len < 10 || memcmp(link, "socket:[", 8) || units_int(link + 8, len - 9, &inode) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (inodes[i] == (uint64_t)inode) {
            *ret = inodes[i];
            return true;
        }
    return false;
}

/* One holder for each of the sockets that pid has open. */
static int holders_of(int proc_fd, int32_t pid, const uint64_t *inodes, size_t n, struct vec *ret)
{
    _cleanup_fd_ int dirfd = procfs_open_pid(proc_fd, pid), fd = -1;
    struct holder h = { .pid = pid };
    struct folder_entry e;
    struct folder f;
    char link[64];
    int r = 0;

    if (dirfd < 0)
        return dirfd;
    fd = fd_open(dirfd, "fd", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return procfs_code(fd);
    folder_init(&f, fd);
    while (r == 0 && folder_next(&f, &e) > 0) {
        ssize_t len = readlinkat(fd, e.name, link, sizeof link);

        if (len > 0 && wanted(link, (size_t)len, inodes, n, &h.inode))
            r = vec_append(ret, &h);
    }
    return r;
}

int listeners_holders(const struct proctab *tab, const uint64_t *inodes, size_t n, struct vec *ret_holders, size_t *ret_hidden,
                      struct err *err)
{
    const struct proctab_entry *e = tab->now.items;

    *ret_hidden = 0;
    for (size_t i = 0; i < tab->now.n; i++) {
        int r = holders_of(tab->proc_fd, e[i].pid, inodes, n, ret_holders);

        *ret_hidden += r == LT_EPERM;
        if (r == LT_ENOMEM)
            return err_set(err, r, "looking for who listens: out of memory");
    }
    return 0;
}

/* ---- which of them ------------------------------------------------------------------------------------------------ */

static bool is_ancestor(const struct proctab *tab, int32_t pid, int32_t of)
{
    const struct proctab_entry *e = proctab_find(tab, of);

    for (int depth = 0; e && e->ppid && depth < DEPTH_MAX; depth++) {
        if (e->ppid == pid)
            return true;
        e = proctab_find(tab, e->ppid);
    }
    return false;
}

static bool holds(const struct vec *holders, int32_t pid, uint64_t inode)
{
    VEC_EACH (struct holder, h, holders)
        if (h->pid == pid && h->inode == inode)
            return true;
    return false;
}

static bool share_socket(const struct vec *holders, int32_t a, int32_t b)
{
    VEC_EACH (struct holder, h, holders)
        if (h->pid == a && holds(holders, b, h->inode))
            return true;
    return false;
}

static bool same_command_line(const struct proctab *tab, int32_t a, int32_t b)
{
    char x[CMDLINE_MAX], y[CMDLINE_MAX];
    size_t n, m;

    return procfs_cmdline_of(tab->proc_fd, a, x, sizeof x, &n) == 0 && procfs_cmdline_of(tab->proc_fd, b, y, sizeof y, &m) == 0 &&
           n && n == m && !memcmp(x, y, n);
}

static bool is_python_worker(const struct proctab *tab, int32_t pid)
{
    static const char mark[] = "multiprocessing.";
    char x[CMDLINE_MAX];
    size_t n;

    return procfs_cmdline_of(tab->proc_fd, pid, x, sizeof x, &n) == 0 && memmem(x, n, mark, sizeof mark - 1);
}

/* L3: the process that both were forked from, 0 when there is none. */
static int32_t common_master(const struct proctab *tab, int32_t a, int32_t b)
{
    const struct proctab_entry *x = proctab_find(tab, a), *y = proctab_find(tab, b);

    if (!x || !y || x->ppid != y->ppid || x->ppid <= 1)
        return 0;
    if (same_command_line(tab, x->ppid, a) && same_command_line(tab, x->ppid, b))
        return x->ppid;
    return is_python_worker(tab, a) && is_python_worker(tab, b) ? x->ppid : 0;
}

static bool is_service_manager(const struct proctab *tab, int32_t pid)
{
    struct proc_stat st;

    return procfs_stat_of(tab->proc_fd, pid, &st) == 0 && (str_eq(st.comm, "systemd") || str_eq(st.comm, "init"));
}

static bool has_pid(const struct vec *pids, int32_t pid)
{
    VEC_EACH (int32_t, p, pids)
        if (*p == pid)
            return true;
    return false;
}

/* Holders without a holder above them. */
static int find_tops(const struct proctab *tab, const struct vec *holders, bool managers, struct vec *ret)
{
    VEC_EACH (struct holder, h, holders) {
        bool top = !has_pid(ret, h->pid) && (managers || !is_service_manager(tab, h->pid));

        VEC_EACH (struct holder, other, holders)
            if (top && other->pid != h->pid && is_ancestor(tab, other->pid, h->pid) &&
                (managers || !is_service_manager(tab, other->pid)))
                top = false;
        if (top && vec_append(ret, &h->pid) < 0)
            return LT_ENOMEM;
    }
    return 0;
}

static int say_ambiguous(const struct proctab *tab, unsigned port, int32_t a, int32_t b, struct err *err)
{
    struct proc_stat x = { .comm = "?" }, y = { .comm = "?" };

    procfs_stat_of(tab->proc_fd, a, &x);
    procfs_stat_of(tab->proc_fd, b, &y);
    str_printable(x.comm);
    str_printable(y.comm);
    return err_set(err, LT_EAMBIG, "port:%u: two unrelated processes listen there, %d (%s) and %d (%s); name one with pid:%d or "
                   "cmd:REGEX", port, (int)a, x.comm, (int)b, y.comm, (int)a);
}

int listeners_roots(const struct proctab *tab, unsigned port, const struct vec *holders, struct vec *roots, struct err *err)
{
    const int32_t *top;
    int r = find_tops(tab, holders, false, roots);

    if (r == 0 && !roots->n)
        r = find_tops(tab, holders, true, roots);
    if (r < 0)
        return err_set(err, r, "port:%u: out of memory", port);
    top = roots->items;
    for (size_t i = 1; i < roots->n; i++) {
        bool related = false;

        for (size_t j = 0; j < i && !related; j++)
            related = share_socket(holders, top[i], top[j]) || common_master(tab, top[i], top[j]);
        if (!related)
            return say_ambiguous(tab, port, top[0], top[i], err);
    }
    /* Workers that were forked from a master which holds no socket itself: it is the main process. */
    if (roots->n > 1) {
        int32_t master = common_master(tab, top[0], top[1]);

        if (master) {
            vec_clear(roots);
            return vec_append(roots, &master);
        }
    }
    return 0;
}
